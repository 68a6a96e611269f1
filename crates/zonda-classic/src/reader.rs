//! The bounded reader that all header parsing goes through.
//!
//! It never reads outside its bytes, knows the file address of each, and turns a count from the
//! file into a length only after showing that so many items fit into what is left.

use crate::error::ClassicError;

/// Big-endian reader over the first bytes of a file.
pub(crate) struct HeaderReader<'a> {
    /// What is left to read.
    bytes: &'a [u8],
    /// Bytes there were in the beginning.
    len: usize,
    production: &'static str,
    /// Counts are 8 bytes (CDF-5) instead of 4.
    wide: bool,
    /// The header is damaged, so a count of items may be larger than the bytes that are left.
    tolerates_counts: bool,
    /// Some name is shorter than its field, so that it would be written in fewer bytes.
    has_cut_names: bool,
    /// The last list of the file, while it is read.
    items: Items,
}

/// How far the reader is in a long list.
#[derive(Clone, Copy, Default)]
struct Items {
    /// Where the first item begins.
    begin: u64,
    n: u64,
    n_read: u64,
    /// Where the last item that was read ends.
    end: u64,
}

impl<'a> HeaderReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> HeaderReader<'a> {
        HeaderReader {
            bytes,
            len: bytes.len(),
            production: "magic",
            wide: false,
            tolerates_counts: false,
            has_cut_names: false,
            items: Items::default(),
        }
    }

    /// A reader of the items of a list that was read before.
    pub(crate) fn resume(bytes: &'a [u8], wide: bool) -> HeaderReader<'a> {
        HeaderReader { wide, ..HeaderReader::new(bytes) }
    }

    pub(crate) fn set_wide(&mut self, wide: bool) {
        self.wide = wide;
    }

    /// Says that the header is damaged, so that counts of items may be larger than what is left.
    pub(crate) fn tolerate_counts(&mut self) {
        self.tolerates_counts = true;
    }

    pub(crate) fn tolerates_counts(&self) -> bool {
        self.tolerates_counts
    }

    /// Says that a name is shorter than its field.
    pub(crate) fn cut_name(&mut self) {
        self.has_cut_names = true;
    }

    /// Bytes that a writer would make of what was read so far, where that can be said.
    pub(crate) fn written_len(&self) -> Option<u64> {
        (!self.has_cut_names).then(|| self.at())
    }

    /// Names what is being read, for messages.
    pub(crate) fn enter(&mut self, production: &'static str) {
        self.production = production;
    }

    pub(crate) fn production(&self) -> &'static str {
        self.production
    }

    /// File address of the next byte.
    #[inline]
    pub(crate) fn at(&self) -> u64 {
        self.done() as u64
    }

    /// Bytes read so far.
    #[inline]
    pub(crate) fn done(&self) -> usize {
        self.len.saturating_sub(self.bytes.len())
    }

    /// Notes that the last list of the file begins, of `n` items.
    pub(crate) fn begin_items(&mut self, n: u64) {
        self.items = Items { begin: self.at(), n, n_read: 0, end: self.at() };
    }

    /// Notes that an item of the last list was read.
    #[inline]
    pub(crate) fn item_read(&mut self) {
        self.items.n_read = self.items.n_read.saturating_add(1);
        self.items.end = self.at();
    }

    /// How many bytes there may be to read, if the items to come are about as long as those before;
    /// no less than there are.
    pub(crate) fn expected(&self) -> u64 {
        let Items { begin, n, n_read, end } = self.items;
        let all = end.saturating_sub(begin).saturating_mul(n).checked_div(n_read).unwrap_or(0);
        // A sixteenth more, since a short read costs another one.
        begin.saturating_add(all).saturating_add(all >> 4).max(self.len as u64)
    }

    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], ClassicError> {
        let Some((head, rest)) = self.bytes.split_at_checked(len) else {
            return Err(self.truncated(len));
        };
        self.bytes = rest;
        Ok(head)
    }

    #[cold]
    fn truncated(&self, need: usize) -> ClassicError {
        ClassicError::Truncated {
            production: self.production,
            at: self.at(),
            need: need as u64,
            have: self.bytes.len() as u64,
        }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ClassicError> {
        let Some((head, rest)) = self.bytes.split_first_chunk() else {
            return Err(self.truncated(N));
        };
        self.bytes = rest;
        Ok(*head)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, ClassicError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, ClassicError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// `NON_NEG`: 4 bytes in CDF-1/2, 8 in CDF-5.
    #[inline]
    pub(crate) fn non_neg(&mut self) -> Result<u64, ClassicError> {
        if self.wide { self.u64() } else { Ok(u64::from(self.u32()?)) }
    }

    /// A count of items of at least `item_len_bytes` each, checked against the bytes left.
    #[inline]
    pub(crate) fn count(&mut self, item_len_bytes: u64) -> Result<usize, ClassicError> {
        let at = self.at();
        let count = self.non_neg()?;
        let have = self.bytes.len() as u64;
        let fits = count.checked_mul(item_len_bytes).is_some_and(|need| need <= have);
        match usize::try_from(count) {
            Ok(count) if fits => Ok(count),
            _ => Err(self.too_large(count, at)),
        }
    }

    #[cold]
    fn too_large(&self, count: u64, at: u64) -> ClassicError {
        let have = self.bytes.len() as u64;
        ClassicError::CountTooLarge { production: self.production, at, count, have }
    }

    /// Passes over a sound attribute with counts of 4 bytes, and does nothing before any other: all of its lengths are
    /// checked, once, by where it ends.
    #[inline]
    pub(crate) fn pass_att(&mut self) -> bool {
        let Some(end) = (if self.wide { None } else { att_end(self.bytes) }) else { return false };
        let Some(rest) = self.bytes.get(end..) else { return false };
        self.bytes = rest;
        true
    }

    /// Bytes followed by padding to a multiple of 4.
    ///
    /// Padding is skipped unread: netCDF-C asks for zeros only in a special build, and files with
    /// other padding are about.
    #[inline]
    pub(crate) fn padded(&mut self, len: usize) -> Result<&'a [u8], ClassicError> {
        let bytes = self.take(len)?;
        self.take(len.wrapping_neg() & 3)?;
        Ok(bytes)
    }
}

