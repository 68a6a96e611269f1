//! The target is written under a temporary name beside its own, and gets its own when it is complete.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use zonda_model::NcError;
use zonda_storage::SyncLevel;
use zonda_storage::temporary::{self, TemporaryFile};

use super::upload::Upload;
use crate::error::{Error, Result};
use crate::format;
use crate::place::{is_url, shown_name};

/// `EEXIST` of Linux on every architecture.
const EEXIST: i32 = 17;

/// Why a target is refused that is the source.
const IS_SOURCE: &str = "the target is the source; give another path";

/// Why a target is refused that is there and is not to be replaced.
pub(super) const EXISTS: &str = "a file is there already, and it is not replaced: give another path, or have it replaced (-f; in Python replace=True)";

/// A file that is being written, removed unless it is finished. Where the process is killed before, the
/// next one that makes such a file in this folder removes it.
///
/// See [`copy`](crate::copy::copy()).
#[derive(Debug)]
pub struct Temporary {
    /// Final path; where that is a symbolic link, the path that it leads to.
    path: PathBuf,
    temporary: PathBuf,
    /// Holds a lock that shows others that the temporary file is in use.
    _held: Option<TemporaryFile>,
    /// Set where the target is a URL.
    upload: Option<Upload>,
    replace: bool,
    /// A dataset that is not one file is made in a folder.
    is_folder: bool,
    finished: bool,
}

/// Behind the name of a target: the part of it that is there.
pub(super) const PART: &str = ".zonda-part";

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

pub(super) fn at(path: &Path, error: &io::Error) -> Error {
    Error::from(NcError::System(error.raw_os_error().unwrap_or(0))).at(path)
}

impl Temporary {
    /// Makes an empty temporary file for a target at `target`, which must not be the file at `source`.
    ///
    /// # Errors
    /// `NC_EEXIST` for a target that exists and is not to be replaced; `NC_EINVAL` for one that is
    /// the source or no ordinary file.
    pub fn beside(target: &Path, source: &Path, replace: bool) -> Result<Temporary> {
        if is_url(target) {
            return Temporary::to_server(target, replace);
        }
        Temporary::named(Temporary::check(target, source, replace)?, replace)
    }

    /// The same for a file that has a name by which a later copy finds it, and is not removed here. Whoever calls this sees to it that nobody else has
    /// it, and makes the file.
    ///
    /// # Errors
    /// As [`Temporary::beside`].
    pub(super) fn known(target: &Path, source: &Path, replace: bool) -> Result<Temporary> {
        let path = Temporary::check(target, source, replace)?;
        let temporary = with_suffix(&path, PART);
        let (is_folder, finished) = (false, true);
        Ok(Temporary { path, temporary, _held: None, upload: None, replace, is_folder, finished })
    }

    /// The path of another file beside the target.
    pub(super) fn beside_target(&self, suffix: &str) -> PathBuf {
        with_suffix(&self.path, suffix)
    }

    /// The path of a target, which may be made.
    fn check(target: &Path, source: &Path, replace: bool) -> Result<PathBuf> {
        // A symbolic link stays, and the file that it leads to is replaced.
        let path = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        match fs::metadata(&path) {
            Ok(found) => {
                let is_source = fs::metadata(source)
                    .is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()));
                let refused = match () {
                    () if is_source => Some((NcError::Inval, IS_SOURCE)),
                    () if !found.is_file() => {
                        Some((NcError::Inval, "the target is no regular file; give another path"))
                    }
                    () if !replace => Some((NcError::Exist, EXISTS)),
                    () => None,
                };
                if let Some((code, why)) = refused {
                    return Err(Error::with_text(code, why).at(target));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(at(&path, &error)),
        }
        let folder = folder_of(&path);
        fs::metadata(folder).map_err(|error| at(folder, &error))?;
        if path.file_name().is_none() {
            return Err(Error::with_text(
                NcError::Inval,
                "the target is a path without a file name; give a name, too",
            )
            .at(target));
        }
        Ok(path)
    }

