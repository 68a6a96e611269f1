//! One array of a writer.

use std::sync::Arc;

use smallvec::SmallVec;
use zonda_model::Hyperslab;
use zonda_storage::Storage;

use super::RANK;
use super::pending::{ChunkElems, PendingIds};
use super::put_one::RecentChunks;
use super::written_bits::WrittenBits;
use crate::engine::Engine;
use crate::filter::Pipeline;
use crate::recency::NodeId;
use crate::selection::Coords;
use crate::selection::{self, run_in};
use crate::table::WriteTable;
use crate::{ArrayShape, ChunkError, ChunkedArray};

/// What a [`ChunkWriter`](crate::ChunkWriter) has to know of an array.
#[derive(Debug)]
pub struct NewArray {
    /// Where its chunks are, and are entered.
    pub table: Arc<dyn WriteTable>,
    /// Its filters.
    pub filters: Arc<Pipeline>,
    /// The shape of its chunks.
    pub shape: ArrayShape,
    /// One element in file form; empty for zeros.
    pub fill: Box<[u8]>,
    /// The length of each dimension that cannot grow. A chunk is complete when all elements that it
    /// can ever have were put.
    pub fixed: Vec<Option<u64>>,
    /// Chunks that reach beyond the extent, which is this one, are stored without filters. Such an
    /// array cannot grow: chunks that come to lie inside would have to be filtered.
    pub unfiltered_edges: Option<Vec<u64>>,
    /// Unfiltered chunks are not written over where they are, but go to fresh space each time, as
    /// filtered ones do: for elements that refer to what is not in the storage yet.
    pub always_fresh: bool,
}

#[derive(Debug)]
pub(crate) struct WriterArray {
    pub read: ChunkedArray,
    pub table: Arc<dyn WriteTable>,
    pub filters: Arc<Pipeline>,
    pub fill: Box<[u8]>,
    pub always_fresh: bool,
    pub chunk_dims: Coords,
    pub elem_size: usize,
    pub chunk_elems: usize,
    pub chunk_bytes: usize,
    /// Bytes from one element of a chunk to the next in each dimension.
    pub steps: Coords,
    /// Elements along each dimension, as far as that is certain.
    pub limits: Coords,
    /// The extent, if chunks that reach beyond it are not filtered.
    pub unfiltered_edges: Option<Coords>,
    pub keys: PendingIds,
    /// The chunk put last by a run, where to look first. It may be gone, or another one by now.
    pub last: Option<NodeId>,
    /// Where to look next.
    pub recent: RecentChunks,
}

impl WriterArray {
    pub(crate) fn new(
        new: NewArray,
        engine: &Arc<Engine>,
        storage: &Arc<dyn Storage>,
    ) -> Result<WriterArray, ChunkError> {
        let NewArray { table, filters, shape, fill, fixed, unfiltered_edges, always_fresh } = new;
        let ArrayShape { chunk_dims, elem_size } = &shape;
        let rank = chunk_dims.len();
        let steps = selection::steps(chunk_dims, *elem_size);
        let elems = chunk_dims.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
        let bytes = elems.and_then(|elems| elems.checked_mul(*elem_size as u64));
        let bytes = bytes.filter(|&bytes| bytes > 0 && isize::try_from(bytes).is_ok());
        let (Some(steps), Some(elems), Some(bytes)) = (steps, elems, bytes) else {
            let what = "a chunk has no elements, or more than can be counted";
            return Err(ChunkError::Shape { what });
        };
        if !fill.is_empty() && fill.len() != *elem_size {
            let what = "the fill value has another size than an element";
            return Err(ChunkError::Shape { what });
        }
        if fixed.len() != rank || unfiltered_edges.as_ref().is_some_and(|e| e.len() != rank) {
            return Err(RANK);
        }
        Ok(WriterArray {
            table: Arc::clone(&table),
            filters: Arc::clone(&filters),
            fill: fill.clone(),
            always_fresh,
            chunk_dims: SmallVec::from_slice(chunk_dims),
            elem_size: *elem_size,
            chunk_elems: elems as usize,
            chunk_bytes: bytes as usize,
            steps,
            limits: fixed.iter().map(|len| len.unwrap_or(u64::MAX)).collect(),
            keys: PendingIds::default(),
            last: None,
            recent: RecentChunks::default(),
            read: ChunkedArray::new_in(
                engine,
                Arc::clone(storage),
                table,
                filters,
                shape,
                fill,
                unfiltered_edges.is_some(),
            ),
            unfiltered_edges: unfiltered_edges.map(SmallVec::from_vec),
        })
    }

    /// Whether a chunk is stored as it is.
    pub(crate) fn is_unfiltered(&self, key: &[u64]) -> bool {
        let edge = |extent: &Coords| self.read.inner.is_edge(key, extent);
        self.filters.is_identity() || self.unfiltered_edges.as_ref().is_some_and(edge)
    }

    /// Whether chunks are written over where they are.
    pub(crate) fn writes_over(&self) -> bool {
        self.filters.is_identity() && !self.always_fresh
    }

    /// Whether a put may come with this extent.
    pub(crate) fn may_have(&self, extent: &[u64]) -> bool {
        self.unfiltered_edges.as_ref().is_none_or(|there| **there == *extent)
    }

    /// Elements of a chunk that can ever be put.
    pub(crate) fn possible(&self, key: &[u64]) -> usize {
        let sides =
            key.iter().zip(&self.chunk_dims).zip(&self.limits).map(|((&k, &n), &limit)| {
                n.min(limit.saturating_sub(k.saturating_mul(n))) as usize
            });
        sides.product()
    }

    pub(crate) fn origin(&self, key: &[u64]) -> Coords {
        key.iter().zip(&self.chunk_dims).map(|(&k, &n)| k.saturating_mul(n)).collect()
    }

    /// The chunk and the elements in it, for a put that is one run of elements in one chunk.
    pub(crate) fn run(
        &self,
        extent: &[u64],
        slab: &Hyperslab<'_>,
    ) -> Option<(Coords, (u64, usize))> {
        let dims = &self.chunk_dims[..];
        if slab.start.len() != dims.len() {
            return None;
        }
        let key: Coords = slab.start.iter().zip(dims).map(|(&s, &n)| s as u64 / n).collect();
        let run = run_in(dims, extent, slab, |d| key[d] * dims[d])?;
        Some((key, run))
    }

    /// A chunk of which nothing was put so far.
    pub(crate) fn begin(&self, bytes: Vec<u8>, key: &[u64]) -> Result<ChunkElems, ChunkError> {
        let no_memory = ChunkError::NoMemory { bytes: self.chunk_bytes as u64 };
        let written = WrittenBits::new(self.chunk_elems, self.possible(key)).ok_or(no_memory)?;
        Ok(ChunkElems { bytes, written, spilled: None })
    }
}
