//! The system calls, each through its libc symbol.
//!
//! Every function repeats a call that a signal interrupted (`EINTR`) and gives `errno` otherwise.
#![allow(unsafe_code)]

pub(crate) mod layout;

use crate::DeviceSpace;
use crate::neighbour::FileKind;
use crate::storage::StorageStamp;
use std::ffi::{CStr, CString};
use std::io::{IoSlice, IoSliceMut};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The most buffers one `preadv` or `pwritev` takes on Linux (`IOV_MAX`).
pub(crate) const MAX_BUFFERS: usize = 1024;

/// The first descriptor that is not standard input, output or error.
const FIRST_OF_OURS: libc::c_int = 3;

/// `fcntl`: which signal tells of a lease (`linux/fcntl.h`; the libc crate has no name for it).
const F_SETSIG: libc::c_int = 10;

/// An `errno` value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

/// An open file descriptor, closed when dropped.
#[derive(Debug)]
pub(crate) struct Fd(libc::c_int);

/// Repeats `call` until it is not interrupted; a negative result becomes `errno`.
fn retry<T: Copy + PartialOrd + Default>(mut call: impl FnMut() -> T) -> Result<T, Errno> {
    loop {
        let got = call();
        if got >= T::default() {
            return Ok(got);
        }
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        if errno != libc::EINTR {
            return Err(Errno(errno));
        }
    }
}

/// Whether there may be no more descriptors, in the process or in the system.
pub(crate) fn has_no_descriptor(Errno(errno): Errno) -> bool {
    matches!(errno, libc::EMFILE | libc::ENFILE)
}

/// How long the process may make a file (`RLIMIT_FSIZE`).
fn most_len() -> u64 {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for a write of one `rlimit64`, which is what getrlimit writes.
    match retry(|| unsafe { libc::getrlimit64(libc::RLIMIT_FSIZE, &raw mut limit) }) {
        Ok(_) => limit.rlim_cur,
        Err(_) => u64::MAX,
    }
}

fn offset(at: u64) -> Result<libc::off64_t, Errno> {
    libc::off64_t::try_from(at).map_err(|_| Errno(libc::EFBIG))
}

