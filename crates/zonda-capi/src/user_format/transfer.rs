//! Data of variables in files of a program's own format: null rules, and the members for strided and
//! mapped access that tables name when they have only `get_vara` and `put_vara`.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use zonda::slab::{Axis, Order, OutOfBounds, advance, is_stride, row_major};
use zonda::{ExtType, Hyperslab, MAX_VAR_DIMS, NcError};

use super::members::type_of;
use super::{NcDispatch, attempt, member, table_of};
use crate::boundary::foreign_code;
use crate::c_memory::slice;
use crate::data_arguments::{CallerMemory, MemoryForm, ONES, SelectionArrays, ZEROS};
use crate::dim::nc_inq_dimlen;
use crate::file::nc_inq_unlimdim;
use crate::group::nc_inq_unlimdims;
use crate::types::{NcType, STRING, nc_inq_type, nctypelen};
use crate::var::{nc_inq_vardimid, nc_inq_varndims, nc_inq_vartype};

/// `NC_NAT`: the type of the variable.
const NAT: NcType = 0;

fn rank_of(ncid: c_int, varid: c_int) -> Result<usize, c_int> {
    let mut rank = 0;
    // SAFETY: the result goes to a local.
    match unsafe { nc_inq_varndims(ncid, varid, &raw mut rank) } {
        0 => usize::try_from(rank).map_err(|_| NcError::MaxDims.code()),
        code => Err(code),
    }
}

fn dims_of(ncid: c_int, varid: c_int, rank: usize) -> Result<Vec<c_int>, c_int> {
    let mut dims = vec![0; rank.max(MAX_VAR_DIMS)];
    // SAFETY: room for more dimensions than variables have, as in the reference.
    match unsafe { nc_inq_vardimid(ncid, varid, dims.as_mut_ptr()) } {
        0 => {
            dims.truncate(rank);
            Ok(dims)
        }
        code => Err(code),
    }
}

fn shape_of(ncid: c_int, varid: c_int, rank: usize) -> Result<Vec<usize>, c_int> {
    let mut shape = vec![0; rank];
    for (dim, len) in dims_of(ncid, varid, rank)?.into_iter().zip(&mut shape) {
        // SAFETY: the result goes into the vector.
        match unsafe { nc_inq_dimlen(ncid, dim, len) } {
            0 => {}
            code => return Err(code),
        }
    }
    Ok(shape)
}

/// A selection without null arrays.
struct FilledSelection {
    start: *const usize,
    count: *const usize,
    stride: *const isize,
    /// Arrays that the pointers may lead to.
    _shape: Vec<usize>,
    _ones: Vec<isize>,
}

impl FilledSelection {
    /// Fills in null arrays. The table is asked for the variable only if there are any. A scalar needs no
    /// start.
    fn of(
        (ncid, varid): (c_int, c_int),
        start: *const usize,
        count: *const usize,
        stride: Option<*const isize>,
    ) -> Result<FilledSelection, c_int> {
        let mut filled = FilledSelection {
            start,
            count,
            stride: stride.unwrap_or(null_mut()),
            _shape: Vec::new(),
            _ones: Vec::new(),
        };
        let no_stride = stride.is_some_and(|stride| stride.is_null());
        if start.is_null() || count.is_null() || no_stride {
            let rank = rank_of(ncid, varid)?;
            if start.is_null() && rank != 0 {
                return Err(NcError::InvalidCoords.code());
            }
            if count.is_null() {
                filled._shape = shape_of(ncid, varid, rank)?;
                filled.count = filled._shape.as_ptr();
            }
            if no_stride {
                filled._ones = vec![1; rank];
                filled.stride = filled._ones.as_ptr();
            }
        }
        Ok(filled)
    }
}

/// Body of every data function, for a file of a program's own format.
///
/// # Safety
/// As for `transfer::transfer`.
#[cold]
pub(crate) unsafe fn transfer(
    table: &NcDispatch,
    (ncid, varid): (c_int, c_int),
    mem: MemoryForm,
    caller: CallerMemory,
    which: SelectionArrays,
) -> c_int {
    let memtype = match mem {
        MemoryForm::Natural => NAT,
        MemoryForm::Strings => STRING,
        MemoryForm::Number(mem) => type_of(mem),
    };
    // SAFETY: same contract.
    foreign_code(unsafe { call_member(table, (ncid, varid), memtype, caller, which) })
}

