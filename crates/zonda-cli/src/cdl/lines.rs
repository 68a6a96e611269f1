//! Lines of CDL: indented by the depth of the group, and wrapped between values.

use std::io::{self, Write};

/// What continued lines begin with.
const CONTINUATION: &[u8] = b"    ";
/// Spaces for each level of groups.
const LEVEL: usize = 2;

/// Writes CDL, and values so that lines keep to a length, counted as `ncdump` counts: by the position
/// that callers set after writing what is not wrapped. It is kept from one part of the file to the
/// next, as there.
pub(crate) struct Lines<'a> {
    out: &'a mut dyn Write,
    at: usize,
    max: usize,
    indent: usize,
}

impl<'a> Lines<'a> {
    /// Lines of at most `line_len` bytes; two of them are kept for the delimiter at the end.
    pub(crate) fn new(out: &'a mut dyn Write, line_len: usize) -> Lines<'a> {
        Lines { out, at: 0, max: line_len.saturating_sub(2), indent: 0 }
    }

    /// One level deeper from here on.
    pub(crate) fn deeper(&mut self) {
        self.indent += LEVEL;
    }

    /// One level less deep from here on.
    pub(crate) fn shallower(&mut self) {
        self.indent = self.indent.saturating_sub(LEVEL);
    }

    /// Says where in the line, not counting its indentation, the next [`Lines::put`] begins.
    pub(crate) fn set_position(&mut self, at: usize) {
        self.at = at + self.indent;
    }

    /// Writes the indentation of a line.
    pub(crate) fn indent(&mut self) -> io::Result<()> {
        write!(self.out, "{:1$}", "", self.indent)
    }

    /// Writes bytes as they are, without counting them.
    pub(crate) fn raw(&mut self, text: &[u8]) -> io::Result<()> {
        self.out.write_all(text)
    }

    /// Writes an indented line, or its beginning.
    pub(crate) fn indented(&mut self, text: &[u8]) -> io::Result<()> {
        self.indent()?;
        self.raw(text)
    }

    /// Hands over what was written.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes a text that must not be split, on a new line if it does not fit in this one. One or
    /// two bytes (delimiters) always stay.
    pub(crate) fn put(&mut self, text: &[u8]) -> io::Result<()> {
        if text.len() > 2 && self.at + text.len() > self.max {
            self.out.write_all(b"\n")?;
            self.indent()?;
            self.out.write_all(CONTINUATION)?;
            self.set_position(CONTINUATION.len());
        }
        self.out.write_all(text)?;
        if text.ends_with(b"\n") {
            self.set_position(0);
        } else {
            self.at += text.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(depth: usize) -> String {
        let mut text = Vec::new();
        let mut lines = Lines::new(&mut text, 12);
        (0..depth).for_each(|_| lines.deeper());
        lines.indented(b" x = ").unwrap();
        lines.set_position(5);
        for value in [&b"10, "[..], b"200, ", b"3000"] {
            lines.put(value).unwrap();
        }
        lines.put(b" ;").unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn wraps_before_what_does_not_fit() {
        assert_eq!(written(0), " x = 10, \n    200, \n    3000 ;");
        assert_eq!(written(1), "   x = \n      10, \n      200, \n      3000 ;");
    }
}
