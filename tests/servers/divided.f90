! SPDX-License-Identifier: MIT OR Apache-2.0
!
!   mpiexec -n N divided PATH SPEC
!
! Ranks that compute put records together; SPEC says how many ranks are I/O servers (nf90_zonda_servers).
program divided
  use mpi
  use netcdf
  use zonda
  implicit none
  integer, parameter :: n = 50, steps = 6
  character(len=500) :: path, spec
  integer :: world_rank, rank, compute, ierr, file, dims(2), var, step, i
  real :: row(n)

  call get_command_argument(1, path)
  call get_command_argument(2, spec)
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, world_rank, ierr)
  call check(nf90_zonda_servers(MPI_COMM_WORLD, spec, compute))
  if (compute /= MPI_COMM_NULL) then
    call mpi_comm_rank(compute, rank, ierr)
    call mpi_comm_size(compute, i, ierr)
    call check(nf90_create(path, ior(NF90_NETCDF4, NF90_CLOBBER), file, comm=compute, info=MPI_INFO_NULL))
    call check(nf90_def_dim(file, "x", n*i, dims(1)))
    call check(nf90_def_dim(file, "time", NF90_UNLIMITED, dims(2)))
    call check(nf90_def_var(file, "t", NF90_FLOAT, dims, var))
    call check(nf90_enddef(file))
    call check(nf90_var_par_access(file, var, NF90_COLLECTIVE))
    do step = 1, steps
      row = [(real(1000*step + n*rank + i), i=1, n)]
      call check(nf90_put_var(file, var, row, start=[1 + n*rank, step], count=[n, 1]))
    end do
    call check(nf90_close(file))
    call mpi_comm_free(compute, ierr)
  end if
  call mpi_finalize(ierr)

contains

  subroutine check(status)
    integer, intent(in) :: status
    if (status == NF90_NOERR) return
    print *, "rank", world_rank, ":", status, trim(nf90_strerror(status))
    call mpi_abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine check
end program divided
