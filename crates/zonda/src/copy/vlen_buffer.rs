//! Memory for the strings and sequences of a box that is copied. Elements hold the numbers of these, counted from 1.

use zonda_format::{VlenSink, VlenSource};

/// Strings and items of sequences, one after the other.
#[derive(Debug, Default)]
pub(crate) struct VlenBuffer {
    bytes: Vec<u8>,
    /// Where each one ends.
    ends: Vec<usize>,
}

impl VlenBuffer {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Bytes of all pieces.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&[u8]> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }
}

impl VlenSink for VlenBuffer {
    fn place(&mut self, bytes: &[u8], _: bool) -> Option<u64> {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        Some(self.ends.len() as u64)
    }
}

impl VlenSource for VlenBuffer {
    fn text(&mut self, number: u64) -> Option<&[u8]> {
        self.get(number)
    }

    fn items(&mut self, number: u64, len: usize) -> &[u8] {
        self.get(number).and_then(|bytes| bytes.get(..len)).unwrap_or_default()
    }
}
