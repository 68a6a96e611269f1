//! Values in memory form, with the strings and sequences that they refer to.

use crate::transfer::{VlenSink, VlenSource};

/// Elements in memory form, with what they point to. An address in them is the number of a part, counted from 1; 0 is
/// the null pointer. A reference to `OwnedValues` is a source of these parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedValues {
    bytes: Box<[u8]>,
    parts: Vec<Box<[u8]>>,
}

/// Bytes of a written length.
const WORD: usize = size_of::<u64>();

impl OwnedValues {
    /// Elements without strings or sequences.
    #[must_use]
    pub fn plain(bytes: impl Into<Box<[u8]>>) -> OwnedValues {
        OwnedValues { bytes: bytes.into(), parts: Vec::new() }
    }

    /// The same parts with other elements, which refer to them.
    #[must_use]
    pub fn with_bytes(self, bytes: impl Into<Box<[u8]>>) -> OwnedValues {
        OwnedValues { bytes: bytes.into(), ..self }
    }

    /// Bytes that all of it takes in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let parts = self.parts.iter().map(|part| part.len().saturating_add(size_of_val(part)));
        parts.fold(self.bytes.len(), usize::saturating_add)
    }

    /// The elements themselves.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that [`OwnedValues::write_to`] takes.
    #[must_use]
    pub fn written_bytes(&self) -> usize {
        let lens = (self.parts.len().saturating_add(2)).saturating_mul(WORD);
        let parts = self.parts.iter().map(|part| part.len());
        parts.fold(self.bytes.len(), usize::saturating_add).saturating_add(lens)
    }

    /// Writes all of it, for another process of the same machine: the number of parts, the lengths of
    /// the elements and of each part as words, then their bytes. `out` takes [`OwnedValues::written_bytes`];
    /// `None` where it is of another length.
    #[must_use]
    pub fn write_to(&self, out: &mut [u8]) -> Option<()> {
        let all = || std::iter::once(&self.bytes).chain(&self.parts);
        let words = std::iter::once(self.parts.len()).chain(all().map(|part| part.len()));
        let mut rest = out;
        let mut write = |bytes: &[u8]| {
            let (to, after) = std::mem::take(&mut rest).split_at_mut_checked(bytes.len())?;
            to.copy_from_slice(bytes);
            rest = after;
            Some(())
        };
        for word in words {
            write(&(word as u64).to_ne_bytes())?;
        }
        for part in all() {
            write(part)?;
        }
        rest.is_empty().then_some(())
    }

    /// What [`OwnedValues::write_to`] wrote; `None` for anything else.
    #[must_use]
    pub fn read_from(bytes: &[u8]) -> Option<OwnedValues> {
        let (n_parts, rest) = bytes.split_first_chunk()?;
        let n = usize::try_from(u64::from_ne_bytes(*n_parts)).ok()?.checked_add(1)?;
        let (lens, mut rest) = rest.split_at_checked(n.checked_mul(WORD)?)?;
        let mut parts = Vec::with_capacity(n);
        for len in lens.chunks_exact(WORD) {
            let len = usize::try_from(u64::from_ne_bytes(len.try_into().ok()?)).ok()?;
            let (part, after) = rest.split_at_checked(len)?;
            parts.push(Box::from(part));
            rest = after;
        }
        let mut parts = parts.into_iter();
        Some(OwnedValues { bytes: parts.next()?, parts: parts.collect() })
    }

    /// The part of that number.
    #[must_use]
    pub fn part(&self, address: u64) -> Option<&[u8]> {
        let index = usize::try_from(address.checked_sub(1)?).ok()?;
        self.parts.get(index).map(|part| &**part)
    }

    /// Keeps one more part, and gives its number.
    pub fn keep(&mut self, part: Box<[u8]>) -> u64 {
        self.parts.push(part);
        self.parts.len() as u64
    }
}

impl VlenSink for OwnedValues {
    fn place(&mut self, bytes: &[u8], _text: bool) -> Option<u64> {
        Some(self.keep(bytes.into()))
    }
}

impl VlenSource for &OwnedValues {
    fn text(&mut self, address: u64) -> Option<&[u8]> {
        self.part(address)
    }

    fn items(&mut self, address: u64, len: usize) -> &[u8] {
        self.part(address).and_then(|part| part.get(..len)).unwrap_or_default()
    }
}
