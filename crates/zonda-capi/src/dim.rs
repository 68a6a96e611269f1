//! Dimensions.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

use zonda::{DimId, DimView, NcError};

use crate::answers::{self, Moment};
use crate::boundary::boundary;
use crate::c_memory::{bytes, put, put_text};
use crate::failure::CallResult;
use crate::handles;
use crate::user_format::{member, to_user_format};

/// A length as C counts it.
fn c_len(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

/// Calls `f` with a dimension.
fn with_dim(ncid: c_int, dimid: c_int, f: impl FnOnce(&DimView<'_>)) -> CallResult {
    let file = handles::file(ncid)?;
    file.meta(|meta| meta.dim(DimId(dimid)).map(|dim| f(&dim)))??;
    Ok(())
}

/// `int nc_def_dim(int ncid, const char *name, size_t len, int *idp);`
///
/// Length 0 (`NC_UNLIMITED`) makes it the unlimited one.
///
/// # Safety
/// `name` is null or a NUL-terminated string; `idp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_dim(
    ncid: c_int,
    name: *const c_char,
    len: usize,
    idp: *mut c_int,
) -> c_int {
    to_user_format!(ncid, def_dim(ncid, name, len, idp));
    boundary(|| {
        let file = handles::file(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        let dim = file.dataset.def_dim_in(file.group, name, len);
        let dim = dim.map_err(|error| file.failure(error))?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(idp, dim.0) };
        Ok(())
    })
}

/// `int nc_inq_dimid(int ncid, const char *name, int *idp);`
///
/// Dimensions of the group itself come before those of the groups around it.
///
/// # Safety
/// `name` is null or a NUL-terminated string; `idp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_dimid(ncid: c_int, name: *const c_char, idp: *mut c_int) -> c_int {
    to_user_format!(ncid, inq_dimid(ncid, name, idp));
    boundary(|| {
        let file = handles::file(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        let dim = file.meta(|meta| meta.find_dim(name))??;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(idp, dim.0) };
        Ok(())
    })
}

/// `int nc_inq_dim(int ncid, int dimid, char *name, size_t *lenp);`
///
/// The length of the unlimited dimension is the number of records.
///
/// # Safety
/// `name` is null, or valid for `NC_MAX_NAME + 1` bytes; `lenp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_dim(
    ncid: c_int,
    dimid: c_int,
    name: *mut c_char,
    lenp: *mut usize,
) -> c_int {
    to_user_format!(ncid, inq_dim(ncid, dimid, name, lenp));
    boundary(|| {
        with_dim(ncid, dimid, |dim| {
            // SAFETY: the contract above is that of both.
            unsafe {
                put_text(name, dim.name);
                put(lenp, c_len(dim.len));
            }
        })
    })
}

/// `int nc_inq_dimname(int ncid, int dimid, char *name);`
///
/// With a null `name` the dimension is not looked at, as in the reference.
///
/// # Safety
/// `name` is null, or valid for `NC_MAX_NAME + 1` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_dimname(ncid: c_int, dimid: c_int, name: *mut c_char) -> c_int {
    to_user_format!(ncid, |table| match name.is_null() {
        true => 0,
        false => member!(table, inq_dim(ncid, dimid, name, null_mut())),
    });
    boundary(|| {
        if name.is_null() {
            handles::file(ncid)?;
            return Ok(());
        }
        // SAFETY: the contract above is that of `put_text`.
        with_dim(ncid, dimid, |dim| unsafe { put_text(name, dim.name) })
    })
}

/// `int nc_inq_dimlen(int ncid, int dimid, size_t *lenp);`
///
/// With a null `lenp` the dimension is not looked at, as in the reference.
///
/// # Safety
/// `lenp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_dimlen(ncid: c_int, dimid: c_int, lenp: *mut usize) -> c_int {
    if let Some(len) = answers::dim_len(ncid, dimid) {
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(lenp, len) };
        return 0;
    }
    to_user_format!(ncid, |table| match lenp.is_null() {
        true => 0,
        false => member!(table, inq_dim(ncid, dimid, null_mut(), lenp)),
    });
    boundary(|| {
        let n_closed = handles::n_closed();
        let file = handles::file(ncid)?;
        if lenp.is_null() {
            return Ok(());
        }
        let moment = Moment::of(n_closed, &file);
        file.meta(|meta| {
            let dim = meta.dim(DimId(dimid))?;
            let len = c_len(dim.len);
            answers::keep_dim_len((ncid, dimid), &moment, &dim, len);
            // SAFETY: the contract above is `put`'s contract.
            unsafe { put(lenp, len) };
            Ok(())
        })?
    })
}

/// `int nc_rename_dim(int ncid, int dimid, const char *name);`
///
/// # Safety
/// `name` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_rename_dim(ncid: c_int, dimid: c_int, name: *const c_char) -> c_int {
    to_user_format!(ncid, rename_dim(ncid, dimid, name));
    boundary(|| {
        let file = handles::file(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        let renamed = file.dataset.rename_dim_in(file.group, DimId(dimid), name);
        renamed.map_err(|error| file.failure(error))
    })
}
