//! Parallel access through MPI: what a serial library answers.
//!
//! `MPI_Comm` and `MPI_Info` are ints in MPICH and pointers in Open MPI; as machine words in
//! registers, both arrive here unharmed.

use std::ffi::{c_char, c_int};

use zonda::NcError;

use crate::boundary::boundary;

/// An MPI handle in either form.
type MpiHandle = usize;

fn no_parallel() -> c_int {
    boundary(|| Err(NcError::NoPar.into()))
}

/// `int nc_create_par(const char *path, int cmode, MPI_Comm comm, MPI_Info info, int *ncidp);`
///
/// # Safety
/// The pointers are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_create_par(
    _path: *const c_char,
    _cmode: c_int,
    _comm: MpiHandle,
    _info: MpiHandle,
    _ncidp: *mut c_int,
) -> c_int {
    no_parallel()
}

/// `int nc_open_par(const char *path, int omode, MPI_Comm comm, MPI_Info info, int *ncidp);`
///
/// # Safety
/// The pointers are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_open_par(
    _path: *const c_char,
    _omode: c_int,
    _comm: MpiHandle,
    _info: MpiHandle,
    _ncidp: *mut c_int,
) -> c_int {
    no_parallel()
}

/// `int nc_create_par_fortran(const char *path, int cmode, int comm, int info, int *ncidp);`
///
/// # Safety
/// The pointers are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_create_par_fortran(
    _path: *const c_char,
    _cmode: c_int,
    _comm: c_int,
    _info: c_int,
    _ncidp: *mut c_int,
) -> c_int {
    no_parallel()
}

/// `int nc_open_par_fortran(const char *path, int omode, int comm, int info, int *ncidp);`
///
/// # Safety
/// The pointers are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_open_par_fortran(
    _path: *const c_char,
    _omode: c_int,
    _comm: c_int,
    _info: c_int,
    _ncidp: *mut c_int,
) -> c_int {
    no_parallel()
}

/// `int nc_var_par_access(int ncid, int varid, int par_access);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_var_par_access(_ncid: c_int, _varid: c_int, _par_access: c_int) -> c_int {
    no_parallel()
}
