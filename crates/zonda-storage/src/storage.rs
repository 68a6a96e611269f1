//! The trait that every backend and every layer is.

use crate::StorageError;
use crate::backend::File;
use crate::tuning::{FILL_BLOCK_BYTES, FILL_LEAST_BYTES};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// One range of a [`Storage::read_ranges`] call.
#[derive(Debug)]
pub struct ReadRange<'a> {
    /// Where the range begins, in bytes.
    pub at: u64,
    /// Where the bytes go.
    pub buf: &'a mut [u8],
    /// How many bytes were read; set by the call, also below `buf.len()` at the end of the storage.
    pub got: usize,
}

impl<'a> ReadRange<'a> {
    /// A range to be read into `buf`.
    #[must_use]
    pub fn new(at: u64, buf: &'a mut [u8]) -> Self {
        ReadRange { at, buf, got: 0 }
    }
}

/// One range of a [`Storage::write_ranges`] call.
#[derive(Debug, Clone, Copy)]
pub struct WriteRange<'a> {
    /// Where the range begins, in bytes.
    pub at: u64,
    /// The bytes to be written.
    pub data: &'a [u8],
}

/// Ranges of one length at one distance from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Where the first begins, in bytes.
    pub at: u64,
    /// Bytes of each.
    pub len: usize,
    /// Bytes from the beginning of one to that of the next.
    pub step: u64,
    /// How many there are.
    pub count: usize,
}

/// What a format knows about how its file will be read and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Advice {
    /// Bytes of a record: the program writes them in any order before it goes on to the next record.
    pub record_bytes: u64,
    /// Number of parts of a record that are written or read side by side: its variables.
    pub n_record_parts: u64,
    /// Bytes that the file will have, as far as that is known.
    pub file_bytes: u64,
}

/// A stamp of the bytes of a storage. Two stamps are equal where nothing was written between them, or where all was written
/// within one step of the file system's clock: some milliseconds on most, 2 seconds at worst.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StorageStamp {
    /// Bytes of the storage.
    pub len: u64,
    /// For a file: its inode, and seconds and nanoseconds of the last change of its bytes and of its inode. For a memory: how
    /// often it was changed.
    pub changed: [i64; 5],
}

impl StorageStamp {
    /// Whether the bytes of a file were changed in the last `seconds`, by this machine's clock.
    #[must_use]
    pub fn is_younger_than(&self, seconds: u64) -> bool {
        let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        u64::try_from(self.changed[1]).is_ok_and(|then| now.abs_diff(then) <= seconds)
    }
}

/// What the device of a file has, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceSpace {
    /// Bytes that this user may still take.
    pub free: u64,
    /// All of it.
    pub size: u64,
}

/// A storage that is read over a network: each request takes as long as a message there and back, however few bytes it asks for.
///
/// So who knows which ranges it will read says so for all of them together, before it reads the first.
pub trait RemoteReads: Send + Sync {
    /// Tells which ranges will be read soon, first what is wanted first, in bytes. All are asked for at the same time, joined or cut as
    /// the network wants it; who reads one then waits for that one alone. What is behind the end, or already here, is left out.
    /// What goes wrong is the error of the read.
    fn will_read(&self, ranges: &[Range<u64>]);

    /// What is read there, as messages name it: without secrets.
    fn shown(&self) -> Arc<str>;

    /// What changes when that does, as far as its server says; `None` where nobody does.
    fn state(&self) -> Option<Arc<str>> {
        None
    }
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl fmt::Debug for dyn RemoteReads + '_ {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RemoteReads")
    }
}

/// A block of a storage that is lent to one thread ([`Storage::lease`]). Both answer false where it is not, or no longer, and where the bytes
/// are not all there; nothing has happened then, and the storage itself is to be asked.
pub trait Leased: Send + Sync {
    /// Writes `data` at byte `at` of the storage.
    fn put(&self, at: u64, data: &[u8]) -> bool;

    /// Reads as many bytes as `out` has from byte `at` of the storage.
    fn get(&self, at: u64, out: &mut [u8]) -> bool;
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl fmt::Debug for dyn Leased + '_ {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Leased")
    }
}

