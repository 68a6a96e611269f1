//! Arrays that are not in chunks: one run of bytes, or a few. Also how rows of elements are read
//! from storage as they are stored, which unfiltered chunks share.

use std::sync::Arc;

use smallvec::SmallVec;
use zonda_convert::Converted;
use zonda_model::Hyperslab;
use zonda_storage::{ReadRange, Storage};

use crate::ChunkError;
use crate::decode::Decode;
use crate::memory_parts::{MemoryPart, MemoryParts};
use crate::selection::{Coords, GridSelection};
use crate::stored::lengthen;
use crate::tuning::{
    MOST_UNWRITTEN_ELEM_BYTES, READ_GAP_BYTES, ROW_BLOCK_BYTES, ROW_BLOCK_ROWS, SHORT_READ_BYTES,
    STRAIGHT_ROW_BYTES,
};

/// Where stored bytes come from.
pub(crate) trait RowSource {
    /// Reads all ranges, each to its end.
    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), ChunkError>;

    /// Fails where it is known that `len` bytes from `at` on cannot be read: asked before much
    /// memory is taken for them.
    fn check_exists(&self, _at: u64, _len: usize) -> Result<(), ChunkError> {
        Ok(())
    }
}

/// Reads the rows of `part` from `source`: the part's first element is at `base`, and elements lie
/// `steps` bytes apart.
pub(crate) fn read_rows(
    source: &impl RowSource,
    part: MemoryPart<'_>,
    base: u64,
    steps: &[u64],
    decode: &Decode<'_>,
    memory: &mut RowBuffers,
) -> Result<Converted, ChunkError> {
    let mut read_rows = RowReader {
        source,
        decode,
        memory,
        rows: Vec::new(),
        spans: SmallVec::new(),
        used: 0,
        converted: Converted::default(),
    };
    part.rows(base, steps, |at, step, row| read_rows.add(at, step, row))?;
    read_rows.flush()?;
    Ok(read_rows.converted)
}

/// Memory of a thread, kept from part to part.
#[derive(Debug, Default)]
pub(crate) struct RowBuffers {
    /// Stored bytes.
    pub stored: Vec<u8>,
    /// Elements put together before they are converted.
    pub block: Vec<u8>,
}

struct RowReader<'s, 'a, S> {
    source: &'s S,
    decode: &'s Decode<'s>,
    memory: &'s mut RowBuffers,
    /// Rows to come: place in the block, distance of elements there, memory.
    rows: Vec<(usize, usize, &'a mut [u8])>,
    /// What the block is to hold: place in the source, bytes.
    spans: SmallVec<[(u64, usize); 8]>,
    /// Bytes of all spans.
    used: usize,
    converted: Converted,
}

impl<'a, S: RowSource> RowReader<'_, 'a, S> {
    fn add(&mut self, at: u64, step: u64, row: &'a mut [u8]) -> Result<(), ChunkError> {
        let (file, mem) = (self.decode.file_size(), self.decode.mem_size());
        let n = row.len() / mem;
        let packed = step == file as u64 || n == 1;
        if packed && self.decode.is_copy() && row.len() >= STRAIGHT_ROW_BYTES {
            return self.source.read(&mut [ReadRange::new(at, row)]);
        }
        let step = if packed { file as u64 } else { step };
        // Elements at a time; those far apart are read one by one.
        let per = match usize::try_from(step) {
            Ok(step) if packed || step as u64 - file as u64 <= READ_GAP_BYTES => {
                ROW_BLOCK_BYTES / step
            }
            _ => 1,
        };
        let per = per.max(1);
        if n <= per {
            return self.add_piece(at, step, row);
        }
        for (i, piece) in row.chunks_mut(per * mem).enumerate() {
            self.add_piece(at + (i * per) as u64 * step, step, piece)?;
        }
        Ok(())
    }

