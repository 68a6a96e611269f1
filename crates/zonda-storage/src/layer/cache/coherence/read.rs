//! Reading: hits, fills, and what goes straight through.

use super::Cache;
use super::find::LockedPage;
use super::pages::{Page, copy_short};
use super::policy::{
    Miss, MissFill, ReadPattern, ahead_bytes, block_pages, goes_by_pages, is_read_apart,
};
use crate::StorageError;
use crate::copy::prefetch;
use crate::error::{Op, range_end};
use crate::storage::{ReadRange, Rows, Storage};
use crate::sync::atomic::Ordering;
use crate::tuning::{GRANULE_BYTES, READ_BEHIND_BYTES};

impl<S: Storage> Cache<S> {
    /// Reads from page `index` if it is there and holds all of it.
    #[inline]
    pub(super) fn hit(&self, index: u64, a: usize, out: &mut [u8]) -> bool {
        let Some((_, slot)) = self.hinted(index) else { return false };
        let page = slot.read();
        let b = a + out.len();
        if page.index != index || !page.valid().covers(a, b) {
            return false;
        }
        let Some(bytes) = page.buf.get(a..b) else { return false };
        copy_short(out, bytes);
        self.touch(slot);
        drop(page);
        if slot.opens_block.load(Ordering::Relaxed) {
            self.go_on(index, slot);
        }
        true
    }

    /// Shows rows as far as they are in pages, those of one page under one lock; gives how many.
    pub(super) fn show(&self, rows: Rows, see: &mut dyn FnMut(&[u8])) -> usize {
        let len = self.len.load(Ordering::Acquire);
        let (mut at, mut n_shown) = (rows.at, 0);
        while n_shown < rows.count {
            let of_page = Rows { at, count: rows.count - n_shown, ..rows };
            let n = self.show_of_page(of_page, len, see);
            if n == 0 {
                break;
            }
            n_shown += n;
            at = at.saturating_add(rows.step.saturating_mul(n as u64));
        }
        n_shown
    }

    /// Shows rows as far as they are in the page of the first, in a storage of `len` bytes.
    fn show_of_page(&self, rows: Rows, len: u64, see: &mut dyn FnMut(&[u8])) -> usize {
        let (index, first) = self.place(rows.at);
        let Some((_, slot)) = self.hinted(index) else { return 0 };
        let page = slot.read();
        if page.index != index {
            return 0;
        }
        let left = usize::try_from(len.saturating_sub(self.base(index))).unwrap_or(usize::MAX);
        let there = &page.buf[..page.buf.len().min(left)];
        let step = usize::try_from(rows.step).unwrap_or(usize::MAX);
        let (mut a, mut n) = (first, 0);
        while n < rows.count {
            let b = a.saturating_add(rows.len);
            let Some(bytes) = there.get(a..b).filter(|_| page.valid().covers(a, b)) else { break };
            a = a.saturating_add(step);
            // Rows are far from each other, so that the processor does not foresee the next one.
            if let Some(next) = there.get(a..a.saturating_add(rows.len)) {
                prefetch(next);
            }
            see(bytes);
            n += 1;
        }
        if n > 0 {
            self.touch(slot);
        }
        drop(page);
        if n > 0 && slot.opens_block.load(Ordering::Relaxed) {
            self.go_on(index, slot);
        }
        n
    }

    /// `read_ranges`: what is cached is copied, small misses bring their page in, and what remains
    /// is read from below by one call.
    pub(super) fn read_all(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        let len = self.len.load(Ordering::Acquire);
        let mut straight: Vec<ReadRange<'_>> = Vec::new();
        for range in ranges {
            range_end(Op::Read, range.at, range.buf.len())?;
            let left = usize::try_from(len.saturating_sub(range.at)).unwrap_or(usize::MAX);
            range.got = range.buf.len().min(left);
            let buf = &mut range.buf[..range.got];
            let n = buf.len() as u64;
            if n < self.shape.straight.read_bytes {
                self.read_small(range.at, buf, true, &mut straight)?;
                continue;
            }
            match self.large_read(range.at, n) {
                ReadPattern::New => self.read_large(range.at, buf, &mut straight)?,
                visit => {
                    let ahead = visit == ReadPattern::GoesOn;
                    self.read_small(range.at, buf, ahead, &mut straight)?;
                }
            }
        }
        if straight.is_empty() {
            return Ok(());
        }
        let bytes = straight.iter().map(|range| range.buf.len()).sum();
        self.reads.time(bytes, || self.inner.read_ranges(&mut straight))?;
        // Within the logical length, what is not below yet is a hole.
        straight.iter_mut().for_each(|range| range.buf[range.got..].fill(0));
        Ok(())
    }

