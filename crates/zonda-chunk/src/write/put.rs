//! Puts that go to several chunks, or to one that does not wait in memory.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::memory::tick;

use zonda_convert::Converted;
use zonda_model::Hyperslab;

use super::chunk_memory::{self, fill_chunk};
use super::encode::ElementEncoding;
use super::pending::{ChunkElems, PendingChunk};
use super::put_part::PutPart;
use super::spill::Spills;
use super::store::{self, ChunkSource, PutMemory, StoreJob};
use super::writer_array::WriterArray;
use super::{ArrayId, ChunkWriter, NO_ARRAY, NO_PLACE, OUTSIDE, RANK, WRONG_LENGTH, WRONG_SIZE};
use crate::ChunkError;
use crate::plan::{self, PartBatch};
use crate::recency::NodeId;
use crate::selection::DimNumbers;
use crate::selection::{Coords, GridSelection};
use crate::table::{Allocate, ChunkAt};
use crate::tuning::{PUT_BATCH_CHUNKS, PUT_POOL_BYTES, PUT_POOL_LOADED_BYTES, PUT_ROUND_BYTES};
use crate::worker::WorkerBuffers;

/// A chunk that a put touches: its coordinates, its part if the put has all of it, and where it is in the storage.
type TouchedChunk = (Coords, Option<PutPart>, Option<ChunkAt>);

/// A part of a put that does not have all of its chunk.
pub(super) struct PutTask {
    pub(super) part: PutPart,
    pub(super) key: Coords,
    pub(super) id: Option<NodeId>,
    /// Where the chunk is in the storage.
    pub(super) place: Option<ChunkAt>,
    pub(super) spare: Option<Vec<u8>>,
    pub(super) elems: ChunkElems,
    pub(super) outcome: Option<Result<Converted, ChunkError>>,
}

impl ChunkWriter {
    /// A put of any shape.
    pub(super) fn put_slab(
        &mut self,
        id: ArrayId,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        encode: &ElementEncoding<'_>,
        src: &[u8],
        space: &mut dyn Allocate,
    ) -> Result<Converted, ChunkError> {
        let array = self.arrays.get(id.0).and_then(Option::as_ref).ok_or(NO_ARRAY)?;
        if self.deferred_limit(array).is_some_and(|most| self.pending.deferred_bytes() >= most) {
            // The storage refused them: no more before it takes these.
            self.store_complete(space)?;
        }
        let array = self.arrays.get(id.0).and_then(Option::as_ref).ok_or(NO_ARRAY)?;
        let source = PutMemory { encode, src };
        if array.check_put(extent, slab, &source)? == 0 {
            return Ok(Converted::default());
        }
        // Against the lengths that dimensions can have, not the present ones: a chunk that is whole
        // here stays whole when the array grows.
        let selection = GridSelection::new(&array.chunk_dims, &array.limits, slab)?;
        let mem_steps = memory_steps(slab.count, encode.mem_size());
        let waits =
            !matches!(encode, ElementEncoding::Custom { .. }) && self.is_few(array, &selection);
        let put =
            SlabPut { id: id.0, extent, selection: &selection, mem_steps, source: &source, waits };
        let round = (self.limit / 4).min(PUT_ROUND_BYTES) / array.chunk_bytes as u64;
        let round = usize::try_from(round).unwrap_or(usize::MAX).max(1);
        let mut converted = Converted::default();
        for batch in plan::batches(&selection, PUT_BATCH_CHUNKS) {
            let mut next = batch.begin;
            if self.meets_deferred(&put, &batch) {
                self.store_complete(space)?;
            }
            let places = self.places(&put, &batch)?;
            let mut places = Some(&places[..]);
            while next < batch.end {
                let (behind, found) = self.put_some(&put, &batch, next, places, round, space)?;
                converted = converted.and(found);
                next = behind;
                // What had to go may be chunks of this very batch.
                if self.make_room(space)? {
                    places = None;
                }
            }
        }
        Ok(converted)
    }

    /// Whether chunks that are complete by this put alone are so few that they wait for others.
    fn is_few(&self, array: &WriterArray, selection: &GridSelection) -> bool {
        let chunks = selection.axes.iter().map(|axis| axis.cuts.n_chunks());
        self.are_few(chunks.fold(1, usize::saturating_mul)) && self.deferred_limit(array).is_some()
    }

    /// Whether a batch puts to chunks that may not change any more before they are stored.
    fn meets_deferred(&self, put: &SlabPut<'_>, batch: &PartBatch) -> bool {
        self.pending.has_deferred()
            && self.arrays[put.id].as_ref().is_some_and(|array| !array.keys.is_empty())
            && (batch.begin..batch.end).any(|number| {
                put.key(&put.pieces(number)).is_some_and(|key| self.is_deferred(put.id, &key))
            })
    }

