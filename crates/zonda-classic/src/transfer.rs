//! Moving data between a caller's memory and the file.
//!
//! A hyperslab becomes a plan: runs of elements that lie side by side in the file, and the loops
//! around them. Each run is converted in blocks that stay in the cache of one core.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;
use zonda_convert::{ByteOrder, Converted, Decoder, Encoder};
use zonda_format::{Access, Transfer, VarRef};
use zonda_model::{Hyperslab, MemType, VarId, memory};
use zonda_slab::for_each_place;
use zonda_storage::{Storage, WriteRange};
use zonda_trace::{Args, Kind, Span};

use crate::attribute::{check_mix, range_rule};
use crate::error::{ClassicError, shown};
use crate::file::{Base, ClassicFile, State};
use crate::fill::{self, Covered};
use crate::header::{Header, Var, Version};
use crate::plain::{NATURAL, PLAIN, PlainRun, SMALL, TINY, on_stack, read_natural, write_natural};
use crate::select::{self, Direction};
use crate::short::{BUFFER, read_or_zeros};

/// Bytes converted at a time: a block and its converted form fit the second-level cache together.
const BLOCK: usize = 256 << 10;
/// Beyond this distance between elements, elements are read one by one, not with what is between.
const DENSE_STRIDE: u64 = 512;
/// Runs of up to so many bytes are handed on many at a time.
const SHORT_RUN: usize = 256;
/// The most of them.
const RUNS_AT_ONCE: usize = 1024;

