//! Skips data while definitions are read.

use crate::lexer::Cursor;

#[derive(Clone, Copy)]
enum SkipState {
    Plain,
    /// Behind `\` in a name.
    NameEscape,
    Text,
    TextEscape,
    /// Behind `'`.
    Char,
    CharEscape,
    CharEnd,
    /// Behind `/`.
    Slash,
    Line,
    Block,
    /// Behind `*` in a comment.
    Star,
}

/// Whether the byte can begin or end something, outside of strings, names and comments.
const fn is_special(byte: u8) -> bool {
    matches!(byte, b';' | b'"' | b'\'' | b'/' | b'\\')
}

/// Moves past the next semicolon that is in no string, character, name or comment, and returns its
/// offset; `None` if there is none.
pub(super) fn to_semicolon(cursor: &mut Cursor<'_>) -> Option<u64> {
    let mut state = SkipState::Plain;
    loop {
        let window = cursor.window();
        if window.is_empty() {
            return None;
        }
        let mut at = 0;
        while let Some(byte) = window.get(at) {
            if matches!(state, SkipState::Plain) && !is_special(*byte) {
                at += window[at..].iter().take_while(|byte| !is_special(**byte)).count();
                continue;
            }
            if matches!(state, SkipState::Plain) && *byte == b';' {
                let found = cursor.offset() + at as u64;
                cursor.take(at + 1);
                return Some(found);
            }
            let next = step(state, *byte);
            // The byte after a slash that begins no comment is not special.
            let again = matches!((state, next), (SkipState::Slash, SkipState::Plain));
            state = next;
            at += usize::from(!again);
        }
        cursor.take(at);
    }
}

fn step(state: SkipState, byte: u8) -> SkipState {
    match (state, byte) {
        (SkipState::Plain, b'"') => SkipState::Text,
        (SkipState::Plain, b'\'') => SkipState::Char,
        (SkipState::Plain, b'/') => SkipState::Slash,
        (SkipState::Plain, b'\\') => SkipState::NameEscape,
        (SkipState::Plain | SkipState::NameEscape, _) => SkipState::Plain,
        (SkipState::Text, b'"') => SkipState::Plain,
        (SkipState::Text, b'\\') => SkipState::TextEscape,
        (SkipState::Text | SkipState::TextEscape, _) => SkipState::Text,
        (SkipState::Char, b'\\') => SkipState::CharEscape,
        (SkipState::Char | SkipState::CharEscape, _) => SkipState::CharEnd,
        // An error about a character without its end comes when the data are read.
        (SkipState::CharEnd, b'\'' | b'\n') => SkipState::Plain,
        (SkipState::CharEnd, _) => SkipState::CharEnd,
        (SkipState::Slash, b'/') => SkipState::Line,
        (SkipState::Slash, b'*') => SkipState::Block,
        (SkipState::Slash, _) => SkipState::Plain,
        (SkipState::Line, b'\n') => SkipState::Plain,
        (SkipState::Line, _) => SkipState::Line,
        (SkipState::Block | SkipState::Star, b'*') => SkipState::Star,
        (SkipState::Star, b'/') => SkipState::Plain,
        (SkipState::Block | SkipState::Star, _) => SkipState::Block,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::CdlText;

    #[test]
    fn semicolons_that_end_something() {
        for (text, end) in [
            ("1, 2;3", Some(4)),
            ("\"a;b\\\";\" ;", Some(9)),
            ("';' , '\\'', ''' ;", Some(16)),
            ("1 // a;b\n;", Some(9)),
            ("1 /* ; * */ / ;", Some(14)),
            (r"a\;b;", Some(4)),
            (r"/a;", Some(2)),
            ("/;", Some(1)),
            ("1, 2", None),
            ("\"a;", None),
            ("", None),
        ] {
            let source = CdlText::from_bytes(text.as_bytes().to_vec()).unwrap();
            let mut cursor = Cursor::new(&source);
            assert_eq!(to_semicolon(&mut cursor), end, "{text}");
        }
    }

    #[test]
    fn over_windows() {
        let text = format!("{}\"{}\" ;", "1,".repeat(200_000), ";".repeat(300_000));
        let source = CdlText::from_bytes(text.as_bytes().to_vec()).unwrap();
        let mut cursor = Cursor::new(&source);
        assert_eq!(to_semicolon(&mut cursor), Some(text.len() as u64 - 1));
    }
}
