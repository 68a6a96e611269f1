//! `ncaux_parse_provenance`: the `_NCProperties` text, `key=value,key=value…`, in pieces.

use std::ffi::{c_char, c_int};

use zonda::NcError;

use crate::boundary::boundary;
use crate::c_memory::{bytes, malloc_strings, put};

/// Cuts `text` at each separator that has no backslash before it.
fn split_unescaped<'a>(text: &'a [u8], separators: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < text.len() {
        if text[at] == b'\\' {
            at += 1;
        } else if separators.contains(&text[at]) {
            pieces.push(&text[from..at]);
            from = at + 1;
        }
        at += 1;
    }
    pieces.push(&text[from..]);
    pieces
}

/// Drops the backslashes that protect the byte after them.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(if byte == b'\\' { bytes.next().copied().unwrap_or(b'\\') } else { byte });
    }
    plain
}

/// Keys and values in turn; `None` where a pair is empty.
fn parse(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut list = Vec::new();
    // Version 1 of the text separates pairs by '|'.
    for pair in split_unescaped(text, b",|") {
        if pair.is_empty() {
            return None;
        }
        let key = split_unescaped(pair, b"=")[0];
        list.push(unescape(key));
        list.push(unescape(pair.get(key.len() + 1..).unwrap_or_default()));
    }
    Some(list)
}

/// `int ncaux_parse_provenance(const char *ncprop, char ***pairsp);`
///
/// Keys and values in turn, ended by two null pointers; strings and array are the caller's to
/// free. Null for an empty text. `NC_EINVAL` for an empty pair.
///
/// # Safety
/// `ncprop` is null or a NUL-terminated string; `pairsp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_parse_provenance(
    ncprop: *const c_char,
    pairsp: *mut *mut *mut c_char,
) -> c_int {
    boundary(|| {
        if pairsp.is_null() {
            return Ok(());
        }
        // SAFETY: the contract above is `put`'s, and that of `bytes`.
        let text = unsafe {
            put(pairsp, std::ptr::null_mut());
            bytes(ncprop).unwrap_or_default()
        };
        if text.is_empty() {
            return Ok(());
        }
        let pairs = malloc_strings(&parse(text).ok_or(NcError::Inval)?, 2)?;
        // SAFETY: as above.
        unsafe { put(pairsp, pairs) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn strings(text: &str) -> Option<Vec<String>> {
        let list = parse(text.as_bytes())?;
        Some(list.into_iter().map(|s| String::from_utf8_lossy(&s).into_owned()).collect())
    }

    #[test]
    fn pairs_escapes_and_missing_values() {
        let found = strings(r"version=2,netcdf=4.9.0|a\,b=c\=d=e,bare").expect("no empty pair");
        assert_eq!(found, ["version", "2", "netcdf", "4.9.0", "a,b", "c=d=e", "bare", ""]);
        assert_eq!(strings("a=1,,b=2"), None);
        assert_eq!(strings("a=1,"), None);
        assert_eq!(strings("\\"), Some(vec!["\\".into(), String::new()]));
    }
}
