//! What stands beside a file in its folder while a commit needs more than one write in place: a
//! journal, or a complete copy that will take the file's name.
//!
//! Both have fixed names, so that whoever opens the file next finds what a dead writer left. A
//! living writer holds the `flock` of its neighbour. What is found there is used only if it is to be
//! trusted, see [`crate::neighbour`].

use crate::backend::{File, folder_of, sync_folder};
use crate::error::Op;
use crate::neighbour::acting;
use crate::neighbour::{Refusal, forget, open_at_once, warn_once};
use crate::os::{Errno, Fd, Status};
use crate::tuning::{LOCK_PAUSE, LOCK_TRIES};
use crate::{Storage, StorageError, SyncLevel};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_runtime::lock::{Mutex, Rank};

/// One of the files beside a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sidecar {
    /// What is needed to complete a change of the file: `NAME.zonda-journal`.
    Journal,
    /// The file as it is to be: `NAME.zonda-copy`.
    Copy,
}

impl Sidecar {
    /// What is added to the file's name.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Sidecar::Journal => ".zonda-journal",
            Sidecar::Copy => ".zonda-copy",
        }
    }

    /// Its path, for a file at `path`.
    pub(crate) fn of(self, path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(self.suffix());
        name.into()
    }
}

/// A neighbour that was there already.
#[derive(Debug)]
pub struct FoundSidecar {
    /// Its bytes.
    pub storage: Arc<dyn Storage>,
    /// A living writer is at work with it.
    pub in_use: bool,
}

/// How a reader, who changes nothing, may use a neighbour.
#[derive(Debug)]
pub enum SidecarForReader {
    /// There is none, or one that is not to be used: a line on standard error then said so.
    Nothing,
    /// One that may be used.
    Ours(FoundSidecar),
    /// Another user's, which may be compared with the file but not used, and the error that says so.
    Theirs(FoundSidecar, StorageError),
}

/// The neighbours of one file.
pub trait Sidecars: Send + Sync {
    /// Makes an empty neighbour in the place of one that is there. A [`Sidecar::Copy`] gets
    /// owner, mode and extended attributes of the file.
    ///
    /// # Errors
    /// [`StorageError::Open`] where the folder takes no files or the rights cannot be given;
    /// [`StorageError::Refused`] where somebody else's file has the name and cannot be removed.
    fn create(&self, which: Sidecar) -> Result<Arc<dyn Storage>, StorageError>;

    /// The neighbour that is there.
    ///
    /// # Errors
    /// [`StorageError::Open`] where there is one that cannot be opened; [`StorageError::Refused`]
    /// where it is not to be trusted.
    fn find(&self, which: Sidecar) -> Result<Option<FoundSidecar>, StorageError>;

    /// As [`Sidecars::find`], and takes one that belongs to `user`, too.
    ///
    /// # Errors
    /// As [`Sidecars::find`].
    fn find_of(&self, which: Sidecar, user: u32) -> Result<Option<FoundSidecar>, StorageError>;

    /// The neighbour that is there, for a reader, which reads the file even if the neighbour is not to be used.
    ///
    /// # Errors
    /// [`StorageError::Refused`] for another user's that cannot be read, so that nobody can tell
    /// whether it is needed; [`StorageError::Open`].
    fn sight(&self, which: Sidecar) -> Result<SidecarForReader, StorageError> {
        let refused = match self.find(which) {
            Ok(found) => return Ok(found.map_or(SidecarForReader::Nothing, SidecarForReader::Ours)),
            Err(error) => error,
        };
        let StorageError::Refused { why, owner, .. } = &refused else { return Err(refused) };
        if let (Refusal::Owner, Some(user)) = (why, owner) {
            match self.find_of(which, *user) {
                Ok(Some(found)) => return Ok(SidecarForReader::Theirs(found, refused)),
                Ok(None) => return Ok(SidecarForReader::Nothing),
                Err(error) if !error.is_refused() => return Err(refused),
                Err(_) => {}
            }
        }
        warn_once(&refused, "the file is read without it");
        Ok(SidecarForReader::Nothing)
    }

    /// The error that says why a neighbour is not used.
    fn refuse(&self, which: Sidecar, why: Refusal) -> StorageError;

    /// Removes a neighbour; none is fine.
    ///
    /// # Errors
    /// What the operating system reports.
    fn remove(&self, which: Sidecar) -> Result<(), StorageError>;

    /// Makes the names in the folder durable, that of the file and those of its neighbours, as far as the file's sync level says.
    ///
    /// # Errors
    /// What the operating system reports.
    fn settle(&self) -> Result<(), StorageError>;

    /// Whether [`Sidecars::replace`] would leave everything as users see it: the file is an ordinary
    /// one, still has the name it was opened by, and has no other.
    fn replaceable(&self) -> bool;

