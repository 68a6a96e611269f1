//! Deflate (1): a zlib stream (RFC 1950) of the whole chunk.
//! Parameters: the level, 0 to 9. What is longer than its input is kept, as libhdf5 does.
//! Bytes after the end of the stream are let be, as libhdf5 does.
//!
//! The only file that names the library behind it.

use std::cell::RefCell;

use sirocco::Format;
use sirocco::deflate::{Encoder, Flush, Level};
use sirocco::inflate::{Decoder, Error};

use super::{
    ChunkShape, Filter, FilterError, FilterSpec, lengthen, reserve, with_thread_value, zeroed_table,
};

const NAME: &str = "deflate";

thread_local! {
    /// The decoder's tables: a small chunk would cost as much to set them up as to inflate.
    #[allow(clippy::missing_const_for_thread_local)] // its 14 kB, nearly all zeros, would be in the file, and be copied for each thread
    static DECODER: RefCell<Decoder> = RefCell::new(Decoder::new(Format::Zlib));
    /// The encoder's tables, made by the thread's first chunk.
    static TABLES: RefCell<Option<Box<[u16]>>> = const { RefCell::new(None) };
}

#[derive(Debug)]
struct Deflate {
    level: Level,
}

pub(crate) fn new(spec: &FilterSpec, _: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    match spec.params[..] {
        [value @ 0..=9] => Ok(Box::new(Deflate { level: Level::new(value as u8) })),
        [value] => Err(FilterError::BadParameter { filter: NAME, index: 0, value }),
        _ => Err(FilterError::FewParameters { filter: NAME, have: spec.params.len(), need: 1 }),
    }
}

impl Filter for Deflate {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        inflate_vec(NAME, stored, most, out)
    }

    fn decode_into(&self, stored: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        inflate_into(NAME, stored, out)
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        deflate(NAME, self.level, raw, out)?;
        Ok(true)
    }

    fn encode_over(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, FilterError> {
        Ok(Some(deflate_over(NAME, self.level, raw, (out, 0))?))
    }
}

/// Inflates a zlib stream into exactly `out.len()` bytes.
pub(super) fn inflate_into(
    filter: &'static str,
    stored: &[u8],
    out: &mut [u8],
) -> Result<(), FilterError> {
    let expected = out.len();
    with_thread_value(
        &DECODER,
        || Decoder::new(Format::Zlib),
        |decoder| {
            // Before the call, not after: an error or a full buffer leaves it in the middle.
            decoder.reset();
            match decoder.decompress(stored, out, true) {
                Ok(progress) if progress.done && progress.output.len() == expected => Ok(()),
                Ok(progress) if progress.done => {
                    Err(FilterError::WrongLength { filter, got: progress.output.len(), expected })
                }
                Ok(_) | Err(Error::BufferFull) => Err(longer(filter, expected)),
                Err(error) => Err(damaged(filter, error, decoder.total_in())),
            }
        },
    )
}

/// Inflates a zlib stream of unknown length, at most `most` bytes.
fn inflate_vec(
    filter: &'static str,
    stored: &[u8],
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    with_thread_value(
        &DECODER,
        || Decoder::new(Format::Zlib),
        |decoder| {
            decoder.reset();
            let mut input = stored;
            let mut len = 0;
            // One byte more than allowed, so that a stream that ends exactly there is told from one
            // that goes on.
            let ceiling = most.saturating_add(1);
            let mut capacity =
                stored.len().saturating_mul(4).max(4096).max(out.capacity()).min(ceiling);
            loop {
                reserve(filter, out, capacity - out.len())?;
                out.resize(capacity, 0);
                match decoder.decompress(input, out, true) {
                    Ok(progress) => {
                        len += progress.output.len();
                        if len > most {
                            return Err(longer(filter, most));
                        }
                        if progress.done {
                            out.truncate(len);
                            return Ok(());
                        }
                        input = &input[progress.consumed..];
                    }
                    Err(Error::BufferFull) => {}
                    Err(error) => return Err(damaged(filter, error, decoder.total_in())),
                }
                if capacity == ceiling {
                    return Err(longer(filter, most));
                }
                capacity = capacity.saturating_mul(2).min(ceiling);
            }
        },
    )
}

