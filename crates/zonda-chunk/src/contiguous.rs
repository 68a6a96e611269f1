//! Arrays that are not in chunks: one run of bytes, made of one or a few segments.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use zonda_convert::Converted;
use zonda_model::Hyperslab;
use zonda_storage::{ReadRange, RemoteReads, Storage, ToldReads};

use crate::ChunkError;
use crate::decode::{self, Decode};
use crate::memory_parts::MemoryParts;
use crate::row_reader::{RowBuffers, RowSource, read_rows};
use crate::scatter::fill_part;
use crate::selection::{Coords, GridSelection, run_in, steps};
use crate::tuning::{MOST_UNWRITTEN_ELEM_BYTES, READ_GAP_BYTES, SHORT_READ_BYTES};

/// A run of an array's bytes.
#[derive(Clone, Debug)]
pub struct DataSegment {
    /// Bytes.
    pub len: u64,
    /// What they are.
    pub bytes: SegmentBytes,
}

/// Where the bytes of a [`DataSegment`] are.
#[derive(Clone, Debug)]
pub enum SegmentBytes {
    /// In a storage.
    Stored {
        /// The storage.
        storage: Arc<dyn Storage>,
        /// First byte.
        at: u64,
        /// What lies behind the end of the storage reads as zeros, instead of being an error.
        zeros_behind: bool,
    },
    /// Here.
    InMemory(Arc<[u8]>),
    /// Nowhere: never written. Reads as fill values.
    Unwritten,
    /// Where they cannot be read, for this reason: whoever asks for them gets it.
    Failed(Arc<dyn std::error::Error + Send + Sync>),
}

/// An array whose elements are in row-major order in one run of bytes, made of segments. What lies
/// behind the last segment was never written.
#[derive(Clone, Debug)]
pub struct ContiguousArray {
    segments: Vec<DataSegment>,
    elem_size: usize,
    fill: Box<[u8]>,
}

impl ContiguousArray {
    /// An array of elements of `elem_size` bytes in the file. `fill` is one of them; empty for
    /// zeros.
    #[must_use]
    pub fn new(segments: Vec<DataSegment>, elem_size: usize, fill: Box<[u8]>) -> ContiguousArray {
        ContiguousArray { segments, elem_size, fill }
    }

    /// Reads a hyperslab of the array, which has the shape `extent`, into `out`: packed, row-major
    /// with shape `slab.count`, elements in memory form. Elements outside `extent` are fill values.
    ///
    /// # Errors
    /// Those of the storage; [`ChunkError::Truncated`] where it ends too early;
    /// [`ChunkError::Request`] where the arguments do not fit each other.
    pub fn read(
        &self,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        decode: Decode<'_>,
        out: &mut [u8],
    ) -> Result<Converted, ChunkError> {
        decode::check_sizes(self.elem_size, &self.fill, &decode)?;
        if let Some(converted) = self.read_few(extent, slab, &decode, out)? {
            return Ok(converted);
        }
        // The whole array is one chunk.
        let chunk: Coords = extent.iter().map(|&n| n.max(1)).collect();
        let steps = steps(&chunk, self.elem_size).ok_or(TOO_LARGE)?;
        let selection = GridSelection::new(&chunk, extent, slab)?;
        if selection.n_elems == 0 && out.is_empty() {
            return Ok(Converted::default());
        }
        let parts =
            MemoryParts::new(out, decode.mem_size(), selection.cuts()).ok_or(WRONG_LENGTH)?;
        let mut memory = RowBuffers::default();
        let mut converted = Converted::default();
        let remote = self.remote();
        while let Some(claim) = parts.claim(1, parts.n_parts()) {
            for part in claim {
                let found = match selection.place(&part.pieces, &steps) {
                    Some((base, steps)) => {
                        let told = remote.map(|(remote, first)| {
                            let place = (first.saturating_add(base), &steps[..]);
                            let ranges = selection.ranges(&part.pieces, place, self.elem_size);
                            let ranges = ranges.map(|range| (range.start, range));
                            RefCell::new(ToldReads::of_rows(remote, ranges, READ_GAP_BYTES))
                        });
                        let source = ToldRows { rows: self, first: remote.map(|(_, at)| at), told };
                        read_rows(&source, part, base, &steps, &decode, &mut memory)?
                    }
                    None => fill_part(part, &self.fill, &decode, &mut memory.block)?,
                };
                converted = converted.and(found);
            }
        }
        Ok(converted)
    }

