//! Bzip2 (307): one stream. Parameters: block size in units of 100,000 bytes, 1 to 9; 9 without it.

use bzip2::{Action, Compress, Compression, Decompress, Status};

use super::{ChunkShape, Filter, FilterError, FilterSpec, reserve};

const NAME: &str = "bzip2";

#[derive(Debug)]
struct Bzip2 {
    /// Only the encoder needs it, which therefore checks it.
    block: u32,
}

pub(crate) fn new(spec: &FilterSpec, _: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    Ok(Box::new(Bzip2 { block: spec.params.first().copied().unwrap_or(9) }))
}

impl Filter for Bzip2 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let mut decoder = Decompress::new(false);
        // One byte more than allowed, to see a stream that goes on.
        let ceiling = most.saturating_add(1);
        let mut capacity = stored.len().saturating_mul(4).clamp(4096, 1 << 20).min(ceiling);
        loop {
            let len = out.len();
            reserve(NAME, out, capacity - len)?;
            out.resize(capacity, 0);
            let (more, done) = step(&mut decoder, stored, &mut out[len..])?;
            out.truncate(len + more);
            if out.len() > most {
                return Err(FilterError::WrongLength {
                    filter: NAME,
                    got: out.len(),
                    expected: most,
                });
            }
            if done {
                return Ok(());
            }
            if out.len() < capacity {
                return Err(damaged(&decoder, "ends early"));
            }
            capacity = capacity.saturating_mul(2).min(ceiling);
        }
    }

    fn decode_into(&self, stored: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        let expected = out.len();
        let mut decoder = Decompress::new(false);
        let (mut len, mut done) = step(&mut decoder, stored, out)?;
        if !done && len == expected {
            // The end of the stream is still to come; it gives no bytes.
            let (more, end) = step(&mut decoder, stored, &mut [0])?;
            (len, done) = (len + more, end);
        }
        if len > expected || (done && len < expected) {
            Err(FilterError::WrongLength { filter: NAME, got: len, expected })
        } else if done {
            Ok(())
        } else {
            Err(damaged(&decoder, "ends early"))
        }
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        if !(1..=9).contains(&self.block) {
            return Err(FilterError::BadParameter { filter: NAME, index: 0, value: self.block });
        }
        let mut encoder = Compress::new(Compression::new(self.block), 0);
        // The format's bound, so that one call is enough in practice.
        let mut capacity = raw.len() + raw.len() / 100 + 600;
        loop {
            let len = out.len();
            reserve(NAME, out, capacity - len)?;
            out.resize(capacity, 0);
            let input = raw.get(usize::try_from(encoder.total_in()).unwrap_or(usize::MAX)..);
            let before = encoder.total_out();
            let status = encoder.compress(input.unwrap_or(&[]), &mut out[len..], Action::Finish);
            let more = usize::try_from(encoder.total_out() - before).unwrap_or(0);
            out.truncate(len + more);
            match status {
                Ok(Status::StreamEnd) => return Ok(true),
                Ok(_) => capacity += capacity / 2,
                Err(_) => {
                    return Err(FilterError::Unsupported {
                        filter: NAME,
                        what: "a chunk that libbz2 refuses to compress",
                    });
                }
            }
        }
    }
}

/// Decodes as much as `out` takes: bytes, and whether the stream has ended.
fn step(
    decoder: &mut Decompress,
    stored: &[u8],
    out: &mut [u8],
) -> Result<(usize, bool), FilterError> {
    let mut len = 0;
    loop {
        // The library takes 4 GiB at a time.
        let (read, written) = (decoder.total_in(), decoder.total_out());
        let input = usize::try_from(read).ok().and_then(|read| stored.get(read..)).unwrap_or(&[]);
        let status = decoder
            .decompress(input, &mut out[len..])
            .map_err(|_| damaged(decoder, "no valid bzip2 data"))?;
        len += usize::try_from(decoder.total_out() - written).unwrap_or(0);
        match status {
            Status::StreamEnd => return Ok((len, true)),
            Status::MemNeeded => {
                // Blocks of 900,000 bytes in four bytes each.
                return Err(FilterError::NoMemory { filter: NAME, bytes: 3_600_000 });
            }
            _ => {}
        }
        let stuck = decoder.total_in() == read && decoder.total_out() == written;
        if stuck || len == out.len() {
            return Ok((len, false));
        }
    }
}

fn damaged(decoder: &Decompress, what: &'static str) -> FilterError {
    let at = usize::try_from(decoder.total_in()).unwrap_or(usize::MAX);
    FilterError::Damaged { filter: NAME, at, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_length_and_a_short_stream_are_told_apart() {
        let raw: Vec<u8> = (0..250_000u32).map(|i| (i % 1009 * i / 1000) as u8).collect();
        let filter = Bzip2 { block: 1 };
        let mut stored = Vec::new();
        assert_eq!(filter.encode(&raw, &mut stored), Ok(true));
        let into = |stored: &[u8], len| filter.decode_into(stored, &mut vec![0; len]);
        let grown = |stored: &[u8], most| filter.decode(stored, most, &mut Vec::new());
        assert_eq!((into(&stored, raw.len()), grown(&stored, raw.len())), (Ok(()), Ok(())));
        for len in [0, 1, 99_999, 249_999, 250_001] {
            let result = into(&stored, len);
            assert!(matches!(result, Err(FilterError::WrongLength { .. })), "{len}: {result:?}");
            assert_eq!(grown(&stored, len).is_ok(), len > raw.len());
        }
        for len in [0, 3, 4, 30, stored.len() / 2, stored.len() - 1] {
            for result in [into(&stored[..len], raw.len()), grown(&stored[..len], raw.len())] {
                assert!(matches!(result, Err(FilterError::Damaged { .. })), "{len}: {result:?}");
            }
        }
    }
}
