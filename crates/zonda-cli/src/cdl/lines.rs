//! Lines of CDL: indented by the depth of the group, and wrapped between values.

use crate::tuning::LINES_BUFFER_BYTES;
use std::io::{self, Write};

/// What continued lines begin with.
const CONTINUATION: &[u8] = b"    ";
/// Spaces for each level of groups.
const LEVEL: usize = 2;
/// Bytes that are kept free at the end of a line, for a delimiter.
const END: usize = 2;

/// Writes CDL, and wraps values so that lines keep to a length. The length is counted as `ncdump`
/// counts it: by a position that callers set after writing what is not wrapped. As in `ncdump`, the
/// position is kept from one part of the file to the next.
pub(crate) struct CdlLines<'a> {
    out: &'a mut dyn Write,
    /// Text that is not yet written to `out`.
    waiting: Vec<u8>,
    at: usize,
    max: usize,
    indent: usize,
}

impl<'a> CdlLines<'a> {
    /// Wraps values into lines of at most `line_len` bytes, two of which are kept for the
    /// delimiter.
    pub(crate) fn new(out: &'a mut dyn Write, line_len: usize) -> CdlLines<'a> {
        CdlLines { out, waiting: Vec::new(), at: 0, max: line_len.saturating_sub(END), indent: 0 }
    }

    /// One level deeper from here on.
    pub(crate) fn deeper(&mut self) {
        self.indent += LEVEL;
    }

    /// One level less deep from here on.
    pub(crate) fn shallower(&mut self) {
        self.indent = self.indent.saturating_sub(LEVEL);
    }

    /// Sets the column, without indentation, at which the next [`CdlLines::put`] begins.
    pub(crate) fn set_position(&mut self, at: usize) {
        self.at = at + self.indent;
    }

    /// Writes the indentation of a line.
    pub(crate) fn indent(&mut self) -> io::Result<()> {
        self.waiting.extend(std::iter::repeat_n(b' ', self.indent));
        Ok(())
    }

    /// Writes bytes as they are, without counting them.
    pub(crate) fn raw(&mut self, text: &[u8]) -> io::Result<()> {
        self.waiting.extend_from_slice(text);
        if self.waiting.len() < LINES_BUFFER_BYTES { Ok(()) } else { self.hand_over() }
    }

    /// Writes the collected text to `out`.
    pub(crate) fn hand_over(&mut self) -> io::Result<()> {
        let done = self.out.write_all(&self.waiting);
        self.waiting.clear();
        done
    }

    /// The longest line that was asked for.
    pub(crate) fn line_len(&self) -> usize {
        self.max + END
    }

    /// Writes an indented line, or its beginning.
    pub(crate) fn indented(&mut self, text: &[u8]) -> io::Result<()> {
        self.indent()?;
        self.raw(text)
    }

    /// Writes the collected text and flushes `out`.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.hand_over()?;
        self.out.flush()
    }

    /// Writes a text that must not be split, on a new line if it does not fit in this one. One or
    /// two bytes (delimiters) always stay.
    pub(crate) fn put(&mut self, text: &[u8]) -> io::Result<()> {
        if self.is_beyond(text.len()) {
            self.break_line()?;
        }
        self.raw(text)?;
        if text.ends_with(b"\n") {
            self.set_position(0);
        } else {
            self.at += text.len();
        }
        Ok(())
    }

    /// As [`CdlLines::put`] for texts of these lengths, one after the other, none of which ends a line.
    /// Returns how many bytes they are together.
    pub(crate) fn put_run(&mut self, text: &[u8], lens: &[u16]) -> io::Result<usize> {
        let (mut from, mut to) = (0, 0);
        for &len in lens {
            let len = usize::from(len);
            if self.is_beyond(len) {
                self.raw(&text[from..to])?;
                self.break_line()?;
                from = to;
            }
            to += len;
            self.at += len;
        }
        self.raw(&text[from..to])?;
        Ok(to)
    }

    /// Writes a row behind which another one follows, as [`CdlLines::put`] of its values and of what
    /// is between rows; false, and nothing is written, if the row does not fit in this line.
    pub(crate) fn put_row(&mut self, text: &[u8]) -> io::Result<bool> {
        if self.at + text.len() > self.max {
            return Ok(false);
        }
        self.waiting.extend_from_slice(text);
        self.raw(b",\n  ")?;
        self.set_position(2);
        Ok(true)
    }

    /// Whether a text of this length does not fit in this line.
    fn is_beyond(&self, len: usize) -> bool {
        len > END && self.at + len > self.max
    }

    fn break_line(&mut self) -> io::Result<()> {
        self.raw(b"\n")?;
        self.indent()?;
        self.raw(CONTINUATION)?;
        self.set_position(CONTINUATION.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(depth: usize) -> String {
        let mut text = Vec::new();
        let mut lines = CdlLines::new(&mut text, 12);
        (0..depth).for_each(|_| lines.deeper());
        lines.indented(b" x = ").unwrap();
        lines.set_position(5);
        for value in [&b"10, "[..], b"200, ", b"3000"] {
            lines.put(value).unwrap();
        }
        lines.put(b" ;").unwrap();
        lines.hand_over().unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn runs_wrap_as_single_texts_do() {
        let (mut one, mut all) = (Vec::new(), Vec::new());
        let values: Vec<String> = (0..300).map(|n| format!("{}, ", n * n * n % 1009)).collect();
        let lens: Vec<u16> = values.iter().map(|value| value.len() as u16).collect();
        let mut lines = CdlLines::new(&mut one, 40);
        lines.set_position(9);
        for value in &values {
            lines.put(value.as_bytes()).unwrap();
        }
        lines.hand_over().unwrap();
        let mut lines = CdlLines::new(&mut all, 40);
        lines.set_position(9);
        let text = values.concat();
        let first = lines.put_run(text.as_bytes(), &lens[..123]).unwrap();
        let second = lines.put_run(&text.as_bytes()[first..], &lens[123..]).unwrap();
        lines.hand_over().unwrap();
        assert_eq!(first + second, text.len());
        assert_eq!(String::from_utf8(one).unwrap(), String::from_utf8(all).unwrap());
    }

    #[test]
    fn wraps_before_what_does_not_fit() {
        assert_eq!(written(0), " x = 10, \n    200, \n    3000 ;");
        assert_eq!(written(1), "   x = \n      10, \n      200, \n      3000 ;");
    }
}
