//! What user-defined types are made of.
//!
//! As in the reference, an inquiry for one class answers for a type of another class too, and then
//! says `NC_EBADTYPE`. Classic files have no such types: `NC_ENOTNC4`.

use std::ffi::{c_char, c_int, c_longlong, c_void};
use std::ptr::null_mut as null;

use zonda::{ExtType, Field, NcError, UserClass, UserType};

use crate::boundary::boundary;
use crate::c_memory::{bytes, put, put_list, put_text};
use crate::failure::CallResult;
use crate::handles;
use crate::types::{NcType, STRING, VLEN};
use crate::user_format::{
    members::{self, NO_ANSWERS, TypeAnswers},
    to_user_format,
};
use crate::value_walk::NcVlen;

/// `NC_OPAQUE`
const OPAQUE: c_int = 14;
/// `NC_ENUM`
const ENUM: c_int = 15;
/// `NC_COMPOUND`
pub(crate) const COMPOUND: c_int = 16;

/// Class, base type and number of members as `nc_inq_user_type` returns them.
fn shape_of(ty: &UserType) -> (c_int, NcType, usize) {
    match &ty.class {
        UserClass::Compound(fields) => (COMPOUND, 0, fields.len()),
        UserClass::Enum { base, members } => (ENUM, *base, members.len()),
        UserClass::Opaque => (OPAQUE, 0, 0),
        UserClass::Vlen { base } => (VLEN, *base, 0),
        UserClass::String => (STRING, 0, 0),
        UserClass::Unknown => (0, 0, 0),
    }
}

/// Calls `f` with a user-defined type; where there is no such type, the error is `missing`.
fn with_type(
    ncid: c_int,
    xtype: NcType,
    missing: NcError,
    f: impl FnOnce(&UserType) -> Result<(), NcError>,
) -> CallResult {
    let file = handles::file(ncid)?;
    if !file.dataset.capabilities().user_types {
        return Err(NcError::NotNc4.into());
    }
    file.meta(|meta| match meta.user_type(xtype) {
        Ok(ty) => f(ty),
        Err(_) => Err(missing),
    })??;
    Ok(())
}

/// Answers an inquiry about a type. For a type of another class than `class` it returns `NC_EBADTYPE`, after
/// the answers.
///
/// # Safety
/// Each answer is null or valid for a write, `name` for `NC_MAX_NAME + 1` bytes.
unsafe fn inquire(ncid: c_int, xtype: NcType, class: Option<c_int>, to: TypeAnswers) -> c_int {
    // SAFETY: same contract.
    to_user_format!(ncid, |table| unsafe {
        members::inq_user_type(table, (ncid, xtype), class, to)
    });
    boundary(|| {
        with_type(ncid, xtype, NcError::BadType, |ty| {
            let (its_class, base, n_fields) = shape_of(ty);
            // SAFETY: the contract above.
            unsafe {
                put_text(to.name, &ty.name);
                put(to.size, ty.size);
                put(to.base, base);
                put(to.n_fields, n_fields);
                put(to.class, its_class);
            }
            if class.is_some_and(|class| class != its_class) {
                return Err(NcError::BadType);
            }
            Ok(())
        })
    })
}

/// `int nc_inq_user_type(int ncid, nc_type xtype, char *name, size_t *size, nc_type *base_nc_typep, size_t *nfieldsp, int *classp);`
///
/// # Safety
/// Each pointer is null or valid for a write, `name` for `NC_MAX_NAME + 1` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_user_type(
    ncid: c_int,
    xtype: NcType,
    name: *mut c_char,
    size: *mut usize,
    base: *mut NcType,
    nfieldsp: *mut usize,
    class: *mut c_int,
) -> c_int {
    let to = TypeAnswers { name, size, base, n_fields: nfieldsp, class };
    // SAFETY: same contract.
    unsafe { inquire(ncid, xtype, None, to) }
}

/// `int nc_inq_compound(int ncid, nc_type xtype, char *name, size_t *sizep, size_t *nfieldsp);`
///
/// # Safety
/// Each pointer is null or valid for a write, `name` for `NC_MAX_NAME + 1` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_compound(
    ncid: c_int,
    xtype: NcType,
    name: *mut c_char,
    sizep: *mut usize,
    nfieldsp: *mut usize,
) -> c_int {
    let to = TypeAnswers { name, size: sizep, n_fields: nfieldsp, ..NO_ANSWERS };
    // SAFETY: same contract.
    unsafe { inquire(ncid, xtype, Some(COMPOUND), to) }
}

/// `int nc_inq_compound_name(int ncid, nc_type xtype, char *name);`
///
/// # Safety
/// As [`nc_inq_compound`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_compound_name(
    ncid: c_int,
    xtype: NcType,
    name: *mut c_char,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq_compound(ncid, xtype, name, std::ptr::null_mut(), std::ptr::null_mut()) }
}

