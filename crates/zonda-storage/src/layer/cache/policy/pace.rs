//! Whether what is below takes long for each call, as a network or a disk does and the system's cache
//! does not. Only how much is moved at a time depends on it, never which bytes.
//!
//! A long call alone says nothing: on a busy machine others have the processor meanwhile. What tells is that
//! the thread gave its processor up in the call, to wait for the device. To ask for that costs a system call,
//! so it is asked only for a while after a call that took long. One that waited is no proof either, since its thread
//! may have got the processor late: those that waited and were back soon speak against it as much.

use crate::tuning::{
    FAST_BYTES_PER_NS, FAST_CALL, MOST_SLOW_CALLS, SLOW_FROM_CALLS, SLOW_WEIGHT_CALLS,
    WATCHED_CALLS,
};
use std::time::Duration;

/// What a call was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
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

impl CallKind {
    /// A call that moved so many bytes, in pieces apart from each other, and took so long; `has_waited` if somebody looked
    /// whether its thread waited for something else than the processor.
    pub(crate) fn of(
        n_pieces: usize,
        bytes: usize,
        took: Duration,
        has_waited: Option<bool>,
    ) -> CallKind {
        let fast = FAST_CALL.as_nanos() * n_pieces as u128 + bytes as u128 / FAST_BYTES_PER_NS;
        match (took.as_nanos() > fast, has_waited) {
            (false, None | Some(false)) => CallKind::Fast,
            (false, Some(true)) => CallKind::WaitedShortly,
            (true, None) => CallKind::Long,
            (true, Some(false)) => CallKind::Busy,
            (true, Some(true)) => CallKind::Waited,
        }
    }
}

/// What the calls of one kind were.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PaceScore {
    pub(crate) slow: u32,
    /// Calls that are still to be looked at closely.
    pub(crate) watched: u32,
}

impl PaceScore {
    /// What is known after one more call.
    #[must_use]
    pub(crate) fn after(self, call: CallKind) -> PaceScore {
        let slow = match call {
            CallKind::Waited => (self.slow + SLOW_WEIGHT_CALLS).min(MOST_SLOW_CALLS),
            CallKind::Long => self.slow,
            CallKind::WaitedShortly => self.slow.saturating_sub(SLOW_WEIGHT_CALLS),
            CallKind::Fast | CallKind::Busy => self.slow.saturating_sub(1),
        };
        let watched = match call {
            CallKind::Fast | CallKind::WaitedShortly => self.watched.saturating_sub(1),
            CallKind::Long | CallKind::Busy | CallKind::Waited => WATCHED_CALLS,
        };
        PaceScore { slow, watched }
    }

    /// Whether calls take long, of which is remembered `slow`.
    #[inline]
    pub(crate) fn is_slow(slow: u32) -> bool {
        slow >= SLOW_FROM_CALLS
    }
}

#[cfg(test)]
mod tests {
    use super::CallKind::{Busy, Fast, Long, Waited, WaitedShortly};
    use super::*;

    /// Calls one after another, each so many times, and whether the device is then taken for slow.
    #[test]
    fn what_makes_a_device_slow() {
        const BOTH: [(CallKind, usize); 2] = [(Waited, 1), (WaitedShortly, 1)];
        let by_turns: Vec<_> = std::iter::repeat_n(BOTH, 1000).flatten().collect();
        let rows: [(&[(CallKind, usize)], bool); 9] = [
            (&[], false),
            // One may have met something else.
            (&[(Waited, 1), (Fast, 1)], false),
            (&[(Waited, 3)], true),
            (&[(Waited, 9), (Busy, 1)], true),
            (&[(Waited, 9), (Fast, 12)], true),
            (&[(Waited, 9), (Fast, 13)], false),
            // Long calls of a busy machine are not slow.
            (&[(Busy, 1000), (Long, 1000)], false),
            // A fast device whose callers now and then get their processor late.
            (&by_turns, false),
            (&[(Waited, 4), (WaitedShortly, 2)], false),
        ];
        for (calls, expected) in rows {
            let all = calls.iter().flat_map(|(call, n)| std::iter::repeat_n(*call, *n));
            let score = all.fold(PaceScore::default(), PaceScore::after);
            assert_eq!(PaceScore::is_slow(score.slow), expected, "{calls:?}");
        }
    }

    #[test]
    fn which_calls_are_looked_at_closely() {
        let after =
            |calls: &[CallKind]| calls.iter().copied().fold(PaceScore::default(), PaceScore::after);
        assert_eq!(after(&[Fast]).watched, 0);
        assert_eq!(after(&[Long]).watched, WATCHED_CALLS);
        assert_eq!(after(&[Waited, Fast, WaitedShortly]).watched, WATCHED_CALLS - 2);
        // What counts as slow never goes unwatched.
        let slow = [[Waited; 6].as_slice(), &[Fast; 12]].concat();
        assert!(PaceScore::is_slow(after(&slow).slow) && after(&slow).watched > 0);
    }

    #[test]
    fn a_large_call_or_one_of_many_pieces_may_take_longer() {
        for (n_pieces, bytes, micros, has_waited, expected) in [
            (1, 16 << 10, 130, None, Long),
            (1, 1 << 20, 200, None, Fast),
            (4, 4096, 90, None, Fast),
            (1, 4096, 90, Some(true), Waited),
            (1, 4096, 90, Some(false), Busy),
            (1, 4096, 20, Some(true), WaitedShortly),
            (1, 4096, 20, Some(false), Fast),
        ] {
            let call = CallKind::of(n_pieces, bytes, Duration::from_micros(micros), has_waited);
            assert_eq!(call, expected, "{n_pieces} {bytes} {micros} {has_waited:?}");
        }
    }
}
