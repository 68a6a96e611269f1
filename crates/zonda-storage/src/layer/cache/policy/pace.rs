//! Whether what is below takes long for each call, as a network or a disk does and the system's cache
//! does not. Only how much is moved at a time depends on it, never which bytes.
//!
//! A long call alone says nothing: on a busy machine others have the processor meanwhile. What tells is that
//! the thread gave its processor up in the call, to wait for the device. To ask for that costs a system call,
//! so it is asked only for a while after a call that took long. One that waited is no proof either, since its thread
//! may have got the processor late: those that waited and were back soon speak against it as much.

use std::time::Duration;

/// What a call may take that the system answers from its memory, whatever else the machine does.
const FAST_CALL: Duration = Duration::from_micros(25);
/// The same for each byte: half of what one core copies.
const FAST_BYTES_PER_NS: u128 = 2;
/// Transfers longer than this say nothing about calls.
pub(crate) const TOLD_BY_BYTES: usize = 4 << 20;
/// So do calls that move more pieces than this: each of them may be a call of its own.
pub(crate) const TOLD_BY_PIECES: usize = 4;
/// A slow call counts as so many fast ones, so that now and then one is enough to stay slow.
const SLOW_WEIGHT: u32 = 4;
/// From this on it is slow: three slow calls together.
const SLOW_FROM: u32 = 12;
/// The most that is remembered.
const MOST: u32 = 24;

/// Calls after a long one that are looked at closely. More than what is remembered, so that nothing that
/// counts as slow goes unwatched.
const WATCHED: u32 = 32;

/// What a call was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
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

impl Call {
    /// A call that moved so many bytes, in pieces apart from each other, and took so long; `has_waited` if somebody looked
    /// whether its thread waited for something else than the processor.
    pub(crate) fn of(
        n_pieces: usize,
        bytes: usize,
        took: Duration,
        has_waited: Option<bool>,
    ) -> Call {
        let fast = FAST_CALL.as_nanos() * n_pieces as u128 + bytes as u128 / FAST_BYTES_PER_NS;
        match (took.as_nanos() > fast, has_waited) {
            (false, None | Some(false)) => Call::Fast,
            (false, Some(true)) => Call::WaitedShortly,
            (true, None) => Call::Long,
            (true, Some(false)) => Call::Busy,
            (true, Some(true)) => Call::Waited,
        }
    }
}

/// What the calls of one kind were.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    pub(crate) slow: u32,
    /// Calls that are still to be looked at closely.
    pub(crate) watched: u32,
}

impl Score {
    /// What is known after one more call.
    #[must_use]
    pub(crate) fn after(self, call: Call) -> Score {
        let slow = match call {
            Call::Waited => (self.slow + SLOW_WEIGHT).min(MOST),
            Call::Long => self.slow,
            Call::WaitedShortly => self.slow.saturating_sub(SLOW_WEIGHT),
            Call::Fast | Call::Busy => self.slow.saturating_sub(1),
        };
        let watched = match call {
            Call::Fast | Call::WaitedShortly => self.watched.saturating_sub(1),
            Call::Long | Call::Busy | Call::Waited => WATCHED,
        };
        Score { slow, watched }
    }

    /// Whether calls take long, of which is remembered `slow`.
    #[inline]
    pub(crate) fn is_slow(slow: u32) -> bool {
        slow >= SLOW_FROM
    }
}

#[cfg(test)]
mod tests {
    use super::Call::{Busy, Fast, Long, Waited, WaitedShortly};
    use super::*;

    /// Calls one after another, each so many times, and whether the device is then taken for slow.
    #[test]
    fn what_makes_a_device_slow() {
        const BOTH: [(Call, usize); 2] = [(Waited, 1), (WaitedShortly, 1)];
        let by_turns: Vec<_> = std::iter::repeat_n(BOTH, 1000).flatten().collect();
        let rows: [(&[(Call, usize)], bool); 9] = [
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
            let score = all.fold(Score::default(), Score::after);
            assert_eq!(Score::is_slow(score.slow), expected, "{calls:?}");
        }
    }

    #[test]
    fn which_calls_are_looked_at_closely() {
        let after = |calls: &[Call]| calls.iter().copied().fold(Score::default(), Score::after);
        assert_eq!(after(&[Fast]).watched, 0);
        assert_eq!(after(&[Long]).watched, WATCHED);
        assert_eq!(after(&[Waited, Fast, WaitedShortly]).watched, WATCHED - 2);
        // What counts as slow never goes unwatched.
        let slow = [[Waited; 6].as_slice(), &[Fast; 12]].concat();
        assert!(Score::is_slow(after(&slow).slow) && after(&slow).watched > 0);
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
            let call = Call::of(n_pieces, bytes, Duration::from_micros(micros), has_waited);
            assert_eq!(call, expected, "{n_pieces} {bytes} {micros} {has_waited:?}");
        }
    }
}
