//! Decoded chunks of one array, kept for later requests.
//!
//! Chunks that a request wants only in part are kept, in the file's form, as long as the budget
//! lasts; then the one longest unused goes. Two things keep that from failing where a plain order
//! of use would: a request does not push out what it has itself used; and a chunk that comes back
//! (its number is remembered for a while after it went) and had not been found here before it went,
//! only takes the place of one unused for longer than it was away. A cycle longer than the budget so
//! keeps a fixed part of its chunks instead of losing each just before it is wanted, while chunks
//! that are asked for many times in a row, as in a walk by layers, come and go in the order of use.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::lock::{Condvar, Mutex, MutexGuard, Rank};
use std::sync::{Arc, Weak};
use zonda_runtime::callout;

use arc_swap::ArcSwapOption;
use hashbrown::HashMap;
use zonda_runtime::memory::{Holder, Kind, tick};
use zonda_trace::{Args, Kind as Event};

use crate::chunk_bytes::ChunkBytes;
use crate::engine::Engine;
use crate::recency::{NodeId, NodeTable, RecencyList};
use crate::selection::Coords;
use crate::tuning::{DECODER_CHECK_INTERVAL, LEAST_GHOST_CHUNKS, MOST_EVICTED_CHUNKS, REUSED_USES};

/// A decoded chunk, in the file's form.
#[derive(Debug)]
pub(crate) struct DecodedChunk {
    /// Where it is in the chunk grid.
    pub key: Coords,
    pub bytes: ChunkBytes,
    /// Used since it was last asked whether it was.
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
        zonda_trace::instant(Event::ChunkHit, args);
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
    /// It is wanted now: if another thread is decoding it, wait. Else it is only a guess.
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

#[derive(Debug)]
enum EntryState {
    /// It was here once.
    Ghost,
    Loading(LoadInProgress),
    Ready(Arc<DecodedChunk>),
}

/// A chunk being decoded.
#[derive(Debug)]
struct LoadInProgress {
    /// A number that no other load of this process has.
    token: u64,
    /// Process of the thread.
    pid: u32,
    /// The thread gave up and could not take the lock to say so.
    abandoned: Arc<AtomicBool>,
}

impl LoadInProgress {
    fn new() -> LoadInProgress {
        LoadInProgress {
            token: tick(),
            pid: zonda_runtime::fork::process_id(),
            abandoned: Arc::default(),
        }
    }

    /// Whether nobody is at it any more: the thread gave up, or stayed behind in a fork's parent.
    fn is_dead(&self) -> bool {
        self.abandoned.load(Ordering::Acquire) || self.pid != zonda_runtime::fork::process_id()
    }
}

#[derive(Debug)]
struct CacheEntry {
    key: Coords,
    /// When it was last used.
    stamp: u64,
    /// Requests that used it since it came, up to [`REUSED_USES`]. Where it is only remembered: when it
    /// went.
    uses: u8,
    state: EntryState,
}

#[derive(Debug, Default)]
struct CacheState {
    map: HashMap<Coords, NodeId>,
    nodes: NodeTable<CacheEntry>,
    /// Those that are there.
    ready: RecencyList,
    /// Those that were.
    ghosts: RecencyList,
    /// Bytes taken of the budget: chunks there, and being decoded.
    bytes: u64,
    /// Chunks that a walk has left behind, and when each had been used last: theirs is the memory
    /// that chunks ahead take first.
    behind: Vec<(Coords, u64)>,
    /// Such a chunk went, and whether one that had gone came back since: then none goes early.
    some_went: bool,
    came_back: bool,
    /// The chunk used last by a request that it was enough for.
    last: Option<NodeId>,
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

