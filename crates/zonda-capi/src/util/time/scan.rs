//! Reads text the way C's `scanf` does, which decides what the tools accept.

use std::ffi::CString;

/// What is left to read.
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

    /// Goes past `text`, if it is next.
    pub(super) fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// The next word up to white space.
    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        self.skip_space();
        self.take_until(is_space)
    }

    /// What is next up to a byte that `stops`, which is not taken; `None` if that is nothing.
    pub(super) fn take_until(&mut self, stops: impl Fn(u8) -> bool) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| stops(byte)).unwrap_or(self.0.len());
        let (taken, left) = self.0.split_at(end);
        self.0 = left;
        (!taken.is_empty()).then_some(taken)
    }

    /// A decimal number after white space; the nearest that there is, if it is too large.
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

    /// The floating-point number that is all that is looked for in what is left.
    pub(super) fn last_float(&self) -> Option<f64> {
        let text = CString::new(self.0).ok()?;
        let mut end = std::ptr::null_mut();
        // By C's function, so that hexadecimal numbers and the decimal point of the locale are
        // read as `scanf` reads them.
        // SAFETY: `text` is NUL-terminated, and `end` is valid for a write.
        let value = unsafe { libc::strtod(text.as_ptr(), &mut end) };
        (!std::ptr::eq(end, text.as_ptr())).then_some(value)
    }
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
        assert_eq!(Scan(b"0x10").last_float(), Some(16.0));
        assert_eq!(Scan(b".").last_float(), None);
        let mut scan = Scan(b" \x0bone two");
        assert_eq!(scan.word(), Some(&b"one"[..]));
        assert_eq!(scan.word(), Some(&b"two"[..]));
        assert_eq!(scan.word(), None);
    }
}
