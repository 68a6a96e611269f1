//! Files that values are taken from because another file names them: external data, sources of virtual
//! datasets, targets of links.
//!
//! Who makes a file decides what it names, so a file from elsewhere could make a program read, and hand
//! on, whatever its user may read. Therefore only files in the folder of the file itself are read, and in
//! folders that the user names in `ZONDA_EXTERNAL`. What counts is where a file is when all links are
//! followed.
//!
//! The file is found first without opening it (`O_PATH`), then looked at, then opened through what was
//! found: nobody can put another one in its place meanwhile, and no pipe or device is ever opened.

use super::{FileKind, Refusal, from_env};
use crate::SyncLevel;
use crate::backend::File;
use crate::error::StorageError;
use crate::os::{Errno, Fd};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The variable with folders, `:` between, from which files may take data; `/` allows all.
pub const VARIABLE: &str = "ZONDA_EXTERNAL";

/// What the environment says, where it is to be trusted: not in programs that run with more rights than
/// their caller has (set-user-id and the like).
#[must_use]
pub fn environment(variable: &str) -> Option<OsString> {
    from_env(variable).filter(|value| !value.is_empty())
}

/// The folders from which a file may take data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// Without links.
    folders: Vec<PathBuf>,
}

/// A file that may be read.
#[derive(Debug)]
pub struct DataFile {
    /// Its bytes.
    pub file: File,
    /// Where it is when all links are followed.
    pub resolved: PathBuf,
}

impl Allowed {
    /// Those of the file with this path: the folder it is in by that path, the one it is in when links
    /// are followed, and what `ZONDA_EXTERNAL` names.
    #[must_use]
    pub fn of(path: &Path) -> Allowed {
        Allowed::with(Some(path), environment(VARIABLE))
    }

    /// Those of a file in memory, which is in no folder.
    #[must_use]
    pub fn of_memory() -> Allowed {
        Allowed::with(None, environment(VARIABLE))
    }

    fn with(path: Option<&Path>, list: Option<OsString>) -> Allowed {
        let resolved = path.and_then(|path| path.canonicalize().ok());
        let own = [path, resolved.as_deref()];
        let own = own.into_iter().flatten().filter_map(|path| folder_of(path).canonicalize().ok());
        let named = list.iter().flat_map(std::env::split_paths);
        let named = named.filter(|folder| !folder.as_os_str().is_empty());
        let named = named.filter_map(|folder| folder.canonicalize().ok());
        let mut folders: Vec<PathBuf> = own.collect();
        folders.extend(named);
        folders.dedup();
        Allowed { folders }
    }

    fn has(&self, resolved: &Path) -> bool {
        self.folders.iter().any(|folder| resolved.starts_with(folder))
    }

    /// Opens a file for reading; `None` where there is none.
    ///
    /// # Errors
    /// [`StorageError::Refused`] for what is no regular file, or not in one of the folders;
    /// [`StorageError::Open`] for what the system does not open.
    pub fn open(&self, path: &Path) -> Result<Option<DataFile>, StorageError> {
        let path: Arc<Path> = Arc::from(path);
        let fail = |Errno(errno)| StorageError::Open { path: Arc::clone(&path), errno };
        let found = match Fd::open(&path, libc::O_PATH) {
            Ok(found) => found,
            // No such name, or none that a file can have.
            Err(Errno(
                libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ENAMETOOLONG | libc::EINVAL,
            )) => return Ok(None),
            Err(errno) => return Err(fail(errno)),
        };
        let status = found.status().map_err(fail)?;
        let refused =
            |why, path: &Path| StorageError::Refused { path: Arc::from(path), why, owner: None };
        if status.kind != FileKind::Regular {
            return Err(refused(Refusal::Kind(status.kind), &path));
        }
        // Without `/proc` nobody can say where the file is, and it is not opened.
        let resolved = found.path_now().ok_or_else(|| fail(Errno(libc::ENOSYS)))?;
        if !self.has(&resolved) {
            return Err(refused(Refusal::Outside, &resolved));
        }
        let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
        let fd = found.anew(flags).map_err(fail)?;
        Ok(Some(DataFile { file: File::of_fd(fd, &path, false, SyncLevel::None), resolved }))
    }
}

