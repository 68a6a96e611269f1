//! Write-behind: a put returns when its values are copied, and is carried out later.
//!
//! Each file has a queue. A put is checked against [`rules`] that say what certainly fits; its values
//! are copied, or converted to the variable's type where they have another, so that all that can be
//! wrong with arguments and values is known when it returns. A thread ([`threads`]) then makes the
//! same calls to the format in the same order, one at a time for each file: so the bytes of the file are
//! those that it would have without the queue. What does not certainly fit waits until the queue is
//! empty and goes the ordinary way.
//!
//! - Inquiries do not wait: while puts wait, they look at a [`View`] of the definitions, whose
//!   dimensions grow when puts are accepted.
//! - Gets wait for the last put that touches what they read.
//! - Definitions, sync and close wait until the queue is empty.
//! - Values take no more memory than a [`budget`] allows: a put that finds no room waits.
//! - A put that the storage refuses stops the queue, with all that was accepted in it. The next call
//!   tells of it; sync and close try again. After any other failure the queue goes on without that
//!   put; the next put, sync and close tell of it.
//! - A forked child has no queue: what was accepted is its parent's.

mod budget;
mod job;
mod rules;
mod settings;
mod threads;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};

use arc_swap::{ArcSwap, Guard};
use zonda_convert::Converted;
use zonda_model::{Hyperslab, NcError};
use zonda_nc4::{Fetch, Held, View};

use crate::dataset::Inner;
use crate::error::{Error, Result};
use crate::meta::NC_STRING;
use crate::refs::VarRef;

use budget::Budget;
use job::{Batch, Given, job_bytes};
pub(crate) use rules::Fit;
use rules::Rules;
pub use settings::{BehindHow, NotWriteBehind, WriteBehind};

/// Values up to so many bytes are collected before a thread is asked to come.
const SMALL: usize = 64 << 10;
/// Bytes that are collected at most.
const COLLECTED: usize = 256 << 10;
/// Bytes that there is room for at first.
const COLLECTED_FIRST: usize = 8 << 10;
/// Bytes converted at a time: they stay in the second-level cache of a core.
const BLOCK: usize = 64 << 10;

/// The queue of a file.
#[derive(Debug)]
pub(crate) struct Behind {
    this: Weak<Behind>,
    inner: Arc<Inner>,
    path: PathBuf,
    budget: ArcSwap<Budget>,
    /// Threads that there may be; 0 for the default.
    n_threads: AtomicUsize,
    /// The file was closed, or belongs to another process.
    is_over: AtomicBool,
    state: Mutex<State>,
    /// A put was carried out that somebody waits for, or a thread has left the queue.
    progress: Condvar,
    n_accepted: AtomicU64,
    n_done: AtomicU64,
    /// Threads that wait for progress.
    n_waiting: AtomicUsize,
    /// There is something to be told.
    has_failed: AtomicBool,
    /// Records that a classic file has with all that was accepted.
    n_records: AtomicU64,
    /// The definitions of a netCDF-4 file, for those who ask while a thread has the file.
    front: RwLock<Option<View>>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Arc<Batch>>,
    /// Small puts are being collected here, behind all others.
    open: Option<Batch>,
    /// A thread is at it.
    running: Option<Arc<Batch>>,
    /// Bytes of values that wait.
    pending_bytes: usize,
    /// A thread will come.
    is_scheduled: bool,
    /// The storage refused the first put.
    is_stopped: bool,
    failure: Option<Kept>,
    /// What puts have to fit, by group and variable.
    rules: Vec<Vec<Option<Arc<Rules>>>>,
    /// How often definitions may have changed.
    epoch: u64,
}

/// A failure of a put that was accepted.
#[derive(Clone, Debug)]
struct Kept {
    code: NcError,
    text: String,
    /// A put told of it.
    is_told: bool,
}

impl Kept {
    fn error(&self) -> Error {
        Error::told(self.code, self.text.clone())
    }
}

/// What is known of a variable before a put, and when.
#[derive(Debug)]
pub(crate) struct Known {
    rules: Arc<Rules>,
    epoch: u64,
    /// Records in a classic file.
    n_records: u64,
}

impl Known {
    pub(crate) fn rank(&self) -> usize {
        self.rules.rank()
    }

    pub(crate) fn is_atomic(&self) -> bool {
        self.rules.is_atomic()
    }

