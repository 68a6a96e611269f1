! SPDX-License-Identifier: MIT OR Apache-2.0
!
! overlap_model in Fortran, through netCDF-Fortran: computes for a fixed time and writes its fields, step
! after step. Options and output are those of overlap_model.c, which explains them.
!
!     gfortran -O2 -fopenmp $(nf-config --fflags) overlap_model.f90 -o overlap_model $(nf-config --flibs)
program overlap_model
  use, intrinsic :: iso_fortran_env, only: int64, real64, error_unit
  use netcdf
  implicit none

  integer, parameter :: n_vars = 4, n_grid = 4096, n_lev = 8, n_lat = 64, n_buffers = 8
  character(len=1), parameter :: names(n_vars) = ['T', 'U', 'V', 'Q']
  character(len=4096) :: path, format
  integer :: steps, output, n_lon, step, v, ncid, puts, b
  integer :: vars(n_vars)
  integer(int64) :: sweeps
  real(real64) :: mb, pause, calibrate, began, at, computing, putting, closing, ended, cpu, cpu_began
  real(real64), allocatable :: fields(:, :, :, :), buffers(:, :, :, :), times(:), copies(:)
  real(real64), volatile :: outcome

  path = option('--file', 'overlap.nc')
  format = option('--format', 'classic')
  steps = int(number('--steps', 10.0_real64))
  output = int(number('--output', 1.0_real64))
  mb = number('--mb', 16.0_real64)
  sweeps = int(number('--iterations', 0.0_real64), int64)
  pause = number('--sleep', 0.0_real64)
  calibrate = number('--calibrate', 0.0_real64)
  if (steps < 1 .or. mb <= 0 .or. sweeps < 0 .or. &
       (format /= 'classic' .and. format /= 'netcdf4' .and. format /= 'deflate')) then
     write (error_unit, '(a)') 'overlap_model: --file FILE --format classic|netcdf4|deflate --steps N --mb MB ' // &
          '--iterations N|--sleep SECONDS --output 0|1 | --calibrate SECONDS'
     stop 2
  end if
  if (calibrate > 0) then
     sweeps = 0
     began = now()
     call cpu_time(cpu_began)
     do while (now() - began < calibrate)
        call compute(100_int64)
        sweeps = sweeps + 100
     end do
     call cpu_time(cpu)
     write (*, '(2(a,es16.9),a,i0,a)') '{"workload": "overlap", "params": {"cpu": ', cpu - cpu_began, &
          '}, "seconds": ', now() - began, ', "calls": ', sweeps, '}'
     stop
  end if

  n_lon = max(1, int(mb * 1e6_real64 / (n_vars * n_lev * n_lat * 4)))
  allocate (fields(n_lon, n_lat, n_lev, n_vars), times(steps * n_vars), copies(steps * n_vars))
  fields = 0
  times = 0
  copies = 0
  computing = 0
  putting = 0
  puts = 0

  began = now()
  if (output == 1) call create()
  do step = 1, steps
     at = now()
     call compute(sweeps)
     do v = 1, n_vars
        call change(fields(:, :, :, v), v - 1, step - 1)
     end do
     computing = computing + now() - at
     if (output == 0) cycle
     do v = 1, n_vars
        at = now()
        call check(nf90_put_var(ncid, vars(v), fields(:, :, :, v), start=[1, 1, 1, step], count=[n_lon, n_lat, n_lev, 1]))
        puts = puts + 1
        times(puts) = now() - at
        putting = putting + times(puts)
     end do
  end do
  closing = now()
  if (output == 1) call check(nf90_close(ncid))
  ended = now()

  ! A copy of the same bytes, to memory that is there but was used some puts ago. Without output, too, so that the
  ! processor time of the thread differs by the output alone.
  allocate (buffers(n_lon, n_lat, n_lev, n_buffers))
  buffers = 1
  do b = 1, steps * n_vars
     at = now()
     buffers(:, :, :, mod(b, n_buffers) + 1) = fields(:, :, :, mod(b, n_vars) + 1)
     copies(b) = now() - at
     outcome = buffers(1, 1, 1, mod(b, n_buffers) + 1)
  end do

  write (*, '(3a,i0,5(a,es16.9),a,es16.9,2(a,i0),a)') &
       '{"workload": "overlap", "params": {"format": "', trim(format), '", "steps": ', steps, ', "compute": ', computing, &
       ', "put": ', putting, ', "close": ', ended - closing, ', "put_median": ', median(times(1:puts)), &
       ', "memcpy_median": ', median(copies), '}, "seconds": ', ended - began, ', "bytes": ', &
       int(puts, int64) * n_lon * n_lat * n_lev * 4, ', "calls": ', puts, ', "digest": null}'