/// A flat run of bytes, read and written by offset.
///
/// All offsets and lengths are in bytes. Every method may be called from any number of threads at
/// once: reads run in parallel, and writes to disjoint ranges all land. Overlapping writes in
/// flight at the same time land in some order, byte by byte.
///
/// A method has no default, but for `most_len`, `has_other_writers`, `remote`, `read_unseen`, `show_rows`, `plain_file` and those of leases: the compiler finds one that a layer forgets, which would otherwise
/// bypass what the layer wraps. What a layer does not change it forwards by [`forward!`](crate::forward).
#[expect(clippy::len_without_is_empty, reason = "asking costs a system call; nobody needs it")]
pub trait Storage: Send + Sync {
    /// Reads up to `buf.len()` bytes at `at` and returns how many were read: fewer than
    /// `buf.len()` only when the end of the storage was reached, 0 at or beyond it.
    ///
    /// # Errors
    /// What the backend reports, with path and offset. The contents of `buf` are then unspecified.
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError>;

    /// As [`Storage::read_at`], for bytes that the caller writes elsewhere and does not look at. Where another process of a program reads them
    /// and writes them for this one, `buf` stays as it is, and only how many there are is told.
    ///
    /// # Errors
    /// As [`Storage::read_at`].
    fn read_unseen(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.read_at(at, buf)
    }

    /// Shows `see` the bytes of rows, one row after the other, where they are in memory: who converts them saves a copy. It ends before the first
    /// row of which not all bytes lie there side by side, for which [`Storage::read_at`] is to be asked, and gives how many were shown.
    ///
    /// `see` does nothing but compute: others may wait for the bytes meanwhile.
    fn show_rows(&self, _rows: Rows, _see: &mut dyn FnMut(&[u8])) -> usize {
        0
    }

    /// Reads many ranges in one call, in any order, and sets `got` of each.
    ///
    /// Neighbouring ranges are read together where that is cheaper; they are best given in
    /// ascending order.
    ///
    /// # Errors
    /// The first error met; other ranges may or may not have been read.
    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError>;

    /// Writes all of `data` at `at`. Writing beyond the end extends the storage; a gap reads as
    /// zeros.
    ///
    /// # Errors
    /// What the backend reports. A part of `data` may have been written. A layer that buffers may
    /// report the failure of an earlier write instead: what was accepted stays in the buffer.
    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError>;

    /// Writes many ranges in one call, as if by `write_at` in the order given.
    ///
    /// # Errors
    /// The first error met; other ranges may or may not have been written.
    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError>;

    /// Writes `element` over and over from `at` on, `len` bytes in all: what a range holds until
    /// something else is put there. A layer that buffers may leave it undone where that happens
    /// before the range is read or handed on.
    ///
    /// `element` has 1 to 8 bytes.
    ///
    /// # Errors
    /// As [`Storage::write_at`].
    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError>;

    /// Tells the storage what is known about the accesses to come. A layer uses what it can and passes it on; only speed and
    /// memory depend on it.
    fn advise(&self, advice: Advice);

    /// Tells that nothing is being written and that there is time: a layer that gathers data to move more at once hands on what
    /// is complete. Only the time of writing depends on it; data that cannot be written are kept, and the next call that meets
    /// them gives the error.
    fn rest(&self);

    /// The length in bytes, data not yet handed to the backend included.
    ///
    /// # Errors
    /// What the backend reports.
    fn len(&self) -> Result<u64, StorageError>;

    /// The most bytes that the storage can ever have, as far as that is known: a write behind them never succeeds. A layer that
    /// accepts data and writes it later asks first.
    fn most_len(&self) -> u64 {
        u64::MAX
    }

    /// Whether other writers may write between the bytes of this one, at any time: then nothing is written but what is new, and nothing
    /// that was read is kept.
    fn has_other_writers(&self) -> bool {
        false
    }

    /// What to tell of reads to come where the storage is behind a network; `None` where a read takes as long as a system call.
    fn remote(&self) -> Option<&dyn RemoteReads> {
        None
    }

    /// The file of the operating system that has these bytes, as far as a barrier has handed them down; `None` where a layer between
    /// changes or watches what is moved. Who writes there has to [invalidate](Storage::invalidate) this storage.
    fn plain_file(&self) -> Option<&File> {
        None
    }

    /// Lends the block of bytes around `at` to the calling thread, for puts too if it `writes`, where the storage has one in memory that it can
    /// spare: what the thread does there is then as if by `read_at` and `write_at`. It may end at any moment.
    fn lease(&self, _at: u64, _writes: bool) -> Option<Arc<dyn Leased>> {
        None
    }

    /// Ends all leases that were given before: when this returns, none of them takes or gives a byte any more.
    fn end_leases(&self) {}

