//! Chunks on their way into the storage: filtered by all threads, placed and written in order.
//!
//! Threads claim chunks in ascending order and filter them. The calling thread takes what is ready
//! from the front, gives it places, writes it and enters it in its table; while nothing is ready it
//! filters, too. What is claimed and not written is bounded, so memory is. Places depend on the
//! order of the chunks alone, not on the threads.

use std::collections::VecDeque;
use std::ops::Range;
use zonda_runtime::lock::{Condvar, Mutex, MutexGuard, Rank};

use smallvec::SmallVec;
use zonda_convert::Converted;
use zonda_storage::{Storage, WriteRange};
use zonda_trace::{Args, Kind, span, span_since, start};

use super::chunk_memory::{fill_chunk, memory};
use super::encode::Encode;
use super::put_part::PutPart;
use super::spill::{self, Spills};
use super::writer_array::WriterArray;
use crate::engine::Engine;
use crate::selection::Coords;
use crate::stored::lengthen;
use crate::table::{Allocate, ChunkAt};
use crate::tuning::{
    SPARE_BYTES, STORE_CLAIM_BYTES, STORE_POOL_BYTES, STORE_WINDOW_BYTES, STORE_WINDOW_CHUNKS,
    STORE_WRITE_BYTES,
};
use crate::worker::WorkerBuffers;
use crate::{ChunkError, TableError};

/// A chunk to be stored.
#[derive(Debug)]
pub(crate) struct StoreJob<'a> {
    pub array: &'a WriterArray,
    pub key: Coords,
    pub bytes: ChunkSource<'a>,
    /// Where an unfiltered chunk is now: it is written over.
    pub old: Option<ChunkAt>,
}

/// Where the bytes of a chunk come from.
#[derive(Debug)]
pub(crate) enum ChunkSource<'a> {
    /// In the file's form.
    Ready(&'a [u8]),
    /// The same, but not in memory.
    Spilled(&'a Spills, spill::SpillSlot),
    /// All that a put has for it, which is all that it needs.
    Put(PutPart, &'a PutMemory<'a>),
}

/// The caller's memory.
#[derive(Debug)]
pub(crate) struct PutMemory<'a> {
    pub encode: &'a Encode<'a>,
    pub src: &'a [u8],
}

/// What became of the jobs.
#[derive(Debug, Default)]
pub(crate) struct StoreOutcome {
    /// So many, from the first on, are stored.
    pub stored: usize,
    pub converted: Converted,
    pub error: Option<ChunkError>,
}

/// Memory kept for the next chunks.
#[derive(Debug, Default)]
pub(crate) struct SpareMemory {
    blocks: Vec<Vec<u8>>,
    bytes: usize,
}

impl SpareMemory {
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        let block = self.blocks.pop()?;
        self.bytes -= block.capacity();
        Some(block)
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    pub(crate) fn clear(&mut self) {
        *self = SpareMemory::default();
    }

    pub(crate) fn put(&mut self, block: Vec<u8>) {
        let bytes = self.bytes.saturating_add(block.capacity());
        if block.capacity() > 0 && bytes <= SPARE_BYTES {
            self.bytes = bytes;
            self.blocks.push(block);
        }
    }
}

/// What is to be written of a chunk.
struct EncodedChunk<'a> {
    bytes: EncodedBytes<'a>,
    mask: u32,
    converted: Converted,
}

enum EncodedBytes<'a> {
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
    /// As if it were elsewhere: nothing is written with it.
    Fetched(Vec<u8>),
}

impl EncodedChunk<'_> {
    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            EncodedBytes::Borrowed(bytes) => bytes,
            EncodedBytes::Owned(bytes) | EncodedBytes::Fetched(bytes) => bytes,
        }
    }

    /// Has the bytes that belong to its place written with it, up to `len` of them: a cache of pages
    /// below sees then where output without gaps is complete.
    fn pad_to(&mut self, len: u64) {
        if let (EncodedBytes::Owned(bytes), Ok(len)) = (&mut self.bytes, usize::try_from(len)) {
            bytes.resize(len.max(bytes.len()), 0);
        }
    }
}

