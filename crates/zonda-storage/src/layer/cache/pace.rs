//! Whether what is below takes long for each call, as a network or a disk does and the system's cache
//! does not. Only how much is moved at a time depends on it, never which bytes.
//!
//! A long call alone says nothing: on a busy machine others have the processor meanwhile. What tells is that
//! the thread gave its processor up in the call, to wait for the device. To ask for that costs a system call,
//! so it is asked only for a while after a call that took long. One that waited is no proof either, since its thread
//! may have got the processor late: those that waited and were back soon speak against it as much.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use zonda_runtime::worker;

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

/// Calls after a long one that are looked at closely. More than what is remembered, so that nothing that
/// counts as slow goes unwatched.
const WATCHED: u32 = 32;

/// The calls of one kind.
#[derive(Debug, Default)]
pub(super) struct Pace {
    score: AtomicU32,
    /// Calls that are still to be looked at closely.
    watched: AtomicU32,
}

/// What a call was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Fast,
    /// It took long, and nobody looked why.
    Long,
    /// It took long, and the thread had the processor or was waiting for it.
    Busy,
    /// It took long, and the thread was waiting for something else.
    Waited,
    /// The thread was waiting, and not for long.
    WaitedShortly,
}

impl Pace {
    /// Makes a call that moves so many bytes, and takes note of how it went.
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
        let tells = bytes <= TOLD_BY_BYTES && n_pieces <= TOLD_BY_PIECES;
        let is_watched = tells && self.watched.load(Ordering::Relaxed) > 0;
        let before = if is_watched { worker::waits() } else { None };
        let begin = Instant::now();
        let done = call();
        if tells {
            let is_long = is_long(n_pieces, bytes, begin.elapsed());
            let has_waited = before.map(|before| worker::waits() != Some(before));
            self.note(match (is_long, has_waited) {
                (false, None | Some(false)) => Call::Fast,
                (false, Some(true)) => Call::WaitedShortly,
                (true, None) => Call::Long,
                (true, Some(false)) => Call::Busy,
                (true, Some(true)) => Call::Waited,
            });
        }
        done
    }

    fn note(&self, call: Call) {
        let (score, watched) =
            (self.score.load(Ordering::Relaxed), self.watched.load(Ordering::Relaxed));
        let score = match call {
            Call::Waited => (score + SLOW_WEIGHT).min(MOST),
            Call::Long => score,
            Call::WaitedShortly => score.saturating_sub(SLOW_WEIGHT),
            Call::Fast | Call::Busy => score.saturating_sub(1),
        };
        let watched = match call {
            Call::Fast | Call::WaitedShortly => watched.saturating_sub(1),
            Call::Long | Call::Busy | Call::Waited => WATCHED,
        };
        // Another thread's note may be lost: there will be more.
        self.score.store(score, Ordering::Relaxed);
        self.watched.store(watched, Ordering::Relaxed);
    }

    /// Whether calls take long.
    #[inline]
    pub(super) fn is_slow(&self) -> bool {
        self.score.load(Ordering::Relaxed) >= SLOW_FROM
    }
}

fn is_long(n_pieces: usize, bytes: usize, took: Duration) -> bool {
    let fast = FAST_CALL.as_nanos() * n_pieces as u128 + bytes as u128 / FAST_BYTES_PER_NS;
    took.as_nanos() > fast
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_slow_calls_show_and_many_fast_ones_hide_them() {
        let pace = Pace::default();
        pace.note(Call::Waited);
        pace.note(Call::Fast);
        assert!(!pace.is_slow(), "one may have met something else");
        (0..4).for_each(|_| pace.note(Call::Waited));
        assert!(pace.is_slow());
        pace.note(Call::Busy);
        assert!(pace.is_slow());
        (0..30).for_each(|_| pace.note(Call::Fast));
        assert!(!pace.is_slow());
    }

    #[test]
    fn long_calls_of_a_busy_machine_are_not_slow() {
        let pace = Pace::default();
        (0..1000).for_each(|_| pace.note(Call::Busy));
        (0..1000).for_each(|_| pace.note(Call::Long));
        assert!(!pace.is_slow());
        // A thread that computes for long, as one that the processor is taken from.
        let spin = || {
            let begin = Instant::now();
            while begin.elapsed() < 2 * FAST_CALL {}
        };
        (0..50).for_each(|_| pace.time(4096, spin));
        assert!(!pace.is_slow());
    }

    /// A fast device whose callers now and then get their processor late.
    #[test]
    fn short_waits_outweigh_as_many_long_ones() {
        let pace = Pace::default();
        for _ in 0..1000 {
            pace.note(Call::Waited);
            pace.note(Call::WaitedShortly);
            assert!(!pace.is_slow());
        }
        (0..3).for_each(|_| pace.note(Call::Waited));
        assert!(pace.is_slow());
    }

    #[test]
    fn calls_that_wait_are_slow() {
        let pace = Pace::default();
        (0..10).for_each(|_| pace.time(4096, || std::thread::sleep(2 * FAST_CALL)));
        assert!(pace.is_slow());
    }

    #[test]
    fn a_large_call_may_take_longer() {
        assert!(is_long(1, 16 << 10, Duration::from_micros(130)));
        assert!(!is_long(1, 1 << 20, Duration::from_micros(200)));
        assert!(!is_long(4, 4096, Duration::from_micros(90)));
    }
}
