//! Complete chunks that wait for others, so that filtering them keeps all threads busy.
//!
//! A model that puts a record at a time makes one chunk complete with each put. Filtered at once,
//! each would keep one thread busy and all others idle. So chunks that are new to the file wait,
//! until there are some for each thread.
//!
//! That is not to be seen in the file. Chunks get their places in the order in which they became
//! complete, and before anything else takes or gives back space: whoever does that calls
//! [`ChunkWriter::store_complete`] first. So the file is the same however many wait, and they may
//! be stored at any moment. A chunk that the file has already does not wait: the place it had
//! would become free later than without waiting.

use super::ChunkWriter;
use super::array::Array;
use crate::ChunkError;
use crate::recency::Id;
use crate::table::Allocate;

/// Chunks for each thread that are filtered together.
const CHUNKS_A_THREAD: u64 = 2;
/// Bytes that are, at least and at most.
const LEAST_BYTES: u64 = 2 << 20;
const MOST_BYTES: u64 = 64 << 20;
/// With fewer bytes than this it is not worth it.
const WORTH_BYTES: u64 = 512 << 10;

impl ChunkWriter {
    /// Bytes of complete chunks of this array that wait to be filtered together; `None` where they
    /// do not wait.
    pub(super) fn ripening(&self, array: &Array) -> Option<u64> {
        let threads = self.engine.threads() as u64;
        if threads < 2 || array.filters.is_identity() || array.always_fresh {
            return None;
        }
        let chunk = array.chunk_bytes as u64;
        let bytes = chunk
            .saturating_mul(threads * CHUNKS_A_THREAD)
            .clamp(LEAST_BYTES, MOST_BYTES)
            .min(self.limit / 4)
            .min(self.engine.budget_bytes() / 8);
        (bytes >= WORTH_BYTES && chunk <= bytes / 2).then_some(bytes)
    }

    /// Whether a complete chunk waits for others: it is to be filtered, and the file has none in its
    /// place.
    fn waits(&self, id: Id) -> Result<Option<u64>, ChunkError> {
        let Some(pending) = self.pending.get(id) else { return Ok(None) };
        let Some(array) = &self.arrays[pending.array] else { return Ok(None) };
        let Some(bytes) = self.ripening(array).filter(|_| !array.is_unfiltered(&pending.key))
        else {
            return Ok(None);
        };
        let is_new = array.read.inner.find(&pending.key)?.is_none();
        Ok(is_new.then_some(bytes))
    }

    /// Whether so many chunks leave threads without work.
    pub(super) fn are_few(&self, chunks: usize) -> bool {
        chunks < self.engine.threads()
    }

    /// Stores chunks that have become complete, in this order, or has them wait for others.
    pub(super) fn complete(
        &mut self,
        ids: &[Id],
        space: &mut dyn Allocate,
    ) -> Result<(), ChunkError> {
        let mut most = Some(u64::MAX);
        for id in ids {
            most = most.min(self.waits(*id)?);
        }
        let Some(most) = most.filter(|_| self.are_few(ids.len())) else {
            return self.store_pending(ids, space);
        };
        ids.iter().for_each(|id| self.pending.ripen(*id));
        match self.pending.ripe_bytes() >= most {
            true => self.store_complete(space),
            false => Ok(()),
        }
    }

    /// Whether a chunk of an array is complete and waits for others.
    pub(super) fn is_ripe(&self, index: usize, key: &[u64]) -> bool {
        let array = self.arrays[index].as_ref();
        let waiting = array.and_then(|array| self.pending.get(*array.keys.get(key)?));
        waiting.is_some_and(|pending| pending.is_ripe)
    }

    /// Stores the complete chunks that wait for others. To be called before space is taken or given
    /// back for anything but chunks of this writer, and where there is time for it.
    ///
    /// # Errors
    /// As [`ChunkWriter::put`]. What is not stored stays, and the next call tries again; but chunks that
    /// a filter refuses are given up, for it would refuse them again.
    pub fn store_complete(&mut self, space: &mut dyn Allocate) -> Result<(), ChunkError> {
        let mut refused = Ok(());
        while self.pending.has_ripe() {
            let ids: Vec<Id> = self.pending.ripe().map(|(id, _)| id).collect();
            match self.store_these(&ids, space) {
                Err(error @ ChunkError::Encode { .. }) => {
                    self.give_up_first_ripe();
                    refused = refused.and(Err(error));
                }
                stored => return refused.and(stored),
            }
        }
        refused
    }

    /// Those before it are stored when a chunk cannot be.
    fn give_up_first_ripe(&mut self) {
        let first = self.pending.ripe().next();
        let Some((array, key)) = first.map(|(_, chunk)| (chunk.array, chunk.key.clone())) else {
            return;
        };
        if let Some(array) = &mut self.arrays[array] {
            self.pending.remove(&mut array.keys, &key, &mut self.spare);
        }
    }
}
