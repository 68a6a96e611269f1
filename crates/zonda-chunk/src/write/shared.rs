//! Chunks that several writers put to: what one of them has of each, and the steps by which a chunk goes into the storage.
//!
//! A writer of its own decides when a chunk is stored, and where ([`ChunkWriter::put`]). Here all that is decided by the caller, who knows
//! what other writers do: who holds a chunk ([`ChunkWriter::hold`]), when it goes through its filters ([`ChunkWriter::filter`]), and where
//! it is written ([`ChunkWriter::write_filtered`]). Nothing is entered into tables, and no space is taken.

use std::sync::atomic::{AtomicUsize, Ordering};

use zonda_model::Hyperslab;
use zonda_runtime::lock::{Mutex, Rank};
use zonda_storage::WriteRange;

use super::encode::ElementEncoding;
use super::pending::ChunkElems;
use super::put::{PutTask, SlabPut, memory_steps};
use super::put_part::PutPart;
use super::store::{ChunkSource, PutMemory, StoreJob};
use super::writer_array::WriterArray;
use super::{ArrayId, ChunkWriter, NO_ARRAY, OUTSIDE, WRONG_LENGTH};
use crate::ChunkError;
use crate::engine::Engine;
use crate::selection::{Coords, DimNumbers, GridSelection};
use crate::table::ChunkAt;
use crate::tuning::{PUT_ROUND_BYTES, STORE_POOL_BYTES};
use crate::worker::WorkerBuffers;

/// The chunks of an array, for who divides them between writers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkGrid {
    /// Elements of a chunk along each dimension.
    pub chunk_dims: Vec<u64>,
    /// The length that each dimension can have: a chunk is complete when all elements up to there were put.
    pub limits: Vec<u64>,
    /// Bytes of an element.
    pub elem_size: usize,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Bytes that a chunk takes while it waits.
    pub waiting_bytes: u64,
    /// Bytes of incomplete chunks that [`ChunkWriter::put`] puts to before it sees whether too many wait; a quarter of what may wait, if
    /// that is less.
    pub round_bytes: u64,
}

/// Elements of a hyperslab, in the file's form.
#[derive(Clone, Copy, Debug)]
pub struct SlabElements<'a> {
    /// The extent of the array.
    pub extent: &'a [u64],
    /// Which elements.
    pub slab: Hyperslab<'a>,
    /// The elements: all of the hyperslab, row-major, or those of some of its chunks.
    pub bytes: &'a [u8],
}

/// A chunk that [`ChunkWriter::hold`] puts to.
#[derive(Clone, Copy, Debug)]
pub struct HeldPart<'a> {
    /// Its coordinates in the grid of chunks.
    pub key: &'a [u64],
    /// All of its elements are being put, so that what the storage has of it need not be read.
    pub is_covered: bool,
}

