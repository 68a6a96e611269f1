//! `file`: a file of the operating system, by positional calls on one descriptor.
//!
//! Buffers nothing and holds no lock: the kernel orders what overlaps. Only the process that opened it for writing writes: a
//! forked child has the same open file, and copies of the buffered data above that soon are stale.

use crate::error::{Op, StorageError, range_end};
use crate::os::{Errno, Fd, MAX_BUFFERS, Status, layout};
use crate::slab;
use crate::storage::{
    Advice, DeviceSpace, ReadRange, Storage, StorageStamp, WriteRange, fill_by_writes,
};
use crate::tuning::{COPY_BLOCK_BYTES, COPY_CALL_BYTES, READ_OVER_BYTES, START_WRITING_BYTES};

use crate::syncs::Syncs;
use crate::{BLOCK_BYTES, Create, SyncLevel};
use std::fmt;
use std::io::{IoSlice, IoSliceMut};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use zonda_runtime::lock::{Rank, RwLock};

/// A file, opened for reading or for reading and writing.
#[derive(Debug)]
pub struct File {
    /// Shared with the locks of the file, which may outlive this.
    pub(crate) fd: Arc<Fd>,
    path: Arc<Path>,
    writable: bool,
    /// The process that opened it.
    pid: u32,
    /// Forks before that.
    forks: u64,
    level: SyncLevel,
    /// Bytes written since the device was last set to work.
    waiting: AtomicU64,
    syncs: Syncs,
    /// Barriers and syncs ask what its close would report, too.
    asks_close: bool,
    /// Its path may be a symbolic link to it.
    may_be_link: bool,
    /// The folder still has to be synced, since this open created the file.
    folder_pending: AtomicBool,
    /// For transfers past the system's cache, where they are aligned to blocks in every way.
    direct: RwLock<Option<Fd>>,
    is_direct: AtomicBool,
    most_len: OnceLock<u64>,
}

impl File {
    /// Opens `path` for reading only.
    ///
    /// # Errors
    /// [`StorageError::Open`] with the cause.
    pub fn open_read(path: &Path) -> Result<File, StorageError> {
        File::open(path, false, Create::MustExist, SyncLevel::None)
    }

    /// Opens `path`, creating it as `create` says. A file that is created is opened for writing
    /// whatever `write` says.
    ///
    /// # Errors
    /// [`StorageError::Open`] with the cause: `ENOENT`, `EEXIST` for [`Create::Exclusive`] on a
    /// file that exists, `EACCES`, ...
    pub fn open(
        path: &Path,
        write: bool,
        create: Create,
        level: SyncLevel,
    ) -> Result<File, StorageError> {
        let writable = write || create != Create::MustExist;
        let access = if writable { libc::O_RDWR } else { libc::O_RDONLY };
        let flags = match create {
            Create::MustExist => 0,
            Create::Truncate => libc::O_CREAT | libc::O_TRUNC,
            Create::Exclusive => libc::O_CREAT | libc::O_EXCL,
        };
        File::with_flags(path, access | flags, level)
    }

    /// Opens `path` for writing, making it if it is not there, and leaves what is in it.
    pub(crate) fn open_or_make(path: &Path, level: SyncLevel) -> Result<File, StorageError> {
        File::with_flags(path, libc::O_RDWR | libc::O_CREAT, level)
    }

    fn with_flags(path: &Path, flags: libc::c_int, level: SyncLevel) -> Result<File, StorageError> {
        if flags & libc::O_ACCMODE != libc::O_RDONLY {
            crate::layer::give_way_to_writing(path);
        }
        // The system says by the way whether the path is a symbolic link, which its neighbours depend on.
        let (opened, may_be_link) = match Fd::open(path, flags | libc::O_NOFOLLOW) {
            Err(Errno(libc::ELOOP)) => (Fd::open(path, flags), true),
            opened => (opened, false),
        };
        let fd =
            opened.map_err(|Errno(errno)| StorageError::Open { path: Arc::from(path), errno })?;
        let mut file = File::of_fd(fd, path, flags & libc::O_ACCMODE == libc::O_RDWR, level);
        file.may_be_link = may_be_link;
        file.folder_pending = AtomicBool::new(flags & libc::O_CREAT != 0);
        Ok(file)
    }

