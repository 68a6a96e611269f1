//! Filter 4, szip: adaptive entropy coding after CCSDS 121.0-B, as libaec and szip 2 do it for HDF5.
//!
//! Parameters: option mask (4 entropy coding alone, 8 least byte first, 16 most significant byte
//! first, 32 neighbours predict), samples in a block, bits of a sample, samples in a scanline.
//! Stream: length of the chunk u32 LE, then the coded samples.
//! Watch: 32- and 64-bit samples are coded as bytes, byte k of all samples together (as filter 2
//! has them), and in scanlines of as many bytes as the parameter says samples. A scanline that is
//! no multiple of the block is padded to one in the coded stream.

use tensogram_szip as aec;

use super::{ChunkShape, Filter, FilterError, FilterSpec, room};

const NAME: &str = "szip";

const OPTION_MSB: u32 = 16;
const OPTION_NEIGHBOURS: u32 = 32;

/// The most samples in a block that the filter's interface lets a writer ask for.
const MOST_BLOCK: u32 = 32;
/// The most blocks in a reference interval that the standard knows.
const MOST_BLOCKS: u32 = 4096;

/// Filter 4.
#[derive(Debug)]
pub(crate) struct Szip {
    params: aec::AecParams,
    /// Bytes of a sample as the coder takes them from memory.
    sample: usize,
    /// Bytes whose planes are coded apart; 1 where they are not.
    planes: usize,
    /// Bytes of a scanline, without and with its padding.
    line: usize,
    padded_line: usize,
    /// Samples of 17 to 24 bits are in 4 bytes in the chunk and in 3 for the coder.
    narrow: bool,
}

/// Makes the filter; the registry's line.
pub(crate) fn new(spec: &FilterSpec, _shape: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
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
    let blocks = scanline.div_ceil(block);
    if blocks == 0 || blocks > MOST_BLOCKS {
        return Err(bad(3, scanline));
    }
    let coded_bits = if planes > 1 { 8 } else { bits };
    let sample = match coded_bits {
        ..=8 => 1,
        ..=16 => 2,
        _ => 4,
    };
    let mut flags = aec::AEC_NOT_ENFORCE;
    if options & OPTION_MSB != 0 {
        flags |= aec::AEC_DATA_MSB;
    }
    if options & OPTION_NEIGHBOURS != 0 {
        flags |= aec::AEC_DATA_PREPROCESS;
    }
    Ok(Box::new(Szip {
        params: aec::AecParams { bits_per_sample: coded_bits, block_size: block, rsi: blocks, flags },
        sample,
        planes,
        line: scanline as usize * sample,
        padded_line: (blocks * block) as usize * sample,
        narrow: (17..=24).contains(&coded_bits),
    }))
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

    /// A sample of 4 bytes without the one that is always zero.
    fn narrowed(&self, samples: &[u8]) -> Vec<u8> {
        let skip = usize::from(self.params.flags & aec::AEC_DATA_MSB != 0);
        samples.chunks_exact(4).flat_map(|four| four.iter().skip(skip).take(3)).copied().collect()
    }

    fn widened(&self, samples: &[u8]) -> Vec<u8> {
        let msb = self.params.flags & aec::AEC_DATA_MSB != 0;
        let widen = |three: &[u8]| match *three {
            [a, b, c] if msb => [0, a, b, c],
            [a, b, c] => [a, b, c, 0],
            _ => [0; 4],
        };
        samples.chunks_exact(3).flat_map(widen).collect()
    }

    /// The samples with each scanline filled up: by its last sample where neighbours predict, so
    /// that the padding costs next to nothing, else by zeros.
    fn padded(&self, samples: &[u8], len: usize) -> Vec<u8> {
        let mut padded = Vec::with_capacity(len);
        for line in samples.chunks(self.line) {
            padded.extend_from_slice(line);
            let last = match line.last_chunk::<1>() {
                _ if self.params.flags & aec::AEC_DATA_PREPROCESS == 0 => &[0; 4],
                Some(_) => line.get(line.len().saturating_sub(self.sample)..).unwrap_or_default(),
                None => &[],
            };
            let short = self.padded_line - line.len();
            padded.extend(last.iter().take(self.sample).cycle().take(short));
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
        room::fits(NAME, len, most)?;
        if len % (self.sample * self.planes) != 0 {
            return Err(damaged(0, "the length is no number of samples"));
        }
        let padded_len =
            self.padded_len(len).ok_or(FilterError::NoMemory { filter: NAME, bytes: len })?;
        let coder_len = if self.narrow { padded_len / 4 * 3 } else { padded_len };
        let decoded = aec::aec_decompress(stream, coder_len, &self.params)
            .map_err(|_| damaged(4, "not a stream of this coder"))?;
        if decoded.len() != coder_len {
            return Err(damaged(stored.len(), "ends early"));
        }
        let mut samples = if self.narrow { self.widened(&decoded) } else { decoded };
        if self.line != self.padded_line {
            let lines = samples.chunks_exact(self.padded_line);
            samples = lines.flat_map(|line| line.iter().take(self.line)).copied().collect();
            samples.truncate(len);
        }
        if self.planes == 1 {
            *out = samples;
            return Ok(());
        }
        room::zeroed(NAME, out, len)?;
        super::shuffle::unshuffle(self.planes, &samples, out);
        Ok(())
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        let unit = self.sample * self.planes;
        let (Ok(len), 0) = (u32::try_from(raw.len()), raw.len() % unit) else {
            let what = "a chunk of 4 GiB, or of a length that is no number of samples,";
            return Err(FilterError::Unsupported { filter: NAME, what });
        };
        let mut samples = raw.to_vec();
        if self.planes > 1 {
            super::shuffle::shuffle(self.planes, raw, &mut samples);
        }
        if self.line != self.padded_line {
            let padded_len = self.padded_len(raw.len());
            let len = padded_len.ok_or(FilterError::NoMemory { filter: NAME, bytes: raw.len() })?;
            samples = self.padded(&samples, len);
        }
        if self.narrow {
            samples = self.narrowed(&samples);
        }
        let stream = aec::aec_compress_no_offsets(&samples, &self.params)
            .map_err(|_| FilterError::Unsupported { filter: NAME, what: "this chunk" })?;
        // The reference gives the coder as much room as the chunk has.
        if stream.len() > raw.len() {
            return Ok(false);
        }
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&stream);
        Ok(true)
    }
}
