//! Chunks on their way into the storage: filtered by all threads, placed and written in order.
//!
//! Threads claim chunks in ascending order and filter them. The calling thread takes what is ready from the front, gives it places,
//! and has it written, and enters in its table what is written; while there is nothing of that it filters, too. Where so much is
//! ready at a time that it is several writes, other threads take some of these before they filter more ([`STORE_WRITERS`] at a time): that happens
//! where the calling thread alone would not write as fast as the others filter. What is claimed and not written is bounded, so memory
//! is. Places depend on the order of the chunks alone, not on the threads.

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
    STORE_WRITE_BYTES, STORE_WRITERS, claims_at_once,
};
use crate::worker::WorkerBuffers;

mod job;
mod output;

pub(crate) use job::{ChunkSource, PutMemory, StoreJob};
use job::{EncodedBytes, EncodedChunk};
use output::{InOrderOutput, PlacedChunk, PlacedRun};

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
    let grain = STORE_CLAIM_BYTES * claims_at_once(threads);
    let queue = StoreQueue {
        engine,
        storage,
        jobs,
        grain,
        window: largest
            .max(grain)
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
    let outcome = engine.run_beside(more, &|| queue.work(), || queue.store(space));
    *spare = queue.state.into_inner().spare;
    outcome
}

struct StoreQueue<'a> {
    engine: &'a Engine,
    storage: &'a dyn Storage,
    jobs: &'a [StoreJob<'a>],
    /// Bytes that a thread takes on at a time.
    grain: usize,
    /// Bytes between claim and write.
    window: usize,
    threads: usize,
    /// Bytes of the largest chunk.
    largest: usize,
    state: Mutex<StoreQueueState<'a>>,
    /// The first chunk is ready or the first run written, and the caller waits for it.
    ready: Condvar,
    /// There is room, or a run to be written, and threads wait for it.
    room: Condvar,
}

#[derive(Default)]
struct StoreQueueState<'a> {
    /// The first that has no place, and the first that is not claimed.
    begin: usize,
    next: usize,
    /// Those between.
    slots: VecDeque<QueueSlot<'a>>,
    /// Those that have places and are not in their table.
    runs: VecDeque<RunSlot<'a>>,
    /// How many runs were before these.
    n_finished: usize,
    /// Threads that write.
    writers: usize,
    /// Threads that help.
    helpers: usize,
    /// Bytes of claimed chunks that are not written, unfiltered.
    bytes: usize,
    spare: SpareMemory,
    /// Nothing more is to be done.
    stop: bool,
    caller_waits: bool,
    waiting: usize,
}

