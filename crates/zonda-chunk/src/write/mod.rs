//! Puts into chunked arrays.
//!
//! A chunk of which a put has all elements goes straight from the caller's memory through the
//! filters into the storage. Others wait in memory until they are complete, until their bytes are
//! too many (then the one put longest ago is stored), or until a flush. Complete ones that have to
//! be filtered, but are too few to keep all threads busy, wait for more ([`deferred`]). In which order
//! chunks get their places follows from the calls alone: not from threads, reads or other files.

mod chunk_memory;
mod deferred;
mod detached;
mod encode;
mod kept;
mod large;
mod pending;
mod put;
mod put_one;
mod put_part;
mod shared;
mod spill;
mod spill_file;
mod store;
mod stored_chunks;
mod writer_array;
mod written_bits;

use std::sync::Arc;

use zonda_convert::Converted;
use zonda_model::Hyperslab;
use zonda_runtime::setting;
use zonda_storage::Storage;

use crate::engine::Engine;
use crate::recency::NodeId;
use crate::selection::Coords;
use crate::selection::run_in;
use crate::table::Allocate;
use crate::{ChunkError, ChunkedArray, Decode};

use crate::tuning::WRITE_CACHE_BYTES;
pub use detached::{DetachedChunks, NotFiltered};
pub use encode::ElementEncoding;
pub use kept::KeptPart;
use pending::{PendingChunk, PendingChunks, PendingOfArray};
pub use shared::{ChunkGrid, FilteredChunk, HeldPart, SlabElements, ToFilter, with_tails};
pub use spill::MakeSpillFile;
use spill::ReportedBytes;
pub use spill_file::{SpillFile, release_spills_on_device};
use store::{SpareMemory, StoreJob};
pub use stored_chunks::StoredChunks;
pub use writer_array::NewArray;
use writer_array::WriterArray;

/// An array of a [`ChunkWriter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayId(usize);

/// The chunked arrays of one file that is being written, with their incomplete chunks.
#[derive(Debug)]
pub struct ChunkWriter {
    engine: Arc<Engine>,
    storage: Arc<dyn Storage>,
    /// Bytes that incomplete chunks may take.
    limit: u64,
    arrays: Vec<Option<WriterArray>>,
    pending: PendingChunks,
    spare: SpareMemory,
    reported: ReportedBytes,
}

const RANK: ChunkError =
    ChunkError::Request { what: "the selection has another number of dimensions than the array" };
const NO_ARRAY: ChunkError = ChunkError::Request { what: "the array was removed" };
const NO_PLACE: ChunkError = ChunkError::Request {
    what: "the chunk has no place yet, and ranks that write together take none alone",
};
const OUTSIDE: ChunkError =
    ChunkError::Request { what: "the selection goes beyond the extent of the array" };
const WRONG_SIZE: ChunkError = ChunkError::Request {
    what: "the conversion is for elements of another size than those of the array",
};
const WRONG_LENGTH: ChunkError =
    ChunkError::Request { what: "memory of another length than the selected elements have" };

impl ChunkWriter {
    /// A writer into `storage`, whose incomplete chunks take up to about `limit_bytes` of memory.
    #[must_use]
    pub fn new(engine: &Arc<Engine>, storage: Arc<dyn Storage>, limit_bytes: u64) -> ChunkWriter {
        ChunkWriter {
            engine: Arc::clone(engine),
            storage,
            limit: limit_bytes,
            arrays: Vec::new(),
            pending: PendingChunks::default(),
            spare: SpareMemory::default(),
            reported: ReportedBytes::default(),
        }
    }

    /// The limit that the user asked for with `ZONDA_WRITE_CACHE`, or the default of 256 MiB.
    #[must_use]
    pub fn limit_from_env() -> u64 {
        setting::bytes("ZONDA_WRITE_CACHE", || WRITE_CACHE_BYTES)
    }

    /// Adds an array.
    ///
    /// # Errors
    /// [`ChunkError::Shape`] for a shape that no array can have.
    pub fn add(&mut self, new: NewArray) -> Result<ArrayId, ChunkError> {
        let array = WriterArray::new(new, &self.engine, &self.storage)?;
        self.arrays.push(Some(array));
        Ok(ArrayId(self.arrays.len() - 1))
    }

    /// Forgets an array, and what of it is not stored.
    pub fn remove(&mut self, id: ArrayId) {
        let Some(mut array) = self.arrays.get_mut(id.0).and_then(Option::take) else { return };
        let keys: Vec<Coords> = array.keys.keys().cloned().collect();
        for key in keys {
            self.pending.remove(&mut array.keys, &key, &mut self.spare);
        }
        self.account();
    }

