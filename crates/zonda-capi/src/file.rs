//! An open file as a whole: define mode, sync, close, and inquiries about it.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut as null;

use zonda::{FillMode, GroupId, NcError, Reserve, VarId};

use crate::boundary::boundary;
use crate::c_memory::{c_count, put, put_text};
use crate::failure::{CallFailure, CallResult};
use crate::handles;
use crate::user_format::{self, member, to_user_format};

const NOFILL: c_int = 0x100;

/// `int nc_redef(int ncid);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_redef(ncid: c_int) -> c_int {
    to_user_format!(ncid, redef(ncid));
    boundary(|| Ok(handles::file(ncid)?.dataset.redef()?))
}

fn enddef(ncid: c_int, reserve: Reserve) -> CallResult {
    let file = handles::file(ncid)?;
    file.dataset.enddef(reserve).map_err(|error| file.failure(error))
}

/// `int nc_enddef(int ncid);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_enddef(ncid: c_int) -> c_int {
    to_user_format!(ncid, enddef(ncid, 0, 1, 0, 1));
    boundary(|| enddef(ncid, Reserve::Default))
}

/// `int nc__enddef(int ncid, size_t h_minfree, size_t v_align, size_t v_minfree, size_t r_align);`
#[unsafe(no_mangle)]
pub extern "C" fn nc__enddef(
    ncid: c_int,
    h_minfree: usize,
    v_align: usize,
    v_minfree: usize,
    r_align: usize,
) -> c_int {
    to_user_format!(ncid, enddef(ncid, h_minfree, v_align, v_minfree, r_align));
    let [h_minfree, v_align, v_minfree, r_align] =
        [h_minfree, v_align, v_minfree, r_align].map(|n| n as u64);
    boundary(|| enddef(ncid, Reserve::Explicit { h_minfree, v_align, v_minfree, r_align }))
}

/// `int nc_sync(int ncid);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_sync(ncid: c_int) -> c_int {
    to_user_format!(ncid, sync(ncid));
    boundary(|| {
        let file = handles::file(ncid)?;
        file.dataset.sync().map_err(|error| file.failure(error))
    })
}

/// `int nc_abort(int ncid);`
///
/// The file is closed even if this fails, also where the id names no group of it; any group will
/// do, as in the reference.
#[unsafe(no_mangle)]
pub extern "C" fn nc_abort(ncid: c_int) -> c_int {
    to_user_format!(ncid, |table| user_format::abort(table, ncid));
    boundary(|| {
        handles::unless_out_of_reach(ncid)?;
        let has_group = handles::file(ncid).map(drop);
        handles::remove(ncid)?.dataset.abort()?;
        Ok(has_group?)
    })
}

/// `int nc_close(int ncid);`
///
/// Where the device refused what was put, the file stays open, so that a program may make room and
/// close it again. After other errors it is closed; so it is where a sync failed, now or before, since
/// none can succeed then.
#[unsafe(no_mangle)]
pub extern "C" fn nc_close(ncid: c_int) -> c_int {
    // SAFETY: nothing is asked for.
    to_user_format!(ncid, |table| unsafe { user_format::close(table, ncid, null()) });
    boundary(|| {
        handles::unless_out_of_reach(ncid)?;
        let file = handles::file(ncid)?;
        if file.group != GroupId::ROOT {
            return Err(NcError::BadGrpId.into());
        }
        let closed = file.dataset.close().map_err(|error| file.failure(error));
        // Of several threads that close it one succeeds, and takes it out of the table.
        let is_over = |failure: &CallFailure| failure.code() == NcError::BadId;
        if closed.as_ref().is_err_and(|failure| file.dataset.is_open() || is_over(failure)) {
            return closed;
        }
        let file = handles::take_closed(file, ncid);
        closed?;
        let Some(file) = file else { return Ok(()) };
        Ok(file.persist_memory()?)
    })
}

/// `int nc_set_fill(int ncid, int fillmode, int *old_modep);`
///
/// # Safety
/// `old_modep` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_set_fill(ncid: c_int, fillmode: c_int, old_modep: *mut c_int) -> c_int {
    to_user_format!(ncid, set_fill(ncid, fillmode, old_modep));
    boundary(|| {
        let file = handles::file(ncid)?;
        let mode = match fillmode {
            _ if file.dataset.capabilities().dialect.is_netcdf4()
                && !file.dataset.is_writable() =>
            {
                return Err(NcError::Perm.into());
            }
            0 => FillMode::Fill,
            NOFILL => FillMode::NoFill,
            _ if !file.dataset.is_writable() => return Err(NcError::Perm.into()),
            _ => return Err(NcError::Inval.into()),
        };
        let old = match file.dataset.set_fill(mode).map_err(|error| file.failure(error))? {
            FillMode::Fill => 0,
            FillMode::NoFill => NOFILL,
        };
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(old_modep, old) };
        Ok(())
    })
}

