//! The netCDF-4 data model of one file: groups, dimensions, types, variables.
//!
//! The first inquiry makes it, by one walk over the file's objects. What only some callers want (attributes,
//! storage, filters) is decoded when somebody asks for it. In a file that is open for reading the model stays
//! as it is; in one that is open for writing definitions change it at once.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use hashbrown::HashSet;
use zonda_format::AttView;
pub(crate) use zonda_format::{
    Endianness, Field, GroupId, Member, StorageKind, UserClass, UserType, VarInfo,
};
use zonda_hdf5::message::Datatype;
use zonda_hdf5::{File, HdfError};
use zonda_model::{DimId, VarId};

use crate::details::Details;
use crate::files::ObjectAt;
use crate::names::Names;
use crate::types::Types;
use crate::write::VarDraft;

/// All definitions of a file.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Groups by [`GroupId`].
    pub groups: Vec<Group>,
    /// Dimensions by [`DimId`]; ids that no dimension has are `None`.
    pub dims: Vec<Option<Dim>>,
    /// User-defined types; the first has number 32.
    pub types: Vec<TypeEntry>,
    /// The file keeps to the classic model (`_nc3_strict`).
    pub is_classic: bool,
    /// What definitions lack because it is in other files that cannot be read.
    pub gaps: Vec<Gap>,
    /// The forms of the types: what the types of attributes are compared with.
    pub(crate) forms: Types,
    /// What the walk skipped. The list is complete only if the file was opened as a damaged one.
    pub faults: Vec<SkippedObject>,
}

/// An object that the walk skipped, or found although no group leads to it.
#[derive(Clone, Debug)]
pub struct SkippedObject {
    /// Path of the group or variable.
    pub path: String,
    /// Why it is in this list.
    pub why: SkipReason,
}

impl SkippedObject {
    /// Whether it is in the model, though no group leads to it.
    #[must_use]
    pub fn is_found(&self) -> bool {
        matches!(self.why, SkipReason::FoundByBytes)
    }
}

/// Why something is not in the model, or not all of it.
#[derive(Clone, Debug)]
pub enum SkipReason {
    /// It is damaged.
    Damaged(HdfError),
    /// It is sound, and netCDF cannot show it; the text says what of it.
    Unrepresentable(&'static str),
    /// No group leads to it: it was found by its bytes.
    FoundByBytes,
}

/// Something that the file names in another file and that cannot be had: what an external link leads to, or
/// the length of a virtual dataset.
#[derive(Clone, Debug)]
pub struct Gap {
    /// Path of the link or of the variable.
    pub path: String,
    /// Why it cannot be had.
    pub error: HdfError,
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.error)
    }
}

/// A group.
#[derive(Clone, Debug)]
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
    /// Names of links in the file that the model does not show: they lead nowhere, or to a file that is refused,
    /// or to something that netCDF cannot show. No new object can get such a name.
    pub(crate) unlisted: HashSet<Box<[u8]>>,
    names: GroupNames,
}

/// Tables that find groups, dimensions, types and variables of a group by their names.
#[derive(Clone, Debug, Default)]
struct GroupNames {
    vars: Names,
    dims: Names,
    types: Names,
    children: Names,
}

/// A dimension.
#[derive(Clone, Debug)]
pub struct Dim {
    /// Name.
    pub name: Box<[u8]>,
    /// Group it is defined in.
    pub group: GroupId,
    /// Length; of an unlimited one the longest extent of any variable that has it.
    pub len: u64,
    /// Whether it can grow.
    pub is_unlimited: bool,
    /// Where its scale is; `None` for a dimension without a scale.
    pub(crate) at: Option<ObjectAt>,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Var {
    /// Name.
    pub name: Box<[u8]>,
    /// Number of its type: 1 to 12, or a user-defined type from 32 on; 0 for a variable that is damaged.
    pub nc_type: i32,
    /// Dimensions, slowest first; -1 where the file does not say which.
    pub dims: Box<[DimId]>,
    /// Number of elements that the variable has along each dimension.
    pub(crate) extent: Box<[u64]>,
    pub(crate) at: ObjectAt,
    /// It refers to the scales of its dimensions, or will after the next commit.
    pub(crate) refers_to_scales: bool,
    /// It is the scale of its dimension, and its `DIMENSION_LIST` names itself.
    pub(crate) names_itself: bool,
    pub(crate) details: OnceLock<Arc<Details>>,
    /// What a writer knows of a variable that was defined and is not written yet.
    pub(crate) draft: Option<Box<VarDraft>>,
}

/// A user-defined type: as netCDF shows it, and as the file has it.
#[derive(Clone, Debug)]
pub struct TypeEntry {
    /// The type as netCDF shows it.
    pub(crate) shown: UserType,
    /// The file's type; `None` for one that is still being defined.
    stored: Option<Arc<Datatype>>,
    /// Defined since the file was opened: memory is laid out as it was declared, which need not be
    /// as a compiler would.
    pub(crate) is_declared: bool,
}

impl TypeEntry {
    /// A type of the file.
    pub(crate) fn found(shown: UserType, datatype: Datatype) -> TypeEntry {
        let mut entry = TypeEntry { shown, stored: None, is_declared: false };
        entry.settle(datatype);
        entry
    }