/// Deflates `raw` to a zlib stream that is appended to `out`.
pub(super) fn deflate(
    filter: &'static str,
    level: Level,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    let from = out.len();
    let len = deflate_over(filter, level, raw, (out, from))?;
    out.truncate(from + len);
    Ok(())
}

/// Deflates `raw` to a zlib stream that takes the place of what `out` has from `from` on. Gives its length; `out` may be longer.
fn deflate_over(
    filter: &'static str,
    level: Level,
    raw: &[u8],
    (out, from): (&mut Vec<u8>, usize),
) -> Result<usize, FilterError> {
    let kept = TABLES.try_with(RefCell::take).ok().flatten();
    let tables = match kept {
        Some(tables) => tables,
        None => zeroed_table(filter, sirocco::deflate::TABLES_LEN)?,
    };
    let mut encoder = Encoder::with_tables(Format::Zlib, level, tables);
    let mut len = 0;
    // Mostly enough for stored blocks and the frame: one call then does it all.
    let mut capacity = raw.len() + raw.len() / 1000 + 1024;
    let result = loop {
        let room = match lengthen(filter, out, from + capacity) {
            Ok(room) => &mut room[from + len..],
            Err(error) => break Err(error),
        };
        let progress = encoder.compress(raw, room, Flush::Finish);
        len += progress.output.len();
        if progress.done {
            break Ok(len);
        }
        capacity += capacity / 2;
    };
    let _gone = TABLES.try_with(|kept| kept.replace(Some(encoder.into_tables())));
    result
}

/// The level that a number from 0 to 9 stands for; larger ones mean 9.
pub(super) fn level(number: u32) -> Level {
    Level::new(number.min(9) as u8)
}

fn longer(filter: &'static str, expected: usize) -> FilterError {
    FilterError::WrongLength { filter, got: expected.saturating_add(1), expected }
}

fn damaged(filter: &'static str, error: Error, at: u64) -> FilterError {
    let what = match error {
        Error::ChecksumMismatch => "the Adler-32 checksum does not match",
        Error::Truncated => "ends early",
        Error::PresetDictionary => "needs a preset dictionary",
        _ => "no valid deflate data",
    };
    FilterError::Damaged { filter, at: usize::try_from(at).unwrap_or(usize::MAX), what }
}

#[cfg(test)]
mod tests {
    use libdeflater::{CompressionLvl, Compressor, Decompressor};

    use super::*;

    fn filter(number: u32) -> Box<dyn Filter> {
        let spec = FilterSpec { id: 1, optional: true, name: String::new(), params: vec![number] };
        new(&spec, &ChunkShape { dims: vec![1], elem_size: 1 }).unwrap()
    }

    /// Bytes by turns smooth, repeated and without a pattern.
    fn bytes(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed | 1;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut all: Vec<u8> = Vec::with_capacity(len + 100);
        while all.len() < len {
            let (kind, run, byte) = (random() % 3, random() % 100, random() as u8);
            match kind {
                0 => all.extend((0..run).map(|i| byte.wrapping_add((i / 4) as u8))),
                1 => all.extend((0..run).map(|_| random() as u8)),
                _ => {
                    let from = all.len().saturating_sub(random() as usize % 5000 + 1);
                    all.extend_from_within(from..(from + run as usize).min(all.len()));
                    all.push(byte);
                }
            }
        }
        all.truncate(len);
        all
    }

    fn theirs(raw: &[u8], level: i32) -> Vec<u8> {
        let mut other = Compressor::new(CompressionLvl::new(level).unwrap());
        let mut stored = vec![0; other.zlib_compress_bound(raw.len())];
        let len = other.zlib_compress(raw, &mut stored).unwrap();
        stored.truncate(len);
        stored
    }

