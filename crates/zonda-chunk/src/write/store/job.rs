//! One chunk on its way into the storage: where its bytes come from, and what its filters make of them.

use zonda_convert::Converted;
use zonda_trace::{Args, EventKind, span};

use super::super::chunk_memory::{fill_chunk, memory};
use super::super::encode::ElementEncoding;
use super::super::put_part::PutPart;
use super::super::spill::{self, Spills};
use super::super::writer_array::WriterArray;
use crate::ChunkError;
use crate::row_reader::RowBuffers;
use crate::selection::Coords;
use crate::stored::lengthen;
use crate::table::ChunkAt;
use crate::worker::WorkerBuffers;

/// A chunk to be stored.
#[derive(Debug)]
pub(crate) struct StoreJob<'a> {
    pub array: &'a WriterArray,
    pub key: Coords,
    pub bytes: ChunkSource<'a>,
    /// Where an unfiltered chunk is now: it is written over.
    pub old: Option<ChunkAt>,
}

/// Where the bytes of a chunk come from.
#[derive(Debug)]
pub(crate) enum ChunkSource<'a> {
    /// In the file's form.
    Ready(&'a [u8]),
    /// The same, but not in memory.
    Spilled(&'a Spills, spill::SpillSlot),
    /// All that a put has for it, which is all that it needs.
    Put(PutPart, &'a PutMemory<'a>),
}

/// The caller's memory.
#[derive(Debug)]
pub(crate) struct PutMemory<'a> {
    pub encode: &'a ElementEncoding<'a>,
    pub src: &'a [u8],
}

/// What is to be written of a chunk.
pub(crate) struct EncodedChunk<'a> {
    pub(super) bytes: EncodedBytes<'a>,
    pub(crate) mask: u32,
    pub(super) converted: Converted,
}

pub(crate) enum EncodedBytes<'a> {
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
    /// As if it were elsewhere: nothing is written with it.
    Fetched(Vec<u8>),
}

impl EncodedChunk<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            EncodedBytes::Borrowed(bytes) => bytes,
            EncodedBytes::Owned(bytes) | EncodedBytes::Fetched(bytes) => bytes,
        }
    }

    /// The bytes, as memory of their own.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self.bytes {
            EncodedBytes::Borrowed(bytes) => bytes.to_vec(),
            EncodedBytes::Owned(bytes) | EncodedBytes::Fetched(bytes) => bytes,
        }
    }

    /// Has the bytes that belong to its place written with it, up to `len` of them: a cache of pages
    /// below sees then where output without gaps is complete.
    pub(super) fn pad_to(&mut self, len: u64) {
        if let (EncodedBytes::Owned(bytes), Ok(len)) = (&mut self.bytes, usize::try_from(len)) {
            bytes.resize(len.max(bytes.len()), 0);
        }
    }
}