    /// Bytes that the device has room for, as far as that can be said.
    fn room(&self) -> Option<u64> {
        None
    }

    /// Puts the copy, which must be complete, in the place of the file. The file's storage reads
    /// and writes it from now on; layers above have to be told by [`Storage::invalidate`], and
    /// [`Sidecars::settle`] makes it durable.
    ///
    /// # Errors
    /// What the operating system reports; the file is then as it was.
    fn replace(&self) -> Result<(), StorageError>;
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl fmt::Debug for dyn Sidecars + '_ {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Sidecars")
    }
}

/// Writes a journal with these bytes. When this returns the journal is as durable as the file's sync level asks, and the system
/// was asked for the errors that it would report at the journal's close. The storage that it gives holds the journal's lock,
/// which shows that its writer lives.
///
/// `None` where the folder takes no files, or where somebody else's file has the name of the journal and cannot be removed, or
/// the process may open no more files; a line on standard error says so. The change is then as safe as with the reference.
///
/// # Errors
/// What the storage reports; there is then no journal.
pub fn write_journal(
    sidecars: &dyn Sidecars,
    bytes: &[u8],
) -> Result<Option<Arc<dyn Storage>>, StorageError> {
    let journal = match sidecars.create(Sidecar::Journal) {
        Err(error) if error.is_refused() || has_no_descriptor(error.raw_os_error()) => {
            warn_once(
                &error,
                "the file's headers are changed without a journal: a crash meanwhile can leave the file unreadable",
            );
            return Ok(None);
        }
        Err(error) if takes_no_files(error.raw_os_error()) => return Ok(None),
        other => other?,
    };
    let write = || {
        journal.write_at(0, bytes)?;
        journal.sync()?;
        sidecars.settle()
    };
    match write() {
        Ok(()) => Ok(Some(journal)),
        Err(error) => {
            // An incomplete one must not be taken for a journal later.
            let _ = sidecars.remove(Sidecar::Journal);
            Err(error)
        }
    }
}

/// Whether an `errno` means that a folder takes no files of ours, whatever is tried again. There is none
/// (`ENOENT`) where the file was removed with its folder.
#[must_use]
pub fn takes_no_files(errno: i32) -> bool {
    matches!(errno, libc::EPERM | libc::ENOENT | libc::EACCES | libc::EROFS | libc::ENAMETOOLONG)
}

/// Whether an `errno` means that the device, or its user's quota, holds no more bytes.
#[must_use]
pub fn has_no_room(errno: i32) -> bool {
    matches!(errno, libc::ENOSPC | libc::EDQUOT)
}

/// Whether an `errno` means that, or that no file of this process may be so long.
#[must_use]
pub fn has_no_room_in_file(errno: i32) -> bool {
    has_no_room(errno) || errno == libc::EFBIG
}

/// Whether an `errno` means that there may be no more open files. The program need not be able to close
/// one: all that it has may be waiting for this commit.
#[must_use]
pub fn has_no_descriptor(errno: i32) -> bool {
    crate::os::has_no_descriptor(crate::os::Errno(errno))
}

/// The neighbours of a file in a folder of the operating system.
#[derive(Debug)]
pub(crate) struct InFolder {
    file: Arc<File>,
    /// The file's own path: if it was opened by a symbolic link, the path that the link leads to.
    path: PathBuf,
    /// The copy that was made, kept open: another file may have got its name.
    copy: Mutex<Option<Fd>>,
}

impl InFolder {
    pub(crate) fn of(file: Arc<File>) -> InFolder {
        let given = file.path();
        let is_link = file.may_be_link() && std::fs::read_link(given).is_ok();
        let path = match is_link {
            true => std::fs::canonicalize(given).unwrap_or_else(|_| given.to_owned()),
            false => given.to_owned(),
        };
        InFolder { path, file, copy: Mutex::ranked(Rank::Sidecars, None) }
    }

    /// The file's path as it is now: the program may have changed its folder, or somebody the name.
    fn path_now(&self) -> PathBuf {
        self.file.fd.path_now().unwrap_or_else(|| self.path.clone())
    }

    /// Removes what stands beside a file that has just been made or emptied. What cannot be removed
    /// does no harm: a journal knows its file.
    pub(crate) fn clear(&self) {
        forget(&self.path);
    }

    fn open_error(path: &Path, Errno(errno): Errno) -> StorageError {
        StorageError::Open { path: Arc::from(path), errno }
    }

    fn io_error(op: Op, path: &Path, error: &std::io::Error) -> StorageError {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        StorageError::Io { path: Arc::from(path), op, at: 0, len: 0, errno }
    }

