//! What was seen of the calls and reads of a cache, as its threads note it together. A note that another thread's passes is lost:
//! there will be more. What follows from it is in `policy`.

use super::policy::{Call, Returns, Score, TOLD_BY_BYTES, TOLD_BY_PIECES};
use crate::sync::worker;
// Nothing but speed depends on these: no model need try their orders.
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// How long the calls of one kind take.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    slow: AtomicU32,
    watched: AtomicU32,
}

impl Pace {
    /// Makes a call that moves so many bytes, and takes note of how it went.
    #[inline]
    pub(crate) fn time<T>(&self, bytes: usize, call: impl FnOnce() -> T) -> T {
        self.time_pieces(1, bytes, call)
    }

    /// As [`Pace::time`], where the bytes are so many pieces, apart from each other.
    #[inline]
    pub(crate) fn time_pieces<T>(
        &self,
        n_pieces: usize,
        bytes: usize,
        call: impl FnOnce() -> T,
    ) -> T {
        let tells = bytes <= TOLD_BY_BYTES && n_pieces <= TOLD_BY_PIECES;
        let is_watched = tells && self.watched.load(Ordering::Relaxed) > 0;
        let before = if is_watched { worker::waits() } else { None };
        let begin = Instant::now();
        let done = call();
        if tells {
            let took = begin.elapsed();
            let has_waited = before.map(|before| worker::waits() != Some(before));
            self.note(Call::of(n_pieces, bytes, took, has_waited));
        }
        done
    }

    fn note(&self, call: Call) {
        let (slow, watched) = (&self.slow, &self.watched);
        let before =
            Score { slow: slow.load(Ordering::Relaxed), watched: watched.load(Ordering::Relaxed) };
        let after = before.after(call);
        slow.store(after.slow, Ordering::Relaxed);
        watched.store(after.watched, Ordering::Relaxed);
    }

    /// Whether calls take long.
    #[inline]
    pub(crate) fn is_slow(&self) -> bool {
        Score::is_slow(self.slow.load(Ordering::Relaxed))
    }
}

/// How often reads come back.
#[derive(Debug, Default)]
pub(crate) struct ComeBack(AtomicU32);

impl ComeBack {
    /// Takes note of a read, and says whether many come back.
    pub(crate) fn note(&self, again: bool) -> bool {
        let after = Returns(self.0.load(Ordering::Relaxed)).after(again);
        self.0.store(after.0, Ordering::Relaxed);
        after.are_many()
    }
}
