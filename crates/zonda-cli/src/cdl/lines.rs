//! Lines of the data section, wrapped between values.

use std::io::{self, Write};

/// What continued lines begin with.
const CONTINUATION: &[u8] = b"    ";

/// Writes values so that lines keep to a length, counted as `ncdump` counts: by the position that
/// callers set after writing what is not wrapped.
pub(crate) struct Lines<'a> {
    out: &'a mut dyn Write,
    at: usize,
    max: usize,
}

impl<'a> Lines<'a> {
    /// Lines of at most `line_len` bytes; two of them are kept for the delimiter at the end.
    pub(crate) fn new(out: &'a mut dyn Write, line_len: usize) -> Lines<'a> {
        Lines { out, at: 0, max: line_len.saturating_sub(2) }
    }

    /// Says where in the line the next [`Lines::put`] begins.
    pub(crate) fn set_position(&mut self, at: usize) {
        self.at = at;
    }

    /// Writes bytes as they are, without counting them.
    pub(crate) fn raw(&mut self, text: &[u8]) -> io::Result<()> {
        self.out.write_all(text)
    }

    /// Writes a text that must not be split, on a new line if it does not fit in this one. One or
    /// two bytes (delimiters) always stay.
    pub(crate) fn put(&mut self, text: &[u8]) -> io::Result<()> {
        if text.len() > 2 && self.at + text.len() > self.max {
            self.out.write_all(b"\n")?;
            self.out.write_all(CONTINUATION)?;
            self.at = CONTINUATION.len();
        }
        self.out.write_all(text)?;
        if text.ends_with(b"\n") {
            self.at = 0;
        } else {
            self.at += text.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_before_what_does_not_fit() {
        let mut text = Vec::new();
        let mut lines = Lines::new(&mut text, 12);
        lines.raw(b" x = ").unwrap();
        lines.set_position(5);
        for value in [&b"10, "[..], b"200, ", b"3000"] {
            lines.put(value).unwrap();
        }
        lines.put(b" ;").unwrap();
        assert_eq!(text, b" x = 10, \n    200, \n    3000 ;");
    }
}
