//! Types: names, sizes, numbers, equality; definitions. What a user-defined type is made of is asked
//! in `user_types.rs`.

use std::ffi::{c_char, c_int, c_void};

use zonda::{ExtType, Format, GroupId, Meta, NcError, UserClass, UserType};

use crate::boundary::{Failure, boundary, put};
use crate::foreign::{bytes, put_text};
use crate::handles::{self, FileRef};

/// `nc_type` of a variable or attribute.
pub(crate) type NcType = c_int;

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
        if xtype <= NAT || !found.dataset.is_hdf5() {
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
    boundary(|| {
        let first = handles::file(ncid1)?;
        if equal.is_null() {
            return Ok(());
        }
        if typeid1 <= NAT || typeid2 <= NAT {
            return Err(NcError::Inval.into());
        }
        let same = if !first.dataset.is_hdf5() {
            typeid1 == typeid2 && typeid1 <= ExtType::Double.nc_type()
        } else if typeid1 <= VLEN || typeid2 <= STRING {
            typeid1 == typeid2
        } else {
            let second = handles::file(ncid2)?;
            first.meta(|one| {
                let one_type = one.user_type(typeid1)?;
                second.meta(|two| {
                    let two_type = two.user_type(typeid2)?;
                    Ok::<_, Failure>(equal_types((one, one_type), (two, two_type)))
                })?
            })??
        };
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(equal, c_int::from(same)) };
        Ok(())
    })
}

type InFile<'m, 'a, T> = (&'m Meta<'a>, T);

/// Whether two numbers of types, each in its file, stand for equal types.
fn equal_ids(one: InFile<'_, '_, NcType>, two: InFile<'_, '_, NcType>) -> bool {
    if one.1 < FIRST_USER_TYPE || two.1 < FIRST_USER_TYPE {
        return one.1 == two.1;
    }
    match (one.0.user_type(one.1), two.0.user_type(two.1)) {
        (Ok(one_type), Ok(two_type)) => equal_types((one.0, one_type), (two.0, two_type)),
        _ => false,
    }
}

fn equal_types(one: InFile<'_, '_, &UserType>, two: InFile<'_, '_, &UserType>) -> bool {
    let ((one_meta, one), (two_meta, two)) = (one, two);
    if one.size != two.size {
        return false;
    }
    let equal = |a: NcType, b: NcType| equal_ids((one_meta, a), (two_meta, b));
    match (&one.class, &two.class) {
        (UserClass::Opaque, UserClass::Opaque) | (UserClass::String, UserClass::String) => true,
        (UserClass::Vlen { base: a }, UserClass::Vlen { base: b }) => equal(*a, *b),
        (UserClass::Compound(a), UserClass::Compound(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|(a, b)| {
                    (&a.name, a.offset, &a.dims) == (&b.name, b.offset, &b.dims)
                        && equal(a.nc_type, b.nc_type)
                })
        }
        (
            UserClass::Enum { base: a, members: of_a },
            UserClass::Enum { base: b, members: of_b },
        ) => a == b && of_a == of_b,
        _ => false,
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
    boundary(|| {
        let found = handles::any_group(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        let code = if found.dataset.is_hdf5() {
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
fn user_type_id(file: &FileRef, name: &[u8]) -> Result<NcType, Failure> {
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

/// Definitions of user-defined types: a classic file cannot get any, and a netCDF-4 file is open for
/// reading.
macro_rules! definitions {
    ($($prototype:literal fn $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[doc = concat!("`", $prototype, "`")]
        ///
        /// User-defined types belong to netCDF-4: `NC_ENOTNC4` for a classic file; `NC_EPERM` for
        /// a file that is open for reading.
        ///
        /// # Safety
        /// The pointers are not used.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(ncid: c_int, $($argument: $type),*) -> c_int {
            $( let _ = $argument; )*
            boundary(|| {
                Err(refused(&handles::file(ncid)?)?.into())
            })
        }
    )*};
}

/// Why a file gets no new types.
fn refused(file: &FileRef) -> Result<NcError, Failure> {
    if !file.dataset.is_hdf5() {
        return Ok(NcError::NotNc4);
    }
    let format = file.meta(|meta| meta.format())?;
    Ok(if format == Format::NetCdf4Classic { NcError::StrictNc3 } else { NcError::Perm })
}

/// Why a type gets no new member: those of a file are complete.
fn insertion(ncid: c_int, xtype: NcType) -> c_int {
    boundary(|| {
        let file = handles::file(ncid)?;
        if !file.dataset.is_hdf5() {
            return Err(NcError::NotNc4.into());
        }
        let known = file.meta(|meta| meta.user_type(xtype).is_ok())?;
        Err(if known { NcError::TypDefined } else { NcError::BadTypId }.into())
    })
}

definitions! {
    "int nc_def_compound(int ncid, size_t size, const char *name, nc_type *typeidp);"
    fn nc_def_compound(size: usize, name: *const c_char, typeidp: *mut NcType);
    "int nc_def_vlen(int ncid, const char *name, nc_type base_typeid, nc_type *xtypep);"
    fn nc_def_vlen(name: *const c_char, base_typeid: NcType, xtypep: *mut NcType);

    "int nc_def_enum(int ncid, nc_type base_typeid, const char *name, nc_type *typeidp);"
    fn nc_def_enum(base_typeid: NcType, name: *const c_char, typeidp: *mut NcType);
    "int nc_def_opaque(int ncid, size_t size, const char *name, nc_type *xtypep);"
    fn nc_def_opaque(size: usize, name: *const c_char, xtypep: *mut NcType);
}

/// `int nc_insert_compound(int ncid, nc_type xtype, const char *name, size_t offset, nc_type field_typeid);`
///
/// # Safety
/// The pointer is not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_insert_compound(
    ncid: c_int,
    xtype: NcType,
    _name: *const c_char,
    _offset: usize,
    _field_typeid: NcType,
) -> c_int {
    insertion(ncid, xtype)
}

/// `int nc_insert_array_compound(int ncid, nc_type xtype, const char *name, size_t offset, nc_type field_typeid, int ndims, const int *dim_sizes);`
///
/// # Safety
/// The pointers are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_insert_array_compound(
    ncid: c_int,
    xtype: NcType,
    _name: *const c_char,
    _offset: usize,
    _field_typeid: NcType,
    _ndims: c_int,
    _dim_sizes: *const c_int,
) -> c_int {
    insertion(ncid, xtype)
}

/// `int nc_insert_enum(int ncid, nc_type xtype, const char *name, const void *value);`
///
/// # Safety
/// The pointers are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_insert_enum(
    ncid: c_int,
    xtype: NcType,
    _name: *const c_char,
    _value: *const c_void,
) -> c_int {
    insertion(ncid, xtype)
}