/// `int nc_inq_compound_size(int ncid, nc_type xtype, size_t *sizep);`
///
/// # Safety
/// As [`nc_inq_compound`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_compound_size(
    ncid: c_int,
    xtype: NcType,
    sizep: *mut usize,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq_compound(ncid, xtype, std::ptr::null_mut(), sizep, std::ptr::null_mut()) }
}

/// `int nc_inq_compound_nfields(int ncid, nc_type xtype, size_t *nfieldsp);`
///
/// # Safety
/// As [`nc_inq_compound`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_compound_nfields(
    ncid: c_int,
    xtype: NcType,
    nfieldsp: *mut usize,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq_compound(ncid, xtype, std::ptr::null_mut(), std::ptr::null_mut(), nfieldsp) }
}

/// Calls `f` with a field. A type without fields is `NC_EBADTYPE` (the reference crashes, or shows
/// what lies there).
fn with_field(ncid: c_int, xtype: NcType, fieldid: c_int, f: impl FnOnce(&Field)) -> CallResult {
    with_type(ncid, xtype, NcError::BadType, |ty| {
        let UserClass::Compound(fields) = &ty.class else { return Err(NcError::BadType) };
        let field = usize::try_from(fieldid).ok().and_then(|id| fields.get(id));
        f(field.ok_or(NcError::BadField)?);
        Ok(())
    })
}

/// `int nc_inq_compound_field(int ncid, nc_type xtype, int fieldid, char *name, size_t *offsetp, nc_type *field_typeidp, int *ndimsp, int *dim_sizesp);`
///
/// # Safety
/// Each pointer is null or valid for a write: `name` for `NC_MAX_NAME + 1` bytes, `dim_sizesp` for
/// an int per dimension of the field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_compound_field(
    ncid: c_int,
    xtype: NcType,
    fieldid: c_int,
    name: *mut c_char,
    offsetp: *mut usize,
    field_typeidp: *mut NcType,
    ndimsp: *mut c_int,
    dim_sizesp: *mut c_int,
) -> c_int {
    to_user_format!(
        ncid,
        inq_compound_field(ncid, xtype, fieldid, name, offsetp, field_typeidp, ndimsp, dim_sizesp)
    );
    boundary(|| {
        with_field(ncid, xtype, fieldid, |field| {
            // SAFETY: the contract above.
            unsafe {
                put_text(name, &field.name);
                put(offsetp, field.offset);
                put(field_typeidp, field.nc_type);
                let rank = put_list(dim_sizesp, field.dims.iter().copied());
                put(ndimsp, c_int::try_from(rank).unwrap_or(c_int::MAX));
            }
        })
    })
}

/// `int nc_inq_compound_fieldname(int ncid, nc_type xtype, int fieldid, char *name);`
///
/// # Safety
/// As [`nc_inq_compound_field`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_compound_fieldname(
    ncid: c_int,
    xtype: NcType,
    fieldid: c_int,
    name: *mut c_char,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq_compound_field(ncid, xtype, fieldid, name, null(), null(), null(), null()) }
}

/// `int nc_inq_compound_fieldindex(int ncid, nc_type xtype, const char *name, int *fieldidp);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `fieldidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_compound_fieldindex(
    ncid: c_int,
    xtype: NcType,
    name: *const c_char,
    fieldidp: *mut c_int,
) -> c_int {
    to_user_format!(ncid, inq_compound_fieldindex(ncid, xtype, name, fieldidp));
    boundary(|| {
        // The reference has three codes for a number that is no user-defined type.
        let missing = match xtype {
            ..0 => NcError::Inval,
            0..=STRING => NcError::BadType,
            _ => NcError::BadTypId,
        };
        with_type(ncid, xtype, missing, |ty| {
            let UserClass::Compound(fields) = &ty.class else { return Err(NcError::BadType) };
            // SAFETY: the contract above is that of `bytes`.
            let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
            let name = zonda::normalize_name(name).map_err(|_| NcError::BadField)?;
            let found = fields.iter().position(|field| *field.name == *name);
            let index = found.and_then(|at| c_int::try_from(at).ok()).ok_or(NcError::BadField)?;
            // SAFETY: the contract above is `put`'s contract.
            unsafe { put(fieldidp, index) };
            Ok(())
        })
    })
}

/// `int nc_inq_compound_fieldoffset(int ncid, nc_type xtype, int fieldid, size_t *offsetp);`
///
/// # Safety
/// As [`nc_inq_compound_field`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_compound_fieldoffset(
    ncid: c_int,
    xtype: NcType,
    fieldid: c_int,
    offsetp: *mut usize,
) -> c_int {
    let name = null();
    // SAFETY: same contract.
    unsafe { nc_inq_compound_field(ncid, xtype, fieldid, name, offsetp, null(), null(), null()) }
}

