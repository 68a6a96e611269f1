//! What a program is about to ask for: seen from its last requests, decoded in the background.
//!
//! Requests of the same shape that move along one dimension by the same step are taken for a walk.
//! After three of them the chunks that the walk comes to next are decoded by threads that have
//! nothing else to do, as far as the budget allows. Errors there are dropped: who asks for the
//! chunk meets them again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use smallvec::SmallVec;
use zonda_runtime::fork;

use crate::array::{Bench, Inner, Numbers};
use crate::cache::{Claim, Want};
use crate::selection::{Axis, Coords, Selection};
use crate::stored::Found;
use crate::table::ChunkAt;

/// The last request, and how it came about.
#[derive(Debug, Default)]
pub(crate) struct Pattern {
    start: Coords,
    count: Numbers,
    stride: Coords,
    /// Dimension and step of the walk.
    walk: Option<(usize, i128)>,
    /// Steps of the walk so far.
    n_steps: u32,
    /// Number of the walk.
    number: u64,
    /// First chunk along the walk that was not yet asked for in the background.
    reached: Option<u64>,
    /// Chunk of the last request, if it needed only one, and requests to it so far.
    only: Option<Coords>,
    same_chunk: u32,
    /// Who made it, and whether others have made some.
    thread: Option<ThreadId>,
    shared: bool,
}

/// What the pattern says of a request.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// It shares elements with the last one.
    pub overlaps: bool,
    /// Requests before this one that needed the same single chunk.
    pub same_chunk: u32,
    /// Number of the walk, and the last chunk along it that the request touches.
    pub walk: u64,
    pub edge: u64,
    /// It keeps the chunks that it decodes, because it wants none of them whole.
    pub keeps: bool,
    /// What to decode in the background.
    pub ahead: Option<Ahead>,
}

/// Steps after which requests are taken for a walk.
const WALK_STEPS: u32 = 2;
/// Chunks asked for in the background at a time.
const MOST_AHEAD: u64 = 1024;

impl Pattern {
    /// Takes note of a request. `large` chunks are worth it to be given up early.
    pub(crate) fn observe(&mut self, selection: &Selection, threads: usize, large: bool) -> Seen {
        // Another thread may be where this one has been.
        let thread = std::thread::current().id();
        self.shared |= self.thread.replace(thread).is_some_and(|last| last != thread);
        let axes = &selection.axes;
        let starts: Coords = axes.iter().map(|axis| axis.start).collect();
        let counts: Numbers = axes.iter().map(|axis| axis.cuts.n_elems()).collect();
        let strides: Coords = axes.iter().map(|axis| axis.stride).collect();
        let same_shape = self.start.len() == starts.len()
            && !self.count.is_empty()
            && (&self.count, &self.stride) == (&counts, &strides);
        let mut seen =
            Seen { overlaps: self.overlaps(&starts, &counts, &strides), ..Seen::default() };

        let one_chunk = axes.iter().all(|axis| axis.cuts.n_pieces() == 1);
        let chunk = || axes.iter().map(|axis| Some(axis.piece(0)?.chunk)).collect();
        let only: Option<Coords> = if one_chunk { chunk() } else { None };
        self.same_chunk = match only.is_some() && only == self.only {
            true => self.same_chunk.saturating_add(1),
            false => 0,
        };
        seen.same_chunk = self.same_chunk;
        self.only = only;

        let step = if same_shape { single_step(&self.start, &starts) } else { None };
        if step.is_some() && step == self.walk {
            self.n_steps = self.n_steps.saturating_add(1);
        } else if step.is_some() || !same_shape || self.start != starts {
            (self.walk, self.n_steps, self.reached) = (step, u32::from(step.is_some()), None);
            self.number += 1;
        }
        (self.start, self.count, self.stride) = (starts, counts, strides);

        seen.walk = self.number;
        if let Some((axis, step)) = self.walk.filter(|_| self.n_steps >= WALK_STEPS) {
            let last = if step > 0 { axes[axis].cuts.n_chunks().saturating_sub(1) } else { 0 };
            seen.edge = axes[axis].piece(last).map_or(0, |piece| piece.chunk);
            let n_chunks = axes[axis].cuts.n_chunks();
            seen.keeps = n_chunks <= 2 && (0..n_chunks).all(|k| !axes[axis].is_whole(k));
            seen.ahead = self.ahead(selection, axis, step, threads);
            if let Some(ahead) = seen.ahead.as_mut().filter(|_| self.shared || !large) {
                ahead.behind = None;
            }
        }
        seen
    }

