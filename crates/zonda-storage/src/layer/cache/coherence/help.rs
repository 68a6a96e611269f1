//! What the thread of a cache does for it, and what is left to that thread: what is complete is written behind the users, and
//! what they are about to read is read ahead of them. Each piece of it is a transition that users make, too.

use super::Cache;
use super::background::{BackgroundWork, When};
use super::find::LockedPage;
use super::policy::{CLEANED_PART, block_pages, is_long_stream};
use super::table::Slot;
use crate::storage::{ReadRange, Storage};
use crate::sync::atomic::Ordering;
use std::ops::Range;
use std::sync::Arc;

impl<S: Storage> Cache<S> {
    /// The thread, where a write is to be left to it.
    #[inline]
    pub(super) fn writer(&self) -> Option<&Arc<BackgroundWork>> {
        self.background.as_ref().filter(|background| match background.when() {
            When::Always => true,
            // What it failed at its users try themselves, and have the error.
            When::Worthwhile => {
                (self.writes.is_slow() || self.is_long_stream()) && !background.has_failed()
            }
        })
    }

    /// Whether so much is written in order that the copies are worth another core, where there is one.
    fn is_long_stream(&self) -> bool {
        is_long_stream(self.streamed.load(Ordering::Relaxed)) && zonda_runtime::threads() > 1
    }

    /// The thread, where it is to read the block after one that is read.
    #[inline]
    pub(super) fn reader(&self) -> Option<&Arc<BackgroundWork>> {
        self.background
            .as_ref()
            .filter(|background| background.when() == When::Worthwhile && self.reads.is_slow())
    }

    /// Whether those who read from pages bring in what follows, and not only its thread.
    #[inline]
    pub(super) fn readers_go_ahead(&self) -> bool {
        self.background.as_ref().is_none_or(|background| background.when() == When::Worthwhile)
    }

    /// Page `index`, in `slot`, is the first of a block that was read ahead and is now used: the thread
    /// is to read the next one.
    #[cold]
    pub(super) fn go_on(&self, index: u64, slot: &Slot) {
        if slot.opens_block.swap(false, Ordering::Relaxed) {
            self.ask_for_block(index.saturating_add(block_pages(&self.shape)));
        }
    }

    /// Has the thread read the block that begins with page `first`, if there is a thread for it and
    /// such a page.
    pub(super) fn ask_for_block(&self, first: u64) {
        if let Some(background) = self.reader()
            && self.base(first) < self.len.load(Ordering::Acquire)
        {
            background.block(first);
        }
    }

    /// Brings a block of pages in, as far as the first of them that is cached; who uses the first asks
    /// for the block after it.
    pub(crate) fn load_block(&self, first: u64) {
        let most = (self.limit.load(Ordering::Relaxed) / 4).max(1);
        let mut held = self.claim(first..first.saturating_add(block_pages(&self.shape).min(most)));
        if let Some((id, _)) = held.first() {
            self.slot(*id).opens_block.store(true, Ordering::Relaxed);
            self.load(&mut held);
        }
    }

    /// Brings pages in that are not cached, as far as there is room that need not be written first. An
    /// error is met again by whoever asks for them.
    pub(crate) fn load_ahead(&self, pages: Range<u64>) {
        let len = self.len.load(Ordering::Acquire);
        let end = pages.end.min(len.div_ceil(self.shape.page_bytes));
        let mut next = pages.start;
        while next < end {
            let mut held = self.claim(next..end);
            if held.is_empty() {
                next += 1;
                continue;
            }
            next += held.len() as u64;
            if !self.load(&mut held) {
                return;
            }
        }
    }

    /// Reads pages that were claimed, neighbours in ascending order; false if that failed.
    fn load(&self, held: &mut [LockedPage<'_>]) -> bool {
        let len = self.len.load(Ordering::Acquire);
        let mut ranges = Vec::with_capacity(held.len());
        let mut reached = 0;
        for (_, page) in &mut *held {
            let page = &mut **page;
            let begin = self.base(page.index);
            let n = usize::try_from(len.saturating_sub(begin)).unwrap_or(usize::MAX);
            let n = n.min(self.page_bytes());
            if page.reach(n, self.page_bytes()).is_err() {
                return false;
            }
            reached = begin + n as u64;
            ranges.push(ReadRange::new(begin, &mut page.buf[..n]));
        }
        let bytes = ranges.iter().map(|range| range.buf.len()).sum();
        if self.reads.time(bytes, || self.inner.read_ranges(&mut ranges)).is_err() {
            return false;
        }
        let mut lengths = Vec::with_capacity(ranges.len());
        for range in &mut ranges {
            range.buf[range.got..].fill(0);
            lengths.push(range.buf.len());
        }
        for ((_, page), n) in held.iter_mut().zip(lengths) {
            page.add_read(0, n);
        }
        self.expected.store(reached, Ordering::Relaxed);
        true
    }

    /// Writes page `index` back if it is dirty and nobody uses it.
    pub(crate) fn write_one(&self, index: u64, background: &BackgroundWork) {
        let Some(id) = self.table.lock().map.get(&index).copied() else { return };
        let Some(mut page) = self.slot(id).page.try_write() else { return };
        if page.index == index
            && !page.is_clean()
            && let Err(error) = self.write_back(id, &mut page)
        {
            background.fail(&error);
        }
    }

    /// Writes some of the pages back that would have to leave next.
    pub(crate) fn clean_oldest(&self, background: &BackgroundWork) {
        let n = (self.limit.load(Ordering::Relaxed) / CLEANED_PART).max(1) as usize;
        let ids: Vec<u32> = {
            let table = self.table.lock();
            let dirty = |id: &u32| self.slot(*id).is_dirty();
            table.order.iter().filter(dirty).take(n).collect()
        };
        for id in ids {
            let Some(mut page) = self.slot(id).page.try_write() else { continue };
            if page.is_clean() {
                continue;
            }
            if let Err(error) = self.write_back(id, &mut page) {
                background.fail(&error);
                return;
            }
        }
    }
}