thread_local! {
    /// Conversion buffer of the thread, kept between calls.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Which elements a transfer touches, in file order.
struct Plan {
    /// Byte offset of the first element.
    begin: u64,
    /// Elements side by side at each stop of the loops.
    run_elems: usize,
    /// The loops from the outermost in: how many steps, and bytes from one to the next.
    loops: SmallVec<[(usize, u64); 8]>,
    /// All elements.
    n_elems: usize,
}

impl Plan {
    fn new(header: &Header, var: &Var, slab: &Hyperslab<'_>) -> Result<Plan, ClassicError> {
        let rank = var.shape.len();
        let n_elems = n_elems(var, slab)?;
        let size = var.ty.size() as u64;
        let mut plan = Plan { begin: var.begin, run_elems: 1, loops: SmallVec::new(), n_elems };
        let mut run_bytes = size;
        let mut step = size;
        for axis in (0..rank).rev() {
            let (Some(&len), Some(&start), Some(&count)) =
                (var.shape.get(axis), slab.start.get(axis), slab.count.get(axis))
            else {
                continue;
            };
            if axis == 0 && var.is_record() {
                step = header.layout.record_len;
            }
            // In range since start lies within the file; saturating for damaged headers.
            plan.begin = plan.begin.saturating_add((start as u64).saturating_mul(step));
            let stride = slab.stride.and_then(|stride| stride.get(axis)).copied().unwrap_or(1);
            let stride_bytes = step.saturating_mul(u64::try_from(stride).unwrap_or(1));
            if count != 1 {
                if plan.loops.is_empty() && run_bytes == stride_bytes {
                    plan.run_elems = plan.run_elems.saturating_mul(count);
                    run_bytes = run_bytes.saturating_mul(count as u64);
                } else {
                    plan.loops.push((count, stride_bytes));
                }
            }
            step = step.saturating_mul(len.max(1));
        }
        plan.loops.reverse();
        Ok(plan)
    }

    /// Calls `f` with the byte offset of every run, in order. Of damaged headers places that cannot be counted
    /// are the largest one, which no storage has.
    #[inline]
    fn for_each_run<E>(
        &self,
        loops: &[(usize, u64)],
        f: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.n_elems == 0 {
            return Ok(());
        }
        for_each_place(self.begin, loops, f)
    }

    /// The innermost loop where it steps over single elements, and the loops around it.
    #[allow(clippy::type_complexity)]
    fn strided(&self) -> Option<((usize, u64), &[(usize, u64)])> {
        let (&inner, outer) = self.loops.split_last()?;
        (self.run_elems == 1).then_some((inner, outer))
    }
}

/// In `Transfer::found`, as [`PLAIN`]: runs and the loops around them.
const PLAN: u64 = 2;

/// Transfers in two steps: a check, which says how long the caller's memory has to be, and the transfer. The file does not change
/// between, but for the number of its records.
impl ClassicFile {
    /// Both steps of writing a hyperslab.
    ///
    /// # Errors
    /// As [`ClassicFile::check_put`] and [`ClassicFile::put`].
    #[inline]
    pub fn put_now(
        &self,
        put: &mut Transfer<Access<'_>>,
        data: &[u8],
    ) -> Result<Converted, ClassicError> {
        let (file, Access { var, slab, mem }) = (&self.base, put.of());
        match PlainRun::find(file, &self.state, var.var, slab, *mem) {
            Some((run, mem)) if !file.share && file.writable && run.n_bytes(mem) == data.len() => {
                run.write(&*file.storage, mem, data)
            }
            _ => self.put_plan_now(put, data),
        }
    }

    #[inline(never)]
    fn put_plan_now(
        &self,
        put: &mut Transfer<Access<'_>>,
        data: &[u8],
    ) -> Result<Converted, ClassicError> {
        self.check_put_plan(put)?;
        self.put_plan(put, data)
    }

    /// Both steps of reading a hyperslab.
    ///
    /// # Errors
    /// As [`ClassicFile::check_get`] and [`ClassicFile::get`].
    #[inline]
    pub fn get_now(
        &self,
        get: &mut Transfer<Access<'_>>,
        out: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        let Access { var, slab, mem } = get.of();
        match PlainRun::find(&self.base, &self.state, var.var, slab, *mem) {
            Some((run, mem)) if run.n_bytes(mem) == out.len() => {
                run.read(&*self.base.storage, mem, out)
            }
            _ => self.get_plan_now(get, out),
        }
    }

    #[inline(never)]
    fn get_plan_now(
        &self,
        get: &mut Transfer<Access<'_>>,
        out: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        self.check_get_plan(get)?;
        self.get_plan(get, out)
    }

    /// Rank of a variable; 0 where there is none, which a check says.
    #[inline]
    #[must_use]
    pub fn rank(&self, id: VarId) -> usize {
        let var = usize::try_from(id.0).ok().and_then(|index| self.state.header.vars.get(index));
        var.map_or(0, |var| var.shape.len())
    }

    /// First step of writing a hyperslab of a variable: all that may refuse it.
    ///
    /// Without `stride` the checks are those of `nc_put_vara`, with it those of `nc_put_vars`.
    ///
    /// # Errors
    /// [`ClassicError::ReadOnly`], [`ClassicError::InDefineMode`], [`ClassicError::GlobalNotVar`],
    /// [`ClassicError::NoVar`], [`ClassicError::TextNumberMix`], [`ClassicError::InvalidCoords`],
    /// [`ClassicError::Edge`], [`ClassicError::BadStride`].
    // Inlined, as the other short ways: an error of many words makes each result a copy.
    #[inline(always)]
    pub fn check_put(&self, put: &mut Transfer<Access<'_>>) -> Result<(), ClassicError> {
        let (file, of) = (&self.base, put.of());
        if let Some((run, mem)) = PlainRun::find(file, &self.state, of.var.var, &of.slab, of.mem)
            && !file.share
            && file.require_writable().is_ok()
        {
            run.note_in(mem, TINY, put);
            return Ok(());
        }
        self.check_put_plan(put)
    }

    #[inline(never)]
    fn check_put_plan(&self, put: &mut Transfer<Access<'_>>) -> Result<(), ClassicError> {
        put.forget();
        let (file, state) = (&self.base, &self.state);
        let Access { var: VarRef { var: id, .. }, slab, mem } = put.of();
        let Some((var, mem)) = file.check_put(state, *id, slab, *mem)? else { return Ok(()) };
        let to = records_needed(var, slab);
        let n_elems = n_elems(var, slab)?;
        if to > file.n_records.load(Ordering::Acquire) {
            select::check_n_records(&state.header, var, slab, to)?;
        }
        planned(put, var, n_elems, mem)
    }

    /// Second step of writing, which the first one has checked: moves `data` (row-major, shape `count`)
    /// to the file. Puts beyond the last record add records, filled where the fill mode says so.
    ///
    /// # Errors
    /// [`ClassicError::InvalidArgument`] for memory of another length than the check said; what the storage
    /// reports. Values that do not fit the variable's type are written as the reference does and counted.
    #[inline(always)]
    pub fn put(&self, put: &Transfer<Access<'_>>, data: &[u8]) -> Result<Converted, ClassicError> {
        match natural(put, data.len()) {
            Some((at, size)) => write_natural(&*self.base.storage, at, data, size),
            None => self.put_found(put, data),
        }
    }

    #[inline(never)]
    fn put_found(
        &self,
        put: &Transfer<Access<'_>>,
        data: &[u8],
    ) -> Result<Converted, ClassicError> {
        match self.plain(put, data.len()) {
            Some((run, mem)) => run.write(&*self.base.storage, mem, data),
            None => self.put_plan(put, data),
        }
    }

    /// The run that a check found, for memory of the right length.
    #[inline(always)]
    fn plain(&self, of: &Transfer<Access<'_>>, len: usize) -> Option<(PlainRun, MemType)> {
        let [PLAIN, at] = of.found else { return None };
        let header = &self.state.header;
        let var = header.vars.get(usize::try_from(of.of().var.var.0).ok()?)?;
        let run = PlainRun::again(header, var, at, of.n_elems);
        (len == of.n_bytes).then_some((run, of.mem?))
    }

    #[inline(never)]
    fn put_plan(&self, put: &Transfer<Access<'_>>, data: &[u8]) -> Result<Converted, ClassicError> {
        if data.len() != put.n_bytes {
            return Err(wrong_len());
        }
        let Access { var: VarRef { var: id, .. }, slab, .. } = put.of();
        let (file, header) = (&self.base, &self.state.header);
        if put.found[0] != PLAN {
            return Ok(Converted::default());
        }
        let var = header.var(*id)?;
        let mem = put.mem.unwrap_or(var.ty.natural_mem());
        let plan = Plan::new(header, var, slab)?;
        if plan.n_elems != put.n_elems {
            return Err(wrong_len());
        }
        let encoder = Encoder::new(var.ty, ByteOrder::Big, mem, range_rule(header.version))
            .map_err(|_| ClassicError::TextNumberMix { object: shown(&var.name) })?;
        let write = || write_plan(&*file.storage, &plan, &encoder, data);
        let to = records_needed(var, slab);
        let grows = to > file.n_records.load(Ordering::Acquire);
        let converted = match grows {
            true => file.grow(header, *id, slab, to, write)?,
            false => write()?,
        };
        if file.share {
            file.publish_n_records(header.version)?;
        }
        Ok(converted)
    }

    /// First step of reading a hyperslab of a variable. Without `stride` the checks are those of `nc_get_vara`, with it
    /// those of `nc_get_vars`.
    ///
    /// # Errors
    /// As [`ClassicFile::check_put`], but for [`ClassicError::ReadOnly`].
    #[inline(always)]
    pub fn check_get(&self, get: &mut Transfer<Access<'_>>) -> Result<(), ClassicError> {
        let Access { var, slab, mem } = get.of();
        match PlainRun::find(&self.base, &self.state, var.var, slab, *mem) {
            Some((run, mem)) => run.note_in(mem, SMALL, get),
            None => return self.check_get_plan(get),
        }
        Ok(())
    }

    #[inline(never)]
    fn check_get_plan(&self, get: &mut Transfer<Access<'_>>) -> Result<(), ClassicError> {
        get.forget();
        let Access { var: VarRef { var: id, .. }, slab, mem } = get.of();
        let Some((var, mem)) = self.base.check_get(&self.state, *id, slab, *mem)? else {
            return Ok(());
        };
        match n_elems(var, slab)? {
            0 => Ok(()),
            n => planned(get, var, n, mem),
        }
    }

    /// Second step of reading: fills `out`. What lies behind the end of a short file reads as zeros, as in the reference.
    ///
    /// # Errors
    /// As [`ClassicFile::put`].
    #[inline(always)]
    pub fn get(
        &self,
        get: &Transfer<Access<'_>>,
        out: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        match natural(get, out.len()) {
            Some((at, size)) => read_natural(&*self.base.storage, at, out, size),
            None => self.get_found(get, out),
        }
    }

    #[inline(never)]
    fn get_found(
        &self,
        get: &Transfer<Access<'_>>,
        out: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        match self.plain(get, out.len()) {
            Some((run, mem)) => run.read(&*self.base.storage, mem, out),
            None => self.get_plan(get, out),
        }
    }

    #[inline(never)]
    fn get_plan(
        &self,
        get: &Transfer<Access<'_>>,
        out: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        if out.len() != get.n_bytes {
            return Err(wrong_len());
        }
        if get.found[0] != PLAN {
            return Ok(Converted::default());
        }
        let header = &self.state.header;
        let Access { var: VarRef { var: id, .. }, slab, .. } = get.of();
        let var = header.var(*id)?;
        let mem = get.mem.unwrap_or(var.ty.natural_mem());
        let plan = Plan::new(header, var, slab)?;
        if plan.n_elems != get.n_elems {
            return Err(wrong_len());
        }
        let decoder = Decoder::new(var.ty, ByteOrder::Big, mem, range_rule(header.version))
            .map_err(|_| ClassicError::TextNumberMix { object: shown(&var.name) })?;
        read_plan(&*self.base.storage, &plan, &decoder, out)
    }
}

impl Base {
    /// Everything that may refuse a put; `None` when there is nothing to do.
    fn check_put<'s>(
        &self,
        state: &'s State,
        id: VarId,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
    ) -> Result<Option<(&'s Var, MemType)>, ClassicError> {
        let header = state.require_open()?;
        let n_records = self.n_records.load(Ordering::Acquire);
        if slab.stride.is_some() {
            let var = header.var(id)?;
            check_mix(var.ty, mem, || shown(&var.name))?;
            let slab = &select::check_rank(var, slab)?;
            select::check_vars(var, slab, Direction::Put, n_records)?;
            if !slab.is_unit() && slab.is_empty() {
                return Ok(None);
            }
        }
        self.require_writable()?;
        state.require_data()?;
        let var = select::transfer_var(header, id)?;
        let mem = check_mix(var.ty, mem, || shown(&var.name))?;
        let slab = &select::check_rank(var, slab)?;
        select::check_last_or_vara(var, slab, Direction::Put, n_records)?;
        Ok(Some((var, mem)))
    }

    /// Adds records up to `to` around the `write` of a put that needs them.
    ///
    /// They exist once they are filled and written: a put that fails adds none, and no reader
    /// meets a record whose values are still to come.
    fn grow(
        &self,
        header: &Header,
        id: VarId,
        slab: &Hyperslab<'_>,
        to: u64,
        write: impl FnOnce() -> Result<Converted, ClassicError>,
    ) -> Result<Converted, ClassicError> {
        let growing = self.growth.lock();
        let from = self.n_records.load(Ordering::Acquire);
        if to <= from {
            drop(growing);
            return write();
        }
        self.commit_records(header, from)?;
        let covered = covered(header, id, slab);
        fill::records(&*self.storage, header, 0, from, to, covered)?;
        let converted = write()?;
        self.n_records_dirty.store(true, Ordering::Release);
        self.n_records.store(to, Ordering::Release);
        Ok(converted)
    }

    /// For `NC_SHARE`: writes the record count if the file's is behind, and a put that is tried
    /// again after an error finds that it still is.
    fn publish_n_records(&self, version: Version) -> Result<(), ClassicError> {
        if !self.n_records_dirty.load(Ordering::Acquire) {
            return Ok(());
        }
        // Another thread's larger count is not to be overtaken by this one.
        let _growing = self.growth.lock();
        self.write_n_records(version, self.n_records.load(Ordering::Acquire))
    }

    /// Everything that may refuse a get; `None` when there is nothing to do.
    fn check_get<'s>(
        &self,
        state: &'s State,
        id: VarId,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
    ) -> Result<Option<(&'s Var, MemType)>, ClassicError> {
        let header = state.require_open()?;
        let direction = Direction::Get { writable: self.writable };
        let n_records = self.records_for_get(header, id, slab)?;
        if slab.stride.is_some() {
            let var = header.var(id)?;
            check_mix(var.ty, mem, || shown(&var.name))?;
            let slab = &select::check_rank(var, slab)?;
            select::check_vars(var, slab, direction, n_records)?;
            if slab.is_empty() {
                return Ok(None);
            }
        }
        state.require_data()?;
        let var = select::transfer_var(header, id)?;
        let mem = check_mix(var.ty, mem, || shown(&var.name))?;
        let slab = &select::check_rank(var, slab)?;
        select::check_last_or_vara(var, slab, direction, n_records)?;
        Ok(Some((var, mem)))
    }

    /// The number of records; a reader with `NC_SHARE` that wants more looks whether there are more.
    fn records_for_get(
        &self,
        header: &Header,
        id: VarId,
        slab: &Hyperslab<'_>,
    ) -> Result<u64, ClassicError> {
        let n_records = self.n_records.load(Ordering::Acquire);
        if !self.share || self.writable || !header.var(id).is_ok_and(Var::is_record) {
            return Ok(n_records);
        }
        if slab.start.is_empty() || slab.count.is_empty() {
            return Ok(n_records);
        }
        // Strides are checked later, records that do not exist before.
        let (along, has_stride) = (slab.axis(0), slab.stride_of(0) > 0);
        let last = if has_stride { along.last() } else { None }.unwrap_or(along.start);
        if last < n_records { Ok(n_records) } else { self.refresh_n_records(header) }
    }
}