/// `int nc_inq_compound_fieldtype(int ncid, nc_type xtype, int fieldid, nc_type *field_typeidp);`
///
/// # Safety
/// As [`nc_inq_compound_field`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_compound_fieldtype(
    ncid: c_int,
    xtype: NcType,
    fieldid: c_int,
    field_typeidp: *mut NcType,
) -> c_int {
    let (name, to) = (null(), field_typeidp);
    // SAFETY: same contract.
    unsafe { nc_inq_compound_field(ncid, xtype, fieldid, name, null(), to, null(), null()) }
}

/// `int nc_inq_compound_fieldndims(int ncid, nc_type xtype, int fieldid, int *ndimsp);`
///
/// # Safety
/// As [`nc_inq_compound_field`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_compound_fieldndims(
    ncid: c_int,
    xtype: NcType,
    fieldid: c_int,
    ndimsp: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq_compound_field(ncid, xtype, fieldid, null(), null(), null(), ndimsp, null()) }
}

/// `int nc_inq_compound_fielddim_sizes(int ncid, nc_type xtype, int fieldid, int *dim_sizes);`
///
/// # Safety
/// As [`nc_inq_compound_field`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_compound_fielddim_sizes(
    ncid: c_int,
    xtype: NcType,
    fieldid: c_int,
    dim_sizes: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    unsafe {
        nc_inq_compound_field(ncid, xtype, fieldid, null(), null(), null(), null(), dim_sizes)
    }
}

/// `int nc_inq_vlen(int ncid, nc_type xtype, char *name, size_t *datum_sizep, nc_type *base_nc_typep);`
///
/// The size is that of an `nc_vlen_t`.
///
/// # Safety
/// Each pointer is null or valid for a write, `name` for `NC_MAX_NAME + 1` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_vlen(
    ncid: c_int,
    xtype: NcType,
    name: *mut c_char,
    datum_sizep: *mut usize,
    base_nc_typep: *mut NcType,
) -> c_int {
    let to = TypeAnswers { name, size: datum_sizep, base: base_nc_typep, ..NO_ANSWERS };
    // SAFETY: same contract.
    unsafe { inquire(ncid, xtype, Some(VLEN), to) }
}

/// `int nc_put_vlen_element(int ncid, int typeid, void *vlen_element, size_t len, const void *data);`
///
/// Makes the element point to `data`, whatever the type, as in the reference.
///
/// # Safety
/// `vlen_element` is null, or valid for a write of one `nc_vlen_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_put_vlen_element(
    ncid: c_int,
    type_id: c_int,
    vlen_element: *mut c_void,
    len: usize,
    data: *const c_void,
) -> c_int {
    to_user_format!(ncid, put_vlen_element(ncid, type_id, vlen_element, len, data));
    boundary(|| {
        if !handles::file(ncid)?.dataset.capabilities().user_types {
            return Err(NcError::NotNc4.into());
        }
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(vlen_element.cast::<NcVlen>(), NcVlen { len, p: data.cast_mut() }) };
        Ok(())
    })
}

/// `int nc_get_vlen_element(int ncid, int typeid, const void *vlen_element, size_t *len, void *data);`
///
/// Items have the size of the type's base type. (The reference takes 4 bytes for every type; of a
/// type that is no sequence, so does Zonda.)
///
/// # Safety
/// `vlen_element` is null or an `nc_vlen_t` that holds its items; `len` is null, or valid for a
/// write; `data` is null, or has room for the items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_get_vlen_element(
    ncid: c_int,
    type_id: c_int,
    vlen_element: *const c_void,
    len: *mut usize,
    data: *mut c_void,
) -> c_int {
    to_user_format!(ncid, get_vlen_element(ncid, type_id, vlen_element, len, data));
    /// What the reference takes for the size of every item.
    const FIXED: usize = 4;
    boundary(|| {
        let file = handles::file(ncid)?;
        if !file.dataset.capabilities().user_types {
            return Err(NcError::NotNc4.into());
        }
        if vlen_element.is_null() {
            return Err(NcError::Inval.into());
        }
        let size = file.meta(|meta| match meta.user_type(type_id).map(|ty| &ty.class) {
            Ok(UserClass::Vlen { base }) => meta.type_size(*base).unwrap_or(FIXED),
            _ => FIXED,
        })?;
        // SAFETY: not null, and the contract above.
        let element = unsafe { vlen_element.cast::<NcVlen>().read() };
        // SAFETY: the contract above.
        unsafe {
            put(len, element.len);
            if !data.is_null() && !element.p.is_null() {
                let n_bytes = element.len.saturating_mul(size);
                std::ptr::copy_nonoverlapping(element.p.cast::<u8>(), data.cast::<u8>(), n_bytes);
            }
        }
        Ok(())
    })
}

