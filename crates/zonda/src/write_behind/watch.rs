//! A file that a helper process watches: what it is told, and how long values are kept for it.
//!
//! Values stay in memory that the helper sees until a commit has them. Nothing else is different from a
//! file without one: the same calls in the same order, and so the same bytes. Only what the helper
//! could not find or repeat is committed, that it may be told that a put is done: definitions that
//! nobody ended, and puts that go the ordinary way.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use zonda_format::{Meta, VarRef};
use zonda_runtime::lock::{Mutex, MutexGuard, Rank};

use zonda_model::{Hyperslab, MemType};

use super::helper::{Helper, HelperMessage};
use super::job::{PutBatch, job_bytes};
use super::{QueueState, WriteQueue};
use crate::error::{Error, Result};
use crate::tuning::WATCHED_COMMIT_BYTES;

/// The helper of a file.
#[derive(Debug)]
pub(super) struct Watch {
    is_wanted: AtomicBool,
    /// The helper knows the file.
    is_on: AtomicBool,
    /// Where the file is, whatever the folder of the process is later.
    path: OnceLock<PathBuf>,
    with: Mutex<Option<WatchedFile>>,
    /// Commits of a file that does not count them by itself that were begun, and the last one of those that succeeded.
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
    /// The file's number there.
    id: u64,
    /// When it was told where the file is.
    epoch: Option<u64>,
}

impl Watch {
    fn with(&self) -> MutexGuard<'_, Option<WatchedFile>> {
        self.with.lock()
    }
}

impl QueueState {
    /// Keeps a batch that was carried out.
    pub(super) fn keep(&mut self, mark: u64, batch: PutBatch) {
        self.kept_bytes = self.kept_bytes.saturating_add(batch.value_bytes());
        self.kept.push_back((mark, batch));
    }
}

impl WriteQueue {
    /// Whether a helper process knows what was accepted.
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

    /// Before rules are made: the helper is started, and told where the file is. Where that cannot be
    /// done, puts are carried out without one.
    pub(super) fn begin_watch(&self, epoch: u64) {
        let is_wanted = || self.watch.is_wanted.load(Ordering::Relaxed) && !self.is_over();
        if !is_wanted() {
            return;
        }
        let budget = self.budget();
        let Some(arena) = budget.arena() else { return };
        let mut with = self.watch.with();
        // Who ends the file takes what is here after it has said so.
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
        // Which file it is says the file itself: another one may have got its name.
        let identity = self.file.as_ref().and_then(|file| file.identity());
        let path = self.watch.path.get().cloned().unwrap_or_default();
        let file = HelperMessage::File { file: known.id, identity, path };
        let mut is_sent = known.helper.send(&file, Some(arena.fd()));
        if let Some(open) = self.open_for_helper() {
            let open_of = HelperMessage::Open { file: known.id };
            is_sent = is_sent && known.helper.send(&open_of, Some(open.as_fd()));
        }
        known.epoch = Some(epoch);
        // Before another thread finds that this was told: it then tells of its variable only a file that is watched.
        self.watch.is_on.store(is_sent, Ordering::Release);
        drop(with);
        if !is_sent {
            self.lose_watch();
        }
    }

    /// What keeps the locks of the file, or else the file itself: by it the helper finds the file whatever it
    /// is called by then.
    fn open_for_helper(&self) -> Option<OwnedFd> {
        let lock = self.inner.lock_for_another_process();
        lock.or_else(|| self.file.as_ref()?.for_another_process().ok())
    }

    /// Tells the helper how a variable is called, whose number may be another one there.
    pub(super) fn send_var(&self, var: VarRef, group: &[u8], name: &[u8]) {
        if !self.is_watched() {
            return;
        }
        let with = self.watch.with();
        // The file may have ended meanwhile, which says nothing of the helper.
        let is_reported = with.as_ref().is_none_or(|with| {
            let (group, name) = (group.to_vec(), name.to_vec());
            with.helper.send(&HelperMessage::Var { file: with.id, var, group, name }, None)
        });
        drop(with);
        if !is_reported {
            self.lose_watch();
        }
    }