    /// A type that is defined now.
    pub(crate) fn declared(shown: UserType) -> TypeEntry {
        TypeEntry { shown, stored: None, is_declared: true }
    }

    /// A type that is not in the file any more.
    pub(crate) fn gone(name: Box<[u8]>, size: usize) -> TypeEntry {
        let shown = UserType { name, ..UserType::described(size, UserClass::Unknown) };
        TypeEntry { shown, stored: None, is_declared: false }
    }

    /// The file's type; `None` for one that is still being defined.
    pub(crate) fn stored(&self) -> Option<&Arc<Datatype>> {
        self.stored.as_ref()
    }

    /// Sets the type that the file has; from now on it cannot be changed.
    pub(crate) fn settle(&mut self, datatype: Datatype) {
        self.stored = Some(Arc::new(datatype));
        self.shown.is_stored = true;
    }
}

impl Deref for TypeEntry {
    type Target = UserType;

    fn deref(&self) -> &UserType {
        &self.shown
    }
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

impl From<AttInfo> for AttView<'_> {
    fn from(AttInfo { name, nc_type, len }: AttInfo) -> Self {
        AttView { name: Cow::Owned(name.into_vec()), nc_type, len, bytes: None }
    }
}

impl Model {
    /// The model of a new file.
    pub(crate) fn created(file: &Arc<File>, is_classic: bool) -> Model {
        let mut root = Group::new((*b"/").into(), None, ObjectAt::NOWHERE);
        root.details = OnceLock::from(Arc::new(Details::made(Arc::clone(file))));
        Model { groups: vec![root], is_classic, ..Model::default() }
    }

    /// Whether no variable is damaged.
    pub(crate) fn is_whole(&self) -> bool {
        self.groups.iter().all(|group| group.vars.iter().all(|var| var.nc_type != 0))
    }

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
    pub fn user_type(&self, nc_type: i32) -> Option<&TypeEntry> {
        self.types.get(UserType::index(nc_type)?)
    }

    pub(crate) fn dim_mut(&mut self, id: DimId) -> Option<&mut Dim> {
        self.dims.get_mut(usize::try_from(id.0).ok()?)?.as_mut()
    }

    pub(crate) fn var_mut(&mut self, group: GroupId, var: VarId) -> Option<&mut Var> {
        self.group_mut(group)?.vars.get_mut(usize::try_from(var.0).ok()?)
    }

    pub(crate) fn user_type_mut(&mut self, nc_type: i32) -> Option<&mut TypeEntry> {
        self.types.get_mut(UserType::index(nc_type)?)
    }

    /// The dimension of that name that a group has itself; the name is in normalisation form C.
    #[must_use]
    pub fn find_dim(&self, group: GroupId, name: &[u8]) -> Option<DimId> {
        let group = self.group(group)?;
        let dims = group.dims.iter().filter_map(|&id| Some((number(id.0), &*self.dim(id)?.name)));
        let is_named = |number| self.dim(DimId(id(number))).is_some_and(|dim| *dim.name == *name);
        group.names.dims.find(name, group.dims.len(), dims, is_named).map(|found| DimId(id(found)))
    }

    /// The type of that name that a group has itself.
    #[must_use]
    pub fn find_type(&self, group: GroupId, name: &[u8]) -> Option<i32> {
        let group = self.group(group)?;
        let name_of = |nc_type| self.user_type(nc_type).map(|ty| &*ty.name);
        let types = group.types.iter().filter_map(|&ty| Some((number(ty), name_of(ty)?)));
        let is_named = |number| name_of(id(number)) == Some(name);
        group.names.types.find(name, group.types.len(), types, is_named).map(id)
    }

    /// The group of that name in a group.
    #[must_use]
    pub fn find_child(&self, group: GroupId, name: &[u8]) -> Option<GroupId> {
        let group = self.group(group)?;
        let name_of = |id| self.group(id).map(|child| &*child.name);
        let children = group.children.iter();
        let children = children.filter_map(|&id| Some((u32::from(id.0), name_of(id)?)));
        let group_id = |number| GroupId(u16::try_from(number).unwrap_or(u16::MAX));
        let is_named = |number| name_of(group_id(number)) == Some(name);
        group.names.children.find(name, group.children.len(), children, is_named).map(group_id)
    }

