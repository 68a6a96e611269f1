//! The right to decode a chunk for the cache.

use std::sync::Arc;

use zonda_runtime::memory::tick;

use super::state::{CacheState, EntryState};
use super::{ChunkCache, DecodedChunk};
use crate::chunk_bytes::ChunkBytes;
use crate::selection::Coords;
use crate::sync::atomic::{AtomicBool, Ordering};

/// The right, and the duty, to decode a chunk: other threads wait until it is published or dropped.
#[derive(Debug)]
pub(crate) struct LoadTicket {
    pub(super) cache: Arc<ChunkCache>,
    pub(super) key: Coords,
    pub(super) token: u64,
    pub(super) abandoned: Arc<AtomicBool>,
    /// The chunk that was evicted for this one.
    pub(super) evicted: Option<Arc<DecodedChunk>>,
    /// It was neither published nor abandoned.
    pub(super) open: bool,
}

impl LoadTicket {
    /// The memory of the chunk that was evicted, unless somebody still reads it.
    pub(crate) fn spare(&mut self) -> Option<ChunkBytes> {
        let chunk = Arc::try_unwrap(self.evicted.take()?).ok()?;
        Some(chunk.bytes)
    }

    /// Hands the decoded chunk over to the cache and to those that wait for it.
    pub(crate) fn publish(mut self, bytes: ChunkBytes) -> Arc<DecodedChunk> {
        self.open = false;
        let chunk =
            Arc::new(DecodedChunk { key: self.key.clone(), bytes, used: AtomicBool::new(false) });
        self.settle(Some(&chunk));
        chunk
    }

    /// Gives up without taking a lock.
    pub(crate) fn abandon(mut self) {
        self.open = false;
        self.abandoned.store(true, Ordering::Release);
    }

    /// Ends the load, with a chunk or without. Does nothing if the cache forgot the chunk since the load began.
    fn settle(&self, chunk: Option<&Arc<DecodedChunk>>) {
        let cache = &self.cache;
        let mut state = cache.lock();
        let Some(&id) = state.ids.get(&self.key) else { return };
        let CacheState { nodes, ready, ghosts, .. } = &mut *state;
        let Some(entry) = nodes.get_mut(id) else { return };
        if !matches!(&entry.state, EntryState::Loading(load) if load.token == self.token) {
            return;
        }
        match chunk {
            Some(chunk) => {
                entry.state = EntryState::Ready(Arc::clone(chunk));
                entry.stamp = tick();
                nodes.link(ready, id);
            }
            None => {
                entry.state = EntryState::Ghost;
                nodes.link(ghosts, id);
                cache.free(&mut state);
                state.forget(&self.key);
            }
        }
        cache.note_oldest(&state);
        drop(state);
        cache.loaded.notify_all();
    }
}

impl Drop for LoadTicket {
    fn drop(&mut self) {
        if self.open {
            self.settle(None);
        }
    }
}
