//! Words of DDS, DAS and error documents, which are written alike: words, texts in quotation marks, and marks; names with escapes.
//!
//! What is a word is the union of what libdap and netCDF-C take for one: all visible characters but marks, and bytes above 127.

use crate::dap2::limits::MAX_NAME_BYTES;
use crate::error::{DapError, Document};

/// Marks, each of which is a token.
const MARKS: &[u8] = b"{}[]:;=,";

/// What `%HH` in a name is decoded for (`DAP2 4.1`): other characters stay escaped, in names of netCDF, too, as in the reference.
const LEGAL: &[u8] = b"_!~*'-\"";

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What<'a> {
    /// A word.
    Word(&'a [u8]),
    /// What stands between quotation marks, backslashes included.
    Text(&'a [u8]),
    /// One of [`MARKS`].
    Mark(u8),
    /// The end.
    End,
}

/// A token and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    /// First byte.
    pub(crate) at: usize,
    /// What it is.
    pub(crate) what: What<'a>,
}

impl Token<'_> {
    /// How messages show it.
    pub(crate) fn shown(&self) -> String {
        match self.what {
            What::Word(word) => format!("`{}`", shown(word)),
            What::Text(text) => format!("\"{}\"", shown(text)),
            What::Mark(mark) => format!("`{}`", char::from(mark)),
            What::End => "the end".into(),
        }
    }

    /// Whether it is this word, in capital or small letters.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self.what, What::Word(found) if found.eq_ignore_ascii_case(word.as_bytes()))
    }
}

/// The beginning of a text, for messages.
pub(crate) fn shown(text: &[u8]) -> String {
    const SHOWN: usize = 80;
    let begin = text.get(..SHOWN).unwrap_or(text);
    let dots = if begin.len() < text.len() { "..." } else { "" };
    format!("{}{dots}", String::from_utf8_lossy(begin))
}

/// A document that is read token by token.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    document: Document,
    /// Colons belong to words: those of a DAS, which has no other use for them.
    has_colons: bool,
}

impl<'a> Lexer<'a> {
    /// Reads `bytes` as what `document` says.
    pub(crate) fn new(document: Document, bytes: &'a [u8]) -> Lexer<'a> {
        Lexer { bytes, at: 0, document, has_colons: document == Document::Das }
    }

    /// An error at byte `at`.
    pub(crate) fn error(&self, at: usize, what: impl Into<String>) -> DapError {
        DapError::Malformed { document: self.document, at: at as u64, what: what.into() }
    }

    /// An error for a token that does not belong where it is.
    pub(crate) fn unexpected(&self, token: &Token<'_>, wanted: &str) -> DapError {
        self.error(token.at, format!("{} where {wanted} should be", token.shown()))
    }

    fn is_in_word(&self, byte: u8) -> bool {
        let is_mark = MARKS.contains(&byte) && !(byte == b':' && self.has_colons);
        byte > b' ' && byte != 0x7f && byte != b'"' && !is_mark
    }

    /// The next token, which stays the next one.
    pub(crate) fn peek(&self) -> Result<Token<'a>, DapError> {
        self.clone().next()
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Result<Token<'a>, DapError> {
        let rest = loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let blank = rest.iter().take_while(|byte| **byte <= b' ' || **byte == 0x7f).count();
            let comment = match rest.get(blank) {
                Some(b'#') => rest.iter().skip(blank).take_while(|byte| **byte != b'\n').count(),
                _ => 0,
            };
            self.at = self.at.saturating_add(blank).saturating_add(comment);
            if comment == 0 {
                break rest.get(blank..).unwrap_or_default();
            }
        };
        let at = self.at;
        let Some(&first) = rest.first() else { return Ok(Token { at, what: What::End }) };
        if first == b'"' {
            return self.text(at, rest.get(1..).unwrap_or_default());
        }
        if !self.is_in_word(first) {
            self.at = at.saturating_add(1);
            return Ok(Token { at, what: What::Mark(first) });
        }
        let len = rest.iter().take_while(|byte| self.is_in_word(**byte)).count();
        self.at = at.saturating_add(len);
        Ok(Token { at, what: What::Word(rest.get(..len).unwrap_or_default()) })
    }

    fn text(&mut self, at: usize, rest: &'a [u8]) -> Result<Token<'a>, DapError> {
        let mut is_escaped = false;
        let is_end = |byte: &u8| {
            let ends = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            ends
        };
        let Some(len) = rest.iter().position(is_end) else {
            return Err(self.error(at, "a text has no closing quotation mark"));
        };
        self.at = at.saturating_add(len).saturating_add(2);
        Ok(Token { at, what: What::Text(rest.get(..len).unwrap_or_default()) })
    }

    /// Takes this mark.
    pub(crate) fn mark(&mut self, mark: u8, behind: &str) -> Result<(), DapError> {
        let token = self.next()?;
        if token.what == What::Mark(mark) {
            return Ok(());
        }
        Err(self.unexpected(&token, &format!("`{}` of {behind}", char::from(mark))))
    }

    /// Takes a word; `wanted` is what it should be.
    pub(crate) fn word(&mut self, wanted: &str) -> Result<Token<'a>, DapError> {
        let token = self.next()?;
        match token.what {
            What::Word(_) => Ok(token),
            _ => Err(self.unexpected(&token, wanted)),
        }
    }

    /// Takes a name, without the escapes that need not be.
    pub(crate) fn name(&mut self, wanted: &str) -> Result<String, DapError> {
        let token = self.word(wanted)?;
        self.decoded(&token)
    }

    /// The name that a word is.
    pub(crate) fn decoded(&self, token: &Token<'_>) -> Result<String, DapError> {
        let What::Word(word) = token.what else { return Err(self.unexpected(token, "a name")) };
        if word.len() > MAX_NAME_BYTES {
            let what = format!(
                "name {} of {} bytes, {MAX_NAME_BYTES} are the most",
                shown(word),
                word.len()
            );
            return Err(self.error(token.at, what));
        }
        String::from_utf8(decoded(word))
            .map_err(|_| self.error(token.at, format!("name {} is not UTF-8", shown(word))))
    }

    /// Requires that nothing comes any more.
    pub(crate) fn end(&mut self, of: &str) -> Result<(), DapError> {
        let token = self.next()?;
        if token.what == What::End {
            return Ok(());
        }
        Err(self.error(token.at, format!("{} behind the end of {of}", token.shown())))
    }
}