/// Calls the member of the table for a selection.
///
/// # Safety
/// As [`transfer`].
unsafe fn call_member(
    table: &NcDispatch,
    var: (c_int, c_int),
    memtype: NcType,
    caller: CallerMemory,
    which: SelectionArrays,
) -> c_int {
    let (ncid, varid) = var;
    match which {
        // SAFETY: the contract above.
        SelectionArrays::All => unsafe {
            block(table, var, memtype, caller, (ZEROS.as_ptr(), null_mut()))
        },
        // SAFETY: the contract above.
        SelectionArrays::One(at) => unsafe {
            block(table, var, memtype, caller, (at, ONES.as_ptr()))
        },
        SelectionArrays::Block(start, count) => {
            let mut memtype = memtype;
            if memtype == NAT {
                // SAFETY: the result goes to a local.
                attempt!(unsafe { nc_inq_vartype(ncid, varid, &raw mut memtype) });
            }
            // SAFETY: the contract above.
            unsafe { block(table, var, memtype, caller, (start, count)) }
        }
        SelectionArrays::Strided(start, count, stride) => {
            // SAFETY: the contract above.
            unsafe { call_vars(table, var, memtype, caller, (start, count, stride)) }
        }
        SelectionArrays::Mapped(start, count, stride, imap) => {
            // SAFETY: the contract above.
            unsafe { call_varm(table, var, memtype, caller, (start, count, stride, imap)) }
        }
    }
}

/// `get_vars` or `put_vars`.
///
/// # Safety
/// As [`transfer`].
unsafe fn call_vars(
    table: &NcDispatch,
    var: (c_int, c_int),
    memtype: NcType,
    caller: CallerMemory,
    (start, count, stride): (*const usize, *const usize, *const isize),
) -> c_int {
    let (ncid, varid) = var;
    let filled = match FilledSelection::of(var, start, count, Some(stride)) {
        Ok(filled) => filled,
        Err(code) => return code,
    };
    let FilledSelection { start, count, stride, .. } = filled;
    match caller {
        CallerMemory::Get(to) => {
            let to = to.cast::<c_void>();
            member!(table, get_vars(ncid, varid, start, count, stride, to, memtype))
        }
        CallerMemory::Put(from) => {
            let from = from.cast::<c_void>();
            member!(table, put_vars(ncid, varid, start, count, stride, from, memtype))
        }
    }
}

/// `get_varm` or `put_varm`.
///
/// # Safety
/// As [`transfer`].
unsafe fn call_varm(
    table: &NcDispatch,
    var: (c_int, c_int),
    memtype: NcType,
    caller: CallerMemory,
    (start, count, stride, imap): (*const usize, *const usize, *const isize, *const isize),
) -> c_int {
    let (ncid, varid) = var;
    let filled = match FilledSelection::of(var, start, count, Some(stride)) {
        Ok(filled) => filled,
        Err(code) => return code,
    };
    let FilledSelection { start, count, stride, .. } = filled;
    match caller {
        CallerMemory::Get(to) => {
            let to = to.cast::<c_void>();
            member!(table, get_varm(ncid, varid, start, count, stride, imap, to, memtype))
        }
        CallerMemory::Put(from) => {
            let from = from.cast::<c_void>();
            member!(table, put_varm(ncid, varid, start, count, stride, imap, from, memtype))
        }
    }
}

/// `get_vara` or `put_vara`.
///
/// # Safety
/// As [`transfer`].
unsafe fn block(
    table: &NcDispatch,
    var: (c_int, c_int),
    memtype: NcType,
    caller: CallerMemory,
    (start, count): (*const usize, *const usize),
) -> c_int {
    let filled = match FilledSelection::of(var, start, count, None) {
        Ok(filled) => filled,
        Err(code) => return code,
    };
    let ((ncid, varid), FilledSelection { start, count, .. }) = (var, &filled);
    match caller {
        CallerMemory::Get(to) => {
            member!(table, get_vara(ncid, varid, *start, *count, to.cast(), memtype))
        }
        CallerMemory::Put(from) => {
            member!(table, put_vara(ncid, varid, *start, *count, from.cast(), memtype))
        }
    }
}

