//! Puts into chunked arrays.
//!
//! A chunk of which a put has all elements goes straight from the caller's memory through the
//! filters into the storage. Others wait in memory until they are complete, until their bytes are
//! too many (then the one put longest ago is stored), or until a flush. Which chunks are stored
//! when, and in which order, follows from the calls alone: not from threads, reads or other files.

mod encode;
mod load;
mod part;
mod pending;
mod store;
mod written;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;
use zonda_convert::Converted;
use zonda_model::Hyperslab;
use zonda_storage::{Storage, memory};

use crate::array::{Bench, Numbers};
use crate::filter::Pipeline;
use crate::linear::{self, run_in};
use crate::plan::{self, Batch};
use crate::pool::Engine;
use crate::recency::Id;
use crate::selection::{Coords, Selection};
use crate::table::{Allocate, ChunkAt, WriteTable};
use crate::{ArrayShape, ChunkError, ChunkedArray, Decode};

pub use encode::Encode;
use load::fill_chunk;
use part::Part;
use pending::{Body, Keys, OfArray, Pending, PendingChunks};
use store::{Bytes, Job, Outcome, Source, Spare};
use written::Written;

/// An array of a [`ChunkWriter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayId(usize);

/// What a [`ChunkWriter`] has to know of an array.
#[derive(Debug)]
pub struct NewArray {
    /// Where its chunks are, and are entered.
    pub table: Arc<dyn WriteTable>,
    /// Its filters.
    pub filters: Arc<Pipeline>,
    /// The shape of its chunks.
    pub shape: ArrayShape,
    /// One element in file form; empty for zeros.
    pub fill: Box<[u8]>,
    /// The length of each dimension that cannot grow. A chunk is complete when all elements that it
    /// can ever have were put.
    pub fixed: Vec<Option<u64>>,
}

/// The chunked arrays of one file that is being written, with their incomplete chunks.
#[derive(Debug)]
pub struct ChunkWriter {
    engine: Arc<Engine>,
    storage: Arc<dyn Storage>,
    /// Bytes that incomplete chunks may take.
    limit: u64,
    arrays: Vec<Option<Array>>,
    pending: PendingChunks,
    spare: Spare,
}

#[derive(Debug)]
pub(crate) struct Array {
    read: ChunkedArray,
    table: Arc<dyn WriteTable>,
    filters: Arc<Pipeline>,
    fill: Box<[u8]>,
    chunk_dims: Coords,
    elem_size: usize,
    chunk_elems: usize,
    chunk_bytes: usize,
    /// Bytes from one element of a chunk to the next in each dimension.
    steps: Coords,
    /// Elements along each dimension, as far as that is certain.
    limits: Coords,
    keys: Keys,
}

/// Bytes that incomplete chunks of a file may take, unless the user says so.
const DEFAULT_LIMIT: u64 = 256 << 20;
/// Parts of a put that are looked up together.
const MOST_PARTS: usize = 4096;
/// Bytes of incomplete chunks that are put before it is looked whether they are too many.
const ROUND_BYTES: u64 = 64 << 20;
/// Bytes from which on converting is worth other threads.
const POOL_BYTES: usize = 4 << 20;
/// Decoded bytes from which on loading is.
const POOL_LOADED_BYTES: usize = 256 << 10;

const RANK: ChunkError = ChunkError::Request { what: "another rank than the array" };
const NO_ARRAY: ChunkError = ChunkError::Request { what: "an array that was removed" };
const OUTSIDE: ChunkError = ChunkError::Request { what: "elements beyond the extent" };
const WRONG_SIZE: ChunkError =
    ChunkError::Request { what: "another size of elements than the array" };
const WRONG_LENGTH: ChunkError = ChunkError::Request { what: "memory of another length" };

impl Array {
    /// Whether a chunk is stored as it is.
    fn is_unfiltered(&self, _key: &[u64]) -> bool {
        self.filters.is_identity()
    }

    /// Elements of a chunk that can ever be put.
    fn possible(&self, key: &[u64]) -> usize {
        let sides =
            key.iter().zip(&self.chunk_dims).zip(&self.limits).map(|((&k, &n), &limit)| {
                n.min(limit.saturating_sub(k.saturating_mul(n))) as usize
            });
        sides.product()
    }

    fn origin(&self, key: &[u64]) -> Coords {
        key.iter().zip(&self.chunk_dims).map(|(&k, &n)| k.saturating_mul(n)).collect()
    }

