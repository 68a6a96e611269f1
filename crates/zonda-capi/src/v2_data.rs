//! Data through the netCDF-2 interface: variables and whole records.
//!
//! Its `long` coordinates are `size_t` and `ptrdiff_t` on the platforms that Zonda knows, so that
//! arrays are handed on as they are.

use std::ffi::{c_int, c_long, c_void};

use zonda::{NcError, VarId};

use crate::boundary::boundary;
use crate::c_memory::put;
use crate::data_functions::{
    nc_get_var1, nc_get_vara, nc_get_varm, nc_get_vars, nc_put_var1, nc_put_vara, nc_put_varm,
    nc_put_vars,
};
use crate::handles;
use crate::types::{NcType, nctypelen};
use crate::user_format;
use crate::user_format::records::{self, RecordVar};
use crate::v2::{answer, fail};
use crate::var::{nc_inq_varndims, nc_inq_vartype};

const _: () = assert!(size_of::<c_long>() == size_of::<usize>());

/// `int ncvarput1(int ncid, int varid, const long *index, const void *value);`
///
/// # Safety
/// As `nc_put_var1`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncvarput1(
    ncid: c_int,
    varid: c_int,
    index: *const c_long,
    value: *const c_void,
) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_put_var1(ncid, varid, index.cast(), value) };
    answer("ncvarput1", ncid, status, 0)
}

/// `int ncvarget1(int ncid, int varid, const long *index, void *value);`
///
/// # Safety
/// As `nc_get_var1`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncvarget1(
    ncid: c_int,
    varid: c_int,
    index: *const c_long,
    value: *mut c_void,
) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_get_var1(ncid, varid, index.cast(), value) };
    // The reference's message names the wrong routine; scripts may know it.
    answer("ncdimid", ncid, status, 0)
}

/// `int ncvarput(int ncid, int varid, const long *start, const long *count, const void *value);`
///
/// # Safety
/// As `nc_put_vara`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncvarput(
    ncid: c_int,
    varid: c_int,
    start: *const c_long,
    count: *const c_long,
    value: *const c_void,
) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_put_vara(ncid, varid, start.cast(), count.cast(), value) };
    answer("ncvarput", ncid, status, 0)
}

/// `int ncvarget(int ncid, int varid, const long *start, const long *count, void *value);`
///
/// # Safety
/// As `nc_get_vara`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncvarget(
    ncid: c_int,
    varid: c_int,
    start: *const c_long,
    count: *const c_long,
    value: *mut c_void,
) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_get_vara(ncid, varid, start.cast(), count.cast(), value) };
    if status == 0 {
        return 0;
    }
    fail("ncvarget", status, format_args!("ncid {ncid}; varid {varid}"))
}

/// `int ncvarputs(int ncid, int varid, const long *start, const long *count, const long *stride, const void *value);`
///
/// # Safety
/// As `nc_put_vars`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncvarputs(
    ncid: c_int,
    varid: c_int,
    start: *const c_long,
    count: *const c_long,
    stride: *const c_long,
    value: *const c_void,
) -> c_int {
    if stride.is_null() {
        // SAFETY: same contract.
        return unsafe { ncvarput(ncid, varid, start, count, value) };
    }
    // SAFETY: same contract.
    let status =
        unsafe { nc_put_vars(ncid, varid, start.cast(), count.cast(), stride.cast(), value) };
    answer("ncvarputs", ncid, status, 0)
}

/// `int ncvargets(int ncid, int varid, const long *start, const long *count, const long *stride, void *value);`
///
/// # Safety
/// As `nc_get_vars`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncvargets(
    ncid: c_int,
    varid: c_int,
    start: *const c_long,
    count: *const c_long,
    stride: *const c_long,
    value: *mut c_void,
) -> c_int {
    if stride.is_null() {
        // SAFETY: same contract.
        return unsafe { ncvarget(ncid, varid, start, count, value) };
    }
    // SAFETY: same contract.
    let status =
        unsafe { nc_get_vars(ncid, varid, start.cast(), count.cast(), stride.cast(), value) };
    answer("ncvargets", ncid, status, 0)
}