/// How many records there must be for a put; 0 for a variable of fixed size.
fn records_needed(var: &Var, slab: &Hyperslab<'_>) -> u64 {
    if !var.is_record() {
        return 0;
    }
    // Even a put of nothing at record n makes records 0 to n-1 exist, as in the reference.
    slab.axis(0).end()
}

/// The records that a put writes completely.
fn covered(header: &Header, id: VarId, slab: &Hyperslab<'_>) -> Option<Covered> {
    let var = header.var(id).ok()?;
    let whole = slab.stride_of(0) == 1
        && var.shape.iter().zip(slab.count).skip(1).all(|(&len, &count)| count as u64 == len);
    let index = usize::try_from(id.0).ok().filter(|_| whole)?;
    Some(Covered { var: index, from: *slab.start.first()? as u64 })
}

/// How many elements a selection has.
fn n_elems(var: &Var, slab: &Hyperslab<'_>) -> Result<usize, ClassicError> {
    let count = slab.count.get(..var.shape.len());
    count.and_then(|count| Hyperslab { count, ..*slab }.n_elems()).ok_or_else(|| too_large(var))
}

/// More than any memory holds.
#[cold]
fn too_large(var: &Var) -> ClassicError {
    ClassicError::SelectionTooLarge { variable: shown(&var.name) }
}

