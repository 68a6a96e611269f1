//! Decoded chunks of one array, kept for later requests.
//!
//! Chunks that a request wants only in part are kept, in the file's form, as long as the budget
//! lasts; then the one longest unused goes. Two things keep that from failing where a plain order
//! of use would: a request does not push out what it has itself used; and a chunk that comes back
//! (its number is remembered for a while after it went) and had not been found here before it went,
//! only takes the place of one unused for longer than it was away. A cycle longer than the budget so
//! keeps a fixed part of its chunks instead of losing each just before it is wanted, while chunks
//! that are asked for many times in a row, as in a walk by layers, come and go in the order of use.

mod state;
mod ticket;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::lock::{Condvar, Mutex, MutexGuard, Rank};
use std::sync::{Arc, Weak};
use zonda_runtime::callout;

use arc_swap::ArcSwapOption;
use zonda_runtime::memory::{Holder, Kind, now, tick};
use zonda_trace::{Args, EventKind};

use crate::chunk_bytes::ChunkBytes;
use crate::engine::Engine;
use crate::recency::NodeId;
use crate::selection::Coords;
use crate::tuning::{DECODER_CHECK_INTERVAL, MOST_EVICTED_CHUNKS, REUSED_USES};

use state::{CacheEntry, CacheState, EntryState, LoadInProgress};
pub(crate) use ticket::LoadTicket;

/// A decoded chunk, in the file's form.
#[derive(Debug)]
pub(crate) struct DecodedChunk {
    /// Where it is in the chunk grid.
    pub key: Coords,
    pub bytes: ChunkBytes,
    /// Whether it was used, without the lock, since the cache looked last.
    used: AtomicBool,
}

impl DecodedChunk {
    /// Notes a use that no lock was taken for.
    #[inline]
    pub(crate) fn touch(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        self.trace_hit();
    }

    #[inline]
    fn trace_hit(&self) {
        let args = || Args { bytes: self.bytes.len() as u64, ..Args::default() };
        zonda_trace::instant(EventKind::ChunkHit, args);
    }
}

/// What the cache has of a chunk.
#[derive(Clone, Debug)]
pub(crate) enum CacheHit {
    Ready(Arc<DecodedChunk>),
    /// A thread is decoding it.
    Loading,
    Absent,
}

/// What becomes of a chunk that is not in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimTerms {
    /// It is to be kept.
    pub keep: bool,
    /// Chunks used at this time or later are not to be pushed out.
    pub since: u64,
    /// A request needs it: wait if another thread is decoding it. Else it is a prefetch.
    pub now: bool,
}

/// The answer to a [`ClaimTerms`].
#[derive(Debug)]
pub(crate) enum CacheClaim {
    Ready(Arc<DecodedChunk>),
    /// The caller decodes it and hands it in.
    Decode(LoadTicket),
    /// The caller decodes it for itself.
    Bypass,
}

/// Decoded chunks of one array.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    engine: Arc<Engine>,
    /// Bytes of a chunk.
    chunk_bytes: u64,
    /// Bytes that it may have whatever others take.
    floor: AtomicU64,
    state: Mutex<CacheState>,
    loaded: Condvar,
    /// The chunk that small requests keep asking for.
    hot: ArcSwapOption<DecodedChunk>,
    /// When the chunk longest unused was used; `u64::MAX` if there is none.
    oldest: AtomicU64,
}

impl ChunkCache {
    pub(crate) fn new(engine: &Arc<Engine>, chunk_bytes: u64) -> Arc<ChunkCache> {
        let cache = Arc::new(ChunkCache {
            engine: Arc::clone(engine),
            chunk_bytes,
            floor: AtomicU64::new(0),
            state: Mutex::ranked(Rank::ChunkCache, CacheState::default()),
            loaded: Condvar::new(),
            hot: ArcSwapOption::empty(),
            oldest: AtomicU64::new(u64::MAX),
        });
        let holder: Weak<ChunkCache> = Arc::downgrade(&cache);
        engine.broker().join(holder);
        cache
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock()
    }

