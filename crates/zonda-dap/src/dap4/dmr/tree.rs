//! What a DMR says, as a tree.
//! Spec: DAP4, volume 1, "The DMR".

use super::names::At;

/// How deep groups, structures, sequences and containers of attributes are nested at most.
pub const MOST_DEPTH: usize = 64;

/// Variables, fields, dimensions, types and groups of a dataset.
pub const MOST_OBJECTS: usize = 1 << 16;

/// A DMR: the root group, and what the document says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dmr {
    /// Name of the dataset.
    pub name: String,
    /// Version of the protocol.
    pub dap_version: String,
    /// Version of the document.
    pub dmr_version: String,
    /// The root group; it has the name `/`.
    pub root: Group,
}

/// A group, or the dataset as the root of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub at: At,
    /// Shared dimensions.
    pub dims: Vec<Dimension>,
    /// Enumerations.
    pub enums: Vec<Enumeration>,
    /// Variables, in the order in which their values come.
    pub vars: Vec<Variable>,
    /// Groups in it.
    pub groups: Vec<Group>,
    /// Attributes.
    pub attributes: Vec<Attribute>,
}

/// A shared dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub at: At,
    /// Its length.
    pub size: u64,
    /// XML attributes that begin with an underscore: `_edu.ucar.isunlimited`.
    pub reserved: Vec<(String, String)>,
    /// Attributes.
    pub attributes: Vec<Attribute>,
}

/// An enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enumeration {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub at: At,
    /// Integer type.
    pub base: Atomic,
    /// Names and values.
    pub constants: Vec<(String, i128)>,
}

/// A variable, or a field of a structure or sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub at: At,
    /// Its type.
    pub ty: Type,
    /// Its dimensions, slowest first.
    pub dims: Vec<DimRef>,
    /// Names of the variables that are its coordinates.
    pub maps: Vec<String>,
    /// XML attributes that begin with an underscore: `_edu.ucar.opaque.size`.
    pub reserved: Vec<(String, String)>,
    /// Attributes.
    pub attributes: Vec<Attribute>,
}

/// Type of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Numbers, characters, strings.
    Atomic(Atomic),
    /// An enumeration, by its name with all groups.
    Enum(String),
    /// Bytes, as many as there are.
    Opaque,
    /// Fields.
    Structure(Vec<Variable>),
    /// Any number of records of these fields.
    Sequence(Vec<Variable>),
}

/// A dimension of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimRef {
    /// A shared one, by its name with all groups.
    Shared(String),
    /// A length without a name.
    Size(u64),
}

/// An attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub at: At,
    /// What it is.
    pub value: AttributeValue,
}

/// What an attribute is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// Values: the name of their type, and their text.
    Values(String, Vec<String>),
    /// Attributes in an attribute.
    Container(Vec<Attribute>),
    /// XML of somebody else, without a meaning here. Kept as it stands.
    OtherXml(String),
}

/// Types that are not made of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// 1 byte, signed; netCDF's `Byte` is this one, as in the reference.
    Int8,
    /// 1 byte, unsigned.
    UInt8,
    /// 2 bytes, signed.
    Int16,
    /// 2 bytes, unsigned.
    UInt16,
    /// 4 bytes, signed.
    Int32,
    /// 4 bytes, unsigned.
    UInt32,
    /// 8 bytes, signed.
    Int64,
    /// 8 bytes, unsigned.
    UInt64,
    /// 4 bytes.
    Float32,
    /// 8 bytes.
    Float64,
    /// 1 byte.
    Char,
    /// Text.
    String,
    /// Text that is a URL.
    Url,
}

/// Names, as they are written and other names for them.
const ATOMICS: &[(&str, Atomic)] = &[
    ("Int8", Atomic::Int8),
    ("UInt8", Atomic::UInt8),
    ("Int16", Atomic::Int16),
    ("UInt16", Atomic::UInt16),
    ("Int32", Atomic::Int32),
    ("UInt32", Atomic::UInt32),
    ("Int64", Atomic::Int64),
    ("UInt64", Atomic::UInt64),
    ("Float32", Atomic::Float32),
    ("Float64", Atomic::Float64),
    ("Char", Atomic::Char),
    ("String", Atomic::String),
    ("URL", Atomic::Url),
    ("Byte", Atomic::Int8),
    ("UByte", Atomic::UInt8),
    ("URI", Atomic::Url),
];

impl Atomic {
    /// The type of that name, in whatever case.
    #[must_use]
    pub fn named(name: &str) -> Option<Atomic> {
        let found = ATOMICS.iter().find(|(written, _)| written.eq_ignore_ascii_case(name));
        found.map(|(_, atomic)| *atomic)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        ATOMICS.iter().find(|(_, atomic)| *atomic == self).map_or("String", |(name, _)| name)
    }

    /// Bytes of a value; `None` for text.
    #[must_use]
    pub fn size(self) -> Option<usize> {
        match self {
            Atomic::Int8 | Atomic::UInt8 | Atomic::Char => Some(1),
            Atomic::Int16 | Atomic::UInt16 => Some(2),
            Atomic::Int32 | Atomic::UInt32 | Atomic::Float32 => Some(4),
            Atomic::Int64 | Atomic::UInt64 | Atomic::Float64 => Some(8),
            Atomic::String | Atomic::Url => None,
        }
    }

    /// Least and greatest value, for integers.
    #[must_use]
    pub fn range(self) -> Option<(i128, i128)> {
        Some(match self {
            Atomic::Int8 => (i8::MIN.into(), i8::MAX.into()),
            Atomic::UInt8 => (u8::MIN.into(), u8::MAX.into()),
            Atomic::Int16 => (i16::MIN.into(), i16::MAX.into()),
            Atomic::UInt16 => (u16::MIN.into(), u16::MAX.into()),
            Atomic::Int32 => (i32::MIN.into(), i32::MAX.into()),
            Atomic::UInt32 => (u32::MIN.into(), u32::MAX.into()),
            Atomic::Int64 => (i64::MIN.into(), i64::MAX.into()),
            Atomic::UInt64 => (u64::MIN.into(), u64::MAX.into()),
            _ => return None,
        })
    }

    /// The type of netCDF.
    #[must_use]
    pub fn nc_type(self) -> i32 {
        match self {
            Atomic::Int8 => 1,
            Atomic::Char => 2,
            Atomic::Int16 => 3,
            Atomic::Int32 => 4,
            Atomic::Float32 => 5,
            Atomic::Float64 => 6,
            Atomic::UInt8 => 7,
            Atomic::UInt16 => 8,
            Atomic::UInt32 => 9,
            Atomic::Int64 => 10,
            Atomic::UInt64 => 11,
            Atomic::String | Atomic::Url => zonda_format::NC_STRING,
        }
    }
}

/// The value of a reserved XML attribute.
#[must_use]
pub fn reserved<'a>(reserved: &'a [(String, String)], name: &str) -> Option<&'a str> {
    reserved.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}