    /// A file that is open already.
    pub(crate) fn of_fd(fd: Fd, path: &Path, writable: bool, level: SyncLevel) -> File {
        File {
            fd: Arc::new(fd),
            path: Arc::from(path),
            writable,
            pid: zonda_runtime::fork::process_id(),
            forks: zonda_runtime::fork::count(),
            level,
            waiting: AtomicU64::new(0),
            syncs: Syncs::default(),
            asks_close: false,
            may_be_link: true,
            folder_pending: AtomicBool::new(false),
            direct: RwLock::ranked(Rank::Storage, None),
            is_direct: AtomicBool::new(false),
            most_len: OnceLock::new(),
        }
    }

    /// Lets each barrier and sync also ask for the errors that a close would report, whatever the sync level: for a file that
    /// must be reliable while it is open.
    pub(crate) fn asking_close(mut self) -> File {
        self.asks_close = true;
        self
    }

    /// What its device has; `None` where the system does not say.
    #[must_use]
    pub fn room(&self) -> Option<DeviceSpace> {
        self.fd.room().ok()
    }

    /// Lets transfers go past the system's cache (`O_DIRECT`) whose place, length and memory are
    /// multiples of a block. Others go through it, and the system keeps both in step.
    pub(crate) fn go_direct(&self) -> Result<(), Errno> {
        let access = if self.writable { libc::O_RDWR } else { libc::O_RDONLY };
        let fd = self.fd.anew(access | libc::O_DIRECT)?;
        *self.direct.write() = Some(fd);
        self.is_direct.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether [`File::go_direct`] holds.
    pub(crate) fn is_direct(&self) -> bool {
        self.is_direct.load(Ordering::Acquire)
    }

    /// Ends it: the file was replaced, or the system refuses a transfer.
    pub(crate) fn no_more_direct(&self) {
        self.is_direct.store(false, Ordering::Release);
        *self.direct.write() = None;
    }

    /// Tries a transfer past the system's cache; `None` where it has to go through it.
    fn past_cache(
        &self,
        at: u64,
        memory: *const u8,
        len: usize,
        call: impl FnOnce(&Fd) -> Result<usize, Errno>,
    ) -> Option<Result<usize, Errno>> {
        if !self.is_direct() {
            return None;
        }
        let aligned = (at | memory.addr() as u64 | len as u64).is_multiple_of(BLOCK_BYTES);
        if !aligned {
            return None;
        }
        let done = self.direct.read().as_ref().map(call)?;
        if done == Err(Errno(libc::EINVAL)) {
            self.no_more_direct();
            return None;
        }
        Some(done)
    }

    fn pread(&self, at: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let past = self.past_cache(at, buf.as_ptr(), buf.len(), |fd| fd.pread(at, buf));
        past.unwrap_or_else(|| self.fd.pread(at, buf))
    }

    fn pwrite(&self, at: u64, data: &[u8]) -> Result<usize, Errno> {
        let past = self.past_cache(at, data.as_ptr(), data.len(), |fd| fd.pwrite(at, data));
        past.unwrap_or_else(|| self.fd.pwrite(at, data))
    }

    /// Empties the file. A device cannot be emptied.
    pub(crate) fn empty(&self) -> Result<(), StorageError> {
        match self.fd.status() {
            Ok(status) if !status.is_regular() => Ok(()),
            // ext4 writes out on close what was put into a file that was cut to nothing.
            Ok(_) if self.fd.len() == Ok(0) => Ok(()),
            _ => self.set_len(0),
        }
    }

    /// The path as it was given to open.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its path may be a symbolic link to it.
    pub(crate) fn may_be_link(&self) -> bool {
        self.may_be_link
    }

    /// Whether it was opened for writing.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// How far barriers and syncs go.
    pub(crate) fn level(&self) -> SyncLevel {
        self.level
    }

    pub(crate) fn error(&self, op: Op, at: u64, len: usize, Errno(errno): Errno) -> StorageError {
        StorageError::Io { path: Arc::clone(&self.path), op, at, len: len as u64, errno }
    }

    fn check_writable(&self, op: Op, at: u64, len: usize) -> Result<(), StorageError> {
        let (path, len) = (&self.path, len as u64);
        if !self.writable {
            return Err(StorageError::ReadOnly { path: Arc::clone(path), op, at, len });
        }
        if self.pid != zonda_runtime::fork::process_id() {
            return Err(StorageError::Inherited { path: Arc::clone(path), op, at, len });
        }
        Ok(())
    }

    /// Hands the data to the device as the sync level says.
    fn make_durable(&self, op: Op) -> Result<(), StorageError> {
        if !self.writable {
            return Ok(());
        }
        // A new file's name is durable only when its folder is.
        let is_new = self.level == SyncLevel::Full && self.folder_pending.load(Ordering::Acquire);
        let folder = if is_new { folder_of(&self.path)? } else { None };
        self.sync_by(op, |level| match level {
            SyncLevel::None => Ok(()),
            SyncLevel::Data => self.fd.sync_data(),
            SyncLevel::Full => {
                self.fd.sync_all()?;
                sync_folder(folder.as_ref())
            }
        })?;
        if is_new {
            self.folder_pending.store(false, Ordering::Release);
        }
        if self.asks_close { self.check_close() } else { Ok(()) }
    }

    /// Runs one sync of the file or of its folder, which is told the sync level; once one has failed
    /// that is the result of all later ones.
    ///
    /// # Errors
    /// [`StorageError::SyncLost`].
    pub(crate) fn sync_by(
        &self,
        op: Op,
        sync: impl FnOnce(SyncLevel) -> Result<(), Errno>,
    ) -> Result<(), StorageError> {
        let lost =
            |Errno(errno)| StorageError::SyncLost { path: Arc::clone(&self.path), op, errno };
        self.syncs.run(|| sync(self.level).map_err(lost))
    }

    /// Asks the system for the errors that it would report at the close of the file, where nobody could act on them. To be called
    /// last, when a written file ends.
    ///
    /// # Errors
    /// [`StorageError::CloseFailed`].
    pub fn check_close(&self) -> Result<(), StorageError> {
        if !self.writable {
            return Ok(());
        }
        self.fd.check_close().map_err(|Errno(errno)| StorageError::CloseFailed {
            path: Arc::clone(&self.path),
            errno,
        })
    }

    /// Where the next data are, at `at` or behind it: before that all is zero, and nothing has to be read to know it. `at`
    /// itself where the file system does not say, `u64::MAX` where there are none.
    #[must_use]
    pub fn next_data(&self, at: u64) -> u64 {
        self.fd.next_data(at).unwrap_or(at).max(at)
    }

    /// Whether the file system is memory of this machine: nothing on it outlives the machine, and a second copy of a file takes as much of it again.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        matches!(self.fd.file_system(), Ok(layout::TMPFS | layout::RAMFS))
    }

