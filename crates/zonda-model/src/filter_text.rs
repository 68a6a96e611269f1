//! Filters as text, `id,parameter,parameter…`, as programs write them for netCDF-C.
//!
//! A parameter is a number with an optional suffix that says how many words it takes and how:
//! `b s` (cut to 8 and 16 bits), none or `u` (32 bits), `f` (32-bit float), `d` (double, two
//! words), `l` (64 bits, two words); before `b s l`, a `u` says unsigned. Two-word parameters
//! are stored lower word first. Source: `ncaux_h5filterspec_parse` of the reference.

/// A filter: its id and its parameters.
pub type FilterIdAndParams = (u32, Vec<u32>);

fn trim_start(text: &[u8]) -> &[u8] {
    let from = text.iter().position(|byte| !b" \t".contains(byte)).unwrap_or(text.len());
    &text[from..]
}

/// Sign and digits at the start of `text`, as `scanf` reads an integer: leading white space,
/// one sign; clamped to 64 bits. `None` without a digit.
fn scan_int(text: &[u8]) -> Option<(bool, u64)> {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let value = digits.fold(0_u64, |value, &digit| {
        value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    Some((negative, value))
}

/// A 32-bit word, as `%u` and `%d` leave it: what overflows is cut.
fn scan_word(text: &[u8]) -> Option<u32> {
    let (negative, value) = scan_int(text)?;
    Some(if negative { value.wrapping_neg() } else { value } as u32)
}

/// The longest start of `text` that is a number.
fn scan_float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text.trim_ascii_start()).ok()?;
    (1..=text.len())
        .rev()
        .filter(|&end| text.is_char_boundary(end))
        .find_map(|end| text[..end].parse().ok())
}

fn two_words(bits: u64) -> Vec<u32> {
    vec![bits as u32, (bits >> 32) as u32]
}

/// The words of one parameter; `None` if it is malformed.
#[must_use]
pub fn parameter(text: &[u8]) -> Option<Vec<u32>> {
    let text = trim_start(text);
    // The suffix is one or two bytes; with texts of one or two bytes only one is looked at.
    let (&last, before) = text.split_last()?;
    let unsigned =
        text.len() > 2 && before.last().is_some_and(|byte| byte.eq_ignore_ascii_case(&b'u'));
    Some(match last.to_ascii_lowercase() {
        b'0'..=b'9' | b'u' => vec![scan_word(text)?],
        b'b' => vec![scan_word(text)? & 0xff],
        b's' => vec![scan_word(text)? & 0xffff],
        b'f' | b'.' => vec![(scan_float(text)? as f32).to_bits()],
        b'd' => two_words(scan_float(text)?.to_bits()),
        b'l' => {
            let (negative, value) = scan_int(text)?;
            two_words(match (unsigned, negative) {
                (true, false) => value,
                (true, true) => value.wrapping_neg(),
                (false, false) => value.min(i64::MAX.cast_unsigned()),
                (false, true) => value.min(1 << 63).wrapping_neg(),
            })
        }
        _ => return None,
    })
}

/// A filter: its id and words; `None` if it is malformed.
#[must_use]
pub fn filter(text: &[u8]) -> Option<FilterIdAndParams> {
    if text.is_empty() {
        return None;
    }
    let mut pieces = text.split(|&byte| byte == b',');
    let id = scan_word(pieces.next()?)?;
    let mut words = Vec::new();
    for piece in pieces {
        words.extend(parameter(piece)?);
    }
    Some((id, words))
}

/// The number in front of a list, `[number]`, and the filters, separated by `|`; `None`
/// where something is malformed.
#[must_use]
pub fn list(text: &[u8]) -> Option<(i32, Vec<FilterIdAndParams>)> {
    let (mut format, mut rest) = (0, text);
    if let Some(tagged) = text.strip_prefix(b"[") {
        let end = tagged.iter().position(|&byte| byte == b']')?;
        format = scan_word(&tagged[..end])?.cast_signed();
        rest = &tagged[end + 1..];
    }
    // A separator at the end is allowed.
    let rest = rest.strip_suffix(b"|").unwrap_or(rest);
    if rest.is_empty() {
        return Some((format, Vec::new()));
    }
    let filters = rest.split(|&byte| byte == b'|').map(filter);
    Some((format, filters.collect::<Option<Vec<_>>>()?))
}

#[cfg(test)]
mod tests {
    use super::{filter, list};

    #[test]
    fn parameters_are_what_the_reference_makes_of_them() {
        let accepted: [(&str, u32, &[u32]); 11] = [
            ("1", 1, &[]),
            ("307,4", 307, &[4]),
            ("1, 2b,-3,300b,70000s", 1, &[2, 4_294_967_293, 44, 4464]),
            ("5,2.5f,1.5d", 5, &[1_075_838_976, 0, 1_073_217_536]),
            ("5,77L,77UL,-1L", 5, &[77, 0, 77, 0, u32::MAX, u32::MAX]),
            ("1,2u,99ub,-1b", 1, &[2, 99, 255]),
            ("1,1e3", 1, &[1]),
            ("1,1.", 1, &[1_065_353_216]),
            ("1,0x10", 1, &[0]),
            ("-1", u32::MAX, &[]),
            ("1,18446744073709551615UL,12345678901234", 1, &[u32::MAX, u32::MAX, 1_942_892_530]),
        ];
        for (text, id, words) in accepted {
            assert_eq!(filter(text.as_bytes()), Some((id, words.to_vec())), "{text}");
        }
        for text in ["", "1,", ",1", "x", "1,x", "1, ", "1,5 ", "1,-"] {
            assert_eq!(filter(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn lists_have_a_format_and_several_filters() {
        assert_eq!(list(b"[3]1,2|4"), Some((3, vec![(1, vec![2]), (4, vec![])])));
        assert_eq!(list(b"7|"), Some((0, vec![(7, vec![])])));
        assert_eq!(list(b""), Some((0, vec![])));
        assert_eq!(list(b"1||2"), None);
        assert_eq!(list(b"[3"), None);
    }
}
