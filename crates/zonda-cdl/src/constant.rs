//! Constants of CDL as the text has them.

/// A number. Its type follows from its suffix, or else from its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NumberConstant {
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
    /// `12u`, or a number that is too large for an int.
    UInt(u32),
    /// `12ll`, or a number that is too large for an unsigned int or too small for an int.
    Int64(i64),
    /// `12ull`, or a number that is too large for a 64-bit integer.
    UInt64(u64),
}

/// A constant with its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedConstant {
    /// Byte of the text.
    pub at: u64,
    /// The constant.
    pub value: Constant,
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A number or a character.
    Number(NumberConstant),
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
    List(Vec<PlacedConstant>),
}

impl NumberConstant {
    /// The number that `nc_type` has in `netcdf.h`.
    #[must_use]
    pub fn nc_type(self) -> i32 {
        match self {
            NumberConstant::Byte(_) => 1,
            NumberConstant::Short(_) => 3,
            NumberConstant::Int(_) => 4,
            NumberConstant::Float(_) => 5,
            NumberConstant::Double(_) => 6,
            NumberConstant::UByte(_) => 7,
            NumberConstant::UShort(_) => 8,
            NumberConstant::UInt(_) => 9,
            NumberConstant::Int64(_) => 10,
            NumberConstant::UInt64(_) => 11,
        }
    }

    /// The value, if it is an integer.
    #[must_use]
    pub fn integer(self) -> Option<i128> {
        Some(match self {
            NumberConstant::Byte(n) => n.into(),
            NumberConstant::Short(n) => n.into(),
            NumberConstant::Int(n) => n.into(),
            NumberConstant::UByte(n) => n.into(),
            NumberConstant::UShort(n) => n.into(),
            NumberConstant::UInt(n) => n.into(),
            NumberConstant::Int64(n) => n.into(),
            NumberConstant::UInt64(n) => n.into(),
            NumberConstant::Float(_) | NumberConstant::Double(_) => return None,
        })
    }
}

impl Constant {
    /// The kind of constant in words, for messages.
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