    /// Whether the file has the room of all its bytes. It may have holes in spite of that where the system takes room in large pages.
    #[must_use]
    pub fn is_without_holes(&self) -> bool {
        matches!((self.fd.bytes_taken(), self.fd.len()), (Ok(taken), Ok(len)) if taken >= len)
    }

    /// Whether nobody else has the file open or mapped, as far as the system says so: no other process, not this one a second time, and
    /// no child that was forked since it was opened.
    #[must_use]
    pub fn is_opened_once(&self) -> bool {
        self.forks == zonda_runtime::fork::count() && self.fd.is_opened_once().unwrap_or(false)
    }

    /// Whether the system says that somebody else has the file open: another process, or this one a second time. False where it cannot say, as on
    /// file systems of other machines, which refuse leases for reasons of their own.
    #[must_use]
    pub fn is_opened_by_others(&self) -> bool {
        const LOCAL: [u64; 6] = [
            layout::TMPFS,
            layout::RAMFS,
            layout::EXT4,
            layout::XFS,
            layout::BTRFS,
            layout::OVERLAYFS,
        ];
        let is_local = self.fd.file_system().is_ok_and(|kind| LOCAL.contains(&kind));
        is_local && self.fd.is_opened_once() == Ok(false)
    }

    /// Copies `len` bytes at `from_at` of another file to `at`, by the kernel unless it is dearer there: how many, from the first on. What
    /// is left, because the kernel cannot do so for these files or there was an error, the caller moves himself, and finds the error. Holes
    /// stay holes.
    #[must_use]
    pub fn copy_from(&self, at: u64, from: &File, from_at: u64, len: u64) -> u64 {
        if self.check_writable(Op::Write, at, 0).is_err() {
            return 0;
        }
        // The kernel copies page by page on file systems of this machine that cannot share blocks between files, or not between places in
        // different parts of a page. Others may copy without the bytes coming here.
        let is_dearer = match self.fd.file_system() {
            Ok(layout::TMPFS | layout::EXT4) => true,
            Ok(layout::XFS | layout::BTRFS) => !(at ^ from_at).is_multiple_of(BLOCK_BYTES),
            _ => false,
        };
        let mut block = Vec::new();
        if is_dearer && block.try_reserve_exact(COPY_BLOCK_BYTES).is_ok() {
            block.resize(COPY_BLOCK_BYTES, 0);
        }
        // Where the data end that were found last: some file systems look at each page on the way there.
        let (mut done, mut hole) = (0, 0);
        while done < len {
            let next = from_at.saturating_add(done);
            if next >= hole {
                let data = from.next_data(next);
                if data > next {
                    done = done.saturating_add(data - next).min(len);
                    continue;
                }
                hole = from.fd.next_hole(next).unwrap_or(u64::MAX).max(next);
            }
            let run = (len - done).min(hole - next).min(COPY_CALL_BYTES);
            let n = usize::try_from(run).unwrap_or(usize::MAX);
            let to = at.saturating_add(done);
            let copied = match block.get_mut(..n.min(COPY_BLOCK_BYTES)) {
                Some(block) => self.fd.copy_through(to, &from.fd, next, block),
                None => self.fd.copy_range(to, &from.fd, next, n),
            };
            match copied {
                Ok(0) | Err(_) => break,
                Ok(n) => {
                    done += n as u64;
                    self.note_written(n as u64);
                }
            }
        }
        done
    }