    /// Adds a group to the one it is in, which must be there.
    pub(crate) fn add_group(&mut self, parent: GroupId, group: Group) -> Option<GroupId> {
        let id = GroupId(u16::try_from(self.groups.len()).ok()?);
        let around = self.group_mut(parent)?;
        around.children.push(id);
        around.names.children.insert(&group.name, u32::from(id.0));
        self.groups.push(group);
        Some(id)
    }

    /// Adds a dimension to its group, which must be there.
    pub(crate) fn add_dim(&mut self, dim: Dim) -> Option<DimId> {
        let id = DimId(i32::try_from(self.dims.len()).ok()?);
        let group = self.group_mut(dim.group)?;
        group.dims.push(id);
        group.names.dims.insert(&dim.name, number(id.0));
        self.dims.push(Some(dim));
        Some(id)
    }

    /// Adds a type to its group, which must be there.
    pub(crate) fn add_type(&mut self, ty: TypeEntry) -> Option<i32> {
        let nc_type = crate::types::number(self.types.len());
        let group = self.group_mut(ty.group)?;
        group.types.push(nc_type);
        group.names.types.insert(&ty.name, number(nc_type));
        self.types.push(ty);
        Some(nc_type)
    }

    /// Gives a group another name.
    pub(crate) fn rename_group(&mut self, id: GroupId, name: Box<[u8]>) -> Option<()> {
        let group = self.group_mut(id)?;
        let old = std::mem::replace(&mut group.name, name.clone());
        let parent = group.parent?;
        let names = &mut self.group_mut(parent)?.names.children;
        names.remove(&old, u32::from(id.0));
        names.insert(&name, u32::from(id.0));
        Some(())
    }

    /// Gives a dimension another name.
    pub(crate) fn rename_dim(&mut self, id: DimId, name: Box<[u8]>) -> Option<()> {
        let dim = self.dim_mut(id)?;
        let old = std::mem::replace(&mut dim.name, name.clone());
        let group = dim.group;
        let names = &mut self.group_mut(group)?.names.dims;
        names.remove(&old, number(id.0));
        names.insert(&name, number(id.0));
        Some(())
    }

    /// A group and those it is in, itself first.
    pub fn lineage_ids(&self, group: GroupId) -> impl Iterator<Item = GroupId> {
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

    /// The gap with this name in a group, if there is one.
    #[must_use]
    pub fn gap(&self, group: GroupId, name: &[u8]) -> Option<&Gap> {
        if self.gaps.is_empty() {
            return None;
        }
        let path = self.path_in(group, name);
        self.gaps.iter().find(|gap| gap.path == path)
    }

    /// The path of a variable, for messages.
    pub(crate) fn var_path(&self, group: GroupId, var: &Var) -> String {
        self.path_in(group, &var.name)
    }

    /// The path of the object with this name in a group, for messages.
    pub(crate) fn path_in(&self, group: GroupId, name: &[u8]) -> String {
        let mut path = self.group_path(group);
        if !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(&String::from_utf8_lossy(name));
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
            unlisted: HashSet::default(),
            names: GroupNames::default(),
        }
    }

    /// The variable with that name, which is in normalisation form C.
    #[must_use]
    pub fn find_var(&self, name: &[u8]) -> Option<VarId> {
        let all = (0u32..).zip(self.vars.iter().map(|var| &*var.name));
        let is_named = |number| self.var_at(number).is_some_and(|var| *var.name == *name);
        let found = self.names.vars.find(name, self.vars.len(), all, is_named);
        found.and_then(|number| i32::try_from(number).ok()).map(VarId)
    }

    fn var_at(&self, number: u32) -> Option<&Var> {
        self.vars.get(usize::try_from(number).ok()?)
    }

    /// Adds a variable.
    pub(crate) fn add_var(&mut self, var: Var) -> Option<VarId> {
        let id = i32::try_from(self.vars.len()).ok()?;
        self.names.vars.insert(&var.name, number(id));
        self.vars.push(var);
        Some(VarId(id))
    }

    /// Gives a variable another name.
    pub(crate) fn rename_var(&mut self, id: VarId, name: Box<[u8]>) -> Option<()> {
        let var = self.vars.get_mut(usize::try_from(id.0).ok()?)?;
        let old = std::mem::replace(&mut var.name, name.clone());
        self.names.vars.remove(&old, number(id.0));
        self.names.vars.insert(&name, number(id.0));
        Some(())
    }
}

/// An id as tables of names store it; ids are not negative.
fn number(id: i32) -> u32 {
    u32::try_from(id).unwrap_or(u32::MAX)
}

/// The id for a number that a table of names stores.
fn id(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(-1)
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
        Var {
            name,
            nc_type,
            dims,
            extent,
            at,
            refers_to_scales: true,
            names_itself: false,
            details: OnceLock::new(),
            draft: None,
        }
    }

    /// A damaged variable, of which only the name is known.
    pub(crate) fn damaged(name: &[u8], at: ObjectAt) -> Var {
        Var::new(name, 0, Vec::new(), at, &[])
    }
}
