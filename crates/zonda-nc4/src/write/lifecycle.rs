//! Define mode, synchronisation, and how a file that is written ends.

use zonda_model::NcError;

use super::Writing;
use super::commit::attributes_are_laid_out;
use crate::file::Nc4File;
use crate::model::GroupId;
use crate::{Nc4Error, Result};

impl Nc4File {
    /// Takes names from now on that netCDF does not allow, such as `.silo` or `#refs#`, as they are:
    /// for copies of files that have them.
    ///
    /// # Errors
    /// `NC_EPERM` for a file open for reading.
    pub fn take_any_name(&mut self) -> Result<()> {
        self.writing_mut()?.mode.takes_any_name = true;
        Ok(())
    }

    /// What a writer keeps.
    ///
    /// # Errors
    /// `NC_EPERM` for a file that is open for reading.
    pub(crate) fn writing_mut(&mut self) -> Result<&mut Writing> {
        self.writing.as_deref_mut().ok_or_else(|| root_refusal(NcError::Perm))
    }

    /// Fill values stay from the end of definitions on, as in the reference: of the variables of the
    /// root group, and only where the caller ends them.
    pub(super) fn settle_fill_values(&mut self) {
        let root = self.model.get_mut().and_then(|model| model.group_mut(GroupId::ROOT));
        for var in root.into_iter().flat_map(|group| &mut group.vars) {
            if let Some(draft) = &mut var.draft {
                draft.is_written = true;
            }
        }
    }

    /// Leaves define mode, where it was entered, without a commit: for what asks for data mode and
    /// finds the other.
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
            // The reference writes them now, so those that change from now on come last. They are
            // laid out later here, in the order that they have now.
            writing.commits.changed.iter().for_each(|key| attributes_are_laid_out(model, *key));
        }
        Ok(())
    }

    /// Whether a get of data is to call [`zonda_format::DispatchWrite::end_definitions`] first: in define mode, where the
    /// classic model, which refuses the get, is not kept to.
    #[must_use]
    pub(crate) fn get_ends_define_mode(&self) -> bool {
        let defines = |it: &Writing| it.mode.is_defining && !it.how.classic;
        self.writing.as_deref().is_some_and(defines)
    }
}

/// A refusal that concerns the whole file.
pub(super) fn root_refusal(code: NcError) -> Nc4Error {
    Nc4Error::Refused { object: String::from("/"), code }
}