impl<'a> StoreJob<'a> {
    /// Whether it is written as it lies in memory.
    fn straight(&self) -> Option<&'a [u8]> {
        match &self.bytes {
            ChunkSource::Ready(bytes) if self.array.is_unfiltered(&self.key) => Some(bytes),
            ChunkSource::Put(part, source) if self.array.is_unfiltered(&self.key) => {
                self.run_of(part, source)
            }
            _ => None,
        }
    }

    /// Whether it is worth another thread. Chunks that are only put together and converted are
    /// not: they would be written from another processor's cache.
    fn is_work(&self) -> bool {
        match &self.bytes {
            ChunkSource::Put(_, PutMemory { encode: Encode::Custom { .. }, .. }) => true,
            ChunkSource::Put(..) | ChunkSource::Ready(_) | ChunkSource::Spilled(..) => {
                !self.array.is_unfiltered(&self.key)
            }
        }
    }

    /// The whole chunk, where it is one run of the caller's memory in the file's form.
    fn run_of(&self, part: &PutPart, source: &PutMemory<'a>) -> Option<&'a [u8]> {
        if !source.encode.is_copy() {
            return None;
        }
        let bytes = part.one_run(source.src, source.encode.mem_size())?;
        (bytes.len() == self.array.chunk_bytes).then_some(bytes)
    }

    fn filter(
        &self,
        buffers: &mut WorkerBuffers,
        spare: Option<Vec<u8>>,
    ) -> Result<EncodedChunk<'a>, ChunkError> {
        if let Some(bytes) = self.straight() {
            let converted = Converted::default();
            return Ok(EncodedChunk { bytes: EncodedBytes::Borrowed(bytes), mask: 0, converted });
        }
        let WorkerBuffers { rows: lent, filter, .. } = buffers;
        let array = self.array;
        let mut converted = Converted::default();
        let raw: &[u8] = match &self.bytes {
            ChunkSource::Ready(bytes) => bytes,
            ChunkSource::Spilled(spills, slot) if array.is_unfiltered(&self.key) => {
                let mut bytes = memory(spare, array.chunk_bytes)?;
                spills.read(&self.key, *slot, &mut bytes)?;
                return Ok(EncodedChunk {
                    bytes: EncodedBytes::Fetched(bytes),
                    mask: 0,
                    converted,
                });
            }
            ChunkSource::Spilled(spills, slot) => {
                lengthen(&mut lent.stored, array.chunk_bytes)?;
                let chunk = &mut lent.stored[..array.chunk_bytes];
                spills.read(&self.key, *slot, chunk)?;
                chunk
            }
            ChunkSource::Put(part, source) => match self.run_of(part, source) {
                Some(bytes) => bytes,
                None if array.is_unfiltered(&self.key) => {
                    let mut bytes = memory(spare, array.chunk_bytes)?;
                    converted = array.gather(part, source, &mut bytes, &mut lent.block);
                    return Ok(EncodedChunk {
                        bytes: EncodedBytes::Owned(bytes),
                        mask: 0,
                        converted,
                    });
                }
                None => {
                    lengthen(&mut lent.stored, array.chunk_bytes)?;
                    let chunk = &mut lent.stored[..array.chunk_bytes];
                    converted = array.gather(part, source, chunk, &mut lent.block);
                    chunk
                }
            },
        };
        let mut bytes = spare.unwrap_or_default();
        let before = raw.len() as u64;
        let mut span = span(Kind::ChunkEncode, || Args { bytes: before, ..Args::default() });
        let mask = match array.filters.encode(raw, filter, &mut bytes) {
            Ok(mask) => mask,
            Err(error) => {
                // There may be no memory left: what says so takes some.
                drop(bytes);
                *buffers = WorkerBuffers::default();
                return Err(ChunkError::Encode {
                    chunk: crate::error::coordinates(&self.key),
                    error,
                });
            }
        };
        span.change(|args| args.offset = bytes.len() as u64);
        Ok(EncodedChunk { bytes: EncodedBytes::Owned(bytes), mask, converted })
    }
}

