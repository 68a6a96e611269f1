//! Reads: from a hyperslab to the chunks that it touches, and from each chunk to the caller's memory.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use zonda_convert::Converted;
use zonda_model::Hyperslab;
use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::memory::{now, tick};
use zonda_storage::{RunRanges, ToldReads};

use crate::ChunkError;
use crate::array::{NewerChunks, SharedArray};
use crate::cache::{CacheClaim, CacheHit, ClaimTerms};
use crate::decode::{self, Decode};
use crate::filter::Decoded;
use crate::memory_parts::{MemoryPart, MemoryParts};
use crate::plan::{self, PartBatch};
use crate::prefetch::PrefetchBox;
use crate::read_model::{self, FoundChunks, KeepRules};
use crate::row_reader::{RowBuffers, read_rows};
use crate::scatter::{fill_part, scatter_rows};
use crate::selection::{Coords, GridSelection, run_in};
use crate::stored::{LocatedChunk, UnfilteredChunk, decoding, lengthen};
use crate::table::ChunkAt;
use crate::tuning::{
    LARGE_CHUNK_BYTES, MOST_PREFETCH_CHUNKS, READ_BATCH_CHUNKS, READ_GAP_BYTES, SHUFFLED_ROW_ELEMS,
    TOLD_WALK_BYTES,
};
use crate::worker::WorkerBuffers;

/// One batch of a read, for the threads that work on it.
struct ReadRequest<'a> {
    selection: &'a GridSelection,
    decode: &'a Decode<'a>,
    batch: &'a PartBatch,
    /// Where the chunks are in the storage, by part number from `batch.begin` on.
    places: &'a [Option<ChunkAt>],
    /// What the cache has of them, in the same order.
    hits: &'a [CacheHit],
    keep: KeepRules,
    /// When the read began.
    since: u64,
    newer: Option<&'a dyn NewerChunks>,
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

    fn into_result(self) -> Result<Converted, ChunkError> {
        match self.failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(Converted { out_of_range: self.out_of_range.into_inner() }),
        }
    }
}

impl SharedArray {
    /// Reads a single run of elements inside one chunk, if that is in the cache; else does nothing.
    #[inline]
    pub(crate) fn read_cached_run(
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
            && let Some(run) = run_in(dims, extent, slab, |d| chunk.key[d].saturating_mul(dims[d]))
        {
            chunk.touch();
            return copy(&chunk.bytes, run, out);
        }
        drop(hot);
        if slab.start.len() != dims.len() {
            return None;
        }
        let key: Coords = slab.start.iter().zip(dims).map(|(&s, &n)| s as u64 / n).collect();
        let run = run_in(dims, extent, slab, |d| key[d] * dims[d])?;
        if self.cache.seems_empty() {
            return None;
        }
        let chunk = self.cache.get(&key)?;
        copy(&chunk.bytes, run, out)
    }

