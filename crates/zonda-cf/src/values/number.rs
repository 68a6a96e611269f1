//! Numbers of any type, and what types of numbers are to each other.

use zonda_model::ExtType;

/// A number of any type, exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CfNumber {
    /// Of an integer type.
    Int(i128),
    /// Of a floating-point type.
    Real(f64),
}

impl CfNumber {
    /// Elements of a type from their native bytes. Text has no numbers.
    pub fn all(ty: ExtType, bytes: &[u8]) -> impl Iterator<Item = CfNumber> + '_ {
        bytes.chunks_exact(ty.size()).filter_map(move |element| CfNumber::native(ty, element))
    }

    pub(super) fn native(ty: ExtType, bytes: &[u8]) -> Option<CfNumber> {
        macro_rules! of {
            ($kind:ident, $type:ty) => {
                CfNumber::$kind(<$type>::from_ne_bytes(*bytes.first_chunk()?).into())
            };
        }
        Some(match ty {
            ExtType::Char => return None,
            ExtType::Byte => of!(Int, i8),
            ExtType::UByte => of!(Int, u8),
            ExtType::Short => of!(Int, i16),
            ExtType::UShort => of!(Int, u16),
            ExtType::Int => of!(Int, i32),
            ExtType::UInt => of!(Int, u32),
            ExtType::Int64 => of!(Int, i64),
            ExtType::UInt64 => of!(Int, u64),
            ExtType::Float => of!(Real, f32),
            ExtType::Double => of!(Real, f64),
        })
    }

    /// Appends the native bytes of an element of a type that has this number. A character is its byte.
    pub fn append_to(self, ty: ExtType, bytes: &mut Vec<u8>) {
        let integer = match self {
            CfNumber::Int(number) => number,
            CfNumber::Real(number) => number as i128,
        };
        match ty {
            ExtType::Float => bytes.extend((self.to_f64() as f32).to_ne_bytes()),
            ExtType::Double => bytes.extend(self.to_f64().to_ne_bytes()),
            ExtType::Byte | ExtType::UByte | ExtType::Char => {
                bytes.extend((integer as u8).to_ne_bytes());
            }
            ExtType::Short | ExtType::UShort => bytes.extend((integer as u16).to_ne_bytes()),
            ExtType::Int | ExtType::UInt => bytes.extend((integer as u32).to_ne_bytes()),
            ExtType::Int64 | ExtType::UInt64 => bytes.extend((integer as u64).to_ne_bytes()),
        }
    }

    /// The nearest double.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            CfNumber::Int(number) => number as f64,
            CfNumber::Real(number) => number,
        }
    }

    /// Whether two numbers are the same, exactly. NaN is none.
    pub(super) fn equals(self, other: CfNumber) -> bool {
        match (self, other) {
            (CfNumber::Int(integer), CfNumber::Real(real))
            | (CfNumber::Real(real), CfNumber::Int(integer)) => {
                real.fract() == 0.0 && real as i128 == integer
            }
            _ => self == other,
        }
    }

    pub(super) fn is_below(self, other: CfNumber) -> bool {
        match (self, other) {
            (CfNumber::Int(own), CfNumber::Int(other)) => own < other,
            _ => self.to_f64() < other.to_f64(),
        }
    }

    /// The same bits as a number of a type of integers; a real number stays.
    pub(super) fn wrapped(self, ty: ExtType) -> CfNumber {
        let CfNumber::Int(number) = self else { return self };
        let modulus = modulus(ty);
        CfNumber::Int(match is_signed(ty) {
            true => (number + modulus / 2).rem_euclid(modulus) - modulus / 2,
            false => number.rem_euclid(modulus),
        })
    }
}

/// How many numbers a type can tell apart.
pub(super) fn modulus(ty: ExtType) -> i128 {
    1 << (8 * ty.size())
}

/// Whether a type of integers holds a number.
pub(super) fn holds(ty: ExtType, number: i128) -> bool {
    CfNumber::Int(number).wrapped(ty) == CfNumber::Int(number)
}

pub(super) fn is_integer(ty: ExtType) -> bool {
    !matches!(ty, ExtType::Char | ExtType::Float | ExtType::Double)
}

pub(super) fn is_real(ty: ExtType) -> bool {
    matches!(ty, ExtType::Float | ExtType::Double)
}

pub(super) fn is_signed(ty: ExtType) -> bool {
    matches!(ty, ExtType::Byte | ExtType::Short | ExtType::Int | ExtType::Int64)
}

/// The type of integers of the other sign and the same size; other types have none.
pub(super) fn other_sign(ty: ExtType) -> ExtType {
    match ty {
        ExtType::Byte => ExtType::UByte,
        ExtType::Short => ExtType::UShort,
        ExtType::Int => ExtType::UInt,
        ExtType::Int64 => ExtType::UInt64,
        ExtType::UByte => ExtType::Byte,
        ExtType::UShort => ExtType::Short,
        ExtType::UInt => ExtType::Int,
        ExtType::UInt64 => ExtType::Int64,
        ExtType::Char | ExtType::Float | ExtType::Double => ty,
    }
}
