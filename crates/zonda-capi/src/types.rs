//! Types: the atomic ones, and the user-defined ones that classic files refuse.

use std::ffi::{c_char, c_int, c_longlong, c_void};

use zonda::{ExtType, NcError};

use crate::boundary::{boundary, put};
use crate::foreign::{bytes, put_text};
use crate::handles;

/// `nc_type` of a variable or attribute.
pub(crate) type NcType = c_int;

/// `NC_NAT`: not a type.
const NAT: NcType = 0;
/// `NC_STRING`: a `char *` of its own for each element; the last atomic type.
pub(crate) const STRING: NcType = 12;
/// Ids from here on belong to user-defined types.
pub(crate) const FIRST_USER_TYPE: NcType = 32;

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
/// Atomic types are known without a file: any `ncid` will do, as with the reference.
///
/// Atomic types are known without a file, so that `ncid` is not looked at, as in the reference;
/// user-defined ones are in no file that can be opened.
///
/// # Safety
/// `name` is null, or valid for `NC_MAX_NAME + 1` bytes; `size` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_type(
    _ncid: c_int,
    xtype: NcType,
    name: *mut c_char,
    size: *mut usize,
) -> c_int {
    boundary(|| {
        let (text, bytes) = atomic(xtype).ok_or(NcError::BadType)?;
        // SAFETY: type names are shorter than NC_MAX_NAME; the contract covers the rest.
        unsafe {
            put_text(name, text.as_bytes());
            put(size, bytes);
        }
        Ok(())
    })
}

/// `int nc_inq_type_equal(int ncid1, nc_type typeid1, int ncid2, nc_type typeid2, int *equal);`
///
/// For a classic file only the six types of the original format are ever equal, to themselves,
/// and the second file is not looked at: that is what the reference does.
///
/// # Safety
/// `equal` is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_type_equal(
    ncid1: c_int,
    typeid1: NcType,
    _ncid2: c_int,
    typeid2: NcType,
    equal: *mut c_int,
) -> c_int {
    boundary(|| {
        handles::file(ncid1)?;
        if equal.is_null() {
            return Ok(());
        }
        if typeid1 <= NAT || typeid2 <= NAT {
            return Err(NcError::Inval.into());
        }
        let same = typeid1 == typeid2 && typeid1 <= ExtType::Double.nc_type();
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(equal, c_int::from(same)) };
        Ok(())
    })
}

/// `int nc_inq_typeid(int ncid, const char *name, nc_type *typeidp);`
///
/// Knows the six types of the original format, and `undefined` as type 0. A null name is
/// `NC_EINVAL` (the reference crashes).
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
        handles::file(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        let found = if name == b"undefined" {
            Some(NAT)
        } else {
            (1..=ExtType::Double.nc_type())
                .find(|&code| atomic(code).is_some_and(|(text, _)| text.as_bytes() == name))
        };
        let code = found.ok_or(NcError::NotNc4)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(typeidp, code) };
        Ok(())
    })
}

/// Functions of user-defined types: a classic file has none and cannot get any.
macro_rules! user_types_only {
    ($($prototype:literal fn $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[doc = concat!("`", $prototype, "`")]
        ///
        /// User-defined types belong to netCDF-4: `NC_ENOTNC4` for a classic file.
        ///
        /// # Safety
        /// The pointers are not used.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(ncid: c_int, $($argument: $type),*) -> c_int {
            $( let _ = $argument; )*
            boundary(|| {
                handles::file(ncid)?;
                Err(NcError::NotNc4.into())
            })
        }
    )*};
}