    fn named(path: PathBuf, replace: bool) -> Result<Temporary> {
        let made = temporary::create_beside(&path);
        let (temporary, held) = made.map_err(|error| at(&path, &error))?;
        let (is_folder, finished) = (false, false);
        let (held, upload) = (Some(held), None);
        Ok(Temporary { path, temporary, _held: held, upload, replace, is_folder, finished })
    }

    /// A file that goes to a server when it is complete.
    fn to_server(target: &Path, replace: bool) -> Result<Temporary> {
        let upload = Upload::to(target, replace).map_err(|error| error.at(target))?;
        Ok(Temporary {
            path: shown_name(target).into_owned(),
            temporary: upload.working_path(),
            _held: None,
            upload: Some(upload),
            replace,
            is_folder: false,
            finished: false,
        })
    }

    /// The same for a target that becomes a folder. Where the process is killed, the incomplete folder stays.
    ///
    /// # Errors
    /// As [`Temporary::beside`]; only a dataset that is a folder is replaced.
    pub(crate) fn folder_beside(target: &Path, source: &Path, replace: bool) -> Result<Temporary> {
        if is_url(target) {
            let why = "datasets of this format are folders, which are not sent to servers";
            return Err(Error::because(NcError::Inval, why).at(target));
        }
        let path = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        if path.exists() {
            let is_source = fs::canonicalize(source).is_ok_and(|source| source == path);
            let refused = match () {
                () if is_source => Some((NcError::Inval, IS_SOURCE)),
                () if format::on_path(&path).is_none() => Some((
                    NcError::Exist,
                    "there is something else than a dataset, and it is not replaced; give another path",
                )),
                () if !replace => Some((NcError::Exist, EXISTS)),
                () => None,
            };
            if let Some((code, why)) = refused {
                return Err(Error::with_text(code, why).at(target));
            }
        }
        if path.file_name().is_none() {
            return Err(Error::with_text(
                NcError::Inval,
                "the target is a path without a file name; give a name, too",
            )
            .at(target));
        }
        let mut made = Temporary::named(path, replace)?;
        // The name was reserved by a file; the format makes the folder.
        fs::remove_file(&made.temporary).map_err(|error| at(&made.temporary, &error))?;
        made.is_folder = true;
        Ok(made)
    }

    /// Gives the folder its name. A folder that is replaced is removed afterwards.
    fn finish_folder(mut self) -> Result<()> {
        let old = self.temporary.with_extension("old");
        let is_there = self.path.exists();
        if is_there && !self.replace {
            return Err(Error::with_text(NcError::Exist, EXISTS).at(&self.path));
        }
        if is_there {
            fs::rename(&self.path, &old).map_err(|error| at(&self.path, &error))?;
        }
        fs::rename(&self.temporary, &self.path).map_err(|error| at(&self.path, &error))?;
        self.finished = true;
        if is_there { format::remove_on_path(&old).unwrap_or(Ok(())) } else { Ok(()) }
    }

    /// Where the file is to be written.
    pub fn working_path(&self) -> &Path {
        &self.temporary
    }

