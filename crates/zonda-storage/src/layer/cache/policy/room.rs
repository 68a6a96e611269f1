//! How many pages a cache may have: at first what its shape says, and more when it turns out that it would use them.

use super::shape::CacheShape;
use crate::tuning::{LEAST_PAGES, ROOMY_TIMES};

/// Whether a cache may use one page more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageGrant {
    /// No: it has as many as it may have.
    No,
    /// Yes, and its pages do not count as memory of the process.
    Yes,
    /// Yes, even where the memory of the process is used up: it is one of its first few.
    First,
    /// Yes, if the process has memory left, or other caches have pages that were unused for longer.
    IfFound,
}

impl CacheShape {
    /// Whether it may come to have more pages than it has at first.
    pub(crate) fn can_grow(&self) -> bool {
        self.at_first < self.pages
    }

    /// What a cache that may have `limit` pages may have when a page is missed that had to leave: in a larger one
    /// it would still be there.
    pub(crate) fn after_return(&self, limit: u64) -> u64 {
        limit.max((limit + 1).min(self.pages))
    }

    /// The same for `n` pages more where each call takes long and those who use it jump about, so that they will come
    /// back.
    pub(crate) fn roomier(&self, limit: u64, n: u64) -> u64 {
        match self.can_grow() {
            true => limit.max((limit + n).min(self.at_first * ROOMY_TIMES).min(self.pages)),
            false => limit,
        }
    }

    /// For a cache that uses `used` pages.
    pub(crate) fn another(&self, used: u64, limit: u64) -> PageGrant {
        match () {
            () if used >= limit => PageGrant::No,
            () if !self.within_budget => PageGrant::Yes,
            () if used < LEAST_PAGES => PageGrant::First,
            () => PageGrant::IfFound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(at_first: u64, pages: u64, within_budget: bool) -> CacheShape {
        CacheShape { at_first, within_budget, ..CacheShape::sized(4096, pages) }
    }

    #[test]
    fn what_a_cache_may_come_to_have() {
        // Pages at first and at most; the limit now; after a return; with 1 and with 1000 more.
        for (at_first, pages, limit, after_return, one_more, many_more) in [
            (8, 8, 8, 8, 8, 8),
            (8, 100, 8, 9, 9, 32),
            (8, 100, 32, 33, 32, 32),
            (8, 20, 19, 20, 20, 20),
            (8, 20, 20, 20, 20, 20),
            // It has got more than it would be given now.
            (8, 100, 60, 61, 60, 60),
        ] {
            let shape = shape(at_first, pages, true);
            let may =
                (shape.after_return(limit), shape.roomier(limit, 1), shape.roomier(limit, 1000));
            assert_eq!(may, (after_return, one_more, many_more), "{at_first} {pages} {limit}");
        }
    }

    #[test]
    fn who_may_have_another_page() {
        use PageGrant::{First, IfFound, No, Yes};
        for (within_budget, used, limit, expected) in [
            (false, 0, 8, Yes),
            (false, 7, 8, Yes),
            (false, 8, 8, No),
            (true, 0, 100, First),
            (true, LEAST_PAGES - 1, 100, First),
            (true, LEAST_PAGES, 100, IfFound),
            (true, 100, 100, No),
            (true, 3, 3, No),
        ] {
            let another = shape(100, 1000, within_budget).another(used, limit);
            assert_eq!(another, expected, "{within_budget} {used} {limit}");
        }
    }
}
