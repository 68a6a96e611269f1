//! Files that get their name when they are complete, and what is left of them when their maker is killed.
//!
//! Until then such a file has the name of its target with `.zonda-new-PID-N` behind it, and its maker
//! holds a lock of one byte of it that ends with the process, however that ends. So whoever makes the next
//! one in the same folder can tell which files nobody will complete, and removes them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::backend::File;
use crate::os::{Errno, Fd};
use crate::{StorageError, SyncLevel};

/// Between the name of the target and numbers.
const MARK: &[u8] = b".zonda-new-";
/// Behind the numbers of a file that takes pieces on their way into such a file.
const PIECES: &[u8] = b"-pieces";
/// Bytes of a name in a folder, less what names beside it add.
const MOST_NAME: usize = 240;
/// The byte that the maker of the file locks: beside those that libhdf5 and writers of this library lock.
const MAKERS_BYTE: i64 = i64::MAX - 2;

/// A file that is being made; it is nobody's any more once this is dropped.
#[derive(Debug)]
pub struct TemporaryFile {
    /// Kept open for the lock.
    _fd: Fd,
}

fn io_error(Errno(errno): Errno) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Makes an empty file beside `target` under a name of its own, and removes what others that were killed
/// left in that folder.
///
/// # Errors
/// What the operating system reports.
pub fn create_beside(target: &Path) -> io::Result<(PathBuf, TemporaryFile)> {
    remove_abandoned(folder_of(target));
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.as_bytes();
    for number in 0..u32::MAX {
        let path = target.with_file_name(OsStr::from_bytes(&named(name, number)));
        if let Some(held) = create(&path)? {
            return Ok((path, held));
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// An empty file in the folder of `target` that has no name, and is gone when it is dropped or the process
/// ends. Barriers of it say what a file server would say when it is closed.
///
/// # Errors
/// What the operating system reports.
pub fn nameless_beside(target: &Path) -> Result<Arc<File>, StorageError> {
    let target = std::fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
    // For messages.
    let shown = folder_of(&target).join("(file without a name)");
    let failed = |errno| StorageError::Open { path: Arc::from(&*shown), errno };
    let fd = match Fd::open(folder_of(&target), libc::O_TMPFILE | libc::O_RDWR | libc::O_EXCL) {
        Ok(fd) => fd,
        // A file system, or a kernel, that has none: a name for a moment.
        Err(Errno(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT | libc::EINVAL)) => {
            let named = create_beside(&target);
            let (path, _held) = named.map_err(|e| failed(e.raw_os_error().unwrap_or(libc::EIO)))?;
            let fd = Fd::open(&path, libc::O_RDWR | libc::O_NOFOLLOW);
            let removed = std::fs::remove_file(&path);
            removed.map_err(|error| failed(error.raw_os_error().unwrap_or(libc::EIO)))?;
            fd.map_err(|Errno(errno)| failed(errno))?
        }
        Err(Errno(errno)) => return Err(failed(errno)),
    };
    Ok(Arc::new(File::of_fd(fd, &shown, true, SyncLevel::None).asking_close()))
}

/// The name, shortened to fit, at a boundary of characters where it is text.
fn named(name: &[u8], number: u32) -> Vec<u8> {
    let suffix = format!("{}-{number}", std::process::id());
    let mut kept = name.len().min(MOST_NAME - MARK.len() - suffix.len());
    while std::str::from_utf8(name).is_ok() && std::str::from_utf8(&name[..kept]).is_err() {
        kept -= 1;
    }
    [&name[..kept], MARK, suffix.as_bytes()].concat()
}

/// A new file with the lock of its maker; `None` if the name is taken, or was taken away again.
fn create(path: &Path) -> io::Result<Option<TemporaryFile>> {
    let fd = match Fd::open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW) {
        Ok(fd) => fd,
        Err(Errno(libc::EEXIST)) => return Ok(None),
        Err(errno) => return Err(io_error(errno)),
    };
    // Any other error is that of a file system without locks: nobody will be able to tell that it is
    // abandoned.
    if let Err(Errno(libc::EAGAIN | libc::EACCES)) = fd.lock_byte(MAKERS_BYTE, libc::F_WRLCK) {
        // Somebody who looks for abandoned files saw it before it was locked.
        return Ok(None);
    }
    let is_there = is_named(&fd, path);
    Ok(is_there.then_some(TemporaryFile { _fd: fd }))
}

/// Opens a file of that name, or makes one, and locks it as its maker does. `None` where another process, or another part of this one, has it.
///
/// # Errors
/// What the operating system reports; a symbolic link is not followed.
pub fn hold(path: &Path) -> io::Result<Option<TemporaryFile>> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let fd = Fd::open(path, flags).map_err(io_error)?;
    if let Err(Errno(libc::EAGAIN | libc::EACCES)) = fd.lock_byte(MAKERS_BYTE, libc::F_WRLCK) {
        return Ok(None);
    }
    let is_there = is_named(&fd, path);
    Ok(is_there.then_some(TemporaryFile { _fd: fd }))
}

/// Whether the file has that name still.
fn is_named(fd: &Fd, path: &Path) -> bool {
    let named = std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()));
    let own = fd.status().map(|status| status.identity);
    matches!((named, own), (Ok(named), Ok(own)) if named == own)
}

