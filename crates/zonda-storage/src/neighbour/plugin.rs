//! Files whose code is run: filter plugins, and the helper program.
//!
//! They come by way of an installation, so links are fine, as are several names. What the links lead to has
//! to belong to root or to the user of this process, and so has its folder; nobody else may write
//! either. A group may, if it is the user's own: many systems give each user a group of the same name.

use super::{FileKind, Refusal};
use crate::StorageError;
use crate::os::{Errno, Status, group_name, own_user, user_name};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bits of a mode by which a group and everybody may write.
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Whether root is seen under that number: in containers whose root is no user outside, all that belongs
/// to users outside is shown as one user's, the folder of all folders among it.
fn stands_for_root(owner: u32) -> bool {
    let above_all = Status::of_name(Path::new("/"));
    let all_others = std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    let all_others = all_others.and_then(|text| text.trim().parse().ok());
    Some(owner) == all_others && above_all.is_ok_and(|status| status.owner.0 == owner)
}

/// Whether nobody but root and the user of this process can change what has this status.
fn refusal(found: &Status) -> Option<Refusal> {
    let (owner, group) = found.owner;
    if owner != 0 && owner != own_user() && !stands_for_root(owner) {
        return Some(Refusal::Owner);
    }
    // The group of root is root's own everywhere.
    let is_private =
        || group == 0 || user_name(owner).is_some_and(|name| Some(name) == group_name(group));
    let group_writes = found.mode & GROUP_WRITES != 0 && !is_private();
    (found.mode & OTHERS_WRITE != 0 || group_writes).then_some(Refusal::Writable)
}

/// The file whose code is to be run when `path` is asked for: a path without links.
///
/// # Errors
/// [`StorageError::Refused`] for what is not to be trusted; [`StorageError::Open`].
pub fn resolve(path: &Path) -> Result<PathBuf, StorageError> {
    let failed = |Errno(errno)| StorageError::Open { path: Arc::from(path), errno };
    let system = |error: std::io::Error| failed(Errno(error.raw_os_error().unwrap_or(libc::EIO)));
    let file = std::fs::canonicalize(path).map_err(system)?;
    let status = Status::of_name(&file).map_err(failed)?;
    let refused = |path: &Path, why, status: &Status| StorageError::Refused {
        path: Arc::from(path),
        why,
        owner: Some(status.owner.0),
    };
    if status.kind != FileKind::Regular {
        return Err(refused(path, Refusal::Kind(status.kind), &status));
    }
    if let Some(why) = refusal(&status) {
        return Err(refused(path, why, &status));
    }
    let folder = file.parent().unwrap_or(Path::new("/"));
    let above = Status::of_name(folder).map_err(failed)?;
    match refusal(&above) {
        Some(why) => Err(refused(folder, why, &above)),
        None => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use zonda_testkit::TempFolder;

    #[test]
    fn nobody_else_may_write_file_or_folder() {
        let temporary = TempFolder::new("plugin-trust");
        let folder = temporary.path().join("plugins");
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("libfilter.so");
        std::fs::write(&file, "").unwrap();
        let link = temporary.path().join("link");
        symlink(&file, &link).unwrap();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        let why = || match resolve(&link) {
            Ok(found) => {
                assert_eq!(found, std::fs::canonicalize(&file).unwrap());
                None
            }
            Err(StorageError::Refused { why, .. }) => Some(why),
            Err(error) => panic!("{error}"),
        };
        for (of_folder, of_file, expected) in [
            (0o755, 0o644, None),
            (0o755, 0o646, Some(Refusal::Writable)),
            (0o757, 0o644, Some(Refusal::Writable)),
            (0o1777, 0o644, Some(Refusal::Writable)),
        ] {
            mode(&folder, of_folder);
            mode(&file, of_file);
            assert_eq!(why(), expected, "{of_folder:o} {of_file:o}");
        }
        mode(&folder, 0o755);
        std::fs::remove_file(&file).unwrap();
        crate::os::tests::make_fifo(&file);
        assert_eq!(why(), Some(Refusal::Kind(FileKind::Fifo)));
        std::fs::remove_file(&file).unwrap();
        assert!(matches!(resolve(&link), Err(StorageError::Open { errno: libc::ENOENT, .. })));
    }
}