/// A chunk for [`ChunkWriter::filter`].
#[derive(Clone, Copy, Debug)]
pub enum ToFilter<'a> {
    /// One that waits here.
    Held(ArrayId, &'a [u64]),
    /// One of which a put has all elements: nothing of it waits.
    Whole(ArrayId, &'a [u64], &'a SlabElements<'a>),
    /// One with these bytes, whatever waits here.
    Given(ArrayId, &'a [u64], &'a [u8]),
}

/// A chunk as the storage is to have it.
#[derive(Debug)]
pub struct FilteredChunk {
    /// Bit i is set where filter i was skipped.
    pub mask: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Which part of a hyperslab a chunk has.
struct Located {
    selection: GridSelection,
    pieces: DimNumbers,
}

impl Located {
    fn of(selection: GridSelection, key: &[u64]) -> Result<Located, ChunkError> {
        let pieces = pieces_of(&selection, key)?;
        Ok(Located { selection, pieces })
    }
}

fn pieces_of(selection: &GridSelection, key: &[u64]) -> Result<DimNumbers, ChunkError> {
    if key.len() != selection.axes.len() {
        return Err(OUTSIDE);
    }
    let pieces = selection.axes.iter().zip(key).map(|(axis, &index)| axis.piece_in(index));
    let pieces: Option<DimNumbers> = pieces.collect();
    pieces.ok_or(OUTSIDE)
}

impl WriterArray {
    fn selected(&self, slab: &Hyperslab<'_>) -> Result<GridSelection, ChunkError> {
        GridSelection::new(&self.chunk_dims, &self.limits, slab)
    }

    /// The part of a hyperslab in memory that lies in a chunk.
    fn part(
        &self,
        Located { selection, pieces }: &Located,
        slab: &Hyperslab<'_>,
    ) -> Result<PutPart, ChunkError> {
        let mem_steps = memory_steps(slab.count, self.elem_size);
        PutPart::new(selection, pieces, &mem_steps, &self.steps).ok_or(OUTSIDE)
    }

    /// The part of a put of which a chunk has all elements.
    pub(super) fn located_part(
        &self,
        of: &SlabElements<'_>,
        key: &[u64],
    ) -> Result<PutPart, ChunkError> {
        self.check_whole(of)?;
        let located = Located::of(self.selected(&of.slab)?, key)?;
        self.part(&located, &of.slab)
    }

    fn check_whole(&self, of: &SlabElements<'_>) -> Result<(), ChunkError> {
        let n = of.slab.n_elems().and_then(|n| n.checked_mul(self.elem_size));
        if n == Some(of.bytes.len()) { Ok(()) } else { Err(WRONG_LENGTH) }
    }
}

impl ChunkWriter {
    pub(super) fn writer_array(&self, id: ArrayId) -> Result<&WriterArray, ChunkError> {
        self.arrays.get(id.0).and_then(Option::as_ref).ok_or(NO_ARRAY)
    }

    /// The chunks of an array whose chunks go through filters; `None` for others.
    #[must_use]
    pub fn filtered_grid(&self, id: ArrayId) -> Option<ChunkGrid> {
        let array = self.writer_array(id).ok()?;
        if array.filters.is_identity() {
            return None;
        }
        let bits = (array.chunk_elems.div_ceil(64) * 8) as u64;
        Some(ChunkGrid {
            chunk_dims: array.chunk_dims.to_vec(),
            limits: array.limits.to_vec(),
            elem_size: array.elem_size,
            chunk_bytes: array.chunk_bytes as u64,
            round_bytes: PUT_ROUND_BYTES,
            waiting_bytes: (array.chunk_bytes as u64).saturating_add(bits),
        })
    }

    /// Appends the elements of a hyperslab that lie in some chunks, chunk after chunk.
    ///
    /// # Errors
    /// [`ChunkError::Request`] for chunks that it has nothing of, and for memory of another length; [`ChunkError::NoMemory`].
    pub fn parts_of<'k>(
        &self,
        id: ArrayId,
        of: &SlabElements<'_>,
        keys: impl Iterator<Item = &'k [u64]>,
        out: &mut Vec<u8>,
    ) -> Result<(), ChunkError> {
        let array = self.writer_array(id)?;
        array.check_whole(of)?;
        let encode = ElementEncoding::Raw { elem_size: array.elem_size };
        let mut located =
            Located { selection: array.selected(&of.slab)?, pieces: DimNumbers::new() };
        let source = PutMemory { encode: &encode, src: of.bytes };
        for key in keys {
            located.pieces = pieces_of(&located.selection, key)?;
            let part = array.part(&located, &of.slab)?.into_packed(array.elem_size);
            let len = part.n_elems() * array.elem_size;
            out.try_reserve(len).map_err(|_| ChunkError::NoMemory { bytes: len as u64 })?;
            // Runs come in the order in which they lie there.
            part.each_run(&source, |_, run| {
                out.extend_from_slice(run);
                Ok::<(), ChunkError>(())
            })?;
        }
        Ok(())
    }

    /// Puts elements of a hyperslab into chunks, which wait here until they are stored. `of` has all elements of the hyperslab, or, where
    /// `is_packed`, those of these chunks, chunk after chunk.
    ///
    /// # Errors
    /// [`ChunkError::Request`] for arguments that do not fit each other; those of reading chunks that the storage has;
    /// [`ChunkError::NoMemory`]. Each chunk has its old or its new elements then.
    pub fn hold(
        &mut self,
        id: ArrayId,
        of: &SlabElements<'_>,
        parts: &[HeldPart<'_>],
        is_packed: bool,
    ) -> Result<(), ChunkError> {
        let array = self.writer_array(id)?;
        let encode = ElementEncoding::Raw { elem_size: array.elem_size };
        let mut located =
            Located { selection: array.selected(&of.slab)?, pieces: DimNumbers::new() };
        if !is_packed {
            array.check_whole(of)?;
        }
        let (mut tasks, mut packed) = (Vec::with_capacity(parts.len()), 0);
        for &HeldPart { key, is_covered } in parts {
            located.pieces = pieces_of(&located.selection, key)?;
            let mut part = array.part(&located, &of.slab)?;
            let len = part.n_elems() * array.elem_size;
            if is_packed {
                part = part.packed_from(packed, array.elem_size);
                packed += len;
            }
            let id = array.keys.get(key).copied();
            let place = match id {
                None if !is_covered => array.read.inner.find(key)?,
                _ => None,
            };
            let (key, spare, elems) = (Coords::from_slice(key), None, ChunkElems::default());
            tasks.push(PutTask { part, key, id, place, spare, elems, outcome: None });
        }
        if is_packed && packed != of.bytes.len() {
            return Err(WRONG_LENGTH);
        }
        let source = PutMemory { encode: &encode, src: of.bytes };
        let mem_steps = memory_steps(of.slab.count, array.elem_size);
        let selection = &located.selection;
        let put = SlabPut {
            id: id.0,
            extent: of.extent,
            selection,
            mem_steps,
            source: &source,
            waits: false,
        };
        let done = self.put_tasks(&put, tasks).map(|_copied| ());
        self.account();
        done
    }

    /// Whether all elements that a chunk can have were put since it began to wait here.
    #[must_use]
    pub fn is_complete(&self, id: ArrayId, key: &[u64]) -> bool {
        let waiting = self.writer_array(id).ok().and_then(|array| array.keys.get(key));
        let waiting = waiting.and_then(|&node| self.pending.get(node));
        waiting.is_some_and(|pending| pending.elems.written.is_complete())
    }

    /// Sends chunks through their filters, on all threads. `None` for one that should wait here and does not.
    ///
    /// # Errors
    /// Those of the filters and of spilled chunks; [`ChunkError::NoMemory`]. Nothing has changed then.
    pub fn filter(
        &mut self,
        chunks: &[ToFilter<'_>],
    ) -> Result<Vec<Option<FilteredChunk>>, ChunkError> {
        let raws: Vec<Option<ElementEncoding<'_>>> =
            chunks.iter().map(|one| self.raw(one)).collect();
        let memory: Vec<Option<PutMemory<'_>>> = chunks
            .iter()
            .zip(&raws)
            .map(|(one, encode)| match (one, encode) {
                (ToFilter::Whole(_, _, of), Some(encode)) => {
                    Some(PutMemory { encode, src: of.bytes })
                }
                _ => None,
            })
            .collect();
        let mut jobs = Vec::with_capacity(chunks.len());
        for (one, memory) in chunks.iter().zip(&memory) {
            jobs.push(self.job(one, memory.as_ref())?);
        }
        self.run_filters(&jobs)
    }

    fn raw<'a>(&self, one: &ToFilter<'_>) -> Option<ElementEncoding<'a>> {
        let (ToFilter::Held(id, _) | ToFilter::Whole(id, ..) | ToFilter::Given(id, ..)) = one;
        let elem_size = self.writer_array(*id).ok()?.elem_size;
        Some(ElementEncoding::Raw { elem_size })
    }

    fn job<'a>(
        &'a self,
        one: &ToFilter<'a>,
        memory: Option<&'a PutMemory<'a>>,
    ) -> Result<Option<StoreJob<'a>>, ChunkError> {
        let (ToFilter::Held(id, key) | ToFilter::Whole(id, key, _) | ToFilter::Given(id, key, _)) =
            one;
        let array = self.writer_array(*id)?;
        let bytes = match (one, memory) {
            (ToFilter::Whole(_, _, of), Some(memory)) => {
                ChunkSource::Put(array.located_part(of, key)?, memory)
            }
            (ToFilter::Given(_, _, bytes), _) => {
                if bytes.len() != array.chunk_bytes {
                    return Err(WRONG_LENGTH);
                }
                ChunkSource::Ready(bytes)
            }
            _ => match array.keys.get(*key).and_then(|&node| self.pending.get(node)) {
                Some(pending) => pending.elems.ready(&self.pending.spills),
                None => return Ok(None),
            },
        };
        Ok(Some(StoreJob { array, key: Coords::from_slice(key), bytes, old: None }))
    }

    fn run_filters(
        &self,
        jobs: &[Option<StoreJob<'_>>],
    ) -> Result<Vec<Option<FilteredChunk>>, ChunkError> {
        let listed = jobs.iter().map(|job| {
            let bytes = job.as_ref().map_or(0, |job| job.array.chunk_bytes);
            (job, bytes)
        });
        let done = on_all_threads(&self.engine, listed.collect(), |job, buffers| {
            job.as_ref().map(|job| filtered(job, buffers)).transpose()
        });
        done.into_iter().collect()
    }

    /// Writes chunks to their places. Behind each are zeros up to `behind`, as far as the bytes reach that belong to its place.
    ///
    /// # Errors
    /// Those of the storage; [`ChunkError::NoMemory`].
    pub fn write_filtered(
        &self,
        chunks: &mut [(FilteredChunk, ChunkAt)],
        behind: &[u64],
    ) -> Result<(), ChunkError> {
        with_tails(chunks, behind)?;
        let mut ranges: Vec<_> = chunks
            .iter()
            .map(|(chunk, place)| WriteRange { at: place.at, data: &chunk.bytes })
            .collect();
        ranges.sort_unstable_by_key(|range| range.at);
        Ok(self.storage.write_ranges(&ranges)?)
    }

    /// A chunk has another place in its table, and the storage has it as it was put: what was decoded of it is stale. One that waits here goes on
    /// waiting for more puts, unless it `ends`.
    pub fn is_stored(&mut self, id: ArrayId, key: &[u64], ends: bool) {
        let Some(array) = self.arrays.get_mut(id.0).and_then(Option::as_mut) else { return };
        array.read.inner.changed(key);
        match array.keys.get(key).copied() {
            Some(_) if ends => self.pending.remove(&mut array.keys, key, &mut self.spare),
            Some(node) => self.pending.clean(node),
            None => {}
        }
        self.account();
    }
}

