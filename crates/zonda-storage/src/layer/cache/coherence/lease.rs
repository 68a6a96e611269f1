//! Leases: a page in the hands of one thread, for calls of a few bytes one after the other.
//!
//! Such a call costs more in locks, look-ups and notes of use than in bytes. So a thread that comes back to a page again and
//! again is lent it: the page moves out of its slot, into the lease, under a lock that nobody else wants. Whoever finds a slot
//! with a page that is lent takes it back first ([`PageSlot::write`] and its kin, the only ways to a page), so no other part
//! of the cache knows of leases, and all that it says of pages holds.
//!
//! - *Order*: the page's lock, then the lease's. Who has a lease waits for no other lock.
//! - *Written*: only a page that is noted as dirty is lent for writes, so who flushes comes by and takes it back.
//! - *Complete*: the last byte of a page goes the ordinary way, by which a complete page is written at once.
//! - *Ended*: [`Cache::end_leases`] takes all back. Who changes what bytes mean, or ends the use of the file, calls it before.

use super::Cache;
use super::pages::{Page, copy_short};
use super::table::PageSlot;
use crate::storage::{Leased, Storage};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::lock::{Mutex, Rank};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// What is in a slot: a page, or where it is.
#[derive(Debug, Default)]
pub(crate) struct PagePlace {
    page: Page,
    lent: Option<Arc<Lease>>,
}

impl PagePlace {
    /// Whether the page is elsewhere.
    #[inline(always)]
    pub(super) fn is_lent(&self) -> bool {
        self.lent.is_some()
    }

    /// Has the page back, wherever it is.
    #[inline(always)]
    pub(super) fn settle_lease(&mut self) {
        if self.is_lent() {
            self.take_back();
        }
    }

    /// The same, if its thread is not using it at this moment. False if it is: that takes some nanoseconds, or as long as a signal
    /// handler that came in between.
    #[inline(always)]
    pub(super) fn try_settle_lease(&mut self) -> bool {
        !self.is_lent() || self.try_take_back()
    }

    #[cold]
    fn take_back(&mut self) {
        if let Some(lent) = self.lent.take().and_then(|lease| lease.lent.lock().take()) {
            self.page = lent.page;
        }
    }

    #[cold]
    fn try_take_back(&mut self) -> bool {
        let Some(lease) = &self.lent else { return true };
        let Some(mut lent) = lease.lent.try_lock() else { return false };
        if let Some(lent) = lent.take() {
            self.page = lent.page;
        }
        drop(lent);
        self.lent = None;
        true
    }
}

impl Deref for PagePlace {
    type Target = Page;

    #[inline(always)]
    fn deref(&self) -> &Page {
        &self.page
    }
}

impl DerefMut for PagePlace {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Page {
        &mut self.page
    }
}

/// A page that one thread uses.
#[derive(Debug)]
pub(crate) struct Lease {
    /// Nothing once it was taken back.
    lent: Mutex<Option<LentPage>>,
}

#[derive(Debug)]
struct LentPage {
    page: Page,
    /// Where it begins in the file.
    base: u64,
    page_bytes: usize,
    /// Whether it may be written to.
    writes: bool,
    /// The logical length of the file.
    len: Arc<AtomicU64>,
}

impl LentPage {
    /// Where `n` bytes at `at` are in the page; `None` if not all of them are in it.
    #[inline(always)]
    fn place(&self, at: u64, n: usize) -> Option<(usize, usize)> {
        let a = usize::try_from(at.checked_sub(self.base)?).ok()?;
        let b = a.checked_add(n)?;
        (b <= self.page_bytes).then_some((a, b))
    }
}

impl Leased for Lease {
    #[inline]
    fn put(&self, at: u64, data: &[u8]) -> bool {
        // Who is taking it back has it for a moment only, but this one need not wait.
        let Some(mut lent) = self.lent.try_lock() else { return false };
        let Some(lent) = &mut *lent else { return false };
        let Some((a, b)) = lent.place(at, data.len()) else { return false };
        if !lent.writes || b == lent.page_bytes {
            return false;
        }
        // A page that gets longer has its memory from the budget already.
        let page_bytes = lent.page_bytes;
        if lent.page.put(a, data, page_bytes, false).is_err() {
            return false;
        }
        let end = lent.base + b as u64;
        if end > lent.len.load(Ordering::Acquire) {
            lent.len.fetch_max(end, Ordering::AcqRel);
        }
        true
    }

    #[inline]
    fn get(&self, at: u64, out: &mut [u8]) -> bool {
        let Some(lent) = self.lent.try_lock() else { return false };
        let Some(lent) = &*lent else { return false };
        let Some((a, b)) = lent.place(at, out.len()) else { return false };
        if !lent.page.valid().covers(a, b) {
            return false;
        }
        let Some(bytes) = lent.page.buf.get(a..b) else { return false };
        copy_short(out, bytes);
        true
    }
}

impl<S: Storage> Cache<S> {
    /// Lends the page of byte `at`, if it is there; for writes only a page that is to be written back already.
    pub(crate) fn lend(&self, at: u64, writes: bool) -> Option<Arc<Lease>> {
        // In the child of a fork pages serve reads, and nobody ends leases there.
        if self.is_inherited() {
            return None;
        }
        let (index, _) = self.place(at);
        let (id, slot) = self.hinted(index)?;
        let base = self.base(index);
        let end = base.checked_add(self.shape.page_bytes)?;
        let mut place = slot.write();
        let is_dirty = slot.is_dirty() && !place.is_clean();
        if place.index != index || (writes && (!is_dirty || end > self.inner.most_len())) {
            return None;
        }
        self.touch(slot);
        let page = std::mem::take(&mut place.page);
        place.page.index = index;
        let len = Arc::clone(&self.len);
        let lent = LentPage { page, base, page_bytes: self.page_bytes(), writes, len };
        let lease = Arc::new(Lease { lent: Mutex::ranked(Rank::Lease, Some(lent)) });
        place.lent = Some(Arc::clone(&lease));
        if !slot.is_listed.swap(true, Ordering::AcqRel) {
            self.lent.lock().push(id);
        }
        Some(lease)
    }

    /// Takes back all pages that were lent before.
    pub(crate) fn end_leases(&self) {
        let listed = std::mem::take(&mut *self.lent.lock());
        for id in listed {
            let slot: &PageSlot = self.slot(id);
            let _page_is_back = slot.write();
            slot.is_listed.store(false, Ordering::Release);
        }
    }

    /// The same without waiting for anybody; false where some are in use at this moment.
    pub(crate) fn try_end_leases(&self) -> bool {
        let Some(mut listed) = self.lent.try_lock() else { return false };
        listed.retain(|id| {
            let slot: &PageSlot = self.slot(*id);
            let place = slot.try_write();
            if place.is_some() {
                slot.is_listed.store(false, Ordering::Release);
            }
            place.is_none()
        });
        listed.is_empty()
    }
}
