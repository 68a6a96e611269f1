//! Requests under way: who asks for an extent, who waits for it, and how many bytes may be here.
//!
//! What was told is asked for by threads ([`Purpose::Remote`]), a few for each file, which end when there is nothing to do. A reader that needs an
//! extent that nobody has begun asks for it itself, so reads also work where no thread can be had. No lock is held while a request runs.

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use zonda_runtime::lock::{Condvar, Mutex, MutexGuard, Rank};
use zonda_runtime::memory::{self, Holder, Kind};
use zonda_runtime::worker::Purpose;
use zonda_runtime::{ProcessPool, fork};
use zonda_storage::RemoteFailure;
use zonda_trace::{Args, EventKind};

use super::disk::{DiskCache, ObjectParts};
use super::extents::{ExtentState, Extents, Found};
use super::plan::{Plan, PlanTerms, plan};
use super::speed::Speed;
use super::tuning::{
    AHEAD_PART, BLOCK_BYTES, KEPT_PART, LEAST_KEPT_BYTES, MOST_AHEAD_BYTES, MOST_AHEAD_TOLD_BYTES,
    MOST_FETCH_THREADS, MOST_KEPT_BYTES, MOST_REQUESTS, WASTE_BYTES, WASTE_PART, WORTH_WASTE,
};
use crate::RemoteError;
use crate::entered;
use crate::objects::{ObjectState, Objects};

/// The threads of this process that ask servers. Their jobs are given under locks of files.
static POOL: ProcessPool = ProcessPool::new(Purpose::Remote, Rank::FetchQueue, MOST_FETCH_THREADS);

/// How many calls that told of reads are remembered: what older ones told and nobody read may go.
const TOLD_CALLS: usize = 32;

/// The bytes of an object behind its head, as far as they are here or under way.
#[derive(Debug)]
pub(super) struct Fetcher {
    objects: Arc<dyn Objects>,
    key: String,
    state: ObjectState,
    /// Bytes at the beginning that are elsewhere.
    head: u64,
    speed: Speed,
    /// What earlier openings and other processes have left.
    disk: Option<ObjectParts>,
    work: Mutex<Work>,
    /// Rung when an extent is here, or failed.
    arrived: Condvar,
    is_closed: AtomicBool,
    /// The file of the trace.
    trace: u32,
}

/// What threads share.
#[derive(Debug)]
struct Work {
    extents: Extents,
    /// Threads that ask for extents of this file.
    n_workers: usize,
    /// The process that they are in.
    pid: u32,
    /// When the last calls told of reads.
    told: VecDeque<u64>,
    /// Bytes that readers wanted, and bytes that were fetched besides.
    wanted: u64,
    wasted: u64,
    /// Where the last request that nobody told of ended, and bytes of such requests one after the other.
    stream_end: u64,
    stream_bytes: u64,
    /// The same of ranges that were told.
    told_end: u64,
    told_bytes: u64,
    /// Bytes that the broker knows of.
    accounted: u64,
}

impl Fetcher {
    pub(super) fn new(
        objects: Arc<dyn Objects>,
        key: String,
        state: ObjectState,
        head: u64,
        took: Duration,
        trace: u32,
    ) -> Arc<Fetcher> {
        let speed = Speed::new();
        speed.note(head, took);
        let disk = DiskCache::of_environment()
            .and_then(|cache| cache.object(&objects.identity(&key)?, &key, &state));
        let work = Work {
            extents: Extents::default(),
            n_workers: 0,
            pid: fork::process_id(),
            told: VecDeque::new(),
            wanted: head,
            wasted: 0,
            stream_end: head,
            stream_bytes: 0,
            told_end: head,
            told_bytes: 0,
            accounted: 0,
        };
        let fetcher = Arc::new(Fetcher {
            objects,
            key,
            state,
            head,
            speed,
            disk,
            work: Mutex::ranked(Rank::Storage, work),
            arrived: Condvar::new(),
            is_closed: AtomicBool::new(false),
            trace,
        });
        let holder: Weak<dyn Holder> = Arc::downgrade(&fetcher) as Weak<dyn Holder>;
        memory::process().join(holder);
        fetcher
    }

    pub(super) fn state(&self) -> &ObjectState {
        &self.state
    }

    /// The object as messages show it.
    pub(super) fn shown(&self) -> Arc<str> {
        self.objects.shown(&self.key)
    }

