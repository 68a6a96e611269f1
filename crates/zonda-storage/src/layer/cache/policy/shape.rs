//! How large the pages of a cache are, and how many there are: what a spec says, or what follows from what is known of
//! the file.

use crate::BLOCK_BYTES;
use crate::storage::Advice;
use crate::tuning::{
    AT_FIRST_BYTES, LEAST_PAGE_BYTES, LEAST_PAGES, MOST_PAGE_BYTES, PAGES_TOGETHER,
    PIECES_PER_PAGE, READ_STRAIGHT_BYTES,
};
use std::fmt;

/// The largest page, in bytes.
pub(crate) const MAX_PAGE_BYTES: u64 = 1 << 30;
/// The largest cache, in bytes.
pub(crate) const MAX_CACHE_BYTES: u64 = 64 << 30;
/// The most pages: what a table of moderate size can find.
pub(crate) const MAX_PAGES: u64 = 1 << 20;

/// Page size and number of pages of a [`Cache`](super::super::Cache).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShape {
    pub(crate) page_bytes: u64,
    /// The most pages.
    pub(crate) pages: u64,
    /// Pages it makes do with until it turns out to need more; `pages` where the size was asked for.
    pub(crate) at_first: u64,
    /// Whether its pages count as memory of the process (`ZONDA_MEMORY`).
    pub(crate) within_budget: bool,
    /// Reads and writes of at least so many bytes go past its pages.
    pub(crate) straight: StraightSizes,
}

/// From which length on requests go straight to what is below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StraightSizes {
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
}

impl StraightSizes {
    /// A page saves no call to one who has as much in hand.
    pub(crate) fn of_pages(page_bytes: u64) -> StraightSizes {
        StraightSizes { read_bytes: page_bytes.min(READ_STRAIGHT_BYTES), write_bytes: page_bytes }
    }
}

impl CacheShape {
    /// `pages` pages of `blocks` * 4096 bytes; `None` outside the range that a spec accepts.
    #[must_use]
    pub fn new(blocks: u64, pages: u64) -> Option<CacheShape> {
        let page_bytes = blocks.checked_mul(BLOCK_BYTES)?;
        let shape = CacheShape::sized(page_bytes, pages);
        let total = page_bytes.checked_mul(pages)?;
        let page_fits = (BLOCK_BYTES..=MAX_PAGE_BYTES).contains(&page_bytes);
        (page_fits && (1..=MAX_PAGES).contains(&pages) && total <= MAX_CACHE_BYTES).then_some(shape)
    }

    /// `pages` pages of `page_bytes`, whatever memory there is.
    pub(crate) fn sized(page_bytes: u64, pages: u64) -> CacheShape {
        let straight = StraightSizes::of_pages(page_bytes);
        CacheShape { page_bytes, pages, at_first: pages, within_budget: false, straight }
    }

    /// The shape for what was said about a file, within the memory of the process. As the rules of thumb of 1995 have it,
    /// there is a page for each part of a record that is worked on side by side, and room for a whole record.
    pub(crate) fn of_file(advice: Advice) -> CacheShape {
        let together = advice.record_bytes.max(advice.file_bytes) / PAGES_TOGETHER;
        let part_bytes = match advice.n_record_parts {
            0 | 1 => MOST_PAGE_BYTES,
            n => advice.record_bytes / n,
        };
        let wanted = together.min(part_bytes.saturating_mul(PIECES_PER_PAGE));
        let page_bytes = wanted.clamp(LEAST_PAGE_BYTES, MOST_PAGE_BYTES).next_power_of_two();
        // A record, and what lies around it.
        let record_pages = advice.record_bytes.div_ceil(page_bytes);
        let wanted = (record_pages + record_pages / 4 + LEAST_PAGES).max(advice.n_record_parts);
        let pages = MAX_CACHE_BYTES / page_bytes;
        let at_first = wanted.max(AT_FIRST_BYTES / page_bytes).min(pages);
        CacheShape { at_first, within_budget: true, ..CacheShape::sized(page_bytes, pages) }
    }

    /// The most bytes that may be in pages, if the process has `budget` bytes.
    pub(crate) fn most_bytes(&self, budget: impl FnOnce() -> u64) -> u64 {
        let all = self.pages * self.page_bytes;
        if self.within_budget { all.min(budget()) } else { all }
    }
}

impl fmt::Display for CacheShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cache:{}:{}", self.page_bytes / BLOCK_BYTES, self.pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    #[test]
    fn what_a_spec_accepts() {
        for (blocks, pages, expected) in [
            (1, 1, true),
            (0, 1, false),
            (1, 0, false),
            (1 << 18, 64, true),
            (1 << 18, 65, false),
            ((1 << 18) + 1, 1, false),
            (1, 1 << 20, true),
            (1, (1 << 20) + 1, false),
            (u64::MAX, 1, false),
        ] {
            assert_eq!(CacheShape::new(blocks, pages).is_some(), expected, "{blocks} {pages}");
        }
    }

    #[test]
    fn the_size_follows_from_what_is_worked_on_together() {
        // Bytes of a record, its parts, bytes of the file: page size, pages at first.
        for (record_bytes, n_record_parts, file_bytes, page, at_first) in [
            // Nothing is known.
            (0, 0, 0, 16 * KIB, 2048),
            // A file without records.
            (0, 0, 64 * MIB, 256 * KIB, 128),
            (0, 0, MIB, 32 * KIB, 1024),
            // A record of one variable, of a few, of many small ones.
            (20 * MIB, 1, 0, 256 * KIB, 128),
            (20 * MIB, 20, 0, 256 * KIB, 128),
            (MIB, 16 * KIB, 0, 16 * KIB, 16 * KIB),
            // The record decides how many there are: itself, a quarter more, and some.
            (100 * MIB, 10, 0, 256 * KIB, 400 + 100 + 16),
            (u64::MAX, 1, u64::MAX, 256 * KIB, 64 * 1024 * 4),
        ] {
            let advice = Advice { record_bytes, n_record_parts, file_bytes };
            let shape = CacheShape::of_file(advice);
            assert_eq!((shape.page_bytes, shape.at_first), (page, at_first), "{advice:?}");
            assert_eq!(shape.pages * shape.page_bytes, MAX_CACHE_BYTES);
            assert!(shape.within_budget && shape.straight == StraightSizes::of_pages(page));
        }
    }

    #[test]
    fn what_goes_straight_and_how_much_there_is() {
        for (page, read, write) in [
            (4 * KIB, 4 * KIB, 4 * KIB),
            (16 * KIB, 16 * KIB, 16 * KIB),
            (256 * KIB, 16 * KIB, 256 * KIB),
        ] {
            let expected = StraightSizes { read_bytes: read, write_bytes: write };
            assert_eq!(CacheShape::sized(page, 10).straight, expected, "{page}");
        }
        let named = CacheShape::sized(4 * KIB, 10);
        let within = CacheShape { within_budget: true, ..named };
        assert_eq!(named.most_bytes(|| 7), 40 * KIB);
        assert_eq!((within.most_bytes(|| 7), within.most_bytes(|| MIB)), (7, 40 * KIB));
    }
}
