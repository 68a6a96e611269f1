//! Errors in a text, with their place.

use std::fmt;
use std::io;

use zonda_model::memory::NoMemory;

use crate::source::CdlText;
use crate::tuning::FAULT_BLOCK_BYTES;

/// The most bytes of a line that are shown.
const SHOWN: usize = 100;
/// Bytes shown before the place, if that is far from the beginning of its line.
const BEFORE: usize = 60;
/// A place further than this many bytes from the beginning of its line is far from it.
const NEAR: u64 = 80;

/// An error, with an offset of the text if one is concerned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CdlFault {
    /// Byte of the text, counted from 0.
    pub at: Option<u64>,
    /// Length of the wrong part in bytes, at least 1.
    pub len: usize,
    /// The message, without the place.
    pub message: String,
}

/// A line of the text, and a place in it.
struct LineAndColumn {
    /// From 1 on.
    line: u64,
    /// In bytes, from 1 on.
    column: u64,
    /// The line, or a part of it around the place.
    text: Vec<u8>,
    /// The place in `text`.
    within: usize,
}

impl CdlFault {
    /// An error at a byte.
    #[must_use]
    pub fn at(at: u64, message: impl Into<String>) -> CdlFault {
        CdlFault { at: Some(at), len: 1, message: message.into() }
    }

    /// An error without a place.
    #[must_use]
    pub fn nowhere(message: impl Into<String>) -> CdlFault {
        CdlFault { at: None, len: 1, message: message.into() }
    }

    /// The same error for a part of `len` bytes.
    #[must_use]
    pub(crate) fn over(self, len: usize) -> CdlFault {
        CdlFault { len: len.max(1), ..self }
    }

    /// The message for a text called `name`: line, column, the line itself and a mark below the
    /// place. The first line has the form `NAME line L, column C: MESSAGE`.
    #[must_use]
    pub fn explain(&self, name: &str, source: &CdlText) -> String {
        let Some(Ok(place)) = self.at.map(|at| place(source, at)) else {
            return format!("{name}: {}", self.message);
        };
        let number = place.line.to_string();
        let blank = " ".repeat(number.len());
        let text = String::from_utf8_lossy(&place.text);
        let before = String::from_utf8_lossy(&place.text[..place.within]);
        // Tabs stay, so that the mark is below the place for any width of tabs.
        let lead: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let room = place.text.len().saturating_sub(place.within).max(1);
        let mark = "^".repeat(self.len.min(room));
        format!(
            "{name} line {number}, column {}: {}\n {number} | {}\n {blank} | {lead}{mark}",
            place.column,
            self.message,
            text.trim_end()
        )
    }
}

impl From<NoMemory> for CdlFault {
    fn from(error: NoMemory) -> CdlFault {
        CdlFault::nowhere(error.to_string())
    }
}

impl From<io::Error> for CdlFault {
    fn from(error: io::Error) -> CdlFault {
        CdlFault::nowhere(error.to_string())
    }
}

/// Line and column of a byte.
fn place(source: &CdlText, at: u64) -> io::Result<LineAndColumn> {
    let at = at.min(source.len());
    let (mut line, mut line_begin) = (1, source.begin());
    let mut block = vec![0; FAULT_BLOCK_BYTES];
    let mut offset = source.begin();
    while offset < at {
        let want = usize::try_from(at - offset).unwrap_or(FAULT_BLOCK_BYTES).min(FAULT_BLOCK_BYTES);
        let got = source.read_at(offset, &mut block[..want])?;
        if got == 0 {
            break;
        }
        for (index, _) in block[..got].iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            line += 1;
            line_begin = offset + index as u64 + 1;
        }
        offset += got as u64;
    }
    let shown_from = if at - line_begin < NEAR { line_begin } else { at - BEFORE as u64 };
    let mut text = vec![0; SHOWN];
    let got = source.read_at(shown_from, &mut text)?;
    text.truncate(got);
    let within = usize::try_from(at - shown_from).unwrap_or(0).min(got);
    let rest = text[within..].iter().position(|byte| *byte == b'\n');
    text.truncate(rest.map_or(got, |rest| within + rest));
    Ok(LineAndColumn { line, column: at - line_begin + 1, text, within })
}

/// A name in a message. Names may have any bytes.
pub(crate) fn shown(name: &[u8]) -> impl fmt::Display + '_ {
    String::from_utf8_lossy(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(text: &str, at: u64, len: usize) -> String {
        let source = CdlText::from_bytes(text.as_bytes().to_vec()).unwrap();
        CdlFault::at(at, "bad").over(len).explain("a.cdl", &source)
    }

    #[test]
    fn shows_the_line() {
        assert_eq!(
            explain("netcdf x {\n\tint é y ;\n}", 19, 1),
            "a.cdl line 2, column 9: bad\n 2 | \tint é y ;\n   | \t      ^"
        );
        assert_eq!(explain("abc", 99, 5), "a.cdl line 1, column 4: bad\n 1 | abc\n   |    ^");
        assert_eq!(explain("a\nbcd\n", 2, 9), "a.cdl line 2, column 1: bad\n 2 | bcd\n   | ^^^");
        let source = CdlText::from_bytes(Vec::new()).unwrap();
        assert_eq!(CdlFault::nowhere("bad").explain("a.cdl", &source), "a.cdl: bad");
    }

    #[test]
    fn long_lines_are_cut() {
        let text = format!("x\n{}!{}", "a".repeat(70_000), "b".repeat(1000));
        let said = explain(&text, 70_002, 1);
        assert!(said.starts_with("a.cdl line 2, column 70001: bad\n"), "{said}");
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[1].len() < 110 && lines[1].contains("a!b"));
        assert_eq!(lines[1].find('!'), lines[2].find('^'));
    }
}
