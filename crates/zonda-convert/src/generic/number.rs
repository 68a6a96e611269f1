//! Conversion rules on numbers, without bytes.

use zonda_model::{ExtType, MemType};

/// A number of any of the ten types; integers of any width are held exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnyNumber {
    /// An integer.
    Int(i128),
    /// A single-precision number.
    Single(f32),
    /// A double-precision number.
    Double(f64),
}

/// What became of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvertedNumber {
    /// What is stored; `None` leaves the destination as it was.
    pub stored: Option<AnyNumber>,
    /// Whether the value fits; if not, the transfer ends in `NC_ERANGE`.
    pub fits: bool,
}

fn stored(number: AnyNumber, fits: bool) -> Option<ConvertedNumber> {
    Some(ConvertedNumber { stored: Some(number), fits })
}

/// Reading: an external number as memory type `mem`. `None` if `mem` is text.
#[must_use]
pub fn get(source: AnyNumber, mem: MemType) -> Option<ConvertedNumber> {
    match (source, mem) {
        (AnyNumber::Int(i), _) => from_integer(i, mem),
        (AnyNumber::Single(x), MemType::F32) => stored(AnyNumber::Single(x), true),
        (AnyNumber::Single(x), MemType::F64) => stored(AnyNumber::Double(f64::from(x)), true),
        (AnyNumber::Double(x), MemType::F64) => stored(AnyNumber::Double(x), true),
        (AnyNumber::Double(x), MemType::F32) if x > f64::from(f32::MAX) => {
            stored(AnyNumber::Single(f32::MAX), false)
        }
        (AnyNumber::Double(x), MemType::F32) if x < f64::from(f32::MIN) => {
            stored(AnyNumber::Single(f32::MIN), false)
        }
        (AnyNumber::Double(x), MemType::F32) => stored(AnyNumber::Single(x as f32), true),
        (AnyNumber::Single(x), _) => get_real(f64::from(x), mem),
        (AnyNumber::Double(x), _) => get_real(x, mem),
    }
}

/// Reading a real number as an integer: one that does not fit is not stored.
fn get_real(x: f64, mem: MemType) -> Option<ConvertedNumber> {
    let (min, max) = integer_range(mem)?;
    if x < min as f64 || x > max as f64 {
        return Some(ConvertedNumber { stored: None, fits: false });
    }
    // 2^63 and 2^64 pass the comparison, because the maximum becomes them as a double.
    if x == max as f64 {
        return stored(AnyNumber::Int(max), true);
    }
    stored(AnyNumber::Int(wrap(x86_truncate(x, mem), mem)), true)
}

/// Writing: a memory number of type `mem` as external type `ext`. `None` if one is text.
#[must_use]
pub fn put(source: AnyNumber, mem: MemType, ext: ExtType) -> Option<ConvertedNumber> {
    let target = ext.natural_mem();
    match (source, target) {
        // The reference returns before it stores, for this pair alone.
        (AnyNumber::Int(i), MemType::U32) if mem == MemType::I8 && i < 0 => {
            Some(ConvertedNumber { stored: None, fits: false })
        }
        (AnyNumber::Int(i), _) => from_integer(i, target),
        (AnyNumber::Single(x), MemType::F32) => stored(AnyNumber::Single(x), true),
        (AnyNumber::Double(x), MemType::F64) => stored(AnyNumber::Double(x), true),
        // Compared with the largest finite double, so infinity "does not fit".
        (AnyNumber::Single(x), MemType::F64) => {
            stored(AnyNumber::Double(f64::from(x)), !x.is_infinite())
        }
        (AnyNumber::Double(x), MemType::F32) => {
            let outside = x > f64::from(f32::MAX) || x < f64::from(f32::MIN);
            stored(AnyNumber::Single(x as f32), !outside)
        }
        (AnyNumber::Single(x), _) => put_real(f64::from(x), target),
        (AnyNumber::Double(x), _) => put_real(x, target),
    }
}

/// Either, in netCDF-4: as `target`, which is never left as it was. `None` if it is text.
#[must_use]
pub fn cast(source: AnyNumber, target: MemType) -> Option<ConvertedNumber> {
    match (source, target) {
        (AnyNumber::Single(_), MemType::F64) => get(source, target),
        (AnyNumber::Double(_), MemType::F32) => put(source, MemType::F64, ExtType::Float),
        (
            AnyNumber::Int(_) | AnyNumber::Single(_) | AnyNumber::Double(_),
            MemType::F32 | MemType::F64,
        ) => get(source, target),
        (AnyNumber::Int(i), _) => from_integer(i, target),
        (AnyNumber::Single(_) | AnyNumber::Double(_), _) => {
            let x = match source {
                AnyNumber::Single(x) => f64::from(x),
                AnyNumber::Double(x) => x,
                AnyNumber::Int(_) => return None,
            };
            let outcome = put_real(x, target)?;
            // The reference converts to the signed type here, too.
            let signed = wrap(x86_truncate(x, MemType::I64), target);
            match target {
                MemType::U64 => stored(AnyNumber::Int(signed), outcome.fits),
                _ => Some(outcome),
            }
        }
    }
}

/// Writing a real number as an integer: always stored, by the conversion of the CPU.
fn put_real(x: f64, target: MemType) -> Option<ConvertedNumber> {
    let (min, max) = integer_range(target)?;
    let outside = x < min as f64 || x > max as f64;
    stored(AnyNumber::Int(wrap(x86_truncate(x, target), target)), !outside)
}

