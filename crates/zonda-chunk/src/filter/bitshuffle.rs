//! Bitshuffle (32008): bit k of all elements of a block side by side, then perhaps LZ4 or Zstandard.
//!
//! A block has a multiple of 8 elements; the last one has what is left of those, and the elements
//! after it are stored as they are. With a codec, the bytes of the chunk as u64 and of a block as
//! u32 come first, and each block follows its length as u32, all big-endian.
//! Parameters: two of version, bytes of an element, elements of a block (0: as many as fit 8 KiB),
//! codec (0 none, 2 LZ4, 3 Zstandard), its level.

use multiversion::multiversion;

use super::lz4::{self, Lz4Frame};
use super::shuffle::{shuffle, unshuffle};
use super::{
    BlockBuffers, ChunkShape, Filter, FilterError, FilterSpec, lengthen, reserve,
    with_block_buffers, zstd,
};

const NAME: &str = "bitshuffle";
const TARGET_BLOCK: usize = 8192;
const FEWEST: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Codec {
    None,
    Lz4,
    Zstd(i32),
}

#[derive(Debug)]
struct Bitshuffle {
    elem_size: usize,
    /// Elements of a block.
    block: usize,
    codec: Codec,
}

pub(crate) fn new(spec: &FilterSpec, _: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    let param = |index: usize| spec.params.get(index).copied();
    let bad = |index, value| FilterError::BadParameter { filter: NAME, index, value };
    let Some(size) = param(2) else {
        let have = spec.params.len();
        return Err(FilterError::FewParameters { filter: NAME, have, need: 3 });
    };
    let elem_size = size as usize;
    if elem_size == 0 || elem_size > 1 << 28 {
        return Err(bad(2, size));
    }
    let block = match param(3).unwrap_or(0) {
        0 => (TARGET_BLOCK / elem_size / 8 * 8).max(FEWEST),
        block if block % 8 == 0 => block as usize,
        block => return Err(bad(3, block)),
    };
    let codec = match param(4).unwrap_or(0) {
        0 => Codec::None,
        2 => Codec::Lz4,
        3 => Codec::Zstd(param(5).map_or(3, |level| level as i32)),
        codec => return Err(bad(4, codec)),
    };
    Ok(Box::new(Bitshuffle { elem_size, block, codec }))
}

impl Filter for Bitshuffle {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let raw = match self.codec {
            Codec::None if stored.len() > most => {
                let (got, expected) = (stored.len(), most);
                return Err(FilterError::WrongLength { filter: NAME, got, expected });
            }
            Codec::None => stored.len(),
            _ => Lz4Frame::read(NAME, stored)?.checked_len(NAME, most)?,
        };
        reserve(NAME, out, raw)?;
        out.resize(raw, 0);
        self.decode_into(stored, out)
    }

    fn decode_into(&self, stored: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        with_block_buffers(|buffers| self.decode_with(stored, buffers, out))
    }

    fn encoded_len(&self, raw_len: usize) -> Option<usize> {
        (self.codec == Codec::None).then_some(raw_len)
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        with_block_buffers(|buffers| self.encode_with(raw, buffers, out)).map(|()| true)
    }
}

impl Bitshuffle {
    fn decode_with(
        &self,
        stored: &[u8],
        buffers: &mut BlockBuffers,
        out: &mut [u8],
    ) -> Result<(), FilterError> {
        if self.codec == Codec::None {
            if stored.len() != out.len() {
                let (got, expected) = (stored.len(), out.len());
                return Err(FilterError::WrongLength { filter: NAME, got, expected });
            }
            let (head, tail) = self.parts(out.len());
            let block = self.block.saturating_mul(self.elem_size);
            for (stored, out) in stored[..head].chunks(block).zip(out[..head].chunks_mut(block)) {
                bit_unshuffle(stored, self.elem_size, &mut buffers.inner, out);
            }
            out[head..][..tail].copy_from_slice(&stored[head..]);
            return Ok(());
        }
        let frame = Lz4Frame::read(NAME, stored)?;
        frame.check(NAME, out.len())?;
        let whole = self.elem_size.saturating_mul(8);
        if !frame.block.is_multiple_of(whole) {
            let what = "blocks of a part of 8 elements";
            return Err(FilterError::Damaged { filter: NAME, at: 8, what });
        }
        let (head, tail) = self.parts(out.len());
        let (head, tail) = out[..head + tail].split_at_mut(head);
        let longest = frame.block.min(head.len());
        let shuffled = lengthen(NAME, &mut buffers.block, longest)?;
        let mut blocks = frame.blocks;
        for out in head.chunks_mut(frame.block.max(1)) {
            let bytes = blocks.next(NAME)?;
            let shuffled = &mut shuffled[..out.len()];
            if self.codec == Codec::Lz4 {
                lz4::decompress(NAME, blocks.at, bytes, shuffled)?;
            } else if zstd::decompress(NAME, bytes, shuffled)? != shuffled.len() {
                let (at, what) = (blocks.at, "a block with too few bytes");
                return Err(FilterError::Damaged { filter: NAME, at, what });
            }
            bit_unshuffle(shuffled, self.elem_size, &mut buffers.inner, out);
        }
        let Some(rest) = blocks.rest().get(..tail.len()) else {
            let (at, what) = (blocks.at, "the last elements are missing");
            return Err(FilterError::Damaged { filter: NAME, at, what });
        };
        tail.copy_from_slice(rest);
        Ok(())
    }

