//! An open file of some format as the dataset keeps it: the file, its lock, and whose turn it is to write.

use std::any::TypeId;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use zonda_format::{Capabilities, Dispatch, DispatchWrite, Ending, PlainPlace, VarRef};
use zonda_model::{Answer, NcError};
use zonda_parallel::ParallelFile;
use zonda_runtime::callout::{self, Mark};
use zonda_runtime::lock::{Mutex, Polite, Rank, RwLockReadGuard, RwLockWriteGuard, take_until};
use zonda_served::ServedFile;
use zonda_storage::{FileWriter, Leased, MayWrite, Storage};

use crate::error::{Error, Result};

/// Shared use of the file, with other readers.
pub(crate) type SharedGuard<'a> = RwLockReadGuard<'a, Box<dyn Dispatch>>;
/// Exclusive use of the file.
pub(crate) type ExclusiveGuard<'a> = RwLockWriteGuard<'a, Box<dyn Dispatch>>;

/// A file that is open, or was.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// Readers share the lock; a writer takes it exclusively. A fork takes it exclusively, so that no lock inside is
    /// held in the child.
    file: Polite<Box<dyn Dispatch>>,
    pub(crate) capabilities: &'static Capabilities,
    /// Which type implements its format.
    kind: TypeId,
    /// Whether it is a [`ParallelFile`] or a [`ServedFile`].
    may_have_ranks: bool,
    storage: Option<Arc<dyn Storage>>,
    /// Whether it is read over a network.
    is_remote: bool,
    /// Identifies the file to plugins that work for it.
    mark: Mark,
    open: AtomicBool,
    /// How often it was held exclusively. What inquiries answer holds as long as this stays, but for what puts make grow.
    changes: Arc<AtomicU64>,
    /// Whether bytes of it may be leased to threads. They are not while somebody has the file exclusively.
    has_leases: AtomicBool,
    is_writable: bool,
    /// Set in a forked child: what was not yet written belongs to the parent.
    forked: AtomicBool,
    /// The lock against other programs, kept until the file is closed. Used by those who hold the file exclusively.
    writer: Mutex<Option<FileWriter>>,
    /// Whether it is the turn of this writer among those of the process that have the same file open.
    has_turn: AtomicBool,
}

impl OpenFile {
    /// `mark` identifies the file to plugins, `writer` is the lock against other programs.
    pub(crate) fn new(
        mut file: Box<dyn Dispatch>,
        mark: Mark,
        writer: Option<FileWriter>,
    ) -> OpenFile {
        OpenFile {
            capabilities: file.capabilities(),
            kind: file.as_any().type_id(),
            may_have_ranks: file.as_any().is::<ParallelFile>() || file.as_any().is::<ServedFile>(),
            is_remote: file.is_remote(),
            storage: file.storage().cloned(),
            // Without a writing half it could never be synced or closed.
            is_writable: file.is_writable() && file.writer().is_some(),
            file: Polite::ranked(Rank::File, file),
            mark,
            open: AtomicBool::new(true),
            changes: Arc::default(),
            has_leases: AtomicBool::new(false),
            forked: AtomicBool::new(false),
            has_turn: AtomicBool::new(writer.is_none()),
            writer: Mutex::ranked(Rank::Writer, writer),
        }
    }

    /// The file and its mark, for who puts something between it and the dataset.
    pub(crate) fn into_parts(self) -> (Box<dyn Dispatch>, Mark) {
        (self.file.into_inner(), self.mark)
    }