/// Integers in both directions: the low bits are stored, whether the value fits or not.
fn from_integer(i: i128, target: MemType) -> Option<ConvertedNumber> {
    match target {
        MemType::Text => None,
        MemType::F32 => stored(AnyNumber::Single(i as f32), true),
        MemType::F64 => stored(AnyNumber::Double(i as f64), true),
        _ => {
            let (min, max) = integer_range(target)?;
            stored(AnyNumber::Int(wrap(i, target)), min <= i && i <= max)
        }
    }
}

/// What the x86-64 code of the reference makes of a real number before it takes the low bits.
///
/// Types up to 32 bits (but not `unsigned int`) go through a signed 32-bit conversion, the others
/// through a signed 64-bit one; either gives its minimum for NaN and for what it cannot hold.
/// `unsigned long long` from 2^63 up is converted less 2^63, with the top bit flipped afterwards.
fn x86_truncate(x: f64, target: MemType) -> i128 {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    let signed = |x: f64, min: i128| {
        let truncated = x.trunc();
        let holds = truncated >= min as f64 && truncated < -(min as f64);
        if holds { truncated as i128 } else { min }
    };
    match target {
        MemType::U64 if x >= TWO_63 => signed(x - TWO_63, i128::from(i64::MIN)) ^ (1 << 63),
        MemType::U32 | MemType::I64 | MemType::U64 => signed(x, i128::from(i64::MIN)),
        _ => signed(x, i128::from(i32::MIN)),
    }
}

/// The value of the low bits of `i` in integer type `target`.
fn wrap(i: i128, target: MemType) -> i128 {
    match target {
        MemType::I8 => i128::from(i as i8),
        MemType::U8 => i128::from(i as u8),
        MemType::I16 => i128::from(i as i16),
        MemType::U16 => i128::from(i as u16),
        MemType::I32 => i128::from(i as i32),
        MemType::U32 => i128::from(i as u32),
        MemType::I64 => i128::from(i as i64),
        MemType::U64 => i128::from(i as u64),
        MemType::Text | MemType::F32 | MemType::F64 => i,
    }
}

/// Smallest and largest value of an integer type.
fn integer_range(ty: MemType) -> Option<(i128, i128)> {
    let range = match ty {
        MemType::I8 => (i8::MIN.into(), i8::MAX.into()),
        MemType::U8 => (u8::MIN.into(), u8::MAX.into()),
        MemType::I16 => (i16::MIN.into(), i16::MAX.into()),
        MemType::U16 => (u16::MIN.into(), u16::MAX.into()),
        MemType::I32 => (i32::MIN.into(), i32::MAX.into()),
        MemType::U32 => (u32::MIN.into(), u32::MAX.into()),
        MemType::I64 => (i64::MIN.into(), i64::MAX.into()),
        MemType::U64 => (u64::MIN.into(), u64::MAX.into()),
        MemType::Text | MemType::F32 | MemType::F64 => return None,
    };
    Some(range)
}

impl AnyNumber {
    /// The number in `bytes`, one element of `ty` in the machine's byte order.
    ///
    /// `None` if `ty` is text or `bytes` is not one element.
    #[must_use]
    pub fn from_ne_bytes(ty: MemType, bytes: &[u8]) -> Option<AnyNumber> {
        Some(match ty {
            MemType::Text => return None,
            MemType::I8 => AnyNumber::Int(i8::from_ne_bytes(bytes.try_into().ok()?).into()),
            MemType::U8 => AnyNumber::Int(u8::from_ne_bytes(bytes.try_into().ok()?).into()),
            MemType::I16 => AnyNumber::Int(i16::from_ne_bytes(bytes.try_into().ok()?).into()),
            MemType::U16 => AnyNumber::Int(u16::from_ne_bytes(bytes.try_into().ok()?).into()),
            MemType::I32 => AnyNumber::Int(i32::from_ne_bytes(bytes.try_into().ok()?).into()),
            MemType::U32 => AnyNumber::Int(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
            MemType::I64 => AnyNumber::Int(i64::from_ne_bytes(bytes.try_into().ok()?).into()),
            MemType::U64 => AnyNumber::Int(u64::from_ne_bytes(bytes.try_into().ok()?).into()),
            MemType::F32 => AnyNumber::Single(f32::from_ne_bytes(bytes.try_into().ok()?)),
            MemType::F64 => AnyNumber::Double(f64::from_ne_bytes(bytes.try_into().ok()?)),
        })
    }

    /// The number's bytes as one element of `ty`, in the machine's byte order. Integers give their
    /// low bits; real numbers are stored as what they are.
    #[must_use]
    pub fn to_ne_bytes(self, ty: MemType) -> Vec<u8> {
        match self {
            AnyNumber::Int(i) => match ty.size() {
                1 => (i as u8).to_ne_bytes().to_vec(),
                2 => (i as u16).to_ne_bytes().to_vec(),
                4 => (i as u32).to_ne_bytes().to_vec(),
                _ => (i as u64).to_ne_bytes().to_vec(),
            },
            AnyNumber::Single(x) => x.to_ne_bytes().to_vec(),
            AnyNumber::Double(x) => x.to_ne_bytes().to_vec(),
        }
    }
}
