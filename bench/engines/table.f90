! table: write4's `--op table` in Fortran, through netCDF-Fortran: the loop that a model's author
! writes. Two double variables of --n elements, the second over the unlimited dimension, in chunks of
! --chunk elements (0: the default), --slice elements of each in turn; one at a time are scalars.
! The clock runs from nf90_create to the end of nf90_close; prints one JSON line.
!
! --work N computes each value with N steps before it is written, within the clock. --overlap says how:
! `none` computes a slice and then writes it; `sections` does by hand what a library might do by itself,
! with OpenMP: one thread computes the next slice while another writes this one; `only` writes nothing.
!
! --deflate L compresses both. --access random takes the slices in random order. --op read reads them from a
! file that was written so, from nf90_open to the end of nf90_close; values are compared afterwards.
program table
  use, intrinsic :: iso_fortran_env, only: int64, real64, error_unit
  use netcdf
  implicit none

  character(len=4096) :: path, overlap, access, op
  integer :: n, slice, chunk, work, deflate, i, k, last, calls, ncid, dim_n, dim_time, a_id, b_id
  integer, allocatable :: order(:)
  real(real64), allocatable :: a(:), b(:)
  real(real64) :: began, defined, put, closed

  call get_option('--file', '', path)
  n = number('--n', '300000')
  slice = number('--slice', '1')
  chunk = number('--chunk', '0')
  work = number('--work', '0')
  call get_option('--overlap', 'none', overlap)
  deflate = number('--deflate', '0')
  call get_option('--access', 'order', access)
  call get_option('--op', 'write', op)
  if (path == '' .or. n < 1 .or. slice < 1 .or. chunk < 0 .or. work < 0 .or. deflate < 0 .or. &
       (overlap /= 'none' .and. overlap /= 'sections' .and. overlap /= 'only') .or. &
       (access /= 'order' .and. access /= 'random') .or. (op /= 'write' .and. op /= 'read')) then
     write (error_unit, '(2a)') 'table: --file FILE --n N --slice N --chunk N --work N --overlap none|sections|only ', &
          '--deflate LEVEL --access order|random --op write|read'
     stop 2
  end if
  call make_order
  allocate (a(n), b(n))
  a = 0
  b = 0
  if (work == 0) call compute(1, n)
  calls = 0
  if (op == 'read') then
     call read_all
     stop
  end if

  began = now()
  if (overlap == 'only') then
     do i = 1, n, slice
        call compute(i, min(n, i + slice - 1))
     end do
     put = now()
     write (*, '(2(a,f20.9),a)') '{"workload": "table", "params": {"compute":', put - began, '}, "seconds":', put - began, &
          ', "bytes": 0, "calls": 0, "digest": null}'
     stop
  end if
  call check(nf90_create(path, ior(nf90_clobber, nf90_netcdf4), ncid))
  call check(nf90_def_dim(ncid, 'n', n, dim_n))
  call check(nf90_def_dim(ncid, 'time', nf90_unlimited, dim_time))
  call check(nf90_def_var(ncid, 'a', nf90_double, dim_n, a_id))
  call check(nf90_def_var(ncid, 'b', nf90_double, dim_time, b_id))
  if (chunk > 0) then
     call check(nf90_def_var_chunking(ncid, a_id, nf90_chunked, [chunk]))
     call check(nf90_def_var_chunking(ncid, b_id, nf90_chunked, [chunk]))
  end if
  if (deflate > 0) then
     call check(nf90_def_var_deflate(ncid, a_id, 1, 1, deflate))
     call check(nf90_def_var_deflate(ncid, b_id, 1, 1, deflate))
  end if
  call check(nf90_enddef(ncid))
  defined = now()
  if (overlap == 'sections') then
     if (work > 0) call compute(1, min(n, slice))
     do i = 1, n, slice
        !$omp parallel sections num_threads(2)
        !$omp section
        if (work > 0 .and. i + slice <= n) call compute(i + slice, min(n, i + 2 * slice - 1))
        !$omp section
        call put_slice(i, min(n, i + slice - 1))
        !$omp end parallel sections
     end do
  else
     do k = 1, size(order)
        i = order(k)
        last = min(n, i + slice - 1)
        if (work > 0) call compute(i, last)
        call put_slice(i, last)
     end do
  end if
  put = now()
  call check(nf90_close(ncid))
  closed = now()

  write (*, '(3(a,f20.9),a,f20.9,2(a,i0),a)') &
       '{"workload": "table", "params": {"define":', defined - began, ', "put":', put - defined, &
       ', "close":', closed - put, '}, "seconds":', closed - began, ', "bytes": ', 16 * n, &
       ', "calls": ', calls, ', "digest": null}'

