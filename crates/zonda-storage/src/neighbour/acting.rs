//! Files that change the file they stand beside, or take its place: journal, copy, temporary file.
//!
//! Their names are known, so anybody who may write to the folder can put something there. What is found is used only if it is a
//! regular file of one name that belongs to the owner of the file, to root or to the user of this process: each of them could
//! have changed the file itself. Another user's is used only when the user of this process says so, by name.
//!
//! The helper process needs no name in a folder: it is reached through a pair of sockets.

use super::{FileKind, Refusal, open_at_once};
use crate::backend::File;
use crate::os::{Errno, Fd, Status, own_user};
use crate::{StorageError, SyncLevel};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::Arc;

/// Bit of a mode by which everybody may write.
const OTHERS_WRITE: u32 = 0o002;

/// Bits of a mode that are the group's.
const GROUP: u32 = 0o070;

/// The users whose files beside `file` are trusted.
#[derive(Debug, Clone, Copy)]
struct Trusted {
    /// The file that they stand beside.
    file: Status,
    /// Another user, whom the user of this process named.
    also: Option<u32>,
}

impl Trusted {
    /// Why the file there is not used; `None` if it may be.
    fn refusal(&self, found: &Status) -> Option<Refusal> {
        let owner = found.owner.0;
        let is_known = owner == self.file.owner.0 || owner == 0 || owner == own_user();
        // Who may write the file could change it without its journal.
        let others_write = found.mode & OTHERS_WRITE != 0 && self.file.mode & OTHERS_WRITE == 0;
        match () {
            () if !found.is_regular() => Some(Refusal::Kind(found.kind)),
            () if !found.only_name => Some(Refusal::SeveralLinks),
            () if !is_known && self.also != Some(owner) => Some(Refusal::Owner),
            () if others_write => Some(Refusal::Writable),
            () => None,
        }
    }

    fn check(&self, path: &Path, found: &Status) -> Result<(), StorageError> {
        self.refusal(found).map_or(Ok(()), |why| Err(refused(path, why, Some(found.owner.0))))
    }
}

fn refused(path: &Path, why: Refusal, owner: Option<u32>) -> StorageError {
    StorageError::Refused { path: Arc::from(path), why, owner }
}

fn open_error(path: &Path, Errno(errno): Errno) -> StorageError {
    StorageError::Open { path: Arc::from(path), errno }
}

/// What stands at `path` beside `file`, for writing where that is allowed; none where nothing does. A
/// file of the user `also` is taken, too.
///
/// # Errors
/// [`StorageError::Refused`] for what is not to be used; [`StorageError::Open`].
pub(crate) fn open(
    path: &Path,
    file: &Fd,
    also: Option<u32>,
    level: SyncLevel,
) -> Result<Option<File>, StorageError> {
    let before = match Status::of_name(path) {
        // A name too long to have neighbours has none.
        Err(Errno(libc::ENOENT | libc::ENAMETOOLONG)) => return Ok(None),
        found => found.map_err(|errno| open_error(path, errno))?,
    };
    let trusted = Trusted { file: file.status().map_err(|errno| open_error(path, errno))?, also };
    // To open a device can have effects: it is looked at first.
    trusted.check(path, &before)?;
    let open = |access| open_at_once(path, access | libc::O_NOFOLLOW);
    let (opened, writable) = match open(libc::O_RDWR) {
        Err(Errno(libc::EACCES | libc::EROFS | libc::EPERM)) => (open(libc::O_RDONLY), false),
        opened => (opened, true),
    };
    let (fd, status) = match opened {
        Err(Errno(libc::ENOENT)) => return Ok(None),
        Err(Errno(libc::ELOOP)) => {
            return Err(refused(path, Refusal::Kind(FileKind::SymbolicLink), None));
        }
        opened => opened.map_err(|errno| open_error(path, errno))?,
    };
    // Whoever it belonged to is done with it.
    if status.is_removed {
        return Ok(None);
    }
    // The file may have been exchanged since it was looked at; an open one cannot be.
    trusted.check(path, &status)?;
    Ok(Some(File::of_fd(fd, path, writable, level)))
}

