! fortran_yardstick: the arrays of history_model, written by tuned Fortran unformatted output.
!
! This is the yardstick of NCAR's 1995 work: what a modeller gets who gives up self-describing
! files. Whole arrays, stream access, no conversion, few and large transfers. Nothing in the file
! says what it holds. `variable` writes each variable of a time step with one statement, `step` the
! whole time step with one.
!
!     gfortran -O2 fortran_yardstick.f90 -o fortran_yardstick
!     ./fortran_yardstick FILE [type [records [steps [lat lon lev [fields2d fields3d]]]]]
!
! type: double or float; records: variable or step. Prints one JSON line for writing and one for
! reading back; only the statements that do I/O are timed. Exit status 1 if a value differs.
program fortran_yardstick
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64, error_unit
  implicit none

  real(real64), parameter :: pi = 3.14159265358979323846_real64
  character(len=4096) :: path
  character(len=16) :: type, records
  integer :: steps, lat, lon, lev, fields2d, fields3d
  integer :: wrong

  if (command_argument_count() < 1) then
     write (error_unit, '(a)') 'usage: fortran_yardstick FILE [double|float [variable|step ' // &
          '[steps [lat lon lev [fields2d fields3d]]]]]'
     stop 2
  end if
  call get_command_argument(1, path)
  type = word(2, 'double')
  records = word(3, 'variable')
  steps = number(4, 9)
  lat = number(5, 64)
  lon = number(6, 128)
  lev = number(7, 18)
  fields2d = number(8, 46)
  fields3d = number(9, 16)
  if ((type /= 'double' .and. type /= 'float') .or. &
       (records /= 'variable' .and. records /= 'step')) then
     write (error_unit, '(a)') 'fortran_yardstick: type is double or float, records variable or step'
     stop 2
  end if

  wrong = 0
  if (type == 'double') then
     call run_double()
  else
     call run_float()
  end if
  if (wrong > 0) then
     write (error_unit, '(a,i0,a)') 'fortran_yardstick: ', wrong, ' time steps differ'
     stop 1
  end if

