//! LZF (32000), h5py's own filter: the chunk in the format of liblzf. A chunk that does not become
//! shorter is left as it is. Parameters: revision, version of liblzf, bytes of a chunk; none is
//! needed.
//!
//! A control byte below 32 is followed by as many bytes and one more. Any other has, from the high
//! end, three bits of length and five of distance; length 7 is followed by a byte that is added to
//! it, then come the low eight bits of the distance. The match is two bytes longer and one byte
//! further back than these say.

use super::lz::{self, Reach};
use super::{ChunkShape, Filter, FilterError, FilterSpec, reserve};

const NAME: &str = "lzf";

const REACH: Reach = Reach { distance: 1 << 13, len: 7 + 255 + 2, tail: 0 };
const LITERALS: usize = 32;

#[derive(Debug)]
struct Lzf;

pub(crate) fn new(_: &FilterSpec, _: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    Ok(Box::new(Lzf))
}

impl Filter for Lzf {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        // Three bytes give 264 at the most.
        let capacity = most.min(stored.len().saturating_mul(88));
        reserve(NAME, out, capacity)?;
        out.resize(capacity, 0);
        let len = decompress(stored, out).map_err(|error| match error {
            FilterError::WrongLength { got, .. } if capacity == most => {
                FilterError::WrongLength { filter: NAME, got, expected: most }
            }
            error => error,
        })?;
        out.truncate(len);
        Ok(())
    }

    fn decode_into(&self, stored: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        let (got, expected) = (decompress(stored, out)?, out.len());
        if got == expected {
            Ok(())
        } else {
            Err(FilterError::WrongLength { filter: NAME, got, expected })
        }
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        reserve(NAME, out, raw.len())?;
        Ok(compress(raw, out))
    }
}

/// Bytes that `out` was filled with from its beginning.
fn decompress(stored: &[u8], out: &mut [u8]) -> Result<usize, FilterError> {
    let short = |at| FilterError::Damaged { filter: NAME, at, what: "ends early" };
    let expected = out.len();
    let long = |got| FilterError::WrongLength { filter: NAME, got, expected };
    let (mut at, mut len) = (0, 0);
    while let Some(&control) = stored.get(at) {
        let begin = at;
        at += 1;
        if (control as usize) < LITERALS {
            let run = control as usize + 1;
            let bytes = stored.get(at..at + run).ok_or_else(|| short(begin))?;
            out.get_mut(len..len + run).ok_or_else(|| long(len + run))?.copy_from_slice(bytes);
            at += run;
            len += run;
        } else {
            let mut next = || {
                let byte = stored.get(at).copied().ok_or_else(|| short(begin));
                at += 1;
                byte.map(usize::from)
            };
            let mut run = usize::from(control >> 5);
            if run == 7 {
                run += next()?;
            }
            run += 2;
            let distance = (usize::from(control & 31) << 8) + next()? + 1;
            if distance > len {
                let what = "refers to bytes before the chunk";
                return Err(FilterError::Damaged { filter: NAME, at: begin, what });
            }
            lz::repeat(out, len, distance, run).ok_or_else(|| long(len + run))?;
            len += run;
        }
    }
    Ok(len)
}

/// Appends what is shorter than `raw`, or answers false.
fn compress(raw: &[u8], out: &mut Vec<u8>) -> bool {
    let from = out.len();
    lz::sequences(raw, &REACH, |literals, repeat| {
        for run in literals.chunks(LITERALS) {
            out.push((run.len() - 1) as u8);
            out.extend_from_slice(run);
        }
        if let Some((distance, len)) = repeat {
            let (distance, len) = (distance - 1, len - 2);
            let high = (distance >> 8) as u8;
            if len < 7 {
                out.push((len as u8) << 5 | high);
            } else {
                out.extend_from_slice(&[7 << 5 | high, (len - 7) as u8]);
            }
            out.push(distance as u8);
        }
        out.len() - from < raw.len()
    })
}
