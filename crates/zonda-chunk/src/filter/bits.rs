//! Bits packed most significant first, as nbit, scaleoffset and szip's relatives write them.

/// Reads values of up to 64 bits. Behind the end there are zeros: callers check the length once,
/// before they begin.
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    at_bit: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader { bytes, at_bit: 0 }
    }

    /// The next `width` bits as a number; `width` is at most 64.
    pub(super) fn take(&mut self, width: u32) -> u64 {
        if width == 0 {
            return 0;
        }
        let rest = self.bytes.get(self.at_bit / 8..).unwrap_or_default();
        let window = match rest.first_chunk::<16>() {
            Some(sixteen) => u128::from_be_bytes(*sixteen),
            None => {
                let mut padded = [0; 16];
                padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                u128::from_be_bytes(padded)
            }
        };
        let inside = (self.at_bit % 8) as u32;
        self.at_bit = self.at_bit.saturating_add(width as usize);
        ((window << inside) >> (128 - width.min(64))) as u64
    }
}

/// Writes values of up to 64 bits behind what a vector holds.
#[derive(Debug)]
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits not yet written, the oldest at the top.
    held: u128,
    n_held: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> BitWriter<'a> {
        BitWriter { out, held: 0, n_held: 0 }
    }

    /// Adds the low `width` bits of `value`; `width` is at most 64.
    pub(super) fn put(&mut self, value: u64, width: u32) {
        if width == 0 {
            return;
        }
        let value = value & (u64::MAX >> (64 - width.min(64)));
        self.held |= u128::from(value) << (128 - self.n_held - width);
        self.n_held += width;
        while self.n_held >= 32 {
            self.out.extend_from_slice(&((self.held >> 96) as u32).to_be_bytes());
            self.held <<= 32;
            self.n_held -= 32;
        }
    }

    /// Writes what is held, the last byte filled up with zeros.
    pub(super) fn finish(self) {
        let n_bytes = self.n_held.div_ceil(8) as usize;
        self.out.extend(self.held.to_be_bytes().into_iter().take(n_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::{BitReader, BitWriter};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_taken(values in proptest::collection::vec((any::<u64>(), 0u32..=64), 0..50)) {
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            for &(value, width) in &values {
                writer.put(value, width);
            }
            writer.finish();
            let bits: usize = values.iter().map(|v| v.1 as usize).sum();
            prop_assert_eq!(bytes.len(), bits.div_ceil(8));
            let mut reader = BitReader::new(&bytes);
            for (value, width) in values {
                let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
                prop_assert_eq!(reader.take(width), value & mask);
            }
        }
    }

    #[test]
    fn the_first_bit_is_the_highest_and_behind_the_end_are_zeros() {
        let mut reader = BitReader::new(&[0b1010_0000, 0xff]);
        assert_eq!(reader.take(3), 0b101);
        assert_eq!(reader.take(6), 1);
        assert_eq!(reader.take(64), 0x7f << 57);
        assert_eq!(reader.take(64), 0);
    }
}
