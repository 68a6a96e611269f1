//! What is written when, and how much at a time.
//!
//! Pages that are complete leave in ascending order, in large pieces, while they are in the processor's cache; what is still
//! put together stays.

use super::shape::CacheShape;
use crate::tuning::{
    COMPLETE_RUN_BYTES, COMPLETE_RUN_PAGES, LONG_STREAM_BYTES, PAST_CACHE_BYTES,
    PAST_CACHE_LEAST_BYTES, RUN_PAGES, SLOW_AHEAD_BYTES, SLOW_RUN_BYTES, SLOW_STRAIGHT_BYTES,
    THREAD_RUN_BYTES,
};

/// From which length on writes go straight to what is below; `has_writer` where shorter ones are left to a thread.
pub(crate) fn straight_from(shape: &CacheShape, is_slow: bool, has_writer: bool) -> u64 {
    match has_writer && is_slow && shape.has_room() {
        true => shape.straight.write_bytes.max(SLOW_STRAIGHT_BYTES),
        false => shape.straight.write_bytes,
    }
}

/// Whether `len` bytes are copied past the processor's cache while so many bytes wait.
#[inline(always)]
pub(crate) fn is_past_cache(len: usize, waiting_bytes: impl FnOnce() -> u64) -> bool {
    len >= PAST_CACHE_LEAST_BYTES && waiting_bytes() > PAST_CACHE_BYTES
}

/// Whether so much was written in order that the copies are worth another core.
pub(crate) fn is_long_stream(streamed_bytes: u64) -> bool {
    streamed_bytes >= LONG_STREAM_BYTES
}

/// How complete pages that lie one after another are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteRun {
    /// Pages that make a large write.
    most: u64,
    /// The most pages by one call.
    pub(crate) pages: u64,
    /// The most pages that are ever waited for.
    patience: u64,
}

impl WriteRun {
    pub(crate) fn new(shape: &CacheShape, is_slow: bool) -> WriteRun {
        let bytes = if is_slow { SLOW_RUN_BYTES } else { COMPLETE_RUN_BYTES };
        let most = bytes.div_ceil(shape.page_bytes);
        // Of small pages a large write has more.
        WriteRun { most, pages: most.max(RUN_PAGES as u64), patience: shape.pages.div_ceil(4) * 3 }
    }

    /// How many pages, of which page `first` is the first, are enough to be written.
    pub(crate) fn enough(&self, first: u64) -> u64 {
        (first / 4).clamp(COMPLETE_RUN_PAGES.min(self.most), self.most).min(self.patience)
    }

    /// The most that a thread holds at a time, of a cache of `limit` pages: it does not keep more from its users than they
    /// can do without.
    pub(crate) fn of_thread(&self, page_bytes: u64, limit: u64) -> u64 {
        (limit / 4).min(THREAD_RUN_BYTES / page_bytes).clamp(1, self.pages)
    }
}

/// Whether a page that is not complete will hardly become so: one that was not used while many came, or the
/// first of the file, where a gap between header and data is usual (`is_gap`).
pub(crate) fn is_left_behind(index: u64, is_gap: bool, age: u64) -> bool {
    (index == 0 && is_gap) || age > 2 * RUN_PAGES as u64
}

impl CacheShape {
    /// Whether there is room for several blocks of what is read ahead or written behind.
    pub(crate) fn has_room(&self) -> bool {
        self.at_first * self.page_bytes >= 8 * SLOW_AHEAD_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    #[test]
    fn from_which_length_on_writes_go_straight() {
        for (page, pages, is_slow, has_writer, expected) in [
            (64 * KIB, 1024, false, false, 64 * KIB),
            (64 * KIB, 1024, false, true, 64 * KIB),
            (64 * KIB, 1024, true, false, 64 * KIB),
            (64 * KIB, 1024, true, true, 4 * MIB),
            // Too small to keep them.
            (64 * KIB, 127, true, true, 64 * KIB),
            (8 * MIB, 16, true, true, 8 * MIB),
        ] {
            let from = straight_from(&CacheShape::sized(page, pages), is_slow, has_writer);
            assert_eq!(from, expected, "{page} {pages} {is_slow} {has_writer}");
        }
    }

    #[test]
    fn how_many_complete_pages_are_written_together() {
        // Page size, pages, slow; the first page: how many are enough, how many are written by one call.
        for (page, pages, is_slow, first, enough, at_once) in [
            (4 * KIB, 1000, false, 0, 4, 64),
            (4 * KIB, 1000, false, 100, 25, 64),
            (4 * KIB, 1000, false, 1000, 64, 64),
            (4 * KIB, 1000, true, 10_000, 256, 256),
            (256 * KIB, 1000, false, 0, 1, 64),
            (256 * KIB, 1000, true, 0, 4, 64),
            (MIB, 1000, true, 50, 1, 64),
            // Of few pages not all are waited for.
            (4 * KIB, 4, false, 100, 3, 64),
            (4 * KIB, 2, false, 100, 3, 64),
            (4 * KIB, 16, false, 100, 12, 64),
        ] {
            let run = WriteRun::new(&CacheShape::sized(page, pages), is_slow);
            let what = format!("{page} {pages} {is_slow} {first}");
            assert_eq!((run.enough(first), run.pages), (enough, at_once), "{what}");
        }
    }

    #[test]
    fn how_many_pages_a_thread_holds() {
        for (page, limit, expected) in [
            (4 * KIB, 2, 1),
            (4 * KIB, 100, 25),
            (4 * KIB, 1000, 64),
            (MIB, 1000, 4),
            (64 * MIB, 1000, 1),
        ] {
            let run = WriteRun::new(&CacheShape::sized(page, 1000), false);
            assert_eq!(run.of_thread(page, limit), expected, "{page} {limit}");
        }
    }

    #[test]
    fn which_pages_are_not_waited_for() {
        for (index, is_gap, age, expected) in [
            (0, true, 0, true),
            (0, false, 0, false),
            (1, true, 0, false),
            (1, false, 128, false),
            (1, false, 129, true),
        ] {
            assert_eq!(is_left_behind(index, is_gap, age), expected, "{index} {is_gap} {age}");
        }
    }

    #[test]
    fn what_is_copied_past_the_processors_cache() {
        for (len, waiting, expected) in
            [(255, u64::MAX, false), (256, 4 * MIB, false), (256, 4 * MIB + 1, true)]
        {
            assert_eq!(is_past_cache(len, || waiting), expected, "{len} {waiting}");
        }
    }
}