    /// The chunk and the elements in it, for a put that is one run of elements in one chunk.
    fn run(&self, extent: &[u64], slab: &Hyperslab<'_>) -> Option<(Coords, (u64, usize))> {
        let dims = &self.chunk_dims[..];
        if slab.start.len() != dims.len() {
            return None;
        }
        let key: Coords = slab.start.iter().zip(dims).map(|(&s, &n)| s as u64 / n).collect();
        let run = run_in(dims, extent, slab, |d| key[d] * dims[d])?;
        Some((key, run))
    }

    /// A chunk of which nothing was put so far.
    fn begin(&self, bytes: Vec<u8>, key: &[u64]) -> Result<Body, ChunkError> {
        let no_memory = ChunkError::NoMemory { bytes: self.chunk_bytes as u64 };
        let written = Written::new(self.chunk_elems, self.possible(key)).ok_or(no_memory)?;
        Ok(Body { bytes, written })
    }
}

/// A part of a put that does not have all of its chunk.
struct Task {
    part: Part,
    key: Coords,
    id: Option<Id>,
    /// Where the chunk is in the storage.
    place: Option<ChunkAt>,
    spare: Option<Vec<u8>>,
    body: Body,
    outcome: Option<Result<Converted, ChunkError>>,
}

impl ChunkWriter {
    /// A writer into `storage`, whose incomplete chunks take up to about `limit_bytes` of memory.
    #[must_use]
    pub fn new(engine: &Arc<Engine>, storage: Arc<dyn Storage>, limit_bytes: u64) -> ChunkWriter {
        ChunkWriter {
            engine: Arc::clone(engine),
            storage,
            limit: limit_bytes,
            arrays: Vec::new(),
            pending: PendingChunks::default(),
            spare: Spare::default(),
        }
    }

    /// The limit that the user asked for with `ZONDA_WRITE_CACHE`, or the default of 256 MiB.
    #[must_use]
    pub fn limit_from_env() -> u64 {
        memory::setting("ZONDA_WRITE_CACHE", || DEFAULT_LIMIT)
    }

    /// Adds an array.
    ///
    /// # Errors
    /// [`ChunkError::Shape`] for a shape that no array can have.
    pub fn add(&mut self, new: NewArray) -> Result<ArrayId, ChunkError> {
        let NewArray { table, filters, shape, fill, fixed } = new;
        let ArrayShape { chunk_dims, elem_size } = &shape;
        let rank = chunk_dims.len();
        let steps = linear::steps(chunk_dims, *elem_size);
        let elems = chunk_dims.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
        let bytes = elems.and_then(|elems| elems.checked_mul(*elem_size as u64));
        let bytes = bytes.filter(|&bytes| bytes > 0 && isize::try_from(bytes).is_ok());
        let (Some(steps), Some(elems), Some(bytes)) = (steps, elems, bytes) else {
            let what = "chunks of no elements, or of more than can be counted";
            return Err(ChunkError::Shape { what });
        };
        if !fill.is_empty() && fill.len() != *elem_size {
            let what = "a fill value of another size than an element";
            return Err(ChunkError::Shape { what });
        }
        if fixed.len() != rank {
            return Err(RANK);
        }
        let array = Array {
            table: Arc::clone(&table),
            filters: Arc::clone(&filters),
            fill: fill.clone(),
            chunk_dims: SmallVec::from_slice(chunk_dims),
            elem_size: *elem_size,
            chunk_elems: elems as usize,
            chunk_bytes: bytes as usize,
            steps,
            limits: fixed.iter().map(|len| len.unwrap_or(u64::MAX)).collect(),
            keys: Keys::default(),
            read: ChunkedArray::new_in(
                &self.engine,
                Arc::clone(&self.storage),
                table,
                filters,
                shape,
                fill,
                false,
            ),
        };
        self.arrays.push(Some(array));
        Ok(ArrayId(self.arrays.len() - 1))
    }

    /// Forgets an array, and what of it is not stored.
    pub fn remove(&mut self, id: ArrayId) {
        let Some(mut array) = self.arrays.get_mut(id.0).and_then(Option::take) else { return };
        let keys: Vec<Coords> = array.keys.keys().cloned().collect();
        for key in keys {
            self.pending.remove(&mut array.keys, &key, &mut self.spare);
        }
    }