/// The folder of a file; a name alone is in the working directory.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        // Only a root has none.
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Storage;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// What opening gives: `missing`, the reason, or the bytes.
    fn outcome(allowed: &Allowed, path: &Path) -> String {
        match allowed.open(path) {
            Ok(None) => String::from("missing"),
            Ok(Some(data)) => {
                let mut bytes = [0; 8];
                let n = data.file.read_at(0, &mut bytes).unwrap();
                assert_eq!(data.resolved, path.canonicalize().unwrap());
                String::from_utf8_lossy(&bytes[..n]).into_owned()
            }
            Err(StorageError::Refused { why: Refusal::Outside, .. }) => String::from("outside"),
            Err(StorageError::Refused { why: Refusal::Kind(kind), .. }) => kind.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// The folders `home`, `out` and `home-too`, with files of every kind in them. All of it goes with the first.
    fn folders() -> (TempDir, PathBuf, PathBuf, PathBuf) {
        let top = TempDir::with_prefix("zonda-data-").unwrap();
        let (home, out) = (top.path().join("home"), top.path().join("out"));
        std::fs::create_dir_all(home.join("sub")).unwrap();
        std::fs::create_dir_all(&out).unwrap();
        let twin = top.path().join("home-too");
        std::fs::create_dir_all(&twin).unwrap();
        for (path, text) in [
            (home.join("a.nc"), "file"),
            (home.join("in"), "in"),
            (home.join("sub/in"), "sub"),
            (out.join("out"), "out"),
            (twin.join("twin"), "twin"),
        ] {
            std::fs::write(path, text).unwrap();
        }
        symlink(home.join("in"), home.join("to-in")).unwrap();
        symlink(out.join("out"), home.join("to-out")).unwrap();
        symlink(&out, home.join("folder-out")).unwrap();
        symlink("nowhere", home.join("dangling")).unwrap();
        symlink("self", home.join("self")).unwrap();
        symlink(home.join("a.nc"), out.join("link.nc")).unwrap();
        std::fs::hard_link(out.join("out"), home.join("second-name")).unwrap();
        assert!(
            std::process::Command::new("mkfifo").arg(home.join("fifo")).status().unwrap().success()
        );
        (top, home, out, twin)
    }

    #[test]
    fn only_regular_files_in_allowed_folders_are_opened() {
        let (_top, home, out, twin) = folders();
        let own = Allowed::with(Some(&home.join("a.nc")), None);
        let cases = [
            ("in", "in"),
            ("sub/in", "sub"),
            ("sub/../in", "in"),
            ("../home/in", "in"),
            ("to-in", "in"),
            // Whose bytes these are does not depend on how many names they have.
            ("second-name", "out"),
            ("../out/out", "outside"),
            ("to-out", "outside"),
            ("folder-out/out", "outside"),
            // A folder whose name begins alike is another one.
            ("../home-too/twin", "outside"),
            ("nothing", "missing"),
            ("in/nothing", "missing"),
            ("dangling", "missing"),
            ("self", "missing"),
            ("fifo", "a named pipe (FIFO)"),
            ("sub", "a folder"),
            ("/dev/zero", "a device"),
        ];
        for (name, expected) in cases {
            assert_eq!(outcome(&own, &home.join(name)), expected, "{name}");
        }
        let all = Allowed::with(Some(&home.join("a.nc")), Some("/".into()));
        for (name, expected) in cases {
            let expected = match (name, expected) {
                ("../home-too/twin", _) => "twin",
                (_, "outside") => "out",
                (_, other) => other,
            };
            assert_eq!(outcome(&all, &home.join(name)), expected, "{name}");
        }
        // By way of a link, both its folder and that of the file.
        let linked = Allowed::with(Some(&out.join("link.nc")), None);
        assert_eq!(outcome(&linked, &out.join("out")), "out");
        assert_eq!(outcome(&linked, &home.join("in")), "in");
        assert_eq!(outcome(&linked, &twin.join("twin")), "outside");
        let mut list = OsString::from("/nonexistent::");
        list.push(&twin);
        let named = Allowed::with(Some(&home.join("a.nc")), Some(list));
        assert_eq!(outcome(&named, &twin.join("twin")), "twin");
        assert_eq!(outcome(&named, &out.join("out")), "outside");
    }
}
