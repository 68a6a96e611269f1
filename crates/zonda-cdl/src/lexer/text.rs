//! Escapes in names, strings and characters.

use zonda_model::memory::{self, NoMemory};

/// What `\` and a letter stand for, in strings and characters alike.
fn letter(byte: u8) -> u8 {
    match byte {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        // As in the reference.
        b'?' => 0o177,
        other => other,
    }
}

fn digits(text: &[u8], radix: u32) -> Option<u8> {
    let text = std::str::from_utf8(text).ok()?;
    // Beyond 255 the upper bits are lost, as in C.
    u32::from_str_radix(text, radix).ok().map(|number| (number & 0xff) as u8)
}

fn is_octal(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'0'..=b'7').contains(byte))
}

/// A string without its escapes: `\n`, `\033`, `\x1b`, and `\` before anything else stands for it.
///
/// # Errors
/// [`NoMemory`]: a string may be as long as the text.
pub(crate) fn unescape(text: &[u8]) -> Result<Vec<u8>, NoMemory> {
    let mut out = memory::room(text.len())?;
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let Some((kind, after)) = rest.split_first() else { break };
        let octal = rest.get(..3).filter(|three| is_octal(three));
        let hex = rest.get(1..3).filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        let (value, len) = match (octal, kind, hex) {
            (Some(three), _, _) => (digits(three, 8), 3),
            (None, b'x' | b'X', Some(two)) => (digits(two, 16), 3),
            _ => (Some(letter(*kind)), 1),
        };
        out.extend(value);
        rest = if len == 1 { after } else { &rest[len..] };
    }
    Ok(out)
}

/// A name without its escapes: `\` before anything stands for it.
///
/// # Errors
/// [`NoMemory`].
pub(crate) fn unescape_name(text: &[u8]) -> Result<Vec<u8>, NoMemory> {
    let mut out = memory::room(text.len())?;
    let mut escaped = false;
    for byte in text {
        if *byte == b'\\' && !escaped {
            escaped = true;
        } else {
            out.push(*byte);
            escaped = false;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings() {
        for (text, value) in [
            (r"a\tb\n", &b"a\tb\n"[..]),
            (r"\x41\101\0012\xZ", b"AA\x012xZ"),
            (r"\777\8\x4", b"\xff8x4"),
            (r#"\"\\\'\?"#, b"\"\\'\x7f"),
            ("é\\", "é".as_bytes()),
            ("", b""),
        ] {
            assert_eq!(unescape(text.as_bytes()).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn names() {
        assert_eq!(unescape_name(br"a\ b\\c\n\4").unwrap(), b"a b\\cn4");
    }
}
