//! Record variables of a file of a program's own format, for the netCDF-2 functions that move records.

use std::ffi::c_int;
use std::ptr::null_mut;

use super::MAX_DIMS;
use crate::dim::nc_inq_dimlen;
use crate::file::{nc_inq_nvars, nc_inq_unlimdim};
use crate::types::nc_inq_type;
use crate::var::nc_inq_var;

/// A record variable: its id, the shape of one record (first length 1), bytes of one record.
pub(crate) struct RecordVar {
    pub(crate) id: c_int,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: usize,
}

/// The record variables of a file; `None` without a record dimension.
///
/// # Errors
/// The code of an inquiry.
pub(crate) fn record_vars(ncid: c_int) -> Result<Option<Vec<RecordVar>>, c_int> {
    let check = |code| if code == 0 { Ok(()) } else { Err(code) };
    let (mut unlimited, mut n_vars) = (-1, 0);
    let mut found = Vec::new();
    // SAFETY: the results go to locals with room for them.
    unsafe {
        check(nc_inq_unlimdim(ncid, &raw mut unlimited))?;
        if unlimited < 0 {
            return Ok(None);
        }
        check(nc_inq_nvars(ncid, &raw mut n_vars))?;
        for id in 0..n_vars {
            let (mut xtype, mut rank, mut size) = (0, 0, 0_usize);
            let mut dims = vec![0; MAX_DIMS];
            let (none, xtype_at) = (null_mut(), &raw mut xtype);
            let (rank_at, dims_at) = (&raw mut rank, dims.as_mut_ptr());
            check(nc_inq_var(ncid, id, none, xtype_at, rank_at, dims_at, null_mut()))?;
            dims.truncate(usize::try_from(rank).unwrap_or(0));
            if dims.first() != Some(&unlimited) {
                continue;
            }
            let mut shape = vec![1_usize; dims.len()];
            for (dim, len) in dims.iter().zip(&mut shape).skip(1) {
                check(nc_inq_dimlen(ncid, *dim, len))?;
            }
            check(nc_inq_type(ncid, xtype, null_mut(), &raw mut size))?;
            let bytes = shape.iter().fold(size, |size, &len| size.wrapping_mul(len));
            found.push(RecordVar { id, shape, bytes });
        }
    }
    Ok(Some(found))
}
