//! Write-behind: a put returns when its values are copied, and is carried out later.
//!
//! Each file has a queue. A put is checked against [`PutRules`] of its format, which say what certainly fits; its
//! values are copied ([`accept`]), or converted to the variable's type where they have another, so that all that can
//! be wrong with arguments and values is known when it returns. A thread ([`threads`], [`carry`]) then makes the same
//! calls to the format in the same order, one at a time for each file: so the file gets the same bytes as without the
//! queue. A put that does not certainly fit waits until the queue is empty and goes the ordinary way: the format
//! checks and writes it at once.
//!
//! - Inquiries do not wait: while puts wait, they look at a [`View`] of the definitions, whose
//!   dimensions grow when puts are accepted.
//! - Gets wait for the last put that touches what they read.
//! - Definitions, sync and close wait until the queue is empty.
//! - Values take no more memory than a [`budget`] allows: a put that finds no room waits.
//! - A put that the storage refuses stops the queue, with all that was accepted in it. The next call reports it; sync
//!   and close try again. After any other failure, and where no sync of the file can succeed any more, the queue goes
//!   on without that put; the next put, sync and close report it.
//! - Where a [`helper`] process watches, values stay in memory shared with it until they are committed; it carries
//!   them out should this process be killed ([`watch`]).
//! - A forked child has no queue: what was accepted belongs to the parent.

mod accept;
mod budget;
mod carry;
pub(crate) mod helper;
mod job;
mod memory;
mod of_dataset;
mod of_ranks;
mod queued_file;
mod record;
mod settings;
mod threads;
mod transfer;
mod watch;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use zonda_format::VarRef;
use zonda_runtime::Apart;
use zonda_runtime::lock::{
    Condvar, Mutex, MutexGuard, Rank, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

use std::time::Instant;

use arc_swap::{ArcSwap, Guard};
use zonda_format::{PutRules, View};
use zonda_model::{Hyperslab, NcError};
use zonda_storage::backend::File;

use crate::error::{Error, Result};
use crate::open_file::OpenFile;

use budget::Budget;
use job::PutBatch;
pub(crate) use of_ranks::room_of;
pub(crate) use queued_file::{ChangeGuard, FrozenQueuedFile, InquiryGuard, QueuedFile};
pub use settings::{WriteBehind, WriteBehindError, WriteBehindOptions};
pub(crate) use transfer::{QueuedGet, QueuedPut};
use watch::OrdinaryPut;

/// The queue of a file.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    this: Weak<WriteQueue>,
    inner: Arc<OpenFile>,
    path: PathBuf,
    file: Option<Arc<File>>,
    budget: ArcSwap<Budget>,
    /// Threads that there may be; 0 for the default.
    n_threads: AtomicUsize,
    /// The file was closed, or belongs to another process.
    is_over: AtomicBool,
    state: Mutex<WriteQueueState>,
    /// Locked while the memory of committed puts is given back.
    releasing: Mutex<()>,
    /// Signalled when a put was carried out that a thread waits for, or a thread has left the queue.
    progress: Condvar,
    n_accepted: Apart<AtomicU64>,
    n_done: Apart<AtomicU64>,
    /// Number of done puts at which waiting threads are woken; `u64::MAX` where none waits.
    wake_at: Apart<AtomicU64>,
    /// A put failed, and a later call has to report it.
    has_failed: AtomicBool,
    /// Number of records that inquiries show, for a file to which several threads may put at once.
    n_records: Option<Arc<AtomicU64>>,
    /// The helper process.
    watch: watch::Watch,
    /// Definitions for inquiries while puts wait, of a file that a put needs exclusively.
    front: RwLock<Option<Box<dyn View>>>,
}

#[derive(Debug, Default)]
struct WriteQueueState {
    queue: VecDeque<Arc<PutBatch>>,
    /// Small puts are being collected here, behind all others.
    open: Option<PutBatch>,
    /// The batch that a thread is carrying out.
    running: Option<Arc<PutBatch>>,
    /// Batches that were carried out and are kept until they are committed, each with the number of the commit that
    /// will have it.
    kept: VecDeque<(u64, PutBatch)>,
    kept_bytes: usize,
    /// Number of batches that a helper process knows.
    n_begun: u64,
    /// Bytes of values that wait.
    pending_bytes: usize,
    /// A thread was asked to carry out the queue.
    is_scheduled: bool,
    /// The storage refused the first put: the queue stands still.
    is_stopped: bool,
    failure: Option<PutFailure>,
    /// The rules that puts have to fit, by group and variable.
    rules: Vec<Vec<Option<Arc<PutRules>>>>,
    /// Counts the times that definitions may have changed.
    epoch: u64,
    /// Number of calls that are changing the mode of the file or closing it ([`HoldGuard`]). Until they are done,
    /// puts go the ordinary way.
    n_holds: u32,
    /// Write-behind was switched off: puts that began before go the ordinary way.
    is_off: bool,
}

