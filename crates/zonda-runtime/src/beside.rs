//! Where the files are that are installed with the one that this code is in: `libnetcdf.so.19`, the command, the Python module, or somebody's program.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::lock::{Global, MutexGuard, Rank};
use crate::{fork, os};

static LOADING: Global<()> = Global::new(Rank::Loading, (), || ());

/// Held while a library is loaded: the child of a fork that met the loader half way would have that state for ever.
pub fn loading() -> MutexGuard<'static, ()> {
    LOADING.lock()
}

/// Has each fork hold it from now on, also before it is taken for the first time. Of other locks a child finds out by their state; what the
/// loader had begun after a fork made its list could not be mended.
pub(crate) fn hold_in_forks() {
    fork::register(&LOADING);
}

/// What keeps a file from being loaded that is there: it is no regular file, or a part is missing of what the loader would map, which would end the process
/// (`SIGBUS`). What is no ELF file of 64 bits is left to the loader, which refuses it.
///
/// # Errors
/// What is wrong, as a sentence.
pub fn check_whole(file: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let about = std::fs::metadata(file).map_err(failed)?;
    if !about.is_file() {
        return Err(String::from("it is no regular file"));
    }
    let opened = File::open(file).map_err(failed)?;
    let mut header = [0; ELF_HEADER_BYTES];
    if opened.read_exact_at(&mut header, 0).is_err() || !header.starts_with(ELF_64_LITTLE) {
        return Ok(());
    }
    let wanted = (0..number(&header, 56, 2).unwrap_or(0)).try_fold(0u64, |wanted, k| {
        let mut segment = [0; SEGMENT_BYTES];
        let size = number(&header, 54, 2)?;
        let at = number(&header, 32, 8)?.checked_add(size.checked_mul(k)?)?;
        opened.read_exact_at(&mut segment, at).ok()?;
        let end = number(&segment, 8, 8)?.checked_add(number(&segment, 32, 8)?)?;
        Some(if number(&segment, 0, 4)? == PT_LOAD { wanted.max(end) } else { wanted })
    });
    match wanted {
        Some(wanted) if wanted <= about.len() => Ok(()),
        Some(wanted) => {
            Err(format!("it is cut off: {} bytes of the {wanted} that are loaded", about.len()))
        }
        None => Err(format!("it is cut off after {} bytes", about.len())),
    }
}

/// `\x7fELF`, 64 bits, the least significant byte first (System V ABI, "ELF Header").
const ELF_64_LITTLE: &[u8] = b"\x7fELF\x02\x01";
/// Bytes of such a header, and of what it says of one segment ("Program Header").
const ELF_HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
/// A segment that is mapped.
const PT_LOAD: u64 = 1;

/// A number of up to 8 bytes.
fn number(bytes: &[u8], at: usize, n: usize) -> Option<u64> {
    let mut number = [0; 8];
    number[..n].copy_from_slice(bytes.get(at..at + n)?);
    Some(u64::from_le_bytes(number))
}

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
    fn files_that_the_loader_would_not_find_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (own, copy) = (std::env::current_exe().unwrap(), folder.path().join("copy"));
        assert_eq!(check_whole(&own), Ok(()));
        let bytes = std::fs::read(own).unwrap();
        for len in [70, 1000, 100_000] {
            std::fs::write(&copy, &bytes[..len]).unwrap();
            let said = check_whole(&copy).unwrap_err();
            assert!(said.contains("cut off") && said.contains(&len.to_string()), "{said}");
        }
        for other in [&b""[..], b"no library", &bytes[..20]] {
            std::fs::write(&copy, other).unwrap();
            assert_eq!(check_whole(&copy), Ok(()), "the loader refuses it");
        }
        assert!(check_whole(folder.path()).unwrap_err().contains("no regular file"));
        assert!(check_whole(&folder.path().join("none")).is_err());
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
