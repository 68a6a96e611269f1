//! The end of the way: chunks get their places, are written, and are entered in their table.

use zonda_storage::{Storage, WriteRange};
use zonda_trace::{Args, EventKind, span};

use super::{EncodedBytes, EncodedChunk, StoreJob, StoreOutcome};
use crate::table::{Allocate, ChunkAt};
use crate::{ChunkError, TableError};

/// What the calling thread does with chunks that are ready.
pub(super) struct InOrderOutput<'s> {
    pub(super) storage: &'s dyn Storage,
    pub(super) space: &'s mut dyn Allocate,
    pub(super) outcome: StoreOutcome,
    /// Places that replaced chunks had.
    pub(super) freed: Vec<ChunkAt>,
}

impl InOrderOutput<'_> {
    /// Places, writes and enters chunks; gives back their memory.
    pub(super) fn write(
        &mut self,
        jobs: &[StoreJob<'_>],
        ready: Vec<Result<EncodedChunk<'_>, ChunkError>>,
    ) -> Vec<Vec<u8>> {
        let mut placed = Vec::with_capacity(ready.len());
        let mut error = None;
        for (job, stored) in jobs.iter().zip(ready) {
            let place = stored.and_then(|stored| Ok((self.place(job, &stored)?, stored)));
            match place {
                Ok(((at, is_new), mut stored)) => {
                    if is_new {
                        let behind = self.space.padded(at.at, at.len);
                        stored.pad_to(behind.saturating_sub(at.at));
                    }
                    placed.push((job, at, is_new, stored));
                }
                Err(failed) => {
                    error = Some(failed);
                    break;
                }
            }
        }
        let ranges: Vec<_> = placed
            .iter()
            .map(|(_, at, _, stored)| WriteRange { at: at.at, data: stored.bytes() })
            .collect();
        let mut n_entered = 0;
        let bytes = || ranges.iter().map(|range| range.data.len() as u64).sum();
        let writing = span(EventKind::ChunkWrite, || Args { bytes: bytes(), ..Args::default() });
        let written = self.storage.write_ranges(&ranges);
        drop(writing);
        match written {
            Err(failed) => error = Some(failed.into()),
            Ok(()) => {
                for (job, at, _, stored) in &placed {
                    if let Err(failed) = self.enter(job, *at) {
                        error = Some(ChunkError::Table(failed));
                        break;
                    }
                    n_entered += 1;
                    let converted = self.outcome.converted.and(stored.converted);
                    self.outcome.converted = converted;
                }
            }
        }
        // Nothing refers to these places.
        for (_, at, _, _) in placed[n_entered..].iter().filter(|(_, _, is_new, _)| *is_new) {
            self.space.free(at.at, at.len);
        }
        self.outcome.stored += n_entered;
        self.outcome.error = error;
        let used = placed.into_iter().filter_map(|(.., stored)| match stored.bytes {
            EncodedBytes::Owned(bytes) | EncodedBytes::Fetched(bytes) => Some(bytes),
            EncodedBytes::Borrowed(_) => None,
        });
        used.collect()
    }

    /// Where a chunk goes, and whether the place was taken for it.
    fn place(
        &mut self,
        job: &StoreJob<'_>,
        stored: &EncodedChunk<'_>,
    ) -> Result<(ChunkAt, bool), ChunkError> {
        let len = stored.bytes().len() as u64;
        if let Some(old) = job.old.filter(|old| old.len == len) {
            return Ok((ChunkAt { mask: stored.mask, ..old }, false));
        }
        let at = self.space.allocate(len).map_err(ChunkError::Table)?;
        Ok((ChunkAt { at, len, mask: stored.mask }, true))
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
    pub(super) fn end(self) -> StoreOutcome {
        for old in self.freed {
            self.space.free(old.at, old.len);
        }
        self.outcome
    }
}
