//! A served file as any other: inquiries look at the copy, elements come from the server.

use std::any::Any;
use std::sync::Arc;

use zonda_convert::Converted;
use zonda_format::VarRef;
use zonda_format::{
    Access, AttAccess, Capabilities, Definitions, Destination, Dispatch, DispatchWrite, Error,
    OwnedValues, Pointers, Result, StoreVars, Transfer,
};
use zonda_model::NcError;
use zonda_storage::Storage;

use crate::call::{Call, OwnedSlab};
use crate::file::ServedFile;

impl Dispatch for ServedFile {
    fn capabilities(&self) -> &'static Capabilities {
        const CLASSIC: &Capabilities =
            &Capabilities { shared_puts: false, ..Capabilities::CLASSIC };
        let of_copy = self.copy.capabilities();
        if of_copy.shared_puts { CLASSIC } else { of_copy }
    }

    /// None: where the bytes are is the server's business.
    fn storage(&self) -> Option<&Arc<dyn Storage>> {
        None
    }

    fn definitions(&self) -> &dyn Definitions {
        self.copy.definitions()
    }

    fn is_writable(&self) -> bool {
        self.copy.is_writable()
    }

    fn in_define_mode(&self) -> bool {
        self.copy.in_define_mode()
    }

    fn rank(&self, var: VarRef) -> usize {
        self.copy.rank(var)
    }

    fn check_get(&self, get: &mut Transfer<Access<'_>>) -> Result<()> {
        self.copy.check_get(get)
    }

    fn get(&self, get: &Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        let Access { var, slab, mem } = *get.of();
        if room.bytes.len() != get.n_bytes {
            let why = "memory of another length than the selection has";
            return Err(Error::because(NcError::Inval, why));
        }
        let reply = self.line.ask(&Call::Get { var, slab: OwnedSlab::of(&slab), mem }, &[])?;
        let pointers = match mem {
            None => {
                let nc_type = self.copy.definitions().var(var)?.nc_type;
                Pointers::of(self.copy.definitions(), nc_type)?
            }
            Some(_) => Pointers::none(),
        };
        let wrong =
            || Error::because(NcError::Internal, "the server sent values of another length");
        if pointers.is_empty() {
            if reply.values.len() != room.bytes.len() {
                return Err(wrong());
            }
            room.bytes.copy_from_slice(&reply.values);
            return Ok(reply.converted);
        }
        let owned = OwnedValues::read_from(&reply.values).ok_or_else(wrong)?;
        if owned.bytes().len() != room.bytes.len() {
            return Err(wrong());
        }
        let why = "the call does not say where strings and sequences go";
        let place = room.place.ok_or_else(|| Error::because(NcError::BadType, why))?;
        pointers.give(&owned, place, room.bytes)?;
        Ok(reply.converted)
    }

    fn check_get_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<()> {
        self.copy.check_get_att(get)
    }

    fn get_att(&self, get: &Transfer<AttAccess<'_>>, room: Destination<'_>) -> Result<Converted> {
        self.copy.get_att(get, room)
    }

    fn is_get_ready(&self, get: &Access<'_>) -> Result<bool> {
        Ok(!self.may_be_longer() && self.copy.is_get_ready(get)?)
    }

    fn storage_of_vars(&self) -> Option<&dyn StoreVars> {
        self.copy.storage_of_vars()
    }

    fn may_end_definitions(&self) -> bool {
        self.may_be_longer() || self.copy.may_end_definitions()
    }

    fn writer(&mut self) -> Option<&mut dyn DispatchWrite> {
        self.copy.writer().is_some().then_some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
