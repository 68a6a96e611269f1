//! Chunks as they are stored, for copies that undo no filter and apply none.

use std::sync::Arc;

use zonda_chunk::{ChunkAt, FilterSpec, StoredChunks};
use zonda_format::VarRef;
use zonda_hdf5::message::{DataLayout, Datatype, FillTime};
use zonda_hdf5::{ChunkIndex, ChunkLocation};
use zonda_model::{NcError, VarId};

use super::Writing;
use super::contiguous::{Contiguous, take_run};
use super::store::{ElementStorage, FileSpace, Stores, VarStore};
use crate::details::as_stored;
use crate::fault::{Fault, HdfResult, Outcome};
use crate::file::hdf;
use crate::model::{GroupId, Model};
use crate::stored::StorageUse;
use crate::{Nc4Error, Nc4File, Result};

/// The value of elements that nobody wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwrittenElements {
    /// Anything.
    Undefined,
    /// Zeros, as HDF5 has it where nobody gave a value.
    Zeros,
    /// The fill value.
    Value,
}

impl Nc4File {
    /// The filters of a variable as the file has them, in the order in which they are applied: what
    /// has to be the same for chunks to be copied as they are. Those of a new variable are known
    /// once definitions were ended.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_EHDFERR`.
    pub fn pipeline(&self, group: GroupId, var: VarId) -> Result<Vec<FilterSpec>> {
        let (model, known) = self.var(group, var)?;
        if let Some(draft) = known.draft.as_deref() {
            return Ok(draft.stored_filters.iter().map(as_stored).collect());
        }
        let read = || -> HdfResult<_> {
            let details = self.details(known)?;
            details.object()?.filters(&details.file)
        };
        let filters = read().map_err(|error| hdf(model.var_path(group, known), error))?;
        Ok(filters.iter().map(as_stored).collect())
    }

    /// The type of a variable's elements as the file has it. If those of two variables are equal, equal bytes are equal
    /// elements. The type of a new variable is known once definitions were ended.
    ///
    /// # Errors
    /// As [`Nc4File::pipeline`].
    pub fn stored_type(&self, group: GroupId, var: VarId) -> Result<Datatype> {
        let (model, known) = self.var(group, var)?;
        if let Some(draft) = known.draft.as_deref() {
            return Ok(draft.datatype.clone());
        }
        let read = || -> HdfResult<_> {
            let details = self.details(known)?;
            details.object()?.datatype(&details.file)
        };
        read().map_err(|error| hdf(model.var_path(group, known), error))
    }

    /// The value of elements of a variable that nobody wrote.
    ///
    /// # Errors
    /// As [`Nc4File::pipeline`].
    pub fn never_written(&self, group: GroupId, var: VarId) -> Result<UnwrittenElements> {
        let (model, known) = self.var(group, var)?;
        if let Some(draft) = known.draft.as_deref() {
            let is_defined = !draft.no_fill;
            return Ok(if is_defined {
                UnwrittenElements::Value
            } else {
                UnwrittenElements::Undefined
            });
        }
        let read = || -> HdfResult<_> {
            let details = self.details(known)?;
            details.object()?.fill_value(&details.file)
        };
        let fill = read().map_err(|error| hdf(model.var_path(group, known), error))?;
        Ok(match fill {
            Some(fill) if fill.undefined => UnwrittenElements::Undefined,
            Some(fill) if fill.value.as_ref().is_some_and(|value| !value.is_empty()) => {
                UnwrittenElements::Value
            }
            Some(fill) if fill.fill_time == Some(FillTime::Never) => UnwrittenElements::Undefined,
            _ => UnwrittenElements::Zeros,
        })
    }

    /// Elements that a variable has along each dimension: fewer than the dimension where that is
    /// unlimited and others are longer.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`.
    pub fn extent(&self, group: GroupId, var: VarId) -> Result<&[u64]> {
        Ok(&self.var(group, var)?.1.extent)
    }