    /// The same without waiting for a thread that uses one; false where there is such a thread.
    fn try_end_leases(&self) -> bool {
        true
    }

    /// Cuts the storage to `len` bytes, or extends it to `len` bytes with zeros.
    ///
    /// # Errors
    /// What the backend reports; contents and length are then as before.
    fn set_len(&self, len: u64) -> Result<(), StorageError>;

    /// Hands everything written before to the backend ahead of everything written after. With
    /// [`SyncLevel::Data`](crate::SyncLevel) or `Full` it is durable when this returns.
    ///
    /// # Errors
    /// The first error met; what could not be handed over is kept and tried again by the next
    /// barrier. Where it was handed over and the device could not make it durable, that is the error of
    /// all later barriers and syncs ([`StorageError::is_lost_sync`]).
    fn barrier(&self) -> Result<(), StorageError>;

    /// A barrier, and durability as the [`SyncLevel`](crate::SyncLevel) of the backend says.
    ///
    /// # Errors
    /// As [`Storage::barrier`].
    fn sync(&self) -> Result<(), StorageError>;

    /// Forgets cached data that is clean, so that what another process wrote is seen. Data not yet
    /// handed to the backend is kept.
    ///
    /// # Errors
    /// What the backend reports when asked for its length.
    fn invalidate(&self) -> Result<(), StorageError>;

    /// The state of the bytes at the bottom, which others may change. What a layer has not handed on
    /// is not in it. Costs one system call.
    ///
    /// # Errors
    /// What the backend reports.
    fn stamp(&self) -> Result<StorageStamp, StorageError>;

    /// Writes the stack from here down in spec form, such as `cache:64:64,event,file`.
    ///
    /// # Errors
    /// Those of the formatter.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl fmt::Debug for dyn Storage + '_ {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Storage")
    }
}