    /// Adds a row that fits into a block.
    fn add_piece(&mut self, at: u64, step: u64, row: &'a mut [u8]) -> Result<(), ChunkError> {
        let n = row.len() / self.decode.mem_size();
        let file = self.decode.file_size();
        // The last step is not gone.
        let step = if n > 1 { step as usize } else { file };
        let len = (n - 1) * step + file;
        let behind = self.spans.last().map(|(begin, len)| begin + *len as u64);
        let gap =
            behind.and_then(|behind| at.checked_sub(behind)).filter(|gap| *gap <= READ_GAP_BYTES);
        let more = len + gap.unwrap_or(0) as usize;
        if !self.rows.is_empty()
            && (self.used + more > ROW_BLOCK_BYTES || self.rows.len() >= ROW_BLOCK_ROWS)
        {
            self.flush()?;
            self.spans.push((at, len));
            self.used = len;
        } else if let (Some(last), Some(_)) = (self.spans.last_mut(), gap) {
            last.1 += more;
            self.used += more;
        } else {
            self.spans.push((at, len));
            self.used += len;
        }
        self.rows.push((self.used - len, step, row));
        Ok(())
    }

    /// Reads the block and converts its rows.
    fn flush(&mut self) -> Result<(), ChunkError> {
        let RowBuffers { stored, block } = &mut *self.memory;
        // One element that is longer than a block: a damaged file may claim any length.
        if self.used > ROW_BLOCK_BYTES {
            self.spans.iter().try_for_each(|&(at, len)| self.source.check_exists(at, len))?;
        }
        lengthen(stored, self.used)?;
        let mut rest = &mut stored[..self.used];
        let mut ranges: SmallVec<[ReadRange<'_>; 8]> = SmallVec::new();
        for (at, len) in self.spans.drain(..) {
            let (buf, behind) = rest.split_at_mut(len);
            ranges.push(ReadRange::new(at, buf));
            rest = behind;
        }
        self.source.read(&mut ranges)?;
        drop(ranges);
        for (place, step, row) in self.rows.drain(..) {
            let found = self.decode.row(&stored[place..self.used], step, row, block);
            self.converted = self.converted.and(found);
        }
        self.used = 0;
        Ok(())
    }
}

/// A run of an array's bytes.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Bytes.
    pub len: u64,
    /// What they are.
    pub bytes: SegmentBytes,
}

/// Where the bytes of a [`Segment`] are.
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
    Here(Arc<[u8]>),
    /// Nowhere: never written. Reads as fill values.
    Unwritten,
    /// Where they cannot be read, for this reason: whoever asks for them gets it.
    Failed(Arc<dyn std::error::Error + Send + Sync>),
}

/// An array whose elements are in row-major order in one run of bytes, made of segments. What lies
/// behind the last segment was never written.
#[derive(Clone, Debug)]
pub struct LinearArray {
    segments: Vec<Segment>,
    elem_size: usize,
    fill: Box<[u8]>,
}

