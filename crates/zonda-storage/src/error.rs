//! What can go wrong below the formats, with the values that explain it.

use crate::neighbour::{Refusal, of_owner, remedy};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The operation that met an error, or that a layer counts or records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Opening or creating a file.
    Open,
    /// Reading a range or several.
    Read,
    /// Writing a range or several.
    Write,
    /// Asking for the length.
    Len,
    /// Setting the length.
    SetLen,
    /// Ordering what came before ahead of what comes after.
    Barrier,
    /// Making what came before durable.
    Sync,
    /// Forgetting clean cached data.
    Invalidate,
    /// Putting a copy in the place of its file.
    Replace,
    /// Removing a file.
    Remove,
}

impl Op {
    /// The word used in traces and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Op::Open => "open",
            Op::Read => "read",
            Op::Write => "write",
            Op::Len => "len",
            Op::SetLen => "setlen",
            Op::Barrier => "barrier",
            Op::Sync => "sync",
            Op::Invalidate => "invalidate",
            Op::Replace => "replace",
            Op::Remove => "remove",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a request to a server failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteFailure {
    /// There is no such object.
    NotFound,
    /// The server wants a user and a password, a signature, or others than it got.
    Denied,
    /// The URL or a setting is wrong, or asks for what is not built.
    Unusable,
    /// Nobody answers: no such host, no connection, no certificate that is trusted.
    Unreachable,
    /// Nothing came for too long.
    TimedOut,
    /// The answer is not one to the request, or the object has changed since it was opened.
    Broken,
    /// A change was asked of what can only be read.
    ReadOnly,
    /// There is no memory for what came.
    NoMemory,
}

impl RemoteFailure {
    /// The cause as an `errno`.
    #[must_use]
    pub fn raw_os_error(self) -> i32 {
        match self {
            RemoteFailure::NotFound => libc::ENOENT,
            RemoteFailure::Denied => libc::EACCES,
            RemoteFailure::Unusable => libc::EINVAL,
            RemoteFailure::Unreachable => libc::EHOSTUNREACH,
            RemoteFailure::TimedOut => libc::ETIMEDOUT,
            RemoteFailure::Broken => libc::EIO,
            RemoteFailure::ReadOnly => libc::EROFS,
            RemoteFailure::NoMemory => libc::ENOMEM,
        }
    }
}

/// An operation on a storage that did not succeed.
///
/// Offsets and lengths are in bytes. [`StorageError::raw_os_error`] gives the positive `errno` that
/// C callers receive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The operating system refused a call on a file.
    #[error("{path}: {op} of {len} bytes at byte {at}: {}", text(*errno), path = path.display())]
    Io {
        /// The file as it was opened.
        path: Arc<Path>,
        /// What was asked.
        op: Op,
        /// Where the part that failed begins; 0 for calls without an offset.
        at: u64,
        /// How many bytes were still to be moved; for `setlen` 0.
        len: u64,
        /// The cause, as in `errno.h`.
        errno: i32,
    },
    /// A file could not be opened or created.
    #[error("{}: open: {}", path.display(), text(*errno))]
    Open {
        /// The path asked for.
        path: Arc<Path>,
        /// The cause, as in `errno.h`.
        errno: i32,
    },
    /// Somebody else has the file open, and it may have one writer only.
    #[error("{}: {by}", path.display())]
    Locked {
        /// The path asked for.
        path: Arc<Path>,
        /// Who, and what for.
        by: &'static str,
    },
    /// A file system refused a lock where there has to be one.
    #[error("{}: cannot be locked, as HDF5_USE_FILE_LOCKING asks: {}", path.display(), text(*errno))]
    NoLocks {
        /// The path asked for.
        path: Arc<Path>,
        /// The cause, as in `errno.h`.
        errno: i32,
    },
    /// A change was asked of a storage opened for reading.
    #[error("{}: {op} of {len} bytes at byte {at}: opened for reading only", path.display())]
    ReadOnly {
        /// The file as it was opened.
        path: Arc<Path>,
        /// What was asked.
        op: Op,
        /// Where the change would have begun.
        at: u64,
        /// Its length.
        len: u64,
    },
    /// A change was asked of a storage in a forked child; the parent, which opened it for writing, goes on writing.
    #[error(
        "{}: {op} of {len} bytes at byte {at}: the file belongs to the process that forked this one",
        path.display()
    )]
    Inherited {
        /// The file as it was opened.
        path: Arc<Path>,
        /// What was asked.
        op: Op,
        /// Where the change would have begun.
        at: u64,
        /// Its length.
        len: u64,
    },
    /// The device took no bytes of a write and gave no reason.
    #[error("{}: write of {len} bytes at byte {at}: the file system wrote nothing and gave no reason", path.display())]
    NothingWritten {
        /// The file as it was opened.
        path: Arc<Path>,
        /// Where the part that failed begins.
        at: u64,
        /// How many bytes were still to be written.
        len: u64,
    },
    /// What was written could not be made durable, now or by an earlier sync or barrier of this open
    /// file: see [`StorageError::is_lost_sync`].
    #[error(
        "{}: the device did not take what was to be made durable: {}; what was written since the last \
         sync that succeeded may be lost, and no later sync of this file can confirm it: close it, and \
         write that data anew to another file",
        path.display(), text(*errno)
    )]
    SyncLost {
        /// The file as it was opened.
        path: Arc<Path>,
        /// Which of the two it was that failed.
        op: Op,
        /// The cause, as in `errno.h`.
        errno: i32,
    },
    /// The file system said only at the close that it could not keep what was written.
    #[error(
        "{}: closing it failed: {}; what was written to it may be lost", path.display(), text(*errno)
    )]
    CloseFailed {
        /// The file as it was opened.
        path: Arc<Path>,
        /// The cause, as in `errno.h`.
        errno: i32,
    },
    /// A range ends beyond the largest offset a file can have (2^63 - 1).
    #[error("{op} of {len} bytes at byte {at}: beyond the largest offset")]
    TooFar {
        /// What was asked.
        op: Op,
        /// Where the range begins.
        at: u64,
        /// Its length.
        len: u64,
    },
    /// A range ends behind what the file system can hold of one file.
    #[error(
        "write of {len} bytes at byte {at}: the file system holds {most} bytes of a file at most"
    )]
    NoPlace {
        /// Where the range begins.
        at: u64,
        /// Its length.
        len: u64,
        /// How long a file can be.
        most: u64,
    },
    /// A memory storage would grow over its limit, or over what the machine can give.
    #[error("memory: {op} of {len} bytes at byte {at}: over the limit of {limit} bytes")]
    MemoryLimit {
        /// What was asked.
        op: Op,
        /// Where the range begins.
        at: u64,
        /// Its length.
        len: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// There is no memory for a page of the cache.
    #[error("no memory for {bytes} bytes of the cache")]
    NoMemory {
        /// How many were asked for.
        bytes: u64,
    },
    /// The `fault` layer was asked to fail here.
    #[error("fault: {op} number {nth} ({len} bytes at byte {at}): {}", text(*errno))]
    Injected {
        /// What was asked.
        op: Op,
        /// Which operation of the watched kind it was, the first being 1.
        nth: u64,
        /// Where the range begins.
        at: u64,
        /// Its length.
        len: u64,
        /// The cause it pretends, as in `errno.h`.
        errno: i32,
    },
    /// A file that is there is not used, since it is not to be trusted; see [`crate::neighbour`].
    #[error("{}: refused: {why}{}{}", path.display(), of_owner(*owner), remedy(path, *why))]
    Refused {
        /// The file that is not used.
        path: Arc<Path>,
        /// What is wrong with it.
        why: Refusal,
        /// The number of the user to whom it belongs, where that is known.
        owner: Option<u32>,
    },
    /// What another MPI rank met when it carried out this operation for all.
    #[error("on MPI rank {rank}: {text}")]
    OfRank {
        /// Which rank.
        rank: usize,
        /// The cause, as in `errno.h`.
        errno: i32,
        /// Where in the storage it happened.
        at: Option<u64>,
        /// Its [`StorageError::is_lost_sync`].
        lost_sync: bool,
        /// Its [`StorageError::is_refused`].
        refused: bool,
        /// What that rank would have said.
        text: Arc<str>,
    },
    /// A request to a server did not bring what was asked for.
    #[error("{url}: {}{what}", of_range(*range))]
    Remote {
        /// What was asked for, without user, password, tokens and signatures.
        url: Arc<str>,
        /// The bytes that were asked for: the first, and how many; `None` for requests that concern no bytes.
        range: Option<(u64, u64)>,
        /// What kind of failure it is.
        kind: RemoteFailure,
        /// The status of HTTP of an answer that is no success.
        status: Option<u16>,
        /// What happened, in words, with the status of HTTP where there was one.
        what: Arc<str>,
    },
    /// The file that `event` should write to could not be opened.
    #[error("event: trace file {}: {}", path.display(), text(*errno))]
    Trace {
        /// The trace file.
        path: Arc<Path>,
        /// The cause, as in `errno.h`.
        errno: i32,
    },
}

