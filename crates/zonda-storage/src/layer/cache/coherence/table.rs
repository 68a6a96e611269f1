//! Slots, which hold pages, and the table that says which page is in which slot.

use super::lease::PagePlace;
use super::policy::{EvictionOrder, RecentlyEvicted};
use crate::slab::SlabPage;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::lock::{Level, Rank, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::collections::BTreeMap;
use zonda_runtime::memory::Ages;

/// A place for a page.
#[derive(Debug)]
pub(crate) struct PageSlot {
    place: RwLock<PagePlace>,
    /// The page that it was given last. A hint that is read without the page's lock, which may be held during a write.
    pub(super) holds: AtomicU64,
    /// When it was last used, on the cache's clock.
    pub(super) stamp: AtomicU64,
    /// Whether the page is to be written back; changed only under the page's write lock.
    pub(super) dirty: AtomicBool,
    /// Whether the page is the first of a block that was read ahead, and was not used yet.
    pub(super) opens_block: AtomicBool,
    /// Whether it is in the list of slots whose pages may be lent.
    pub(super) is_listed: AtomicBool,
}

impl PageSlot {
    pub(super) fn new(level: Level) -> PageSlot {
        PageSlot {
            place: RwLock::at(Rank::Page, level, PagePlace::default()),
            holds: AtomicU64::default(),
            stamp: AtomicU64::default(),
            dirty: AtomicBool::default(),
            opens_block: AtomicBool::default(),
            is_listed: AtomicBool::default(),
        }
    }

    /// Its page, to change it. One that was lent is back.
    #[inline]
    pub(super) fn write(&self) -> RwLockWriteGuard<'_, PagePlace> {
        let mut place = self.place.write();
        place.settle_lease();
        place
    }

    /// The same, if nobody has it.
    #[inline]
    pub(super) fn try_write(&self) -> Option<RwLockWriteGuard<'_, PagePlace>> {
        let mut place = self.place.try_write()?;
        place.try_settle_lease().then_some(place)
    }

    /// Its page, to look at it.
    #[inline]
    pub(super) fn read(&self) -> RwLockReadGuard<'_, PagePlace> {
        loop {
            let place = self.place.read();
            if !place.is_lent() {
                return place;
            }
            drop(place);
            drop(self.write());
        }
    }

    /// The same, if nobody has it.
    pub(super) fn try_read(&self) -> Option<RwLockReadGuard<'_, PagePlace>> {
        let place = self.place.try_read()?;
        if !place.is_lent() {
            return Some(place);
        }
        drop(place);
        drop(self.try_write()?);
        self.place.try_read().filter(|place| !place.is_lent())
    }

    pub(super) fn last_used(&self) -> u64 {
        self.stamp.load(Ordering::Relaxed)
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }
}

/// Which page is in which slot. Its lock is held for look-ups only, never during a copy or a system call, and nobody waits
/// for the lock of a page while he has it.
#[derive(Debug, Default)]
pub(crate) struct PageTable {
    /// Page index to slot. An entry is made and removed only by a thread that holds the write lock
    /// of its slot, and removed only when the page is clean.
    pub(super) map: BTreeMap<u64, u32>,
    /// Slots that may be evicted.
    pub(super) order: EvictionOrder,
    /// Slots handed back unused.
    pub(super) free: Vec<u32>,
    /// Slots ever used.
    pub(super) used: u32,
    /// Slots that were given up to other caches, without memory of their own.
    pub(super) given_up: Vec<u32>,
    /// Memory for pages to come.
    pub(super) memory: Vec<SlabPage>,
    /// Times of the process for stamps of this cache.
    pub(super) ages: Ages,
    /// Pages that left a while ago to make room for others.
    pub(super) evicted: RecentlyEvicted,
}

impl PageTable {
    /// Slots that hold a page or may.
    pub(crate) fn in_use(&self) -> u64 {
        u64::from(self.used) - self.given_up.len() as u64
    }
}
