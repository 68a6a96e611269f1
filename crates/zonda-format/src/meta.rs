//! A look at the definitions of one group, without copying them.

use zonda_model::{DimId, ExtType, NcError, VarId};

use crate::definitions::{AttView, Definitions, DimView, Dims, GroupView, Layout, VarView};
use crate::dispatch::Dispatch;
use crate::error::{Error, Result};
use crate::kind::Format;
use crate::refs::{GroupId, VarRef};
use crate::types::{FIRST_USER_TYPE, NC_STRING, UserType};

/// The definitions of one group of a dataset, as they stand while they are looked at. A dataset
/// without groups is one root group.
#[derive(Clone, Copy, Debug)]
pub struct Meta<'a> {
    file: &'a dyn Dispatch,
    all: &'a dyn Definitions,
    group: GroupId,
}

impl<'a> Meta<'a> {
    /// The definitions of a group, if it exists.
    #[inline]
    #[must_use]
    pub fn new(file: &'a dyn Dispatch, group: GroupId) -> Meta<'a> {
        Meta { file, all: file.definitions(), group }
    }

    /// The definitions of a group that exists.
    ///
    /// # Errors
    /// `NC_EBADGRPID`; what reading the definitions meets.
    #[inline]
    pub fn of(file: &'a dyn Dispatch, group: GroupId) -> Result<Meta<'a>> {
        let all = file.definitions();
        all.check_group(group)?;
        Ok(Meta { file, all, group })
    }

    /// The file itself, for values of attributes and the storage of variables. A caller that looks at definitions
    /// holds its lock already, and must not take it again through the dataset.
    #[must_use]
    pub fn file(&self) -> &'a dyn Dispatch {
        self.file
    }

    fn var_ref(&self, var: VarId) -> VarRef {
        VarRef { group: self.group, var }
    }

    fn dims(&self) -> Dims<'a> {
        self.all.dims(self.group)
    }

