//! Members for tables of formats that lack a feature. They ignore their arguments and return one code.

use std::ffi::{c_char, c_float, c_int, c_longlong, c_uint, c_void};

use zonda_model::NcError;

use crate::table::{NcDispatch, NcType};

macro_rules! answer {
    ($(#[$doc:meta] $code:expr => { $($name:ident($($argument:ty),* $(,)?);)* })*) => {$($(
        #[$doc]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)] // the names of the reference
        pub extern "C" fn $name($(_: $argument),*) -> c_int {
            $code
        }
    )*)*};
}

answer! {
    /// A file that cannot be changed: `NC_EPERM`.
    NcError::Perm.code() => {
        NC_RO_create(
            *const c_char, c_int, usize, c_int, *mut usize, *mut c_void, *const NcDispatch, c_int,
        );
        NC_RO_redef(c_int);
        NC_RO_def_var_fill(c_int, c_int, c_int, *const c_void);
        NC_RO_rename_att(c_int, c_int, *const c_char, *const c_char);
        NC_RO_del_att(c_int, c_int, *const c_char);
        NC_RO_put_att(c_int, c_int, *const c_char, NcType, usize, *const c_void, NcType);
        NC_RO_def_var(c_int, *const c_char, NcType, c_int, *const c_int, *mut c_int);
        NC_RO_rename_var(c_int, c_int, *const c_char);
        NC_RO_put_vara(c_int, c_int, *const usize, *const usize, *const c_void, NcType);
        NC_RO_def_dim(c_int, *const c_char, usize, *mut c_int);
        NC_RO_rename_dim(c_int, c_int, *const c_char);
        NC_RO_set_fill(c_int, c_int, *mut c_int);
        NC_NOTNC4_def_var_chunking(c_int, c_int, c_int, *const usize);
    }
    /// A file that cannot be changed has nothing to write: `NC_NOERR`.
    0 => {
        NC_RO__enddef(c_int, usize, usize, usize, usize);
        NC_RO_sync(c_int);
    }
    /// No filters: `NC_ENOFILTER`.
    NcError::NoFilter.code() => {
        NC_NOOP_inq_var_filter_info(c_int, c_int, c_uint, *mut usize, *mut c_uint);
        NC_NOOP_inq_filter_avail(c_int, c_uint);
    }
    /// No netCDF-4 features, and no mapped access: `NC_ENOTNC4`.
    NcError::NotNc4.code() => {
        NC_NOTNC4_def_var_filter(c_int, c_int, c_uint, usize, *const c_uint);
        NC_NOTNC4_inq_var_filter_ids(c_int, c_int, *mut usize, *mut c_uint);
        NC_NOTNC4_inq_var_filter_info(c_int, c_int, c_uint, *mut usize, *mut c_uint);
        NC_NOTNC4_def_grp(c_int, *const c_char, *mut c_int);
        NC_NOTNC4_rename_grp(c_int, *const c_char);
        NC_NOTNC4_def_compound(c_int, usize, *const c_char, *mut NcType);
        NC_NOTNC4_insert_compound(c_int, NcType, *const c_char, usize, NcType);
        NC_NOTNC4_insert_array_compound(
            c_int, NcType, *const c_char, usize, NcType, c_int, *const c_int,
        );
        NC_NOTNC4_inq_typeid(c_int, *const c_char, *mut NcType);
        NC_NOTNC4_inq_compound_field(
            c_int, NcType, c_int, *mut c_char, *mut usize, *mut NcType, *mut c_int, *mut c_int,
        );
        NC_NOTNC4_inq_compound_fieldindex(c_int, NcType, *const c_char, *mut c_int);
        NC_NOTNC4_def_vlen(c_int, *const c_char, NcType, *mut NcType);
        NC_NOTNC4_put_vlen_element(c_int, c_int, *mut c_void, usize, *const c_void);
        NC_NOTNC4_get_vlen_element(c_int, c_int, *const c_void, *mut usize, *mut c_void);
        NC_NOTNC4_def_enum(c_int, NcType, *const c_char, *mut NcType);
        NC_NOTNC4_insert_enum(c_int, NcType, *const c_char, *const c_void);
        NC_NOTNC4_inq_enum_member(c_int, NcType, c_int, *mut c_char, *mut c_void);
        NC_NOTNC4_inq_enum_ident(c_int, NcType, c_longlong, *mut c_char);
        NC_NOTNC4_def_opaque(c_int, usize, *const c_char, *mut NcType);
        NC_NOTNC4_def_var_deflate(c_int, c_int, c_int, c_int, c_int);
        NC_NOTNC4_def_var_fletcher32(c_int, c_int, c_int);
        NC_NOTNC4_def_var_endian(c_int, c_int, c_int);
        NC_NOTNC4_set_var_chunk_cache(c_int, c_int, usize, usize, c_float);
        NC_NOTNC4_get_var_chunk_cache(c_int, c_int, *mut usize, *mut usize, *mut c_float);
        NC_NOTNC4_var_par_access(c_int, c_int, c_int);
        NC_NOTNC4_inq_ncid(c_int, *const c_char, *mut c_int);
        NC_NOTNC4_inq_grps(c_int, *mut c_int, *mut c_int);
        NC_NOTNC4_inq_grpname(c_int, *mut c_char);
        NC_NOTNC4_inq_grpname_full(c_int, *mut usize, *mut c_char);
        NC_NOTNC4_inq_grp_parent(c_int, *mut c_int);
        NC_NOTNC4_inq_grp_full_ncid(c_int, *const c_char, *mut c_int);
        NC_NOTNC4_inq_varids(c_int, *mut c_int, *mut c_int);
        NC_NOTNC4_inq_dimids(c_int, *mut c_int, *mut c_int, c_int);
        NC_NOTNC4_inq_typeids(c_int, *mut c_int, *mut c_int);
        NC_NOTNC4_inq_user_type(
            c_int, NcType, *mut c_char, *mut usize, *mut NcType, *mut usize, *mut c_int,
        );
        NC_NOTNC4_def_var_quantize(c_int, c_int, c_int, c_int);
        NC_NOTNC4_inq_var_quantize(c_int, c_int, *mut c_int, *mut c_int);
        NC_NOTNC3_get_varm(
            c_int, c_int, *const usize, *const usize, *const isize, *const isize, *mut c_void,
            NcType,
        );
        NC_NOTNC3_put_varm(
            c_int, c_int, *const usize, *const usize, *const isize, *const isize, *const c_void,
            NcType,
        );
    }
}

/// No filters, and that is no error.
///
/// # Safety
/// `nfilters` is null, or valid for a write.
#[unsafe(no_mangle)]
#[allow(non_snake_case)] // the name of the reference
pub unsafe extern "C" fn NC_NOOP_inq_var_filter_ids(
    _ncid: c_int,
    _varid: c_int,
    nfilters: *mut usize,
    _filterids: *mut c_uint,
) -> c_int {
    if !nfilters.is_null() {
        // SAFETY: not null, and the contract above.
        unsafe { nfilters.write(0) };
    }
    0
}