impl LinearArray {
    /// An array of elements of `elem_size` bytes in the file. `fill` is one of them; empty for
    /// zeros.
    #[must_use]
    pub fn new(segments: Vec<Segment>, elem_size: usize, fill: Box<[u8]>) -> LinearArray {
        LinearArray { segments, elem_size, fill }
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
        check(self.elem_size, &self.fill, &decode)?;
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
        while let Some(claim) = parts.claim(1, parts.n_parts()) {
            for part in claim {
                let found = match selection.place(&part.pieces, &steps) {
                    Some((base, steps)) => {
                        read_rows(self, part, base, &steps, &decode, &mut memory)?
                    }
                    None => fill_part(part, &self.fill, &decode, &mut memory.block)?,
                };
                converted = converted.and(found);
            }
        }
        Ok(converted)
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

impl RowSource for LinearArray {
    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), ChunkError> {
        // What nearly all arrays are.
        if let [Segment { len, bytes: SegmentBytes::Stored { storage, at, zeros_behind } }] =
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
                    SegmentBytes::Here(_) => wanted,
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

impl LinearArray {
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
                    SegmentBytes::Here(bytes) => {
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

const TOO_LARGE: ChunkError = ChunkError::Shape { what: "more bytes than can be counted" };
const WRONG_LENGTH: ChunkError = ChunkError::Request { what: "memory of another length" };

/// Whether elements, fill value and decoder go together.
pub(crate) fn check(elem: usize, fill: &[u8], decode: &Decode<'_>) -> Result<(), ChunkError> {
    if elem == 0 {
        return Err(ChunkError::Shape { what: "elements of no bytes" });
    }
    if !fill.is_empty() && fill.len() != elem {
        return Err(ChunkError::Shape { what: "a fill value of another size than an element" });
    }
    if decode.file_size() != elem || decode.mem_size() == 0 {
        return Err(ChunkError::Request { what: "another size of elements than the array" });
    }
    Ok(())
}

/// Bytes from one element to the next in each dimension of a packed block.
pub(crate) fn steps(dims: &[u64], elem: usize) -> Option<Coords> {
    let mut steps = Coords::from_elem(0, dims.len());
    let mut step = elem as u64;
    for (d, &n) in dims.iter().enumerate().rev() {
        steps[d] = step;
        step = step.checked_mul(n)?;
    }
    Some(steps)
}

impl GridSelection {
    /// Where in its chunk a part begins, and the distances of its elements, in bytes; `None` for a
    /// part beyond the extent. `steps` are the distances of neighbours in the chunk.
    pub(crate) fn place(&self, pieces: &[usize], steps: &[u64]) -> Option<(u64, Coords)> {
        let mut base = 0;
        let mut wide = Coords::from_slice(steps);
        for ((axis, &k), step) in self.axes.iter().zip(pieces).zip(&mut wide) {
            base += axis.piece(k)?.within * *step;
            // With one element there is no next one.
            if axis.stride > 1 && axis.cuts.len(k) > 1 {
                *step *= axis.stride;
            }
        }
        Some((base, wide))
    }
}

/// A request that is one run of elements, all of them inside one chunk and inside the extent: the
/// first, counted in the chunk, and how many. `origin` is the chunk's first coordinate.
#[inline]
pub(crate) fn run_in(
    chunk: &[u64],
    extent: &[u64],
    slab: &Hyperslab<'_>,
    origin: impl Fn(usize) -> u64,
) -> Option<(u64, usize)> {
    let rank = chunk.len();
    let (start, count) = (slab.start, slab.count);
    if extent.len() != rank || start.len() != rank || count.len() != rank {
        return None;
    }
    if slab.stride.is_some_and(|stride| {
        stride.len() != rank || stride.iter().zip(count).any(|(&s, &n)| n > 1 && s != 1)
    }) {
        return None;
    }
    let (mut first, mut step, mut n, mut whole) = (0u64, 1u64, 1usize, true);
    for d in (0..rank).rev() {
        let within = (start[d] as u64).checked_sub(origin(d))?;
        let here = count[d] as u64;
        // Every dimension but the slowest one with more than one element is taken whole.
        if here == 0 || (!whole && here != 1) {
            return None;
        }
        if within.checked_add(here)? > chunk[d] || (start[d] as u64).checked_add(here)? > extent[d]
        {
            return None;
        }
        whole = whole && here == chunk[d];
        first = first.checked_add(within.checked_mul(step)?)?;
        step = step.checked_mul(chunk[d])?;
        n = n.checked_mul(count[d])?;
    }
    Some((first, n))
}

/// Gives a part fill values.
pub(crate) fn fill_part(
    part: MemoryPart<'_>,
    fill: &[u8],
    decode: &Decode<'_>,
    block: &mut Vec<u8>,
) -> Result<Converted, ChunkError> {
    let mut converted = Converted::default();
    let steps = Coords::from_elem(0, part.pieces.len());
    part.rows(0, &steps, |_, _, row| {
        converted = converted.and(decode.fill(fill, row, block));
        Ok::<(), ChunkError>(())
    })?;
    Ok(converted)
}
