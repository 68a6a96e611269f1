//! Locks of files that are being written, against others who would write them.
//!
//! Two locks, both gone with the process whatever ends it:
//!
//! - a shared `flock`. HDF5 takes this lock exclusively to write and shared to read, so its writers
//!   are refused and its readers are not;
//! - a lock of one byte that belongs to the open file (`F_OFD_SETLK`), against other writers of this
//!   library, which all may have the shared `flock`. It is the last but one of the bytes that a lock
//!   can name: no file is so long, so nobody who locks what he reads or writes meets it.
//!
//! A reader takes neither lock, and never keeps a writer out. `HDF5_USE_FILE_LOCKING` has the
//! meaning that HDF5 gives it ([`Locking`]).
//!
//! The writers of one process share the locks, as they do in HDF5: the program decides which of
//! them may write.

use crate::StorageError;
use crate::backend::File;
use crate::os::{Errno, Fd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use zonda_runtime::lock::{Global, Mutex, MutexGuard, Rank};

/// The byte that writers of this library lock.
const WRITERS_BYTE: i64 = i64::MAX - 1;

/// Whether files are locked (`HDF5_USE_FILE_LOCKING`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Locking {
    /// `FALSE` or `0`: they are not.
    Off,
    /// Not set, or a word that HDF5 does not know: they are; where the file system refuses, there
    /// is a warning.
    #[default]
    Warn,
    /// `BEST_EFFORT`: they are where the file system allows it.
    BestEffort,
    /// `TRUE` or `1`: they are, or nothing is written.
    Always,
}

impl Locking {
    /// Reads the environment.
    #[must_use]
    pub fn from_env() -> Locking {
        let text = std::env::var_os("HDF5_USE_FILE_LOCKING");
        Locking::of(text.as_deref().and_then(|text| text.to_str()))
    }

    /// The words are compared as HDF5 does, letter by letter.
    fn of(text: Option<&str>) -> Locking {
        match text {
            Some("FALSE" | "0") => Locking::Off,
            Some("BEST_EFFORT") => Locking::BestEffort,
            Some("TRUE" | "1") => Locking::Always,
            _ => Locking::Warn,
        }
    }
}

/// The locks of a writer, held until this is dropped.
///
/// In a forked child dropping it gives nothing back: the locks are the parent's, who keeps them.
#[derive(Debug)]
pub struct WriterLock(Arc<WriterLocks>);

/// The locks that writers of one process share.
#[derive(Debug)]
struct WriterLocks {
    /// The open file that was locked; it stays open when its opener has closed it.
    fd: Arc<Fd>,
    identity: Identity,
    /// Who has them.
    pid: u32,
    turn: Mutex<WriterTurn>,
}

/// Device and inode.
type Identity = (u64, u64);

/// Which of the writers of a process may change the file.
#[derive(Debug, Default)]
struct WriterTurn {
    /// The one whose changes are not all in the file.
    holder: Option<u64>,
    /// Counts the changes of the file.
    changes: u64,
    n_writers: u64,
}

/// The locks of this process. Kept for the time that it takes to lock a file without waiting.
static LIST: Global<Vec<Weak<WriterLocks>>> = Global::new(Rank::WriterLocks, Vec::new(), Vec::new);

/// Whether the warning that files are not locked was given.
static WARNED: AtomicBool = AtomicBool::new(false);

/// What a writer is going to do with the present contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Change it, while others read.
    Change,
    /// Throw them away; no program with HDF5 may be reading them.
    Empty,
}

impl WriterLock {
    /// Locks a file for a writer. `None` where files are not locked.
    pub(crate) fn take(
        file: &File,
        intent: Intent,
        locking: Locking,
    ) -> Result<Option<WriterLock>, StorageError> {
        if locking == Locking::Off {
            return Ok(None);
        }
        let path = file.path();
        let identity = file.fd.status().map(|status| status.identity);
        let identity = identity.map_err(|errno| refused(path, errno))?;
        let mut list = LIST.lock();
        list.retain(|held| held.strong_count() > 0);
        let mine = |held: &Arc<WriterLocks>| held.identity == identity && held.is_mine();
        if let Some(held) = list.iter().filter_map(Weak::upgrade).find(mine) {
            return match intent {
                Intent::Change => Ok(Some(WriterLock(held))),
                Intent::Empty => Err(taken(path, "this program has it open for writing")),
            };
        }
        match lock(file, intent) {
            Ok(fd) => {
                let turn = Mutex::ranked(Rank::Turn, WriterTurn::default());
                let held = Arc::new(WriterLocks {
                    fd,
                    identity,
                    pid: zonda_runtime::fork::process_id(),
                    turn,
                });
                list.push(Arc::downgrade(&held));
                Ok(Some(WriterLock(held)))
            }
            Err(LockFailure::Taken(by)) => Err(taken(path, by)),
            Err(LockFailure::Refused(errno)) if locking == Locking::Always => {
                Err(refused(path, errno))
            }
            Err(LockFailure::Refused(Errno(errno))) => {
                if locking == Locking::Warn && !WARNED.swap(true, Ordering::Relaxed) {
                    warn(path, errno);
                }
                Ok(None)
            }
        }
    }