impl Fd {
    /// Opens `path` with `flags` (`O_CLOEXEC` is added); a new file gets mode 0666 less the umask.
    pub(crate) fn open(path: &Path, flags: libc::c_int) -> Result<Fd, Errno> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno(libc::EINVAL))?;
        let mode: libc::c_uint = 0o666;
        // SAFETY: `name` is a NUL-terminated string that lives through the call; open reads no
        // other memory of ours.
        let fd = retry(|| unsafe { libc::open64(name.as_ptr(), flags | libc::O_CLOEXEC, mode) });
        Fd(fd?).behind_standard()
    }

    /// Moves it behind standard input, output and error. Where the program has closed one of these, the
    /// system gives its number to the next file, and every message, of this library and of all
    /// others, would be written into it.
    fn behind_standard(self) -> Result<Fd, Errno> {
        if self.0 < FIRST_OF_OURS { self.again() } else { Ok(self) }
    }

    /// One `pread`: how many bytes were read, 0 at the end of the file.
    pub(crate) fn pread(&self, at: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let at = offset(at)?;
        // SAFETY: the pointer and length are those of an exclusively borrowed slice, so the kernel
        // writes only memory that is ours and initialised.
        let got =
            retry(|| unsafe { libc::pread64(self.0, buf.as_mut_ptr().cast(), buf.len(), at) })?;
        Ok(got.unsigned_abs())
    }

    /// One `pwrite`: how many bytes were taken.
    pub(crate) fn pwrite(&self, at: u64, data: &[u8]) -> Result<usize, Errno> {
        let at = offset(at)?;
        // SAFETY: the pointer and length are those of a borrowed slice; the kernel only reads it.
        let got =
            retry(|| unsafe { libc::pwrite64(self.0, data.as_ptr().cast(), data.len(), at) })?;
        Ok(got.unsigned_abs())
    }

    /// One `preadv` into at most [`MAX_BUFFERS`] buffers.
    pub(crate) fn preadv(&self, at: u64, bufs: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
        let at = offset(at)?;
        let n = libc::c_int::try_from(bufs.len().min(MAX_BUFFERS)).unwrap_or(0);
        // SAFETY: `IoSliceMut` has the layout of `iovec` on Unix (std guarantees it); each entry
        // is an exclusively borrowed slice, and `n` does not exceed the number of entries.
        let got = retry(|| unsafe { libc::preadv64(self.0, bufs.as_ptr().cast(), n, at) })?;
        Ok(got.unsigned_abs())
    }

    /// One `pwritev` of at most [`MAX_BUFFERS`] buffers.
    pub(crate) fn pwritev(&self, at: u64, bufs: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let at = offset(at)?;
        let n = libc::c_int::try_from(bufs.len().min(MAX_BUFFERS)).unwrap_or(0);
        // SAFETY: `IoSlice` has the layout of `iovec` on Unix (std guarantees it); each entry is a
        // borrowed slice that the kernel only reads, and `n` does not exceed their number.
        let got = retry(|| unsafe { libc::pwritev64(self.0, bufs.as_ptr().cast(), n, at) })?;
        Ok(got.unsigned_abs())
    }

    /// Another descriptor of the same open file, whose locks it shares.
    pub(crate) fn duplicate(&self) -> std::io::Result<std::os::fd::OwnedFd> {
        // SAFETY: the descriptor is open as long as this is, and so during the call.
        unsafe { std::os::fd::BorrowedFd::borrow_raw(self.0) }.try_clone_to_owned()
    }

    /// What closing this descriptor would report, while it stays open. Some file systems (NFS, some with
    /// quotas) tell only there that they could not keep what was written; the kernel hands on what it holds at
    /// the close of each descriptor of an open file, so that of a second one tells. Where the process may not
    /// have another one, a sync has them hand it on, and tells the same.
    pub(crate) fn check_close(&self) -> Result<(), Errno> {
        let again = self.duplicate();
        let errno = again.as_ref().err().and_then(std::io::Error::raw_os_error);
        if !errno.is_some_and(|errno| has_no_descriptor(Errno(errno))) {
            return check_close(again);
        }
        match self.sync_all() {
            // Of what cannot be synced (a pipe, a device) a close tells nothing either.
            Err(Errno(libc::EINVAL | libc::EROFS | libc::ENOTSUP)) => Ok(()),
            told => told,
        }
    }

    /// The length of the file.
    pub(crate) fn len(&self) -> Result<u64, Errno> {
        let mut stat = std::mem::MaybeUninit::<libc::stat64>::uninit();
        // SAFETY: `stat` is valid for a write of one `stat64`, which is what fstat writes.
        retry(|| unsafe { libc::fstat64(self.0, stat.as_mut_ptr()) })?;
        // SAFETY: fstat returned success, so it filled the structure.
        let stat = unsafe { stat.assume_init() };
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Which file it is now, how long, and when it was changed.
    pub(crate) fn stamp(&self) -> Result<StorageStamp, Errno> {
        let mut stat = std::mem::MaybeUninit::<libc::stat64>::uninit();
        // SAFETY: `stat` is valid for a write of one `stat64`, which is what fstat writes.
        retry(|| unsafe { libc::fstat64(self.0, stat.as_mut_ptr()) })?;
        // SAFETY: fstat returned success, so it filled the structure.
        let stat = unsafe { stat.assume_init() };
        let changed = [
            stat.st_ino.cast_signed(),
            stat.st_mtime,
            stat.st_mtime_nsec,
            stat.st_ctime,
            stat.st_ctime_nsec,
        ];
        Ok(StorageStamp { len: u64::try_from(stat.st_size).unwrap_or(0), changed })
    }

    /// Cuts or extends the file. To extend it beyond what the process may write is refused (`EFBIG`) before the
    /// system ends the program for it (`SIGXFSZ`): how long a file is to be is not always the program's choice.
    pub(crate) fn set_len(&self, len: u64) -> Result<(), Errno> {
        if len > most_len() && len > self.len()? {
            return Err(Errno(libc::EFBIG));
        }
        let len = offset(len)?;
        // SAFETY: ftruncate takes no pointer.
        retry(|| unsafe { libc::ftruncate64(self.0, len) }).map(drop)
    }

    /// Where the next data are, at `at` or behind it; the end of all places where there are none. What lies between is a hole,
    /// which no device has. `ENXIO` is the answer for both, a hole up to the end and a place behind it.
    pub(crate) fn next_data(&self, at: u64) -> Result<u64, Errno> {
        let from = offset(at)?;
        // SAFETY: lseek takes no pointer.
        match retry(|| unsafe { libc::lseek64(self.0, from, libc::SEEK_DATA) }) {
            Ok(found) => Ok(u64::try_from(found).unwrap_or(at)),
            Err(Errno(libc::ENXIO)) => Ok(u64::MAX),
            Err(errno) => Err(errno),
        }
    }

    /// Where the next hole is, at `at` or behind it; the end of the file is one. On a device all is data.
    pub(crate) fn next_hole(&self, at: u64) -> Result<u64, Errno> {
        let from = offset(at)?;
        // SAFETY: lseek takes no pointer.
        let found = retry(|| unsafe { libc::lseek64(self.0, from, libc::SEEK_HOLE) })?;
        Ok(u64::try_from(found).unwrap_or(u64::MAX))
    }

    /// Has the kernel copy up to `len` bytes at `from_at` of another file to `at`, where the file system can: how many it did.
    /// What would lengthen this file beyond what the process may write is refused (`EFBIG`), as by [`Fd::set_len`].
    pub(crate) fn copy_range(
        &self,
        at: u64,
        from: &Fd,
        from_at: u64,
        len: usize,
    ) -> Result<usize, Errno> {
        if at.saturating_add(len as u64) > most_len() {
            return Err(Errno(libc::EFBIG));
        }
        let (mut to_at, mut from_at) = (offset(at)?, offset(from_at)?);
        // SAFETY: both places are valid for a read and a write of one `off64_t` during the call, and the kernel moves no memory of
        // the process.
        let n = retry(|| unsafe {
            libc::copy_file_range(from.0, &raw mut from_at, self.0, &raw mut to_at, len, 0)
        })?;
        Ok(n.unsigned_abs())
    }

    /// Copies bytes at `from_at` of another file to `at` through `block`, as many as that has: how many were copied. As [`Fd::copy_range`].
    pub(crate) fn copy_through(
        &self,
        at: u64,
        from: &Fd,
        from_at: u64,
        block: &mut [u8],
    ) -> Result<usize, Errno> {
        if at.saturating_add(block.len() as u64) > most_len() {
            return Err(Errno(libc::EFBIG));
        }
        let got = from.pread(from_at, block)?;
        self.pwrite(at, block.get(..got).ok_or(Errno(libc::EIO))?)
    }

    /// The last place that the file system has in one file, which no call tells: a seek there is refused
    /// (`EINVAL`) if there is none. Nothing else of ours uses the place where the descriptor is.
    pub(crate) fn most_len(&self) -> u64 {
        let is_place = |at: u64| {
            // SAFETY: lseek takes no pointer.
            let found = |at| retry(|| unsafe { libc::lseek64(self.0, at, libc::SEEK_SET) });
            offset(at).and_then(found) != Err(Errno(libc::EINVAL))
        };
        let (mut least, mut most) = (0, i64::MAX as u64);
        if is_place(most) {
            return u64::MAX;
        }
        while most - least > 1 {
            let middle = least + (most - least) / 2;
            if is_place(middle) { least = middle } else { most = middle }
        }
        least
    }

    /// Which file this is, and what of it a copy must keep.
    pub(crate) fn status(&self) -> Result<Status, Errno> {
        let mut stat = std::mem::MaybeUninit::<libc::stat64>::uninit();
        // SAFETY: `stat` is valid for a write of one `stat64`, which is what fstat writes.
        retry(|| unsafe { libc::fstat64(self.0, stat.as_mut_ptr()) })?;
        // SAFETY: fstat returned success, so it filled the structure.
        Ok(Status::of(&unsafe { stat.assume_init() }))
    }

    /// What the device of the file has for this user.
    pub(crate) fn room(&self) -> Result<DeviceSpace, Errno> {
        let mut stat = std::mem::MaybeUninit::<libc::statvfs64>::uninit();
        // SAFETY: `stat` is valid for a write of one `statvfs64`, which is what fstatvfs writes.
        retry(|| unsafe { libc::fstatvfs64(self.0, stat.as_mut_ptr()) })?;
        // SAFETY: fstatvfs returned success, so it filled the structure.
        let stat = unsafe { stat.assume_init() };
        let of = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Ok(DeviceSpace { free: of(stat.f_bavail), size: of(stat.f_blocks) })
    }

    /// Gives this file the owner, the mode and the extended attributes (access lists are among
    /// them) of another.
    pub(crate) fn take_rights_of(&self, other: &Fd) -> Result<(), Errno> {
        let (mine, theirs) = (self.status()?, other.status()?);
        if mine.owner != theirs.owner {
            let (user, group) = theirs.owner;
            // SAFETY: fchown takes no pointer.
            retry(|| unsafe { libc::fchown(self.0, user, group) })?;
        }
        // After the owner: a change of owner clears bits of the mode.
        // SAFETY: fchmod takes no pointer.
        retry(|| unsafe { libc::fchmod(self.0, theirs.mode) })?;
        for name in other.attribute_names()? {
            let value = other.attribute(&name)?;
            // SAFETY: `name` is NUL-terminated, `value` a borrowed slice; both are only read.
            retry(|| unsafe {
                libc::fsetxattr(self.0, name.as_ptr(), value.as_ptr().cast(), value.len(), 0)
            })?;
        }
        Ok(())
    }

    /// Gives this file another group.
    pub(crate) fn take_group(&self, group: libc::gid_t) -> Result<(), Errno> {
        // SAFETY: fchown takes no pointer; the largest number leaves the owner.
        retry(|| unsafe { libc::fchown(self.0, libc::uid_t::MAX, group) }).map(drop)
    }

    /// Gives this file other rights.
    pub(crate) fn set_mode(&self, mode: libc::mode_t) -> Result<(), Errno> {
        // SAFETY: fchmod takes no pointer.
        retry(|| unsafe { libc::fchmod(self.0, mode) }).map(drop)
    }

    fn attribute_names(&self) -> Result<Vec<CString>, Errno> {
        let bytes = grown(|buf: &mut [u8]| {
            // SAFETY: the pointer and length are those of an exclusively borrowed slice.
            unsafe { libc::flistxattr(self.0, buf.as_mut_ptr().cast(), buf.len()) }
        });
        match bytes {
            // A file system without them has nothing to copy.
            Err(Errno(libc::ENOTSUP)) => Ok(Vec::new()),
            Err(errno) => Err(errno),
            Ok(bytes) => Ok(bytes
                .split(|b| *b == 0)
                .filter(|name| !name.is_empty())
                .filter_map(|name| CString::new(name).ok())
                .collect()),
        }
    }

    fn attribute(&self, name: &CString) -> Result<Vec<u8>, Errno> {
        grown(|buf: &mut [u8]| {
            // SAFETY: `name` is NUL-terminated; the rest are those of an exclusively borrowed slice.
            unsafe { libc::fgetxattr(self.0, name.as_ptr(), buf.as_mut_ptr().cast(), buf.len()) }
        })
    }

    /// Makes this descriptor mean the file of `other`, whoever uses it meanwhile: the number stays.
    pub(crate) fn become_file_of(&self, other: &Fd) -> Result<(), Errno> {
        // SAFETY: both are open descriptors of ours; dup3 replaces the file of the second at once.
        retry(|| unsafe { libc::dup3(other.0, self.0, libc::O_CLOEXEC) }).map(drop)
    }

    /// Takes the `flock` of the file for this descriptor alone; false if somebody else has it. A
    /// file system without locks counts as free.
    pub(crate) fn try_lock(&self) -> bool {
        let got = self.flock(libc::LOCK_EX | libc::LOCK_NB);
        !matches!(got, Err(Errno(libc::EWOULDBLOCK)))
    }

    /// One `flock` with what is asked for, such as `LOCK_SH | LOCK_NB`.
    pub(crate) fn flock(&self, what: libc::c_int) -> Result<(), Errno> {
        // SAFETY: flock takes no pointer.
        retry(|| unsafe { libc::flock(self.0, what) }).map(drop)
    }

    /// Locks one byte for the open file, or unlocks it, without waiting. `kind` is `F_WRLCK` or
    /// `F_UNLCK`.
    pub(crate) fn lock_byte(&self, at: i64, kind: libc::c_int) -> Result<(), Errno> {
        // SAFETY: all zeros are a value of this structure of numbers.
        let mut lock: libc::flock64 = unsafe { std::mem::zeroed() };
        lock.l_type = libc::c_short::try_from(kind).map_err(|_| Errno(libc::EINVAL))?;
        lock.l_whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or(0);
        (lock.l_start, lock.l_len) = (at, 1);
        // SAFETY: `lock` is what F_OFD_SETLK reads and lives through the call.
        retry(|| unsafe { libc::fcntl(self.0, libc::F_OFD_SETLK, &raw const lock) }).map(drop)
    }

    /// Another descriptor of the same open file, which is closed by itself.
    pub(crate) fn again(&self) -> Result<Fd, Errno> {
        // SAFETY: fcntl takes no pointer here.
        let again = || unsafe { libc::fcntl(self.0, libc::F_DUPFD_CLOEXEC, FIRST_OF_OURS) };
        retry(again).map(Fd)
    }

    /// The same file, opened anew with `flags`, whatever became of its name.
    pub(crate) fn anew(&self, flags: libc::c_int) -> Result<Fd, Errno> {
        Fd::open(Path::new(&format!("/proc/self/fd/{}", self.0)), flags)
    }

    /// Maps the file for reading while nobody can write it; see [`Mapping`].
    pub(crate) fn map(&self) -> Result<Mapping, Errno> {
        let lease = self.anew(libc::O_RDONLY)?;
        // A lease that is about to be broken is told of by a signal, which by default ends the program:
        // first one that does nothing, and then nobody to take it. It is asked about at each read.
        // SAFETY: fcntl takes no pointer in any of these calls.
        unsafe {
            retry(|| libc::fcntl(lease.0, F_SETSIG, libc::SIGURG))?;
            retry(|| libc::fcntl(lease.0, libc::F_SETLEASE, libc::F_RDLCK))?;
            retry(|| libc::fcntl(lease.0, libc::F_SETOWN, 0))?;
        }
        // SAFETY: the bytes are looked at only while the lease is there (`Mapping::bytes`), and with
        // it nobody can have the file open for writing or cut it.
        let bytes = unsafe { memmap2::Mmap::map(lease.0) };
        let bytes = bytes.map_err(|e| Errno(e.raw_os_error().unwrap_or(libc::EIO)))?;
        Ok(Mapping { bytes, lease })
    }

    /// Whether this open file is the only one of its file: the system gives nobody a write lease of it otherwise. It is given back at
    /// once; whoever opens the file meanwhile waits so long.
    pub(crate) fn is_opened_once(&self) -> Result<bool, Errno> {
        // SAFETY: fcntl takes no pointer in this call. Its signal is one that does nothing, as in `map`.
        retry(|| unsafe { libc::fcntl(self.0, F_SETSIG, libc::SIGURG) })?;
        // SAFETY: as above.
        match retry(|| unsafe { libc::fcntl(self.0, libc::F_SETLEASE, libc::F_WRLCK) }) {
            Err(Errno(libc::EAGAIN)) => return Ok(false),
            got => got?,
        };
        // SAFETY: as above.
        retry(|| unsafe { libc::fcntl(self.0, libc::F_SETLEASE, libc::F_UNLCK) })?;
        Ok(true)
    }

    /// Bytes of the device that the file has.
    pub(crate) fn bytes_taken(&self) -> Result<u64, Errno> {
        let mut stat = std::mem::MaybeUninit::<libc::stat64>::uninit();
        // SAFETY: `stat` is valid for a write of one `stat64`, which is what fstat writes.
        retry(|| unsafe { libc::fstat64(self.0, stat.as_mut_ptr()) })?;
        // SAFETY: fstat returned success, so it filled the structure.
        let blocks = unsafe { stat.assume_init() }.st_blocks;
        // In blocks of 512 bytes, whatever the device has.
        Ok(u64::try_from(blocks).unwrap_or(0).saturating_mul(512))
    }

    /// The path that the file has now, by `/proc`.
    pub(crate) fn path_now(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.0)).ok()
    }

    /// `fdatasync`: the data and what is needed to read it back.
    pub(crate) fn sync_data(&self) -> Result<(), Errno> {
        // SAFETY: fdatasync takes no pointer.
        retry(|| unsafe { libc::fdatasync(self.0) }).map(drop)
    }

    /// Has the kernel begin to write what it holds of the file, and does not wait for it.
    pub(crate) fn start_writing(&self) {
        // Only a hint: a file system that does not know it writes at the next sync.
        // SAFETY: sync_file_range takes no pointer.
        unsafe { libc::sync_file_range(self.0, 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
    }

    /// `fsync`: the data and all metadata.
    pub(crate) fn sync_all(&self) -> Result<(), Errno> {
        // SAFETY: fsync takes no pointer.
        retry(|| unsafe { libc::fsync(self.0) }).map(drop)
    }
}

/// The bytes of a file that nobody can write meanwhile: a read lease sees to it, for whose end whoever
/// opens the file for writing, or cuts it, has to wait. Without it a file cut by others would end
/// the program by `SIGBUS`.
#[derive(Debug)]
pub(crate) struct Mapping {
    bytes: memmap2::Mmap,
    lease: Fd,
}

impl Mapping {
    /// Device and inode of the file.
    pub(crate) fn identity(&self) -> Option<(libc::dev_t, libc::ino64_t)> {
        self.lease.status().ok().map(|status| status.identity)
    }

    /// The bytes, to be read at once; `None` when somebody waits to write them, or does already: the
    /// mapping is then to be dropped.
    #[inline]
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        // SAFETY: fcntl takes no pointer here.
        let kept = unsafe { libc::fcntl(self.lease.0, libc::F_GETLEASE) } == libc::F_RDLCK;
        kept.then_some(&self.bytes)
    }
}

