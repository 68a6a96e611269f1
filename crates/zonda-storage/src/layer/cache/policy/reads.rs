//! How much is read at a time.
//!
//! A read that goes on where one ended is kept ahead of; a scattered one brings in a part of its page, and more each time it
//! comes back to it.

use super::shape::CacheShape;
use crate::tuning::{
    GRANULE_BYTES, GRANULE_DOUBLINGS, READ_AHEAD_BYTES, READ_OVER_BYTES, SLOW_AHEAD_BYTES,
};

/// How far a sequential reader is kept ahead of.
pub(crate) fn ahead_bytes(is_slow: bool) -> u64 {
    if is_slow { SLOW_AHEAD_BYTES } else { READ_AHEAD_BYTES }
}

/// Pages that are read ahead together where each call takes long.
pub(crate) fn block_pages(shape: &CacheShape) -> u64 {
    (SLOW_AHEAD_BYTES / shape.page_bytes).max(1)
}

/// Whether a read of `n` bytes, which are many, may go through pages, if it goes on or comes back; `may_go_ahead`
/// where there is room for more than what is asked for.
pub(crate) fn goes_by_pages(n: u64, is_slow: bool, may_go_ahead: impl FnOnce() -> bool) -> bool {
    is_slow && n < SLOW_AHEAD_BYTES && may_go_ahead()
}

/// Whether gaps of a page, which ascend, are read one by one: to read what lies between them, too, costs more.
pub(crate) fn is_read_apart(gaps: &[(usize, usize)]) -> bool {
    let between: usize = gaps.windows(2).map(|two| two[1].0 - two[0].1).sum();
    between as u64 > READ_OVER_BYTES * gaps.len() as u64
}

/// A read that found something missing in its page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Miss {
    /// It goes on where one ended.
    pub(crate) goes_on: bool,
    /// Calls of what is below take long.
    pub(crate) is_slow: bool,
    /// Scattered reads that missed something in this page before.
    pub(crate) before: u32,
    /// Scattered reads come back to their pages, and there is room for more than what is asked for.
    pub(crate) comes_back: bool,
}

/// What a miss brings in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissFill {
    /// The rest of the page, and pages after it.
    Ahead,
    /// The block of pages around it: a call for each part costs more than all there is, if all of it will be
    /// asked for.
    Block,
    /// What shares a granule of so many bytes with it.
    Granule(usize),
}

impl Miss {
    pub(crate) fn fill(&self) -> MissFill {
        match () {
            () if self.goes_on => MissFill::Ahead,
            () if self.is_slow && self.comes_back => MissFill::Block,
            () => MissFill::Granule(GRANULE_BYTES << self.before.min(GRANULE_DOUBLINGS)),
        }
    }
}

impl CacheShape {
    /// How many pages are read behind page `index`, whose end is at or before that of `len` bytes: of its block of
    /// `block` pages, or, without one, as far as a sequential reader is kept ahead of.
    pub(crate) fn pages_after(
        &self,
        index: u64,
        len: u64,
        block: Option<u64>,
        is_slow: bool,
    ) -> u64 {
        let wanted = match block {
            Some(n) => n - 1 - index % n,
            None => (ahead_bytes(is_slow) / self.page_bytes).max(1),
        };
        let there = (len - index * self.page_bytes).saturating_sub(1) / self.page_bytes;
        wanted.min(self.pages / 4).min(there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    #[test]
    fn what_a_miss_brings_in() {
        const G: usize = GRANULE_BYTES;
        use MissFill::{Ahead, Block, Granule};
        // Goes on, slow, misses before, comes back.
        for (goes_on, is_slow, before, comes_back, expected) in [
            (true, false, 0, false, Ahead),
            (true, true, 9, true, Ahead),
            (false, false, 0, false, Granule(G)),
            (false, false, 1, false, Granule(2 * G)),
            (false, false, 4, true, Granule(16 * G)),
            (false, false, u32::MAX, true, Granule(16 * G)),
            (false, true, 0, false, Granule(G)),
            (false, true, 0, true, Block),
        ] {
            let miss = Miss { goes_on, is_slow, before, comes_back };
            assert_eq!(miss.fill(), expected, "{miss:?}");
        }
    }

    #[test]
    fn how_many_pages_are_read_behind_one() {
        // Page size, pages of the cache, page, pages of the file, block, slow.
        for (page, pages, index, file, block, is_slow, expected) in [
            (16 * KIB, 1000, 0, 1000, None, false, 16),
            (16 * KIB, 1000, 0, 1000, None, true, 64),
            (1024 * KIB, 1000, 0, 1000, None, false, 1),
            (16 * KIB, 40, 0, 1000, None, false, 10),
            (16 * KIB, 3, 0, 1000, None, false, 0),
            (16 * KIB, 1000, 990, 1000, None, false, 9),
            (16 * KIB, 1000, 999, 1000, None, false, 0),
            (16 * KIB, 1000, 64, 1000, Some(64), true, 63),
            (16 * KIB, 1000, 100, 1000, Some(64), true, 27),
            (16 * KIB, 1000, 127, 1000, Some(64), true, 0),
        ] {
            let shape = CacheShape::sized(page, pages);
            let what = format!("{page} {pages} {index} {block:?} {is_slow}");
            assert_eq!(shape.pages_after(index, file * page, block, is_slow), expected, "{what}");
        }
    }

    #[test]
    fn which_gaps_are_read_one_by_one() {
        const OVER: usize = READ_OVER_BYTES as usize;
        for (gaps, expected) in [
            (&[][..], false),
            (&[(0, 1)], false),
            (&[(0, 1), (1 + 2 * OVER, 2 + 2 * OVER)], false),
            (&[(0, 1), (2 + 2 * OVER, 3 + 2 * OVER)], true),
            // Many small ones, of which one pair is far apart.
            (&[(0, 1), (2, 3), (4, 5), (5 + 3 * OVER, 9 * OVER)], false),
        ] {
            assert_eq!(is_read_apart(gaps), expected, "{gaps:?}");
        }
    }

    #[test]
    fn which_large_reads_may_go_through_pages() {
        for (n, is_slow, may_go_ahead, expected) in [
            (64 * KIB, true, true, true),
            (64 * KIB, false, true, false),
            (64 * KIB, true, false, false),
            (1024 * KIB - 1, true, true, true),
            (1024 * KIB, true, true, false),
        ] {
            assert_eq!(goes_by_pages(n, is_slow, || may_go_ahead), expected, "{n} {is_slow}");
        }
    }
}
