//! The dataset as a [`Dispatch`].

use std::any::Any;
use std::sync::Arc;

use zonda_convert::Converted;
use zonda_format::{
    Access, AttAccess, AttPut, Capabilities, DefineMode, Definitions, Destination, Dialect,
    Dispatch, DispatchWrite, Ending, Error, FillMode, GroupId, Reserve, Result, Transfer,
    Unlimited, Values, VarRef,
};
use zonda_model::{DimId, NcError, VarId};
use zonda_storage::Storage;

use crate::file::PlainFile;

const CAPABILITIES: Capabilities = Capabilities {
    dialect: Dialect::Classic,
    // `NC_FORMATX_UNDEFINED`: the reference has no number for it.
    formatx: 0,
    groups: false,
    user_types: false,
    unlimited: Unlimited::First,
    storage: false,
    define_mode: DefineMode::Needed,
    shared_puts: false,
};

impl Dispatch for PlainFile {
    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn storage(&self) -> Option<&Arc<dyn Storage>> {
        None
    }

    fn definitions(&self) -> &dyn Definitions {
        &self.model
    }

    fn is_writable(&self) -> bool {
        self.writable
    }

    fn in_define_mode(&self) -> bool {
        self.in_define
    }

    fn rank(&self, var: VarRef) -> usize {
        self.model.var(var.var).map_or(0, |var| var.dims.len())
    }

    fn check_get(&self, get: &mut Transfer<Access<'_>>) -> Result<()> {
        self.check(get, false)
    }

    fn get(&self, get: &Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        self.get_checked(get, room.bytes)
    }

    fn check_get_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<()> {
        self.check_att(get)
    }

    fn get_att(&self, get: &Transfer<AttAccess<'_>>, room: Destination<'_>) -> Result<Converted> {
        self.get_att_checked(get, room.bytes)
    }

    fn refresh(&mut self) -> Result<()> {
        self.reread()
    }

    fn writer(&mut self) -> Option<&mut dyn DispatchWrite> {
        if self.arrays.maker().is_some() { Some(self) } else { None }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl DispatchWrite for PlainFile {
    fn check_put(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        self.check(put, true)
    }

    fn put(&mut self, put: &Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        self.put_checked(put, values.bytes)
    }

    fn check_put_att(&mut self, att: &AttPut<'_>) -> Result<usize> {
        Ok(self.types_of(att)?.2)
    }

    fn put_att(&mut self, att: &AttPut<'_>, values: Values<'_>) -> Result<Converted> {
        self.put_att_now(att, values.bytes)
    }

    fn del_att(&mut self, owner: VarRef, name: &[u8]) -> Result<()> {
        self.delete_att(owner, name)
    }

    fn rename_att(&mut self, owner: VarRef, name: &[u8], new_name: &[u8]) -> Result<()> {
        self.give_att(owner.var, name, new_name)
    }

    fn def_dim(&mut self, _group: GroupId, name: &[u8], len: usize) -> Result<DimId> {
        self.define_dim(name, len)
    }

    fn rename_dim(&mut self, _group: GroupId, dim: DimId, name: &[u8]) -> Result<()> {
        self.give_dim(dim, name)
    }

    fn def_var(
        &mut self,
        _group: GroupId,
        name: &[u8],
        nc_type: i32,
        dims: &[i32],
    ) -> Result<VarId> {
        self.define_var(name, nc_type, dims)
    }

    fn rename_var(&mut self, var: VarRef, name: &[u8]) -> Result<()> {
        self.give_var(var.var, name)
    }

    fn def_var_fill(
        &mut self,
        var: VarRef,
        no_fill: bool,
        value: Option<Values<'_>>,
    ) -> Result<()> {
        self.define_fill(var.var, no_fill, value)
    }

    fn set_fill(&mut self, mode: FillMode) -> Result<FillMode> {
        self.require_writable()?;
        let old = if self.no_fill { FillMode::NoFill } else { FillMode::Fill };
        self.no_fill = mode == FillMode::NoFill;
        Ok(old)
    }

    fn redef(&mut self) -> Result<()> {
        self.require_writable()?;
        if self.in_define {
            return Err(NcError::InDefine.into());
        }
        self.commit()?;
        self.in_define = true;
        Ok(())
    }

    fn enddef(&mut self, _reserve: Reserve) -> Result<()> {
        self.end_define()
    }

    fn sync(&mut self) -> Result<()> {
        if self.in_define {
            return Err(NcError::InDefine.into());
        }
        self.commit()
    }

    fn drain(&mut self) -> Result<()> {
        if self.in_define { Ok(()) } else { self.commit() }
    }

    fn close(&mut self) -> std::result::Result<Ending, (Error, Option<Ending>)> {
        let done = if self.in_define { self.end_define() } else { self.commit() };
        done.map(|()| Ending::Keep).map_err(|error| (error, None))
    }

    fn abort(&mut self) -> Result<Ending> {
        if self.give_up()? {
            return Ok(Ending::Remove);
        }
        self.drain().map(|()| Ending::Keep)
    }
}
