//! Finding the files that a file names: at the places where libhdf5 looks, as far as these are allowed
//! ([`zonda_storage::neighbour::data`]).
//!
//! The first place with a file decides. If that file is refused, or cannot be read, the lookup is an error: a file at a
//! later place would have other data than libhdf5 reads.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use zonda_hdf5::HdfError;
use zonda_storage::StorageError;
use zonda_storage::neighbour::Refusal;
use zonda_storage::neighbour::data::{Allowed, DataFile, environment};

/// What a file is named for. libhdf5 has an environment variable with prefixes for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileRole {
    /// The file of an external link.
    Link,
    /// A source of a virtual dataset.
    Virtual,
    /// The bytes of a dataset.
    Bytes,
}

impl FileRole {
    /// The words of messages for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FileRole::Link => "external link to",
            FileRole::Virtual => "virtual dataset with the source",
            FileRole::Bytes => "external data in",
        }
    }

    fn variable(self) -> &'static str {
        match self {
            FileRole::Link => "HDF5_EXT_PREFIX",
            FileRole::Virtual => "HDF5_VDS_PREFIX",
            FileRole::Bytes => "HDF5_EXTFILE_PREFIX",
        }
    }

    /// An error about the file of this name.
    pub(crate) fn fault(self, name: &[u8], cause: HdfError) -> HdfError {
        let name = String::from_utf8_lossy(name).into();
        HdfError::InOtherFile { what: self.name(), name, cause: Box::new(cause) }
    }
}

/// The path of a file that names others: as it was opened, and with links resolved.
#[derive(Clone, Debug)]
pub(crate) struct FilePath {
    pub(crate) named: PathBuf,
    pub(crate) resolved: PathBuf,
}

/// Finds the files that an open file names.
#[derive(Debug)]
pub(crate) struct FileLookup {
    /// The absolute path of the open file; `None` for one in memory.
    path: Option<PathBuf>,
    /// What may be opened, and the path of the file; found out when the first other file is looked for.
    found: OnceLock<(Allowed, Option<FilePath>)>,
    /// The open file came over a network: whatever it names is refused.
    is_remote: bool,
}

impl FileLookup {
    pub(crate) fn new(path: Option<PathBuf>) -> FileLookup {
        FileLookup { path, found: OnceLock::new(), is_remote: false }
    }

    /// For a file that came over a network, which is in no folder, and whose names are all refused.
    pub(crate) fn of_remote() -> FileLookup {
        FileLookup { is_remote: true, ..FileLookup::new(None) }
    }

    fn found(&self) -> &(Allowed, Option<FilePath>) {
        self.found.get_or_init(|| match &self.path {
            None => (Allowed::of_memory(), None),
            Some(path) => {
                let resolved = path.canonicalize().unwrap_or_else(|_| path.clone());
                (Allowed::of(path), Some(FilePath { named: path.clone(), resolved }))
            }
        })
    }

    /// The path of the open file; `None` for one in memory.
    pub(crate) fn home(&self) -> Option<&FilePath> {
        self.found().1.as_ref()
    }

