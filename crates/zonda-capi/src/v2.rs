//! The netCDF-2 interface: each call is one of the newer ones with another way to fail.
//!
//! A failure returns -1 and sets `ncerr`; depending on `ncopts` it is printed to standard error
//! (`NC_VERBOSE`) and ends the process (`NC_FATAL`). Both bits are on by default.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicI32, Ordering};

use zonda::NcError;

use crate::att::{nc_del_att, nc_get_att, nc_inq_att, nc_inq_attname, nc_put_att, nc_rename_att};
use crate::c_memory::{bytes, put};
use crate::copy::nc_copy_att;
use crate::dim::{nc_def_dim, nc_inq_dim, nc_inq_dimid, nc_rename_dim};
use crate::error::nc_strerror;
use crate::file::{nc_abort, nc_close, nc_enddef, nc_inq, nc_redef, nc_set_fill, nc_sync};
use crate::open::{nc_create, nc_open};
use crate::types::NcType;
use crate::var::{nc_def_var, nc_inq_var, nc_inq_varid, nc_rename_var};

/// `NC_FATAL`: exit on error.
const FATAL: c_int = 1;
/// `NC_VERBOSE`: print the error.
const VERBOSE: c_int = 2;
/// `NC_SYSERR`: what `ncerr` holds for errors of the operating system.
const SYSERR: c_int = -31;

/// `int ncopts;` How netCDF-2 calls fail; programs and `libnetcdff` assign to it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static ncopts: AtomicI32 = AtomicI32::new(FATAL | VERBOSE);

/// `int ncerr;` The error of the last netCDF-2 call that failed.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static ncerr: AtomicI32 = AtomicI32::new(0);

/// Handles a failure as `ncopts` asks, and returns -1.
pub(crate) fn fail(routine: &str, status: c_int, about: impl Display) -> c_int {
    ncerr.store(if status > 0 { SYSERR } else { status }, Ordering::Relaxed);
    let options = ncopts.load(Ordering::Relaxed);
    if options & VERBOSE != 0 {
        // SAFETY: nc_strerror returns a NUL-terminated string for every code.
        let text = unsafe { CStr::from_ptr(nc_strerror(status)) };
        // One write, so that lines of several threads stay whole. Where standard error is
        // closed, the line is lost.
        let line = format!("{routine}: {about}: {}\n", text.to_string_lossy());
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    if options & FATAL != 0 {
        // SAFETY: exit() runs the exit handlers, which flush open files, and does not return.
        unsafe { libc::exit(options) };
    }
    -1
}

/// `good` if the newer call succeeded, else what [`fail`] makes of it.
pub(crate) fn answer(routine: &str, ncid: c_int, status: c_int, good: c_int) -> c_int {
    if status == 0 { good } else { fail(routine, status, format_args!("ncid {ncid}")) }
}

/// A C string for a message, as `printf` shows it.
///
/// # Safety
/// As for [`bytes`].
unsafe fn shown(text: *const c_char) -> String {
    // SAFETY: same contract.
    let text = unsafe { bytes(text) };
    text.map_or_else(|| "(null)".into(), |text| String::from_utf8_lossy(text).into_owned())
}

/// `int nccreate(const char *path, int cmode);` Returns the ncid.
///
/// # Safety
/// As `nc_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nccreate(path: *const c_char, cmode: c_int) -> c_int {
    let mut ncid = -1;
    // SAFETY: same contract; the result goes to a local.
    let status = unsafe { nc_create(path, cmode, &raw mut ncid) };
    if status == 0 {
        return ncid;
    }
    // SAFETY: same contract.
    fail("nccreate", status, format_args!("filename \"{}\"", unsafe { shown(path) }))
}

/// `int ncopen(const char *path, int mode);` Returns the ncid.
///
/// # Safety
/// As `nc_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncopen(path: *const c_char, mode: c_int) -> c_int {
    let mut ncid = -1;
    // SAFETY: same contract; the result goes to a local.
    let status = unsafe { nc_open(path, mode, &raw mut ncid) };
    if status == 0 {
        return ncid;
    }
    // SAFETY: same contract.
    fail("ncopen", status, format_args!("filename \"{}\"", unsafe { shown(path) }))
}

