//! Which file a client has open.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use zonda_storage::backend::File;
use zonda_storage::{Storage, StorageStamp};

/// A file, and the state in which it is. Another file of the same name is another one, and so is one that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileIdentity {
    device: u64,
    len: u64,
    /// As in [`StorageStamp::changed`].
    changed: [i64; 5],
}

/// The clock of a file system goes in steps; a file that is written twice within one looks the same before and after. Longer than any step.
const CLOCK_STEP_NS: i128 = 20_000_000;

impl FileIdentity {
    /// `None` where the system cannot say.
    pub(super) fn of(file: &File) -> Option<FileIdentity> {
        let (device, _) = file.identity()?;
        let StorageStamp { len, changed } = file.stamp().ok()?;
        Some(FileIdentity { device, len, changed })
    }

    /// Whether it is the same as one that was seen elsewhere. Each node has its own numbers for devices.
    pub(super) fn is(&self, asked: &FileIdentity, is_same_node: bool) -> bool {
        let FileIdentity { device, len, changed } = *asked;
        (self.len, self.changed) == (len, changed) && (self.device == device || !is_same_node)
    }

    /// Whether the next change will be seen: it is not as young as a step of the clock.
    pub(super) fn is_settled(&self) -> bool {
        let [_, seconds, nanoseconds, ..] = self.changed;
        let then = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        let now = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
        i128::try_from(now).is_ok_and(|now| (now - then).abs() > CLOCK_STEP_NS)
    }
}

/// A file that a server is to open for reading.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct ReadOpening {
    path: Vec<u8>,
    pub(super) identity: FileIdentity,
    /// The client is on the node of the server.
    pub(super) is_same_node: bool,
}

impl ReadOpening {
    /// One at an absolute path.
    pub(super) fn new(path: &Path, identity: FileIdentity, is_same_node: bool) -> ReadOpening {
        ReadOpening { path: path.as_os_str().as_bytes().to_vec(), identity, is_same_node }
    }

    pub(super) fn path(&self) -> PathBuf {
        OsString::from_vec(self.path.clone()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_another_one() {
        let one = FileIdentity { device: 1, len: 10, changed: [7, 100, 5, 100, 5] };
        assert!(one.is(&one, true) && one.is_settled());
        let elsewhere = FileIdentity { device: 2, ..one };
        assert!(one.is(&elsewhere, false) && !one.is(&elsewhere, true));
        for other in [
            FileIdentity { len: 11, ..one },
            FileIdentity { changed: [8, 100, 5, 100, 5], ..one },
            FileIdentity { changed: [7, 100, 6, 100, 6], ..one },
        ] {
            assert!(!one.is(&other, true) && !one.is(&other, false));
        }
        let now = i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap();
        let young = FileIdentity { changed: [7, now + 3600, 0, 0, 0], ..one };
        assert!(young.is_settled(), "a clock that is wrong by an hour settles nothing");
    }
}