    pub(crate) fn set_floor(&self, bytes: u64) {
        self.floor.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of decoded chunks, those being decoded included.
    pub(crate) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Whether no chunk is there or being decoded.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// The chunk that small requests keep asking for.
    #[inline]
    pub(crate) fn hot(&self) -> arc_swap::Guard<Option<Arc<DecodedChunk>>> {
        self.hot.load()
    }

    /// Whether no chunk is there, as far as can be told without the lock.
    pub(crate) fn seems_empty(&self) -> bool {
        self.oldest.load(Ordering::Relaxed) == u64::MAX
    }

    /// The chunk, for a request that needs no other.
    pub(crate) fn get(&self, key: &[u64]) -> Option<Arc<DecodedChunk>> {
        let mut state = self.lock();
        let id = *state.ids.get(key)?;
        // The order of uses is in the list: the clock, which all threads share, need not go on with each.
        let chunk = state.hit(id, now())?;
        // Replacing the hot chunk costs more than a look-up: it is only done for one that is asked
        // for again and again.
        if state.last.replace(id) == Some(id) {
            self.hot.store(Some(Arc::clone(&chunk)));
        }
        self.note_oldest(&state);
        Some(chunk)
    }

    /// What there is of many chunks.
    pub(crate) fn hits(&self, keys: impl Iterator<Item = Coords>, mut found: impl FnMut(CacheHit)) {
        // The request has had the clock go on.
        let now = now();
        let mut state = self.lock();
        // Requests for the same chunks use them in the same order, so that each is followed by the next one in the order of use.
        let mut next = None;
        for key in keys {
            let is_next = |id: &NodeId| state.nodes.get(*id).is_some_and(|entry| entry.key == key);
            let id = next.filter(is_next).or_else(|| state.ids.get(&key).copied());
            next = id.and_then(|id| state.nodes.newer(id));
            let hit = id.map_or(CacheHit::Absent, |id| match state.hit(id, now) {
                Some(chunk) => CacheHit::Ready(chunk),
                None => match state.nodes.get(id) {
                    Some(CacheEntry { state: EntryState::Loading(_), .. }) => CacheHit::Loading,
                    _ => CacheHit::Absent,
                },
            });
            found(hit);
        }
        self.note_oldest(&state);
    }

    /// Asks for a chunk: the answer is the chunk, or who decodes it.
    pub(crate) fn claim(self: &Arc<Self>, key: &Coords, terms: ClaimTerms) -> CacheClaim {
        let mut others_asked = 0;
        let mut state = self.lock();
        loop {
            let now = tick();
            let away = match self.find_or_wait(&mut state, key, terms, now) {
                Lookup::Claim(claim) => return claim,
                Lookup::Wait => {
                    let waiting = zonda_trace::start();
                    state = self.loaded.wait_timeout(state, DECODER_CHECK_INTERVAL).0;
                    zonda_trace::span_since(waiting, EventKind::WaitChunk, Args::default);
                    continue;
                }
                Lookup::Absent { away } => away,
            };
            if !terms.keep {
                return CacheClaim::Bypass;
            }
            let is_known = state.ids.contains_key(key);
            state.came_back |= state.evicted_early && is_known && terms.now;
            let left_behind = self.evict_left_behind(&mut state);
            let may_ask = others_asked < MOST_EVICTED_CHUNKS;
            match self.take_memory(&mut state, now, away, terms.since, may_ask) {
                MemoryGrant::Taken(evicted) => {
                    let load = LoadInProgress::new();
                    let ticket = self.ticket(key, &load, left_behind.or(evicted));
                    state.put(key, now, u8::from(terms.now), EntryState::Loading(load));
                    self.note_oldest(&state);
                    return CacheClaim::Decode(ticket);
                }
                MemoryGrant::AskOthers(before) if may_ask => {
                    others_asked += 1;
                    drop(state);
                    // Freeing much memory takes time: other threads need not wait for it.
                    if !self.engine.broker().reclaim(self.chunk_bytes, before) {
                        others_asked = MOST_EVICTED_CHUNKS;
                    }
                    state = self.lock();
                }
                MemoryGrant::AskOthers(_) | MemoryGrant::Refused => {
                    state.put(key, now, 1, EntryState::Ghost);
                    self.note_oldest(&state);
                    return CacheClaim::Bypass;
                }
            }
        }
    }

    /// What the cache has of a claimed chunk.
    fn find_or_wait(
        self: &Arc<Self>,
        state: &mut CacheState,
        key: &Coords,
        terms: ClaimTerms,
        now: u64,
    ) -> Lookup {
        let Some(id) = state.ids.get(key).copied() else { return Lookup::Absent { away: None } };
        if let Some(chunk) = state.hit(id, now) {
            self.note_oldest(state);
            return Lookup::Claim(CacheClaim::Ready(chunk));
        }
        match state.nodes.get_mut(id) {
            Some(CacheEntry { state: EntryState::Loading(load), .. }) if load.is_dead() => {
                // What was taken of the budget for it is this thread's now.
                *load = LoadInProgress::new();
                Lookup::Claim(CacheClaim::Decode(self.ticket(key, load, None)))
            }
            // The thread that decodes it may be waiting for the plugin that this thread is in.
            Some(CacheEntry { state: EntryState::Loading(_), .. })
                if !terms.now || callout::is_within() =>
            {
                Lookup::Claim(CacheClaim::Bypass)
            }
            Some(CacheEntry { state: EntryState::Loading(_), .. }) => Lookup::Wait,
            Some(entry) if entry.uses < REUSED_USES => {
                Lookup::Absent { away: Some(now.saturating_sub(entry.stamp)) }
            }
            Some(_) | None => Lookup::Absent { away: None },
        }
    }

    fn ticket(
        self: &Arc<Self>,
        key: &Coords,
        load: &LoadInProgress,
        evicted: Option<Arc<DecodedChunk>>,
    ) -> LoadTicket {
        LoadTicket {
            cache: Arc::clone(self),
            key: key.clone(),
            token: load.token,
            abandoned: Arc::clone(&load.abandoned),
            evicted,
            open: true,
        }
    }

    /// Takes memory for a chunk, and evicts others where it must.
    fn take_memory(
        &self,
        state: &mut CacheState,
        now: u64,
        away: Option<u64>,
        since: u64,
        may_ask: bool,
    ) -> MemoryGrant {
        let floor = self.floor.load(Ordering::Relaxed);
        // Chunks used at this time or later are not evicted.
        let before =
            away.map_or(since, |away| since.min(now.saturating_sub(away).saturating_add(1)));
        let mut may_ask = may_ask;
        let mut evicted = None;
        for _ in 0..MOST_EVICTED_CHUNKS {
            if self.engine.broker().take(Kind::Chunks, self.chunk_bytes) {
                state.bytes += self.chunk_bytes;
                return MemoryGrant::Taken(evicted);
            }
            if state.bytes.saturating_add(self.chunk_bytes) <= floor {
                return self.take_beyond_limit(state, evicted);
            }
            let own = state.oldest(since);
            if may_ask && evicted.is_none() {
                return MemoryGrant::AskOthers(own.map_or(before, |(_, stamp)| before.min(stamp)));
            }
            may_ask = false;
            match own {
                Some((id, stamp)) if stamp < before => evicted = self.evict(state, id),
                _ => break,
            }
        }
        // One chunk an array may always have: without it, reading one by one would decode a chunk
        // for each element.
        if state.bytes == 0 { self.take_beyond_limit(state, evicted) } else { MemoryGrant::Refused }
    }

    fn take_beyond_limit(
        &self,
        state: &mut CacheState,
        evicted: Option<Arc<DecodedChunk>>,
    ) -> MemoryGrant {
        self.engine.broker().take_anyway(Kind::Chunks, self.chunk_bytes);
        state.bytes += self.chunk_bytes;
        MemoryGrant::Taken(evicted)
    }

    /// Notes that a walk has left the chunks of this box behind.
    pub(crate) fn leave_behind(&self, first: &[u64], last: &[u64]) {
        let mut state = self.lock();
        state.left_behind.clear();
        if state.came_back {
            return;
        }
        let mut key = Coords::from_slice(first);
        loop {
            let entry = state.ids.get(&key).and_then(|id| state.nodes.get(*id));
            if let Some(CacheEntry { stamp, state: EntryState::Ready(_), .. }) = entry {
                let stamp = *stamp;
                state.left_behind.push((key.clone(), stamp));
            }
            let Some(d) = (0..key.len()).rev().find(|&d| key[d] < last[d]) else { return };
            key[d] += 1;
            key[d + 1..].copy_from_slice(&first[d + 1..]);
        }
    }

    /// Drops a chunk that a walk has left behind and nobody has used since.
    fn evict_left_behind(&self, state: &mut CacheState) -> Option<Arc<DecodedChunk>> {
        while let Some((key, stamp)) = state.left_behind.pop() {
            let Some(&id) = state.ids.get(&key) else { continue };
            let unused = match state.nodes.get(id) {
                Some(CacheEntry { stamp: used, state: EntryState::Ready(chunk), .. }) => {
                    *used == stamp && !chunk.used.load(Ordering::Relaxed)
                }
                _ => false,
            };
            if unused {
                state.evicted_early = true;
                return self.evict(state, id);
            }
        }
        None
    }

    /// Evicts a chunk; it is remembered as a ghost.
    fn evict(&self, state: &mut CacheState, id: NodeId) -> Option<Arc<DecodedChunk>> {
        let CacheState { nodes, ready, ghosts, .. } = &mut *state;
        let entry = nodes.get_mut(id)?;
        let EntryState::Ready(chunk) = std::mem::replace(&mut entry.state, EntryState::Ghost)
        else {
            return None;
        };
        nodes.unlink(ready, id);
        nodes.link(ghosts, id);
        self.forget_hot(&chunk);
        self.free(state);
        state.trim_ghosts();
        Some(chunk)
    }

    /// Makes a chunk that goes no longer the hot one.
    fn forget_hot(&self, chunk: &Arc<DecodedChunk>) {
        let is_hot = self.hot.load().as_ref().is_some_and(|hot| Arc::ptr_eq(hot, chunk));
        if is_hot {
            self.hot.store(None);
        }
    }

    fn free(&self, state: &mut CacheState) {
        self.engine.broker().give_back(Kind::Chunks, self.chunk_bytes);
        state.bytes = state.bytes.saturating_sub(self.chunk_bytes);
    }

    /// Drops all chunks. Those being decoded are not kept when they are published.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        self.engine.broker().give_back(Kind::Chunks, state.bytes);
        *state = CacheState::default();
        self.hot.store(None);
        self.oldest.store(u64::MAX, Ordering::Relaxed);
        drop(state);
        self.loaded.notify_all();
    }

