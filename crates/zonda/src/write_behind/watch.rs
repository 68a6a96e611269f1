//! A file that a helper process watches: the messages to it, and how long values are kept for it.
//!
//! Values stay in memory that the helper sees until a commit has them. Else nothing differs from a file without a
//! helper: the same calls in the same order, and so the same bytes. In addition, what the helper could not find or
//! repeat is committed: definitions while define mode has not ended, and puts that go the ordinary way.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use zonda_format::{Meta, VarRef};
use zonda_runtime::lock::{Mutex, MutexGuard, Rank};

use zonda_model::{Hyperslab, MemType};

use super::helper::{Helper, HelperMessage};
use super::job::{PutBatch, job_bytes};
use super::{WriteQueue, WriteQueueState};
use crate::error::{Error, Result};
use crate::tuning::WATCHED_COMMIT_BYTES;

/// The helper of a file.
#[derive(Debug)]
pub(super) struct Watch {
    is_wanted: AtomicBool,
    /// The helper knows the file.
    is_on: AtomicBool,
    /// The absolute path of the file.
    path: OnceLock<PathBuf>,
    with: Mutex<Option<WatchedFile>>,
    /// For a file that does not count its commits: how many were begun, and the number of the last one that
    /// succeeded.
    n_begun: AtomicU64,
    n_done: AtomicU64,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch {
            is_wanted: AtomicBool::new(false),
            is_on: AtomicBool::new(false),
            path: OnceLock::new(),
            with: Mutex::ranked(Rank::Watch, None),
            n_begun: AtomicU64::new(0),
            n_done: AtomicU64::new(0),
        }
    }
}

/// A put that the file itself carried out, and not the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrdinaryPut<'a> {
    pub(crate) var: VarRef,
    pub(crate) slab: Hyperslab<'a>,
    pub(crate) mem: Option<MemType>,
    pub(crate) values: &'a [u8],
}

#[derive(Debug)]
struct WatchedFile {
    helper: Arc<Helper>,
    /// The number of the file in messages to the helper.
    id: u64,
    /// The epoch of the queue in which the helper was last told where the file is.
    epoch: Option<u64>,
}

impl Watch {
    fn with(&self) -> MutexGuard<'_, Option<WatchedFile>> {
        self.with.lock()
    }
}

impl WriteQueueState {
    /// Keeps a batch that was carried out, until commit number `mark`.
    pub(super) fn keep(&mut self, mark: u64, batch: PutBatch) {
        self.kept_bytes = self.kept_bytes.saturating_add(batch.value_bytes());
        self.kept.push_back((mark, batch));
    }
}

impl WriteQueue {
    /// Whether a helper process knows the accepted puts.
    pub(crate) fn is_watched(&self) -> bool {
        self.watch.is_on.load(Ordering::Acquire)
    }

    pub(super) fn want_watch(&self, is_wanted: bool) {
        self.watch.is_wanted.store(is_wanted, Ordering::Relaxed);
        if is_wanted {
            let absolute = || std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
            self.watch.path.get_or_init(absolute);
        } else {
            self.end_watch();
        }
    }

    /// To be called before rules are made: starts the helper, and tells it where the file is. Where that fails, puts
    /// are carried out without a helper.
    pub(super) fn begin_watch(&self, epoch: u64) {
        let is_wanted = || self.watch.is_wanted.load(Ordering::Relaxed) && !self.is_over();
        if !is_wanted() {
            return;
        }
        let budget = self.budget();
        let Some(arena) = budget.arena() else { return };
        let mut with = self.watch.with();
        // A thread that closes the file sets `is_over` first, and takes the helper afterwards.
        if !is_wanted() {
            return;
        }
        if with.is_none() {
            let Some(helper) = Helper::of_process() else {
                self.watch.is_wanted.store(false, Ordering::Relaxed);
                return;
            };
            let id = Helper::new_id();
            *with = Some(WatchedFile { helper, id, epoch: None });
        }
        let Some(known) = &mut *with else { return };
        if known.epoch == Some(epoch) {
            return;
        }
        // The identity comes from the open file: another file may have got its name.
        let identity = self.file.as_ref().and_then(|file| file.identity());
        let path = self.watch.path.get().cloned().unwrap_or_default();
        let file = HelperMessage::File { file: known.id, identity, path };
        let mut is_sent = known.helper.send(&file, Some(arena.fd()));
        if let Some(open) = self.open_for_helper() {
            let open_of = HelperMessage::Open { file: known.id };
            is_sent = is_sent && known.helper.send(&open_of, Some(open.as_fd()));
        }
        known.epoch = Some(epoch);
        // Set before another thread finds the file announced, since variables are sent only for files that are
        // watched.
        self.watch.is_on.store(is_sent, Ordering::Release);
        drop(with);
        if !is_sent {
            self.lose_watch();
        }
    }

