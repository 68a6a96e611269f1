//! The netCDF-4 data model of one file: groups, dimensions, types, variables.
//!
//! Built at the first inquiry by one walk over the file's objects and immutable from then on; what
//! only some callers want (attributes, storage, filters) is decoded when asked for.

use zonda_chunk::FilterSpec;
use zonda_model::DimId;

/// A group, numbered in the order in which the reference finds them; 0 is the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u16);

impl GroupId {
    /// The root group.
    pub const ROOT: GroupId = GroupId(0);
}

/// All definitions of a file.
#[derive(Debug, Default)]
pub struct Model {
    /// Groups by [`GroupId`].
    pub groups: Vec<Group>,
    /// Dimensions by [`DimId`]; ids that no dimension has are `None`.
    pub dims: Vec<Option<Dim>>,
    /// User-defined types; the first has number 32.
    pub types: Vec<UserType>,
    /// The file keeps to the classic model (`_nc3_strict`).
    pub is_classic: bool,
}

/// A group.
#[derive(Debug)]
pub struct Group {
    /// Name, `/` for the root.
    pub name: Box<[u8]>,
    /// The group it is in.
    pub parent: Option<GroupId>,
    /// Groups in it.
    pub children: Vec<GroupId>,
    /// Dimensions defined in it, in ascending order of ids.
    pub dims: Vec<DimId>,
    /// Numbers of the types defined in it, in order.
    pub types: Vec<i32>,
    /// Variables by `VarId`.
    pub vars: Vec<Var>,
}

/// A dimension.
#[derive(Debug)]
pub struct Dim {
    /// Name.
    pub name: Box<[u8]>,
    /// Group it is defined in.
    pub group: GroupId,
    /// Length; of an unlimited one the longest extent of any variable that has it.
    pub len: u64,
    /// Whether it can grow.
    pub is_unlimited: bool,
}

/// A variable. The builder keeps more in private fields.
#[derive(Debug)]
pub struct Var {
    /// Name.
    pub name: Box<[u8]>,
    /// Number of its type: 1 to 12, or a user-defined type from 32 on.
    pub nc_type: i32,
    /// Dimensions, slowest first.
    pub dims: Box<[DimId]>,
}

/// What is decoded of a variable when somebody asks.
#[derive(Clone, Debug)]
pub struct VarInfo {
    /// How its data are stored.
    pub storage: StorageKind,
    /// Filters in pipeline order.
    pub filters: Vec<FilterSpec>,
    /// Byte order in the file.
    pub endianness: Endianness,
    /// Elements never written are left undefined ("write never").
    pub no_fill: bool,
    /// Fill value of an atomic type but string in native bytes, else empty; the default one where the file has none.
    pub fill_value: Vec<u8>,
}

/// How data are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageKind {
    /// In one run.
    Contiguous,
    /// In the header.
    Compact,
    /// In chunks of this shape.
    Chunked(Vec<usize>),
    /// In external files or other datasets; `nc_inq_var_chunking` has names of its own for the latter.
    External,
    /// In other datasets.
    Virtual,
}

/// Byte order of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endianness {
    /// None: text, bytes, compounds.
    Native,
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// A user-defined type.
#[derive(Debug)]
pub struct UserType {
    /// Name.
    pub name: Box<[u8]>,
    /// Group it is defined in.
    pub group: GroupId,
    /// Bytes of an element in memory (16 for a sequence).
    pub size: usize,
    /// Kind.
    pub class: UserClass,
}

/// Kind of a user-defined type.
#[derive(Debug)]
pub enum UserClass {
    /// `NC_COMPOUND`.
    Compound(Vec<Field>),
    /// `NC_ENUM`: integer type, names and values in native bytes of that type.
    Enum {
        /// Integer type.
        base: i32,
        /// Members in order.
        members: Vec<(Box<[u8]>, Box<[u8]>)>,
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
    /// What netCDF cannot show: arrays, bit fields, complex numbers (class 0, as in the reference).
    Unknown,
}

/// A field of a compound.
#[derive(Debug)]
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

/// An attribute without its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttInfo {
    /// Name.
    pub name: Box<[u8]>,
    /// Number of its type.
    pub nc_type: i32,
    /// Number of values.
    pub len: u64,
}
