//! Which bytes of a page are meant: ascending, disjoint, non-touching half-open ranges.
//!
//! Of very many ranges there is a flag for each byte instead: a place among them is found without moving
//! those behind it, in an eighth of the page's memory.

use crate::tuning::MOST_PAGE_RANGES;

/// A set of byte ranges inside one page.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageExtents {
    /// The ranges; none where there are flags.
    ranges: Vec<(u32, u32)>,
    /// Where the last insertion was: the next is often the one after it.
    finger: usize,
    flags: Option<Box<ByteFlags>>,
}

impl PageExtents {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.flags.is_none()
    }

    /// Whether there are so many separate ranges.
    pub(crate) fn has_ranges(&self, n: usize) -> bool {
        match &self.flags {
            None => self.ranges.len() == n,
            Some(_) => self.iter().take(n + 1).count() == n,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        self.flags = None;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.iter_from(0)
    }

    /// The ranges that end behind byte `from`, whole or (of flags) from there on.
    fn iter_from(&self, from: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let first = self.ranges.partition_point(|r| r.1 as usize <= from);
        let ranges = self.ranges[first..].iter().map(|r| (r.0 as usize, r.1 as usize));
        let mut at = from;
        let flags = std::iter::from_fn(move || {
            let run = self.flags.as_ref()?.run_from(at)?;
            at = run.1;
            Some(run)
        });
        ranges.chain(flags)
    }

    /// The end of the last range, 0 when empty.
    pub(crate) fn end(&self) -> usize {
        match &self.flags {
            None => self.ranges.last().map_or(0, |r| r.1 as usize),
            Some(flags) => flags.end,
        }
    }

    /// Whether all of `a..b` is in the set.
    #[inline(always)]
    pub(crate) fn covers(&self, a: usize, b: usize) -> bool {
        match self.ranges[..] {
            [only] => (only.0 as usize <= a && b <= only.1 as usize) || a >= b,
            _ => self.covers_in_some(a, b),
        }
    }

    /// The same, of any number of ranges.
    fn covers_in_some(&self, a: usize, b: usize) -> bool {
        if let Some(flags) = &self.flags {
            return a >= b || flags.run_from(a).is_some_and(|run| run.0 == a && run.1 >= b);
        }
        let i = self.ranges.partition_point(|r| (r.1 as usize) < b);
        a >= b || self.ranges.get(i).is_some_and(|r| r.0 as usize <= a)
    }

    /// Whether the set is the one range `a..b`.
    #[inline]
    pub(crate) fn is_one(&self, a: usize, b: usize) -> bool {
        matches!(self.ranges[..], [only] if only.0 as usize == a && only.1 as usize == b)
    }

    /// Adds `a..b`. A page is shorter than 4 GiB, so positions fit 32 bits.
    #[inline]
    pub(crate) fn insert(&mut self, a: usize, b: usize) {
        let (a, b) = (a as u32, b as u32);
        if a >= b {
            return;
        }
        match self.ranges.last_mut() {
            // Writing on from the last range, or again inside it, is what nearly all calls do.
            Some(last) if last.0 <= a && a <= last.1 => last.1 = last.1.max(b),
            Some(last) if a <= last.1 => self.insert_inside(a, b),
            None if self.flags.is_some() => self.set_flags(a, b),
            _ => self.add(self.ranges.len(), a, b),
        }
    }

    fn insert_inside(&mut self, a: u32, b: u32) {
        let i = self.place_of(a);
        self.finger = i;
        // Nearly always at most two ranges are met: one that this one follows, one that follows it.
        let n = self.ranges[i..].iter().take_while(|r| r.0 <= b).count();
        match n {
            0 => self.add(i, a, b),
            1 => {
                let met = &mut self.ranges[i];
                *met = (a.min(met.0), b.max(met.1));
            }
            _ => {
                self.ranges[i] = (a.min(self.ranges[i].0), b.max(self.ranges[i + n - 1].1));
                self.ranges.drain(i + 1..i + n);
            }
        }
    }

    /// Adds a range that meets no other, as the one numbered `i`.
    fn add(&mut self, i: usize, a: u32, b: u32) {
        if self.ranges.len() < MOST_PAGE_RANGES {
            self.ranges.insert(i, (a, b));
        } else {
            self.make_flags(a, b);
        }
    }

    /// Turns the ranges into flags, `a..b` among them.
    #[cold]
    fn make_flags(&mut self, a: u32, b: u32) {
        let mut flags = Box::<ByteFlags>::default();
        for (a, b) in self.ranges.drain(..) {
            flags.set(a as usize, b as usize);
        }
        self.flags = Some(flags);
        self.set_flags(a, b);
    }

    fn set_flags(&mut self, a: u32, b: u32) {
        let Some(flags) = &mut self.flags else { return };
        flags.set(a as usize, b as usize);
        self.leave_flags();
    }

    /// Goes back from flags to a range where they are one.
    fn leave_flags(&mut self) {
        let Some(flags) = &self.flags else { return };
        if flags.n_set == 0 {
            self.flags = None;
        } else if flags.n_set == flags.end - flags.begin {
            self.ranges.push((flags.begin as u32, flags.end as u32));
            self.flags = None;
        }
    }

    /// The first range that ends at `a` or behind it.
    fn place_of(&self, a: u32) -> usize {
        for i in [self.finger, self.finger + 1] {
            let before =
                i.checked_sub(1).is_none_or(|j| self.ranges.get(j).is_some_and(|r| r.1 < a));
            if before && self.ranges.get(i).is_some_and(|r| r.1 >= a) {
                return i;
            }
        }
        self.ranges.partition_point(|r| r.1 < a)
    }

    /// Removes everything from `end` on.
    pub(crate) fn truncate(&mut self, end: usize) {
        if let Some(flags) = &mut self.flags {
            flags.truncate(end);
            self.leave_flags();
            return;
        }
        let end = end as u32;
        let keep = self.ranges.partition_point(|r| r.0 < end);
        self.ranges.truncate(keep);
        if let Some(last) = self.ranges.last_mut() {
            last.1 = last.1.min(end);
        }
    }

    /// The first byte of `a..b` that is not in the set.
    pub(crate) fn first_gap(&self, a: usize, b: usize) -> Option<usize> {
        self.gaps(a, b).first().map(|gap| gap.0)
    }

    /// What of `a..b` is not in the set.
    pub(crate) fn gaps(&self, a: usize, b: usize) -> Vec<(usize, usize)> {
        let mut gaps = Vec::new();
        let mut from = a;
        for (begin, end) in self.iter_from(a).take_while(|r| r.0 < b) {
            if from < begin {
                gaps.push((from, begin));
            }
            from = from.max(end);
        }
        if from < b {
            gaps.push((from, b));
        }
        gaps
    }
}

