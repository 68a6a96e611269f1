//! A chunked array: from a request to the chunks it touches, and from each chunk to the caller's
//! memory.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use zonda_runtime::lock::{Mutex, Rank};

use smallvec::SmallVec;
use zonda_convert::Converted;
use zonda_model::Hyperslab;
use zonda_storage::Storage;
use zonda_trace::{Args, Kind, span};

use crate::ChunkError;
use crate::cache::{CacheClaim, CacheHit, ChunkCache, ClaimTerms};
use crate::contiguous::{self, RowBuffers};
use crate::decode::Decode;
use crate::engine::Engine;
use crate::filter::{Decoded, Pipeline, Scratch};
use crate::memory_parts::{MemoryPart, MemoryParts};
use crate::plan::{self, PartBatch};
use crate::prefetch::{AccessPattern, BackgroundDecoding, PrefetchBox};
use crate::selection::{Coords, GridSelection};
use crate::stored::{LocatedChunk, UnfilteredChunk, decoding, lengthen};
use crate::table::{ChunkAt, ChunkTable};
use crate::tuning::{
    CACHED_UNFILTERED_BYTES, CACHED_UNFILTERED_REQUESTS, KEPT_BUFFERS_BUDGET_PART,
    KEPT_BUFFERS_CHUNK_BYTES, MAPPED_BYTES, READ_BATCH_CHUNKS, READ_CLAIM_BYTES,
    READ_POOL_CACHED_BYTES, READ_POOL_DECODED_BYTES, READ_POOL_UNFILTERED_BYTES,
    SHUFFLED_ROW_ELEMS, SMALL_REQUEST_PART,
};
use zonda_runtime::memory::tick;

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
    pub(crate) inner: Arc<Inner>,
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
pub(crate) struct Inner {
    pub engine: Arc<Engine>,
    pub storage: Arc<dyn Storage>,
    pub table: Arc<dyn ChunkTable>,
    pub filters: Arc<Pipeline>,
    pub chunk_dims: Vec<u64>,
    elem_size: usize,
    /// Bytes of a chunk; none for a shape that no array can have.
    pub chunk_bytes: Option<usize>,
    /// Bytes from one element of a chunk to the next in each dimension.
    steps: Coords,
    fill: Box<[u8]>,
    pub partial_edge_unfiltered: bool,
    pub cache: Arc<ChunkCache>,
    /// When the last request began.
    pub since: AtomicU64,
    pattern: Mutex<AccessPattern>,
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
        let steps = contiguous::steps(&chunk_dims, elem_size);
        let bytes =
            chunk_dims.iter().try_fold(elem_size as u64, |product, &n| product.checked_mul(n));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let chunk_bytes = bytes.filter(|&bytes| bytes > 0 && isize::try_from(bytes).is_ok());
        let inner = Inner {
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
            since: AtomicU64::new(0),
            pattern: Mutex::ranked(Rank::Pattern, AccessPattern::default()),
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
        *self.inner.pattern.lock() = AccessPattern::default();
    }
}

impl Drop for ChunkedArray {
    fn drop(&mut self) {
        self.inner.background.stop();
        self.inner.cache.clear();
    }
}

/// What a request is about, for the threads that work on it.
struct ReadRequest<'a> {
    selection: &'a GridSelection,
    decode: &'a Decode<'a>,
    batch: &'a PartBatch,
    /// By part number from `batch.begin` on.
    places: &'a [Option<ChunkAt>],
    hits: &'a [CacheHit],
    /// Whole chunks are kept too.
    keep_whole: bool,
    /// Unfiltered chunks are kept too.
    keep_raw: bool,
    since: u64,
    newer: Option<&'a dyn NewerChunks>,
}

/// The memory of one thread at work on chunks.
#[derive(Debug, Default)]
pub(crate) struct WorkerBuffers {
    pub rows: RowBuffers,
    pub filter: Scratch,
    chunk: Vec<u8>,
}

/// A thread's memory between two requests.
#[derive(Default)]
struct KeptBuffers {
    buffers: WorkerBuffers,
    /// Bytes of it in [`KEPT_BYTES`].
    counted: u64,
}

