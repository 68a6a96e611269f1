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
use std::time::Duration;
use zonda_runtime::callout;

use arc_swap::ArcSwapOption;
use hashbrown::HashMap;
use zonda_runtime::memory::{Holder, Kind, tick};
use zonda_trace::{Args, Kind as Event};

use crate::bytes::Bytes;
use crate::pool::Engine;
use crate::recency::{Id, List, Nodes};
use crate::selection::Coords;

/// A decoded chunk, in the file's form.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Where it is in the chunk grid.
    pub key: Coords,
    pub bytes: Bytes,
    /// Used since it was last asked whether it was.
    used: AtomicBool,
}

impl Chunk {
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
pub(crate) enum Hit {
    Ready(Arc<Chunk>),
    /// A thread is decoding it.
    Loading,
    Absent,
}

/// What becomes of a chunk that is not in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// It is to be kept.
    pub keep: bool,
    /// Chunks used at this time or later are not to be pushed out.
    pub since: u64,
    /// It is wanted now: if another thread is decoding it, wait. Else it is only a guess.
    pub now: bool,
}

/// The answer to a [`Want`].
#[derive(Debug)]
pub(crate) enum Claim {
    Ready(Arc<Chunk>),
    /// The caller decodes it and hands it in.
    Load(Ticket),
    /// The caller decodes it for itself.
    Bypass,
}

#[derive(Debug)]
enum Held {
    /// It was here once.
    Ghost,
    Loading(Load),
    Ready(Arc<Chunk>),
}

/// A chunk being decoded.
#[derive(Debug)]
struct Load {
    /// A number that no other load of this process has.
    token: u64,
    /// Process of the thread.
    pid: u32,
    /// The thread gave up and could not take the lock to say so.
    abandoned: Arc<AtomicBool>,
}

impl Load {
    fn new() -> Load {
        Load { token: tick(), pid: zonda_runtime::fork::process_id(), abandoned: Arc::default() }
    }

    /// Whether nobody is at it any more: the thread gave up, or stayed behind in a fork's parent.
    fn is_dead(&self) -> bool {
        self.abandoned.load(Ordering::Acquire) || self.pid != zonda_runtime::fork::process_id()
    }
}

#[derive(Debug)]
struct Entry {
    key: Coords,
    /// When it was last used.
    stamp: u64,
    /// Requests that used it since it came, up to [`REUSED`]. Where it is only remembered: when it
    /// went.
    uses: u8,
    held: Held,
}

/// Uses that show that a chunk is asked for more than once.
const REUSED: u8 = 2;

#[derive(Debug, Default)]
struct State {
    map: HashMap<Coords, Id>,
    nodes: Nodes<Entry>,
    /// Those that are there.
    ready: List,
    /// Those that were.
    ghosts: List,
    /// Bytes taken of the budget: chunks there, and being decoded.
    bytes: u64,
    /// Chunks that a walk has left behind, and when each had been used last: theirs is the memory
    /// that chunks ahead take first.
    behind: Vec<(Coords, u64)>,
    /// Such a chunk went, and whether one that had gone came back since: then none goes early.
    some_went: bool,
    came_back: bool,
    /// The chunk used last by a request that it was enough for.
    last: Option<Id>,
}

/// Decoded chunks of one array.
#[derive(Debug)]
pub(crate) struct Cache {
    engine: Arc<Engine>,
    /// Bytes of a chunk.
    chunk_bytes: u64,
    /// Bytes that it may have whatever others take.
    floor: AtomicU64,
    state: Mutex<State>,
    loaded: Condvar,
    /// The chunk that small requests keep asking for.
    hot: ArcSwapOption<Chunk>,
    /// When the chunk longest unused was used; `u64::MAX` if there is none.
    oldest: AtomicU64,
}

/// Numbers remembered at least, of chunks that are not there.
const LEAST_GHOSTS: usize = 1024;
/// Chunks that one claim pushes out at most, and times it asks others.
const MOST_VICTIMS: usize = 64;
/// How long a thread waits for another before it looks whether that one still lives.
const PATIENCE: Duration = Duration::from_millis(2);

