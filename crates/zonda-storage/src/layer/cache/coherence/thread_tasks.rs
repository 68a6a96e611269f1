//! What the thread of a cache does: it writes complete pages, and reads pages that callers are about to ask for. Callers do the
//! same themselves where there is no thread, or where it does not get to it.

use super::Cache;
use super::background::{BackgroundWork, ThreadUse};
use super::find::LockedPage;
use super::policy::{block_pages, is_long_stream};
use super::table::PageSlot;
use crate::storage::{ReadRange, Storage};
use crate::sync::atomic::Ordering;
use crate::tuning::CLEANED_PART;
use std::ops::Range;
use std::sync::Arc;

impl<S: Storage> Cache<S> {
    /// The thread, if complete pages are to be left to it now.
    #[inline]
    pub(super) fn writer(&self) -> Option<&Arc<BackgroundWork>> {
        self.background.as_ref().filter(|background| match background.when() {
            ThreadUse::Always => true,
            // After an error callers write themselves, and get the error if it comes again.
            ThreadUse::Worthwhile => {
                (self.writes.is_slow() || self.is_long_stream()) && !background.has_failed()
            }
        })
    }

    /// Whether the process has another core, and has written so much in order that a thread is worth it.
    fn is_long_stream(&self) -> bool {
        is_long_stream(self.streamed.load(Ordering::Relaxed)) && zonda_runtime::threads() > 1
    }

    /// The thread, if it is to read the block after one that is being read.
    #[inline]
    pub(super) fn reader(&self) -> Option<&Arc<BackgroundWork>> {
        self.background
            .as_ref()
            .filter(|background| background.when() == ThreadUse::Worthwhile && self.reads.is_slow())
    }

    /// Whether callers that read also read ahead, and not the thread alone.
    #[inline]
    pub(super) fn readers_go_ahead(&self) -> bool {
        self.background.as_ref().is_none_or(|background| background.when() == ThreadUse::Worthwhile)
    }

    /// To be called when page `index`, in `slot`, is used. If it is the first page of a block that was read ahead, the
    /// thread is asked for the next block.
    #[cold]
    pub(super) fn go_on(&self, index: u64, slot: &PageSlot) {
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

    /// Reads a block of pages that begins with page `first`, as far as the first one that is cached already. The call that
    /// uses page `first` will ask for the next block.
    pub(crate) fn load_block(&self, first: u64) {
        let most = (self.limit.load(Ordering::Relaxed) / 4).max(1);
        let mut held = self.claim(first..first.saturating_add(block_pages(&self.shape).min(most)));
        if let Some((id, _)) = held.first() {
            self.slot(*id).opens_block.store(true, Ordering::Relaxed);
            self.load(&mut held);
        }
    }

    /// Reads those of `pages` that are not cached, as long as there are slots whose pages need not be written first. An
    /// error is dropped: a call that asks for such a page meets it again.
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

    /// Reads pages that were claimed, which follow one another; false if that failed.
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

    /// Writes page `index` back if it is dirty and nobody has it locked.
    pub(crate) fn write_one(&self, index: u64, background: &BackgroundWork) {
        let Some(id) = self.table.lock().map.get(&index).copied() else { return };
        let Some(mut page) = self.slot(id).try_write() else { return };
        if page.index == index
            && !page.is_clean()
            && let Err(error) = self.write_back(id, &mut page)
        {
            background.fail(&error);
        }
    }

    /// Writes back some of the dirty pages that would be evicted next.
    pub(crate) fn clean_oldest(&self, background: &BackgroundWork) {
        let n = (self.limit.load(Ordering::Relaxed) / CLEANED_PART).max(1) as usize;
        let ids: Vec<u32> = {
            let table = self.table.lock();
            let dirty = |id: &u32| self.slot(*id).is_dirty();
            table.order.iter().filter(dirty).take(n).collect()
        };
        for id in ids {
            let Some(mut page) = self.slot(id).try_write() else { continue };
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