    /// Where the chunks of a batch are, as far as that will be asked.
    fn places(
        &self,
        put: &SlabPut<'_>,
        batch: &PartBatch,
    ) -> Result<Vec<Option<ChunkAt>>, ChunkError> {
        let array = self.arrays[put.id].as_ref().ok_or(NO_ARRAY)?;
        let needed = array.writes_over()
            || put.waits
            || (batch.begin..batch.end).any(|number| {
                let pieces = put.pieces(number);
                let waits = || put.key(&pieces).is_some_and(|key| array.keys.contains_key(&key));
                !put.goes_straight(&pieces) && !waits()
            });
        match needed {
            true => plan::locate(&*array.table, put.selection, batch),
            false => Ok(vec![None; batch.end - batch.begin]),
        }
    }

    /// Puts the parts from `first` on, until `round` chunks are incomplete; says how far it came.
    /// Chunks that wait although the put has all of them do not count: where a round ends must not
    /// depend on how many wait.
    fn put_some(
        &mut self,
        put: &SlabPut<'_>,
        batch: &PartBatch,
        first: usize,
        places: Option<&[Option<ChunkAt>]>,
        round: usize,
        space: &mut dyn Allocate,
    ) -> Result<(usize, Converted), ChunkError> {
        let array = self.arrays[put.id].as_ref().ok_or(NO_ARRAY)?;
        let (mut tasks, mut parts) = (Vec::new(), Vec::new());
        let mut converted = Converted::default();
        let is_large = array.is_large(self.limit);
        // Others may write to the same chunk, so none of it waits here.
        let is_in_place = array.writes_over() && self.storage.has_other_writers();
        if is_large {
            self.store_complete(space)?;
        }
        let array = self.arrays[put.id].as_ref().ok_or(NO_ARRAY)?;
        let (mut next, mut n_incomplete) = (first, 0);
        while next < batch.end && n_incomplete < round {
            let pieces = put.pieces(next);
            let key = put.key(&pieces).ok_or(OUTSIDE)?;
            let place = match places {
                Some(places) => places[next - batch.begin],
                None => array.read.inner.find(&key)?,
            };
            let part = PutPart::new(put.selection, &pieces, &put.mem_steps, &array.steps);
            let part = part.ok_or(OUTSIDE)?;
            let is_whole = put.goes_straight(&pieces);
            let waits = put.waits && place.is_none() && !array.is_unfiltered(&key);
            if is_in_place {
                let place = Some(place.ok_or(NO_PLACE)?);
                let found =
                    array.put_large(&*self.storage, space, &key, place, &part, put.source)?;
                converted = converted.and(found);
            } else if is_whole && !waits {
                parts.push((key, Some(part), place));
            } else if is_large && !array.keys.contains_key(&key) {
                let found =
                    array.put_large(&*self.storage, space, &key, place, &part, put.source)?;
                converted = converted.and(found);
            } else {
                n_incomplete += usize::from(!is_whole);
                let id = array.keys.get(&key).copied();
                parts.push((key.clone(), None, place));
                let (elems, spare) = (ChunkElems::default(), None);
                tasks.push(PutTask { part, key, id, place, spare, elems, outcome: None });
            }
            next += 1;
        }
        let converted = converted.and(self.put_tasks(put, tasks)?);

        Ok((next, converted.and(self.store_whole(put, parts, space)?)))
    }

    /// Stores the chunks that a put has all of, and those that it made complete, in their order.
    fn store_whole(
        &mut self,
        put: &SlabPut<'_>,
        parts: Vec<TouchedChunk>,
        space: &mut dyn Allocate,
    ) -> Result<Converted, ChunkError> {
        let array = self.arrays[put.id].as_ref().ok_or(NO_ARRAY)?;
        if parts.iter().all(|(_, part, _)| part.is_none()) {
            let waiting = parts.iter().filter_map(|(key, ..)| array.keys.get(key).copied());
            let is_complete = |id: &NodeId| {
                self.pending.get(*id).is_some_and(|pending| pending.elems.written.is_complete())
            };
            let complete: Vec<NodeId> = waiting.filter(is_complete).collect();
            if !complete.is_empty() {
                self.complete(&complete, space)?;
            }
            return Ok(Converted::default());
        }
        self.store_complete(space)?;
        let array = self.arrays[put.id].as_ref().ok_or(NO_ARRAY)?;
        let mut jobs = Vec::with_capacity(parts.len());
        for (key, part, place) in parts {
            let bytes = match part {
                Some(part) => ChunkSource::Put(part, put.source),
                None => match array.keys.get(&key).and_then(|&id| self.pending.get(id)) {
                    Some(pending) if pending.elems.written.is_complete() => {
                        pending.elems.ready(&self.pending.spills)
                    }
                    _ => continue,
                },
            };
            let old = place.filter(|_| array.writes_over());
            jobs.push(StoreJob { array, key, bytes, old });
        }
        let outcome = store::run(&self.engine, &*self.storage, &jobs, &mut self.spare, space);
        let keys: Vec<Coords> = jobs.into_iter().take(outcome.stored).map(|job| job.key).collect();
        let array = self.arrays[put.id].as_mut().ok_or(NO_ARRAY)?;
        for key in keys {
            array.read.inner.changed(&key);
            self.pending.remove(&mut array.keys, &key, &mut self.spare);
        }
        if let Some(error) = outcome.error {
            return Err(error);
        }
        Ok(outcome.converted)
    }