impl Cache {
    pub(crate) fn new(engine: &Arc<Engine>, chunk_bytes: u64) -> Arc<Cache> {
        let cache = Arc::new(Cache {
            engine: Arc::clone(engine),
            chunk_bytes,
            floor: AtomicU64::new(0),
            state: Mutex::ranked(Rank::ChunkCache, State::default()),
            loaded: Condvar::new(),
            hot: ArcSwapOption::empty(),
            oldest: AtomicU64::new(u64::MAX),
        });
        let holder: Weak<Cache> = Arc::downgrade(&cache);
        engine.broker().join(holder);
        cache
    }

    fn lock(&self) -> MutexGuard<'_, State> {
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
    pub(crate) fn hot(&self) -> arc_swap::Guard<Option<Arc<Chunk>>> {
        self.hot.load()
    }

    /// The chunk, for a request that needs no other.
    pub(crate) fn get(&self, key: &[u64]) -> Option<Arc<Chunk>> {
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
    pub(crate) fn hits(&self, keys: impl Iterator<Item = Coords>, mut found: impl FnMut(Hit)) {
        let now = tick();
        let mut state = self.lock();
        for key in keys {
            let id = state.map.get(&key).copied();
            let hit = id.map_or(Hit::Absent, |id| match state.hit(id, now) {
                Some(chunk) => Hit::Ready(chunk),
                None => match state.nodes.get(id) {
                    Some(Entry { held: Held::Loading(_), .. }) => Hit::Loading,
                    _ => Hit::Absent,
                },
            });
            found(hit);
        }
        self.note_oldest(&state);
    }

    /// Asks for a chunk that is wanted now.
    pub(crate) fn claim(self: &Arc<Self>, key: &Coords, want: Want) -> Claim {
        let mut others_asked = 0;
        let mut state = self.lock();
        loop {
            let now = tick();
            let id = state.map.get(key).copied();
            let mut away = None;
            if let Some(id) = id {
                if let Some(chunk) = state.hit(id, now) {
                    self.note_oldest(&state);
                    return Claim::Ready(chunk);
                }
                match state.nodes.get_mut(id) {
                    Some(Entry { held: Held::Loading(load), .. }) if load.is_dead() => {
                        // What was taken of the budget for it is this thread's now.
                        *load = Load::new();
                        return Claim::Load(self.ticket(key, load, None));
                    }
                    Some(Entry { held: Held::Loading(_), .. }) => {
                        // Who decodes it may be waiting for the plugin that this thread is in.
                        if !want.now || callout::is_within() {
                            return Claim::Bypass;
                        }
                        let waiting = zonda_trace::start();
                        let waited = self.loaded.wait_timeout(state, PATIENCE);
                        state = waited.0;
                        zonda_trace::span_since(waiting, Event::WaitChunk, Args::default);
                        continue;
                    }
                    Some(entry) if entry.uses < REUSED => {
                        away = Some(now.saturating_sub(entry.stamp));
                    }
                    Some(_) => {}
                    None => {}
                }
            }
            if !want.keep {
                return Claim::Bypass;
            }
            state.came_back |= state.some_went && id.is_some() && want.now;
            let behind = self.evict_behind(&mut state);
            let may_ask = others_asked < MOST_VICTIMS;
            match self.room(&mut state, now, away, want.since, may_ask) {
                Room::Taken(gone) => {
                    let gone = behind.or(gone);
                    let load = Load::new();
                    let ticket = self.ticket(key, &load, gone);
                    state.put(key, now, u8::from(want.now), Held::Loading(load));
                    self.note_oldest(&state);
                    return Claim::Load(ticket);
                }
                Room::AskOthers(before) if others_asked < MOST_VICTIMS => {
                    others_asked += 1;
                    drop(state);
                    // Much memory takes time to go: others need not wait for it.
                    if !self.engine.broker().reclaim(self.chunk_bytes, before) {
                        others_asked = MOST_VICTIMS;
                    }
                    state = self.lock();
                }
                Room::AskOthers(_) | Room::None => {
                    state.put(key, now, 1, Held::Ghost);
                    self.note_oldest(&state);
                    return Claim::Bypass;
                }
            }
        }
    }

    fn ticket(self: &Arc<Self>, key: &Coords, load: &Load, gone: Option<Arc<Chunk>>) -> Ticket {
        Ticket {
            cache: Arc::clone(self),
            key: key.clone(),
            token: load.token,
            abandoned: Arc::clone(&load.abandoned),
            gone,
            open: true,
        }
    }

    /// Takes the bytes of a chunk, pushing out others where it must.
    fn room(
        &self,
        state: &mut State,
        now: u64,
        away: Option<u64>,
        since: u64,
        may_ask: bool,
    ) -> Room {
        let floor = self.floor.load(Ordering::Relaxed);
        // What was used later is not to go.
        let before =
            away.map_or(since, |away| since.min(now.saturating_sub(away).saturating_add(1)));
        let mut may_ask = may_ask;
        let mut gone = None;
        for _ in 0..MOST_VICTIMS {
            if self.engine.broker().take(Kind::Chunks, self.chunk_bytes) {
                state.bytes += self.chunk_bytes;
                return Room::Taken(gone);
            }
            if state.bytes.saturating_add(self.chunk_bytes) <= floor {
                return self.take_anyway(state, gone);
            }
            let own = state.oldest(since);
            if may_ask && gone.is_none() {
                return Room::AskOthers(own.map_or(before, |(_, stamp)| before.min(stamp)));
            }
            may_ask = false;
            match own {
                Some((id, stamp)) if stamp < before => gone = self.evict(state, id),
                _ => break,
            }
        }
        // One chunk an array may always have: without it, reading one by one would decode a chunk
        // for each element.
        if state.bytes == 0 { self.take_anyway(state, gone) } else { Room::None }
    }

    fn take_anyway(&self, state: &mut State, gone: Option<Arc<Chunk>>) -> Room {
        self.engine.broker().take_anyway(Kind::Chunks, self.chunk_bytes);
        state.bytes += self.chunk_bytes;
        Room::Taken(gone)
    }

    /// Takes note that a walk has left the chunks of this box behind.
    pub(crate) fn let_go(&self, first: &[u64], last: &[u64]) {
        let mut state = self.lock();
        state.behind.clear();
        if state.came_back {
            return;
        }
        let mut key = Coords::from_slice(first);
        loop {
            let entry = state.map.get(&key).and_then(|id| state.nodes.get(*id));
            if let Some(Entry { stamp, held: Held::Ready(_), .. }) = entry {
                let stamp = *stamp;
                state.behind.push((key.clone(), stamp));
            }
            let Some(d) = (0..key.len()).rev().find(|&d| key[d] < last[d]) else { return };
            key[d] += 1;
            key[d + 1..].copy_from_slice(&first[d + 1..]);
        }
    }

    /// Drops a chunk that a walk has left behind and nobody has used since.
    fn evict_behind(&self, state: &mut State) -> Option<Arc<Chunk>> {
        while let Some((key, stamp)) = state.behind.pop() {
            let Some(&id) = state.map.get(&key) else { continue };
            let unused = match state.nodes.get(id) {
                Some(Entry { stamp: used, held: Held::Ready(chunk), .. }) => {
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
    fn evict(&self, state: &mut State, id: Id) -> Option<Arc<Chunk>> {
        let State { nodes, ready, ghosts, .. } = &mut *state;
        let entry = nodes.get_mut(id)?;
        let Held::Ready(chunk) = std::mem::replace(&mut entry.held, Held::Ghost) else {
            return None;
        };
        nodes.unlink(ready, id);
        nodes.link(ghosts, id);
        self.cool(&chunk);
        self.free(state);
        state.trim_ghosts();
        Some(chunk)
    }

    /// Takes a chunk that goes out of the fast path.
    fn cool(&self, chunk: &Arc<Chunk>) {
        let is_hot = self.hot.load().as_ref().is_some_and(|hot| Arc::ptr_eq(hot, chunk));
        if is_hot {
            self.hot.store(None);
        }
    }

    fn free(&self, state: &mut State) {
        self.engine.broker().give_back(Kind::Chunks, self.chunk_bytes);
        state.bytes = state.bytes.saturating_sub(self.chunk_bytes);
    }

    /// Drops everything. Chunks being decoded are not kept when they come.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        self.engine.broker().give_back(Kind::Chunks, state.bytes);
        *state = State::default();
        self.hot.store(None);
        self.oldest.store(u64::MAX, Ordering::Relaxed);
        drop(state);
        self.loaded.notify_all();
    }

    /// Drops a chunk and forgets its number. If it is being decoded, it is not kept when it comes.
    pub(crate) fn remove(&self, key: &[u64]) {
        let mut state = self.lock();
        let Some(id) = state.map.remove(key) else { return };
        let State { nodes, ready, ghosts, last, .. } = &mut *state;
        let mut waited_for = false;
        match nodes.get(id).map(|entry| &entry.held) {
            Some(Held::Ready(chunk)) => {
                let chunk = Arc::clone(chunk);
                nodes.unlink(ready, id);
                self.cool(&chunk);
            }
            Some(Held::Ghost) => nodes.unlink(ghosts, id),
            Some(Held::Loading(_)) => waited_for = true,
            None => {}
        }
        if *last == Some(id) {
            *last = None;
        }
        if !matches!(nodes.remove(id), None | Some(Entry { held: Held::Ghost, .. })) {
            self.free(&mut state);
        }
        self.note_oldest(&state);
        drop(state);
        if waited_for {
            self.loaded.notify_all();
        }
    }

    fn note_oldest(&self, state: &State) {
        let oldest = state.ready.oldest().and_then(|id| state.nodes.get(id));
        self.oldest.store(oldest.map_or(u64::MAX, |entry| entry.stamp), Ordering::Relaxed);
    }
}

impl Holder for Cache {
    fn least_useful(&self) -> Option<u64> {
        Some(self.oldest.load(Ordering::Relaxed)).filter(|&stamp| stamp != u64::MAX)
    }

    fn give_back(&self, bytes: u64, before: u64) -> u64 {
        // Whoever has it now makes room for itself, and a forked child may never get it.
        let Some(mut state) = self.state.try_lock() else { return 0 };
        let floor = self.floor.load(Ordering::Relaxed);
        let (mut given, mut gone) = (0, Vec::new());
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
            gone.push(chunk);
        }
        self.note_oldest(&state);
        if given == 0 && state.bytes.saturating_sub(self.chunk_bytes) < floor {
            // Nobody asks again before it is used again.
            self.oldest.store(u64::MAX, Ordering::Relaxed);
        }
        drop(state);
        // Much memory takes time to go: others need not wait for it.
        drop(gone);
        given
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        self.engine.broker().give_back(Kind::Chunks, state.bytes);
    }
}

enum Room {
    /// With the chunk that went for it, if one did.
    Taken(Option<Arc<Chunk>>),
    /// What others have and was used before this time is less useful.
    AskOthers(u64),
    None,
}

impl State {
    /// The chunk of a node, noted as used.
    fn hit(&mut self, id: Id, now: u64) -> Option<Arc<Chunk>> {
        let entry = self.nodes.get_mut(id)?;
        let Held::Ready(chunk) = &entry.held else { return None };
        let chunk = Arc::clone(chunk);
        chunk.trace_hit();
        entry.stamp = now;
        entry.uses = entry.uses.saturating_add(1).min(REUSED);
        self.nodes.unlink(&mut self.ready, id);
        self.nodes.link(&mut self.ready, id);
        Some(chunk)
    }

    /// The chunk longest unused, and since when. Uses that took no lock are made good first: when
    /// they were is not known, only that it was before `since`.
    fn oldest(&mut self, since: u64) -> Option<(Id, u64)> {
        for _ in 0..=self.ready.len {
            let id = self.ready.oldest()?;
            let entry = self.nodes.get_mut(id)?;
            let Held::Ready(chunk) = &entry.held else { return None };
            if !chunk.used.swap(false, Ordering::Relaxed) {
                return Some((id, entry.stamp));
            }
            entry.stamp = entry.stamp.max(since.saturating_sub(1));
            entry.uses = REUSED;
            self.nodes.unlink(&mut self.ready, id);
            self.nodes.link(&mut self.ready, id);
        }
        None
    }

    /// Notes what is held of a chunk of which nothing was there or being decoded.
    fn put(&mut self, key: &Coords, now: u64, uses: u8, held: Held) {
        let is_ghost = matches!(held, Held::Ghost);
        let id = match self.map.get(key).copied() {
            Some(id) => {
                let State { nodes, ghosts, .. } = self;
                nodes.unlink(ghosts, id);
                if let Some(entry) = nodes.get_mut(id) {
                    (entry.stamp, entry.uses, entry.held) = (now, uses, held);
                }
                id
            }
            None => {
                let id = self.nodes.insert(Entry { key: key.clone(), stamp: now, uses, held });
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
        if matches!(self.nodes.get(id), Some(Entry { held: Held::Ghost, .. })) {
            self.map.remove(key);
            self.nodes.unlink(&mut self.ghosts, id);
            self.nodes.remove(id);
        }
    }

    fn trim_ghosts(&mut self) {
        while self.ghosts.len > LEAST_GHOSTS.max(4 * self.ready.len) {
            let oldest = self.ghosts.oldest().and_then(|id| self.nodes.get(id));
            let Some(key) = oldest.map(|entry| entry.key.clone()) else { return };
            self.forget(&key);
        }
    }
}

/// The right, and the duty, to decode a chunk: other threads wait for it.
#[derive(Debug)]
pub(crate) struct Ticket {
    cache: Arc<Cache>,
    key: Coords,
    token: u64,
    abandoned: Arc<AtomicBool>,
    /// The chunk that was pushed out for this one.
    gone: Option<Arc<Chunk>>,
    open: bool,
}

impl Ticket {
    /// The memory of the chunk that was pushed out, unless somebody still reads it.
    pub(crate) fn spare(&mut self) -> Option<Bytes> {
        let chunk = Arc::try_unwrap(self.gone.take()?).ok()?;
        Some(chunk.bytes)
    }

    /// Hands in the decoded chunk.
    pub(crate) fn publish(mut self, bytes: Bytes) -> Arc<Chunk> {
        self.open = false;
        let chunk = Arc::new(Chunk { key: self.key.clone(), bytes, used: AtomicBool::new(false) });
        self.settle(Some(&chunk));
        chunk
    }

    /// Gives up without taking a lock.
    pub(crate) fn abandon(mut self) {
        self.open = false;
        self.abandoned.store(true, Ordering::Release);
    }

    /// Ends the load, unless the cache was cleared since it began.
    fn settle(&self, chunk: Option<&Arc<Chunk>>) {
        let cache = &self.cache;
        let mut state = cache.lock();
        let Some(&id) = state.map.get(&self.key) else { return };
        let State { nodes, ready, ghosts, .. } = &mut *state;
        let Some(entry) = nodes.get_mut(id) else { return };
        if !matches!(&entry.held, Held::Loading(load) if load.token == self.token) {
            return;
        }
        match chunk {
            Some(chunk) => {
                entry.held = Held::Ready(Arc::clone(chunk));
                entry.stamp = tick();
                nodes.link(ready, id);
            }
            None => {
                entry.held = Held::Ghost;
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

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            self.settle(None);
        }
    }
}