    pub(crate) fn fit<'s>(
        &self,
        slab: &Hyperslab<'s>,
        mem: Option<zonda_model::MemType>,
    ) -> Option<Fit<'s>> {
        self.rules.fit(slab, mem)
    }
}

/// Held for a fork.
pub(crate) struct Frozen<'a> {
    _state: MutexGuard<'a, State>,
    _front: RwLockWriteGuard<'a, Option<View>>,
}

impl std::fmt::Debug for Frozen<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frozen").finish_non_exhaustive()
    }
}

/// What all queues share, held for a fork.
pub(crate) struct Quiet {
    _threads: threads::Frozen,
    _budget: budget::Frozen,
}

impl std::fmt::Debug for Quiet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quiet").finish_non_exhaustive()
    }
}

/// Keeps threads from taking new work, for the time of a fork.
pub(crate) fn quiet() -> Quiet {
    Quiet { _threads: threads::freeze(), _budget: budget::freeze() }
}

impl Behind {
    pub(crate) fn new(inner: &Arc<Inner>, path: PathBuf) -> Arc<Behind> {
        Arc::new_cyclic(|this| Behind {
            this: Weak::clone(this),
            is_over: AtomicBool::new(false),
            inner: Arc::clone(inner),
            path,
            budget: ArcSwap::new(Budget::of_process()),
            n_threads: AtomicUsize::new(0),
            state: Mutex::default(),
            progress: Condvar::new(),
            n_accepted: AtomicU64::new(0),
            n_done: AtomicU64::new(0),
            n_waiting: AtomicUsize::new(0),
            has_failed: AtomicBool::new(false),
            n_records: AtomicU64::new(0),
            front: RwLock::new(None),
        })
    }

    /// Lets it work so from now on.
    pub(crate) fn set(&self, how: BehindHow) {
        self.budget.store(Budget::of(&how));
        self.n_threads.store(how.threads.unwrap_or(0), Ordering::Relaxed);
    }

    fn budget(&self) -> Guard<Arc<Budget>> {
        self.budget.load()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Whether puts wait.
    pub(crate) fn is_busy(&self) -> bool {
        self.n_accepted.load(Ordering::SeqCst) != self.n_done.load(Ordering::SeqCst)
            && !self.is_over.load(Ordering::Relaxed)
    }

    /// Bytes of values that wait, and what went wrong, if anything did.
    pub(crate) fn status(&self) -> (usize, Option<Error>) {
        let state = self.lock();
        (state.pending_bytes, state.failure.as_ref().map(Kept::error))
    }

    /// Records that there are with all that was accepted.
    pub(crate) fn n_records(&self, in_file: u64) -> u64 {
        in_file.max(self.n_records.load(Ordering::Acquire))
    }

    /// The definitions while puts wait; `None` where the file itself can be asked.
    pub(crate) fn front(&self) -> Option<RwLockReadGuard<'_, Option<View>>> {
        if !self.is_busy() {
            return None;
        }
        let front = self.front.read().unwrap_or_else(PoisonError::into_inner);
        front.is_some().then_some(front)
    }

