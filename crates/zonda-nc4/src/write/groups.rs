//! Defining and renaming groups.

use std::sync::{Arc, OnceLock};

use zonda_model::NcError;

use super::ObjectKey;
use super::define::stored_name;
use crate::Result;
use crate::details::Details;
use crate::fault::refuse_if;
use crate::file::Nc4File;
use crate::files::ObjectAt;
use crate::model::{Group, GroupId};

impl Nc4File {
    /// Defines a group in another.
    ///
    /// # Errors
    /// In the reference's order: `NC_EBADNAME`, `NC_EMAXNAME`, `NC_ENAMEINUSE`, `NC_ESTRICTNC3` in the
    /// classic model, `NC_EPERM`; `NC_ENFILE` for more groups than an id can number.
    pub fn def_group(&mut self, parent: GroupId, name: &[u8]) -> Result<GroupId> {
        self.define(parent, name, |definer| {
            definer.group(parent)?;
            let name = definer.stored_name(name, true)?;
            definer.check_link(parent, &name)?;
            refuse_if(definer.is_classic(), NcError::StrictNc3)?;
            definer.begin_definitions()?;
            let mut group = Group::new(name, Some(parent), ObjectAt::NOWHERE);
            let file = Arc::clone(definer.files.main());
            group.details = OnceLock::from(Arc::new(Details::made(file)));
            let id = definer.model.add_group(parent, group).ok_or(NcError::NFile)?;
            definer.mark(ObjectKey::Group(id));
            definer.mark(ObjectKey::Group(parent));
            Ok(id)
        })
    }

    /// Renames a group.
    ///
    /// # Errors
    /// In the reference's order: `NC_EPERM`, `NC_EBADGRPID` for the root group, `NC_EBADNAME`,
    /// `NC_EMAXNAME`, `NC_ENAMEINUSE`, `NC_ENOTINDEFINE` in the classic model.
    pub fn rename_group(&mut self, group: GroupId, name: &[u8]) -> Result<()> {
        self.define(group, name, |definer| {
            definer.group(group)?;
            definer.writing()?;
            let parent = definer.group(group)?.parent.ok_or(NcError::BadGrpId)?;
            let name = stored_name(name)?;
            definer.check_link(parent, &name)?;
            definer.begin_definitions()?;
            definer.model.rename_group(group, name).ok_or(NcError::Internal)?;
            definer.mark(ObjectKey::Group(parent));
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