impl<'a> StoreJob<'a> {
    /// Whether it is written as it lies in memory.
    pub(super) fn straight(&self) -> Option<&'a [u8]> {
        match &self.bytes {
            ChunkSource::Ready(bytes) if self.array.is_unfiltered(&self.key) => Some(bytes),
            ChunkSource::Put(part, source) if self.array.is_unfiltered(&self.key) => {
                self.run_of(part, source)
            }
            _ => None,
        }
    }

    /// Whether it is worth another thread. Chunks that are only put together and converted are
    /// not: they would be written from another processor's cache.
    pub(super) fn is_work(&self) -> bool {
        match &self.bytes {
            ChunkSource::Put(_, PutMemory { encode: ElementEncoding::Custom { .. }, .. }) => true,
            ChunkSource::Put(..) | ChunkSource::Ready(_) | ChunkSource::Spilled(..) => {
                !self.array.is_unfiltered(&self.key)
            }
        }
    }

    /// The whole chunk, where it is one run of the caller's memory in the file's form.
    fn run_of(&self, part: &PutPart, source: &PutMemory<'a>) -> Option<&'a [u8]> {
        if !source.encode.is_copy() {
            return None;
        }
        let bytes = part.one_run(source.src, source.encode.mem_size())?;
        (bytes.len() == self.array.chunk_bytes).then_some(bytes)
    }

    /// The bytes to be written: those in memory where they are that already, else made in `spare`.
    pub(crate) fn encoded(
        &self,
        buffers: &mut WorkerBuffers,
        spare: Option<Vec<u8>>,
    ) -> Result<EncodedChunk<'a>, ChunkError> {
        if let Some(bytes) = self.straight() {
            let converted = Converted::default();
            return Ok(EncodedChunk { bytes: EncodedBytes::Borrowed(bytes), mask: 0, converted });
        }
        match self.array.is_unfiltered(&self.key) {
            true => self.assembled(&mut buffers.rows.block, spare),
            false => self.filtered(buffers, spare),
        }
    }

    /// An unfiltered chunk that does not lie in memory as it is to be written.
    fn assembled(
        &self,
        block: &mut Vec<u8>,
        spare: Option<Vec<u8>>,
    ) -> Result<EncodedChunk<'a>, ChunkError> {
        let memory = || memory(spare, self.array.chunk_bytes);
        let mut converted = Converted::default();
        let bytes = match &self.bytes {
            ChunkSource::Ready(bytes) => EncodedBytes::Borrowed(bytes),
            ChunkSource::Spilled(spills, slot) => {
                let mut bytes = memory()?;
                spills.read(&self.key, *slot, &mut bytes)?;
                EncodedBytes::Fetched(bytes)
            }
            ChunkSource::Put(part, source) => {
                let mut bytes = memory()?;
                converted = self.array.gather(part, source, &mut bytes, block);
                EncodedBytes::Owned(bytes)
            }
        };
        Ok(EncodedChunk { bytes, mask: 0, converted })
    }

    /// A chunk as its filters encode it.
    fn filtered(
        &self,
        buffers: &mut WorkerBuffers,
        spare: Option<Vec<u8>>,
    ) -> Result<EncodedChunk<'a>, ChunkError> {
        let WorkerBuffers { rows: RowBuffers { stored, block }, filter, .. } = buffers;
        let array = self.array;
        let mut converted = Converted::default();
        let raw: &[u8] = match &self.bytes {
            ChunkSource::Ready(bytes) => bytes,
            ChunkSource::Spilled(spills, slot) => {
                lengthen(stored, array.chunk_bytes)?;
                let chunk = &mut stored[..array.chunk_bytes];
                spills.read(&self.key, *slot, chunk)?;
                chunk
            }
            ChunkSource::Put(part, source) => match self.run_of(part, source) {
                Some(bytes) => bytes,
                None => {
                    lengthen(stored, array.chunk_bytes)?;
                    let chunk = &mut stored[..array.chunk_bytes];
                    converted = array.gather(part, source, chunk, block);
                    chunk
                }
            },
        };
        let mut bytes = spare.unwrap_or_default();
        let before = raw.len() as u64;
        let mut span = span(EventKind::ChunkEncode, || Args { bytes: before, ..Args::default() });
        let mask = match array.filters.encode(raw, filter, &mut bytes) {
            Ok(mask) => mask,
            Err(error) => {
                // There may be no memory left: what says so takes some.
                drop(bytes);
                *buffers = WorkerBuffers::default();
                return Err(ChunkError::Encode {
                    chunk: crate::error::coordinates(&self.key),
                    error,
                });
            }
        };
        span.change(|args| args.offset = bytes.len() as u64);
        Ok(EncodedChunk { bytes: EncodedBytes::Owned(bytes), mask, converted })
    }
}

impl WriterArray {
    /// Puts together a chunk of which a put has all elements that there are.
    pub(crate) fn gather(
        &self,
        part: &PutPart,
        source: &PutMemory<'_>,
        chunk: &mut [u8],
        block: &mut Vec<u8>,
    ) -> Converted {
        let args = || Args { bytes: chunk.len() as u64, ..Args::default() };
        let _span = span(EventKind::ChunkGather, args);
        if part.n_elems() != self.chunk_elems {
            fill_chunk(chunk, &self.fill);
        }
        part.put(source.encode, source.src, chunk, None, block)
    }
}