    /// For a put: what went wrong with those before it.
    ///
    /// # Errors
    /// What the storage said, as long as the queue stands still; any other failure once.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut state = self.lock();
        let is_stopped = state.is_stopped;
        match &mut state.failure {
            Some(kept) if is_stopped || !kept.is_told => {
                kept.is_told = true;
                Err(kept.error())
            }
            _ => Ok(()),
        }
    }

    /// What puts to a variable have to fit; `None` where that cannot be said before.
    pub(crate) fn known(&self, var: VarRef) -> Option<Known> {
        let n_records = match &*self.inner {
            Inner::Classic(classic) => classic.n_records(),
            Inner::Nc4(_) => 0,
        };
        let state = self.lock();
        let (group, id) = (usize::from(var.group.0), usize::try_from(var.var.0).ok()?);
        let epoch = state.epoch;
        if let Some(Some(rules)) = state.rules.get(group).and_then(|vars| vars.get(id)) {
            return Some(Known { rules: Arc::clone(rules), epoch, n_records });
        }
        drop(state);
        let rules = Arc::new(self.find_rules(var, epoch)?);
        let mut state = self.lock();
        if state.epoch != epoch || self.is_over() {
            return None;
        }
        if state.rules.len() <= group {
            state.rules.resize_with(group + 1, Vec::new);
        }
        let vars = &mut state.rules[group];
        if vars.len() <= id {
            vars.resize_with(id + 1, || None);
        }
        vars[id] = Some(Arc::clone(&rules));
        Some(Known { rules, epoch, n_records })
    }

    fn find_rules(&self, var: VarRef, epoch: u64) -> Option<Rules> {
        let nc4 = match &*self.inner {
            Inner::Classic(classic) => {
                if !classic.is_writable() || classic.in_define_mode() {
                    return None;
                }
                return classic.with_header(|header, _| Rules::classic(header, var.var));
            }
            Inner::Nc4(nc4) => nc4,
        };
        let is_there = self.front.read().unwrap_or_else(PoisonError::into_inner).is_some();
        if !is_there {
            let file = nc4.read();
            if !file.is_writable() {
                return None;
            }
            let view = file.view().ok()?;
            drop(file);
            // In this order everywhere: the file, what is here, the view.
            let state = self.lock();
            if state.epoch != epoch || self.is_busy() {
                return None;
            }
            *self.front.write().unwrap_or_else(PoisonError::into_inner) = Some(view);
        }
        let front = self.front.read().unwrap_or_else(PoisonError::into_inner);
        let view = front.as_ref()?;
        let rules = view.put_rules(var.group, var.var).ok()??;
        let elem = match rules.nc_type {
            NC_STRING => size_of::<u64>(),
            nc_type => view.elem_bytes(nc_type).ok()?,
        };
        Some(Rules::nc4(rules, elem))
    }

    /// Accepts a put of packed elements; `None` where it has to go the ordinary way.
    ///
    /// # Errors
    /// What stopped the queue while the put waited for room.
    pub(crate) fn accept(
        &self,
        var: VarRef,
        known: &Known,
        fit: &Fit<'_>,
        given: &[u8],
    ) -> Result<Option<Converted>> {
        let accepted = if fit.kept_bytes > SMALL {
            self.accept_large(var, known, fit, given)?
        } else {
            self.accept_small(var, known, fit, given)?
        };
        Ok(accepted.map(|converted| known.rules.told(fit.given, converted)))
    }

    fn accept_large(
        &self,
        var: VarRef,
        known: &Known,
        fit: &Fit<'_>,
        given: &[u8],
    ) -> Result<Option<Converted>> {
        let Some(mut memory) = self.wait_for_memory(fit.kept_bytes)? else { return Ok(None) };
        let converted = keep(fit, given, &mut memory);
        let mut batch = Batch::new(memory);
        let state = self.lock();
        if state.epoch != known.epoch || self.is_over() {
            drop(state);
            self.budget().give_back(batch.bytes);
            return Ok(None);
        }
        let grown_from = self.grow(var, known, fit);
        batch.add(var, &fit.slab, fit.mem, fit.kept_bytes, grown_from);
        self.push(state, batch);
        Ok(Some(converted))
    }

    fn accept_small(
        &self,
        var: VarRef,
        known: &Known,
        fit: &Fit<'_>,
        given: &[u8],
    ) -> Result<Option<Converted>> {
        let rank = fit.slab.start.len();
        let mut memory = None;
        loop {
            let mut state = self.lock();
            if state.epoch != known.epoch || self.is_over() {
                drop(state);
                memory.into_iter().for_each(|memory| self.budget().give_back(memory));
                return Ok(None);
            }
            let has_room = |open: &Batch| open.has_room(fit.kept_bytes, rank);
            if !state.open.as_ref().is_some_and(has_room) {
                let Some(memory) = memory.take() else {
                    // As much as the last ones needed, and more where it was not enough.
                    let wanted = match &state.open {
                        Some(open) => open.bytes.capacity().saturating_mul(2).min(COLLECTED),
                        None => COLLECTED_FIRST,
                    };
                    drop(state);
                    let least = fit.kept_bytes + job_bytes(rank);
                    let wanted = wanted.min(self.budget().limit() / 4).max(least);
                    memory = self.wait_for_memory(wanted)?;
                    if memory.is_none() {
                        return Ok(None);
                    }
                    continue;
                };
                let full = state.open.replace(Batch::new(memory));
                if let Some(full) = full {
                    state.queue.push_back(Arc::new(full));
                    state = self.schedule(state);
                }
            }
            let grown_from = self.grow(var, known, fit);
            let Some(open) = &mut state.open else { continue };
            let converted = keep(fit, given, &mut open.bytes);
            open.add(var, &fit.slab, fit.mem, fit.kept_bytes, grown_from);
            state.pending_bytes += fit.kept_bytes;
            self.n_accepted.fetch_add(1, Ordering::SeqCst);
            drop(state);
            memory.into_iter().for_each(|memory| self.budget().give_back(memory));
            return Ok(Some(converted));
        }
    }

    /// Accepts a put of elements that may point to something; false where it has to go the ordinary
    /// way.
    ///
    /// # Errors
    /// As [`Behind::accept`]; `NC_ENOMEM` for sequences of impossible lengths.
    pub(crate) fn accept_placed(
        &self,
        var: VarRef,
        known: &Known,
        fit: &Fit<'_>,
        fetch: &mut dyn Fetch,
        given: &[u8],
    ) -> Result<bool> {
        let held = {
            let front = self.front.read().unwrap_or_else(PoisonError::into_inner);
            let Some(view) = &*front else { return Ok(false) };
            view.hold(known.rules.nc_type, fetch, given)?
        };
        let bytes = held.memory_bytes() + job_bytes(fit.slab.start.len());
        if !self.wait_for_bytes(bytes)? {
            return Ok(false);
        }
        let mut batch = Batch::of_held(bytes);
        let state = self.lock();
        if state.epoch != known.epoch || self.is_over() {
            drop(state);
            self.budget().give_back_bytes(bytes);
            return Ok(false);
        }
        let grown_from = self.grow(var, known, fit);
        batch.add_held(var, &fit.slab, held, grown_from);
        self.push(state, batch);
        Ok(true)
    }

    /// Lets lengths be those after a put.
    fn grow(&self, var: VarRef, known: &Known, fit: &Fit<'_>) -> Option<u64> {
        if !known.rules.can_grow() || fit.kept_bytes == 0 {
            return None;
        }
        if let Some(rules) = known.rules.as_nc4() {
            let mut front = self.front.write().unwrap_or_else(PoisonError::into_inner);
            return front.as_mut()?.grow(var.group, var.var, rules, &fit.slab);
        }
        let records = known.rules.records(&fit.slab);
        let before = self.n_records(known.n_records);
        self.n_records.fetch_max(records, Ordering::AcqRel);
        (records > before).then_some(before)
    }

    /// The same for a put that went the ordinary way.
    pub(crate) fn grew(&self, var: VarRef, known: &Known, fit: &Fit<'_>) {
        let state = self.lock();
        if state.epoch == known.epoch {
            self.grow(var, known, fit);
        }
    }

    /// Puts a batch behind all others.
    fn push(&self, mut state: MutexGuard<'_, State>, batch: Batch) {
        if let Some(open) = state.open.take_if(|open| open.len() > 0) {
            state.queue.push_back(Arc::new(open));
        }
        state.pending_bytes += batch.value_bytes();
        self.n_accepted.fetch_add(batch.len() as u64, Ordering::SeqCst);
        state.queue.push_back(Arc::new(batch));
        drop(self.schedule(state));
    }

    /// Has a thread come. Where there is none, the caller does the work.
    fn schedule<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let is_needed = !state.is_scheduled && !state.is_stopped && !state.queue.is_empty();
        if !is_needed {
            return state;
        }
        state.is_scheduled = true;
        drop(state);
        let Some(this) = self.this.upgrade() else { return self.lock() };
        if threads::schedule(this, self.n_threads.load(Ordering::Relaxed)) {
            return self.lock();
        }
        let mut state = self.lock();
        state.is_scheduled = false;
        while state.running.is_none() && !state.is_stopped && !state.queue.is_empty() {
            state = self.carry_out(state);
        }
        state
    }

    /// Memory for values; `None` where waiting for it is of no use.
    fn wait_for_memory(&self, bytes: usize) -> Result<Option<Vec<u8>>> {
        self.wait_for(bytes, || self.budget().memory(bytes))
    }

    fn wait_for_bytes(&self, bytes: usize) -> Result<bool> {
        let taken = self.wait_for(bytes, || self.budget().take_bytes(bytes).then_some(()));
        Ok(taken?.is_some())
    }

    /// Takes of the budget, waiting until it has room; `None` where this queue is empty, so that
    /// nothing of it can make room, and where it never has as much.
    fn wait_for<T>(&self, bytes: usize, take: impl Fn() -> Option<T>) -> Result<Option<T>> {
        let is_idle =
            |state: &State| state.is_stopped || (state.queue.is_empty() && state.running.is_none());
        loop {
            let mut state = self.lock();
            if let Some(open) = state.open.take_if(|open| open.len() > 0) {
                state.queue.push_back(Arc::new(open));
            }
            let was_idle = is_idle(&state);
            drop(state);
            if let Some(taken) = take() {
                return Ok(Some(taken));
            }
            if bytes > self.budget().limit() || was_idle {
                return Ok(None);
            }
            drop(self.schedule(self.lock()));
            self.budget().wait(bytes, || is_idle(&self.lock()));
            self.check()?;
        }
    }

    /// Carries out the first batch; for a thread of [`threads`]. Whether there are more.
    pub(super) fn work(&self) -> bool {
        let mut state = self.lock();
        if state.running.is_none() && !state.is_stopped {
            state = self.carry_out(state);
        }
        let has_more = state.running.is_none() && !state.is_stopped && !state.queue.is_empty();
        state.is_scheduled = has_more;
        has_more
    }

    /// Carries out the first batch.
    fn carry_out<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let Some(batch) = state.queue.pop_front() else { return state };
        state.running = Some(Arc::clone(&batch));
        drop(state);
        let mut failure = None;
        let mut number = batch.next.load(Ordering::Relaxed);
        while let Some(put) = batch.get(number) {
            let done = catch_unwind(AssertUnwindSafe(|| self.put(&put)));
            let done = done.unwrap_or_else(|_| {
                Err(Error::explained(NcError::Internal, "a put that was accepted panicked"))
            });
            if let Err(error) = done {
                let stops = matches!(error.code(), NcError::System(_) | NcError::NoMem);
                failure = Some((stops, error.at(&self.path)));
                if stops {
                    break;
                }
                self.fail(failure.take());
            }
            number += 1;
            batch.next.store(number, Ordering::Relaxed);
            self.n_done.fetch_add(1, Ordering::SeqCst);
            if self.n_waiting.load(Ordering::SeqCst) > 0 {
                drop(self.lock());
                self.progress.notify_all();
            }
        }
        let is_stopped = failure.is_some();
        self.fail(failure);
        let mut state = self.lock();
        state.running = None;
        if self.is_over() {
            self.progress.notify_all();
            return state;
        }
        if is_stopped {
            state.is_stopped = true;
            state.queue.push_front(batch);
        } else {
            state.pending_bytes = state.pending_bytes.saturating_sub(batch.value_bytes());
            let taken = Arc::into_inner(batch);
            drop(state);
            if let Some(batch) = taken {
                if batch.other_bytes > 0 {
                    self.budget().give_back_bytes(batch.other_bytes);
                }
                self.budget().give_back(batch.bytes);
            }
            state = self.lock();
        }
        self.progress.notify_all();
        drop(state);
        self.budget().wake();
        self.lock()
    }

    fn put(&self, put: &job::Put<'_>) -> Result<Converted> {
        match put.given {
            Given::Packed(bytes) => self.inner.put(put.var, |_| put.slab, put.mem, |_| Ok(bytes)),
            Given::Held(held) => {
                let mut fetch: &Held = held;
                self.inner.put_placed(put.var, |_| put.slab, &mut fetch, |_| Ok(held.bytes()))
            }
        }
    }

    /// Keeps the first failure.
    fn fail(&self, failure: Option<(bool, Error)>) {
        let Some((_, error)) = failure else { return };
        let mut state = self.lock();
        let (code, text) = (error.code(), format!("a put that was accepted before: {error}"));
        if state.failure.is_none() {
            state.failure = Some(Kept { code, text, is_told: false });
        }
        // Lengths may not become what was expected.
        self.forget(&mut state);
        self.n_records.store(0, Ordering::Release);
        self.has_failed.store(true, Ordering::Release);
    }

    /// Forgets what is known of definitions.
    fn forget(&self, state: &mut State) {
        state.rules.clear();
        state.epoch += 1;
        *self.front.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Before definitions change, which nobody else does meanwhile: forgets what it knows of them.
    /// False where puts were accepted since the queue was seen empty.
    pub(crate) fn begin_change(&self) -> bool {
        let mut state = self.lock();
        if self.is_busy() {
            return false;
        }
        if !state.rules.is_empty() {
            self.forget(&mut state);
        }
        true
    }

    /// Waits until put number `until` was carried out, or the queue stands still.
    fn wait_until(&self, until: u64) {
        self.n_waiting.fetch_add(1, Ordering::SeqCst);
        let mut state = self.lock();
        loop {
            if let Some(open) = state.open.take_if(|open| open.len() > 0) {
                state.queue.push_back(Arc::new(open));
            }
            let is_there = self.n_done.load(Ordering::SeqCst) >= until;
            let is_idle = state.queue.is_empty() || state.is_stopped;
            if is_there || self.is_over() || (is_idle && state.running.is_none()) {
                break;
            }
            if state.running.is_some() {
                state = self.progress.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                // Rather than wait for a thread.
                state = self.carry_out(state);
            }
        }
        self.n_waiting.fetch_sub(1, Ordering::SeqCst);
        drop(self.schedule(state));
    }

    /// Waits until nothing is left of what was accepted, and tells what went wrong. What the storage
    /// refused before is tried again.
    ///
    /// # Errors
    /// The failure of a put. One for which the queue does not stand still is forgotten once `forgets`.
    pub(crate) fn finish(&self, forgets: bool) -> Result<()> {
        let mut state = self.lock();
        if state.is_stopped {
            state.is_stopped = false;
            state.failure = None;
        }
        drop(state);
        self.wait_until(self.n_accepted.load(Ordering::SeqCst));
        let mut state = self.lock();
        let Some(kept) = &mut state.failure else {
            self.has_failed.store(false, Ordering::Release);
            return Ok(());
        };
        kept.is_told = true;
        let error = kept.error();
        if forgets && !state.is_stopped {
            state.failure = None;
            self.has_failed.store(false, Ordering::Release);
        }
        Err(error)
    }

    /// Whether the storage refuses what was accepted.
    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Before a get: waits for the last put that touches what it reads.
    ///
    /// # Errors
    /// What keeps such a put from being carried out.
    pub(crate) fn before_get(&self, var: VarRef, slab: &Hyperslab<'_>) -> Result<()> {
        let known = self.known(var);
        let end = known.as_ref().map_or(u64::MAX, |known| known.rules.reach(slab));
        let state = self.lock();
        let open = state.open.as_ref();
        let all = open.into_iter().chain(state.queue.iter().rev().map(|batch| &**batch));
        let all = all.chain(state.running.as_deref());
        let mut number = self.n_accepted.load(Ordering::SeqCst);
        let mut until = None;
        'found: for batch in all {
            for at in (batch.next.load(Ordering::Relaxed)..batch.len()).rev() {
                let Some(put) = batch.get(at) else { continue };
                let touches = put.var == var && job::touch(&put.slab, slab);
                if touches || put.grown_from.is_some_and(|from| end > from) {
                    until = Some(number);
                    break 'found;
                }
                number = number.saturating_sub(1);
            }
        }
        drop(state);
        let Some(until) = until else { return Ok(()) };
        self.wait_until(until);
        if self.n_done.load(Ordering::SeqCst) >= until {
            return Ok(());
        }
        let state = self.lock();
        state.failure.as_ref().map_or(Ok(()), |kept| Err(kept.error()))
    }

    /// The file has ended: nothing more is accepted, and what waits is given up.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        self.is_over.store(true, Ordering::SeqCst);
        let waiting = std::mem::take(&mut state.queue);
        let open = state.open.take();
        state.pending_bytes = 0;
        self.forget(&mut state);
        drop(state);
        let batches = waiting.into_iter().filter_map(Arc::into_inner).chain(open);
        for batch in batches {
            if batch.other_bytes > 0 {
                self.budget().give_back_bytes(batch.other_bytes);
            }
            self.budget().give_back(batch.bytes);
        }
        self.progress.notify_all();
    }

    /// For a fork.
    pub(crate) fn freeze(&self) -> Frozen<'_> {
        let state = self.lock();
        let front = self.front.write().unwrap_or_else(PoisonError::into_inner);
        Frozen { _state: state, _front: front }
    }

    /// To be called in a forked child, where no lock is to be taken.
    pub(crate) fn mark_forked(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// Copies or converts values to the end of the memory, which has room for them.
fn keep(fit: &Fit<'_>, given: &[u8], memory: &mut Vec<u8>) -> Converted {
    let Some(encoder) = &fit.encoder else {
        memory.extend_from_slice(given);
        return Converted::default();
    };
    let per = (BLOCK / encoder.mem_size().max(encoder.ext_size())).max(1);
    let mut converted = Converted::default();
    for block in given.chunks(per * encoder.mem_size()) {
        let (from, n) = (memory.len(), block.len() / encoder.mem_size());
        memory.resize(from + n * encoder.ext_size(), 0);
        converted = converted.and(encoder.encode(block, &mut memory[from..]));
    }
    converted
}
