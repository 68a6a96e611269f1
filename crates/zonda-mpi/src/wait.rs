//! How a rank waits for others: without holding up the ranks that share its processor, without being held up itself, and not in silence.

use crate::flight::{Fault, Flight, Landed};
use crate::settings::Settings;
use crate::tuning::{FIRST_SLEEP, LONGEST_SLEEP, SLEEP_GROWTH, SPINS, SPINS_CROWDED, YIELDS};
use std::io::Write;
use std::time::Duration;
use zonda_team::{Step, WaitClock, named_ranks};
use zonda_trace::{Args, EventKind};

/// What to do before the next test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    None,
    Yield,
    Sleep(Duration),
}

/// The pauses of one wait.
#[derive(Debug)]
struct Pace {
    spins: u32,
    yields: u32,
    sleep: Duration,
}

impl Pace {
    fn new(is_crowded: bool) -> Pace {
        let spins = if is_crowded { SPINS_CROWDED } else { SPINS };
        Pace { spins, yields: YIELDS, sleep: FIRST_SLEEP }
    }

    fn next(&mut self) -> Pause {
        if self.spins > 0 {
            self.spins -= 1;
            Pause::None
        } else if self.yields > 0 {
            self.yields -= 1;
            Pause::Yield
        } else {
            let sleep = self.sleep;
            self.sleep = (sleep * SLEEP_GROWTH / 100).min(LONGEST_SLEEP);
            Pause::Sleep(sleep)
        }
    }
}

/// Who waits, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) rank: usize,
    /// More ranks than processors on this node.
    pub(crate) is_crowded: bool,
    pub(crate) settings: Settings,
}

/// Why a wait ended without what it was for.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The others did not come in time.
    TimedOut { waited: Duration, whom: String },
    /// An operation failed.
    Fault(Fault),
}

impl From<Fault> for Ended {
    fn from(fault: Fault) -> Ended {
        Ended::Fault(fault)
    }
}

impl Waiter {
    /// Waits until all operations of a flight are over.
    pub(crate) fn wait(&self, step: Step<'_>, mut flight: Flight) -> Result<Landed, Ended> {
        let _span = zonda_trace::span(EventKind::WaitRanks, Args::default);
        let mut pace = Pace::new(self.is_crowded);
        let mut clock: Option<WaitClock> = None;
        while !flight.is_over()? {
            match pace.next() {
                Pause::None => continue,
                Pause::Yield => std::thread::yield_now(),
                Pause::Sleep(time) => std::thread::sleep(time),
            }
            let clock = clock.get_or_insert_with(|| WaitClock::new(self.settings.say_every));
            let waited = clock.look();
            if self.settings.timeout.is_some_and(|timeout| waited >= timeout) {
                let whom = named_ranks(&flight.waits_for()?);
                return Err(Ended::TimedOut { waited, whom });
            }
            if clock.has_to_say() {
                let ranks = flight.waits_for()?;
                let line = line(self.rank, waited, step, &ranks);
                // In one piece, since other ranks write there, too. A program whose standard error is closed still runs.
                let _ = std::io::stderr().lock().write_all(line.as_bytes());
            }
        }
        // Over, so its memory is had.
        flight.landed().ok_or(Ended::Fault(Fault::Number(0)))
    }
}

/// What is said of a rank that waits; `ranks` are those it waits for.
fn line(rank: usize, waited: Duration, step: Step<'_>, ranks: &[usize]) -> String {
    let who = named_ranks(ranks);
    let Step { call, file } = step;
    let seconds = waited.as_secs();
    format!("zonda: rank {rank} has waited {seconds} s in {call} of {file} for {who}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_followed_by_yields_and_these_by_longer_and_longer_sleeps() {
        for (is_crowded, spins) in [(false, SPINS), (true, SPINS_CROWDED)] {
            let mut pace = Pace::new(is_crowded);
            assert!((0..spins).all(|_| pace.next() == Pause::None));
            assert!((0..YIELDS).all(|_| pace.next() == Pause::Yield));
            assert_eq!(pace.next(), Pause::Sleep(FIRST_SLEEP));
            let mut last = FIRST_SLEEP;
            while last < LONGEST_SLEEP {
                let Pause::Sleep(sleep) = pace.next() else { panic!("no sleep") };
                assert!(sleep > last);
                last = sleep;
            }
            assert_eq!(pace.next(), Pause::Sleep(LONGEST_SLEEP));
        }
    }

    #[test]
    fn what_is_said() {
        let step = Step { call: "nc_enddef", file: "/x/y.nc" };
        let waited = Duration::from_millis(60_700);
        for (ranks, who) in [(vec![], "other ranks"), (vec![1, 4], "ranks 1, 4")] {
            let expected =
                format!("zonda: rank 3 has waited 60 s in nc_enddef of /x/y.nc for {who}\n");
            assert_eq!(line(3, waited, step, &ranks), expected);
        }
    }
}
