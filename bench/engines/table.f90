! table: write4's `--op table` in Fortran, through netCDF-Fortran: the loop that a model's author
! writes. Two double variables of --n elements, the second over the unlimited dimension, in chunks of
! --chunk elements (0: the default), --slice elements of each in turn; one at a time are scalars.
! The clock runs from nf90_create to the end of nf90_close; prints one JSON line.
program table
  use, intrinsic :: iso_fortran_env, only: int64, real64, error_unit
  use netcdf
  implicit none

  character(len=4096) :: path
  integer :: n, slice, chunk, i, last, calls, ncid, dim_n, dim_time, a_id, b_id
  real(real64), allocatable :: a(:), b(:)
  real(real64) :: began, defined, put, closed

  call get_option('--file', '', path)
  n = number('--n', '300000')
  slice = number('--slice', '1')
  chunk = number('--chunk', '0')
  if (path == '' .or. n < 1 .or. slice < 1 .or. chunk < 0) then
     write (error_unit, '(a)') 'table: --file FILE --n N --slice N --chunk N'
     stop 2
  end if
  allocate (a(n), b(n))
  do i = 1, n
     a(i) = 0.25_real64 * i
     b(i) = -0.5_real64 * i
  end do
  calls = 0

  began = now()
  call check(nf90_create(path, ior(nf90_clobber, nf90_netcdf4), ncid))
  call check(nf90_def_dim(ncid, 'n', n, dim_n))
  call check(nf90_def_dim(ncid, 'time', nf90_unlimited, dim_time))
  call check(nf90_def_var(ncid, 'a', nf90_double, dim_n, a_id))
  call check(nf90_def_var(ncid, 'b', nf90_double, dim_time, b_id))
  if (chunk > 0) then
     call check(nf90_def_var_chunking(ncid, a_id, nf90_chunked, [chunk]))
     call check(nf90_def_var_chunking(ncid, b_id, nf90_chunked, [chunk]))
  end if
  call check(nf90_enddef(ncid))
  defined = now()
  if (slice == 1) then
     do i = 1, n
        call check(nf90_put_var(ncid, a_id, a(i), start=[i]))
        call check(nf90_put_var(ncid, b_id, b(i), start=[i]))
        calls = calls + 2
     end do
  else
     do i = 1, n, slice
        last = min(n, i + slice - 1)
        call check(nf90_put_var(ncid, a_id, a(i:last), start=[i]))
        call check(nf90_put_var(ncid, b_id, b(i:last), start=[i]))
        calls = calls + 2
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