    /// Notes how much waits for the device, and sets it to work.
    fn note_written(&self, len: u64) {
        if self.level == SyncLevel::None {
            return;
        }
        let waiting = self.waiting.fetch_add(len, Ordering::Relaxed).saturating_add(len);
        if waiting >= START_WRITING_BYTES {
            self.waiting.store(0, Ordering::Relaxed);
            self.fd.start_writing();
        }
    }

    /// Which file it is: device and inode. `None` where the system cannot say.
    #[must_use]
    pub fn identity(&self) -> Option<(u64, u64)> {
        self.fd.status().ok().map(|status| status.identity)
    }

    /// The open file, for a process that carries on with it when this one is killed.
    ///
    /// # Errors
    /// What the system says.
    pub fn for_another_process(&self) -> std::io::Result<std::os::fd::OwnedFd> {
        self.fd.duplicate()
    }

    /// Removes the file, for a creation that is given up: an ordinary file that its path still names. What was
    /// there before and stays after a file, such as a device or a pipe, a link, or another file that has got
    /// the name, is left alone.
    ///
    /// # Errors
    /// [`StorageError::Io`].
    pub fn remove(&self) -> Result<(), StorageError> {
        match (Status::of_name(&self.path), self.fd.status()) {
            (Ok(named), Ok(own)) if named.is_regular() && named.identity == own.identity => {}
            _ => return Ok(()),
        }
        std::fs::remove_file(&self.path).map_err(|error| {
            self.error(Op::Remove, 0, 0, Errno(error.raw_os_error().unwrap_or(libc::EIO)))
        })
    }

    /// Writes buffers that follow one another from `at` on, by as many calls as the kernel needs.
    fn write_run(&self, mut at: u64, bufs: &mut [IoSlice<'_>]) -> Result<(), StorageError> {
        let len: usize = bufs.iter().map(|b| b.len()).sum();
        let mut left = len;
        let mut bufs = bufs;
        while left > 0 {
            let got = match &mut *bufs {
                [one] => self.pwrite(at, one),
                many => self.fd.pwritev(at, many),
            };
            match got.map_err(|e| self.error(Op::Write, at, left, e))? {
                0 => {
                    let path = Arc::clone(&self.path);
                    return Err(StorageError::NothingWritten { path, at, len: left as u64 });
                }
                n => {
                    IoSlice::advance_slices(&mut bufs, n);
                    at += n as u64;
                    left -= n;
                }
            }
        }
        self.note_written(len as u64);
        Ok(())
    }
}

/// The folder of `path`, for a sync, which makes durable which files it has. That it cannot be opened says nothing of
/// what was written, so it is found out before the sync. `None` where it is gone, with the file.
pub(crate) fn folder_of(path: &Path) -> Result<Option<Fd>, StorageError> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match Fd::open(folder, libc::O_RDONLY | libc::O_DIRECTORY) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno(libc::ENOENT)) => Ok(None),
        Err(Errno(errno)) => Err(StorageError::Open { path: Arc::from(folder), errno }),
    }
}

/// Syncs a folder, if there is one.
pub(crate) fn sync_folder(folder: Option<&Fd>) -> Result<(), Errno> {
    folder.map_or(Ok(()), Fd::sync_all)
}