/// What [`Fd::status`] tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    /// Device and inode.
    pub(crate) identity: (libc::dev_t, libc::ino64_t),
    pub(crate) kind: FileKind,
    /// No other hard link to it.
    pub(crate) only_name: bool,
    /// It has none any more.
    pub(crate) is_removed: bool,
    /// The rights, without the kind.
    pub(crate) mode: libc::mode_t,
    /// User and group.
    pub(crate) owner: (libc::uid_t, libc::gid_t),
}

impl Status {
    /// What a name stands for, without following it where it is a symbolic link.
    pub(crate) fn of_name(path: &Path) -> Result<Status, Errno> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno(libc::EINVAL))?;
        let mut stat = std::mem::MaybeUninit::<libc::stat64>::uninit();
        // SAFETY: `name` is NUL-terminated and only read; `stat` is valid for a write of one `stat64`.
        retry(|| unsafe { libc::lstat64(name.as_ptr(), stat.as_mut_ptr()) })?;
        // SAFETY: lstat returned success, so it filled the structure.
        Ok(Status::of(&unsafe { stat.assume_init() }))
    }

    fn of(stat: &libc::stat64) -> Status {
        Status {
            identity: (stat.st_dev, stat.st_ino),
            kind: match stat.st_mode & libc::S_IFMT {
                libc::S_IFREG => FileKind::Regular,
                libc::S_IFDIR => FileKind::Folder,
                libc::S_IFLNK => FileKind::SymbolicLink,
                libc::S_IFIFO => FileKind::Fifo,
                libc::S_IFSOCK => FileKind::Socket,
                libc::S_IFBLK | libc::S_IFCHR => FileKind::Device,
                _ => FileKind::Other,
            },
            only_name: stat.st_nlink == 1,
            is_removed: stat.st_nlink == 0,
            mode: stat.st_mode & 0o7777,
            owner: (stat.st_uid, stat.st_gid),
        }
    }

    /// A file with bytes: no device, no pipe.
    pub(crate) fn is_regular(&self) -> bool {
        self.kind == FileKind::Regular
    }
}

