//! How long ranks wait for each other, and what is said of it.

use std::time::{Duration, Instant};

use crate::tuning::{LONGEST_LOOK, RANKS_NAMED, SAY_EVERY};

/// How long a wait has been.
#[derive(Debug)]
pub struct WaitClock {
    looked: Instant,
    waited: Duration,
    say_every: Duration,
    say_at: Duration,
}

impl WaitClock {
    /// A wait that begins now, of which a line is said as often.
    #[must_use]
    pub fn new(say_every: Duration) -> WaitClock {
        let looked = Instant::now();
        WaitClock { looked, waited: Duration::ZERO, say_every, say_at: say_every }
    }

    /// A wait of which a line is said each minute.
    #[must_use]
    pub fn minutely() -> WaitClock {
        WaitClock::new(SAY_EVERY)
    }

    /// Counts the time since the last look, but at most a second of it: a process that was stopped meanwhile has not waited for others. Gives what was
    /// counted so far.
    pub fn look(&mut self) -> Duration {
        let now = Instant::now();
        self.waited += now.duration_since(self.looked).min(LONGEST_LOOK);
        self.looked = now;
        self.waited
    }

    /// What was counted so far.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Whether it is time for a line: once for each time.
    pub fn has_to_say(&mut self) -> bool {
        let has = self.waited >= self.say_at;
        if has {
            self.say_at = self.waited + self.say_every;
        }
        has
    }
}

/// Ranks by their numbers: `rank 3`, `ranks 1, 4`; `other ranks` where it is not known which ones.
#[must_use]
pub fn named_ranks(ranks: &[usize]) -> String {
    let named: Vec<String> = ranks.iter().take(RANKS_NAMED).map(usize::to_string).collect();
    match (ranks.len(), ranks.len() - named.len()) {
        (0, _) => String::from("other ranks"),
        (1, _) => format!("rank {}", named[0]),
        (_, 0) => format!("ranks {}", named.join(", ")),
        (_, more) => format!("ranks {} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_by_their_numbers() {
        for (ranks, who) in [
            (vec![], "other ranks"),
            (vec![4], "rank 4"),
            (vec![1, 4], "ranks 1, 4"),
            (
                (0..20).collect(),
                "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 4 more",
            ),
        ] {
            assert_eq!(named_ranks(&ranks), who);
        }
    }

    #[test]
    fn a_line_each_time_as_much_has_passed() {
        let mut clock = WaitClock::new(Duration::from_secs(60));
        let mut said = Vec::new();
        for second in 0..200 {
            clock.waited = Duration::from_secs(second);
            if clock.has_to_say() {
                said.push(second);
            }
        }
        assert_eq!(said, [60, 120, 180]);
    }
}
