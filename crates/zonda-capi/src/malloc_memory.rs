//! A file in one piece of `malloc` memory, because that is what C hands in and gets back.

use crate::c_memory::{slice, slice_mut};
use std::ffi::c_void;
use std::fmt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use zonda::NcError;
use zonda::storage::{
    Advice, Op, ReadRange, Storage, StorageError, StorageStamp, WriteRange, fill_by_writes,
};
use zonda_runtime::lock::{Rank, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes of a page. Memory grows by pages, so that a header written in pieces does not move it each time;
/// programs read this number back as the size of blocks.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Bytes between `start` and `start + capacity`; those from `len` on are zero if the memory may be
/// written at all.
#[derive(Debug)]
struct MallocBuffer {
    start: *mut u8,
    len: usize,
    capacity: usize,
}

/// A storage in one piece of `malloc` memory.
#[derive(Debug)]
pub(crate) struct MallocMemory {
    buffer: RwLock<MallocBuffer>,
    /// Whether the memory is the library's, which moves it when it grows and frees it in the end. Else it
    /// is the caller's.
    owned: AtomicBool,
    /// Whether a write did not fit into borrowed memory.
    refused: AtomicBool,
}

// SAFETY: the memory is reached through the lock only; the caller of `nc_open_mem*` leaves it alone
// while the file is open.
unsafe impl Send for MallocMemory {}
// SAFETY: as above.
unsafe impl Sync for MallocMemory {}

impl MallocMemory {
    /// Memory of `len` zero bytes, owned.
    ///
    /// # Errors
    /// `NC_ENOMEM`.
    pub(crate) fn zeroed(len: usize) -> Result<MallocMemory, NcError> {
        let capacity = len.max(1).checked_next_multiple_of(PAGE_BYTES).ok_or(NcError::NoMem)?;
        // SAFETY: calloc takes any size.
        let start = unsafe { libc::calloc(capacity, 1) }.cast::<u8>();
        if start.is_null() {
            return Err(NcError::NoMem);
        }
        Ok(MallocMemory::new(MallocBuffer { start, len, capacity }, true))
    }

    fn new(buffer: MallocBuffer, owned: bool) -> MallocMemory {
        let owned = AtomicBool::new(owned);
        MallocMemory {
            buffer: RwLock::ranked(Rank::Storage, buffer),
            owned,
            refused: AtomicBool::new(false),
        }
    }

    /// Memory that stays the caller's, unless [`MallocMemory::set_owned`] says otherwise.
    pub(crate) fn of_caller(memory: *mut c_void, size: usize) -> MallocMemory {
        MallocMemory::new(MallocBuffer { start: memory.cast(), len: size, capacity: size }, false)
    }

    /// Makes the memory the library's, or the caller's.
    pub(crate) fn set_owned(&self, owned: bool) {
        self.owned.store(owned, Ordering::Release);
    }

    /// Whether a write did not fit into borrowed memory.
    pub(crate) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    fn is_owned(&self) -> bool {
        self.owned.load(Ordering::Acquire)
    }

    fn read(&self) -> RwLockReadGuard<'_, MallocBuffer> {
        self.buffer.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, MallocBuffer> {
        self.buffer.write()
    }

    /// Hands the memory out, with the bytes in use; the storage is empty from now on.
    pub(crate) fn take(&self) -> (*mut u8, usize) {
        let mut buffer = self.write();
        let taken = (buffer.start, buffer.len);
        *buffer = MallocBuffer { start: null_mut(), len: 0, capacity: 0 };
        taken
    }

    /// Makes room for `len` bytes; those beyond the old length are zero.
    fn grow(&self, buffer: &mut MallocBuffer, len: usize) -> Result<(), StorageError> {
        if len > buffer.capacity {
            let at = buffer.len as u64;
            let limit = buffer.capacity as u64;
            let over = StorageError::MemoryLimit { op: Op::Write, at, len: len as u64, limit };
            // Memory handed out has no capacity, but must not come back to life either.
            if !self.is_owned() || buffer.start.is_null() {
                self.refused.store(true, Ordering::Relaxed);
                return Err(over);
            }
            // Half as much again: n appends then cost O(n).
            let wanted = len.max(buffer.capacity.saturating_add(buffer.capacity / 2));
            let Some(capacity) = wanted.checked_next_multiple_of(PAGE_BYTES) else {
                return Err(over);
            };
            // SAFETY: the memory came from malloc and is used through this buffer only.
            let moved = unsafe { libc::realloc(buffer.start.cast(), capacity) }.cast::<u8>();
            if moved.is_null() {
                return Err(over);
            }
            // SAFETY: the new part is `capacity - buffer.capacity` bytes long.
            unsafe { moved.add(buffer.capacity).write_bytes(0, capacity - buffer.capacity) };
            (buffer.start, buffer.capacity) = (moved, capacity);
        }
        buffer.len = buffer.len.max(len);
        Ok(())
    }
}

impl MallocBuffer {
    fn bytes(&self) -> &[u8] {
        // SAFETY: `start` is valid for `len` initialised bytes, or `len` is 0.
        unsafe { slice(self.start, self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { slice_mut(self.start, self.len) }
    }
}

impl Drop for MallocMemory {
    fn drop(&mut self) {
        if self.is_owned() {
            // SAFETY: the memory came from malloc, is owned, and nobody uses it any more.
            unsafe { libc::free(self.take().0.cast()) };
        }
    }
}

/// The end of a range in memory.
fn end_of(op: Op, at: u64, len: usize) -> Result<(usize, usize), StorageError> {
    let too_far = StorageError::TooFar { op, at, len: len as u64 };
    let start = usize::try_from(at).map_err(|_| too_far.clone())?;
    match start.checked_add(len) {
        Some(end) if end <= isize::MAX.cast_unsigned() => Ok((start, end)),
        _ => Err(too_far),
    }
}

impl Storage for MallocMemory {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        let (start, end) = end_of(Op::Read, at, buf.len())?;
        let buffer = self.read();
        let bytes = buffer.bytes();
        let from = bytes.get(start..end.min(bytes.len())).unwrap_or_default();
        buf[..from.len()].copy_from_slice(from);
        Ok(from.len())
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        for range in ranges {
            range.got = self.read_at(range.at, range.buf)?;
        }
        Ok(())
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        let (start, end) = end_of(Op::Write, at, data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        let mut buffer = self.write();
        self.grow(&mut buffer, end)?;
        buffer.bytes_mut()[start..end].copy_from_slice(data);
        Ok(())
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        ranges.iter().try_for_each(|range| self.write_at(range.at, range.data))
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        fill_by_writes(self, at, len, element)
    }

    fn advise(&self, _: Advice) {}

    fn rest(&self) {}

    fn len(&self) -> Result<u64, StorageError> {
        Ok(self.read().len as u64)
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        let (new, _) = end_of(Op::SetLen, len, 0)?;
        let mut buffer = self.write();
        if new > buffer.len {
            return self.grow(&mut buffer, new);
        }
        buffer.bytes_mut()[new..].fill(0);
        buffer.len = new;
        Ok(())
    }

    fn barrier(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Nobody else writes here.
    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        Ok(StorageStamp { len: self.len()?, ..StorageStamp::default() })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_memory_grows_with_zeros_between() {
        let memory = MallocMemory::zeroed(0).unwrap();
        memory.write_at(10_000, b"end").unwrap();
        let mut bytes = [9u8; 12_000];
        assert_eq!(memory.read_at(0, &mut bytes).unwrap(), 10_003);
        assert!(bytes[..10_000].iter().all(|&b| b == 0));
        assert_eq!(&bytes[10_000..10_003], b"end");
        memory.set_len(5).unwrap();
        memory.set_len(10_003).unwrap();
        assert_eq!(memory.read_at(10_000, &mut bytes).unwrap(), 3);
        assert_eq!(bytes[..3], [0; 3], "cut bytes do not come back");
        let (start, len) = memory.take();
        assert!(!start.is_null() && len == 10_003);
        assert!(memory.write_at(0, b"x").is_err(), "memory handed out is gone");
        // SAFETY: just handed out.
        unsafe { libc::free(start.cast()) };
    }

    #[test]
    fn borrowed_memory_stays_where_and_as_long_as_it_is() {
        let mut bytes = *b"abcdefgh";
        let buffer = MallocBuffer { start: bytes.as_mut_ptr(), len: 8, capacity: 8 };
        let memory = MallocMemory::new(buffer, false);
        memory.write_at(6, b"GH").unwrap();
        assert_eq!(memory.write_at(7, b"HI").unwrap_err().raw_os_error(), libc::ENOMEM);
        assert!(memory.refused.load(Ordering::Relaxed));
        drop(memory);
        assert_eq!(&bytes, b"abcdefGH");
    }
}
