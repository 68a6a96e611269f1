//! Pages, the slots that hold them, and the table that finds and evicts them.

use super::extents::Extents;
use crate::copy::copy_past_cache;
use crate::error::StorageError;
use crate::slab::{self, SlabPage};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zonda_runtime::lock::{Level, Rank, RwLock};
use zonda_runtime::memory::Ages;

/// The index of a slot that holds no page.
pub(super) const NO_PAGE: u64 = u64::MAX;

/// Above this, the buffer of a growing page becomes a whole page at once. Below it grows with its
/// data, so that a small file costs little.
const GROW_WHOLE_BYTES: usize = 64 << 10;

/// The memory of a page.
#[derive(Debug)]
pub(super) enum Buffer {
    /// Of its own; it grows with its data at first, so that a small file costs little.
    Own(Vec<u8>),
    /// A whole page of a slab.
    Whole(SlabPage),
}

impl Buffer {
    /// Gives its memory to the system, so far as it is more than a part of what the allocator has.
    pub(super) fn release(&mut self) {
        if let Buffer::Whole(page) = self {
            page.release();
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Buffer::Own(bytes) => bytes,
            Buffer::Whole(page) => page,
        }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Buffer::Own(bytes) => bytes,
            Buffer::Whole(page) => page,
        }
    }
}

/// Copies between slices of one length, mostly short: one element is one move and not a call.
#[inline(always)]
pub(super) fn copy_short(to: &mut [u8], from: &[u8]) {
    fn one<const N: usize>(to: &mut [u8], from: &[u8]) -> bool {
        match (<&mut [u8; N]>::try_from(to), <&[u8; N]>::try_from(from)) {
            (Ok(to), Ok(from)) => {
                *to = *from;
                true
            }
            _ => false,
        }
    }
    if !one::<8>(to, from) && !one::<4>(to, from) {
        to.copy_from_slice(from);
    }
}

/// The contents of one page.
#[derive(Debug)]
pub(super) struct Page {
    /// Which page it is: its offset in units of the page size.
    pub(super) index: u64,
    /// The bytes, as far as they were needed; only those that are valid mean something.
    pub(super) buf: Buffer,
    /// What holds the storage's contents, where that is more than what was written.
    read: Option<Extents>,
    /// What was written and is not below yet.
    pub(super) dirty: Extents,
    /// What is to be written where nothing else was until the page is read or written back; no part
    /// of what is valid.
    background: Vec<Background>,
    /// How often a scattered read found something missing.
    pub(super) misses: u32,
}

/// A repeated element that nobody has written down yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Background {
    from: usize,
    to: usize,
    element: [u8; 8],
    size: usize,
    /// Which byte of the element is at `from`.
    phase: usize,
}

impl Background {
    /// The part of it at `from..to`, which lies in it; none where that is empty.
    fn part(&self, from: usize, to: usize) -> Option<Background> {
        let phase = (self.phase + from.saturating_sub(self.from)) % self.size;
        (from < to).then_some(Background { from, to, phase, ..*self })
    }

    /// What of it lies at `a..b`.
    fn within(&self, a: usize, b: usize) -> Option<Background> {
        self.part(self.from.max(a), self.to.min(b))
    }

    /// What is left of it without `a..b`.
    pub(super) fn without(self, a: usize, b: usize) -> impl Iterator<Item = Background> {
        let before = self.part(self.from, self.to.min(a));
        let behind = self.part(self.from.max(b), self.to);
        // Nothing is taken away, and nothing is there twice.
        let [before, behind] = if a < b { [before, behind] } else { [Some(self), None] };
        before.into_iter().chain(behind)
    }

    /// Forgets what lies behind `end`; false where nothing is left.
    pub(super) fn truncate(&mut self, end: usize) -> bool {
        self.to = self.to.min(end);
        self.from < self.to
    }

    /// Writes it below, by `fill`, which gets its place, length and element.
    pub(super) fn fill_by<E>(
        &self,
        fill: impl FnOnce(usize, usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut element = self.element;
        element[..self.size].rotate_left(self.phase);
        fill(self.from, self.to - self.from, &element[..self.size])
    }

    /// Writes the bytes that belong at `a..b` of a page.
    fn paint(&self, a: usize, out: &mut [u8]) {
        let first = (self.phase + a - self.from) % self.size;
        let head = (self.size - first).min(out.len());
        out[..head].copy_from_slice(&self.element[first..first + head]);
        for part in out[head..].chunks_mut(self.size) {
            let n = part.len();
            part.copy_from_slice(&self.element[..n]);
        }
    }
}

impl Default for Page {
    fn default() -> Self {
        Page {
            index: NO_PAGE,
            buf: Buffer::Own(Vec::new()),
            read: None,
            dirty: Extents::default(),
            background: Vec::new(),
            misses: 0,
        }
    }
}

impl Page {
    /// Gives it memory for a whole page.
    pub(super) fn set_memory(&mut self, memory: SlabPage) {
        self.buf = Buffer::Whole(memory);
    }

    /// Makes it an empty page `index`; the buffer is kept for use.
    pub(super) fn reset(&mut self, index: u64) {
        self.index = index;
        self.read = None;
        self.dirty.clear();
        self.background.clear();
        self.misses = 0;
    }