    /// The descriptor that holds the locks of the file, or of the file itself. By it the helper finds the file even
    /// when it was renamed.
    fn open_for_helper(&self) -> Option<OwnedFd> {
        let lock = self.inner.lock_for_another_process();
        lock.or_else(|| self.file.as_ref()?.for_another_process().ok())
    }

    /// Sends the helper the name of a variable, since its number may be another one when the helper opens the file.
    pub(super) fn send_var(&self, var: VarRef, group: &[u8], name: &[u8]) {
        if !self.is_watched() {
            return;
        }
        let with = self.watch.with();
        // The file may have been closed meanwhile; then the helper has not ended.
        let is_reported = with.as_ref().is_none_or(|with| {
            let (group, name) = (group.to_vec(), name.to_vec());
            with.helper.send(&HelperMessage::Var { file: with.id, var, group, name }, None)
        });
        drop(with);
        if !is_reported {
            self.lose_watch();
        }
    }

    /// Goes on without the helper, which has ended.
    fn lose_watch(&self) {
        self.watch.is_wanted.store(false, Ordering::Relaxed);
        self.watch.is_on.store(false, Ordering::Release);
        if let Some(with) = self.watch.with().take() {
            with.helper.is_gone();
        }
        self.release();
    }

    /// To be called when the file was closed or needs no helper any more.
    pub(super) fn end_watch(&self) {
        self.watch.is_on.store(false, Ordering::Release);
        if let Some(with) = self.watch.with().take()
            && !with.helper.send(&HelperMessage::End { file: with.id }, None)
        {
            with.helper.is_gone();
        }
    }

    /// Makes a batch known to the helper from now on.
    pub(super) fn begin(&self, state: &mut WriteQueueState, batch: &mut PutBatch) {
        if let Some(with) = &*self.watch.with() {
            state.n_begun += 1;
            batch.begin(with.id, state.n_begun);
        }
    }

    /// Before a put to `var`: commits definitions that are not ended, since the helper could not find the variable.
    pub(super) fn commit_definitions(&self, var: VarRef) {
        if !self.is_watched() {
            return;
        }
        let Ok(file) = self.inner.read() else { return };
        let meta = Meta::new(&**file, var.group);
        let is_there = meta.var(var.var).is_ok();
        if is_there && let Some(name) = file.committed_name(var) {
            let group = meta.group_path();
            drop(file);
            return self.send_var(var, &group, &name);
        }
        let may_end = file.may_end_definitions();
        let is_writable = file.is_writable();
        drop(file);
        if is_there && may_end && is_writable {
            // Accepted puts come first, as always.
            self.wait_until(self.n_accepted.load(Ordering::SeqCst));
            // The put meets the same error.
            let _ = self.inner.change(|file| file.end_definitions());
        }
    }

    /// After a batch: the number of the commit that will have it, if it is to be kept until then.
    pub(super) fn keep_until(&self) -> Option<u64> {
        if !self.is_watched() {
            return None;
        }
        // Without a writing half the file was closed.
        let is_cut = self.watch.with().as_ref().map(|with| with.helper.is_cut())?;
        if is_cut {
            self.lose_watch();
            return None;
        }
        let n_confirmed = self.inner.read().ok()?.n_confirmed();
        if n_confirmed.is_some() {
            return n_confirmed;
        }
        let most = WATCHED_COMMIT_BYTES.min(self.budget().limit() / 2);
        let kept = self.lock().kept_bytes;
        let mark = self.watch.n_begun.load(Ordering::SeqCst);
        if kept >= most {
            // Errors are met again by a later call, which reports them.
            let _ = self.commit();
        }
        Some(mark)
    }