impl StorageError {
    /// The cause as a positive `errno`, which C callers get as it is.
    #[must_use]
    pub fn raw_os_error(&self) -> i32 {
        match self {
            StorageError::Io { errno, .. }
            | StorageError::SyncLost { errno, .. }
            | StorageError::CloseFailed { errno, .. }
            | StorageError::Open { errno, .. }
            | StorageError::NoLocks { errno, .. }
            | StorageError::Injected { errno, .. }
            | StorageError::OfRank { errno, .. }
            | StorageError::Trace { errno, .. } => *errno,
            // What the kernel answers to a write on a descriptor opened for reading.
            StorageError::ReadOnly { .. } => libc::EBADF,
            StorageError::Inherited { .. } => libc::ECHILD,
            // What the reference answers where a file that is in use is to be created anew.
            StorageError::Locked { .. } => libc::EACCES,
            StorageError::NothingWritten { .. } => libc::EIO,
            StorageError::TooFar { .. } => libc::EFBIG,
            // What `lseek` answers, which the reference asks.
            StorageError::NoPlace { .. } => libc::EINVAL,
            StorageError::MemoryLimit { .. } | StorageError::NoMemory { .. } => libc::ENOMEM,
            StorageError::Refused { .. } => libc::EPERM,
            StorageError::Remote { kind, .. } => kind.raw_os_error(),
        }
    }

