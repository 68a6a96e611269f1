//! Groups, and the inquiries that list what a group holds.
//!
//! A classic file is one root group without a parent, without children and without types of its
//! own; the answers are those that the reference gives for such files.

use std::ffi::{c_char, c_int};

use zonda::{GroupId, NcError, check_name};

use crate::boundary::boundary;
use crate::c_memory::{bytes, put, put_list, put_text};
use crate::failure::CallFailure;
use crate::handles::{self, FileRef};
use crate::user_format::to_user_format;

/// The number of things as C counts them. Ids are ints, so that more cannot have been defined.
fn as_int(n: usize) -> Result<c_int, NcError> {
    c_int::try_from(n).map_err(|_| NcError::Internal)
}

/// Writes the number of ids and the ids, each where the caller gave a pointer.
///
/// # Safety
/// `countp` is null, or valid for a write; `ids` is null, or has room for all.
unsafe fn put_ids(
    countp: *mut c_int,
    ids: *mut c_int,
    found: impl Iterator<Item = c_int>,
) -> Result<(), NcError> {
    // SAFETY: the contract above.
    unsafe {
        let n = put_list(ids, found);
        put(countp, as_int(n)?);
    }
    Ok(())
}

/// The child with that name of the group `from`.
fn child(file: &FileRef, from: GroupId, name: &[u8]) -> Result<GroupId, CallFailure> {
    check_name(name)?;
    Ok(file.dataset.in_group(from, |meta| meta.find_group(name))??)
}

/// `int nc_inq_ncid(int ncid, const char *name, int *grp_ncid);`
///
/// Without a name the answer is the file itself, as in the reference. A classic file has no groups
/// to tell apart: any name is the file itself.
///
/// # Safety
/// `name` is null or a NUL-terminated string; `grp_ncid` is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_ncid(
    ncid: c_int,
    name: *const c_char,
    grp_ncid: *mut c_int,
) -> c_int {
    to_user_format!(ncid, inq_ncid(ncid, name, grp_ncid));
    boundary(|| {
        let file = handles::file(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let group = match unsafe { bytes(name) } {
            Some(name) if file.dataset.capabilities().groups => child(&file, file.group, name)?,
            _ => GroupId::ROOT,
        };
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(grp_ncid, file.id_of(ncid, group)) };
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

/// The group that a path leads to, from the group of `file` on; without any name the root group,
/// if that is where it starts.
pub(crate) fn follow(file: &FileRef, path: &[u8]) -> Result<GroupId, CallFailure> {
    let mut names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).peekable();
    if names.peek().is_none() && file.group != GroupId::ROOT {
        return Err(NcError::NoGrp.into());
    }
    names.try_fold(file.group, |group, name| child(file, group, name))
}

/// `int nc_inq_grp_full_ncid(int ncid, const char *full_name, int *grp_ncid);`
///
/// The path is followed from the group given, also where it begins with a slash, as in the
/// reference.
///
/// # Safety
/// `full_name` is null or a NUL-terminated string; `grp_ncid` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_grp_full_ncid(
    ncid: c_int,
    full_name: *const c_char,
    grp_ncid: *mut c_int,
) -> c_int {
    to_user_format!(ncid, inq_grp_full_ncid(ncid, full_name, grp_ncid));
    boundary(|| {
        let found = handles::any_group(ncid)?;
        if !found.dataset.capabilities().groups {
            return Err(NcError::NoGrp.into());
        }
        // SAFETY: the contract above is that of `bytes`.
        let path = unsafe { bytes(full_name) }.ok_or(NcError::Inval)?;
        let file = handles::file(ncid)?;
        let group = follow(&file, path)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(grp_ncid, file.id_of(ncid, group)) };
        Ok(())
    })
}

/// `int nc_inq_grp_parent(int ncid, int *parent_ncid);`
///
/// # Safety
/// `parent_ncid` is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_grp_parent(ncid: c_int, parent_ncid: *mut c_int) -> c_int {
    to_user_format!(ncid, inq_grp_parent(ncid, parent_ncid));
    boundary(|| {
        let file = handles::file(ncid)?;
        let parent = file.meta(|meta| meta.group_parent())?.ok_or(NcError::NoGrp)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(parent_ncid, file.id_of(ncid, parent)) };
        Ok(())
    })
}

/// `int nc_inq_grps(int ncid, int *numgrps, int *ncids);`
///
/// # Safety
/// `numgrps` is null, or valid for a write; `ncids` is null, or has room for every group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_grps(ncid: c_int, numgrps: *mut c_int, ncids: *mut c_int) -> c_int {
    to_user_format!(ncid, inq_grps(ncid, numgrps, ncids));
    boundary(|| {
        let file = handles::file(ncid)?;
        file.meta(|meta| {
            let ids = meta.groups().iter().map(|&group| file.id_of(ncid, group));
            // SAFETY: the contract above covers both.
            unsafe { put_ids(numgrps, ncids, ids) }
        })??;
        Ok(())
    })
}

/// `int nc_inq_grpname(int ncid, char *name);`
///
/// # Safety
/// `name` is null, or valid for `NC_MAX_NAME + 1` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_grpname(ncid: c_int, name: *mut c_char) -> c_int {
    to_user_format!(ncid, inq_grpname(ncid, name));
    boundary(|| {
        let file = handles::file(ncid)?;
        // SAFETY: the contract above is that of `put_text`.
        file.meta(|meta| unsafe { put_text(name, meta.group_name()) })
    })
}