/// [`block`] of the file with that id, of whatever format it is.
///
/// # Safety
/// As [`transfer`].
unsafe fn any_block(
    (ncid, varid): (c_int, c_int),
    memtype: NcType,
    caller: CallerMemory,
    slab: (*const usize, *const usize),
) -> c_int {
    match table_of(ncid) {
        // SAFETY: same contract.
        Some(table) => unsafe { block(table, (ncid, varid), memtype, caller, slab) },
        None => NcError::BadId.code(),
    }
}

/// What strided and mapped access need to know of a variable.
struct TableVar {
    memtype: NcType,
    /// Bytes of an element in memory.
    size: usize,
    shape: Vec<usize>,
    /// SelectionArrays dimensions a put may lengthen.
    grows: Vec<bool>,
}

impl TableVar {
    /// For strided access (`mapped` is false) or mapped access. Only puts ask which dimensions grow.
    fn of(
        (ncid, varid): (c_int, c_int),
        memtype: NcType,
        mapped: bool,
        puts: bool,
    ) -> Result<TableVar, c_int> {
        let check = |code: c_int| if code == 0 { Ok(()) } else { Err(code) };
        let (mut vartype, mut size) = (0, 0_usize);
        // SAFETY: the results go to locals.
        unsafe { check(nc_inq_vartype(ncid, varid, &raw mut vartype))? };
        if mapped && vartype > STRING {
            return Err(NcError::MapType.code());
        }
        // SAFETY: as above.
        unsafe { check(nc_inq_type(ncid, vartype, null_mut(), &raw mut size))? };
        let memtype = if memtype == NAT { vartype } else { memtype };
        if memtype != vartype {
            let text = ExtType::Char.nc_type();
            if vartype > STRING || memtype > STRING {
                return Err(NcError::BadType.code());
            }
            if memtype == text || vartype == text {
                return Err(NcError::Char.code());
            }
        }
        if memtype <= STRING {
            size = usize::try_from(nctypelen(memtype)).map_err(|_| NcError::BadType.code())?;
        }
        let rank = rank_of(ncid, varid)?;
        let dims = dims_of(ncid, varid, rank)?;
        let mut unlimited = Vec::new();
        if puts && rank > 0 {
            let (mut first, mut n) = (-1, 0);
            // SAFETY: the numbers go to locals, and the dimensions where there is room for them.
            unsafe {
                check(nc_inq_unlimdim(ncid, &raw mut first))?;
                if first >= 0 {
                    check(nc_inq_unlimdims(ncid, &raw mut n, null_mut()))?;
                    unlimited.resize(usize::try_from(n).unwrap_or(0), 0);
                    check(nc_inq_unlimdims(ncid, &raw mut n, unlimited.as_mut_ptr()))?;
                }
            }
        }
        let grows = dims.iter().map(|dim| unlimited.contains(dim)).collect();
        Ok(TableVar { memtype, size, shape: shape_of(ncid, varid, rank)?, grows })
    }

    /// Checks that a selection stays in one dimension; a put may leave it where it grows.
    fn check(&self, at: usize, axis: Axis, puts: bool) -> Result<(), OutOfBounds> {
        let len = self.shape[at] as u64;
        if puts && self.grows[at] {
            return Ok(());
        }
        axis.start_and_first_within(len)?;
        axis.count_within(len)
    }
}

/// Moves the elements one by one, or whole rows where they lie side by side on both sides. Values out
/// of range and refusals do not stop it. The code is that of a refusal, if there was one, rather than
/// `NC_ERANGE`.
///
/// # Safety
/// As [`transfer`], with one value per dimension in each list and no dimension missing.
unsafe fn each_run(
    ids: (c_int, c_int),
    var: &TableVar,
    caller: CallerMemory,
    (start, count): (&[usize], &[usize]),
    (stride, imap): (&[isize], &[isize]),
) -> c_int {
    let last = count.len() - 1;
    let joined = stride[last] == 1 && imap[last] == 1;
    let mut run = vec![1_usize; count.len()];
    if joined {
        run[last] = count[last];
    }
    let n_outer = if joined { last } else { last + 1 };
    let mut index = vec![0_usize; count.len()];
    let mut at = start.to_vec();
    let mut answer = 0;
    loop {
        let mut offset = 0_isize;
        for axis in 0..count.len() {
            let step = index[axis].cast_signed();
            at[axis] = start[axis].wrapping_add_signed(step.wrapping_mul(stride[axis]));
            offset = offset.wrapping_add(step.wrapping_mul(imap[axis]));
        }
        let offset = offset.wrapping_mul(var.size.cast_signed());
        let part = match caller {
            CallerMemory::Get(to) => CallerMemory::Get(to.wrapping_offset(offset)),
            CallerMemory::Put(from) => CallerMemory::Put(from.wrapping_offset(offset)),
        };
        // SAFETY: the contract above.
        let code = unsafe { any_block(ids, var.memtype, part, (at.as_ptr(), run.as_ptr())) };
        if code != 0 && (answer == 0 || code != NcError::Range.code()) {
            answer = code;
        }
        if !advance(&mut index[..n_outer], &count[..n_outer]) {
            return answer;
        }
    }
}