    /// Nobody reads any more: threads end after the request that they are at.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Bytes that may be here and under way.
    fn room() -> u64 {
        (memory::budget() / KEPT_PART).clamp(LEAST_KEPT_BYTES, MOST_KEPT_BYTES)
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        let mut work = self.work.lock();
        let pid = fork::process_id();
        if work.pid != pid {
            work.pid = pid;
            work.n_workers = 0;
            work.extents.restart();
            work.account();
        }
        work
    }

    /// Has ranges asked for that will be read soon.
    pub(super) fn will_read(self: &Arc<Self>, ranges: &[Range<u64>]) {
        let wanted: Vec<Range<u64>> = ranges
            .iter()
            .map(|range| range.start.max(self.head)..range.end.min(self.state.len))
            .filter(|range| range.start < range.end)
            .collect();
        if wanted.is_empty() {
            return;
        }
        let mut work = self.lock();
        work.tell(&wanted, &self.speed, self.state.len);
        self.pump(work);
    }

    /// Starts threads for what waits, as many as may be.
    fn pump(self: &Arc<Self>, mut work: MutexGuard<'_, Work>) {
        let n = work.extents.n_waiting().min(MOST_REQUESTS.saturating_sub(work.n_workers));
        work.n_workers += n;
        drop(work);
        for started in 0..n {
            let fetcher = Arc::clone(self);
            if !POOL.get().spawn(move || fetcher.serve()) {
                // Those who read ask themselves.
                self.lock().n_workers -= n - started;
                return;
            }
        }
    }

    /// The work of a thread.
    fn serve(&self) {
        let mut done: Option<(u64, Result<Vec<u8>, RemoteError>)> = None;
        loop {
            let gate = entered();
            let mut work = self.lock();
            let came = done.take();
            if let Some((start, result)) = came {
                work.extents.end(start, result);
                self.arrived.notify_all();
            }
            let next = if self.is_closed.load(Ordering::Relaxed) {
                None
            } else {
                work.next(Fetcher::room())
            };
            work.account();
            let Some(range) = next else {
                work.n_workers = work.n_workers.saturating_sub(1);
                return;
            };
            drop(work);
            drop(gate);
            done = Some((range.start, self.request(&range, entered)));
        }
    }

    /// The bytes of a range: from the disk, else by one request. What keeps forks off while the disk has its turn is for the caller to say.
    fn request<G>(&self, range: &Range<u64>, gate: impl Fn() -> G) -> Result<Vec<u8>, RemoteError> {
        let Some(parts) = &self.disk else { return self.ask(range) };
        {
            let _gate = gate();
            if let Some(bytes) = parts.get(range) {
                return Ok(bytes);
            }
        }
        let bytes = self.ask(range)?;
        let _gate = gate();
        parts.put(range, &bytes);
        Ok(bytes)
    }

    /// One request for a range of the object.
    fn ask(&self, range: &Range<u64>) -> Result<Vec<u8>, RemoteError> {
        let len = range.end - range.start;
        let failed = |kind, what: &str| {
            RemoteError::new(&self.shown(), kind, what).of_range(range.start, len)
        };
        let mut bytes = Vec::new();
        let n = usize::try_from(len).ok().filter(|&n| bytes.try_reserve_exact(n).is_ok());
        let Some(n) = n else {
            return Err(failed(RemoteFailure::NoMemory, "there is no memory for them"));
        };
        bytes.resize(n, 0);
        let (begin, event) = (Instant::now(), zonda_trace::start());
        // A panic here would leave others waiting for ever.
        let got = catch_unwind(AssertUnwindSafe(|| {
            self.objects.get_range(&self.key, range.start, &mut bytes, Some(&self.state))
        }));
        let got = got.unwrap_or_else(|_| {
            Err(failed(RemoteFailure::Broken, "an error of this library ended the request"))
        });
        let code = got.as_ref().map_or_else(|error| error.kind.raw_os_error(), |_| 0);
        zonda_trace::span_since(event, EventKind::Request, || Args {
            file: self.trace,
            offset: range.start,
            bytes: len,
            code,
            ..Args::default()
        });
        let got = got?;
        if got.got != n {
            return Err(failed(
                RemoteFailure::Broken,
                "fewer bytes came than the object has there",
            ));
        }
        self.speed.note(len, begin.elapsed());
        Ok(bytes)
    }

