//! Merging: what is put into pages, and what of a call goes past them.

use super::Cache;
use super::pages::Page;
use super::policy::{is_past_cache, straight_from};
use super::table::PageSlot;
use crate::StorageError;
use crate::error::{Op, check_place, held_end, range_end};
use crate::storage::{Storage, WriteRange, fill_by_writes};
use crate::sync::atomic::Ordering;

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
        let mut page = slot.write();
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
        slot: &PageSlot,
        page: &mut Page,
        a: usize,
        data: &[u8],
    ) -> Result<bool, StorageError> {
        let past_cache = is_past_cache(data.len(), || {
            self.n_dirty.load(Ordering::Relaxed) as u64 * self.shape.page_bytes
        });
        let was_complete = page.is_complete(self.page_bytes());
        page.put(a, data, self.page_bytes(), past_cache)?;
        self.mark_dirty(slot);
        Ok(!was_complete && page.is_complete(self.page_bytes()))
    }

    #[inline]
    pub(super) fn mark_dirty(&self, slot: &PageSlot) {
        if !slot.dirty.load(Ordering::Relaxed) {
            slot.dirty.store(true, Ordering::Release);
            self.n_dirty.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Whether page `index` is to be written back.
    pub(super) fn is_dirty(&self, index: u64) -> bool {
        let id = self.table.lock().map.get(&index).copied();
        id.is_some_and(|id| self.slot(id).is_dirty())
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

    /// Writes ranges that ascend without overlap.
    fn write_together(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        let has_writer = self.writer().is_some();
        let straight_from = straight_from(&self.shape, self.writes.is_slow(), has_writer);
        let is_small = |range: &&WriteRange<'_>| (range.data.len() as u64) < straight_from;
        // Small pieces first: what finds no room goes straight with the large ones.
        let mut homeless = Vec::new();
        let mut rest = ranges;
        while let Some(first) = rest.first() {
            let (index, _) = self.place(first.at);
            let page_end = self.base(index).saturating_add(self.shape.page_bytes);
            let inside = |range: &&WriteRange<'_>| {
                is_small(range) && range.at + range.data.len() as u64 <= page_end
            };
            let n = rest.iter().take_while(inside).count();
            let (together, more) = rest.split_at(n.max(1));
            rest = more;
            if n > 1 && self.write_pieces(index, together)? {
                continue;
            }
            for range in together.iter().filter(is_small) {
                for (index, a, part) in self.cut(*range) {
                    if !self.write_page(part.at, index, a, part.data)? {
                        homeless.push(part);
                    }
                }
            }
        }
        homeless.extend(ranges.iter().filter(|range| !is_small(range)));
        self.write_straight(&homeless)
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
    pub(super) fn write_page(
        &self,
        at: u64,
        index: u64,
        a: usize,
        data: &[u8],
    ) -> Result<bool, StorageError> {
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
}
