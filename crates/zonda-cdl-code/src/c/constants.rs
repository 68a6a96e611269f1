//! Constants of C.

use zonda_cdl::general;
use zonda_model::ExtType;

use crate::names::{NativeNumber, number_in};

/// The type of C for an atomic type.
pub(crate) fn c_type(ext: ExtType) -> &'static str {
    match ext {
        ExtType::Byte => "signed char",
        ExtType::Char => "char",
        ExtType::Short => "short",
        ExtType::Int => "int",
        ExtType::Float => "float",
        ExtType::Double => "double",
        ExtType::UByte => "unsigned char",
        ExtType::UShort => "unsigned short",
        ExtType::UInt => "unsigned int",
        ExtType::Int64 => "signed long long",
        ExtType::UInt64 => "unsigned long long",
    }
}

/// The constant for an element in native bytes.
pub(crate) fn number(ext: ExtType, bytes: &[u8]) -> String {
    let special =
        |text: &str, negative: bool| if negative { format!("-{text}") } else { text.to_owned() };
    match number_in(ext, bytes) {
        // C makes a negative number of a constant and a sign, and has no constant for this magnitude.
        NativeNumber::Int(i64::MIN) => "(-9223372036854775807LL - 1)".to_owned(),
        NativeNumber::Int(value) if i32::try_from(value).is_err() && ext == ExtType::UInt => {
            format!("{value}U")
        }
        NativeNumber::Int(value) if ext == ExtType::Int64 => format!("{value}LL"),
        NativeNumber::Int(value) => value.to_string(),
        NativeNumber::UInt64(value) => format!("{value}ULL"),
        NativeNumber::Float(value) if value.is_nan() => "NAN".to_owned(),
        NativeNumber::Float(value) if value.is_infinite() => special("INFINITY", value < 0.0),
        // Without a point it would be an integer, which has no sign.
        NativeNumber::Float(value) if value == 0.0 && value.is_sign_negative() => {
            "((float)-0.)".to_owned()
        }
        NativeNumber::Double(value) if value == 0.0 && value.is_sign_negative() => {
            "((double)-0.)".to_owned()
        }
        NativeNumber::Float(value) => {
            let short = general(value.into(), 8);
            let exact = short.parse::<f32>().is_ok_and(|same| same.to_bits() == value.to_bits());
            format!("((float){})", if exact { short } else { general(value.into(), 9) })
        }
        NativeNumber::Double(value) if value.is_nan() => "NAN".to_owned(),
        NativeNumber::Double(value) if value.is_infinite() => special("INFINITY", value < 0.0),
        NativeNumber::Double(value) => {
            let short = general(value, 16);
            let exact = short.parse::<f64>().is_ok_and(|same| same.to_bits() == value.to_bits());
            format!("((double){})", if exact { short } else { general(value, 17) })
        }
    }
}

/// Numbers with commas between them.
pub(crate) fn joined<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<String>>().join(", ")
}

/// An initializer: values in nested braces, as the shape has them.
pub(crate) fn nested(items: &[String], dims: &[usize]) -> String {
    match dims {
        [_, inner @ ..] if !inner.is_empty() => {
            let per_part = inner.iter().product::<usize>().max(1);
            let parts: Vec<String> =
                items.chunks(per_part).map(|part| nested(part, inner)).collect();
            format!("{{{}}}", parts.join(", "))
        }
        _ => format!("{{{}}}", items.join(", ")),
    }
}

/// The part of `nc_put_att_...` that names a type.
pub(crate) fn family(ext: ExtType) -> &'static str {
    match ext {
        ExtType::Byte => "schar",
        ExtType::Char => "text",
        ExtType::UByte => "uchar",
        ExtType::Int64 => "longlong",
        ExtType::UInt64 => "ulonglong",
        other => other.name(),
    }
}

/// What stands between the quotes of a character constant.
pub(crate) fn character(byte: u8) -> String {
    match byte {
        b'\'' => "\\'".to_owned(),
        b'"' => "\"".to_owned(),
        _ => escaped(byte),
    }
}

/// A byte within a string.
fn escaped(byte: u8) -> String {
    match byte {
        b'"' => "\\\"".to_owned(),
        b'\\' => "\\\\".to_owned(),
        8 => "\\b".to_owned(),
        12 => "\\f".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        11 => "\\v".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    }
}

/// A string of C. UTF-8 stays as it is.
pub(crate) fn quoted(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for part in text.utf8_chunks() {
        for letter in part.valid().chars() {
            match u8::try_from(u32::from(letter)) {
                Ok(byte) if byte < 0x80 => out += &escaped(byte),
                _ => out.push(letter),
            }
        }
        part.invalid().iter().for_each(|byte| out += &escaped(*byte));
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants() {
        assert_eq!(quoted(b"a\"b\\\n\x01?\xff"), r#""a\"b\\\n\001?\377""#);
        assert_eq!(number(ExtType::Float, &1.5f32.to_ne_bytes()), "((float)1.5)");
        assert_eq!(number(ExtType::Float, &f32::NAN.to_ne_bytes()), "NAN");
        assert_eq!(number(ExtType::Double, &f64::NEG_INFINITY.to_ne_bytes()), "-INFINITY");
        assert_eq!(number(ExtType::Double, &1e300f64.to_ne_bytes()), "((double)1e+300)");
        assert_eq!(number(ExtType::UInt, &u32::MAX.to_ne_bytes()), "4294967295U");
        assert_eq!(number(ExtType::Int64, &i64::MIN.to_ne_bytes()), "(-9223372036854775807LL - 1)");
    }

    #[test]
    fn shapes() {
        let items: Vec<String> = (1..=6).map(|n| n.to_string()).collect();
        assert_eq!(nested(&items, &[2, 3]), "{{1, 2, 3}, {4, 5, 6}}");
        assert_eq!(nested(&items, &[6]), "{1, 2, 3, 4, 5, 6}");
    }
}