/// The values behind a pointer, or others where it is null.
///
/// # Safety
/// `from` is null or holds `len` values.
unsafe fn list_or<T: Copy>(from: *const T, len: usize, or: impl FnOnce() -> Vec<T>) -> Vec<T> {
    if from.is_null() {
        return or();
    }
    // SAFETY: the contract above.
    unsafe { slice(from, len) }.to_vec()
}

/// # Safety
/// As [`transfer`].
unsafe fn strided(
    ids: (c_int, c_int),
    (start, count, stride): (*const usize, *const usize, *const isize),
    caller: CallerMemory,
    memtype: NcType,
) -> Result<c_int, c_int> {
    let puts = matches!(caller, CallerMemory::Put(_));
    let var = TableVar::of(ids, memtype, false, puts)?;
    let rank = var.shape.len();
    if rank == 0 {
        // SAFETY: the contract above; one element.
        return Ok(unsafe { any_block(ids, var.memtype, caller, (start, ONES.as_ptr())) });
    }
    if start.is_null() {
        return Err(NcError::InvalidCoords.code());
    }
    // SAFETY: one value per dimension.
    let start = unsafe { slice(start, rank) };
    let (mut counts, mut strides) = (vec![0; rank], vec![1; rank]);
    for axis in 0..rank {
        let left = var.shape[axis].wrapping_sub(start[axis]);
        // SAFETY: null is not read; else one value per dimension.
        unsafe {
            counts[axis] = if count.is_null() { left } else { count.add(axis).read() };
            strides[axis] = if stride.is_null() { 1 } else { stride.add(axis).read() };
        }
    }
    let slab = Hyperslab { start, count: &counts, stride: Some(&strides) };
    slab.each_axis(Order::Up, |at, axis| {
        var.check(at, axis, puts)?;
        if is_stride(strides[at]) { Ok(()) } else { Err(OutOfBounds::ByStride) }
    })
    .map_err(|misfit| NcError::from(misfit.why).code())?;
    let is_plain = slab.is_unit();
    if slab.is_empty() && !(puts && is_plain) {
        return Ok(0);
    }
    if is_plain {
        let slab = (start.as_ptr(), counts.as_ptr());
        // SAFETY: the contract above.
        return Ok(unsafe { any_block(ids, var.memtype, caller, slab) });
    }
    let map = row_major(&counts);
    // SAFETY: the contract above.
    Ok(unsafe { each_run(ids, &var, caller, (start, &counts), (&strides, &map)) })
}

