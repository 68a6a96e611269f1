//! Puts of one number into a chunk that waits in memory: the short way of programs that put value by value.

use zonda_convert::Converted;
use zonda_format::{Access, VarRef};

use super::store::ElementStorage;
use crate::Nc4File;
use crate::get::tolerated;

impl Nc4File {
    /// Puts one element, if an earlier put of the same type has checked all but where the element is, and has left the chunk in memory. `None`
    /// where the two steps of a put have more to do or to refuse: then nothing was put. The element is one that the variable has, so no record
    /// begins with it, and no commit is due before it.
    #[inline]
    pub(super) fn put_one(&mut self, put: &Access<'_>, value: &[u8]) -> Option<Converted> {
        let Access { var: VarRef { group, var: id }, slab, mem } = *put;
        let mem = mem?;
        let (model, writing) = (self.model.get()?, self.writing.as_deref_mut()?);
        if writing.mode.is_defining {
            return None;
        }
        let stores = &mut writing.stores;
        let number = stores.number(group, id)?;
        let store = stores.get(number)?;
        let (ElementStorage::Chunked { array, .. }, None) = (&store.keep, store.quantize) else {
            return None;
        };
        let (_, encoder) = store.encoder.filter(|(known, _)| *known == mem)?;
        let (array, elem) = (*array, store.data.form.file_size as u64);
        let var = model.var(group, id)?;
        let rank = var.extent.len();
        let (start, count) = (slab.start.get(..rank)?, slab.count.get(..rank)?);
        if slab.stride.is_some() || count.iter().any(|&n| n != 1) {
            return None;
        }
        let chunks = stores.chunks.as_mut()?;
        let converted = chunks.put_one(array, &var.extent, start, &encoder, value)?;
        stores.put_bytes = stores.put_bytes.saturating_add(elem);
        Some(tolerated(model.is_classic, var.nc_type, Some(mem), converted))
    }
}