    /// Whether `path` names the file that is open.
    fn names_the_file(&self, path: &Path) -> bool {
        let named = open_at_once(path, libc::O_RDONLY).map(|(_, status)| status);
        let open = self.file.fd.status();
        matches!((named, open), (Ok(a), Ok(b)) if a.identity == b.identity)
    }
}

impl Sidecars for InFolder {
    fn create(&self, which: Sidecar) -> Result<Arc<dyn Storage>, StorageError> {
        let path = which.of(&self.path_now());
        let made = acting::make(&path, self.file.level())?;
        // A copy is asked when it takes the file's name.
        let made = if which == Sidecar::Journal { made.asking_close() } else { made };
        // A reader that looks at it in this moment has the lock; without the lock others would take its writer for dead.
        for _ in 0..LOCK_TRIES {
            if made.fd.try_lock() {
                break;
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        let rights = acting::take_rights(&made.fd, &self.file.fd);
        if which == Sidecar::Copy {
            // A journal exists for a moment only and need not belong to the same user.
            let kept = rights.and_then(|()| made.fd.again()).map_err(|errno| {
                let _ = std::fs::remove_file(&path);
                InFolder::open_error(&path, errno)
            })?;
            *self.copy.lock() = Some(kept);
        }
        Ok(Arc::new(made))
    }

    fn find(&self, which: Sidecar) -> Result<Option<FoundSidecar>, StorageError> {
        self.look(which, None)
    }

    fn find_of(&self, which: Sidecar, user: u32) -> Result<Option<FoundSidecar>, StorageError> {
        self.look(which, Some(user))
    }

    fn refuse(&self, which: Sidecar, why: Refusal) -> StorageError {
        let path = which.of(&self.path);
        let owner = Status::of_name(&path).ok().map(|status| status.owner.0);
        StorageError::Refused { path: Arc::from(path), why, owner }
    }

    fn remove(&self, which: Sidecar) -> Result<(), StorageError> {
        InFolder::remove_at(&which.of(&self.path_now()))
    }

    fn settle(&self) -> Result<(), StorageError> {
        let folder = match self.file.level() {
            SyncLevel::None => return Ok(()),
            SyncLevel::Data | SyncLevel::Full => folder_of(&self.path_now())?,
        };
        self.file.sync_by(Op::Sync, |_| sync_folder(folder.as_ref()))
    }

    fn replaceable(&self) -> bool {
        let status = self.file.fd.status();
        status.is_ok_and(|status| status.is_regular() && status.only_name)
            && self.names_the_file(&self.path_now())
    }

    fn room(&self) -> Option<u64> {
        self.file.fd.room().ok().map(|room| room.free)
    }

    fn replace(&self) -> Result<(), StorageError> {
        let path = self.path_now();
        let copy_path = Sidecar::Copy.of(&path);
        let made = self.copy.lock().take();
        let copy = made.ok_or_else(|| InFolder::open_error(&copy_path, Errno(libc::ENOENT)))?;
        let its = |status: Status| status.identity;
        let named = Status::of_name(&copy_path).map(its);
        if named.is_err() || named != copy.status().map(its) {
            let (path, why) = (Arc::from(&*copy_path), Refusal::Replaced);
            return Err(StorageError::Refused { path, why, owner: None });
        }
        // While the file that it replaces is still there.
        copy.check_close().map_err(|Errno(errno)| StorageError::CloseFailed {
            path: Arc::from(&*copy_path),
            errno,
        })?;
        std::fs::rename(&copy_path, &path)
            .map_err(|error| InFolder::io_error(Op::Replace, &path, &error))?;
        // It would go on to be that of the file that was replaced.
        self.file.no_more_direct();
        self.file
            .fd
            .become_file_of(&copy)
            .map_err(|errno| self.file.error(Op::Replace, 0, 0, errno))
    }
}

impl InFolder {
    fn look(
        &self,
        which: Sidecar,
        also: Option<u32>,
    ) -> Result<Option<FoundSidecar>, StorageError> {
        let path = which.of(&self.path);
        let found = acting::open(&path, &self.file.fd, also, self.file.level())?;
        let Some(file) = found else { return Ok(None) };
        let in_use = !file.fd.try_lock();
        // Its writer lived until now, and has removed it.
        if !in_use && file.fd.status().is_ok_and(|status| status.is_removed) {
            return Ok(None);
        }
        Ok(Some(FoundSidecar { in_use, storage: Arc::new(file.asking_close()) }))
    }

    fn remove_at(path: &Path) -> Result<(), StorageError> {
        match std::fs::remove_file(path) {
            Err(error) => match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENAMETOOLONG) => Ok(()),
                _ => Err(InFolder::io_error(Op::Remove, path, &error)),
            },
            Ok(()) => Ok(()),
        }
    }
}
