//! Chunks that leave their writer as they are, and go through their filters on whichever thread, while the writer goes on.

use std::sync::Arc;

use zonda_runtime::memory::tick;

use super::encode::ElementEncoding;
use super::pending::{ChunkElems, PendingChunk};
use super::shared::{FilteredChunk, on_all_threads};
use super::store::PutMemory;
use super::written_bits::WrittenBits;
use super::{ArrayId, ChunkWriter, NO_ARRAY, OUTSIDE, ToFilter};
use crate::ChunkError;
use crate::engine::Engine;
use crate::filter::Pipeline;
use crate::row_reader::RowBuffers;
use crate::selection::Coords;
use crate::stored::lengthen;
use crate::tuning::PLACE_TAIL_BYTES;
use crate::worker::WorkerBuffers;

/// A chunk in the file's form.
#[derive(Debug)]
struct DetachedChunk {
    key: Coords,
    filters: Arc<Pipeline>,
    /// It is stored without filters.
    is_plain: bool,
    bytes: Vec<u8>,
}

/// Chunks that no writer has any more.
#[derive(Debug)]
pub struct DetachedChunks {
    engine: Arc<Engine>,
    chunks: Vec<DetachedChunk>,
}

/// A chunk that did not get through its filters.
#[derive(Debug)]
pub struct NotFiltered {
    /// Why.
    pub error: ChunkError,
    /// The chunk as it was.
    pub bytes: Vec<u8>,
}

impl DetachedChunks {
    /// Bytes of all of them, before they go through their filters.
    #[must_use]
    pub fn n_bytes(&self) -> u64 {
        self.chunks.iter().fold(0, |sum, chunk| sum.saturating_add(chunk.bytes.len() as u64))
    }

    /// Sends them through their filters, on all threads.
    #[must_use]
    pub fn filter(self) -> Vec<Result<FilteredChunk, NotFiltered>> {
        let DetachedChunks { engine, chunks } = self;
        let jobs = chunks.into_iter().map(|chunk| {
            let bytes = chunk.bytes.len();
            (chunk, bytes)
        });
        on_all_threads(&engine, jobs.collect(), DetachedChunk::filtered)
    }
}

impl DetachedChunk {
    fn filtered(self, buffers: &mut WorkerBuffers) -> Result<FilteredChunk, NotFiltered> {
        let DetachedChunk { key, filters, is_plain, mut bytes } = self;
        // What is written behind a chunk needs no memory later, when there may be none.
        let with_tail = |bytes: &mut Vec<u8>| {
            let no_memory = |_| ChunkError::NoMemory { bytes: PLACE_TAIL_BYTES as u64 };
            bytes.try_reserve(PLACE_TAIL_BYTES).map_err(no_memory)
        };
        if is_plain {
            return match with_tail(&mut bytes) {
                Ok(()) => Ok(FilteredChunk { mask: 0, bytes }),
                Err(error) => Err(NotFiltered { error, bytes }),
            };
        }
        let mut out = Vec::new();
        let made = filters.encode(&bytes, &mut buffers.filter, &mut out);
        let made = made.map_err(|error| {
            let chunk = crate::error::coordinates(&key);
            ChunkError::Encode { chunk, error }
        });
        match made.and_then(|mask| with_tail(&mut out).map(|()| mask)) {
            Ok(mask) => Ok(FilteredChunk { mask, bytes: out }),
            Err(error) => {
                // There may be no memory left: what says so takes some.
                *buffers = WorkerBuffers::default();
                Err(NotFiltered { error, bytes })
            }
        }
    }
}

impl ChunkWriter {
    /// Takes chunks out, in their order: those that wait here do not any more. All of them have to be here, or in the put.
    ///
    /// # Errors
    /// As [`ChunkWriter::filter`], but for those of filters. All chunks wait on then.
    pub fn detach(&mut self, chunks: &[ToFilter<'_>]) -> Result<DetachedChunks, ChunkError> {
        // What may fail comes first.
        let mut all = Vec::with_capacity(chunks.len());
        let mut buffers = WorkerBuffers::take();
        for one in chunks {
            all.push(self.detached(one, &mut buffers.rows)?);
        }
        let largest = all.iter().map(|chunk| chunk.bytes.len()).max().unwrap_or(0);
        buffers.put_back(largest, &self.engine);
        for (one, detached) in chunks.iter().zip(&mut all) {
            let ToFilter::Held(id, key) = one else { continue };
            let array = self.arrays.get_mut(id.0).and_then(Option::as_mut).ok_or(NO_ARRAY)?;
            if let Some(elems) = self.pending.take(&mut array.keys, key)
                && elems.spilled.is_none()
            {
                detached.bytes = elems.bytes;
            }
        }
        self.account();
        Ok(DetachedChunks { engine: Arc::clone(&self.engine), chunks: all })
    }

    /// A chunk; without its bytes, where these are in memory here.
    fn detached(
        &self,
        one: &ToFilter<'_>,
        rows: &mut RowBuffers,
    ) -> Result<DetachedChunk, ChunkError> {
        let (ToFilter::Held(id, key) | ToFilter::Whole(id, key, _) | ToFilter::Given(id, key, _)) =
            one;
        let array = self.writer_array(*id)?;
        let mut bytes = Vec::new();
        match one {
            ToFilter::Held(..) => {
                let pending = array.keys.get(*key).and_then(|&node| self.pending.get(node));
                if let Some(slot) = pending.ok_or(OUTSIDE)?.elems.spilled {
                    lengthen(&mut bytes, array.chunk_bytes)?;
                    self.pending.spills.read(key, slot, &mut bytes)?;
                }
            }
            ToFilter::Whole(_, _, of) => {
                let encode = ElementEncoding::Raw { elem_size: array.elem_size };
                let source = PutMemory { encode: &encode, src: of.bytes };
                let part = array.located_part(of, key)?;
                lengthen(&mut bytes, array.chunk_bytes)?;
                let _fits = array.gather(&part, &source, &mut bytes, &mut rows.block);
            }
            ToFilter::Given(_, _, given) => {
                lengthen(&mut bytes, given.len())?;
                bytes.copy_from_slice(given);
            }
        }
        Ok(DetachedChunk {
            key: Coords::from_slice(key),
            filters: Arc::clone(&array.filters),
            is_plain: array.is_unfiltered(key),
            bytes,
        })
    }

    /// Has a chunk wait here again, complete, that was taken out. If there is no memory for that, it is lost.
    pub fn hold_again(&mut self, id: ArrayId, key: &[u64], bytes: Vec<u8>) {
        let Some(array) = self.arrays.get_mut(id.0).and_then(Option::as_mut) else { return };
        let written = WrittenBits::complete(array.chunk_elems);
        let Some(written) = written.filter(|_| bytes.len() == array.chunk_bytes) else { return };
        self.pending.remove(&mut array.keys, key, &mut self.spare);
        let pending = PendingChunk {
            array: id.0,
            key: Coords::from_slice(key),
            origin: array.origin(key),
            elems: ChunkElems { bytes, written, spilled: None },
            dirty: true,
            is_deferred: false,
            used: tick(),
        };
        self.pending.insert(&mut array.keys, pending);
        self.account();
    }
}
