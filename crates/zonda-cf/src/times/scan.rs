//! Reads text the way C's `scanf` does, which decides what the tools accept.

/// The text that is not read yet.
#[derive(Clone, Debug)]
pub(super) struct Scan<'a>(pub(super) &'a [u8]);

/// White space of C's own locale.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

impl<'a> Scan<'a> {
    pub(super) fn skip_space(&mut self) {
        let end = self.0.iter().position(|&byte| !is_space(byte)).unwrap_or(self.0.len());
        self.0 = &self.0[end..];
    }

    /// Moves past `text` if it is next.
    pub(super) fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// The next word up to white space.
    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        self.skip_space();
        self.take_until(is_space)
    }

    /// The text up to a byte that `stops`, which is not read; `None` if there is none.
    pub(super) fn take_until(&mut self, stops: impl Fn(u8) -> bool) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| stops(byte)).unwrap_or(self.0.len());
        let (taken, left) = self.0.split_at(end);
        self.0 = left;
        (!taken.is_empty()).then_some(taken)
    }

    /// A decimal integer after white space. One that is too large becomes the nearest.
    pub(super) fn integer(&mut self) -> Option<i64> {
        self.skip_space();
        let (negative, digits) = match self.0 {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        let mut digits = Scan(digits);
        let taken = digits.take_until(|byte| !byte.is_ascii_digit())?;
        self.0 = digits.0;
        Some(taken.iter().fold(0_i64, |value, digit| {
            let digit = i64::from(digit - b'0');
            value.saturating_mul(10).saturating_add(if negative { -digit } else { digit })
        }))
    }

    /// The floating-point number that is all that is looked for in what is left: decimal,
    /// hexadecimal, an infinity or not a number.
    pub(super) fn last_float(&self) -> Option<f64> {
        let mut scan = self.clone();
        scan.skip_space();
        let (negative, digits) = match scan.0 {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        let begins = |with: &[u8]| {
            digits.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
        };
        let value = if begins(b"inf") {
            f64::INFINITY
        } else if begins(b"nan") {
            f64::NAN
        } else {
            let hexadecimal = if begins(b"0x") { hexadecimal(&digits[2..]) } else { None };
            hexadecimal.or_else(|| decimal(digits))?
        };
        Some(if negative { -value } else { value })
    }
}

/// Digits before and after a point, and how many bytes they are with it.
fn mantissa(text: &[u8], is_digit: impl Fn(u8) -> bool) -> Option<(&[u8], &[u8], usize)> {
    let run = |text: &[u8]| text.iter().position(|&byte| !is_digit(byte)).unwrap_or(text.len());
    let (whole, rest) = text.split_at(run(text));
    let fraction = match rest {
        [b'.', fraction @ ..] => &fraction[..run(fraction)],
        _ => &[],
    };
    let len = whole.len() + usize::from(rest.first() == Some(&b'.')) + fraction.len();
    (!whole.is_empty() || !fraction.is_empty()).then_some((whole, fraction, len))
}

/// The exponent behind one of two letters, and its bytes; 0 and none where there is no number.
fn exponent(text: &[u8], letter: u8) -> (i64, usize) {
    let [first, rest @ ..] = text else { return (0, 0) };
    let signless = rest.strip_prefix(b"-").or_else(|| rest.strip_prefix(b"+")).unwrap_or(rest);
    let digits = signless.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(signless.len());
    if !first.eq_ignore_ascii_case(&letter) || digits == 0 {
        return (0, 0);
    }
    let len = 1 + rest.len() - signless.len() + digits;
    (Scan(rest).integer().unwrap_or(0), len)
}

fn decimal(text: &[u8]) -> Option<f64> {
    let (.., len) = mantissa(text, |byte| byte.is_ascii_digit())?;
    let (_, exponent_len) = exponent(&text[len..], b'e');
    std::str::from_utf8(&text[..len + exponent_len]).ok()?.parse().ok()
}

/// Digits beyond the 15th are ignored: a `double` has no more.
fn hexadecimal(text: &[u8]) -> Option<f64> {
    let (whole, fraction, len) = mantissa(text, |byte| byte.is_ascii_hexdigit())?;
    let (exponent, _) = exponent(&text[len..], b'p');
    let mut value = 0f64;
    let mut left = 15;
    let mut scale = exponent.clamp(-5000, 5000);
    for (digits, step) in [(whole, 0), (fraction, -4)] {
        for &digit in digits {
            let digit = char::from(digit).to_digit(16).unwrap_or(0);
            if left > 0 {
                value = value * 16.0 + f64::from(digit);
                scale += step;
                left -= i32::from(value > 0.0);
            } else {
                scale += step + 4;
            }
        }
    }
    // The factor is applied in two parts, because as a whole it may be out of range although the
    // product is not.
    let half = i32::try_from(scale.clamp(-10_000, 10_000) / 2).unwrap_or(0);
    let rest = i32::try_from(scale.clamp(-10_000, 10_000)).unwrap_or(0) - half;
    Some(value * 2f64.powi(half) * 2f64.powi(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_as_scanf_reads_them() {
        for (text, value, left) in [
            ("12-", Some(12), "-"),
            (" \t+7 8", Some(7), " 8"),
            ("-0045", Some(-45), ""),
            ("99999999999999999999x", Some(i64::MAX), "x"),
            ("-99999999999999999999", Some(i64::MIN), ""),
            ("- 5", None, "- 5"),
            ("T", None, "T"),
            ("", None, ""),
        ] {
            let mut scan = Scan(text.as_bytes());
            assert_eq!(scan.integer(), value, "{text}");
            assert_eq!(scan.0, left.as_bytes(), "{text}");
        }
    }

    #[test]
    fn floats_and_words() {
        assert_eq!(Scan(b" 0.5e1Z").last_float(), Some(5.0));
        for (text, value) in [
            ("0x10", Some(16.0)),
            ("0x1.8p1", Some(3.0)),
            ("0x.4", Some(0.25)),
            ("0xg", Some(0.0)),
            ("1.e", Some(1.0)),
            (".5e-1x", Some(0.05)),
            ("-1e+", Some(-1.0)),
            ("5e400", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("e5", None),
            ("-", None),
        ] {
            assert_eq!(Scan(text.as_bytes()).last_float(), value, "{text}");
        }
        assert!(Scan(b"nan").last_float().is_some_and(f64::is_nan));
        assert_eq!(Scan(b".").last_float(), None);
        let mut scan = Scan(b" \x0bone two");
        assert_eq!(scan.word(), Some(&b"one"[..]));
        assert_eq!(scan.word(), Some(&b"two"[..]));
        assert_eq!(scan.word(), None);
    }
}