/// Appends zeros to chunks, up to `behind` of each, as far as the bytes reach that belong to its place.
///
/// # Errors
/// [`ChunkError::NoMemory`].
pub fn with_tails(
    chunks: &mut [(FilteredChunk, ChunkAt)],
    behind: &[u64],
) -> Result<(), ChunkError> {
    for ((chunk, place), behind) in chunks.iter_mut().zip(behind) {
        let own = chunk.bytes.len() as u64;
        let bytes = behind.saturating_sub(place.at).saturating_sub(own);
        let no_memory = ChunkError::NoMemory { bytes };
        let more = usize::try_from(bytes).ok();
        let more = more.filter(|&more| chunk.bytes.try_reserve(more).is_ok()).ok_or(no_memory)?;
        chunk.bytes.resize(chunk.bytes.len() + more, 0);
    }
    Ok(())
}

/// Does work of so many bytes each, on all threads where that pays. Gives what came of each, in their order.
pub(super) fn on_all_threads<T: Send, R: Send>(
    engine: &Engine,
    jobs: Vec<(T, usize)>,
    work: impl Fn(T, &mut WorkerBuffers) -> R + Sync,
) -> Vec<R> {
    let sizes = || jobs.iter().map(|(_, bytes)| *bytes);
    let (bytes, largest) = (sizes().fold(0, usize::saturating_add), sizes().max().unwrap_or(0));
    let more = if bytes < STORE_POOL_BYTES { 0 } else { jobs.len().saturating_sub(1) };
    let slot = |(job, _): (T, usize)| Mutex::ranked(Rank::Put, (Some(job), None));
    let slots: Vec<_> = jobs.into_iter().map(slot).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut buffers = WorkerBuffers::take();
        while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
            let job = slot.lock().0.take();
            let done = job.map(|job| work(job, &mut buffers));
            slot.lock().1 = done;
        }
        buffers.put_back(largest, engine);
    };
    engine.run(more, &work);
    // All are done: the calling thread took part until none was left.
    slots.into_iter().filter_map(|slot| slot.into_inner().1).collect()
}

fn filtered(job: &StoreJob<'_>, buffers: &mut WorkerBuffers) -> Result<FilteredChunk, ChunkError> {
    let encoded = job.encoded(buffers, None)?;
    let mask = encoded.mask;
    Ok(FilteredChunk { mask, bytes: encoded.into_bytes() })
}