    /// What a large read is to those before it, where calls take long and it may go through pages: if it
    /// goes on, or comes back and others did so, too. `New` if it is to go past them.
    fn large_read(&self, at: u64, n: u64) -> ReadPattern {
        if !goes_by_pages(n, self.reads.is_slow(), || self.reads_ahead()) {
            return ReadPattern::New;
        }
        let visit = self.large.lock().note(at, at + n);
        let many_come_back = self.again.note(visit == ReadPattern::Again);
        match visit {
            ReadPattern::GoesOn => visit,
            _ if many_come_back => ReadPattern::Again,
            _ => ReadPattern::New,
        }
    }

    /// Whether there is room for more than what was asked for, and nobody else who reads ahead.
    fn reads_ahead(&self) -> bool {
        self.shape.has_room() && self.readers_go_ahead()
    }

    /// Reads through pages; with `ahead` more than what was asked for may be brought in.
    fn read_small<'b>(
        &self,
        at: u64,
        buf: &'b mut [u8],
        ahead: bool,
        straight: &mut Vec<ReadRange<'b>>,
    ) -> Result<(), StorageError> {
        let mut at = at;
        let mut rest = buf;
        while !rest.is_empty() {
            let (index, a) = self.place(at);
            let n = rest.len().min(self.page_bytes() - a);
            let (out, more) = rest.split_at_mut(n);
            rest = more;
            if !self.read_page(index, a, out, ahead)? {
                straight.push(ReadRange::new(at, out));
            }
            at += n as u64;
        }
        Ok(())
    }

    /// Copies what is in cached pages, and leaves the stretches between to `straight`.
    fn read_large<'b>(
        &self,
        at: u64,
        buf: &'b mut [u8],
        straight: &mut Vec<ReadRange<'b>>,
    ) -> Result<(), StorageError> {
        let mut at = at;
        let mut rest = buf;
        for index in self.cached_in(at, rest.len()) {
            let begin = self.base(index).max(at);
            let gap = (begin - at) as usize;
            let (out, more) = rest.split_at_mut(gap);
            if !out.is_empty() {
                straight.push(ReadRange::new(at, out));
            }
            let (_, a) = self.place(begin);
            let n = more.len().min(self.page_bytes() - a);
            let (out, more) = more.split_at_mut(n);
            // What a page lacks is not brought in for so little.
            let here = self.hit(index, a, out)
                || (self.is_dirty(index) && self.read_page(index, a, out, true)?);
            if !here {
                straight.push(ReadRange::new(begin, out));
            }
            at = begin + n as u64;
            rest = more;
        }
        if !rest.is_empty() {
            straight.push(ReadRange::new(at, rest));
        }
        Ok(())
    }

    /// The cached pages that `at..at + len` touches, ascending.
    pub(super) fn cached_in(&self, at: u64, len: usize) -> Vec<u64> {
        let (first, _) = self.place(at);
        let (last, _) = self.place(at + (len as u64).saturating_sub(1));
        self.table.lock().map.range(first..=last).map(|(index, _)| *index).collect()
    }

    /// Reads from page `index`, filled as needed; false when there is no room for it.
    fn read_page(
        &self,
        index: u64,
        a: usize,
        out: &mut [u8],
        ahead: bool,
    ) -> Result<bool, StorageError> {
        if self.hit(index, a, out) {
            return Ok(true);
        }
        let Some((id, mut page)) = self.acquire(index)? else { return Ok(false) };
        let b = a + out.len();
        page.settle(self.page_bytes())?;
        if !page.valid().covers(a, b) {
            match ahead {
                true => self.fill(&mut page, a, b)?,
                false => self.fill_granules(&mut page, a, b, GRANULE_BYTES)?,
            }
        }
        out.copy_from_slice(&page.buf[a..b]);
        drop(page);
        if self.slot(id).opens_block.load(Ordering::Relaxed) {
            self.go_on(index, self.slot(id));
        }
        Ok(true)
    }

    /// Makes `a..b` of `page` valid, and more where reading goes on or comes back.
    fn fill(&self, page: &mut Page, a: usize, b: usize) -> Result<(), StorageError> {
        let missing = page.valid().first_gap(a, b).unwrap_or(a);
        let is_slow = self.reads.is_slow();
        let goes_on = self.goes_on_at(self.base(page.index) + missing as u64);
        let before = page.misses;
        let comes_back = !goes_on && self.dense.note(before > 0) && self.reads_ahead();
        page.misses += u32::from(!goes_on);
        match (Miss { goes_on, is_slow, before, comes_back }).fill() {
            MissFill::Ahead => {
                // What took long to get is kept as long as there is room.
                if !is_slow {
                    self.leave_behind(page.index);
                }
                self.fill_from(page, missing, b, None)
            }
            MissFill::Block => {
                let block = block_pages(&self.shape);
                self.be_roomy(block);
                let missing = page.valid().first_gap(0, b).unwrap_or(a);
                self.fill_from(page, missing, b, Some(block))
            }
            MissFill::Granule(bytes) => {
                if is_slow {
                    self.be_roomy(1);
                }
                self.fill_granules(page, a, b, bytes)
            }
        }
    }

    /// Whether a sequential reader comes to `at`.
    fn goes_on_at(&self, at: u64) -> bool {
        self.expected.load(Ordering::Relaxed) == at
            || (self.reads.is_slow() && self.large.lock().goes_on_at(at))
    }

    /// Reads what `page` lacks from byte `missing` on, and pages around it: those that a sequential reader will ask for
    /// next, or, with `block`, those of the block of that many pages.
    fn fill_from(
        &self,
        page: &mut Page,
        missing: usize,
        b: usize,
        block: Option<u64>,
    ) -> Result<(), StorageError> {
        let end = self.fill_end(page, b);
        let n_ahead = self.n_pages_ahead(page, missing, end, block);
        let mut ahead = self.claim_after(page.index, n_ahead);
        let n_before = block.map_or(0, |n| page.index % n);
        let mut before = self.claim(page.index - n_before..page.index);
        if ahead.is_empty() && before.is_empty() {
            self.fill_gaps(page, missing, end)?;
            self.expected.store(self.base(page.index) + end as u64, Ordering::Relaxed);
            return Ok(());
        }
        let Some(reached) = self.read_around(&mut before, page, (missing, end), &mut ahead)? else {
            return self.fill_gaps(page, missing, end);
        };
        self.expected.store(reached, Ordering::Relaxed);
        self.ask_for_block(page.index + 1 + ahead.len() as u64);
        Ok(())
    }

    /// How many pages after `page` are read with its bytes `missing..end`.
    fn n_pages_ahead(&self, page: &Page, missing: usize, end: usize, block: Option<u64>) -> u64 {
        let whole = self.page_bytes();
        let page_end = self.base(page.index) + whole as u64;
        let len = self.len.load(Ordering::Acquire);
        match page.valid().gaps(missing, end)[..] {
            // Where a thread alone reads ahead, nobody waits for more than was asked for.
            [(_, to)] if to == whole && page_end < len && self.readers_go_ahead() => {
                self.shape.pages_after(page.index, len, block, self.reads.is_slow())
            }
            _ => 0,
        }
    }

    /// Reads bytes `missing..end` of `page` and all of its neighbours `before` and `ahead` by one call, and gives where
    /// in the storage that ended. `None` where there is no memory for the neighbours, or the call failed: the trouble
    /// may be in the part that nobody asked for.
    ///
    /// # Errors
    /// Where there is no memory for `page` itself.
    fn read_around<'a>(
        &self,
        before: &mut [LockedPage<'a>],
        page: &mut Page,
        (missing, end): (usize, usize),
        ahead: &mut [LockedPage<'a>],
    ) -> Result<Option<u64>, StorageError> {
        let whole = self.page_bytes();
        let len = self.len.load(Ordering::Acquire);
        let needed =
            |index| usize::try_from(len - self.base(index)).unwrap_or(usize::MAX).min(whole);
        let mut neighbours = before.iter_mut().chain(&mut *ahead);
        let no_memory = neighbours.any(|(_, page)| {
            let n = needed(page.index);
            page.reach(n, whole).is_err()
        });
        if no_memory {
            return Ok(None);
        }
        let mut ranges = Vec::with_capacity(before.len() + 1 + ahead.len());
        for (_, page) in &mut *before {
            let page = &mut **page;
            ranges.push(ReadRange::new(self.base(page.index), &mut page.buf[..whole]));
        }
        page.reach(end, whole)?;
        let base = self.base(page.index);
        ranges.push(ReadRange::new(base + missing as u64, &mut page.buf[missing..end]));
        let mut reached = base + end as u64;
        for (_, next) in &mut *ahead {
            let next = &mut **next;
            let begin = self.base(next.index);
            let n = needed(next.index);
            reached = begin + n as u64;
            ranges.push(ReadRange::new(begin, &mut next.buf[..n]));
        }
        let bytes = ranges.iter().map(|range| range.buf.len()).sum();
        if self.reads.time(bytes, || self.inner.read_ranges(&mut ranges)).is_err() {
            return Ok(None);
        }
        let mut lengths = Vec::with_capacity(ranges.len());
        for range in &mut ranges {
            range.buf[range.got..].fill(0);
            lengths.push(range.buf.len());
        }
        page.add_read(missing, end);
        before.iter_mut().for_each(|(_, page)| page.add_read(0, whole));
        for ((_, next), n) in ahead.iter_mut().zip(&lengths[before.len() + 1..]) {
            next.add_read(0, *n);
        }
        Ok(Some(reached))
    }

    /// Makes `a..b` of `page` valid, and what shares a granule with its ends.
    fn fill_granules(
        &self,
        page: &mut Page,
        a: usize,
        b: usize,
        granule: usize,
    ) -> Result<(), StorageError> {
        let base = self.base(page.index);
        let from = a - a % granule;
        let to = b.next_multiple_of(granule).min(self.fill_end(page, b));
        self.fill_gaps(page, from, to)?;
        self.expected.store(base + to as u64, Ordering::Relaxed);
        Ok(())
    }

    /// How far `page` can be filled: to its end or to that of the storage, but not less than to `b`.
    fn fill_end(&self, page: &Page, b: usize) -> usize {
        let whole = self.page_bytes();
        let left = self.len.load(Ordering::Acquire).saturating_sub(self.base(page.index));
        usize::try_from(left).unwrap_or(usize::MAX).clamp(b, whole.max(b))
    }

    /// A sequential reader has come to page `index`: what it left a while ago makes room.
    fn leave_behind(&self, index: u64) {
        let last = index.saturating_sub(READ_BEHIND_BYTES.div_ceil(self.shape.page_bytes));
        let at_once = ahead_bytes(self.reads.is_slow()) / self.shape.page_bytes + 1;
        let mut table = self.table.lock();
        for left in last.saturating_sub(at_once)..last {
            if let Some(id) = table.map.get(&left).copied()
                && !self.slot(id).is_dirty()
            {
                self.cool(&mut table, id);
            }
        }
    }

    /// Reads what of `from..to` is not valid; beyond the end of the storage below are zeros.
    pub(super) fn fill_gaps(
        &self,
        page: &mut Page,
        from: usize,
        to: usize,
    ) -> Result<(), StorageError> {
        let base = self.base(page.index);
        page.settle(self.page_bytes())?;
        page.reach(to, self.page_bytes())?;
        let below_to = self.below_to.load(Ordering::Acquire);
        match page.valid().gaps(from, to)[..] {
            [] => return Ok(()),
            [(first, _), ..] if base + first as u64 >= below_to => {
                for (a, b) in page.valid().gaps(from, to) {
                    page.buf[a..b].fill(0);
                }
            }
            [(a, b)] => {
                let read = || self.inner.read_at(base + a as u64, &mut page.buf[a..b]);
                let got = self.reads.time(b - a, read)?;
                page.buf[a + got..b].fill(0);
            }
            // What lies between is more than what calls of their own cost.
            ref gaps if is_read_apart(gaps) => self.fill_apart(page, gaps)?,
            // One read of everything and a few copies, instead of many reads.
            [(first, _), .., (_, last)] => {
                let no_memory = StorageError::NoMemory { bytes: (last - first) as u64 };
                let mut all = crate::slab::zeros(last - first).ok_or(no_memory)?;
                let got = self.inner.read_at(base + first as u64, &mut all)?;
                all[got..].fill(0);
                for (a, b) in page.valid().gaps(from, to) {
                    page.buf[a..b].copy_from_slice(&all[a - first..b - first]);
                }
            }
        }
        page.add_read(from, to);
        Ok(())
    }

    /// Reads gaps of `page`, which ascend, each to its place.
    fn fill_apart(&self, page: &mut Page, gaps: &[(usize, usize)]) -> Result<(), StorageError> {
        let base = self.base(page.index);
        let mut ranges = Vec::with_capacity(gaps.len());
        let (mut rest, mut at) = (&mut page.buf[..], 0);
        for &(a, b) in gaps {
            let (gap, more) = rest[a - at..].split_at_mut(b - a);
            ranges.push(ReadRange::new(base + a as u64, gap));
            (rest, at) = (more, b);
        }
        self.inner.read_ranges(&mut ranges)?;
        ranges.iter_mut().for_each(|range| range.buf[range.got..].fill(0));
        Ok(())
    }
}
