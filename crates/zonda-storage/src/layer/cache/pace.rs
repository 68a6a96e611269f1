//! Whether what is below takes long for each call, as a network or a disk does and the system's cache
//! does not. Only how much is moved at a time depends on it, never which bytes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What a call may take that the system answers from its memory, whatever else the machine does.
const FAST_CALL: Duration = Duration::from_micros(25);
/// The same for each byte: half of what one core copies.
const FAST_BYTES_PER_NS: u128 = 2;
/// Transfers longer than this say nothing about calls.
const TOLD_BY_BYTES: usize = 4 << 20;
/// So do calls that move more pieces than this: each of them may be a call of its own.
const TOLD_BY_PIECES: usize = 4;
/// A slow call counts as so many fast ones, so that now and then one is enough to stay slow.
const SLOW_WEIGHT: u32 = 4;
/// From this on it is slow: three slow calls together.
const SLOW_FROM: u32 = 12;
/// The most that is remembered.
const MOST: u32 = 24;

/// The calls of one kind.
#[derive(Debug, Default)]
pub(super) struct Pace(AtomicU32);

impl Pace {
    /// Makes a call that moves so many bytes, and takes note of its time.
    #[inline]
    pub(super) fn time<T>(&self, bytes: usize, call: impl FnOnce() -> T) -> T {
        self.time_pieces(1, bytes, call)
    }

    /// As [`Pace::time`], where the bytes are so many pieces, apart from each other.
    #[inline]
    pub(super) fn time_pieces<T>(
        &self,
        n_pieces: usize,
        bytes: usize,
        call: impl FnOnce() -> T,
    ) -> T {
        let begin = Instant::now();
        let done = call();
        if bytes <= TOLD_BY_BYTES && n_pieces <= TOLD_BY_PIECES {
            self.note(n_pieces, bytes, begin.elapsed());
        }
        done
    }

    fn note(&self, n_pieces: usize, bytes: usize, took: Duration) {
        let fast = FAST_CALL.as_nanos() * n_pieces as u128 + bytes as u128 / FAST_BYTES_PER_NS;
        let score = self.0.load(Ordering::Relaxed);
        let score = match took.as_nanos() > fast {
            true => (score + SLOW_WEIGHT).min(MOST),
            false => score.saturating_sub(1),
        };
        // Another thread's note may be lost: there will be more.
        self.0.store(score, Ordering::Relaxed);
    }

    /// Whether calls take long.
    #[inline]
    pub(super) fn is_slow(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= SLOW_FROM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_slow_calls_show_and_many_fast_ones_hide_them() {
        let pace = Pace::default();
        let (slow, fast) = (Duration::from_micros(130), Duration::from_micros(5));
        pace.note(1, 16 << 10, slow);
        pace.note(1, 16 << 10, fast);
        assert!(!pace.is_slow(), "one may have been interrupted");
        (0..4).for_each(|_| pace.note(1, 16 << 10, slow));
        assert!(pace.is_slow());
        pace.note(1, 1 << 20, Duration::from_micros(200));
        assert!(pace.is_slow(), "a large fast one is one fast one");
        (0..30).for_each(|_| pace.note(1, 16 << 10, fast));
        assert!(!pace.is_slow());
    }
}