    #[test]
    fn both_libraries_read_both() {
        let lens = (0..40).chain([255, 256, 257, 4095, 32_767, 32_769, 65_535, 65_537, 200_001]);
        for (seed, len) in (9..).zip(lens) {
            let raw = bytes(seed, len);
            for level in 0..=9 {
                let mut stored = Vec::new();
                assert_eq!(filter(level as u32).encode(&raw, &mut stored), Ok(true));
                let mut out = vec![0; len];
                let got = Decompressor::new().zlib_decompress(&stored, &mut out);
                assert_eq!((got, &out), (Ok(len), &raw), "theirs of ours, {len}, level {level}");
                let stored = theirs(&raw, level);
                out.fill(0);
                assert_eq!(filter(1).decode_into(&stored, &mut out), Ok(()));
                assert!(out == raw, "ours of theirs, {len}, level {level}");
                let mut grown = Vec::new();
                assert_eq!(filter(1).decode(&stored, len, &mut grown), Ok(()));
                assert!(grown == raw, "grown, {len}, level {level}");
            }
        }
    }

    /// Damaged streams: what one library takes for whole, the other takes for the same.
    #[test]
    fn both_libraries_refuse_the_same() {
        let (mut whole, mut refused) = (0, 0);
        let mut numbers = fastrand::Rng::with_seed(5);
        let mut random = move |end: usize| numbers.usize(..end);
        for seed in 0..60 {
            let raw = bytes(seed, 40 + 60 * seed as usize);
            let good = theirs(&raw, (seed % 10) as i32);
            for _ in 0..400 {
                let mut stored = good.clone();
                match random(4) {
                    0 => stored.truncate(random(good.len())),
                    1 => stored.extend_from_slice(&[7; 3]),
                    _ => {
                        let at = random(good.len());
                        stored[at] ^= 1 << random(8);
                    }
                }
                let (mut ours, mut other) = (vec![0; raw.len()], vec![0; raw.len()]);
                let mine = filter(1).decode_into(&stored, &mut ours);
                let got = Decompressor::new().zlib_decompress(&stored, &mut other);
                assert_eq!(
                    mine.is_ok(),
                    got == Ok(raw.len()),
                    "seed {seed}: {mine:?} and {got:?} of {stored:?}"
                );
                if mine.is_ok() {
                    assert!(ours == other, "seed {seed}");
                    whole += 1;
                } else {
                    refused += 1;
                }
            }
        }
        assert!(whole > 1000 && refused > 10_000, "{whole} whole, {refused} refused");
    }

    #[test]
    fn another_length_is_an_error() {
        let raw = bytes(3, 5000);
        let stored = theirs(&raw, 6);
        for len in [0, 1, 4999, 5001, 10_000] {
            let result = filter(1).decode_into(&stored, &mut vec![0; len]);
            assert!(matches!(result, Err(FilterError::WrongLength { .. })), "{len}: {result:?}");
        }
        // And after errors, the thread's decoder is as good as new.
        let mut out = vec![0; 5000];
        assert_eq!(filter(1).decode_into(&stored, &mut out), Ok(()));
        for most in [0, 1, 4999] {
            let result = filter(1).decode(&stored, most, &mut Vec::new());
            assert!(matches!(result, Err(FilterError::WrongLength { .. })), "{most}: {result:?}");
        }
    }

    #[test]
    fn levels_are_checked() {
        let made = |params: Vec<u32>| {
            let spec = FilterSpec { id: 1, optional: true, name: String::new(), params };
            new(&spec, &ChunkShape { dims: vec![1], elem_size: 1 })
        };
        assert!(made(vec![9]).is_ok());
        assert!(matches!(made(vec![10]), Err(FilterError::BadParameter { value: 10, .. })));
        assert!(matches!(made(vec![]), Err(FilterError::FewParameters { have: 0, .. })));
    }
}
