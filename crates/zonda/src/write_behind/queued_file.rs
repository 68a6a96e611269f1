//! A file with its queue, where write-behind is on. All calls of a dataset go through here, and wait for accepted
//! puts where they have to come after them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use zonda_format::{Dispatch, DispatchWrite, PlainPlace, VarRef, View};
use zonda_model::NcError;
use zonda_runtime::lock::RwLockReadGuard;
use zonda_served::ServedFile;
use zonda_storage::Leased;
use zonda_storage::backend::File;

use super::{HoldGuard, WriteBehind, WriteQueue};
use crate::error::{Error, Result};
use crate::open_file::{ExclusiveGuard, OpenFile, SharedGuard, writer};

/// An open file and its queue. Only errors of the queue name the file.
#[derive(Debug)]
pub(crate) struct QueuedFile {
    pub(super) file: Arc<OpenFile>,
    /// Whether write-behind is on.
    is_on: AtomicBool,
    queue: OnceLock<Arc<WriteQueue>>,
}

/// Exclusive use of the file, to change it. Puts that were accepted before were carried out.
pub(crate) struct ChangeGuard<'a> {
    pub(crate) file: ExclusiveGuard<'a>,
    /// Keeps puts from being accepted.
    _hold: Option<HoldGuard<'a>>,
}

impl ChangeGuard<'_> {
    /// The writing half of the file.
    ///
    /// # Errors
    /// `NC_EPERM` where it has none.
    pub(crate) fn writer(&mut self) -> Result<&mut dyn DispatchWrite> {
        writer(&mut self.file)
    }
}

/// The file for an inquiry. While puts wait it shows the definitions with all accepted puts.
pub(crate) enum InquiryGuard<'a> {
    View(RwLockReadGuard<'a, Option<Box<dyn View>>>),
    File(SharedGuard<'a>),
}

impl InquiryGuard<'_> {
    #[inline]
    pub(crate) fn file(&self) -> Result<&dyn Dispatch> {
        match self {
            InquiryGuard::File(file) => Ok(&***file),
            InquiryGuard::View(view) => match view.as_ref() {
                Some(view) => Ok(view.file()),
                None => Err(Error::because(
                    NcError::Internal,
                    "bug in Zonda: the view of the definitions was dropped while an inquiry used it",
                )),
            },
        }
    }
}

/// All locks, held while a process forks.
#[derive(Debug)]
pub(crate) struct FrozenQueuedFile<'a> {
    _file: ExclusiveGuard<'a>,
    _queue: Option<super::FrozenQueue<'a>>,
}

impl QueuedFile {
    pub(crate) fn new(file: OpenFile) -> QueuedFile {
        QueuedFile { file: Arc::new(file), is_on: AtomicBool::new(false), queue: OnceLock::new() }
    }

    /// The file itself, without regard to the queue.
    #[inline]
    pub(crate) fn file(&self) -> &OpenFile {
        &self.file
    }

    /// The queue, where write-behind is on.
    #[inline]
    pub(super) fn queue(&self) -> Option<&WriteQueue> {
        if !self.is_on.load(Ordering::Relaxed) {
            return None;
        }
        self.queue.get().map(|queue| &**queue)
    }

    /// Sets whether puts return when they are accepted, from now on. `path` and `file` are those of the file.
    ///
    /// # Errors
    /// What went wrong with puts that were accepted before.
    pub(crate) fn set_write_behind(
        &self,
        how: WriteBehind,
        path: &Path,
        file: Option<&Arc<File>>,
    ) -> Result<()> {
        let _hold = self.queue().map(WriteQueue::hold);
        if let Some(queue) = self.queue() {
            queue.finish(true)?;
            queue.leave()?;
        }
        let WriteBehind::On(how) = how else {
            if let Some(queue) = self.queue() {
                queue.switch(&self.is_on, false);
            }
            return Ok(());
        };
        // Formats that do not stand on the bytes of a file have no view for inquiries while puts wait.
        let may_wait = self.file.storage().is_some() && !self.file.is_forked();
        if self.file.is_writable() && may_wait {
            let new = || WriteQueue::new(&self.file, path.to_owned(), file.cloned());
            let queue = self.queue.get_or_init(new);
            queue.set(how);
            queue.switch(&self.is_on, true);
            // Puts through leases would go before those that wait.
            drop(self.file.write()?);
        }
        Ok(())
    }

    /// As [`OpenFile::changes`]; none while puts are accepted, since inquiries then look at a view of the definitions.
    pub(crate) fn changes(&self) -> Option<&Arc<AtomicU64>> {
        if self.queue().is_some() { None } else { self.file.changes() }
    }

    /// Leases the bytes around an element to this thread; not where puts are accepted, which come one after the other.
    pub(crate) fn lease(
        &self,
        var: VarRef,
        index: &[usize],
        writes: bool,
    ) -> Option<(PlainPlace, Arc<dyn Leased>)> {
        self.file.lease(var, index, writes, || self.queue().is_none())
    }

