//! The copy's definitions, under the name of the format that the dataset has.

use zonda_format::{
    AttView, Definitions, DimView, Dims, Dispatch, Error, Format, GroupId, GroupView, Result,
    UserType, VarRef, VarView,
};
use zonda_model::{DimId, VarId};

/// A file in memory with the definitions of a dataset. One of DAP2 is said to be a classic file whatever its copy is: that may be
/// one of CDF-5, where variables are too long for others.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) file: Box<dyn Dispatch>,
    pub(super) format: Format,
}

impl Copy {
    fn own(&self) -> &dyn Definitions {
        self.file.definitions()
    }
}

impl Definitions for Copy {
    fn format(&self) -> Format {
        self.format
    }

    fn group(&self, group: GroupId) -> Result<GroupView<'_>> {
        self.own().group(group)
    }

    fn check_group(&self, group: GroupId) -> Result<()> {
        self.own().check_group(group)
    }

    fn n_vars(&self, group: GroupId) -> usize {
        self.own().n_vars(group)
    }

    fn dims(&self, group: GroupId) -> Dims<'_> {
        self.own().dims(group)
    }

    fn dim(&self, id: DimId) -> Result<DimView<'_>> {
        self.own().dim(id)
    }

    fn find_dim(&self, group: GroupId, name: &[u8]) -> Result<DimId> {
        self.own().find_dim(group, name)
    }

    fn most_unlimited(&self) -> usize {
        self.own().most_unlimited()
    }

    fn first_unlimited(&self, group: GroupId) -> Option<DimId> {
        self.own().first_unlimited(group)
    }

    fn n_records(&self) -> Option<u64> {
        self.own().n_records()
    }

    fn var(&self, var: VarRef) -> Result<VarView<'_>> {
        self.own().var(var)
    }

    fn find_var(&self, group: GroupId, name: &[u8]) -> Result<VarId> {
        self.own().find_var(group, name)
    }

    fn var_shape(&self, var: VarRef, out: &mut [usize]) -> Result<usize> {
        self.own().var_shape(var, out)
    }

    fn n_atts(&self, owner: VarRef) -> Result<usize> {
        self.own().n_atts(owner)
    }

    fn att(&self, owner: VarRef, index: usize) -> Result<AttView<'_>> {
        self.own().att(owner, index)
    }

    fn find_att(&self, owner: VarRef, name: &[u8]) -> Result<(i32, AttView<'_>)> {
        self.own().find_att(owner, name)
    }

    fn find_group(&self, group: GroupId, name: &[u8]) -> Result<GroupId> {
        self.own().find_group(group, name)
    }

    fn user_type(&self, nc_type: i32) -> Result<&UserType> {
        self.own().user_type(nc_type)
    }

    fn n_types(&self) -> usize {
        self.own().n_types()
    }

    fn find_type(&self, group: GroupId, name: &[u8]) -> Result<i32> {
        self.own().find_type(group, name)
    }

    fn is_whole_type(&self, nc_type: i32) -> bool {
        self.own().is_whole_type(nc_type)
    }

    fn text_lens(&self, nc_type: i32) -> Vec<usize> {
        self.own().text_lens(nc_type)
    }

    fn var_fault(&self, var: VarRef) -> Option<Error> {
        self.own().var_fault(var)
    }

    fn extent(&self, var: VarRef) -> Option<&[u64]> {
        self.own().extent(var)
    }
}