    /// Puts parts of chunks that are incomplete, as many at a time as there is memory for.
    pub(super) fn put_tasks(
        &mut self,
        put: &SlabPut<'_>,
        tasks: Vec<PutTask>,
    ) -> Result<Converted, ChunkError> {
        let array = self.arrays[put.id].as_ref().ok_or(NO_ARRAY)?;
        let most = self.most_at_once(array.chunk_bytes);
        let (mut tasks, mut converted) = (tasks, Converted::default());
        while tasks.len() > most {
            let rest = tasks.split_off(most);
            converted = converted.and(self.put_together(put, tasks)?);
            self.account();
            tasks = rest;
        }
        Ok(converted.and(self.put_together(put, tasks)?))
    }

    /// Puts parts of chunks that are incomplete, on all threads where that pays.
    fn put_together(
        &mut self,
        put: &SlabPut<'_>,
        tasks: Vec<PutTask>,
    ) -> Result<Converted, ChunkError> {
        if tasks.is_empty() {
            return Ok(Converted::default());
        }
        let array = self.arrays[put.id].as_ref().ok_or(NO_ARRAY)?;
        let (mut n_loaded, mut bytes) = (0usize, 0usize);
        let mut slots = Vec::with_capacity(tasks.len());
        for mut task in tasks {
            match task.id {
                Some(id) => {
                    task.elems = self.pending.lend(id);
                    task.spare = task.elems.spilled.and_then(|_| self.spare.take());
                }
                None => {
                    task.spare = self.spare.take();
                    n_loaded += usize::from(task.place.is_some());
                }
            }
            bytes += task.part.n_elems() * array.elem_size;
            slots.push(Mutex::ranked(Rank::Put, task));
        }
        let worth = bytes >= PUT_POOL_BYTES
            || n_loaded.saturating_mul(array.chunk_bytes) >= PUT_POOL_LOADED_BYTES;
        let more = if worth { slots.len() - 1 } else { 0 };
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let spills = &self.pending.spills;
        let work = || {
            let mut buffers = WorkerBuffers::take();
            while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
                if failed.load(Ordering::Relaxed) {
                    break;
                }
                let mut task = slot.lock();
                let outcome = put.work(array, spills, &mut task, &mut buffers);
                failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                task.outcome = Some(outcome);
            }
            buffers.put_back(array.chunk_bytes, &self.engine);
        };
        // Whatever happens, what other puts left in these chunks must not be lost.
        let run = std::panic::AssertUnwindSafe(|| self.engine.run(more, &work));
        let panicked = std::panic::catch_unwind(run).err();
        let result = self.settle(put.id, slots);
        match panicked {
            Some(panic) => std::panic::resume_unwind(panic),
            None => result,
        }
    }

    /// Takes back the chunks of tasks that were done.
    fn settle(
        &mut self,
        index: usize,
        slots: Vec<Mutex<PutTask>>,
    ) -> Result<Converted, ChunkError> {
        let array = self.arrays[index].as_mut().ok_or(NO_ARRAY)?;
        let mut result = Ok(Converted::default());
        for slot in slots {
            let task = slot.into_inner();
            let done = matches!(task.outcome, Some(Ok(_)));
            match task.id {
                Some(id) => {
                    self.pending.put_back(id, task.elems);
                    if let Some(pending) = self.pending.touch(id) {
                        // Also after a panic: some of its elements may be new.
                        pending.dirty |= task.outcome.is_none() || done;
                    }
                }
                None if done => {
                    let (key, elems) = (task.key, task.elems);
                    let (origin, used) = (array.origin(&key), tick());
                    let pending = PendingChunk {
                        array: index,
                        key,
                        origin,
                        elems,
                        dirty: true,
                        is_deferred: false,
                        used,
                    };
                    self.pending.insert(&mut array.keys, pending);
                }
                None => self.spare.put(task.elems.bytes),
            }
            result = match (result, task.outcome) {
                (Ok(sum), Some(Ok(found))) => Ok(sum.and(found)),
                (Ok(_), Some(Err(error))) => Err(error),
                (result, _) => result,
            };
        }
        result
    }
}

