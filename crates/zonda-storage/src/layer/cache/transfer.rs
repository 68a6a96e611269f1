//! Reading and writing: hits, fills, and what goes straight through.

use super::Cache;
use super::flush::MERGE_BYTES;
use super::table::{Background, Page, Slot, copy_short};
use super::visits::Visit;
use crate::StorageError;
use crate::error::{Op, range_end};
use crate::storage::{ReadRange, Storage, WriteRange, fill_by_writes};
use std::sync::atomic::Ordering;

/// A first, scattered miss reads this much around what was asked; the rest of the page is read when
/// the next miss shows that reading goes on there.
const GRANULE_BYTES: usize = 16 << 10;
/// Each further scattered miss in a page reads twice as much, up to this many times: a page that is
/// asked for again and again is read whole in a few steps.
const GRANULE_DOUBLINGS: u32 = 4;
/// A sequential reader's pages are given up this far behind it.
const READ_BEHIND_BYTES: u64 = 256 << 10;
/// How far a sequential reader is kept ahead of, in whole pages of at least one.
const READ_AHEAD_BYTES: u64 = 256 << 10;
/// The same where each call takes long. Requests up to this length then go through pages too, when they
/// follow one another.
pub(super) const SLOW_AHEAD_BYTES: u64 = 1 << 20;
/// Where each call takes long, writes go straight to what is below from this length on: shorter ones
/// are left to the thread.
const SLOW_STRAIGHT_BYTES: u64 = 4 << 20;
/// A page in more pieces than this is tidied: it is filled, and written if it is dirty. Bounds the
/// cost of finding a place among the pieces.
const MAX_PIECES: usize = 2048;
/// The same for a page that is filled without a read, as nothing of it is below.
const FREE_PIECES: usize = 256;
/// With more than this waiting to be written, what is put is out of the processor's cache before it
/// leaves.
const PAST_CACHE_BYTES: u64 = 4 << 20;
/// Shorter pieces are not worth more than a plain copy.
const PAST_CACHE_LEAST: usize = 256;

/// Straight writes that are announced; withdrawn when dropped.
struct Announced<'a, S: Storage> {
    cache: &'a Cache<S>,
    range: (u64, u64),
}

impl<S: Storage> Drop for Announced<'_, S> {
    fn drop(&mut self) {
        let mut direct = self.cache.direct.lock();
        if let Some(i) = direct.iter().position(|range| *range == self.range) {
            direct.swap_remove(i);
        }
    }
}

