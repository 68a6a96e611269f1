//! How long calls to the storage below take, and how often reads come back to the same pages. All threads that use a cache count
//! together, without locks: of two updates at once one is lost, which does no harm. What follows from the numbers is in `policy`.

use super::policy::{CallKind, PaceScore, Returns};
use crate::sync::worker;
use crate::tuning::{JUDGED_CALL_BYTES, JUDGED_CALL_RANGES};
// Nothing but speed depends on these: no model need try their orders.
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// How long the calls of one kind take.
#[derive(Debug, Default)]
pub(crate) struct CallPace {
    slow: AtomicU32,
    watched: AtomicU32,
    /// Calls that are under way, of those that ask whether they are alone.
    n_under_way: AtomicU32,
}

/// Counts a call as under way until it is dropped.
struct UnderWay<'a>(&'a AtomicU32);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CallPace {
    /// Makes a call that moves `bytes` bytes, and notes how long it took.
    #[inline]
    pub(crate) fn time<T>(&self, bytes: usize, call: impl FnOnce() -> T) -> T {
        self.time_pieces(1, bytes, call)
    }

    /// As [`CallPace::time`], for bytes in `n_pieces` separate ranges.
    #[inline]
    pub(crate) fn time_pieces<T>(
        &self,
        n_pieces: usize,
        bytes: usize,
        call: impl FnOnce() -> T,
    ) -> T {
        self.time_if(n_pieces, bytes, call, || true)
    }

    /// The same, where `counts` says after the call whether it tells something.
    #[inline]
    fn time_if<T>(
        &self,
        n_pieces: usize,
        bytes: usize,
        call: impl FnOnce() -> T,
        counts: impl FnOnce() -> bool,
    ) -> T {
        let tells = bytes <= JUDGED_CALL_BYTES && n_pieces <= JUDGED_CALL_RANGES;
        let is_watched = tells && self.watched.load(Ordering::Relaxed) > 0;
        let before = if is_watched { worker::waits() } else { None };
        let begin = Instant::now();
        let done = call();
        if tells && counts() {
            let took = begin.elapsed();
            let has_waited = before.map(|before| worker::waits() != Some(before));
            self.note(CallKind::of(n_pieces, bytes, took, has_waited));
        }
        done
    }

    /// As [`CallPace::time`], for writes. One that begins or ends beside others says nothing of the device: a file system may let one at a
    /// time write to a file, so it may have waited for these.
    pub(crate) fn time_alone<T>(&self, bytes: usize, call: impl FnOnce() -> T) -> T {
        let is_first = self.n_under_way.fetch_add(1, Ordering::Relaxed) == 0;
        let _under_way = UnderWay(&self.n_under_way);
        if !is_first {
            return call();
        }
        self.time_if(1, bytes, call, || self.n_under_way.load(Ordering::Relaxed) == 1)
    }

    fn note(&self, call: CallKind) {
        let (slow, watched) = (&self.slow, &self.watched);
        let before = PaceScore {
            slow: slow.load(Ordering::Relaxed),
            watched: watched.load(Ordering::Relaxed),
        };
        let after = before.after(call);
        slow.store(after.slow, Ordering::Relaxed);
        watched.store(after.watched, Ordering::Relaxed);
    }

    /// Whether calls take long.
    #[inline]
    pub(crate) fn is_slow(&self) -> bool {
        PaceScore::is_slow(self.slow.load(Ordering::Relaxed))
    }
}

/// How often reads come back to what was read before.
#[derive(Debug, Default)]
pub(crate) struct ReturnRate(AtomicU32);

impl ReturnRate {
    /// Notes a read, `again` if it came back, and says whether many reads do.
    pub(crate) fn note(&self, again: bool) -> bool {
        let after = Returns(self.0.load(Ordering::Relaxed)).after(again);
        self.0.store(after.0, Ordering::Relaxed);
        after.are_many()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Whether a write was judged that took longer than any fast one, while something else happens.
    fn is_judged(pace: &CallPace, meanwhile: impl FnOnce()) -> bool {
        pace.watched.store(0, Ordering::Relaxed);
        pace.time_alone(1, || {
            std::thread::sleep(Duration::from_millis(2));
            meanwhile();
        });
        pace.watched.load(Ordering::Relaxed) > 0
    }

    #[test]
    fn a_write_beside_another_says_nothing() {
        let pace = CallPace::default();
        // What another thread counts when it begins a write, and when that is over.
        let begins = || {
            pace.n_under_way.fetch_add(1, Ordering::Relaxed);
        };
        let ends = || {
            pace.n_under_way.fetch_sub(1, Ordering::Relaxed);
        };
        assert!(is_judged(&pace, || {}), "one alone tells");
        begins();
        assert!(!is_judged(&pace, || {}), "the other goes on");
        assert!(!is_judged(&pace, ends), "the other is over before it");
        assert!(!is_judged(&pace, begins), "the other began after it");
        ends();
        assert!(is_judged(&pace, || {}), "alone again");
        assert_eq!(pace.n_under_way.load(Ordering::Relaxed), 0);
    }
}