    /// Goes on without the helper, which is gone.
    fn lose_watch(&self) {
        self.watch.is_wanted.store(false, Ordering::Relaxed);
        self.watch.is_on.store(false, Ordering::Release);
        if let Some(with) = self.watch.with().take() {
            with.helper.is_gone();
        }
        self.release();
    }

    /// The file has ended, or needs no helper any more.
    pub(super) fn end_watch(&self) {
        self.watch.is_on.store(false, Ordering::Release);
        if let Some(with) = self.watch.with().take()
            && !with.helper.send(&HelperMessage::End { file: with.id }, None)
        {
            with.helper.is_gone();
        }
    }

    /// Has the helper know of a batch from now on.
    pub(super) fn begin(&self, state: &mut QueueState, batch: &mut PutBatch) {
        if let Some(with) = &*self.watch.with() {
            state.n_begun += 1;
            batch.begin(with.id, state.n_begun);
        }
    }

    /// Commits definitions that nobody ended, which the helper could not find, for a put to `var`.
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
            // In the same order as ever: what was accepted before comes first.
            self.wait_until(self.n_accepted.load(Ordering::SeqCst));
            // Whoever puts meets the same error.
            let _ = self.inner.change(|file| file.end_definitions());
        }
    }

    /// After a batch: the number of the commit that will have it, if it is to be kept until then.
    pub(super) fn keep_until(&self) -> Option<u64> {
        if !self.is_watched() {
            return None;
        }
        // Where there is none the file has ended.
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
            // What goes wrong is met again, and told then.
            let _ = self.commit();
        }
        Some(mark)
    }

    /// Whether values are kept for the helper that a commit would free.
    pub(super) fn keeps_values(&self) -> bool {
        !self.lock().kept.is_empty()
    }

    /// Commits what was carried out, so that the helper needs it no longer.
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

    /// Does what commits all that was carried out before.
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

    /// After a put that went the ordinary way: its values are kept for the helper as those of others,
    /// or committed where that cannot be.
    ///
    /// # Errors
    /// That of the put, else that of the commit.
    pub(crate) fn went_by<T>(&self, put: Result<T>, went: Option<OrdinaryPut<'_>>) -> Result<T> {
        // One that is wanted may not have been begun yet.
        if self.watch.is_wanted.load(Ordering::Relaxed) && put.is_ok() {
            let is_kept = went.is_some_and(|went| self.keep_for_helper(&went));
            if !is_kept {
                self.commit()?;
            }
        }
        put
    }

    fn keep_for_helper(&self, went: &OrdinaryPut<'_>) -> bool {
        let OrdinaryPut { var, slab, mem, values } = *went;
        let rank = slab.start.len();
        let is_plain =
            slab.count.len() == rank && slab.stride.is_none_or(|list| list.len() == rank);
        // A name that a shared file does not have yet is committed when it is told of.
        let is_found = self.inner.capabilities.shared_puts
            || self.inner.read().is_ok_and(|file| file.committed_name(var).is_some());
        // It is to be told how the variable is called, too.
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

    /// Gives back what commits have: the oldest first, whoever else does. Of a program that is killed meanwhile the
    /// helper repeats what is left, and that is to be the last of what was put.
    pub(super) fn release(&self) {
        let is_watched = self.is_watched();
        if !is_watched && self.lock().kept.is_empty() {
            return;
        }
        let n_commits = match is_watched {
            false => u64::MAX,
            // Who has closed it gives all back.
            true => self.inner.read().map_or(0, |file| {
                file.n_confirmed().unwrap_or_else(|| self.watch.n_done.load(Ordering::SeqCst))
            }),
        };
        // Also where nothing is kept any more: another thread may be about to give it back.
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
