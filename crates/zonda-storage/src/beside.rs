//! What stands beside a file in its folder while a commit needs more than one write in place: a
//! journal, or a complete copy that will take the file's name.
//!
//! Both have fixed names, so that whoever opens the file next finds what a dead writer left. A
//! living writer holds the `flock` of its neighbour.

use crate::backend::{File, sync_folder_of};
use crate::error::Op;
use crate::os::{Errno, Fd};
use crate::{Create, Storage, StorageError, SyncLevel};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One of the files beside a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Neighbour {
    /// What is needed to complete a change of the file: `NAME.zonda-journal`.
    Journal,
    /// The file as it is to be: `NAME.zonda-copy`.
    Copy,
}

impl Neighbour {
    /// What is added to the file's name.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Neighbour::Journal => ".zonda-journal",
            Neighbour::Copy => ".zonda-copy",
        }
    }
}

/// A neighbour that was there already.
#[derive(Debug)]
pub struct Found {
    /// Its bytes.
    pub storage: Arc<dyn Storage>,
    /// A living writer is at work with it.
    pub in_use: bool,
}

/// The neighbours of one file.
pub trait Beside: Send + Sync + fmt::Debug {
    /// Makes an empty neighbour in the place of one that is there. A [`Neighbour::Copy`] gets
    /// owner, mode and extended attributes of the file.
    ///
    /// # Errors
    /// [`StorageError::Open`] where the folder takes no files or the rights cannot be given.
    fn create(&self, which: Neighbour) -> Result<Arc<dyn Storage>, StorageError>;

    /// The neighbour that is there.
    ///
    /// # Errors
    /// [`StorageError::Open`] where there is one that cannot be opened.
    fn find(&self, which: Neighbour) -> Result<Option<Found>, StorageError>;

    /// Removes a neighbour; none is fine.
    ///
    /// # Errors
    /// What the operating system reports.
    fn remove(&self, which: Neighbour) -> Result<(), StorageError>;

    /// Makes durable which files there are beside it, and which has its name, as far as the sync level of the file says.
    ///
    /// # Errors
    /// What the operating system reports.
    fn settle(&self) -> Result<(), StorageError>;

    /// Whether [`Beside::replace`] would leave everything as users see it: the file is an ordinary
    /// one, still has the name it was opened by, and has no other.
    fn replaceable(&self) -> bool;

    /// Bytes that the device has room for, as far as that can be said.
    fn room(&self) -> Option<u64> {
        None
    }

    /// Puts the copy, which must be complete, in the place of the file. The file's storage reads
    /// and writes it from now on; layers above have to be told by [`Storage::invalidate`], and
    /// [`Beside::settle`] makes it durable.
    ///
    /// # Errors
    /// What the operating system reports; the file is then as it was.
    fn replace(&self) -> Result<(), StorageError>;
}

/// The neighbours of a file in a folder of the operating system.
#[derive(Debug)]
pub(crate) struct InFolder {
    file: Arc<File>,
    /// The file's own path: where the path it was opened by is a symbolic link, what that means.
    path: PathBuf,
}

impl InFolder {
    pub(crate) fn of(file: Arc<File>) -> InFolder {
        let given = file.path();
        let path = match std::fs::read_link(given) {
            Ok(_) => std::fs::canonicalize(given).unwrap_or_else(|_| given.to_owned()),
            Err(_) => given.to_owned(),
        };
        InFolder { path, file }
    }

    /// The file's path as it is now: the program may have changed its folder, or somebody the name.
    fn path_now(&self) -> PathBuf {
        self.file.fd.path_now().unwrap_or_else(|| self.path.clone())
    }

    /// Removes what stands beside a file that has just been made or emptied. What cannot be removed
    /// does no harm: a journal knows its file.
    pub(crate) fn clear(&self) {
        for which in [Neighbour::Journal, Neighbour::Copy] {
            let _ = std::fs::remove_file(InFolder::sibling(&self.path, which));
        }
    }

    fn sibling(path: &Path, which: Neighbour) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(which.suffix());
        name.into()
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
        let named = Fd::open(path, libc::O_RDONLY).and_then(|fd| fd.status());
        let open = self.file.fd.status();
        matches!((named, open), (Ok(a), Ok(b)) if a.identity == b.identity)
    }
}

impl Beside for InFolder {
    fn create(&self, which: Neighbour) -> Result<Arc<dyn Storage>, StorageError> {
        let path = InFolder::sibling(&self.path_now(), which);
        // A name that is there may be a link to somewhere else: a new file is made in any case.
        InFolder::remove_at(&path)?;
        let made = File::open(&path, true, Create::Exclusive, self.file.level())?;
        made.fd.try_lock();
        let rights = made.fd.take_rights_of(&self.file.fd);
        // A journal is gone in a moment and need not belong to the same user; it then keeps the
        // rights it was made with.
        if let (Neighbour::Copy, Err(errno)) = (which, rights) {
            let _ = std::fs::remove_file(&path);
            return Err(InFolder::open_error(&path, errno));
        }
        Ok(Arc::new(made))
    }

    fn find(&self, which: Neighbour) -> Result<Option<Found>, StorageError> {
        let path = InFolder::sibling(&self.path, which);
        let open = |write| File::open(&path, write, Create::MustExist, self.file.level());
        let file = match open(true) {
            Err(StorageError::Open { errno: libc::EACCES | libc::EROFS | libc::EPERM, .. }) => {
                open(false)
            }
            other => other,
        };
        match file {
            Ok(file) => Ok(Some(Found { in_use: !file.fd.try_lock(), storage: Arc::new(file) })),
            // A name too long to have neighbours has none.
            Err(StorageError::Open { errno: libc::ENOENT | libc::ENAMETOOLONG, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn remove(&self, which: Neighbour) -> Result<(), StorageError> {
        InFolder::remove_at(&InFolder::sibling(&self.path_now(), which))
    }

    fn settle(&self) -> Result<(), StorageError> {
        if self.file.level() == SyncLevel::None {
            return Ok(());
        }
        let path = self.path_now();
        sync_folder_of(&path).map_err(|errno| self.file.error(Op::Sync, 0, 0, errno))
    }

    fn replaceable(&self) -> bool {
        let status = self.file.fd.status();
        status.is_ok_and(|status| status.regular && status.only_name)
            && self.names_the_file(&self.path_now())
    }

    fn room(&self) -> Option<u64> {
        self.file.fd.room().ok()
    }

    fn replace(&self) -> Result<(), StorageError> {
        let path = self.path_now();
        let copy_path = InFolder::sibling(&path, Neighbour::Copy);
        let copy = Fd::open(&copy_path, libc::O_RDWR)
            .map_err(|errno| InFolder::open_error(&copy_path, errno))?;
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