/// A run of chunks on its way into the storage.
enum RunSlot<'a> {
    Placed(PlacedRun<'a>),
    Writing,
    Written(PlacedRun<'a>, Result<(), ChunkError>),
    /// Its thread panicked.
    Lost,
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

/// A run that is this thread's to write.
struct WriteClaim<'q, 'a> {
    queue: &'q StoreQueue<'a>,
    number: usize,
    /// The run; nothing only on the way into `Drop`.
    run: Option<PlacedRun<'a>>,
    /// What came of it, once it did.
    written: Option<Result<(), ChunkError>>,
}

impl<'a> StoreQueue<'a> {
    fn lock(&self) -> MutexGuard<'_, StoreQueueState<'a>> {
        self.state.lock()
    }

    /// The work of the other threads.
    fn work(&self) {
        let mut buffers = WorkerBuffers::take();
        let mut state = self.lock();
        state.helpers += 1;
        loop {
            if state.stop {
                break;
            }
            if let Some(claim) = self.claim_run(&mut state) {
                drop(state);
                claim.write();
            } else if state.next == self.jobs.len() {
                break;
            } else if let Some(claim) = self.claim(&mut state) {
                drop(state);
                claim.encode(&mut buffers);
            } else {
                state.waiting += 1;
                state = self.room.wait(state);
                state.waiting -= 1;
                continue;
            }
            state = self.lock();
        }
        state.helpers -= 1;
        drop(state);
        buffers.put_back(self.largest, self.engine);
    }

    /// Takes a run to be written, if there is one and not too many threads write.
    fn claim_run(&self, state: &mut StoreQueueState<'a>) -> Option<WriteClaim<'_, 'a>> {
        if state.writers >= STORE_WRITERS {
            return None;
        }
        let at = state.runs.iter().position(|run| matches!(run, RunSlot::Placed(_)))?;
        match std::mem::replace(&mut state.runs[at], RunSlot::Writing) {
            RunSlot::Placed(run) => {
                state.writers += 1;
                let number = state.n_finished + at;
                Some(WriteClaim { queue: self, number, run: Some(run), written: None })
            }
            other => {
                state.runs[at] = other;
                None
            }
        }
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
    fn store(&self, space: &mut dyn Allocate) -> StoreOutcome {
        let _stop = StopOnDrop(self);
        let mut buffers = WorkerBuffers::take();
        let mut output = InOrderOutput {
            jobs: self.jobs,
            space,
            outcome: StoreOutcome::default(),
            not_placed: None,
            freed: Vec::new(),
        };
        let mut used: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut state = self.lock();
            used.drain(..).for_each(|block| state.spare.put(block));
            if let Some((run, written)) = state.pop_written() {
                drop(state);
                used.extend(output.finish(run, written));
                continue;
            }
            if output.outcome.error.is_some() {
                self.abandon(state, &mut output);
                break;
            }
            let goes_on = output.not_placed.is_none();
            let (n, bytes) = if goes_on { state.ready() } else { (0, 0) };
            let all = state.begin + n == self.jobs.len();
            if n > 0 && (all || bytes >= STORE_WRITE_BYTES) {
                self.place(state, n, bytes, &mut output);
            } else if let Some(claim) = self.claim_run(&mut state) {
                drop(state);
                claim.write();
            } else if goes_on && let Some(claim) = self.claim(&mut state) {
                drop(state);
                claim.encode(&mut buffers);
            } else if n > 0 {
                self.place(state, n, bytes, &mut output);
            } else if matches!(state.runs.front(), Some(RunSlot::Lost)) {
                // A thread panicked, which its end reports.
                break;
            } else if state.runs.is_empty()
                && (!goes_on || matches!(state.slots.front(), None | Some(QueueSlot::Lost)))
            {
                // All is done; or a thread panicked.
                break;
            } else {
                drop(self.wait(state));
            }
        }
        buffers.put_back(self.largest, self.engine);
        output.end()
    }

    /// Waits until the first chunk is ready or a run is written.
    fn wait<'s>(
        &'s self,
        mut state: MutexGuard<'s, StoreQueueState<'a>>,
    ) -> MutexGuard<'s, StoreQueueState<'a>> {
        state.caller_waits = true;
        let waiting = start();
        state = self.ready.wait(state);
        span_since(waiting, EventKind::WaitPool, Args::default);
        state.caller_waits = false;
        state
    }

    /// Gives places to the first `n` chunks, which are ready and have `bytes` bytes: as one run, or as several where others can help to write
    /// them.
    fn place(
        &self,
        mut state: MutexGuard<'_, StoreQueueState<'a>>,
        n: usize,
        bytes: usize,
        output: &mut InOrderOutput<'_, 'a>,
    ) {
        let first = state.begin;
        let n_runs = (bytes / STORE_WRITE_BYTES).clamp(1, 1 + state.helpers);
        let mut ready = Vec::with_capacity(n);
        for slot in state.slots.drain(..n) {
            if let QueueSlot::Done(result) = slot {
                ready.push(result);
            }
        }
        state.begin += n;
        drop(state);
        let placed = output.place(first, ready);
        let runs = cut(placed, bytes.div_ceil(n_runs));
        let runs = runs.into_iter().map(|chunks| PlacedRun::new(chunks, self.jobs));
        let runs: Vec<_> = runs.map(RunSlot::Placed).collect();
        let mut state = self.lock();
        let more = runs.len() > 1;
        state.runs.extend(runs);
        if more && state.waiting > 0 {
            self.room.notify_all();
        }
    }

    /// After an error: nothing more is begun, and what was placed and is not in its table loses its places, when nobody writes any more.
    fn abandon<'s>(
        &'s self,
        mut state: MutexGuard<'s, StoreQueueState<'a>>,
        output: &mut InOrderOutput<'_, 'a>,
    ) {
        state.stop = true;
        self.room.notify_all();
        while state.runs.iter().any(|run| matches!(run, RunSlot::Writing)) {
            state = self.wait(state);
        }
        let runs = std::mem::take(&mut state.runs);
        drop(state);
        for run in runs {
            if let RunSlot::Placed(run) | RunSlot::Written(run, _) = run {
                // An error that comes later in the order is not the one that is told.
                drop(output.finish(run, Ok(())));
            }
        }
    }
}

/// Cuts chunks into runs of at least `least` bytes each, but for the last one.
fn cut(chunks: Vec<PlacedChunk<'_>>, least: usize) -> Vec<Vec<PlacedChunk<'_>>> {
    let mut runs = Vec::new();
    let (mut run, mut bytes) = (Vec::new(), 0);
    for chunk in chunks {
        bytes += chunk.len();
        run.push(chunk);
        if bytes >= least {
            runs.push(std::mem::take(&mut run));
            bytes = 0;
        }
    }
    if !run.is_empty() {
        runs.push(run);
    }
    runs
}

impl<'a> StoreQueueState<'a> {
    /// Takes the first run, if it is written.
    fn pop_written(&mut self) -> Option<(PlacedRun<'a>, Result<(), ChunkError>)> {
        match self.runs.pop_front()? {
            RunSlot::Written(run, written) => {
                self.n_finished += 1;
                Some((run, written))
            }
            other => {
                self.runs.push_front(other);
                None
            }
        }
    }

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

impl WriteClaim<'_, '_> {
    fn write(mut self) {
        self.written = self.run.as_ref().map(|run| run.write(self.queue.storage));
    }
}

/// Hands in the run. One that was not written, because of a panic, is lost.
impl Drop for WriteClaim<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.writers -= 1;
        state.bytes -= self.run.as_ref().map_or(0, |run| run.held);
        let at = self.number - state.n_finished;
        if let Some(slot) = state.runs.get_mut(at) {
            *slot = match (self.run.take(), self.written.take()) {
                (Some(run), Some(written)) => RunSlot::Written(run, written),
                _ => RunSlot::Lost,
            };
        }
        if state.waiting > 0 {
            self.queue.room.notify_all();
        }
        if state.caller_waits {
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
