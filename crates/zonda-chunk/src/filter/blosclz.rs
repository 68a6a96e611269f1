//! BloscLZ, the own codec of Blosc.
//!
//! A control byte below 32 is followed by as many bytes and one more; the first control byte is
//! always of this kind, its three high bits are let be. Any other has, from the high end, three bits of
//! length and five of distance; length 7 is followed by bytes that are added to it up to the first
//! that is not 255. Then come the low eight bits of the distance; where all thirteen bits are set,
//! two bytes follow, high byte first, to be added to them. The match is two bytes longer and one
//! byte further back than these say.

use super::FilterError;
use super::lz::{self, Reach};

/// The far distance is that of thirteen set bits and sixteen more. The tail is what readers take
/// for granted after the last match.
const REACH: Reach = Reach { distance: NEAR + 0xffff, len: usize::MAX, tail: 12 };
const LITERALS: usize = 32;
/// Distances from here on are far ones.
const NEAR: usize = 8191;

/// Bytes that `out` was filled with from its beginning.
pub(super) fn decompress(
    filter: &'static str,
    stored: &[u8],
    out: &mut [u8],
) -> Result<usize, FilterError> {
    let damaged = |at, what| FilterError::Damaged { filter, at, what };
    let expected = out.len();
    let long = |got| FilterError::WrongLength { filter, got, expected };
    let (mut at, mut len) = (0, 0usize);
    while let Some(&control) = stored.get(at) {
        let begin = at;
        let control = if begin == 0 { control & 31 } else { control };
        at += 1;
        if (control as usize) < LITERALS {
            let run = control as usize + 1;
            let bytes = stored.get(at..at + run).ok_or_else(|| damaged(begin, "ends early"))?;
            out.get_mut(len..len + run).ok_or_else(|| long(len + run))?.copy_from_slice(bytes);
            at += run;
            len += run;
        } else {
            let mut next = || {
                let byte = stored.get(at).copied().ok_or_else(|| damaged(begin, "ends early"));
                at += 1;
                byte.map(usize::from)
            };
            let mut run = usize::from(control >> 5);
            if run == 7 {
                loop {
                    let more = next()?;
                    run = run.saturating_add(more);
                    if more != 255 {
                        break;
                    }
                }
            }
            run = run.saturating_add(2);
            let mut distance = (usize::from(control & 31) << 8) + next()?;
            if distance == NEAR {
                distance += (next()? << 8) + next()?;
            }
            distance += 1;
            if distance > len {
                return Err(damaged(begin, "refers to bytes before the block"));
            }
            lz::repeat(out, len, distance, run).ok_or_else(|| long(len.saturating_add(run)))?;
            len += run;
        }
    }
    Ok(len)
}

/// Appends what is shorter than `most` bytes, or answers false.
pub(super) fn compress(raw: &[u8], most: usize, out: &mut Vec<u8>) -> bool {
    let from = out.len();
    lz::sequences(raw, &REACH, |literals, repeat| {
        for run in literals.chunks(LITERALS) {
            out.push((run.len() - 1) as u8);
            out.extend_from_slice(run);
        }
        if let Some((distance, len)) = repeat {
            let (distance, len) = (distance - 1, len - 2);
            let (near, far) = (distance.min(NEAR), distance.checked_sub(NEAR));
            let high = (near >> 8) as u8;
            if len < 7 {
                out.push((len as u8) << 5 | high);
            } else {
                out.push(7 << 5 | high);
                let mut more = len - 7;
                while more >= 255 {
                    out.push(255);
                    more -= 255;
                }
                out.push(more as u8);
            }
            out.push(near as u8);
            if let Some(far) = far {
                out.extend_from_slice(&(far as u16).to_be_bytes());
            }
        }
        out.len() - from < most
    })
}
