//! Formats of C's `printf`, as the attribute `C_format` of a variable gives one for its values.
//!
//! One conversion per format, with literal text around it. A format that C leaves undefined for the
//! type of the variable (`%d` for a `double`) is not applied.

use std::io::Write;

use zonda::ExtType;

use super::digits;
use super::value::CdlValue;

/// The largest width and precision. Without a limit, a format of a few characters could ask for
/// gigabytes.
const MOST: usize = 1000;

/// A format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CFormat {
    before: Vec<u8>,
    conversion: Option<Conversion>,
    after: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// Bits of the integer that the length modifier names.
    bits: u32,
    letter: u8,
}

impl CFormat {
    /// The format in `text` for values of type `ty`; `None` if it cannot be applied, and for `%s` and
    /// an empty format for characters, which are strings.
    pub(crate) fn parse(text: &[u8], ty: ExtType) -> Option<CFormat> {
        // For C the string ends at a NUL.
        let text = text.split(|&byte| byte == 0).next().unwrap_or(text);
        let mut format = CFormat { before: Vec::new(), conversion: None, after: Vec::new() };
        let mut rest = text;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            let literal =
                if format.conversion.is_some() { &mut format.after } else { &mut format.before };
            if byte != b'%' {
                literal.push(byte);
            } else if let Some(tail) = tail.strip_prefix(b"%") {
                rest = tail;
                literal.push(b'%');
            } else if format.conversion.is_some() {
                return None;
            } else {
                let (conversion, tail) = Conversion::parse(tail)?;
                format.conversion = Some(conversion);
                rest = tail;
            }
        }
        let fits = match (format.conversion, ty) {
            (None, ExtType::Char) => !text.is_empty(),
            (None, _) => true,
            (Some(conversion), ExtType::Float | ExtType::Double) => {
                matches!(conversion.letter, b'e' | b'E' | b'f' | b'F' | b'g' | b'G')
            }
            (Some(conversion), _) => {
                matches!(conversion.letter, b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c')
            }
        };
        fits.then_some(format)
    }

    /// Appends a value. Floating-point values have to be finite.
    pub(crate) fn push(&self, out: &mut Vec<u8>, value: CdlValue) {
        out.extend_from_slice(&self.before);
        if let Some(conversion) = &self.conversion {
            let whole = match value {
                CdlValue::Float(value) => return self.push_float(out, conversion, value.into()),
                CdlValue::Double(value) => return self.push_float(out, conversion, value),
                CdlValue::Int(value) => value,
                CdlValue::UInt(value) => value.cast_signed(),
                // The reference's `char` is signed.
                CdlValue::Char(byte) => byte.cast_signed().into(),
            };
            if conversion.letter == b'c' {
                let [byte, ..] = whole.to_le_bytes();
                if byte == 0 {
                    // C's string ends at this NUL.
                    return;
                }
                conversion.pad(out, "", &[byte], false);
            } else {
                conversion.push_integer(out, whole);
            }
        }
        out.extend_from_slice(&self.after);
    }

    fn push_float(&self, out: &mut Vec<u8>, conversion: &Conversion, value: f64) {
        conversion.push_float(out, value);
        out.extend_from_slice(&self.after);
    }
}

impl Conversion {
    fn parse(text: &[u8]) -> Option<(Conversion, &[u8])> {
        let mut conversion = Conversion {
            left: false,
            plus: false,
            space: false,
            alternate: false,
            zeros: false,
            width: 0,
            precision: None,
            bits: 32,
            letter: 0,
        };
        let mut rest = text;
        loop {
            let (&byte, tail) = rest.split_first()?;
            match byte {
                b'-' => conversion.left = true,
                b'+' => conversion.plus = true,
                b' ' => conversion.space = true,
                b'#' => conversion.alternate = true,
                b'0' => conversion.zeros = true,
                _ => break,
            }
            rest = tail;
        }
        (conversion.width, rest) = number(rest)?;
        if let Some(tail) = rest.strip_prefix(b".") {
            let (precision, tail) = number(tail)?;
            conversion.precision = Some(precision);
            rest = tail;
        }
        for (modifier, bits) in [
            (&b"hh"[..], 8),
            (b"h", 16),
            (b"ll", 64),
            (b"l", 64),
            (b"j", 64),
            (b"z", 64),
            (b"L", 64),
        ] {
            if let Some(tail) = rest.strip_prefix(modifier) {
                conversion.bits = bits;
                rest = tail;
                break;
            }
        }
        let (&letter, tail) = rest.split_first()?;
        conversion.letter = letter;
        Some((conversion, tail))
    }

