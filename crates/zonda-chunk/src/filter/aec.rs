//! Adaptive entropy coding of CCSDS 121.0-B, the coder behind filter 4 (and GRIB's, and HDF4's).
//!
//! Samples are coded in blocks; a number of blocks is a reference interval, at whose beginning the
//! predictor starts anew from a sample stored whole. Each block names its option: all zeros (with
//! a count of such blocks), pairs of samples as one number ("second extension"), the samples as
//! they are, or each sample's high part in unary and its low `k` bits as they are.
//! Spec: CCSDS 121.0-B, sections 3 (coder), 4 (preprocessor) and 5 (options and their codes).

use super::bits::BitWriter;

/// What writer and reader of a stream have to agree on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coding {
    /// Bits of a sample, 1 to 32.
    pub(super) bits: u32,
    /// Samples in a block: at least 2, and even.
    pub(super) block: usize,
    /// Blocks in a reference interval, at least 1.
    pub(super) blocks: usize,
    /// In memory, a sample's first byte is its highest.
    pub(super) msb: bool,
    /// What is coded is the difference to the sample before.
    pub(super) predict: bool,
}

/// Zero blocks up to the end of the interval or of a segment, in place of a count.
const REST_OF_SEGMENT: u32 = 5;
/// Blocks in a segment.
const SEGMENT: usize = 64;
/// The greatest number that stands for a pair.
const MOST_PAIR: u32 = 90;

impl Coding {
    /// Bytes of a sample in memory: 1, 2 or 4.
    pub(super) fn sample_len(&self) -> usize {
        match self.bits {
            0..=8 => 1,
            9..=16 => 2,
            _ => 4,
        }
    }

    /// Bits that name a block's option.
    fn id_bits(&self) -> u32 {
        match self.bits {
            0..=8 => 3,
            9..=16 => 4,
            _ => 5,
        }
    }

    /// The id of blocks with samples as they are; one more than the greatest `k` + 1.
    fn id_plain(&self) -> u32 {
        (1 << self.id_bits()) - 1
    }

    fn greatest(&self) -> u32 {
        u32::MAX >> (32 - self.bits.clamp(1, 32))
    }
}

/// Decodes samples into the whole of `out`, whose length is a number of samples.
///
/// # Errors
/// What is wrong with the stream.
pub(super) fn decode(stream: &[u8], coding: Coding, out: &mut [u8]) -> Result<(), &'static str> {
    let mut from = AecBits::new(stream);
    let mut samples = Vec::new();
    for interval in out.chunks_mut(coding.block * coding.blocks * coding.sample_len()) {
        samples.clear();
        let wanted = interval.len() / coding.sample_len();
        decode_interval(&mut from, coding, wanted, &mut samples)?;
        if coding.predict {
            undo_prediction(&mut samples, coding.greatest());
        }
        store(&samples, coding, interval);
    }
    Ok(())
}

/// Appends the samples of one interval, at least `wanted`; with prediction, the first is itself
/// and the others are differences.
fn decode_interval(
    from: &mut AecBits<'_>,
    coding: Coding,
    wanted: usize,
    samples: &mut Vec<u32>,
) -> Result<(), &'static str> {
    const SHORT: &str = "ends early";
    while samples.len() < wanted {
        let first = usize::from(coding.predict && samples.is_empty());
        let end = samples.len() + coding.block;
        let id = from.take(coding.id_bits()).ok_or(SHORT)?;
        if id == coding.id_plain() {
            for _ in 0..coding.block {
                samples.push(from.take(coding.bits).ok_or(SHORT)?);
            }
            continue;
        }
        let pairs = id == 0 && from.take(1).ok_or(SHORT)? == 1;
        if first == 1 {
            samples.push(from.take(coding.bits).ok_or(SHORT)?);
        }
        if pairs {
            // With the whole sample in front, the first pair has only its second number.
            let mut half = first == 1;
            while samples.len() < end {
                let code = from.unary().filter(|code| *code <= MOST_PAIR).ok_or("a bad pair")?;
                let (a, b) = pair(code);
                if !half {
                    samples.push(a);
                }
                half = false;
                samples.push(b);
            }
        } else if id == 0 {
            let done = (end - coding.block) / coding.block;
            let code = from.unary().ok_or(SHORT)?.saturating_add(1);
            let n_blocks = match code {
                REST_OF_SEGMENT => (coding.blocks - done).min(SEGMENT - done % SEGMENT),
                ..REST_OF_SEGMENT => code as usize,
                _ => code as usize - 1,
            };
            if n_blocks > coding.blocks - done {
                return Err("zero blocks beyond the interval");
            }
            samples.resize(end + (n_blocks - 1) * coding.block, 0);
        } else {
            let k = id - 1;
            let at = samples.len();
            while samples.len() < end {
                samples.push(from.unary().ok_or(SHORT)?);
            }
            if k > 0 {
                for sample in samples.iter_mut().skip(at) {
                    *sample = (*sample).wrapping_shl(k) | from.take(k).ok_or(SHORT)?;
                }
            }
        }
    }
    Ok(())
}

