! A model-like program on Debian's Fortran library: defines, writes and reads back every kind through
! the Fortran 90 interface, through the nf_ calls and through the netCDF-2 calls, in each classic
! format, and prints what it read. Two libraries agree when the printed lines and the files agree.
program fortran_roundtrip
  use netcdf
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  implicit none
  integer, parameter :: nx = 7, ny = 5, nt = 4

  call ninety('f90_classic.nc', nf90_clobber)
  call ninety('f90_offset.nc', ior(nf90_clobber, nf90_64bit_offset))
  call ninety('f90_data.nc', ior(nf90_clobber, nf90_64bit_data))
  call seventy_seven('f77.nc')
  call version_two('v2.nc')

contains

  subroutine check(status, what)
    integer, intent(in) :: status
    character(len=*), intent(in) :: what
    if (status /= nf90_noerr) then
      print '(3a)', what, ': ', trim(nf90_strerror(status))
      stop 1
    end if
  end subroutine check

  ! A sum that changes with each value and each place.
  subroutine digest(name, values)
    character(len=*), intent(in) :: name
    real(real64), intent(in) :: values(:)
    integer :: i
    real(real64) :: total
    total = 0
    do i = 1, size(values)
      total = total * 1.0000001_real64 + values(i) * i
    end do
    print '(a,i6,es26.16,2es14.6)', name, size(values), total, minval(values), maxval(values)
  end subroutine digest

  subroutine ninety(path, mode)
    character(len=*), intent(in) :: path
    integer, intent(in) :: mode
    integer :: id, x, y, t, v1, v2, v4, vf, vd, vc, scalar, i, j, k, status, kind_of, natts, old
    integer :: dims(3), n
    integer(int8) :: b(nx), b2(nx)
    integer(int16) :: s(nx, ny), s2(nx, ny)
    integer(int32) :: l(nx, ny, nt), l2(nx, ny, nt), strided(3, 2, 2), lost(nx, ny, nt)
    integer(int64) :: wide(nx, ny, nt)
    real(real32) :: f(nx, ny), f2(nx, ny), swapped(ny, nx)
    real(real64) :: d(nx, ny, nt), d2(nx, ny, nt), one
    character(len=12) :: text(ny), text2(ny)
    character(len=40) :: title

    print '(2a)', '== ', path
    b = [(int(i * 17 - 60, int8), i = 1, nx)]
    s = reshape([(int(i * 900 - 16000, int16), i = 1, nx * ny)], shape(s))
    l = reshape([(i * 1000003, i = 1, nx * ny * nt)], shape(l))
    f = reshape([(real(i, real32) / 3, i = 1, nx * ny)], shape(f))
    d = reshape([(sqrt(real(i, real64)), i = 1, nx * ny * nt)], shape(d))
    do j = 1, ny
      write (text(j), '(a,i4.4)') 'station', j
    end do

    call check(nf90_create(path, mode, id), 'create')
    call check(nf90_set_fill(id, nf90_nofill, old), 'set_fill')
    call check(nf90_def_dim(id, 'x', nx, x), 'def_dim x')
    call check(nf90_def_dim(id, 'y', ny, y), 'def_dim y')
    call check(nf90_def_dim(id, 'time', nf90_unlimited, t), 'def_dim time')
    call check(nf90_def_dim(id, 'len', 12, n), 'def_dim len')
    call check(nf90_def_var(id, 'b', nf90_byte, [x], v1), 'def_var b')
    call check(nf90_def_var(id, 's', nf90_short, [x, y], v2), 'def_var s')
    call check(nf90_def_var(id, 'l', nf90_int, [x, y, t], v4), 'def_var l')
    call check(nf90_def_var(id, 'f', nf90_float, [x, y], vf), 'def_var f')
    call check(nf90_def_var(id, 'd', nf90_double, [x, y, t], vd), 'def_var d')
    call check(nf90_def_var(id, 'c', nf90_char, [n, y], vc), 'def_var c')
    call check(nf90_def_var(id, 'scalar', nf90_double, varid=scalar), 'def_var scalar')
    call check(nf90_put_att(id, nf90_global, 'title', 'a Fortran program'), 'att title')
    call check(nf90_put_att(id, vd, 'range', [0.0_real64, 100.0_real64]), 'att range')
    call check(nf90_put_att(id, v2, 'few', [1_int16, -2_int16, 3_int16]), 'att few')
    call check(nf90_put_att(id, vf, '_FillValue', -1.0_real32), 'att fill')
    call check(nf90_enddef(id), 'enddef')

    call check(nf90_put_var(id, v1, b), 'put b')
    call check(nf90_put_var(id, v2, s), 'put s')
    do k = nt, 1, -1
      call check(nf90_put_var(id, v4, l(:, :, k), start=[1, 1, k], count=[nx, ny, 1]), 'put l')
      call check(nf90_put_var(id, vd, d(:, :, k), start=[1, 1, k], count=[nx, ny, 1]), 'put d')
    end do
    call check(nf90_put_var(id, vf, f), 'put f')
    call check(nf90_put_var(id, vc, text), 'put c')
    call check(nf90_put_var(id, scalar, 6.25_real64), 'put scalar')
    print '(a,i6)', 'out of range: ', nf90_put_var(id, v1, [70000], start=[1], count=[1])
    call check(nf90_put_var(id, v1, b), 'put b again')
    call check(nf90_sync(id), 'sync')
    call check(nf90_redef(id), 'redef')
    call check(nf90_put_att(id, nf90_global, 'added', 'a longer attribute, put after the data were written'), 'att added')
    call check(nf90_rename_var(id, vf, 'renamed'), 'rename_var')
    call check(nf90_enddef(id), 'enddef again')
    call check(nf90_close(id), 'close')

    call check(nf90_open(path, nf90_nowrite, id), 'open')
    call check(nf90_inquire(id, nDimensions=i, nVariables=j, nAttributes=natts, unlimitedDimId=k, formatNum=status), 'inquire')
    print '(a,5i6)', 'inquire', i, j, natts, k, status
    call check(nf90_inq_varid(id, 'renamed', vf), 'inq_varid')
    call check(nf90_inquire_variable(id, v4, xtype=kind_of, ndims=i, dimids=dims), 'inquire_variable')
    print '(a,5i6)', 'variable', kind_of, i, dims
    call check(nf90_get_att(id, nf90_global, 'title', title), 'get title')
    print '(2a)', 'title ', trim(title)
    call check(nf90_get_var(id, v1, b2), 'get b')
    call digest('b', real(b2, real64))
    call check(nf90_get_var(id, v2, s2), 'get s')
    call digest('s', real(reshape(s2, [nx * ny]), real64))
    call check(nf90_get_var(id, v4, l2), 'get l')
    call digest('l', real(reshape(l2, [nx * ny * nt]), real64))
    call check(nf90_get_var(id, v4, wide), 'get l wide')
    call digest('l int64', real(reshape(wide, [nx * ny * nt]), real64))
    call check(nf90_get_var(id, v4, strided, start=[1, 2, 1], count=[3, 2, 2], stride=[3, 2, 2]), 'get strided')
    call digest('l strided', real(reshape(strided, [12]), real64))
    call check(nf90_get_var(id, vf, f2), 'get f')
    call digest('f', real(reshape(f2, [nx * ny]), real64))
    call check(nf90_get_var(id, vf, swapped, count=[nx, ny], map=[ny, 1]), 'get f mapped')
    call digest('f mapped', real(reshape(swapped, [nx * ny]), real64))
    call check(nf90_get_var(id, vd, d2), 'get d')
    call digest('d', reshape(d2, [nx * ny * nt]))
    call check(nf90_get_var(id, vd, f2, start=[1, 1, 2], count=[nx, ny, 1]), 'get d as float')
    call digest('d as float', real(reshape(f2, [nx * ny]), real64))
    call check(nf90_get_var(id, vc, text2), 'get c')
    print '(2a)', 'c ', text2(ny)
    call check(nf90_get_var(id, scalar, one), 'get scalar')
    print '(a,f8.3)', 'scalar', one
    print '(2a)', 'no such variable: ', trim(nf90_strerror(nf90_inq_varid(id, 'absent', i)))
    print '(2a)', 'past the end: ', trim(nf90_strerror(nf90_get_var(id, v4, lost, start=[1, 1, 2], count=[nx, ny, nt])))
    call check(nf90_close(id), 'close')
    print '(a,6l2)', 'equal', all(b2 == b), all(s2 == s), all(l2 == l), all(d2 == d), all(text2 == text), one == 6.25_real64
  end subroutine ninety

  subroutine seventy_seven(path)
    character(len=*), intent(in) :: path
    integer :: id, x, y, vi, vd, i, values(nx * ny), back(nx * ny), part(2 * 2)
    real(real64) :: d(nx), d2(nx), one
    include 'netcdf.inc'

    print '(2a)', '== ', path
    values = [(i * 5 - 80, i = 1, nx * ny)]
    d = [(1.0_real64 / i, i = 1, nx)]
    call check(nf_create(path, nf_clobber, id), 'nf_create')
    call check(nf_def_dim(id, 'x', nx, x), 'nf_def_dim')
    call check(nf_def_dim(id, 'y', nf_unlimited, y), 'nf_def_dim')
    call check(nf_def_var(id, 'i', nf_short, 2, [x, y], vi), 'nf_def_var')
    call check(nf_def_var(id, 'd', nf_double, 1, [x], vd), 'nf_def_var')
    call check(nf_put_att_text(id, vi, 'units', 5, 'metre'), 'nf_put_att_text')
    call check(nf_put_att_int(id, nf_global, 'levels', nf_byte, 3, [1, 2, 3]), 'nf_put_att_int')
    call check(nf__enddef(id, 256, 4, 128, 4), 'nf__enddef')
    call check(nf_put_vara_int(id, vi, [1, 1], [nx, ny], values), 'nf_put_vara_int')
    call check(nf_put_var_double(id, vd, d), 'nf_put_var_double')
    call check(nf_put_var1_double(id, vd, [3], 9.5_real64), 'nf_put_var1_double')
    call check(nf_get_vara_int(id, vi, [1, 1], [nx, ny], back), 'nf_get_vara_int')
    call digest('i', real(back, real64))
    call check(nf_get_vars_int(id, vi, [2, 1], [2, 2], [3, 2], part), 'nf_get_vars_int')
    call digest('i strided', real(part, real64))
    call check(nf_get_varm_int(id, vi, [1, 1], [2, 2], [1, 1], [2, 1], part), 'nf_get_varm_int')
    call digest('i mapped', real(part, real64))
    call check(nf_get_var_double(id, vd, d2), 'nf_get_var_double')
    call digest('d', d2)
    call check(nf_get_var1_double(id, vd, [3], one), 'nf_get_var1_double')
    print '(a,f8.3)', 'one', one
    call check(nf_close(id), 'nf_close')
  end subroutine seventy_seven

  subroutine version_two(path)
    character(len=*), intent(in) :: path
    integer :: id, x, v, w, rc, i, kind_of, ndims, natts, dims(1024)
    integer(int32) :: values(nx), back(nx)
    real(real32) :: range(2)
    character(len=128) :: name
    character(len=12) :: note
    include 'netcdf.inc'

    print '(2a)', '== ', path
    call ncpopt(0)                  ! neither fatal nor verbose
    values = [(i * i, i = 1, nx)]
    id = nccre(path, ncclob, rc)
    call check(rc, 'nccre')
    x = ncddef(id, 'x', nx, rc)
    v = ncvdef(id, 'v', nclong, 1, [x], rc)
    w = ncvdef(id, 'w', ncfloat, 1, [x], rc)
    call check(rc, 'ncvdef')
    call ncaptc(id, v, 'note', ncchar, 12, 'version two.', rc)
    call ncapt(id, w, 'range', ncfloat, 2, [1.0_real32, 2.0_real32], rc)
    call check(rc, 'ncapt')
    call ncendf(id, rc)
    call ncvpt(id, v, [1], [nx], values, rc)
    call check(rc, 'ncvpt')
    call ncvpt1(id, v, [2], -4_int32, rc)
    call check(rc, 'ncvpt1')
    call ncclos(id, rc)
    call check(rc, 'ncclos')
    id = ncopn(path, ncnowrit, rc)
    call check(rc, 'ncopn')
    call ncvgt(id, v, [1], [nx], back, rc)
    call check(rc, 'ncvgt')
    call digest('v', real(back, real64))
    call ncvinq(id, w, name, kind_of, ndims, dims, natts, rc)
    print '(2a,3i6)', 'w ', trim(name), kind_of, ndims, natts
    call ncagtc(id, v, 'note', note, 12, rc)
    print '(2a)', 'note ', note
    call ncagt(id, w, 'range', range, rc)
    print '(a,2f6.2)', 'range', range
    print '(a,i6)', 'absent', ncvid(id, 'absent', rc)
    print '(a,i6)', 'code', rc
    call ncclos(id, rc)
  end subroutine version_two
end program fortran_roundtrip