    fn push_integer(&self, out: &mut Vec<u8>, value: i64) {
        let unused = 64 - self.bits;
        let signed = (value << unused) >> unused;
        let unsigned = (value.cast_unsigned() << unused) >> unused;
        let (sign, prefix, digits) = match self.letter {
            b'd' | b'i' => (self.sign(signed < 0), "", signed.unsigned_abs().to_string()),
            b'x' => ("", "0x", format!("{unsigned:x}")),
            b'X' => ("", "0X", format!("{unsigned:X}")),
            b'o' => ("", "0", format!("{unsigned:o}")),
            _ => ("", "", unsigned.to_string()),
        };
        let mut digits = match self.precision {
            Some(0) if digits == "0" => String::new(),
            Some(least) => format!("{digits:0>least$}"),
            None => digits,
        };
        let mut lead = sign.to_owned();
        if self.alternate && self.letter == b'o' {
            if !digits.starts_with('0') {
                digits.insert(0, '0');
            }
        } else if self.alternate && unsigned != 0 {
            lead.push_str(prefix);
        }
        self.pad(out, &lead, digits.as_bytes(), self.zeros && self.precision.is_none());
    }

    fn push_float(&self, out: &mut Vec<u8>, value: f64) {
        let digits = self.precision.unwrap_or(6);
        let size = value.abs();
        let mut text = Vec::new();
        match self.letter {
            b'f' | b'F' => {
                let _ = write!(text, "{size:.digits$}");
                if self.alternate && digits == 0 {
                    text.push(b'.');
                }
            }
            b'e' | b'E' => {
                let (mantissa, exponent) = scientific(size, digits);
                text.extend_from_slice(mantissa.as_bytes());
                if self.alternate && digits == 0 {
                    text.push(b'.');
                }
                push_exponent(&mut text, exponent);
            }
            _ => push_general(&mut text, size, digits, self.alternate, self.alternate),
        }
        if self.letter.is_ascii_uppercase() {
            text.make_ascii_uppercase();
        }
        self.pad(out, self.sign(value.is_sign_negative()), &text, self.zeros);
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.plus, self.space) {
            (true, _, _) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        }
    }

    fn pad(&self, out: &mut Vec<u8>, lead: &str, text: &[u8], zeros: bool) {
        let missing = self.width.saturating_sub(lead.len() + text.len());
        let fill = |out: &mut Vec<u8>, byte| out.extend(std::iter::repeat_n(byte, missing));
        if !self.left && !zeros {
            fill(out, b' ');
        }
        out.extend_from_slice(lead.as_bytes());
        if !self.left && zeros {
            fill(out, b'0');
        }
        out.extend_from_slice(text);
        if self.left {
            fill(out, b' ');
        }
    }
}

/// The decimal number at the start, 0 if there is none; `None` beyond [`MOST`].
fn number(text: &[u8]) -> Option<(usize, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let mut value = 0usize;
    for &digit in &text[..end] {
        value = value * 10 + usize::from(digit - b'0');
        if value > MOST {
            return None;
        }
    }
    Some((value, &text[end..]))
}

/// Mantissa with `decimals` digits after the point, and exponent. The digits are rounded exactly.
fn scientific(value: f64, decimals: usize) -> (String, i32) {
    let mut text = format!("{value:.decimals$e}");
    let at = text.find('e').unwrap_or(text.len());
    let exponent = text[at..].trim_start_matches('e').parse().unwrap_or(0);
    text.truncate(at);
    (text, exponent)
}

fn push_exponent(out: &mut Vec<u8>, exponent: i32) {
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
}

