//! A chunked array: its shape, its chunks in a storage, and its cache of decoded chunks. Reads are in `read`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zonda_convert::Converted;
use zonda_model::Hyperslab;
use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::memory::Blocks;
use zonda_storage::Storage;

use crate::ChunkError;
use crate::cache::ChunkCache;
use crate::decode::Decode;
use crate::engine::Engine;
use crate::filter::Pipeline;
use crate::prefetch::{AccessPattern, BackgroundDecoding};
use crate::selection::{self, Coords};
use crate::table::ChunkTable;

/// The shape of an array's chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayShape {
    /// Elements of a chunk along each dimension, slowest first.
    pub chunk_dims: Vec<u64>,
    /// Bytes of an element in the file.
    pub elem_size: usize,
}

/// An array in chunks, with its cache of decoded chunks. Any number of threads may read it at once.
#[derive(Debug)]
pub struct ChunkedArray {
    pub(crate) inner: Arc<SharedArray>,
}

/// Chunks that are in memory and newer than what the table finds.
pub(crate) trait NewerChunks: Sync {
    /// The bytes of a chunk, in the file's form; in `room`, which is empty, if they are not in memory.
    ///
    /// # Errors
    /// Those of where they are.
    fn chunk<'a>(
        &'a self,
        key: &[u64],
        room: &'a mut Vec<u8>,
    ) -> Result<Option<&'a [u8]>, ChunkError>;
}

/// What work in the background needs of an array.
#[derive(Debug)]
pub(crate) struct SharedArray {
    pub engine: Arc<Engine>,
    pub storage: Arc<dyn Storage>,
    pub table: Arc<dyn ChunkTable>,
    pub filters: Arc<Pipeline>,
    pub chunk_dims: Vec<u64>,
    pub elem_size: usize,
    /// Bytes of a chunk; none for a shape that no array can have.
    pub chunk_bytes: Option<usize>,
    /// Bytes from one element of a chunk to the next in each dimension.
    pub steps: Coords,
    pub fill: Box<[u8]>,
    pub partial_edge_unfiltered: bool,
    /// Memory of chunks that are kept; before them, since it says where all of them go.
    pub blocks: Blocks,
    pub cache: Arc<ChunkCache>,
    /// When the last request began.
    pub since: AtomicU64,
    pub pattern: Mutex<AccessPattern>,
    /// Where the chunk is that the last element was read out of, of those that were read alone.
    pub last_read: AtomicU64,
    /// Bytes that the storage had when it was asked last.
    pub known_len: AtomicU64,
    pub background: BackgroundDecoding,
}

impl ChunkedArray {
    /// An array whose chunks `table` finds in `storage`. `fill` is one element in file form; empty
    /// for zeros. With `partial_edge_unfiltered`, chunks that reach beyond the extent are stored
    /// without filters.
    ///
    /// Costs next to nothing; a shape that no array can have is reported by the first read.
    #[must_use]
    pub fn new(
        storage: Arc<dyn Storage>,
        table: Arc<dyn ChunkTable>,
        filters: Arc<Pipeline>,
        shape: ArrayShape,
        fill: Box<[u8]>,
        partial_edge_unfiltered: bool,
    ) -> ChunkedArray {
        let engine = Engine::process();
        Self::new_in(&engine, storage, table, filters, shape, fill, partial_edge_unfiltered)
    }

    /// The same, with the threads and the memory of `engine` instead of the process's.
    #[must_use]
    pub fn new_in(
        engine: &Arc<Engine>,
        storage: Arc<dyn Storage>,
        table: Arc<dyn ChunkTable>,
        filters: Arc<Pipeline>,
        shape: ArrayShape,
        fill: Box<[u8]>,
        partial_edge_unfiltered: bool,
    ) -> ChunkedArray {
        let ArrayShape { chunk_dims, elem_size } = shape;
        let steps = selection::steps(&chunk_dims, elem_size);
        let bytes =
            chunk_dims.iter().try_fold(elem_size as u64, |product, &n| product.checked_mul(n));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let chunk_bytes = bytes.filter(|&bytes| bytes > 0 && isize::try_from(bytes).is_ok());
        let inner = SharedArray {
            engine: Arc::clone(engine),
            storage,
            table,
            filters,
            elem_size,
            chunk_bytes,
            steps: steps.unwrap_or_default(),
            chunk_dims,
            fill,
            partial_edge_unfiltered,
            cache: ChunkCache::new(engine, chunk_bytes.unwrap_or(0) as u64),
            blocks: Blocks::new(chunk_bytes.unwrap_or(0)),
            since: AtomicU64::new(0),
            pattern: Mutex::ranked(Rank::Pattern, AccessPattern::default()),
            last_read: AtomicU64::new(u64::MAX),
            known_len: AtomicU64::new(0),
            background: BackgroundDecoding::default(),
        };
        ChunkedArray { inner: Arc::new(inner) }
    }

    /// Reads a hyperslab of the array, whose shape is `extent`, into `out`: packed, row-major with
    /// shape `slab.count`, elements in memory form. Elements outside `extent`, and those of chunks
    /// never written, are fill values. Each element of `out` is written once, or not at all where
    /// the decoder keeps what does not fit.
    ///
    /// # Errors
    /// Those of storage, table and filters; [`ChunkError::OutOfFile`] for a chunk that is not in the
    /// file; [`ChunkError::Request`] where the arguments do not fit each other. `out` then holds
    /// anything. With several chunks at fault, the first in row-major order is reported.
    pub fn read(
        &self,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        decode: Decode<'_>,
        out: &mut [u8],
    ) -> Result<Converted, ChunkError> {
        match self.inner.read_cached_run(extent, slab, &decode, out) {
            Some(converted) => Ok(converted),
            None => self.inner.read(extent, slab, &decode, out, None),
        }
    }

    /// The least that the cache may hold, in bytes, whatever other caches need.
    pub fn set_cache_floor(&self, bytes: u64) {
        self.inner.cache.set_floor(bytes);
    }

    /// Bytes of decoded chunks in the cache.
    #[must_use]
    pub fn cached_bytes(&self) -> u64 {
        self.inner.cache.bytes()
    }

    /// Forgets all decoded chunks: what another process wrote since is seen.
    pub fn clear_cache(&self) {
        self.inner.cache.clear();
        self.inner.known_len.store(0, Ordering::Relaxed);
        *self.inner.pattern.lock() = AccessPattern::default();
    }
}

impl Drop for ChunkedArray {
    fn drop(&mut self) {
        self.inner.background.stop();
        self.inner.cache.clear();
    }
}

impl SharedArray {
    /// Forgets what was decoded of a chunk that is another one in the storage now. Not to be called
    /// while requests run.
    pub(crate) fn changed(&self, key: &[u64]) {
        self.background.changed(&self.cache, key);
    }
}