/// Makes an empty file in the place of what stands at `path`, which is removed and not followed.
///
/// # Errors
/// [`StorageError::Refused`] where there is something that cannot be removed, such as another user's
/// file in a folder whose files only their owners may remove; [`StorageError::Open`].
pub(crate) fn make(path: &Path, level: SyncLevel) -> Result<File, StorageError> {
    if let Err(error) = std::fs::remove_file(path)
        && !matches!(error.raw_os_error(), Some(libc::ENOENT))
    {
        let errno = Errno(error.raw_os_error().unwrap_or(libc::EIO));
        let Ok(found) = Status::of_name(path) else { return Err(open_error(path, errno)) };
        let why = match found.kind {
            FileKind::Regular => Refusal::Owner,
            kind => Refusal::Kind(kind),
        };
        let is_ours = why == Refusal::Owner && found.owner.0 == own_user();
        return Err(if is_ours {
            open_error(path, errno)
        } else {
            refused(path, why, Some(found.owner.0))
        });
    }
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
    let fd = Fd::open(path, flags).map_err(|errno| open_error(path, errno))?;
    Ok(File::of_fd(fd, path, true, level))
}

/// Gives the new file the rights of `file`, as far as possible: `file` may belong to another user. An error means that it does
/// not have all of them.
pub(crate) fn take_rights(made: &Fd, file: &Fd) -> Result<(), Errno> {
    let taken = made.take_rights_of(file);
    if let (Err(_), Ok(mine), Ok(its)) = (taken, made.status(), file.status()) {
        let group_is_its = mine.owner.1 == its.owner.1 || made.take_group(its.owner.1).is_ok();
        // Another group does not get what that of the file may do.
        let mode = if group_is_its { its.mode } else { its.mode & !GROUP };
        let _ = made.set_mode(mode & 0o777);
    }
    taken
}

/// A number that no other journal has, so that parts of two are not taken for one.
#[must_use]
pub fn journal_id() -> [u8; 16] {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_nanos());
    let mut id = [0; 16];
    for half in id.as_chunks_mut::<8>().0 {
        // Its keys come from the system's random numbers; a forked child has the same, so process and
        // time are added.
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.write_u128(now);
        *half = hasher.finish().to_le_bytes();
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use zonda_testkit::TempFolder;

    fn why(found: Result<Option<File>, StorageError>) -> Option<Refusal> {
        match found {
            Err(StorageError::Refused { why, .. }) => Some(why),
            Err(error) => panic!("{error}"),
            Ok(_) => None,
        }
    }

    #[test]
    fn only_a_regular_file_of_one_name_is_taken() {
        let folder = TempFolder::new("acting");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "f").unwrap();
        std::fs::set_permissions(at("file"), PermissionsExt::from_mode(0o644)).unwrap();
        let (file, _) = open_at_once(&at("file"), libc::O_RDONLY).unwrap();
        let find = || open(&at("near"), &file, None, SyncLevel::None);
        let look = || why(find());
        assert!(find().unwrap().is_none());
        let kinds: [(&str, Refusal); 4] = [
            ("fifo", Refusal::Kind(FileKind::Fifo)),
            ("link", Refusal::Kind(FileKind::SymbolicLink)),
            ("folder", Refusal::Kind(FileKind::Folder)),
            ("two names", Refusal::SeveralLinks),
        ];
        for (kind, expected) in kinds {
            match kind {
                "fifo" => crate::os::tests::make_fifo(&at("near")),
                "link" => symlink(at("file"), at("near")).unwrap(),
                "folder" => std::fs::create_dir(at("near")).unwrap(),
                _ => std::fs::hard_link(at("file"), at("near")).unwrap(),
            }
            assert_eq!(look(), Some(expected), "{kind}");
            let made = make(&at("near"), SyncLevel::None);
            if kind == "folder" {
                assert!(made.unwrap_err().is_refused());
                std::fs::remove_dir(at("near")).unwrap();
            } else {
                made.unwrap();
                assert_eq!(look(), None, "{kind}");
                assert_eq!(std::fs::read(at("file")).unwrap(), b"f", "{kind}");
            }
            let _ = std::fs::remove_file(at("near"));
        }
        std::fs::write(at("near"), "n").unwrap();
        std::fs::set_permissions(at("near"), PermissionsExt::from_mode(0o646)).unwrap();
        assert_eq!(look(), Some(Refusal::Writable));
    }

    #[test]
    fn no_two_ids_are_one() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| journal_id()).collect();
        assert_eq!(ids.len(), 1000);
    }
}
