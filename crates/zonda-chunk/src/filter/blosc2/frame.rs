//! A contiguous frame: header, chunks, a chunk with their offsets, trailer. Header and trailer are
//! MessagePack with fixed places, so numbers in them are big-endian:
//!
//! | byte | |
//! |---|---|
//! | 0 | 9e, a8 `b2frame\0` |
//! | 10, 15 | d2 bytes of the header, cf bytes of the frame |
//! | 24 | a4 version of the frame and kind of offsets; type; codec and level; more |
//! | 29, 38 | d3 bytes of the data, d3 bytes of the chunks |
//! | 47, 52, 57 | d2 bytes of an element, of a block, of a chunk's data |
//! | 62, 65, 68 | d1, d1 threads, c2 or c3 whether the trailer has more |
//! | 69 | d8 06, 8 filters, 8 bytes for them |
//! | 87 | 93 cd, de: names of metalayers and where each is; dc: the metalayers, each c6 and its bytes |
//!
//! Metalayer `b2nd`: 97, version, dimensions n; 9n n × d3 the array's; 9n n × d2 a chunk's; 9n n × d2
//! a block's. A chunk is then a grid of blocks, and each block a small array; at the far edges, both
//! are filled up.

use super::chunk::{self, Blosc2Encoding, Chunk, Special};
use super::{NAME, damaged};
use crate::filter::FilterError;

const MAGIC: &[u8] = b"\xa8b2frame\0";
/// Up to the metalayers.
const FIXED: usize = 87;
/// The most dimensions there are.
const MOST_DIMS: usize = 8;

/// A frame with one chunk.
pub(super) struct Blosc2Frame<'a> {
    data: FrameData<'a>,
    elem_size: usize,
    /// Bytes of the data, as the frame says.
    len: usize,
    /// How the chunk is laid out, if not from front to back.
    grid: Option<BlockGrid>,
}

enum FrameData<'a> {
    Chunk(Chunk<'a>),
    Special(Special),
}

/// Lengths along each dimension, slowest first.
struct BlockGrid {
    /// Of the array, which is the one chunk.
    array: Vec<usize>,
    block: Vec<usize>,
}

/// Fields at fixed places of the header.
fn field<const N: usize>(frame: &[u8], at: usize, mark: u8) -> Result<[u8; N], FilterError> {
    let (found, bytes) = frame
        .get(at..)
        .and_then(<[u8]>::split_first)
        .and_then(|(mark, rest)| Some((*mark, *rest.first_chunk::<N>()?)))
        .ok_or_else(|| damaged(at, "the frame's header ends early"))?;
    if found != mark { Err(damaged(at, "another field was expected")) } else { Ok(bytes) }
}

fn int32(frame: &[u8], at: usize) -> Result<usize, FilterError> {
    let value = i32::from_be_bytes(field(frame, at, 0xd2)?);
    usize::try_from(value).map_err(|_| damaged(at, "a negative size"))
}

fn int64(frame: &[u8], at: usize) -> Result<usize, FilterError> {
    let value = i64::from_be_bytes(field(frame, at, 0xd3)?);
    usize::try_from(value).map_err(|_| damaged(at, "a negative size"))
}