/// The two numbers that a pair's code stands for: codes count the pairs by their sums, and within
/// one sum by the second number.
fn pair(code: u32) -> (u32, u32) {
    let mut sum = 0;
    let mut first = 0;
    while first + sum < code {
        first += sum + 1;
        sum += 1;
    }
    let second = code - first;
    (sum - second, second)
}

/// Turns a whole sample and the mapped differences behind it into samples.
fn undo_prediction(samples: &mut [u32], greatest: u32) {
    let middle = greatest / 2 + 1;
    let mut values = samples.iter_mut();
    let Some(mut last) = values.next().map(|first| *first) else { return };
    for value in values {
        let mapped = *value;
        // The nearer end of the range is `turn`; up to twice that distance, differences alternate.
        let turn = if last & middle == 0 { 0 } else { greatest };
        let half = (mapped >> 1) + (mapped & 1);
        last = if half <= turn ^ last {
            let up = mapped >> 1;
            if mapped & 1 == 0 { last.wrapping_add(up) } else { last.wrapping_sub(half) }
        } else {
            turn ^ mapped
        } & greatest;
        *value = last;
    }
}

fn store(samples: &[u32], coding: Coding, out: &mut [u8]) {
    match (coding.sample_len(), coding.msb) {
        (1, _) => out.iter_mut().zip(samples).for_each(|(to, value)| *to = *value as u8),
        (2, msb) => {
            for (to, value) in out.chunks_exact_mut(2).zip(samples) {
                let value = *value as u16;
                to.copy_from_slice(&if msb { value.to_be_bytes() } else { value.to_le_bytes() });
            }
        }
        (_, msb) => {
            for (to, value) in out.chunks_exact_mut(4).zip(samples) {
                to.copy_from_slice(&if msb { value.to_be_bytes() } else { value.to_le_bytes() });
            }
        }
    }
}

fn load(raw: &[u8], coding: Coding) -> impl Iterator<Item = u32> {
    let greatest = coding.greatest();
    raw.chunks_exact(coding.sample_len()).map(move |sample| {
        let value = |value, &byte: &u8| value << 8 | u32::from(byte);
        let value = if coding.msb {
            sample.iter().fold(0, value)
        } else {
            sample.iter().rev().fold(0, value)
        };
        value & greatest
    })
}

/// Bits of the stream, from the highest of the first byte on.
struct AecBits<'a> {
    rest: &'a [u8],
    /// The next bits, at the top; below the `held` counted ones there may be more of the stream.
    window: u64,
    held: u32,
}

