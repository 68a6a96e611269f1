//! From the clock of one holder to the one of all (`clock.rs`).

use crate::tuning::REMEMBERED_MOMENTS;

/// For a holder with a clock of its own, which costs its users less than one that all share: what that clock
/// showed at some moments of the one of all. Between two of them an age is only known to lie there.
#[derive(Clone, Debug, Default)]
pub struct Ages {
    /// Own time and that of all, ascending.
    moments: Vec<(u64, u64)>,
    /// Own time from one moment to the next, at least.
    step: u64,
}

impl Ages {
    /// Takes note that it is `own` here when it is `time` there. Cheap where that was done a moment ago.
    #[inline]
    pub fn note(&mut self, own: u64, time: u64) {
        match self.moments.last() {
            Some((last, _)) if own < last.saturating_add(self.step) => {}
            _ => self.add(own, time),
        }
    }

    fn add(&mut self, own: u64, time: u64) {
        if self.moments.len() >= REMEMBERED_MOMENTS {
            // Every second one goes: what is long ago need not be known so well.
            let mut is_kept = false;
            self.moments.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.step = self.step.max(1).saturating_mul(2);
        }
        self.moments.push((own, time));
    }

    /// The time when it was `own` here: not later than it was.
    #[must_use]
    pub fn time_of(&self, own: u64) -> u64 {
        let behind = self.moments.partition_point(|(moment, _)| *moment <= own);
        let moment = behind.checked_sub(1).and_then(|place| self.moments.get(place));
        moment.map_or(super::USELESS + 1, |(_, time)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_known_about() {
        let mut ages = Ages::default();
        assert_eq!(ages.time_of(5), super::super::USELESS + 1);
        for own in 0..10_000_u64 {
            ages.note(own, 3 * own + 7);
            assert!(ages.moments.len() <= REMEMBERED_MOMENTS);
        }
        for own in (0..10_000).step_by(7) {
            let time = ages.time_of(own);
            assert!(
                time <= 3 * own + 7 && time + 3 * 2 * ages.step >= 3 * own + 7,
                "{own}: {time}"
            );
        }
    }
}