/// The user whose rights this process has.
pub(crate) fn own_user() -> u32 {
    // SAFETY: geteuid takes nothing and always succeeds.
    unsafe { libc::geteuid() }
}

/// Whether the program runs with rights that its caller does not have (set-user-id and the like), so
/// that the environment is not to be trusted.
pub(crate) fn has_more_rights_than_caller() -> bool {
    // SAFETY: getauxval takes no pointer; it gives 0 for what the kernel does not say.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Bytes for what a list of users says of one; more are asked for where they do not suffice.
const USER_BYTES: usize = 1 << 10;

/// Asks the system's list of users; `ask` is `getpwuid_r` or `getpwnam_r` for one user.
fn in_users<T>(
    mut ask: impl FnMut(*mut libc::passwd, &mut [libc::c_char], *mut *mut libc::passwd) -> libc::c_int,
    take: impl FnOnce(&libc::passwd) -> T,
) -> Option<T> {
    let mut text = vec![0; USER_BYTES];
    loop {
        let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
        let mut found = std::ptr::null_mut();
        match ask(entry.as_mut_ptr(), &mut text, &raw mut found) {
            libc::ERANGE if text.len() < 1 << 20 => text.resize(2 * text.len(), 0),
            libc::EINTR => {}
            _ => {
                // SAFETY: null, or a pointer to `entry`, filled in with pointers into `text`; both
                // live until after `take`.
                return unsafe { found.as_ref() }.map(take);
            }
        }
    }
}

/// The name of a user.
pub(crate) fn user_name(id: u32) -> Option<String> {
    in_users(
        // SAFETY: all pointers are valid for what they are written with, and the length is that of `text`.
        |entry, text, found| unsafe {
            libc::getpwuid_r(id, entry, text.as_mut_ptr(), text.len(), found)
        },
        // SAFETY: a user that was found has a NUL-terminated name.
        |entry| unsafe { CStr::from_ptr(entry.pw_name) }.to_string_lossy().into_owned(),
    )
}

/// The name of a group.
pub(crate) fn group_name(id: u32) -> Option<String> {
    let mut text: Vec<libc::c_char> = vec![0; USER_BYTES];
    loop {
        let mut entry = std::mem::MaybeUninit::<libc::group>::uninit();
        let mut found = std::ptr::null_mut();
        // SAFETY: all pointers are valid for what they are written with, and the length is that of `text`.
        let failed = unsafe {
            let (room, len) = (text.as_mut_ptr(), text.len());
            libc::getgrgid_r(id, entry.as_mut_ptr(), room, len, &raw mut found)
        };
        match failed {
            libc::ERANGE if text.len() < 1 << 20 => text.resize(2 * text.len(), 0),
            libc::EINTR => {}
            _ => {
                // SAFETY: null, or a pointer to `entry`, filled in with pointers into `text`.
                let group: &libc::group = unsafe { found.as_ref() }?;
                // SAFETY: a group that was found has a NUL-terminated name.
                let name = unsafe { CStr::from_ptr(group.gr_name) };
                return Some(name.to_string_lossy().into_owned());
            }
        }
    }
}

/// The number of a user of that name.
pub(crate) fn user_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    in_users(
        // SAFETY: as above; `name` is NUL-terminated and only read.
        |entry, text, found| unsafe {
            libc::getpwnam_r(name.as_ptr(), entry, text.as_mut_ptr(), text.len(), found)
        },
        |entry| entry.pw_uid,
    )
}

