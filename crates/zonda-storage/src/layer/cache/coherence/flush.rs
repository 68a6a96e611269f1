//! Writing pages back, and changing the length.

use super::Cache;
use super::background::BackgroundWork;
use super::find::LockedPage;
use super::pages::Page;
use super::policy::{WriteRun, is_left_behind};
use super::table::PageSlot;
use crate::StorageError;
use crate::error::{Op, range_end};
use crate::storage::{Storage, WriteRange};
use crate::sync::atomic::Ordering;
use crate::sync::fork;
use crate::tuning::{MOST_WRITE_RANGES, RUN_PAGES};
use std::sync::Arc;

impl<S: Storage> Cache<S> {
    /// Writes back `page` of slot `id`, and the dirty pages that follow it or precede it without a
    /// gap, as far as nobody else holds them.
    pub(super) fn write_back(&self, id: u32, page: &mut Page) -> Result<(), StorageError> {
        page.settle(self.page_bytes())?;
        let before = self.neighbours(page, false);
        let after = self.neighbours(page, true);
        let mut run: Vec<(u32, &mut Page)> = Vec::with_capacity(before.len() + after.len() + 1);
        let (mut before, mut after) = (before, after);
        run.extend(before.iter_mut().rev().map(|(id, page)| (*id, &mut ***page)));
        run.push((id, page));
        run.extend(after.iter_mut().map(|(id, page)| (*id, &mut ***page)));
        self.write_run(&mut run)
    }

    /// Page `index` is complete, each of its bytes being known: writes it with the complete ones
    /// around it, once they are enough for a large write and unless what lies before them is still
    /// to come. Sequential output leaves in order, while it is in the processor's cache, and leaves
    /// its pages for what follows.
    ///
    /// Where a thread does such work, it is left to it. No page may be held by the caller.
    pub(super) fn write_complete(&self, index: u64) -> Result<(), StorageError> {
        if self.writer().is_some_and(|background| background.complete(index)) || self.is_inherited()
        {
            return Ok(());
        }
        self.write_complete_now(index, None, false)
    }

    /// As [`Cache::write_complete`], by whoever calls; tells `background` of an error before any page is
    /// let go, so that nobody takes it for written. With `few` it does not wait for more pages.
    pub(crate) fn write_complete_now(
        &self,
        index: u64,
        background: Option<&Arc<BackgroundWork>>,
        few: bool,
    ) -> Result<(), StorageError> {
        let page = self.shape.page_bytes;
        let together = WriteRun::new(&self.shape, self.writes.is_slow());
        let Some(first) = self.run_begin(index, together.pages) else { return Ok(()) };
        let enough = if few { 1 } else { together.enough(first) };
        let at_once = match background {
            Some(_) => together.of_thread(page, self.limit.load(Ordering::Relaxed)),
            None => together.pages,
        };
        let at_once = at_once as usize;
        let mut next = first;
        loop {
            let mut held = self.complete_from(next, at_once);
            let n = held.len() as u64;
            next += n;
            if n == 0 || next - first < enough {
                // When nothing else is to be done, these are enough.
                background.filter(|_| !few).inspect(|background| background.incomplete_run(first));
                return Ok(());
            }
            let mut run: Vec<(u32, &mut Page)> =
                held.iter_mut().map(|(id, page)| (*id, &mut ***page)).collect();
            if let Err(error) = self.write_run(&mut run) {
                background.inspect(|background| background.fail(&error));
                return Err(error);
            }
            let mut table = self.table.lock();
            run.iter().rev().for_each(|(id, _)| self.cool(&mut table, *id));
            drop(table);
            self.streamed.fetch_add(n * page, Ordering::Relaxed);
            if held.len() < at_once {
                return Ok(());
            }
            if let Some(background) = background {
                background.complete(next);
                return Ok(());
            }
        }
    }

    /// `rest`: writes what is complete, however little of it there is. What fails stays dirty, to be met
    /// again.
    pub(super) fn write_what_is_complete(&self) {
        if self.n_dirty.load(Ordering::Acquire) == 0 || self.is_inherited() {
            return;
        }
        // The caller may be a thread that a fork does not wait for otherwise.
        let Some(_leave) = fork::enter() else { return };
        let dirty = |id: &u32| self.slot(*id).is_dirty();
        let list: Vec<u64> = {
            let table = self.table.lock();
            table.map.iter().filter(|(_, id)| dirty(id)).map(|(index, _)| *index).collect()
        };
        for index in list {
            // What is written for one takes its neighbours along.
            if self.is_dirty(index) && self.write_complete_now(index, None, true).is_err() {
                return;
            }
        }
    }

