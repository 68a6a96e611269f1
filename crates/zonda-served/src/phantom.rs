//! Bytes that nobody keeps.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use zonda_storage::{Advice, ReadRange, Storage, StorageError, StorageStamp, WriteRange};

/// A storage that takes what is written and keeps its length: for the copy of a classic file, whose header is in memory, and whose fill
/// values and data nobody reads. It reads as zeros.
#[derive(Debug, Default)]
pub struct Phantom {
    len: AtomicU64,
}

impl Phantom {
    fn reach(&self, at: u64, n: u64) {
        self.len.fetch_max(at.saturating_add(n), Ordering::AcqRel);
    }
}

impl Storage for Phantom {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        let left = self.len.load(Ordering::Acquire).saturating_sub(at);
        let n = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        buf.iter_mut().take(n).for_each(|byte| *byte = 0);
        Ok(n)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        for range in ranges {
            range.got = self.read_at(range.at, range.buf)?;
        }
        Ok(())
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.reach(at, data.len() as u64);
        Ok(())
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        ranges.iter().for_each(|range| self.reach(range.at, range.data.len() as u64));
        Ok(())
    }

    fn fill_at(&self, at: u64, len: u64, _element: &[u8]) -> Result<(), StorageError> {
        self.reach(at, len);
        Ok(())
    }

    fn advise(&self, _advice: Advice) {}

    fn rest(&self) {}

    fn len(&self) -> Result<u64, StorageError> {
        Ok(self.len.load(Ordering::Acquire))
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.len.store(len, Ordering::Release);
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

    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        Ok(StorageStamp { len: self.len.load(Ordering::Acquire), ..StorageStamp::default() })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing")
    }
}
