//! Attributes.

use std::ffi::{c_char, c_int, c_void};

use zonda::{
    AttAccess, AttPut, AttView, Destination, ExtType, MemType, NcError, Transfer, Values, VarId,
};

use crate::boundary::boundary;
use crate::c_memory::{CVlenSource, MallocSink, bytes, put, put_text, slice, slice_mut};
use crate::failure::{CallFailure, CallResult, range_result};
use crate::handles::{self, FileRef};
use crate::types::{NcType, STRING};
use crate::user_format::{member, members, to_user_format};
use crate::var::type_of_format;

/// The owner of an attribute must be a variable that exists, or the file.
fn check_owner(file: &FileRef, owner: VarId) -> CallResult {
    if owner != VarId::GLOBAL {
        file.meta(|meta| meta.var(owner).map(drop))??;
    }
    Ok(())
}

/// The name of an attribute to be looked up: a null one is refused once the owner is known.
///
/// # Safety
/// `name` is null or a NUL-terminated string.
unsafe fn att_name<'a>(
    file: &FileRef,
    owner: VarId,
    name: *const c_char,
) -> Result<&'a [u8], CallFailure> {
    // SAFETY: the contract above is that of `bytes`.
    if let Some(name) = unsafe { bytes(name) } {
        return Ok(name);
    }
    check_owner(file, owner)?;
    Err(NcError::BadName.into())
}

/// Calls `f` with an attribute and its number.
///
/// # Safety
/// `name` is null or a NUL-terminated string.
unsafe fn with_att(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    f: impl FnOnce(i32, &AttView<'_>),
) -> CallResult {
    let file = handles::file(ncid)?;
    // SAFETY: same contract.
    let name = unsafe { att_name(&file, VarId(varid), name)? };
    file.meta(|meta| meta.find_att(VarId(varid), name).map(|(number, att)| f(number, &att)))??;
    Ok(())
}

/// `int nc_inq_att(int ncid, int varid, const char *name, nc_type *xtypep, size_t *lenp);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; the others are null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_att(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    xtypep: *mut NcType,
    lenp: *mut usize,
) -> c_int {
    to_user_format!(ncid, inq_att(ncid, varid, name, xtypep, lenp));
    boundary(|| {
        // SAFETY: the contract above covers all of it.
        unsafe {
            with_att(ncid, varid, name, |_, att| {
                put(xtypep, att.nc_type);
                put(lenp, usize::try_from(att.len).unwrap_or(usize::MAX));
            })
        }
    })
}

/// `int nc_inq_atttype(int ncid, int varid, const char *name, nc_type *xtypep);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `xtypep` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_atttype(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    xtypep: *mut NcType,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq_att(ncid, varid, name, xtypep, std::ptr::null_mut()) }
}

/// `int nc_inq_attlen(int ncid, int varid, const char *name, size_t *lenp);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `lenp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_attlen(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    lenp: *mut usize,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq_att(ncid, varid, name, std::ptr::null_mut(), lenp) }
}

/// `int nc_inq_attid(int ncid, int varid, const char *name, int *idp);`
///
/// Reserved attributes that are found by their names only have no number: `NC_EATTMETA`.
///
/// # Safety
/// `name` is null or a NUL-terminated string; `idp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_attid(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    idp: *mut c_int,
) -> c_int {
    to_user_format!(ncid, inq_attid(ncid, varid, name, idp));
    boundary(|| {
        let mut number = 0;
        // SAFETY: the contract above is that of `with_att`.
        unsafe { with_att(ncid, varid, name, |found, _| number = found)? };
        if number < 0 && !idp.is_null() {
            return Err(NcError::AttMeta.into());
        }
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(idp, number) };
        Ok(())
    })
}