impl WriterArray {
    /// Checks a put against the array and its extent; gives the number of its elements.
    fn check_put(
        &self,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        source: &PutMemory<'_>,
    ) -> Result<usize, ChunkError> {
        let mem_size = source.encode.mem_size();
        if source.encode.file_size() != self.elem_size || mem_size == 0 {
            return Err(WRONG_SIZE);
        }
        if extent.len() != self.limits.len() {
            return Err(RANK);
        }
        if !self.may_have(extent) {
            let what = "the array has unfiltered edge chunks, so its extent cannot change";
            return Err(ChunkError::Request { what });
        }
        let limits: Coords = self.limits.iter().zip(extent).map(|(&a, &b)| a.min(b)).collect();
        let inside = GridSelection::new(&self.chunk_dims, &limits, slab)?;
        if inside.n_elems.checked_mul(mem_size) != Some(source.src.len()) {
            return Err(WRONG_LENGTH);
        }
        if inside.n_elems > 0 && inside.cuts().any(|cuts| cuts.n_pieces() != cuts.n_chunks()) {
            return Err(OUTSIDE);
        }
        Ok(inside.n_elems)
    }
}

/// Bytes from one element to the next along each dimension of the caller's memory.
pub(super) fn memory_steps(count: &[usize], mem_size: usize) -> DimNumbers {
    let mut steps = DimNumbers::from_elem(0, count.len());
    let mut step = mem_size;
    for (mem_step, &n) in steps.iter_mut().zip(count).rev() {
        *mem_step = step;
        step = step.saturating_mul(n);
    }
    steps
}

/// A put that goes to several chunks, or to one that does not wait.
pub(super) struct SlabPut<'a> {
    pub(super) id: usize,
    pub(super) extent: &'a [u64],
    /// With the lengths that dimensions can have.
    pub(super) selection: &'a GridSelection,
    pub(super) mem_steps: DimNumbers,
    pub(super) source: &'a PutMemory<'a>,
    /// Chunks that it has all of, and that are new, wait for others.
    pub(super) waits: bool,
}

impl SlabPut<'_> {
    /// The pieces that part `number` is made of.
    fn pieces(&self, number: usize) -> DimNumbers {
        let axes = &self.selection.axes;
        let mut pieces = DimNumbers::from_elem(0, axes.len());
        let mut rest = number;
        for (axis, piece) in axes.iter().zip(&mut pieces).rev() {
            let n = axis.cuts.n_pieces();
            *piece = rest % n;
            rest /= n;
        }
        pieces
    }

    fn key(&self, pieces: &[usize]) -> Option<Coords> {
        let axes = self.selection.axes.iter().zip(pieces);
        axes.map(|(axis, &k)| Some(axis.piece(k)?.chunk)).collect()
    }

    /// Whether it has all elements of the chunk, which so need not wait.
    fn goes_straight(&self, pieces: &[usize]) -> bool {
        let mut axes = self.selection.axes.iter().zip(pieces);
        axes.all(|(axis, &k)| axis.is_whole(k)) && !self.source.encode.keeps_unfit()
    }

    /// Whether a part leaves nothing of its chunk as it was.
    fn covers(&self, array: &WriterArray, part: &PutPart) -> bool {
        part.n_elems() == array.chunk_elems && !self.source.encode.keeps_unfit()
    }

    /// Puts one part into its chunk, which is begun or loaded first.
    fn work(
        &self,
        array: &WriterArray,
        spills: &Spills,
        task: &mut PutTask,
        buffers: &mut WorkerBuffers,
    ) -> Result<Converted, ChunkError> {
        if let Some(slot) = task.elems.spilled {
            let mut bytes = chunk_memory::memory(task.spare.take(), array.chunk_bytes)?;
            spills.read(&task.key, slot, &mut bytes)?;
            (task.elems.bytes, task.elems.spilled) = (bytes, None);
        }
        if task.id.is_none() {
            let mut bytes = chunk_memory::memory(task.spare.take(), array.chunk_bytes)?;
            match task.place {
                Some(place) => {
                    array.read.inner.load(&task.key, place, self.extent, buffers, &mut bytes)?;
                }
                None if self.covers(array, &task.part) => {}
                None => fill_chunk(&mut bytes, &array.fill),
            }
            task.elems = array.begin(bytes, &task.key)?;
        }
        Ok(task.elems.put(&task.part, self.source, &mut buffers.rows.block))
    }
}
