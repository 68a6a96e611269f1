//! Objects in a folder: files by their paths in it. What takes the place of a server, on a disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zonda_runtime::fork::process_id;
use zonda_storage::RemoteFailure;

use super::{ListedObject, ObjectState, Objects, RangeRead, within};
use crate::RemoteError;

/// The objects of one folder. No key leads out of it, by `..` or by links.
#[derive(Debug)]
pub struct FolderObjects {
    /// Without links.
    root: PathBuf,
}

/// How the names of files end that are not complete.
const PART: &str = ".zonda-part";
/// Folders within folders.
const MOST_DEPTH: usize = 64;

impl FolderObjects {
    /// The objects of a folder, which has to be there.
    ///
    /// # Errors
    /// [`RemoteError`] where it is not.
    pub fn new(folder: &Path) -> Result<FolderObjects, RemoteError> {
        let wrong = |error: io::Error| {
            RemoteError::new(
                &folder.display().to_string().into(),
                failure_of(&error),
                error.to_string(),
            )
        };
        let root = std::fs::canonicalize(folder).map_err(wrong)?;
        if !root.is_dir() {
            return Err(wrong(io::ErrorKind::NotADirectory.into()));
        }
        Ok(FolderObjects { root })
    }

    fn error(&self, key: &str, error: &io::Error) -> RemoteError {
        RemoteError::new(&self.shown(key), failure_of(error), error.to_string())
    }

    fn wrong(&self, key: &str, kind: RemoteFailure, what: impl Into<Arc<str>>) -> RemoteError {
        RemoteError::new(&self.shown(key), kind, what)
    }

    /// The path of a key.
    fn path(&self, key: &str) -> Result<PathBuf, RemoteError> {
        let is_plain = Path::new(key).components().all(|part| matches!(part, Component::Normal(_)))
            && key.split('/').all(|part| !part.is_empty() && part != ".");
        if !is_plain || key.contains('\0') || key.ends_with(PART) {
            return Err(self.wrong(
                key,
                RemoteFailure::Unusable,
                "this is no key of an object in a folder",
            ));
        }
        Ok(self.root.join(key))
    }

    /// Looks whether a path that is there is in the folder, whatever links are on the way.
    fn check_within(&self, key: &str, path: &Path) -> Result<(), RemoteError> {
        let real = std::fs::canonicalize(path).map_err(|error| self.error(key, &error))?;
        if real.starts_with(&self.root) {
            Ok(())
        } else {
            Err(self.wrong(key, RemoteFailure::Denied, "a link leads out of the folder"))
        }
    }

    fn open(&self, key: &str) -> Result<(File, ObjectState), RemoteError> {
        let path = self.path(key)?;
        self.check_within(key, &path)?;
        // A pipe would be waited for.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
            .map_err(|error| self.error(key, &error))?;
        let status = file.metadata().map_err(|error| self.error(key, &error))?;
        if !status.is_file() {
            return Err(self.wrong(key, RemoteFailure::NotFound, "this is no regular file"));
        }
        let validator = format!(
            "\"{}-{}-{}.{}-{}\"",
            status.dev(),
            status.ino(),
            status.mtime(),
            status.mtime_nsec(),
            status.len()
        );
        Ok((file, ObjectState { len: status.len(), validator }))
    }

    /// Writes a file beside its place, and then puts it there.
    fn write(&self, key: &str, len: u64, source: &mut dyn Read) -> Result<(), RemoteError> {
        static N_WRITTEN: AtomicU64 = AtomicU64::new(0);
        let path = self.path(key)?;
        let fails = |error: io::Error| self.error(key, &error);
        let parent = path.parent().unwrap_or(&self.root);
        // What is there of the way is looked at before anything is made below it.
        let there = parent.ancestors().find(|folder| folder.exists()).unwrap_or(&self.root);
        self.check_within(key, there)?;
        std::fs::create_dir_all(parent).map_err(fails)?;
        self.check_within(key, parent)?;
        let part = parent.join(format!(
            ".{}-{}{PART}",
            process_id(),
            N_WRITTEN.fetch_add(1, Ordering::Relaxed)
        ));
        let written =
            OpenOptions::new().write(true).create_new(true).open(&part).and_then(|mut file| {
                let n = io::copy(&mut source.take(len.saturating_add(1)), &mut file)?;
                if n != len {
                    return Err(io::Error::other(format!(
                        "{len} bytes were to be written, and there are {}",
                        if n > len { "more".into() } else { n.to_string() }
                    )));
                }
                file.flush()?;
                file.sync_all()
            });
        let done = written.and_then(|()| std::fs::rename(&part, &path));
        done.map_err(|error| {
            // It may not have been made; the first failure is told.
            let _ = std::fs::remove_file(&part);
            fails(error)
        })
    }

