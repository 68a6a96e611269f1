//! Definitions of user-defined types, which belong to netCDF-4: a classic file answers `NC_ENOTNC4`.

use std::ffi::{c_char, c_int, c_void};

use zonda::{GroupId, NcError, UserClass};

use crate::boundary::boundary;
use crate::c_memory::{bytes, put, slice};
use crate::failure::{CallFailure, CallResult};
use crate::handles::{self, FileRef};
use crate::types::NcType;
use crate::user_format::to_user_format;

/// Most dimensions of a field, as of a variable.
const MAX_FIELD_DIMS: usize = zonda::MAX_VAR_DIMS;

/// A netCDF-4 file.
fn nc4_file(ncid: c_int) -> Result<FileRef, CallFailure> {
    let file = handles::file(ncid)?;
    if file.dataset.capabilities().user_types { Ok(file) } else { Err(NcError::NotNc4.into()) }
}

/// Defines a type by `define`, which gets the group and the name, and returns the number of the type.
///
/// # Safety
/// `name` is null or a NUL-terminated string; `type_idp` is null, or valid for a write.
unsafe fn defined(
    ncid: c_int,
    name: *const c_char,
    type_idp: *mut NcType,
    define: impl Fn(&FileRef, GroupId, &[u8]) -> zonda::Result<NcType>,
) -> c_int {
    boundary(|| {
        let file = nc4_file(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        let number = define(&file, file.group, name).map_err(|error| file.failure(error))?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(type_idp, number) };
        Ok(())
    })
}

/// `int nc_def_compound(int ncid, size_t size, const char *name, nc_type *typeidp);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `typeidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_compound(
    ncid: c_int,
    size: usize,
    name: *const c_char,
    typeidp: *mut NcType,
) -> c_int {
    to_user_format!(ncid, def_compound(ncid, size, name, typeidp));
    // SAFETY: same contract.
    unsafe {
        defined(ncid, name, typeidp, |file, group, name| {
            file.dataset.def_compound(group, size, name)
        })
    }
}

/// `int nc_def_vlen(int ncid, const char *name, nc_type base_typeid, nc_type *xtypep);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `xtypep` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_vlen(
    ncid: c_int,
    name: *const c_char,
    base_typeid: NcType,
    xtypep: *mut NcType,
) -> c_int {
    to_user_format!(ncid, def_vlen(ncid, name, base_typeid, xtypep));
    // SAFETY: same contract.
    unsafe {
        defined(ncid, name, xtypep, |file, group, name| {
            file.dataset.def_vlen(group, name, base_typeid)
        })
    }
}

/// `int nc_def_opaque(int ncid, size_t size, const char *name, nc_type *xtypep);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `xtypep` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_opaque(
    ncid: c_int,
    size: usize,
    name: *const c_char,
    xtypep: *mut NcType,
) -> c_int {
    to_user_format!(ncid, def_opaque(ncid, size, name, xtypep));
    // SAFETY: same contract.
    unsafe {
        defined(ncid, name, xtypep, |file, group, name| file.dataset.def_opaque(group, size, name))
    }
}

/// `int nc_def_enum(int ncid, nc_type base_typeid, const char *name, nc_type *typeidp);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `typeidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_enum(
    ncid: c_int,
    base_typeid: NcType,
    name: *const c_char,
    typeidp: *mut NcType,
) -> c_int {
    to_user_format!(ncid, def_enum(ncid, base_typeid, name, typeidp));
    // SAFETY: same contract.
    unsafe {
        defined(ncid, name, typeidp, |file, group, name| {
            file.dataset.def_enum(group, base_typeid, name)
        })
    }
}

/// Adds a field; a list of dimensions that cannot be read is refused once the type is known.
///
/// # Safety
/// `name` is null or a NUL-terminated string; `dim_sizes` is null or holds `ndims` lengths.
unsafe fn insert_field(
    (ncid, xtype): (c_int, NcType),
    name: *const c_char,
    offset: usize,
    field_type: NcType,
    (ndims, dim_sizes): (c_int, *const c_int),
) -> CallResult {
    let file = nc4_file(ncid)?;
    // SAFETY: the contract above is that of `bytes`.
    let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
    let dims = match usize::try_from(ndims) {
        Ok(n) if n == 0 || (n <= MAX_FIELD_DIMS && !dim_sizes.is_null()) => {
            // SAFETY: the contract above.
            unsafe { slice(dim_sizes, n) }
        }
        _ => {
            let known = file.meta(|meta| meta.user_type(xtype).is_ok())?;
            return Err(if known { NcError::Inval } else { NcError::BadType }.into());
        }
    };
    let inserted = file.dataset.insert_field((file.group, xtype), name, offset, field_type, dims);
    inserted.map_err(|error| file.failure(error))
}

/// `int nc_insert_compound(int ncid, nc_type xtype, const char *name, size_t offset, nc_type field_typeid);`
///
/// # Safety
/// `name` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_insert_compound(
    ncid: c_int,
    xtype: NcType,
    name: *const c_char,
    offset: usize,
    field_typeid: NcType,
) -> c_int {
    to_user_format!(ncid, insert_compound(ncid, xtype, name, offset, field_typeid));
    let none = (0, std::ptr::null());
    // SAFETY: same contract.
    boundary(|| unsafe { insert_field((ncid, xtype), name, offset, field_typeid, none) })
}

/// `int nc_insert_array_compound(int ncid, nc_type xtype, const char *name, size_t offset, nc_type field_typeid, int ndims, const int *dim_sizes);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `dim_sizes` is null or holds `ndims` lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_insert_array_compound(
    ncid: c_int,
    xtype: NcType,
    name: *const c_char,
    offset: usize,
    field_typeid: NcType,
    ndims: c_int,
    dim_sizes: *const c_int,
) -> c_int {
    to_user_format!(
        ncid,
        insert_array_compound(ncid, xtype, name, offset, field_typeid, ndims, dim_sizes)
    );
    let dims = (ndims, dim_sizes);
    // SAFETY: same contract.
    boundary(|| unsafe { insert_field((ncid, xtype), name, offset, field_typeid, dims) })
}

/// `int nc_insert_enum(int ncid, nc_type xtype, const char *name, const void *value);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `value` is null, or holds a value of the base type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_insert_enum(
    ncid: c_int,
    xtype: NcType,
    name: *const c_char,
    value: *const c_void,
) -> c_int {
    to_user_format!(ncid, insert_enum(ncid, xtype, name, value));
    boundary(|| {
        let file = nc4_file(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        // That a type is no enumeration is found when the member is defined, below.
        let size = file.meta(|meta| match meta.user_type(xtype).map(|ty| &ty.class) {
            Ok(UserClass::Enum { base, .. }) => meta.type_size(*base).unwrap_or(0),
            _ => 0,
        })?;
        if value.is_null() && size != 0 {
            return Err(NcError::Inval.into());
        }
        // SAFETY: the contract above; null only where nothing is read.
        let value = unsafe { slice(value.cast::<u8>(), size) };
        let inserted = file.dataset.insert_member((file.group, xtype), name, value);
        inserted.map_err(|error| file.failure(error))
    })
}
