//! A file of several ranks as any other: inquiries and gets, which never communicate.

use std::any::Any;
use std::sync::Arc;

use zonda_convert::Converted;
use zonda_format::{
    Access, AttAccess, Capabilities, Definitions, Destination, Dispatch, DispatchWrite, Error,
    Result, StoreVars, Transfer, VarRef,
};
use zonda_model::{NcError, VarId};
use zonda_storage::Storage;

use crate::file::ParallelFile;

impl Dispatch for ParallelFile {
    fn capabilities(&self) -> &'static Capabilities {
        self.shown_capabilities()
    }

    fn storage(&self) -> Option<&Arc<dyn Storage>> {
        self.file.storage()
    }

    fn definitions(&self) -> &dyn Definitions {
        self.file.definitions()
    }

    fn is_writable(&self) -> bool {
        self.file.is_writable()
    }

    fn in_define_mode(&self) -> bool {
        self.file.in_define_mode()
    }

    fn rank(&self, var: VarRef) -> usize {
        self.file.rank(var)
    }

    fn check_get(&self, get: &mut Transfer<Access<'_>>) -> Result<()> {
        self.file.check_get(get)
    }

    fn get(&self, get: &Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        self.file.get(get, room)
    }

    fn check_get_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<()> {
        self.file.check_get_att(get)
    }

    fn get_att(&self, get: &Transfer<AttAccess<'_>>, room: Destination<'_>) -> Result<Converted> {
        self.file.get_att(get, room)
    }

    fn is_get_ready(&self, get: &Access<'_>) -> Result<bool> {
        self.file.is_get_ready(get)
    }

    fn read_again(&mut self, tries: &mut u32) -> bool {
        // What ranks read of definitions has to stay the same on all of them.
        !self.file.is_writable() && self.file.read_again(tries)
    }

    fn storage_of_vars(&self) -> Option<&dyn StoreVars> {
        self.file.storage_of_vars()
    }

    fn refresh(&mut self) -> Result<()> {
        self.file.refresh()
    }

    fn may_end_definitions(&self) -> bool {
        self.file.may_end_definitions()
    }

    fn writer(&mut self) -> Option<&mut dyn DispatchWrite> {
        self.file.writer().is_some().then_some(self)
    }

    fn leave(&mut self) {
        self.file.leave();
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl ParallelFile {
    /// Has puts to a variable made by all ranks together, or by this rank alone; of a classic file it is one switch for all of
    /// its variables. All ranks have to choose the same.
    ///
    /// # Errors
    /// `NC_ENOTVAR`; `NC_EINVAL` for independent puts of chunks that go through filters, unless these are allowed
    /// ([`ParallelFile::allow_independent_filters`]): then [`ParallelFile::before_independent`] comes first.
    pub fn set_collective(&self, var: VarRef, is_collective: bool) -> Result<()> {
        if self.file.capabilities().dialect.is_netcdf4() {
            if var.var == VarId::GLOBAL {
                let why =
                    "NC_GLOBAL stands for all variables in classic files only; name each variable";
                return Err(Error::because(NcError::NotVar, why));
            }
            self.file.definitions().var(var)?;
            if !is_collective && !self.kept.is_allowed() && self.is_filtered(var) {
                let why = "chunks that go through filters are written by all ranks together (NC_COLLECTIVE), unless the file is opened with the \
                           MPI_Info key zonda_independent_filters=true";
                return Err(Error::because(NcError::Inval, why));
            }
        }
        self.access.set(var, is_collective);
        Ok(())
    }

    /// Whether the chunks of a variable go through filters.
    fn is_filtered(&self, var: VarRef) -> bool {
        let info = self.file.storage_of_vars().and_then(|stored| stored.var_info(var).ok());
        info.is_some_and(|info| !info.filters.is_empty())
    }
}