user_types_only! {
    "int nc_inq_user_type(int ncid, nc_type xtype, char *name, size_t *size, nc_type *base_nc_typep, size_t *nfieldsp, int *classp);"
    fn nc_inq_user_type(xtype: NcType, name: *mut c_char, size: *mut usize, base: *mut NcType, nfields: *mut usize, class: *mut c_int);

    "int nc_def_compound(int ncid, size_t size, const char *name, nc_type *typeidp);"
    fn nc_def_compound(size: usize, name: *const c_char, typeidp: *mut NcType);
    "int nc_insert_compound(int ncid, nc_type xtype, const char *name, size_t offset, nc_type field_typeid);"
    fn nc_insert_compound(xtype: NcType, name: *const c_char, offset: usize, field_typeid: NcType);
    "int nc_insert_array_compound(int ncid, nc_type xtype, const char *name, size_t offset, nc_type field_typeid, int ndims, const int *dim_sizes);"
    fn nc_insert_array_compound(xtype: NcType, name: *const c_char, offset: usize, field_typeid: NcType, ndims: c_int, dim_sizes: *const c_int);
    "int nc_inq_compound(int ncid, nc_type xtype, char *name, size_t *sizep, size_t *nfieldsp);"
    fn nc_inq_compound(xtype: NcType, name: *mut c_char, sizep: *mut usize, nfieldsp: *mut usize);
    "int nc_inq_compound_name(int ncid, nc_type xtype, char *name);"
    fn nc_inq_compound_name(xtype: NcType, name: *mut c_char);
    "int nc_inq_compound_size(int ncid, nc_type xtype, size_t *sizep);"
    fn nc_inq_compound_size(xtype: NcType, sizep: *mut usize);
    "int nc_inq_compound_nfields(int ncid, nc_type xtype, size_t *nfieldsp);"
    fn nc_inq_compound_nfields(xtype: NcType, nfieldsp: *mut usize);
    "int nc_inq_compound_field(int ncid, nc_type xtype, int fieldid, char *name, size_t *offsetp, nc_type *field_typeidp, int *ndimsp, int *dim_sizesp);"
    fn nc_inq_compound_field(xtype: NcType, fieldid: c_int, name: *mut c_char, offsetp: *mut usize, field_typeidp: *mut NcType, ndimsp: *mut c_int, dim_sizesp: *mut c_int);
    "int nc_inq_compound_fieldname(int ncid, nc_type xtype, int fieldid, char *name);"
    fn nc_inq_compound_fieldname(xtype: NcType, fieldid: c_int, name: *mut c_char);
    "int nc_inq_compound_fieldindex(int ncid, nc_type xtype, const char *name, int *fieldidp);"
    fn nc_inq_compound_fieldindex(xtype: NcType, name: *const c_char, fieldidp: *mut c_int);
    "int nc_inq_compound_fieldoffset(int ncid, nc_type xtype, int fieldid, size_t *offsetp);"
    fn nc_inq_compound_fieldoffset(xtype: NcType, fieldid: c_int, offsetp: *mut usize);
    "int nc_inq_compound_fieldtype(int ncid, nc_type xtype, int fieldid, nc_type *field_typeidp);"
    fn nc_inq_compound_fieldtype(xtype: NcType, fieldid: c_int, field_typeidp: *mut NcType);
    "int nc_inq_compound_fieldndims(int ncid, nc_type xtype, int fieldid, int *ndimsp);"
    fn nc_inq_compound_fieldndims(xtype: NcType, fieldid: c_int, ndimsp: *mut c_int);
    "int nc_inq_compound_fielddim_sizes(int ncid, nc_type xtype, int fieldid, int *dim_sizes);"
    fn nc_inq_compound_fielddim_sizes(xtype: NcType, fieldid: c_int, dim_sizes: *mut c_int);

    "int nc_def_vlen(int ncid, const char *name, nc_type base_typeid, nc_type *xtypep);"
    fn nc_def_vlen(name: *const c_char, base_typeid: NcType, xtypep: *mut NcType);
    "int nc_inq_vlen(int ncid, nc_type xtype, char *name, size_t *datum_sizep, nc_type *base_nc_typep);"
    fn nc_inq_vlen(xtype: NcType, name: *mut c_char, datum_sizep: *mut usize, base_nc_typep: *mut NcType);
    "int nc_put_vlen_element(int ncid, int typeid, void *vlen_element, size_t len, const void *data);"
    fn nc_put_vlen_element(type_id: c_int, vlen_element: *mut c_void, len: usize, data: *const c_void);
    "int nc_get_vlen_element(int ncid, int typeid, const void *vlen_element, size_t *len, void *data);"
    fn nc_get_vlen_element(type_id: c_int, vlen_element: *const c_void, len: *mut usize, data: *mut c_void);

    "int nc_def_enum(int ncid, nc_type base_typeid, const char *name, nc_type *typeidp);"
    fn nc_def_enum(base_typeid: NcType, name: *const c_char, typeidp: *mut NcType);
    "int nc_insert_enum(int ncid, nc_type xtype, const char *name, const void *value);"
    fn nc_insert_enum(xtype: NcType, name: *const c_char, value: *const c_void);
    "int nc_inq_enum(int ncid, nc_type xtype, char *name, nc_type *base_nc_typep, size_t *base_sizep, size_t *num_membersp);"
    fn nc_inq_enum(xtype: NcType, name: *mut c_char, base_nc_typep: *mut NcType, base_sizep: *mut usize, num_membersp: *mut usize);
    "int nc_inq_enum_member(int ncid, nc_type xtype, int idx, char *name, void *value);"
    fn nc_inq_enum_member(xtype: NcType, idx: c_int, name: *mut c_char, value: *mut c_void);
    "int nc_inq_enum_ident(int ncid, nc_type xtype, long long value, char *identifier);"
    fn nc_inq_enum_ident(xtype: NcType, value: c_longlong, identifier: *mut c_char);

    "int nc_def_opaque(int ncid, size_t size, const char *name, nc_type *xtypep);"
    fn nc_def_opaque(size: usize, name: *const c_char, xtypep: *mut NcType);
    "int nc_inq_opaque(int ncid, nc_type xtype, char *name, size_t *sizep);"
    fn nc_inq_opaque(xtype: NcType, name: *mut c_char, sizep: *mut usize);
}