    /// The array, for its cache. What it reads is what is stored: [`ChunkWriter::read`] sees all
    /// that was put.
    #[must_use]
    pub fn array(&self, id: ArrayId) -> Option<&ChunkedArray> {
        Some(&self.arrays.get(id.0)?.as_ref()?.read)
    }

    /// Bytes that incomplete chunks take.
    #[must_use]
    pub fn pending_bytes(&self) -> u64 {
        self.pending.bytes()
    }

    /// Whether something was put that is not stored.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.pending.oldest_first().any(|(_, pending)| pending.dirty)
    }

    /// Puts a hyperslab of an array, whose shape is `extent` after it grew for this put. `src` has
    /// packed elements in memory form, row-major with shape `slab.count`.
    ///
    /// Elements that do not fit are counted, and stored as `encode` says.
    ///
    /// # Errors
    /// Those of storage, table, space and filters, and [`ChunkError::Request`] where the arguments
    /// do not fit each other. What earlier puts left in memory stays there, and each chunk that
    /// this put has to do with holds its old or its new elements: the same put again, or a flush if
    /// it was only about other chunks, makes up for what was left undone.
    pub fn put(
        &mut self,
        id: ArrayId,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        encode: Encode<'_>,
        src: &[u8],
        space: &mut dyn Allocate,
    ) -> Result<Converted, ChunkError> {
        if let Some((converted, complete)) = self.put_run(id, extent, slab, &encode, src) {
            if let Some(chunk) = complete {
                self.store_pending(&[chunk], space)?;
            }
            return Ok(converted);
        }
        self.put_slab(id, extent, slab, &encode, src, space)
    }

    /// A put of one run of elements into a chunk that waits already; with the chunk if that makes
    /// it complete.
    #[inline]
    #[expect(clippy::type_complexity, reason = "only `put` calls it")]
    fn put_run(
        &mut self,
        id: ArrayId,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        encode: &Encode<'_>,
        src: &[u8],
    ) -> Option<(Converted, Option<Id>)> {
        let array = self.arrays.get(id.0)?.as_ref()?;
        if encode.file_size() != array.elem_size {
            return None;
        }
        let dims = &array.chunk_dims[..];
        let mut found = None;
        if let Some((node, pending)) = self.pending.last(id.0) {
            found = run_in(dims, extent, slab, |d| pending.origin[d]).map(|run| (node, run));
        }
        let (node, (first, n)) = match found {
            Some(found) => found,
            None if array.keys.is_empty() => return None,
            None => {
                let (key, run) = array.run(extent, slab)?;
                (*array.keys.get(&key)?, run)
            }
        };
        let elem = array.elem_size;
        // A chunk that a put has all of need not wait.
        if n.checked_mul(encode.mem_size()) != Some(src.len()) || n == array.chunk_elems {
            return None;
        }
        let pending = self.pending.touch(node)?;
        let first = usize::try_from(first).ok()?;
        let dst = pending.body.bytes.get_mut(first * elem..)?.get_mut(..n * elem)?;
        let converted = encode.run(src, dst);
        pending.body.written.mark(first, n);
        pending.dirty = true;
        Some((converted, pending.body.written.is_complete().then_some(node)))
    }

    fn put_slab(
        &mut self,
        id: ArrayId,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        encode: &Encode<'_>,
        src: &[u8],
        space: &mut dyn Allocate,
    ) -> Result<Converted, ChunkError> {
        let array = self.arrays.get(id.0).and_then(Option::as_ref).ok_or(NO_ARRAY)?;
        if encode.file_size() != array.elem_size || encode.mem_size() == 0 {
            return Err(WRONG_SIZE);
        }
        if extent.len() != array.limits.len() {
            return Err(RANK);
        }
        let limits: Coords = array.limits.iter().zip(extent).map(|(&a, &b)| a.min(b)).collect();
        let inside = Selection::new(&array.chunk_dims, &limits, slab)?;
        if inside.n_elems.checked_mul(encode.mem_size()) != Some(src.len()) {
            return Err(WRONG_LENGTH);
        }
        if inside.n_elems == 0 {
            return Ok(Converted::default());
        }
        if inside.cuts().any(|cuts| cuts.n_pieces() != cuts.n_chunks()) {
            return Err(OUTSIDE);
        }
        // In this one a chunk is whole if it is for good.
        let selection = Selection::new(&array.chunk_dims, &array.limits, slab)?;
        let mut mem_steps = Numbers::from_elem(0, slab.count.len());
        let mut step = encode.mem_size();
        for (mem_step, &n) in mem_steps.iter_mut().zip(slab.count).rev() {
            *mem_step = step;
            step = step.saturating_mul(n);
        }
        let source = Source { encode, src };
        let put = Put { id: id.0, extent, selection: &selection, mem_steps, source: &source };
        let round = (self.limit / 4).min(ROUND_BYTES) / array.chunk_bytes as u64;
        let round = usize::try_from(round).unwrap_or(usize::MAX).max(1);
        let mut converted = Converted::default();
        for batch in plan::batches(&selection, MOST_PARTS) {
            let mut next = batch.begin;
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

    /// Where the chunks of a batch are, as far as that will be asked.
    fn places(&self, put: &Put<'_>, batch: &Batch) -> Result<Vec<Option<ChunkAt>>, ChunkError> {
        let array = self.arrays[put.id].as_ref().ok_or(NO_ARRAY)?;
        let needed = array.filters.is_identity()
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
    fn put_some(
        &mut self,
        put: &Put<'_>,
        batch: &Batch,
        first: usize,
        places: Option<&[Option<ChunkAt>]>,
        round: usize,
        space: &mut dyn Allocate,
    ) -> Result<(usize, Converted), ChunkError> {
        let array = self.arrays[put.id].as_ref().ok_or(NO_ARRAY)?;
        let (mut tasks, mut parts) = (Vec::new(), Vec::new());
        let mut next = first;
        while next < batch.end && tasks.len() < round {
            let pieces = put.pieces(next);
            let key = put.key(&pieces).ok_or(OUTSIDE)?;
            let place = match places {
                Some(places) => places[next - batch.begin],
                None => array.read.inner.find(&key)?,
            };
            let part = Part::new(put.selection, &pieces, &put.mem_steps, &array.steps);
            let part = part.ok_or(OUTSIDE)?;
            if put.goes_straight(&pieces) {
                parts.push((key, Some(part), place));
            } else {
                let id = array.keys.get(&key).copied();
                parts.push((key.clone(), None, place));
                let (body, spare) = (Body::default(), None);
                tasks.push(Task { part, key, id, place, spare, body, outcome: None });
            }
            next += 1;
        }
        let converted = self.put_tasks(put, tasks)?;

        // What is whole, and what has become so, in their order.
        let array = self.arrays[put.id].as_ref().ok_or(NO_ARRAY)?;
        let mut jobs = Vec::with_capacity(parts.len());
        for (key, part, place) in parts {
            let bytes = match part {
                Some(part) => Bytes::Put(part, put.source),
                None => match array.keys.get(&key).and_then(|&id| self.pending.get(id)) {
                    Some(pending) if pending.body.written.is_complete() => {
                        Bytes::Ready(&pending.body.bytes)
                    }
                    _ => continue,
                },
            };
            let old = place.filter(|_| array.filters.is_identity());
            jobs.push(Job { array, key, bytes, old });
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
        Ok((next, converted.and(outcome.converted)))
    }

    /// Puts parts of chunks that are incomplete, on all threads where that pays.
    fn put_tasks(&mut self, put: &Put<'_>, tasks: Vec<Task>) -> Result<Converted, ChunkError> {
        if tasks.is_empty() {
            return Ok(Converted::default());
        }
        let array = self.arrays[put.id].as_ref().ok_or(NO_ARRAY)?;
        let (mut n_loaded, mut bytes) = (0usize, 0usize);
        let mut slots = Vec::with_capacity(tasks.len());
        for mut task in tasks {
            match task.id {
                Some(id) => task.body = self.pending.lend(id),
                None => {
                    task.spare = self.spare.take();
                    n_loaded += usize::from(task.place.is_some());
                }
            }
            bytes += task.part.n_elems() * array.elem_size;
            slots.push(Mutex::new(task));
        }
        let worth =
            bytes >= POOL_BYTES || n_loaded.saturating_mul(array.chunk_bytes) >= POOL_LOADED_BYTES;
        let more = if worth { slots.len() - 1 } else { 0 };
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            let mut bench = Bench::take();
            while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
                if failed.load(Ordering::Relaxed) {
                    break;
                }
                let mut task = slot.lock().unwrap_or_else(PoisonError::into_inner);
                let outcome = put.work(array, &mut task, &mut bench);
                failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                task.outcome = Some(outcome);
            }
            bench.put_back(array.chunk_bytes, &self.engine);
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
    fn settle(&mut self, index: usize, slots: Vec<Mutex<Task>>) -> Result<Converted, ChunkError> {
        let array = self.arrays[index].as_mut().ok_or(NO_ARRAY)?;
        let mut result = Ok(Converted::default());
        for slot in slots {
            let task = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            let done = matches!(task.outcome, Some(Ok(_)));
            match task.id {
                Some(id) => {
                    self.pending.put_back(id, task.body);
                    if let Some(pending) = self.pending.touch(id) {
                        // Also after a panic: some of its elements may be new.
                        pending.dirty |= task.outcome.is_none() || done;
                    }
                }
                None if done => {
                    let (key, body) = (task.key, task.body);
                    let origin = array.origin(&key);
                    let pending = Pending { array: index, key, origin, body, dirty: true };
                    self.pending.insert(&mut array.keys, pending);
                }
                None => self.spare.put(task.body.bytes),
            }
            result = match (result, task.outcome) {
                (Ok(sum), Some(Ok(found))) => Ok(sum.and(found)),
                (Ok(_), Some(Err(error))) => Err(error),
                (result, _) => result,
            };
        }
        result
    }

    /// Stores chunks put longest ago until the others take no more memory than they may. Whether
    /// any had to go.
    fn make_room(&mut self, space: &mut dyn Allocate) -> Result<bool, ChunkError> {
        if self.pending.bytes() <= self.limit || self.pending.len() < 2 {
            return Ok(false);
        }
        // A few at a time, for all threads to have work.
        let wanted = self.limit - self.limit / 8;
        let mut bytes = self.pending.bytes();
        // The last one stays: it is being put.
        let n = self.pending.len() - 1;
        let oldest = self.pending.oldest_first().take(n);
        let victims: Vec<Id> = oldest
            .take_while(|(_, pending)| {
                let more = bytes > wanted;
                bytes = bytes.saturating_sub(pending.cost());
                more
            })
            .map(|(id, _)| id)
            .collect();
        let dirty = |id: &Id| self.pending.get(*id).is_some_and(|pending| pending.dirty);
        let stored: Vec<Id> = victims.iter().copied().filter(dirty).collect();
        let result = self.store_pending(&stored, space);
        for id in victims {
            let Some(pending) = self.pending.get(id).filter(|pending| !pending.dirty) else {
                continue;
            };
            let (index, key) = (pending.array, pending.key.clone());
            if let Some(array) = &mut self.arrays[index] {
                self.pending.remove(&mut array.keys, &key, &mut self.spare);
            }
        }
        result.map(|()| true)
    }

    /// Stores incomplete chunks; those that are complete go, the others stay as they are.
    fn store_pending(&mut self, ids: &[Id], space: &mut dyn Allocate) -> Result<(), ChunkError> {
        let mut chunks: Vec<(Id, &Pending)> =
            ids.iter().filter_map(|&id| Some((id, self.pending.get(id)?))).collect();
        chunks.sort_by(|(_, a), (_, b)| (a.array, &a.key).cmp(&(b.array, &b.key)));
        let mut jobs = Vec::with_capacity(chunks.len());
        for (_, pending) in &chunks {
            let Some(array) = &self.arrays[pending.array] else { continue };
            let old = match array.filters.is_identity() {
                true => array.read.inner.find(&pending.key)?,
                false => None,
            };
            let bytes = Bytes::Ready(&pending.body.bytes);
            jobs.push(Job { array, key: pending.key.clone(), bytes, old });
        }
        let outcome = store::run(&self.engine, &*self.storage, &jobs, &mut self.spare, space);
        drop(jobs);
        let stored: Vec<(Id, usize, Coords, bool)> = chunks
            .into_iter()
            .take(outcome.stored)
            .map(|(id, pending)| {
                let complete = pending.body.written.is_complete();
                (id, pending.array, pending.key.clone(), complete)
            })
            .collect();
        for (id, index, key, complete) in stored {
            let Some(array) = &mut self.arrays[index] else { continue };
            array.read.inner.changed(&key);
            match complete {
                true => self.pending.remove(&mut array.keys, &key, &mut self.spare),
                false => self.pending.clean(id),
            }
        }
        outcome.error.map_or(Ok(()), Err)
    }

    /// Stores all that was put. Incomplete chunks stay in memory for more puts.
    ///
    /// # Errors
    /// As [`ChunkWriter::put`]. What is not stored stays, and the next flush tries again.
    pub fn flush(&mut self, space: &mut dyn Allocate) -> Result<(), ChunkError> {
        let dirty: Vec<Id> = self
            .pending
            .oldest_first()
            .filter(|(_, pending)| pending.dirty)
            .map(|(id, _)| id)
            .collect();
        self.store_pending(&dirty, space)
    }

    /// Reads a hyperslab, as [`ChunkedArray::read`]; all that was put is seen.
    ///
    /// # Errors
    /// Those of [`ChunkedArray::read`].
    pub fn read(
        &self,
        id: ArrayId,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        decode: Decode<'_>,
        out: &mut [u8],
    ) -> Result<Converted, ChunkError> {
        let array = self.arrays.get(id.0).and_then(Option::as_ref).ok_or(NO_ARRAY)?;
        if array.keys.is_empty() {
            return array.read.read(extent, slab, decode, out);
        }
        if decode.file_size() == array.elem_size
            && let Some((key, (first, n))) = array.run(extent, slab)
            && n.checked_mul(decode.mem_size()) == Some(out.len())
            && let Some(pending) = array.keys.get(&key).and_then(|&id| self.pending.get(id))
        {
            let from = first as usize * array.elem_size;
            return Ok(decode.run(&pending.body.bytes[from..][..n * array.elem_size], out));
        }
        let newer = OfArray { keys: &array.keys, chunks: &self.pending };
        array.read.inner.read(extent, slab, &decode, out, Some(&newer))
    }

    /// Puts a chunk that is filtered already, with its mask, as
    /// [`ChunkedArray::stored_chunk`] gives it.
    ///
    /// # Errors
    /// As [`ChunkWriter::put`]; [`ChunkError::Length`] for an unfiltered chunk of another length.
    pub fn put_stored(
        &mut self,
        id: ArrayId,
        key: &[u64],
        mask: u32,
        bytes: &[u8],
        space: &mut dyn Allocate,
    ) -> Result<(), ChunkError> {
        let array = self.arrays.get(id.0).and_then(Option::as_ref).ok_or(NO_ARRAY)?;
        if key.len() != array.chunk_dims.len() {
            return Err(RANK);
        }
        let (got, expected) = (bytes.len() as u64, array.chunk_bytes as u64);
        if array.filters.skips_all(mask) && got != expected {
            return Err(ChunkError::Length { chunk: key.to_vec(), at: 0, got, expected });
        }
        let old = match array.filters.is_identity() {
            true => array.read.inner.find(key)?,
            false => None,
        };
        let key = Coords::from_slice(key);
        let jobs = [Job { array, key: key.clone(), bytes: Bytes::Filtered(bytes, mask), old }];
        let Outcome { error, .. } =
            store::run(&self.engine, &*self.storage, &jobs, &mut self.spare, space);
        if let Some(error) = error {
            return Err(error);
        }
        if let Some(array) = &mut self.arrays[id.0] {
            array.read.inner.changed(&key);
            self.pending.remove(&mut array.keys, &key, &mut self.spare);
        }
        Ok(())
    }
}

/// A put that goes to several chunks, or to one that does not wait.
struct Put<'a> {
    id: usize,
    extent: &'a [u64],
    /// With the lengths that dimensions can have.
    selection: &'a Selection,
    mem_steps: Numbers,
    source: &'a Source<'a>,
}

impl Put<'_> {
    /// The pieces that part `number` is made of.
    fn pieces(&self, number: usize) -> Numbers {
        let axes = &self.selection.axes;
        let mut pieces = Numbers::from_elem(0, axes.len());
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

    /// Puts one part into its chunk, which is begun or loaded first.
    fn work(
        &self,
        array: &Array,
        task: &mut Task,
        bench: &mut Bench,
    ) -> Result<Converted, ChunkError> {
        if task.id.is_none() {
            let mut bytes = load::memory(task.spare.take(), array.chunk_bytes)?;
            match task.place {
                Some(place) => {
                    array.read.inner.load(&task.key, place, self.extent, bench, &mut bytes)?;
                }
                None => fill_chunk(&mut bytes, &array.fill),
            }
            task.body = array.begin(bytes, &task.key)?;
        }
        Ok(task.body.put(&task.part, self.source, &mut bench.memory.block))
    }
}
