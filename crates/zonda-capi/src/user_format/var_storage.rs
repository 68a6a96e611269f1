//! Chunk sizes as ints, for Fortran, of files of a program's own format.

use std::ffi::c_int;
use std::ptr::null;

use super::{NcDispatch, attempt, member};
use crate::c_memory::{put, put_list, slice};
use crate::var::nc_inq_varndims;
use crate::var_storage::{CHUNKED, nc_inq_var_chunking};

/// `nc_def_var_chunking_ints`.
///
/// # Safety
/// `ints` is null or holds a size per dimension.
pub(crate) unsafe fn def_chunking_ints(
    table: &NcDispatch,
    (ncid, varid): (c_int, c_int),
    storage: c_int,
    ints: *const c_int,
) -> c_int {
    let mut rank = 0;
    // SAFETY: the result goes to a local.
    attempt!(unsafe { nc_inq_varndims(ncid, varid, &raw mut rank) });
    let rank = usize::try_from(rank).unwrap_or(0);
    if ints.is_null() || rank == 0 {
        return member!(table, def_var_chunking(ncid, varid, storage, null()));
    }
    // SAFETY: the contract above.
    let ints = unsafe { slice(ints, rank) };
    let sizes: Vec<usize> = ints.iter().map(|&size| size as usize).collect();
    member!(table, def_var_chunking(ncid, varid, storage, sizes.as_ptr()))
}

/// `nc_inq_var_chunking_ints`.
///
/// # Safety
/// `storagep` is null, or valid for a write; `ints` is null, or has room for an int per dimension.
pub(crate) unsafe fn chunking_ints(
    (ncid, varid): (c_int, c_int),
    storagep: *mut c_int,
    ints: *mut c_int,
) -> c_int {
    let (mut rank, mut storage) = (0, 0);
    // SAFETY: the result goes to a local.
    attempt!(unsafe { nc_inq_varndims(ncid, varid, &raw mut rank) });
    let mut sizes = vec![0; usize::try_from(rank).unwrap_or(0)];
    // SAFETY: room for a size per dimension; the rest is the contract above.
    unsafe {
        attempt!(nc_inq_var_chunking(ncid, varid, &raw mut storage, sizes.as_mut_ptr()));
        put(storagep, storage);
        if storage == CHUNKED {
            put_list(ints, sizes.iter().map(|&len| c_int::try_from(len).unwrap_or(c_int::MAX)));
        }
    }
    0
}
