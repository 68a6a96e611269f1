//! Gets of one number: the short way of programs that get value by value.

use zonda_convert::Converted;
use zonda_format::{Access, VarRef};

use crate::file::Nc4File;
use crate::get::tolerated;

impl Nc4File {
    /// Gets one element, if an earlier get of the same type has checked all but where the element is. `None` where the two steps of a get have
    /// more to do or to refuse; then `out` holds anything.
    #[inline]
    pub(crate) fn element(&self, get: &Access<'_>, out: &mut [u8]) -> Option<Converted> {
        let Access { var: VarRef { group, var: id }, slab, mem } = *get;
        let model = self.model.get()?;
        let var = model.var(group, id)?;
        let written = match self.writing.as_deref() {
            Some(writing) if writing.mode.is_defining => return None,
            Some(writing) => writing.stores.chunks_of(group, id),
            None => None,
        };
        let data = match &written {
            Some((store, ..)) => &store.data,
            None if var.draft.is_some() => return None,
            None => &**var.details.get()?.data.get()?,
        };
        let (_, decoder) = data.decoder.get().filter(|(known, _)| Some(*known) == mem)?;
        if data.missing.is_some() {
            return None;
        }
        let rank = var.extent.len();
        let (start, count) = (slab.start.get(..rank)?, slab.count.get(..rank)?);
        let is_one = slab.stride.is_none() && count.iter().all(|&n| n == 1);
        if !is_one || start.iter().zip(&var.extent).any(|(&at, &len)| at as u64 >= len) {
            return None;
        }
        let converted = match written {
            Some((_, array, chunks)) => chunks.read_one(array, &var.extent, start, decoder, out)?,
            None => data.chunks()?.read_one(data.extent(), start, decoder, out)?,
        };
        Some(tolerated(model.is_classic, var.nc_type, mem, converted))
    }
}
