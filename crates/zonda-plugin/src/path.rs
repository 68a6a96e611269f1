//! Where plugins are looked for.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use zonda_storage::neighbour::from_env;

/// Folders searched where `HDF5_PLUGIN_PATH` is not set: HDF5's own, and those of Debian's
/// packages.
const FOLDERS: [&str; 3] = [
    "/usr/local/hdf5/lib/plugin",
    #[cfg(target_arch = "x86_64")]
    "/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins",
    #[cfg(target_arch = "x86_64")]
    "/usr/lib/x86_64-linux-gnu/hdf5/plugins",
    #[cfg(not(target_arch = "x86_64"))]
    "/usr/lib/aarch64-linux-gnu/hdf5/serial/plugins",
    #[cfg(not(target_arch = "x86_64"))]
    "/usr/lib/aarch64-linux-gnu/hdf5/plugins",
];

/// The folders that the environment says, or where HDF5 looks when it says nothing. Programs that run
/// with more rights than their caller has do not ask the environment.
#[must_use]
pub fn default_path() -> Vec<PathBuf> {
    match from_env("HDF5_PLUGIN_PATH") {
        Some(list) => split(list.as_bytes()),
        None => FOLDERS.into_iter().map(PathBuf::from).collect(),
    }
}

/// A list with colons, as HDF5 takes it, or semicolons, as netCDF takes it too.
fn split(list: &[u8]) -> Vec<PathBuf> {
    list.split(|byte| matches!(byte, b':' | b';'))
        .filter(|folder| !folder.is_empty())
        .map(|folder| PathBuf::from(OsString::from_vec(folder.to_vec())))
        .collect()
}

/// Whether plugins are switched off, in HDF5's way of saying it.
pub(crate) fn are_off() -> bool {
    std::env::var_os("HDF5_PLUGIN_PRELOAD").is_some_and(|value| value == "::")
}

/// The files of a folder that HDF5 would try, in order of their names.
pub(crate) fn candidates(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.as_bytes();
            name.starts_with(b"lib") && name.windows(3).any(|part| part == b".so")
        })
        .map(|entry| entry.path())
        .collect();
    zonda_runtime::sort::sort(&mut files);
    files
}

#[cfg(test)]
mod tests {
    use super::split;
    use std::path::PathBuf;

    #[test]
    fn lists_split_at_colons_and_semicolons() {
        let folders = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(split(b"/a:/b;/c"), folders(&["/a", "/b", "/c"]));
        assert_eq!(split(b":/a::"), folders(&["/a"]));
        assert_eq!(split(b""), folders(&[]));
    }
}