impl<'a> Blosc2Frame<'a> {
    /// Reads header and offsets.
    pub(super) fn read(stored: &'a [u8]) -> Result<Blosc2Frame<'a>, FilterError> {
        if stored.get(1..10) != Some(MAGIC) {
            return Err(damaged(0, "no frame of Blosc 2"));
        }
        let header_len = int32(stored, 10)?;
        let (len, chunks_len) = (int64(stored, 29)?, int64(stored, 38)?);
        let (elem_size, chunk_len) = (int32(stored, 47)?, int32(stored, 57)?);
        let header = stored.get(..header_len).filter(|header| header.len() >= FIXED);
        let header = header.ok_or_else(|| damaged(10, "the frame's header ends early"))?;
        let behind = stored.get(header_len..).unwrap_or_default();
        let Some((chunks, index)) = behind.split_at_checked(chunks_len) else {
            return Err(damaged(38, "the frame ends early"));
        };
        if elem_size == 0 {
            return Err(damaged(47, "elements of no bytes"));
        }
        let grid = BlockGrid::read(header)?;
        if len > chunk_len {
            let what = "a frame with several chunks";
            return Err(FilterError::Unsupported { filter: NAME, what });
        }
        let data = if len == 0 {
            FrameData::Special(Special::Zeros)
        } else {
            match offset(index)?.to_le_bytes() {
                [0, 0, 0, 0, 0, 0, 0, kind] if kind >= 0x80 => FrameData::Special(
                    Special::of(kind & 0x7f).ok_or_else(|| damaged(38, "no such special chunk"))?,
                ),
                bytes => {
                    let at = usize::try_from(u64::from_le_bytes(bytes)).ok();
                    let chunk = at.and_then(|at| chunks.get(at..));
                    FrameData::Chunk(Chunk::read(
                        chunk.ok_or_else(|| damaged(38, "a wrong offset"))?,
                    )?)
                }
            }
        };
        Ok(Blosc2Frame { data, elem_size, len, grid })
    }

    /// Bytes of the array.
    pub(super) fn len(&self) -> Result<usize, FilterError> {
        let Some(grid) = &self.grid else { return Ok(self.len) };
        let len = product(&grid.array).and_then(|elems| elems.checked_mul(self.elem_size));
        len.ok_or(FilterError::NoMemory { filter: NAME, bytes: usize::MAX })
    }

    /// Decodes into memory of the array's length.
    pub(super) fn decode(&self, out: &mut [u8]) -> Result<(), FilterError> {
        let chunk = match &self.data {
            FrameData::Special(special) => return special.fill(self.elem_size, out),
            FrameData::Chunk(chunk) => chunk,
        };
        let Some(grid) = &self.grid else {
            if chunk.len != out.len() {
                let (got, expected) = (chunk.len, out.len());
                return Err(FilterError::WrongLength { filter: NAME, got, expected });
            }
            return chunk.blocks(|index, block| {
                let at = index * chunk.block;
                if let Some(to) = out.get_mut(at..at + block.len()) {
                    to.copy_from_slice(block);
                }
            });
        };
        // A block is no longer than the array, and a chunk filled up to whole blocks less than twice
        // as long along each dimension.
        let block_len = product(&grid.block).and_then(|elems| elems.checked_mul(self.elem_size));
        let n_blocks = product(&grid.blocks());
        let whole = block_len.zip(n_blocks).and_then(|(len, n)| len.checked_mul(n));
        if block_len != Some(chunk.block) || whole != Some(chunk.len) {
            return Err(damaged(FIXED, "a chunk that is no grid of its blocks"));
        }
        chunk.blocks(|index, block| grid.scatter(index, block, self.elem_size, out))
    }
}

fn product(lengths: &[usize]) -> Option<usize> {
    lengths.iter().try_fold(1usize, |product, length| product.checked_mul(*length))
}

/// Where the one chunk is, from the chunk with the offsets.
fn offset(index: &[u8]) -> Result<u64, FilterError> {
    let index = Chunk::read(index)?;
    if index.len != 8 {
        return Err(damaged(4, "not the offset of one chunk"));
    }
    let mut bytes = [0; 8];
    index.blocks(|number, block| {
        let to = bytes.iter_mut().skip(number * index.block);
        to.zip(block).for_each(|(to, from)| *to = *from);
    })?;
    Ok(u64::from_le_bytes(bytes))
}

impl BlockGrid {
    /// From the metalayer `b2nd`; none if there is none.
    fn read(header: &[u8]) -> Result<Option<BlockGrid>, FilterError> {
        let early = || damaged(FIXED, "the metalayers end early");
        // 93, cd and two bytes, de and how many.
        let n_layers = u16::from_be_bytes(field(header, FIXED + 4, 0xde)?);
        let mut at = FIXED + 7;
        for _ in 0..n_layers {
            let name_len = usize::from(*header.get(at).ok_or_else(early)? & 0x1f);
            let name = header.get(at + 1..at + 1 + name_len).ok_or_else(early)?;
            let place = int32(header, at + 1 + name_len)?;
            at += 1 + name_len + 5;
            if name == b"b2nd" {
                let layer_len = u32::from_be_bytes(field(header, place, 0xc6)?) as usize;
                let layer = header.get(place + 5..).and_then(|rest| rest.get(..layer_len));
                return BlockGrid::parse(layer.ok_or_else(early)?).map(Some);
            }
        }
        Ok(None)
    }

