//! Rows of elements that are read from the storage as they are stored: of contiguous arrays and of unfiltered chunks.

use smallvec::SmallVec;
use zonda_convert::Converted;
use zonda_storage::ReadRange;

use crate::ChunkError;
use crate::decode::Decode;
use crate::memory_parts::MemoryPart;
use crate::stored::lengthen;
use crate::tuning::{READ_GAP_BYTES, ROW_BLOCK_BYTES, ROW_BLOCK_ROWS, STRAIGHT_ROW_BYTES};

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
