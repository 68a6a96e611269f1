//! How variables are stored, as all formats say it.

use std::sync::Arc;

use zonda_format::{
    AttAccess, Destination, Dispatch as _, GroupId, Quantize, QuantizeMode, Result, StorageKind,
    StoreVars, Transfer, VarInfo, VarRef, VlenSink,
};
use zonda_model::{MemType, NcError, VarId};

use crate::Nc4Error;
use crate::details::user_fill;
use crate::element_form::ElementForm;
use crate::fault::Outcome;
use crate::file::{Nc4File, hdf};
use crate::get::{default_element, natural, natural_size};
use crate::value_target::NoVlens;
use crate::write::draft_fill;

impl StoreVars for Nc4File {
    fn var_info(&self, of: VarRef) -> Result<Arc<VarInfo>> {
        Ok(Nc4File::var_info(self, of.group, of.var)?)
    }

    /// The precision that is given up: as it was set, or as an attribute says.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, and what keeps attributes from being read.
    fn var_quantize(&self, owner: VarRef) -> Result<Option<Quantize>> {
        let known = self.var(owner.group, owner.var)?.1;
        if let Some(draft) = known.draft.as_deref().filter(|draft| !draft.is_settled) {
            return Ok(draft.quantize);
        }
        for mode in QuantizeMode::ALL {
            let mut kept = [0; 4];
            let name = mode.attribute().as_bytes();
            let att = AttAccess { owner, name, mem: Some(MemType::I32) };
            let mut get = Transfer::new(att);
            let read = self.check_get_att(&mut get);
            // As in the reference, an attribute without a value says the mode alone.
            let room = if get.n_bytes == 0 { &mut [][..] } else { &mut kept };
            let read = read.and_then(|()| self.get_att(&get, Destination::plain(room)));
            if let (Ok(_), Ok(kept)) = (read, u32::try_from(i32::from_ne_bytes(kept))) {
                return Ok(Some(Quantize { mode, kept }));
            }
        }
        Ok(None)
    }

    /// Fill value of a variable of any type, in memory form (`nc_inq_var_fill`).
    ///
    /// # Errors
    /// As [`StoreVars::var_info`]; `NC_EBADTYPE`, `NC_EINVAL` for memory that is too short.
    fn fill_value(&self, of: VarRef, room: Destination<'_>) -> Result<()> {
        let mut none = NoVlens::default();
        let done = self.fill_element(of, room.place.unwrap_or(&mut none), room.bytes);
        Ok(if none.is_asked { Err(none.refused(self.path_of(of))) } else { done }?)
    }

    /// Chunk cache of a variable: bytes, slots, preemption.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    fn chunk_cache(&self, VarRef { group, var }: VarRef) -> Result<(usize, usize, f32)> {
        let (model, var) = self.var(group, var)?;
        let fail = |error| hdf(model.var_path(group, var), error);
        let details = self.details(var).map_err(fail)?;
        if let Some(set) = *details.cache.lock() {
            return Ok(set);
        }
        let (bytes, slots, preemption) = self.how.chunk_cache;
        let StorageKind::Chunked(dims) = &details.info().map_err(fail)?.storage else {
            // For a variable that was in the file when it was opened, the reference reports HDF5's default.
            let is_found = var.draft.is_none();
            return Ok(if is_found { (1 << 20, 521, 0.75) } else { self.how.chunk_cache });
        };
        // If one chunk does not fit, the cache gets room for ten, as in the reference.
        let elem = self.size_of(model, var.nc_type);
        let chunk = dims.iter().fold(elem, |bytes, &dim| bytes.saturating_mul(dim));
        let grown = if chunk > bytes { chunk.saturating_mul(10).min(64 << 20) } else { bytes };
        Ok((grown, slots, preemption))
    }

    /// Sets how many bytes of chunks the cache of a variable may hold at least; inquiries report the values as set.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_EINVAL` for a preemption outside 0 to 1.
    fn set_chunk_cache(
        &self,
        VarRef { group, var }: VarRef,
        cache: (usize, usize, f32),
    ) -> Result<()> {
        let (model, var) = self.var(group, var)?;
        let path = || model.var_path(group, var);
        if !(0.0..=1.0).contains(&cache.2) {
            return Err(Nc4Error::Refused { object: path(), code: NcError::Inval }.into());
        }
        let details = self.details(var).map_err(|error| hdf(path(), error))?;
        let mut set = details.cache.lock();
        *set = Some(cache);
        Ok(())
    }
}

impl Nc4File {
    /// How a variable is stored, its filters and fill value.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_EHDFERR`.
    pub fn var_info(&self, group: GroupId, var: VarId) -> crate::Result<Arc<VarInfo>> {
        let (model, var) = self.var(group, var)?;
        let info = self.details(var).and_then(|details| details.info().cloned());
        info.map_err(|error| hdf(model.var_path(group, var), error))
    }

    fn fill_element(
        &self,
        VarRef { group, var }: VarRef,
        place: &mut dyn VlenSink,
        out: &mut [u8],
    ) -> crate::Result<()> {
        let (model, var) = self.var(group, var)?;
        let mut read = || -> Outcome<()> {
            if let Some(draft) = &var.draft {
                return draft_fill(model, var, draft, place, out);
            }
            let details = self.details(var)?;
            let object = details.object()?;
            let datatype = object.datatype(&details.file)?;
            let form = ElementForm::of(&datatype).ok_or(NcError::BadType)?;
            let out = out.get_mut(..natural_size(&form)).ok_or(NcError::Inval)?;
            let user = user_fill(&details.file, &object)?;
            match user.filter(|user| user.len() == form.file_size) {
                Some(user) => natural(&details.file, &form, place, &user, out),
                None => default_element(model, var.nc_type, &form, place, out),
            }
        };
        read().map_err(|fault| fault.at(|| model.var_path(group, var)))
    }
}