/// `int nc_inq_enum(int ncid, nc_type xtype, char *name, nc_type *base_nc_typep, size_t *base_sizep, size_t *num_membersp);`
///
/// # Safety
/// Each pointer is null or valid for a write, `name` for `NC_MAX_NAME + 1` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_enum(
    ncid: c_int,
    xtype: NcType,
    name: *mut c_char,
    base_nc_typep: *mut NcType,
    base_sizep: *mut usize,
    num_membersp: *mut usize,
) -> c_int {
    let to = TypeAnswers {
        name,
        size: base_sizep,
        base: base_nc_typep,
        n_fields: num_membersp,
        ..NO_ANSWERS
    };
    // SAFETY: same contract.
    unsafe { inquire(ncid, xtype, Some(ENUM), to) }
}

/// `int nc_inq_enum_member(int ncid, nc_type xtype, int idx, char *name, void *value);`
///
/// # Safety
/// `name` is null, or valid for `NC_MAX_NAME + 1` bytes; `value` is null, or has room for a value of
/// the base type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_enum_member(
    ncid: c_int,
    xtype: NcType,
    idx: c_int,
    name: *mut c_char,
    value: *mut c_void,
) -> c_int {
    to_user_format!(ncid, inq_enum_member(ncid, xtype, idx, name, value));
    boundary(|| {
        with_type(ncid, xtype, NcError::BadType, |ty| {
            let UserClass::Enum { members, .. } = &ty.class else { return Err(NcError::BadType) };
            let member = usize::try_from(idx).ok().and_then(|at| members.get(at));
            let (its_name, its_value) = member.ok_or(NcError::Inval)?;
            let n_bytes = its_value.len().min(ty.size);
            // SAFETY: the contract above; values have the size of the base type.
            unsafe {
                put_text(name, its_name);
                if !value.is_null() {
                    value.cast::<u8>().copy_from_nonoverlapping(its_value.as_ptr(), n_bytes);
                }
            }
            Ok(())
        })
    })
}

/// A value of an integer type as C's `long long`, unsigned ones of 64 bits by their bits.
fn as_longlong(base: NcType, bytes: &[u8]) -> Option<c_longlong> {
    Some(match ExtType::from_nc_type(base)? {
        ExtType::Byte | ExtType::Char => i8::from_ne_bytes(bytes.try_into().ok()?).into(),
        ExtType::UByte => u8::from_ne_bytes(bytes.try_into().ok()?).into(),
        ExtType::Short => i16::from_ne_bytes(bytes.try_into().ok()?).into(),
        ExtType::UShort => u16::from_ne_bytes(bytes.try_into().ok()?).into(),
        ExtType::Int => i32::from_ne_bytes(bytes.try_into().ok()?).into(),
        ExtType::UInt => u32::from_ne_bytes(bytes.try_into().ok()?).into(),
        ExtType::Int64 | ExtType::UInt64 => i64::from_ne_bytes(bytes.try_into().ok()?),
        ExtType::Float | ExtType::Double => return None,
    })
}

/// `int nc_inq_enum_ident(int ncid, nc_type xtype, long long value, char *identifier);`
///
/// `NC_EINVAL` for a value that has no name.
///
/// # Safety
/// `identifier` is null, or valid for `NC_MAX_NAME + 1` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_enum_ident(
    ncid: c_int,
    xtype: NcType,
    value: c_longlong,
    identifier: *mut c_char,
) -> c_int {
    to_user_format!(ncid, inq_enum_ident(ncid, xtype, value, identifier));
    boundary(|| {
        with_type(ncid, xtype, NcError::BadType, |ty| {
            let UserClass::Enum { base, members } = &ty.class else {
                return Err(NcError::BadType);
            };
            let named = members.iter().find(|(_, bytes)| as_longlong(*base, bytes) == Some(value));
            let (name, _) = named.ok_or(NcError::Inval)?;
            // SAFETY: the contract above is that of `put_text`.
            unsafe { put_text(identifier, name) };
            Ok(())
        })
    })
}

/// `int nc_inq_opaque(int ncid, nc_type xtype, char *name, size_t *sizep);`
///
/// # Safety
/// Each pointer is null or valid for a write, `name` for `NC_MAX_NAME + 1` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_opaque(
    ncid: c_int,
    xtype: NcType,
    name: *mut c_char,
    sizep: *mut usize,
) -> c_int {
    let to = TypeAnswers { name, size: sizep, ..NO_ANSWERS };
    // SAFETY: same contract.
    unsafe { inquire(ncid, xtype, Some(OPAQUE), to) }
}
