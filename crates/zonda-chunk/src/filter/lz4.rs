//! LZ4 (32004): bytes of the chunk as u64, bytes of a block as u32, then per block its stored bytes
//! as u32 and the block itself; all numbers big-endian. A block that is stored with its full length
//! is not compressed. Parameters: bytes of a block, where 0 and none mean 1 GiB.

use std::cell::RefCell;

use lz4_flex::block::CompressTable;

use super::{ChunkShape, Filter, FilterError, FilterSpec, reserve, with_thread_value};

const NAME: &str = "lz4";
const DEFAULT_BLOCK: usize = 1 << 30;
/// What LZ4 can compress at once.
const MOST_BLOCK: usize = 0x7e00_0000;
const HEADER: usize = 8 + 4;

thread_local! {
    /// Of short and of long input, which a table for long ones would compress to other bytes: what a thread did before must not show.
    static SHORT_TABLE: RefCell<CompressTable> = RefCell::new(CompressTable::small());
    static LONG_TABLE: RefCell<CompressTable> = RefCell::new(CompressTable::large());
}

#[derive(Debug)]
struct Lz4 {
    /// Only the encoder needs it, which therefore checks it.
    block: usize,
}

pub(crate) fn new(spec: &FilterSpec, _: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    let block = match spec.params.first() {
        None | Some(0) => DEFAULT_BLOCK,
        Some(&block) => block as usize,
    };
    Ok(Box::new(Lz4 { block }))
}

impl Filter for Lz4 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let raw = Lz4Frame::read(NAME, stored)?.checked_len(NAME, most)?;
        reserve(NAME, out, raw)?;
        out.resize(raw, 0);
        self.decode_into(stored, out)
    }

    fn decode_into(&self, stored: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        let frame = Lz4Frame::read(NAME, stored)?;
        frame.check(NAME, out.len())?;
        let block = frame.block.min(frame.raw);
        if block == 0 {
            return frame.end_of_empty(NAME);
        }
        let mut blocks = frame.blocks;
        for out in out.chunks_mut(block) {
            let bytes = blocks.next(NAME)?;
            if bytes.len() == out.len() {
                out.copy_from_slice(bytes);
            } else {
                decompress(NAME, blocks.at, bytes, out)?;
            }
        }
        Ok(())
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        if self.block > MOST_BLOCK {
            let value = u32::try_from(self.block).unwrap_or(u32::MAX);
            return Err(FilterError::BadParameter { filter: NAME, index: 0, value });
        }
        let block = self.block.min(raw.len());
        out.extend_from_slice(&(raw.len() as u64).to_be_bytes());
        out.extend_from_slice(&(block as u32).to_be_bytes());
        for raw in raw.chunks(block.max(1)) {
            let at = out.len();
            reserve(NAME, out, 4 + raw.len())?;
            out.extend_from_slice(&[0; 4]);
            let mut len = compress(NAME, raw, out)?;
            if len >= raw.len() {
                out.truncate(at + 4);
                out.extend_from_slice(raw);
                len = raw.len();
            }
            out[at..at + 4].copy_from_slice(&(len as u32).to_be_bytes());
        }
        Ok(true)
    }
}

/// The header that this filter and bitshuffle have in common.
pub(super) struct Lz4Frame<'a> {
    /// Bytes of the chunk.
    pub(super) raw: usize,
    /// Bytes of a block.
    pub(super) block: usize,
    pub(super) blocks: Lz4Blocks<'a>,
}

/// Blocks, each after its length.
pub(super) struct Lz4Blocks<'a> {
    rest: &'a [u8],
    /// Byte of the stored chunk at which `rest` begins.
    pub(super) at: usize,
}

impl<'a> Lz4Frame<'a> {
    pub(super) fn read(filter: &'static str, stored: &'a [u8]) -> Result<Self, FilterError> {
        let header = |at, what| FilterError::Damaged { filter, at, what };
        let (raw, rest) =
            stored.split_first_chunk::<8>().ok_or_else(|| header(0, "no whole header"))?;
        let (block, rest) =
            rest.split_first_chunk::<4>().ok_or_else(|| header(8, "no whole header"))?;
        let raw = usize::try_from(u64::from_be_bytes(*raw))
            .map_err(|_| header(0, "more bytes than memory could hold"))?;
        let block = u32::from_be_bytes(*block) as usize;
        if block == 0 && raw > 0 {
            return Err(header(8, "blocks of no bytes"));
        }
        Ok(Lz4Frame { raw, block, blocks: Lz4Blocks { rest, at: HEADER } })
    }

    /// The bytes of the chunk, if they are at most `most` and can come from what is stored.
    pub(super) fn checked_len(
        &self,
        filter: &'static str,
        most: usize,
    ) -> Result<usize, FilterError> {
        if self.raw > most {
            return Err(FilterError::WrongLength { filter, got: self.raw, expected: most });
        }
        Ok(self.raw)
    }

    pub(super) fn check(&self, filter: &'static str, expected: usize) -> Result<(), FilterError> {
        if self.raw == expected {
            Ok(())
        } else {
            Err(FilterError::WrongLength { filter, got: self.raw, expected })
        }
    }

    fn end_of_empty(&self, filter: &'static str) -> Result<(), FilterError> {
        self.check(filter, 0)
    }
}

impl<'a> Lz4Blocks<'a> {
    pub(super) fn next(&mut self, filter: &'static str) -> Result<&'a [u8], FilterError> {
        let damaged = |what| FilterError::Damaged { filter, at: self.at, what };
        let (len, rest) =
            self.rest.split_first_chunk::<4>().ok_or_else(|| damaged("no more blocks"))?;
        let (block, rest) = rest
            .split_at_checked(u32::from_be_bytes(*len) as usize)
            .ok_or_else(|| damaged("the block goes on after the end"))?;
        self.rest = rest;
        self.at += 4 + block.len();
        Ok(block)
    }

    /// What follows the blocks.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// Decodes one block of exactly `out.len()` bytes; `at` is where it ends, for messages.
pub(super) fn decompress(
    filter: &'static str,
    at: usize,
    stored: &[u8],
    out: &mut [u8],
) -> Result<(), FilterError> {
    let damaged = |what| FilterError::Damaged { filter, at: at - stored.len().min(at), what };
    match lz4_flex::block::decompress_into(stored, out) {
        Ok(len) if len == out.len() => Ok(()),
        Ok(_) => Err(damaged("a block with too few bytes")),
        Err(_) => Err(damaged("no valid lz4 block")),
    }
}

/// Appends one block; its length.
pub(super) fn compress(
    filter: &'static str,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<usize, FilterError> {
    let (from, most) = (out.len(), lz4_flex::block::get_maximum_output_size(raw.len()));
    reserve(filter, out, most)?;
    out.resize(from + most, 0);
    let output = &mut out[from..];
    let into = |table: &mut _| lz4_flex::block::compress_into_with_table(raw, output, table);
    let len = match raw.len() < usize::from(u16::MAX) {
        true => with_thread_value(&SHORT_TABLE, CompressTable::small, into),
        false => with_thread_value(&LONG_TABLE, CompressTable::large, into),
    }
    .map_err(|_| FilterError::Unsupported {
        filter,
        what: "a block that LZ4 refuses to compress",
    })?;
    out.truncate(from + len);
    Ok(len)
}
