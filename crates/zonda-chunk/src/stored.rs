//! Chunks as they are stored: fetched, freed of their filters, or read row by row where they have
//! none.

use std::ops::Range;

use zonda_storage::ReadRange;
use zonda_trace::{Args, EventKind, span};

use crate::array::SharedArray;
use crate::chunk_bytes::ChunkBytes;
use crate::row_reader::RowSource;
use crate::table::ChunkAt;
use crate::tuning::{CHECKED_FETCH_BYTES, TOLD_AHEAD_BYTES};
use crate::worker::WorkerBuffers;
use crate::{ChunkError, FilterError};

impl SharedArray {
    /// Decodes a chunk for the cache.
    pub(crate) fn decode_chunk(
        &self,
        found: &LocatedChunk<'_>,
        chunk_bytes: usize,
        spare: Option<ChunkBytes>,
        buffers: &mut WorkerBuffers,
    ) -> Result<ChunkBytes, ChunkError> {
        if self.is_raw(found) {
            let source = UnfilteredChunk { inner: self, found, chunk_bytes };
            source.check()?;
            let mut bytes = ChunkBytes::new(&self.blocks, spare, self.engine.has_room())?;
            source.read(&mut [ReadRange::new(0, &mut bytes)])?;
            return Ok(bytes);
        }
        self.fetch(found, &mut buffers.rows.stored)?;
        self.unfilter(found, chunk_bytes, spare, buffers)
    }

    /// Undoes the filters of the chunk whose bytes were fetched.
    pub(crate) fn unfilter(
        &self,
        found: &LocatedChunk<'_>,
        chunk_bytes: usize,
        spare: Option<ChunkBytes>,
        buffers: &mut WorkerBuffers,
    ) -> Result<ChunkBytes, ChunkError> {
        let stored = &buffers.rows.stored[..found.place.len as usize];
        let mask = found.place.mask;
        let failed = |error| self.filter_error(found, error);
        let _span = decoding(stored.len(), chunk_bytes);
        self.filters.prove(stored, mask, &mut buffers.filter).map_err(failed)?;
        let mut bytes = ChunkBytes::new(&self.blocks, spare, self.engine.has_room())?;
        self.filters.decode(stored, mask, &mut buffers.filter, &mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// Reads the stored bytes of a chunk.
    pub(crate) fn fetch(
        &self,
        found: &LocatedChunk<'_>,
        stored: &mut Vec<u8>,
    ) -> Result<(), ChunkError> {
        let ChunkAt { at, len, .. } = found.place;
        if len > CHECKED_FETCH_BYTES {
            let end = at.checked_add(len);
            let file_len = self.storage.len()?;
            if end.is_none_or(|end| end > file_len) {
                return Err(found.out_of_file());
            }
        }
        let n = usize::try_from(len).map_err(|_| ChunkError::NoMemory { bytes: len })?;
        let _span =
            span(EventKind::ChunkRead, || Args { offset: at, bytes: len, ..Args::default() });
        lengthen(stored, n)?;
        let buf = &mut stored[..n];
        // Offsets that no file can have are not the storage's business.
        if at.checked_add(len).is_none_or(|end| end > i64::MAX as u64)
            || self.storage.read_at(at, buf)? < n
        {
            return Err(found.out_of_file());
        }
        Ok(())
    }

    /// Whether each read costs a message there and back.
    pub(crate) fn is_remote(&self) -> bool {
        self.storage.remote().is_some()
    }

    /// Tells a remote storage of chunks that will be read, the first ones, as many as memory has room for: their lengths are the file's.
    pub(crate) fn will_read(&self, places: impl Iterator<Item = ChunkAt>) {
        let Some(remote) = self.storage.remote() else { return };
        let mut left = TOLD_AHEAD_BYTES;
        let ranges = places.map(|place| place.at..place.at.saturating_add(place.len));
        let fits = |range: &Range<u64>| {
            left = left.saturating_sub(range.end - range.start);
            left > 0
        };
        let ranges: Vec<Range<u64>> = ranges.take_while(fits).collect();
        if !ranges.is_empty() {
            remote.will_read(&ranges);
        }
    }

    /// Whether chunks may be stored otherwise than they are.
    pub(crate) fn is_filtered(&self) -> bool {
        !self.filters.is_identity()
    }

    /// Whether a chunk is stored as it is.
    pub(crate) fn is_raw(&self, found: &LocatedChunk<'_>) -> bool {
        self.filters.skips_all(found.place.mask) || (self.partial_edge_unfiltered && found.is_edge)
    }

    pub(crate) fn filter_error(&self, found: &LocatedChunk<'_>, error: FilterError) -> ChunkError {
        ChunkError::Filter {
            chunk: crate::error::coordinates(found.key),
            at: found.place.at,
            error,
        }
    }
}

/// The event of a chunk whose filters are undone.
#[inline(always)]
pub(crate) fn decoding(stored: usize, chunk_bytes: usize) -> zonda_trace::TraceSpan {
    let (offset, bytes) = (chunk_bytes as u64, stored as u64);
    span(EventKind::ChunkDecode, || Args { offset, bytes, ..Args::default() })
}

/// A chunk in the storage.
#[derive(Debug)]
pub(crate) struct LocatedChunk<'a> {
    pub key: &'a [u64],
    pub place: ChunkAt,
    /// It reaches beyond the extent.
    pub is_edge: bool,
}

impl LocatedChunk<'_> {
    pub(crate) fn out_of_file(&self) -> ChunkError {
        let ChunkAt { at, len, .. } = self.place;
        ChunkError::OutOfFile { chunk: crate::error::coordinates(self.key), at, len }
    }
}

/// A chunk that no filter was applied to.
pub(crate) struct UnfilteredChunk<'a> {
    pub inner: &'a SharedArray,
    pub found: &'a LocatedChunk<'a>,
    pub chunk_bytes: usize,
}

impl UnfilteredChunk<'_> {
    pub(crate) fn check(&self) -> Result<(), ChunkError> {
        let (ChunkAt { at, len, .. }, expected) = (self.found.place, self.chunk_bytes as u64);
        if len != expected {
            let chunk = self.found.key.to_vec();
            return Err(ChunkError::Length { chunk, at, got: len, expected });
        }
        if at.checked_add(len).is_none_or(|end| end > i64::MAX as u64) {
            return Err(self.found.out_of_file());
        }
        // The same answer whichever part of the chunk is wanted.
        if at + len > self.inner.storage.len()? {
            return Err(self.found.out_of_file());
        }
        Ok(())
    }
}

impl RowSource for UnfilteredChunk<'_> {
    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), ChunkError> {
        for range in &mut *ranges {
            range.at = range.at.saturating_add(self.found.place.at);
        }
        match &mut *ranges {
            [one] => one.got = self.inner.storage.read_at(one.at, one.buf)?,
            many => self.inner.storage.read_ranges(many)?,
        }
        if ranges.iter().any(|range| range.got < range.buf.len()) {
            return Err(self.found.out_of_file());
        }
        Ok(())
    }
}

/// Makes `bytes` at least `len` long, if there is memory for it.
pub(crate) fn lengthen(bytes: &mut Vec<u8>, len: usize) -> Result<(), ChunkError> {
    if let Some(more) = len.checked_sub(bytes.len()) {
        bytes.try_reserve_exact(more).map_err(|_| ChunkError::NoMemory { bytes: len as u64 })?;
        bytes.resize(len, 0);
    }
    Ok(())
}
