//! What the cache knows of each chunk: which it has, which are being decoded, which it had.

use std::sync::Arc;

use hashbrown::HashMap;
use zonda_runtime::memory::tick;

use super::DecodedChunk;
use crate::recency::{NodeId, NodeTable, RecencyList};
use crate::selection::Coords;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::tuning::{LEAST_GHOST_CHUNKS, REUSED_USES};

/// What the cache has of a chunk that it remembers.
#[derive(Debug)]
pub(super) enum EntryState {
    /// Only its coordinates: the chunk went.
    Ghost,
    /// A thread is decoding it.
    Loading(LoadInProgress),
    /// The chunk.
    Ready(Arc<DecodedChunk>),
}

/// A chunk that is being decoded.
#[derive(Debug)]
pub(super) struct LoadInProgress {
    /// A number that no other load of this process has.
    pub token: u64,
    /// Process of the thread that decodes it.
    pid: u32,
    /// Set by a thread that gave up and could not take the lock to say so.
    pub abandoned: Arc<AtomicBool>,
}

impl LoadInProgress {
    pub(super) fn new() -> LoadInProgress {
        LoadInProgress {
            token: tick(),
            pid: zonda_runtime::fork::process_id(),
            abandoned: Arc::default(),
        }
    }

    /// Whether no thread decodes it any more: the thread gave up, or belongs to the parent of this process.
    pub(super) fn is_dead(&self) -> bool {
        self.abandoned.load(Ordering::Acquire) || self.pid != zonda_runtime::fork::process_id()
    }
}

/// A chunk that the cache has or remembers.
#[derive(Debug)]
pub(super) struct CacheEntry {
    pub key: Coords,
    /// When it was last used; of a ghost, when it went.
    pub stamp: u64,
    /// Requests that used it since it came, up to [`REUSED_USES`].
    pub uses: u8,
    pub state: EntryState,
}

/// The cache behind its lock.
#[derive(Debug, Default)]
pub(super) struct CacheState {
    pub ids: HashMap<Coords, NodeId>,
    pub nodes: NodeTable<CacheEntry>,
    /// Chunks that are in the cache.
    pub ready: RecencyList,
    /// Chunks that were, and are remembered.
    pub ghosts: RecencyList,
    /// Bytes taken of the budget: of chunks in the cache, and of those being decoded.
    pub bytes: u64,
    /// Chunks that a walk has left behind, and when each had been used last: their memory is what chunks ahead take
    /// first.
    pub left_behind: Vec<(Coords, u64)>,
    /// Whether a chunk was evicted because a walk had left it behind.
    pub evicted_early: bool,
    /// Whether a chunk was asked for again after that: then none is evicted early any more.
    pub came_back: bool,
    /// The chunk that the last request for a single chunk used.
    pub last: Option<NodeId>,
}

impl CacheState {
    /// The chunk of a node if it is in the cache; notes that it was used.
    pub(super) fn hit(&mut self, id: NodeId, now: u64) -> Option<Arc<DecodedChunk>> {
        let entry = self.nodes.get_mut(id)?;
        let EntryState::Ready(chunk) = &entry.state else { return None };
        let chunk = Arc::clone(chunk);
        chunk.trace_hit();
        entry.stamp = now;
        entry.uses = entry.uses.saturating_add(1).min(REUSED_USES);
        self.nodes.unlink(&mut self.ready, id);
        self.nodes.link(&mut self.ready, id);
        Some(chunk)
    }

    /// The chunk longest unused, and when it was used. Uses that took no lock are entered first; all that is known of
    /// their time is that it was before `since`.
    pub(super) fn oldest(&mut self, since: u64) -> Option<(NodeId, u64)> {
        for _ in 0..=self.ready.len {
            let id = self.ready.oldest()?;
            let entry = self.nodes.get_mut(id)?;
            let EntryState::Ready(chunk) = &entry.state else { return None };
            if !chunk.used.swap(false, Ordering::Relaxed) {
                return Some((id, entry.stamp));
            }
            entry.stamp = entry.stamp.max(since.saturating_sub(1));
            entry.uses = REUSED_USES;
            self.nodes.unlink(&mut self.ready, id);
            self.nodes.link(&mut self.ready, id);
        }
        None
    }

    /// Enters a chunk that is neither in the cache nor being decoded.
    pub(super) fn put(&mut self, key: &Coords, now: u64, uses: u8, state: EntryState) {
        let is_ghost = matches!(state, EntryState::Ghost);
        let id = match self.ids.get(key).copied() {
            Some(id) => {
                let CacheState { nodes, ghosts, .. } = self;
                nodes.unlink(ghosts, id);
                if let Some(entry) = nodes.get_mut(id) {
                    (entry.stamp, entry.uses, entry.state) = (now, uses, state);
                }
                id
            }
            None => {
                let id =
                    self.nodes.insert(CacheEntry { key: key.clone(), stamp: now, uses, state });
                self.ids.insert(key.clone(), id);
                id
            }
        };
        if is_ghost {
            self.nodes.link(&mut self.ghosts, id);
            self.trim_ghosts();
        }
    }

    /// Forgets a ghost.
    pub(super) fn forget(&mut self, key: &Coords) {
        let Some(&id) = self.ids.get(key) else { return };
        if matches!(self.nodes.get(id), Some(CacheEntry { state: EntryState::Ghost, .. })) {
            self.ids.remove(key);
            self.nodes.unlink(&mut self.ghosts, id);
            self.nodes.remove(id);
        }
    }

    /// Forgets the oldest ghosts where there are too many.
    pub(super) fn trim_ghosts(&mut self) {
        while self.ghosts.len > LEAST_GHOST_CHUNKS.max(4 * self.ready.len) {
            let oldest = self.ghosts.oldest().and_then(|id| self.nodes.get(id));
            let Some(key) = oldest.map(|entry| entry.key.clone()) else { return };
            self.forget(&key);
        }
    }
}
