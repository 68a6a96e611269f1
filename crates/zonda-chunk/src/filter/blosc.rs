//! Blosc 1 (32001): the chunk in blocks, each shuffled by itself and compressed by one of several
//! codecs. A chunk that does not become shorter is left as it is. All numbers little-endian:
//!
//! | bytes | |
//! |---|---|
//! | 4 | version 2, the codec's version 1, flags, bytes of an element |
//! | 4, 4, 4 | bytes of the chunk, of a block, of the frame with its header |
//! | 4 each | where each block begins |
//! | | per block its streams: stored bytes as i32, then the bytes |
//!
//! Flags: 1 shuffled, 2 not compressed (the chunk follows the header), 4 shuffled by bits, 16 one
//! stream per block; bits 5 to 7 the format of the codec. Without flag 16, a block of at least 128
//! elements of at most 16 bytes has one stream per byte of an element, unless it is a last block
//! that is shorter. A stream of full length is not compressed.
//! Parameters: two of version, bytes of an element, bytes of a chunk, level 0 to 9, shuffle (0 none,
//! 1 bytes, 2 bits), codec (0 blosclz, 1 lz4, 2 lz4hc, 3 snappy, 4 zlib, 5 zstd).

use super::bitshuffle::{bit_shuffle, bit_unshuffle};
use super::shuffle::{shuffle, unshuffle};
use super::{
    ChunkShape, Filter, FilterError, FilterSpec, blosclz, deflate, lengthen, lz4, reserve,
    with_block_buffers, zstd,
};

const NAME: &str = "blosc";
const HEADER: usize = 16;
const VERSION: u8 = 2;

const SHUFFLED: u8 = 1;
const NOT_COMPRESSED: u8 = 2;
const BIT_SHUFFLED: u8 = 4;
const ONE_STREAM: u8 = 16;

/// Formats, as in bits 5 to 7 of the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BloscCodec {
    BloscLz = 0,
    /// Also what lz4hc writes.
    Lz4 = 1,
    Snappy = 2,
    Zlib = 3,
    Zstd = 4,
}

impl BloscCodec {
    /// The format that a chunk's flags say.
    pub(super) fn of(flags: u8) -> Option<BloscCodec> {
        Some(match flags >> 5 {
            0 => BloscCodec::BloscLz,
            1 => BloscCodec::Lz4,
            2 => BloscCodec::Snappy,
            3 => BloscCodec::Zlib,
            4 => BloscCodec::Zstd,
            _ => return None,
        })
    }