/// Bytes that threads keep for large chunks.
static KEPT_BYTES: AtomicU64 = AtomicU64::new(0);

impl Drop for KeptBuffers {
    fn drop(&mut self) {
        KEPT_BYTES.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

thread_local! {
    static KEPT_BUFFERS: RefCell<Option<KeptBuffers>> = const { RefCell::new(None) };
}

impl WorkerBuffers {
    pub(crate) fn take() -> WorkerBuffers {
        let kept = KEPT_BUFFERS.try_with(RefCell::take).ok().flatten();
        kept.map_or_else(WorkerBuffers::default, |mut kept| std::mem::take(&mut kept.buffers))
    }

    /// Keeps the memory for the next request, unless it is much beside what the budget allows.
    pub(crate) fn put_back(self, chunk_bytes: usize, engine: &Engine) {
        let mut kept = KeptBuffers { buffers: self, counted: 0 };
        if chunk_bytes > KEPT_BUFFERS_CHUNK_BYTES {
            let WorkerBuffers { rows, filter, chunk } = &kept.buffers;
            let bytes = rows.stored.capacity() + rows.block.capacity() + chunk.capacity();
            kept.counted = (bytes + filter.bytes()) as u64;
            let all =
                KEPT_BYTES.fetch_add(kept.counted, Ordering::Relaxed).saturating_add(kept.counted);
            if all > engine.budget_bytes() / KEPT_BUFFERS_BUDGET_PART {
                return;
            }
        }
        // A thread about to end has no use for it.
        let _ = KEPT_BUFFERS.try_with(|buffers| buffers.replace(Some(kept)));
    }
}

/// The first thing that went wrong, by part number, and what was converted.
struct ReadOutcome {
    failed: Mutex<Option<ChunkError>>,
    failed_part: AtomicUsize,
    out_of_range: AtomicU64,
}

impl ReadOutcome {
    fn new() -> ReadOutcome {
        ReadOutcome {
            failed: Mutex::ranked(Rank::Failed, None),
            failed_part: AtomicUsize::new(usize::MAX),
            out_of_range: AtomicU64::new(0),
        }
    }

    fn fail(&self, part: usize, error: ChunkError) {
        let mut failed = self.failed.lock();
        if part < self.failed_part.load(Ordering::Relaxed) {
            self.failed_part.store(part, Ordering::Relaxed);
            *failed = Some(error);
        }
    }
}

impl Inner {
    /// Forgets what was decoded of a chunk that is another one in the storage now. Not to be called
    /// while requests run.
    pub(crate) fn changed(&self, key: &[u64]) {
        self.background.changed(&self.cache, key);
    }

    /// A single run of elements inside one chunk that is in the cache.
    #[inline]
    fn read_cached_run(
        &self,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        decode: &Decode<'_>,
        out: &mut [u8],
    ) -> Option<Converted> {
        if decode.file_size() != self.elem_size || self.chunk_bytes.is_none() {
            return None;
        }
        let dims = &self.chunk_dims[..];
        let copy = |bytes: &[u8], (first, n): (u64, usize), out: &mut [u8]| {
            let from = usize::try_from(first).ok()?.checked_mul(self.elem_size)?;
            let src = bytes.get(from..)?.get(..n.checked_mul(self.elem_size)?)?;
            (n.checked_mul(decode.mem_size()) == Some(out.len())).then(|| decode.run(src, out))
        };
        let hot = self.cache.hot();
        if let Some(chunk) = hot.as_ref()
            && let Some(run) =
                contiguous::run_in(dims, extent, slab, |d| chunk.key[d].saturating_mul(dims[d]))
        {
            chunk.touch();
            return copy(&chunk.bytes, run, out);
        }
        drop(hot);
        if slab.start.len() != dims.len() {
            return None;
        }
        let key: Coords = slab.start.iter().zip(dims).map(|(&s, &n)| s as u64 / n).collect();
        let run = contiguous::run_in(dims, extent, slab, |d| key[d] * dims[d])?;
        let chunk = self.cache.get(&key)?;
        copy(&chunk.bytes, run, out)
    }

    /// As [`ChunkedArray::read`]; the chunks of `newer` are taken from there.
    pub(crate) fn read(
        self: &Arc<Self>,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        decode: &Decode<'_>,
        out: &mut [u8],
        newer: Option<&dyn NewerChunks>,
    ) -> Result<Converted, ChunkError> {
        contiguous::check(self.elem_size, &self.fill, decode)?;
        let chunk_bytes = self.chunk_bytes.ok_or(ChunkError::Shape {
            what: "chunks of no elements, or of more than can be counted",
        })?;
        let selection = GridSelection::new(&self.chunk_dims, extent, slab)?;
        if selection.n_elems == 0 && out.is_empty() {
            return Ok(Converted::default());
        }
        let parts = MemoryParts::new(out, decode.mem_size(), selection.cuts())
            .ok_or(ChunkError::Request { what: "memory of another length" })?;
        let since = tick();
        self.since.store(since, Ordering::Relaxed);
        let observed = {
            let mut pattern = self.pattern.lock();
            pattern.observe(&selection, self.engine.threads(), chunk_bytes >= MAPPED_BYTES)
        };
        self.background.note(observed.place);
        // With work for all threads, what comes next can wait until this is done.
        let few = parts.n_parts() < self.engine.threads();
        let ahead = observed.ahead.filter(|ahead| self.may_prefetch(ahead));
        let launch = |ahead: Option<PrefetchBox>| {
            if let Some(ahead) = ahead {
                if let Some((first, last)) = &ahead.behind {
                    self.cache.leave_behind(first, last);
                }
                ahead.launch(self);
            }
        };
        let small =
            selection.n_elems.saturating_mul(self.elem_size) <= chunk_bytes / SMALL_REQUEST_PART;
        let keep_raw = observed.same_chunk >= CACHED_UNFILTERED_REQUESTS
            && small
            && chunk_bytes <= CACHED_UNFILTERED_BYTES;
        let (before, after) = if few { (ahead, None) } else { (None, ahead) };
        launch(before);
        let mut converted = Converted::default();
        for batch in plan::batches(&selection, READ_BATCH_CHUNKS) {
            let hits = self.cached_hits(&selection, &batch, &parts);
            let missing = hits.iter().any(|hit| !matches!(hit, CacheHit::Ready(_)));
            let places = match missing {
                true => plan::locate(&*self.table, &selection, &batch)?,
                false => vec![None; hits.len()],
            };
            let request = ReadRequest {
                selection: &selection,
                decode,
                batch: &batch,
                places: &places,
                hits: &hits,
                keep_whole: observed.overlaps,
                keep_raw,
                since,
                newer,
            };
            converted = converted.and(self.read_batch(&request, &parts, chunk_bytes)?);
        }
        launch(after);
        Ok(converted)
    }

    /// What the cache has of the batch's chunks.
    fn cached_hits(
        &self,
        selection: &GridSelection,
        batch: &PartBatch,
        parts: &MemoryParts<'_>,
    ) -> Vec<CacheHit> {
        let n = batch.end - batch.begin;
        if self.cache.is_empty() {
            return vec![CacheHit::Absent; n];
        }
        let mut hits = Vec::with_capacity(n);
        let mut pieces = parts.pieces(batch.begin);
        let keys = (batch.begin..batch.end).map(|_| {
            let mut key = Coords::from_elem(0, pieces.len());
            for ((axis, &k), index) in selection.axes.iter().zip(&pieces).zip(&mut key) {
                // No chunk has the number that stands for parts beyond the extent.
                *index = axis.piece(k).map_or(u64::MAX, |piece| piece.chunk);
            }
            parts.advance(&mut pieces);
            key
        });
        self.cache.hits(keys, |hit| hits.push(hit));
        hits
    }

    fn read_batch(
        self: &Arc<Self>,
        request: &ReadRequest<'_>,
        parts: &MemoryParts<'_>,
        chunk_bytes: usize,
    ) -> Result<Converted, ChunkError> {
        let filtered = |place: &ChunkAt| !self.filters.skips_all(place.mask);
        let pairs = || request.places.iter().zip(request.hits);
        let n_decoded = pairs()
            .filter(|(place, hit)| {
                !matches!(hit, CacheHit::Ready(_)) && place.as_ref().is_some_and(filtered)
            })
            .count();
        let n_ready = pairs().filter(|(_, hit)| matches!(hit, CacheHit::Ready(_))).count();
        let n_raw = pairs()
            .filter(|(place, hit)| !matches!(hit, CacheHit::Ready(_)) && place.is_some())
            .count()
            .saturating_sub(n_decoded);
        let n_tasks = if n_decoded.saturating_mul(chunk_bytes) >= READ_POOL_DECODED_BYTES {
            n_decoded + n_ready
        } else if parts.n_bytes().min(n_raw.saturating_mul(chunk_bytes))
            >= READ_POOL_UNFILTERED_BYTES
        {
            n_raw + n_ready
        } else if parts.n_bytes().min(n_ready.saturating_mul(chunk_bytes)) >= READ_POOL_CACHED_BYTES
        {
            n_ready
        } else {
            1
        };
        let grain = match n_tasks {
            1 => usize::MAX,
            _ => (READ_CLAIM_BYTES / chunk_bytes).max(1),
        };
        let outcome = ReadOutcome::new();
        let work = || {
            let mut buffers = WorkerBuffers::take();
            while let Some(claim) = parts.claim(grain, request.batch.end) {
                for part in claim {
                    let number = part.number;
                    if number > outcome.failed_part.load(Ordering::Relaxed) {
                        break;
                    }
                    match self.read_part(request, part, chunk_bytes, &mut buffers) {
                        Ok(found) => {
                            if found.out_of_range > 0 {
                                let n = found.out_of_range;
                                outcome.out_of_range.fetch_add(n, Ordering::Relaxed);
                            }
                        }
                        Err(error) => outcome.fail(number, error),
                    }
                }
                if outcome.failed_part.load(Ordering::Relaxed) != usize::MAX {
                    break;
                }
            }
            buffers.put_back(chunk_bytes, &self.engine);
        };
        self.engine.run(n_tasks.div_ceil(grain).saturating_sub(1), &work);
        match outcome.failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(Converted { out_of_range: outcome.out_of_range.into_inner() }),
        }
    }

    /// One chunk, from the file or the cache to the caller's memory.
    fn read_part(
        self: &Arc<Self>,
        request: &ReadRequest<'_>,
        part: MemoryPart<'_>,
        chunk_bytes: usize,
        buffers: &mut WorkerBuffers,
    ) -> Result<Converted, ChunkError> {
        let (selection, decode) = (request.selection, request.decode);
        let Some((base, steps)) = selection.place(&part.pieces, &self.steps) else {
            return contiguous::fill_part(part, &self.fill, decode, &mut buffers.rows.block);
        };
        let axes = || selection.axes.iter().zip(&part.pieces);
        let key = || -> Coords {
            axes().map(|(axis, &k)| axis.piece(k).map_or(0, |piece| piece.chunk)).collect()
        };
        let mut room = Vec::new();
        if let Some(newer) = request.newer
            && let Some(bytes) = newer.chunk(&key(), &mut room)?
        {
            return scatter(bytes, part, base, &steps, decode, buffers);
        }
        let index = part.number - request.batch.begin;
        let hit = &request.hits[index];
        if let CacheHit::Ready(chunk) = hit {
            return scatter(&chunk.bytes, part, base, &steps, decode, buffers);
        }
        let Some(place) = request.places[index] else {
            return contiguous::fill_part(part, &self.fill, decode, &mut buffers.rows.block);
        };
        let key = key();
        let is_edge = selection
            .axes
            .iter()
            .zip(&key)
            .any(|(axis, &index)| axis.extent - index * axis.chunk < axis.chunk);
        let found = LocatedChunk { key: &key, place, is_edge };
        let is_raw = self.is_raw(&found);
        let is_whole = axes().all(|(axis, &k)| axis.is_whole(k));
        let keep = match (is_raw, is_whole) {
            (true, _) => request.keep_raw,
            (false, true) => request.keep_whole,
            (false, false) => true,
        };
        if keep || matches!(hit, CacheHit::Loading) {
            let want = ClaimTerms { keep, since: request.since, now: true };
            match self.cache.claim(&key, want) {
                CacheClaim::Ready(chunk) => {
                    return scatter(&chunk.bytes, part, base, &steps, decode, buffers);
                }
                CacheClaim::Decode(mut ticket) => {
                    let spare = ticket.spare();
                    let bytes = self.decode_chunk(&found, chunk_bytes, spare, buffers)?;
                    let chunk = ticket.publish(bytes);
                    return scatter(&chunk.bytes, part, base, &steps, decode, buffers);
                }
                CacheClaim::Bypass => {}
            }
        }
        if is_raw {
            let source = UnfilteredChunk { inner: self, found: &found, chunk_bytes };
            source.check()?;
            return contiguous::read_rows(&source, part, base, &steps, decode, &mut buffers.rows);
        }
        self.read_straight(&found, part, (base, &steps), decode, chunk_bytes, buffers)
    }

    /// A filtered chunk that is not kept.
    fn read_straight(
        &self,
        found: &LocatedChunk<'_>,
        part: MemoryPart<'_>,
        (base, steps): (u64, &[u64]),
        decode: &Decode<'_>,
        chunk_bytes: usize,
        buffers: &mut WorkerBuffers,
    ) -> Result<Converted, ChunkError> {
        let WorkerBuffers { rows: RowBuffers { stored, block }, filter, chunk } = buffers;
        self.fetch(found, stored)?;
        let stored = &stored[..found.place.len as usize];
        let mask = found.place.mask;
        let failed = |error| self.filter_error(found, error);
        let packed = steps == &self.steps[..];
        // Straight to where the caller wants it: undoing filters and putting in place are one.
        let decoding = decoding(stored.len(), chunk_bytes);
        if packed && decode.is_copy() && part.is_one_run() && part.n_bytes() == chunk_bytes {
            part.rows(base, steps, |_, _, row| {
                self.filters.decode(stored, mask, filter, row).map_err(failed)
            })?;
            return Ok(Converted::default());
        }
        let mut converted = Converted::default();
        if packed && part.last_len() >= SHUFFLED_ROW_ELEMS {
            let decoded = self.filters.decode_shuffled(stored, mask, filter).map_err(failed)?;
            match decoded {
                Decoded::Shuffled { planes, elem_size } if elem_size == self.elem_size => {
                    part.rows(base, steps, |at, _, row| {
                        let first = at as usize / elem_size;
                        converted = converted.and(decode.shuffled(planes, first, row, block));
                        Ok::<(), ChunkError>(())
                    })?;
                    return Ok(converted);
                }
                Decoded::Plain(bytes) => {
                    return scatter_rows(bytes, part, base, steps, decode, block);
                }
                // Elements of another size than the array's: put together below.
                Decoded::Shuffled { .. } => {}
            }
        }
        self.filters.prove(stored, mask, filter).map_err(failed)?;
        lengthen(chunk, chunk_bytes)?;
        let bytes = &mut chunk[..chunk_bytes];
        self.filters.decode(stored, mask, filter, bytes).map_err(failed)?;
        drop(decoding);
        scatter_rows(bytes, part, base, steps, decode, block)
    }
}

/// From a decoded chunk to the caller's memory.
fn scatter(
    bytes: &[u8],
    part: MemoryPart<'_>,
    base: u64,
    steps: &[u64],
    decode: &Decode<'_>,
    buffers: &mut WorkerBuffers,
) -> Result<Converted, ChunkError> {
    scatter_rows(bytes, part, base, steps, decode, &mut buffers.rows.block)
}

fn scatter_rows(
    bytes: &[u8],
    part: MemoryPart<'_>,
    base: u64,
    steps: &[u64],
    decode: &Decode<'_>,
    block: &mut Vec<u8>,
) -> Result<Converted, ChunkError> {
    let mut converted = Converted::default();
    let args = || Args { bytes: part.n_bytes() as u64, ..Args::default() };
    let _span = span(Kind::ChunkScatter, args);
    // Places in a decoded chunk are below its length, which memory holds.
    part.rows(base, steps, |at, step, row| {
        converted = converted.and(decode.row(&bytes[at as usize..], step as usize, row, block));
        Ok::<(), ChunkError>(())
    })?;
    Ok(converted)
}

/// Few numbers on the stack.
pub(crate) type DimNumbers = SmallVec<[usize; 4]>;
