! SPDX-License-Identifier: MIT OR Apache-2.0
!
! cosmo in Fortran, through netCDF-Fortran: what it does, its arguments and its line are those of cosmo.c, which explains them.
program cosmo
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use, intrinsic :: iso_c_binding, only: c_int
  use mpi
  use netcdf
  implicit none

  interface
     function usleep(microseconds) bind(c)
       import :: c_int
       integer(c_int), value :: microseconds
       integer(c_int) :: usleep
     end function usleep
  end interface

  integer, parameter :: n_fields = 6, n_levels = 8, n_rows = 64
  character(len=2), parameter :: names(n_fields) = ['U ', 'V ', 'W ', 'T ', 'P ', 'QV']
  character(len=4096) :: folder, way
  integer :: rank, ranks, ierr, steps, step, f, k, r, columns, first, rows
  integer :: files(n_fields), vars(n_fields), dims(4), counts(64), places(64)
  logical :: gathers, together, writes
  real(real64) :: pause, began, computing, output, closing, longest, t
  real(real32), allocatable :: own(:, :, :), level(:, :)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call get_command_argument(1, folder)
  call get_command_argument(2, way)
  steps = int(number(3))
  pause = number(4) / steps
  columns = int(1e6_real64 * number(5) / steps / n_fields / (n_levels * n_rows * 4))
  if (steps < 1 .or. columns < 1 .or. ranks > 64) call MPI_Abort(MPI_COMM_WORLD, 2, ierr)
  gathers = way == 'gather'
  together = way == 'together'
  writes = together .or. (gathers .and. rank == 0)
  first = n_rows * rank / ranks
  rows = n_rows * (rank + 1) / ranks - first
  do r = 0, ranks - 1
     places(r + 1) = n_rows * r / ranks * columns
     counts(r + 1) = n_rows * (r + 1) / ranks * columns - places(r + 1)
  end do
  allocate (own(columns, rows, n_levels), level(columns, n_rows))
  own = 0

  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  began = day()
  computing = 0
  t = MPI_Wtime()
  do f = 1, merge(n_fields, 0, writes)
     if (gathers) then
        call check(nf90_create(trim(folder)//'/'//trim(names(f))//'.nc', ior(NF90_CLOBBER, NF90_NETCDF4), files(f)))
     else
        call check(nf90_create(trim(folder)//'/'//trim(names(f))//'.nc', ior(NF90_CLOBBER, NF90_NETCDF4), files(f), &
             comm=MPI_COMM_WORLD, info=MPI_INFO_NULL))
     end if
     call check(nf90_def_dim(files(f), 'rlon', columns, dims(1)))
     call check(nf90_def_dim(files(f), 'rlat', n_rows, dims(2)))
     call check(nf90_def_dim(files(f), 'level', n_levels, dims(3)))
     call check(nf90_def_dim(files(f), 'time', NF90_UNLIMITED, dims(4)))
     call check(nf90_def_var(files(f), trim(names(f)), NF90_FLOAT, dims, vars(f)))
     call check(nf90_enddef(files(f)))
     if (together) call check(nf90_var_par_access(files(f), vars(f), NF90_COLLECTIVE))
  end do
  output = MPI_Wtime() - t

  do step = 1, steps
     t = MPI_Wtime()
     ierr = usleep(int(pause * 1e6_real64, c_int))
     call MPI_Barrier(MPI_COMM_WORLD, ierr) ! neighbours exchange their borders
     computing = computing + MPI_Wtime() - t
     t = MPI_Wtime()
     do f = 1, merge(n_fields, 0, gathers .or. together)
        own(1, 1, 1) = real(100 * (step - 1) + f - 1, real32)
        if (together) then
           call check(nf90_put_var(files(f), vars(f), own, start=[1, first + 1, 1, step], count=[columns, rows, n_levels, 1]))
           cycle
        end if
        do k = 1, n_levels
           call MPI_Gatherv(own(:, :, k), rows * columns, MPI_REAL, level, counts, places, MPI_REAL, 0, MPI_COMM_WORLD, ierr)
           if (rank == 0) call check(nf90_put_var(files(f), vars(f), level, start=[1, 1, k, step], count=[columns, n_rows, 1, 1]))
        end do
     end do
     output = output + MPI_Wtime() - t
  end do
  t = MPI_Wtime()
  do f = 1, merge(n_fields, 0, writes)
     call check(nf90_close(files(f)))
  end do
  closing = MPI_Wtime() - t
  call MPI_Reduce(output, longest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) write (*, '(a,f0.6,3(a,f12.6),a)') '{"began": ', began, ', "compute": ', computing, &
       ', "output": ', longest, ', "closing": ', closing, '}'
  call MPI_Finalize(ierr)

contains

  subroutine check(status)
    integer, intent(in) :: status
    integer :: ignored
    if (status == NF90_NOERR) return
    print '(a,i0,2a)', 'rank ', rank, ': ', trim(nf90_strerror(status))
    call MPI_Abort(MPI_COMM_WORLD, 1, ignored)
  end subroutine check

  function number(n) result(value)
    integer, intent(in) :: n
    real(real64) :: value
    character(len=40) :: text
    call get_command_argument(n, text)
    read (text, *) value
  end function number

  ! Seconds of the clock of the day.
  function day() result(seconds)
    real(real64) :: seconds
    integer(c_int) :: ignored
    interface
       function gettimeofday(now, zone) bind(c)
         use, intrinsic :: iso_c_binding, only: c_int, c_long, c_ptr
         integer(c_long) :: now(2)
         type(c_ptr), value :: zone
         integer(c_int) :: gettimeofday
       end function gettimeofday
    end interface
    integer(int64) :: now(2)
    now = 0
    block
      use, intrinsic :: iso_c_binding, only: c_null_ptr
      ignored = gettimeofday(now, c_null_ptr)
    end block
    seconds = real(now(1), real64) + 1e-6_real64 * real(now(2), real64)
  end function day
end program cosmo
