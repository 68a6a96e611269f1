//! Whether regions lie on huge pages.
//!
//! A huge page is cleared in a fifth of the time of the pages that it stands for. But where the memory of the machine is in pieces the
//! kernel first moves others' pages out of the way, and a virtual machine may first have to get the page from its host: one has
//! been seen to take 4 ms, longer than all of its small pages. So the first touch of each is timed. After a slow one the rest of the region
//! does without, and so do the next regions, more of them each time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use crate::tuning::{HUGE_REGION_BYTES, SLOW_HUGE_PAGE};

/// Bytes of a huge page where pages have 4 KiB. Where they have others, the kernel takes what fits.
pub(super) const PAGE_BYTES: usize = 2 << 20;
/// Regions that do without after a slow page that came after a fast one, and after one slow page after the other, at most.
const LEAST_WITHOUT: u32 = 16;
const MOST_WITHOUT: u32 = 1024;

/// Regions that will do without, and how many will after the next slow page.
static WITHOUT: AtomicU32 = AtomicU32::new(0);
static NEXT_WITHOUT: AtomicU32 = AtomicU32::new(LEAST_WITHOUT);

/// Whether a region of so many bytes is to lie on huge pages.
pub(super) fn of_region(bytes: usize) -> bool {
    if bytes < HUGE_REGION_BYTES {
        return false;
    }
    let one_less = |left: u32| left.checked_sub(1);
    WITHOUT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err()
}

/// Touches a page for the first time by `touch`; whether that was fast enough for more of them.
pub(super) fn is_fast(touch: impl FnOnce()) -> bool {
    let from = Instant::now();
    touch();
    if from.elapsed() < SLOW_HUGE_PAGE {
        NEXT_WITHOUT.store(LEAST_WITHOUT, Ordering::Relaxed);
        return true;
    }
    let without = NEXT_WITHOUT.load(Ordering::Relaxed);
    NEXT_WITHOUT.store((without * 2).min(MOST_WITHOUT), Ordering::Relaxed);
    WITHOUT.store(without, Ordering::Relaxed);
    false
}
