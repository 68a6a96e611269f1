//! Values in CDL.

use zonda::{ExtType, default_fill};

use super::cformat::{CFormat, push_general};
use super::digits;
use super::times::Times;
use super::value::CdlValue;
use crate::tuning::TEXT_BYTES_PER_ELEM;

/// Significant digits of floating-point values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    /// Number of digits, 1 to 20.
    pub(crate) number: usize,
    /// Whether they take precedence over the `C_format` of a variable.
    pub(crate) forced: bool,
}

/// Significant digits of floating-point values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Precision {
    /// Of `float`.
    pub(crate) float: Digits,
    /// Of `double`.
    pub(crate) double: Digits,
}

impl Default for Precision {
    fn default() -> Precision {
        let digits = |number| Digits { number, forced: false };
        Precision { float: digits(7), double: digits(15) }
    }
}

/// Appends an attribute's value, with the suffix that tells its type.
pub(crate) fn push_att_value(
    out: &mut Vec<u8>,
    ty: ExtType,
    value: CdlValue,
    precision: Precision,
) {
    if let Some(text) = value.special() {
        return out.extend_from_slice(text.as_bytes());
    }
    match value {
        CdlValue::Float(value) => {
            push_with_point(out, value.into(), precision.float.number);
            out.push(b'f');
        }
        CdlValue::Double(value) => push_with_point(out, value, precision.double.number),
        CdlValue::Char(byte) => out.push(byte),
        CdlValue::Int(_) | CdlValue::UInt(_) => {
            push_integer(out, value);
            out.extend_from_slice(suffix(ty));
        }
    }
}

fn suffix(ty: ExtType) -> &'static [u8] {
    match ty {
        ExtType::Byte => b"b",
        ExtType::Short => b"s",
        ExtType::UByte => b"UB",
        ExtType::UShort => b"US",
        ExtType::UInt => b"U",
        ExtType::Int64 => b"LL",
        ExtType::UInt64 => b"ULL",
        ExtType::Char | ExtType::Int | ExtType::Float | ExtType::Double => b"",
    }
}

fn push_integer(out: &mut Vec<u8>, value: CdlValue) {
    match value {
        CdlValue::Int(value) => digits::push_integer(out, value.unsigned_abs(), value < 0),
        CdlValue::UInt(value) => digits::push_integer(out, value, false),
        _ => {}
    }
}

/// The value with a decimal point always and without zeros at the end of its fraction, as attributes
/// show that they are not integers: `1.`, `1.e+20`.
pub(crate) fn push_with_point(out: &mut Vec<u8>, value: f64, digits: usize) {
    let mut text = Vec::new();
    push_general(&mut text, value, digits, true, false);
    let exponent = text.iter().position(|&byte| byte == b'e').unwrap_or(text.len());
    let mantissa = &text[..exponent];
    let kept = mantissa.iter().rposition(|&byte| byte != b'0').map_or(0, |last| last + 1);
    out.extend_from_slice(&mantissa[..kept]);
    out.extend_from_slice(&text[exponent..]);
}

/// How the values of one variable are written.
#[derive(Debug)]
pub(crate) struct ValueFormat {
    ty: ExtType,
    custom: Option<CFormat>,
    digits: usize,
    fill: Option<CdlValue>,
    /// Set if numbers are written as dates.
    times: Option<Times>,
}

impl ValueFormat {
    /// For a variable of type `ty` with these attributes: `C_format` as text, and `_FillValue` as one
    /// element in native bytes; `times` if its numbers are to be written as dates.
    pub(crate) fn new(
        ty: ExtType,
        c_format: Option<&[u8]>,
        fill: Option<&[u8]>,
        times: Option<Times>,
        precision: Precision,
    ) -> ValueFormat {
        let forced = match ty {
            ExtType::Float => precision.float.forced,
            ExtType::Double => precision.double.forced,
            _ => false,
        };
        let custom = c_format.filter(|_| !forced).and_then(|text| CFormat::parse(text, ty));
        let digits = match ty {
            ExtType::Float => precision.float.number,
            _ => precision.double.number,
        };
        let fill = match (fill, ty) {
            (Some(bytes), _) => Some(CdlValue::native(ty, bytes)),
            // Every byte may be a value, so bytes have no default fill value.
            (None, ExtType::Byte | ExtType::UByte) => None,
            (None, _) => Some(CdlValue::native(ty, &default_fill(ty))),
        };
        ValueFormat { ty, custom, digits, fill, times: times.filter(|_| ty != ExtType::Char) }
    }