    /// The contents of the group; empty where a damaged file has none that can be read. Inquiries of one object then
    /// say why.
    fn view(&self) -> Option<GroupView<'a>> {
        self.all.group(self.group).ok()
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.all.format()
    }

    /// Number of dimensions of this group.
    #[must_use]
    pub fn n_dims(&self) -> usize {
        self.dims().len()
    }

    /// Ids of the dimensions of this group, ascending.
    pub fn dim_ids(&self) -> impl Iterator<Item = DimId> + use<'a> {
        self.dims().ids()
    }

    /// Number of variables of this group.
    #[must_use]
    pub fn n_vars(&self) -> usize {
        self.all.n_vars(self.group)
    }

    /// The first unlimited dimension of this group.
    #[must_use]
    pub fn unlimited(&self) -> Option<DimId> {
        self.all.first_unlimited(self.group)
    }

    /// The unlimited dimensions of this group, ascending.
    pub fn unlimited_dims(&self) -> impl Iterator<Item = DimId> + use<'a> {
        let all = self.all;
        let unlimited = move |&id: &DimId| all.dim(id).is_ok_and(|dim| dim.is_unlimited);
        self.dims().ids().filter(unlimited).take(all.most_unlimited())
    }

    /// Number of records: the length of the first unlimited dimension.
    #[must_use]
    pub fn n_records(&self) -> u64 {
        let len = || self.unlimited().and_then(|id| self.dim(id).ok()).map_or(0, |dim| dim.len);
        self.all.n_records().unwrap_or_else(len)
    }

    /// Where things lie in a classic file.
    #[must_use]
    pub fn layout(&self) -> Option<Layout> {
        self.all.layout()
    }

    /// The dimension with that id, of whichever group.
    ///
    /// # Errors
    /// `NC_EBADDIM`.
    pub fn dim(&self, id: DimId) -> Result<DimView<'a>> {
        self.all.dim(id)
    }

    /// Id of the dimension with that name, which is normalised first, in this group or the nearest
    /// one around it.
    ///
    /// # Errors
    /// `NC_EBADDIM`; `NC_EINVAL` for a path where there are groups.
    pub fn find_dim(&self, name: &[u8]) -> Result<DimId> {
        self.all.find_dim(self.group, name)
    }

    /// The variable of this group with that id.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn var(&self, id: VarId) -> Result<VarView<'a>> {
        self.all.var(self.var_ref(id))
    }

    /// Id of the variable of this group with that name, which is normalised first.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn find_var(&self, name: &[u8]) -> Result<VarId> {
        self.all.find_var(self.group, name)
    }

    /// Rank of a variable; its current lengths go to `out`, as many as fit there.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn var_shape(&self, id: VarId, out: &mut [usize]) -> Result<usize> {
        self.all.var_shape(self.var_ref(id), out)
    }

    /// Number of elements that a variable really has along each dimension, where that may be fewer than the length of
    /// the dimension.
    #[must_use]
    pub fn extent(&self, id: VarId) -> Option<&'a [u64]> {
        self.all.extent(self.var_ref(id))
    }

    /// Whether netCDF can represent all of a user-defined type.
    #[must_use]
    pub fn is_whole_type(&self, nc_type: i32) -> bool {
        self.all.is_whole_type(nc_type)
    }

    /// Whether the first dimension of a variable can grow.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn is_record(&self, id: VarId) -> Result<bool> {
        let var = self.var(id)?;
        Ok(match (var.classic, var.dims.first()) {
            (Some(classic), _) => classic.is_record,
            (None, Some(&dim)) => self.dim(dim)?.is_unlimited,
            (None, None) => false,
        })
    }

    /// Number of attributes of a variable of this group, or of the group for [`VarId::GLOBAL`].
    ///
    /// # Errors
    /// `NC_ENOTVAR`; what decoding them meets.
    pub fn n_atts(&self, owner: VarId) -> Result<usize> {
        self.all.n_atts(self.var_ref(owner))
    }

    /// Attribute number `index` of a variable, or of the group for [`VarId::GLOBAL`].
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_ENOTATT`.
    pub fn att(&self, owner: VarId, index: usize) -> Result<AttView<'a>> {
        self.all.att(self.var_ref(owner), index)
    }

    /// The attribute with that name, which is normalised first, and its number; one that is found
    /// by its name only (`_NCProperties`) has number -1.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_ENOTATT`.
    pub fn find_att(&self, owner: VarId, name: &[u8]) -> Result<(i32, AttView<'a>)> {
        self.all.find_att(self.var_ref(owner), name)
    }

    /// The group looked at.
    #[must_use]
    pub fn group_id(&self) -> GroupId {
        self.group
    }

    /// The same of another group.
    ///
    /// # Errors
    /// `NC_EBADGRPID`.
    pub fn group(&self, group: GroupId) -> Result<Meta<'a>> {
        Meta::of(self.file, group)
    }

    /// Name of the group, `/` for the root.
    #[must_use]
    pub fn group_name(&self) -> &'a [u8] {
        self.view().map_or(b"/", |group| group.name)
    }

    /// Path of the group from the root, which is `/`.
    #[must_use]
    pub fn group_path(&self) -> Vec<u8> {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut at = self.view();
        while let Some((group, parent)) = at.and_then(|group| Some((group, group.parent?))) {
            names.push(group.name);
            // A parent has a lower number, so the loop ends.
            at = self.all.group(parent).ok();
        }
        if names.is_empty() {
            return b"/".to_vec();
        }
        names.iter().rev().flat_map(|name| [b"/", *name]).flatten().copied().collect()
    }

    /// The group around this one; the root has none.
    #[must_use]
    pub fn group_parent(&self) -> Option<GroupId> {
        self.view()?.parent
    }

    /// The groups in this one.
    #[must_use]
    pub fn groups(&self) -> &'a [GroupId] {
        self.view().map_or(&[], |group| group.children)
    }

    /// The group in this one with that name, which is normalised first.
    ///
    /// # Errors
    /// `NC_ENOGRP`.
    pub fn find_group(&self, name: &[u8]) -> Result<GroupId> {
        self.all.find_group(self.group, name)
    }

    /// Numbers of the types defined in this group.
    #[must_use]
    pub fn type_ids(&self) -> &'a [i32] {
        self.view().map_or(&[], |group| group.types)
    }

    /// All user-defined types of the file; the first has number [`FIRST_USER_TYPE`].
    pub fn types(&self) -> impl Iterator<Item = &'a UserType> + use<'a> {
        let all = self.all;
        let numbers = (FIRST_USER_TYPE..).take(all.n_types());
        numbers.map_while(move |number| all.user_type(number).ok())
    }

    /// Bytes of the text in each field of a compound, which netCDF shows as one character; 1 for
    /// fields that are something else.
    #[must_use]
    pub fn text_lens(&self, nc_type: i32) -> Vec<usize> {
        self.all.text_lens(nc_type)
    }

    /// The user-defined type with that number, of whichever group.
    ///
    /// # Errors
    /// `NC_EBADTYPE`.
    pub fn user_type(&self, nc_type: i32) -> Result<&'a UserType> {
        self.all.user_type(nc_type)
    }

    /// Why the definition of a variable is not whole: its type is damaged, its type cannot be
    /// represented in netCDF, or a dimension of it is none that its group can have. `None` where it is whole.
    #[must_use]
    pub fn var_fault(&self, id: VarId) -> Option<Error> {
        self.all.var_fault(self.var_ref(id))
    }

    /// Number of the user-defined type with that name, which is normalised first: in this group, in
    /// one around it, or else in any.
    ///
    /// # Errors
    /// `NC_EBADTYPE`.
    pub fn find_type(&self, name: &[u8]) -> Result<i32> {
        self.all.find_type(self.group, name)
    }

    /// Bytes of an element in memory, of any type; a string is an address, a sequence a length and
    /// an address.
    ///
    /// # Errors
    /// `NC_EBADTYPE`.
    pub fn type_size(&self, nc_type: i32) -> Result<usize> {
        match ExtType::from_nc_type(nc_type) {
            Some(ty) => Ok(ty.size()),
            None if nc_type == NC_STRING => Ok(8),
            None => Ok(self.user_type(nc_type)?.size),
        }
    }
}

/// The error where nothing of the kind `what` has that name.
#[cold]
#[must_use]
pub fn no_such(code: NcError, what: &str, name: &[u8]) -> Error {
    Error::with_text(code, format!("there is no {what} {:?}", zonda_model::shown_name(name)))
}

/// The error where no variable has that number.
#[cold]
#[must_use]
pub fn no_var(id: VarId) -> Error {
    Error::with_text(NcError::NotVar, format!("there is no variable {}", id.0))
}