impl<S: Storage> Cache<S> {
    /// Reads from page `index` if it is there and holds all of it.
    #[inline]
    pub(super) fn hit(&self, index: u64, a: usize, out: &mut [u8]) -> bool {
        let Some((_, slot)) = self.hinted(index) else { return false };
        let page = slot.page.read();
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

    /// Writes into page `index` if it is there; false if not.
    ///
    /// # Errors
    /// That of writing the page back, which is then complete.
    #[inline]
    pub(super) fn hit_write(
        &self,
        at: u64,
        index: u64,
        a: usize,
        data: &[u8],
    ) -> Result<bool, StorageError> {
        let Some((_, slot)) = self.hinted(index) else { return Ok(false) };
        let end = match range_end(Op::Write, at, data.len()) {
            Ok(end) if end > at => end,
            // An empty or impossible range is the slow path's to judge.
            _ => return Ok(false),
        };
        let mut page = slot.page.write();
        if page.index != index || page.n_pieces() >= FREE_PIECES && self.is_to_be_tidied(&page) {
            return Ok(false);
        }
        self.touch(slot);
        self.extend_to(end);
        let complete = self.put(slot, &mut page, a, data);
        drop(page);
        if complete {
            self.write_complete(index)?;
        }
        Ok(true)
    }

    /// Stores `data` in a page that is held; gives whether that was what the page lacked.
    #[inline(always)]
    fn put(&self, slot: &Slot, page: &mut Page, a: usize, data: &[u8]) -> bool {
        let past_cache = data.len() >= PAST_CACHE_LEAST
            && self.n_dirty.load(Ordering::Relaxed) as u64 * self.shape.page_bytes
                > PAST_CACHE_BYTES;
        let was_complete = page.is_complete(self.page_bytes());
        page.put(a, data, self.page_bytes(), past_cache);
        self.mark_dirty(slot);
        !was_complete && page.is_complete(self.page_bytes())
    }

    #[inline]
    fn mark_dirty(&self, slot: &Slot) {
        if !slot.dirty.load(Ordering::Relaxed) {
            slot.dirty.store(true, Ordering::Release);
            self.n_dirty.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// `fill_at`. The element is only noted where its pages find room: what is put there before
    /// they leave need not be written twice.
    pub(super) fn fill_pages(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        let end = range_end(Op::Write, at, usize::try_from(len).unwrap_or(usize::MAX))?;
        let whole = self.page_bytes();
        let mut from = at;
        while from < end {
            let (index, a) = self.place(from);
            let b = usize::try_from(end - self.base(index)).unwrap_or(usize::MAX).min(whole);
            let phase = ((from - at) % element.len() as u64) as usize;
            match self.acquire(index)? {
                Some((id, mut page)) => {
                    page.lay((a, b), element, phase, whole);
                    self.mark_dirty(self.slot(id));
                    self.extend_to(self.base(index) + b as u64);
                }
                None => {
                    let mut turned = element.to_vec();
                    turned.rotate_left(phase);
                    fill_by_writes(self, from, (b - a) as u64, &turned)?;
                }
            }
            from = self.base(index) + b as u64;
        }
        Ok(())
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
                Visit::New => self.read_large(range.at, buf, &mut straight)?,
                visit => {
                    let ahead = visit == Visit::GoesOn;
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
    fn large_read(&self, at: u64, n: u64) -> Visit {
        if !self.reads.is_slow() || n >= SLOW_AHEAD_BYTES || !self.reads_ahead() {
            return Visit::New;
        }
        let visit = self.large.note(at, at + n);
        self.again.note(visit == Visit::Again);
        match visit {
            Visit::GoesOn => visit,
            _ if self.again.are_many() => Visit::Again,
            _ => Visit::New,
        }
    }

    /// Whether there is room for more than what was asked for, and nobody else who reads ahead.
    fn reads_ahead(&self) -> bool {
        self.has_room() && self.readers_go_ahead()
    }

    /// Whether there is room for several blocks of what is read ahead or written behind.
    fn has_room(&self) -> bool {
        self.shape.at_first * self.shape.page_bytes >= 8 * SLOW_AHEAD_BYTES
    }

    /// How far a sequential reader is kept ahead of.
    fn ahead_bytes(&self) -> u64 {
        if self.reads.is_slow() { SLOW_AHEAD_BYTES } else { READ_AHEAD_BYTES }
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

    /// Whether page `index` is to be written back.
    pub(super) fn is_dirty(&self, index: u64) -> bool {
        let id = self.table.lock().map.get(&index).copied();
        id.is_some_and(|id| self.slot(id).dirty.load(Ordering::Acquire))
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
    fn cached_in(&self, at: u64, len: usize) -> Vec<u64> {
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
        page.settle(self.page_bytes());
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

    /// Makes `a..b` of `page` valid, and more where reading is sequential.
    fn fill(&self, page: &mut Page, a: usize, b: usize) -> Result<(), StorageError> {
        let base = self.base(page.index);
        let whole = self.page_bytes();
        let len = self.len.load(Ordering::Acquire);
        let end = self.fill_end(page, b);
        let mut missing = page.valid().first_gap(a, b).unwrap_or(a);
        let first = base + missing as u64;
        let sequential = self.expected.load(Ordering::Relaxed) == first
            || (self.reads.is_slow() && self.large.goes_on_at(first));
        if !sequential {
            self.dense.note(page.misses > 0);
        }
        // A call for each part costs more than all there is, if all of it will be asked for.
        let all =
            !sequential && self.reads.is_slow() && self.dense.are_many() && self.reads_ahead();
        if !sequential && self.reads.is_slow() {
            self.be_roomy(if all { self.block_pages() } else { 1 });
        }
        if all {
            page.misses += 1;
            missing = page.valid().first_gap(0, b).unwrap_or(a);
        } else if !sequential {
            let granule = GRANULE_BYTES << page.misses.min(GRANULE_DOUBLINGS);
            page.misses += 1;
            return self.fill_granules(page, a, b, granule);
        }
        // What took long to get is kept as long as there is room.
        if sequential && !self.reads.is_slow() {
            self.leave_behind(page.index);
        }
        let gaps = page.valid().gaps(missing, end);
        let n_ahead = match gaps[..] {
            // Where a thread alone reads ahead, nobody waits for more than was asked for.
            [(_, to)] if to == whole && base + (whole as u64) < len && self.readers_go_ahead() => {
                let n = (self.ahead_bytes() / self.shape.page_bytes).max(1);
                let pages_left = (len - base - 1) / self.shape.page_bytes;
                // All of a block, or as many from here on.
                let n = if all { n - 1 - page.index % n } else { n };
                n.min(self.shape.pages / 4).min(pages_left)
            }
            _ => 0,
        };
        let mut ahead = self.claim_after(page.index, n_ahead);
        let block = self.block_pages();
        let mut before = match all {
            true => self.claim(page.index - page.index % block..page.index),
            false => Vec::new(),
        };
        if ahead.is_empty() && before.is_empty() {
            self.fill_gaps(page, missing, end)?;
            self.expected.store(base + end as u64, Ordering::Relaxed);
            return Ok(());
        }
        let mut ranges = Vec::with_capacity(before.len() + 1 + ahead.len());
        for (_, page) in &mut before {
            let page = &mut **page;
            page.reach(whole, whole);
            ranges.push(ReadRange::new(self.base(page.index), &mut page.buf[..whole]));
        }
        page.reach(end, whole);
        ranges.push(ReadRange::new(base + missing as u64, &mut page.buf[missing..end]));
        let mut reached = base + end as u64;
        for (_, next) in &mut ahead {
            let next = &mut **next;
            let begin = self.base(next.index);
            let n = usize::try_from(len - begin).unwrap_or(usize::MAX).min(whole);
            next.reach(n, whole);
            reached = begin + n as u64;
            ranges.push(ReadRange::new(begin, &mut next.buf[..n]));
        }
        let bytes = ranges.iter().map(|range| range.buf.len()).sum();
        if self.reads.time(bytes, || self.inner.read_ranges(&mut ranges)).is_err() {
            // The trouble may be in the part nobody asked for.
            return self.fill_gaps(page, missing, end);
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
        self.expected.store(reached, Ordering::Relaxed);
        self.ask_for_block(page.index + 1 + ahead.len() as u64);
        Ok(())
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
        let at_once = self.ahead_bytes() / self.shape.page_bytes + 1;
        let mut table = self.table.lock();
        for behind in last.saturating_sub(at_once)..last {
            if let Some(id) = table.map.get(&behind).copied()
                && !self.slot(id).dirty.load(Ordering::Relaxed)
            {
                table.cool(self.slot(id), id);
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
        page.settle(self.page_bytes());
        page.reach(to, self.page_bytes());
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
            // One read of everything and a few copies, instead of many reads.
            [(first, _), .., (_, last)] => {
                let mut all = vec![0; last - first];
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

    /// `write_ranges`. Ranges that ascend without overlap, as they nearly always do, share one call
    /// for what goes straight through; others are done one after another.
    pub(super) fn write_all(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        for range in ranges {
            range_end(Op::Write, range.at, range.data.len())?;
        }
        let ascending =
            ranges.windows(2).all(|two| two[0].at + two[0].data.len() as u64 <= two[1].at);
        if ascending {
            return self.write_together(ranges);
        }
        ranges.iter().try_for_each(|range| self.write_together(std::slice::from_ref(range)))
    }

    fn write_together(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        let mut announced = Vec::new();
        let mut uncovered = Vec::new();
        let mut straight = Vec::new();
        let straight_from = match self.writer() {
            Some(_) if self.writes.is_slow() && self.has_room() => {
                self.shape.straight.write_bytes.max(SLOW_STRAIGHT_BYTES)
            }
            _ => self.shape.straight.write_bytes,
        };
        let small = |range: &&WriteRange<'_>| (range.data.len() as u64) < straight_from;
        // Small pieces first: what finds no room is announced with the large ones.
        let mut homeless = Vec::new();
        let mut rest = ranges;
        while let Some(first) = rest.first() {
            let (index, _) = self.place(first.at);
            let page_end = self.base(index).saturating_add(self.shape.page_bytes);
            let inside = |range: &&WriteRange<'_>| {
                small(range) && range.at + range.data.len() as u64 <= page_end
            };
            let n = rest.iter().take_while(inside).count();
            let (together, more) = rest.split_at(n.max(1));
            rest = more;
            if n > 1 && self.write_pieces(index, together)? {
                continue;
            }
            for range in together.iter().filter(small) {
                for (index, a, part) in self.cut(*range) {
                    if !self.write_page(part.at, index, a, part.data)? {
                        homeless.push(part);
                    }
                }
            }
        }
        homeless.extend(ranges.iter().filter(|range| !small(range)));
        for range in homeless {
            let end = range.at + range.data.len() as u64;
            let span = (range.at, end);
            self.direct.lock().push(span);
            announced.push(Announced { cache: self, range: span });
            let mut from = range.at;
            for index in self.cached_in(range.at, range.data.len()) {
                let begin = self.base(index).max(range.at);
                let (_, a) = self.place(begin);
                let stop = (begin + (self.page_bytes() - a) as u64).min(end);
                let bytes =
                    |x: u64, y: u64| &range.data[(x - range.at) as usize..(y - range.at) as usize];
                // What only awaits its fill values need not pass through the page.
                if let Some(taken) = self.uncover(index, a, a + (stop - begin) as usize) {
                    uncovered.push((index, taken));
                    continue;
                }
                // Evicted meanwhile and no room again: it goes with the rest.
                if self.write_page(begin, index, a, bytes(begin, stop))? {
                    if from < begin {
                        straight.push(WriteRange { at: from, data: bytes(from, begin) });
                    }
                    from = stop;
                }
            }
            if from < end {
                straight
                    .push(WriteRange { at: from, data: &range.data[(from - range.at) as usize..] });
            }
        }
        if straight.is_empty() {
            return Ok(());
        }
        straight.sort_unstable_by_key(|range| range.at);
        self.note_handed_down(&straight);
        let bytes = straight.iter().map(|range| range.data.len()).sum();
        let outcome = self.writes.time(bytes, || self.inner.write_ranges(&straight));
        match &outcome {
            Ok(()) => self.refresh(&straight),
            Err(_) => {
                self.distrust(&straight);
                self.cover_again(&uncovered);
            }
        }
        drop(announced);
        outcome
    }

    /// Takes the fill values away that page `index` awaits at `a..b`, if it holds nothing else.
    fn uncover(&self, index: u64, a: usize, b: usize) -> Option<Vec<Background>> {
        let id = self.table.lock().map.get(&index).copied()?;
        let mut page = self.slot(id).page.write();
        let taken = if page.index == index { page.uncover(a, b)? } else { return None };
        if page.is_clean() {
            self.mark_clean(id, &mut page);
        }
        Some(taken)
    }

    /// After a straight write that failed: pages await their fill values again.
    fn cover_again(&self, uncovered: &[(u64, Vec<Background>)]) {
        for (index, taken) in uncovered {
            // A page that finds no room would need another write on a device that refuses them.
            if let Ok(Some((id, mut page))) = self.acquire(*index) {
                page.cover_again(taken);
                self.mark_dirty(self.slot(id));
            }
        }
    }

    /// Cuts a range at page borders.
    fn cut<'b>(
        &self,
        range: WriteRange<'b>,
    ) -> impl Iterator<Item = (u64, usize, WriteRange<'b>)> + use<'b, '_, S> {
        let mut rest = range;
        std::iter::from_fn(move || {
            if rest.data.is_empty() {
                return None;
            }
            let (index, a) = self.place(rest.at);
            let n = rest.data.len().min(self.page_bytes() - a);
            let part = WriteRange { at: rest.at, data: &rest.data[..n] };
            rest = WriteRange { at: rest.at + n as u64, data: &rest.data[n..] };
            Some((index, a, part))
        })
    }

    /// Writes into page `index`; false when there is no room for it.
    fn write_page(&self, at: u64, index: u64, a: usize, data: &[u8]) -> Result<bool, StorageError> {
        if self.hit_write(at, index, a, data)? {
            return Ok(true);
        }
        let Some((id, mut page)) = self.acquire(index)? else { return Ok(false) };
        self.extend_to(at + data.len() as u64);
        let complete = self.put(self.slot(id), &mut page, a, data);
        self.tidy(id, &mut page)?;
        drop(page);
        if complete {
            self.write_complete(index)?;
        }
        Ok(true)
    }

    /// Writes ascending pieces that lie in page `index`; false, and nothing is written, when there is no
    /// room for it.
    fn write_pieces(&self, index: u64, pieces: &[WriteRange<'_>]) -> Result<bool, StorageError> {
        let Some((id, mut page)) = self.acquire(index)? else { return Ok(false) };
        if let Some(last) = pieces.last() {
            self.extend_to(last.at + last.data.len() as u64);
        }
        let slot = self.slot(id);
        let base = self.base(index);
        let mut complete = false;
        for piece in pieces.iter().filter(|piece| !piece.data.is_empty()) {
            complete |= self.put(slot, &mut page, (piece.at - base) as usize, piece.data);
            self.tidy(id, &mut page)?;
        }
        drop(page);
        if complete {
            self.write_complete(index)?;
        }
        Ok(true)
    }

    /// Makes one piece of very many of a page, and writes it if that is not to be had otherwise.
    fn tidy(&self, id: u32, page: &mut Page) -> Result<(), StorageError> {
        if page.n_pieces() < FREE_PIECES || !self.is_to_be_tidied(page) {
            return Ok(());
        }
        let (from, to) = (page.valid().iter().next().map_or(0, |r| r.0), page.valid().end());
        page.has_holes |= page.valid().count() > 1 && self.is_beyond(page);
        self.fill_gaps(page, from, to)?;
        // As one write would join them; whoever writes there from now on finds the page.
        if !self.straight_write_in(page.index) {
            page.join_written(MERGE_BYTES);
        }
        if page.dirty.count() >= MAX_PIECES {
            self.write_back(id, page)?;
        }
        Ok(())
    }

    /// Whether a page of many pieces has too many of them.
    #[cold]
    fn is_to_be_tidied(&self, page: &Page) -> bool {
        page.n_pieces() >= MAX_PIECES || page.valid().count() == 1 || self.is_beyond(page)
    }

    /// Whether nothing of a page is below.
    fn is_beyond(&self, page: &Page) -> bool {
        self.base(page.index) >= self.below_to.load(Ordering::Acquire)
    }

    /// Gives pages that came in during a straight write its data, which they may have read too
    /// early.
    fn refresh(&self, written: &[WriteRange<'_>]) {
        for range in written {
            let end = range.at + range.data.len() as u64;
            self.extend_to(end);
            let (first, _) = self.place(range.at);
            let (last, _) = self.place(end - 1);
            self.for_pages(first, last, |_, page| {
                let base = self.base(page.index);
                let pieces: Vec<(usize, usize)> = page.valid().iter().collect();
                for (a, b) in pieces {
                    let from = (base + a as u64).max(range.at);
                    let to = (base + b as u64).min(end);
                    if from < to {
                        page.buf[(from - base) as usize..(to - base) as usize].copy_from_slice(
                            &range.data[(from - range.at) as usize..(to - range.at) as usize],
                        );
                    }
                }
            });
        }
    }

    /// After a straight write that failed halfway: clean bytes of its pages are read again when
    /// needed, and the length follows what did land.
    fn distrust(&self, tried: &[WriteRange<'_>]) {
        for range in tried {
            let (first, _) = self.place(range.at);
            let (last, _) = self.place(range.at + range.data.len() as u64 - 1);
            self.for_pages(first, last, |_, page| page.forget_read());
        }
        if let Ok(len) = self.inner.len() {
            self.extend_to(len);
        }
    }
}
