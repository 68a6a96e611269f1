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
use zonda_storage::Storage;
use zonda_trace::{Args, EventKind, span_since, start};

use crate::ChunkError;
use crate::engine::Engine;
use crate::table::Allocate;
use crate::tuning::{
    SPARE_BYTES, STORE_CLAIM_BYTES, STORE_POOL_BYTES, STORE_WINDOW_BYTES, STORE_WINDOW_CHUNKS,
    STORE_WRITE_BYTES,
};
use crate::worker::WorkerBuffers;

mod job;
mod output;

pub(crate) use job::{ChunkSource, PutMemory, StoreJob};
use job::{EncodedBytes, EncodedChunk};
use output::InOrderOutput;

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
            StoreQueueState { spare: std::mem::take(spare), ..StoreQueueState::default() },
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
    state: Mutex<StoreQueueState<'a>>,
    /// The first chunk is ready, and the caller waits for it.
    ready: Condvar,
    /// There is room, and threads wait for it.
    room: Condvar,
}

#[derive(Default)]
struct StoreQueueState<'a> {
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
    fn lock(&self) -> MutexGuard<'_, StoreQueueState<'a>> {
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
                Some(claim) => claim.encode(&mut buffers),
                None => break,
            }
        }
        buffers.put_back(self.largest, self.engine);
    }

    /// Takes chunks to be filtered, if there is room.
    fn claim(&self, state: &mut StoreQueueState<'a>) -> Option<EncodeClaim<'_, 'a>> {
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
                claim.encode(&mut buffers);
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
                span_since(waiting, EventKind::WaitPool, Args::default);
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
        state: &mut StoreQueueState<'a>,
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

impl StoreQueueState<'_> {
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
    fn encode(mut self, buffers: &mut WorkerBuffers) {
        for index in self.range.clone() {
            let spare = self.spare.pop();
            self.results.push(self.queue.jobs[index].encoded(buffers, spare));
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
