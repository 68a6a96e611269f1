//! Dimensions, variables and names: definitions that every format has.

use zonda_format::{FillMode, GroupId, Values, VarRef};
use zonda_model::{DimId, VarId};

use crate::dataset::Dataset;
use crate::error::Result;

impl Dataset {
    /// Sets whether new space is filled; returns the old mode.
    ///
    /// # Errors
    /// `NC_EPERM`.
    pub fn set_fill(&self, mode: FillMode) -> Result<FillMode> {
        self.steer(|file| file.set_fill(mode))
    }

    /// Defines a dimension of the root group; length 0 makes it unlimited.
    ///
    /// # Errors
    /// As [`Dataset::def_dim_in`].
    pub fn def_dim(&self, name: &[u8], len: usize) -> Result<DimId> {
        self.def_dim_in(GroupId::ROOT, name, len)
    }

    /// Defines a dimension of a group; length 0 makes it unlimited.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EBADGRPID`, `NC_ENOTINDEFINE`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_EDIMSIZE`,
    /// `NC_EUNLIMIT`, `NC_ENAMEINUSE`.
    pub fn def_dim_in(&self, group: GroupId, name: &[u8], len: usize) -> Result<DimId> {
        self.change_in(group, |file| file.def_dim(group, name, len))
    }

    /// Renames a dimension of the root group.
    ///
    /// # Errors
    /// As [`Dataset::rename_dim_in`].
    pub fn rename_dim(&self, dim: DimId, name: &[u8]) -> Result<()> {
        self.rename_dim_in(GroupId::ROOT, dim, name)
    }

    /// Renames a dimension seen from a group. In data mode of the classic model the new name must not be longer than
    /// the old one.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_ENAMEINUSE`, `NC_EBADDIM`, `NC_ENOTINDEFINE`,
    /// in this order.
    pub fn rename_dim_in(&self, group: GroupId, dim: DimId, name: &[u8]) -> Result<()> {
        self.change_in(group, |file| file.rename_dim(group, dim, name))
    }

    /// Defines a variable of the root group.
    ///
    /// # Errors
    /// As [`Dataset::def_var_in`].
    pub fn def_var(&self, name: &[u8], nc_type: i32, dims: &[i32]) -> Result<VarId> {
        self.def_var_in(GroupId::ROOT, name, nc_type, dims)
    }

    /// Defines a variable of a group over `dims`, slowest first, of the type numbered `nc_type`.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EBADGRPID`, `NC_ENOTINDEFINE`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_EBADTYPE`,
    /// `NC_EMAXDIMS`, `NC_ENAMEINUSE`, `NC_EBADDIM`, `NC_EUNLIMPOS`; `NC_ESTRICTNC3`.
    pub fn def_var_in(
        &self,
        group: GroupId,
        name: &[u8],
        nc_type: i32,
        dims: &[i32],
    ) -> Result<VarId> {
        self.change_in(group, |file| file.def_var(group, name, nc_type, dims))
    }

    /// Renames a variable. In data mode of the classic model the new name must not be longer than the old one.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_ENAMEINUSE`, `NC_ENOTVAR`, `NC_ENOTINDEFINE`,
    /// in this order.
    pub fn rename_var(&self, var: impl Into<VarRef>, name: &[u8]) -> Result<()> {
        let var = var.into();
        self.queued_file.renaming(|| self.change_in(var.group, |file| file.rename_var(var, name)))
    }

    /// Sets whether a variable is filled, and with what: one element of its type in native bytes.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_ENOTINDEFINE`, `NC_ENOTVAR`, in this order.
    pub fn def_var_fill(
        &self,
        var: impl Into<VarRef>,
        no_fill: bool,
        value: Option<&[u8]>,
    ) -> Result<()> {
        self.def_var_fill_values(var, no_fill, value.map(Values::plain))
    }

    /// Deletes an attribute.
    ///
    /// # Errors
    /// `NC_ENOTINDEFINE`, `NC_ENOTVAR`, `NC_ENOTATT`, in this order.
    pub fn del_att(&self, owner: impl Into<VarRef>, name: &[u8]) -> Result<()> {
        let owner = owner.into();
        self.change_in(owner.group, |file| file.del_att(owner, name))
    }

    /// Renames an attribute. In data mode the new name must not be longer than the old one.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_ENOTVAR`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_ENOTATT`, `NC_ENAMEINUSE`,
    /// `NC_ENOTINDEFINE`, in this order.
    pub fn rename_att(&self, owner: impl Into<VarRef>, name: &[u8], new_name: &[u8]) -> Result<()> {
        let owner = owner.into();
        self.change_in(owner.group, |file| file.rename_att(owner, name, new_name))
    }

    /// Sets whether a variable of any type is filled, and with what: one element in the layout of C,
    /// strings and sequences where the value says that they are. Else as [`Dataset::def_var_fill`].
    ///
    /// # Errors
    /// As [`Dataset::def_var_fill`].
    pub fn def_var_fill_values(
        &self,
        var: impl Into<VarRef>,
        no_fill: bool,
        value: Option<Values<'_>>,
    ) -> Result<()> {
        let var = var.into();
        self.change_in(var.group, |file| file.def_var_fill(var, no_fill, value))
    }
}