impl<'a> AecBits<'a> {
    fn new(stream: &'a [u8]) -> AecBits<'a> {
        AecBits { rest: stream, window: 0, held: 0 }
    }

    /// Holds more than 32 bits, or all there are.
    fn refill(&mut self) {
        if let Some(eight) = self.rest.first_chunk::<8>() {
            self.window |= u64::from_be_bytes(*eight) >> self.held;
            let n_bytes = (63 - self.held) / 8;
            self.held += n_bytes * 8;
            self.rest = self.rest.get(n_bytes as usize..).unwrap_or_default();
        } else {
            while let (true, Some((first, rest))) = (self.held <= 56, self.rest.split_first()) {
                self.window |= u64::from(*first) << (56 - self.held);
                self.held += 8;
                self.rest = rest;
            }
        }
    }

    fn drop(&mut self, n: u32) {
        self.window <<= n;
        self.held -= n;
    }

    /// The next `n` bits, 1 to 32.
    fn take(&mut self, n: u32) -> Option<u32> {
        if self.held < n {
            self.refill();
            if self.held < n {
                return None;
            }
        }
        let value = (self.window >> (64 - n)) as u32;
        self.drop(n);
        Some(value)
    }

    /// Zeros up to the next one, which is taken too.
    fn unary(&mut self) -> Option<u32> {
        let mut zeros = 0u32;
        loop {
            let here = self.window.leading_zeros();
            if here < self.held {
                self.drop(here);
                self.drop(1);
                return Some(zeros + here);
            }
            zeros = zeros.checked_add(self.held)?;
            (self.window, self.held) = (0, 0);
            self.refill();
            if self.held == 0 {
                return None;
            }
        }
    }
}

/// Appends the coded samples of `raw`, whose length is a number of samples. An incomplete block is
/// filled up with its last sample.
pub(super) fn encode(raw: &[u8], coding: Coding, out: &mut Vec<u8>) {
    let mut to = BitWriter::new(out);
    let mut samples: Vec<u32> = Vec::new();
    for interval in raw.chunks(coding.block * coding.blocks * coding.sample_len()) {
        samples.clear();
        samples.extend(load(interval, coding));
        let last = samples.last().copied().unwrap_or_default();
        samples.resize(samples.len().next_multiple_of(coding.block), last);
        let whole = coding.predict.then(|| predict(&mut samples, coding.greatest()));
        encode_interval(&samples, coding, whole, &mut to);
    }
    to.finish();
}

/// Turns samples into mapped differences, the first into zero, and returns what the first was.
fn predict(samples: &mut [u32], greatest: u32) -> u32 {
    let mut values = samples.iter_mut();
    let Some(first) = values.next() else { return 0 };
    let whole = std::mem::take(first);
    let mut last = whole;
    for value in values {
        let here = *value;
        let (distance, down) = (here.abs_diff(last), here < last);
        let near = last.min(greatest - last);
        *value = match (distance <= near, down) {
            (true, false) => distance * 2,
            (true, true) => distance * 2 - 1,
            (false, _) => near + distance,
        };
        last = here;
    }
    whole
}

fn encode_interval(samples: &[u32], coding: Coding, whole: Option<u32>, to: &mut BitWriter<'_>) {
    // The whole sample goes with whatever is written first.
    let mut whole = whole;
    let mut zeros = 0;
    let n_blocks = samples.len() / coding.block;
    for (index, block) in samples.chunks_exact(coding.block).enumerate() {
        let is_zero = block.iter().all(|&value| value == 0);
        if is_zero {
            zeros += 1;
            if index + 1 < n_blocks && (index + 1) % SEGMENT != 0 {
                continue;
            }
        }
        if zeros > 0 {
            to.put(0, coding.id_bits() + 1);
            put_whole(whole.take(), coding, to);
            let code = match zeros {
                ..REST_OF_SEGMENT => zeros,
                _ if is_zero => REST_OF_SEGMENT,
                // One more, since a code in between means the rest.
                _ => zeros + 1,
            };
            put_unary(code - 1, to);
            zeros = 0;
        }
        if !is_zero {
            encode_block(block, coding, whole.take(), to);
        }
    }
}

fn put_whole(whole: Option<u32>, coding: Coding, to: &mut BitWriter<'_>) {
    if let Some(whole) = whole {
        to.put(u64::from(whole), coding.bits);
    }
}

fn put_unary(zeros: u32, to: &mut BitWriter<'_>) {
    for _ in 0..zeros / 64 {
        to.put(0, 64);
    }
    to.put(0, zeros % 64);
    to.put(1, 1);
}

/// Writes a block by the option that takes the fewest bits.
fn encode_block(block: &[u32], coding: Coding, whole: Option<u32>, to: &mut BitWriter<'_>) {
    let rest = block.get(usize::from(whole.is_some())..).unwrap_or_default();
    let split_len =
        |k: u32| rest.iter().map(|&value| u64::from(value >> k) + 1 + u64::from(k)).sum::<u64>();
    let most_k = (coding.id_plain() - 2).min(coding.bits - 1);
    let (k, split) = (0..=most_k).map(|k| (k, split_len(k))).min_by_key(|k| k.1).unwrap_or((0, 0));
    let plain = rest.len() as u64 * u64::from(coding.bits);
    let pairs = pairs_len(block);
    if pairs < split && pairs < plain {
        to.put(1, coding.id_bits() + 1);
        put_whole(whole, coding, to);
        block.chunks_exact(2).filter_map(pair_code).for_each(|code| put_unary(code, to));
    } else if split < plain {
        to.put(u64::from(k + 1), coding.id_bits());
        put_whole(whole, coding, to);
        rest.iter().for_each(|&value| put_unary(value >> k, to));
        rest.iter().for_each(|&value| to.put(u64::from(value), k));
    } else {
        to.put(u64::from(coding.id_plain()), coding.id_bits());
        put_whole(whole, coding, to);
        rest.iter().for_each(|&value| to.put(u64::from(value), coding.bits));
    }
}

/// The number that stands for two; none if it has no code.
fn pair_code(two: &[u32]) -> Option<u32> {
    let &[a, b] = two else { return None };
    let sum = a.checked_add(b).filter(|sum| *sum <= MOST_PAIR)?;
    Some(sum * (sum + 1) / 2 + b).filter(|code| *code <= MOST_PAIR)
}

/// Bits of a block written as pairs, as far as they differ from the other options'.
fn pairs_len(block: &[u32]) -> u64 {
    let bits = |two| pair_code(two).map(|code| u64::from(code) + 1);
    block
        .chunks_exact(2)
        .map(bits)
        .try_fold(1u64, |sum, bits| Some(sum + bits?))
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Coding, decode, encode, pair, pair_code};
    use proptest::prelude::*;