/// An index map in elements, from one in bytes.
///
/// # Errors
/// The code of the inquiry that failed; it is returned as it is, without a message.
///
/// # Safety
/// `map` has one entry for each dimension of the variable.
unsafe fn map_in_elements(
    ncid: c_int,
    varid: c_int,
    map: *const c_long,
) -> Result<Vec<isize>, c_int> {
    let mut n_dims = 0;
    let mut xtype: NcType = 0;
    // SAFETY: results go to locals.
    let status = unsafe { nc_inq_varndims(ncid, varid, &raw mut n_dims) };
    if status != 0 {
        return Err(status);
    }
    // SAFETY: as above.
    let status = unsafe { nc_inq_vartype(ncid, varid, &raw mut xtype) };
    if status != 0 {
        return Err(status);
    }
    // Variables of open files have types with a length.
    let size = nctypelen(xtype).max(1) as isize;
    // SAFETY: below the number of dimensions.
    Ok((0..n_dims as usize).map(|d| unsafe { map.add(d).read() } as isize / size).collect())
}

/// A transfer through a map in bytes, and the answer of the call named.
///
/// # Safety
/// As [`map_in_elements`].
unsafe fn mapped(
    call: &str,
    (ncid, varid): (c_int, c_int),
    map: *const c_long,
    transfer: impl FnOnce(*const isize) -> c_int,
) -> c_int {
    // SAFETY: same contract.
    match unsafe { map_in_elements(ncid, varid, map) } {
        Ok(imap) => answer(call, ncid, transfer(imap.as_ptr()), 0),
        Err(status) => status,
    }
}

/// `int ncvarputg(int ncid, int varid, const long *start, const long *count, const long *stride, const long *map, const void *value);`
///
/// The map counts bytes, unlike that of `nc_put_varm`.
///
/// # Safety
/// As `nc_put_varm`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncvarputg(
    ncid: c_int,
    varid: c_int,
    start: *const c_long,
    count: *const c_long,
    stride: *const c_long,
    map: *const c_long,
    value: *const c_void,
) -> c_int {
    if map.is_null() {
        // SAFETY: same contract.
        return unsafe { ncvarputs(ncid, varid, start, count, stride, value) };
    }
    let (start, count, stride) = (start.cast(), count.cast(), stride.cast());
    // SAFETY: same contract; the map has an entry for each dimension.
    unsafe {
        mapped("ncvarputg", (ncid, varid), map, |imap| {
            nc_put_varm(ncid, varid, start, count, stride, imap, value)
        })
    }
}

/// `int ncvargetg(int ncid, int varid, const long *start, const long *count, const long *stride, const long *map, void *value);`
///
/// The map counts bytes, unlike that of `nc_get_varm`.
///
/// # Safety
/// As `nc_get_varm`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncvargetg(
    ncid: c_int,
    varid: c_int,
    start: *const c_long,
    count: *const c_long,
    stride: *const c_long,
    map: *const c_long,
    value: *mut c_void,
) -> c_int {
    if map.is_null() {
        // SAFETY: same contract.
        return unsafe { ncvargets(ncid, varid, start, count, stride, value) };
    }
    let (start, count, stride) = (start.cast(), count.cast(), stride.cast());
    // SAFETY: same contract; the map has an entry for each dimension.
    unsafe {
        mapped("ncvargetg", (ncid, varid), map, |imap| {
            nc_get_varm(ncid, varid, start, count, stride, imap, value)
        })
    }
}

