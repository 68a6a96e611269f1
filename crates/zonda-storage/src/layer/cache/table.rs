//! Pages, the slots that hold them, and the table that finds and evicts them.

use super::extents::Extents;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The index of a slot that holds no page.
pub(super) const NO_PAGE: u64 = u64::MAX;

/// Above this, the buffer of a growing page becomes a whole page at once. Below it grows with its
/// data, so that a small file costs little.
const GROW_WHOLE_BYTES: usize = 64 << 10;

/// The contents of one page.
#[derive(Debug)]
pub(super) struct Page {
    /// Which page it is: its offset in units of the page size.
    pub(super) index: u64,
    /// Initialised bytes; only those in `valid` mean something.
    pub(super) buf: Vec<u8>,
    /// What holds the storage's contents.
    pub(super) valid: Extents,
    /// What was written and is not below yet; part of `valid`.
    pub(super) dirty: Extents,
}

impl Default for Page {
    fn default() -> Self {
        let (valid, dirty) = (Extents::default(), Extents::default());
        Page { index: NO_PAGE, buf: Vec::new(), valid, dirty }
    }
}

impl Page {
    /// Makes it an empty page `index`; the buffer is kept for use.
    pub(super) fn reset(&mut self, index: u64) {
        self.index = index;
        self.valid.clear();
        self.dirty.clear();
    }

    /// Stores `data` at `a`, to be written back.
    #[inline]
    pub(super) fn put(&mut self, a: usize, data: &[u8], page_bytes: usize) {
        let b = a + data.len();
        if b > self.buf.len() {
            self.grow(a, b, page_bytes);
        }
        self.buf[a..b].copy_from_slice(data);
        self.valid.insert(a, b);
        self.dirty.insert(a, b);
    }

    #[cold]
    fn grow(&mut self, _a: usize, b: usize, page_bytes: usize) {
        if b > self.buf.capacity() && b > GROW_WHOLE_BYTES {
            self.buf.reserve_exact(page_bytes - self.buf.len());
        }
        self.buf.resize(b, 0);
    }

    /// Makes the buffer at least `b` bytes long.
    pub(super) fn reach(&mut self, b: usize, page_bytes: usize) {
        if b > self.buf.len() {
            self.grow(b, b, page_bytes);
        }
    }
}

/// A place for a page.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) page: RwLock<Page>,
    /// When it was last used, on the cache's clock.
    pub(super) stamp: AtomicU64,
    /// Whether `page.dirty` holds anything; changed only under the page's write lock.
    pub(super) dirty: AtomicBool,
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
}
