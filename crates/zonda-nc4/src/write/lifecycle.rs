//! Define mode, synchronisation, and how a file that is written ends.

use zonda_model::NcError;

use super::Writing;
use super::commit::attributes_are_laid_out;
use crate::file::Nc4File;
use crate::model::GroupId;
use crate::{Nc4Error, Result};

impl Nc4File {
    /// Whether it is open for writing.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.writing.is_some()
    }

    /// Whether it is in define mode.
    #[must_use]
    pub fn in_define_mode(&self) -> bool {
        self.writing.as_ref().is_some_and(|writing| writing.is_defining)
    }

    /// Takes names from now on that netCDF does not allow, such as `.silo` or `#refs#`, as they are:
    /// for copies of files that have them.
    ///
    /// # Errors
    /// `NC_EPERM` for a file open for reading.
    pub fn take_any_name(&mut self) -> Result<()> {
        self.writing_mut()?.takes_any_name = true;
        Ok(())
    }

    /// What a writer keeps.
    ///
    /// # Errors
    /// `NC_EPERM` for a file that is open for reading.
    pub(crate) fn writing_mut(&mut self) -> Result<&mut Writing> {
        self.writing.as_deref_mut().ok_or_else(|| refused(NcError::Perm))
    }

    /// Enters define mode. To enter it twice is an error in the classic model only.
    ///
    /// # Errors
    /// `NC_EINDEFINE` where it is entered already, `NC_EPERM` for a file open for reading; those of
    /// a commit of the data that were put before.
    pub fn redef(&mut self) -> Result<()> {
        let writing = self.writing_mut()?;
        if writing.is_defining {
            let is_classic = writing.how.classic;
            return if is_classic { Err(refused(NcError::InDefine)) } else { Ok(()) };
        }
        // A type that is not complete keeps everything from being committed: it is to be completed now.
        let is_complete = self.settle().is_ok();
        if is_complete {
            // What abort takes back begins here.
            self.commit()?;
        }
        let writing = self.writing_mut()?;
        writing.is_defining = true;
        writing.is_redefining = is_complete;
        Ok(())
    }

    /// Leaves define mode and commits.
    ///
    /// # Errors
    /// `NC_ENOTINDEFINE` outside of define mode; those of the commit, after which define mode is
    /// left all the same and a later commit can succeed.
    pub fn enddef(&mut self) -> Result<()> {
        if !self.in_define_mode() {
            return Err(refused(NcError::NotInDefine));
        }
        self.leave_define_mode()?;
        self.settle_fill_values();
        self.commit()
    }

    /// Fill values stay from the end of definitions on, as in the reference: of the variables of the
    /// root group, and only where the caller ends them.
    fn settle_fill_values(&mut self) {
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
        let was_defining = std::mem::replace(&mut writing.is_defining, false);
        writing.is_redefining = false;
        writing.has_defined = true;
        if let (true, Some(model), Some(writing)) =
            (was_defining, self.model.get_mut(), self.writing.as_deref())
        {
            // The reference writes them now, so those that change from now on come last. They are
            // laid out later here, in the order that they have now.
            writing.changed.iter().for_each(|key| attributes_are_laid_out(model, *key));
        }
        Ok(())
    }

    /// Whether a get of data is to call [`Nc4File::end_definitions`] first: in define mode, where the
    /// classic model, which refuses the get, is not kept to.
    #[must_use]
    pub fn get_ends_define_mode(&self) -> bool {
        let defines = |it: &Writing| it.is_defining && !it.how.classic;
        self.writing.as_deref().is_some_and(defines)
    }

    /// Ends define mode as a get does: with a commit, after which attributes have their places, but
    /// fill values of variables may still change.
    ///
    /// # Errors
    /// `NC_EPERM`; those of the commit, after which define mode is left all the same.
    pub fn end_definitions(&mut self) -> Result<()> {
        self.leave_define_mode()?;
        self.commit()
    }

    /// Commits all that was defined and put. Does nothing for a file open for reading.
    ///
    /// # Errors
    /// `NC_EINDEFINE` in define mode where the classic model is kept to; those of the commit.
    pub fn sync(&mut self) -> Result<()> {
        let Some(writing) = self.writing.as_deref() else { return Ok(()) };
        if writing.is_defining && writing.how.classic {
            return Err(refused(NcError::InDefine));
        }
        if writing.is_defining {
            self.settle_fill_values();
        }
        self.leave_define_mode()?;
        self.commit()
    }

    /// Commits and ends writing. After an error, too, the file is closed; but a type that is not
    /// complete leaves it as it was, so that the type can be completed.
    ///
    /// # Errors
    /// Those of the commit.
    pub fn close(&mut self) -> Result<()> {
        if self.writing.is_some() {
            self.settle()?;
        }
        let result = self.drain();
        self.writing = None;
        result
    }

    /// Ends writing without a commit, after [`Nc4File::drain`].
    pub fn end_writing(&mut self) {
        self.writing = None;
    }

    /// Ends writing and takes back what was defined since the caller entered define mode. True where
    /// the file was never more than begun, so that nothing should be left of it.
    ///
    /// Define mode that definitions entered by themselves is committed with the data put before.
    ///
    /// # Errors
    /// Those of the commit.
    pub fn abort(&mut self) -> Result<bool> {
        let Some(writing) = &self.writing else { return Ok(false) };
        let is_begun = writing.is_defining && !writing.has_defined;
        if is_begun || (writing.is_defining && writing.is_redefining) {
            let done = self.end_where_used();
            self.writing = None;
            return done.map(|()| is_begun);
        }
        self.close()?;
        Ok(false)
    }

    /// Commits what it can at the end of a process, whatever the mode.
    ///
    /// # Errors
    /// Those of the commit, after which the mode is what it was.
    pub fn drain(&mut self) -> Result<()> {
        match self.writing.as_deref() {
            Some(writing) => {
                let modes = (writing.is_defining, writing.is_redefining, writing.has_defined);
                self.leave_define_mode()?;
                let done = self.commit().and_then(|()| self.tidy());
                let done = done.and_then(|()| self.end_where_used());
                if done.is_err()
                    && let Some(writing) = &mut self.writing
                {
                    (writing.is_defining, writing.is_redefining, writing.has_defined) = modes;
                }
                done
            }
            None => Ok(()),
        }
    }
}

/// A refusal that concerns the whole file.
fn refused(code: NcError) -> Nc4Error {
    Nc4Error::Refused { object: String::from("/"), code }
}
