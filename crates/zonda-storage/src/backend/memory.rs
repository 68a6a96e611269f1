//! `memory`: bytes in memory, for diskless files and tests.
//!
//! Kept in segments, each with its own lock: reads and writes of different segments run in
//! parallel, growing moves nothing, and a gap that was never written costs nothing.

use crate::error::{Op, StorageError, range_end};
use crate::storage::{Advice, ReadRange, Storage, StorageStamp, WriteRange, fill_by_writes};
use crate::tuning::SEGMENT_BYTES;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use zonda_runtime::lock::{Rank, RwLock};

/// One segment: the bytes up to the last one written; zeros follow to the segment's end.
type MemorySegment = Arc<RwLock<Vec<u8>>>;

/// Growable bytes.
#[derive(Debug)]
pub struct Memory {
    segments: RwLock<BTreeMap<u64, MemorySegment>>,
    len: AtomicU64,
    limit: u64,
    /// How often something was written.
    n_changes: AtomicI64,
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new()
    }
}

impl Memory {
    /// An empty storage that grows as memory allows.
    #[must_use]
    pub fn new() -> Memory {
        Memory::with_limit(u64::MAX)
    }

    /// An empty storage that refuses to become longer than `limit` bytes.
    #[must_use]
    pub fn with_limit(limit: u64) -> Memory {
        let n_changes = AtomicI64::new(0);
        Memory {
            segments: RwLock::ranked(Rank::Storage, BTreeMap::new()),
            len: AtomicU64::new(0),
            limit,
            n_changes,
        }
    }

    /// A storage that holds a copy of `bytes`.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Memory {
        let memory = Memory::new();
        let mut segments = BTreeMap::new();
        for (index, chunk) in (0..).zip(bytes.chunks(SEGMENT_BYTES as usize)) {
            segments.insert(index, Arc::new(RwLock::ranked(Rank::Segment, chunk.to_vec())));
        }
        *memory.segments.write() = segments;
        memory.len.store(bytes.len() as u64, Ordering::Release);
        memory
    }

    /// The contents, gaps as zeros.
    ///
    /// # Errors
    /// [`StorageError::MemoryLimit`] if they do not fit into memory in one piece, as a sparse
    /// storage may not.
    pub fn to_vec(&self) -> Result<Vec<u8>, StorageError> {
        let len = self.len.load(Ordering::Acquire);
        let too_big = StorageError::MemoryLimit { op: Op::Read, at: 0, len, limit: self.limit };
        let n = usize::try_from(len).map_err(|_| too_big.clone())?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(n).map_err(|_| too_big)?;
        let segments: Vec<(u64, MemorySegment)> =
            self.segments.read().iter().map(|(i, s)| (*i, Arc::clone(s))).collect();
        for (index, segment) in segments {
            let begin = ((index * SEGMENT_BYTES).min(len)) as usize;
            bytes.resize(begin.max(bytes.len()), 0);
            let segment = segment.read();
            bytes.extend_from_slice(&segment[..segment.len().min(n - begin)]);
        }
        bytes.resize(n, 0);
        Ok(bytes)
    }

    /// The contents, the storage being given up.
    ///
    /// # Errors
    /// As [`Memory::to_vec`].
    pub fn into_vec(self) -> Result<Vec<u8>, StorageError> {
        let len = self.len.load(Ordering::Acquire);
        let mut segments = self.segments.into_inner();
        // A storage of one segment, which most diskless files are, is handed over without a copy.
        if len <= SEGMENT_BYTES
            && segments.len() <= 1
            && let Some(only) = segments.remove(&0)
        {
            return match Arc::try_unwrap(only) {
                Ok(lock) => {
                    let mut bytes = lock.into_inner();
                    bytes.resize(len as usize, 0);
                    Ok(bytes)
                }
                Err(shared) => {
                    let mut bytes = shared.read().clone();
                    bytes.resize(len as usize, 0);
                    Ok(bytes)
                }
            };
        }
        let limit = self.limit;
        let (segments, len) = (RwLock::ranked(Rank::Storage, segments), AtomicU64::new(len));
        Memory { segments, len, limit, n_changes: AtomicI64::new(0) }.to_vec()
    }

    fn over(&self, op: Op, at: u64, len: usize) -> StorageError {
        StorageError::MemoryLimit { op, at, len: len as u64, limit: self.limit }
    }

    /// The segment `index`, made if it is not there.
    fn segment(&self, index: u64) -> MemorySegment {
        if let Some(segment) = self.segments.read().get(&index) {
            return Arc::clone(segment);
        }
        let new = || Arc::new(RwLock::ranked(Rank::Segment, Vec::new()));
        Arc::clone(self.segments.write().entry(index).or_insert_with(new))
    }
}

/// Cuts `at..at + len` at segment borders: (segment, offset in it, offset in the request, length).
fn pieces(at: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let here = at + done as u64;
        let inside = (here % SEGMENT_BYTES) as usize;
        let n = (len - done).min(SEGMENT_BYTES as usize - inside);
        let piece = (here / SEGMENT_BYTES, inside, done, n);
        done += n;
        Some(piece)
    })
}

impl Storage for Memory {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        range_end(Op::Read, at, buf.len())?;
        let left = self.len.load(Ordering::Acquire).saturating_sub(at);
        let n = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        for (index, inside, done, n) in pieces(at, n) {
            let out = &mut buf[done..done + n];
            let segment = self.segments.read().get(&index).map(Arc::clone);
            let Some(segment) = segment else {
                out.fill(0);
                continue;
            };
            let bytes = segment.read();
            let have = bytes.len().saturating_sub(inside).min(n);
            out[..have].copy_from_slice(&bytes[inside.min(bytes.len())..][..have]);
            out[have..].fill(0);
        }
        Ok(n)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        for range in ranges {
            range.got = self.read_at(range.at, range.buf)?;
        }
        Ok(())
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        let end = range_end(Op::Write, at, data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        if end > self.limit {
            return Err(self.over(Op::Write, at, data.len()));
        }
        for (index, inside, done, n) in pieces(at, data.len()) {
            let segment = self.segment(index);
            let mut bytes = segment.write();
            let (old, end) = (bytes.len(), inside + n);
            if end > old {
                bytes.try_reserve(end - old).map_err(|_| self.over(Op::Write, at, data.len()))?;
            }
            let part = &data[done..done + n];
            if inside >= old {
                bytes.resize(inside, 0);
                bytes.extend_from_slice(part);
            } else {
                bytes.resize(end.max(old), 0);
                bytes[inside..end].copy_from_slice(part);
            }
        }
        self.len.fetch_max(end, Ordering::AcqRel);
        self.n_changes.fetch_add(1, Ordering::AcqRel);
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
        Ok(self.len.load(Ordering::Acquire))
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        range_end(Op::SetLen, len, 0)?;
        if len > self.limit {
            return Err(self.over(Op::SetLen, len, 0));
        }
        // The table stays locked, so that segments cut here are not seen half cut.
        let mut segments = self.segments.write();
        self.len.store(len, Ordering::Release);
        drop(segments.split_off(&len.div_ceil(SEGMENT_BYTES)));
        if let Some(last) = segments.get(&(len / SEGMENT_BYTES)) {
            last.write().truncate((len % SEGMENT_BYTES) as usize);
        }
        self.n_changes.fetch_add(1, Ordering::AcqRel);
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
        let n_changes = self.n_changes.load(Ordering::Acquire);
        Ok(StorageStamp { len: self.len.load(Ordering::Acquire), changed: [n_changes, 0, 0, 0, 0] })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory")
    }
}
