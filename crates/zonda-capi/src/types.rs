//! Types: names, sizes, numbers, equality. Inquiries about user-defined types are in
//! `user_types.rs`, definitions in `type_definitions.rs`.

use std::ffi::{c_char, c_int};

use zonda::{ExtType, GroupId, Meta, NcError, TypeShape};

use crate::boundary::boundary;
use crate::c_memory::{bytes, put, put_text};
use crate::failure::CallFailure;
use crate::handles::{self, FileRef};
use crate::user_format::to_user_format;

pub(crate) use zonda_user_format::NcType;

/// `NC_NAT`: not a type.
const NAT: NcType = 0;
/// `NC_STRING`: a `char *` of its own for each element; the last atomic type.
pub(crate) const STRING: NcType = zonda::NC_STRING;
/// `NC_VLEN`: the number of a class, which the reference takes for an atomic type now and then.
pub(crate) const VLEN: NcType = 13;
/// Ids from here on belong to user-defined types.
pub(crate) const FIRST_USER_TYPE: NcType = zonda::FIRST_USER_TYPE;

/// Name and bytes in memory of an atomic type, `NC_STRING` included.
pub(crate) fn atomic(code: NcType) -> Option<(&'static str, usize)> {
    if code == STRING {
        return Some(("string", size_of::<*mut c_char>()));
    }
    ExtType::from_nc_type(code).map(|ty| (ty.name(), ty.size()))
}

/// `int nctypelen(nc_type datatype);` of netCDF-2: bytes of an element, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn nctypelen(datatype: NcType) -> c_int {
    match atomic(datatype) {
        // At most 8.
        Some((_, size)) => size as c_int,
        None => -1,
    }
}

/// `int nc_inq_type(int ncid, nc_type xtype, char *name, size_t *size);`
///
/// Atomic types are known without a file, so that `ncid` is not looked at, as in the reference.
///
/// # Safety
/// `name` is null, or valid for `NC_MAX_NAME + 1` bytes; `size` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_type(
    ncid: c_int,
    xtype: NcType,
    name: *mut c_char,
    size: *mut usize,
) -> c_int {
    if xtype > STRING {
        to_user_format!(ncid, inq_type(ncid, xtype, name, size));
    }
    boundary(|| {
        if let Some((text, bytes)) = atomic(xtype) {
            // SAFETY: type names are shorter than NC_MAX_NAME; the contract covers the rest.
            unsafe {
                put_text(name, text.as_bytes());
                put(size, bytes);
            }
            return Ok(());
        }
        let Ok(found) = handles::any_group(ncid) else { return Err(NcError::BadType.into()) };
        if xtype <= NAT || !found.dataset.capabilities().user_types {
            return Err(NcError::BadType.into());
        }
        handles::file(ncid)?.meta(|meta| {
            let ty = meta.user_type(xtype)?;
            // SAFETY: the contract above.
            unsafe {
                put_text(name, &ty.name);
                put(size, ty.size);
            }
            Ok(())
        })?
    })
}

/// `int nc_inq_type_equal(int ncid1, nc_type typeid1, int ncid2, nc_type typeid2, int *equal);`
///
/// For a classic file only the six types of the original format are ever equal, to themselves,
/// and the second file is not looked at: that is what the reference does. User-defined types are
/// equal when they are made alike; their names do not count.
///
/// # Safety
/// `equal` is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_type_equal(
    ncid1: c_int,
    typeid1: NcType,
    ncid2: c_int,
    typeid2: NcType,
    equal: *mut c_int,
) -> c_int {
    to_user_format!(ncid1, inq_type_equal(ncid1, typeid1, ncid2, typeid2, equal));
    boundary(|| {
        let first = handles::file(ncid1)?;
        if equal.is_null() {
            return Ok(());
        }
        if typeid1 <= NAT || typeid2 <= NAT {
            return Err(NcError::Inval.into());
        }
        let same = if !first.dataset.capabilities().user_types {
            typeid1 == typeid2 && typeid1 <= ExtType::Double.nc_type()
        } else if typeid1 <= VLEN || typeid2 <= STRING {
            typeid1 == typeid2
        } else {
            let second = handles::file(ncid2)?;
            let one = first.meta(|meta| stored_shape(meta, typeid1))??;
            let two = second.meta(|meta| stored_shape(meta, typeid2))??;
            one.is_like(&two)
        };
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(equal, c_int::from(same)) };
        Ok(())
    })
}

/// The shape of a type; while it is only declared the reference has nothing to compare.
fn stored_shape(meta: &Meta<'_>, nc_type: NcType) -> Result<TypeShape, CallFailure> {
    match meta.user_type(nc_type) {
        Ok(ty) if !ty.is_stored => Err(NcError::HdfErr.into()),
        _ => Ok(TypeShape::of(meta, nc_type)?),
    }
}

/// `int nc_inq_typeid(int ncid, const char *name, nc_type *typeidp);`
///
/// Of a classic file the six types of the original format are known, and `undefined` as type 0. In
/// a netCDF-4 file a user-defined type is looked for in the group, in those around it, and then in
/// all others; a name that begins with a slash is the path of one type. A null name is `NC_EINVAL`
/// (the reference crashes).
///
/// # Safety
/// `name` is null or a NUL-terminated string; `typeidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_typeid(
    ncid: c_int,
    name: *const c_char,
    typeidp: *mut NcType,
) -> c_int {
    to_user_format!(ncid, inq_typeid(ncid, name, typeidp));
    boundary(|| {
        let found = handles::any_group(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        let code = if found.dataset.capabilities().user_types {
            let named =
                |&code: &NcType| atomic(code).is_some_and(|(text, _)| text.as_bytes() == name);
            match (1..=STRING).find(named) {
                Some(code) => code,
                // What the reference calls type 0 here.
                None if name == b"none" => NAT,
                None => user_type_id(&handles::file(ncid)?, name)?,
            }
        } else if name == b"undefined" {
            NAT
        } else {
            (1..=ExtType::Double.nc_type())
                .find(|&code| atomic(code).is_some_and(|(text, _)| text.as_bytes() == name))
                .ok_or(NcError::NotNc4)?
        };
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(typeidp, code) };
        Ok(())
    })
}

/// Number of the user-defined type with that name or path.
fn user_type_id(file: &FileRef, name: &[u8]) -> Result<NcType, CallFailure> {
    let Some(path) = name.strip_prefix(b"/") else {
        if name.contains(&b'/') {
            return Err(NcError::Inval.into());
        }
        return Ok(file.meta(|meta| meta.find_type(name))??);
    };
    let slash = path.iter().rposition(|&byte| byte == b'/');
    let (groups, name) = match slash {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&b""[..], path),
    };
    let mut group = GroupId::ROOT;
    for step in groups.split(|&byte| byte == b'/').filter(|step| !step.is_empty()) {
        group = file.dataset.in_group(group, |meta| meta.find_group(step))??;
    }
    file.dataset.in_group(group, |meta| {
        let named = |id: &&NcType| meta.user_type(**id).is_ok_and(|ty| *ty.name == *name);
        Ok(*meta.type_ids().iter().find(named).ok_or(NcError::BadType)?)
    })?
}
