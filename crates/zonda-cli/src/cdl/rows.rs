//! Writes rows of data: elements along the last dimension, with comments and delimiters around
//! them.

use std::io::{self, Write};

use zonda::slab::advance;

use super::data::DataVariable;
use super::lines::CdlLines;
use super::values::Texts;
use super::{CdlOptions, IndexOrder};
use crate::placed::VlenStore;
use crate::tuning::DATA_BLOCK_BYTES;

/// Writes elements, handed over in memory order and in pieces of any size, as rows along the last
/// dimension.
pub(super) struct DataRows<'a> {
    variable: &'a DataVariable,
    options: &'a CdlOptions,
    row_len: usize,
    /// Index of the current row in all dimensions but the last, where comments or braces need it.
    corner: Vec<usize>,
    /// How many elements of the current row are written.
    at: usize,
    /// Rows that have not ended yet.
    left: usize,
    /// Whether a dimension but the first can grow, so that there are braces.
    has_braces: bool,
    /// How many NULs of a string are held back. They are written only if something follows them in
    /// the row.
    nuls: usize,
    text: Vec<u8>,
}

impl<'a> DataRows<'a> {
    pub(super) fn new(variable: &'a DataVariable, options: &'a CdlOptions) -> DataRows<'a> {
        let (row_len, outer) = match variable.shape.split_last() {
            Some((&last, outer)) => (last, outer.len()),
            None => (1, 0),
        };
        let left = variable.shape[..outer].iter().fold(1, |n: usize, &len| n.saturating_mul(len));
        let has_braces = variable.unlimited.iter().skip(1).any(|&grows| grows);
        let (corner, text) = (vec![0; outer], Vec::new());
        DataRows { variable, options, row_len, corner, at: 0, left, has_braces, nuls: 0, text }
    }

    /// Writes what comes before the elements of the next row, although these cannot be read.
    pub(super) fn announce(&mut self, lines: &mut CdlLines<'_>) -> io::Result<()> {
        if self.at > 0 {
            return Ok(());
        }
        for _ in 0..self.n_braces(|at, _| at == 0) {
            lines.put(b"{")?;
        }
        self.put_brief(lines)
    }

    /// Elements of a row.
    pub(super) fn len(&self) -> usize {
        self.row_len
    }

    /// Writes the next elements, whose text is made already.
    pub(super) fn put_texts(&mut self, lines: &mut CdlLines<'_>, texts: &Texts) -> io::Result<()> {
        let (mut text, mut lens) = (&texts.text[..], &texts.lens[..]);
        // A row without comments that fits in the line is written as a whole.
        let is_bare = !(self.has_braces || self.options.brief || self.options.full);
        while !lens.is_empty() {
            if self.at == 0 {
                if is_bare && self.left > 1 && self.row_len <= lens.len() {
                    let (row, behind) = lens.split_at(self.row_len);
                    let len = row.iter().map(|&len| usize::from(len)).sum();
                    if lines.put_row(&text[..len])? {
                        (text, lens) = (&text[len..], behind);
                        self.left -= 1;
                        continue;
                    }
                }
                self.begin_row(lines)?;
            }
            let room = self.row_len - self.at;
            let (here, behind) = lens.split_at(room.min(lens.len()));
            lens = behind;
            let ended = here.len() == room;
            let (last, run) = if ended { here.split_last().unzip() } else { (None, Some(here)) };
            let used = lines.put_run(text, run.unwrap_or_default())?;
            text = &text[used..];
            self.at += here.len();
            if let Some(&last) = last {
                let (value, tail) = text.split_at(usize::from(last));
                text = tail;
                self.text.clear();
                self.text.extend_from_slice(value);
                self.text.extend(std::iter::repeat_n(b'}', self.n_ends()));
                lines.put(&self.text)?;
                self.end_row(lines)?;
            }
        }
        Ok(())
    }

    pub(super) fn put(
        &mut self,
        lines: &mut CdlLines<'_>,
        bytes: &[u8],
        pieces: &VlenStore,
    ) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.at == 0 {
                self.begin_row(lines)?;
            }
            let room = (self.row_len - self.at) * self.variable.elem_bytes;
            let (row, tail) = rest.split_at(room.min(rest.len()));
            if self.variable.form.is_text() {
                self.put_text(lines, row)?;
            } else {
                self.put_values(lines, row, pieces)?;
            }
            if self.at == self.row_len {
                self.end_row(lines)?;
            }
            rest = tail;
        }
        Ok(())
    }

    fn begin_row(&mut self, lines: &mut CdlLines<'_>) -> io::Result<()> {
        for _ in 0..self.n_braces(|at, _| at == 0) {
            lines.put(b"{")?;
        }
        self.put_brief(lines)?;
        if self.variable.form.is_text() {
            lines.raw(b"\"")?;
        }
        Ok(())
    }

    /// The comment before a row, if it is asked for.
    fn put_brief(&mut self, lines: &mut CdlLines<'_>) -> io::Result<()> {
        if self.options.brief && !self.corner.is_empty() {
            self.text.clear();
            self.push_brief();
            lines.raw(&self.text)?;
            lines.raw(b")\n")?;
            lines.indented(b"    ")?;
            lines.set_position(4);
        }
        Ok(())
    }

    /// Writes the characters of a row without the NULs at its end.
    fn put_text(&mut self, lines: &mut CdlLines<'_>, bytes: &[u8]) -> io::Result<()> {
        self.text.clear();
        for &byte in bytes {
            if byte == 0 {
                self.nuls += 1;
                continue;
            }
            while self.nuls > 0 {
                self.text.extend_from_slice(b"\\000");
                self.nuls -= 1;
                if self.text.len() > DATA_BLOCK_BYTES {
                    lines.raw(&self.text)?;
                    self.text.clear();
                }
            }
            match byte {
                b'\n' => self.text.extend_from_slice(b"\\n\",\n    \""),
                _ => match escape(byte) {
                    Some(escape) => self.text.extend_from_slice(escape),
                    None if byte == b' ' || byte.is_ascii_graphic() => self.text.push(byte),
                    None => {
                        let _ = write!(self.text, "\\{byte:03o}");
                    }
                },
            }
        }
        self.at += bytes.len();
        lines.raw(&self.text)
    }

    fn put_values(
        &mut self,
        lines: &mut CdlLines<'_>,
        bytes: &[u8],
        pieces: &VlenStore,
    ) -> io::Result<()> {
        for element in bytes.chunks_exact(self.variable.elem_bytes) {
            self.at += 1;
            self.text.clear();
            self.variable.form.push(&mut self.text, element, pieces);
            let last = self.at == self.row_len;
            if last {
                self.text.extend(std::iter::repeat_n(b'}', self.n_ends()));
            } else {
                self.text.extend_from_slice(b", ");
            }
            if !self.options.full {
                lines.put(&self.text)?;
            } else if last {
                // The delimiter and the comment are written at the end of the row.
                lines.raw(&self.text)?;
            } else {
                self.push_full(self.at - 1);
                lines.raw(&self.text)?;
            }
        }
        Ok(())
    }

    fn end_row(&mut self, lines: &mut CdlLines<'_>) -> io::Result<()> {
        if self.variable.form.is_text() {
            self.nuls = 0;
            lines.raw(b"\"")?;
            self.text.clear();
            self.text.extend(std::iter::repeat_n(b'}', self.n_ends()));
            if self.options.full {
                lines.raw(&self.text)?;
            } else {
                lines.put(&self.text)?;
            }
        }
        let outer = &self.variable.shape[..self.corner.len()];
        self.left = self.left.saturating_sub(1);
        let last = self.left == 0;
        if self.options.full {
            self.text.clear();
            self.text.push(if last { b';' } else { b',' });
            self.push_full(if self.variable.shape.is_empty() { 0 } else { self.row_len - 1 });
            lines.raw(&self.text)?;
        } else if last {
            lines.put(b" ;")?;
            lines.put(b"\n")?;
        } else {
            lines.put(b",\n")?;
            lines.put(b"  ")?;
        }
        self.at = 0;
        advance(&mut self.corner, outer);
        Ok(())
    }

    /// How many braces open or close here: one for each dimension but the first that can grow and
    /// for which, in the current row, all dimensions from it on are at the place that `there`
    /// tests.
    fn n_braces(&self, there: impl Fn(usize, usize) -> bool) -> usize {
        let mut n = 0;
        if !self.has_braces {
            return n;
        }
        for (axis, unlimited) in self.variable.unlimited.iter().enumerate().skip(1).rev() {
            let at = self.corner.get(axis).zip(self.variable.shape.get(axis));
            if at.is_some_and(|(&at, &len)| !there(at, len)) {
                break;
            }
            n += usize::from(*unlimited);
        }
        n
    }

    /// How many braces close behind the row.
    fn n_ends(&self) -> usize {
        self.n_braces(|at, len| at + 1 == len)
    }

    /// Appends the comment after a value: its indices.
    fn push_full(&mut self, column: usize) {
        self.text.extend_from_slice(b"  // ");
        self.text.extend_from_slice(&self.variable.escaped);
        self.text.push(b'(');
        match self.options.order {
            IndexOrder::C => {
                for &at in &self.corner {
                    let _ = write!(self.text, "{at},");
                }
                let _ = write!(self.text, "{column}");
            }
            IndexOrder::Fortran => {
                let _ = write!(self.text, "{}", column + 1);
                for &at in self.corner.iter().rev() {
                    let _ = write!(self.text, ",{}", at + 1);
                }
            }
        }
        self.text.extend_from_slice(b")\n    ");
    }

    /// Appends the comment before a row: its indices, the last one as a range.
    fn push_brief(&mut self) {
        self.text.extend_from_slice(b"// ");
        self.text.extend_from_slice(&self.variable.escaped);
        self.text.push(b'(');
        let last = self.row_len - 1;
        match self.options.order {
            IndexOrder::C => {
                for &at in &self.corner {
                    let _ = write!(self.text, "{at},");
                }
                let _ = match last {
                    0 => write!(self.text, "0"),
                    _ => write!(self.text, " 0-{last}"),
                };
            }
            IndexOrder::Fortran => {
                let _ = match last {
                    0 => write!(self.text, "1"),
                    _ => write!(self.text, "1-{} ", self.row_len),
                };
                for &at in self.corner.iter().rev() {
                    let _ = write!(self.text, ",{}", at + 1);
                }
            }
        }
    }
}

/// The escape of a character that has one in CDL strings, but for the newline.
pub(super) fn escape(byte: u8) -> Option<&'static [u8]> {
    Some(match byte {
        0x08 => b"\\b",
        0x0C => b"\\f",
        b'\r' => b"\\r",
        b'\t' => b"\\t",
        0x0B => b"\\v",
        b'\\' => b"\\\\",
        b'\'' => b"\\'",
        b'"' => b"\\\"",
        _ => return None,
    })
}