/// `int nc_inq_attname(int ncid, int varid, int attnum, char *name);`
///
/// # Safety
/// `name` is null, or valid for `NC_MAX_NAME + 1` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_attname(
    ncid: c_int,
    varid: c_int,
    attnum: c_int,
    name: *mut c_char,
) -> c_int {
    to_user_format!(ncid, inq_attname(ncid, varid, attnum, name));
    boundary(|| {
        let file = handles::file(ncid)?;
        let number = usize::try_from(attnum).unwrap_or(usize::MAX);
        file.meta(|meta| {
            // SAFETY: the contract above is that of `put_text`.
            meta.att(VarId(varid), number).map(|att| unsafe { put_text(name, &att.name) })
        })??;
        Ok(())
    })
}

/// `int nc_rename_att(int ncid, int varid, const char *name, const char *newname);`
///
/// # Safety
/// Both names are null or NUL-terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_rename_att(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    newname: *const c_char,
) -> c_int {
    to_user_format!(ncid, rename_att(ncid, varid, name, newname));
    boundary(|| {
        let file = handles::file(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let (name, newname) = unsafe { (bytes(name), bytes(newname)) };
        let (name, newname) = (name.ok_or(NcError::Inval)?, newname.ok_or(NcError::Inval)?);
        let renamed = file.dataset.rename_att(file.var(varid), name, newname);
        renamed.map_err(|error| file.failure(error))
    })
}

/// `int nc_del_att(int ncid, int varid, const char *name);`
///
/// # Safety
/// `name` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_del_att(ncid: c_int, varid: c_int, name: *const c_char) -> c_int {
    to_user_format!(ncid, del_att(ncid, varid, name));
    boundary(|| {
        let file = handles::file(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        file.dataset.del_att(file.var(varid), name).map_err(|error| file.failure(error))
    })
}

/// Makes the checks of a put without values that come before the values are looked at.
fn check_without_values(
    file: &FileRef,
    owner: VarId,
    (xtype, len, mem): (NcType, usize, Option<MemType>),
) -> CallResult {
    if !file.dataset.is_writable() {
        return Err(NcError::Perm.into());
    }
    check_owner(file, owner)?;
    let ty = type_of_format(file.dataset.format(), xtype).ok_or(NcError::BadType)?;
    if mem.is_some_and(|mem| (mem == MemType::Text) != (ty == ExtType::Char)) {
        return Err(NcError::Char.into());
    }
    if len != 0 { Err(NcError::Inval.into()) } else { Ok(()) }
}

/// # Safety
/// `name` is null or a NUL-terminated string; `values` is null or holds `len` values of type `mem`,
/// or of the natural type of `xtype`.
unsafe fn put_att(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    (xtype, len, mem): (NcType, usize, Option<MemType>),
    values: *const c_void,
) -> c_int {
    to_user_format!(ncid, |table| {
        let in_memory = mem.map_or(xtype, members::type_of);
        member!(table, put_att(ncid, varid, name, xtype, len, values, in_memory))
    });
    boundary(|| {
        let file = handles::file(ncid)?;
        let owner = VarId(varid);
        if file.dataset.capabilities().dialect.is_netcdf4() {
            check_owner(&file, owner)?;
        }
        // SAFETY: the contract above is that of `bytes`.
        let Some(name) = (unsafe { bytes(name) }) else {
            if !file.dataset.is_writable() {
                return Err(NcError::Perm.into());
            }
            check_owner(&file, owner)?;
            return Err(NcError::BadName.into());
        };
        if values.is_null() && !file.dataset.capabilities().dialect.is_netcdf4() {
            check_without_values(&file, owner, (xtype, len, mem))?;
        }
        let (owner, n_values) = (file.var(varid), len);
        let put = || {
            let att = AttPut { owner, name, nc_type: xtype, n_values, mem };
            let put = file.dataset.put_att_to(&att)?;
            if values.is_null() && put.n_bytes() != 0 {
                return Err(NcError::Inval.into());
            }
            // SAFETY: null only with length 0; else the contract above.
            let bytes = unsafe { slice(values.cast::<u8>(), put.n_bytes()) };
            // SAFETY: the contract above: values of that type.
            let mut memory = unsafe { CVlenSource::new() };
            put.write(Values { bytes, fetch: Some(&mut memory) })
        };
        range_result(put().map_err(|error| file.failure(error))?)
    })
}

/// # Safety
/// `name` is null or a NUL-terminated string; `values` is null or has room for all values.
unsafe fn get_att(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    mem: Option<MemType>,
    values: *mut c_void,
) -> c_int {
    to_user_format!(ncid, |table| match mem {
        Some(mem) => member!(table, get_att(ncid, varid, name, values, members::type_of(mem))),
        // SAFETY: same contract.
        None => unsafe { members::get_att(table, (ncid, varid), name, values) },
    });
    boundary(|| {
        let file = handles::file(ncid)?;
        // SAFETY: same contract.
        let name = unsafe { att_name(&file, VarId(varid), name)? };
        // SAFETY: same contract.
        unsafe { read(&file, varid, (name, mem), values.cast()) }
    })
}

/// Reads an attribute; strings and sequences into memory from `malloc`.
///
/// # Safety
/// `values` is null or has room for all values.
unsafe fn read(
    file: &FileRef,
    varid: c_int,
    (name, mem): (&[u8], Option<MemType>),
    values: *mut u8,
) -> CallResult {
    let mut att = Transfer::new(AttAccess { owner: file.var(varid), name, mem });
    let get = file.dataset.get_att_from(&mut att)?;
    if values.is_null() && get.n_bytes() != 0 {
        return Err(NcError::Inval.into());
    }
    // SAFETY: null only with length 0; else the contract above.
    let bytes = unsafe { slice_mut(values, get.n_bytes()) };
    let mut place = MallocSink::default();
    let converted = get.read(Destination { bytes, place: Some(&mut place) })?;
    place.keep();
    range_result(converted)
}

/// `int nc_put_att(int ncid, int varid, const char *name, nc_type xtype, size_t len,
/// const void *values);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `values` is null or holds `len` values of type
/// `xtype`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_put_att(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    xtype: NcType,
    len: usize,
    values: *const c_void,
) -> c_int {
    // SAFETY: same contract.
    unsafe { put_att(ncid, varid, name, (xtype, len, None), values) }
}