    /// Whether `T` implements its format. Takes no lock.
    pub(crate) fn is<T: Dispatch + 'static>(&self) -> bool {
        self.kind == TypeId::of::<T>()
    }

    /// Whether it is of a kind that several ranks open together: all others are told from these by one test.
    #[inline(always)]
    pub(crate) fn may_have_ranks(&self) -> bool {
        self.may_have_ranks
    }

    /// Whether it is read over a network.
    #[inline(always)]
    pub(crate) fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// The storage below, where it has one.
    pub(crate) fn storage(&self) -> Option<&Arc<dyn Storage>> {
        self.storage.as_ref()
    }

    /// Shared use of the file while it is open. (Once another thread has closed it, values that were put and not yet
    /// written are gone.) A thread must not call this again while it holds the guard: it would wait for a writer that
    /// waits for this guard.
    #[inline(always)]
    pub(crate) fn read(&self) -> Result<SharedGuard<'_>> {
        let file = self.even_closed();
        if self.is_open() { Ok(file) } else { Err(NcError::BadId.into()) }
    }

    /// The same, also after the file was closed, for inquiries of definitions only: they stay in memory.
    #[inline]
    pub(crate) fn even_closed(&self) -> SharedGuard<'_> {
        self.file.read_by(|file| zonda_trace::lock(|| file.try_read(), || file.read_for(self.mark)))
    }

    fn alone(&self) -> ExclusiveGuard<'_> {
        let file = self
            .file
            .write_by(|file| zonda_trace::lock(|| file.try_write(), || file.write_for(self.mark)));
        // Alone, so nobody else counts.
        self.changes.store(self.changes.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        self.end_leases();
        file
    }

    /// How often the file was held exclusively; `None` where others than this process change what inquiries answer.
    pub(crate) fn changes(&self) -> Option<&Arc<AtomicU64>> {
        (!self.may_have_ranks).then_some(&self.changes)
    }

    /// Leases the bytes around an element to this thread, if nothing that `may` looks at, with the file in hand, is against it.
    pub(crate) fn lease(
        &self,
        var: VarRef,
        index: &[usize],
        writes: bool,
        may: impl FnOnce() -> bool,
    ) -> Option<(PlainPlace, Arc<dyn Leased>)> {
        self.check_not_forked().ok()?;
        let file = self.read().ok()?;
        if !may() {
            return None;
        }
        let place = file.plain_place(var)?;
        if writes && !place.is_writable {
            return None;
        }
        let lease = self.storage.as_ref()?.lease(place.element(index)?, writes)?;
        // A reader is closed by others without a look at who uses it: one of the two sees the other.
        self.has_leases.store(true, Ordering::SeqCst);
        if !self.open.load(Ordering::SeqCst) {
            self.end_leases();
            return None;
        }
        Some((place, lease))
    }

    /// Ends all leases, for who has the file exclusively, or has closed it.
    #[inline]
    fn end_leases(&self) {
        if self.has_leases.load(Ordering::SeqCst) {
            self.has_leases.store(false, Ordering::SeqCst);
            if let Some(storage) = &self.storage {
                storage.end_leases();
            }
        }
    }

    /// The same, waiting no longer than `until`; false where a thread still uses one. A signal handler may have come in between,
    /// and this may be called by it.
    fn end_leases_until(&self, until: Instant) -> bool {
        let Some(storage) =
            self.storage.as_ref().filter(|_| self.has_leases.load(Ordering::SeqCst))
        else {
            return true;
        };
        let have_ended = take_until(until, || storage.try_end_leases().then_some(())).is_some();
        self.has_leases.store(!have_ended, Ordering::SeqCst);
        have_ended
    }

    /// Exclusive use of the file, to change it.
    pub(crate) fn write(&self) -> Result<ExclusiveGuard<'_>> {
        self.check_not_forked()?;
        let file = self.alone();
        // Another thread may have closed it meanwhile: values put now would be lost.
        if self.is_open() { Ok(file) } else { Err(NcError::BadId.into()) }
    }

    /// Exclusive use of the file to change what is in it, which other writers of the process may do in turn.
    #[inline]
    pub(crate) fn write_anew(&self) -> Result<ExclusiveGuard<'_>> {
        let mut file = self.write()?;
        self.begin(&mut file)?;
        Ok(file)
    }

    /// Has a function change what is in the file, which other writers of the process may do in turn.
    pub(crate) fn change<T>(
        &self,
        f: impl FnOnce(&mut dyn DispatchWrite) -> Result<T>,
    ) -> Result<T> {
        f(writer(&mut self.write_anew()?)?)
    }

    /// Before a put: fails in a forked child, where what was not yet written belongs to the parent.
    #[inline]
    pub(crate) fn check_not_forked(&self) -> Result<()> {
        if self.forked.load(Ordering::Relaxed) && self.is_writable {
            return Err(of_the_parent());
        }
        Ok(())
    }

    /// For a reader: sees what others committed.
    pub(crate) fn refresh(&self) -> Result<()> {
        let mut file = self.alone();
        if !self.is_open() {
            return Err(NcError::BadId.into());
        }
        file.refresh()
    }

    /// Whether to try again what failed: true after reading again what another program may have been writing.
    #[cold]
    pub(crate) fn read_again(&self, error: &Error, tries: &mut u32) -> bool {
        let damaged = [NcError::HdfErr, NcError::Filter, NcError::AttMeta, NcError::DimMeta];
        !self.is_remote && damaged.contains(&error.code()) && self.alone().read_again(tries)
    }

    /// Begins to change the file, unless another writer of the process is doing so. What that one changed before is
    /// read first.
    #[inline]
    pub(crate) fn begin(&self, file: &mut ExclusiveGuard<'_>) -> Result<()> {
        if self.has_turn.load(Ordering::Relaxed) { Ok(()) } else { self.ask(file) }
    }

    #[cold]
    fn ask(&self, file: &mut ExclusiveGuard<'_>) -> Result<()> {
        let mut turn = self.writer.lock();
        let Some(turn) = &mut *turn else { return Ok(()) };
        let why = "another id of this program has changes that are not committed: call nc_sync or nc_close on it first";
        for _ in 0..2 {
            match turn.begin() {
                MayWrite::Now => {
                    self.has_turn.store(true, Ordering::Relaxed);
                    return Ok(());
                }
                MayWrite::AfterReading => {
                    writer(file)?.reread()?;
                    turn.has_read();
                }
                MayWrite::NotYet => break,
            }
        }
        Err(Error::answered(NcError::HdfErr, Answer::Request, why))
    }

    /// For a writer that has changed nothing: reads what another writer of the process changed. True if there was
    /// anything.
    pub(crate) fn catch_up(&self, file: &mut ExclusiveGuard<'_>) -> Result<bool> {
        let mut turn = self.writer.lock();
        if let Some(turn) = turn.as_mut().filter(|turn| turn.is_behind()) {
            writer(file)?.reread()?;
            turn.has_read();
            return Ok(true);
        }
        Ok(false)
    }

    /// Completes changes, after which it may be the turn of another writer of the process.
    pub(crate) fn complete(
        &self,
        f: impl FnOnce(&mut dyn DispatchWrite) -> Result<()>,
    ) -> Result<()> {
        let mut file = self.write()?;
        f(writer(&mut file)?)?;
        self.is_done();
        Ok(())
    }

    /// All changes are in the file.
    pub(crate) fn is_done(&self) {
        let mut turn = self.writer.lock();
        if let Some(turn) = &mut *turn {
            turn.is_done();
            self.has_turn.store(false, Ordering::Relaxed);
        }
    }

    /// Commits what was put, before the process ends.
    pub(crate) fn drain(&self, waits: &dyn Fn(bool)) -> Result<()> {
        waits(true);
        let done = self.complete(|file| {
            waits(false);
            self.keep_end(file);
            file.drain()
        });
        // Another thread may have closed it meanwhile, which commits.
        if self.is_open() { done } else { Ok(()) }
    }

    /// Only the sole writer knows which part of the file is in use. Another id of the process may have written behind
    /// that part, so the file then keeps its length. A program that switches locks off asserts that nobody else
    /// writes.
    fn keep_end(&self, file: &mut dyn DispatchWrite) {
        let knows_end = self.writer.lock().as_ref().is_none_or(FileWriter::is_alone);
        file.keep_end(!knows_end);
    }

    /// The descriptor that holds the locks of the file, for the helper process that goes on with it when this one is
    /// killed.
    pub(crate) fn lock_for_another_process(&self) -> Option<OwnedFd> {
        self.writer.lock().as_ref()?.for_another_process().ok()
    }

    /// Releases the lock against other programs.
    fn unlock(&self) {
        self.writer.lock().take();
        self.has_turn.store(true, Ordering::Relaxed);
    }

    /// In a forked child, when the file was closed there: frees its memory.
    pub(crate) fn leave(&self) {
        if let Some(mut file) = self.file.write_until(Instant::now()) {
            file.leave();
        }
    }

    /// Whether this thread runs in a plugin that works for this file.
    pub(crate) fn is_in_plugin(&self) -> bool {
        callout::is_for(self.mark)
    }

    pub(crate) fn is_forked(&self) -> bool {
        self.forked.load(Ordering::Relaxed)
    }

    /// To be called in a forked child.
    pub(crate) fn mark_forked(&self) {
        self.forked.store(true, Ordering::Relaxed);
    }

    /// Takes the file exclusively for a fork, waiting no longer than `until`. New users of the file wait meanwhile.
    pub(crate) fn freeze(&self, until: Instant) -> Option<ExclusiveGuard<'_>> {
        let file = self.file.write_until(until)?;
        self.end_leases_until(until).then_some(file)
    }

    /// Whether it was opened for writing, and not closed.
    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable && self.is_open()
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Closes the file; of several threads that do so, one succeeds. Where the storage refuses, the file may stay
    /// open with all that was not written, so that the caller can make room or complete a type and close it again, or
    /// give it up by [`OpenFile::abort`]. An error comes with how the file ended, if it did.
    ///
    /// `check` asks the system for errors of the file at the end. It is called while the locks are held, since their
    /// descriptor is closed with them.
    pub(crate) fn close(
        &self,
        check: impl FnOnce() -> Result<()>,
    ) -> std::result::Result<Ending, (Error, Option<Ending>)> {
        self.end(check, |file| {
            self.keep_end(file);
            file.close()
        })
    }

    /// Closes the file without what was not committed; it has ended even where that fails.
    pub(crate) fn abort(
        &self,
        check: impl FnOnce() -> Result<()>,
    ) -> std::result::Result<Ending, (Error, Option<Ending>)> {
        self.end(check, |file| {
            self.keep_end(file);
            file.abort().map_err(|error| (error, Some(Ending::Keep)))
        })
    }

    fn end(
        &self,
        check: impl FnOnce() -> Result<()>,
        end: impl FnOnce(&mut dyn DispatchWrite) -> std::result::Result<Ending, (Error, Option<Ending>)>,
    ) -> std::result::Result<Ending, (Error, Option<Ending>)> {
        let closed = || (Error::from(NcError::BadId), None);
        let is_forked = self.forked.load(Ordering::Relaxed);
        if !is_forked && !self.is_writable && self.is::<ParallelFile>() {
            return self.leave_ranks();
        }
        if is_forked || !self.is_writable {
            let was_open = self.open.swap(false, Ordering::SeqCst);
            if !is_forked {
                self.end_leases();
            }
            self.unlock();
            return if was_open { Ok(Ending::Keep) } else { Err(closed()) };
        }
        let mut file = self.write().map_err(|error| (error, None))?;
        let ended = writer(&mut file).map_err(|error| (error, None)).and_then(end);
        let is_over = !matches!(ended, Err((_, None)));
        if is_over {
            self.open.store(false, Ordering::Release);
        }
        let ended = ended.and_then(|ending| match ending {
            Ending::Keep => check().map(|()| ending).map_err(|error| (error, Some(ending))),
            Ending::Remove => Ok(ending),
        });
        if is_over {
            self.unlock();
        }
        ended
    }

    /// Closes a file that several ranks only read.
    fn leave_ranks(&self) -> std::result::Result<Ending, (Error, Option<Ending>)> {
        let mut file = self.write().map_err(|error| (error, None))?;
        let of_ranks: Option<&mut ParallelFile> = file.as_any_mut().downcast_mut();
        let left = of_ranks.map_or(Ok(()), ParallelFile::leave);
        if !matches!(left, Err((_, false))) {
            self.open.store(false, Ordering::Release);
        }
        let left = left.map(|()| Ending::Keep);
        left.map_err(|(error, is_over)| (error, is_over.then_some(Ending::Keep)))
    }
}

/// The writing half of a file.
///
/// # Errors
/// `NC_EPERM` where it has none.
pub(crate) fn writer<'f>(file: &'f mut ExclusiveGuard<'_>) -> Result<&'f mut dyn DispatchWrite> {
    file.writer().ok_or_else(Error::only_read)
}

#[cold]
fn of_the_parent() -> Error {
    let why = "the file belongs to the process that forked this one";
    Error::because(NcError::System(ECHILD), why)
}

/// `ECHILD` of Linux on every architecture.
const ECHILD: i32 = 10;