/// Where the elements are that a check found in the file's own type, and the bytes of one; for memory of the right length.
#[inline(always)]
fn natural(of: &Transfer<Access<'_>>, len: usize) -> Option<(u64, usize)> {
    let [kind, at] = of.found;
    let size = usize::try_from(kind ^ NATURAL).ok()?;
    (kind & NATURAL != 0 && len == of.n_bytes).then_some((at, size))
}

fn planned(
    by: &mut Transfer<Access<'_>>,
    var: &Var,
    n_elems: usize,
    mem: MemType,
) -> Result<(), ClassicError> {
    let n_bytes = n_elems.checked_mul(mem.size()).filter(|&n| isize::try_from(n).is_ok());
    let n_bytes = n_bytes.ok_or_else(|| too_large(var))?;
    by.note(n_bytes, n_elems, Some(mem), [PLAN, 0]);
    Ok(())
}

fn wrong_len() -> ClassicError {
    let what = "the memory given is not as long as its element count says";
    ClassicError::InvalidArgument { what }
}

/// The event of a block that is converted; `bytes` in the caller's memory. That of a few elements
/// would take longer than they do.
#[inline(always)]
fn converting(bytes: usize) -> Span {
    const WORTH: usize = 4096;
    if bytes < WORTH {
        return Span::none();
    }
    zonda_trace::span(Kind::Convert, || Args { bytes: bytes as u64, ..Args::default() })
}