/// `int nc_set_base_pe(int ncid, int pe);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_set_base_pe(ncid: c_int, _pe: c_int) -> c_int {
    to_user_format!(ncid, |_| 0);
    boundary(|| Ok(handles::any_group(ncid).map(drop)?))
}

/// `int nc_inq_base_pe(int ncid, int *pe);`
///
/// # Safety
/// `pe` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_base_pe(ncid: c_int, pe: *mut c_int) -> c_int {
    to_user_format!(ncid, |_| {
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(pe, 0) };
        0
    });
    boundary(|| {
        handles::any_group(ncid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(pe, 0) };
        Ok(())
    })
}

/// `int nc_inq_format(int ncid, int *formatp);`
///
/// # Safety
/// `formatp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_format(ncid: c_int, formatp: *mut c_int) -> c_int {
    to_user_format!(ncid, inq_format(ncid, formatp));
    boundary(|| {
        if formatp.is_null() {
            handles::any_group(ncid)?;
            return Ok(());
        }
        let format = handles::file(ncid)?.meta(|meta| meta.format())?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(formatp, format.nc_format()) };
        Ok(())
    })
}

/// `int nc_inq_format_extended(int ncid, int *formatp, int *modep);`
///
/// # Safety
/// Both are null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_format_extended(
    ncid: c_int,
    formatp: *mut c_int,
    modep: *mut c_int,
) -> c_int {
    to_user_format!(ncid, inq_format_extended(ncid, formatp, modep));
    boundary(|| {
        let file = handles::file(ncid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(formatp, file.dataset.capabilities().formatx);
            put(modep, file.mode);
        }
        Ok(())
    })
}

/// `int nc_inq_path(int ncid, size_t *pathlen, char *path);`
///
/// # Safety
/// `pathlen` is null, or valid for a write; `path` is null, or has room for the path and its NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_path(ncid: c_int, pathlen: *mut usize, path: *mut c_char) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is that of both.
        let answer = |text: &[u8]| unsafe {
            put(pathlen, text.len());
            put_text(path, text);
        };
        if handles::user_file(ncid, |file| answer(file.path.to_bytes())).is_none() {
            answer(handles::any_group(ncid)?.path.to_bytes());
        }
        Ok(())
    })
}

/// `int nc_inq(int ncid, int *ndimsp, int *nvarsp, int *nattsp, int *unlimdimidp);`
///
/// # Safety
/// Each is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq(
    ncid: c_int,
    ndimsp: *mut c_int,
    nvarsp: *mut c_int,
    nattsp: *mut c_int,
    unlimdimidp: *mut c_int,
) -> c_int {
    to_user_format!(ncid, inq(ncid, ndimsp, nvarsp, nattsp, unlimdimidp));
    boundary(|| {
        handles::file(ncid)?.meta(|meta| {
            // Only what is wanted is looked up: most calls want one of the four.
            // SAFETY: the contract above.
            unsafe {
                if !ndimsp.is_null() {
                    ndimsp.write(c_count(meta.n_dims()));
                }
                if !nvarsp.is_null() {
                    nvarsp.write(c_count(meta.n_vars()));
                }
                if !nattsp.is_null() {
                    nattsp.write(c_count(meta.n_atts(VarId::GLOBAL)?));
                }
                if !unlimdimidp.is_null() {
                    unlimdimidp.write(meta.unlimited().map_or(-1, |dim| dim.0));
                }
            }
            Ok::<_, CallFailure>(())
        })?
    })
}

/// `int nc_inq_ndims(int ncid, int *ndimsp);`
///
/// # Safety
/// `ndimsp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_ndims(ncid: c_int, ndimsp: *mut c_int) -> c_int {
    to_user_format!(ncid, |table| match ndimsp.is_null() {
        true => 0,
        false => member!(table, inq(ncid, ndimsp, null(), null(), null())),
    });
    // SAFETY: same contract.
    unsafe { nc_inq(ncid, ndimsp, null(), null(), null()) }
}

/// `int nc_inq_nvars(int ncid, int *nvarsp);`
///
/// # Safety
/// `nvarsp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_nvars(ncid: c_int, nvarsp: *mut c_int) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq(ncid, null(), nvarsp, null(), null()) }
}

/// `int nc_inq_natts(int ncid, int *nattsp);`
///
/// # Safety
/// `nattsp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_natts(ncid: c_int, nattsp: *mut c_int) -> c_int {
    to_user_format!(ncid, |table| match nattsp.is_null() {
        true => 0,
        false => member!(table, inq(ncid, null(), null(), nattsp, null())),
    });
    // SAFETY: same contract.
    unsafe { nc_inq(ncid, null(), null(), nattsp, null()) }
}

/// `int nc_inq_unlimdim(int ncid, int *unlimdimidp);`
///
/// # Safety
/// `unlimdimidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_unlimdim(ncid: c_int, unlimdimidp: *mut c_int) -> c_int {
    to_user_format!(ncid, inq_unlimdim(ncid, unlimdimidp));
    // SAFETY: same contract.
    unsafe { nc_inq(ncid, null(), null(), null(), unlimdimidp) }
}
