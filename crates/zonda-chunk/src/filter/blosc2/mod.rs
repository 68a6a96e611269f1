//! Blosc 2 (32026): the chunk in a contiguous frame, which holds one chunk of Blosc's own.
//!
//! Parameters: two of version, bytes of an element, bytes of a chunk, level 0 to 9, filter (0 none,
//! 1 bytes shuffled, 2 bits shuffled, 3 differences, 4 cut numbers), codec (0 blosclz, 1 lz4,
//! 2 lz4hc, 4 zlib, 5 zstd), then perhaps the number of dimensions and the chunk's.
//! Formats: "Blosc2 Contiguous Frame Format", "Blosc Chunk Format" and "B2ND Metalayer Format" of
//! the c-blosc2 project; `frame.rs` and `chunk.rs` have the bytes.
//!
//! Read: one chunk in a frame, plain or in blocks of several dimensions, all of Blosc's own codecs
//! and filters. Not read: dictionaries, and codecs and filters from Blosc's plugin registry.
//! Written: plain frames with shuffled bytes, bits or neither.

mod chunk;
mod frame;

use super::{ChunkShape, Filter, FilterError, FilterSpec, blosc::BloscCodec, memory, reserve};
use chunk::Blosc2Encoding;
use frame::Blosc2Frame;

const NAME: &str = "blosc2";

/// Filter 32026. A frame describes itself: parameters matter, and are checked, when encoding.
#[derive(Debug)]
struct Blosc2 {
    elem_size: usize,
    level: u32,
    filter: u32,
    codec: u32,
}

/// Makes the filter; the registry's line.
pub(crate) fn new(spec: &FilterSpec, shape: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    let param = |index: usize, default| spec.params.get(index).copied().unwrap_or(default);
    let elem_size = match param(2, 0) {
        0 => shape.elem_size,
        size => size as usize,
    };
    Ok(Box::new(Blosc2 { elem_size, level: param(4, 5), filter: param(5, 1), codec: param(6, 0) }))
}

fn damaged(at: usize, what: &'static str) -> FilterError {
    FilterError::Damaged { filter: NAME, at, what }
}

impl Filter for Blosc2 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let frame = Blosc2Frame::read(stored)?;
        memory::check_len(NAME, frame.len()?, most)?;
        memory::zeroed(NAME, out, frame.len()?)?;
        frame.decode(out)
    }

    fn decode_into(&self, stored: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        let frame = Blosc2Frame::read(stored)?;
        let got = frame.len()?;
        if got != out.len() {
            return Err(FilterError::WrongLength { filter: NAME, got, expected: out.len() });
        }
        frame.decode(out)
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        let bad = |index, value| FilterError::BadParameter { filter: NAME, index, value };
        let format = match self.codec {
            0 => BloscCodec::BloscLz,
            1 | 2 => BloscCodec::Lz4,
            4 => BloscCodec::Zlib,
            5 => BloscCodec::Zstd,
            other => return Err(bad(6, other)),
        };
        if self.level > 9 {
            return Err(bad(4, self.level));
        }
        if self.filter > 4 {
            return Err(bad(5, self.filter));
        }
        if self.level == 0 {
            return Ok(false);
        }
        let encoding = Blosc2Encoding {
            // More than its byte can say: bytes.
            elem_size: u8::try_from(self.elem_size.max(1)).unwrap_or(1),
            level: self.level,
            // Differences and cut numbers seldom pay; without them a frame says so itself.
            filter: self.filter.min(2) as u8 * u8::from(self.filter <= 2),
            format,
            codec: self.codec as u8,
        };
        reserve(NAME, out, raw.len())?;
        frame::encode(&encoding, raw, out)?;
        Ok(out.len() < raw.len())
    }
}