/// `int nc_inq_grpname_full(int ncid, size_t *lenp, char *full_name);`
///
/// The length, in bytes, does not count the NUL. An id that names no group of a netCDF-4 file is
/// taken for the root group, as in the reference.
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
    to_user_format!(ncid, inq_grpname_full(ncid, lenp, full_name));
    boundary(|| {
        let file = handles::any_group(ncid)?;
        let path = file.dataset.in_group(file.group, |meta| meta.group_path());
        let path = match path {
            Ok(path) => path,
            Err(error) if error.code() == NcError::BadGrpId => b"/".to_vec(),
            Err(error) => return Err(error.into()),
        };
        // SAFETY: the contract above is that of both.
        unsafe {
            put_text(full_name, &path);
            put(lenp, path.len());
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
    to_user_format!(ncid, inq_varids(ncid, nvars, varids));
    boundary(|| {
        let n = as_int(handles::file(ncid)?.meta(|meta| meta.n_vars())?)?;
        // SAFETY: the contract above covers both.
        Ok(unsafe { put_ids(nvars, varids, 0..n) }?)
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
    include_parents: c_int,
) -> c_int {
    to_user_format!(ncid, inq_dimids(ncid, ndims, dimids, include_parents));
    boundary(|| {
        let file = handles::file(ncid)?;
        let mut ids = Vec::new();
        let mut group = Some(file.group);
        while let Some(current) = group {
            group = file.dataset.in_group(current, |meta| {
                ids.extend(meta.dim_ids().map(|dim| dim.0));
                meta.group_parent().filter(|_| include_parents != 0)
            })?;
        }
        zonda_runtime::sort::sort(&mut ids);
        // SAFETY: the contract above covers both.
        Ok(unsafe { put_ids(ndims, dimids, ids.into_iter()) }?)
    })
}

/// `int nc_inq_unlimdims(int ncid, int *nunlimdimsp, int *unlimdimidsp);`
///
/// # Safety
/// `nunlimdimsp` is null, or valid for a write; `unlimdimidsp` is null, or has room for every
/// unlimited dimension of the group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_unlimdims(
    ncid: c_int,
    nunlimdimsp: *mut c_int,
    unlimdimidsp: *mut c_int,
) -> c_int {
    to_user_format!(ncid, inq_unlimdims(ncid, nunlimdimsp, unlimdimidsp));
    boundary(|| {
        handles::file(ncid)?.meta(|meta| {
            let ids = meta.unlimited_dims().map(|dim| dim.0);
            // SAFETY: the contract above covers both.
            unsafe { put_ids(nunlimdimsp, unlimdimidsp, ids) }
        })??;
        Ok(())
    })
}

/// `int nc_inq_typeids(int ncid, int *ntypes, int *typeids);`
///
/// # Safety
/// `ntypes` is null, or valid for a write; `typeids` is null, or has room for every type of the
/// group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_typeids(
    ncid: c_int,
    ntypes: *mut c_int,
    typeids: *mut c_int,
) -> c_int {
    to_user_format!(ncid, inq_typeids(ncid, ntypes, typeids));
    boundary(|| {
        handles::file(ncid)?.meta(|meta| {
            // SAFETY: the contract above covers both.
            unsafe { put_ids(ntypes, typeids, meta.type_ids().iter().copied()) }
        })??;
        Ok(())
    })
}

/// `int nc_def_grp(int parent_ncid, const char *name, int *new_ncid);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `new_ncid` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_grp(
    parent_ncid: c_int,
    name: *const c_char,
    new_ncid: *mut c_int,
) -> c_int {
    to_user_format!(parent_ncid, def_grp(parent_ncid, name, new_ncid));
    boundary(|| {
        let file = handles::file(parent_ncid)?;
        if !file.dataset.capabilities().groups {
            return Err(NcError::NotNc4.into());
        }
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        let group = file.dataset.def_group(file.group, name);
        let group = group.map_err(|error| file.failure(error))?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(new_ncid, file.id_of(parent_ncid, group)) };
        Ok(())
    })
}

/// `int nc_rename_grp(int grpid, const char *name);`
///
/// # Safety
/// `name` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_rename_grp(grpid: c_int, name: *const c_char) -> c_int {
    to_user_format!(grpid, rename_grp(grpid, name));
    boundary(|| {
        let file = handles::file(grpid)?;
        if !file.dataset.capabilities().groups {
            return Err(NcError::NotNc4.into());
        }
        if !file.dataset.is_writable() {
            return Err(NcError::Perm.into());
        }
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        file.dataset.rename_group(file.group, name).map_err(|error| file.failure(error))
    })
}

/// `int nc_show_metadata(int ncid);`
///
/// A debugging aid of the reference that prints for netCDF-4 files only, and only in builds with
/// logging.
#[unsafe(no_mangle)]
pub extern "C" fn nc_show_metadata(ncid: c_int) -> c_int {
    to_user_format!(ncid, show_metadata(ncid));
    boundary(|| {
        handles::any_group(ncid)?;
        Ok(())
    })
}
