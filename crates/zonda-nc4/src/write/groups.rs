//! Defining and renaming groups.

use std::sync::{Arc, OnceLock};

use zonda_model::NcError;

use super::ObjectKey;
use super::define::{Definer, stored_name};
use crate::details::Details;
use crate::fault::{Outcome, refuse_if};
use crate::files::ObjectAt;
use crate::model::{Group, GroupId};

impl Definer<'_> {
    /// Defines a group in another.
    ///
    /// # Errors
    /// In the reference's order: `NC_EBADNAME`, `NC_EMAXNAME`, `NC_ENAMEINUSE`, `NC_ESTRICTNC3` in the
    /// classic model, `NC_EPERM`; `NC_ENFILE` for more groups than an id can number.
    pub(super) fn def_group(&mut self, parent: GroupId, name: &[u8]) -> Outcome<GroupId> {
        self.group(parent)?;
        let name = self.stored_name(name, true)?;
        self.check_link(parent, &name)?;
        refuse_if(self.is_classic(), NcError::StrictNc3)?;
        self.begin_definitions()?;
        let mut group = Group::new(name, Some(parent), ObjectAt::NOWHERE);
        let file = Arc::clone(self.files.main());
        group.details = OnceLock::from(Arc::new(Details::made(file)));
        let id = self.model.add_group(parent, group).ok_or(NcError::NFile)?;
        self.mark(ObjectKey::Group(id));
        self.mark(ObjectKey::Group(parent));
        Ok(id)
    }

    /// Renames a group.
    ///
    /// # Errors
    /// In the reference's order: `NC_EPERM`, `NC_EBADGRPID` for the root group, `NC_EBADNAME`,
    /// `NC_EMAXNAME`, `NC_ENAMEINUSE`, `NC_ENOTINDEFINE` in the classic model.
    pub(super) fn rename_group(&mut self, group: GroupId, name: &[u8]) -> Outcome<()> {
        self.group(group)?;
        self.writing()?;
        let parent = self.group(group)?.parent.ok_or(NcError::BadGrpId)?;
        let name = stored_name(name)?;
        self.check_link(parent, &name)?;
        self.begin_definitions()?;
        self.model.rename_group(group, name).ok_or(NcError::Internal)?;
        self.mark(ObjectKey::Group(parent));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