/// While this guard exists, the queue accepts no puts: they go the ordinary way.
pub(crate) struct HoldGuard<'a>(&'a WriteQueue);

impl Drop for HoldGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().n_holds -= 1;
    }
}

/// The rules for puts to a variable, if they are known.
#[inline]
fn rules_of(rules: &[Vec<Option<Arc<PutRules>>>], var: VarRef) -> Option<&Arc<PutRules>> {
    let vars = rules.get(usize::from(var.group.0))?;
    vars.get(usize::try_from(var.var.0).ok()?)?.as_ref()
}

/// A failure of a put that was accepted.
#[derive(Clone, Debug)]
struct PutFailure {
    code: NcError,
    text: String,
    /// A put has reported it already.
    is_reported: bool,
}

impl PutFailure {
    fn error(&self) -> Error {
        Error::with_text(self.code, self.text.clone())
    }
}

/// The rules for puts to a variable, and the epoch of definitions that they are from.
#[derive(Debug)]
pub(crate) struct KnownRules {
    rules: Arc<PutRules>,
    epoch: u64,
}

/// The locks of a queue, held while the process forks.
pub(crate) struct FrozenQueue<'a> {
    _state: MutexGuard<'a, WriteQueueState>,
    _front: RwLockWriteGuard<'a, Option<Box<dyn View>>>,
}

impl std::fmt::Debug for FrozenQueue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrozenQueue").finish_non_exhaustive()
    }
}

impl WriteQueue {
    /// `file` is the file of the operating system, if it is one.
    pub(crate) fn new(
        inner: &Arc<OpenFile>,
        path: PathBuf,
        file: Option<Arc<File>>,
    ) -> Arc<WriteQueue> {
        let n_records = inner.even_closed().n_accepted().cloned();
        Arc::new_cyclic(|this| WriteQueue {
            this: Weak::clone(this),
            is_over: AtomicBool::new(false),
            inner: Arc::clone(inner),
            path,
            file,
            budget: ArcSwap::new(Budget::of_process()),
            n_threads: AtomicUsize::new(0),
            state: Mutex::ranked(Rank::Queue, WriteQueueState::default()),
            releasing: Mutex::ranked(Rank::Release, ()),
            progress: Condvar::new(),
            n_accepted: Apart::default(),
            n_done: Apart::default(),
            wake_at: Apart(AtomicU64::new(u64::MAX)),
            has_failed: AtomicBool::new(false),
            n_records,
            watch: watch::Watch::default(),
            front: RwLock::ranked(Rank::View, None),
        })
    }

    /// To be called when write-behind is switched on, off or to other options, while no put waits. Commits what a
    /// helper process keeps, since it would otherwise repeat that after later puts.
    ///
    /// # Errors
    /// That of the commit; then all stays as it is.
    pub(crate) fn leave(&self) -> Result<()> {
        if self.is_watched() {
            self.commit()?;
            self.end_watch();
            self.release();
        }
        // A new helper is told each variable when its rules are made.
        let mut state = self.lock();
        self.forget(&mut state);
        Ok(())
    }

    /// Switches write-behind on or off, as `flag` tells the calls to come. No put is accepted once it is off: calls to come
    /// do not look into the queue.
    fn switch(&self, flag: &AtomicBool, on: bool) {
        let mut state = self.lock();
        state.is_off = !on;
        flag.store(on, Ordering::Relaxed);
    }

    /// Applies options from now on.
    pub(crate) fn set(&self, how: WriteBehindOptions) {
        self.want_watch(how.helper);
        self.budget.store(Budget::of(&how));
        self.n_threads.store(how.threads.unwrap_or(0), Ordering::Relaxed);
    }

    fn budget(&self) -> Guard<Arc<Budget>> {
        self.budget.load()
    }

