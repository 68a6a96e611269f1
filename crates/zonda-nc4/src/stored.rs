//! How much of a file the elements of a variable take up. Filters are not needed for it, and no data
//! is read: only the index of the chunks.

use std::sync::Arc;

use zonda_hdf5::message::DataLayout;
use zonda_hdf5::{ChunkIndex, FileAddr};
use zonda_model::VarId;

use crate::details::Details;
use crate::fault::HdfResult;
use crate::file::hdf;
use crate::{GroupId, Nc4File, Result};

/// Bytes of a variable's elements, in the file and as they are without filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageUse {
    /// Chunks that the file has, and chunks of the whole variable; `None` where it has no chunks.
    pub chunks: Option<(u64, u64)>,
    /// Bytes in the file. Strings and sequences are references there, to what is not counted.
    pub bytes: u64,
    /// Bytes of all elements without filters, those never written included.
    pub data_bytes: u64,
}

impl Nc4File {
    /// How much of the file a variable takes up. The first call reads the index of its chunks.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_EHDFERR`.
    pub fn stored(&self, group: GroupId, var: VarId) -> Result<StorageUse> {
        let (model, known) = self.var(group, var)?;
        let stored = match (self.written_stored(model, group, var), known.draft.as_deref()) {
            (Some(stored), _) => stored,
            // Defined, and not put to.
            (None, Some(_)) => {
                let elem = self.size_of(model, known.nc_type) as u64;
                let data_bytes = known.extent.iter().fold(elem, |n, &dim| n.saturating_mul(dim));
                Ok(StorageUse { data_bytes, ..StorageUse::default() })
            }
            (None, None) => self.details(known).and_then(StorageUse::of),
        };
        stored.map_err(|error| hdf(model.var_path(group, known), error))
    }

    /// Version of the superblock, and the bytes that a user block before it takes up.
    #[must_use]
    pub fn superblock(&self) -> (u8, u64) {
        let file = self.hdf5();
        (file.superblock().version, file.position(FileAddr(0)))
    }
}

impl StorageUse {
    fn of(details: &Details) -> HdfResult<StorageUse> {
        let (file, object) = (&details.file, details.object()?);
        let space = object.dataspace(file)?;
        let element = u64::from(object.datatype(file)?.size);
        let data_bytes = space.dims.iter().fold(element, |n, &dim| n.saturating_mul(dim));
        let (mut chunks, mut bytes) = (None, 0u64);
        match object.layout(file)? {
            DataLayout::Compact { data } => bytes = data.len() as u64,
            DataLayout::Contiguous { addr: Some(_), len } => bytes = len.unwrap_or(data_bytes),
            // Never written, or in other files.
            DataLayout::Contiguous { addr: None, .. } | DataLayout::Virtual { .. } => {}
            DataLayout::Chunked(layout) => {
                let filtered = !object.filters(file)?.is_empty();
                let (dims, max) = (&space.dims, &space.max_dims);
                let index = ChunkIndex::new(Arc::clone(file), &layout, dims, max, filtered)?;
                let mut n = 0u64;
                index.for_each(&mut |_, chunk| {
                    n = n.saturating_add(1);
                    bytes = bytes.saturating_add(chunk.len);
                })?;
                let grid = index.grid().iter().fold(1u64, |n, &along| n.saturating_mul(along));
                chunks = Some((n, grid));
            }
        }
        Ok(StorageUse { chunks, bytes, data_bytes })
    }
}
