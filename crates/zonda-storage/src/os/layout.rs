//! Which file system a file is on, and what Lustre is asked about its stripes.

use super::{Errno, Fd, retry};

/// `LL_IOC_LOV_SETSTRIPE` of `lustre_user.h`: `_IOW('f', 154, long)`.
const LL_IOC_LOV_SETSTRIPE: libc::Ioctl = 0x4008_669A;

/// `O_LOV_DELAY_CREATE` of `lustre_user.h`: a file that is made so has no layout yet. The first flag is that of versions before 2.8, the others
/// are those of later ones.
const O_LOV_DELAY_CREATE: libc::c_int = 0o100_000_000 | libc::O_NOCTTY | libc::O_ASYNC;

/// Magic numbers of file systems (`linux/magic.h`).
pub(crate) const TMPFS: u64 = 0x0102_1994;
pub(crate) const RAMFS: u64 = 0x8584_58F6;
pub(crate) const EXT4: u64 = 0xEF53;
pub(crate) const XFS: u64 = 0x5846_5342;
pub(crate) const BTRFS: u64 = 0x9123_683E;
pub(crate) const OVERLAYFS: u64 = 0x794C_7630;

impl Fd {
    /// Makes a file of a Lustre file system that has no layout yet, for reading and writing. It must not exist.
    pub(crate) fn make_without_layout(path: &std::path::Path) -> Result<Fd, Errno> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | O_LOV_DELAY_CREATE;
        Fd::open(path, flags)
    }

    /// The magic number of the file system.
    pub(crate) fn file_system(&self) -> Result<u64, Errno> {
        let mut stat = std::mem::MaybeUninit::<libc::statfs64>::uninit();
        // SAFETY: `stat` is valid for a write of one `statfs64`, which is what fstatfs writes.
        retry(|| unsafe { libc::fstatfs64(self.0, stat.as_mut_ptr()) })?;
        // SAFETY: fstatfs returned success, so it filled the structure.
        let stat = unsafe { stat.assume_init() };
        Ok(u64::try_from(stat.f_type).unwrap_or(0))
    }

    /// Gives a file its layout: a `struct lov_user_md_v1`. To be asked of files on Lustre only, as others may have a request of this number.
    pub(crate) fn set_layout(&self, layout: &[u8; 32]) -> Result<(), Errno> {
        // SAFETY: Lustre reads a `lov_user_md_v1` of 32 bytes there, and writes nothing; the array lives through the call.
        retry(|| unsafe { libc::ioctl(self.0, LL_IOC_LOV_SETSTRIPE, layout.as_ptr()) }).map(drop)
    }

    /// The layout that a file has, as the same structure, or a later one.
    pub(crate) fn layout(&self) -> Result<Vec<u8>, Errno> {
        self.attribute(&c"lustre.lov".to_owned())
    }
}
