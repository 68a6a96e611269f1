//! Finds the program that serves as the helper.

use std::path::{Path, PathBuf};

use zonda_storage::StorageError;
use zonda_storage::neighbour::{Refusal, from_env, plugin, trusts_environment};

/// The environment variable that names it.
const VARIABLE: &str = "ZONDA_IOD";

/// The program that `ZONDA_IOD` names; else `zonda` beside the file that this code is in: in `../bin` seen from the
/// library, or in the folder of the program; else the one that `PATH` finds. A program that others than root and the
/// user of this process can change is not run, unless the environment names it. A process that runs with more rights
/// than its caller ignores the environment.
///
/// # Errors
/// Why the program that was found is not run.
pub(super) fn program() -> std::result::Result<PathBuf, StorageError> {
    if let Some(named) = from_env(VARIABLE).filter(|named| !named.is_empty()) {
        return Ok(named.into());
    }
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let own_file = mapped(&maps, program as *const () as usize as u64);
    let beside = own_file.iter().filter_map(|file| file.parent()).flat_map(|folder| {
        let bin = folder.parent().map(|above| above.join("bin/zonda"));
        bin.into_iter().chain([folder.join("zonda")])
    });
    match beside.into_iter().find(|program| program.is_file()) {
        Some(found) => plugin::resolve(&found),
        None if !trusts_environment() => Err(StorageError::Refused {
            path: Path::new("zonda").into(),
            why: Refusal::Environment,
            owner: None,
        }),
        None => Ok(PathBuf::from("zonda")),
    }
}

/// The file that is mapped at an address, by the list of a process's mappings.
fn mapped(maps: &[u8], address: u64) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    maps.split(|byte| *byte == b'\n').find_map(|line| {
        let text = String::from_utf8_lossy(line.split(|byte| *byte == b' ').next()?).into_owned();
        let (first, behind) = text.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        if !(number(first)?..number(behind)?).contains(&address) {
            return None;
        }
        let at = line.iter().position(|byte| *byte == b'/')?;
        Some(Path::new(std::ffi::OsStr::from_bytes(line.get(at..)?)).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_an_address() {
        let maps = b"1000-2000 r-xp 00000000 08:01 77   /lib/a b.so\n\
            2000-3000 r-xp 00000000 00:00 0\nzz\n";
        assert_eq!(mapped(maps, 0x1000), Some(PathBuf::from("/lib/a b.so")));
        assert_eq!(mapped(maps, 0x2000), None);
        assert_eq!(mapped(maps, 0x5000), None);
        let own = std::fs::read("/proc/self/maps").unwrap();
        let own_file = the_file_of_an_address as fn() as usize as u64;
        assert_eq!(mapped(&own, own_file), std::env::current_exe().ok());
    }
}