    /// The array, for its cache. What it reads is what is stored: [`ChunkWriter::read`] sees all
    /// that was put.
    #[must_use]
    pub fn array(&self, id: ArrayId) -> Option<&ChunkedArray> {
        Some(&self.arrays.get(id.0)?.as_ref()?.read)
    }

    /// Bytes of the chunks that wait, in memory or out of it.
    #[must_use]
    pub fn pending_bytes(&self) -> u64 {
        self.pending.bytes() + self.pending.deferred_bytes()
    }

    /// Whether something was put that is not stored.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.pending.has_deferred() || self.pending.oldest_first().any(|(_, pending)| pending.dirty)
    }

    /// Puts a hyperslab of an array, whose shape is `extent` after it grew for this put. `src` has
    /// packed elements in memory form, row-major with shape `slab.count`.
    ///
    /// Elements that do not fit are counted, and stored as `encode` says.
    ///
    /// # Errors
    /// Those of storage, table, space and filters, and [`ChunkError::Request`] where the arguments
    /// do not fit each other. What earlier puts left in memory stays there, and each chunk that
    /// this put has to do with holds its old or its new elements: the same put again, or a flush if
    /// it was only about other chunks, makes up for what was left undone.
    pub fn put(
        &mut self,
        id: ArrayId,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        encode: ElementEncoding<'_>,
        src: &[u8],
        space: &mut dyn Allocate,
    ) -> Result<Converted, ChunkError> {
        let mut done = match self.put_run(id, extent, slab, &encode, src) {
            Some((converted, None)) => return Ok(converted),
            Some((converted, Some(chunk))) => self.complete(&[chunk], space).map(|()| converted),
            None => self.put_slab(id, extent, slab, &encode, src, space),
        };
        if done.as_ref().is_err_and(ChunkError::is_of_full_device) && self.release_spill() {
            done = self.put_slab(id, extent, slab, &encode, src, space);
        }
        self.account();
        done
    }

    /// A put of one run of elements into a chunk that waits already; with the chunk if that makes
    /// it complete.
    #[inline]
    fn put_run(
        &mut self,
        id: ArrayId,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        encode: &ElementEncoding<'_>,
        src: &[u8],
    ) -> Option<(Converted, Option<NodeId>)> {
        let array = self.arrays.get_mut(id.0)?.as_mut()?;
        if encode.file_size() != array.elem_size || !array.may_have(extent) {
            return None;
        }
        let dims = &array.chunk_dims[..];
        let last = array.last.and_then(|node| {
            let pending = self.pending.get(node).filter(|pending| pending.array == id.0)?;
            let run = run_in(dims, extent, slab, |d| pending.origin[d])?;
            Some((node, run))
        });
        let (node, (first, n)) = match last {
            Some(found) => found,
            None if array.keys.is_empty() => return None,
            None => {
                let (key, run) = array.run(extent, slab)?;
                (*array.keys.get(&key)?, run)
            }
        };
        let elem = array.elem_size;
        // A chunk that a put has all of need not wait.
        if n.checked_mul(encode.mem_size()) != Some(src.len()) || n == array.chunk_elems {
            return None;
        }
        if self.pending.get(node).is_none_or(|it| it.is_deferred || it.elems.spilled.is_some()) {
            return None;
        }
        array.last = Some(node);
        let pending = self.pending.touch(node)?;
        let first = usize::try_from(first).ok()?;
        let dst = pending.elems.bytes.get_mut(first * elem..)?.get_mut(..n * elem)?;
        let converted = encode.run(src, dst);
        pending.elems.written.mark(first, n);
        pending.dirty = true;
        Some((converted, pending.elems.written.is_complete().then_some(node)))
    }

    /// Stores chunks put longest ago until the others take no more memory than they may. Whether
    /// any had to go.
    fn make_room(&mut self, space: &mut dyn Allocate) -> Result<bool, ChunkError> {
        if self.pending.bytes() <= self.limit || self.pending.len() < 2 {
            return Ok(false);
        }
        // A few at a time, for all threads to have work.
        let wanted = self.limit - self.limit / 8;
        let mut bytes = self.pending.bytes();
        // The last one stays: it is being put.
        let n = self.pending.len() - 1;
        let oldest = self.pending.oldest_first().take(n);
        let victims: Vec<NodeId> = oldest
            .take_while(|(_, pending)| {
                let more = bytes > wanted;
                bytes = bytes.saturating_sub(pending.cost());
                more
            })
            .map(|(id, _)| id)
            .collect();
        let dirty = |id: &NodeId| self.pending.get(*id).is_some_and(|pending| pending.dirty);
        let stored: Vec<NodeId> = victims.iter().copied().filter(dirty).collect();
        let result = self.store_pending(&stored, space);
        for id in victims {
            let Some(pending) = self.pending.get(id).filter(|pending| !pending.dirty) else {
                continue;
            };
            let (index, key) = (pending.array, pending.key.clone());
            if let Some(array) = &mut self.arrays[index] {
                self.pending.remove(&mut array.keys, &key, &mut self.spare);
            }
        }
        result.map(|()| true)
    }

    /// Stores incomplete chunks; those that are complete go, the others stay as they are.
    fn store_pending(
        &mut self,
        ids: &[NodeId],
        space: &mut dyn Allocate,
    ) -> Result<(), ChunkError> {
        self.store_complete(space)?;
        let mut ids = ids.to_vec();
        let order =
            |id: &NodeId| self.pending.get(*id).map(|pending| (pending.array, &pending.key));
        zonda_runtime::sort::sort_by(&mut ids, |a, b| order(a).cmp(&order(b)));
        for id in &ids {
            // Elements of spilled chunks refer to nothing.
            let here = self.pending.get_mut(*id).filter(|pending| pending.elems.spilled.is_none());
            if let Some(pending) = here {
                space
                    .before_store(ArrayId(pending.array), &mut pending.elems.bytes)
                    .map_err(ChunkError::Table)?;
            }
        }
        self.store_these(&ids, space)
    }

    /// Stores chunks that wait, in this order; those that are complete go.
    fn store_these(&mut self, ids: &[NodeId], space: &mut dyn Allocate) -> Result<(), ChunkError> {
        let chunks: Vec<(NodeId, &PendingChunk)> =
            ids.iter().filter_map(|&id| Some((id, self.pending.get(id)?))).collect();
        let mut jobs = Vec::with_capacity(chunks.len());
        for (_, pending) in &chunks {
            let Some(array) = &self.arrays[pending.array] else { continue };
            let old = match array.writes_over() {
                true => array.read.inner.find(&pending.key)?,
                false => None,
            };
            let bytes = pending.elems.ready(&self.pending.spills);
            jobs.push(StoreJob { array, key: pending.key.clone(), bytes, old });
        }
        let outcome = store::run(&self.engine, &*self.storage, &jobs, &mut self.spare, space);
        drop(jobs);
        let stored: Vec<(NodeId, usize, Coords, bool)> = chunks
            .into_iter()
            .take(outcome.stored)
            .map(|(id, pending)| {
                let complete = pending.elems.written.is_complete();
                (id, pending.array, pending.key.clone(), complete)
            })
            .collect();
        for (id, index, key, complete) in stored {
            let Some(array) = &mut self.arrays[index] else { continue };
            array.read.inner.changed(&key);
            match complete {
                true => self.pending.remove(&mut array.keys, &key, &mut self.spare),
                false => self.pending.clean(id),
            }
        }
        outcome.error.map_or(Ok(()), Err)
    }

    /// Stores all that was put. Incomplete chunks stay in memory for more puts.
    ///
    /// # Errors
    /// As [`ChunkWriter::put`]. What is not stored stays, and the next flush tries again.
    pub fn flush(&mut self, space: &mut dyn Allocate) -> Result<(), ChunkError> {
        let dirty: Vec<NodeId> = self
            .pending
            .oldest_first()
            .filter(|(_, pending)| pending.dirty)
            .map(|(id, _)| id)
            .collect();
        let mut stored = self.store_pending(&dirty, space);
        if stored.as_ref().is_err_and(ChunkError::is_of_full_device) && self.release_spill() {
            stored = self.store_pending(&dirty, space);
        }
        self.try_spilling_again();
        self.account();
        stored
    }

    /// Reads a hyperslab, as [`ChunkedArray::read`]; all that was put is seen.
    ///
    /// # Errors
    /// Those of [`ChunkedArray::read`].
    pub fn read(
        &self,
        id: ArrayId,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        decode: Decode<'_>,
        out: &mut [u8],
    ) -> Result<Converted, ChunkError> {
        let array = self.arrays.get(id.0).and_then(Option::as_ref).ok_or(NO_ARRAY)?;
        if array.keys.is_empty() {
            return array.read.read(extent, slab, decode, out);
        }
        if decode.file_size() == array.elem_size
            && let Some((key, (first, n))) = array.run(extent, slab)
            && n.checked_mul(decode.mem_size()) == Some(out.len())
            && let Some(pending) = array.keys.get(&key).and_then(|&id| self.pending.get(id))
            && pending.elems.spilled.is_none()
        {
            let from = first as usize * array.elem_size;
            return Ok(decode.run(&pending.elems.bytes[from..][..n * array.elem_size], out));
        }
        let newer = PendingOfArray { keys: &array.keys, chunks: &self.pending };
        array.read.inner.read(extent, slab, &decode, out, Some(&newer))
    }
}
