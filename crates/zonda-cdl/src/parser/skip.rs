//! Data are gone over when definitions are read.

use crate::lexer::Cursor;

#[derive(Clone, Copy)]
enum State {
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

/// Whether something begins or ends with the byte, where nothing special is open.
const fn is_special(byte: u8) -> bool {
    matches!(byte, b';' | b'"' | b'\'' | b'/' | b'\\')
}

/// Goes over the next semicolon that is in no string, character, name or comment, and says where it is;
/// `None` if there is none.
pub(super) fn to_semicolon(cursor: &mut Cursor<'_>) -> Option<u64> {
    let mut state = State::Plain;
    loop {
        let window = cursor.window();
        if window.is_empty() {
            return None;
        }
        let mut at = 0;
        while let Some(byte) = window.get(at) {
            if matches!(state, State::Plain) && !is_special(*byte) {
                at += window[at..].iter().take_while(|byte| !is_special(**byte)).count();
                continue;
            }
            if matches!(state, State::Plain) && *byte == b';' {
                let found = cursor.offset() + at as u64;
                cursor.take(at + 1);
                return Some(found);
            }
            let next = step(state, *byte);
            // What follows a slash that begins no comment is plain.
            let again = matches!((state, next), (State::Slash, State::Plain));
            state = next;
            at += usize::from(!again);
        }
        cursor.take(at);
    }
}

fn step(state: State, byte: u8) -> State {
    match (state, byte) {
        (State::Plain, b'"') => State::Text,
        (State::Plain, b'\'') => State::Char,
        (State::Plain, b'/') => State::Slash,
        (State::Plain, b'\\') => State::NameEscape,
        (State::Plain | State::NameEscape, _) => State::Plain,
        (State::Text, b'"') => State::Plain,
        (State::Text, b'\\') => State::TextEscape,
        (State::Text | State::TextEscape, _) => State::Text,
        (State::Char, b'\\') => State::CharEscape,
        (State::Char | State::CharEscape, _) => State::CharEnd,
        // A character that does not end is found when the data are read.
        (State::CharEnd, b'\'' | b'\n') => State::Plain,
        (State::CharEnd, _) => State::CharEnd,
        (State::Slash, b'/') => State::Line,
        (State::Slash, b'*') => State::Block,
        (State::Slash, _) => State::Plain,
        (State::Line, b'\n') => State::Plain,
        (State::Line, _) => State::Line,
        (State::Block | State::Star, b'*') => State::Star,
        (State::Star, b'/') => State::Plain,
        (State::Block | State::Star, _) => State::Block,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

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
            let source = Source::from_bytes(text.as_bytes().to_vec()).unwrap();
            let mut cursor = Cursor::new(&source);
            assert_eq!(to_semicolon(&mut cursor), end, "{text}");
        }
    }

    #[test]
    fn over_windows() {
        let text = format!("{}\"{}\" ;", "1,".repeat(200_000), ";".repeat(300_000));
        let source = Source::from_bytes(text.as_bytes().to_vec()).unwrap();
        let mut cursor = Cursor::new(&source);
        assert_eq!(to_semicolon(&mut cursor), Some(text.len() as u64 - 1));
    }
}