contains

  subroutine create()
    integer :: dims(4), i
    if (format == 'classic') then
       call check(nf90_create(path, ior(nf90_clobber, nf90_64bit_offset), ncid))
    else
       call check(nf90_create(path, ior(nf90_clobber, nf90_netcdf4), ncid))
    end if
    call check(nf90_def_dim(ncid, 'lon', n_lon, dims(1)))
    call check(nf90_def_dim(ncid, 'lat', n_lat, dims(2)))
    call check(nf90_def_dim(ncid, 'lev', n_lev, dims(3)))
    call check(nf90_def_dim(ncid, 'time', nf90_unlimited, dims(4)))
    do i = 1, n_vars
       call check(nf90_def_var(ncid, names(i), nf90_float, dims, vars(i)))
       if (format /= 'classic') call check(nf90_def_var_chunking(ncid, vars(i), nf90_chunked, [n_lon, n_lat, 1, 1]))
       if (format == 'deflate') call check(nf90_def_var_deflate(ncid, vars(i), 1, 1, 1))
    end do
    call check(nf90_enddef(ncid))
  end subroutine create

  !> Sweeps over a grid that fits the first cache, on each thread; or sleep.
  subroutine compute(n)
    integer(int64), intent(in) :: n
    real(real64) :: grid(n_grid)
    integer(int64) :: s
    integer :: i
    if (pause > 0) then
       call rest(pause)
       return
    end if
    !$omp parallel private(grid, s, i)
    do i = 1, n_grid
       grid(i) = mod(i, 17)
    end do
    do s = 1, n
       do i = 2, n_grid - 1
          grid(i) = 0.5_real64 * grid(i) + 0.2499_real64 * (grid(i - 1) + grid(i + 1)) + 1e-3_real64
       end do
    end do
    !$omp critical
    outcome = grid(n_grid / 2)
    !$omp end critical
    !$omp end parallel
  end subroutine compute

  subroutine rest(seconds)
    use, intrinsic :: iso_c_binding, only: c_int
    real(real64), intent(in) :: seconds
    integer(c_int) :: ignored
    interface
       function usleep(microseconds) bind(c, name='usleep')
         import :: c_int
         integer(c_int), value :: microseconds
         integer(c_int) :: usleep
       end function usleep
    end interface
    ignored = usleep(int(seconds * 1e6_real64, c_int))
  end subroutine rest

  !> A wave that travels, with something in the low bits that no compressor foresees.
  subroutine change(field, var, time)
    real(real64), intent(inout) :: field(:, :, :)
    integer, intent(in) :: var, time
    integer(int64) :: noise
    real(real64) :: c, s, x, y, turned
    integer :: i, j, k
    noise = int(var * 1000 + time, int64) * 7919 + 1
    c = cos(0.01_real64)
    s = sin(0.01_real64)
    x = cos(0.3_real64 * time + var)
    y = sin(0.3_real64 * time + var)
    do k = 1, size(field, 3)
       do j = 1, size(field, 2)
          do i = 1, size(field, 1)
             turned = c * x - s * y
             y = s * x + c * y
             x = turned
             noise = mod(noise * 48271_int64, 2147483647_int64)
             field(i, j, k) = 250 + 40 * x + 1e-3_real64 * real(iand(noise, 1023_int64), real64)
          end do
       end do
    end do
  end subroutine change

  subroutine check(status)
    integer, intent(in) :: status
    if (status == nf90_noerr) return
    write (error_unit, '(2a)') 'overlap_model: ', trim(nf90_strerror(status))
    stop 1
  end subroutine check

  function option(name, otherwise) result(word)
    character(len=*), intent(in) :: name, otherwise
    character(len=4096) :: word
    integer :: k
    do k = 1, command_argument_count() - 1, 2
       call get_command_argument(k, word)
       if (word == name) then
          call get_command_argument(k + 1, word)
          return
       end if
    end do
    word = otherwise
  end function option

  real(real64) function number(name, otherwise)
    character(len=*), intent(in) :: name
    real(real64), intent(in) :: otherwise
    character(len=4096) :: word
    integer :: status
    word = option(name, '')
    number = otherwise
    if (word == '') return
    read (word, *, iostat=status) number
    if (status /= 0) number = -1
  end function number

  real(real64) function median(values)
    real(real64), intent(in) :: values(:)
    real(real64) :: sorted(size(values)), held
    integer :: i, j
    median = 0
    if (size(values) == 0) return
    sorted = values
    do i = 2, size(sorted)
       held = sorted(i)
       j = i - 1
       do while (j >= 1)
          if (sorted(j) <= held) exit
          sorted(j + 1) = sorted(j)
          j = j - 1
       end do
       sorted(j + 1) = held
    end do
    median = sorted(size(sorted) / 2 + 1)
  end function median

  real(real64) function now()
    integer(int64) :: ticks, rate
    call system_clock(ticks, rate)
    now = real(ticks, real64) / real(rate, real64)
  end function now

end program overlap_model
