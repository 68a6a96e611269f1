//! Carrying out what was accepted, and waiting for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use zonda_runtime::callout;
use zonda_runtime::fork::MOST_WAIT;
use zonda_runtime::lock::MutexGuard;

use zonda_convert::Converted;
use zonda_format::{Access, OwnedValues, Transfer, Values};
use zonda_model::NcError;
use zonda_storage::Storage;
use zonda_trace::{Args, EventKind};

use super::job::{self, PutBatch, PutValues};
use super::memory::ValueMemory;
use super::{PutFailure, WriteQueue, WriteQueueState, args_of, threads};
use crate::error::{Error, Result};

impl WriteQueue {
    /// Puts a batch behind all others.
    pub(super) fn push(&self, mut state: MutexGuard<'_, WriteQueueState>, batch: PutBatch) {
        if let Some(open) = state.open.take_if(|open| open.len() > 0) {
            state.queue.push_back(Arc::new(open));
        }
        state.pending_bytes += batch.value_bytes();
        self.n_accepted.fetch_add(batch.len() as u64, Ordering::SeqCst);
        state.queue.push_back(Arc::new(batch));
        drop(self.schedule(state));
    }

    /// Asks a thread to carry out the queue. Where no thread can be had, the caller does the work.
    pub(super) fn schedule<'a>(
        &'a self,
        mut state: MutexGuard<'a, WriteQueueState>,
    ) -> MutexGuard<'a, WriteQueueState> {
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
    pub(super) fn wait_for_memory(&self, bytes: usize) -> Result<Option<ValueMemory>> {
        self.wait_for(bytes, || self.budget().memory(bytes))
    }

    pub(super) fn wait_for_bytes(&self, bytes: usize) -> Result<bool> {
        let taken = self.wait_for(bytes, || self.budget().take_bytes(bytes).then_some(()));
        Ok(taken?.is_some())
    }

    /// Takes bytes from the budget, and waits until it has room. `None` where waiting is of no use: this queue is
    /// empty, so that none of its puts can free memory, or the budget is smaller than the request.
    fn wait_for<T>(&self, bytes: usize, take: impl Fn() -> Option<T>) -> Result<Option<T>> {
        let is_idle = |state: &WriteQueueState| {
            state.is_stopped || (state.queue.is_empty() && state.running.is_none())
        };
        let mut has_committed = false;
        loop {
            if let Some(taken) = take() {
                return Ok(Some(taken));
            }
            let mut state = self.lock();
            if let Some(open) = state.open.take_if(|open| open.len() > 0) {
                state.queue.push_back(Arc::new(open));
            }
            let was_idle = is_idle(&state);
            drop(self.schedule(state));
            // A queue that was idle may have given bytes back a moment ago.
            if let Some(taken) = take() {
                return Ok(Some(taken));
            }
            if was_idle && !has_committed && self.keeps_values() {
                // Values that were carried out and wait for a commit are freed by it.
                self.commit()?;
                has_committed = true;
                continue;
            }
            if bytes > self.budget().limit() || was_idle {
                return Ok(None);
            }
            let waiting = zonda_trace::start();
            self.budget().wait(bytes, || is_idle(&self.lock()));
            let args = || Args { bytes: bytes as u64, ..Args::default() };
            zonda_trace::span_since(waiting, EventKind::QueueBlocked, args);
            self.check()?;
        }
    }

    /// Carries out the first batch, for a thread of [`threads`]. True if there are more.
    pub(super) fn work(&self) -> bool {
        let mut state = self.lock();
        if state.running.is_none() && !state.is_stopped {
            state = self.carry_out(state);
        }
        let has_more = state.running.is_none() && !state.is_stopped && !state.queue.is_empty();
        state.is_scheduled = has_more;
        has_more
    }

    /// Has the layers of the file write what they gathered, which would otherwise wait for a commit; called while the
    /// queue is empty. Errors are ignored, since the commit meets them again.
    pub(super) fn rest(&self) {
        if self.is_over() || self.is_busy() {
            return;
        }
        if zonda_trace::on() {
            zonda_trace::set_current_file(zonda_trace::file(&self.path));
        }
        if let Some(storage) = self.inner.storage() {
            storage.rest();
        }
    }

    /// Carries out the first batch.
    fn carry_out<'a>(
        &'a self,
        mut state: MutexGuard<'a, WriteQueueState>,
    ) -> MutexGuard<'a, WriteQueueState> {
        let Some(batch) = state.queue.pop_front() else { return state };
        state.running = Some(Arc::clone(&batch));
        drop(state);
        let failure = self.put_all(&batch);
        let is_stopped = failure.is_some();
        self.fail(failure);
        let keep_until = self.keep_until();
        let mut must_commit = false;
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
            zonda_trace::counter(EventKind::QueueBytes, 0, || state.pending_bytes as u64);
            let taken = Arc::into_inner(batch);
            match (taken, keep_until) {
                (Some(batch), Some(mark)) => state.keep(mark, batch),
                (taken, None) => {
                    drop(state);
                    taken.into_iter().for_each(|batch| self.give_back(batch));
                    state = self.lock();
                }
                (None, Some(_)) => must_commit = true,
            }
        }
        self.progress.notify_all();
        drop(state);
        if must_commit {
            // Another thread holds the batch and is going to drop it, so it cannot be kept for the helper process: it
            // is committed instead.
            self.fail(self.commit().err().map(|error| (false, error)));
        }
        if keep_until.is_some() {
            self.release();
        }
        self.budget().wake();
        self.lock()
    }

    /// Carries out the puts of a batch that are left. Gives the failure that stops the queue, whose put is tried
    /// again later; other failures are noted at once, and the put is given up.
    fn put_all(&self, batch: &PutBatch) -> Option<(bool, Error)> {
        let mut number = batch.next.load(Ordering::Relaxed);
        while let Some(put) = batch.get(number) {
            let is_last = number + 1 == batch.len();
            let put = || {
                let _converted = self.put(&put)?;
                // With nothing else to do, complete chunks need not wait for others to be filtered together.
                if is_last && self.lock().queue.is_empty() {
                    self.inner.store_complete()?;
                }
                Ok(())
            };
            if let Err(error) = unpanicked(put) {
                let storage = self.inner.storage();
                let is_lost = |it: &Arc<dyn Storage>| error.is_of_lost_file(&**it);
                let stops = is_refusal(&error) && !storage.is_some_and(is_lost);
                let failure = Some((stops, error.at(&self.path)));
                if stops {
                    return failure;
                }
                self.fail(failure);
            }
            number += 1;
            batch.next.store(number, Ordering::Relaxed);
            let n_done = self.n_done.fetch_add(1, Ordering::SeqCst) + 1;
            if n_done >= self.wake_at.load(Ordering::SeqCst) {
                // A caller that still waits sets `wake_at` again.
                let _state = self.lock();
                self.wake_at.store(u64::MAX, Ordering::SeqCst);
                self.progress.notify_all();
            }
        }
        None
    }

    /// Gives the memory of a batch back to the budget.
    pub(super) fn give_back(&self, batch: PutBatch) {
        if batch.other_bytes > 0 {
            self.budget().give_back_bytes(batch.other_bytes);
        }
        self.budget().give_back(batch.bytes);
    }

    fn put(&self, put: &job::AcceptedPut<'_>) -> Result<Converted> {
        if zonda_trace::on() {
            // Threads of the queue work for several files, so the trace has to be told which one this is.
            zonda_trace::set_current_file(zonda_trace::file(&self.path));
        }
        let bytes = || match put.given {
            PutValues::Packed(bytes) => bytes.len() as u64,
            PutValues::Owned(owned) => owned.memory_bytes() as u64,
            PutValues::Written(bytes) => bytes.len() as u64,
        };
        let args = || Args { bytes: bytes(), ..args_of(put.var) };
        let _span = zonda_trace::span(EventKind::QueueExecute, args);
        match put.given {
            PutValues::Packed(bytes) => {
                let access = Access { var: put.var, slab: put.slab, mem: put.mem };
                self.inner.put(&mut Transfer::new(access), Values::plain(bytes))
            }
            PutValues::Owned(owned) => self.put_owned(put, owned),
            PutValues::Written(bytes) => {
                let owned = OwnedValues::read_from(bytes).ok_or(NcError::Internal)?;
                self.put_owned(put, &owned)
            }
        }
    }

    fn put_owned(&self, put: &job::AcceptedPut<'_>, owned: &OwnedValues) -> Result<Converted> {
        let mut fetch: &OwnedValues = owned;
        let access = Access { var: put.var, slab: put.slab, mem: None };
        self.inner.put(
            &mut Transfer::new(access),
            Values { bytes: owned.bytes(), fetch: Some(&mut fetch) },
        )
    }

    /// Keeps the first failure: of a put that is given up, or, where it `stops` the queue, of one that
    /// will be tried again.
    fn fail(&self, failure: Option<(bool, Error)>) {
        let Some((stops, error)) = failure else { return };
        let mut state = self.lock();
        let (code, text) =
            (error.code(), format!("a put that was accepted before failed: {error}"));
        if state.failure.is_none() {
            state.failure = Some(PutFailure { code, text, is_reported: false });
        }
        if !stops {
            // The lengths that inquiries were shown may not be reached.
            self.forget(&mut state);
            if let Some(n_records) = &self.n_records {
                n_records.store(0, Ordering::Release);
            }
        }
        self.has_failed.store(true, Ordering::Release);
    }

    /// Waits until put number `until` was carried out, or the queue stands still. Within a plugin it does not wait
    /// for the queue that the plugin works for, and waits only for a limited time for other queues.
    pub(super) fn wait_until(&self, until: u64) {
        let give_up_at = callout::is_within().then(|| {
            Instant::now() + if self.inner.is_in_plugin() { Duration::ZERO } else { MOST_WAIT }
        });
        let mut state = self.lock();
        loop {
            if let Some(open) = state.open.take_if(|open| open.len() > 0) {
                state.queue.push_back(Arc::new(open));
            }
            self.wake_at.fetch_min(until, Ordering::SeqCst);
            let is_there = self.n_done.load(Ordering::SeqCst) >= until;
            let is_idle = state.queue.is_empty() || state.is_stopped;
            // The last put of the batch is done, but its bytes are not given back yet. They must not be shown as
            // pending after a sync.
            let is_ending =
                |batch: &Arc<PutBatch>| batch.next.load(Ordering::Relaxed) >= batch.len();
            let is_there = is_there && !state.running.as_ref().is_some_and(is_ending);
            if is_there || self.is_over() || (is_idle && state.running.is_none()) {
                break;
            }
            if state.running.is_some() {
                let waiting = zonda_trace::start();
                state = self.wait_for_progress(state, give_up_at);
                zonda_trace::span_since(waiting, EventKind::QueueDrain, Args::default);
            } else {
                // The caller does the work rather than wait for a thread.
                state = self.carry_out(state);
            }
        }
        drop(self.schedule(state));
    }
}

impl WriteQueue {
    fn wait_for_progress<'a>(
        &'a self,
        state: MutexGuard<'a, WriteQueueState>,
        give_up_at: Option<Instant>,
    ) -> MutexGuard<'a, WriteQueueState> {
        let Some(time) = give_up_at else { return self.progress.wait(state) };
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            drop(state);
            callout::give_up();
        }
        self.progress.wait_timeout(state, left).0
    }
}

/// Whether the storage or the system may accept later what it refuses now.
fn is_refusal(error: &Error) -> bool {
    matches!(error.code(), NcError::System(_) | NcError::NoMem)
}

/// The result of `work`; an error where it panics.
fn unpanicked(work: impl FnOnce() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::because(
            NcError::Internal,
            "bug in Zonda: carrying out a put that was accepted before panicked",
        ))
    })
}
