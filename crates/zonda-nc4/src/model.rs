//! The netCDF-4 data model of one file: groups, dimensions, types, variables.
//!
//! Built at the first inquiry by one walk over the file's objects and immutable from then on; what
//! only some callers want (attributes, storage, filters) is decoded when asked for.

use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

use hashbrown::HashTable;
use zonda_chunk::FilterSpec;
use zonda_model::{DimId, VarId};

use crate::details::Details;
use crate::files::ObjectAt;
use crate::types::Types;
use crate::write::VarDraft;

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
    /// What types of attributes are matched with.
    pub(crate) forms: Types,
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
    pub(crate) at: ObjectAt,
    pub(crate) details: OnceLock<Arc<Details>>,
    /// Numbers of variables by the hash of their names, where there are many.
    by_name: OnceLock<HashTable<u32>>,
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
    /// Its scale; `None` for one that no object stands for.
    pub(crate) at: Option<ObjectAt>,
}

/// A variable. The builder keeps more in private fields.
#[derive(Debug)]
pub struct Var {
    /// Name.
    pub name: Box<[u8]>,
    /// Number of its type: 1 to 12, or a user-defined type from 32 on; 0 for a variable that is damaged.
    pub nc_type: i32,
    /// Dimensions, slowest first; -1 where the file does not say which.
    pub dims: Box<[DimId]>,
    /// Elements along each of them that the variable has.
    pub(crate) extent: Box<[u64]>,
    pub(crate) at: ObjectAt,
    pub(crate) details: OnceLock<Arc<Details>>,
    /// What a writer keeps of it.
    pub(crate) draft: Option<Box<VarDraft>>,
}

/// What is decoded of a variable when somebody asks.
#[derive(Clone, Debug)]
pub struct VarInfo {
    /// How its data are stored.
    pub storage: StorageKind,
    /// Filters as the reference lists them: in pipeline order, but the checksum first, and each once.
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
    /// What netCDF cannot show: arrays, bit fields, complex numbers (class 0, as in the reference).
    Unknown,
}

/// Name of a member of an enumeration, and its value in native bytes.
pub type Member = (Box<[u8]>, Box<[u8]>);

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

/// Lists of up to so many names are looked through one by one.
const SHORT_LIST: usize = 16;

impl Model {
    /// A group.
    #[must_use]
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.get(usize::from(id.0))
    }

    pub(crate) fn group_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        self.groups.get_mut(usize::from(id.0))
    }

    /// A dimension.
    #[must_use]
    pub fn dim(&self, id: DimId) -> Option<&Dim> {
        self.dims.get(usize::try_from(id.0).ok()?)?.as_ref()
    }

    /// A variable.
    #[must_use]
    pub fn var(&self, group: GroupId, var: VarId) -> Option<&Var> {
        self.group(group)?.vars.get(usize::try_from(var.0).ok()?)
    }

    /// A user-defined type by its number.
    #[must_use]
    pub fn user_type(&self, nc_type: i32) -> Option<&UserType> {
        self.types.get(UserType::index(nc_type)?)
    }

    /// A group and those it is in, itself first.
    pub(crate) fn lineage_ids(&self, group: GroupId) -> impl Iterator<Item = GroupId> {
        std::iter::successors(Some(group), |&id| self.group(id)?.parent)
    }

    pub(crate) fn lineage(&self, group: GroupId) -> impl Iterator<Item = &Group> {
        self.lineage_ids(group).filter_map(|id| self.group(id))
    }

    /// The path of a group, for messages.
    pub(crate) fn group_path(&self, group: GroupId) -> String {
        let names: Vec<_> = self.lineage(group).filter(|group| group.parent.is_some()).collect();
        let names = names.iter().rev().map(|group| String::from_utf8_lossy(&group.name));
        names.fold(String::from("/"), |mut path, name| {
            if !path.ends_with('/') {
                path.push('/');
            }
            path.push_str(&name);
            path
        })
    }

    /// The path of a variable, for messages.
    pub(crate) fn var_path(&self, group: GroupId, var: &Var) -> String {
        let mut path = self.group_path(group);
        if !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(&String::from_utf8_lossy(&var.name));
        path
    }
}

impl Group {
    pub(crate) fn new(name: Box<[u8]>, parent: Option<GroupId>, at: ObjectAt) -> Group {
        Group {
            name,
            parent,
            children: Vec::new(),
            dims: Vec::new(),
            types: Vec::new(),
            vars: Vec::new(),
            at,
            details: OnceLock::new(),
            by_name: OnceLock::new(),
        }
    }

    /// The variable with that name, which is in normalisation form C.
    #[must_use]
    pub fn find_var(&self, name: &[u8]) -> Option<VarId> {
        let index = if self.vars.len() <= SHORT_LIST {
            self.vars.iter().position(|var| *var.name == *name)?
        } else {
            let table = self.by_name.get_or_init(|| self.names());
            let same = |&index: &u32| self.var_at(index).is_some_and(|var| *var.name == *name);
            usize::try_from(*table.find(hash(name), same)?).ok()?
        };
        i32::try_from(index).ok().map(VarId)
    }

    fn var_at(&self, index: u32) -> Option<&Var> {
        self.vars.get(usize::try_from(index).ok()?)
    }

    fn names(&self) -> HashTable<u32> {
        let mut table = HashTable::with_capacity(self.vars.len());
        let hash_of = |&index: &u32| self.var_at(index).map_or(0, |var| hash(&var.name));
        for (index, var) in (0u32..).zip(&self.vars) {
            let same = |&other: &u32| self.var_at(other).is_some_and(|o| o.name == var.name);
            // Of two variables with one name the first is found.
            table.entry(hash(&var.name), same, hash_of).or_insert(index);
        }
        table
    }
}

/// Keyed by the process, so that no file can choose names that collide.
fn hash(name: &[u8]) -> u64 {
    static KEY: OnceLock<hashbrown::DefaultHashBuilder> = OnceLock::new();
    KEY.get_or_init(Default::default).hash_one(name)
}

impl Var {
    pub(crate) fn new(
        name: &[u8],
        nc_type: i32,
        dims: Vec<DimId>,
        at: ObjectAt,
        extent: &[u64],
    ) -> Var {
        let (name, dims, extent) = (name.into(), dims.into(), extent.into());
        Var { name, nc_type, dims, extent, at, details: OnceLock::new(), draft: None }
    }

    /// One of which only the name is known.
    pub(crate) fn damaged(name: &[u8], at: ObjectAt) -> Var {
        Var::new(name, 0, Vec::new(), at, &[])
    }
}