/// The value of a hexadecimal digit.
pub(crate) fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// The byte that `%HH` at the beginning of `text` means.
pub(crate) fn escaped(text: &[u8]) -> Option<u8> {
    match text {
        [b'%', high, low, ..] => Some(hex(*high)?.checked_mul(16)?.saturating_add(hex(*low)?)),
        _ => None,
    }
}

/// Whether `byte` behind `out` is, or may become, a part of an escape that the document does not have.
fn makes_escape(out: &[u8], byte: u8) -> bool {
    let follows = match out {
        [.., b'%'] => true,
        [.., b'%', before] => hex(*before).is_some(),
        _ => false,
    };
    follows && hex(byte).is_some()
}

/// A name without escapes of characters that names may have. A name that was decoded is decoded to itself.
fn decoded(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        let is_legal = |byte: &u8| byte.is_ascii_alphanumeric() || LEGAL.contains(byte);
        match escaped(rest).filter(is_legal) {
            Some(byte) if !makes_escape(&out, byte) => {
                out.push(byte);
                rest = rest.get(3..).unwrap_or_default();
            }
            _ => {
                out.push(first);
                rest = after;
            }
        }
    }
    out
}

/// A name as a document has it: what no word can have is escaped.
pub(crate) fn encoded(document: Document, name: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let lexer = Lexer::new(document, &[]);
    let mut out = String::new();
    for (at, ch) in name.char_indices() {
        let byte = u8::try_from(ch).ok().filter(u8::is_ascii);
        let Some(byte) = byte.filter(|byte| !lexer.is_in_word(*byte) || (at == 0 && *byte == b'#'))
        else {
            out.push(ch);
            continue;
        };
        out.push('%');
        for digit in [byte >> 4, byte & 15] {
            out.push(HEX.get(usize::from(digit)).map_or('0', |digit| char::from(*digit)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(document: Document, text: &str) -> Vec<String> {
        let mut lexer = Lexer::new(document, text.as_bytes());
        let mut all = Vec::new();
        loop {
            let token = lexer.next().unwrap();
            if token.what == What::End {
                return all;
            }
            all.push(token.shown());
        }
    }

    #[test]
    fn words_texts_marks_and_comments_are_told_apart() {
        let text = "Int32 a.b[x=3];# Int16 c;\n String \"a\\\"b\" \"\", é(1)";
        let expected = "`Int32` `a.b` `[` `x` `=` `3` `]` `;` `String` \"a\\\"b\" \"\" `,` `é(1)`";
        assert_eq!(words(Document::Dds, text).join(" "), expected);
        assert_eq!(words(Document::Dds, "a:b#c"), ["`a`", "`:`", "`b#c`"]);
        assert_eq!(words(Document::Das, "a:b #c"), ["`a:b`"]);
        let error = Lexer::new(Document::Das, b" \"abc\\\"").next().unwrap_err();
        assert_eq!(error.to_string(), "DAS, byte 1: a text has no closing quotation mark");
    }

    #[test]
    fn names_lose_the_escapes_that_they_need_not_have() {
        for (word, name) in [
            ("a%41%20b", "aA%20b"),
            ("%2f%", "%2f%"),
            ("%22x%2", "\"x%2"),
            ("%2541", "%2541"),
            // What is decoded makes no other escape.
            ("%%3322", "%%3322"),
            ("%3%33%34", "%3%334"),
            ("%%33", "%%33"),
        ] {
            let mut lexer = Lexer::new(Document::Dds, word.as_bytes());
            assert_eq!(lexer.name("a name").unwrap(), name);
            let written = encoded(Document::Dds, name);
            assert_eq!(Lexer::new(Document::Dds, written.as_bytes()).name("a name").unwrap(), name);
        }
        assert_eq!(encoded(Document::Dds, "#a b{\"é:#"), "%23a%20b%7B%22é%3A#");
        assert_eq!(encoded(Document::Das, "a:(b)="), "a:(b)%3D");
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        assert!(Lexer::new(Document::Dds, long.as_bytes()).name("a name").is_err());
        assert!(Lexer::new(Document::Dds, b"\xff").name("a name").is_err());
    }
}