    fn parse(layer: &[u8]) -> Result<BlockGrid, FilterError> {
        type Lengths = Result<Vec<usize>, FilterError>;
        let wrong = || damaged(FIXED, "no dimensions that a chunk can have");
        let n_dims = usize::from(*layer.get(2).ok_or_else(wrong)?);
        if n_dims == 0 || n_dims > MOST_DIMS {
            return Err(wrong());
        }
        // Behind the three bytes: a byte, n × 9; a byte, n × 5; a byte, n × 5.
        let (first, step) = (4, 9);
        let array = (0..n_dims).map(|i| int64(layer, first + i * step)).collect::<Lengths>()?;
        let (first, step) = (first + n_dims * 9 + 1, 5);
        let chunk = (0..n_dims).map(|i| int32(layer, first + i * step)).collect::<Lengths>()?;
        let first = first + n_dims * 5 + 1;
        let block = (0..n_dims).map(|i| int32(layer, first + i * step)).collect::<Lengths>()?;
        let grid = BlockGrid { array, block };
        if grid.array != chunk {
            return Err(damaged(FIXED, "an array that is not its one chunk"));
        }
        let mut lengths = grid.array.iter().zip(&grid.block);
        if lengths.all(|(array, block)| (1..=*array).contains(block)) {
            Ok(grid)
        } else {
            Err(wrong())
        }
    }

    /// Blocks along each dimension.
    fn blocks(&self) -> Vec<usize> {
        self.array.iter().zip(&self.block).map(|(array, block)| array.div_ceil(*block)).collect()
    }

