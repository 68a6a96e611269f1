//! Calls that are no single member of a table: said in terms of other calls, in the order in which the
//! reference makes them, since a table may count or refuse any of them.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use zonda::{Field, MAX_NAME_BYTES, NcError, UserClass, UserType, memory};

use crate::att::{nc_get_att, nc_inq_att, nc_inq_attname, nc_put_att};
use crate::dim::{nc_inq_dim, nc_inq_dimid, nc_inq_dimlen};
use crate::file::{nc_enddef, nc_inq_nvars, nc_inq_unlimdim, nc_redef};
use crate::types::{FIRST_USER_TYPE, NcType, VLEN, nc_inq_type, nc_inq_typeid};
use crate::user_types::{COMPOUND, TypeAnswers, nc_inq_compound_field, nc_inq_user_type};
use crate::values::nc_reclaim_data;
use crate::var::{nc_def_var, nc_get_vara, nc_inq_var, nc_put_vara};

use super::{NcDispatch, member};

/// Bytes of a name with its NUL.
const NAME_ROOM: usize = MAX_NAME_BYTES + 1;
/// `NC_MAX_VAR_DIMS`: what callers make room for who do not ask.
const MAX_DIMS: usize = 1024;

/// Ends the function with the code of a call that failed.
macro_rules! attempt {
    ($call:expr) => {
        match $call {
            0 => {}
            code => return code,
        }
    };
}
pub(super) use attempt;

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

/// `nc_inq_user_type` and the inquiries of one class, which say afterwards that a type is of another.
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

/// The user-defined types that a type is made of, itself included, by their numbers; those in between
/// are unknown.
///
/// # Errors
/// The code of an inquiry.
pub(crate) fn types_of(ncid: c_int, xtype: NcType) -> Result<Vec<UserType>, c_int> {
    /// More user-defined types than a file can have.
    const TOO_MANY: usize = 1 << 16;
    let mut types: Vec<UserType> = Vec::new();
    let mut asked = std::collections::BTreeSet::new();
    let mut waiting = vec![xtype];
    while let Some(number) = waiting.pop() {
        let Ok(index) = usize::try_from(i64::from(number) - i64::from(FIRST_USER_TYPE)) else {
            continue;
        };
        if index >= TOO_MANY {
            return Err(NcError::BadType.code());
        }
        if !asked.insert(number) {
            continue;
        }
        let (mut size, mut n_fields, mut base, mut class) = (0_usize, 0_usize, 0, 0);
        let (name, class_at) = (null_mut(), &raw mut class);
        let (size_at, base_at, n_at) = (&raw mut size, &raw mut base, &raw mut n_fields);
        // SAFETY: the results go to locals.
        match unsafe { nc_inq_user_type(ncid, number, name, size_at, base_at, n_at, class_at) } {
            0 => {}
            code => return Err(code),
        }
        let class = match class {
            COMPOUND => UserClass::Compound(fields_of(ncid, number, n_fields)?),
            VLEN => UserClass::Vlen { base },
            // Their values own nothing.
            _ => UserClass::Opaque,
        };
        match &class {
            UserClass::Compound(fields) => waiting.extend(fields.iter().map(|field| field.nc_type)),
            _ => waiting.push(base),
        }
        while types.len() <= index {
            types.push(UserType::described(0, UserClass::Unknown));
        }
        types[index] = UserType::described(size, class);
    }
    Ok(types)
}

fn fields_of(ncid: c_int, xtype: NcType, n: usize) -> Result<Vec<Field>, c_int> {
    let mut fields = Vec::new();
    for index in (0..n).map_while(|n| c_int::try_from(n).ok()) {
        let (mut offset, mut nc_type, mut n_dims) = (0_usize, 0, 0);
        let mut dims = vec![0; MAX_DIMS];
        let (offset_at, type_at, n_at) = (&raw mut offset, &raw mut nc_type, &raw mut n_dims);
        let (name, dims_at) = (null_mut(), dims.as_mut_ptr());
        // SAFETY: the results go to locals with room for them.
        match unsafe {
            nc_inq_compound_field(ncid, xtype, index, name, offset_at, type_at, n_at, dims_at)
        } {
            0 => {}
            code => return Err(code),
        }
        dims.truncate(usize::try_from(n_dims).unwrap_or(0));
        fields.push(Field { name: Box::default(), offset, nc_type, dims });
    }
    Ok(fields)
}

/// The type of another file that stands for one of this: of a user-defined one, that of its name.
fn type_in(ncid: c_int, xtype: NcType, other: c_int) -> Result<NcType, c_int> {
    if xtype < FIRST_USER_TYPE || ncid & !0xffff == other & !0xffff {
        return Ok(xtype);
    }
    let mut name = [0; NAME_ROOM];
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

/// A block of elements on its way from one file to another.
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

    /// Puts what was got, and gives back what the elements own.
    fn pass(&mut self, got: c_int, put: impl FnOnce(*const c_void) -> c_int) -> c_int {
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
        block.pass(got, |values| nc_put_att(ncid_out, varid_out, name, out_type, len, values))
    }
}

/// `nc_copy_var` from or to a file of a program's own format, one index of the first dimension at a
/// time.
pub(crate) fn copy_var((ncid, varid): (c_int, c_int), ncid_out: c_int) -> c_int {
    let mut name = [0; NAME_ROOM];
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
        let mut dim_name = [0; NAME_ROOM];
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
            let mut att = [0; NAME_ROOM];
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
            attempt!(block.pass(got, |values| nc_put_vara(ncid_out, id, start, count, values)));
        }
    }
    0
}

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