    /// Reads as [`ChunkedArray::read`](crate::ChunkedArray::read) does, but takes the chunks that `newer` has from there.
    pub(crate) fn read(
        self: &Arc<Self>,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        decode: &Decode<'_>,
        out: &mut [u8],
        newer: Option<&dyn NewerChunks>,
    ) -> Result<Converted, ChunkError> {
        decode::check_sizes(self.elem_size, &self.fill, decode)?;
        let chunk_bytes = self.chunk_bytes.ok_or(ChunkError::Shape {
            what: "a chunk has no elements, or more than can be counted",
        })?;
        let selection = GridSelection::new(&self.chunk_dims, extent, slab)?;
        if selection.n_elems == 0 && out.is_empty() {
            return Ok(Converted::default());
        }
        let parts = MemoryParts::new(out, decode.mem_size(), selection.cuts()).ok_or(
            ChunkError::Request {
                what: "memory of another length than the selected elements have",
            },
        )?;
        // Where no chunk is kept there is none to be older than this, and the line of the clock is left to others.
        let since = if self.cache.seems_empty() { now() } else { tick() };
        if self.since.load(Ordering::Relaxed) != since {
            self.since.store(since, Ordering::Relaxed);
        }
        let observed = {
            let far = self.is_remote().then(|| TOLD_WALK_BYTES.div_ceil(chunk_bytes as u64));
            let mut pattern = self.pattern.lock();
            let threads = (self.engine.threads(), far.map(|n| n.min(MOST_PREFETCH_CHUNKS)));
            pattern.observe(&selection, threads, chunk_bytes >= LARGE_CHUNK_BYTES)
        };
        self.background.note(observed.position);
        let wanted_bytes = selection.n_elems.saturating_mul(self.elem_size);
        let alone = !self.storage.has_other_writers();
        let keep = KeepRules::new(&observed, wanted_bytes, chunk_bytes, alone);
        let few = read_model::prefetch_comes_first(parts.n_parts(), self.engine.threads());
        let ahead = observed.ahead.filter(|ahead| self.may_prefetch(ahead));
        let (before, after) = if few { (ahead, None) } else { (None, ahead) };
        self.start_prefetch(before);
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
                keep,
                since,
                newer,
            };
            converted = converted.and(self.read_batch(&request, &parts, chunk_bytes)?);
        }
        self.start_prefetch(after);
        Ok(converted)
    }

    /// Gives up what the walk has left behind, and decodes ahead of it.
    fn start_prefetch(self: &Arc<Self>, ahead: Option<PrefetchBox>) {
        if let Some(ahead) = ahead {
            if let Some((first, last)) = &ahead.behind {
                self.cache.leave_behind(first, last);
            }
            ahead.launch(self);
        }
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

    /// What a batch has of each kind of chunk.
    fn found(
        &self,
        request: &ReadRequest<'_>,
        out_bytes: usize,
        chunk_bytes: usize,
    ) -> FoundChunks {
        let filtered = |place: &ChunkAt| !self.filters.skips_all(place.mask);
        let mut found = FoundChunks { chunk_bytes, out_bytes, ..FoundChunks::default() };
        for (place, hit) in request.places.iter().zip(request.hits) {
            match (hit, place) {
                (CacheHit::Ready(_), _) => found.n_ready += 1,
                (_, Some(place)) if filtered(place) => found.n_filtered += 1,
                (_, Some(_)) => found.n_unfiltered += 1,
                (_, None) => {}
            }
        }
        found
    }

    /// Reads the parts of a batch, on as many threads as are worth it.
    fn read_batch(
        self: &Arc<Self>,
        request: &ReadRequest<'_>,
        parts: &MemoryParts<'_>,
        chunk_bytes: usize,
    ) -> Result<Converted, ChunkError> {
        let told = self.storage.remote().map(|remote| {
            let ranges = self.stored_ranges(request, parts, chunk_bytes);
            let told = ToldReads::new(remote, ranges, READ_GAP_BYTES);
            Mutex::ranked(Rank::Put, told)
        });
        let found = self.found(request, parts.n_bytes(), chunk_bytes);
        let n_tasks = found.n_tasks();
        let per_claim = found.per_claim(n_tasks, self.engine.threads());
        let outcome = ReadOutcome::new();
        let work = || {
            let mut buffers = WorkerBuffers::take();
            while let Some(claimed) = parts.claim(per_claim, request.batch.end) {
                for part in claimed {
                    let number = part.number;
                    if number > outcome.failed_part.load(Ordering::Relaxed) {
                        break;
                    }
                    if let Some(told) = &told {
                        told.lock().reached(number as u64);
                    }
                    match self.read_part(request, part, chunk_bytes, &mut buffers) {
                        Ok(Converted { out_of_range: 0 }) => {}
                        Ok(Converted { out_of_range }) => {
                            outcome.out_of_range.fetch_add(out_of_range, Ordering::Relaxed);
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
        self.engine.run(n_tasks.div_ceil(per_claim).saturating_sub(1), &work);
        outcome.into_result()
    }

    /// The ranges of the storage that the parts of a batch will be read from, with the numbers of the parts.
    fn stored_ranges<'r>(
        &'r self,
        request: &'r ReadRequest<'_>,
        parts: &'r MemoryParts<'_>,
        chunk_bytes: usize,
    ) -> impl Iterator<Item = (u64, Range<u64>)> + use<'r> {
        let (begin, selection) = (request.batch.begin, request.selection);
        let mut pieces = parts.pieces(begin);
        let places = request.places.iter().zip(request.hits).zip(begin as u64..);
        places.flat_map(move |((place, hit), number)| {
            let of_part = match (place, hit) {
                (Some(place), CacheHit::Absent | CacheHit::Loading) => {
                    self.part_ranges(selection, &pieces, *place, chunk_bytes)
                }
                _ => RunRanges::none(),
            };
            parts.advance(&mut pieces);
            of_part.map(move |range| (number, range))
        })
    }

    /// The ranges of the storage that one part is read from: a chunk, or elements of one that is stored as it is.
    fn part_ranges(
        &self,
        selection: &GridSelection,
        pieces: &[usize],
        place: ChunkAt,
        chunk_bytes: usize,
    ) -> RunRanges {
        let whole = RunRanges::one(place.at, place.len);
        let key = selection.key(pieces);
        let found = LocatedChunk { key: &key, place, is_edge: selection.is_edge(&key) };
        if !self.is_raw(&found) || place.len != chunk_bytes as u64 {
            return whole;
        }
        match selection.place(pieces, &self.steps) {
            Some((base, steps)) => {
                let place = (place.at.saturating_add(base), &steps[..]);
                selection.ranges(pieces, place, self.elem_size)
            }
            None => RunRanges::none(),
        }
    }

    /// Reads one chunk's part, from the file or the cache to the caller's memory.
    fn read_part(
        self: &Arc<Self>,
        request: &ReadRequest<'_>,
        part: MemoryPart<'_>,
        chunk_bytes: usize,
        buffers: &mut WorkerBuffers,
    ) -> Result<Converted, ChunkError> {
        let (selection, decode) = (request.selection, request.decode);
        let Some((base, steps)) = selection.place(&part.pieces, &self.steps) else {
            return fill_part(part, &self.fill, decode, &mut buffers.rows.block);
        };
        if let Some(newer) = request.newer {
            let mut unspilled = Vec::new();
            let key = selection.key(&part.pieces);
            if let Some(bytes) = newer.chunk(&key, &mut unspilled)? {
                return scatter_rows(bytes, part, base, &steps, decode, &mut buffers.rows.block);
            }
        }
        let index = part.number - request.batch.begin;
        let hit = &request.hits[index];
        if let CacheHit::Ready(chunk) = hit {
            let block = &mut buffers.rows.block;
            return scatter_rows(&chunk.bytes, part, base, &steps, decode, block);
        }
        let Some(place) = request.places[index] else {
            return fill_part(part, &self.fill, decode, &mut buffers.rows.block);
        };
        let key = selection.key(&part.pieces);
        let found = LocatedChunk { key: &key, place, is_edge: selection.is_edge(&key) };
        let is_raw = self.is_raw(&found);
        let keep = request.keep.of_chunk(is_raw, selection.is_whole(&part.pieces));
        if keep || matches!(hit, CacheHit::Loading) {
            let terms = ClaimTerms { keep, since: request.since, now: true };
            let chunk = match self.cache.claim(&key, terms) {
                CacheClaim::Ready(chunk) => Some(chunk),
                CacheClaim::Decode(mut ticket) => {
                    let spare = ticket.spare();
                    let bytes = self.decode_chunk(&found, chunk_bytes, spare, buffers)?;
                    Some(ticket.publish(bytes))
                }
                CacheClaim::Bypass => None,
            };
            if let Some(chunk) = chunk {
                let block = &mut buffers.rows.block;
                return scatter_rows(&chunk.bytes, part, base, &steps, decode, block);
            }
        }
        if is_raw {
            let source = UnfilteredChunk { inner: self, found: &found, chunk_bytes };
            source.check()?;
            return read_rows(&source, part, base, &steps, decode, &mut buffers.rows);
        }
        self.read_straight(&found, part, (base, &steps), decode, chunk_bytes, buffers)
    }

    /// Reads a filtered chunk that is not kept, with as few copies as can be.
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