impl WriterArray {
    /// Puts together a chunk of which a put has all elements that there are.
    fn gather(
        &self,
        part: &PutPart,
        source: &PutMemory<'_>,
        chunk: &mut [u8],
        block: &mut Vec<u8>,
    ) -> Converted {
        let args = || Args { bytes: chunk.len() as u64, ..Args::default() };
        let _span = span(Kind::ChunkGather, args);
        if part.n_elems() != self.chunk_elems {
            fill_chunk(chunk, &self.fill);
        }
        part.put(source.encode, source.src, chunk, None, block)
    }
}

/// Stores the chunks in their order, until something goes wrong.
pub(crate) fn run(
    engine: &Engine,
    storage: &dyn Storage,
    jobs: &[StoreJob<'_>],
    spare: &mut SpareMemory,
    space: &mut dyn Allocate,
) -> StoreOutcome {
    let work = || jobs.iter().filter(|job| job.is_work());
    let (n, bytes) = work().fold((0usize, 0usize), |(n, bytes), job| {
        (n + 1, bytes.saturating_add(job.array.chunk_bytes))
    });
    let largest = jobs.iter().map(|job| job.array.chunk_bytes).max().unwrap_or(0);
    let more = if bytes < STORE_POOL_BYTES { 0 } else { n - 1 };
    let threads = engine.threads().min(more + 1);
    let queue = StoreQueue {
        engine,
        jobs,
        grain: STORE_CLAIM_BYTES,
        window: largest
            .saturating_mul(threads * STORE_WINDOW_CHUNKS)
            .clamp(STORE_WINDOW_BYTES / 16, STORE_WINDOW_BYTES),
        threads,
        largest,
        state: Mutex::ranked(
            Rank::Put,
            QueueState { spare: std::mem::take(spare), ..QueueState::default() },
        ),
        ready: Condvar::new(),
        room: Condvar::new(),
    };
    let outcome = engine.run_beside(more, &|| queue.work(), || queue.store(storage, space));
    *spare = queue.state.into_inner().spare;
    outcome
}

struct StoreQueue<'a> {
    engine: &'a Engine,
    jobs: &'a [StoreJob<'a>],
    /// Bytes that a thread takes on at a time.
    grain: usize,
    /// Bytes between claim and write.
    window: usize,
    threads: usize,
    /// Bytes of the largest chunk.
    largest: usize,
    state: Mutex<QueueState<'a>>,
    /// The first chunk is ready, and the caller waits for it.
    ready: Condvar,
    /// There is room, and threads wait for it.
    room: Condvar,
}

#[derive(Default)]
struct QueueState<'a> {
    /// The first that is not taken to be written, and the first that is not claimed.
    begin: usize,
    next: usize,
    /// Those between.
    slots: VecDeque<QueueSlot<'a>>,
    /// Bytes of these chunks, unfiltered.
    bytes: usize,
    spare: SpareMemory,
    /// Nothing more is to be done.
    stop: bool,
    caller_waits: bool,
    waiting: usize,
}

enum QueueSlot<'a> {
    Claimed,
    Done(Result<EncodedChunk<'a>, ChunkError>),
    /// Its thread panicked.
    Lost,
}

/// Chunks that are this thread's to filter.
struct EncodeClaim<'q, 'a> {
    queue: &'q StoreQueue<'a>,
    range: Range<usize>,
    /// Room for all of the range: a thread without memory must be able to say so.
    results: SmallVec<[Result<EncodedChunk<'a>, ChunkError>; 4]>,
    spare: Vec<Vec<u8>>,
}

impl<'a> StoreQueue<'a> {
    fn lock(&self) -> MutexGuard<'_, QueueState<'a>> {
        self.state.lock()
    }

    /// The work of the other threads.
    fn work(&self) {
        let mut buffers = WorkerBuffers::take();
        loop {
            let mut state = self.lock();
            let claim = loop {
                if state.stop || state.next == self.jobs.len() {
                    break None;
                }
                if let Some(claim) = self.claim(&mut state) {
                    break Some(claim);
                }
                state.waiting += 1;
                state = self.room.wait(state);
                state.waiting -= 1;
            };
            drop(state);
            match claim {
                Some(claim) => claim.filter(&mut buffers),
                None => break,
            }
        }
        buffers.put_back(self.largest, self.engine);
    }