    /// Reads from `at` on; the object has all of `buf`, behind the head.
    pub(super) fn read(self: &Arc<Self>, at: u64, buf: &mut [u8]) -> Result<(), RemoteError> {
        let end = at.saturating_add(buf.len() as u64);
        let (mut pos, mut rest) = (at, buf);
        // The extent that this call saw coming: another one that failed did so before, and is asked for anew.
        let mut awaited = None;
        let mut work = self.lock();
        work.want(at..end, self);
        if work.extents.n_waiting() > 1 {
            self.pump(work);
            work = self.lock();
        }
        while !rest.is_empty() {
            match work.extents.find(pos) {
                Found::In(range, ExtentState::Here(bytes)) => {
                    let n = rest.len().min(usize::try_from(range.end - pos).unwrap_or(usize::MAX));
                    let is_done = work.extents.read(range.start, n as u64);
                    let waits = work.extents.n_waiting() > 0 && work.n_workers < MOST_REQUESTS;
                    // Only then is there more room than before.
                    if is_done && waits {
                        self.pump(work)
                    } else {
                        drop(work)
                    }
                    let from = usize::try_from(pos - range.start).unwrap_or(usize::MAX);
                    let (now, later) = rest.split_at_mut(n);
                    let part = bytes.get(from..).and_then(|bytes| bytes.get(..n));
                    let part = part.ok_or_else(|| {
                        RemoteError::new(
                            &self.shown(),
                            RemoteFailure::Broken,
                            "an extent is shorter than its range",
                        )
                        .of_range(pos, n as u64)
                    })?;
                    now.copy_from_slice(part);
                    (pos, rest) = (pos + n as u64, later);
                    work = self.lock();
                }
                Found::In(range, ExtentState::Failed(error)) => {
                    work.extents.remove_failed(range.start);
                    if awaited == Some(range.start) {
                        return Err(error);
                    }
                    work.want(pos..end, self);
                }
                Found::In(range, ExtentState::Coming) => {
                    awaited = Some(range.start);
                    work = self.arrived.wait(work);
                }
                Found::In(range, ExtentState::Waiting) => {
                    awaited = Some(range.start);
                    work.extents.begin(range.start);
                    work.extents.shrink(Fetcher::room(), false);
                    work.account();
                    drop(work);
                    // The file of this call is locked: that keeps forks off.
                    let result = self.request(&range, || ());
                    work = self.lock();
                    work.extents.end(range.start, result);
                    work.account();
                    self.arrived.notify_all();
                }
                // It was here and had to go.
                Found::Missing(_) => work.want(pos..end, self),
            }
        }
        Ok(())
    }
}

impl Work {
    /// Adds extents for what is wanted and not there of an object of `len` bytes, in as few requests as is cheap.
    fn tell(&mut self, wanted: &[Range<u64>], speed: &Speed, len: u64) {
        let mut missing = Vec::new();
        for range in wanted {
            self.extents.missing(range.clone(), &mut missing);
        }
        self.wanted = missing
            .iter()
            .fold(self.wanted, |sum, range| sum.saturating_add(range.end - range.start));
        let waste =
            (self.wanted / WASTE_PART).saturating_add(WASTE_BYTES).saturating_sub(self.wasted);
        let frugal = plan(&missing, PlanTerms { gap: speed.gap(), waste });
        let Plan { requests, wasted, .. } = quicker(frugal, &missing, speed);
        self.wasted = self.wasted.saturating_add(wasted);
        let mut sorted = missing;
        zonda_runtime::sort::sort_by_key(&mut sorted, |range| range.start);
        let mut parts = Vec::new();
        for request in requests {
            // What lies in a gap may be here.
            self.extents.missing(request, &mut parts);
            for part in parts.drain(..) {
                let unread = wanted_within(&sorted, &part);
                self.extents.add(part, unread);
            }
        }
        self.read_on(wanted, len);
        self.told.push_back(self.extents.clock());
        if self.told.len() > TOLD_CALLS
            && let Some(before) = self.told.pop_front()
        {
            self.extents.forget_told(before);
        }
    }

    /// Adds an extent for what comes behind ranges that were told, where they go on where those of an earlier call ended: so a file that is read variable by variable
    /// needs few round trips.
    fn read_on(&mut self, wanted: &[Range<u64>], len: u64) {
        let (mut from, mut end, mut bytes) = (u64::MAX, 0, 0u64);
        for range in wanted {
            (from, end) = (from.min(range.start), end.max(range.end));
            bytes = bytes.saturating_add(range.end - range.start);
        }
        let goes_on = from.checked_sub(self.told_end).is_some_and(|gap| gap <= BLOCK_BYTES);
        if !goes_on && bytes < BLOCK_BYTES {
            // An index between the data of two variables.
            return;
        }
        self.told_bytes = if goes_on { self.told_bytes.saturating_add(bytes) } else { bytes };
        self.told_end = end;
        if goes_on {
            let ahead = self.told_bytes.min(MOST_AHEAD_TOLD_BYTES);
            let mut parts = Vec::new();
            self.extents.missing(end..end.saturating_add(ahead).min(len), &mut parts);
            for part in parts {
                self.extents.add(part, 0);
            }
        }
    }

