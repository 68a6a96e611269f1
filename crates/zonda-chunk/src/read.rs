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
use crate::prefetch::{Observation, PrefetchBox};
use crate::row_reader::{RowBuffers, read_rows};
use crate::scatter::{fill_part, scatter_rows};
use crate::selection::{Coords, GridSelection, run_in};
use crate::stored::{LocatedChunk, UnfilteredChunk, decoding, lengthen};
use crate::table::ChunkAt;
use crate::tuning::{
    CACHED_UNFILTERED_BYTES, CACHED_UNFILTERED_REQUESTS, CLAIMS_OF_A_THREAD, MAPPED_BYTES,
    MOST_PREFETCH_CHUNKS, READ_BATCH_CHUNKS, READ_CLAIM_BYTES, READ_GAP_BYTES,
    READ_POOL_CACHED_BYTES, READ_POOL_DECODED_BYTES, READ_POOL_UNFILTERED_BYTES,
    SHUFFLED_ROW_ELEMS, SMALL_REQUEST_PART, TOLD_WALK_BYTES, claims_at_once,
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

/// Which chunks stay in the cache besides filtered ones that are wanted only in part.
#[derive(Clone, Copy)]
struct KeepRules {
    /// Filtered chunks that are wanted as a whole.
    whole: bool,
    /// Unfiltered chunks.
    unfiltered: bool,
}

impl KeepRules {
    /// For a request for so many bytes of the file's form.
    fn new(observed: &Observation, wanted_bytes: usize, chunk_bytes: usize) -> KeepRules {
        KeepRules {
            whole: observed.overlaps,
            unfiltered: observed.same_chunk >= CACHED_UNFILTERED_REQUESTS
                && wanted_bytes <= chunk_bytes / SMALL_REQUEST_PART
                && chunk_bytes <= CACHED_UNFILTERED_BYTES,
        }
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
            pattern.observe(&selection, threads, chunk_bytes >= MAPPED_BYTES)
        };
        self.background.note(observed.position);
        let wanted_bytes = selection.n_elems.saturating_mul(self.elem_size);
        let mut keep = KeepRules::new(&observed, wanted_bytes, chunk_bytes);
        keep.unfiltered &= !self.storage.has_other_writers();
        // With work for all threads, the prefetch can wait until this read is done.
        let few = parts.n_parts() < self.engine.threads();
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

    /// How many chunks of a batch are worth the pool's threads; 1 where the calling thread does all of it.
    fn n_tasks(&self, request: &ReadRequest<'_>, out_bytes: usize, chunk_bytes: usize) -> usize {
        let filtered = |place: &ChunkAt| !self.filters.skips_all(place.mask);
        let (mut n_decoded, mut n_ready, mut n_unfiltered) = (0usize, 0usize, 0usize);
        for (place, hit) in request.places.iter().zip(request.hits) {
            match (hit, place) {
                (CacheHit::Ready(_), _) => n_ready += 1,
                (_, Some(place)) if filtered(place) => n_decoded += 1,
                (_, Some(_)) => n_unfiltered += 1,
                (_, None) => {}
            }
        }
        let wanted = |n: usize| out_bytes.min(n.saturating_mul(chunk_bytes));
        if n_decoded.saturating_mul(chunk_bytes) >= READ_POOL_DECODED_BYTES {
            n_decoded + n_ready
        } else if wanted(n_unfiltered) >= READ_POOL_UNFILTERED_BYTES {
            n_unfiltered + n_ready
        } else if wanted(n_ready) >= READ_POOL_CACHED_BYTES {
            n_ready
        } else {
            1
        }
    }

    /// How many of `n_tasks` chunks a thread claims at a time.
    fn per_claim(&self, n_tasks: usize, chunk_bytes: usize) -> usize {
        let threads = self.engine.threads();
        let few = (READ_CLAIM_BYTES / chunk_bytes).max(1);
        let many = READ_CLAIM_BYTES * claims_at_once(threads) / chunk_bytes;
        // All of them come back some times, so that none is left with much when the others are done.
        few.max(many.min(n_tasks / (threads * CLAIMS_OF_A_THREAD)))
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
        let n_tasks = self.n_tasks(request, parts.n_bytes(), chunk_bytes);
        let per_claim = match n_tasks {
            1 => usize::MAX,
            _ => self.per_claim(n_tasks, chunk_bytes),
        };
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
        let keep = match (is_raw, selection.is_whole(&part.pieces)) {
            (true, _) => request.keep.unfiltered,
            (false, true) => request.keep.whole,
            (false, false) => true,
        };
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
