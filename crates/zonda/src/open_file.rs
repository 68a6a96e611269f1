//! An open file of some format as the dataset keeps it: the file, its lock, and whose turn it is to write.

use std::any::TypeId;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use zonda_format::{Capabilities, Dispatch, DispatchWrite, Ending};
use zonda_model::{Answer, NcError};
use zonda_runtime::callout::{self, Mark};
use zonda_runtime::lock::{Mutex, Polite, Rank, RwLockReadGuard, RwLockWriteGuard};
use zonda_storage::{MayWrite, Storage, Writer};

use crate::error::{Error, Result};

/// The file, shared with others who read.
pub(crate) type SharedGuard<'a> = RwLockReadGuard<'a, Box<dyn Dispatch>>;
/// The file, alone.
pub(crate) type ExclusiveGuard<'a> = RwLockWriteGuard<'a, Box<dyn Dispatch>>;

/// A file that is open, or was.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// Those who read share it; who changes something has it alone. A fork takes it, so that the
    /// child finds no lock inside taken.
    file: Polite<Box<dyn Dispatch>>,
    pub(crate) capabilities: &'static Capabilities,
    /// Which type implements its format.
    kind: TypeId,
    storage: Option<Arc<dyn Storage>>,
    /// What its plugins are at work for.
    mark: Mark,
    open: AtomicBool,
    is_writable: bool,
    /// Set in a forked child: what was not yet written belongs to the parent.
    forked: AtomicBool,
    /// What keeps other programs from writing the file, until it is closed. Asked for by those who
    /// have the file alone.
    writer: Mutex<Option<Writer>>,
    /// Whether it is this writer's turn, among those of the process.
    has_turn: AtomicBool,
}

impl OpenFile {
    /// `mark` is what its plugins get, and `writer` what keeps other programs from writing it.
    pub(crate) fn new(mut file: Box<dyn Dispatch>, mark: Mark, writer: Option<Writer>) -> OpenFile {
        OpenFile {
            capabilities: file.capabilities(),
            kind: file.as_any().type_id(),
            storage: file.storage().cloned(),
            // A file without a writer would refuse to be synced and closed, for ever.
            is_writable: file.is_writable() && file.writer().is_some(),
            file: Polite::ranked(Rank::File, file),
            mark,
            open: AtomicBool::new(true),
            forked: AtomicBool::new(false),
            has_turn: AtomicBool::new(writer.is_none()),
            writer: Mutex::ranked(Rank::Writer, writer),
        }
    }