/// Calls `f` with a buffer of `len` bytes: on the stack for small ones, else the thread's scratch.
fn with_buffer<R>(
    len: usize,
    f: impl FnOnce(&mut [u8]) -> Result<R, ClassicError>,
) -> Result<R, ClassicError> {
    if len <= SMALL {
        return on_stack(len, f);
    }
    // Taken and put back: a storage layer that itself transfers finds an empty one, and so does a
    // thread whose locals are gone.
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    memory::lengthen(&mut scratch, len, 0)?;
    let done = scratch.get_mut(..len).ok_or(BUFFER).and_then(f);
    let _ = SCRATCH.try_with(|slot| slot.set(scratch));
    done
}

/// Values and their places are as many by construction; where they are not, no value may go unnoticed.
const VALUES: ClassicError = ClassicError::Length { what: "a run of values" };

/// Nothing is left when all is delivered.
fn all_delivered<T>(mut rest: impl Iterator<Item = T>) -> Result<(), ClassicError> {
    if rest.next().is_none() { Ok(()) } else { Err(VALUES) }
}

fn write_plan(
    storage: &dyn Storage,
    plan: &Plan,
    encoder: &Encoder,
    memory: &[u8],
) -> Result<Converted, ClassicError> {
    let (ext, mem) = (encoder.ext_size(), encoder.mem_size());
    let run_mem = plan.run_elems.saturating_mul(mem);
    if run_mem < memory.len()
        && plan.run_elems.saturating_mul(ext) <= SHORT_RUN
        && !encoder.keeps_unfit()
    {
        return write_short_runs(storage, plan, encoder, memory);
    }
    let mut runs = memory.chunks(run_mem.max(1));
    let mut total = 0u64;
    if encoder.is_copy() {
        plan.for_each_run(&plan.loops, |at| {
            Ok::<(), ClassicError>(storage.write_at(at, runs.next().ok_or(VALUES)?)?)
        })?;
        return all_delivered(runs).map(|()| Converted::default());
    }
    let block_elems = BLOCK.checked_div(ext).unwrap_or(1).min(plan.run_elems).max(1);
    with_buffer(block_elems.saturating_mul(ext), |buffer| {
        plan.for_each_run(&plan.loops, |mut at| {
            for block in runs.next().ok_or(VALUES)?.chunks(block_elems.saturating_mul(mem)) {
                let len = block.len().checked_div(mem).unwrap_or(0).saturating_mul(ext);
                let external = buffer.get_mut(..len).ok_or(BUFFER)?;
                if encoder.keeps_unfit() {
                    // Of this pair of types, values that do not fit leave the file as it is.
                    read_or_zeros(storage, at, external)?;
                }
                let span = converting(block.len());
                total = total.saturating_add(encoder.encode(block, external).out_of_range);
                drop(span);
                storage.write_at(at, external)?;
                at = at.saturating_add(len as u64);
            }
            Ok::<(), ClassicError>(())
        })
    })?;
    all_delivered(runs).map(|()| Converted { out_of_range: total })
}

