//! Defining and renaming dimensions.

use zonda_model::{DimId, NcError};

use super::ObjectKey;
use super::define::stored_name;
use crate::Result;
use crate::fault::{Fault, refuse_if};
use crate::file::Nc4File;
use crate::model::{Dim, GroupId};

/// A dimension of this length, and a longer one, makes datasets that HDF5 cannot count the bytes of.
const LONGEST: u64 = 1 << 62;

impl Nc4File {
    /// Defines a dimension in a group; length 0 makes it unlimited.
    ///
    /// # Errors
    /// In the reference's order: `NC_EPERM`; in the classic model `NC_EUNLIMIT` for a second unlimited
    /// one and `NC_ENOTINDEFINE`; `NC_EBADNAME`, `NC_EMAXNAME`; in the classic model `NC_EDIMSIZE`
    /// beyond 32 bits; `NC_ENAMEINUSE`.
    pub fn def_dim(&mut self, group: GroupId, name: &[u8], len: usize) -> Result<DimId> {
        self.define(group, name, |definer| {
            definer.group(group)?;
            definer.writing()?;
            let len = len as u64;
            if definer.is_classic() {
                let is_unlimited =
                    |&id: &DimId| definer.model.dim(id).is_some_and(|d| d.is_unlimited);
                refuse_if(
                    len == 0 && definer.group(group)?.dims.iter().any(is_unlimited),
                    NcError::Unlimit,
                )?;
                refuse_if(!definer.is_defining(), NcError::NotInDefine)?;
            }
            let name = definer.stored_name(name, true)?;
            if definer.is_classic() && len > u64::from(u32::MAX) {
                let why = format!("length {len} is beyond what the classic model can hold");
                return Err(Fault::Explained(NcError::DimSize, why));
            }
            // Without a variable it becomes a dataset of four bytes for each; the reference finds out
            // when definitions end.
            if len >= LONGEST {
                let why = format!("length {len} is beyond what HDF5 can hold");
                return Err(Fault::Explained(NcError::HdfErr, why));
            }
            refuse_if(definer.model.find_dim(group, &name).is_some(), NcError::NameInUse)?;
            definer.check_scale(group, &name)?;
            definer.begin_definitions()?;
            // A variable of that name that was there before is none of this dimension's.
            let other = definer.group(group)?.find_var(&name);
            let is_unlimited = len == 0;
            let dim =
                Dim { name, group, len, is_unlimited, at: Some(crate::files::ObjectAt::NOWHERE) };
            let id = definer.model.add_dim(dim).ok_or(NcError::MaxDims)?;
            definer.mark(ObjectKey::Scale(id));
            definer.mark(ObjectKey::Group(group));
            if let Some(var) = other {
                definer.mark(ObjectKey::Var(group, var));
            }
            Ok(id)
        })
    }

    /// Renames a dimension, which may be defined in another group than the one given; the new name
    /// must not be in use in that one. A variable may become or cease to be its coordinate variable.
    ///
    /// # Errors
    /// In the reference's order: `NC_EPERM`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_EBADDIM`, `NC_ENAMEINUSE`.
    pub fn rename_dim(&mut self, group: GroupId, dim: DimId, name: &[u8]) -> Result<()> {
        self.define(group, name, |definer| {
            definer.group(group)?;
            definer.writing()?;
            let name = stored_name(name)?;
            let known = definer.model.dim(dim).ok_or(NcError::BadDim)?;
            let (home, old) = (known.group, known.name.clone());
            // In its own group, too: two of one name could not be told apart in the file.
            let is_used = definer.model.find_dim(group, &name).is_some()
                || definer.model.find_dim(home, &name).is_some();
            refuse_if(is_used, NcError::NameInUse)?;
            definer.check_scale(home, &name)?;
            // One that no object stands for needs one, to have a name.
            definer.writing()?.apart.dims.remove(&dim);
            let vars = [&old, &name].map(|name| definer.group(home).ok()?.find_var(name));
            definer.model.rename_dim(dim, name).ok_or(NcError::Internal)?;
            definer.mark(ObjectKey::Scale(dim));
            definer.mark(ObjectKey::Group(home));
            for var in vars.into_iter().flatten() {
                definer.mark(ObjectKey::Var(home, var));
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
