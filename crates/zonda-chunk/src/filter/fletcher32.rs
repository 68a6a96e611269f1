//! Fletcher32 (3): the bytes, then their checksum in four bytes, little-endian.
//! HDF5 up to 1.6.2 stored the bytes of each half exchanged on little-endian machines; such
//! checksums are accepted. No parameters.

use super::{ChunkShape, Filter, FilterError, FilterSpec, reserve};

const NAME: &str = "fletcher32";
const LEN: usize = 4;

#[derive(Debug)]
struct Fletcher32;

pub(crate) fn new(_: &FilterSpec, _: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    Ok(Box::new(Fletcher32))
}

impl Filter for Fletcher32 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let data = verify(stored)?;
        if data.len() > most {
            return Err(FilterError::WrongLength { filter: NAME, got: data.len(), expected: most });
        }
        reserve(NAME, out, data.len())?;
        out.extend_from_slice(data);
        Ok(())
    }

    fn decode_prefix(&self, stored: &[u8]) -> Option<Result<usize, FilterError>> {
        Some(verify(stored).map(<[u8]>::len))
    }

    fn encoded_len(&self, raw_len: usize) -> Option<usize> {
        raw_len.checked_add(LEN)
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        reserve(NAME, out, raw.len() + LEN)?;
        out.extend_from_slice(raw);
        out.extend_from_slice(&checksum(raw).to_le_bytes());
        Ok(true)
    }
}

fn verify(stored: &[u8]) -> Result<&[u8], FilterError> {
    let Some((data, sum)) = stored.split_last_chunk::<LEN>() else {
        return Err(FilterError::Damaged { filter: NAME, at: stored.len(), what: "ends early" });
    };
    let (stored, computed) = (u32::from_le_bytes(*sum), checksum(data));
    let old = ((computed & 0x00ff_00ff) << 8) | ((computed >> 8) & 0x00ff_00ff);
    if stored == computed || stored == old {
        Ok(data)
    } else {
        Err(FilterError::Checksum { filter: NAME, stored, computed })
    }
}

/// Sums of big-endian 16-bit words and of those sums, each modulo 65535 with 65535 kept for zero
/// that is not empty. An odd last byte is the high byte of a word.
pub(crate) fn checksum(data: &[u8]) -> u32 {
    // 360 words are the most after which the sum of sums still fits 32 bits.
    const BLOCK: usize = 2 * 360;
    let (mut sum1, mut sum2) = (0u32, 0u32);
    let (even, odd) = data.split_at(data.len() & !1);
    for block in even.chunks(BLOCK) {
        for word in block.chunks_exact(2) {
            sum1 += u32::from(word[0]) << 8 | u32::from(word[1]);
            sum2 += sum1;
        }
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    if let [last] = odd {
        sum1 += u32::from(*last) << 8;
        sum2 += sum1;
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    fold(sum2) << 16 | fold(sum1)
}

fn fold(sum: u32) -> u32 {
    (sum & 0xffff) + (sum >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: each sum modulo 65535, a remainder of zero kept as 65535 where anything but
    /// zeros was added.
    fn slow(data: &[u8]) -> u32 {
        let (mut sum1, mut sum2) = (0u64, 0u64);
        for word in data.chunks(2) {
            sum1 += u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0));
            sum2 += sum1;
        }
        let rest = |sum: u64| if sum == 0 { 0 } else { (sum - 1) % 65535 + 1 };
        (rest(sum2) as u32) << 16 | rest(sum1) as u32
    }

    #[test]
    fn sums_are_those_of_the_definition() {
        for len in (0..80).chain([719, 720, 721, 1440, 5000, 5001]) {
            let mixed: Vec<u8> = (0..len).map(|i| (i * i / 3) as u8).collect();
            for data in [mixed, vec![0; len], vec![0xff; len]] {
                assert_eq!(checksum(&data), slow(&data), "{len} bytes");
            }
        }
    }

    #[test]
    fn exchanged_halves_of_old_files_are_accepted() {
        let data = b"some bytes of a chunk";
        let [a, b, c, d] = checksum(data).to_le_bytes();
        let with = |sum: [u8; 4]| [&data[..], &sum].concat();
        assert_eq!(verify(&with([a, b, c, d])), Ok(&data[..]));
        assert_eq!(verify(&with([b, a, d, c])), Ok(&data[..]));
        for wrong in [[a, b, d, c], [c, d, a, b], [a ^ 1, b, c, d]] {
            assert!(matches!(verify(&with(wrong)), Err(FilterError::Checksum { .. })));
        }
        assert!(matches!(verify(&[1, 2, 3]), Err(FilterError::Damaged { .. })));
    }
}