    /// The first of the complete pages that lead to page `index` without a gap, and no more than `most`
    /// before it; `None` while what lies before them is still being put together.
    fn run_begin(&self, index: u64, most: u64) -> Option<u64> {
        let mut first = index;
        while index - first < most {
            let before = first.checked_sub(1);
            let Some(before) = before.filter(|before| self.is_dirty(*before)) else {
                return Some(first);
            };
            let id = self.table.lock().map.get(&before).copied()?;
            let slot = self.slot(id);
            let page = slot.try_read()?;
            if page.index != before {
                return None;
            }
            if !page.is_complete(self.page_bytes()) {
                return self.is_left_behind(slot, &page).then_some(first);
            }
            first = before;
        }
        Some(first)
    }

    /// Whether a page that is not complete will hardly become so.
    fn is_left_behind(&self, slot: &PageSlot, page: &Page) -> bool {
        // The stamp of a page in use is ahead of the clock.
        let age = self.clock.load(Ordering::Relaxed).saturating_sub(slot.last_used());
        let is_gap = page.valid().has_ranges(2) && page.valid().end() == self.page_bytes();
        is_left_behind(page.index, is_gap, age)
    }

    /// Up to `most` pages from page `index` on, each complete and used by nobody.
    fn complete_from(&self, index: u64, most: usize) -> Vec<LockedPage<'_>> {
        let mut held = Vec::new();
        for next in index..index.saturating_add(most as u64) {
            let Some(id) = self.table.lock().map.get(&next).copied() else { break };
            let Some(page) = self.slot(id).try_write() else { break };
            if page.index != next || page.is_clean() || !page.is_complete(self.page_bytes()) {
                break;
            }
            held.push((id, page));
        }
        held
    }

    /// Dirty pages that touch `page` byte to byte, upwards or downwards, nearest first.
    fn neighbours(&self, page: &Page, up: bool) -> Vec<LockedPage<'_>> {
        let mut held: Vec<LockedPage<'_>> = Vec::new();
        let whole = self.page_bytes();
        let edge = |page: &Page, up: bool| match up {
            true => page.dirty.end() == whole,
            false => page.dirty.iter().next().is_some_and(|r| r.0 == 0),
        };
        let mut index = page.index;
        let mut open = edge(page, up);
        while open && held.len() < RUN_PAGES / 2 {
            let Some(next) = (if up { index.checked_add(1) } else { index.checked_sub(1) }) else {
                break;
            };
            let Some(id) = self.table.lock().map.get(&next).copied() else { break };
            let slot = self.slot(id);
            if !slot.is_dirty() {
                break;
            }
            let Some(mut page) = slot.try_write() else { break };
            if page.settle(whole).is_err() || page.index != next || !edge(&page, !up) {
                break;
            }
            open = edge(&page, up);
            index = next;
            held.push((id, page));
        }
        held
    }

    /// Writes what is dirty in `run`, ascending pages, by as few calls as can be; on failure all stay
    /// dirty. Only those bytes: between them may be what another process has written since.
    fn write_run(&self, run: &mut [(u32, &mut Page)]) -> Result<(), StorageError> {
        for (_, page) in &mut *run {
            page.settle(self.page_bytes())?;
        }
        let mut ranges = Vec::with_capacity(run.len());
        for (_, page) in &*run {
            let base = self.base(page.index);
            for (a, b) in page.dirty.iter() {
                if ranges.len() == MOST_WRITE_RANGES {
                    self.hand_down(&ranges)?;
                    ranges.clear();
                }
                ranges.push(WriteRange { at: base + a as u64, data: &page.buf[a..b] });
            }
        }
        self.hand_down(&ranges)?;
        self.background.as_ref().inspect(|background| background.note_written());
        for (id, page) in run {
            self.mark_clean(*id, page);
        }
        Ok(())
    }

    /// Writes ascending ranges below.
    fn hand_down(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        let bytes = ranges.iter().map(|range| range.data.len()).sum();
        let follows = |two: &[WriteRange<'_>]| two[0].at + two[0].data.len() as u64 == two[1].at;
        let n_pieces = 1 + ranges.windows(2).filter(|two| !follows(two)).count();
        self.note_handed_down(ranges);
        self.writes.time_pieces(n_pieces, bytes, || self.inner.write_ranges(ranges))?;
        self.withheld.written(None, ranges, self.shape.page_bytes);
        Ok(())
    }

    /// Ranges are about to be written below, in ascending order.
    pub(super) fn note_handed_down(&self, ranges: &[WriteRange<'_>]) {
        if let Some(last) = ranges.last() {
            self.below_to.fetch_max(last.at + last.data.len() as u64, Ordering::AcqRel);
        }
    }

    /// Forgets that `page` is dirty.
    pub(super) fn mark_clean(&self, id: u32, page: &mut Page) {
        page.forget_written();
        if self.slot(id).dirty.swap(false, Ordering::AcqRel) {
            self.n_dirty.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Writes back every dirty page from page `first` on, in address order. Pages that fail stay
    /// dirty; the others are written all the same, and the first error is given.
    pub(crate) fn flush_from(&self, first: u64) -> Result<(), StorageError> {
        self.fill_abandoned()?;
        if self.n_dirty.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let dirty = |id: &u32| self.slot(*id).is_dirty();
        let list: Vec<(u64, u32)> = {
            let table = self.table.lock();
            table.map.range(first..).filter(|(_, id)| dirty(id)).map(|(i, id)| (*i, *id)).collect()
        };
        let mut outcome = Ok(());
        let mut rest = &list[..];
        while let Some(((index, id), more)) = rest.split_first() {
            rest = more;
            let page = self.slot(*id).write();
            // Somebody who evicted or flushed it meanwhile has written it.
            if page.index != *index || page.is_clean() {
                continue;
            }
            let mut held = vec![(*id, page)];
            while let Some(((index, id), more)) = rest.split_first() {
                if held.len() == RUN_PAGES {
                    break;
                }
                let Some(page) = self.slot(*id).try_write() else { break };
                if page.index == *index && !page.is_clean() {
                    held.push((*id, page));
                }
                rest = more;
            }
            let mut run: Vec<(u32, &mut Page)> =
                held.iter_mut().map(|(id, page)| (*id, &mut ***page)).collect();
            outcome = outcome.and(self.write_run(&mut run));
        }
        outcome
    }

    /// `set_len`. What lies beyond a shorter length is written first, so that a refusal leaves
    /// everything as it was.
    pub(super) fn resize_to(&self, len: u64) -> Result<(), StorageError> {
        range_end(Op::SetLen, len, 0)?;
        let _one_at_a_time = self.resize.lock();
        let old = self.len.load(Ordering::Acquire);
        if len == old {
            return Ok(());
        }
        if len > old {
            self.below_to.fetch_max(len, Ordering::AcqRel);
            // Somebody else may have made it longer: to be extended is no leave to cut.
            if self.inner.len()? < len {
                self.inner.set_len(len)?;
            }
            self.extend_to(len);
            return Ok(());
        }
        let (first, _) = self.place(len);
        self.flush_from(first)?;
        self.inner.set_len(len)?;
        self.len.store(len, Ordering::Release);
        self.withheld.truncate(len, self.shape.page_bytes);
        self.for_pages_from(first, |id, page| {
            let keep = usize::try_from(len.saturating_sub(self.base(page.index)))
                .unwrap_or(usize::MAX)
                .min(self.page_bytes());
            page.truncate(keep);
            if page.is_clean() {
                self.mark_clean(id, page);
            }
        });
        Ok(())
    }

    /// `invalidate`.
    pub(super) fn forget_clean(&self) -> Result<(), StorageError> {
        self.inner.invalidate()?;
        let mut dirty_end = 0;
        let known = self.len.load(Ordering::Acquire);
        let mut no_memory = None;
        self.for_pages_from(0, |_, page| {
            match page.settle(self.page_bytes()) {
                Ok(()) => page.forget_read(),
                Err(error) => no_memory = Some(error),
            }
            if !page.dirty.is_empty() {
                dirty_end = dirty_end.max(self.base(page.index) + page.dirty.end() as u64);
            }
        });
        if let Some(error) = no_memory {
            return Err(error);
        }
        let below = self.inner.len()?;
        self.below_to.fetch_max(below, Ordering::AcqRel);
        let len = below.max(dirty_end);
        // Another thread's write in the meantime has set a newer length, which then stays.
        let _ = self.len.compare_exchange(known, len, Ordering::AcqRel, Ordering::Relaxed);
        self.extend_to(len);
        Ok(())
    }

    /// Calls `f` for every cached page from page `first` on, each under its lock, one at a time.
    pub(super) fn for_pages_from(&self, first: u64, f: impl FnMut(u32, &mut Page)) {
        self.for_pages(first, u64::MAX, f);
    }

    /// As `for_pages_from`, up to and with page `last`.
    pub(super) fn for_pages(&self, first: u64, last: u64, mut f: impl FnMut(u32, &mut Page)) {
        let list: Vec<(u64, u32)> =
            self.table.lock().map.range(first..=last).map(|(i, id)| (*i, *id)).collect();
        for (index, id) in list {
            let mut page = self.slot(id).write();
            if page.index == index {
                f(id, &mut page);
            }
        }
    }
}