    /// Takes chunks to be filtered, if there is room.
    fn claim(&self, state: &mut QueueState<'a>) -> Option<EncodeClaim<'_, 'a>> {
        let first = state.next;
        let (mut taken, mut spare, mut results) = (0, Vec::new(), SmallVec::new());
        while let Some(job) = self.jobs.get(state.next) {
            let bytes = job.array.chunk_bytes;
            let fits = state.bytes.saturating_add(bytes) <= self.window
                || state.slots.len() < self.threads;
            let has_room = results.try_reserve(state.next - first + 1).is_ok();
            if !fits || !has_room || (taken > 0 && taken + bytes > self.grain) {
                break;
            }
            taken += bytes;
            state.bytes += bytes;
            state.next += 1;
            state.slots.push_back(QueueSlot::Claimed);
            if job.straight().is_none() {
                spare.extend(state.spare.take());
            }
        }
        let range = first..state.next;
        (!range.is_empty()).then(|| EncodeClaim { queue: self, range, results, spare })
    }

    /// The work of the calling thread.
    fn store(&self, storage: &dyn Storage, space: &mut dyn Allocate) -> StoreOutcome {
        let _stop = StopOnDrop(self);
        let mut buffers = WorkerBuffers::take();
        let mut writing =
            InOrderOutput { storage, space, outcome: StoreOutcome::default(), freed: Vec::new() };
        let mut used = Vec::new();
        loop {
            let mut state = self.lock();
            used.drain(..).for_each(|block| state.spare.put(block));
            let (n, bytes) = state.ready();
            let all = state.begin + n == self.jobs.len();
            if n > 0 && (all || bytes >= STORE_WRITE_BYTES) {
                let first = state.begin;
                let taken = self.take(&mut state, n);
                drop(state);
                used = writing.write(&self.jobs[first..first + n], taken);
            } else if let Some(claim) = self.claim(&mut state) {
                drop(state);
                claim.filter(&mut buffers);
            } else if n > 0 {
                let first = state.begin;
                let taken = self.take(&mut state, n);
                drop(state);
                used = writing.write(&self.jobs[first..first + n], taken);
            } else if matches!(state.slots.front(), None | Some(QueueSlot::Lost)) {
                // All is done; or a thread panicked, which its end reports.
                break;
            } else {
                state.caller_waits = true;
                let waiting = start();
                state = self.ready.wait(state);
                span_since(waiting, Kind::WaitPool, Args::default);
                state.caller_waits = false;
            }
            if writing.outcome.error.is_some() {
                break;
            }
        }
        buffers.put_back(self.largest, self.engine);
        writing.end()
    }

    /// Takes the first `n` chunks, which are ready.
    fn take(
        &self,
        state: &mut QueueState<'a>,
        n: usize,
    ) -> Vec<Result<EncodedChunk<'a>, ChunkError>> {
        let mut taken = Vec::with_capacity(n);
        for slot in state.slots.drain(..n) {
            if let QueueSlot::Done(result) = slot {
                taken.push(result);
            }
        }
        for job in &self.jobs[state.begin..state.begin + n] {
            state.bytes -= job.array.chunk_bytes;
        }
        state.begin += n;
        if state.waiting > 0 {
            self.room.notify_all();
        }
        taken
    }
}

impl QueueState<'_> {
    /// How many chunks from the first on are ready, and their bytes in the storage.
    fn ready(&self) -> (usize, usize) {
        let done = self.slots.iter().map_while(|slot| match slot {
            QueueSlot::Done(Ok(stored)) => Some(stored.bytes().len()),
            QueueSlot::Done(Err(_)) => Some(0),
            QueueSlot::Claimed | QueueSlot::Lost => None,
        });
        done.fold((0, 0), |(n, sum), bytes| (n + 1, sum + bytes))
    }
}

impl EncodeClaim<'_, '_> {
    fn filter(mut self, buffers: &mut WorkerBuffers) {
        for index in self.range.clone() {
            let spare = self.spare.pop();
            self.results.push(self.queue.jobs[index].filter(buffers, spare));
        }
    }
}

/// Hands in what was done. What was not, because of a panic, is lost.
impl Drop for EncodeClaim<'_, '_> {
    fn drop(&mut self) {
        let mut results = self.results.drain(..);
        let mut state = self.queue.lock();
        let first = self.range.start - state.begin;
        for slot in state.slots.range_mut(first..first + self.range.len()) {
            *slot = results.next().map_or(QueueSlot::Lost, QueueSlot::Done);
        }
        if state.caller_waits && first == 0 {
            self.queue.ready.notify_one();
        }
    }
}