/// The record variables of a file in order of definition; `None` without a record dimension.
fn record_vars(ncid: c_int) -> Result<Option<Vec<RecordVar>>, NcError> {
    if user_format::table_of(ncid).is_some() {
        return records::record_vars(ncid)
            .map_err(|code| NcError::from_code(code).unwrap_or(NcError::Internal));
    }
    let file = handles::file(ncid)?;
    let found = file.meta(|meta| {
        let Some(record_dim) = meta.unlimited() else { return Ok(None) };
        let mut found = Vec::new();
        for id in (0..meta.n_vars()).map_while(|n| c_int::try_from(n).ok()) {
            let var = meta.var(VarId(id))?;
            if var.dims.first() != Some(&record_dim) {
                continue;
            }
            let mut shape = vec![0; var.dims.len()];
            meta.var_shape(VarId(id), &mut shape)?;
            shape[0] = 1;
            let bytes = shape
                .iter()
                .fold(meta.type_size(var.nc_type)?, |size, &len| size.wrapping_mul(len));
            found.push(RecordVar { id, shape, bytes });
        }
        Ok(Some(found))
    });
    found.map_err(|failure| failure.code())?.map_err(|error: zonda::Error| error.code())
}

/// `int ncrecinq(int ncid, int *nrecvars, int *recvarids, long *recsizes);` Returns the number of
/// record variables.
///
/// # Safety
/// `nrecvars` is null, or valid for a write; the arrays are null, or have room for every record
/// variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncrecinq(
    ncid: c_int,
    nrecvars: *mut c_int,
    recvarids: *mut c_int,
    recsizes: *mut c_long,
) -> c_int {
    let mut n = 0;
    let status = boundary(|| {
        let vars = record_vars(ncid)?.unwrap_or_default();
        for (index, var) in vars.iter().enumerate() {
            // SAFETY: the arrays have room for every record variable.
            unsafe {
                if !recvarids.is_null() {
                    recvarids.add(index).write(var.id);
                }
                if !recsizes.is_null() {
                    // The reference computes record sizes in ints.
                    recsizes.add(index).write(c_long::from(var.bytes as c_int));
                }
            }
        }
        n = vars.len() as c_int;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(nrecvars, n) };
        Ok(())
    });
    answer("ncrecinq", ncid, status, n)
}

/// Does `transfer` for each record variable that has data in the caller's list.
///
/// # Safety
/// `datap` has an entry for each record variable.
unsafe fn each_record(
    ncid: c_int,
    recnum: c_long,
    datap: *const *mut c_void,
    transfer: impl Fn(c_int, *const usize, *const usize, *mut c_void) -> c_int,
) -> c_int {
    let mut status = 0;
    let found = boundary(|| {
        for (index, var) in record_vars(ncid)?.unwrap_or_default().iter().enumerate() {
            // SAFETY: `datap` has an entry for each record variable.
            let data = unsafe { datap.add(index).read() };
            if data.is_null() {
                continue;
            }
            let mut start = vec![0; var.shape.len()];
            start[0] = recnum as usize;
            status = transfer(var.id, start.as_ptr(), var.shape.as_ptr(), data);
            if status != 0 {
                break;
            }
        }
        Ok(())
    });
    if found == 0 { status } else { found }
}

/// `int ncrecput(int ncid, long recnum, void *const *datap);`
///
/// Writes one record of each record variable whose entry in `datap` is not null.
///
/// # Safety
/// `datap` has an entry for each record variable: null, or one record of its natural type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncrecput(ncid: c_int, recnum: c_long, datap: *const *mut c_void) -> c_int {
    // SAFETY: same contract; the arrays that are handed on have the variable's rank.
    let status = unsafe {
        each_record(ncid, recnum, datap, |varid, start, count, data| {
            nc_put_vara(ncid, varid, start, count, data)
        })
    };
    answer("ncrecput", ncid, status, 0)
}

/// `int ncrecget(int ncid, long recnum, void **datap);`
///
/// Reads one record of each record variable whose entry in `datap` is not null.
///
/// # Safety
/// As [`ncrecput`], with room for the records.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncrecget(ncid: c_int, recnum: c_long, datap: *mut *mut c_void) -> c_int {
    // SAFETY: same contract; the arrays that are handed on have the variable's rank.
    let status = unsafe {
        each_record(ncid, recnum, datap, |varid, start, count, data| {
            nc_get_vara(ncid, varid, start, count, data)
        })
    };
    answer("ncrecget", ncid, status, 0)
}
