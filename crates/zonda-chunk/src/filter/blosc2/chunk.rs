//! A chunk of Blosc 2: a header of 32 bytes, where each block begins, and the blocks' streams. All
//! numbers little-endian:
//!
//! | bytes | |
//! |---|---|
//! | 4 | version, the codec's version, flags, bytes of an element |
//! | 4, 4, 4 | bytes of the data, of a block, of the chunk with its header |
//! | 6, 1, 1 | filters, in the order in which they were applied; codec; for the codec |
//! | 6, 1, 1 | for each filter; more flags; more flags |
//! | 4 each | where each block begins |
//! | | per block its streams: a length as i32, then the bytes |
//!
//! Flags: 1 and 4 together: this header, not the one of Blosc 1; 2 not compressed (the data follow
//! the header); 16 one stream per block; bits 5 to 7 the format of the codec. In the last byte: 1 a
//! dictionary; bits 4 to 6 all data are zeros (1), not numbers (2), the element that follows (3),
//! never set (4).
//! A stream's length: 0, it is zeros; the full length, it is not compressed; negative, a byte of
//! flags follows, and with flag 1 the stream is the negated length repeated.

use super::super::bitshuffle::{bit_shuffle, bit_unshuffle};
use super::super::blosc::{BloscCodec, stream_to};
use super::super::shuffle::{shuffle, unshuffle};
use super::super::{FilterError, memory, reserve};
use super::{NAME, damaged};

pub(super) const HEADER: usize = 32;

const VERSION: u8 = 5;
const EXTENDED: u8 = 1 | 4;
const NOT_COMPRESSED: u8 = 2;
const ONE_STREAM: u8 = 16;
const DICTIONARY: u8 = 1;
const LAZY: u8 = 8;

const SHUFFLE: u8 = 1;
const BIT_SHUFFLE: u8 = 2;
const DELTA: u8 = 3;
const CUT: u8 = 4;

/// What a whole chunk is, where it says no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Zeros,
    NotNumbers,
}

impl Special {
    /// From the number in flags and offsets; none if there is no such.
    pub(super) fn of(number: u8) -> Option<Special> {
        match number {
            // What was never set is zeros here.
            1 | 4 => Some(Special::Zeros),
            2 => Some(Special::NotNumbers),
            _ => None,
        }
    }

    /// Fills memory with it.
    pub(super) fn fill(self, elem_size: usize, out: &mut [u8]) -> Result<(), FilterError> {
        let value: &[u8] = match (self, elem_size) {
            (Special::Zeros, _) => &[0],
            (Special::NotNumbers, 4) => &f32::NAN.to_le_bytes(),
            (Special::NotNumbers, 8) => &f64::NAN.to_le_bytes(),
            (Special::NotNumbers, _) => return Err(damaged(31, "not a number, of this size")),
        };
        fill(value, out);
        Ok(())
    }
}

fn fill(value: &[u8], out: &mut [u8]) {
    out.chunks_mut(value.len().max(1)).for_each(|to| {
        to.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
    });
}

/// A chunk's header, and all of its bytes.
pub(super) struct Chunk<'a> {
    stored: &'a [u8],
    flags: u8,
    pub(super) elem_size: usize,
    /// Bytes of data.
    pub(super) len: usize,
    /// Bytes of a block; at least 1.
    pub(super) block: usize,
    /// Filters and what is said for them, in the order in which they were applied.
    filters: [(u8, u8); 6],
    more_flags: u8,
}