/// As `write_plan`, for many short runs: they are converted together and handed on together.
fn write_short_runs(
    storage: &dyn Storage,
    plan: &Plan,
    encoder: &Encoder,
    memory: &[u8],
) -> Result<Converted, ClassicError> {
    let run_ext = plan.run_elems.saturating_mul(encoder.ext_size()).max(1);
    let run_mem = plan.run_elems.saturating_mul(encoder.mem_size());
    let at_once = BLOCK.div_euclid(run_ext).clamp(1, RUNS_AT_ONCE);
    let mut total = 0u64;
    let mut rest = memory;
    with_buffer(at_once.saturating_mul(run_ext), |buffer| {
        let mut write = |places: &mut Vec<u64>| {
            let n = places.len().saturating_mul(run_mem);
            let (now, later) = rest.split_at_checked(n).ok_or(VALUES)?;
            rest = later;
            let external = match encoder.is_copy() {
                true => now,
                false => {
                    let len = places.len().saturating_mul(run_ext);
                    let external = buffer.get_mut(..len).ok_or(BUFFER)?;
                    let span = converting(now.len());
                    total = total.saturating_add(encoder.encode(now, external).out_of_range);
                    drop(span);
                    external
                }
            };
            let runs = external.chunks(run_ext);
            let ranges: Vec<WriteRange<'_>> =
                places.drain(..).zip(runs).map(|(at, data)| WriteRange { at, data }).collect();
            Ok::<(), ClassicError>(storage.write_ranges(&ranges)?)
        };
        let mut places = Vec::with_capacity(at_once);
        plan.for_each_run(&plan.loops, |at| {
            places.push(at);
            if places.len() == at_once { write(&mut places) } else { Ok(()) }
        })?;
        write(&mut places)
    })?;
    if rest.is_empty() { Ok(Converted { out_of_range: total }) } else { Err(VALUES) }
}

