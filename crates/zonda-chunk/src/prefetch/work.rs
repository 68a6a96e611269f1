//! Decoding in the background, and how chunks that changed meanwhile are kept out of the cache.
//!
//! A chunk goes through these steps, and each of them may find that the chunk has changed, or is not needed:
//!
//! 1. *look*: the version is noted, then the table asked where the chunks are;
//! 2. *claim*: from here on others wait for this thread, or take the claim away;
//! 3. *check*: the version is still the one noted, else the place may be an old one;
//! 4. *fetch, decode*;
//! 5. *publish*: the chunk is dropped if the claim was taken away.
//!
//! A writer that changes a chunk enters its place, then raises the version, then takes the claim away ([`BackgroundDecoding::changed`]). So a
//! claim from before that is taken away, and one from after it meets the new version; `tests/model_prefetch.rs` tries orders
//! of both.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::array::SharedArray;
use crate::cache::{CacheClaim, ChunkCache, ClaimTerms};
use crate::selection::Coords;
use crate::stored::LocatedChunk;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{fork, sleep};
use crate::table::ChunkAt;
use crate::tuning::{MOST_PREFETCH_CHUNKS, PREFETCH_BUDGET_PART, STOP_NAPS};
use crate::worker::WorkerBuffers;

/// A box of the chunk grid to be decoded in the background.
#[derive(Debug)]
pub(crate) struct PrefetchBox {
    pub first: Coords,
    pub last: Coords,
    /// The first and the last of those that the walk has left behind for good.
    pub behind: Option<(Coords, Coords)>,
    pub extent: Coords,
    /// The walk: its dimension, its direction, its number.
    pub axis: usize,
    pub forward: bool,
    pub walk: u64,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkPosition {
    /// Number of the walk, and the last chunk along it that the request touches.
    pub walk: u64,
    pub edge: u64,
    /// It keeps the chunks that it decodes, because it wants none of them whole: it claims each in the cache before.
    pub keeps: bool,
}

/// Work in the background for one array.
#[derive(Debug, Default)]
pub(crate) struct BackgroundDecoding {
    stop: AtomicBool,
    running: AtomicUsize,
    /// Process that the work runs in.
    pid: AtomicU32,
    /// Where the last request is.
    walk: AtomicU64,
    edge: AtomicU64,
    keeps: AtomicBool,
    /// Changes of chunks in the storage so far.
    version: AtomicU64,
}

impl BackgroundDecoding {
    /// Notes where requests are. To be called before the cache is asked: work that has
    /// claimed a chunk after that sees that it is late.
    pub(crate) fn note(&self, position: WalkPosition) {
        self.keeps.store(position.keeps, Ordering::SeqCst);
        self.walk.store(position.walk, Ordering::SeqCst);
        self.edge.store(position.edge, Ordering::SeqCst);
    }

    /// Has `cache` forget a chunk that is another one in the storage now, and in the table. First the version, then what
    /// somebody has of it or is decoding: who claims it after that sees the version. No request for it runs.
    pub(crate) fn changed(&self, cache: &ChunkCache, key: &[u64]) {
        self.version.fetch_add(1, Ordering::SeqCst);
        cache.remove(key);
    }

    /// Makes the work end, and waits until it has: at most as long as a chunk takes to decode.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let (mut nap, longest) = STOP_NAPS;
        // In a forked child nothing runs, whatever the count says.
        while self.running.load(Ordering::Acquire) > 0
            && self.pid.load(Ordering::Relaxed) == zonda_runtime::fork::process_id()
        {
            sleep(nap);
            nap = (nap * 2).min(longest);
        }
    }
}

/// Counts a piece of work while it lives.
struct Running(Arc<SharedArray>);

impl Running {
    fn new(inner: &Arc<SharedArray>) -> Running {
        let background = &inner.background;
        let pid = zonda_runtime::fork::process_id();
        if background.pid.swap(pid, Ordering::Relaxed) != pid {
            background.running.store(0, Ordering::Relaxed);
        }
        background.running.fetch_add(1, Ordering::AcqRel);
        Running(Arc::clone(inner))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.background.running.fetch_sub(1, Ordering::AcqRel);
    }
}

impl SharedArray {
    /// Whether what lies ahead takes time to decode, threads have it, and memory is there.
    pub(crate) fn may_prefetch(&self, ahead: &PrefetchBox) -> bool {
        let mut sides = ahead.first.iter().zip(&ahead.last).map(|(from, to)| to - from + 1);
        let chunks = sides.try_fold(1u64, u64::checked_mul).filter(|&n| n <= MOST_PREFETCH_CHUNKS);
        let bytes = chunks.and_then(|n| n.checked_mul(self.chunk_bytes? as u64));
        self.engine.threads() > 1
            && (self.is_filtered() || self.is_remote())
            && bytes.is_some_and(|n| n <= self.engine.budget_bytes() / PREFETCH_BUDGET_PART)
    }
}

