//! Finding a page, and making room for one.

use super::lease::PagePlace;
use super::pages::{NO_PAGE, Page};
use super::policy::{COLD, CacheShape, PageGrant};
use super::table::PageTable;
use super::{Cache, more_hints};
use crate::storage::Storage;
use crate::sync::atomic::Ordering;
use crate::sync::lock::RwLockWriteGuard;
use crate::tuning::{FIRST_PAGES, OWN_MEMORY_BYTES};
use crate::{StorageError, slab};
use std::ops::Range;
use zonda_runtime::memory::{self, Kind};

/// A page under its write lock, with its slot.
pub(crate) type LockedPage<'a> = (u32, RwLockWriteGuard<'a, PagePlace>);

/// Where a page is that was asked for.
enum PageLookup {
    /// In this slot, or it was a moment ago.
    Cached(u32),
    /// It is not cached. This slot, which was taken from the order of eviction, is for it.
    Slot(u32),
    /// It is not cached, and other threads have every slot.
    NoSlot,
}

impl<S: Storage> Cache<S> {
    /// Page `index` under its write lock, made room for if it is not cached. `None` when every slot
    /// is in other threads' hands, or has what only the parent of this process may write: the caller then goes
    /// past the cache instead of waiting.
    ///
    /// No page may be held by the caller.
    pub(super) fn acquire(&self, index: u64) -> Result<Option<LockedPage<'_>>, StorageError> {
        if let Some((id, slot)) = self.hinted(index) {
            let page = slot.write();
            if page.index == index {
                self.touch(slot);
                return Ok(Some((id, page)));
            }
        }
        if let Some(shared) = &self.shared {
            let mine = self.table.lock().in_use();
            shared.make_room(mine);
        }
        loop {
            let found = self.find(&mut self.table.lock(), index);
            match found {
                PageLookup::NoSlot => return Ok(None),
                PageLookup::Cached(id) => {
                    let slot = self.slot(id);
                    let page = slot.write();
                    // It may have been evicted while we waited.
                    if page.index == index {
                        self.touch(slot);
                        self.hint(index).store(id + 1, Ordering::Release);
                        return Ok(Some((id, page)));
                    }
                }
                PageLookup::Slot(id) => {
                    let mut page = self.slot(id).write();
                    if self.is_better_kept(&page) {
                        self.hand_back(&mut self.table.lock(), id, &page);
                        continue;
                    }
                    if !page.is_clean() {
                        if self.is_inherited() {
                            self.hand_back(&mut self.table.lock(), id, &page);
                            return Ok(None);
                        }
                        // Whoever comes next finds a page that need not be written first.
                        self.writer().inspect(|background| background.clean());
                        if let Err(error) = self.write_back(id, &mut page) {
                            self.hand_back(&mut self.table.lock(), id, &page);
                            return Err(error);
                        }
                    }
                    if self.install(&mut self.table.lock(), id, &mut page, index) {
                        return Ok(Some((id, page)));
                    }
                }
            }
        }
    }

    fn find(&self, table: &mut PageTable, index: u64) -> PageLookup {
        if let Some(id) = table.map.get(&index) {
            return PageLookup::Cached(*id);
        }
        self.note_miss(table, index);
        self.room(table).map_or(PageLookup::NoSlot, PageLookup::Slot)
    }

    /// A slot for a page to come: unused, or the least recently used, taken out of the order.
    fn room(&self, table: &mut PageTable) -> Option<u32> {
        if let Some(id) = table.free.pop() {
            return Some(id);
        }
        let last_used = |id| self.slot(id).last_used();
        if let Some(id) = table.order.take_cold(last_used, |id| self.slot(id).is_dirty()) {
            return Some(id);
        }
        let has_slot = !table.given_up.is_empty() || self.has_slot(table.used);
        if has_slot && self.may_have_another(table) {
            return Some(table.given_up.pop().unwrap_or_else(|| {
                table.used += 1;
                table.used - 1
            }));
        }
        table.order.take_oldest(last_used)
    }

    /// Whether the cache may use one page more; it is then counted as used.
    fn may_have_another(&self, table: &PageTable) -> bool {
        let used = table.in_use();
        let another = self.shape.another(used, self.limit.load(Ordering::Relaxed));
        if another == PageGrant::No {
            return false;
        }
        if let Some(shared) = &self.shared
            && !shared.take()
        {
            return false;
        }
        if used == FIRST_PAGES {
            // Without memory for it the small one goes on.
            if let Some(hints) = more_hints(self.shape.pages) {
                let _first = self.more_hints.set(hints);
            }
        }
        let (broker, bytes) = (memory::process(), self.shape.page_bytes);
        match another {
            PageGrant::No => false,
            PageGrant::Yes => true,
            PageGrant::First => {
                broker.take_first(Kind::Pages, bytes);
                true
            }
            // Its own oldest page goes unless others have something older.
            PageGrant::IfFound => {
                broker.take(Kind::Pages, bytes) || {
                    let own = table.order.oldest();
                    let own = own.map_or(u64::MAX, |stamp| table.ages.time_of(stamp));
                    broker.take_over(Kind::Pages, bytes, own)
                }
            }
        }
    }

    /// Lets the cache have up to `pages` pages.
    fn raise_limit(&self, pages: u64) {
        self.limit.fetch_max(pages, Ordering::Relaxed);
    }

    /// Takes over how much another shape may have at first; pages stay as they are.
    pub(crate) fn grow_to(&self, shape: &CacheShape) {
        let pages = shape.at_first * shape.page_bytes / self.shape.page_bytes;
        self.raise_limit(pages.min(self.shape.pages));
    }

    /// Pages that it has.
    pub(crate) fn n_pages(&self) -> u64 {
        self.table.lock().in_use()
    }

    /// Notes that page `index` is missed.
    fn note_miss(&self, table: &mut PageTable, index: u64) {
        if self.shape.can_grow() && table.evicted.take(index) {
            self.raise_limit(self.shape.after_return(self.limit.load(Ordering::Relaxed)));
        }
    }

    /// Lets the cache have `n` pages more, where those who use it will come back to its pages.
    pub(super) fn be_roomy(&self, n: u64) {
        self.raise_limit(self.shape.roomier(self.limit.load(Ordering::Relaxed), n));
    }

    /// Whether the cache was allowed another page so that `page`, which is still being put together, need
    /// not leave.
    fn is_better_kept(&self, page: &Page) -> bool {
        if page.is_clean() || page.is_complete(self.page_bytes()) || !self.writes.is_slow() {
            return false;
        }
        let limit = self.limit.load(Ordering::Relaxed);
        // Where it has less than it may have, the memory of the process is at an end.
        if self.table.lock().in_use() < limit {
            return false;
        }
        self.be_roomy(1);
        self.limit.load(Ordering::Relaxed) > limit
    }

    /// Makes the page of slot `id` the next to leave, unless it is used again or already leaving.
    pub(super) fn cool(&self, table: &mut PageTable, id: u32) {
        if table.order.cool(id) {
            self.slot(id).stamp.store(COLD, Ordering::Relaxed);
        }
    }

    /// Undoes `room`.
    fn hand_back(&self, table: &mut PageTable, id: u32, page: &Page) {
        if page.index == NO_PAGE {
            table.free.push(id);
        } else {
            table.order.enter(id, self.slot(id).last_used());
        }
    }

    /// Makes the clean `page` of slot `id`, which came from `room`, page `index`. False, and the
    /// slot handed back, if another thread brought that page in meanwhile.
    fn install(&self, table: &mut PageTable, id: u32, page: &mut Page, index: u64) -> bool {
        if table.map.contains_key(&index) {
            self.hand_back(table, id, page);
            return false;
        }
        if page.index != NO_PAGE {
            table.map.remove(&page.index);
            // One that was given up has no age.
            if self.slot(id).last_used() != COLD {
                table.evicted.note(page.index);
            }
        }
        if page.index == NO_PAGE && u64::from(id) * self.shape.page_bytes >= OWN_MEMORY_BYTES {
            if table.memory.is_empty() {
                table.memory = slab::pages(self.page_bytes());
            }
            if let Some(memory) = table.memory.pop() {
                page.set_memory(memory);
            }
        }
        page.reset(index);
        table.map.insert(index, id);
        let now = self.clock.fetch_add(2, Ordering::Relaxed) + 2;
        if self.shape.within_budget {
            table.ages.note(now, memory::tick());
        }
        let slot = self.slot(id);
        slot.holds.store(index, Ordering::Relaxed);
        slot.opens_block.store(false, Ordering::Relaxed);
        slot.stamp.store(now, Ordering::Relaxed);
        table.order.enter(id, now);
        self.hint(index).store(id + 1, Ordering::Release);
        true
    }

    /// Gives the page least recently used up to another cache; false where that cannot be done
    /// without waiting. Nothing is held by the caller.
    pub(crate) fn give_up(&self) -> bool {
        let id = {
            let mut table = self.table.lock();
            let last_used = |id| self.slot(id).last_used();
            table.free.pop().or_else(|| table.order.take_oldest(last_used))
        };
        let Some(id) = id else { return false };
        let slot = self.slot(id);
        let Some(mut page) = slot.try_write() else {
            // Somebody uses it, so it has a page.
            self.table.lock().order.enter(id, slot.last_used());
            return false;
        };
        if !page.is_clean() && self.is_inherited() {
            self.hand_back(&mut self.table.lock(), id, &page);
            return false;
        }
        if !page.is_clean()
            && let Err(error) = self.write_back(id, &mut page)
        {
            self.background.as_ref().inspect(|background| background.fail(&error));
            self.hand_back(&mut self.table.lock(), id, &page);
            return false;
        }
        let mut table = self.table.lock();
        if page.index != NO_PAGE {
            table.map.remove(&page.index);
        }
        page.clear();
        table.given_up.push(id);
        true
    }

    /// Room for up to `n` pages after `index`, as far as they are not cached and room is to be had
    /// without waiting or writing. For read-ahead: the caller holds page `index`.
    pub(super) fn claim_after(&self, index: u64, n: u64) -> Vec<LockedPage<'_>> {
        self.claim(index + 1..index + 1 + n)
    }

    /// As `claim_after`, for these pages as far as the first that is cached.
    pub(super) fn claim(&self, pages: Range<u64>) -> Vec<LockedPage<'_>> {
        let mut held = Vec::new();
        let mut table = self.table.lock();
        for next in pages {
            if table.map.contains_key(&next) {
                break;
            }
            self.note_miss(&mut table, next);
            let Some(id) = self.room(&mut table) else { break };
            let slot = self.slot(id);
            let Some(mut page) = slot.try_write() else {
                // Somebody uses it, so it has a page: only used slots are ever locked by others.
                table.order.enter(id, slot.last_used());
                break;
            };
            if !page.is_clean() {
                self.hand_back(&mut table, id, &page);
                break;
            }
            if self.install(&mut table, id, &mut page, next) {
                held.push((id, page));
            }
        }
        held
    }
}
