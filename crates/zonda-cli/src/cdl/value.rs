//! One value in memory.

use zonda::ExtType;

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CdlValue {
    /// A character.
    Char(u8),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
}

/// The first bytes as an array. The caller passes one element, so there are enough.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

impl CdlValue {
    /// The value of one element in native byte order.
    #[inline]
    pub(crate) fn native(ty: ExtType, bytes: &[u8]) -> CdlValue {
        match ty {
            ExtType::Byte => CdlValue::Int(i8::from_ne_bytes(array(bytes)).into()),
            ExtType::Char => CdlValue::Char(bytes[0]),
            ExtType::Short => CdlValue::Int(i16::from_ne_bytes(array(bytes)).into()),
            ExtType::Int => CdlValue::Int(i32::from_ne_bytes(array(bytes)).into()),
            ExtType::Float => CdlValue::Float(f32::from_ne_bytes(array(bytes))),
            ExtType::Double => CdlValue::Double(f64::from_ne_bytes(array(bytes))),
            ExtType::UByte => CdlValue::UInt(bytes[0].into()),
            ExtType::UShort => CdlValue::UInt(u16::from_ne_bytes(array(bytes)).into()),
            ExtType::UInt => CdlValue::UInt(u32::from_ne_bytes(array(bytes)).into()),
            ExtType::Int64 => CdlValue::Int(i64::from_ne_bytes(array(bytes))),
            ExtType::UInt64 => CdlValue::UInt(u64::from_ne_bytes(array(bytes))),
        }
    }

    /// The text for a floating-point value that is not finite; a letter tells `float` from `double`.
    pub(super) fn special(self) -> Option<&'static str> {
        match self {
            CdlValue::Float(value) if !value.is_finite() => Some(match value {
                f32::INFINITY => "Infinityf",
                f32::NEG_INFINITY => "-Infinityf",
                _ => "NaNf",
            }),
            CdlValue::Double(value) => special(value),
            _ => None,
        }
    }
}

/// The text for a `double` that is not finite.
pub(super) fn special(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_finite() => None,
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => Some("NaN"),
    }
}