    /// Whether `T` implements its format. Takes no lock.
    pub(crate) fn is<T: Dispatch + 'static>(&self) -> bool {
        self.kind == TypeId::of::<T>()
    }

    /// The storage below, where it has one.
    pub(crate) fn storage(&self) -> Option<&Arc<dyn Storage>> {
        self.storage.as_ref()
    }

    /// The file, for those who change nothing, while it is open: what is put and not yet in the file is
    /// to be found no more when another thread has closed it. A thread must not ask again while it has
    /// it: one who waits to change it would come in between.
    #[inline(always)]
    pub(crate) fn read(&self) -> Result<SharedGuard<'_>> {
        let file = self.even_closed();
        if self.is_open() { Ok(file) } else { Err(NcError::BadId.into()) }
    }

    /// The same, and also when it was closed, for those who ask only about definitions: they stay.
    #[inline]
    pub(crate) fn even_closed(&self) -> SharedGuard<'_> {
        self.file.read_by(|file| zonda_trace::lock(|| file.try_read(), || file.read_for(self.mark)))
    }

    fn alone(&self) -> ExclusiveGuard<'_> {
        self.file
            .write_by(|file| zonda_trace::lock(|| file.try_write(), || file.write_for(self.mark)))
    }

    /// The file, for one who changes it.
    pub(crate) fn write(&self) -> Result<ExclusiveGuard<'_>> {
        self.check_not_forked()?;
        let file = self.alone();
        // Another thread may have closed it since this one found it: what is put now would be nowhere.
        if self.is_open() { Ok(file) } else { Err(NcError::BadId.into()) }
    }

    /// The file, for one who changes what is in it, which other writers of the process may do by turns.
    #[inline]
    pub(crate) fn write_anew(&self) -> Result<ExclusiveGuard<'_>> {
        let mut file = self.write()?;
        self.begin(&mut file)?;
        Ok(file)
    }

    /// Changes what is in the file, which other writers of the process may do by turns.
    pub(crate) fn change<T>(
        &self,
        f: impl FnOnce(&mut dyn DispatchWrite) -> Result<T>,
    ) -> Result<T> {
        f(writer(&mut self.write_anew()?)?)
    }

    /// Before a put: what was not yet written when the process was forked belongs to the parent.
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

    /// Whether to try again what failed: what another program may have been writing was read again.
    #[cold]
    pub(crate) fn read_again(&self, error: &Error, tries: &mut u32) -> bool {
        let damaged = [NcError::HdfErr, NcError::Filter, NcError::AttMeta, NcError::DimMeta];
        damaged.contains(&error.code()) && self.alone().read_again(tries)
    }

    /// Begins to change the file, where another writer of the process is not about to; what that one
    /// changed before is read first.
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

    /// For a writer that has changed nothing: sees what another writer of the process changed.
    /// Whether anything was.
    pub(crate) fn catch_up(&self, file: &mut ExclusiveGuard<'_>) -> Result<bool> {
        let mut turn = self.writer.lock();
        if let Some(turn) = turn.as_mut().filter(|turn| turn.is_behind()) {
            writer(file)?.reread()?;
            turn.has_read();
            return Ok(true);
        }
        Ok(false)
    }

    /// Completes changes, after which another writer of the process may have its turn.
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

    /// Commits what there is before the process ends.
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

    /// What is used of the file is known to one who has it alone: another id of the process may have
    /// written behind that, and the file then keeps the end it has. Who wants no locks says that
    /// nobody else writes.
    fn keep_end(&self, file: &mut dyn DispatchWrite) {
        let knows_end = self.writer.lock().as_ref().is_none_or(Writer::is_alone);
        file.keep_end(!knows_end);
    }

    /// The locks of the file, for a process that carries on with it when this one is killed.
    pub(crate) fn lock_for_another_process(&self) -> Option<OwnedFd> {
        self.writer.lock().as_ref()?.for_another_process().ok()
    }

    /// Others may write the file now.
    fn unlock(&self) {
        self.writer.lock().take();
        self.has_turn.store(true, Ordering::Relaxed);
    }

    /// In a child of a fork, when the file was closed there.
    pub(crate) fn leave(&self) {
        if let Some(mut file) = self.file.write_until(Instant::now()) {
            file.leave();
        }
    }

    /// Whether this thread is in a plugin that is at work for it.
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

    /// Takes the file, for a fork, and not beyond `until`. Those who come anew are held back meanwhile.
    pub(crate) fn freeze(&self, until: Instant) -> Option<ExclusiveGuard<'_>> {
        self.file.write_until(until)
    }

    /// Whether it was opened for writing, and not closed.
    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable && self.is_open()
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Ends it; of several threads one does. Refused, it may stay open with all that the file lacks: room
    /// can be made, a type completed. Who can do neither gives it up by [`OpenFile::abort`]. How it ended, if it did,
    /// comes with an error.
    ///
    /// `check` asks the system what it says of the file at the end, while the locks are held: their descriptor is
    /// closed with them.
    pub(crate) fn close(
        &self,
        check: impl FnOnce() -> Result<()>,
    ) -> std::result::Result<Ending, (Error, Option<Ending>)> {
        self.end(check, |file| {
            self.keep_end(file);
            file.close()
        })
    }

    /// Ends it without what was not committed, also where that is refused.
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
        if self.forked.load(Ordering::Relaxed) || !self.is_writable {
            let was_open = self.open.swap(false, Ordering::AcqRel);
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
}

/// The half of a file that can be written.
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
