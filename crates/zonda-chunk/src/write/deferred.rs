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
use super::writer_array::WriterArray;
use crate::ChunkError;
use crate::recency::NodeId;
use crate::table::Allocate;
use crate::tuning::{
    DEFERRED_CHUNKS_PER_THREAD, LEAST_DEFERRED_BYTES, MOST_DEFERRED_BYTES, WORTH_DEFERRING_BYTES,
};

impl ChunkWriter {
    /// Bytes of complete chunks of this array that wait to be filtered together; `None` where they
    /// do not wait.
    pub(super) fn deferred_limit(&self, array: &WriterArray) -> Option<u64> {
        let threads = self.engine.threads() as u64;
        if threads < 2 || array.filters.is_identity() || array.always_fresh {
            return None;
        }
        let chunk = array.chunk_bytes as u64;
        let bytes = chunk
            .saturating_mul(threads * DEFERRED_CHUNKS_PER_THREAD)
            .clamp(LEAST_DEFERRED_BYTES, MOST_DEFERRED_BYTES)
            .min(self.limit / 4)
            .min(self.engine.budget_bytes() / 8);
        (bytes >= WORTH_DEFERRING_BYTES && chunk <= bytes / 2).then_some(bytes)
    }

    /// Whether a complete chunk waits for others: it is to be filtered, and the file has none in its
    /// place.
    fn waits(&self, id: NodeId) -> Result<Option<u64>, ChunkError> {
        let Some(pending) = self.pending.get(id) else { return Ok(None) };
        let Some(array) = &self.arrays[pending.array] else { return Ok(None) };
        let Some(bytes) = self.deferred_limit(array).filter(|_| !array.is_unfiltered(&pending.key))
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
        ids: &[NodeId],
        space: &mut dyn Allocate,
    ) -> Result<(), ChunkError> {
        let mut most = Some(u64::MAX);
        for id in ids {
            most = most.min(self.waits(*id)?);
        }
        let Some(most) = most.filter(|_| self.are_few(ids.len())) else {
            return self.store_pending(ids, space);
        };
        ids.iter().for_each(|id| self.pending.defer(*id));
        match self.pending.deferred_bytes() >= most {
            true => self.store_complete(space),
            false => Ok(()),
        }
    }

    /// Whether a chunk of an array is complete and waits for others.
    pub(super) fn is_deferred(&self, index: usize, key: &[u64]) -> bool {
        let array = self.arrays[index].as_ref();
        let waiting = array.and_then(|array| self.pending.get(*array.keys.get(key)?));
        waiting.is_some_and(|pending| pending.is_deferred)
    }

    /// Stores the deferred chunks. To be called before space is taken or given
    /// back for anything but chunks of this writer, and where there is time for it.
    ///
    /// # Errors
    /// As [`ChunkWriter::put`]. What is not stored stays, and the next call tries again; but chunks that
    /// a filter refuses are given up, for it would refuse them again.
    pub fn store_complete(&mut self, space: &mut dyn Allocate) -> Result<(), ChunkError> {
        let mut refused = Ok(());
        while self.pending.has_deferred() {
            let ids: Vec<NodeId> = self.pending.deferred().map(|(id, _)| id).collect();
            match self.store_these(&ids, space) {
                Err(error @ ChunkError::Encode { .. }) => {
                    self.give_up_first_deferred();
                    refused = refused.and(Err(error));
                }
                stored => return refused.and(stored),
            }
        }
        refused
    }

    /// Forgets the first deferred chunk: a filter refuses it, and those before it are stored.
    fn give_up_first_deferred(&mut self) {
        let first = self.pending.deferred().next();
        let Some((array, key)) = first.map(|(_, chunk)| (chunk.array, chunk.key.clone())) else {
            return;
        };
        if let Some(array) = &mut self.arrays[array] {
            self.pending.remove(&mut array.keys, &key, &mut self.spare);
        }
    }
}