    fn overlaps(&self, starts: &[u64], counts: &[usize], strides: &[u64]) -> bool {
        let last = |start: u64, count: usize, stride: u64| {
            start.saturating_add((count as u64).saturating_sub(1).saturating_mul(stride))
        };
        self.start.len() == starts.len()
            && !starts.is_empty()
            && (0..starts.len()).all(|d| {
                self.count[d] > 0
                    && counts[d] > 0
                    && starts[d] <= last(self.start[d], self.count[d], self.stride[d])
                    && self.start[d] <= last(starts[d], counts[d], strides[d])
            })
    }

    /// The chunks that the walk comes to next and that were not asked for yet.
    fn ahead(
        &mut self,
        selection: &Selection,
        walk: usize,
        step: i128,
        threads: usize,
    ) -> Option<Ahead> {
        let (mut first, mut last) = (Coords::new(), Coords::new());
        let (mut per_row, mut n_chunks, mut all_whole) = (1u64, 1u64, true);
        for (d, axis) in selection.axes.iter().enumerate() {
            let behind = axis.cuts.n_chunks();
            let (from, to) = axis.chunks(0, behind.checked_sub(1)?);
            first.push(from);
            last.push(to);
            n_chunks = n_chunks.saturating_mul(behind as u64);
            per_row = per_row.saturating_mul(if d == walk { 1 } else { to - from + 1 });
            all_whole = all_whole && axis.is_whole(0) && axis.is_whole(behind - 1);
        }
        // Enough for all threads goes straight to the caller, with one copy less.
        if all_whole && n_chunks >= 2 * threads as u64 {
            return None;
        }
        let all_across = |(d, axis): (usize, &Axis)| {
            let count = axis.cuts.n_elems() as u64;
            d == walk || (axis.start == 0 && axis.stride == 1 && count == axis.extent)
        };
        let all_across = selection.axes.iter().enumerate().all(all_across);
        let axis = &selection.axes[walk];
        let (here_first, here_last) = (first[walk], last[walk]);
        let width = here_last - here_first + 1;
        // A walk that leaves chunks out is none.
        if step.unsigned_abs() > u128::from(axis.chunk) * u128::from(width) {
            return None;
        }
        // Rows of chunks: the next request's, and at least a chunk for each thread.
        let far = (threads as u64).div_ceil(per_row).max(width);
        let (from, to) = if step > 0 {
            let end = axis.extent.checked_sub(1)? / axis.chunk;
            let from = self.reached.unwrap_or(0).max(here_last + 1);
            let to = here_last.saturating_add(far).min(end);
            self.reached = Some(from.max(to + 1));
            (from, to)
        } else {
            let to = self.reached.unwrap_or(here_first).min(here_first).checked_sub(1)?;
            let from = here_first.saturating_sub(far);
            self.reached = Some(from.min(to + 1));
            (from, to)
        };
        if from > to {
            return None;
        }
        // As many rows behind: a walk through all of the array does not come back to them soon.
        let rows = to - from + 1;
        let behind = match step > 0 {
            true => here_first.checked_sub(1).map(|to| (to.saturating_sub(rows - 1), to)),
            false => Some((here_last + 1, here_last + rows)),
        };
        let behind = behind.filter(|_| all_across).map(|(from, to)| {
            let (mut first, mut last) = (first.clone(), last.clone());
            (first[walk], last[walk]) = (from, to);
            (first, last)
        });
        (first[walk], last[walk]) = (from, to);
        let extent = selection.axes.iter().map(|axis| axis.extent).collect();
        Some(Ahead {
            first,
            last,
            behind,
            extent,
            axis: walk,
            forward: step > 0,
            walk: self.number,
        })
    }
}

/// The one dimension in which `to` differs from `from`, and by how much.
fn single_step(from: &[u64], to: &[u64]) -> Option<(usize, i128)> {
    let mut moved = (0..from.len()).filter(|&d| from[d] != to[d]);
    let axis = moved.next()?;
    moved.next().is_none().then(|| (axis, i128::from(to[axis]) - i128::from(from[axis])))
}

/// A box of the chunk grid to be decoded in the background.
#[derive(Debug)]
pub(crate) struct Ahead {
    first: Coords,
    last: Coords,
    /// The first and the last of those that the walk has left behind for good.
    pub behind: Option<(Coords, Coords)>,
    extent: Coords,
    /// The walk: its dimension, its direction, its number.
    axis: usize,
    forward: bool,
    walk: u64,
}