/// The chunks of an [`PrefetchBox`], shared by the threads that decode them.
struct PrefetchJob {
    running: Running,
    /// The version that the chunks' places are of.
    version: u64,
    axis: usize,
    forward: bool,
    walk: u64,
    chunks: Vec<(Coords, ChunkAt, bool)>,
    next: AtomicUsize,
}

impl PrefetchBox {
    /// Hands the work to threads that have nothing else to do.
    pub(crate) fn launch(self, inner: &Arc<SharedArray>) {
        let engine = Arc::clone(&inner.engine);
        let running = Running::new(inner);
        engine.spawn(move || {
            if let Some(job) = self.locate_chunks(running) {
                let job = Arc::new(job);
                let engine = Arc::clone(&job.running.0.engine);
                for _ in 1..job.chunks.len().min(engine.threads()) {
                    let job = Arc::clone(&job);
                    let gate = fork::enter();
                    if gate.is_none() || !engine.spawn(move || job.work()) {
                        break;
                    }
                }
                job.work();
            }
        });
    }

    /// Finds the chunks.
    fn locate_chunks(self, running: Running) -> Option<PrefetchJob> {
        let inner = &running.0;
        let mut chunks = Vec::new();
        let version = inner.background.version.load(Ordering::SeqCst);
        {
            let _gate = fork::enter()?;
            let mut found = |key: &[u64], place: ChunkAt| {
                let inside =
                    (0..key.len()).all(|d| (self.first[d]..=self.last[d]).contains(&key[d]));
                if key.len() == self.first.len() && inside {
                    let is_edge = (0..key.len()).any(|d| {
                        let begin = key[d].saturating_mul(inner.chunk_dims[d]);
                        self.extent[d].saturating_sub(begin) < inner.chunk_dims[d]
                    });
                    chunks.push((SmallVec::from_slice(key), place, is_edge));
                }
            };
            inner.table.locate(&self.first, &self.last, &mut found).ok()?;
        }
        zonda_runtime::sort::sort_by(&mut chunks, |a, b| a.0.cmp(&b.0));
        if !self.forward {
            chunks.reverse();
        }
        if inner.is_remote() {
            // They are on their way then. A thread that waited for them would be in the way of others, and of a fork.
            let _gate = fork::enter()?;
            inner.will_read(chunks.iter().map(|(_, place, _)| *place));
            return None;
        }
        let PrefetchBox { axis, forward, walk, .. } = self;
        let next = AtomicUsize::new(0);
        Some(PrefetchJob { running, version, axis, forward, walk, chunks, next })
    }
}

impl PrefetchJob {
    fn work(&self) {
        let mut buffers = WorkerBuffers::take();
        while let Some((key, place, is_edge)) =
            self.chunks.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            let found = LocatedChunk { key, place: *place, is_edge: *is_edge };
            if self.running.0.background.stop.load(Ordering::Acquire)
                || self.load(key, &found, &mut buffers).is_none()
            {
                break;
            }
        }
        let inner = &self.running.0;
        buffers.put_back(inner.chunk_bytes.unwrap_or(usize::MAX), &inner.engine);
    }

    /// Decodes one chunk into the cache; `None` where it is better to stop.
    fn load(
        &self,
        key: &Coords,
        found: &LocatedChunk<'_>,
        buffers: &mut WorkerBuffers,
    ) -> Option<()> {
        let inner = &self.running.0;
        if inner.is_raw(found) {
            return Some(());
        }
        let gate = fork::enter()?;
        let since = inner.since.load(Ordering::Relaxed);
        let mut ticket = match inner.cache.claim(key, ClaimTerms { keep: true, since, now: false })
        {
            CacheClaim::Decode(ticket) => ticket,
            CacheClaim::Ready(_) | CacheClaim::Bypass => return Some(()),
        };
        // A chunk that changed before it was claimed may be somewhere else now; one that changes later
        // takes the claim away.
        if inner.background.version.load(Ordering::SeqCst) != self.version {
            return None;
        }
        // Requests that looked for the chunk before it was claimed decode it themselves, unless they
        // claim it too: then this thread goes on to help them.
        if inner.background.walk.load(Ordering::SeqCst) != self.walk {
            return None;
        }
        let edge = inner.background.edge.load(Ordering::SeqCst);
        let late = if self.forward { key[self.axis] <= edge } else { key[self.axis] >= edge };
        if late && !inner.background.keeps.load(Ordering::SeqCst) {
            return Some(());
        }
        // The ticket's end takes a lock: on every way out it must have leave for it.
        let fetched = inner.fetch(found, &mut buffers.rows.stored);
        let spare = ticket.spare();
        drop(gate);
        let chunk_bytes = inner.chunk_bytes.unwrap_or(0);
        let bytes = fetched.and_then(|()| inner.unfilter(found, chunk_bytes, spare, buffers));
        let Some(_gate) = fork::enter() else {
            ticket.abandon();
            return None;
        };
        match bytes {
            Ok(bytes) => {
                ticket.publish(bytes);
                Some(())
            }
            Err(_) => {
                drop(ticket);
                None
            }
        }
    }
}
