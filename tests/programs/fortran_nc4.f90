! A model-like program on Debian's Fortran library: writes a netCDF-4 file with chunks, deflate,
! checksums, groups, strings and types, appends to it, and prints what it reads. Two libraries agree
! when the printed lines and the files agree.
program fortran_nc4
  use netcdf
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  implicit none
  integer, parameter :: nx = 40, ny = 30, nt = 5

  call fields('f90_nc4.nc', ior(nf90_clobber, nf90_netcdf4))
  call fields('f90_nc4_classic.nc', ior(ior(nf90_clobber, nf90_netcdf4), nf90_classic_model))
  call tree('f90_tree.nc')

contains

  subroutine check(status, what)
    integer, intent(in) :: status
    character(len=*), intent(in) :: what
    if (status /= nf90_noerr) then
      print '(3a)', what, ': ', trim(nf90_strerror(status))
      stop 1
    end if
  end subroutine check

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

  subroutine fields(path, mode)
    character(len=*), intent(in) :: path
    integer, intent(in) :: mode
    integer :: id, x, y, t, vt, temp, pack, plain, k, shuffle, deflate, level, contiguous, endianness
    integer :: chunks(3)
    logical :: fletcher
    real(real32) :: f(nx, ny), back(nx, ny)
    integer(int16) :: s(nx, ny), s2(nx, ny)
    real(real64) :: d(nx, ny), d2(nx, ny)

    print '(2a)', '== ', path
    f = reshape([(sin(real(k, real32) / 50), k = 1, nx * ny)], shape(f))
    d = reshape([(cos(real(k, real64) / 70), k = 1, nx * ny)], shape(d))
    call check(nf90_create(path, mode, id), 'create')
    call check(nf90_def_dim(id, 'x', nx, x), 'def_dim x')
    call check(nf90_def_dim(id, 'y', ny, y), 'def_dim y')
    call check(nf90_def_dim(id, 'time', nf90_unlimited, t), 'def_dim time')
    call check(nf90_def_var(id, 'time', nf90_double, [t], vt), 'def_var time')
    call check(nf90_def_var(id, 'temp', nf90_float, [x, y, t], temp, chunksizes=[20, 30, 1], deflate_level=4, shuffle=.true., &
      fletcher32=.true.), 'def_var temp')
    call check(nf90_def_var(id, 'packed', nf90_short, [x, y, t], pack, deflate_level=9), 'def_var packed')
    call check(nf90_def_var(id, 'plain', nf90_double, [x, y], plain, contiguous=.true., &
      endianness=nf90_endian_big), 'def_var plain')
    call check(nf90_put_att(id, temp, 'units', 'K'), 'units')
    call check(nf90_put_att(id, temp, '_FillValue', -999.0_real32), 'fill')
    call check(nf90_put_att(id, nf90_global, 'title', 'a Fortran program'), 'title')
    call check(nf90_enddef(id), 'enddef')
    do k = 1, nt
      call check(nf90_put_var(id, vt, [real(k, real64)], start=[k], count=[1]), 'put time')
      call check(nf90_put_var(id, temp, f * k, start=[1, 1, k], count=[nx, ny, 1]), 'put temp')
      s = int(f * 100 * k, int16)
      call check(nf90_put_var(id, pack, s, start=[1, 1, k], count=[nx, ny, 1]), 'put packed')
    end do
    call check(nf90_put_var(id, plain, d), 'put plain')
    call check(nf90_sync(id), 'sync')
    call check(nf90_redef(id), 'redef')
    call check(nf90_put_att(id, nf90_global, 'history', repeat('added later; ', 40)), 'history')
    call check(nf90_rename_var(id, pack, 'wind'), 'rename_var')
    call check(nf90_enddef(id), 'enddef again')
    call check(nf90_close(id), 'close')

    call check(nf90_open(path, nf90_write, id), 'open to append')
    call check(nf90_inq_varid(id, 'temp', temp), 'inq temp')
    call check(nf90_put_var(id, temp, f * 100, start=[1, 1, nt + 2], count=[nx, ny, 1]), 'append')
    call check(nf90_close(id), 'close appended')

    call check(nf90_open(path, nf90_nowrite, id), 'open')
    call check(nf90_inq_varid(id, 'temp', temp), 'inq temp')
    call check(nf90_inq_varid(id, 'plain', plain), 'inq plain')
    call check(nf90_inq_varid(id, 'wind', pack), 'inq wind')
    call check(nf90_inquire_variable(id, temp, chunksizes=chunks, deflate_level=level, shuffle=fletcher), 'inquire temp')
    print '(a,4i6,l2)', 'temp', chunks, level, fletcher
    call check(nf90_inquire_variable(id, plain, endianness=endianness), 'inquire plain')
    print '(a,i6)', 'plain endianness', endianness
    do k = 1, nt + 2
      call check(nf90_get_var(id, temp, back, start=[1, 1, k], count=[nx, ny, 1]), 'get temp')
      call digest('temp', real(reshape(back, [nx * ny]), real64))
      call check(nf90_get_var(id, pack, s2, start=[1, 1, k], count=[nx, ny, 1]), 'get wind')
      call digest('wind', real(reshape(s2, [nx * ny]), real64))
    end do
    call check(nf90_get_var(id, plain, d2), 'get plain')
    print '(a,l2)', 'equal', all(d2 == d)
    call check(nf90_close(id), 'close read')
  end subroutine fields

  subroutine tree(path)
    character(len=*), intent(in) :: path
    integer :: id, g, h, x, t, v, w, n, groups(10), k
    integer(int64) :: wide(nx), back(nx)
    character(len=80) :: name

    print '(2a)', '== ', path
    wide = [(int(k, int64) * 5000000000_int64, k = 1, nx)]
    call check(nf90_create(path, ior(nf90_clobber, nf90_netcdf4), id), 'create')
    call check(nf90_def_dim(id, 'x', nx, x), 'def_dim')
    call check(nf90_def_grp(id, 'first', g), 'def_grp')
    call check(nf90_def_grp(g, 'second', h), 'def_grp')
    call check(nf90_def_dim(h, 't', nf90_unlimited, t), 'def_dim')
    call check(nf90_def_var(g, 'wide', nf90_int64, [x], v, deflate_level=1), 'def_var')
    call check(nf90_def_var(h, 'unsigned', nf90_ubyte, [x, t], w), 'def_var')
    call check(nf90_put_att(h, w, 'note', 'in a group of a group'), 'att')
    call check(nf90_put_var(g, v, wide), 'put wide')
    call check(nf90_put_var(h, w, reshape([(mod(k, 250), k = 1, nx * 2)], [nx, 2])), 'put unsigned')
    call check(nf90_close(id), 'close')
    call check(nf90_open(path, nf90_nowrite, id), 'open')
    call check(nf90_inq_grps(id, n, groups), 'inq_grps')
    call check(nf90_inq_grpname(groups(1), name), 'inq_grpname')
    print '(a,i4,2a)', 'groups', n, ' ', trim(name)
    call check(nf90_inq_varid(groups(1), 'wide', v), 'inq_varid')
    call check(nf90_get_var(groups(1), v, back), 'get wide')
    print '(a,l2)', 'equal', all(back == wide)
    call check(nf90_close(id), 'close')
  end subroutine tree
end program fortran_nc4