    /// Whether rows of characters are written as strings.
    pub(crate) fn is_text(&self) -> bool {
        self.ty == ExtType::Char && self.custom.is_none()
    }

    /// Appends a value of the data section; `_` for the fill value.
    pub(crate) fn push(&self, out: &mut Vec<u8>, element: &[u8]) {
        let value = CdlValue::native(self.ty, element);
        if self.fill.is_some_and(|fill| is_fill(fill, value)) {
            out.push(b'_');
            return;
        }
        if let Some(times) = &self.times {
            return times.push(out, value);
        }
        if let Some(text) = value.special() {
            out.extend_from_slice(text.as_bytes());
            return;
        }
        match &self.custom {
            Some(custom) => custom.push(out, value),
            None => push_digits(out, value, self.digits),
        }
    }
}

/// Text of elements that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Texts {
    /// The texts one after the other, with a comma and a space after each that does not end its
    /// row.
    pub(super) text: Vec<u8>,
    /// Bytes of each text.
    pub(super) lens: Vec<u16>,
}

impl ValueFormat {
    /// The text of elements of `size` bytes. The first one is at `column` of a row.
    pub(super) fn texts(&self, bytes: &[u8], size: usize, column: usize, row_len: usize) -> Texts {
        let n_elems = bytes.len() / size;
        if self.is_plain() {
            return match size {
                1 => self.plain_texts::<1>(bytes, column, row_len),
                2 => self.plain_texts::<2>(bytes, column, row_len),
                4 => self.plain_texts::<4>(bytes, column, row_len),
                _ => self.plain_texts::<8>(bytes, column, row_len),
            };
        }
        let mut text = Vec::with_capacity(n_elems * TEXT_BYTES_PER_ELEM);
        let mut lens = Vec::with_capacity(n_elems);
        let mut left = row_len - column;
        for element in bytes.chunks_exact(size) {
            let start = text.len();
            self.push(&mut text, element);
            left -= 1;
            if left == 0 {
                left = row_len;
            } else {
                text.extend_from_slice(b", ");
            }
            // The widest valid formats make some thousand bytes.
            lens.push(u16::try_from(text.len() - start).unwrap_or(u16::MAX));
        }
        Texts { text, lens }
    }

    /// Whether values are numbers without a `C_format` or dates.
    fn is_plain(&self) -> bool {
        self.ty != ExtType::Char && self.custom.is_none() && self.times.is_none()
    }

    /// [`ValueFormat::texts`] for plain numbers of `N` bytes.
    fn plain_texts<const N: usize>(&self, bytes: &[u8], column: usize, row_len: usize) -> Texts {
        /// Bytes for a value and its delimiter.
        const ROOM: usize = digits::ROOM + 2;
        let elements = bytes.as_chunks::<N>().0;
        let mut text = vec![0; elements.len() * TEXT_BYTES_PER_ELEM + ROOM];
        let mut lens = Vec::with_capacity(elements.len());
        let mut other = Vec::new();
        let mut end = 0;
        let mut left = row_len - column;
        for element in elements {
            if end + ROOM > text.len() {
                text.resize(2 * text.len(), 0);
            }
            let value = CdlValue::native(self.ty, element);
            let start = end;
            let room = text[end..].first_chunk_mut();
            let is_fill = self.fill.is_some_and(|fill| is_fill(fill, value));
            end += room
                .filter(|_| !is_fill)
                .and_then(|room| match value {
                    CdlValue::Float(value) => digits::general(room, value.into(), self.digits),
                    CdlValue::Double(value) => digits::general(room, value, self.digits),
                    CdlValue::Int(value) => digits::integer(room, value.unsigned_abs(), value < 0),
                    CdlValue::UInt(value) => digits::integer(room, value, false),
                    CdlValue::Char(_) => None,
                })
                .unwrap_or_else(|| {
                    // `_` and other special texts, and numbers of up to 20 digits. They are no
                    // longer than the others.
                    other.clear();
                    self.push(&mut other, element);
                    text[end..end + other.len()].copy_from_slice(&other);
                    other.len()
                });
            left -= 1;
            if left == 0 {
                left = row_len;
            } else {
                (text[end], text[end + 1]) = (b',', b' ');
                end += 2;
            }
            lens.push((end - start) as u16);
        }
        text.truncate(end);
        Texts { text, lens }
    }
}

