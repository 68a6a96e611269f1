//! Names of dimensions, variables and attributes.
//!
//! Rules: NetCDF File Format Specifications, "Valid NetCDF names": valid UTF-8 without `/`, first
//! character a letter, digit, underscore or multi-byte; no control characters; no trailing space;
//! at most [`MAX_NAME_BYTES`] bytes. Names are stored in Unicode normalisation form C.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::NcError;

/// Longest name in bytes (`NC_MAX_NAME`).
pub const MAX_NAME_BYTES: usize = 256;

/// Bytes from which on normalisation cannot make a name short enough.
const MOST_RAW_BYTES: usize = 64 << 10;

/// A name as messages show it: cut to the length that names may have, so that an argument of any length is not copied whole.
#[must_use]
pub fn shown_name(name: &[u8]) -> String {
    match name.get(..MAX_NAME_BYTES) {
        Some(begin) if name.len() > MAX_NAME_BYTES => {
            format!("{}... ({} bytes)", String::from_utf8_lossy(begin), name.len())
        }
        _ => String::from_utf8_lossy(name).into_owned(),
    }
}

/// Checks a name that is to be defined.
///
/// The length limit is met while walking the name, so an over-long name that breaks a rule within
/// its first 257 bytes gives the rule's code, as the reference does.
///
/// # Errors
/// [`NcError::BadName`] for a broken rule, [`NcError::MaxName`] beyond [`MAX_NAME_BYTES`] bytes.
pub fn check_name(name: &[u8]) -> Result<(), NcError> {
    if is_plain(name) {
        return Ok(());
    }
    if name.is_empty() || name.contains(&b'/') {
        return Err(NcError::BadName);
    }
    let text = std::str::from_utf8(name).map_err(|_| NcError::BadName)?;
    for (at, ch) in text.char_indices() {
        let fine = if at == 0 {
            !ch.is_ascii() || ch.is_ascii_alphanumeric() || ch == '_'
        } else {
            !ch.is_ascii() || (' '..='~').contains(&ch)
        };
        if !fine {
            return Err(NcError::BadName);
        }
        // The first character is never long enough to break the limit by itself.
        if at > 0 && at.saturating_add(ch.len_utf8()) > MAX_NAME_BYTES {
            return Err(NcError::MaxName);
        }
    }
    if name.last() == Some(&b' ') {
        return Err(NcError::BadName);
    }
    Ok(())
}

/// Whether a name is printable ASCII and keeps the rules, as nearly all do: one pass without a branch for each byte.
fn is_plain(name: &[u8]) -> bool {
    let (Some(&first), Some(&last)) = (name.first(), name.last()) else { return false };
    let fine = |byte: u8| (b' '..=b'~').contains(&byte) & (byte != b'/');
    name.len() <= MAX_NAME_BYTES
        && (first.is_ascii_alphanumeric() || first == b'_')
        && last != b' '
        && name.iter().fold(true, |all, &byte| all & fine(byte))
}

/// The name in Unicode normalisation form C, borrowed when it is in that form already.
///
/// # Errors
/// [`NcError::BadName`] when the bytes are not UTF-8, [`NcError::MaxName`] when it is longer than any
/// form of a name.
pub fn normalize_name(name: &[u8]) -> Result<Cow<'_, [u8]>, NcError> {
    if name.len() > MOST_RAW_BYTES {
        return Err(NcError::MaxName);
    }
    if name.is_ascii() {
        return Ok(Cow::Borrowed(name));
    }
    let text = std::str::from_utf8(name).map_err(|_| NcError::BadName)?;
    if is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return Ok(Cow::Borrowed(name));
    }
    Ok(Cow::Owned(text.nfc().collect::<String>().into_bytes()))
}

/// The name of something that is looked for in a netCDF-4 file, in normalisation form C.
///
/// # Errors
/// `otherwise` when the bytes are not UTF-8, so that nothing has that name; [`NcError::MaxName`]
/// when nothing can have it.
pub fn sought_name(name: &[u8], otherwise: NcError) -> Result<Cow<'_, [u8]>, NcError> {
    let name = normalize_name(name).map_err(|_| otherwise)?;
    if name.len() > MAX_NAME_BYTES { Err(NcError::MaxName) } else { Ok(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_the_specification() {
        for good in ["a", "_", "1", "a b", "temp-2@m", "é", "x~", "naïve", "日本", "a\u{7f}é"]
        {
            // DEL is a control character also in the middle of a longer name.
            let expected = if good.contains('\u{7f}') { Err(NcError::BadName) } else { Ok(()) };
            assert_eq!(check_name(good.as_bytes()), expected, "{good:?}");
        }
        for bad in ["", " a", "a ", "a/b", "/", "-a", "a\n", "a\tb", "\u{1}"] {
            assert_eq!(check_name(bad.as_bytes()), Err(NcError::BadName), "{bad:?}");
        }
        assert_eq!(check_name(b"a\xff"), Err(NcError::BadName));
    }

    #[test]
    fn length_limit_is_in_bytes() {
        assert_eq!(check_name(&[b'a'; 256]), Ok(()));
        assert_eq!(check_name(&[b'a'; 257]), Err(NcError::MaxName));
        assert_eq!(check_name("é".repeat(128).as_bytes()), Ok(()));
        assert_eq!(check_name("é".repeat(129).as_bytes()), Err(NcError::MaxName));
    }

    #[test]
    fn composes() {
        assert_eq!(&*normalize_name("e\u{301}".as_bytes()).unwrap(), "é".as_bytes());
        assert!(matches!(normalize_name("é".as_bytes()).unwrap(), Cow::Borrowed(_)));
        assert_eq!(normalize_name(b"\xff"), Err(NcError::BadName));
        let longest = [b'n'; MAX_NAME_BYTES + 1];
        assert_eq!(sought_name(&longest, NcError::NotVar), Err(NcError::MaxName));
        assert!(sought_name(&longest[1..], NcError::NotVar).is_ok());
        assert_eq!(sought_name(b"\xff", NcError::NotVar), Err(NcError::NotVar));
        assert_eq!(normalize_name(&[b'n'; MOST_RAW_BYTES + 1]), Err(NcError::MaxName));
        assert_eq!(shown_name(b"abc"), "abc");
        assert!(shown_name(&[b'n'; 1 << 20]).ends_with("n... (1048576 bytes)"));
    }
}