fn read_plan(
    storage: &dyn Storage,
    plan: &Plan,
    decoder: &Decoder,
    memory: &mut [u8],
) -> Result<Converted, ClassicError> {
    if let Some(((count, step), outer)) = plan.strided()
        && step <= DENSE_STRIDE
    {
        return read_strided(storage, plan, (count, step, outer), decoder, memory);
    }
    let (ext, mem) = (decoder.ext_size(), decoder.mem_size());
    let run_mem = plan.run_elems.saturating_mul(mem);
    let mut runs = memory.chunks_mut(run_mem.max(1));
    let mut total = 0u64;
    if decoder.is_copy() {
        plan.for_each_run(&plan.loops, |at| {
            read_or_zeros(storage, at, runs.next().ok_or(VALUES)?)
        })?;
        return all_delivered(runs).map(|()| Converted::default());
    }
    let block_elems = BLOCK.checked_div(ext).unwrap_or(1).min(plan.run_elems).max(1);
    with_buffer(block_elems.saturating_mul(ext), |buffer| {
        plan.for_each_run(&plan.loops, |mut at| {
            let run = runs.next().ok_or(VALUES)?;
            for block in run.chunks_mut(block_elems.saturating_mul(mem)) {
                let len = block.len().checked_div(mem).unwrap_or(0).saturating_mul(ext);
                let external = buffer.get_mut(..len).ok_or(BUFFER)?;
                read_or_zeros(storage, at, external)?;
                let span = converting(block.len());
                total = total.saturating_add(decoder.decode(external, block).out_of_range);
                drop(span);
                at = at.saturating_add(len as u64);
            }
            Ok::<(), ClassicError>(())
        })
    })?;
    all_delivered(runs).map(|()| Converted { out_of_range: total })
}

/// Every n-th element of rows: reads spans with what lies between, and picks.
fn read_strided(
    storage: &dyn Storage,
    plan: &Plan,
    (count, step, outer): (usize, u64, &[(usize, u64)]),
    decoder: &Decoder,
    memory: &mut [u8],
) -> Result<Converted, ClassicError> {
    let (ext, mem) = (decoder.ext_size(), decoder.mem_size());
    let step_len = usize::try_from(step).unwrap_or(usize::MAX);
    let block_elems = BLOCK.checked_div(step_len).unwrap_or(1).clamp(1, count.max(1));
    let span = |n: usize| n.saturating_sub(1).saturating_mul(step_len).saturating_add(ext);
    let mut rows = memory.chunks_mut(count.saturating_mul(mem).max(1));
    let mut total = 0u64;
    with_buffer(span(block_elems), |buffer| {
        plan.for_each_run(outer, |mut at| {
            let row = rows.next().ok_or(VALUES)?;
            for block in row.chunks_mut(block_elems.saturating_mul(mem)) {
                let n = block.len().checked_div(mem).unwrap_or(0);
                let external = buffer.get_mut(..span(n)).ok_or(BUFFER)?;
                read_or_zeros(storage, at, external)?;
                let converted = decoder.decode_strided(external, step_len, block);
                total = total.saturating_add(converted.out_of_range);
                at = at.saturating_add(step.saturating_mul(n as u64));
            }
            Ok::<(), ClassicError>(())
        })
    })?;
    all_delivered(rows).map(|()| Converted { out_of_range: total })
}
