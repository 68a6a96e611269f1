//! Filter 4, szip: adaptive entropy coding after CCSDS 121.0-B, as libaec and szip 2 do it for HDF5.
//!
//! Parameters: option mask (4 entropy coding alone, 8 least byte first, 16 most significant byte
//! first, 32 neighbours predict), samples in a block, bits of a sample, samples in a scanline.
//! Stream: length of the chunk u32 LE, then the coded samples.
//! Watch: 32- and 64-bit samples are coded as bytes, byte k of all samples together (as filter 2
//! has them), and in scanlines of as many bytes as the parameter says samples. A scanline that is
//! no multiple of the block is padded to one in the coded stream.

use super::aec::{self, Coding};
use super::{ChunkShape, Filter, FilterError, FilterSpec, memory};

const NAME: &str = "szip";

const OPTION_MSB: u32 = 16;
const OPTION_NEIGHBOURS: u32 = 32;

/// The most samples in a block that the filter's interface lets a writer ask for.
const MOST_BLOCK: u32 = 32;
/// The most blocks in a reference interval that the standard knows.
const MOST_BLOCKS: usize = 4096;

/// Filter 4.
#[derive(Debug)]
pub(crate) struct Szip {
    coding: Coding,
    /// Bytes whose planes are coded apart; 1 where they are not.
    planes: usize,
    /// Bytes of a scanline, without and with its padding.
    line: usize,
    padded_line: usize,
}

/// Makes the filter; the registry's line.
pub(crate) fn new(spec: &FilterSpec, _: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    let &[options, block, bits, scanline, ..] = spec.params.as_slice() else {
        let have = spec.params.len();
        return Err(FilterError::FewParameters { filter: NAME, have, need: 4 });
    };
    let bad = |index, value| FilterError::BadParameter { filter: NAME, index, value };
    if !(2..=MOST_BLOCK).contains(&block) || block % 2 != 0 {
        return Err(bad(1, block));
    }
    let planes = match bits {
        32 | 64 => bits as usize / 8,
        1..32 => 1,
        _ => return Err(bad(2, bits)),
    };
    let blocks = scanline.div_ceil(block) as usize;
    if blocks == 0 || blocks > MOST_BLOCKS {
        return Err(bad(3, scanline));
    }
    let coding = Coding {
        bits: if planes > 1 { 8 } else { bits },
        block: block as usize,
        blocks,
        msb: options & OPTION_MSB != 0,
        predict: options & OPTION_NEIGHBOURS != 0,
    };
    let line = scanline as usize * coding.sample_len();
    let padded_line = blocks * block as usize * coding.sample_len();
    Ok(Box::new(Szip { coding, planes, line, padded_line }))
}

impl Szip {
    /// Bytes of `len` bytes' scanlines with their padding.
    fn padded_len(&self, len: usize) -> Option<usize> {
        if self.line == self.padded_line {
            Some(len)
        } else {
            len.div_ceil(self.line).checked_mul(self.padded_line)
        }
    }

    /// The samples with each scanline filled up: by its last sample where neighbours predict, so
    /// that the padding costs next to nothing, else by zeros.
    fn padded(&self, samples: &[u8], len: usize) -> Vec<u8> {
        let sample = self.coding.sample_len();
        let mut padded = Vec::with_capacity(len);
        for line in samples.chunks(self.line) {
            padded.extend_from_slice(line);
            let last = if self.coding.predict { line.rchunks(sample).next() } else { None };
            let filling = last.unwrap_or(&[0; 4]).iter().take(sample).cycle();
            padded.extend(filling.take(self.padded_line - line.len()));
        }
        padded
    }
}

impl Filter for Szip {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let damaged = |at, what| FilterError::Damaged { filter: NAME, at, what };
        let Some((head, stream)) = stored.split_first_chunk::<4>() else {
            return Err(damaged(stored.len(), "ends early"));
        };
        let len = u32::from_le_bytes(*head) as usize;
        memory::check_len(NAME, len, most)?;
        if !len.is_multiple_of(self.coding.sample_len() * self.planes) {
            return Err(damaged(0, "the length is no number of samples"));
        }
        let no_memory = FilterError::NoMemory { filter: NAME, bytes: len };
        let padded_len = self.padded_len(len).ok_or(no_memory)?;
        let decode =
            |out: &mut [u8]| aec::decode(stream, self.coding, out).map_err(|what| damaged(4, what));
        if padded_len == len && self.planes == 1 {
            memory::zeroed(NAME, out, len)?;
            return decode(out);
        }
        let mut samples = Vec::new();
        memory::zeroed(NAME, &mut samples, padded_len)?;
        decode(&mut samples)?;
        if padded_len != len {
            for (index, from) in (0..padded_len).step_by(self.padded_line).enumerate() {
                samples.copy_within(from..from + self.line, index * self.line);
            }
            samples.truncate(len);
        }
        if self.planes == 1 {
            *out = samples;
            return Ok(());
        }
        memory::zeroed(NAME, out, len)?;
        super::shuffle::unshuffle(&samples, self.planes, out);
        Ok(())
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        let unit = self.coding.sample_len() * self.planes;
        let (Ok(len), 0) = (u32::try_from(raw.len()), raw.len() % unit) else {
            let what = "a chunk of 4 GiB, or of a length that is no number of samples,";
            return Err(FilterError::Unsupported { filter: NAME, what });
        };
        let mut samples = Vec::new();
        let mut from = raw;
        if self.planes > 1 {
            memory::zeroed(NAME, &mut samples, raw.len())?;
            super::shuffle::shuffle(raw, self.planes, &mut samples);
            from = &samples;
        }
        let padded;
        if self.line != self.padded_line {
            let no_memory = FilterError::NoMemory { filter: NAME, bytes: raw.len() };
            padded = self.padded(from, self.padded_len(raw.len()).ok_or(no_memory)?);
            from = &padded;
        }
        out.extend_from_slice(&len.to_le_bytes());
        aec::encode(from, self.coding, out);
        // The reference gives the coder as much room as the chunk has.
        Ok(out.len() - 4 <= raw.len())
    }
}
