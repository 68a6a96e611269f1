//! The dataset as a format.

use std::any::Any;
use std::sync::Arc;

use zonda_convert::Converted;
use zonda_format::{
    Access, AttAccess, Capabilities, Definitions, Destination, Dispatch, Error, Result, StoreVars,
    Transfer, VarRef,
};
use zonda_model::{ExtType, MemType, NcError};
use zonda_storage::Storage;

use super::DapFile;

/// `NC_FORMATX_DAP2` and `NC_FORMATX_DAP4`.
const DAP2: &Capabilities =
    &Capabilities { formatx: 5, shared_puts: false, ..Capabilities::CLASSIC };
const DAP4: &Capabilities = &Capabilities { formatx: 6, ..Capabilities::NETCDF4 };

impl DapFile {
    /// The type in memory whose elements have the same bits, where bytes of DAP2 are asked for as text or text as bytes: the reference allows that, there
    /// alone. `None` for all other gets.
    fn byte_for_byte(&self, access: &Access<'_>) -> Option<MemType> {
        if self.protocol.model().is_netcdf4 {
            return None;
        }
        let own = self.copy.var(access.var).ok()?.ty()?;
        match (own, access.mem?) {
            (ExtType::Byte | ExtType::UByte, MemType::Text) => Some(own.natural_mem()),
            (ExtType::Char, MemType::I8 | MemType::U8) => Some(MemType::Text),
            _ => None,
        }
    }
}

impl Dispatch for DapFile {
    fn capabilities(&self) -> &'static Capabilities {
        if self.protocol.model().is_netcdf4 { DAP4 } else { DAP2 }
    }

    /// None: there are no bytes but those of responses.
    fn storage(&self) -> Option<&Arc<dyn Storage>> {
        None
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn definitions(&self) -> &dyn Definitions {
        &self.copy
    }

    fn rank(&self, var: VarRef) -> usize {
        self.copy.file.rank(var)
    }

    fn check_get(&self, get: &mut Transfer<Access<'_>>) -> Result<()> {
        let Some(mem) = self.byte_for_byte(get.of()) else { return self.copy.file.check_get(get) };
        let mut same = Transfer::new(Access { mem: Some(mem), ..*get.of() });
        self.copy.file.check_get(&mut same)?;
        get.note(same.n_bytes, same.n_elems, same.mem, same.found);
        Ok(())
    }

    fn get(&self, get: &Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        self.fetch(get, room)
    }

    fn check_get_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<()> {
        self.copy.file.check_get_att(get)
    }

    fn get_att(&self, get: &Transfer<AttAccess<'_>>, room: Destination<'_>) -> Result<Converted> {
        self.copy.file.get_att(get, room)
    }

    fn storage_of_vars(&self) -> Option<&dyn StoreVars> {
        self.copy.file.storage_of_vars()
    }

    /// What a server says next may be of another dataset. `nc_sync` is refused for DAP2, as in the reference.
    fn refresh(&mut self) -> Result<()> {
        if self.protocol.model().is_netcdf4 {
            return Ok(());
        }
        Err(Error::because(NcError::Inval, "a dataset of DAP2 cannot be read anew: open it again"))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
