//! `nc_copy_att` and `nc_copy_var` from or to a file of a program's own format: a sequence of other calls,
//! in the order in which the reference makes them, since a table may count or refuse any of them.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use zonda::{MAX_NAME_BYTES, NcError, memory};

use super::{MAX_DIMS, attempt};
use crate::att::{nc_get_att, nc_inq_att, nc_inq_attname, nc_put_att};
use crate::data_functions::{nc_get_vara, nc_put_vara};
use crate::dim::{nc_inq_dim, nc_inq_dimid};
use crate::file::{nc_enddef, nc_redef};
use crate::types::{FIRST_USER_TYPE, NcType, nc_inq_type, nc_inq_typeid};
use crate::user_types::nc_inq_user_type;
use crate::values::nc_reclaim_data;
use crate::var::{nc_def_var, nc_inq_var};

/// Bytes of a name with its NUL.
const NAME_BYTES: usize = MAX_NAME_BYTES + 1;

/// The type of another file that stands for one of this: of a user-defined one, that of its name.
fn type_in(ncid: c_int, xtype: NcType, other: c_int) -> Result<NcType, c_int> {
    if xtype < FIRST_USER_TYPE || ncid & !0xffff == other & !0xffff {
        return Ok(xtype);
    }
    let mut name = [0; NAME_BYTES];
    let mut found = 0;
    let none = null_mut();
    // SAFETY: the results go to locals with room for them.
    let code = unsafe {
        let named =
            nc_inq_user_type(ncid, xtype, name.as_mut_ptr(), none, none.cast(), none, none.cast());
        if named == 0 { nc_inq_typeid(other, name.as_ptr(), &raw mut found) } else { named }
    };
    match code {
        0 => Ok(found),
        _ => Err(NcError::BadType.code()),
    }
}

/// Elements that are read from one file and then written to another.
struct ElementBlock {
    ncid: c_int,
    xtype: NcType,
    bytes: Vec<u64>,
    count: usize,
}

impl ElementBlock {
    fn new(ncid: c_int, xtype: NcType, count: usize) -> Result<ElementBlock, c_int> {
        let mut size = 0_usize;
        // SAFETY: the size goes to a local.
        match unsafe { nc_inq_type(ncid, xtype, null_mut(), &raw mut size) } {
            0 => {}
            code => return Err(code),
        }
        // In words, for the alignment of what the elements may hold; at least one, so that there is
        // an address.
        let words = size.checked_mul(count).ok_or(NcError::NoMem.code())? / 8 + 1;
        let bytes = memory::filled(words, 0).map_err(|_| NcError::NoMem.code())?;
        Ok(ElementBlock { ncid, xtype, bytes, count })
    }

    fn at(&mut self) -> *mut c_void {
        self.bytes.as_mut_ptr().cast()
    }

    /// Writes the elements if they could be read, and frees what they own.
    fn write(&mut self, got: c_int, put: impl FnOnce(*const c_void) -> c_int) -> c_int {
        attempt!(got);
        let answer = put(self.at());
        let (ncid, xtype, count) = (self.ncid, self.xtype, self.count);
        // SAFETY: elements that the call before filled in.
        let freed = unsafe { nc_reclaim_data(ncid, xtype, self.at(), count) };
        if answer == 0 { freed } else { answer }
    }
}

/// `nc_copy_att` from or to a file of a program's own format.
///
/// # Safety
/// `name` is null or a NUL-terminated string.
pub(crate) unsafe fn copy_att(
    (ncid, varid): (c_int, c_int),
    name: *const c_char,
    (ncid_out, varid_out): (c_int, c_int),
) -> c_int {
    if (ncid, varid) == (ncid_out, varid_out) {
        return 0;
    }
    let (mut xtype, mut len) = (0, 0_usize);
    // SAFETY: the results go to locals with room for them; the rest is the contract above.
    unsafe {
        attempt!(nc_inq_att(ncid, varid, name, &raw mut xtype, &raw mut len));
        let made = type_in(ncid, xtype, ncid_out)
            .and_then(|out| Ok((out, ElementBlock::new(ncid, xtype, len)?)));
        let (out_type, mut block) = match made {
            Ok(made) => made,
            Err(code) => return code,
        };
        let got = nc_get_att(ncid, varid, name, block.at());
        block.write(got, |values| nc_put_att(ncid_out, varid_out, name, out_type, len, values))
    }
}

/// `nc_copy_var` from or to a file of a program's own format, one index of the first dimension at a
/// time.
pub(crate) fn copy_var((ncid, varid): (c_int, c_int), ncid_out: c_int) -> c_int {
    let mut name = [0; NAME_BYTES];
    let (mut xtype, mut rank, mut n_atts, mut id) = (0, 0, 0, 0);
    let mut dims = vec![0; MAX_DIMS];
    // SAFETY: here and below, the results go to locals with room for them.
    unsafe {
        let (rank, n_atts) = (&raw mut rank, &raw mut n_atts);
        let (name, xtype) = (name.as_mut_ptr(), &raw mut xtype);
        attempt!(nc_inq_var(ncid, varid, name, xtype, rank, dims.as_mut_ptr(), n_atts));
    }
    dims.truncate(usize::try_from(rank).unwrap_or(0));
    let mut shape = vec![0_usize; dims.len()];
    for (dim, len) in dims.iter_mut().zip(&mut shape) {
        let mut dim_name = [0; NAME_BYTES];
        // SAFETY: as above.
        unsafe {
            attempt!(nc_inq_dim(ncid, *dim, dim_name.as_mut_ptr(), len));
            attempt!(nc_inq_dimid(ncid_out, dim_name.as_ptr(), dim));
        }
    }
    let (_, row) = shape.split_first().unwrap_or((&1, &[]));
    let row_len = row.iter().fold(1_usize, |n, &len| n.saturating_mul(len));
    let made = type_in(ncid, xtype, ncid_out)
        .and_then(|out| Ok((out, ElementBlock::new(ncid, xtype, row_len)?)));
    let (out_type, mut block) = match made {
        Ok(made) => made,
        Err(code) => return code,
    };
    match nc_redef(ncid_out) {
        code if code == NcError::InDefine.code() => {}
        code => attempt!(code),
    }
    // SAFETY: as above.
    unsafe {
        let (name, dims) = (name.as_ptr(), dims.as_ptr());
        attempt!(nc_def_var(ncid_out, name, out_type, rank, dims, &raw mut id));
        for number in 0..n_atts {
            let mut att = [0; NAME_BYTES];
            attempt!(nc_inq_attname(ncid, varid, number, att.as_mut_ptr()));
            attempt!(copy_att((ncid, varid), att.as_ptr(), (ncid_out, id)));
        }
    }
    attempt!(nc_enddef(ncid_out));
    let mut start = vec![0; shape.len().max(1)];
    let mut count = shape.clone();
    let n_rows = count.first_mut().map_or(1, |first| std::mem::replace(first, 1));
    for index in 0..n_rows {
        start[0] = index;
        let (start, count) = (start.as_ptr(), count.as_ptr());
        // SAFETY: one value per dimension, and room for a row.
        unsafe {
            let got = nc_get_vara(ncid, varid, start, count, block.at());
            attempt!(block.write(got, |values| nc_put_vara(ncid_out, id, start, count, values)));
        }
    }
    0
}