/// Appends a finite value.
fn push_digits(out: &mut Vec<u8>, value: CdlValue, digits: usize) {
    match value {
        CdlValue::Float(value) => push_general(out, value.into(), digits, false, false),
        CdlValue::Double(value) => push_general(out, value, digits, false, false),
        CdlValue::Char(byte) => out.push(byte),
        CdlValue::Int(_) | CdlValue::UInt(_) => push_integer(out, value),
    }
}

/// Appends a value within a value of a user-defined type. Attributes of the variable do not apply
/// to it.
pub(crate) fn push_plain(out: &mut Vec<u8>, value: CdlValue, precision: Precision) {
    let digits = match value {
        // A NUL ends C's string.
        CdlValue::Char(0) => return,
        CdlValue::Float(_) => precision.float.number,
        _ => precision.double.number,
    };
    match value.special() {
        Some(text) => out.extend_from_slice(text.as_bytes()),
        None => push_digits(out, value, digits),
    }
}

/// Whether a value is the fill value. Floating-point values may differ by one unit in the last
/// place, and all NaNs are equal.
#[inline]
pub(crate) fn is_fill(fill: CdlValue, value: CdlValue) -> bool {
    match (fill, value) {
        (CdlValue::Float(fill), CdlValue::Float(value)) => {
            if (fill > 0.0) != (value > 0.0) {
                false
            } else if fill.is_finite() && value.is_finite() {
                (fill - value).abs() <= (f32::EPSILON * value).abs()
            } else {
                (fill.is_nan() && value.is_nan()) || (fill.is_infinite() && value.is_infinite())
            }
        }
        (CdlValue::Double(fill), CdlValue::Double(value)) => {
            if (fill > 0.0) != (value > 0.0) {
                false
            } else if fill.is_finite() && value.is_finite() {
                (fill - value).abs() <= (f64::EPSILON * value).abs()
            } else {
                (fill.is_nan() && value.is_nan()) || (fill.is_infinite() && value.is_infinite())
            }
        }
        (fill, value) => fill == value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn att(ty: ExtType, value: CdlValue) -> String {
        let mut out = Vec::new();
        push_att_value(&mut out, ty, value, Precision::default());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn attributes_show_their_type() {
        assert_eq!(att(ExtType::Byte, CdlValue::Int(-1)), "-1b");
        assert_eq!(att(ExtType::UInt64, CdlValue::UInt(u64::MAX)), "18446744073709551615ULL");
        assert_eq!(att(ExtType::Float, CdlValue::Float(1.0)), "1.f");
        assert_eq!(att(ExtType::Float, CdlValue::Float(-0.5)), "-0.5f");
        assert_eq!(att(ExtType::Float, CdlValue::Float(1e20)), "1.e+20f");
        assert_eq!(att(ExtType::Double, CdlValue::Double(100.0)), "100.");
        assert_eq!(att(ExtType::Double, CdlValue::Double(1.5e-10)), "1.5e-10");
        assert_eq!(att(ExtType::Float, CdlValue::Float(f32::NEG_INFINITY)), "-Infinityf");
        assert_eq!(att(ExtType::Double, CdlValue::Double(f64::NAN)), "NaN");
    }

    #[test]
    fn rows_end_without_a_comma() {
        let format = ValueFormat::new(ExtType::Short, None, None, None, Precision::default());
        let bytes: Vec<u8> = [1i16, -20, 300, -32767, 5].map(i16::to_ne_bytes).concat();
        let Texts { text, lens } = format.texts(&bytes, 2, 2, 4);
        assert_eq!(String::from_utf8(text).unwrap(), "1, -20300, _, 5, ");
        assert_eq!(lens, [3, 3, 5, 3, 3]);
    }

    #[test]
    fn fill_values_are_recognised() {
        let format = ValueFormat::new(ExtType::Float, None, None, None, Precision::default());
        let text = |value: f32| {
            let mut out = Vec::new();
            format.push(&mut out, &value.to_ne_bytes());
            String::from_utf8(out).unwrap()
        };
        let fill = f32::from_bits(0x7CF0_0000);
        assert_eq!(text(fill), "_");
        assert_eq!(text(f32::from_bits(0x7CF0_0001)), "_");
        assert_eq!(text(f32::from_bits(0x7CF0_0004)), "9.969213e+36");
        assert_eq!(text(-fill), "-9.96921e+36");
        assert_eq!(text(0.1), "0.1");
        let bytes = ValueFormat::new(ExtType::Byte, None, None, None, Precision::default());
        let mut out = Vec::new();
        bytes.push(&mut out, &[0x81]);
        assert_eq!(out, b"-127");
    }
}
