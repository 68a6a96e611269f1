! SPDX-License-Identifier: MIT OR Apache-2.0
!
! What Zonda offers to Fortran programs beyond the netCDF interface. Compile it with the program:
!
!     mpif90 -c $(nc-config.mpi --includedir)/zonda.f90
module zonda
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
  implicit none
  private
  public :: nf90_zonda_servers

  interface
    function nc_zonda_servers_fortran(world, spec, compute) bind(c) result(status)
      import :: c_char, c_int
      integer(c_int), value :: world
      character(kind=c_char), intent(in) :: spec(*)
      integer(c_int), intent(out) :: compute
      integer(c_int) :: status
    end function nc_zonda_servers_fortran
  end interface

contains

  ! Divides the ranks of a communicator into those that compute, and I/O servers: nc_zonda_servers in netcdf_par.h says how.
  ! Servers get MPI_COMM_NULL. The result is a netCDF status, for nf90_strerror.
  function nf90_zonda_servers(world, spec, compute) result(status)
    integer, intent(in) :: world
    character(len=*), intent(in) :: spec
    integer, intent(out) :: compute
    integer :: status
    integer(c_int) :: made

    status = nc_zonda_servers_fortran(int(world, c_int), trim(spec)//c_null_char, made)
    if (status == 0) compute = int(made)
  end function nf90_zonda_servers

end module zonda
