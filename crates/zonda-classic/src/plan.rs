//! A hyperslab as a plan: runs of elements that lie side by side in the file, and the loops around them. Each run is converted
//! in blocks that stay in the cache of one core.

use std::cell::Cell;
use std::ops::Range;

use smallvec::SmallVec;
use zonda_convert::{Converted, Decoder, Encoder};
use zonda_model::{Hyperslab, memory};
use zonda_slab::for_each_place;
use zonda_storage::{Rows, RunRanges, Storage, ToldReads, WriteRange};
use zonda_trace::{Args, EventKind, TraceSpan};

use crate::error::{ClassicError, shown};
use crate::header::{Header, Var};
use crate::past_end::{BUFFER, decode_or_zeros, read_or_zeros};
use crate::small_run::on_stack;
use crate::tuning::{
    CONVERTED_BLOCK_BYTES, DENSE_STRIDE_BYTES, REMOTE_GAP_BYTES, RUNS_AT_ONCE, SHARED_BLOCK_BYTES,
    SHORT_RUN_BYTES, STACK_RUN_BYTES, TRACED_BYTES,
};

thread_local! {
    /// Conversion buffer of the thread, kept between calls.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Which elements a transfer touches, in file order.
pub(crate) struct TransferPlan {
    /// Byte offset of the first element.
    begin: u64,
    /// Elements side by side at each stop of the loops.
    run_elems: usize,
    /// The loops from the outermost in: how many steps, and bytes from one to the next.
    loops: SmallVec<[(usize, u64); 8]>,
    /// All elements.
    pub(crate) n_elems: usize,
}

impl TransferPlan {
    pub(crate) fn new(
        header: &Header,
        var: &Var,
        slab: &Hyperslab<'_>,
    ) -> Result<TransferPlan, ClassicError> {
        let rank = var.shape.len();
        let n_elems = n_elems(var, slab)?;
        let size = var.ty.size() as u64;
        let mut plan =
            TransferPlan { begin: var.begin, run_elems: 1, loops: SmallVec::new(), n_elems };
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

    /// Calls `f` with the byte offset of every run, in order. With a damaged header an offset beyond 64 bits becomes the largest
    /// one, which no storage has.
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

    /// The ranges of all runs, of elements of `size` bytes, with the numbers that [`ToldReads`] wants.
    fn ranges(&self, size: usize) -> impl Iterator<Item = (u64, Range<u64>)> {
        let run_bytes = (self.run_elems as u64).saturating_mul(size as u64);
        let loops = self.loops.iter().map(|&(count, step)| (count as u64, step));
        let run_bytes = if self.n_elems == 0 { 0 } else { run_bytes };
        RunRanges::new(self.begin, run_bytes, loops).map(|range| (range.start, range))
    }

    /// The innermost loop where it steps over single elements, and the loops around it.
    #[allow(clippy::type_complexity)]
    fn strided(&self) -> Option<((usize, u64), &[(usize, u64)])> {
        let (&inner, outer) = self.loops.split_last()?;
        (self.run_elems == 1).then_some((inner, outer))
    }
}

/// How many elements a selection has.
pub(crate) fn n_elems(var: &Var, slab: &Hyperslab<'_>) -> Result<usize, ClassicError> {
    let count = slab.count.get(..var.shape.len());
    count.and_then(|count| Hyperslab { count, ..*slab }.n_elems()).ok_or_else(|| too_large(var))
}

/// More than any memory holds.
#[cold]
pub(crate) fn too_large(var: &Var) -> ClassicError {
    ClassicError::SelectionTooLarge(shown(&var.name))
}

/// Begins the trace event of a block that is converted, of `bytes` in the caller's memory. Small blocks have none: it would take
/// longer than converting them.
#[inline(always)]
fn converting(bytes: usize) -> TraceSpan {
    if bytes < TRACED_BYTES {
        return TraceSpan::none();
    }
    zonda_trace::span(EventKind::Convert, || Args { bytes: bytes as u64, ..Args::default() })
}

/// Calls `f` with a buffer of `len` bytes: on the stack for small ones, else the thread's scratch.
fn with_buffer<R>(
    len: usize,
    f: impl FnOnce(&mut [u8]) -> Result<R, ClassicError>,
) -> Result<R, ClassicError> {
    if len <= STACK_RUN_BYTES {
        return on_stack(len, f);
    }
    // Taken out and put back: a storage layer below that transfers by itself then finds an empty buffer, and so does a thread
    // that is ending.
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    memory::lengthen(&mut scratch, len, 0)?;
    let done = scratch.get_mut(..len).ok_or(BUFFER).and_then(f);
    let _ = SCRATCH.try_with(|slot| slot.set(scratch));
    done
}

/// There are as many values as places by construction; if not, it is an error, so that no value is lost silently.
const VALUES: ClassicError = ClassicError::Length("a run of values");

/// Checks that no run of values is left over.
fn all_delivered<T>(mut rest: impl Iterator<Item = T>) -> Result<(), ClassicError> {
    if rest.next().is_none() { Ok(()) } else { Err(VALUES) }
}

pub(crate) fn write_plan(
    storage: &dyn Storage,
    plan: &TransferPlan,
    encoder: &Encoder,
    memory: &[u8],
) -> Result<Converted, ClassicError> {
    let (ext, mem) = (encoder.ext_size(), encoder.mem_size());
    let run_mem = plan.run_elems.saturating_mul(mem);
    if run_mem < memory.len()
        && plan.run_elems.saturating_mul(ext) <= SHORT_RUN_BYTES
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
    let block_bytes =
        if storage.has_other_writers() { SHARED_BLOCK_BYTES } else { CONVERTED_BLOCK_BYTES };
    let block_elems = block_bytes.checked_div(ext).unwrap_or(1).min(plan.run_elems).max(1);
    with_buffer(block_elems.saturating_mul(ext), |buffer| {
        plan.for_each_run(&plan.loops, |mut at| {
            for block in runs.next().ok_or(VALUES)?.chunks(block_elems.saturating_mul(mem)) {
                let len = block.len().checked_div(mem).unwrap_or(0).saturating_mul(ext);
                let external = buffer.get_mut(..len).ok_or(BUFFER)?;
                if encoder.keeps_unfit() {
                    // For this pair of types, values that do not fit leave the file's elements as they are.
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
    plan: &TransferPlan,
    encoder: &Encoder,
    memory: &[u8],
) -> Result<Converted, ClassicError> {
    let run_ext = plan.run_elems.saturating_mul(encoder.ext_size()).max(1);
    let run_mem = plan.run_elems.saturating_mul(encoder.mem_size());
    let at_once = CONVERTED_BLOCK_BYTES.div_euclid(run_ext).clamp(1, RUNS_AT_ONCE);
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

pub(crate) fn read_plan(
    storage: &dyn Storage,
    plan: &TransferPlan,
    decoder: &Decoder,
    memory: &mut [u8],
) -> Result<Converted, ClassicError> {
    let (ext, mem) = (decoder.ext_size(), decoder.mem_size());
    // One run that is not converted is one read, which needs no notice.
    let remote = storage.remote().filter(|_| !(plan.loops.is_empty() && decoder.is_copy()));
    let mut told =
        remote.map(|remote| ToldReads::of_rows(remote, plan.ranges(ext), REMOTE_GAP_BYTES));
    let mut reached = |at: u64| {
        if let Some(told) = &mut told {
            told.reached(at);
        }
    };
    let mut read = |at: u64, out: &mut [u8]| {
        reached(at);
        read_or_zeros(storage, at, out)
    };
    if let Some(((count, step), outer)) = plan.strided()
        && step <= DENSE_STRIDE_BYTES
    {
        return read_strided(&mut read, plan, (count, step, outer), decoder, memory);
    }
    let run_mem = plan.run_elems.saturating_mul(mem);
    let mut runs = memory.chunks_mut(run_mem.max(1));
    let mut total = 0u64;
    if decoder.is_copy() {
        plan.for_each_run(&plan.loops, |at| read(at, runs.next().ok_or(VALUES)?))?;
        return all_delivered(runs).map(|()| Converted::default());
    }
    let block_elems =
        CONVERTED_BLOCK_BYTES.checked_div(ext).unwrap_or(1).min(plan.run_elems).max(1);
    let ((count, step), outer) = match plan.loops.split_last() {
        Some((&inner, outer)) => (inner, outer),
        None => ((1, 0), &[][..]),
    };
    // A storage that is told of reads is asked row by row.
    let len = plan.run_elems.saturating_mul(ext);
    let may_show = remote.is_none() && block_elems == plan.run_elems;
    with_buffer(block_elems.saturating_mul(ext), |buffer| {
        plan.for_each_run(outer, |mut at| {
            let mut left = count;
            while left > 0 {
                if may_show {
                    let mut is_short = false;
                    let n = storage.show_rows(Rows { at, len, step, count: left }, &mut |bytes| {
                        let Some(run) = runs.next() else {
                            is_short = true;
                            return;
                        };
                        let _span = converting(run.len());
                        total = total.saturating_add(decoder.decode(bytes, run).out_of_range);
                    });
                    if is_short {
                        return Err(VALUES);
                    }
                    left = left.saturating_sub(n);
                    at = at.saturating_add(step.saturating_mul(n as u64));
                    if left == 0 {
                        break;
                    }
                }
                let run = runs.next().ok_or(VALUES)?;
                let mut here = at;
                for block in run.chunks_mut(block_elems.saturating_mul(mem)) {
                    let len = block.len().checked_div(mem).unwrap_or(0).saturating_mul(ext);
                    let external = buffer.get_mut(..len).ok_or(BUFFER)?;
                    reached(here);
                    let converted = decode_or_zeros(storage, here, external, |bytes| {
                        let _span = converting(block.len());
                        decoder.decode(bytes, block)
                    })?;
                    total = total.saturating_add(converted.out_of_range);
                    here = here.saturating_add(len as u64);
                }
                left = left.saturating_sub(1);
                at = at.saturating_add(step);
            }
            Ok::<(), ClassicError>(())
        })
    })?;
    all_delivered(runs).map(|()| Converted { out_of_range: total })
}

/// Reads every n-th element of rows: whole spans are read, with the elements between, and the wanted ones are picked.
fn read_strided(
    read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), ClassicError>,
    plan: &TransferPlan,
    (count, step, outer): (usize, u64, &[(usize, u64)]),
    decoder: &Decoder,
    memory: &mut [u8],
) -> Result<Converted, ClassicError> {
    let (ext, mem) = (decoder.ext_size(), decoder.mem_size());
    let step_len = usize::try_from(step).unwrap_or(usize::MAX);
    let block_elems =
        CONVERTED_BLOCK_BYTES.checked_div(step_len).unwrap_or(1).clamp(1, count.max(1));
    let span = |n: usize| n.saturating_sub(1).saturating_mul(step_len).saturating_add(ext);
    let mut rows = memory.chunks_mut(count.saturating_mul(mem).max(1));
    let mut total = 0u64;
    with_buffer(span(block_elems), |buffer| {
        plan.for_each_run(outer, |mut at| {
            let row = rows.next().ok_or(VALUES)?;
            for block in row.chunks_mut(block_elems.saturating_mul(mem)) {
                let n = block.len().checked_div(mem).unwrap_or(0);
                let external = buffer.get_mut(..span(n)).ok_or(BUFFER)?;
                read(at, external)?;
                let converted = decoder.decode_strided(external, step_len, block);
                total = total.saturating_add(converted.out_of_range);
                at = at.saturating_add(step.saturating_mul(n as u64));
            }
            Ok::<(), ClassicError>(())
        })
    })?;
    all_delivered(rows).map(|()| Converted { out_of_range: total })
}