/// A flag for each byte.
#[derive(Debug, Clone)]
struct ByteFlags {
    /// As far as there are any, the lowest bit of a word first.
    words: Vec<u64>,
    n_set: usize,
    /// The first byte that is set, and the one after the last. Some byte is.
    begin: usize,
    end: usize,
}

impl Default for ByteFlags {
    fn default() -> ByteFlags {
        ByteFlags { words: Vec::new(), n_set: 0, begin: usize::MAX, end: 0 }
    }
}

impl ByteFlags {
    fn set(&mut self, a: usize, b: usize) {
        if self.words.len() < b.div_ceil(64) {
            self.words.resize(b.div_ceil(64), 0);
        }
        self.begin = self.begin.min(a);
        self.end = self.end.max(b);
        for word in a / 64..b.div_ceil(64) {
            let low = a.saturating_sub(word * 64);
            let high = (b - word * 64).min(64);
            let mask = (u64::MAX << low) & (u64::MAX >> (64 - high));
            self.n_set += (mask & !self.words[word]).count_ones() as usize;
            self.words[word] |= mask;
        }
    }

    /// The next byte from `at` on that is set, or is not.
    fn next(&self, at: usize, set: bool) -> Option<usize> {
        let flip = if set { 0 } else { u64::MAX };
        let mut mask = u64::MAX << (at % 64);
        for (n, word) in self.words.iter().enumerate().skip(at / 64) {
            let found = (word ^ flip) & mask;
            if found != 0 {
                return Some(n * 64 + found.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// The next range from `at` on.
    fn run_from(&self, at: usize) -> Option<(usize, usize)> {
        let begin = self.next(at, true)?;
        Some((begin, self.next(begin, false).unwrap_or(self.end)))
    }

    fn truncate(&mut self, end: usize) {
        self.words.truncate(end.div_ceil(64));
        if let Some(last) = self.words.get_mut(end / 64) {
            *last &= !(u64::MAX << (end % 64));
        }
        self.n_set = self.words.iter().map(|word| word.count_ones() as usize).sum();
        let last = self.words.iter().rposition(|word| *word != 0);
        self.end = last.map_or(0, |n| n * 64 + 64 - self.words[n].leading_zeros() as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::PageExtents;
    use proptest::prelude::*;

    /// More ranges than are kept as ranges, in either order, and what becomes of them.
    #[test]
    fn very_many_ranges_are_flags_and_one_is_a_range_again() {
        const N: usize = 3 * super::MOST_PAGE_RANGES;
        let place = |i: usize| 3 * (i * 7 % N);
        let mut set = PageExtents::default();
        (0..N).for_each(|i| set.insert(place(i), place(i) + 1));
        assert!(set.flags.is_some() && set.has_ranges(N) && !set.has_ranges(N - 1));
        assert!(set.iter().eq((0..N).map(|i| (3 * i, 3 * i + 1))));
        assert_eq!((set.end(), set.first_gap(3, 9)), (3 * N - 2, Some(4)));
        assert!(set.covers(6, 7) && !set.covers(6, 8) && !set.covers(7, 9) && set.covers(8, 8));
        assert_eq!(set.gaps(2, 7), [(2, 3), (4, 6)]);
        let mut cut = set.clone();
        cut.truncate(3 * 100 + 1);
        assert!(cut.has_ranges(101) && cut.end() == 301);
        cut.truncate(1);
        assert!(cut.is_one(0, 1) && cut.flags.is_none());
        let mut none = set.clone();
        none.truncate(0);
        assert!(none.is_empty() && none.end() == 0);
        for i in (0..N).rev() {
            assert!(set.flags.is_some());
            set.insert(place(i), place(i) + 3);
        }
        assert!(set.is_one(0, 3 * N) && set.flags.is_none());
    }

    proptest! {
        /// Every operation against one flag per byte.
        #[test]
        fn agrees_with_flags(
            steps in prop::collection::vec((0_usize..64, 0_usize..24, 0..8), 1..60),
            many in any::<bool>(),
        ) {
            let mut set = PageExtents::default();
            let mut flags = [false; 96];
            if many {
                // As with very many ranges.
                set.insert(93, 94);
                set.make_flags(95, 96);
                (flags[93], flags[95]) = (true, true);
            }
            for (a, len, what) in steps {
                let b = a + len;
                if what == 0 {
                    set.truncate(a);
                    flags[a..].fill(false);
                } else {
                    set.insert(a, b);
                    flags[a..b].fill(true);
                }
                let mut seen = [false; 96];
                let mut before = None;
                for (begin, end) in set.iter() {
                    prop_assert!(begin < end && before.is_none_or(|b| b < begin));
                    before = Some(end);
                    seen[begin..end].fill(true);
                }
                prop_assert_eq!(seen, flags);
                prop_assert_eq!(set.covers(a, b), flags[a..b].iter().all(|f| *f));
                let mut holes = [false; 96];
                for (begin, end) in set.gaps(a, b) {
                    holes[begin..end].fill(true);
                }
                for i in a..b {
                    prop_assert_eq!(holes[i], !flags[i]);
                }
                prop_assert_eq!(set.end(), flags.iter().rposition(|f| *f).map_or(0, |i| i + 1));
            }
        }
    }
}