/// Work in the background for one array.
#[derive(Debug, Default)]
pub(crate) struct Background {
    stop: AtomicBool,
    running: AtomicUsize,
    /// Process that the work runs in.
    pid: AtomicU32,
    /// The walk of the last request, and how far it has come.
    walk: AtomicU64,
    edge: AtomicU64,
    /// The last request claims each chunk in the cache before it decodes it.
    keeps: AtomicBool,
}

impl Background {
    /// Takes note of where requests are. To be called before the cache is asked: work that has
    /// claimed a chunk after that sees that it is late.
    pub(crate) fn note(&self, seen: &Seen) {
        self.keeps.store(seen.keeps, Ordering::SeqCst);
        self.walk.store(seen.walk, Ordering::SeqCst);
        self.edge.store(seen.edge, Ordering::SeqCst);
    }

    /// Tells the work to end, and waits until it has: at most for the decoding of a chunk.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let mut nap = Duration::from_micros(20);
        // In a forked child nothing runs, whatever the count says.
        while self.running.load(Ordering::Acquire) > 0
            && self.pid.load(Ordering::Relaxed) == zonda_runtime::fork::process_id()
        {
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(1));
        }
    }
}

/// Counts a piece of work while it lives.
struct Running(Arc<Inner>);

impl Running {
    fn new(inner: &Arc<Inner>) -> Running {
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

impl Inner {
    /// Whether what lies ahead takes time to decode, threads have it, and memory is there.
    pub(crate) fn may_prefetch(&self, ahead: &Ahead) -> bool {
        let mut sides = ahead.first.iter().zip(&ahead.last).map(|(from, to)| to - from + 1);
        let chunks = sides.try_fold(1u64, u64::checked_mul).filter(|&n| n <= MOST_AHEAD);
        let bytes = chunks.and_then(|n| n.checked_mul(self.chunk_bytes? as u64));
        self.engine.threads() > 1
            && self.is_filtered()
            && bytes.is_some_and(|n| n <= self.engine.budget_bytes() / 4)
    }
}

/// The chunks of an [`Ahead`], shared by the threads that decode them.
struct Job {
    running: Running,
    /// The version that the chunks' places are of.
    version: u64,
    axis: usize,
    forward: bool,
    walk: u64,
    chunks: Vec<(Coords, ChunkAt, bool)>,
    next: AtomicUsize,
}

impl Ahead {
    /// Hands the work to threads that have nothing else to do.
    pub(crate) fn launch(self, inner: &Arc<Inner>) {
        let engine = Arc::clone(&inner.engine);
        let running = Running::new(inner);
        engine.spawn(move || {
            if let Some(job) = self.look(running) {
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
    fn look(self, running: Running) -> Option<Job> {
        let inner = &running.0;
        let mut chunks = Vec::new();
        let version = inner.version.load(Ordering::SeqCst);
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
        chunks.sort_by(|a, b| a.0.cmp(&b.0));
        if !self.forward {
            chunks.reverse();
        }
        let Ahead { axis, forward, walk, .. } = self;
        let next = AtomicUsize::new(0);
        Some(Job { running, version, axis, forward, walk, chunks, next })
    }
}

impl Job {
    fn work(&self) {
        let mut bench = Bench::take();
        while let Some((key, place, is_edge)) =
            self.chunks.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            let found = Found { key, place: *place, is_edge: *is_edge };
            if self.running.0.background.stop.load(Ordering::Acquire)
                || self.load(key, &found, &mut bench).is_none()
            {
                break;
            }
        }
        let inner = &self.running.0;
        bench.put_back(inner.chunk_bytes.unwrap_or(usize::MAX), &inner.engine);
    }

    /// Decodes one chunk into the cache; `None` where it is better to stop.
    fn load(&self, key: &Coords, found: &Found<'_>, bench: &mut Bench) -> Option<()> {
        let inner = &self.running.0;
        if inner.is_raw(found) {
            return Some(());
        }
        let gate = fork::enter()?;
        let since = inner.since.load(Ordering::Relaxed);
        let mut ticket = match inner.cache.claim(key, Want { keep: true, since, now: false }) {
            Claim::Load(ticket) => ticket,
            Claim::Ready(_) | Claim::Bypass => return Some(()),
        };
        // A chunk that changed before it was claimed is somewhere else now; one that changes later
        // takes the claim away.
        if inner.version.load(Ordering::SeqCst) != self.version {
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
        let fetched = inner.fetch(found, &mut bench.memory.stored);
        let spare = ticket.spare();
        drop(gate);
        let chunk_bytes = inner.chunk_bytes.unwrap_or(0);
        let bytes = fetched.and_then(|()| inner.unfilter(found, chunk_bytes, spare, bench));
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
