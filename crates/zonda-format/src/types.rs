//! Types that users define.

use crate::refs::GroupId;

/// `NC_STRING`: a piece of memory of its own for each element.
pub const NC_STRING: i32 = 12;
/// Numbers of types from here on belong to user-defined ones.
pub const FIRST_USER_TYPE: i32 = 32;

/// A user-defined type.
#[derive(Clone, Debug)]
pub struct UserType {
    /// Name.
    pub name: Box<[u8]>,
    /// Group it is defined in.
    pub group: GroupId,
    /// Bytes of an element in memory (16 for a sequence).
    pub size: usize,
    /// Kind.
    pub class: UserClass,
    /// Whether it is complete: definitions were ended since, or it was in the file.
    pub is_stored: bool,
}

impl UserType {
    /// A type that another library describes, without a name or a file.
    #[must_use]
    pub fn described(size: usize, class: UserClass) -> UserType {
        let (name, group) = (Box::default(), GroupId::ROOT);
        UserType { name, group, size, class, is_stored: false }
    }

    /// Place of the type with that number among those of a file.
    #[must_use]
    pub fn index(nc_type: i32) -> Option<usize> {
        usize::try_from(nc_type.checked_sub(FIRST_USER_TYPE)?).ok()
    }
}

/// Kind of a user-defined type.
#[derive(Clone, Debug)]
pub enum UserClass {
    /// `NC_COMPOUND`.
    Compound(Vec<Field>),
    /// `NC_ENUM`: integer type, names and values in native bytes of that type.
    Enum {
        /// Integer type.
        base: i32,
        /// Members in order.
        members: Vec<Member>,
    },
    /// `NC_OPAQUE`.
    Opaque,
    /// `NC_VLEN`.
    Vlen {
        /// Type of an item; 0 where netCDF has none.
        base: i32,
    },
    /// Text that the file gives a name (class `NC_STRING`). No variable has such a type.
    String,
    /// A type that netCDF cannot represent: arrays, bit fields, complex numbers (class 0, as in the reference).
    Unknown,
}

/// Name of a member of an enumeration, and its value in native bytes.
pub type Member = (Box<[u8]>, Box<[u8]>);

/// A field of a compound.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name.
    pub name: Box<[u8]>,
    /// First byte in memory.
    pub offset: usize,
    /// Number of its type.
    pub nc_type: i32,
    /// Shape, empty for a single value.
    pub dims: Vec<i32>,
}
