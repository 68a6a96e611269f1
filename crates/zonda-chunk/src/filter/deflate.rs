//! Deflate (1): a zlib stream (RFC 1950) of the whole chunk.
//! Parameters: the level, 0 to 9. What is longer than its input is kept, as libhdf5 does.
//! Bytes after the end of the stream are let be, as libhdf5 does.
//!
//! The only file that names the library behind it.

use std::cell::RefCell;

use sirocco::Format;
use sirocco::deflate::{Encoder, Flush, Level};
use sirocco::inflate::{Decoder, Error};

use super::{ChunkShape, Filter, FilterError, FilterSpec, reserve};

const NAME: &str = "deflate";

thread_local! {
    /// The decoder's tables: a small chunk would cost as much to set them up as to inflate.
    static DECODER: RefCell<Decoder> = const { RefCell::new(Decoder::new(Format::Zlib)) };
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
}

/// Inflates a zlib stream into exactly `out.len()` bytes.
pub(super) fn inflate_into(
    filter: &'static str,
    stored: &[u8],
    out: &mut [u8],
) -> Result<(), FilterError> {
    let expected = out.len();
    DECODER.with_borrow_mut(|decoder| {
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
    })
}

/// Inflates a zlib stream of unknown length, at most `most` bytes.
fn inflate_vec(
    filter: &'static str,
    stored: &[u8],
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    DECODER.with_borrow_mut(|decoder| {
        decoder.reset();
        let mut input = stored;
        let mut len = 0;
        // One byte more than allowed, so that a stream that ends exactly there is told from one
        // that goes on.
        let ceiling = most.saturating_add(1);
        let mut room = stored.len().saturating_mul(4).max(4096).max(out.capacity()).min(ceiling);
        loop {
            reserve(filter, out, room - out.len())?;
            out.resize(room, 0);
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
            if room == ceiling {
                return Err(longer(filter, most));
            }
            room = room.saturating_mul(2).min(ceiling);
        }
    })
}

/// Deflates `raw` to a zlib stream that is appended to `out`.
pub(super) fn deflate(
    filter: &'static str,
    level: Level,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    let tables =
        TABLES.take().unwrap_or_else(|| vec![0; sirocco::deflate::TABLES_LEN].into_boxed_slice());
    let mut encoder = Encoder::with_tables(Format::Zlib, level, tables);
    let from = out.len();
    let mut len = 0;
    // Mostly enough for stored blocks and the frame: one call then does it all.
    let mut room = raw.len() + raw.len() / 1000 + 1024;
    let result = loop {
        if let Err(error) = reserve(filter, out, from + room - out.len()) {
            break Err(error);
        }
        out.resize(from + room, 0);
        let progress = encoder.compress(raw, &mut out[from + len..], Flush::Finish);
        len += progress.output.len();
        if progress.done {
            out.truncate(from + len);
            break Ok(());
        }
        room += room / 2;
    };
    TABLES.set(Some(encoder.into_tables()));
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
