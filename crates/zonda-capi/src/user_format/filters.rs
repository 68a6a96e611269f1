//! Calls about filters that are no single member of a table: a sequence of other calls, in the order in
//! which the reference makes them.

use std::ffi::{c_int, c_uint};
use std::ptr::null_mut;

use zonda::{NcError, memory};

use super::members::{VarProperty, var_property};
use super::{NcDispatch, attempt, member};
use crate::c_memory::put;
use crate::filter::{nc_inq_filter_avail, nc_inq_var_filter_ids, nc_inq_var_filter_info};
use crate::types::{STRING, VLEN};
use crate::user_types::nc_inq_user_type;
use crate::var::nc_inq_vartype;

const DEFLATE: c_uint = 1;
const SZIP: c_uint = 4;

/// `nc_def_var_filter`: variables whose elements have no fixed size get none.
///
/// # Safety
/// `params` is null or holds `nparams` numbers.
pub(crate) unsafe fn def_filter(
    table: &NcDispatch,
    (ncid, varid): (c_int, c_int),
    id: c_uint,
    nparams: usize,
    params: *const c_uint,
) -> c_int {
    let (mut xtype, mut class) = (0, 0);
    // SAFETY: the results go to locals; null ones are not asked for.
    unsafe {
        attempt!(nc_inq_vartype(ncid, varid, &raw mut xtype));
        if xtype > STRING {
            let none = null_mut();
            let class = &raw mut class;
            attempt!(nc_inq_user_type(
                ncid,
                xtype,
                none,
                null_mut(),
                null_mut(),
                null_mut(),
                class
            ));
        }
    }
    if xtype == STRING || class == VLEN {
        return NcError::Filter.code();
    }
    member!(table, def_var_filter(ncid, varid, id, nparams, params))
}

/// `nc_inq_var_filter`: the first filter.
///
/// # Safety
/// Each pointer is null or valid for its result.
pub(crate) unsafe fn inq_filter(
    (ncid, varid): (c_int, c_int),
    idp: *mut c_uint,
    nparamsp: *mut usize,
    params: *mut c_uint,
) -> c_int {
    let mut n = 0_usize;
    // SAFETY: the results go to locals with room for them; the rest is the contract above.
    unsafe {
        attempt!(nc_inq_var_filter_ids(ncid, varid, &raw mut n, null_mut()));
        let mut ids = vec![0; n];
        if n != 0 {
            attempt!(nc_inq_var_filter_ids(ncid, varid, &raw mut n, ids.as_mut_ptr()));
            attempt!(nc_inq_var_filter_info(ncid, varid, ids[0], nparamsp, params));
        }
        put(idp, ids.first().copied().unwrap_or(0));
    }
    0
}

/// The number of the parameters of a filter, and the first `N`; `None` where the variable does not have it.
/// As in the reference, one call asks for number and parameters of deflate and szip (`at_once`); of other
/// filters, the number is asked for first.
///
/// # Errors
/// The code of the inquiry.
fn params_of<const N: usize>(
    (ncid, varid): (c_int, c_int),
    id: c_uint,
    at_once: bool,
) -> Result<Option<(usize, [c_uint; N])>, c_int> {
    /// More parameters than any filter has.
    const MANY_PARAMS: usize = 1024;
    let mut n = 0_usize;
    let mut params = vec![0; MANY_PARAMS];
    if !at_once {
        // SAFETY: the number goes to a local.
        match unsafe { nc_inq_var_filter_info(ncid, varid, id, &raw mut n, null_mut()) } {
            0 => memory::lengthen(&mut params, n.max(N), 0).map_err(|_| NcError::NoMem.code())?,
            code if code == NcError::NoFilter.code() => return Ok(None),
            code => return Err(code),
        }
    }
    // SAFETY: room for as many as there are.
    match unsafe { nc_inq_var_filter_info(ncid, varid, id, &raw mut n, params.as_mut_ptr()) } {
        0 => Ok(params.first_chunk().map(|first| (n, *first))),
        code if code == NcError::NoFilter.code() => Ok(None),
        code => Err(code),
    }
}

/// `nc_inq_var_deflate`.
///
/// # Safety
/// Each pointer is null, or valid for a write.
pub(crate) unsafe fn deflate(
    table: &NcDispatch,
    var: (c_int, c_int),
    shufflep: *mut c_int,
    deflatep: *mut c_int,
    levelp: *mut c_int,
) -> c_int {
    let found = match params_of::<1>(var, DEFLATE, true) {
        Ok(Some((n, _))) if n != 1 => return NcError::Filter.code(),
        Ok(found) => found.map(|(_, [level])| level),
        // No netCDF-4, no filters.
        Err(code) if code == NcError::NotNc4.code() => {
            // SAFETY: the contract above is `put`'s contract.
            unsafe {
                put(shufflep, 0);
                put(deflatep, 0);
                put(levelp, 0);
            }
            return 0;
        }
        Err(code) => return code,
    };
    // SAFETY: the contract above is `put`'s contract.
    unsafe {
        put(deflatep, c_int::from(found.is_some()));
        put(levelp, found.unwrap_or(0).cast_signed());
        if shufflep.is_null() {
            0
        } else {
            var_property(table, var, VarProperty::Shuffle(shufflep))
        }
    }
}

/// `nc_inq_var_szip`.
///
/// # Safety
/// Each pointer is null, or valid for a write.
pub(crate) unsafe fn szip(var: (c_int, c_int), maskp: *mut c_int, pixelsp: *mut c_int) -> c_int {
    let [mask, pixels] = match params_of::<2>(var, SZIP, true) {
        Ok(Some((n, _))) if n < 2 => return NcError::Filter.code(),
        Ok(found) => found.map_or([0; 2], |(_, params)| params),
        Err(code) if code == NcError::NotNc4.code() => [0; 2],
        Err(code) => return code,
    };
    // SAFETY: the contract above is `put`'s contract.
    unsafe {
        put(maskp, mask.cast_signed());
        put(pixelsp, pixels.cast_signed());
    }
    0
}

/// A filter that has a function of its own; `valid` says whether its parameters are.
pub(crate) fn def_named_filter(
    table: &NcDispatch,
    (ncid, varid): (c_int, c_int),
    id: c_uint,
    valid: bool,
    params: &[c_uint],
) -> c_int {
    attempt!(nc_inq_filter_avail(ncid, id));
    if !valid {
        return NcError::Inval.code();
    }
    // SAFETY: as many parameters as there are.
    unsafe { def_filter(table, (ncid, varid), id, params.len(), params.as_ptr()) }
}

/// Calls `put_found` with the parameters of a filter that has a function of its own and exactly `N`
/// parameters; `NC_EFILTER` where it has another number of them.
pub(crate) fn named_filter<const N: usize>(
    (ncid, varid): (c_int, c_int),
    id: c_uint,
    put_found: impl FnOnce(Option<[c_uint; N]>),
) -> c_int {
    attempt!(nc_inq_filter_avail(ncid, id));
    match params_of::<N>((ncid, varid), id, false) {
        Ok(Some((n, _))) if n != N => return NcError::Filter.code(),
        Ok(found) => put_found(found.map(|(_, params)| params)),
        Err(code) => return code,
    }
    0
}