contains

  !> Argument `i`, or `otherwise` where there is none.
  function word(i, otherwise) result(w)
    integer, intent(in) :: i
    character(len=*), intent(in) :: otherwise
    character(len=16) :: w
    w = otherwise
    if (command_argument_count() >= i) call get_command_argument(i, w)
  end function word

  !> Argument `i` as a number of at least 1.
  function number(i, otherwise) result(n)
    integer, intent(in) :: i, otherwise
    integer :: n, status
    character(len=16) :: w
    n = otherwise
    if (command_argument_count() < i) return
    w = word(i, '')
    read (w, *, iostat=status) n
    if (status /= 0 .or. n < 1) then
       write (error_unit, '(3a)') 'fortran_yardstick: not a number: "', trim(w), '"'
       stop 2
    end if
  end function number

  function now() result(seconds)
    real(real64) :: seconds
    integer(int64) :: count, rate
    call system_clock(count, rate)
    seconds = real(count, real64) / real(rate, real64)
  end function now

  !> One value of the model's fields: smooth in latitude, a wave in longitude.
  elemental function field(f, t, k, j, i) result(x)
    integer, intent(in) :: f, t, k, j, i
    real(real64) :: x, s
    s = sin(pi * ((j - 0.5_real64) / lat - 0.5_real64))
    x = 250 + f - 40 * s * s + 4 * s * s * (1 - s * s) * &
         cos(2 * pi * mod(f, 8) * (i - 1) / lon - 0.3_real64 * t + 0.1_real64 * k)
  end function field

  subroutine run_double()
    real(real64), allocatable :: flat(:,:,:), deep(:,:,:,:), flat2(:,:,:), deep2(:,:,:,:)
    real(real64) :: seconds, from
    integer :: unit, t, f
    allocate (flat(lon, lat, fields2d), deep(lon, lat, lev, fields3d))
    call compute(flat, deep)

    seconds = 0
    from = now()
    open (newunit=unit, file=trim(path), access='stream', form='unformatted', status='replace')
    do t = 1, steps
       if (records == 'step') then
          write (unit) flat, deep
       else
          do f = 1, fields2d
             write (unit) flat(:, :, f)
          end do
          do f = 1, fields3d
             write (unit) deep(:, :, :, f)
          end do
       end if
       seconds = seconds + now() - from
       call advance(flat, deep) ! the next step's values: not timed
       from = now()
    end do
    close (unit)
    seconds = seconds + now() - from
    call report('fortran write', seconds, 8)

    allocate (flat2, mold=flat)
    allocate (deep2, mold=deep)
    call compute(flat, deep)
    flat2 = -1 ! memory is there before the clock starts
    deep2 = -1
    seconds = 0
    from = now()
    open (newunit=unit, file=trim(path), access='stream', form='unformatted', status='old', &
         action='read')
    do t = 1, steps
       if (records == 'step') then
          read (unit) flat2, deep2
       else
          do f = 1, fields2d
             read (unit) flat2(:, :, f)
          end do
          do f = 1, fields3d
             read (unit) deep2(:, :, :, f)
          end do
       end if
       seconds = seconds + now() - from
       if (any(abs(flat2 - flat) > 0) .or. any(abs(deep2 - deep) > 0)) wrong = wrong + 1
       call advance(flat, deep)
       from = now()
    end do
    close (unit)
    seconds = seconds + now() - from
    call report('fortran read', seconds, 8)
  end subroutine run_double

  subroutine run_float()
    real(real64), allocatable :: flat(:,:,:), deep(:,:,:,:)
    real(real32), allocatable :: flat1(:,:,:), deep1(:,:,:,:), flat2(:,:,:), deep2(:,:,:,:)
    real(real64) :: seconds, from
    integer :: unit, t, f
    allocate (flat(lon, lat, fields2d), deep(lon, lat, lev, fields3d))
    allocate (flat1(lon, lat, fields2d), deep1(lon, lat, lev, fields3d))
    call compute(flat, deep)
    flat1 = real(flat, real32) ! rounding is not timed: the yardstick converts nothing
    deep1 = real(deep, real32)

    seconds = 0
    from = now()
    open (newunit=unit, file=trim(path), access='stream', form='unformatted', status='replace')
    do t = 1, steps
       if (records == 'step') then
          write (unit) flat1, deep1
       else
          do f = 1, fields2d
             write (unit) flat1(:, :, f)
          end do
          do f = 1, fields3d
             write (unit) deep1(:, :, :, f)
          end do
       end if
       seconds = seconds + now() - from
       call advance(flat, deep)
       flat1 = real(flat, real32)
       deep1 = real(deep, real32)
       from = now()
    end do
    close (unit)
    seconds = seconds + now() - from
    call report('fortran write', seconds, 4)

    allocate (flat2, mold=flat1)
    allocate (deep2, mold=deep1)
    call compute(flat, deep)
    flat2 = -1
    deep2 = -1
    seconds = 0
    from = now()
    open (newunit=unit, file=trim(path), access='stream', form='unformatted', status='old', &
         action='read')
    do t = 1, steps
       if (records == 'step') then
          read (unit) flat2, deep2
       else
          do f = 1, fields2d
             read (unit) flat2(:, :, f)
          end do
          do f = 1, fields3d
             read (unit) deep2(:, :, :, f)
          end do
       end if
       seconds = seconds + now() - from
       if (any(abs(flat2 - real(flat, real32)) > 0) .or. &
            any(abs(deep2 - real(deep, real32)) > 0)) wrong = wrong + 1
       call advance(flat, deep)
       from = now()
    end do
    close (unit)
    seconds = seconds + now() - from
    call report('fortran read', seconds, 4)
  end subroutine run_float

  !> The fields of the first time step.
  subroutine compute(flat, deep)
    real(real64), intent(out) :: flat(:,:,:), deep(:,:,:,:)
    integer :: f, k, j, i
    do f = 1, size(flat, 3)
       do j = 1, lat
          do i = 1, lon
             flat(i, j, f) = field(f, 0, 0, j, i)
          end do
       end do
    end do
    do f = 1, size(deep, 4)
       do k = 1, lev
          do j = 1, lat
             do i = 1, lon
                deep(i, j, k, f) = field(f, 0, k, j, i)
             end do
          end do
       end do
    end do
  end subroutine compute

  !> The next time step: the waves travel east by one grid point.
  subroutine advance(flat, deep)
    real(real64), intent(inout) :: flat(:,:,:), deep(:,:,:,:)
    flat = cshift(flat, -1, dim=1)
    deep = cshift(deep, -1, dim=1)
  end subroutine advance

  subroutine report(name, seconds, size)
    character(len=*), intent(in) :: name
    real(real64), intent(in) :: seconds
    integer, intent(in) :: size
    integer(int64) :: bytes, calls
    bytes = int(steps, int64) * lat * lon * (fields2d + fields3d * lev) * size
    calls = int(steps, int64) * merge(1, fields2d + fields3d, records == 'step')
    print '(5a,i0,a,f0.6,a,i0,a,i0,a)', '{"workload": "', name, ' ' // trim(records), &
         '", "params": {"type": "' // trim(type), '", "steps": ', steps, '}, "seconds": 0', &
         seconds, ', "bytes": ', bytes, ', "calls": ', calls, ', "digest": null}'
  end subroutine report
end program fortran_yardstick