    /// Whether a file that is there was not used because it is not to be trusted. Nobody may treat that
    /// as "missing".
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, StorageError::Refused { .. } | StorageError::OfRank { refused: true, .. })
    }

    /// Whether a sync or a barrier failed, of this storage or of another file that was needed for it. Data handed to the device
    /// since the last successful one may be lost then, and the device does not say which: all later syncs and barriers of this
    /// storage give the same error. A failed write is not of this kind: its data are kept, and tried again.
    #[must_use]
    pub fn is_lost_sync(&self) -> bool {
        matches!(
            self,
            StorageError::SyncLost { .. }
                | StorageError::Injected { op: Op::Sync | Op::Barrier, .. }
                | StorageError::OfRank { lost_sync: true, .. }
        )
    }

    /// Where in the storage it happened, in bytes, when the operation had a place.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self {
            StorageError::Io { at, .. }
            | StorageError::ReadOnly { at, .. }
            | StorageError::Inherited { at, .. }
            | StorageError::NothingWritten { at, .. }
            | StorageError::TooFar { at, .. }
            | StorageError::NoPlace { at, .. }
            | StorageError::MemoryLimit { at, .. }
            | StorageError::Injected { at, .. } => Some(*at),
            StorageError::OfRank { at, .. } => *at,
            StorageError::Remote { range, .. } => range.map(|(at, _)| at),
            StorageError::Open { .. }
            | StorageError::NoMemory { .. }
            | StorageError::SyncLost { .. }
            | StorageError::CloseFailed { .. }
            | StorageError::Locked { .. }
            | StorageError::NoLocks { .. }
            | StorageError::Refused { .. }
            | StorageError::Trace { .. } => None,
        }
    }

    /// The file it happened on, when there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            StorageError::Io { path, .. }
            | StorageError::SyncLost { path, .. }
            | StorageError::CloseFailed { path, .. }
            | StorageError::Open { path, .. }
            | StorageError::Locked { path, .. }
            | StorageError::NoLocks { path, .. }
            | StorageError::ReadOnly { path, .. }
            | StorageError::Inherited { path, .. }
            | StorageError::NothingWritten { path, .. }
            | StorageError::Refused { path, .. }
            | StorageError::Trace { path, .. } => Some(path),
            StorageError::TooFar { .. }
            | StorageError::NoPlace { .. }
            | StorageError::MemoryLimit { .. }
            | StorageError::NoMemory { .. }
            | StorageError::OfRank { .. }
            | StorageError::Injected { .. } => None,
            StorageError::Remote { url, .. } => Some(Path::new(&**url)),
        }
    }
}

/// The end of a range, refused when it is beyond what an `off_t` holds.
pub(crate) fn range_end(op: Op, at: u64, len: usize) -> Result<u64, StorageError> {
    let too_far = StorageError::TooFar { op, at, len: len as u64 };
    match at.checked_add(len as u64) {
        Some(end) if end <= i64::MAX as u64 => Ok(end),
        _ => Err(too_far),
    }
}

/// Bytes that a file can have on every file system.
const FAR: u64 = u32::MAX as u64;

/// Refuses a range that a storage can never hold, for a caller that writes later.
///
/// # Errors
/// [`StorageError::NoPlace`].
pub fn check_place(at: u64, len: u64, most_len: impl FnOnce() -> u64) -> Result<(), StorageError> {
    let end = at.saturating_add(len);
    if end <= FAR {
        return Ok(());
    }
    let most = most_len();
    if end > most { Err(StorageError::NoPlace { at, len, most }) } else { Ok(()) }
}

/// The end of a range that a storage can hold, for calls of some nanoseconds; `None` for an empty one, and where
/// [`range_end`] or [`check_place`] say what is wrong.
#[inline(always)]
pub(crate) fn held_end(at: u64, len: usize, most_len: impl FnOnce() -> u64) -> Option<u64> {
    let end = at.checked_add(len as u64)?;
    let is_held = end <= FAR || (end <= i64::MAX as u64 && end <= most_len());
    (is_held && end > at).then_some(end)
}

/// The system's words for an `errno`.
fn text(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

/// Which bytes, as the beginning of a sentence.
fn of_range(range: Option<(u64, u64)>) -> String {
    range.map_or(String::new(), |(at, len)| format!("{len} bytes at byte {at}: "))
}