/// Calls that take an ncid only and return 0.
macro_rules! of_a_file {
    ($($name:ident = $newer:ident;)*) => {$(
        #[doc = concat!("`int ", stringify!($name), "(int ncid);` as `", stringify!($newer), "`.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(ncid: c_int) -> c_int {
            answer(stringify!($name), ncid, $newer(ncid), 0)
        }
    )*};
}

of_a_file! {
    ncredef = nc_redef;
    ncendef = nc_enddef;
    ncclose = nc_close;
    ncsync = nc_sync;
    ncabort = nc_abort;
}

/// `int ncinquire(int ncid, int *ndims, int *nvars, int *natts, int *recdim);` Returns the ncid.
///
/// # Safety
/// Each pointer is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncinquire(
    ncid: c_int,
    ndims: *mut c_int,
    nvars: *mut c_int,
    natts: *mut c_int,
    recdim: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_inq(ncid, ndims, nvars, natts, recdim) };
    answer("ncinquire", ncid, status, ncid)
}

/// `int ncsetfill(int ncid, int fillmode);` Returns the old fill mode.
#[unsafe(no_mangle)]
pub extern "C" fn ncsetfill(ncid: c_int, fillmode: c_int) -> c_int {
    let mut old = -1;
    // SAFETY: the result goes to a local.
    let status = unsafe { nc_set_fill(ncid, fillmode, &raw mut old) };
    answer("ncsetfill", ncid, status, old)
}

/// `int ncdimdef(int ncid, const char *name, long length);` Returns the dimension id.
///
/// # Safety
/// As `nc_def_dim`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncdimdef(ncid: c_int, name: *const c_char, length: c_long) -> c_int {
    let mut dimid = -1;
    let status = match usize::try_from(length) {
        // SAFETY: same contract; the result goes to a local.
        Ok(length) => unsafe { nc_def_dim(ncid, name, length, &raw mut dimid) },
        Err(_) => NcError::DimSize.code(),
    };
    answer("ncdimdef", ncid, status, dimid)
}

/// `int ncdimid(int ncid, const char *name);` Returns the dimension id.
///
/// # Safety
/// As `nc_inq_dimid`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncdimid(ncid: c_int, name: *const c_char) -> c_int {
    let mut dimid = -1;
    // SAFETY: same contract; the result goes to a local.
    let status = unsafe { nc_inq_dimid(ncid, name, &raw mut dimid) };
    answer("ncdimid", ncid, status, dimid)
}

/// `int ncdiminq(int ncid, int dimid, char *name, long *length);` Returns the dimension id.
///
/// Lengths above 2^31 - 1 are cut to an int, as in the reference.
///
/// # Safety
/// As `nc_inq_dim`; `length` is null, or valid for a write of one long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncdiminq(
    ncid: c_int,
    dimid: c_int,
    name: *mut c_char,
    length: *mut c_long,
) -> c_int {
    let mut len = 0_usize;
    // SAFETY: same contract; the length goes to a local.
    let status = unsafe { nc_inq_dim(ncid, dimid, name, &raw mut len) };
    if status == 0 {
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(length, c_long::from(len as c_int)) };
    }
    answer("ncdiminq", ncid, status, dimid)
}

/// `int ncdimrename(int ncid, int dimid, const char *name);` Returns the dimension id.
///
/// # Safety
/// As `nc_rename_dim`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncdimrename(ncid: c_int, dimid: c_int, name: *const c_char) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_rename_dim(ncid, dimid, name) };
    answer("ncdimrename", ncid, status, dimid)
}

/// `int ncvardef(int ncid, const char *name, nc_type datatype, int ndims, const int *dim);`
/// Returns the variable id.
///
/// # Safety
/// As `nc_def_var`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncvardef(
    ncid: c_int,
    name: *const c_char,
    datatype: NcType,
    ndims: c_int,
    dim: *const c_int,
) -> c_int {
    let mut varid = -1;
    // SAFETY: same contract; the result goes to a local.
    let status = unsafe { nc_def_var(ncid, name, datatype, ndims, dim, &raw mut varid) };
    answer("ncvardef", ncid, status, varid)
}