    fn encode_with(
        &self,
        raw: &[u8],
        buffers: &mut BlockBuffers,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let (head, _) = self.parts(raw.len());
        let block = self.block.saturating_mul(self.elem_size);
        reserve(NAME, out, raw.len())?;
        if self.codec == Codec::None {
            out.resize(raw.len(), 0);
            for (raw, out) in raw[..head].chunks(block).zip(out[..head].chunks_mut(block)) {
                bit_shuffle(raw, self.elem_size, &mut buffers.inner, out);
            }
            out[head..].copy_from_slice(&raw[head..]);
            return Ok(());
        }
        let Ok(block_bytes) = u32::try_from(block) else {
            let value = u32::try_from(self.block).unwrap_or(u32::MAX);
            return Err(FilterError::BadParameter { filter: NAME, index: 3, value });
        };
        out.extend_from_slice(&(raw.len() as u64).to_be_bytes());
        out.extend_from_slice(&block_bytes.to_be_bytes());
        let shuffled = lengthen(NAME, &mut buffers.block, block.min(head))?;
        for raw in raw[..head].chunks(block) {
            let shuffled = &mut shuffled[..raw.len()];
            bit_shuffle(raw, self.elem_size, &mut buffers.inner, shuffled);
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            match self.codec {
                Codec::Zstd(level) => zstd::compress(NAME, level, shuffled, out)?,
                _ => _ = lz4::compress(NAME, shuffled, out)?,
            }
            let len = (out.len() - at - 4) as u32;
            out[at..at + 4].copy_from_slice(&len.to_be_bytes());
        }
        out.extend_from_slice(&raw[head..]);
        Ok(())
    }

    /// Bytes in blocks, and bytes after them.
    fn parts(&self, len: usize) -> (usize, usize) {
        let whole = self.elem_size.saturating_mul(8);
        let head = len / whole * whole;
        (head, len - head)
    }
}

/// Bit k of byte b of all elements side by side, for a multiple of 8 elements: k runs before b, the
/// low bit first.
///
/// # Panics
/// If the lengths differ or hold another number of elements.
pub(super) fn bit_shuffle(raw: &[u8], elem_size: usize, work: &mut Vec<u8>, out: &mut [u8]) {
    let each = raw.len() / elem_size;
    if each == 0 {
        return;
    }
    let work = at_least(work, raw.len());
    shuffle(raw, elem_size, work);
    transpose_bits(work);
    for (plane, out) in work.chunks_exact(each).zip(out.chunks_exact_mut(each)) {
        shuffle(plane, 8, out);
    }
}

/// Undoes [`bit_shuffle`].
///
/// # Panics
/// If the lengths differ or hold another number of elements.
pub(super) fn bit_unshuffle(stored: &[u8], elem_size: usize, work: &mut Vec<u8>, out: &mut [u8]) {
    let each = stored.len() / elem_size;
    if each == 0 {
        return;
    }
    let work = at_least(work, stored.len());
    for (rows, plane) in stored.chunks_exact(each).zip(work.chunks_exact_mut(each)) {
        unshuffle(rows, 8, plane);
    }
    transpose_bits(work);
    unshuffle(work, elem_size, out);
}

fn at_least(work: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if work.len() < len {
        work.resize(len, 0);
    }
    &mut work[..len]
}

/// In each eight bytes, bit k of byte j becomes bit j of byte k: exchanges ever larger squares.
#[multiversion(targets(
    "x86_64+avx2+bmi1+bmi2+avx512f+avx512bw+avx512dq+avx512vl",
    "x86_64+avx2+bmi1+bmi2"
))]
fn transpose_bits(bytes: &mut [u8]) {
    for eight in bytes.as_chunks_mut::<8>().0 {
        let mut x = u64::from_le_bytes(*eight);
        let t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
        x ^= t ^ (t << 7);
        let t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
        x ^= t ^ (t << 14);
        let t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
        x ^= t ^ (t << 28);
        *eight = x.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_go_where_the_format_says() {
        for size in [1usize, 2, 3, 4, 8, 13, 16] {
            for elems in [8usize, 16, 24, 128, 520] {
                let raw: Vec<u8> = (0..elems * size).map(|i| (i * i / 5 % 253) as u8).collect();
                let mut expected = vec![0u8; raw.len()];
                for i in 0..elems {
                    for bit in 0..8 * size {
                        let value = raw[i * size + bit / 8] >> (bit % 8) & 1;
                        expected[bit * (elems / 8) + i / 8] |= value << (i % 8);
                    }
                }
                let (mut work, mut out) = (Vec::new(), vec![0; raw.len()]);
                bit_shuffle(&raw, size, &mut work, &mut out);
                assert!(out == expected, "{elems} of {size}");
                let mut back = vec![0; raw.len()];
                bit_unshuffle(&out, size, &mut work, &mut back);
                assert!(back == raw, "{elems} of {size}");
            }
        }
    }
}