    /// Drops and forgets a chunk. If it is being decoded, it is not kept when it is published.
    pub(crate) fn remove(&self, key: &[u64]) {
        let mut state = self.lock();
        let Some(id) = state.ids.remove(key) else { return };
        let CacheState { nodes, ready, ghosts, last, .. } = &mut *state;
        let mut waited_for = false;
        match nodes.get(id).map(|entry| &entry.state) {
            Some(EntryState::Ready(chunk)) => {
                let chunk = Arc::clone(chunk);
                nodes.unlink(ready, id);
                self.forget_hot(&chunk);
            }
            Some(EntryState::Ghost) => nodes.unlink(ghosts, id),
            Some(EntryState::Loading(_)) => waited_for = true,
            None => {}
        }
        if *last == Some(id) {
            *last = None;
        }
        if !matches!(nodes.remove(id), None | Some(CacheEntry { state: EntryState::Ghost, .. })) {
            self.free(&mut state);
        }
        self.note_oldest(&state);
        drop(state);
        if waited_for {
            self.loaded.notify_all();
        }
    }

    fn note_oldest(&self, state: &CacheState) {
        let oldest = state.ready.oldest().and_then(|id| state.nodes.get(id));
        self.oldest.store(oldest.map_or(u64::MAX, |entry| entry.stamp), Ordering::Relaxed);
    }
}

