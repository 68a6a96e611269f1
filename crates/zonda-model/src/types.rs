//! The atomic types, seen from the file (external) and from the caller (memory).

/// An external (in-file) atomic type, numbered as `nc_type` in `netcdf.h`.
///
/// Classic files hold `Byte` to `Double` in CDF-1/2 and all eleven in CDF-5
/// (NetCDF File Format Specifications, "The Classic Format", and the CDF-5 text).
/// `NC_STRING` and user-defined types belong to netCDF-4 and are not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i32)]
pub enum ExtType {
    /// `NC_BYTE`: signed 8-bit integer.
    Byte = 1,
    /// `NC_CHAR`: 8-bit text, never converted to or from numbers.
    Char = 2,
    /// `NC_SHORT`: signed 16-bit integer.
    Short = 3,
    /// `NC_INT`: signed 32-bit integer.
    Int = 4,
    /// `NC_FLOAT`: IEEE single precision.
    Float = 5,
    /// `NC_DOUBLE`: IEEE double precision.
    Double = 6,
    /// `NC_UBYTE`: unsigned 8-bit integer.
    UByte = 7,
    /// `NC_USHORT`: unsigned 16-bit integer.
    UShort = 8,
    /// `NC_UINT`: unsigned 32-bit integer.
    UInt = 9,
    /// `NC_INT64`: signed 64-bit integer.
    Int64 = 10,
    /// `NC_UINT64`: unsigned 64-bit integer.
    UInt64 = 11,
}

impl ExtType {
    /// All types in `nc_type` order.
    pub const ALL: [ExtType; 11] = [
        ExtType::Byte,
        ExtType::Char,
        ExtType::Short,
        ExtType::Int,
        ExtType::Float,
        ExtType::Double,
        ExtType::UByte,
        ExtType::UShort,
        ExtType::UInt,
        ExtType::Int64,
        ExtType::UInt64,
    ];

    /// The type with the given `nc_type` number, if it is one of the eleven.
    #[must_use]
    pub fn from_nc_type(code: i32) -> Option<ExtType> {
        let index = usize::try_from(code.checked_sub(1)?).ok()?;
        Self::ALL.get(index).copied()
    }

    /// The `nc_type` number.
    #[must_use]
    pub fn nc_type(self) -> i32 {
        self as i32
    }

    /// Bytes of one element in the file.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            ExtType::Byte | ExtType::Char | ExtType::UByte => 1,
            ExtType::Short | ExtType::UShort => 2,
            ExtType::Int | ExtType::UInt | ExtType::Float => 4,
            ExtType::Double | ExtType::Int64 | ExtType::UInt64 => 8,
        }
    }

    /// The CDL name (`"byte"`, `"char"`, ... as `nc_inq_type` gives it).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ExtType::Byte => "byte",
            ExtType::Char => "char",
            ExtType::Short => "short",
            ExtType::Int => "int",
            ExtType::Float => "float",
            ExtType::Double => "double",
            ExtType::UByte => "ubyte",
            ExtType::UShort => "ushort",
            ExtType::UInt => "uint",
            ExtType::Int64 => "int64",
            ExtType::UInt64 => "uint64",
        }
    }

    /// The memory type that holds this type without conversion.
    #[must_use]
    pub fn natural_mem(self) -> MemType {
        match self {
            ExtType::Byte => MemType::I8,
            ExtType::Char => MemType::Text,
            ExtType::Short => MemType::I16,
            ExtType::Int => MemType::I32,
            ExtType::Float => MemType::F32,
            ExtType::Double => MemType::F64,
            ExtType::UByte => MemType::U8,
            ExtType::UShort => MemType::U16,
            ExtType::UInt => MemType::U32,
            ExtType::Int64 => MemType::I64,
            ExtType::UInt64 => MemType::U64,
        }
    }
}

/// A memory type of the caller, in native byte order.
///
/// The C families map to it: `schar` I8, `uchar`/`ubyte` U8, `text` Text, `short` I16,
/// `int` I32, `long` I64 (on LP64; both targets are), `longlong` I64, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemType {
    /// Text; only converts to and from `NC_CHAR`.
    Text,
    /// `signed char`
    I8,
    /// `unsigned char`
    U8,
    /// `short`
    I16,
    /// `unsigned short`
    U16,
    /// `int`
    I32,
    /// `unsigned int`
    U32,
    /// `long long` (and `long`)
    I64,
    /// `unsigned long long`
    U64,
    /// `float`
    F32,
    /// `double`
    F64,
}

impl MemType {
    /// All memory types.
    pub const ALL: [MemType; 11] = [
        MemType::Text,
        MemType::I8,
        MemType::U8,
        MemType::I16,
        MemType::U16,
        MemType::I32,
        MemType::U32,
        MemType::I64,
        MemType::U64,
        MemType::F32,
        MemType::F64,
    ];

    /// Bytes of one element in memory.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            MemType::Text | MemType::I8 | MemType::U8 => 1,
            MemType::I16 | MemType::U16 => 2,
            MemType::I32 | MemType::U32 | MemType::F32 => 4,
            MemType::I64 | MemType::U64 | MemType::F64 => 8,
        }
    }

    /// The external type this memory type is the natural form of.
    #[must_use]
    pub fn natural_ext(self) -> ExtType {
        match self {
            MemType::Text => ExtType::Char,
            MemType::I8 => ExtType::Byte,
            MemType::U8 => ExtType::UByte,
            MemType::I16 => ExtType::Short,
            MemType::U16 => ExtType::UShort,
            MemType::I32 => ExtType::Int,
            MemType::U32 => ExtType::UInt,
            MemType::I64 => ExtType::Int64,
            MemType::U64 => ExtType::UInt64,
            MemType::F32 => ExtType::Float,
            MemType::F64 => ExtType::Double,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip_and_others_are_refused() {
        for ty in ExtType::ALL {
            assert_eq!(ExtType::from_nc_type(ty.nc_type()), Some(ty));
            assert_eq!(ty.natural_mem().natural_ext(), ty);
            assert_eq!(ty.natural_mem().size(), ty.size());
        }
        for code in [i32::MIN, -1, 0, 12, 13, i32::MAX] {
            assert_eq!(ExtType::from_nc_type(code), None);
        }
    }
}