/// Calls `get` with a buffer that grows until what it gives fits.
fn grown(mut get: impl FnMut(&mut [u8]) -> libc::ssize_t) -> Result<Vec<u8>, Errno> {
    let mut buf = vec![0; 256];
    loop {
        match retry(|| get(&mut buf)) {
            Ok(len) => {
                buf.truncate(len.unsigned_abs());
                return Ok(buf);
            }
            // 64 KiB is the most that Linux keeps.
            Err(Errno(libc::ERANGE)) if buf.len() < 1 << 17 => buf.resize(2 * buf.len(), 0),
            Err(errno) => return Err(errno),
        }
    }
}

/// Closes a descriptor and gives what that reports.
pub(crate) fn check_close(fd: std::io::Result<std::os::fd::OwnedFd>) -> Result<(), Errno> {
    let errno = |error: std::io::Error| Errno(error.raw_os_error().unwrap_or(libc::EIO));
    let fd = std::os::fd::IntoRawFd::into_raw_fd(fd.map_err(errno)?);
    // Linux frees the descriptor even when close reports an error, so it is never repeated.
    // SAFETY: the descriptor was given to this function, and is not used after this.
    match unsafe { libc::close(fd) } {
        0 => Ok(()),
        _ => match errno(std::io::Error::last_os_error()) {
            // A signal came; nothing is said of the file.
            Errno(libc::EINTR) => Ok(()),
            failed => Err(failed),
        },
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // What it reports of a file that was written, `check_close` has asked before.
        // SAFETY: the descriptor is ours and is not used after this.
        unsafe { libc::close(self.0) };
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes a named pipe.
    pub(crate) fn make_fifo(path: &Path) {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: `name` is NUL-terminated and only read.
        retry(|| unsafe { libc::mkfifo(name.as_ptr(), 0o644) }).unwrap();
    }

    #[test]
    fn users_by_name_and_number() {
        assert_eq!(user_name(0).as_deref(), Some("root"));
        assert_eq!(user_id("root"), Some(0));
        assert_eq!(user_id("no such user"), None);
        assert!(!has_more_rights_than_caller());
    }

    #[test]
    fn holes_are_passed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("holes");
        let file = Fd::open(&path, libc::O_RDWR | libc::O_CREAT).unwrap();
        file.set_len(1 << 40).unwrap();
        assert_eq!(file.next_data(0), Ok(u64::MAX));
        file.pwrite(3 << 30, b"x").unwrap();
        let found = file.next_data(5).unwrap();
        assert!(found <= 3 << 30 && found > (3 << 30) - (8 << 20), "{found}");
        assert_eq!(file.next_data(3 << 30), Ok(3 << 30));
        assert_eq!(
            (file.next_data(4 << 30), file.next_data(1 << 41)),
            (Ok(u64::MAX), Ok(u64::MAX))
        );
    }
}
