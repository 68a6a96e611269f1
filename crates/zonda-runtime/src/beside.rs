//! Where the files are that are installed with the one that this code is in: `libnetcdf.so.19`, the command, the Python module, or somebody's program.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::os;

/// The file that this code was loaded from.
#[must_use]
pub fn own_file() -> Option<PathBuf> {
    let name = os::file_of(own_file as fn() -> Option<PathBuf> as usize)?;
    // A program is listed as it was called, so perhaps not by a path.
    let path = PathBuf::from(OsStr::from_bytes(&name));
    if path.is_absolute() { Some(path) } else { std::env::current_exe().ok() }
}

/// The paths that a library of this name may have, the first to be looked at first: beside the file that this code is in, in `lib` next to its folder (that of a program
/// is `bin`), and in the prefix that the Python package has.
#[must_use]
pub fn places(name: &str) -> Vec<PathBuf> {
    own_file().map_or_else(Vec::new, |own| places_beside(&own.canonicalize().unwrap_or(own), name))
}

fn places_beside(own: &Path, name: &str) -> Vec<PathBuf> {
    let Some(folder) = own.parent() else { return Vec::new() };
    let next = folder.parent().map(|parent| parent.join("lib").join(name));
    let mut places = vec![folder.join(name)];
    places.extend(next.filter(|next| !places.contains(next)));
    places.push(folder.join("_dist/lib").join(name));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_knows_its_own_file() {
        let own = own_file().and_then(|own| own.canonicalize().ok());
        assert_eq!(own, std::env::current_exe().and_then(|exe| exe.canonicalize()).ok());
    }

    #[test]
    fn libraries_and_programs_find_each_other() {
        let places = |own: &str| {
            let found = places_beside(Path::new(own), "l.so");
            found.iter().map(|path| path.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(places("/p/lib/libnetcdf.so.19"), ["/p/lib/l.so", "/p/lib/_dist/lib/l.so"]);
        assert_eq!(places("/p/bin/zonda")[1], "/p/lib/l.so");
        assert_eq!(places("/s/zonda/_zonda.abi3.so")[2], "/s/zonda/_dist/lib/l.so");
    }
}