    /// Calls a function for each chunk that a variable has in the file: with its coordinates, counted in chunks, and its
    /// position in the storage, stored bytes and mask (bit i is set if filter i was skipped). Chunks that were put and
    /// wait in memory are left out: call [`DispatchWrite::sync`](zonda_format::DispatchWrite::sync) before.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_ENOTBUILT` for a variable without chunks, `NC_EHDFERR`.
    pub fn for_each_chunk(
        &self,
        group: GroupId,
        var: VarId,
        found: &mut dyn FnMut(&[u64], ChunkAt),
    ) -> Result<()> {
        let (model, known) = self.var(group, var)?;
        let path = || model.var_path(group, known);
        let no_chunks = || Nc4Error::Refused { object: path(), code: NcError::NotBuilt };
        let mut tell = |key: &[u64], ChunkLocation { at, len, mask }: ChunkLocation| {
            found(key, ChunkAt { at, len, mask });
        };
        if let Some(store) = self.store(group, var) {
            let ElementStorage::Chunked { tree, .. } = &store.keep else { return Err(no_chunks()) };
            let told = tree.for_each(known.dims.len(), &mut tell);
            return told.map_err(|error| hdf(path(), error));
        }
        if known.draft.is_some() {
            return Ok(());
        }
        let read = || -> HdfResult<Option<ChunkIndex>> {
            let details = self.details(known)?;
            let (file, object) = (&details.file, details.object()?);
            let DataLayout::Chunked(layout) = object.layout(file)? else { return Ok(None) };
            let filtered = !object.filters(file)?.is_empty();
            let space = object.dataspace(file)?;
            let (dims, max) = (&space.dims, &space.max_dims);
            ChunkIndex::new(Arc::clone(file), &layout, dims, max, filtered).map(Some)
        };
        let index = read().map_err(|error| hdf(path(), error))?.ok_or_else(no_chunks)?;
        index.for_each(&mut tell).map_err(|error| hdf(path(), error))
    }

    /// Fetches chunks as they are stored into `out`, in the order of `keys`; those that were never
    /// written are left out. As with [`Nc4File::for_each_chunk`], what waits in memory is not seen.
    ///
    /// # Errors
    /// As [`Nc4File::for_each_chunk`]; `NC_EINVAL` for another number of coordinates.
    pub fn stored_chunks<K: AsRef<[u64]>>(
        &self,
        group: GroupId,
        var: VarId,
        keys: &[K],
        out: &mut StoredChunks,
    ) -> Result<()> {
        out.clear();
        let (model, known) = self.var(group, var)?;
        let fail = |fault: Fault| fault.at(|| model.var_path(group, known));
        let mut read = || -> Outcome<_> {
            let array = match (self.store(group, var), &self.writing) {
                (Some(store), Some(writing)) => {
                    let chunks = writing.stores.chunks.as_ref();
                    store.array().and_then(|array| chunks?.array(array))
                }
                _ if known.draft.is_some() => return Ok(()),
                _ => self.data(known)?.chunks(),
            };
            let array = array.ok_or(NcError::NotBuilt)?;
            Ok(array.stored_chunks(&known.extent, keys, out)?)
        };
        read().map_err(fail)
    }

    /// Puts chunks whose bytes went through the filters already and whose coordinates ascend, with
    /// their masks. They have to begin inside the variable: [`Nc4File::extend`] makes that longer.
    ///
    /// # Errors
    /// As [`DispatchWrite::put`](zonda_format::DispatchWrite::put); `NC_EINVALCOORDS` for a chunk outside, `NC_ENOTBUILT` for a variable
    /// without chunks, and for chunks of strings and sequences, which point to what is not copied.
    pub fn put_stored_chunks(
        &mut self,
        group: GroupId,
        var: VarId,
        stored: &StoredChunks,
    ) -> Result<()> {
        let put = self.put_chunks(group, var, stored);
        put.map_err(|fault| self.put_fault(VarRef { group, var }, fault))
    }

    fn put_chunks(&mut self, group: GroupId, id: VarId, stored: &StoredChunks) -> Outcome<()> {
        let refused = Fault::Refused;
        let number = self.begin_raw(group, id)?;
        let Nc4File { files, model, writing, .. } = self;
        let (Some(model), Some(writing)) = (model.get(), writing.as_deref_mut()) else {
            return Err(refused(NcError::Internal));
        };
        let Writing { stores, space, heap, .. } = writing;
        let heap = heap.get_mut();
        stores.put_bytes = stores.put_bytes.saturating_add(stored.n_bytes() as u64);
        let store = stores.get(number).ok_or(refused(NcError::Internal))?;
        let ElementStorage::Chunked { array, layout, .. } = &store.keep else {
            return Err(refused(NcError::NotBuilt));
        };
        if store.data.form.has_pointers() {
            return Err(refused(NcError::NotBuilt));
        }
        let extent = model.var(group, id).map_or(&[][..], |var| &var.extent);
        let is_inside = |key: &[u64]| {
            let mut axes = key.iter().zip(&layout.chunk_dims).zip(extent);
            key.len() == extent.len() && axes.all(|((&k, &n), &len)| k.saturating_mul(n) < len)
        };
        if !stored.iter().all(|(key, ..)| is_inside(key)) {
            return Err(refused(NcError::InvalidCoords));
        }
        let (array, file) = (*array, files.main());
        let Stores { chunks, copies, .. } = stores;
        let chunks = chunks.as_mut().ok_or(refused(NcError::Internal))?;
        Ok(chunks.put_stored(array, stored, &mut FileSpace { space, heap, copies, file })?)
    }

