//! Dimensions, variables and names: definitions that every format has.

use zonda_classic::FillMode;
use zonda_format::Values;
use zonda_model::{DimId, VarId};
use zonda_nc4::GroupId;

use crate::dataset::{Dataset, Inner};
use crate::error::Result;
use zonda_format::VarRef;

impl Dataset {
    /// Sets whether new space is filled; returns the old mode.
    ///
    /// # Errors
    /// `NC_EPERM`.
    pub fn set_fill(&self, mode: FillMode) -> Result<FillMode> {
        let nc4 = match &*self.inner {
            Inner::Classic(classic) => {
                let _hold = self.before_change()?;
                return self.here(classic.write().set_fill(mode));
            }
            Inner::Nc4(nc4) => nc4,
        };
        let no_fill = self.steer(nc4, |file| file.set_fill(mode == FillMode::NoFill))?;
        Ok(if no_fill { FillMode::NoFill } else { FillMode::Fill })
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
        let (_hold, found) = self.to_change(VarRef::group(group))?;
        match found {
            Ok(classic) => self.here(classic.write().def_dim(name, len)),
            Err(nc4) => self.change(nc4, |file| file.def_dim(group, name, len)),
        }
    }

    /// Renames a dimension of the root group.
    ///
    /// # Errors
    /// As [`Dataset::rename_dim_in`].
    pub fn rename_dim(&self, dim: DimId, name: &[u8]) -> Result<()> {
        self.rename_dim_in(GroupId::ROOT, dim, name)
    }

    /// Renames a dimension seen from a group; in data mode of the classic model to no longer name
    /// than it has.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_ENAMEINUSE`, `NC_EBADDIM`, `NC_ENOTINDEFINE`,
    /// in this order.
    pub fn rename_dim_in(&self, group: GroupId, dim: DimId, name: &[u8]) -> Result<()> {
        let (_hold, found) = self.to_change(VarRef::group(group))?;
        match found {
            Ok(classic) => self.here(classic.write().rename_dim(dim, name)),
            Err(nc4) => self.change(nc4, |file| file.rename_dim(group, dim, name)),
        }
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
        let (_hold, found) = self.to_change(VarRef::group(group))?;
        match found {
            Ok(classic) => self.here(classic.write().def_var(name, nc_type, dims)),
            Err(nc4) => self.change(nc4, |file| file.def_var(group, name, nc_type, dims)),
        }
    }

    /// Renames a variable; in data mode of the classic model to no longer name than it has.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_ENAMEINUSE`, `NC_ENOTVAR`, `NC_ENOTINDEFINE`,
    /// in this order.
    pub fn rename_var(&self, var: impl Into<VarRef>, name: &[u8]) -> Result<()> {
        let var = var.into();
        self.renaming(|| {
            let (_hold, found) = self.to_change(var)?;
            match found {
                Ok(classic) => self.here(classic.write().rename_var(var.var, name)),
                Err(nc4) => self.change(nc4, |file| file.rename_var(var.group, var.var, name)),
            }
        })
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
        let (_hold, found) = self.to_change(owner)?;
        match found {
            Ok(classic) => self.here(classic.write().del_att(owner.var, name)),
            Err(nc4) => self.change(nc4, |file| file.del_att(owner, name)),
        }
    }

    /// Renames an attribute; in data mode to no longer name than it has.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_ENOTVAR`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_ENOTATT`, `NC_ENAMEINUSE`,
    /// `NC_ENOTINDEFINE`, in this order.
    pub fn rename_att(&self, owner: impl Into<VarRef>, name: &[u8], new_name: &[u8]) -> Result<()> {
        let owner = owner.into();
        let (_hold, found) = self.to_change(owner)?;
        match found {
            Ok(classic) => self.here(classic.write().rename_att(owner.var, name, new_name)),
            Err(nc4) => self.change(nc4, |file| file.rename_att(owner, name, new_name)),
        }
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
        let (_hold, found) = self.to_change(var)?;
        match found {
            Ok(classic) => {
                let value = value.map(|value| value.bytes);
                self.here(classic.write().def_var_fill(var.var, no_fill, value))
            }
            Err(nc4) => {
                self.change(nc4, |file| file.def_var_fill(var.group, var.var, no_fill, value))
            }
        }
    }
}