    /// Decodes a stream that lies at `at`. Bytes that `out` was filled with from its beginning.
    pub(super) fn decompress(
        self,
        filter: &'static str,
        at: usize,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<usize, FilterError> {
        match self {
            BloscCodec::BloscLz => blosclz::decompress(filter, stored, out),
            BloscCodec::Lz4 => lz4::decompress(filter, at, stored, out).map(|()| out.len()),
            BloscCodec::Zlib => deflate::inflate_into(filter, stored, out).map(|()| out.len()),
            BloscCodec::Zstd => zstd::decompress(filter, stored, out),
            BloscCodec::Snappy => snap::raw::Decoder::new()
                .decompress(stored, out)
                .map_err(|_| FilterError::Damaged { filter, at, what: "no valid snappy data" }),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shuffling {
    None,
    Bytes,
    Bits,
}

#[derive(Debug)]
struct Blosc {
    elem_size: u32,
    level: u32,
    shuffling: u32,
    codec: u32,
}

pub(crate) fn new(spec: &FilterSpec, shape: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    let param = |index: usize, default| spec.params.get(index).copied().unwrap_or(default);
    let whole = u32::try_from(shape.elem_size).unwrap_or(1);
    // A frame describes itself: parameters matter, and are checked, when a chunk is encoded.
    Ok(Box::new(Blosc {
        elem_size: match param(2, 0) {
            0 => whole,
            size => size,
        },
        level: param(4, 5),
        shuffling: param(5, 1),
        codec: param(6, 0),
    }))
}

impl Filter for Blosc {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let raw = BloscFrame::read(stored)?.raw;
        if raw > most {
            return Err(FilterError::WrongLength { filter: NAME, got: raw, expected: most });
        }
        reserve(NAME, out, raw)?;
        out.resize(raw, 0);
        self.decode_into(stored, out)
    }

    fn decode_into(&self, stored: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        let frame = BloscFrame::read(stored)?;
        if frame.raw != out.len() {
            let (got, expected) = (frame.raw, out.len());
            return Err(FilterError::WrongLength { filter: NAME, got, expected });
        }
        frame.decode(out)
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        let bad = |index, value| FilterError::BadParameter { filter: NAME, index, value };
        if self.level > 9 {
            return Err(bad(4, self.level));
        }
        let elem_size = match self.elem_size as usize {
            // More than its byte can say: the reference then takes the chunk as bytes.
            0 | 256.. => 1,
            size => size,
        };
        let shuffling = match self.shuffling {
            0 => Shuffling::None,
            // One byte of each element is what there is already.
            1 if elem_size == 1 => Shuffling::None,
            1 => Shuffling::Bytes,
            2 => Shuffling::Bits,
            other => return Err(bad(5, other)),
        };
        let format = match self.codec {
            0 => BloscCodec::BloscLz,
            1 | 2 => BloscCodec::Lz4,
            3 => BloscCodec::Snappy,
            4 => BloscCodec::Zlib,
            5 => BloscCodec::Zstd,
            other => return Err(bad(6, other)),
        };
        // One stream per byte only helps codecs that see a short way, and they alone split; lz4hc
        // has always had one.
        let splits = matches!(self.codec, 0 | 1 | 3);
        encode(&BloscEncoding { elem_size, level: self.level, shuffling, format, splits }, raw, out)
    }
}

/// A frame's header, and what follows it.
struct BloscFrame<'a> {
    stored: &'a [u8],
    flags: u8,
    elem_size: usize,
    raw: usize,
    block: usize,
}

fn damaged(at: usize, what: &'static str) -> FilterError {
    FilterError::Damaged { filter: NAME, at, what }
}

fn u32_at(stored: &[u8], at: usize) -> Result<usize, FilterError> {
    let bytes = stored.get(at..).and_then(<[u8]>::first_chunk::<4>);
    bytes.map(|bytes| u32::from_le_bytes(*bytes) as usize).ok_or_else(|| damaged(at, "ends early"))
}

impl<'a> BloscFrame<'a> {
    fn read(stored: &'a [u8]) -> Result<Self, FilterError> {
        let Some(&[version, _, flags, elem_size]) = stored.first_chunk::<4>() else {
            return Err(damaged(0, "no whole header"));
        };
        if !(1..=VERSION).contains(&version) {
            return Err(FilterError::Unsupported {
                filter: NAME,
                what: "a frame of a version above 2",
            });
        }
        let (raw, block) = (u32_at(stored, 4)?, u32_at(stored, 8)?);
        let len = u32_at(stored, 12)?;
        let stored = stored.get(..len).ok_or_else(|| damaged(12, "the frame ends early"))?;
        if stored.len() < HEADER {
            return Err(damaged(12, "a frame shorter than its header"));
        }
        if elem_size == 0 {
            return Err(damaged(3, "elements of no bytes"));
        }
        if raw > 0 && (block == 0 || block > raw) && flags & NOT_COMPRESSED == 0 {
            return Err(damaged(8, "a block longer than the chunk, or empty"));
        }
        Ok(BloscFrame { stored, flags, elem_size: elem_size.into(), raw, block })
    }

    /// Decodes into exactly the chunk's bytes.
    fn decode(&self, out: &mut [u8]) -> Result<(), FilterError> {
        if self.flags & NOT_COMPRESSED != 0 {
            let bytes = self.stored.get(HEADER..HEADER + out.len());
            out.copy_from_slice(bytes.ok_or_else(|| damaged(HEADER, "ends early"))?);
            return Ok(());
        }
        let format = BloscCodec::of(self.flags).ok_or(FilterError::Unsupported {
            filter: NAME,
            what: "a codec other than BloscLZ, LZ4, Snappy, zlib and Zstandard",
        })?;
        let elem_size = self.elem_size;
        let shuffling = if self.flags & SHUFFLED != 0 && elem_size > 1 {
            Shuffling::Bytes
        } else if self.flags & BIT_SHUFFLED != 0 {
            Shuffling::Bits
        } else {
            Shuffling::None
        };
        // Streams do not lie upon each other: bytes that many blocks shared would be decoded many
        // times over.
        let mut unread = self.stored.len();
        with_block_buffers(|buffers| {
            let block = lengthen(NAME, &mut buffers.block, self.block.min(out.len()))?;
            for (i, out) in out.chunks_mut(self.block.max(1)).enumerate() {
                let at = u32_at(self.stored, HEADER + 4 * i)?;
                let streams = match self.flags & ONE_STREAM == 0 && out.len() == self.block {
                    true => streams(self.block, elem_size),
                    false => 1,
                };
                if shuffling == Shuffling::None {
                    self.block_at(at, format, streams, &mut unread, out)?;
                    continue;
                }
                let shuffled = &mut block[..out.len()];
                self.block_at(at, format, streams, &mut unread, shuffled)?;
                match shuffling {
                    Shuffling::Bits => unshuffle_bits(shuffled, elem_size, &mut buffers.inner, out),
                    _ => unshuffle(shuffled, elem_size, out),
                }
            }
            Ok(())
        })
    }

    /// Decodes the streams of the block that begins at `at`.
    fn block_at(
        &self,
        mut at: usize,
        format: BloscCodec,
        streams: usize,
        unread: &mut usize,
        out: &mut [u8],
    ) -> Result<(), FilterError> {
        let each = out.len() / streams;
        // A block that does not fall into streams of one length is not written; its last bytes are
        // in no stream.
        if each * streams != out.len() {
            return Err(damaged(at, "a block that does not fall into its streams"));
        }
        for out in out.chunks_mut(each.max(1)) {
            let len = u32_at(self.stored, at)?;
            at += 4;
            let stored = self.stored.get(at..).and_then(|rest| rest.get(..len));
            let stored = stored.ok_or_else(|| damaged(at - 4, "a stream goes on after the end"))?;
            at += len;
            *unread = unread
                .checked_sub(4 + len)
                .ok_or_else(|| damaged(at - len - 4, "streams upon each other"))?;
            if len == out.len() {
                out.copy_from_slice(stored);
                continue;
            }
            let full = format.decompress(NAME, at - len, stored, out)?;
            if full != out.len() {
                return Err(damaged(at - len, "a stream with too few bytes"));
            }
        }
        Ok(())
    }
}

/// Streams of a block that is split.
fn streams(block: usize, elem_size: usize) -> usize {
    if elem_size <= 16 && block / elem_size >= 128 { elem_size } else { 1 }
}

/// What Blosc does to a block of another number of elements than a multiple of 8: nothing.
fn whole_bits(len: usize, elem_size: usize) -> Option<usize> {
    let elems = len / elem_size;
    elems.is_multiple_of(8).then_some(elems * elem_size)
}

fn unshuffle_bits(stored: &[u8], elem_size: usize, work: &mut Vec<u8>, out: &mut [u8]) {
    let head = whole_bits(stored.len(), elem_size).unwrap_or(0);
    bit_unshuffle(&stored[..head], elem_size, work, &mut out[..head]);
    out[head..].copy_from_slice(&stored[head..]);
}

/// How a chunk is encoded.
struct BloscEncoding {
    elem_size: usize,
    level: u32,
    shuffling: Shuffling,
    format: BloscCodec,
    splits: bool,
}

impl BloscEncoding {
    /// Bytes of a block: what fits the first caches, more of it for higher levels and for codecs
    /// that see far. A multiple of the element.
    fn block(&self, len: usize) -> usize {
        let far = matches!(self.format, BloscCodec::Zlib | BloscCodec::Zstd);
        let block = match self.level {
            0 => 8 << 10,
            1 => 16 << 10,
            2 => 32 << 10,
            3 => 64 << 10,
            4 | 5 => 128 << 10,
            6..=8 => 256 << 10,
            _ => 512 << 10,
        } << u32::from(far);
        // Whole elements in eights, so that no block is left as it is by the bit shuffle.
        let group = 8 * self.elem_size;
        let block = block.min(len);
        if block > group { block / group * group } else { block / self.elem_size * self.elem_size }
    }

    /// The frame's header and room for where each block begins; the frame's length is still 0.
    fn begin_frame(&self, raw_len: u32, block: usize, splits: bool, out: &mut Vec<u8>) {
        let flags = match self.shuffling {
            Shuffling::None => 0,
            Shuffling::Bytes => SHUFFLED,
            Shuffling::Bits => BIT_SHUFFLED,
        } | if splits { 0 } else { ONE_STREAM }
            | (self.format as u8) << 5;
        out.extend_from_slice(&[VERSION, 1, flags, self.elem_size as u8]);
        out.extend_from_slice(&raw_len.to_le_bytes());
        out.extend_from_slice(&(block as u32).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.resize(out.len() + 4 * (raw_len as usize).div_ceil(block), 0);
    }

    /// Shuffles a block into `out`, which has its length.
    fn shuffle_block(&self, raw: &[u8], work: &mut Vec<u8>, out: &mut [u8]) {
        match self.shuffling {
            Shuffling::None => out.copy_from_slice(raw),
            Shuffling::Bytes => shuffle(raw, self.elem_size, out),
            Shuffling::Bits => {
                let head = whole_bits(raw.len(), self.elem_size).unwrap_or(0);
                bit_shuffle(&raw[..head], self.elem_size, work, &mut out[..head]);
                out[head..].copy_from_slice(&raw[head..]);
            }
        }
    }
}

fn encode(encoding: &BloscEncoding, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
    let Ok(len) = u32::try_from(raw.len()) else {
        return Err(FilterError::Unsupported { filter: NAME, what: "a chunk of 4 GiB or more" });
    };
    // The reference's frames are at most as long as the chunk, and a header that says "as it is"
    // would make them longer.
    let block = encoding.block(raw.len());
    if encoding.level == 0 || raw.len() < 128 || block == 0 || len > i32::MAX as u32 - HEADER as u32
    {
        return Ok(false);
    }
    let splits = encoding.splits && streams(block, encoding.elem_size) > 1;
    reserve(NAME, out, raw.len())?;
    let starts = out.len() + HEADER;
    encoding.begin_frame(len, block, splits, out);
    with_block_buffers(|buffers| {
        let shuffled = lengthen(NAME, &mut buffers.block, block)?;
        for (i, raw_block) in raw.chunks(block).enumerate() {
            let at = out.len() as u32;
            out[starts + 4 * i..][..4].copy_from_slice(&at.to_le_bytes());
            let shuffled = &mut shuffled[..raw_block.len()];
            encoding.shuffle_block(raw_block, &mut buffers.inner, shuffled);
            let each = match splits && raw_block.len() == block {
                true => block / encoding.elem_size,
                false => raw_block.len(),
            };
            for stream in shuffled.chunks(each) {
                stream_to(NAME, (encoding.format, encoding.level), stream, out)?;
                if out.len() > raw.len() {
                    return Ok(false);
                }
            }
        }
        let len = out.len() as u32;
        out[12..16].copy_from_slice(&len.to_le_bytes());
        Ok(true)
    })
}

/// Appends a stream and its length before it; as it is where it does not become shorter.
pub(super) fn stream_to(
    filter: &'static str,
    (format, level): (BloscCodec, u32),
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    let from = out.len();
    out.extend_from_slice(&[0; 4]);
    let begin = out.len();
    let shorter = match format {
        BloscCodec::BloscLz => blosclz::compress(raw, raw.len(), out),
        BloscCodec::Lz4 => lz4::compress(filter, raw, out)? < raw.len(),
        BloscCodec::Zlib => {
            deflate::deflate(filter, deflate::level(level), raw, out)?;
            out.len() - begin < raw.len()
        }
        BloscCodec::Zstd => {
            // Nine levels for twenty-two, the last but one being the highest that is practical.
            let level = if level < 9 { level * 2 - 1 } else { 22 };
            zstd::compress(filter, level as i32, raw, out)?;
            out.len() - begin < raw.len()
        }
        BloscCodec::Snappy => {
            let most = snap::raw::max_compress_len(raw.len());
            reserve(filter, out, most)?;
            out.resize(begin + most, 0);
            let len = snap::raw::Encoder::new().compress(raw, &mut out[begin..]).map_err(|_| {
                FilterError::Unsupported { filter, what: "a block that Snappy refuses to compress" }
            })?;
            out.truncate(begin + len);
            len < raw.len()
        }
    };
    if !shorter {
        out.truncate(begin);
        out.extend_from_slice(raw);
    }
    let len = (out.len() - begin) as u32;
    out[from..begin].copy_from_slice(&len.to_le_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of so many blocks of eight bytes, block i at `at(i)`; so many are stored, as they are.
    fn frame(blocks: u32, stored: u32, at: impl Fn(u32) -> u32) -> Vec<u8> {
        let mut frame = vec![VERSION, 1, ONE_STREAM, 1];
        let first = HEADER as u32 + 4 * blocks;
        for number in [8 * blocks, 8, first + 12 * stored].into_iter().chain((0..blocks).map(at)) {
            frame.extend_from_slice(&number.to_le_bytes());
        }
        for i in 0..stored {
            frame.extend_from_slice(&8u32.to_le_bytes());
            frame.extend_from_slice(&[i as u8; 8]);
        }
        frame
    }

    fn decode(stored: &[u8], len: usize) -> Result<Vec<u8>, FilterError> {
        let mut out = vec![0; len];
        BloscFrame::read(stored)?.decode(&mut out).map(|()| out)
    }

    #[test]
    fn blocks_may_lie_anywhere_but_not_upon_each_other() {
        let backwards = frame(100, 100, |i| HEADER as u32 + 400 + 12 * (99 - i));
        let bytes = decode(&backwards, 800).unwrap();
        assert_eq!((bytes[0], bytes[799]), (99, 0));
        let all_first = frame(100, 2, |_| HEADER as u32 + 400);
        assert!(matches!(decode(&all_first, 800), Err(FilterError::Damaged { at: 416, .. })));
    }

    #[test]
    fn headers_are_checked() {
        let good = frame(4, 4, |i| HEADER as u32 + 16 + 12 * i);
        assert!(decode(&good, 32).is_ok());
        for (at, value) in [(0, 0), (0, 3), (2, 0xf0), (3, 0), (8, 0), (8, 33), (12, 15), (12, 255)]
        {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(decode(&bad, 32).is_err(), "byte {at} is {value}");
        }
        let mut as_it_is = good.clone();
        as_it_is[2] |= NOT_COMPRESSED;
        assert_eq!(decode(&as_it_is, 32).as_deref(), Ok(&good[16..48]));
    }
}
