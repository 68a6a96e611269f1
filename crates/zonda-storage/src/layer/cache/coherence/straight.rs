//! Straight writes: so much, or with so little room, that it goes past the pages. The rules are at the head of `coherence`.

use super::Cache;
use super::withheld::FillOwner;
use crate::StorageError;
use crate::storage::{Storage, WriteRange};
use crate::sync::atomic::Ordering;

impl<S: Storage> Cache<S> {
    /// Writes disjoint ranges, as far as they can past the pages.
    pub(super) fn write_straight(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        if ranges.is_empty() {
            return Ok(());
        }
        // What is taken from pages for this goes back when it does not come to be written.
        let holder = self.withheld.begin();
        let outcome = self.write_past(holder, ranges);
        match &outcome {
            Ok(()) => self.withheld.forget(holder),
            Err(_) => self.cover_again(holder),
        }
        outcome
    }

    fn write_past(&self, holder: FillOwner, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        let mut straight = Vec::new();
        for range in ranges {
            self.take_parts(holder, range, &mut straight)?;
        }
        if straight.is_empty() {
            return Ok(());
        }
        straight.sort_unstable_by_key(|range| range.at);
        self.note_handed_down(&straight);
        let bytes = straight.iter().map(|range| range.data.len()).sum();
        let outcome = self.writes.time_alone(bytes, || self.inner.write_ranges(&straight));
        match &outcome {
            Ok(()) => {
                self.withheld.written(Some(holder), &straight, self.shape.page_bytes);
                if let Some(last) = straight.last() {
                    self.extend_to(last.at + last.data.len() as u64);
                }
            }
            // What did land counts.
            Err(_) => {
                if let Ok(len) = self.inner.len() {
                    self.extend_to(len);
                }
            }
        }
        self.refresh(&straight);
        outcome
    }

    /// Gives pages that are there their part of `range`; what is left goes to `straight`.
    fn take_parts<'b>(
        &self,
        holder: FillOwner,
        range: &WriteRange<'b>,
        straight: &mut Vec<WriteRange<'b>>,
    ) -> Result<(), StorageError> {
        let end = range.at + range.data.len() as u64;
        let bytes = |x: u64, y: u64| &range.data[(x - range.at) as usize..(y - range.at) as usize];
        let mut from = range.at;
        for index in self.cached_in(range.at, range.data.len()) {
            let begin = self.base(index).max(range.at);
            let (_, a) = self.place(begin);
            let stop = (begin + (self.page_bytes() - a) as u64).min(end);
            // What only awaits its fill values need not pass through the page.
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
            straight.push(WriteRange { at: from, data: bytes(from, end) });
        }
        Ok(())
    }

    /// Pages of ranges that were written past them read anew what they have from below: they may have come in before that was
    /// there, or what is there was put by another write over this one.
    fn refresh(&self, written: &[WriteRange<'_>]) {
        for range in written {
            let (first, _) = self.place(range.at);
            let (last, _) = self.place(range.at + range.data.len() as u64 - 1);
            self.for_pages(first, last, |_, page| page.forget_read());
        }
    }

    /// Takes the fill values away that page `index` awaits at `a..b`, if it holds nothing else; false where
    /// it does.
    fn uncover(&self, holder: FillOwner, index: u64, a: usize, b: usize) -> bool {
        let Some(id) = self.table.lock().map.get(&index).copied() else { return false };
        let mut page = self.slot(id).write();
        if page.index != index {
            return false;
        }
        let Some(taken) = page.uncover(a, b) else { return false };
        self.withheld.add(holder, index, &taken);
        if page.is_clean() {
            self.mark_clean(id, &mut page);
        }
        true
    }

    /// After a write that failed: pages await the fill values again that it took from them, as far as no cut
    /// and nobody else's write came there meanwhile.
    fn cover_again(&self, holder: FillOwner) {
        for index in self.withheld.pages_of(holder) {
            // A page that finds no room would need another write on a device that refuses them.
            if let Ok(Some((id, mut page))) = self.acquire(index) {
                page.cover_again(&self.withheld.take(holder, index));
                if !page.is_clean() {
                    self.mark_dirty(self.slot(id));
                }
            }
        }
        self.withheld.abandon(holder);
    }

    /// Writes fill values below whose pages found no room.
    ///
    /// # Errors
    /// What the storage reports; they are kept then.
    pub(super) fn fill_abandoned(&self) -> Result<(), StorageError> {
        for index in self.withheld.pages_of(FillOwner::Nobody) {
            let base = self.base(index);
            let taken = self.withheld.take(FillOwner::Nobody, index);
            for (n, fill_run) in taken.iter().enumerate() {
                let fill = |from: usize, len: usize, element: &[u8]| {
                    self.below_to.fetch_max(base + (from + len) as u64, Ordering::AcqRel);
                    self.inner.fill_at(base + from as u64, len as u64, element)
                };
                if let Err(error) = fill_run.fill_by(fill) {
                    self.withheld.add(FillOwner::Nobody, index, &taken[n..]);
                    return Err(error);
                }
            }
            self.for_pages(index, index, |_, page| page.forget_read());
        }
        Ok(())
    }
}
