//! Defining and renaming dimensions.

use zonda_model::{DimId, NcError};

use super::ObjectKey;
use super::define::{Definer, stored_name};
use crate::fault::{Fault, Outcome, refuse_if};
use crate::model::{Dim, GroupId};

/// A dimension of this length, and a longer one, makes datasets that HDF5 cannot count the bytes of.
const LONGEST: u64 = 1 << 62;

impl Definer<'_> {
    /// Defines a dimension in a group; length 0 makes it unlimited.
    ///
    /// # Errors
    /// In the reference's order: `NC_EPERM`; in the classic model `NC_EUNLIMIT` for a second unlimited
    /// one and `NC_ENOTINDEFINE`; `NC_EBADNAME`, `NC_EMAXNAME`; in the classic model `NC_EDIMSIZE`
    /// beyond 32 bits; `NC_ENAMEINUSE`.
    pub(super) fn def_dim(&mut self, group: GroupId, name: &[u8], len: usize) -> Outcome<DimId> {
        self.group(group)?;
        self.writing()?;
        let len = len as u64;
        if self.is_classic() {
            let is_unlimited = |&id: &DimId| self.model.dim(id).is_some_and(|d| d.is_unlimited);
            refuse_if(
                len == 0 && self.group(group)?.dims.iter().any(is_unlimited),
                NcError::Unlimit,
            )?;
            refuse_if(!self.is_defining(), NcError::NotInDefine)?;
        }
        let name = self.stored_name(name, true)?;
        if self.is_classic() && len > u64::from(u32::MAX) {
            let why = format!("length {len} is beyond what the classic model can hold");
            return Err(Fault::Explained(NcError::DimSize, why));
        }
        // Without a variable it becomes a dataset of four bytes for each; the reference finds out
        // when definitions end.
        if len >= LONGEST {
            let why = format!("length {len} is beyond what HDF5 can hold");
            return Err(Fault::Explained(NcError::HdfErr, why));
        }
        refuse_if(self.model.find_dim(group, &name).is_some(), NcError::NameInUse)?;
        self.check_scale(group, &name)?;
        self.begin_definitions()?;
        // A variable of that name that existed before does not become the coordinate variable.
        let other = self.group(group)?.find_var(&name);
        let is_unlimited = len == 0;
        let dim = Dim { name, group, len, is_unlimited, at: Some(crate::files::ObjectAt::NOWHERE) };
        let id = self.model.add_dim(dim).ok_or(NcError::MaxDims)?;
        self.mark(ObjectKey::Scale(id));
        self.mark(ObjectKey::Group(group));
        if let Some(var) = other {
            self.mark(ObjectKey::Var(group, var));
        }
        Ok(id)
    }

    /// Renames a dimension, which may be defined in another group than the one given; the new name
    /// must not be in use in that one. A variable may become or cease to be its coordinate variable.
    ///
    /// # Errors
    /// In the reference's order: `NC_EPERM`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_EBADDIM`, `NC_ENAMEINUSE`.
    pub(super) fn rename_dim(&mut self, group: GroupId, dim: DimId, name: &[u8]) -> Outcome<()> {
        self.group(group)?;
        self.writing()?;
        let name = stored_name(name)?;
        let known = self.model.dim(dim).ok_or(NcError::BadDim)?;
        let (home, old) = (known.group, known.name.clone());
        // Also in its own group: the file could not distinguish two dimensions of one name.
        let is_used = self.model.find_dim(group, &name).is_some()
            || self.model.find_dim(home, &name).is_some();
        refuse_if(is_used, NcError::NameInUse)?;
        self.check_scale(home, &name)?;
        // A dimension without a scale gets one now, to have a name.
        self.writing()?.stored.apart.dims.remove(&dim);
        let vars = [&old, &name].map(|name| self.group(home).ok()?.find_var(name));
        self.model.rename_dim(dim, name).ok_or(NcError::Internal)?;
        self.mark(ObjectKey::Scale(dim));
        self.mark(ObjectKey::Group(home));
        for var in vars.into_iter().flatten() {
            self.mark(ObjectKey::Var(home, var));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