/// `int nc_get_att(int ncid, int varid, const char *name, void *values);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `values` is null or has room for all values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_get_att(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    values: *mut c_void,
) -> c_int {
    // SAFETY: same contract.
    unsafe { get_att(ncid, varid, name, None, values) }
}

/// `int nc_put_att_text(int ncid, int varid, const char *name, size_t len, const char *text);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `text` is null or holds `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_put_att_text(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    len: usize,
    text: *const c_char,
) -> c_int {
    let what = (ExtType::Char.nc_type(), len, Some(MemType::Text));
    // SAFETY: same contract.
    unsafe { put_att(ncid, varid, name, what, text.cast()) }
}

/// `int nc_get_att_text(int ncid, int varid, const char *name, char *text);`
///
/// No NUL is added.
///
/// # Safety
/// `name` is null or a NUL-terminated string; `text` is null or has room for the attribute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_get_att_text(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    text: *mut c_char,
) -> c_int {
    // SAFETY: same contract.
    unsafe { get_att(ncid, varid, name, Some(MemType::Text), text.cast()) }
}

/// `int nc_put_att_string(int ncid, int varid, const char *name, size_t len,
/// const char **strings);`
///
/// No classic file holds strings: `NC_EBADTYPE`, after what is checked before types.
///
/// # Safety
/// `name` is null or a NUL-terminated string; `strings` is null or holds `len` strings, each null or
/// NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_put_att_string(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    len: usize,
    strings: *const *const c_char,
) -> c_int {
    // SAFETY: same contract.
    unsafe { put_att(ncid, varid, name, (STRING, len, None), strings.cast()) }
}