/// How many of `ranges` one call can read: each begins where the one before ends, or little after.
/// The bytes between are counted too.
fn read_run(ranges: &[ReadRange<'_>]) -> (usize, usize) {
    let Some(first) = ranges.first() else { return (0, 0) };
    let mut end = first.at + first.buf.len() as u64;
    let (mut n, mut n_bufs, mut between) = (1, 1, 0_usize);
    for range in &ranges[1..] {
        let Some(gap) = range.at.checked_sub(end) else { break };
        let needs = if gap == 0 { 1 } else { 2 };
        if gap > READ_OVER_BYTES || n_bufs + needs > MAX_BUFFERS {
            break;
        }
        // At most READ_OVER_BYTES, so it fits.
        between += gap as usize;
        n_bufs += needs;
        n += 1;
        end = range.at + range.buf.len() as u64;
    }
    (n, between)
}

impl Storage for File {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        let mut done = 0;
        range_end(Op::Read, at, buf.len())?;
        while done < buf.len() {
            let here = at + done as u64;
            let rest = &mut buf[done..];
            let len = rest.len();
            match self.pread(here, rest).map_err(|e| self.error(Op::Read, here, len, e))? {
                0 => break,
                n => done += n,
            }
        }
        Ok(done)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        for range in &mut *ranges {
            range_end(Op::Read, range.at, range.buf.len())?;
            range.got = 0;
        }
        let mut ranges = ranges;
        loop {
            let (n, between) = read_run(ranges);
            let (run, rest) = std::mem::take(&mut ranges).split_at_mut(n);
            match run {
                [] => return Ok(()),
                [one] => one.got = self.read_at(one.at, one.buf)?,
                many => self.read_together(many, between)?,
            }
            ranges = rest;
        }
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.check_writable(Op::Write, at, data.len())?;
        range_end(Op::Write, at, data.len())?;
        self.write_run(at, &mut [IoSlice::new(data)])
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        for range in ranges {
            self.check_writable(Op::Write, range.at, range.data.len())?;
            range_end(Op::Write, range.at, range.data.len())?;
        }
        let mut bufs: Vec<IoSlice<'_>> = Vec::with_capacity(ranges.len().min(MAX_BUFFERS));
        let mut run = (0, 0);
        for range in ranges.iter().filter(|r| !r.data.is_empty()) {
            if !bufs.is_empty() && (range.at != run.1 || bufs.len() == MAX_BUFFERS) {
                self.write_run(run.0, &mut bufs)?;
                bufs.clear();
            }
            if bufs.is_empty() {
                run = (range.at, range.at);
            }
            bufs.push(IoSlice::new(range.data));
            run.1 += range.data.len() as u64;
        }
        self.write_run(run.0, &mut bufs)
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        fill_by_writes(self, at, len, element)
    }

    fn advise(&self, _: Advice) {}

    fn rest(&self) {}

    fn len(&self) -> Result<u64, StorageError> {
        self.fd.len().map_err(|e| self.error(Op::Len, 0, 0, e))
    }

    fn most_len(&self) -> u64 {
        *self.most_len.get_or_init(|| self.fd.most_len())
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.check_writable(Op::SetLen, len, 0)?;
        range_end(Op::SetLen, len, 0)?;
        self.fd.set_len(len).map_err(|e| self.error(Op::SetLen, len, 0, e))
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.make_durable(Op::Barrier)
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.make_durable(Op::Sync)
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn plain_file(&self) -> Option<&File> {
        Some(self)
    }

    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        self.fd.stamp().map_err(|e| self.error(Op::Len, 0, 0, e))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("file")
    }
}

impl File {
    /// Reads `run` by one `preadv`, `between` bytes of gaps included; what the kernel cut short is
    /// fetched range by range.
    fn read_together(&self, run: &mut [ReadRange<'_>], between: usize) -> Result<(), StorageError> {
        let at = run[0].at;
        let Some(mut thrown_away) = slab::zeros(between) else {
            for range in run {
                range.got = self.read_at(range.at, range.buf)?;
            }
            return Ok(());
        };
        let got = {
            let mut gaps: &mut [u8] = &mut thrown_away;
            let mut bufs = Vec::with_capacity(run.len());
            let mut end = at;
            for range in &mut *run {
                let gap = (range.at - end) as usize;
                end = range.at + range.buf.len() as u64;
                if gap > 0 {
                    let (skip, more) = gaps.split_at_mut(gap);
                    gaps = more;
                    bufs.push(IoSliceMut::new(skip));
                }
                bufs.push(IoSliceMut::new(range.buf));
            }
            let len = (end - at) as usize;
            self.fd.preadv(at, &mut bufs).map_err(|e| self.error(Op::Read, at, len, e))?
        };
        let reached = at + got as u64;
        for range in run {
            let have = reached.saturating_sub(range.at).min(range.buf.len() as u64) as usize;
            range.got = have;
            if have < range.buf.len() {
                range.got += self.read_at(range.at + have as u64, &mut range.buf[have..])?;
            }
        }
        Ok(())
    }
}