/// Where the attribute ends that begins with these bytes, if they have its lengths and its type is known.
#[inline]
fn att_end(bytes: &[u8]) -> Option<usize> {
    let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    // `name nc_type nelems`. Nothing wraps: numbers of 32 bits, times 8 at most, are added in 64.
    let behind = usize::try_from(padded_len(u64::from(number(bytes)?)).wrapping_add(4)).ok()?;
    let [a, b, c, d, n @ ..] = bytes.get(behind..)?.first_chunk::<8>()?;
    let ty = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).ok()?;
    let &value = TYPE_BYTES.get(ty).filter(|value| **value > 0)?;
    let values = padded_len(u64::from(u32::from_be_bytes(*n)).wrapping_mul(value));
    usize::try_from(values.wrapping_add(behind as u64).wrapping_add(8)).ok()
}

/// Bytes of one value of each type, which are numbered from 1 on.
const TYPE_BYTES: [u64; 12] = [0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8];

#[inline]
fn padded_len(len: u64) -> u64 {
    len.wrapping_add(3) & !3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_checked_before_they_become_lengths() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 1, 2, 3];
        assert!(matches!(
            HeaderReader::new(&bytes).count(1),
            Err(ClassicError::CountTooLarge { at: 0, count: 0xffff_ffff, have: 3, .. })
        ));
        let mut wide = HeaderReader::new(&[0xff; 8]);
        wide.set_wide(true);
        assert!(matches!(wide.count(u64::MAX), Err(ClassicError::CountTooLarge { .. })));
    }

    #[test]
    fn padding_goes_with_its_bytes() {
        let mut reader = HeaderReader::new(b"abcde\0\0\0x");
        assert_eq!(reader.padded(5).expect("five and three"), b"abcde");
        assert_eq!(reader.at(), 8);
        assert!(matches!(reader.padded(1), Err(ClassicError::Truncated { at: 9, need: 3, .. })));
    }

    #[test]
    fn an_attribute_is_passed_over_as_far_as_it_is_read() {
        for ty in 0..=13u32 {
            for (n, name) in
                [(0u32, &b"a"[..]), (1, b"abcd"), (3, b""), (9, b"longer"), (u32::MAX, b"x")]
            {
                let mut bytes = (name.len() as u32).to_be_bytes().to_vec();
                bytes.extend(name);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                bytes.extend(ty.to_be_bytes());
                bytes.extend(n.to_be_bytes());
                bytes.extend([7; 75]);
                for len in 0..=bytes.len() {
                    let (mut passed, mut read) =
                        (HeaderReader::new(&bytes[..len]), HeaderReader::new(&bytes[..len]));
                    let is_sound = crate::codec::att(&mut read).is_ok();
                    assert_eq!(passed.pass_att(), is_sound, "type {ty}, {n} values, {len} bytes");
                    assert_eq!(passed.at(), if is_sound { read.at() } else { 0 });
                }
            }
        }
    }
}
