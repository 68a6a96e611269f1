//! Define mode, and what changes when it ends.

use zonda_model::NcError;

use super::Writing;
use super::commit::attributes_are_laid_out;
use crate::file::Nc4File;
use crate::model::GroupId;
use crate::{Nc4Error, Result};

impl Nc4File {
    /// Accepts from now on names that netCDF does not allow, such as `.silo` or `#refs#`: for copies of files that
    /// have them.
    ///
    /// # Errors
    /// `NC_EPERM` for a file open for reading.
    pub fn accept_any_name(&mut self) -> Result<()> {
        self.writing_mut()?.mode.takes_any_name = true;
        Ok(())
    }

    /// The state that only a writer has.
    ///
    /// # Errors
    /// `NC_EPERM` for a file that is open for reading.
    pub(crate) fn writing_mut(&mut self) -> Result<&mut Writing> {
        self.writing.as_deref_mut().ok_or_else(|| root_refusal(NcError::Perm))
    }

    /// Makes the fill values of variables of the root group final, as in the reference. To be called when the caller
    /// ends definitions; not when a put or a get does.
    pub(super) fn settle_fill_values(&mut self) {
        let root = self.model.get_mut().and_then(|model| model.group_mut(GroupId::ROOT));
        for var in root.into_iter().flat_map(|group| &mut group.vars) {
            if let Some(draft) = &mut var.draft {
                draft.is_written = true;
            }
        }
    }

    /// Leaves define mode, if the file is in it, without a commit: for calls that need data mode.
    ///
    /// # Errors
    /// `NC_EPERM` as [`Nc4File::writing_mut`].
    pub(crate) fn leave_define_mode(&mut self) -> Result<()> {
        let writing = self.writing_mut()?;
        let was_defining = std::mem::replace(&mut writing.mode.is_defining, false);
        writing.mode.is_redefining = false;
        writing.mode.has_defined = true;
        if let (true, Some(model), Some(writing)) =
            (was_defining, self.model.get_mut(), self.writing.as_deref())
        {
            // The reference writes attributes now, so those that change later come last in the file. Here a later
            // commit lays them out, in the order that they have now.
            writing.commits.changed.iter().for_each(|key| attributes_are_laid_out(model, *key));
        }
        Ok(())
    }

    /// Whether a get of data has to call [`zonda_format::DispatchWrite::end_definitions`] first: in define mode outside
    /// of the classic model, which refuses the get.
    #[must_use]
    pub(crate) fn get_ends_define_mode(&self) -> bool {
        let defines = |it: &Writing| it.mode.is_defining && !it.how.classic;
        self.writing.as_deref().is_some_and(defines)
    }
}

/// The error about the whole file for a call that is not allowed.
pub(super) fn root_refusal(code: NcError) -> Nc4Error {
    Nc4Error::Refused { object: String::from("/"), code }
}