/// # Safety
/// As [`transfer`].
unsafe fn mapped(
    ids: (c_int, c_int),
    (start, count, stride): (*const usize, *const usize, *const isize),
    imap: *const isize,
    caller: CallerMemory,
    memtype: NcType,
) -> Result<c_int, c_int> {
    let puts = matches!(caller, CallerMemory::Put(_));
    let var = TableVar::of(ids, memtype, true, puts)?;
    let rank = var.shape.len();
    if rank == 0 {
        // SAFETY: the contract above; one element.
        return Ok(unsafe { any_block(ids, var.memtype, caller, (start, ONES.as_ptr())) });
    }
    // SAFETY: null is not read; else one value per dimension.
    let strides = unsafe { list_or(stride, rank, || vec![1; rank]) };
    // Unlike strided access, this takes no end of a stride but zero for too small.
    if !strides.iter().all(|&step| is_stride(step)) {
        return Err(NcError::Stride.code());
    }
    if imap.is_null() && strides.iter().all(|&step| step == 1) {
        // SAFETY: the contract above.
        return Ok(unsafe { any_block(ids, var.memtype, caller, (start, count)) });
    }
    // SAFETY: null is not read; else one value per dimension.
    let starts = unsafe { list_or(start, rank, || vec![0; rank]) };
    let counts: Vec<usize> = (0..rank)
        .map(|axis| match count.is_null() {
            true => var.shape[axis].wrapping_sub(starts[axis]),
            // SAFETY: one value per dimension.
            false => unsafe { count.add(axis).read() },
        })
        .collect();
    let slab = Hyperslab { start: &starts, count: &counts, stride: Some(&strides) };
    slab.each_axis(Order::Down, |at, axis| var.check(at, axis, puts))
        .map_err(|misfit| NcError::from(misfit.why).code())?;
    if slab.is_empty() {
        return Ok(0);
    }
    // SAFETY: null is not read; else one value per dimension.
    let map = unsafe { list_or(imap, rank, || row_major(&counts)) };
    // SAFETY: the contract above.
    Ok(unsafe { each_run(ids, &var, caller, (&starts, &counts), (&strides, &map)) })
}

/// `get_vars` of a table, by its `get_vara`.
///
/// # Safety
/// The arrays are null or hold one value per dimension of the variable; `values` has room for every
/// element asked for.
#[unsafe(no_mangle)]
#[allow(non_snake_case)] // the name of the reference
pub unsafe extern "C" fn NCDEFAULT_get_vars(
    ncid: c_int,
    varid: c_int,
    start: *const usize,
    count: *const usize,
    stride: *const isize,
    values: *mut c_void,
    memtype: NcType,
) -> c_int {
    let caller = CallerMemory::Get(values.cast());
    // SAFETY: same contract.
    unsafe { strided((ncid, varid), (start, count, stride), caller, memtype) }
        .unwrap_or_else(|code| code)
}

/// `put_vars` of a table, by its `put_vara`.
///
/// # Safety
/// As [`NCDEFAULT_get_vars`]; `values` holds the elements.
#[unsafe(no_mangle)]
#[allow(non_snake_case)] // the name of the reference
pub unsafe extern "C" fn NCDEFAULT_put_vars(
    ncid: c_int,
    varid: c_int,
    start: *const usize,
    count: *const usize,
    stride: *const isize,
    values: *const c_void,
    memtype: NcType,
) -> c_int {
    let caller = CallerMemory::Put(values.cast());
    // SAFETY: same contract.
    unsafe { strided((ncid, varid), (start, count, stride), caller, memtype) }
        .unwrap_or_else(|code| code)
}

/// `get_varm` of a table, by its `get_vara`.
///
/// # Safety
/// As [`NCDEFAULT_get_vars`], with room wherever the map leads.
#[unsafe(no_mangle)]
#[allow(non_snake_case)] // the name of the reference
pub unsafe extern "C" fn NCDEFAULT_get_varm(
    ncid: c_int,
    varid: c_int,
    start: *const usize,
    count: *const usize,
    stride: *const isize,
    imap: *const isize,
    values: *mut c_void,
    memtype: NcType,
) -> c_int {
    let caller = CallerMemory::Get(values.cast());
    // SAFETY: same contract.
    unsafe { mapped((ncid, varid), (start, count, stride), imap, caller, memtype) }
        .unwrap_or_else(|code| code)
}

/// `put_varm` of a table, by its `put_vara`.
///
/// # Safety
/// As [`NCDEFAULT_get_vars`], with elements wherever the map leads.
#[unsafe(no_mangle)]
#[allow(non_snake_case)] // the name of the reference
pub unsafe extern "C" fn NCDEFAULT_put_varm(
    ncid: c_int,
    varid: c_int,
    start: *const usize,
    count: *const usize,
    stride: *const isize,
    imap: *const isize,
    values: *const c_void,
    memtype: NcType,
) -> c_int {
    let caller = CallerMemory::Put(values.cast());
    // SAFETY: same contract.
    unsafe { mapped((ncid, varid), (start, count, stride), imap, caller, memtype) }
        .unwrap_or_else(|code| code)
}