    /// Gives a contiguous variable its place in the file, if it has none, without fill values: for
    /// callers who put every element. What they do not put is undefined. Other variables stay as
    /// they are.
    ///
    /// # Errors
    /// As [`DispatchWrite::put`](zonda_format::DispatchWrite::put).
    pub fn place_unfilled(&mut self, group: GroupId, var: VarId) -> Result<()> {
        let placed = self.place_run(group, var);
        placed.map_err(|fault| self.put_fault(VarRef { group, var }, fault))
    }

    fn place_run(&mut self, group: GroupId, id: VarId) -> Outcome<()> {
        let refused = || Fault::Refused(NcError::Internal);
        let number = self.begin_raw(group, id)?;
        let file = self.files.main();
        let writing = self.writing.as_deref_mut().ok_or_else(refused)?;
        writing.store_complete(file)?;
        let Writing { stores, space, .. } = writing;
        let store = stores.get_mut(number).ok_or_else(refused)?;
        if let ElementStorage::Contiguous(Contiguous { addr: None, len, .. }) = store.keep
            && !store.data.form.has_pointers()
        {
            let at = take_run(space, file, len)?;
            store.keep_run(at, len, len, file);
        }
        Ok(())
    }

    /// Makes a variable as long as this along the dimensions that can grow, as a put of its last
    /// element would.
    ///
    /// # Errors
    /// As [`DispatchWrite::put`](zonda_format::DispatchWrite::put); `NC_EEDGE` for more than a dimension that cannot grow has, `NC_EINVAL`
    /// for another number of dimensions.
    pub fn extend(&mut self, group: GroupId, var: VarId, extent: &[u64]) -> Result<()> {
        let extended = self.extend_to(group, var, extent);
        extended.map_err(|fault| self.put_fault(VarRef { group, var }, fault))
    }

    fn extend_to(&mut self, group: GroupId, id: VarId, extent: &[u64]) -> Outcome<()> {
        let refused = Fault::Refused;
        let number = self.begin_raw(group, id)?;
        let (Some(model), Some(writing)) = (self.model.get_mut(), self.writing.as_deref_mut())
        else {
            return Err(refused(NcError::Internal));
        };
        let store = writing.stores.get_mut(number).ok_or(refused(NcError::Internal))?;
        if extent.len() != store.fixed.len() {
            return Err(refused(NcError::Inval));
        }
        let beyond = |(len, &to): (&Option<u64>, &u64)| len.is_some_and(|len| to > len);
        if store.fixed.iter().zip(extent).any(beyond) {
            return Err(refused(NcError::Edge));
        }
        super::grow::to(model, group, id, store, extent);
        Ok(())
    }

    fn begin_raw(&mut self, group: GroupId, id: VarId) -> Outcome<usize> {
        let known = self.writing.as_deref().filter(|writing| !writing.mode.is_defining);
        match known.and_then(|writing| writing.stores.number(group, id)) {
            Some(number) => Ok(number),
            None => self.begin_put(group, id, None),
        }
    }

    fn store(&self, group: GroupId, var: VarId) -> Option<&VarStore> {
        let stores = &self.writing.as_deref()?.stores;
        stores.get(stores.number(group, var)?)
    }

    /// How much of the file a variable takes up, if it was put to.
    pub(crate) fn written_stored(
        &self,
        model: &Model,
        group: GroupId,
        id: VarId,
    ) -> Option<HdfResult<StorageUse>> {
        let (store, var) = (self.store(group, id)?, model.var(group, id)?);
        let elem = store.data.form.file_size as u64;
        let data_bytes = var.extent.iter().fold(elem, |n, &dim| n.saturating_mul(dim));
        let (mut chunks, mut bytes) = (None, 0u64);
        match &store.keep {
            ElementStorage::Contiguous(run) => bytes = run.addr.map_or(0, |_| run.len),
            ElementStorage::Compact { bytes: data } => bytes = data.len() as u64,
            ElementStorage::Chunked { tree, layout, .. } => {
                let mut n = 0u64;
                let told = tree.for_each(var.dims.len(), &mut |_, chunk| {
                    n = n.saturating_add(1);
                    bytes = bytes.saturating_add(chunk.len);
                });
                if let Err(error) = told {
                    return Some(Err(error));
                }
                let along = var.extent.iter().zip(&layout.chunk_dims);
                let along = along.map(|(&len, &chunk)| len.div_ceil(chunk.max(1)));
                chunks = Some((n, along.fold(1, u64::saturating_mul)));
            }
        }
        Some(Ok(StorageUse { chunks, bytes, data_bytes }))
    }
}