    /// Makes it an empty place without memory.
    pub(super) fn clear(&mut self) {
        self.reset(NO_PAGE);
        self.buf = Buffer::Own(Vec::new());
    }

    /// Stores `data` at `a`, to be written back; past the processor's cache where it is not read
    /// soon.
    #[inline]
    pub(super) fn put(
        &mut self,
        a: usize,
        data: &[u8],
        page_bytes: usize,
        past_cache: bool,
    ) -> Result<(), StorageError> {
        let b = a + data.len();
        if b > self.buf.len() {
            self.grow(b, page_bytes)?;
        }
        if past_cache {
            copy_past_cache(&mut self.buf[a..b], data);
        } else {
            copy_short(&mut self.buf[a..b], data);
        }
        self.add_written(a, b);
        Ok(())
    }

    /// What holds the storage's contents.
    #[inline]
    pub(super) fn valid(&self) -> &Extents {
        self.read.as_ref().unwrap_or(&self.dirty)
    }

    /// Notes that `a..b` was read from below.
    pub(super) fn add_read(&mut self, a: usize, b: usize) {
        self.read.get_or_insert_with(|| self.dirty.clone()).insert(a, b);
    }

    #[inline]
    fn add_written(&mut self, a: usize, b: usize) {
        if let Some(read) = &mut self.read {
            read.insert(a, b);
        }
        self.dirty.insert(a, b);
    }

    /// Notes that what was written is below.
    pub(super) fn forget_written(&mut self) {
        match self.read {
            Some(_) => self.dirty.clear(),
            None => self.read = Some(std::mem::take(&mut self.dirty)),
        }
    }

    /// Forgets what was read from below.
    pub(super) fn forget_read(&mut self) {
        self.read = None;
    }

    /// Forgets what lies behind `end`.
    pub(super) fn truncate(&mut self, end: usize) {
        if let Some(read) = &mut self.read {
            read.truncate(end);
        }
        self.dirty.truncate(end);
        self.background.retain_mut(|ground| ground.truncate(end));
    }

    /// Whether nothing is to be written back.
    pub(super) fn is_clean(&self) -> bool {
        self.dirty.is_empty() && self.background.is_empty()
    }

    /// Whether every byte is valid.
    #[inline]
    pub(super) fn is_complete(&self, page_bytes: usize) -> bool {
        self.valid().is_one(0, page_bytes)
    }

    /// Lays a repeated element under `a..b`; `phase` says which byte of it is at `a`.
    pub(super) fn lay(
        &mut self,
        (a, b): (usize, usize),
        element: &[u8],
        phase: usize,
        page_bytes: usize,
    ) -> Result<(), StorageError> {
        let mut bytes = [0; 8];
        let size = element.len().min(8);
        bytes[..size].copy_from_slice(&element[..size]);
        let ground = Background { from: a, to: b, element: bytes, size, phase };
        let crossed = self.background.iter().any(|other| other.from < b && a < other.to);
        if !crossed && self.valid().gaps(a, b)[..] == [(a, b)] {
            self.background.push(ground);
            return Ok(());
        }
        // Something is there already, which this replaces.
        self.settle(page_bytes)?;
        self.reach(b, page_bytes)?;
        ground.paint(a, &mut self.buf[a..b]);
        self.add_written(a, b);
        Ok(())
    }

    /// Takes the background away under `a..b`, where nothing but background was ever put on the page;
    /// gives what was taken, `None` for other pages.
    pub(super) fn uncover(&mut self, a: usize, b: usize) -> Option<Vec<Background>> {
        if self.background.is_empty() || self.read.is_some() || !self.dirty.is_empty() {
            return None;
        }
        let mut taken = Vec::new();
        for ground in std::mem::take(&mut self.background) {
            taken.extend(ground.within(a, b));
            self.background.extend(ground.without(a, b));
        }
        Some(taken)
    }

    /// Lays what was taken away again, where nothing else was put meanwhile. What was read meanwhile was
    /// read without it.
    pub(super) fn cover_again(&mut self, taken: &[Background]) {
        self.forget_read();
        for ground in taken {
            let gaps = self.valid().gaps(ground.from, ground.to);
            self.background.extend(gaps.into_iter().filter_map(|(a, b)| ground.within(a, b)));
        }
    }

