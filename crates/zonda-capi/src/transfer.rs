//! Data between a caller's memory and a variable: null rules, slices from C arrays, one call below.
//!
//! Null `start`, `count` and `stride` are resolved before anything else is checked, as the reference does.
//! All other checks are made by `zonda`, before it asks for the caller's memory.

use std::ffi::c_int;

use zonda::{
    Access, Converted, Destination, ExtType, Format, Hyperslab, MAX_VAR_DIMS, MemType, NcError,
    Transfer, Values, VarRef,
};

use crate::boundary::boundary_untraced;
use crate::c_memory::{CVlenSource, MallocSink, slice, slice_mut};
use crate::current_call::note_file;
use crate::data_arguments::{CallerMemory, MemoryForm, ONES, SelectionArrays, ZEROS};
use crate::failure::{CallFailure, CallResult, range_result};
use crate::handles::{self, FileRef};
use crate::leases;
use crate::trace::calls::DataCall;
use crate::types::STRING;
use crate::user_format;

static UNIT_STRIDES: [isize; MAX_VAR_DIMS] = [1; MAX_VAR_DIMS];

/// One call of one of the `nc_put_var*` and `nc_get_var*` functions.
#[derive(Clone, Copy)]
pub(crate) struct VarTransfer<'f> {
    pub(crate) file: &'f FileRef,
    pub(crate) var: VarRef,
    pub(crate) mem: MemoryForm,
    pub(crate) caller: CallerMemory,
}

