//! The one run of bytes of a variable that is not in chunks.
//!
//! The first put takes space for the run. Elements that nobody put are fill values; these are written only when somebody
//! could see them: by a put behind them, a get, or a commit. So a program that puts all elements in order writes
//! each byte once.

use std::sync::atomic::{AtomicU64, Ordering};

use zonda_hdf5::{File, FileAddr, Space};
use zonda_slab::Span;
use zonda_storage::{Storage, StorageError, check_place};

use super::linear;
use crate::fault::HdfResult;
use crate::tuning::FILL_AHEAD_BYTES;

/// Takes space for the run of a variable. Refuses it where the file system cannot have a file of that length: then no
/// commit could make the file as long as its contents.
///
/// # Errors
/// [`StorageError::NoPlace`]; those of [`Space::alloc`].
pub(super) fn take_run(space: &mut Space, file: &File, len: u64) -> HdfResult<FileAddr> {
    let at = file.position(FileAddr(space.end()));
    check_place(at, len, || file.storage().most_len())?;
    space.alloc(len)
}

/// The run of a contiguous variable.
#[derive(Debug)]
pub(super) struct Contiguous {
    /// `None` before the first put.
    pub(super) addr: Option<FileAddr>,
    /// Bytes.
    pub(super) len: u64,
    /// The header in the file refers to it.
    pub(super) is_referred: bool,
    /// Number of bytes from the first on that have values.
    filled: AtomicU64,
}

impl Contiguous {
    /// The run of a variable that was not put to.
    pub(super) fn nowhere(len: u64) -> Contiguous {
        Contiguous { addr: None, len, is_referred: false, filled: AtomicU64::new(len) }
    }

    /// The run of a variable that the file has.
    pub(super) fn committed(addr: Option<FileAddr>, len: u64) -> Contiguous {
        Contiguous { addr, is_referred: true, ..Contiguous::nowhere(len) }
    }

    /// A run that is new in the file; its first `filled` bytes have values.
    pub(super) fn fresh(addr: FileAddr, len: u64, filled: u64) -> Contiguous {
        let filled = AtomicU64::new(filled);
        Contiguous { addr: Some(addr), len, is_referred: false, filled }
    }

    /// Fills what a put of `span` leaves out before it; byte 0 is at position `at` of the storage. Gives the number of
    /// bytes that have values after the put.
    pub(super) fn make_way(
        &self,
        storage: &dyn Storage,
        at: u64,
        fill: &[u8],
        span: Span,
    ) -> Result<u64, StorageError> {
        let filled = self.filled.load(Ordering::Acquire);
        let Span { start, end, has_gaps } = span;
        if end <= filled {
            return Ok(filled);
        }
        if has_gaps || start > filled {
            let need = if has_gaps { end } else { start };
            self.fill_to(storage, at, fill, need.max(filled.saturating_add(FILL_AHEAD_BYTES)))?;
        }
        Ok(self.filled.load(Ordering::Acquire).max(end))
    }

    /// Notes that so many bytes from the first on have values.
    pub(super) fn has(&self, filled: u64) {
        self.filled.store(filled, Ordering::Release);
    }

    /// Fills bytes without values, up to byte `end`. Several readers may call it at the same time.
    pub(super) fn fill_to(
        &self,
        storage: &dyn Storage,
        at: u64,
        fill: &[u8],
        end: u64,
    ) -> Result<(), StorageError> {
        let (filled, end) = (self.filled.load(Ordering::Acquire), end.min(self.len));
        if filled < end {
            // Elements, not parts of them: what was put ends with one.
            let len = end.saturating_sub(filled);
            let len = len.checked_next_multiple_of(fill.len().max(1) as u64).unwrap_or(len);
            linear::fill(
                storage,
                at.saturating_add(filled),
                len.min(self.len.saturating_sub(filled)),
                fill,
            )?;
            self.filled.fetch_max(filled.saturating_add(len), Ordering::AcqRel);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use zonda_storage::backend::Memory;

    use super::*;

    fn span(start: u64, end: u64, has_gaps: bool) -> Span {
        Span { start, end, has_gaps }
    }

    #[test]
    fn who_puts_in_order_writes_no_fill_values() {
        let (storage, run) = (Memory::new(), Contiguous::fresh(FileAddr(8), 40, 0));
        for start in (0..40).step_by(8) {
            let filled = run.make_way(&storage, 8, b"fill", span(start, start + 8, false)).unwrap();
            assert_eq!(filled, start + 8);
            run.has(filled);
        }
        run.fill_to(&storage, 8, b"fill", 40).unwrap();
        assert_eq!(storage.to_vec().unwrap(), b"");
    }

    #[test]
    fn what_is_left_out_is_filled_once() {
        let len = 3 * FILL_AHEAD_BYTES;
        let (storage, run) = (Memory::new(), Contiguous::fresh(FileAddr(0), len, 0));
        let filled = run.make_way(&storage, 0, b"fill", span(8, 12, false)).unwrap();
        assert_eq!((filled, storage.len().unwrap()), (FILL_AHEAD_BYTES, FILL_AHEAD_BYTES));
        storage.write_at(8, b"data").unwrap();
        run.has(filled);
        // A put that did not succeed is as none.
        run.make_way(&storage, 0, b"fill", span(FILL_AHEAD_BYTES, FILL_AHEAD_BYTES + 8, false))
            .unwrap();
        assert_eq!(storage.len().unwrap(), FILL_AHEAD_BYTES);
        run.make_way(&storage, 0, b"fill", span(4, 2 * FILL_AHEAD_BYTES + 4, true)).unwrap();
        assert_eq!(storage.len().unwrap(), 2 * FILL_AHEAD_BYTES + 4);
        run.fill_to(&storage, 0, b"fill", u64::MAX).unwrap();
        let bytes = storage.to_vec().unwrap();
        assert_eq!(bytes.len() as u64, len);
        let is_fill = |(i, word): (usize, &[u8])| word == if i == 2 { b"data" } else { b"fill" };
        assert!(bytes.chunks(4).enumerate().all(is_fill));
    }
}
