//! Names in CDL: characters that mean something there are escaped.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::failure::{CommandFailure, Result};

/// Splits a list at its commas. Empty names are left out.
pub(crate) fn list(text: &OsStr) -> Vec<Vec<u8>> {
    let names = text.as_bytes().split(|&byte| byte == b',');
    names.filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Appends a name with its escapes.
///
/// A backslash goes before punctuation that CDL uses, and before a leading digit; control characters
/// become `\%xx`. Bytes beyond ASCII are UTF-8 and stay.
///
/// # Errors
/// CDL has no form for names that begin with a space or a control character.
pub(crate) fn push_escaped(out: &mut Vec<u8>, name: &[u8]) -> Result<()> {
    if let Some(&first) = name.first() {
        if first <= b' ' || first == 0x7F {
            // The message of ncdump.
            return Err(CommandFailure::InFile(format!(
                "name begins with space or control-character: {}",
                char::from(first)
            )));
        }
        if first.is_ascii_digit() {
            out.push(b'\\');
        }
    }
    for &byte in name {
        match byte {
            _ if byte.is_ascii_control() => {
                out.extend_from_slice(format!("\\%{byte:02x}").as_bytes());
            }
            b' ' | b'!' | b'"' | b'#' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b',' | b':'
            | b';' | b'<' | b'=' | b'>' | b'?' | b'[' | b']' | b'\\' | b'^' | b'`' | b'{'
            | b'|' | b'}' | b'~' => out.extend_from_slice(&[b'\\', byte]),
            _ => out.push(byte),
        }
    }
    Ok(())
}

/// Whether a name is a word of CDL's grammar, after which a `:` needs a space.
pub(crate) fn is_keyword(name: &[u8]) -> bool {
    matches!(name, b"variables" | b"dimensions" | b"data" | b"group" | b"types")
}

/// The name of a dataset: the last part of its path without its extension.
pub(crate) fn of_path(path: &[u8]) -> Vec<u8> {
    let start = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let last = &path[start..];
    let end = last.iter().rposition(|&byte| byte == b'.').unwrap_or(last.len());
    last[..end].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(name: &str) -> String {
        let mut out = Vec::new();
        push_escaped(&mut out, name.as_bytes()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes() {
        assert_eq!(escaped("plain_name-1.2+x@y/z%"), "plain_name-1.2+x@y/z%");
        assert_eq!(escaped("2m temp"), "\\2m\\ temp");
        assert_eq!(escaped("a\tb\u{e9}"), "a\\%09b\u{e9}");
        assert_eq!(escaped("x:y(z)\\"), "x\\:y\\(z\\)\\\\");
        assert!(push_escaped(&mut Vec::new(), b" x").is_err());
        assert!(push_escaped(&mut Vec::new(), b"\x7f").is_err());
    }

    #[test]
    fn names_of_paths() {
        for (path, name) in
            [("a/b.c/d.e.nc", "d.e"), ("x", "x"), (".nc", ""), ("/", ""), ("a/b", "b")]
        {
            assert_eq!(of_path(path.as_bytes()), name.as_bytes(), "{path}");
        }
    }
}