    /// The chunk, for a request that needs no other.
    pub(crate) fn get(&self, key: &[u64]) -> Option<Arc<DecodedChunk>> {
        let mut state = self.lock();
        let id = *state.map.get(key)?;
        let chunk = state.hit(id, tick())?;
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
        let now = tick();
        let mut state = self.lock();
        for key in keys {
            let id = state.map.get(&key).copied();
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

    /// Asks for a chunk that is wanted now.
    pub(crate) fn claim(self: &Arc<Self>, key: &Coords, want: ClaimTerms) -> CacheClaim {
        let mut others_asked = 0;
        let mut state = self.lock();
        loop {
            let now = tick();
            let id = state.map.get(key).copied();
            let mut away = None;
            if let Some(id) = id {
                if let Some(chunk) = state.hit(id, now) {
                    self.note_oldest(&state);
                    return CacheClaim::Ready(chunk);
                }
                match state.nodes.get_mut(id) {
                    Some(CacheEntry { state: EntryState::Loading(load), .. }) if load.is_dead() => {
                        // What was taken of the budget for it is this thread's now.
                        *load = LoadInProgress::new();
                        return CacheClaim::Decode(self.ticket(key, load, None));
                    }
                    Some(CacheEntry { state: EntryState::Loading(_), .. }) => {
                        // Who decodes it may be waiting for the plugin that this thread is in.
                        if !want.now || callout::is_within() {
                            return CacheClaim::Bypass;
                        }
                        let waiting = zonda_trace::start();
                        let waited = self.loaded.wait_timeout(state, DECODER_CHECK_INTERVAL);
                        state = waited.0;
                        zonda_trace::span_since(waiting, Event::WaitChunk, Args::default);
                        continue;
                    }
                    Some(entry) if entry.uses < REUSED_USES => {
                        away = Some(now.saturating_sub(entry.stamp));
                    }
                    Some(_) => {}
                    None => {}
                }
            }
            if !want.keep {
                return CacheClaim::Bypass;
            }
            state.came_back |= state.some_went && id.is_some() && want.now;
            let behind = self.evict_behind(&mut state);
            let may_ask = others_asked < MOST_EVICTED_CHUNKS;
            match self.take_memory(&mut state, now, away, want.since, may_ask) {
                MemoryGrant::Taken(evicted) => {
                    let evicted = behind.or(evicted);
                    let load = LoadInProgress::new();
                    let ticket = self.ticket(key, &load, evicted);
                    state.put(key, now, u8::from(want.now), EntryState::Loading(load));
                    self.note_oldest(&state);
                    return CacheClaim::Decode(ticket);
                }
                MemoryGrant::AskOthers(before) if others_asked < MOST_EVICTED_CHUNKS => {
                    others_asked += 1;
                    drop(state);
                    // Much memory takes time to go: others need not wait for it.
                    if !self.engine.broker().reclaim(self.chunk_bytes, before) {
                        others_asked = MOST_EVICTED_CHUNKS;
                    }
                    state = self.lock();
                }
                MemoryGrant::AskOthers(_) | MemoryGrant::None => {
                    state.put(key, now, 1, EntryState::Ghost);
                    self.note_oldest(&state);
                    return CacheClaim::Bypass;
                }
            }
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

    /// Takes the bytes of a chunk, pushing out others where it must.
    fn take_memory(
        &self,
        state: &mut CacheState,
        now: u64,
        away: Option<u64>,
        since: u64,
        may_ask: bool,
    ) -> MemoryGrant {
        let floor = self.floor.load(Ordering::Relaxed);
        // What was used later is not to go.
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
        if state.bytes == 0 { self.take_beyond_limit(state, evicted) } else { MemoryGrant::None }
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

    /// Takes note that a walk has left the chunks of this box behind.
    pub(crate) fn leave_behind(&self, first: &[u64], last: &[u64]) {
        let mut state = self.lock();
        state.behind.clear();
        if state.came_back {
            return;
        }
        let mut key = Coords::from_slice(first);
        loop {
            let entry = state.map.get(&key).and_then(|id| state.nodes.get(*id));
            if let Some(CacheEntry { stamp, state: EntryState::Ready(_), .. }) = entry {
                let stamp = *stamp;
                state.behind.push((key.clone(), stamp));
            }
            let Some(d) = (0..key.len()).rev().find(|&d| key[d] < last[d]) else { return };
            key[d] += 1;
            key[d + 1..].copy_from_slice(&first[d + 1..]);
        }
    }

    /// Drops a chunk that a walk has left behind and nobody has used since.
    fn evict_behind(&self, state: &mut CacheState) -> Option<Arc<DecodedChunk>> {
        while let Some((key, stamp)) = state.behind.pop() {
            let Some(&id) = state.map.get(&key) else { continue };
            let unused = match state.nodes.get(id) {
                Some(CacheEntry { stamp: used, state: EntryState::Ready(chunk), .. }) => {
                    *used == stamp && !chunk.used.load(Ordering::Relaxed)
                }
                _ => false,
            };
            if unused {
                state.some_went = true;
                return self.evict(state, id);
            }
        }
        None
    }

    /// Drops a chunk that is there; its number is remembered.
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

    /// Takes a chunk that goes out of the fast path.
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

    /// Drops everything. Chunks being decoded are not kept when they come.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        self.engine.broker().give_back(Kind::Chunks, state.bytes);
        *state = CacheState::default();
        self.hot.store(None);
        self.oldest.store(u64::MAX, Ordering::Relaxed);
        drop(state);
        self.loaded.notify_all();
    }

    /// Drops a chunk and forgets its number. If it is being decoded, it is not kept when it comes.
    pub(crate) fn remove(&self, key: &[u64]) {
        let mut state = self.lock();
        let Some(id) = state.map.remove(key) else { return };
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

enum MemoryGrant {
    /// With the chunk that went for it, if one did.
    Taken(Option<Arc<DecodedChunk>>),
    /// What others have and was used before this time is less useful.
    AskOthers(u64),
    None,
}

impl CacheState {
    /// The chunk of a node, noted as used.
    fn hit(&mut self, id: NodeId, now: u64) -> Option<Arc<DecodedChunk>> {
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

    /// The chunk longest unused, and since when. Uses that took no lock are made good first: when
    /// they were is not known, only that it was before `since`.
    fn oldest(&mut self, since: u64) -> Option<(NodeId, u64)> {
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

    /// Notes what is held of a chunk of which nothing was there or being decoded.
    fn put(&mut self, key: &Coords, now: u64, uses: u8, state: EntryState) {
        let is_ghost = matches!(state, EntryState::Ghost);
        let id = match self.map.get(key).copied() {
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
                self.map.insert(key.clone(), id);
                id
            }
        };
        if is_ghost {
            self.nodes.link(&mut self.ghosts, id);
            self.trim_ghosts();
        }
    }

    /// Forgets the number of a chunk that is not there.
    fn forget(&mut self, key: &Coords) {
        let Some(&id) = self.map.get(key) else { return };
        if matches!(self.nodes.get(id), Some(CacheEntry { state: EntryState::Ghost, .. })) {
            self.map.remove(key);
            self.nodes.unlink(&mut self.ghosts, id);
            self.nodes.remove(id);
        }
    }

    fn trim_ghosts(&mut self) {
        while self.ghosts.len > LEAST_GHOST_CHUNKS.max(4 * self.ready.len) {
            let oldest = self.ghosts.oldest().and_then(|id| self.nodes.get(id));
            let Some(key) = oldest.map(|entry| entry.key.clone()) else { return };
            self.forget(&key);
        }
    }
}

/// The right, and the duty, to decode a chunk: other threads wait for it.
#[derive(Debug)]
pub(crate) struct LoadTicket {
    cache: Arc<ChunkCache>,
    key: Coords,
    token: u64,
    abandoned: Arc<AtomicBool>,
    /// The chunk that was pushed out for this one.
    evicted: Option<Arc<DecodedChunk>>,
    open: bool,
}

impl LoadTicket {
    /// The memory of the chunk that was pushed out, unless somebody still reads it.
    pub(crate) fn spare(&mut self) -> Option<ChunkBytes> {
        let chunk = Arc::try_unwrap(self.evicted.take()?).ok()?;
        Some(chunk.bytes)
    }

    /// Hands in the decoded chunk.
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

    /// Ends the load, unless the cache was cleared since it began.
    fn settle(&self, chunk: Option<&Arc<DecodedChunk>>) {
        let cache = &self.cache;
        let mut state = cache.lock();
        let Some(&id) = state.map.get(&self.key) else { return };
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
