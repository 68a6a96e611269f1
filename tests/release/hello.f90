! Says which library it runs on, and reads a file: stops with an error if that did not work.
program hello
  use netcdf
  implicit none
  integer :: nc, dims
  character(len=500) :: path
  call get_command_argument(1, path)
  print '(a)', trim(nf90_inq_libvers())
  if (nf90_open(trim(path), nf90_nowrite, nc) /= nf90_noerr) error stop 'nf90_open'
  if (nf90_inquire(nc, nDimensions=dims) /= nf90_noerr .or. dims /= 2) error stop 'nf90_inquire'
  if (nf90_close(nc) /= nf90_noerr) error stop 'nf90_close'
end program hello
