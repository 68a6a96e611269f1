//! Numbers: integers with suffixes, floating-point numbers, hexadecimal ones.
//!
//! An integer is of the type of its suffix (b s l ll, each with u before or behind); without one it is
//! an int, or the smallest larger type that holds it. It is octal with a leading 0. Values that a
//! suffix has no room for lose their upper bits, as `255b` always has.

use crate::constant::NumberConstant;

/// A number at the beginning of a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Lexeme {
    /// A number.
    Number(NumberConstant),
    /// Hexadecimal digits without a suffix.
    Opaque,
    /// Something that begins like a number, and why it is none.
    Bad(&'static str),
}

/// A suffix of integers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Suffix {
    None,
    Byte,
    Short,
    Int,
    Int64,
}

/// The number at the beginning of `text`, and its length. `text` begins with a digit, a sign or a
/// dot, and reaches at least to the end of the number.
pub(crate) fn lex(text: &[u8]) -> (Lexeme, usize) {
    if let [b'0', b'x' | b'X', digits @ ..] = text {
        let n = count(digits, u8::is_ascii_hexdigit);
        if n > 0 {
            return hexadecimal(&digits[..n], &digits[n..]);
        }
    }
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let whole = count(&text[sign..], u8::is_ascii_digit);
    let mut len = sign + whole;
    let has_point = text.get(len) == Some(&b'.');
    let mut n_digits = whole;
    if has_point {
        let fraction = count(&text[len + 1..], u8::is_ascii_digit);
        n_digits += fraction;
        len += 1 + fraction;
    }
    let exponent = exponent(&text[len..]);
    len += exponent;
    if n_digits == 0 {
        return (Lexeme::Bad("a number has digits"), len.max(1));
    }
    if !has_point && exponent == 0 && !matches!(text.get(len), Some(b'f' | b'F')) {
        return integer(&text[..len], &text[len..]);
    }
    let digits = std::str::from_utf8(&text[..len]).unwrap_or_default();
    match text.get(len) {
        Some(b'f' | b'F') => (of(digits.parse().map(NumberConstant::Float)), len + 1),
        Some(b'd' | b'D' | b'l' | b'L') => {
            (of(digits.parse().map(NumberConstant::Double)), len + 1)
        }
        _ => (of(digits.parse().map(NumberConstant::Double)), len),
    }
}

fn of<E>(number: Result<NumberConstant, E>) -> Lexeme {
    number.map_or(Lexeme::Bad("this is no number"), Lexeme::Number)
}

fn count(text: &[u8], is_one: fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| is_one(byte)).count()
}