/// Appends a finite value as `%.{digits}g`: the shorter of fixed and scientific notation.
///
/// With `keep_zeros` all digits are written, with `keep_point` also the point after the last; the
/// two are `%#g`.
pub(crate) fn push_general(
    out: &mut Vec<u8>,
    value: f64,
    digits: usize,
    keep_zeros: bool,
    keep_point: bool,
) {
    let digits = digits.max(1);
    let mut text = [0; digits::ROOM];
    if !keep_zeros
        && !keep_point
        && let Some(len) = digits::general(&mut text, value, digits)
    {
        return out.extend_from_slice(&text[..len]);
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let size = value.abs();
    let keep = keep_zeros || keep_point;
    if let Some((all, exponent)) = quickly(size, digits) {
        let text = digits::text(all);
        return lay_out(out, &text[text.len() - digits..], exponent, keep);
    }
    let (mantissa, exponent) = scientific(size, digits - 1);
    let all: Vec<u8> = mantissa.bytes().filter(|&byte| byte != b'.').collect();
    lay_out(out, &all, exponent, keep);
}

/// The digits of a value that is not negative, and the power of ten of the first digit; `None`
/// where the fast way is not certain.
fn quickly(size: f64, digits: usize) -> Option<(u64, i32)> {
    match digits {
        _ if size == 0.0 && digits <= digits::MOST => Some((0, 0)),
        1..=digits::MOST => digits::of(size, digits),
        _ => None,
    }
}

/// Bytes for a number that is written in one piece: sign, zeros, digits, exponent.
const WIDE: usize = 32;

/// Appends digits as `%g` does. The first digit stands for the power of ten `exponent`. Zeros at
/// the end are left out unless `keep` is set.
fn lay_out(out: &mut Vec<u8>, digits: &[u8], exponent: i32, keep: bool) {
    let fixed = exponent >= -4 && i32::try_from(digits.len()).is_ok_and(|len| exponent < len);
    // How many digits stand before the point.
    let before = if fixed { exponent + 1 } else { 1 };
    let least = usize::try_from(before).unwrap_or(0);
    let mut len = digits.len();
    while !keep && len > least && digits[len - 1] == b'0' {
        len -= 1;
    }
    let digits = &digits[..len];
    if digits.len() + 6 > WIDE {
        return lay_out_long(out, digits, before, (!fixed).then_some(exponent), keep);
    }
    // The text is made in one piece, because appending takes most of the time.
    let mut text = [b'0'; WIDE];
    let end = if before <= 0 {
        // A point and zeros stand before the first digit.
        let zeros = 2 + before.unsigned_abs() as usize;
        text[1] = b'.';
        text[zeros..zeros + len].copy_from_slice(digits);
        // A zero has no digits but the one before the point.
        if len == 0 { 1 } else { zeros + len }
    } else {
        let (whole, fraction) = digits.split_at(least);
        text[..least].copy_from_slice(whole);
        text[least] = b'.';
        text[least + 1..=len].copy_from_slice(fraction);
        if len > least || keep { len + 1 } else { least }
    };
    if fixed {
        out.extend_from_slice(&text[..end]);
        return;
    }
    text[end] = b'e';
    text[end + 1] = if exponent < 0 { b'-' } else { b'+' };
    let size = exponent.unsigned_abs();
    let mut end = end + 2;
    for (divisor, least) in [(100, 100), (10, 0), (1, 0)] {
        if size >= least {
            text[end] = b'0' + (size / divisor % 10) as u8;
            end += 1;
        }
    }
    out.extend_from_slice(&text[..end]);
}

/// The same as [`lay_out`] for any number of digits.
fn lay_out_long(out: &mut Vec<u8>, digits: &[u8], before: i32, exponent: Option<i32>, keep: bool) {
    let least = usize::try_from(before).unwrap_or(0);
    if before <= 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', before.unsigned_abs() as usize));
        out.extend_from_slice(digits);
        return;
    }
    let (whole, fraction) = digits.split_at(least);
    out.extend_from_slice(whole);
    if !fraction.is_empty() || keep {
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
    if let Some(exponent) = exponent {
        push_exponent(out, exponent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn general(value: f64, digits: usize) -> String {
        let mut out = Vec::new();
        push_general(&mut out, value, digits, false, false);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn general_notation() {
        for (value, digits, text) in [
            (0.0, 7, "0"),
            (-0.0, 7, "-0"),
            (1.0, 7, "1"),
            (0.0001, 7, "0.0001"),
            (0.00001, 7, "1e-05"),
            (1234567.0, 7, "1234567"),
            (12345678.0, 7, "1.234568e+07"),
            (9999999.6, 7, "1e+07"),
            (0.1, 17, "0.10000000000000001"),
            (2.5, 1, "2"),
            (3.5, 1, "4"),
            (1e300, 15, "1e+300"),
            (5e-324, 15, "4.94065645841247e-324"),
            (100.0, 3, "100"),
            (1000.0, 3, "1e+03"),
            (-1.5, 7, "-1.5"),
            (0.0001234, 2, "0.00012"),
            (1e22, 20, "1e+22"),
            (123456789012345678.0, 20, "123456789012345680"),
            (1.0 / 3.0, 20, "0.33333333333333331483"),
            (1e-5 / 3.0, 20, "3.3333333333333337472e-06"),
            (0.0001 / 3.0, 30, "3.33333333333333349307245341286e-05"),
        ] {
            assert_eq!(general(value, digits), text);
        }
    }

    #[test]
    fn both_ways_agree() {
        let mut bits = 1u64;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(11);
            let wild = f64::from_bits(bits);
            let tame = (bits >> 44) as f64 / 1024.0 - 300.0;
            for value in [wild, tame, tame.round(), tame * 1e-6] {
                if !value.is_finite() {
                    continue;
                }
                for digits in 1..=18 {
                    let (mantissa, exponent) = scientific(value.abs(), digits - 1);
                    let all: Vec<u8> = mantissa.bytes().filter(|&byte| byte != b'.').collect();
                    let mut slow = Vec::new();
                    if value.is_sign_negative() {
                        slow.push(b'-');
                    }
                    lay_out(&mut slow, &all, exponent, false);
                    let slow = String::from_utf8(slow).unwrap();
                    assert_eq!(general(value, digits), slow, "{value:e} in {digits} digits");
                }
            }
        }
    }

    fn apply(format: &str, ty: ExtType, value: CdlValue) -> Option<String> {
        let mut out = Vec::new();
        CFormat::parse(format.as_bytes(), ty)?.push(&mut out, value);
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn formats_of_c() {
        let double = |format, value| apply(format, ExtType::Double, CdlValue::Double(value));
        let int = |format, value| apply(format, ExtType::Int, CdlValue::Int(value));
        assert_eq!(double("%9.2f|", 3.1372).unwrap(), "     3.14|");
        assert_eq!(double("%-9.2e|", 31415.9).unwrap(), "3.14e+04 |");
        assert_eq!(double("%+08.3f", 1.5).unwrap(), "+001.500");
        assert_eq!(double("%G", 1e-10).unwrap(), "1E-10");
        assert_eq!(double("%#g", 1.0).unwrap(), "1.00000");
        assert_eq!(double("%5.0f%%", 12.5).unwrap(), "   12%");
        assert_eq!(double("%d", 1.0), None);
        assert_eq!(double("%f %f", 1.0), None);
        assert_eq!(double("%99999999f", 1.0), None);
        assert_eq!(int("%05d", -42).unwrap(), "-0042");
        assert_eq!(int("%.3d", 7).unwrap(), "007");
        assert_eq!(int("%#x", 255).unwrap(), "0xff");
        assert_eq!(int("%u", -1).unwrap(), "4294967295");
        assert_eq!(int("%lld", -1).unwrap(), "-1");
        assert_eq!(int("%#o", 8).unwrap(), "010");
        assert_eq!(int("%s", 8), None);
        assert_eq!(apply("%c", ExtType::Char, CdlValue::Char(b'x')).unwrap(), "x");
        assert_eq!(apply("%s", ExtType::Char, CdlValue::Char(b'x')), None);
    }
}
