//! Constants, as they are written.

/// A number of the type that it has by its suffix, or by its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// `12b`, or a character: `'x'`.
    Byte(i8),
    /// `12s`
    Short(i16),
    /// `12`, `12l`
    Int(i32),
    /// `1.5f`
    Float(f32),
    /// `1.5`
    Double(f64),
    /// `12ub`
    UByte(u8),
    /// `12us`
    UShort(u16),
    /// `12u`, or what fits no int.
    UInt(u32),
    /// `12ll`, or what fits no int.
    Int64(i64),
    /// `12ull`, or what fits no unsigned int.
    UInt64(u64),
}

/// A value where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Byte of the text.
    pub at: u64,
    /// What is there.
    pub value: Constant,
}

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A number or a character.
    Number(Number),
    /// `"text"`, with its escapes undone.
    Text(Vec<u8>),
    /// `0x1a2b`: hexadecimal digits, an even number of them.
    Opaque(Vec<u8>),
    /// `_`: the fill value.
    Fill,
    /// `NIL`: no string.
    Nil,
    /// A member of an enum type, `Member` or `type.Member`.
    Member(Vec<u8>),
    /// `{...}`
    List(Vec<Item>),
}

impl Number {
    /// The number that `nc_type` has in `netcdf.h`.
    #[must_use]
    pub fn nc_type(self) -> i32 {
        match self {
            Number::Byte(_) => 1,
            Number::Short(_) => 3,
            Number::Int(_) => 4,
            Number::Float(_) => 5,
            Number::Double(_) => 6,
            Number::UByte(_) => 7,
            Number::UShort(_) => 8,
            Number::UInt(_) => 9,
            Number::Int64(_) => 10,
            Number::UInt64(_) => 11,
        }
    }

    /// The value, if it is an integer.
    #[must_use]
    pub fn integer(self) -> Option<i128> {
        Some(match self {
            Number::Byte(n) => n.into(),
            Number::Short(n) => n.into(),
            Number::Int(n) => n.into(),
            Number::UByte(n) => n.into(),
            Number::UShort(n) => n.into(),
            Number::UInt(n) => n.into(),
            Number::Int64(n) => n.into(),
            Number::UInt64(n) => n.into(),
            Number::Float(_) | Number::Double(_) => return None,
        })
    }
}

impl Constant {
    /// What it is, for messages.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Constant::Number(_) => "a number",
            Constant::Text(_) => "a string",
            Constant::Opaque(_) => "an opaque constant",
            Constant::Fill => "a fill value",
            Constant::Nil => "NIL",
            Constant::Member(_) => "a name",
            Constant::List(_) => "{...}",
        }
    }
}
