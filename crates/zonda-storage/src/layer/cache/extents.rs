//! Which bytes of a page are meant: ascending, disjoint, non-touching half-open ranges.

/// A set of byte ranges inside one page.
#[derive(Debug, Clone, Default)]
pub(super) struct Extents {
    ranges: Vec<(u32, u32)>,
    /// Where the last insertion was: the next is often the one after it.
    finger: usize,
}

impl Extents {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many separate ranges there are.
    pub(super) fn count(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.ranges.iter().map(|r| (r.0 as usize, r.1 as usize))
    }

    /// The end of the last range, 0 when empty.
    pub(super) fn end(&self) -> usize {
        self.ranges.last().map_or(0, |r| r.1 as usize)
    }

    /// Whether all of `a..b` is in the set.
    #[inline]
    pub(super) fn covers(&self, a: usize, b: usize) -> bool {
        if let [only] = self.ranges[..] {
            return (only.0 as usize <= a && b <= only.1 as usize) || a >= b;
        }
        let i = self.ranges.partition_point(|r| (r.1 as usize) < b);
        a >= b || self.ranges.get(i).is_some_and(|r| r.0 as usize <= a)
    }

    /// Whether the set is the one range `a..b`.
    #[inline]
    pub(super) fn is_one(&self, a: usize, b: usize) -> bool {
        matches!(self.ranges[..], [only] if only.0 as usize == a && only.1 as usize == b)
    }

    /// Adds `a..b`. A page is shorter than 4 GiB, so positions fit 32 bits.
    #[inline]
    pub(super) fn insert(&mut self, a: usize, b: usize) {
        let (a, b) = (a as u32, b as u32);
        if a >= b {
            return;
        }
        match self.ranges.last_mut() {
            // Writing on from the last range, or again inside it, is what nearly all calls do.
            Some(last) if last.0 <= a && a <= last.1 => last.1 = last.1.max(b),
            Some(last) if a <= last.1 => self.insert_inside(a, b),
            _ => self.ranges.push((a, b)),
        }
    }

    fn insert_inside(&mut self, a: u32, b: u32) {
        let i = self.place_of(a);
        self.finger = i;
        // Nearly always at most two ranges are met: one that this one follows, one that follows it.
        let n = self.ranges[i..].iter().take_while(|r| r.0 <= b).count();
        match n {
            0 => self.ranges.insert(i, (a, b)),
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
    pub(super) fn truncate(&mut self, end: usize) {
        let end = end as u32;
        let keep = self.ranges.partition_point(|r| r.0 < end);
        self.ranges.truncate(keep);
        if let Some(last) = self.ranges.last_mut() {
            last.1 = last.1.min(end);
        }
    }

    /// The first byte of `a..b` that is not in the set.
    pub(super) fn first_gap(&self, a: usize, b: usize) -> Option<usize> {
        self.gaps(a, b).first().map(|gap| gap.0)
    }

    /// What of `a..b` is not in the set.
    pub(super) fn gaps(&self, a: usize, b: usize) -> Vec<(usize, usize)> {
        let mut gaps = Vec::new();
        let mut from = a;
        for (begin, end) in self.iter().skip_while(|r| r.1 <= a).take_while(|r| r.0 < b) {
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

#[cfg(test)]
mod tests {
    use super::Extents;
    use proptest::prelude::*;

    proptest! {
        /// Every operation against one flag per byte.
        #[test]
        fn agrees_with_flags(steps in prop::collection::vec((0_usize..64, 0_usize..24, 0..8), 1..60)) {
            let mut set = Extents::default();
            let mut flags = [false; 96];
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
