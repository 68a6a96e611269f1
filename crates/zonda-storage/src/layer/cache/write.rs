//! Writing: into pages, and straight through.

use super::Cache;
use super::lent::Holder;
use super::table::{Page, Slot};
use crate::StorageError;
use crate::error::{Op, check_place, held_end, range_end};
use crate::storage::{Storage, WriteRange, fill_by_writes};
use std::sync::atomic::Ordering;

/// Where each call takes long, writes go straight to what is below from this length on: shorter ones
/// are left to the thread.
const SLOW_STRAIGHT_BYTES: u64 = 4 << 20;
/// With more than this waiting to be written, what is put is out of the processor's cache before it
/// leaves.
const PAST_CACHE_BYTES: u64 = 4 << 20;
/// Shorter pieces are not worth more than a plain copy.
const PAST_CACHE_LEAST: usize = 256;

impl<S: Storage> Cache<S> {
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
        // An empty or impossible range is the slow path's to judge.
        let Some(end) = held_end(at, data.len(), || self.inner.most_len()) else {
            return Ok(false);
        };
        let mut page = slot.page.write();
        if page.index != index {
            return Ok(false);
        }
        self.touch(slot);
        self.extend_to(end);
        let complete = self.put(slot, &mut page, a, data)?;
        drop(page);
        if complete {
            self.write_complete(index)?;
        }
        Ok(true)
    }

    /// Stores `data` in a page that is held; gives whether that was what the page lacked.
    #[inline(always)]
    fn put(
        &self,
        slot: &Slot,
        page: &mut Page,
        a: usize,
        data: &[u8],
    ) -> Result<bool, StorageError> {
        let past_cache = data.len() >= PAST_CACHE_LEAST
            && self.n_dirty.load(Ordering::Relaxed) as u64 * self.shape.page_bytes
                > PAST_CACHE_BYTES;
        let was_complete = page.is_complete(self.page_bytes());
        page.put(a, data, self.page_bytes(), past_cache)?;
        self.mark_dirty(slot);
        Ok(!was_complete && page.is_complete(self.page_bytes()))
    }

    #[inline]
    fn mark_dirty(&self, slot: &Slot) {
        if !slot.dirty.load(Ordering::Relaxed) {
            slot.dirty.store(true, Ordering::Release);
            self.n_dirty.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Whether page `index` is to be written back.
    pub(super) fn is_dirty(&self, index: u64) -> bool {
        let id = self.table.lock().map.get(&index).copied();
        id.is_some_and(|id| self.slot(id).dirty.load(Ordering::Acquire))
    }

    /// `fill_at`. The element is only noted where its pages find room: what is put there before
    /// they leave need not be written twice.
    pub(super) fn fill_pages(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        let end = range_end(Op::Write, at, usize::try_from(len).unwrap_or(usize::MAX))?;
        check_place(at, len, || self.inner.most_len())?;
        let whole = self.page_bytes();
        let mut from = at;
        while from < end {
            let (index, a) = self.place(from);
            let b = usize::try_from(end - self.base(index)).unwrap_or(usize::MAX).min(whole);
            let phase = ((from - at) % element.len() as u64) as usize;
            match self.acquire(index)? {
                Some((id, mut page)) => {
                    page.lay((a, b), element, phase, whole)?;
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

    /// `write_ranges`. Ranges that ascend without overlap, as they nearly always do, share one call
    /// for what goes straight through; others are done one after another.
    pub(super) fn write_all(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        for range in ranges {
            range_end(Op::Write, range.at, range.data.len())?;
            check_place(range.at, range.data.len() as u64, || self.inner.most_len())?;
        }
        let ascending =
            ranges.windows(2).all(|two| two[0].at + two[0].data.len() as u64 <= two[1].at);
        if ascending {
            return self.write_together(ranges);
        }
        ranges.iter().try_for_each(|range| self.write_together(std::slice::from_ref(range)))
    }

    fn write_together(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        // What was taken from pages for this goes back when it does not come to be written.
        let mut holder = None;
        let outcome = self.write_each(ranges, &mut holder);
        if let Some(holder) = holder {
            match &outcome {
                Ok(()) => self.lent.forget(holder),
                Err(_) => self.cover_again(holder),
            }
        }
        outcome
    }

    fn write_each(
        &self,
        ranges: &[WriteRange<'_>],
        holder: &mut Option<Holder>,
    ) -> Result<(), StorageError> {
        let mut straight = Vec::new();
        let straight_from = match self.writer() {
            Some(_) if self.writes.is_slow() && self.has_room() => {
                self.shape.straight.write_bytes.max(SLOW_STRAIGHT_BYTES)
            }
            _ => self.shape.straight.write_bytes,
        };
        let small = |range: &&WriteRange<'_>| (range.data.len() as u64) < straight_from;
        // Small pieces first: what finds no room goes straight with the large ones.
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
            let mut from = range.at;
            for index in self.cached_in(range.at, range.data.len()) {
                let begin = self.base(index).max(range.at);
                let (_, a) = self.place(begin);
                let stop = (begin + (self.page_bytes() - a) as u64).min(end);
                let bytes =
                    |x: u64, y: u64| &range.data[(x - range.at) as usize..(y - range.at) as usize];
                // What only awaits its fill values need not pass through the page.
                let holder = *holder.get_or_insert_with(|| self.lent.begin());
                if self.uncover(holder, index, a, a + (stop - begin) as usize) {
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
            Ok(()) => {
                self.lent.written(*holder, &straight, self.shape.page_bytes);
                self.refresh(&straight);
            }
            Err(_) => self.distrust(&straight),
        }
        outcome
    }

    /// Takes the fill values away that page `index` awaits at `a..b`, if it holds nothing else; false where
    /// it does.
    fn uncover(&self, holder: Holder, index: u64, a: usize, b: usize) -> bool {
        let Some(id) = self.table.lock().map.get(&index).copied() else { return false };
        let mut page = self.slot(id).page.write();
        if page.index != index {
            return false;
        }
        let Some(taken) = page.uncover(a, b) else { return false };
        self.lent.add(holder, index, &taken);
        if page.is_clean() {
            self.mark_clean(id, &mut page);
        }
        true
    }

    /// After a write that failed: pages await the fill values again that it took from them, as far as no cut
    /// and nobody else's write came there meanwhile.
    fn cover_again(&self, holder: Holder) {
        for index in self.lent.pages_of(holder) {
            // A page that finds no room would need another write on a device that refuses them.
            if let Ok(Some((id, mut page))) = self.acquire(index) {
                page.cover_again(&self.lent.take(holder, index));
                if !page.is_clean() {
                    self.mark_dirty(self.slot(id));
                }
            }
        }
        self.lent.abandon(holder);
    }

    /// Writes fill values below whose pages found no room.
    ///
    /// # Errors
    /// What the storage reports; they are kept then.
    pub(super) fn fill_abandoned(&self) -> Result<(), StorageError> {
        for index in self.lent.pages_of(Holder::Nobody) {
            let base = self.base(index);
            let taken = self.lent.take(Holder::Nobody, index);
            for (n, ground) in taken.iter().enumerate() {
                let fill = |from: usize, len: usize, element: &[u8]| {
                    self.below_to.fetch_max(base + (from + len) as u64, Ordering::AcqRel);
                    self.inner.fill_at(base + from as u64, len as u64, element)
                };
                if let Err(error) = ground.fill_by(fill) {
                    self.lent.add(Holder::Nobody, index, &taken[n..]);
                    return Err(error);
                }
            }
            self.for_pages(index, index, |_, page| page.forget_read());
        }
        Ok(())
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
        let complete = self.put(self.slot(id), &mut page, a, data)?;
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
            complete |= self.put(slot, &mut page, (piece.at - base) as usize, piece.data)?;
        }
        drop(page);
        if complete {
            self.write_complete(index)?;
        }
        Ok(true)
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
