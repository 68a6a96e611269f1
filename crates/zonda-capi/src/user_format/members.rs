//! Calls that are one member of a table, with arguments that the call itself does not have.

use std::ffi::{c_char, c_float, c_int, c_void};
use std::ptr::null_mut;

use zonda::{MemType, NcError};

use super::{NcDispatch, attempt, member};
use crate::types::NcType;

/// The type in memory, as tables get it.
pub(crate) fn type_of(mem: MemType) -> NcType {
    mem.natural_ext().nc_type()
}

/// `nc_get_att`: with the type of the attribute, which is asked for first.
///
/// # Safety
/// That of `nc_get_att`.
pub(crate) unsafe fn get_att(
    table: &NcDispatch,
    (ncid, varid): (c_int, c_int),
    name: *const c_char,
    values: *mut c_void,
) -> c_int {
    let mut xtype: NcType = 0;
    attempt!(member!(table, inq_att(ncid, varid, name, &raw mut xtype, null_mut())));
    member!(table, get_att(ncid, varid, name, values, xtype))
}

/// `nc_inq_var`.
///
/// # Safety
/// That of `nc_inq_var`.
pub(crate) unsafe fn inq_var(
    table: &NcDispatch,
    (ncid, varid): (c_int, c_int),
    name: *mut c_char,
    xtypep: *mut NcType,
    (ndimsp, dimidsp, nattsp): (*mut c_int, *mut c_int, *mut c_int),
) -> c_int {
    let none = null_mut::<c_int>();
    let (sizes, value) = (null_mut(), null_mut());
    let (id, n_params, params) = (null_mut(), null_mut(), null_mut());
    member!(
        table,
        inq_var_all(
            ncid, varid, name, xtypep, ndimsp, dimidsp, nattsp, none, none, none, none, none,
            sizes, none, value, none, id, n_params, params,
        )
    )
}

/// `nc_inq_user_type`, and the inquiries of one class: for a type of another class they return
/// `NC_EBADTYPE` after their answers.
///
/// # Safety
/// That of `nc_inq_user_type`.
pub(crate) unsafe fn inq_user_type(
    table: &NcDispatch,
    (ncid, xtype): (c_int, NcType),
    class: Option<c_int>,
    to: TypeAnswers,
) -> c_int {
    let mut its_class = 0;
    let class_at = if class.is_some() { &raw mut its_class } else { to.class };
    let (name, size, base, n) = (to.name, to.size, to.base, to.n_fields);
    match member!(table, inq_user_type(ncid, xtype, name, size, base, n, class_at)) {
        0 if class.is_some_and(|class| class != its_class) => NcError::BadType.code(),
        answer => answer,
    }
}

/// Where `nc_inq_user_type` puts its answers; all may be null.
pub(crate) struct TypeAnswers {
    pub(crate) name: *mut c_char,
    pub(crate) size: *mut usize,
    pub(crate) base: *mut NcType,
    pub(crate) n_fields: *mut usize,
    pub(crate) class: *mut c_int,
}

/// No answer is asked for.
pub(crate) const NO_ANSWERS: TypeAnswers = TypeAnswers {
    name: std::ptr::null_mut(),
    size: std::ptr::null_mut(),
    base: std::ptr::null_mut(),
    n_fields: std::ptr::null_mut(),
    class: std::ptr::null_mut(),
};

/// What single inquiries ask of `inq_var_all`, and where it goes.
pub(crate) enum VarProperty {
    Shuffle(*mut c_int),
    Fletcher32(*mut c_int),
    Chunking(*mut c_int, *mut usize),
    Fill(*mut c_int, *mut c_void),
    Endian(*mut c_int),
}

/// Asks `inq_var_all` of a table for one property of a variable.
///
/// # Safety
/// The pointers are null, or valid for what is asked.
pub(crate) unsafe fn var_property(
    table: &NcDispatch,
    (ncid, varid): (c_int, c_int),
    property: VarProperty,
) -> c_int {
    let none = null_mut::<c_int>();
    let (mut shuffle, mut fletcher32, mut storage, mut chunks) = (none, none, none, null_mut());
    let (mut no_fill, mut fill, mut endian) = (none, null_mut(), none);
    match property {
        VarProperty::Shuffle(to) => shuffle = to,
        VarProperty::Fletcher32(to) => fletcher32 = to,
        VarProperty::Chunking(to, sizes) => (storage, chunks) = (to, sizes),
        VarProperty::Fill(to, value) => (no_fill, fill) = (to, value),
        VarProperty::Endian(to) => endian = to,
    }
    let (name, xtype) = (null_mut(), null_mut());
    let (id, n_params, params) = (null_mut(), null_mut(), null_mut());
    member!(
        table,
        inq_var_all(
            ncid, varid, name, xtype, none, none, none, shuffle, none, none, fletcher32, storage,
            chunks, no_fill, fill, endian, id, n_params, params,
        )
    )
}

/// Calls `put_cache` with bytes, slots and preemption of the chunk cache of a variable.
pub(crate) fn chunk_cache(
    table: &NcDispatch,
    (ncid, varid): (c_int, c_int),
    put_cache: impl FnOnce(usize, usize, c_float),
) -> c_int {
    let (mut bytes, mut slots, mut preemption) = (0, 0, 0.0);
    let to = (&raw mut bytes, &raw mut slots, &raw mut preemption);
    attempt!(member!(table, get_var_chunk_cache(ncid, varid, to.0, to.1, to.2)));
    put_cache(bytes, slots, preemption);
    0
}
