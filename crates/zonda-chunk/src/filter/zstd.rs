//! Zstandard (32015): one frame. Parameters: the level, negative ones included; 3 without it.
//!
//! The library is C. It is given slices whose lengths it is told, and no frame makes it take memory
//! for a window: chunks are decoded in one go.

use std::cell::RefCell;

use zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd_safe::{CCtx, CParameter, DCtx};

use super::{ChunkShape, Filter, FilterError, FilterSpec, lengthen, reserve, with_thread_value};

const NAME: &str = "zstd";
const DEFAULT_LEVEL: i32 = 3;

thread_local! {
    static DECODER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    static ENCODER: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
}

#[derive(Debug)]
struct Zstd {
    level: i32,
}

pub(crate) fn new(spec: &FilterSpec, _: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    let level = spec.params.first().map_or(DEFAULT_LEVEL, |&level| level as i32);
    Ok(Box::new(Zstd { level }))
}

impl Filter for Zstd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        // What the frame says of its length is a first guess: it may not say, or not all of it.
        let said = match zstd_safe::get_frame_content_size(stored) {
            Ok(Some(said)) => usize::try_from(said).unwrap_or(usize::MAX),
            _ => stored.len().saturating_mul(4),
        };
        let mut capacity = said.clamp(64, most.max(64)).min(most);
        loop {
            out.clear();
            reserve(NAME, out, capacity)?;
            // The capacity may be larger than asked for.
            out.resize(capacity, 0);
            match decompress(NAME, stored, out) {
                Ok(len) => {
                    out.truncate(len);
                    return Ok(());
                }
                Err(FilterError::WrongLength { .. }) if capacity < most => {
                    capacity = capacity.saturating_mul(2).min(most);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn decode_into(&self, stored: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        let (got, expected) = (decompress(NAME, stored, out)?, out.len());
        if got == expected {
            Ok(())
        } else {
            Err(FilterError::WrongLength { filter: NAME, got, expected })
        }
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        compress(NAME, self.level, raw, out)?;
        Ok(true)
    }

    fn encode_over(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, FilterError> {
        Ok(Some(compress_over(NAME, self.level, raw, (out, 0))?))
    }
}

/// Bytes that `out` was filled with from its beginning.
pub(super) fn decompress(
    filter: &'static str,
    stored: &[u8],
    out: &mut [u8],
) -> Result<usize, FilterError> {
    let expected = out.len();
    with_thread_value(
        &DECODER,
        || None,
        |decoder| {
            let decoder = match decoder {
                Some(decoder) => decoder,
                None => decoder.insert(DCtx::try_create().ok_or_else(|| no_memory(filter))?),
            };
            decoder.decompress(out, stored).map_err(|code| error(filter, code, expected))
        },
    )
}

/// Appends a frame.
pub(super) fn compress(
    filter: &'static str,
    level: i32,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    let from = out.len();
    let len = compress_over(filter, level, raw, (out, from))?;
    out.truncate(from + len);
    Ok(())
}

/// Makes a frame that takes the place of what `out` has from `from` on. Gives its length; `out` may be longer.
fn compress_over(
    filter: &'static str,
    level: i32,
    raw: &[u8],
    (out, from): (&mut Vec<u8>, usize),
) -> Result<usize, FilterError> {
    let level = level.clamp(zstd_safe::min_c_level(), zstd_safe::max_c_level());
    let most = zstd_safe::compress_bound(raw.len());
    let room = &mut lengthen(filter, out, from.saturating_add(most))?[from..];
    with_thread_value(
        &ENCODER,
        || None,
        |encoder| {
            let encoder = match encoder {
                Some(encoder) => encoder,
                None => encoder.insert(CCtx::try_create().ok_or_else(|| no_memory(filter))?),
            };
            encoder
                .set_parameter(CParameter::CompressionLevel(level))
                .and_then(|_| encoder.compress2(room, raw))
                .map_err(|code| error(filter, code, most))
        },
    )
}

fn no_memory(filter: &'static str) -> FilterError {
    // The library does not say how much it wanted; a context is about this.
    FilterError::NoMemory { filter, bytes: 1 << 17 }
}

fn error(filter: &'static str, code: usize, expected: usize) -> FilterError {
    // Results that are errors are the negative of their number.
    let number = code.wrapping_neg();
    if number == ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall as usize {
        FilterError::WrongLength { filter, got: expected.saturating_add(1), expected }
    } else if number == ZSTD_ErrorCode::ZSTD_error_memory_allocation as usize {
        no_memory(filter)
    } else {
        FilterError::Damaged { filter, at: 0, what: zstd_safe::get_error_name(code) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame that does not say how long its content is, as streaming writers make them.
    fn silent(raw: &[u8]) -> Vec<u8> {
        let mut encoder = CCtx::create();
        encoder.set_parameter(CParameter::ContentSizeFlag(false)).unwrap();
        let mut frame = vec![0; zstd_safe::compress_bound(raw.len())];
        let len = encoder.compress2(&mut frame[..], raw).unwrap();
        frame.truncate(len);
        assert!(matches!(zstd_safe::get_frame_content_size(&frame), Ok(None)));
        frame
    }

    #[test]
    fn levels_count() {
        let raw: Vec<u8> = (0..50_000u32).map(|i| (i * i / 977 % 251 / 3) as u8).collect();
        let len = |level| {
            let mut out = Vec::new();
            compress(NAME, level, &raw, &mut out).unwrap();
            out.len()
        };
        assert!(len(-20) > len(3) && len(3) > len(19), "{} {} {}", len(-20), len(3), len(19));
        assert_eq!(len(i32::MIN), len(-1_000_000));
        assert_eq!(len(1000), len(22));
    }

    #[test]
    fn frames_need_not_say_their_length() {
        let raw: Vec<u8> = (0..100_000u32).map(|i| (i / 300) as u8).collect();
        let mut two = silent(&raw[..70_000]);
        compress(NAME, 3, &raw[70_000..], &mut two).unwrap();
        for stored in [silent(&raw), two] {
            let mut out = vec![0; raw.len()];
            assert_eq!(Zstd { level: 1 }.decode_into(&stored, &mut out), Ok(()));
            assert!(out == raw);
            for most in [raw.len(), usize::MAX] {
                let mut out = Vec::new();
                assert_eq!(Zstd { level: 1 }.decode(&stored, most, &mut out), Ok(()));
                assert!(out == raw);
            }
            for most in [0, 1, 69_999, 99_999] {
                let result = Zstd { level: 1 }.decode(&stored, most, &mut Vec::new());
                assert!(matches!(result, Err(FilterError::WrongLength { .. })), "{result:?}");
            }
            let result = Zstd { level: 1 }.decode_into(&stored, &mut vec![0; 100_001]);
            assert!(matches!(result, Err(FilterError::WrongLength { got: 100_000, .. })));
        }
    }
}