    /// Writes the background where nothing else was written. Without memory for it the page stays as it
    /// is.
    pub(super) fn settle(&mut self, page_bytes: usize) -> Result<(), StorageError> {
        if let Some(end) = self.background.iter().map(|ground| ground.to).max() {
            self.reach(end, page_bytes)?;
        }
        for ground in std::mem::take(&mut self.background) {
            for (a, b) in self.valid().gaps(ground.from, ground.to) {
                ground.paint(a, &mut self.buf[a..b]);
            }
            self.add_written(ground.from, ground.to);
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self, b: usize, page_bytes: usize) -> Result<(), StorageError> {
        let no_memory = StorageError::NoMemory { bytes: page_bytes as u64 };
        match &mut self.buf {
            Buffer::Own(bytes) if b <= GROW_WHOLE_BYTES => {
                bytes.try_reserve(b.saturating_sub(bytes.len())).map_err(|_| no_memory)?;
                bytes.resize(b, 0);
            }
            _ => {
                let mut whole = slab::zeros(page_bytes).ok_or(no_memory)?;
                whole[..self.buf.len()].copy_from_slice(&self.buf);
                self.buf = Buffer::Own(whole);
            }
        }
        Ok(())
    }

    /// Makes the buffer at least `b` bytes long.
    pub(super) fn reach(&mut self, b: usize, page_bytes: usize) -> Result<(), StorageError> {
        if b > self.buf.len() {
            self.grow(b, page_bytes)?;
        }
        Ok(())
    }
}

/// A place for a page.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) page: RwLock<Page>,
    /// Which page it was given last: a hint that needs no lock, which may be held through a write.
    pub(super) holds: AtomicU64,
    /// When it was last used, on the cache's clock.
    pub(super) stamp: AtomicU64,
    /// Whether the page is to be written back; changed only under the page's write lock.
    pub(super) dirty: AtomicBool,
    /// Whether the page is the first of a block that was read ahead, and was not used yet.
    pub(super) opens_block: AtomicBool,
    /// Its stamp in the order of the table; changed only under the table's lock.
    place: AtomicU64,
}

impl Slot {
    pub(super) fn new(level: Level) -> Slot {
        Slot {
            page: RwLock::at(Rank::Page, level, Page::default()),
            holds: AtomicU64::default(),
            stamp: AtomicU64::default(),
            dirty: AtomicBool::default(),
            opens_block: AtomicBool::default(),
            place: AtomicU64::default(),
        }
    }
}

/// Who is where. Its lock is held for look-ups only, never through a copy or a system call, and no
/// page's lock is waited for under it.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Page index to slot. An entry is made and removed only by a thread that holds the write lock
    /// of its slot, and removed only when the page is clean.
    pub(super) map: BTreeMap<u64, u32>,
    /// Slots that may be evicted, by their stamp when last looked at (never newer than the real
    /// one). A slot being evicted is not in it, so no two threads take the same one.
    pub(super) order: BTreeSet<(u64, u32)>,
    /// Slots handed back unused.
    pub(super) free: Vec<u32>,
    /// Slots ever used.
    pub(super) used: u32,
    /// Slots that were given up to other caches, without memory of their own.
    pub(super) given_up: Vec<u32>,
    /// Memory for pages to come.
    pub(super) memory: Vec<SlabPage>,
    /// When stamps were.
    pub(super) ages: Ages,
    /// Pages that had to leave for others, by a hash of their index; newer ones take the place of
    /// older ones. Made at the first.
    left: Vec<u64>,
}

/// How many pages that had to leave are remembered.
const REMEMBERED: usize = 4096;

/// The place of a page among the remembered.
fn remembered_at(index: u64) -> usize {
    (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize % REMEMBERED
}

/// The stamp of a page that is not expected to be used again.
pub(super) const COLD: u64 = 0;

impl Table {
    /// Slots that hold a page or may.
    pub(super) fn in_use(&self) -> u64 {
        u64::from(self.used) - self.given_up.len() as u64
    }

    /// Remembers that page `index` had to leave.
    pub(super) fn leave(&mut self, index: u64) {
        // Without memory for it nothing is remembered.
        if self.left.is_empty() && self.left.try_reserve_exact(REMEMBERED).is_ok() {
            self.left.resize(REMEMBERED, NO_PAGE);
        }
        if let Some(place) = self.left.get_mut(remembered_at(index)) {
            *place = index;
        }
    }

    /// Whether page `index` had to leave not long ago; forgets it.
    pub(super) fn had_to_leave(&mut self, index: u64) -> bool {
        let Some(place) = self.left.get_mut(remembered_at(index)) else { return false };
        let known = *place == index;
        if known {
            *place = NO_PAGE;
        }
        known
    }

    /// Puts a slot into the order.
    pub(super) fn enter(&mut self, slot: &Slot, stamp: u64, id: u32) {
        slot.place.store(stamp, Ordering::Relaxed);
        self.order.insert((stamp, id));
    }

    /// Makes a slot the next to be taken, unless it is used again or already being taken.
    pub(super) fn cool(&mut self, slot: &Slot, id: u32) {
        if self.order.remove(&(slot.place.load(Ordering::Relaxed), id)) {
            slot.stamp.store(COLD, Ordering::Relaxed);
            self.enter(slot, COLD, id);
        }
    }

    /// Takes a slot whose page is not expected to be used again. Those used all the same go back
    /// with their real stamp.
    pub(super) fn take_cold<'a>(&mut self, slot: impl Fn(u32) -> &'a Slot) -> Option<u32> {
        while let Some((COLD, id)) = self.order.first().copied() {
            self.order.pop_first();
            let slot = slot(id);
            let now = slot.stamp.load(Ordering::Relaxed);
            if now == COLD && !slot.dirty.load(Ordering::Relaxed) {
                return Some(id);
            }
            self.enter(slot, now.max(COLD + 1), id);
        }
        None
    }
}