contains

  !> Both variables from one element to another; each value takes so many steps, one after another.
  subroutine compute(from, to)
    integer, intent(in) :: from, to
    integer :: j, k
    real(real64) :: x
    do j = from, to
       x = 0.25_real64 * j
       do k = 1, work
          x = 0.5_real64 * (x + 0.25_real64 * j)
       end do
       a(j) = x
       b(j) = -2 * x
    end do
  end subroutine compute

  !> A slice of both, in turns; one element as a scalar.
  subroutine put_slice(from, to)
    integer, intent(in) :: from, to
    if (slice == 1) then
       call check(nf90_put_var(ncid, a_id, a(from), start=[from]))
       call check(nf90_put_var(ncid, b_id, b(from), start=[from]))
    else
       call check(nf90_put_var(ncid, a_id, a(from:to), start=[from]))
       call check(nf90_put_var(ncid, b_id, b(from:to), start=[from]))
    end if
    calls = calls + 2
  end subroutine put_slice

  !> Where slices begin: one behind the other, or shuffled, the same way in each run.
  subroutine make_order
    integer :: j, other, old, pieces
    integer(int64) :: state
    pieces = (n + slice - 1) / slice
    allocate (order(pieces))
    order = [(1 + (j - 1) * slice, j = 1, pieces)]
    if (access == 'order') return
    state = 11
    do j = pieces, 2, -1
       state = mod(state * 48271_int64, 2147483647_int64)
       other = 1 + int(mod(state, int(j, int64)))
       old = order(j)
       order(j) = order(other)
       order(other) = old
    end do
  end subroutine make_order

  !> Reads what `--op write` has put, in the same order.
  subroutine read_all
    real(real64), allocatable :: right_a(:), right_b(:)
    allocate (right_a(n), right_b(n))
    right_a = a
    right_b = b
    a = 0
    b = 0
    began = now()
    call check(nf90_open(path, nf90_nowrite, ncid))
    call check(nf90_inq_varid(ncid, 'a', a_id))
    call check(nf90_inq_varid(ncid, 'b', b_id))
    do k = 1, size(order)
       i = order(k)
       last = min(n, i + slice - 1)
       if (slice == 1) then
          call check(nf90_get_var(ncid, a_id, a(i), start=[i]))
          call check(nf90_get_var(ncid, b_id, b(i), start=[i]))
       else
          call check(nf90_get_var(ncid, a_id, a(i:last), start=[i]))
          call check(nf90_get_var(ncid, b_id, b(i:last), start=[i]))
       end if
       calls = calls + 2
    end do
    call check(nf90_close(ncid))
    closed = now()
    if (any(abs(a - right_a) > 0) .or. any(abs(b - right_b) > 0)) then
       write (error_unit, '(a)') 'table: other values than were written'
       stop 1
    end if
    write (*, '(a,f20.9,2(a,i0),a)') '{"workload": "table", "params": {}, "seconds":', closed - began, ', "bytes": ', 16 * n, &
         ', "calls": ', calls, ', "digest": null}'
  end subroutine read_all

  subroutine check(status)
    integer, intent(in) :: status
    if (status == nf90_noerr) return
    write (error_unit, '(2a)') 'table: ', trim(nf90_strerror(status))
    stop 1
  end subroutine check

  !> The value after `name`, or `otherwise`.
  subroutine get_option(name, otherwise, word)
    character(len=*), intent(in) :: name, otherwise
    character(len=*), intent(out) :: word
    integer :: k
    word = otherwise
    do k = 1, command_argument_count() - 1, 2
       call get_command_argument(k, word)
       if (word == name) then
          call get_command_argument(k + 1, word)
          return
       end if
    end do
    word = otherwise
  end subroutine get_option

  integer function number(name, otherwise)
    character(len=*), intent(in) :: name, otherwise
    character(len=32) :: word
    integer :: status
    call get_option(name, otherwise, word)
    read (word, *, iostat=status) number
    if (status /= 0) number = -1
  end function number

  real(real64) function now()
    integer(int64) :: ticks, rate
    call system_clock(ticks, rate)
    now = real(ticks, real64) / real(rate, real64)
  end function now

end program table