impl Holder for ChunkCache {
    fn least_useful(&self) -> Option<u64> {
        Some(self.oldest.load(Ordering::Relaxed)).filter(|&stamp| stamp != u64::MAX)
    }

    fn give_back(&self, bytes: u64, before: u64) -> u64 {
        // Whoever has it now makes room for itself, and a forked child may never get it.
        let Some(mut state) = self.state.try_lock() else { return 0 };
        let floor = self.floor.load(Ordering::Relaxed);
        let (mut given, mut evicted) = (0, Vec::new());
        while given < bytes {
            if state.bytes.saturating_sub(self.chunk_bytes) < floor {
                break;
            }
            let now = tick();
            let Some((id, _)) = state.oldest(now).filter(|(_, stamp)| *stamp < before) else {
                break;
            };
            let Some(chunk) = self.evict(&mut state, id) else { break };
            given += self.chunk_bytes;
            evicted.push(chunk);
        }
        self.note_oldest(&state);
        if given == 0 && state.bytes.saturating_sub(self.chunk_bytes) < floor {
            // Nobody asks again before it is used again.
            self.oldest.store(u64::MAX, Ordering::Relaxed);
        }
        drop(state);
        // Much memory takes time to go: others need not wait for it.
        drop(evicted);
        given
    }
}

impl Drop for ChunkCache {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        self.engine.broker().give_back(Kind::Chunks, state.bytes);
    }
}

/// The answer to a claim's first look.
enum Lookup {
    Claim(CacheClaim),
    /// Another thread is decoding the chunk.
    Wait,
    /// The chunk is not in the cache. If it was once, and was not used again and again: how long ago it went.
    Absent {
        away: Option<u64>,
    },
}

/// Whether a chunk gets memory.
enum MemoryGrant {
    /// It does. With the chunk that was evicted for it, if one was.
    Taken(Option<Arc<DecodedChunk>>),
    /// What other caches have, and was used before this time, is less useful.
    AskOthers(u64),
    Refused,
}
