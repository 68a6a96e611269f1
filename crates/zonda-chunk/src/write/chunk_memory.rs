//! Chunks that are in the storage already, loaded to be changed.

use crate::ChunkError;
use crate::array::SharedArray;
use crate::selection::Coords;
use crate::stored::{LocatedChunk, lengthen};
use crate::table::ChunkAt;
use crate::tuning::FILL_BLOCK_BYTES;
use crate::worker::WorkerBuffers;

impl SharedArray {
    /// Where one chunk is.
    pub(crate) fn find(&self, key: &[u64]) -> Result<Option<ChunkAt>, ChunkError> {
        self.table.find(key).map_err(ChunkError::Table)
    }

    /// Whether a chunk reaches beyond the extent.
    pub(crate) fn is_edge(&self, key: &[u64], extent: &[u64]) -> bool {
        key.iter().zip(&self.chunk_dims).zip(extent).any(|((&k, &chunk), &extent)| {
            k.saturating_add(1).checked_mul(chunk).is_none_or(|end| end > extent)
        })
    }

    /// Fills `chunk` with the elements of a chunk in the storage.
    pub(crate) fn load(
        &self,
        key: &Coords,
        place: ChunkAt,
        extent: &[u64],
        buffers: &mut WorkerBuffers,
        chunk: &mut [u8],
    ) -> Result<(), ChunkError> {
        if let Some(cached) = self.cache.get(key).filter(|cached| cached.bytes.len() == chunk.len())
        {
            chunk.copy_from_slice(&cached.bytes);
            return Ok(());
        }
        let found = LocatedChunk { key, place, is_edge: self.is_edge(key, extent) };
        let is_raw = self.is_raw(&found);
        if is_raw && place.len != chunk.len() as u64 {
            let (at, expected) = (place.at, chunk.len() as u64);
            return Err(ChunkError::Length {
                chunk: crate::error::coordinates(key),
                at,
                got: place.len,
                expected,
            });
        }
        self.fetch(&found, &mut buffers.rows.stored)?;
        let stored = &buffers.rows.stored[..place.len as usize];
        if is_raw {
            chunk.copy_from_slice(stored);
            return Ok(());
        }
        let failed = |error| self.filter_error(&found, error);
        self.filters.prove(stored, place.mask, &mut buffers.filter).map_err(failed)?;
        let decoded = self.filters.decode(stored, place.mask, &mut buffers.filter, chunk);
        decoded.map_err(failed)
    }
}

/// The element `fill` over and over; zeros if it is empty.
pub(crate) fn fill_chunk(chunk: &mut [u8], fill: &[u8]) {
    match fill {
        [] => chunk.fill(0),
        [byte] => chunk.fill(*byte),
        _ if fill.iter().all(|byte| *byte == fill[0]) => chunk.fill(fill[0]),
        _ => {
            // Doubling what is there: large copies instead of many small ones.
            let most = (FILL_BLOCK_BYTES / fill.len()).max(1) * fill.len();
            let mut done = fill.len().min(chunk.len());
            chunk[..done].copy_from_slice(&fill[..done]);
            while done < chunk.len() {
                let more = done.min(most).min(chunk.len() - done);
                chunk.copy_within(..more, done);
                done += more;
            }
        }
    }
}

/// Memory of `len` bytes, whatever they are; of `spare` if it has some.
pub(crate) fn memory(spare: Option<Vec<u8>>, len: usize) -> Result<Vec<u8>, ChunkError> {
    let mut bytes = spare.unwrap_or_default();
    bytes.truncate(len);
    lengthen(&mut bytes, len)?;
    Ok(bytes)
}
