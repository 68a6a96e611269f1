//! Finds the file of a program that has ended: it may have been renamed, and another file may have its name.

use std::fs::{self, File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Device and inode of an open file.
pub(super) fn identity(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().as_ref().map(number)
}

fn number(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// A path of the file that was opened as `path` and has `identity` (device and inode); `open` is the open file, if
/// there is one. `None` where no path leads to it any more.
pub(super) fn of(
    path: &Path,
    identity: Option<(u64, u64)>,
    open: Option<&File>,
) -> Option<PathBuf> {
    let is_at =
        |path: &Path, identity| fs::metadata(path).is_ok_and(|found| number(&found) == identity);
    let Some(open) = open else {
        return identity.is_none_or(|identity| is_at(path, identity)).then(|| path.to_owned());
    };
    let own = open.metadata().ok()?;
    if is_at(path, number(&own)) {
        return Some(path.to_owned());
    }
    let itself = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
    if let Ok(now) = fs::read_link(&itself)
        && is_at(&now, number(&own))
    {
        return Some(now);
    }
    // It has another name (hard link), which the system does not show.
    (own.nlink() > 0).then_some(itself)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_under_its_name_of_now() {
        let folder = zonda_testkit::TempFolder::new("place");
        let path = |name: &str| folder.file(name);
        fs::write(path("a"), b"mine").unwrap();
        let open = File::open(path("a")).unwrap();
        let own = identity(&open);
        let find = |open| of(&path("a"), own, open);
        assert_eq!(find(Some(&open)), Some(path("a")));
        fs::rename(path("a"), path("b")).unwrap();
        fs::write(path("a"), b"another").unwrap();
        assert_eq!(find(Some(&open)), Some(path("b")));
        assert_eq!(find(None), None, "another file has the name");
        fs::hard_link(path("b"), path("c")).unwrap();
        fs::remove_file(path("b")).unwrap();
        let found = find(Some(&open)).unwrap();
        assert_eq!(fs::read(found).unwrap(), b"mine");
        fs::remove_file(path("c")).unwrap();
        assert_eq!(find(Some(&open)), None, "no name is left");
    }
}