    fn walk(&self, folder: &Path, depth: usize, found: &mut Vec<ListedObject>) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            // Of the entry itself: links are not followed.
            let status = match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                status => status?,
            };
            let path = entry.path();
            let Some(key) = path.strip_prefix(&self.root).ok().and_then(Path::to_str) else {
                continue;
            };
            if status.is_dir() && depth < MOST_DEPTH {
                self.walk(&path, depth + 1, found)?;
            } else if status.is_file() && !key.ends_with(PART) {
                found.push(ListedObject { key: key.to_owned(), len: status.len() });
            }
        }
        Ok(())
    }
}

fn failure_of(error: &io::Error) -> RemoteFailure {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            RemoteFailure::NotFound
        }
        io::ErrorKind::PermissionDenied => RemoteFailure::Denied,
        io::ErrorKind::ReadOnlyFilesystem => RemoteFailure::ReadOnly,
        io::ErrorKind::OutOfMemory => RemoteFailure::NoMemory,
        _ => RemoteFailure::Broken,
    }
}

impl Objects for FolderObjects {
    fn get_range(
        &self,
        key: &str,
        at: u64,
        buf: &mut [u8],
        known: Option<&ObjectState>,
    ) -> Result<RangeRead, RemoteError> {
        let asked = buf.len() as u64;
        let (file, state) = self.open(key)?;
        if known.is_some_and(|known| *known != state) {
            return Err(self
                .wrong(key, RemoteFailure::Broken, "the object has changed since it was opened")
                .of_range(at, asked));
        }
        let wanted = within(at..at.saturating_add(asked), state.len);
        // No longer than the buffer.
        let got = (wanted.end - wanted.start) as usize;
        if got > 0 {
            file.read_exact_at(&mut buf[..got], at)
                .map_err(|error| self.error(key, &error).of_range(at, asked))?;
        }
        Ok(RangeRead { got, state, whole: None })
    }

    fn get(&self, key: &str, most: u64) -> Result<(Vec<u8>, ObjectState), RemoteError> {
        let (file, state) = self.open(key)?;
        if state.len > most {
            return Err(self.wrong(
                key,
                RemoteFailure::Unusable,
                format!(
                    "the object has {} bytes: more than may be read of it at once ({most})",
                    state.len
                ),
            ));
        }
        let bytes = super::read_source(state.len, &mut &file)
            .map_err(|what| self.wrong(key, RemoteFailure::Broken, what))?;
        Ok((bytes, state))
    }

    fn put(&self, key: &str, bytes: &[u8]) -> Result<(), RemoteError> {
        self.write(key, bytes.len() as u64, &mut &*bytes)
    }

    fn put_from(&self, key: &str, len: u64, source: &mut dyn Read) -> Result<(), RemoteError> {
        self.write(key, len, source)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, RemoteError> {
        let mut found = Vec::new();
        self.walk(&self.root, 0, &mut found).map_err(|error| self.error(prefix, &error))?;
        found.retain(|object| object.key.starts_with(prefix));
        zonda_runtime::sort::sort_by(&mut found, |one, other| one.key.cmp(&other.key));
        Ok(found)
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        let path = self.path(key)?;
        let Some(parent) = path.parent().filter(|parent| parent.exists()) else { return Ok(()) };
        self.check_within(key, parent)?;
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.error(key, &error)),
            _ => Ok(()),
        }
    }

    fn shown(&self, key: &str) -> Arc<str> {
        self.root.join(key.trim_start_matches('/')).display().to_string().into()
    }
}