impl VarTransfer<'_> {
    /// Rank of the variable; 0 for one that does not exist, which is refused before coordinates are looked at.
    fn rank(&self) -> usize {
        self.file.dataset.rank_of(self.var).unwrap_or(0)
    }

    /// Current lengths of the variable's dimensions.
    pub(crate) fn shape(&self) -> Result<Vec<usize>, CallFailure> {
        self.file.meta(|meta| {
            let mut shape = vec![0; meta.var(self.var.var)?.dims.len()];
            meta.var_shape(self.var.var, &mut shape)?;
            Ok(shape)
        })?
    }

    /// Moves one hyperslab. With `stride` the checks are those of the `vars` functions, without it
    /// those of the `vara` functions.
    ///
    /// # Safety
    /// The caller's memory holds the elements of the slab in row-major order, or is null.
    pub(crate) unsafe fn slab(
        &self,
        start: &[usize],
        count: &[usize],
        stride: Option<&[isize]>,
    ) -> CallResult {
        // SAFETY: same contract.
        unsafe { self.slab_of(|_| Hyperslab { start, count, stride }) }
    }

    /// [`Self::slab`] for a selection that needs the variable's rank, 0 where there is no such
    /// variable: saves the hot calls an inquiry.
    ///
    /// # Safety
    /// As for [`Self::slab`].
    #[inline(always)]
    unsafe fn slab_of<'s>(&self, slab: impl FnOnce(usize) -> Hyperslab<'s>) -> CallResult {
        let (mem, strings) = match self.mem {
            MemoryForm::Natural => (None, false),
            MemoryForm::Number(mem) => (Some(mem), false),
            // Text is refused as for numbers; other types are refused by `check_memory`.
            MemoryForm::Strings => (Some(MemType::I64), true),
        };
        let dataset = &self.file.dataset;
        if !matches!(self.mem, MemoryForm::Number(_)) && dataset.capabilities().user_types {
            // SAFETY: same contract.
            return unsafe { self.slab_of_nc4(slab) };
        }
        // SAFETY: same contract.
        let moved = unsafe {
            match self.caller {
                CallerMemory::Put(from) => self.put_slab(from, slab, mem, strings),
                CallerMemory::Get(to) => self.get_slab(to, slab, mem, strings),
            }
        };
        match moved {
            Ok(converted) => range_result(converted),
            Err(error) => Err(self.file.failure(error)),
        }
    }

    /// # Safety
    /// As for [`Self::slab`].
    #[inline(never)]
    unsafe fn put_slab<'s>(
        &self,
        from: *const u8,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        mem: Option<MemType>,
        strings: bool,
    ) -> zonda::Result<Converted> {
        let mut begun = self.file.dataset.put_to(self.var)?;
        let mut put = Transfer::new(Access { var: self.var, slab: slab(begun.rank()), mem });
        if let Some(len) = one_number(&put, strings).filter(|_| !from.is_null()) {
            // SAFETY: the caller's contract.
            return begun.write_now(&mut put, Values::plain(unsafe { slice(from, len) }));
        }
        let put = begun.check(&mut put)?;
        check_memory(from.is_null(), put.n_bytes(), strings)?;
        // SAFETY: the caller's contract, once null is excluded.
        let bytes = unsafe { slice(from, put.n_bytes()) };
        put.write(Values::plain(bytes))
    }

    /// # Safety
    /// As for [`Self::slab`].
    #[inline(never)]
    unsafe fn get_slab<'s>(
        &self,
        to: *mut u8,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        mem: Option<MemType>,
        strings: bool,
    ) -> zonda::Result<Converted> {
        let mut begun = self.file.dataset.get_from(self.var)?;
        let mut get = Transfer::new(Access { var: self.var, slab: slab(begun.rank()), mem });
        if let Some(len) = one_number(&get, strings).filter(|_| !to.is_null()) {
            // SAFETY: as above; the engine writes to the memory and does not read it.
            return begun.read_now(&mut get, unsafe { slice_mut(to, len) });
        }
        let get = begun.check(&mut get)?;
        check_memory(to.is_null(), get.n_bytes(), strings)?;
        // SAFETY: as above; the engine writes to the memory and does not read it.
        let bytes = unsafe { slice_mut(to, get.n_bytes()) };
        get.read(Destination::plain(bytes))
    }

    /// [`Self::slab_of`] for a netCDF-4 file and memory that is not of one type of number: strings,
    /// or whatever the variable holds.
    ///
    /// # Safety
    /// As for [`Self::slab`].
    #[inline(never)]
    unsafe fn slab_of_nc4<'s>(&self, slab: impl FnOnce(usize) -> Hyperslab<'s>) -> CallResult {
        let dataset = &self.file.dataset;
        if self.mem == MemoryForm::Strings {
            let of_var = self.file.meta(|meta| meta.var(self.var.var).map(|var| var.nc_type));
            let nc_type = of_var??;
            if nc_type != STRING {
                let defines = dataset.in_define_mode();
                return Err(match nc_type == ExtType::Char.nc_type() {
                    true => NcError::Char,
                    false if defines && dataset.format() == Format::NetCdf4Classic => {
                        NcError::InDefine
                    }
                    false => NcError::BadType,
                }
                .into());
            }
        }
        let to = match self.caller {
            CallerMemory::Get(to) => to,
            CallerMemory::Put(from) => {
                // SAFETY: same contract: elements of the variable's type.
                let mut memory = unsafe { CVlenSource::new() };
                let moved = || {
                    let mut begun = dataset.put_to(self.var)?;
                    let access = Access { var: self.var, slab: slab(begun.rank()), mem: None };
                    let mut put = Transfer::new(access);
                    let put = begun.check(&mut put)?;
                    if from.is_null() && put.n_bytes() != 0 {
                        return Err(NcError::Inval.into());
                    }
                    // SAFETY: the caller's contract, once null is excluded.
                    let bytes = unsafe { slice(from, put.n_bytes()) };
                    put.write(Values { bytes, fetch: Some(&mut memory) })
                };
                return range_result(moved().map_err(|error| self.file.failure(error))?);
            }
        };
        let mut place = MallocSink::default();
        let mut begun = dataset.get_from(self.var)?;
        let access = Access { var: self.var, slab: slab(begun.rank()), mem: None };
        let mut get = Transfer::new(access);
        let get = begun.check(&mut get)?;
        if to.is_null() && get.n_bytes() != 0 {
            return Err(NcError::Inval.into());
        }
        // SAFETY: the caller's contract, once null is excluded.
        let bytes = unsafe { slice_mut(to, get.n_bytes()) };
        let converted = get.read(Destination { bytes, place: Some(&mut place) })?;
        place.keep();
        range_result(converted)
    }

    /// `nc_put_vara`, `nc_get_vara`.
    ///
    /// # Safety
    /// `start` and `count` are null or hold one value per dimension; memory as for [`Self::slab`].
    #[inline]
    unsafe fn vara(&self, start: *const usize, count: *const usize) -> CallResult {
        if start.is_null() || count.is_null() {
            // SAFETY: same contract.
            return unsafe { self.vara_with_nulls(start, count) };
        }
        // SAFETY: the contract gives one value per dimension, and there are `rank` of these.
        let slab = move |rank| unsafe {
            Hyperslab { start: slice(start, rank), count: slice(count, rank), stride: None }
        };
        // SAFETY: same contract.
        unsafe { self.slab_of(slab) }
    }

    /// # Safety
    /// As [`Self::vara`].
    #[cold]
    unsafe fn vara_with_nulls(&self, start: *const usize, count: *const usize) -> CallResult {
        let shape = self.shape()?;
        // SAFETY: the contract gives one value per dimension, and `shape` has as many.
        unsafe {
            let start = required(start, shape.len())?;
            let count = if count.is_null() { &*shape } else { slice(count, shape.len()) };
            self.slab(start, count, None)
        }
    }

    /// `nc_put_var1`, `nc_get_var1`.
    ///
    /// # Safety
    /// `index` is null or holds one value per dimension; memory for one element.
    #[inline]
    unsafe fn var1(&self, index: *const usize) -> CallResult {
        let is_null = match self.caller {
            CallerMemory::Put(from) => from.is_null(),
            CallerMemory::Get(to) => to.is_null(),
        };
        let (MemoryForm::Number(mem), false) = (self.mem, is_null || index.is_null()) else {
            // SAFETY: the contract above; ONES has a value for every dimension there can be.
            return unsafe { self.vara(index, ONES.as_ptr()) };
        };
        // The length of the memory need not be asked for, which saves half of a call.
        let dataset = &self.file.dataset;
        // SAFETY: the contract above.
        let start = |rank| unsafe { slice(index, rank) };
        let slab = |rank| Hyperslab { start: start(rank), count: &ONES, stride: None };
        let moved = match self.caller {
            CallerMemory::Put(from) => {
                // SAFETY: not null, and memory for one element.
                let bytes = unsafe { slice(from, mem.size()) };
                dataset.put_now(self.var, slab, Some(mem), bytes)
            }
            CallerMemory::Get(to) => {
                // SAFETY: as above; the engine writes to the memory and does not read it.
                let bytes = unsafe { slice_mut(to, mem.size()) };
                dataset.get_now(self.var, slab, Some(mem), bytes)
            }
        };
        match moved {
            Ok(converted) => range_result(converted),
            Err(error) => Err(self.file.failure(error)),
        }
    }

    /// `nc_put_var`, `nc_get_var`: all of the variable as it is now.
    ///
    /// # Safety
    /// Memory for all elements.
    unsafe fn var(&self) -> CallResult {
        let shape = self.shape()?;
        // SAFETY: the contract above.
        unsafe { self.slab(&ZEROS[..shape.len()], &shape, None) }
    }

    /// `nc_put_vars`, `nc_get_vars`.
    ///
    /// # Safety
    /// The arrays are null or hold one value per dimension; memory as for [`Self::slab`].
    unsafe fn vars(
        &self,
        start: *const usize,
        count: *const usize,
        stride: *const isize,
    ) -> CallResult {
        let shape;
        let (start, count, rank) = if start.is_null() || count.is_null() || stride.is_null() {
            shape = self.shape()?;
            let rank = shape.len();
            // SAFETY: one value per dimension.
            let start = unsafe { required(start, rank)? };
            // SAFETY: as above.
            let count = if count.is_null() { &*shape } else { unsafe { slice(count, rank) } };
            (start, count, rank)
        } else {
            let rank = self.rank();
            // SAFETY: as above.
            unsafe { (slice(start, rank), slice(count, rank), rank) }
        };
        let stride = if stride.is_null() {
            &UNIT_STRIDES[..rank]
        } else {
            // SAFETY: as above.
            unsafe { slice(stride, rank) }
        };
        // SAFETY: the contract above.
        unsafe { self.slab(start, count, Some(stride)) }
    }
}