/// `int nc_get_att_string(int ncid, int varid, const char *name, char **strings);`
///
/// `NC_ECHAR` for text, `NC_EBADTYPE` for all else but strings; an empty attribute can be read as
/// anything. The strings are the caller's, for `nc_free_string`.
///
/// # Safety
/// `name` is null or a NUL-terminated string; `strings` is null or has room for all values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_get_att_string(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    strings: *mut *mut c_char,
) -> c_int {
    to_user_format!(ncid, get_att(ncid, varid, name, strings.cast(), STRING));
    boundary(|| {
        let mut found = (0, 0);
        // SAFETY: the contract above is that of `with_att`.
        unsafe { with_att(ncid, varid, name, |_, att| found = (att.nc_type, att.len))? };
        let (nc_type, len) = found;
        if len == 0 {
            return Ok(());
        }
        if nc_type == ExtType::Char.nc_type() {
            return Err(NcError::Char.into());
        }
        if nc_type != STRING {
            return Err(NcError::BadType.into());
        }
        let file = handles::file(ncid)?;
        // SAFETY: same contract.
        let name = unsafe { att_name(&file, VarId(varid), name)? };
        // SAFETY: same contract.
        unsafe { read(&file, varid, (name, None), strings.cast()) }
    })
}

/// Makes the two functions of one C type: their names, the type, how its values lie in memory.
macro_rules! typed {
    ($($suffix:literal, $put:ident, $get:ident, $c:ty, $c_name:literal, $mem:ident;)*) => {$(
        #[doc = concat!("`int nc_put_att_", $suffix, "(int ncid, int varid, const char *name, ",
            "nc_type xtype, size_t len, const ", $c_name, " *values);`")]
        ///
        /// # Safety
        /// `name` is null or a NUL-terminated string; `values` is null or holds `len` values.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $put(
            ncid: c_int,
            varid: c_int,
            name: *const c_char,
            xtype: NcType,
            len: usize,
            values: *const $c,
        ) -> c_int {
            let what = (xtype, len, Some(MemType::$mem));
            // SAFETY: same contract.
            unsafe { put_att(ncid, varid, name, what, values.cast()) }
        }

        #[doc = concat!("`int nc_get_att_", $suffix, "(int ncid, int varid, const char *name, ",
            $c_name, " *values);`")]
        ///
        /// # Safety
        /// `name` is null or a NUL-terminated string; `values` is null or has room for all values.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(
            ncid: c_int,
            varid: c_int,
            name: *const c_char,
            values: *mut $c,
        ) -> c_int {
            // SAFETY: same contract.
            unsafe { get_att(ncid, varid, name, Some(MemType::$mem), values.cast()) }
        }
    )*};
}

use std::ffi as c;

typed! {
    "schar", nc_put_att_schar, nc_get_att_schar, c::c_schar, "signed char", I8;
    "uchar", nc_put_att_uchar, nc_get_att_uchar, c::c_uchar, "unsigned char", U8;
    "ubyte", nc_put_att_ubyte, nc_get_att_ubyte, c::c_uchar, "unsigned char", U8;
    "short", nc_put_att_short, nc_get_att_short, c::c_short, "short", I16;
    "ushort", nc_put_att_ushort, nc_get_att_ushort, c::c_ushort, "unsigned short", U16;
    "int", nc_put_att_int, nc_get_att_int, c::c_int, "int", I32;
    "uint", nc_put_att_uint, nc_get_att_uint, c::c_uint, "unsigned int", U32;
    "long", nc_put_att_long, nc_get_att_long, c::c_long, "long", I64;
    "longlong", nc_put_att_longlong, nc_get_att_longlong, c::c_longlong, "long long", I64;
    "ulonglong", nc_put_att_ulonglong, nc_get_att_ulonglong, c::c_ulonglong,
        "unsigned long long", U64;
    "float", nc_put_att_float, nc_get_att_float, c::c_float, "float", F32;
    "double", nc_put_att_double, nc_get_att_double, c::c_double, "double", F64;
}