    /// Gives the file, which is complete, its name.
    ///
    /// # Errors
    /// What the operating system reports; `NC_EEXIST` for a target that was made meanwhile.
    pub fn finish(mut self) -> Result<()> {
        if self.is_folder {
            return self.finish_folder();
        }
        if let Some(upload) = &self.upload {
            return upload.send().map_err(|error| error.at(&self.path));
        }
        if let Ok(old) = fs::metadata(&self.path) {
            // The new file gets the permissions of the old one; where that fails, the old one is not replaced. On a
            // file system without permissions both show the same.
            let kept = fs::set_permissions(&self.temporary, old.permissions());
            let is_same = |new: fs::Metadata| new.permissions() == old.permissions();
            if let Err(error) = kept
                && !fs::metadata(&self.temporary).is_ok_and(is_same)
            {
                return Err(at(&self.path, &error));
            }
        }
        let named = match self.replace {
            true => fs::rename(&self.temporary, &self.path),
            false => self.rename_to_new(),
        };
        named.map_err(|error| match error.raw_os_error() {
            Some(EEXIST) => Error::with_text(NcError::Exist, EXISTS).at(&self.path),
            _ => at(&self.path, &error),
        })?;
        self.finished = true;
        zonda_storage::neighbour::forget(&self.path);
        if SyncLevel::from_env() == SyncLevel::Full {
            let folder = folder_of(&self.path);
            let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(|error| at(folder, &error))?;
        }
        Ok(())
    }

    /// Renames the temporary file; fails where a file of the final name exists, even if it was made a moment ago.
    fn rename_to_new(&self) -> io::Result<()> {
        match fs::hard_link(&self.temporary, &self.path) {
            Ok(()) => fs::remove_file(&self.temporary),
            Err(error) if error.raw_os_error() == Some(EEXIST) => Err(error),
            // A file system without hard links.
            Err(_) if self.path.exists() => Err(io::Error::from_raw_os_error(EEXIST)),
            Err(_) => fs::rename(&self.temporary, &self.path),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.finished {
            let _ = match self.is_folder {
                true => fs::remove_dir_all(&self.temporary),
                false => fs::remove_file(&self.temporary),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_testkit::TempFolder;

    #[test]
    fn names_and_refusals() {
        let folder = TempFolder::new("copy-target");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("source"), "a").unwrap();
        std::os::unix::fs::symlink(at("source"), at("link")).unwrap();
        let code = |target: &str, replace| {
            Temporary::beside(&at(target), &at("source"), replace).map(drop).map_err(|e| e.code())
        };
        assert_eq!(code("source", true), Err(NcError::Inval));
        assert_eq!(code("link", true), Err(NcError::Inval));
        assert_eq!(code(".", true), Err(NcError::Inval));
        fs::write(at("old"), "b").unwrap();
        assert_eq!(code("old", false), Err(NcError::Exist));
        assert_eq!(code("old", true), Ok(()));

        let long = "é".repeat(120);
        let target = Temporary::beside(&at(&long), &at("source"), false).unwrap();
        fs::write(target.working_path(), "c").unwrap();
        fs::write(at(&long), "in between").unwrap();
        assert_eq!(target.finish().unwrap_err().code(), NcError::Exist);
        assert_eq!(fs::read(at(&long)).unwrap(), b"in between");
        let target = Temporary::beside(&at(&long), &at("source"), true).unwrap();
        fs::write(target.working_path(), "d").unwrap();
        target.finish().unwrap();
        assert_eq!(fs::read(at(&long)).unwrap(), b"d");

        fs::remove_file(at("link")).unwrap();
        std::os::unix::fs::symlink(at("old"), at("link")).unwrap();
        let target = Temporary::beside(&at("link"), &at("source"), true).unwrap();
        fs::write(target.working_path(), "e").unwrap();
        target.finish().unwrap();
        assert_eq!(fs::read(at("old")).unwrap(), b"e");
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        drop(Temporary::beside(&at("new"), &at("source"), true).unwrap());
        let first = Temporary::beside(&at("new"), &at("source"), true).unwrap();
        let second = Temporary::beside(&at("new"), &at("source"), true).unwrap();
        assert_ne!(first.working_path(), second.working_path());
        drop((first, second));
        // Of one that was killed, whose lock is gone.
        fs::write(at("old.zonda-new-1-0"), "left behind").unwrap();
        let third = Temporary::beside(&at("new"), &at("source"), true).unwrap();
        assert!(!at("old.zonda-new-1-0").exists());
        drop(third);
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 4, "source, old, link, the long name");
    }
}