    /// Adds extents for one range that is wanted at once and that nobody told of before, as far as it is not there.
    fn want(&mut self, range: Range<u64>, fetcher: &Fetcher) {
        let mut missing = Vec::new();
        self.extents.missing(range.clone(), &mut missing);
        let (Some(first), Some(last)) = (missing.first(), missing.last()) else { return };
        let (from, mut to) = (first.start, last.end);
        if to - from >= BLOCK_BYTES {
            // The bytes of a large read are all wanted, and nothing besides.
            self.follow(from);
            self.note_stream(from, to);
            self.tell(&missing, &fetcher.speed, fetcher.state.len);
            return;
        }
        // Blocks, but nothing that is here or under way.
        let block = from - from % BLOCK_BYTES;
        let begin = self.extents.end_before(from).max(fetcher.head).max(block);
        let ahead = self.follow(from);
        to = to.saturating_add(ahead).next_multiple_of(BLOCK_BYTES).min(fetcher.state.len);
        self.note_stream(from, to);
        let mut parts = Vec::new();
        self.extents.missing(begin..to, &mut parts);
        for part in parts {
            // Up to the next extent behind what is wanted.
            let is_wanted = part.start < range.end;
            if is_wanted {
                self.extents.add_first(part);
            }
        }
    }

    /// How many bytes may be read ahead of a request from `from` on that nobody told of: some, where it goes on where the last one ended, or a little behind.
    fn follow(&mut self, from: u64) -> u64 {
        if from.checked_sub(self.stream_end).is_none_or(|gap| gap > BLOCK_BYTES) {
            self.stream_bytes = 0;
        }
        (self.stream_bytes / AHEAD_PART).min(MOST_AHEAD_BYTES)
    }

    /// Such a request is made.
    fn note_stream(&mut self, from: u64, to: u64) {
        self.stream_bytes = self.stream_bytes.saturating_add(to - from);
        self.stream_end = to;
    }

    /// The next extent to be asked for, with room made for it.
    fn next(&mut self, room: u64) -> Option<Range<u64>> {
        self.extents.begin_next(room).or_else(|| {
            (self.extents.n_waiting() > 0 && self.extents.shrink(room / 2, false) > 0)
                .then(|| self.extents.begin_next(room))
                .flatten()
        })
    }

    /// Tells the broker how many bytes there are.
    fn account(&mut self) {
        let held = self.extents.held();
        match held.checked_sub(self.accounted) {
            Some(0) => {}
            Some(more) => memory::process().take_first(Kind::Pages, more),
            None => memory::process().give_back(Kind::Pages, self.accounted - held),
        }
        self.accounted = held;
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        memory::process().give_back(Kind::Pages, self.accounted);
    }
}

impl Holder for Fetcher {
    fn least_useful(&self) -> Option<u64> {
        // Whatever is kept here can be had again, at the price of a request: it counts as old.
        self.work.try_lock().and_then(|work| work.extents.least_useful())
    }

    fn give_back(&self, bytes: u64, _before: u64) -> u64 {
        let Some(mut work) = self.work.try_lock() else { return 0 };
        let most = work.extents.held().saturating_sub(bytes);
        let freed = work.extents.shrink(most, false);
        work.accounted -= freed.min(work.accounted);
        memory::process().give_back(Kind::Pages, freed);
        freed
    }
}

/// The plan itself, or one that fetches all gaps that are worth it, where that is much quicker.
fn quicker(frugal: Plan, missing: &[Range<u64>], speed: &Speed) -> Plan {
    if frugal.requests.len() <= MOST_REQUESTS {
        return frugal;
    }
    let lavish = plan(missing, PlanTerms { gap: speed.gap(), waste: u64::MAX });
    let seconds = |plan: &Plan| speed.seconds(plan.requests.len(), plan.bytes());
    if seconds(&lavish) * WORTH_WASTE < seconds(&frugal) { lavish } else { frugal }
}

/// Bytes of `part` that are in `sorted`, whose ranges may overlap.
fn wanted_within(sorted: &[Range<u64>], part: &Range<u64>) -> u64 {
    let (mut at, mut sum) = (part.start, 0);
    let first = sorted.partition_point(|range| range.end <= part.start);
    for range in &sorted[first..] {
        if range.start >= part.end {
            break;
        }
        let (from, to) = (range.start.max(at), range.end.min(part.end));
        if from < to {
            sum += to - from;
            at = to;
        }
    }
    sum
}