/// Bytes in memory of a selection of one number; `None` for any other. They need not be asked for, which
/// saves half of a call.
#[inline(always)]
fn one_number(of: &Transfer<Access<'_>>, strings: bool) -> Option<usize> {
    let Access { slab, mem, .. } = of.of();
    mem.filter(|_| !strings && slab.count.iter().all(|&n| n == 1)).map(MemType::size)
}

/// Checks the memory of a transfer that is otherwise right.
#[inline(always)]
fn check_memory(null: bool, n_bytes: usize, strings: bool) -> Result<(), NcError> {
    match n_bytes {
        0 => Ok(()),
        _ if strings => Err(NcError::BadType),
        _ if null => Err(NcError::Inval),
        _ => Ok(()),
    }
}

/// `start` must be there unless the variable is a scalar.
///
/// # Safety
/// `start` is null or holds `rank` values.
pub(crate) unsafe fn required<'a>(
    start: *const usize,
    rank: usize,
) -> Result<&'a [usize], NcError> {
    if start.is_null() && rank > 0 {
        return Err(NcError::InvalidCoords);
    }
    // SAFETY: null only with rank 0, which `slice` takes.
    Ok(unsafe { slice(start, rank) })
}

/// Body of every data function.
///
/// # Safety
/// The arrays in `which` are null or hold one value per dimension of the variable; the caller's
/// memory is null or has room for every element asked for.
#[inline]
pub(crate) unsafe fn transfer(
    ncid: c_int,
    varid: c_int,
    mem: MemoryForm,
    caller: CallerMemory,
    which: SelectionArrays,
) -> c_int {
    // SAFETY: same contract.
    if unsafe { leases::transfer(ncid, varid, mem, caller, &which) } {
        return 0;
    }
    if let Some(table) = user_format::table_of(ncid) {
        // SAFETY: same contract.
        return unsafe {
            user_format::transfer::transfer(table, (ncid, varid), mem, caller, which)
        };
    }
    let begin = zonda_trace::start();
    let code = boundary_untraced(|| {
        let file = handles::unnamed(ncid)?;
        let call = VarTransfer { file: &file, var: file.var(varid), mem, caller };
        let transfer = || {
            // SAFETY: the contract above is that of each of these.
            unsafe {
                match which {
                    SelectionArrays::All => call.var(),
                    SelectionArrays::One(index) => call.var1(index),
                    SelectionArrays::Block(start, count) => call.vara(start, count),
                    SelectionArrays::Strided(start, count, stride) => {
                        call.vars(start, count, stride)
                    }
                    SelectionArrays::Mapped(start, count, stride, imap) => {
                        call.varm(start, count, stride, imap)
                    }
                }
            }
        };
        let moved = match caller {
            CallerMemory::Put(_) if file.dataset.is_of_ranks() => {
                file.dataset.put_with_ranks(call.var, transfer)
            }
            CallerMemory::Get(_) if file.dataset.is_of_ranks() => {
                file.dataset.ready_to_get(call.var).map_err(Into::into).and_then(|()| transfer())
            }
            _ => transfer(),
        };
        moved.map(|()| 0).inspect_err(|_| note_file(handles::slot_of(ncid)))
    });
    if begin != 0 || code != 0 {
        DataCall { ncid, varid, mem, caller, which }.tell(begin, code);
    } else {
        // SAFETY: same contract.
        unsafe { leases::note(ncid, varid, caller, &which) };
    }
    code
}
