//! The end of the way: chunks get their places, are written, and are entered in their table.
//!
//! The calling thread gives places and enters chunks, both in the order of the chunks. Between the two the bytes of a run of chunks
//! may be written by any thread, beside those of other runs.

use zonda_storage::{Storage, WriteRange};
use zonda_trace::{Args, EventKind, span};

use super::{EncodedBytes, EncodedChunk, StoreJob, StoreOutcome};
use crate::table::{Allocate, ChunkAt};
use crate::{ChunkError, TableError};

/// A chunk that has its place.
pub(super) struct PlacedChunk<'a> {
    /// The number of its job.
    job: usize,
    at: ChunkAt,
    /// Whether the place was taken for it.
    is_new: bool,
    encoded: EncodedChunk<'a>,
}

impl PlacedChunk<'_> {
    /// Its bytes in the storage.
    pub(super) fn len(&self) -> usize {
        self.encoded.bytes().len()
    }
}

/// Chunks that are written by one call.
pub(super) struct PlacedRun<'a> {
    chunks: Vec<PlacedChunk<'a>>,
    /// Their bytes before they were filtered, which count as long as they are not written.
    pub(super) held: usize,
}

impl<'a> PlacedRun<'a> {
    pub(super) fn new(chunks: Vec<PlacedChunk<'a>>, jobs: &[StoreJob<'_>]) -> PlacedRun<'a> {
        let bytes = |chunk: &PlacedChunk<'_>| jobs.get(chunk.job).map(|job| job.array.chunk_bytes);
        let held = chunks.iter().filter_map(bytes).sum();
        PlacedRun { chunks, held }
    }

    /// Writes them where they belong.
    pub(super) fn write(&self, storage: &dyn Storage) -> Result<(), ChunkError> {
        let ranges: Vec<_> = self
            .chunks
            .iter()
            .map(|chunk| WriteRange { at: chunk.at.at, data: chunk.encoded.bytes() })
            .collect();
        let bytes = || ranges.iter().map(|range| range.data.len() as u64).sum();
        let _span = span(EventKind::ChunkWrite, || Args { bytes: bytes(), ..Args::default() });
        Ok(storage.write_ranges(&ranges)?)
    }
}

/// What the calling thread does with chunks that are ready, and with those that are written.
pub(super) struct InOrderOutput<'q, 'a> {
    pub(super) jobs: &'q [StoreJob<'a>],
    pub(super) space: &'q mut dyn Allocate,
    pub(super) outcome: StoreOutcome,
    /// Why the chunk behind the last one that was placed has no place.
    pub(super) not_placed: Option<ChunkError>,
    /// Places that replaced chunks had.
    pub(super) freed: Vec<ChunkAt>,
}

impl<'a> InOrderOutput<'_, 'a> {
    /// Places chunks, of which the first is that of job `first`, up to one that cannot be.
    pub(super) fn place(
        &mut self,
        first: usize,
        ready: Vec<Result<EncodedChunk<'a>, ChunkError>>,
    ) -> Vec<PlacedChunk<'a>> {
        let mut placed = Vec::with_capacity(ready.len());
        for (job, encoded) in (first..).zip(ready) {
            let place = encoded.and_then(|encoded| {
                let (at, is_new) = self.place_of(&self.jobs[job], &encoded)?;
                Ok(PlacedChunk { job, at, is_new, encoded })
            });
            match place {
                Ok(mut chunk) => {
                    if chunk.is_new {
                        let behind = self.space.padded(chunk.at.at, chunk.at.len);
                        chunk.encoded.pad_to(behind.saturating_sub(chunk.at.at));
                    }
                    placed.push(chunk);
                }
                Err(failed) => {
                    self.not_placed = Some(failed);
                    break;
                }
            }
        }
        placed
    }

    /// Where a chunk goes, and whether the place was taken for it.
    fn place_of(
        &mut self,
        job: &StoreJob<'_>,
        encoded: &EncodedChunk<'_>,
    ) -> Result<(ChunkAt, bool), ChunkError> {
        let len = encoded.bytes().len() as u64;
        if let Some(old) = job.old.filter(|old| old.len == len) {
            return Ok((ChunkAt { mask: encoded.mask, ..old }, false));
        }
        let at = self.space.allocate(len).map_err(ChunkError::Table)?;
        Ok((ChunkAt { at, len, mask: encoded.mask }, true))
    }

    /// Enters the chunks of a run; of one that is behind an error, or could not be written, it gives the places back. Gives the memory that
    /// the chunks had. Runs come in their order.
    pub(super) fn finish(
        &mut self,
        run: PlacedRun<'a>,
        written: Result<(), ChunkError>,
    ) -> impl Iterator<Item = Vec<u8>> + use<'a> {
        if self.outcome.error.is_none() {
            self.outcome.error = written.err();
        }
        for chunk in &run.chunks {
            if self.outcome.error.is_none() {
                match self.enter(&self.jobs[chunk.job], chunk.at) {
                    Ok(()) => {
                        self.outcome.stored += 1;
                        let converted = self.outcome.converted.and(chunk.encoded.converted);
                        self.outcome.converted = converted;
                        continue;
                    }
                    Err(failed) => self.outcome.error = Some(ChunkError::Table(failed)),
                }
            }
            // Nothing refers to its place.
            if chunk.is_new {
                self.space.free(chunk.at.at, chunk.at.len);
            }
        }
        run.chunks.into_iter().filter_map(|chunk| match chunk.encoded.bytes {
            EncodedBytes::Owned(bytes) | EncodedBytes::Fetched(bytes) => Some(bytes),
            EncodedBytes::Borrowed(_) => None,
        })
    }

    fn enter(&mut self, job: &StoreJob<'_>, at: ChunkAt) -> Result<(), TableError> {
        if job.old == Some(at) {
            return Ok(());
        }
        let old = job.array.table.insert(&job.key, at)?;
        self.freed.extend(old.filter(|old| old.at != at.at));
        Ok(())
    }

    /// Gives back what replaced chunks had: at the end, so that places do not depend on when
    /// chunks were ready.
    pub(super) fn end(mut self) -> StoreOutcome {
        for old in self.freed {
            self.space.free(old.at, old.len);
        }
        // What could not be placed is behind all that could.
        if self.outcome.error.is_none() {
            self.outcome.error = self.not_placed.take();
        }
        self.outcome
    }
}