    #[test]
    fn pairs_are_counted_by_their_sums() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(pair), [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]);
        for code in 0..=90 {
            let (a, b) = pair(code);
            assert_eq!(pair_code(&[a, b]), Some(code));
        }
        assert_eq!(pair_code(&[13, 0]), None);
    }

    fn coding() -> impl Strategy<Value = Coding> {
        (1u32..=32, 1usize..=16, 1usize..=130, any::<bool>(), any::<bool>()).prop_map(
            |(bits, half, blocks, msb, predict)| Coding {
                bits,
                block: half * 2,
                blocks,
                msb,
                predict,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            coding in coding(),
            values in proptest::collection::vec((any::<u32>(), 0u32..=32, 1usize..200), 0..30),
        ) {
            let len = coding.sample_len();
            let mut raw = Vec::new();
            for (value, unused, run) in values {
                let value = value.checked_shr(unused).unwrap_or(0) & coding.greatest();
                let bytes = value.to_le_bytes();
                for _ in 0..run {
                    let mut bytes = bytes[..len].to_vec();
                    if coding.msb {
                        bytes.reverse();
                    }
                    raw.extend(bytes);
                }
            }
            let mut stream = Vec::new();
            encode(&raw, coding, &mut stream);
            let mut out = vec![0x55; raw.len()];
            prop_assert_eq!(decode(&stream, coding, &mut out), Ok(()));
            prop_assert_eq!(&out, &raw);
        }

        #[test]
        fn any_bytes_end(
            coding in coding(),
            stream in proptest::collection::vec(any::<u8>(), 0..300),
            n in 0usize..2000,
        ) {
            let mut out = vec![0; n * coding.sample_len()];
            let _ = decode(&stream, coding, &mut out);
        }
    }
}