impl<'a> Chunk<'a> {
    /// Reads the header of the chunk that `stored` begins with.
    pub(super) fn read(stored: &'a [u8]) -> Result<Chunk<'a>, FilterError> {
        let words = stored.as_chunks::<4>().0.first_chunk::<{ HEADER / 4 }>();
        let Some(&[begin, len, block, stored_len, filters, more_filters, metas, end]) = words
        else {
            return Err(damaged(0, "no whole header of a chunk"));
        };
        let [_version, _, flags, elem_size] = begin;
        let ([f0, f1, f2, f3], [f4, f5, _codec, _]) = (filters, more_filters);
        let ([m0, m1, m2, m3], [m4, m5, newer, more_flags]) = (metas, end);
        if flags & EXTENDED != EXTENDED {
            let what = "a chunk of version 1 in a frame";
            return Err(FilterError::Unsupported { filter: NAME, what });
        }
        let number = |bytes| u32::from_le_bytes(bytes) as usize;
        let (len, block, stored_len) = (number(len), number(block), number(stored_len));
        let stored = stored.get(..stored_len).filter(|stored| stored.len() >= HEADER);
        let stored = stored.ok_or_else(|| damaged(12, "the chunk ends early"))?;
        if elem_size == 0 {
            return Err(damaged(3, "elements of no bytes"));
        }
        if len > 0 && (block == 0 || block > len) {
            return Err(damaged(8, "a block longer than the chunk, or empty"));
        }
        if newer != 0 || more_flags & (DICTIONARY | LAZY) != 0 {
            let what = "a chunk with a dictionary, or of a newer kind,";
            return Err(FilterError::Unsupported { filter: NAME, what });
        }
        Ok(Chunk {
            stored,
            flags,
            elem_size: elem_size.into(),
            len,
            block: block.max(1),
            filters: [(f0, m0), (f1, m1), (f2, m2), (f3, m3), (f4, m4), (f5, m5)],
            more_flags,
        })
    }

    /// Decodes block by block: `sink` gets each block's number and its bytes.
    pub(super) fn blocks(&self, mut sink: impl FnMut(usize, &[u8])) -> Result<(), FilterError> {
        let mut memory = Vec::new();
        memory::zeroed(NAME, &mut memory, self.block.min(self.len))?;
        let n_blocks = self.len.div_ceil(self.block);
        let last = self.len - n_blocks.saturating_sub(1) * self.block;
        let block_len = |index| if index + 1 == n_blocks { last } else { self.block };
        let special = self.more_flags >> 4 & 7;
        if special != 0 {
            self.fill_special(special, &mut memory)?;
            (0..n_blocks).for_each(|i| sink(i, memory.get(..block_len(i)).unwrap_or_default()));
            return Ok(());
        }
        if self.flags & NOT_COMPRESSED != 0 {
            let data = self.stored.get(HEADER..HEADER + self.len);
            let data = data.ok_or_else(|| damaged(HEADER, "ends early"))?;
            data.chunks(self.block).enumerate().for_each(|(index, block)| sink(index, block));
            return Ok(());
        }
        let format = BloscCodec::of(self.flags).filter(|format| *format != BloscCodec::Snappy);
        let format = format.ok_or(FilterError::Unsupported {
            filter: NAME,
            what: "a codec other than BloscLZ, LZ4, zlib and Zstandard",
        })?;
        let (mut other_memory, mut work, mut first) = (memory.clone(), Vec::new(), Vec::new());
        let delta = self.filters.iter().any(|(filter, _)| *filter == DELTA);
        // Streams do not lie upon each other: bytes that many blocks shared would be decoded many
        // times over.
        let mut unread = self.stored.len();
        for index in 0..n_blocks {
            let len = block_len(index);
            let (Some(block), Some(other)) = (memory.get_mut(..len), other_memory.get_mut(..len))
            else {
                break;
            };
            let at = self.number(HEADER + 4 * index)?;
            let at = usize::try_from(at).map_err(|_| damaged(HEADER + 4 * index, "negative"))?;
            let splits = self.flags & ONE_STREAM == 0 && len == self.block;
            let n_streams = if splits { self.elem_size } else { 1 };
            self.streams(at, format, n_streams, &mut unread, block)?;
            let first_block = (index > 0).then_some(&first[..]);
            let block = self.undo_filters(block, other, first_block, &mut work)?;
            if delta && index == 0 {
                reserve(NAME, &mut first, len)?;
                first.extend_from_slice(block);
            }
            sink(index, block);
        }
        Ok(())
    }

    /// Fills a block of a chunk whose data are all the special value of this number.
    fn fill_special(&self, special: u8, block: &mut [u8]) -> Result<(), FilterError> {
        if let Some(special) = Special::of(special) {
            return special.fill(self.elem_size, block);
        }
        let value = self.stored.get(HEADER..HEADER + self.elem_size).filter(|_| special == 3);
        fill(value.ok_or_else(|| damaged(31, "no such special value"))?, block);
        Ok(())
    }

    /// Undoes the filters of a decoded block, from the last to the first, in its memory and in
    /// `other`, as long; gives the one of the two where the elements are then. `first_block` is the
    /// decoded first block, where this is another one.
    fn undo_filters<'b>(
        &self,
        mut block: &'b mut [u8],
        mut other: &'b mut [u8],
        first_block: Option<&[u8]>,
        work: &mut Vec<u8>,
    ) -> Result<&'b [u8], FilterError> {
        for (filter, meta) in self.filters.iter().rev() {
            let elem_size = if *meta == 0 { self.elem_size } else { usize::from(*meta) };
            match (*filter, first_block) {
                (0 | CUT, _) => continue,
                (SHUFFLE, _) => unshuffle(block, elem_size, other),
                (BIT_SHUFFLE, _) => {
                    let head = block.len() / self.elem_size / 8 * 8 * self.elem_size;
                    let (from, from_tail) = block.split_at(head);
                    let (to, to_tail) = other.split_at_mut(head);
                    reserve(NAME, work, head)?;
                    bit_unshuffle(from, self.elem_size, work, to);
                    to_tail.copy_from_slice(from_tail);
                }
                (DELTA, None) => {
                    add_before(block, self.elem_size);
                    continue;
                }
                (DELTA, Some(first_block)) => {
                    block.iter_mut().zip(first_block).for_each(|(to, first)| *to ^= first);
                    continue;
                }
                _ => {
                    let what = "a filter of Blosc's plugins";
                    return Err(FilterError::Unsupported { filter: NAME, what });
                }
            }
            std::mem::swap(&mut block, &mut other);
        }
        Ok(block)
    }

    fn number(&self, at: usize) -> Result<i32, FilterError> {
        let bytes = self.stored.get(at..).and_then(<[u8]>::first_chunk::<4>);
        bytes.map(|bytes| i32::from_le_bytes(*bytes)).ok_or_else(|| damaged(at, "ends early"))
    }

    /// Decodes the streams of the block that begins at `at`.
    fn streams(
        &self,
        mut at: usize,
        format: BloscCodec,
        n_streams: usize,
        unread: &mut usize,
        out: &mut [u8],
    ) -> Result<(), FilterError> {
        if !out.len().is_multiple_of(n_streams) {
            return Err(damaged(at, "a block that does not fall into its streams"));
        }
        let each = out.len() / n_streams;
        for out in out.chunks_mut(each.max(1)) {
            let begin = at;
            let len = self.number(at)?;
            at += 4;
            let stored_len = usize::try_from(len).unwrap_or(1);
            let stored = self.stored.get(at..).and_then(|rest| rest.get(..stored_len));
            let stored = stored.ok_or_else(|| damaged(begin, "a stream goes on after the end"))?;
            at += stored_len;
            *unread = unread
                .checked_sub(4 + stored_len)
                .ok_or_else(|| damaged(begin, "streams upon each other"))?;
            match len {
                0 => out.fill(0),
                ..0 => {
                    let value = u8::try_from(len.unsigned_abs());
                    let value = value.ok().filter(|_| stored.first().is_some_and(|f| f & 1 != 0));
                    out.fill(value.ok_or_else(|| damaged(begin, "a negative length"))?);
                }
                _ if stored.len() == out.len() => out.copy_from_slice(stored),
                _ => {
                    if format.decompress(NAME, begin + 4, stored, out)? != out.len() {
                        return Err(damaged(begin, "a stream with too few bytes"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Undoes differences within the first block: each element was combined with the one before.
fn add_before(block: &mut [u8], elem_size: usize) {
    let size = match elem_size {
        1 | 2 | 4 | 8 => elem_size,
        _ if elem_size.is_multiple_of(8) => 8,
        _ => 1,
    };
    let mut last = [0; 8];
    for element in block.chunks_exact_mut(size) {
        for (to, last) in element.iter_mut().zip(&mut last) {
            *to ^= *last;
            *last = *to;
        }
    }
}

/// How a chunk is encoded.
pub(super) struct Blosc2Encoding {
    pub(super) elem_size: u8,
    pub(super) level: u32,
    /// 0, or one of the two shuffles.
    pub(super) filter: u8,
    pub(super) format: BloscCodec,
    /// Its number among the parameters.
    pub(super) codec: u8,
}

impl Blosc2Encoding {
    /// Bytes of a block of `len` bytes of data: what fits the second cache, more for codecs that
    /// see far; whole elements, in eights.
    pub(super) fn block(&self, len: usize) -> usize {
        let far = matches!(self.format, BloscCodec::Zlib | BloscCodec::Zstd);
        let most = (128 << 10) << u32::from(far) << u32::from(self.level > 5);
        let group = 8 * usize::from(self.elem_size);
        if len > most { most / group * group } else { len }
    }

    /// Applies the filter to a block, into `out` of the same length.
    fn filter_block(&self, raw: &[u8], work: &mut Vec<u8>, out: &mut [u8]) {
        let elem_size = usize::from(self.elem_size);
        match self.filter {
            SHUFFLE => shuffle(raw, elem_size, out),
            BIT_SHUFFLE => {
                let head = raw.len() / elem_size / 8 * 8 * elem_size;
                let (from, from_tail) = raw.split_at(head);
                let (to, to_tail) = out.split_at_mut(head);
                bit_shuffle(from, elem_size, work, to);
                to_tail.copy_from_slice(from_tail);
            }
            _ => out.copy_from_slice(raw),
        }
    }
}

/// Appends a chunk. It can be longer than the data by its headers.
pub(super) fn encode(
    encoding: &Blosc2Encoding,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    let begin = out.len();
    let block = encoding.block(raw.len()).max(1);
    let Ok(len) = i32::try_from(raw.len() + HEADER) else {
        return Err(FilterError::Unsupported { filter: NAME, what: "a chunk of 2 GiB or more" });
    };
    let flags = EXTENDED | ONE_STREAM | (encoding.format as u8) << 5;
    out.extend_from_slice(&[VERSION, 1, flags, encoding.elem_size]);
    out.extend_from_slice(&(len as u32 - HEADER as u32).to_le_bytes());
    out.extend_from_slice(&(block as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[
        0,
        0,
        0,
        0,
        0,
        encoding.filter,
        encoding.codec,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ]);
    let starts = out.len();
    out.resize(starts + 4 * raw.len().div_ceil(block), 0);
    let (mut filtered, mut work) = (Vec::new(), Vec::new());
    memory::zeroed(NAME, &mut filtered, block)?;
    for (index, raw) in raw.chunks(block).enumerate() {
        let at = (out.len() - begin) as u32;
        if let Some(start) = out.get_mut(starts + 4 * index..starts + 4 * index + 4) {
            start.copy_from_slice(&at.to_le_bytes());
        }
        let Some(filtered) = filtered.get_mut(..raw.len()) else { break };
        encoding.filter_block(raw, &mut work, filtered);
        stream_to(NAME, (encoding.format, encoding.level), filtered, out)?;
    }
    if out.len() - begin > raw.len() + HEADER {
        // Nothing gained: the data as they are.
        out.truncate(starts);
        if let Some(flags) = out.get_mut(begin + 2) {
            *flags |= NOT_COMPRESSED;
        }
        out.extend_from_slice(raw);
    }
    let stored_len = (out.len() - begin) as u32;
    if let Some(length) = out.get_mut(begin + 12..begin + 16) {
        length.copy_from_slice(&stored_len.to_le_bytes());
    }
    Ok(())
}