/// Writes methods of [`Storage`] that do nothing but call the same method of another storage.
///
/// `forward! { this => this.inner; len, sync }` in an `impl Storage for` block is `len` and `sync` of
/// `self.inner`; `this` is the name that stands for `self`. Each method is named, so that the compiler
/// finds the one that a layer forgets. `all` stands for all of them but `describe`.
#[macro_export]
macro_rules! forward {
    ($this:ident => $to:expr; all) => {
        $crate::forward! {
            $this => $to;
            read_at, read_unseen, show_rows, read_ranges, write_at, write_ranges, fill_at, advise, rest, len, most_len,
            has_other_writers, remote, plain_file, lease, end_leases, try_end_leases, set_len, barrier, sync, invalidate, stamp
        }
    };
    ($this:ident => $to:expr; $($method:ident),+) => {
        $($crate::forward! { @$method $this => $to })+
    };
    (@read_at $this:ident => $to:expr) => {
        fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, $crate::StorageError> {
            let $this = self;
            $to.read_at(at, buf)
        }
    };
    (@read_unseen $this:ident => $to:expr) => {
        fn read_unseen(&self, at: u64, buf: &mut [u8]) -> Result<usize, $crate::StorageError> {
            let $this = self;
            $to.read_unseen(at, buf)
        }
    };
    (@show_rows $this:ident => $to:expr) => {
        fn show_rows(&self, rows: $crate::Rows, see: &mut dyn FnMut(&[u8])) -> usize {
            let $this = self;
            $to.show_rows(rows, see)
        }
    };
    (@read_ranges $this:ident => $to:expr) => {
        fn read_ranges(&self, ranges: &mut [$crate::ReadRange<'_>]) -> Result<(), $crate::StorageError> {
            let $this = self;
            $to.read_ranges(ranges)
        }
    };
    (@lease $this:ident => $to:expr) => {
        fn lease(&self, at: u64, writes: bool) -> Option<std::sync::Arc<dyn $crate::Leased>> {
            let $this = self;
            $to.lease(at, writes)
        }
    };
    (@try_end_leases $this:ident => $to:expr) => {
        fn try_end_leases(&self) -> bool {
            let $this = self;
            $to.try_end_leases()
        }
    };
    (@end_leases $this:ident => $to:expr) => {
        fn end_leases(&self) {
            let $this = self;
            $to.end_leases();
        }
    };
    (@write_at $this:ident => $to:expr) => {
        fn write_at(&self, at: u64, data: &[u8]) -> Result<(), $crate::StorageError> {
            let $this = self;
            $to.write_at(at, data)
        }
    };
    (@write_ranges $this:ident => $to:expr) => {
        fn write_ranges(&self, ranges: &[$crate::WriteRange<'_>]) -> Result<(), $crate::StorageError> {
            let $this = self;
            $to.write_ranges(ranges)
        }
    };
    (@fill_at $this:ident => $to:expr) => {
        fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), $crate::StorageError> {
            let $this = self;
            $to.fill_at(at, len, element)
        }
    };
    (@advise $this:ident => $to:expr) => {
        fn advise(&self, advice: $crate::Advice) {
            let $this = self;
            $to.advise(advice);
        }
    };
    (@rest $this:ident => $to:expr) => {
        fn rest(&self) {
            let $this = self;
            $to.rest();
        }
    };
    (@len $this:ident => $to:expr) => {
        fn len(&self) -> Result<u64, $crate::StorageError> {
            let $this = self;
            $to.len()
        }
    };
    (@most_len $this:ident => $to:expr) => {
        fn most_len(&self) -> u64 {
            let $this = self;
            $to.most_len()
        }
    };
    (@remote $this:ident => $to:expr) => {
        fn remote(&self) -> Option<&dyn $crate::RemoteReads> {
            let $this = self;
            $to.remote()
        }
    };
    (@plain_file $this:ident => $to:expr) => {
        fn plain_file(&self) -> Option<&$crate::backend::File> {
            let $this = self;
            $to.plain_file()
        }
    };
    (@has_other_writers $this:ident => $to:expr) => {
        fn has_other_writers(&self) -> bool {
            let $this = self;
            $to.has_other_writers()
        }
    };
    (@set_len $this:ident => $to:expr) => {
        fn set_len(&self, len: u64) -> Result<(), $crate::StorageError> {
            let $this = self;
            $to.set_len(len)
        }
    };
    (@barrier $this:ident => $to:expr) => {
        fn barrier(&self) -> Result<(), $crate::StorageError> {
            let $this = self;
            $to.barrier()
        }
    };
    (@sync $this:ident => $to:expr) => {
        fn sync(&self) -> Result<(), $crate::StorageError> {
            let $this = self;
            $to.sync()
        }
    };
    (@invalidate $this:ident => $to:expr) => {
        fn invalidate(&self) -> Result<(), $crate::StorageError> {
            let $this = self;
            $to.invalidate()
        }
    };
    (@stamp $this:ident => $to:expr) => {
        fn stamp(&self) -> Result<$crate::StorageStamp, $crate::StorageError> {
            let $this = self;
            $to.stamp()
        }
    };
    (@describe $this:ident => $to:expr) => {
        fn describe(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            let $this = self;
            $to.describe(f)
        }
    };
}

impl<S: Storage + ?Sized> Storage for Arc<S> {
    forward! { this => **this; all }
    forward! { this => **this; describe }
}

impl<S: Storage + ?Sized> Storage for Box<S> {
    forward! { this => **this; all }
    forward! { this => **this; describe }
}

/// [`Storage::fill_at`] by [`Storage::write_at`], for storages that do no better.
///
/// # Errors
/// As [`Storage::write_at`].
pub fn fill_by_writes(
    storage: &dyn Storage,
    at: u64,
    len: u64,
    element: &[u8],
) -> Result<(), StorageError> {
    if element.is_empty() {
        return Ok(());
    }
    let longest = usize::try_from(len).unwrap_or(usize::MAX).min(FILL_BLOCK_BYTES);
    // Where there is no memory, a shorter block does.
    let mut block = Vec::new();
    let lengths =
        [longest, FILL_LEAST_BYTES.min(longest)].map(|len| len.next_multiple_of(element.len()));
    let Some(whole) = lengths.into_iter().find(|len| block.try_reserve_exact(*len).is_ok()) else {
        return Err(StorageError::NoMemory { bytes: lengths[1] as u64 });
    };
    block.extend_from_slice(element);
    while block.len() < whole {
        block.extend_from_within(..block.len().min(whole - block.len()));
    }
    let mut done = 0;
    while done < len {
        let left = usize::try_from(len - done).unwrap_or(usize::MAX).min(block.len());
        storage.write_at(at + done, &block[..left])?;
        done += left as u64;
    }
    Ok(())
}

/// Prints a storage in spec form: `Stack(&*storage).to_string()`.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a>(pub &'a dyn Storage);

impl fmt::Display for Stack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe(f)
    }
}