/// Whether a name is one that [`named`] makes, or one of the pieces.
fn is_ours(name: &[u8]) -> bool {
    let name = name.strip_suffix(PIECES).unwrap_or(name);
    let Some(at) = name.windows(MARK.len()).rposition(|part| part == MARK) else { return false };
    let mut numbers = name[at + MARK.len()..].split(|&byte| byte == b'-');
    let mut is_number = || {
        let number = numbers.next().unwrap_or_default();
        !number.is_empty() && number.iter().all(u8::is_ascii_digit)
    };
    at > 0 && is_number() && is_number() && numbers.next().is_none()
}

/// Removes the files of a folder that their makers abandoned: those with such a name that are regular
/// files, belong to us, and whose lock nobody has. What cannot be looked at stays.
fn remove_abandoned(folder: &Path) {
    // What this process has the rights of.
    let Ok(own) = std::fs::metadata("/proc/self").map(|own| own.uid()) else { return };
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| is_ours(entry.file_name().as_bytes())) {
        let path = entry.path();
        let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let is_own = |found: std::fs::Metadata| found.is_file() && found.uid() == own;
        if !entry.metadata().is_ok_and(is_own) {
            continue;
        }
        let Ok(fd) = Fd::open(&path, flags) else { continue };
        // Held while it is removed, so that nobody takes it for theirs meanwhile.
        let is_free = || fd.lock_byte(MAKERS_BYTE, libc::F_WRLCK).is_ok();
        if is_free() && is_named(&fd, &path) {
            // Whoever may not remove files here leaves it to others.
            let _ = std::fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Storage;
    use zonda_testkit::TempFolder;

    #[test]
    fn names() {
        for (name, is) in [
            (&b"a.nc.zonda-new-1-0"[..], true),
            (b"a.zonda-new-1-0.zonda-new-22-3", true),
            (b"a.nc.zonda-new-1-0-pieces", true),
            (b".zonda-new-1-0", false),
            (b"a.nc.zonda-new-1", false),
            (b"a.nc.zonda-new-1-", false),
            (b"a.nc.zonda-new-1-x", false),
            (b"a.nc.zonda-new-1-0-0", false),
            (b"a.nc.zonda-new-1-0.bak", false),
            (b"a.nc", false),
        ] {
            assert_eq!(is_ours(name), is, "{}", String::from_utf8_lossy(name));
        }
        let long = "é".repeat(200).into_bytes();
        for name in [&long[..], &[0xff; 255], b"a.nc"] {
            let made = named(name, u32::MAX);
            assert!(is_ours(&made) && made.len() <= MOST_NAME, "{}", made.len());
            assert_eq!(std::str::from_utf8(&made).is_ok(), std::str::from_utf8(name).is_ok());
        }
    }

    #[test]
    fn only_what_is_abandoned_goes() {
        let folder = TempFolder::new("temporary");
        let at = |name: &str| folder.path().join(name);
        let (alive, held) = create_beside(&at("alive.nc")).unwrap();
        let (dead, gone) = create_beside(&at("dead.nc")).unwrap();
        drop(gone);
        std::fs::write(at("dead.nc.zonda-new-7-0-pieces"), "x").unwrap();
        for foreign in ["mine.zonda-new-1-0.nc", "mine.zonda-new-", "x.nc.zonda-journal"] {
            std::fs::write(at(foreign), "x").unwrap();
        }
        std::fs::create_dir(at("folder.zonda-new-1-0")).unwrap();
        std::os::unix::fs::symlink(at("mine.zonda-new-"), at("link.zonda-new-1-0")).unwrap();
        let (next, _next_held) = create_beside(&at("alive.nc")).unwrap();
        assert_ne!(alive, next);
        assert!(alive.exists() && next.exists() && !dead.exists());
        let mut left: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.starts_with("alive"))
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                "folder.zonda-new-1-0",
                "link.zonda-new-1-0",
                "mine.zonda-new-",
                "mine.zonda-new-1-0.nc",
                "x.nc.zonda-journal"
            ]
        );
        drop(held);
        remove_abandoned(folder.path());
        assert!(!alive.exists() && next.exists());
    }

    #[test]
    fn a_file_without_a_name_leaves_nothing() {
        let folder = TempFolder::new("temporary-nameless");
        let file = nameless_beside(&folder.file("x.nc")).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        file.write_at(1 << 20, b"wind").unwrap();
        file.barrier().unwrap();
        let mut bytes = [0; 6];
        assert_eq!(file.read_at((1 << 20) - 2, &mut bytes).unwrap(), 6);
        assert_eq!(&bytes, b"\0\0wind");
        let room = file.room().unwrap();
        assert!(room.free <= room.size && room.size > 1 << 20, "{room:?}");
        let error = nameless_beside(&folder.file("none/x.nc")).unwrap_err();
        assert_eq!(error.raw_os_error(), libc::ENOENT);
    }

    #[test]
    fn makers_beside_each_other_do_not_take_what_is_alive() {
        let folder = TempFolder::new("temporary-race");
        let target = folder.path().join("x.nc");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let (path, held) = create_beside(&target).unwrap();
                        std::thread::yield_now();
                        assert!(path.exists(), "taken from its living maker");
                        drop(held);
                    }
                });
            }
        });
        remove_abandoned(folder.path());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