    /// Copies what the block with this number has of the array.
    fn scatter(&self, index: usize, block: &[u8], elem_size: usize, out: &mut [u8]) {
        let mut origin = vec![0; self.block.len()];
        let mut rest = index;
        for ((origin, n), block) in origin.iter_mut().zip(self.blocks()).zip(&self.block).rev() {
            *origin = rest % n * block;
            rest /= n;
        }
        let run = self.block.last().copied().unwrap_or(1);
        for (number, row) in block.chunks_exact(run * elem_size).enumerate() {
            // Where the row begins in the array, if it does.
            let (mut rest, mut at, mut stride, mut inside) = (number, 0, 1, true);
            let mut kept = run;
            let dims = origin.iter().zip(&self.block).zip(&self.array).rev();
            for (dim, ((origin, block), array)) in dims.enumerate() {
                let place = if dim == 0 {
                    kept = run.min(array.saturating_sub(*origin));
                    *origin
                } else {
                    let place = origin + rest % block;
                    rest /= block;
                    place
                };
                inside &= place < *array;
                at += place * stride;
                stride *= array;
            }
            let len = kept * elem_size;
            let from = row.get(..len).filter(|_| inside);
            let to = out.get_mut(at * elem_size..).and_then(|out| out.get_mut(..len));
            if let Some((to, from)) = to.zip(from) {
                to.copy_from_slice(from);
            }
        }
    }
}

/// Appends a frame with one chunk and no metalayers.
pub(super) fn encode(
    encoding: &Blosc2Encoding,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    const HEADER: usize = FIXED + 10;
    const TRAILER: usize = 35;
    let mut chunk = Vec::new();
    chunk::encode(encoding, raw, &mut chunk)?;
    let index_len = chunk::HEADER + 8;
    let frame_len = HEADER + chunk.len() + index_len + TRAILER;
    let elem_size = u32::from(encoding.elem_size);
    let block = encoding.block(raw.len());

    out.push(0x9e);
    out.extend_from_slice(MAGIC);
    let int32 = |out: &mut Vec<u8>, value: u32| {
        out.push(0xd2);
        out.extend_from_slice(&value.to_be_bytes());
    };
    let int64 = |out: &mut Vec<u8>, mark, value: usize| {
        out.push(mark);
        out.extend_from_slice(&(value as u64).to_be_bytes());
    };
    int32(out, HEADER as u32);
    int64(out, 0xcf, frame_len);
    // Version 2 with offsets of 64 bits; contiguous; codec and level; how blocks are split.
    out.extend_from_slice(&[0xa4, 0x12, 0, encoding.codec | (encoding.level as u8) << 4, 2]);
    int64(out, 0xd3, raw.len());
    int64(out, 0xd3, chunk.len());
    int32(out, elem_size);
    int32(out, block as u32);
    int32(out, raw.len() as u32);
    out.extend_from_slice(&[0xd1, 0, 1, 0xd1, 0, 1, 0xc2, 0xd8, 6]);
    out.extend_from_slice(&[0, 0, 0, 0, 0, encoding.filter, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&[0x93, 0xcd, 0, 6, 0xde, 0, 0, 0xdc, 0, 0]);
    out.extend_from_slice(&chunk);
    // The offsets: 0 for the one chunk, in a chunk that is not compressed.
    out.extend_from_slice(&[5, 1, 7, 8, 8, 0, 0, 0, 8, 0, 0, 0, index_len as u8, 0, 0, 0]);
    out.extend_from_slice(&[0; 16 + 8]);
    out.extend_from_slice(&[0x94, 1, 0x93, 0xcd, 0, 6, 0xde, 0, 0, 0xdc, 0, 0]);
    out.push(0xce);
    out.extend_from_slice(&(TRAILER as u32).to_be_bytes());
    out.extend_from_slice(&[0xd8, 0]);
    out.extend_from_slice(&[0; 16]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{BlockGrid, Blosc2Encoding, Blosc2Frame, encode};
    use crate::filter::blosc::BloscCodec;
    use proptest::prelude::*;

    /// The array's elements in their blocks, in order; what sticks out is 0xee.
    fn blocks(grid: &BlockGrid) -> Vec<Vec<u8>> {
        let counts = grid.blocks();
        let n_blocks: usize = counts.iter().product();
        let block_len: usize = grid.block.iter().product();
        let place = |mut number: usize, lengths: &[usize]| {
            let mut place = vec![0; lengths.len()];
            for (to, length) in place.iter_mut().zip(lengths).rev() {
                *to = number % length;
                number /= length;
            }
            place
        };
        (0..n_blocks)
            .map(|index| {
                let origin = place(index, &counts);
                (0..block_len)
                    .flat_map(|within| {
                        let within = place(within, &grid.block);
                        let mut number = 0;
                        for dim in 0..grid.block.len() {
                            let at = origin[dim] * grid.block[dim] + within[dim];
                            if at >= grid.array[dim] {
                                return [0xee, 0xee];
                            }
                            number = number * grid.array[dim] + at;
                        }
                        (number as u16).to_be_bytes()
                    })
                    .collect()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn blocks_go_where_they_belong(
            dims in proptest::collection::vec((1usize..9, 1usize..9), 1..5),
        ) {
            let array = dims.iter().map(|dim| dim.0).collect();
            let block = dims.iter().map(|dim| dim.1.min(dim.0)).collect();
            let grid = BlockGrid { array, block };
            let n_elems: usize = grid.array.iter().product();
            let mut out = vec![0x55; n_elems * 2];
            for (index, block) in blocks(&grid).iter().enumerate() {
                grid.scatter(index, block, 2, &mut out);
            }
            let expected: Vec<u8> = (0..n_elems as u16).flat_map(u16::to_be_bytes).collect();
            prop_assert_eq!(out, expected);
        }
    }

    #[test]
    fn chunks_of_several_blocks_and_odd_tails() {
        let raw: Vec<u8> = (0..700_001u32).map(|i| (i / 7 % 251) as u8).collect();
        for (elem_size, filter) in [(1, 0), (4, 1), (8, 2), (24, 1), (3, 2)] {
            for format in [BloscCodec::BloscLz, BloscCodec::Lz4, BloscCodec::Zlib, BloscCodec::Zstd]
            {
                let encoding = Blosc2Encoding { elem_size, level: 3, filter, format, codec: 0 };
                let mut stored = Vec::new();
                encode(&encoding, &raw, &mut stored).unwrap();
                assert!(stored.len() < raw.len());
                let mut out = vec![0x55; raw.len()];
                Blosc2Frame::read(&stored).unwrap().decode(&mut out).unwrap();
                assert!(out == raw, "{elem_size} {filter} {format:?}");
            }
        }
    }
}
