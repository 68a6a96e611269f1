//! Where reads were lately: whether they go on, in one place or in several side by side, and whether
//! they come back. Only what is read ahead and kept depends on it, never which bytes.

use crate::tuning::{MOST_RETURNS, REMEMBERED_READS, RETURNS_OFTEN_FROM};

/// How a read relates to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadPattern {
    /// It begins where another ended.
    GoesOn,
    /// Most of it is what another has read.
    Again,
    /// Neither.
    New,
}

#[derive(Debug, Clone, Copy)]
struct PastRead {
    from: u64,
    to: u64,
    goes_on: bool,
}

/// The last reads of some length.
#[derive(Debug, Default)]
pub(crate) struct RecentReads(Vec<PastRead>);

impl RecentReads {
    /// Takes note of a read of `from..to`.
    pub(crate) fn note(&mut self, from: u64, to: u64) -> ReadPattern {
        let reads = &mut self.0;
        let shared = |read: &PastRead| read.to.min(to).saturating_sub(read.from.max(from));
        let of = |read: &PastRead| match () {
            () if read.to == from => ReadPattern::GoesOn,
            () if shared(read) > (to - from) / 2 => ReadPattern::Again,
            () => ReadPattern::New,
        };
        let known = reads.iter().rposition(|read| of(read) != ReadPattern::New);
        let visit = known.map_or(ReadPattern::New, |i| of(&reads[i]));
        // The newest is at the end.
        match known {
            Some(i) => drop(reads.remove(i)),
            None if reads.len() == REMEMBERED_READS => drop(reads.remove(0)),
            None => {}
        }
        reads.push(PastRead { from, to, goes_on: visit == ReadPattern::GoesOn });
        visit
    }

    /// Whether a read goes on at `at`, behind what it has read or within it.
    pub(crate) fn goes_on_at(&self, at: u64) -> bool {
        self.0
            .iter()
            .any(|read| read.to == at || (read.goes_on && (read.from..read.to).contains(&at)))
    }
}

/// Whether reads come back to where others were: then all of what lies there is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Returns(pub(crate) u32);

impl Returns {
    /// What is known after one more read; `again` if it has come back.
    #[must_use]
    pub(crate) fn after(self, again: bool) -> Returns {
        Returns(if again { (self.0 + 2).min(MOST_RETURNS) } else { self.0.saturating_sub(1) })
    }

    pub(crate) fn are_many(self) -> bool {
        self.0 >= RETURNS_OFTEN_FROM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_side_by_side_are_told_from_jumps_and_returns() {
        let mut visits = RecentReads::default();
        for stream in 0..4 {
            assert_eq!(visits.note(stream << 30, (stream << 30) + 100), ReadPattern::New);
        }
        for stream in 0..4 {
            let at = (stream << 30) + 100;
            assert!(visits.goes_on_at(at) && !visits.goes_on_at(at + 1));
            assert_eq!(visits.note(at, at + 100), ReadPattern::GoesOn);
            assert!(visits.goes_on_at(at + 50), "within what goes on");
        }
        assert_eq!(visits.note((2 << 30) + 110, (2 << 30) + 210), ReadPattern::Again);
        assert_eq!(visits.note((2 << 30) + 180, (2 << 30) + 280), ReadPattern::New);
        assert!(!visits.goes_on_at((2 << 30) + 200), "one that jumped there does not go on within");
        for jump in 1..=REMEMBERED_READS as u64 {
            assert_eq!(visits.note(jump << 40, (jump << 40) + 1), ReadPattern::New);
        }
        assert!(!visits.goes_on_at(200), "forgotten");
    }

    #[test]
    fn returns_count_until_there_are_more_first_visits() {
        // Reads that came back, then first visits.
        for (again, first, are_many) in [
            (3, 0, false),
            (4, 0, true),
            (4, 1, false),
            (12, 16, true),
            (12, 17, false),
            (99, 17, false),
        ] {
            let reads = std::iter::repeat_n(true, again).chain(std::iter::repeat_n(false, first));
            let returns = reads.fold(Returns::default(), Returns::after);
            assert_eq!(returns.are_many(), are_many, "{again} {first}");
        }
    }
}
