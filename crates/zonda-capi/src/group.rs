//! Groups, and the inquiries that list what a group holds.
//!
//! A classic file is one root group without a parent, without children and without types of its
//! own; the answers are those that the reference gives for such files.

use std::ffi::{c_char, c_int};

use zonda::NcError;

use crate::boundary::{boundary, put};
use crate::foreign::{put_ids, put_text};
use crate::handles;

/// The number of things as C counts them. Ids are ints, so that more cannot have been defined.
fn as_int(n: usize) -> Result<c_int, NcError> {
    c_int::try_from(n).map_err(|_| NcError::Internal)
}

/// `int nc_inq_ncid(int ncid, const char *name, int *grp_ncid);`
///
/// A classic file has no groups to tell apart: any name, and none, is the file itself.
///
/// # Safety
/// `grp_ncid` is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_ncid(
    ncid: c_int,
    _name: *const c_char,
    grp_ncid: *mut c_int,
) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(grp_ncid, ncid) };
        Ok(())
    })
}

/// `int nc_inq_grp_ncid(int ncid, const char *grp_name, int *grp_ncid);`
///
/// # Safety
/// As [`nc_inq_ncid`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_grp_ncid(
    ncid: c_int,
    grp_name: *const c_char,
    grp_ncid: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq_ncid(ncid, grp_name, grp_ncid) }
}

/// `int nc_inq_grp_full_ncid(int ncid, const char *full_name, int *grp_ncid);`
///
/// # Safety
/// The pointers are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_grp_full_ncid(
    ncid: c_int,
    _full_name: *const c_char,
    _grp_ncid: *mut c_int,
) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        Err(NcError::NoGrp.into())
    })
}

/// `int nc_inq_grp_parent(int ncid, int *parent_ncid);`
///
/// # Safety
/// The pointer is not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_grp_parent(ncid: c_int, _parent_ncid: *mut c_int) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        Err(NcError::NoGrp.into())
    })
}

/// `int nc_inq_grps(int ncid, int *numgrps, int *ncids);`
///
/// # Safety
/// `numgrps` is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_grps(
    ncid: c_int,
    numgrps: *mut c_int,
    _ncids: *mut c_int,
) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(numgrps, 0) };
        Ok(())
    })
}

/// `int nc_inq_grpname(int ncid, char *name);`
///
/// # Safety
/// `name` is null, or valid for `NC_MAX_NAME + 1` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_grpname(ncid: c_int, name: *mut c_char) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        // SAFETY: two bytes of the room that the contract gives.
        unsafe { put_text(name, b"/") };
        Ok(())
    })
}

/// `int nc_inq_grpname_full(int ncid, size_t *lenp, char *full_name);`
///
/// The length, in bytes, does not count the NUL.
///
/// # Safety
/// `lenp` is null, or valid for a write; `full_name` is null, or valid for the length that a
/// call with null returns, plus one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_grpname_full(
    ncid: c_int,
    lenp: *mut usize,
    full_name: *mut c_char,
) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        // SAFETY: the contract gives room for the name of length 1 and its NUL.
        unsafe {
            put_text(full_name, b"/");
            put(lenp, 1);
        }
        Ok(())
    })
}

/// `int nc_inq_grpname_len(int ncid, size_t *lenp);`
///
/// # Safety
/// `lenp` is null, or valid for a write of one `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_grpname_len(ncid: c_int, lenp: *mut usize) -> c_int {
    // SAFETY: same contract; null asks for no name.
    unsafe { nc_inq_grpname_full(ncid, lenp, std::ptr::null_mut()) }
}

/// `int nc_inq_varids(int ncid, int *nvars, int *varids);`
///
/// # Safety
/// `nvars` is null, or valid for a write; `varids` is null, or has room for every variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_varids(
    ncid: c_int,
    nvars: *mut c_int,
    varids: *mut c_int,
) -> c_int {
    boundary(|| {
        let n = handles::file(ncid)?.dataset.meta(|meta| meta.n_vars());
        let count = as_int(n)?;
        // SAFETY: the contract above covers both.
        unsafe {
            put(nvars, count);
            put_ids(varids, n);
        }
        Ok(())
    })
}

/// `int nc_inq_dimids(int ncid, int *ndims, int *dimids, int include_parents);`
///
/// # Safety
/// `ndims` is null, or valid for a write; `dimids` is null, or has room for every dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_dimids(
    ncid: c_int,
    ndims: *mut c_int,
    dimids: *mut c_int,
    _include_parents: c_int,
) -> c_int {
    boundary(|| {
        let n = handles::file(ncid)?.dataset.meta(|meta| meta.n_dims());
        let count = as_int(n)?;
        // SAFETY: the contract above covers both.
        unsafe {
            put(ndims, count);
            put_ids(dimids, n);
        }
        Ok(())
    })
}

/// `int nc_inq_unlimdims(int ncid, int *nunlimdimsp, int *unlimdimidsp);`
///
/// # Safety
/// Both are null, or valid for a write of one int: a classic file has at most one unlimited
/// dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_unlimdims(
    ncid: c_int,
    nunlimdimsp: *mut c_int,
    unlimdimidsp: *mut c_int,
) -> c_int {
    boundary(|| {
        let unlimited = handles::file(ncid)?.dataset.meta(|meta| meta.unlimited());
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(nunlimdimsp, c_int::from(unlimited.is_some())) };
        if let Some(dim) = unlimited {
            // SAFETY: as above.
            unsafe { put(unlimdimidsp, dim.0) };
        }
        Ok(())
    })
}

/// `int nc_inq_typeids(int ncid, int *ntypes, int *typeids);`
///
/// # Safety
/// `ntypes` is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_typeids(
    ncid: c_int,
    ntypes: *mut c_int,
    _typeids: *mut c_int,
) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(ntypes, 0) };
        Ok(())
    })
}

/// `int nc_def_grp(int parent_ncid, const char *name, int *new_ncid);`
///
/// # Safety
/// The pointers are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_grp(
    parent_ncid: c_int,
    _name: *const c_char,
    _new_ncid: *mut c_int,
) -> c_int {
    boundary(|| {
        handles::file(parent_ncid)?;
        Err(NcError::NotNc4.into())
    })
}

/// `int nc_rename_grp(int grpid, const char *name);`
///
/// # Safety
/// The pointer is not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_rename_grp(grpid: c_int, _name: *const c_char) -> c_int {
    boundary(|| {
        handles::file(grpid)?;
        Err(NcError::NotNc4.into())
    })
}

/// `int nc_show_metadata(int ncid);`
///
/// A debugging aid of the reference that prints for netCDF-4 files only, and only in builds with
/// logging.
#[unsafe(no_mangle)]
pub extern "C" fn nc_show_metadata(ncid: c_int) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        Ok(())
    })
}