    fn lock(&self) -> MutexGuard<'_, WriteQueueState> {
        self.state.lock()
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
        (state.pending_bytes, state.failure.as_ref().map(PutFailure::error))
    }

    /// The definitions while puts wait; `None` where the file itself can be asked.
    pub(crate) fn front(&self) -> Option<RwLockReadGuard<'_, Option<Box<dyn View>>>> {
        if !self.is_busy() {
            return None;
        }
        let front = self.front.read();
        front.is_some().then_some(front)
    }

    /// Shows the view to `f`, if there is one.
    pub(crate) fn with_view(&self, f: impl FnOnce(&dyn View) -> Result<()>) -> Result<()> {
        let front = self.front.read();
        front.as_deref().map_or(Ok(()), f)
    }

    /// For a put: reports the failure of a put before it.
    ///
    /// # Errors
    /// The error of the storage, as long as the queue stands still; any other failure once.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut state = self.lock();
        let is_stopped = state.is_stopped;
        match &mut state.failure {
            Some(failure) if is_stopped || !failure.is_reported => {
                failure.is_reported = true;
                Err(failure.error())
            }
            _ => Ok(()),
        }
    }

    /// Makes puts go the ordinary way while the file changes its mode or is closed. A put that was accepted between
    /// the emptying of the queue and the change would meet a file that no longer takes it.
    pub(crate) fn hold(&self) -> HoldGuard<'_> {
        let mut state = self.lock();
        state.n_holds += 1;
        // Inquiries look at the view until the queue is empty.
        state.rules.clear();
        state.epoch += 1;
        drop(state);
        HoldGuard(self)
    }

    /// After a put that went the ordinary way: updates the lengths in the view, so that inquiries see them.
    pub(super) fn grew(&self, var: VarRef, slab: &Hyperslab<'_>) {
        if let Some(view) = &mut *self.front.write() {
            view.grown(var, slab);
        }
    }

    /// Forgets what is known of definitions.
    fn forget(&self, state: &mut WriteQueueState) {
        state.rules.clear();
        state.epoch += 1;
        *self.front.write() = None;
    }

    /// To be called before definitions change: forgets what the queue knows of them. The caller keeps other threads
    /// from changing definitions meanwhile. False where puts were accepted since the queue was empty.
    pub(crate) fn begin_change(&self) -> bool {
        let mut state = self.lock();
        if self.is_busy() {
            return false;
        }
        let has_view = || self.front.read().is_some();
        if !state.rules.is_empty() || has_view() {
            self.forget(&mut state);
        } else {
            // A thread that is just finding rules finds those of before the change; the new epoch discards them.
            state.epoch += 1;
        }
        true
    }

    /// Waits until all accepted puts are carried out, and reports failures. A put that the storage refused before is
    /// tried again.
    ///
    /// # Errors
    /// The failure of a put. With `forgets` it is reported only this once, unless the queue stands still for it.
    pub(crate) fn finish(&self, forgets: bool) -> Result<()> {
        let mut state = self.lock();
        if state.is_stopped {
            state.is_stopped = false;
            state.failure = None;
        }
        drop(state);
        self.wait_until(self.n_accepted.load(Ordering::SeqCst));
        let mut state = self.lock();
        let Some(failure) = &mut state.failure else {
            self.has_failed.store(false, Ordering::Release);
            return Ok(());
        };
        failure.is_reported = true;
        let error = failure.error();
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
        state.failure.as_ref().map_or(Ok(()), |failure| Err(failure.error()))
    }

    /// To be called when the file was closed: nothing more is accepted, and puts that wait are given up.
    pub(crate) fn end(&self) {
        if self.is_over() {
            // Also the case in a forked child: accepted puts and their memory belong to the parent.
            return;
        }
        let _in_order = self.releasing.lock();
        let mut state = self.lock();
        if self.is_over.swap(true, Ordering::SeqCst) {
            return;
        }
        let waiting = std::mem::take(&mut state.queue);
        let open = state.open.take();
        let kept = std::mem::take(&mut state.kept);
        state.pending_bytes = 0;
        state.kept_bytes = 0;
        self.forget(&mut state);
        drop(state);
        // What commits have came first.
        let kept = kept.into_iter().map(|(_, batch)| batch);
        for batch in kept.chain(waiting.into_iter().filter_map(Arc::into_inner)).chain(open) {
            self.give_back(batch);
        }
        self.end_watch();
        self.progress.notify_all();
        if !threads::is_there() {
            // Nobody else will.
            self.budget().free_spare();
        }
    }

    /// In a forked child, when the file was closed there: frees memory. Accepted puts belong to the parent.
    pub(crate) fn leave_to_parent(&self) {
        let Some(mut state) = self.state.lock_until(Instant::now()) else { return };
        let WriteQueueState { queue, open, kept, .. } = std::mem::take(&mut *state);
        drop(state);
        // What a thread of the parent has in hand stays.
        let own = queue.into_iter().filter_map(Arc::into_inner).chain(open);
        own.chain(kept.into_iter().map(|(_, batch)| batch)).for_each(PutBatch::leave);
        self.budget().free_spare();
    }

    /// Takes the locks for a fork; `None` where they cannot be taken before `until`.
    pub(crate) fn freeze(&self, until: Instant) -> Option<FrozenQueue<'_>> {
        let state = self.state.lock_until(until)?;
        Some(FrozenQueue { _state: state, _front: self.front.write_until(until)? })
    }

    /// To be called in a forked child. Takes no lock.
    pub(crate) fn mark_forked(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(n_records) = &self.n_records {
            // Those that wait are the parent's.
            n_records.store(0, Ordering::Release);
        }
    }
}

/// The variable of a put, for events in the trace.
fn args_of(var: VarRef) -> zonda_trace::Args {
    let item = u32::try_from(var.var.0).unwrap_or(zonda_trace::NO_ITEM);
    zonda_trace::Args { item, offset: u64::from(var.group.0), ..zonda_trace::Args::default() }
}