    /// A writer of its own among those that have this lock.
    #[must_use]
    pub fn writer(self) -> FileWriter {
        let mut turn = self.0.turn();
        turn.n_writers += 1;
        let (id, seen) = (turn.n_writers, turn.changes);
        drop(turn);
        FileWriter { lock: self, id, seen }
    }
}

/// One of the writers of a file in this process. They change the file in turns.
#[derive(Debug)]
pub struct FileWriter {
    lock: WriterLock,
    id: u64,
    /// Number of the file's changes that this writer has read.
    seen: u64,
}

/// Whether a writer may change the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayWrite {
    /// It may.
    Now,
    /// It may when it has read what another one changed ([`FileWriter::has_read`]).
    AfterReading,
    /// Another one has changes that are not in the file yet.
    NotYet,
}

impl FileWriter {
    /// Whether this one knows all of the file, and no other writer of the process has it open.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.lock.0) == 1 && self.lock.0.turn().changes == self.seen
    }

    /// Asks to change the file. After [`MayWrite::Now`] nobody else may, until
    /// [`FileWriter::is_done`].
    pub fn begin(&mut self) -> MayWrite {
        let mut turn = self.lock.0.turn();
        match turn.holder {
            Some(holder) if holder == self.id => MayWrite::Now,
            Some(_) => MayWrite::NotYet,
            None if turn.changes != self.seen => MayWrite::AfterReading,
            None => {
                turn.holder = Some(self.id);
                MayWrite::Now
            }
        }
    }

    /// Whether another one changed what this one has read.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let turn = self.lock.0.turn();
        turn.holder.is_none() && turn.changes != self.seen
    }

    /// To be called after [`MayWrite::AfterReading`], when all of the file was read anew.
    pub fn has_read(&mut self) {
        self.seen = self.lock.0.turn().changes;
    }

    /// A descriptor that keeps the locks, for another process, if this one is killed. Closing the
    /// file gives the locks back for both.
    ///
    /// # Errors
    /// What the system says.
    pub fn for_another_process(&self) -> std::io::Result<std::os::fd::OwnedFd> {
        self.lock.0.fd.duplicate()
    }

    /// To be called when all changes of this writer are in the file.
    pub fn is_done(&mut self) {
        let mut turn = self.lock.0.turn();
        if turn.holder == Some(self.id) {
            turn.holder = None;
            turn.changes += 1;
            self.seen = turn.changes;
        }
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        self.is_done();
    }
}

impl WriterLocks {
    fn is_mine(&self) -> bool {
        self.pid == zonda_runtime::fork::process_id()
    }

    fn turn(&self) -> MutexGuard<'_, WriterTurn> {
        self.turn.lock()
    }
}

impl Drop for WriterLocks {
    fn drop(&mut self) {
        // A child that was forked meanwhile has the same open file: closing it here alone would
        // leave it locked for as long as the child lives.
        if self.is_mine() {
            let _ = self.fd.lock_byte(WRITERS_BYTE, libc::F_UNLCK);
            let _ = self.fd.flock(libc::LOCK_UN);
        }
    }
}

/// Why a file was not locked.
#[derive(Debug)]
enum LockFailure {
    /// Somebody else has it open, in the way that the text says.
    Taken(&'static str),
    /// There are no locks here.
    Refused(Errno),
}

/// Takes both locks, or none, and gives the open file that has them.
fn lock(file: &File, intent: Intent) -> Result<Arc<Fd>, LockFailure> {
    const WRITTEN: &str = "another program has it open for writing";
    const OPEN: &str = "another program has it open";
    let fd = Arc::clone(&file.fd);
    let failed = |by| {
        move |errno| match errno {
            Errno(libc::EAGAIN | libc::EACCES) => LockFailure::Taken(by),
            errno => LockFailure::Refused(errno),
        }
    };
    if intent == Intent::Empty {
        fd.flock(libc::LOCK_EX | libc::LOCK_NB).map_err(failed(OPEN))?;
    }
    fd.flock(libc::LOCK_SH | libc::LOCK_NB).map_err(failed(WRITTEN))?;
    // If the second is refused, the first is given back.
    fd.lock_byte(WRITERS_BYTE, libc::F_WRLCK).map_err(|errno| {
        let _ = fd.flock(libc::LOCK_UN);
        failed(WRITTEN)(errno)
    })?;
    Ok(fd)
}

fn taken(path: &Path, by: &'static str) -> StorageError {
    StorageError::Locked { path: Arc::from(path), by }
}

fn refused(path: &Path, Errno(errno): Errno) -> StorageError {
    StorageError::NoLocks { path: Arc::from(path), errno }
}

fn warn(path: &Path, errno: i32) {
    use std::io::Write;
    let why = std::io::Error::from_raw_os_error(errno);
    // A program whose standard error is closed still runs.
    let _ = writeln!(
        std::io::stderr().lock(),
        "zonda: {}: cannot be locked ({why}): nothing keeps other programs from writing it, too; \
         HDF5_USE_FILE_LOCKING=BEST_EFFORT or FALSE says that this is known",
        path.display()
    );
}

#[cfg(test)]
mod tests;