    /// Opens the file with this name in a file at `home`. Gives the path where it was found, and the file; `None` where
    /// there is none.
    pub(crate) fn open(
        &self,
        role: FileRole,
        home: Option<&FilePath>,
        name: &[u8],
    ) -> Result<Option<(PathBuf, DataFile)>, StorageError> {
        if self.is_remote {
            // Also where there is no such file: that would be an answer, too.
            let (path, why) = (Path::new(OsStr::from_bytes(name)).into(), Refusal::FromAfar);
            return Err(StorageError::Refused { path, why, owner: None });
        }
        let allowed = &self.found().0;
        let prefix = environment(role.variable());
        let mut closed = None;
        for place in places(role, home, OsStr::from_bytes(name), prefix.as_deref()) {
            match allowed.open(&place) {
                Ok(Some(file)) => return Ok(Some((place, file))),
                Ok(None) => {}
                // A folder without permission, such as the home of the file's author, need not have the file: later
                // places are tried.
                Err(error @ StorageError::Open { errno: EACCES, .. }) => {
                    closed.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        closed.map_or(Ok(None), Err)
    }
}

/// `EACCES` of Linux on every architecture.
const EACCES: i32 = 13;
/// In a prefix, stands for the folder of the file that names another.
const ORIGIN: &[u8] = b"${ORIGIN}";

/// The paths under which libhdf5 looks for a file, in its order.
///
/// Names of external data count from the working directory in libhdf5, unless a prefix is given. Here
/// the folder of the file comes first, by either path.
fn places(
    role: FileRole,
    home: Option<&FilePath>,
    name: &OsStr,
    prefix: Option<&OsStr>,
) -> Vec<PathBuf> {
    let name = Path::new(name);
    if name.as_os_str().is_empty() {
        return Vec::new();
    }
    let folder = |path: &Path| path.parent().map(Path::to_path_buf);
    let named = home.and_then(|home| folder(&home.named));
    let resolved = home.and_then(|home| folder(&home.resolved));
    // A prefix as a whole, with the folder of the file in it.
    let whole = prefix.filter(|prefix| *prefix != ".").and_then(|prefix| {
        match prefix.as_bytes().strip_prefix(ORIGIN) {
            None => Some(PathBuf::from(prefix)),
            Some(rest) => {
                let rest = rest.strip_prefix(b"/").unwrap_or(rest);
                named.as_ref().map(|folder| folder.join(OsStr::from_bytes(rest)))
            }
        }
    });
    let here = std::env::current_dir().ok();
    if role == FileRole::Bytes {
        return match (name.is_absolute(), whole) {
            (true, _) => vec![name.to_path_buf()],
            (false, Some(prefix)) => vec![prefix.join(name)],
            (false, None) => {
                let mut folders = vec![named, resolved, here];
                folders.dedup();
                folders.into_iter().flatten().map(|folder| folder.join(name)).collect()
            }
        };
    }
    let mut places = Vec::new();
    let mut rest = name;
    if name.is_absolute() {
        // Files that moved together keep the last part of their names.
        places.push(name.to_path_buf());
        let Some(last) = name.file_name() else { return places };
        rest = Path::new(last);
    }
    let listed = prefix.iter().flat_map(|list| std::env::split_paths(list));
    let listed = listed.filter(|prefix| !prefix.as_os_str().is_empty());
    let whole = whole.filter(|_| role == FileRole::Virtual);
    let folders = listed.chain(whole).chain(named).chain(here).chain(resolved);
    places.extend(folders.map(|folder| folder.join(rest)));
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_libhdf5() {
        let home = FilePath { named: "/named/a.nc".into(), resolved: "/real/b.nc".into() };
        let cwd = std::env::current_dir().unwrap().display().to_string();
        let shown = |role, name: &str, prefix: Option<&str>| -> Vec<String> {
            places(role, Some(&home), OsStr::new(name), prefix.map(OsStr::new))
                .iter()
                .map(|place| place.display().to_string().replace(&cwd, "CWD"))
                .collect()
        };
        let plain = ["/named/s/x.h5", "CWD/s/x.h5", "/real/s/x.h5"];
        let moved = ["/else/x.h5", "/named/x.h5", "CWD/x.h5", "/real/x.h5"];
        for role in [FileRole::Link, FileRole::Virtual] {
            assert_eq!(shown(role, "s/x.h5", None), plain);
            assert_eq!(shown(role, "/else/x.h5", None), moved);
            let with = shown(role, "x.h5", Some("/p::/q"));
            assert_eq!(with[..2], ["/p/x.h5", "/q/x.h5"]);
            assert_eq!(with[with.len() - 3..], moved[1..]);
            assert_eq!(shown(role, "", None), [""; 0]);
        }
        // The folder of the file stands in the whole of the variable only, and not for links.
        let origin = Some("${ORIGIN}/sub");
        assert!(shown(FileRole::Virtual, "x.h5", origin).contains(&"/named/sub/x.h5".into()));
        assert!(!shown(FileRole::Link, "x.h5", origin).contains(&"/named/sub/x.h5".into()));
        let bytes = ["/named/x.bin", "/real/x.bin", "CWD/x.bin"];
        assert_eq!(shown(FileRole::Bytes, "x.bin", None), bytes);
        assert_eq!(shown(FileRole::Bytes, "x.bin", Some(".")), bytes);
        assert_eq!(shown(FileRole::Bytes, "x.bin", origin), ["/named/sub/x.bin"]);
        assert_eq!(shown(FileRole::Bytes, "x.bin", Some("/p")), ["/p/x.bin"]);
        assert_eq!(shown(FileRole::Bytes, "/e/x.bin", Some("/p")), ["/e/x.bin"]);
    }
}