    /// What to tell of reads to come, and where the array begins, if all of it is in one run of a remote storage.
    fn remote(&self) -> Option<(&dyn RemoteReads, u64)> {
        match &self.segments[..] {
            [DataSegment { bytes: SegmentBytes::Stored { storage, at, .. }, .. }] => {
                storage.remote().map(|remote| (remote, *at))
            }
            _ => None,
        }
    }

    /// A single element or a short run of them: no plan is made.
    fn read_few(
        &self,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        decode: &Decode<'_>,
        out: &mut [u8],
    ) -> Result<Option<Converted>, ChunkError> {
        let mut stack = [0; SHORT_READ_BYTES];
        let Some((first, n)) = run_in(extent, extent, slab, |_| 0) else { return Ok(None) };
        let len = n.saturating_mul(self.elem_size);
        let Some(packed) = stack.get_mut(..len).filter(|_| out.len() == n * decode.mem_size())
        else {
            return Ok(None);
        };
        let Some(at) = first.checked_mul(self.elem_size as u64) else { return Ok(None) };
        RowSource::read(self, &mut [ReadRange::new(at, packed)])?;
        Ok(Some(decode.run(packed, out)))
    }
}

/// Rows of an array whose storage is told of those to come, if it is remote.
struct ToldRows<'a, I> {
    rows: &'a ContiguousArray,
    /// Where the array begins in a remote storage.
    first: Option<u64>,
    told: Option<RefCell<ToldReads<'a, I>>>,
}

impl<I: Iterator<Item = (u64, Range<u64>)>> RowSource for ToldRows<'_, I> {
    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), ChunkError> {
        if let (Some(first), Some(told)) = (self.first, &self.told)
            && let Some(range) = ranges.last()
        {
            told.borrow_mut().reached(first.saturating_add(range.at));
        }
        RowSource::read(self.rows, ranges)
    }

    fn check_exists(&self, at: u64, len: usize) -> Result<(), ChunkError> {
        self.rows.check_exists(at, len)
    }
}

impl RowSource for ContiguousArray {
    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), ChunkError> {
        // What nearly all arrays are.
        if let [DataSegment { len, bytes: SegmentBytes::Stored { storage, at, zeros_behind } }] =
            &self.segments[..]
            && ranges.iter().all(|range| ends_within(range.at, range.buf.len(), *len))
        {
            return read_stored(&**storage, *at, *zeros_behind, ranges);
        }
        for range in ranges {
            self.read_range(range.at, range.buf)?;
        }
        Ok(())
    }

    fn check_exists(&self, at: u64, len: usize) -> Result<(), ChunkError> {
        let len = len as u64;
        let end = at.saturating_add(len);
        let (mut begin, mut check_exists) = (0u64, 0u64);
        for segment in &self.segments {
            let (from, to) = (at.max(begin), end.min(begin.saturating_add(segment.len)));
            if let Some(wanted) = to.checked_sub(from) {
                check_exists += match &segment.bytes {
                    SegmentBytes::InMemory(_) => wanted,
                    SegmentBytes::Unwritten => 0,
                    SegmentBytes::Failed(_) if wanted == 0 => 0,
                    SegmentBytes::Failed(why) => return Err(ChunkError::Source(Arc::clone(why))),
                    SegmentBytes::Stored { storage, at: first, zeros_behind } => {
                        let at = first.saturating_add(from - begin);
                        let stored = storage.len().unwrap_or(u64::MAX).saturating_sub(at);
                        if stored < wanted && !zeros_behind {
                            return Err(ChunkError::Truncated { at, len: wanted });
                        }
                        stored.min(wanted)
                    }
                };
            }
            begin = begin.saturating_add(segment.len);
        }
        if len - check_exists > MOST_UNWRITTEN_ELEM_BYTES && self.fill.is_empty() {
            return Err(ChunkError::NoMemory { bytes: len });
        }
        Ok(())
    }
}