    /// Bytes of puts that were accepted and wait, and what went wrong with any of them. Never waits.
    pub(crate) fn write_behind_status(&self) -> (usize, Option<Error>) {
        self.queue().map_or((0, None), WriteQueue::status)
    }

    /// Whether puts wait.
    pub(crate) fn is_busy(&self) -> bool {
        self.queue().is_some_and(WriteQueue::is_busy)
    }

    /// Exclusive use of the file, to change its mode. Puts that were accepted before are carried out, and later ones
    /// go the ordinary way while the guard exists.
    pub(crate) fn steering(&self) -> Result<ChangeGuard<'_>> {
        if self.file.capabilities.shared_puts {
            let hold = self.before_change()?;
            return Ok(ChangeGuard { file: self.file.write()?, _hold: hold });
        }
        let queue = self.queue();
        loop {
            if let Some(queue) = queue {
                queue.finish(false)?;
            }
            let file = self.file.write()?;
            if queue.is_none_or(WriteQueue::begin_change) {
                return Ok(ChangeGuard { file, _hold: None });
            }
        }
    }

    /// The same to change what is in the file, which other writers of the process may do in turn.
    pub(crate) fn changing(&self) -> Result<ChangeGuard<'_>> {
        let mut steering = self.steering()?;
        self.file.begin(&mut steering.file)?;
        Ok(steering)
    }

    /// Carries out accepted puts, and forgets the rules for later ones. No rules are found while the guard exists,
    /// since definitions, names, and even the file itself may change meanwhile.
    fn before_change(&self) -> Result<Option<HoldGuard<'_>>> {
        let Some(queue) = self.queue() else { return Ok(None) };
        let hold = queue.hold();
        queue.finish(false)?;
        queue.begin_change();
        Ok(Some(hold))
    }

    /// Changes a name by which a helper process finds variables. At no moment does the helper have puts under a name
    /// that the file may lack, or that another variable has.
    pub(crate) fn renaming(&self, rename: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(queue) = self.queue().filter(|queue| queue.is_watched()) else {
            return rename();
        };
        let _hold = queue.hold();
        queue.finish(false)?;
        queue.begin_change();
        queue.commit()?;
        rename()?;
        queue.commit()
    }

    /// Runs `commit`, which commits all that was put, and lets the queue know of it.
    fn committing(&self, commit: impl FnOnce() -> Result<()>) -> Result<()> {
        match self.queue() {
            Some(queue) => queue.committing(commit),
            None => commit(),
        }
    }

    /// The file for inquiries. While puts wait they see the definitions with all accepted puts, and do not wait.
    ///
    /// # Errors
    /// `NC_EBADID` where another thread has closed the file.
    #[inline]
    pub(crate) fn look(&self) -> Result<InquiryGuard<'_>> {
        match self.view() {
            Some(view) => Ok(InquiryGuard::View(view)),
            None => {
                self.learn_lengths()?;
                Ok(InquiryGuard::File(self.file.read()?))
            }
        }
    }

    /// Has a file that a server writes for several ranks learn how long the puts of other ranks have made it.
    #[inline]
    fn learn_lengths(&self) -> Result<()> {
        if self.file.is::<ServedFile>() { self.learn_from_server() } else { Ok(()) }
    }

    #[cold]
    fn learn_from_server(&self) -> Result<()> {
        let served =
            |file: &dyn Dispatch| file.as_any().downcast_ref().map(ServedFile::may_be_longer);
        if !self.file.is_open() || served(&**self.file.even_closed()) != Some(true) {
            return Ok(());
        }
        let mut file = self.file.write()?;
        file.as_any_mut().downcast_mut().map_or(Ok(()), ServedFile::learn_lengths)
    }

    /// Calls `f` with the same.
    ///
    /// # Errors
    /// As [`QueuedFile::look`], and that of `f`.
    #[inline]
    pub(crate) fn ask<R>(&self, f: impl FnOnce(&dyn Dispatch) -> Result<R>) -> Result<R> {
        match self.view().as_deref().and_then(Option::as_ref) {
            Some(view) => f(view.file()),
            None => {
                self.learn_lengths()?;
                f(&**self.file.read()?)
            }
        }
    }

    /// The same for definitions in memory only, which stay when the file is closed.
    #[inline]
    pub(crate) fn ask_even_closed<R>(&self, f: impl FnOnce(&dyn Dispatch) -> R) -> R {
        match self.view().as_deref().and_then(Option::as_ref) {
            Some(view) => f(view.file()),
            None => {
                // Who cannot be told of an error here is told by the next call.
                let _ = self.learn_lengths();
                f(&**self.file.even_closed())
            }
        }
    }

    /// The same for what does not follow from how long dimensions are: nobody is asked how long other ranks have made them.
    #[inline]
    pub(crate) fn see<R>(&self, f: impl FnOnce(&dyn Dispatch) -> R) -> R {
        match self.view().as_deref().and_then(Option::as_ref) {
            Some(view) => f(view.file()),
            None => f(&**self.file.even_closed()),
        }
    }

    #[inline]
    fn view(&self) -> Option<RwLockReadGuard<'_, Option<Box<dyn View>>>> {
        self.queue().and_then(WriteQueue::front)
    }

    /// Calls `f` to change a setting that is in memory only and that inquiries show: in the file, and in the view
    /// that inquiries use while puts wait.
    ///
    /// # Errors
    /// That of `f`; `NC_EBADID` where another thread has closed the file.
    pub(crate) fn change_both(&self, f: impl Fn(&dyn Dispatch) -> Result<()>) -> Result<()> {
        f(&**self.file.read()?)?;
        self.queue().map_or(Ok(()), |queue| queue.with_view(|view| f(view.file())))
    }

    /// Enters define mode.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EINDEFINE`.
    pub(crate) fn redef(&self) -> Result<()> {
        if !self.file.capabilities.shared_puts {
            return self.steering()?.writer()?.redef();
        }
        // Entering define mode commits. A later commit may put another file in place of this one, so the helper
        // process must have nothing left to do.
        let _hold = self.before_change()?;
        self.committing(|| self.steering()?.writer()?.redef())
    }

    /// For a writer: commits all puts and definitions. For a reader: sees what others committed.
    ///
    /// # Errors
    /// `NC_EINDEFINE`, and what the storage reports.
    pub(crate) fn sync(&self) -> Result<()> {
        let failure_of_puts = self.queue().map_or(Ok(()), |queue| queue.finish(true));
        let done = self.committing(|| {
            if !self.file.is_writable() {
                return self.file.refresh();
            }
            self.file.complete(|file| file.sync())?;
            if self.file.catch_up(&mut self.file.write()?)?
                && let Some(queue) = self.queue()
            {
                queue.begin_change();
            }
            Ok(())
        });
        failure_of_puts.and(done)
    }

    /// Commits what was put, for a process that ends without closing; `waits` is called with true while it waits for
    /// a call of another thread. The inner result is the failure of puts that were accepted before.
    ///
    /// # Errors
    /// What the storage reports.
    pub(crate) fn drain(&self, waits: &dyn Fn(bool)) -> Result<Result<()>> {
        let failure_of_puts = self.queue().map_or(Ok(()), |queue| queue.finish(false));
        if self.file.is_writable() {
            self.committing(|| self.file.drain(waits))?;
        }
        Ok(failure_of_puts)
    }

    /// Calls `end` to give the file up, whatever the failures of puts.
    pub(crate) fn abort(&self, end: impl FnOnce() -> Result<()>) -> Result<()> {
        let _hold = self.queue().map(WriteQueue::hold);
        if let Some(queue) = self.queue() {
            // Failures of puts do not matter, since their values are given up.
            let _ = queue.finish(true);
            queue.end();
        }
        end()
    }

    /// Calls `end` to close the file after all puts. It stays open where the storage refuses one of them.
    ///
    /// # Errors
    /// What went wrong with puts that were accepted before, else that of `end`.
    pub(crate) fn close(&self, end: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(queue) = self.queue() else { return end() };
        let _hold = queue.hold();
        let failure_of_puts = queue.finish(true);
        if queue.is_stopped() {
            return failure_of_puts;
        }
        queue.begin_change();
        let done = end();
        if !self.file.is_open() {
            queue.end();
        }
        failure_of_puts.and(done)
    }

    /// Takes every lock for a fork, waiting no longer than `until`; `None` where one cannot be taken.
    pub(crate) fn freeze(&self, until: Instant) -> Option<FrozenQueuedFile<'_>> {
        let file = self.file.freeze(until)?;
        let queue = match self.queue() {
            Some(queue) => Some(queue.freeze(until)?),
            None => None,
        };
        Some(FrozenQueuedFile { _file: file, _queue: queue })
    }

    /// To be called in a forked child: what was not yet written belongs to the parent.
    pub(crate) fn mark_forked(&self) {
        if let Some(queue) = self.queue() {
            self.is_on.store(false, Ordering::Relaxed);
            queue.mark_forked();
        }
        self.file.mark_forked();
    }

    /// In a forked child, when the file was closed there: frees its memory.
    pub(crate) fn leave_to_parent(&self) {
        if let Some(queue) = self.queue.get() {
            queue.leave_to_parent();
        }
        self.file.leave();
    }
}

impl Drop for QueuedFile {
    fn drop(&mut self) {
        if let Some(queue) = self.queue() {
            queue.end();
        }
    }
}
