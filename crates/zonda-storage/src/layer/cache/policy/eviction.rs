//! Which page is evicted: first those that nobody is expected to use again, then the longest unused.

use super::super::pages::NO_PAGE;
use crate::tuning::REMEMBERED_EVICTIONS;
use std::collections::BTreeSet;

/// The stamp of a page that is not expected to be used again.
pub(crate) const COLD: u64 = 0;

/// Slots whose pages may be evicted, by the time of their last use. A thread that evicts a page takes its slot out first,
/// so no two threads evict the same one.
///
/// A use of a page sets the stamp in its slot and nothing here. So a stamp here may be older than the slot's own, but is
/// never newer. A slot that turns out to have been used since is put back with its own stamp.
#[derive(Debug, Default)]
pub(crate) struct EvictionOrder {
    slots: BTreeSet<(u64, u32)>,
    /// The stamp that each slot was put in with last.
    stamps: Vec<u64>,
}

impl EvictionOrder {
    /// Puts slot `id` in.
    pub(crate) fn enter(&mut self, id: u32, stamp: u64) {
        let place = id as usize;
        if self.stamps.len() <= place {
            self.stamps.resize(place + 1, COLD);
        }
        self.stamps[place] = stamp;
        self.slots.insert((stamp, id));
    }

    /// Makes slot `id` the next to be taken; false if another thread is taking it.
    pub(crate) fn cool(&mut self, id: u32) -> bool {
        let is_here = self.stamps.get(id as usize).is_some_and(|at| self.slots.remove(&(*at, id)));
        if is_here {
            self.enter(id, COLD);
        }
        is_here
    }

    /// Takes slot `id` out.
    pub(crate) fn remove(&mut self, id: u32) {
        if let Some(stamp) = self.stamps.get(id as usize) {
            self.slots.remove(&(*stamp, id));
        }
    }

    /// Takes out the slot longest unused. `stamp` says when each was used.
    pub(crate) fn take_oldest(&mut self, stamp: impl Fn(u32) -> u64) -> Option<u32> {
        while let Some((known, id)) = self.slots.pop_first() {
            let now = stamp(id);
            if now == known {
                return Some(id);
            }
            self.enter(id, now);
        }
        None
    }

    /// Takes out a slot that is not expected to be used again, was not, and need not be written.
    pub(crate) fn take_cold(
        &mut self,
        stamp: impl Fn(u32) -> u64,
        is_dirty: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        while let Some((COLD, id)) = self.slots.first().copied() {
            self.slots.pop_first();
            let now = stamp(id);
            if now == COLD && !is_dirty(id) {
                return Some(id);
            }
            self.enter(id, now.max(COLD + 1));
        }
        None
    }

    /// Slots from the longest unused on, as far as that is known here.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().map(|(_, id)| *id)
    }

    /// The stamp of the longest unused, as far as that is known here.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.slots.first().map(|(stamp, _)| *stamp)
    }
}

/// Pages that were evicted not long ago, by a hash of their index; newer ones take the place of older ones. A page that is
/// asked for again soon after shows that the cache is too small.
#[derive(Debug, Default)]
pub(crate) struct RecentlyEvicted(Vec<u64>);

impl RecentlyEvicted {
    fn place(index: u64) -> usize {
        (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize % REMEMBERED_EVICTIONS
    }

    /// Remembers that page `index` was evicted. Without memory for the table nothing is remembered.
    pub(crate) fn note(&mut self, index: u64) {
        if self.0.is_empty() && self.0.try_reserve_exact(REMEMBERED_EVICTIONS).is_ok() {
            self.0.resize(REMEMBERED_EVICTIONS, NO_PAGE);
        }
        if let Some(known) = self.0.get_mut(Self::place(index)) {
            *known = index;
        }
    }

    /// Whether page `index` was evicted not long ago; forgets it.
    pub(crate) fn take(&mut self, index: u64) -> bool {
        let Some(known) = self.0.get_mut(Self::place(index)) else { return false };
        let had_to_leave = *known == index;
        if had_to_leave {
            *known = NO_PAGE;
        }
        had_to_leave
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An order of slots 0, 1, ... with these stamps, and which of them leave until none is left. What was used since
    /// leaves last.
    #[test]
    fn the_longest_unused_leaves_first() {
        // Stamps when they came, stamps since, who was made cold, and who leaves.
        type Row<'a> = (&'a [u64], &'a [u64], &'a [u32], &'a [u32]);
        let rows: [Row<'_>; 6] = [
            (&[2, 4, 6], &[2, 4, 6], &[], &[0, 1, 2]),
            (&[6, 2, 4], &[6, 2, 4], &[], &[1, 2, 0]),
            (&[2, 4, 6], &[7, 4, 6], &[], &[1, 2, 0]),
            (&[2, 4, 6], &[7, 5, 9], &[], &[1, 0, 2]),
            (&[2, 4, 6], &[2, 4, COLD], &[2], &[2, 0, 1]),
            // Cold, and used all the same.
            (&[2, 4, 6], &[2, 4, 7], &[2], &[0, 1, 2]),
        ];
        for (came, used, cold, expected) in rows {
            let mut order = EvictionOrder::default();
            (0..).zip(came).for_each(|(id, stamp)| order.enter(id, *stamp));
            assert!(cold.iter().all(|id| order.cool(*id)));
            let take = |_| order.take_oldest(|id| used[id as usize]);
            let left: Vec<u32> = (0..came.len()).filter_map(take).collect();
            assert_eq!(left, expected, "{came:?} {used:?} {cold:?}");
            assert_eq!(order.oldest(), None);
        }
    }

    #[test]
    fn who_is_cold_leaves_early_unless_used_or_dirty() {
        for (used, is_dirty, expected) in
            [(COLD, false, Some(1)), (COLD, true, None), (9, false, None)]
        {
            let mut order = EvictionOrder::default();
            order.enter(0, 2);
            order.enter(1, 4);
            let stamps = [2, used];
            let take = |order: &mut EvictionOrder| {
                order.take_cold(|id| stamps[id as usize], |id| is_dirty && id == 1)
            };
            assert_eq!(take(&mut order), None, "nobody is cold");
            assert!(order.cool(1));
            assert_eq!(take(&mut order), expected, "{used} {is_dirty}");
            assert_eq!(order.iter().count(), 2 - usize::from(expected.is_some()));
        }
    }

    #[test]
    fn who_is_being_taken_is_not_made_cold() {
        let mut order = EvictionOrder::default();
        order.enter(3, 8);
        assert_eq!(order.take_oldest(|_| 8), Some(3));
        assert!(!order.cool(3) && !order.cool(77));
        order.enter(3, 8);
        order.remove(3);
        assert!(order.iter().next().is_none() && !order.cool(3));
    }

    #[test]
    fn who_had_to_leave_is_known_once() {
        let mut left = RecentlyEvicted::default();
        assert!(!left.take(5));
        left.note(5);
        left.note(6);
        assert!(left.take(5) && !left.take(5) && left.take(6) && !left.take(7));
    }
}
