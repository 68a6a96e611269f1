//! A position in the text that moves forward.

use std::io;

use zonda_model::memory;

use crate::source::CdlText;
use crate::tuning::CURSOR_BLOCK_BYTES;

/// Looks at bytes ahead and moves past them. Bytes that were passed are dropped, so memory is that
/// of the longest token.
#[derive(Debug)]
pub(crate) struct Cursor<'s> {
    source: &'s CdlText,
    bytes: Vec<u8>,
    /// The position in `bytes`.
    at: usize,
    /// The offset in the text at which `bytes` begins.
    base: u64,
    /// The end of the part that is read.
    end: u64,
    failed: Option<io::Error>,
}

impl<'s> Cursor<'s> {
    pub(crate) fn new(source: &'s CdlText) -> Cursor<'s> {
        Cursor::between(source, source.begin(), source.len())
    }

    /// Over a part of the text.
    pub(crate) fn between(source: &'s CdlText, begin: u64, end: u64) -> Cursor<'s> {
        Cursor { source, bytes: Vec::new(), at: 0, base: begin, end, failed: None }
    }

    /// The position in the text.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// The byte `ahead` bytes further; `None` after the end, and if the text cannot be read.
    #[inline]
    pub(crate) fn peek(&mut self, ahead: usize) -> Option<u8> {
        match self.bytes.get(self.at + ahead) {
            Some(byte) => Some(*byte),
            None => self.peek_further(ahead),
        }
    }

    #[cold]
    fn peek_further(&mut self, ahead: usize) -> Option<u8> {
        self.bytes.drain(..self.at);
        self.base += self.at as u64;
        self.at = 0;
        while self.bytes.len() <= ahead {
            let old = self.bytes.len();
            let from = self.base + old as u64;
            let left = usize::try_from(self.end.saturating_sub(from)).unwrap_or(usize::MAX);
            // The block doubles each time, because a long token is scanned from its beginning after
            // each read.
            let want = CURSOR_BLOCK_BYTES.max(old).min(left);
            if want == 0 || self.failed.is_some() {
                return None;
            }
            if let Err(error) = memory::lengthen(&mut self.bytes, old + want, 0) {
                self.failed = Some(io::Error::new(io::ErrorKind::OutOfMemory, error));
                return None;
            }
            match self.source.read_at(from, &mut self.bytes[old..]) {
                Ok(got) => {
                    self.bytes.truncate(old + got);
                    if got == 0 {
                        return None;
                    }
                }
                Err(error) => {
                    self.bytes.truncate(old);
                    self.failed = Some(error);
                    return None;
                }
            }
        }
        self.bytes.get(ahead).copied()
    }

    /// Whether the bytes ahead are these.
    pub(crate) fn sees(&mut self, text: &[u8]) -> bool {
        (0..text.len()).all(|ahead| self.peek(ahead) == Some(text[ahead]))
    }

    /// Moves past bytes that were looked at, and returns them.
    pub(crate) fn take(&mut self, len: usize) -> &[u8] {
        let from = self.at;
        self.at = self.bytes.len().min(from.saturating_add(len));
        &self.bytes[from..self.at]
    }

    /// Bytes that were looked at.
    pub(crate) fn ahead(&self, len: usize) -> &[u8] {
        let end = self.bytes.len().min(self.at.saturating_add(len));
        &self.bytes[self.at..end]
    }

    /// All bytes ahead that are in memory. Only at the end there are none.
    pub(crate) fn window(&mut self) -> &[u8] {
        let _ = self.peek(0);
        &self.bytes[self.at..]
    }

    /// The error that ended the text early, if there was one.
    pub(crate) fn failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_far_and_forgets() {
        let text: Vec<u8> = (0..700_000u32).map(|n| (n % 250 + 1) as u8).collect();
        let source = CdlText::from_bytes(text.clone()).unwrap();
        let mut cursor = Cursor::new(&source);
        assert_eq!(cursor.peek(600_000), Some(text[600_000]));
        assert_eq!(cursor.peek(700_000), None);
        assert_eq!(cursor.take(300_000), &text[..300_000]);
        assert_eq!(cursor.peek(399_999), Some(text[699_999]));
        assert_eq!(cursor.peek(400_000), None);
        assert_eq!(cursor.offset(), 300_000);
        assert!(cursor.bytes.len() <= 400_000);

        let mut part = Cursor::between(&source, 10, 12);
        assert!(part.sees(&text[10..12]) && !part.sees(&text[10..13]));
        assert_eq!((part.take(9).len(), part.offset()), (2, 12));
        assert!(part.window().is_empty());
    }
}