/// Sends the other threads home, also when the calling one panics.
struct StopOnDrop<'q, 'a>(&'q StoreQueue<'a>);

impl Drop for StopOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().stop = true;
        self.0.room.notify_all();
    }
}

/// What the calling thread does with chunks that are ready.
struct InOrderOutput<'s> {
    storage: &'s dyn Storage,
    space: &'s mut dyn Allocate,
    outcome: StoreOutcome,
    /// Places that replaced chunks had.
    freed: Vec<ChunkAt>,
}

impl InOrderOutput<'_> {
    /// Places, writes and enters chunks; gives back their memory.
    fn write(
        &mut self,
        jobs: &[StoreJob<'_>],
        ready: Vec<Result<EncodedChunk<'_>, ChunkError>>,
    ) -> Vec<Vec<u8>> {
        let mut placed = Vec::with_capacity(ready.len());
        let mut error = None;
        for (job, stored) in jobs.iter().zip(ready) {
            let place = stored.and_then(|stored| Ok((self.place(job, &stored)?, stored)));
            match place {
                Ok(((at, is_new), mut stored)) => {
                    if is_new {
                        let behind = self.space.padded(at.at, at.len);
                        stored.pad_to(behind.saturating_sub(at.at));
                    }
                    placed.push((job, at, is_new, stored));
                }
                Err(failed) => {
                    error = Some(failed);
                    break;
                }
            }
        }
        let ranges: Vec<_> = placed
            .iter()
            .map(|(_, at, _, stored)| WriteRange { at: at.at, data: stored.bytes() })
            .collect();
        let mut n_entered = 0;
        let bytes = || ranges.iter().map(|range| range.data.len() as u64).sum();
        let writing = span(Kind::ChunkWrite, || Args { bytes: bytes(), ..Args::default() });
        let written = self.storage.write_ranges(&ranges);
        drop(writing);
        match written {
            Err(failed) => error = Some(failed.into()),
            Ok(()) => {
                for (job, at, _, stored) in &placed {
                    if let Err(failed) = self.enter(job, *at) {
                        error = Some(ChunkError::Table(failed));
                        break;
                    }
                    n_entered += 1;
                    let converted = self.outcome.converted.and(stored.converted);
                    self.outcome.converted = converted;
                }
            }
        }
        // Nothing refers to these places.
        for (_, at, _, _) in placed[n_entered..].iter().filter(|(_, _, is_new, _)| *is_new) {
            self.space.free(at.at, at.len);
        }
        self.outcome.stored += n_entered;
        self.outcome.error = error;
        let used = placed.into_iter().filter_map(|(.., stored)| match stored.bytes {
            EncodedBytes::Owned(bytes) | EncodedBytes::Fetched(bytes) => Some(bytes),
            EncodedBytes::Borrowed(_) => None,
        });
        used.collect()
    }

    /// Where a chunk goes, and whether the place was taken for it.
    fn place(
        &mut self,
        job: &StoreJob<'_>,
        stored: &EncodedChunk<'_>,
    ) -> Result<(ChunkAt, bool), ChunkError> {
        let len = stored.bytes().len() as u64;
        if let Some(old) = job.old.filter(|old| old.len == len) {
            return Ok((ChunkAt { mask: stored.mask, ..old }, false));
        }
        let at = self.space.allocate(len).map_err(ChunkError::Table)?;
        Ok((ChunkAt { at, len, mask: stored.mask }, true))
    }

    fn enter(&mut self, job: &StoreJob<'_>, at: ChunkAt) -> Result<(), TableError> {
        if job.old == Some(at) {
            return Ok(());
        }
        let old = job.array.table.insert(&job.key, at)?;
        self.freed.extend(old.filter(|old| old.at != at.at));
        Ok(())
    }

    /// Gives back what replaced chunks had: at the end, so that places do not depend on when
    /// chunks were ready.
    fn end(self) -> StoreOutcome {
        for old in self.freed {
            self.space.free(old.at, old.len);
        }
        self.outcome
    }
}
