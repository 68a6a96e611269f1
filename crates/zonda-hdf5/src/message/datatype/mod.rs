//! Datatype message (0x0003): what the bytes of an element mean.
//! Spec: HDF5 File Format, "The Datatype Message". All classes, versions 1 to 5 read; written in
//! the lowest version that can say them.

mod decode;
mod encode;

use crate::{Reader, Result};
use decode::charset;

/// A datatype.
#[derive(Clone, Debug, PartialEq)]
pub struct Datatype {
    /// Bytes of one element.
    pub size: u32,
    /// What they are.
    pub class: Class,
}

/// Class of a datatype with its properties.
#[derive(Clone, Debug, PartialEq)]
pub enum Class {
    /// Class 0.
    FixedPoint(FixedPoint),
    /// Class 1.
    FloatingPoint(FloatingPoint),
    /// Class 2, no longer in use.
    Time {
        /// Byte order.
        order: ByteOrder,
        /// Bits in use.
        precision: u16,
    },
    /// Class 3: text of fixed length.
    String {
        /// How short text is filled up.
        padding: Padding,
        /// Character set.
        charset: Charset,
    },
    /// Class 4; bits as in class 0, without a sign.
    Bitfield(FixedPoint),
    /// Class 5.
    Opaque {
        /// What the writer calls it, without trailing NULs.
        tag: Box<[u8]>,
    },
    /// Class 6.
    Compound(Compound),
    /// Class 7.
    Reference(ReferenceKind),
    /// Class 8.
    Enum {
        /// Integer type of the values.
        base: Box<Datatype>,
        /// Members in the order of the file.
        members: Vec<EnumMember>,
    },
    /// Class 9: a sequence of any length.
    VarLenSequence {
        /// Type of an item.
        base: Box<Datatype>,
    },
    /// Class 9: text of any length.
    VarLenString {
        /// Padding.
        padding: Padding,
        /// Character set.
        charset: Charset,
    },
    /// Class 10.
    Array {
        /// Type of an item.
        base: Box<Datatype>,
        /// Shape, slowest first.
        dims: Vec<u32>,
    },
    /// Class 11: two numbers of `base`, the real part first.
    Complex {
        /// Type of a part.
        base: Box<Datatype>,
    },
}

/// Byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
    /// That of the VAX: 16-bit words, the most significant first, each least significant byte first.
    Vax,
}

/// Bits of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedPoint {
    /// Byte order, never `Vax`.
    pub order: ByteOrder,
    /// Two's complement.
    pub signed: bool,
    /// Whether the bits below and above the value are ones.
    pub padding: [bool; 2],
    /// First bit in use.
    pub bit_offset: u16,
    /// Bits in use.
    pub precision: u16,
}

/// Bits of a floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatingPoint {
    /// Byte order.
    pub order: ByteOrder,
    /// First bit in use.
    pub bit_offset: u16,
    /// Bits in use.
    pub precision: u16,
    /// How the mantissa is normalised.
    pub normalisation: Normalisation,
    /// Bit of the sign.
    pub sign: u8,
    /// First bit of the exponent.
    pub exponent_at: u8,
    /// Bits of the exponent.
    pub exponent_bits: u8,
    /// First bit of the mantissa.
    pub mantissa_at: u8,
    /// Bits of the mantissa.
    pub mantissa_bits: u8,
    /// What is added to the exponent.
    pub bias: u32,
}

/// How a mantissa is normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalisation {
    /// Not.
    None,
    /// The most significant bit is always one and stored.
    Stored,
    /// The most significant bit is always one and not stored, as in IEEE 754.
    Implied,
}

/// How short text is filled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Ends with a NUL.
    NullTerminated,
    /// Filled up with NULs.
    NullPadded,
    /// Filled up with blanks.
    SpacePadded,
}

/// Character set of text and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// ASCII; in practice any bytes.
    Ascii,
    /// UTF-8.
    Utf8,
}

/// A compound.
#[derive(Clone, Debug, PartialEq)]
pub struct Compound {
    /// Members in the order of the file.
    pub members: Vec<Member>,
}

/// A member of a compound. Array members of version 1 have [`Class::Array`].
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Name.
    pub name: Box<[u8]>,
    /// First byte in the element.
    pub offset: u32,
    /// Type.
    pub datatype: Datatype,
}

/// A member of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumMember {
    /// Name.
    pub name: Box<[u8]>,
    /// Value in the form of the base type, as many bytes as it has.
    pub value: Box<[u8]>,
}

/// Kinds of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// Address of an object header.
    Object,
    /// Place in the global heap of an object's address and a selection in it.
    DatasetRegion,
    /// To an object, revised (HDF5 1.12).
    Object2,
    /// To a region, revised.
    DatasetRegion2,
    /// To an attribute, revised.
    Attribute,
}

impl Charset {
    /// Takes the byte that names a character set.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Charset> {
        let code = reader.u8()?;
        charset(reader, u32::from(code))
    }

    /// The byte that names it.
    pub(crate) fn code(self) -> u8 {
        match self {
            Charset::Ascii => 0,
            Charset::Utf8 => 1,
        }
    }
}