/// `int ncvarid(int ncid, const char *name);` Returns the variable id.
///
/// # Safety
/// As `nc_inq_varid`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncvarid(ncid: c_int, name: *const c_char) -> c_int {
    let mut varid = -1;
    // SAFETY: same contract; the result goes to a local.
    let status = unsafe { nc_inq_varid(ncid, name, &raw mut varid) };
    answer("ncvarid", ncid, status, varid)
}

/// `int ncvarinq(int ncid, int varid, char *name, nc_type *datatype, int *ndims, int *dim, int *natts);`
/// Returns the variable id.
///
/// # Safety
/// As `nc_inq_var`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncvarinq(
    ncid: c_int,
    varid: c_int,
    name: *mut c_char,
    datatype: *mut NcType,
    ndims: *mut c_int,
    dim: *mut c_int,
    natts: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_inq_var(ncid, varid, name, datatype, ndims, dim, natts) };
    answer("ncvarinq", ncid, status, varid)
}

/// `int ncvarrename(int ncid, int varid, const char *name);` Returns the variable id.
///
/// # Safety
/// As `nc_rename_var`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncvarrename(ncid: c_int, varid: c_int, name: *const c_char) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_rename_var(ncid, varid, name) };
    answer("ncvarrename", ncid, status, varid)
}

/// `int ncattput(int ncid, int varid, const char *name, nc_type xtype, int len, const void *value);`
///
/// # Safety
/// As `nc_put_att`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncattput(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    xtype: NcType,
    len: c_int,
    value: *const c_void,
) -> c_int {
    // A negative length becomes a huge one, which nc_put_att refuses: C converts it so.
    let len = len as usize;
    // SAFETY: same contract.
    let status = unsafe { nc_put_att(ncid, varid, name, xtype, len, value) };
    answer("ncattput", ncid, status, 0)
}

/// `int ncattinq(int ncid, int varid, const char *name, nc_type *datatype, int *len);` Returns 1.
///
/// # Safety
/// As `nc_inq_att`; `len` is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncattinq(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    datatype: *mut NcType,
    len: *mut c_int,
) -> c_int {
    let mut length = 0_usize;
    // SAFETY: same contract; the length goes to a local.
    let status = unsafe { nc_inq_att(ncid, varid, name, datatype, &raw mut length) };
    if status != 0 {
        // SAFETY: same contract.
        let name = unsafe { shown(name) };
        let about = format_args!("ncid {ncid}; varid {varid}; attname \"{name}\"");
        return fail("ncattinq", status, about);
    }
    // SAFETY: the contract above is `put`'s contract.
    unsafe { put(len, length as c_int) };
    1
}

/// `int ncattget(int ncid, int varid, const char *name, void *value);` Returns 1.
///
/// # Safety
/// As `nc_get_att`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncattget(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    value: *mut c_void,
) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_get_att(ncid, varid, name, value) };
    answer("ncattget", ncid, status, 1)
}

/// `int ncattcopy(int ncid_in, int varid_in, const char *name, int ncid_out, int varid_out);`
///
/// # Safety
/// As `nc_copy_att`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncattcopy(
    ncid_in: c_int,
    varid_in: c_int,
    name: *const c_char,
    ncid_out: c_int,
    varid_out: c_int,
) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_copy_att(ncid_in, varid_in, name, ncid_out, varid_out) };
    if status == 0 {
        return 0;
    }
    // SAFETY: same contract.
    fail("ncattcopy", status, unsafe { shown(name) })
}

/// `int ncattname(int ncid, int varid, int attnum, char *name);` Returns the number.
///
/// # Safety
/// As `nc_inq_attname`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncattname(
    ncid: c_int,
    varid: c_int,
    attnum: c_int,
    name: *mut c_char,
) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_inq_attname(ncid, varid, attnum, name) };
    answer("ncattname", ncid, status, attnum)
}

/// `int ncattrename(int ncid, int varid, const char *name, const char *newname);` Returns 1.
///
/// # Safety
/// As `nc_rename_att`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncattrename(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    newname: *const c_char,
) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_rename_att(ncid, varid, name, newname) };
    answer("ncattrename", ncid, status, 1)
}

/// `int ncattdel(int ncid, int varid, const char *name);` Returns 1.
///
/// # Safety
/// As `nc_del_att`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncattdel(ncid: c_int, varid: c_int, name: *const c_char) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_del_att(ncid, varid, name) };
    answer("ncattdel", ncid, status, 1)
}