impl ContiguousArray {
    fn read_range(&self, at: u64, buf: &mut [u8]) -> Result<(), ChunkError> {
        // From the first byte wanted on.
        let (mut at, mut begin, mut buf) = (at, 0u64, buf);
        for segment in &self.segments {
            let end = begin.saturating_add(segment.len);
            if at < end && !buf.is_empty() {
                let n = usize::try_from(end - at).unwrap_or(usize::MAX).min(buf.len());
                let (here, rest) = buf.split_at_mut(n);
                let inside = at - begin;
                match &segment.bytes {
                    SegmentBytes::Stored { storage, at: first, zeros_behind } => read_stored(
                        &**storage,
                        *first,
                        *zeros_behind,
                        &mut [ReadRange::new(inside, here)],
                    )?,
                    SegmentBytes::InMemory(bytes) => {
                        let inside = usize::try_from(inside).unwrap_or(usize::MAX);
                        let from = inside..inside.saturating_add(n);
                        let truncated = ChunkError::Truncated { at, len: n as u64 };
                        here.copy_from_slice(bytes.get(from).ok_or(truncated)?);
                    }
                    SegmentBytes::Unwritten => self.fill_bytes(at, here),
                    SegmentBytes::Failed(why) => return Err(ChunkError::Source(Arc::clone(why))),
                }
                at += n as u64;
                buf = rest;
            }
            begin = end;
        }
        self.fill_bytes(at, buf);
        Ok(())
    }

    /// The bytes of fill values from byte `at` of the array on.
    fn fill_bytes(&self, at: u64, out: &mut [u8]) {
        if self.fill.is_empty() {
            out.fill(0);
            return;
        }
        let skip = (at % self.fill.len() as u64) as usize;
        let (head, rest) = out.split_at_mut((self.fill.len() - skip).min(out.len()));
        head.copy_from_slice(&self.fill[skip..][..head.len()]);
        for elem in rest.chunks_mut(self.fill.len()) {
            elem.copy_from_slice(&self.fill[..elem.len()]);
        }
    }
}

fn ends_within(at: u64, len: usize, end: u64) -> bool {
    at.checked_add(len as u64).is_some_and(|behind| behind <= end)
}

/// Reads ranges counted from byte `first` of a storage.
fn read_stored(
    storage: &dyn Storage,
    first: u64,
    zeros_behind: bool,
    ranges: &mut [ReadRange<'_>],
) -> Result<(), ChunkError> {
    for range in &mut *ranges {
        let len = range.buf.len() as u64;
        let at = first.checked_add(range.at);
        range.at = at.ok_or(ChunkError::Truncated { at: range.at, len })?;
    }
    match &mut *ranges {
        [one] => one.got = storage.read_at(one.at, one.buf)?,
        many => storage.read_ranges(many)?,
    }
    for range in ranges {
        if range.got < range.buf.len() {
            if !zeros_behind {
                let len = range.buf.len() as u64;
                return Err(ChunkError::Truncated { at: range.at, len });
            }
            range.buf[range.got..].fill(0);
        }
    }
    Ok(())
}

const TOO_LARGE: ChunkError =
    ChunkError::Shape { what: "the array has more bytes than can be counted" };
const WRONG_LENGTH: ChunkError =
    ChunkError::Request { what: "memory of another length than the selected elements have" };