/// Length of an exponent at the beginning; 0 if there is none.
fn exponent(text: &[u8]) -> usize {
    let [b'e' | b'E', after @ ..] = text else { return 0 };
    let sign = usize::from(matches!(after.first(), Some(b'+' | b'-')));
    match count(&after[sign..], u8::is_ascii_digit) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

/// The suffix of an integer, whether it is unsigned, and its length.
fn suffix(text: &[u8]) -> (Suffix, bool, usize) {
    let is_u = |at: usize| matches!(text.get(at), Some(b'u' | b'U'));
    let before = usize::from(is_u(0));
    let (suffix, len) = match text.get(before..).unwrap_or_default() {
        [b'b' | b'B', ..] => (Suffix::Byte, 1),
        [b's' | b'S', ..] => (Suffix::Short, 1),
        [b'l' | b'L', b'l' | b'L', ..] => (Suffix::Int64, 2),
        [b'l' | b'L', ..] => (Suffix::Int, 1),
        _ => (Suffix::None, 0),
    };
    let behind = usize::from(before == 0 && len > 0 && is_u(len));
    (suffix, before + behind > 0, before + len + behind)
}

fn integer(text: &[u8], after: &[u8]) -> (Lexeme, usize) {
    let (suffix, unsigned, suffix_len) = suffix(after);
    let len = text.len() + suffix_len;
    let negative = text.first() == Some(&b'-');
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    // An octal number ends before a digit 8 or 9; what follows does not count, as in C.
    let (digits, radix) = match digits {
        [b'0', ..] => (&digits[..count(digits, |byte| (b'0'..=b'7').contains(byte))], 8),
        _ => (digits, 10),
    };
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    let Ok(value) = u64::from_str_radix(digits, radix) else {
        return (Lexeme::Bad("this integer is out of range: it has more than 64 bits"), len);
    };
    if negative && unsigned {
        return (Lexeme::Bad("an unsigned integer cannot be negative"), len);
    }
    (typed(value, negative, suffix, unsigned), len)
}

fn hexadecimal(digits: &[u8], after: &[u8]) -> (Lexeme, usize) {
    let (_, _, suffix_len) = match after.first() {
        // There are only these suffixes, because b is a digit.
        Some(b's' | b'S' | b'l' | b'L' | b'u' | b'U') => suffix(after),
        _ => return (Lexeme::Opaque, 2 + digits.len()),
    };
    let len = 2 + digits.len() + suffix_len;
    let (suffix, unsigned, _) = suffix(after);
    // Leading digits that do not fit are dropped.
    let last = &digits[digits.len().saturating_sub(16)..];
    let value = u64::from_str_radix(std::str::from_utf8(last).unwrap_or_default(), 16);
    (typed(value.unwrap_or(0), false, suffix, unsigned), len)
}

/// Gives a value the type of its suffix. A value that does not fit loses its upper bits.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]
fn typed(value: u64, negative: bool, suffix: Suffix, unsigned: bool) -> Lexeme {
    let signed = if negative { (value as i64).wrapping_neg() } else { value as i64 };
    let too_small = negative && value > 1 << 63;
    if too_small && suffix == Suffix::None {
        return Lexeme::Bad("this integer is out of range: it has more than 64 bits");
    }
    Lexeme::Number(match (suffix, unsigned) {
        (Suffix::Byte, false) => NumberConstant::Byte(signed as i8),
        (Suffix::Byte, true) => NumberConstant::UByte(signed as u8),
        (Suffix::Short, false) => NumberConstant::Short(signed as i16),
        (Suffix::Short, true) => NumberConstant::UShort(signed as u16),
        (Suffix::Int, false) => NumberConstant::Int(signed as i32),
        (Suffix::Int | Suffix::None, true) if u32::try_from(value).is_err() => {
            return Lexeme::Bad("this integer is out of range of an unsigned int");
        }
        (Suffix::Int | Suffix::None, true) => NumberConstant::UInt(value as u32),
        (Suffix::Int64, false) => NumberConstant::Int64(signed),
        (Suffix::Int64, true) => NumberConstant::UInt64(value),
        (Suffix::None, false) => smallest(value, signed, negative),
    })
}

/// The type of an integer without a suffix.
fn smallest(value: u64, signed: i64, negative: bool) -> NumberConstant {
    let int = if negative { i32::try_from(signed).ok() } else { i32::try_from(value).ok() };
    match (int, u32::try_from(value)) {
        (Some(int), _) => NumberConstant::Int(int),
        (None, _) if negative => NumberConstant::Int64(signed),
        (None, Ok(uint)) => NumberConstant::UInt(uint),
        (None, Err(_)) => NumberConstant::UInt64(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Option<NumberConstant> {
        match lex(text.as_bytes()) {
            (Lexeme::Number(number), len) if len == text.len() => Some(number),
            _ => None,
        }
    }

    #[test]
    fn integers() {
        for (text, value) in [
            ("0", NumberConstant::Int(0)),
            ("-0", NumberConstant::Int(0)),
            ("+12", NumberConstant::Int(12)),
            ("-010", NumberConstant::Int(-8)),
            ("09", NumberConstant::Int(0)),
            ("12b", NumberConstant::Byte(12)),
            ("255b", NumberConstant::Byte(-1)),
            ("-1B", NumberConstant::Byte(-1)),
            ("65535s", NumberConstant::Short(-1)),
            ("5L", NumberConstant::Int(5)),
            ("5ll", NumberConstant::Int64(5)),
            ("-5LL", NumberConstant::Int64(-5)),
            ("3ub", NumberConstant::UByte(3)),
            ("100su", NumberConstant::UShort(100)),
            ("7U", NumberConstant::UInt(7)),
            ("7ul", NumberConstant::UInt(7)),
            ("10llu", NumberConstant::UInt64(10)),
            ("2147483647", NumberConstant::Int(i32::MAX)),
            ("-2147483648", NumberConstant::Int(i32::MIN)),
            ("2147483648", NumberConstant::UInt(1 << 31)),
            ("-2147483649", NumberConstant::Int64(-2_147_483_649)),
            ("4294967296", NumberConstant::UInt64(1 << 32)),
            ("18446744073709551615", NumberConstant::UInt64(u64::MAX)),
            ("-9223372036854775808", NumberConstant::Int64(i64::MIN)),
            ("0x7ffs", NumberConstant::Short(0x7ff)),
            ("0xffffffffull", NumberConstant::UInt64(0xffff_ffff)),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in ["18446744073709551616", "-9223372036854775809", "-1u", "4294967296u", "-", "+"]
        {
            assert!(matches!(lex(text.as_bytes()).0, Lexeme::Bad(_)), "{text}");
        }
        assert_eq!(lex(b"0x1b "), (Lexeme::Opaque, 4));
        assert_eq!(lex(b"0xg"), (Lexeme::Number(NumberConstant::Int(0)), 1));
        assert_eq!(lex(b"12 "), (Lexeme::Number(NumberConstant::Int(12)), 2));
    }

    #[test]
    fn floating_point() {
        for (text, value) in [
            ("1.", NumberConstant::Double(1.0)),
            (".5", NumberConstant::Double(0.5)),
            ("-1.5e-3", NumberConstant::Double(-1.5e-3)),
            ("1e3", NumberConstant::Double(1e3)),
            ("1.d", NumberConstant::Double(1.0)),
            ("2.5L", NumberConstant::Double(2.5)),
            ("1e999", NumberConstant::Double(f64::INFINITY)),
            ("1.1f", NumberConstant::Float(1.1)),
            ("1e-3F", NumberConstant::Float(1e-3)),
            ("1f", NumberConstant::Float(1.0)),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in [".", "-.e5", "+."] {
            assert!(matches!(lex(text.as_bytes()).0, Lexeme::Bad(_)), "{text}");
        }
        assert_eq!(lex(b"1e+x").1, 1);
    }
}