    /// Whether values are kept for the helper that a commit would free.
    pub(super) fn keeps_values(&self) -> bool {
        !self.lock().kept.is_empty()
    }

    /// Commits what was carried out, so that it need not be kept for the helper.
    pub(crate) fn commit(&self) -> Result<()> {
        self.committing(|| {
            self.inner.change(
                |file| {
                    if file.in_define_mode() { Ok(()) } else { file.end_definitions() }
                },
            )
        })
        .map_err(|error: Error| error.at(&self.path))
    }

    /// Runs `commit`, which commits all that was carried out before, and counts it.
    pub(crate) fn committing<E>(
        &self,
        commit: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let number = self.watch.n_begun.fetch_add(1, Ordering::SeqCst);
        commit()?;
        self.watch.n_done.fetch_max(number + 1, Ordering::SeqCst);
        self.release();
        Ok(())
    }

    /// To be called after a put that went the ordinary way: keeps its values for the helper like those of others, or
    /// commits them where that is not possible.
    ///
    /// # Errors
    /// That of the put, else that of the commit.
    pub(crate) fn after_ordinary_put<T>(
        &self,
        put: Result<T>,
        ordinary: Option<OrdinaryPut<'_>>,
    ) -> Result<T> {
        // The helper may be wanted but not started yet.
        if self.watch.is_wanted.load(Ordering::Relaxed) && put.is_ok() {
            let is_kept = ordinary.is_some_and(|ordinary| self.keep_for_helper(&ordinary));
            if !is_kept {
                self.commit()?;
            }
        }
        put
    }

    fn keep_for_helper(&self, ordinary: &OrdinaryPut<'_>) -> bool {
        let OrdinaryPut { var, slab, mem, values } = *ordinary;
        let rank = slab.start.len();
        let is_plain =
            slab.count.len() == rank && slab.stride.is_none_or(|list| list.len() == rank);
        // A name that is not committed yet is committed before it is sent.
        let is_found = self.inner.capabilities.shared_puts
            || self.inner.read().is_ok_and(|file| file.committed_name(var).is_some());
        // The helper needs the name of the variable, too.
        if !is_plain || !is_found || self.known(var).is_none() {
            return false;
        }
        let memory = self.budget().memory(values.len() + job_bytes(rank));
        let (Some(mut memory), Some(mark)) = (memory, self.keep_until()) else { return false };
        let kept = memory.append(values);
        let mut batch = PutBatch::new(memory);
        let mut state = self.lock();
        self.begin(&mut state, &mut batch);
        let kept = kept.and_then(|()| batch.add_other(var, &slab, mem, values.len()));
        if kept.is_err() {
            drop(state);
            self.give_back(batch);
            return false;
        }
        state.keep(mark, batch);
        true
    }

    /// Gives back the memory of committed batches, the oldest first, one thread at a time. Should the program be
    /// killed meanwhile, the helper repeats those that are left: these have to be the latest puts, or older values
    /// would overwrite newer ones.
    pub(super) fn release(&self) {
        let is_watched = self.is_watched();
        if !is_watched && self.lock().kept.is_empty() {
            return;
        }
        let n_commits = match is_watched {
            false => u64::MAX,
            // The thread that closed the file gives everything back.
            true => self.inner.read().map_or(0, |file| {
                file.n_confirmed().unwrap_or_else(|| self.watch.n_done.load(Ordering::SeqCst))
            }),
        };
        // Also where nothing is kept any more, since another thread may be about to give memory back.
        let _in_order = self.releasing.lock();
        let mut state = self.lock();
        let n = state.kept.iter().take_while(|(mark, _)| *mark < n_commits).count();
        let done: Vec<PutBatch> = state.kept.drain(..n).map(|(_, batch)| batch).collect();
        let bytes: usize = done.iter().map(PutBatch::value_bytes).sum();
        state.kept_bytes = state.kept_bytes.saturating_sub(bytes);
        drop(state);
        done.into_iter().for_each(|batch| self.give_back(batch));
    }
}
