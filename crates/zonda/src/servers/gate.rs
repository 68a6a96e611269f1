//! What keeps the shadows of a file's ranks together where a client ends early, or does not come: a call that all ranks make is made when all
//! clients have told it, so that all shadows come to the same last one.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use zonda_format::{GroupId, VarRef};
use zonda_parallel::of_team;
use zonda_runtime::lock::{Condvar, Mutex, Rank};
use zonda_served::Call;
use zonda_team::{TeamError, WaitClock, named_ranks};

use super::queue::Queue;
use super::watch::Gathering;
use crate::tuning::SERVER_SLEEP;

/// The clients of a file of several ranks.
#[derive(Debug)]
pub(super) struct Gate {
    file: PathBuf,
    /// How long a rank is waited for while another one waits: `ZONDA_PAR_TIMEOUT`.
    timeout: Option<Duration>,
    ranks: Mutex<Vec<RankCalls>>,
    changed: Condvar,
}

/// What one client has told.
#[derive(Clone, Debug, Default)]
struct RankCalls {
    /// Calls that all ranks make.
    n: u64,
    /// The last of them for which its shadow had to wait for others.
    gathers: u64,
    is_ended: bool,
    /// Variables whose puts all ranks make; the root stands for all of a classic file.
    collective: BTreeSet<VarRef>,
    queue: Option<Arc<Queue>>,
}

impl Gate {
    pub(super) fn new(file: &Path, n_ranks: usize, timeout: Option<Duration>) -> Gate {
        let ranks = Mutex::ranked(Rank::View, vec![RankCalls::default(); n_ranks]);
        Gate { file: file.to_owned(), timeout, ranks, changed: Condvar::new() }
    }

    /// Notes where the calls of a rank wait.
    pub(super) fn enter(&self, rank: usize, queue: &Arc<Queue>) {
        if let Some(mine) = self.ranks.lock().get_mut(rank) {
            mine.queue = Some(Arc::clone(queue));
        }
    }

    /// Notes a call that a rank has told. Its number among those that all ranks make, if it is one.
    pub(super) fn told(&self, rank: usize, call: &Call, is_classic: bool) -> Option<u64> {
        let mut ranks = self.ranks.lock();
        let mine = ranks.get_mut(rank)?;
        let of_file = VarRef::group(GroupId::ROOT);
        let is_of_all = match call {
            Call::SetCollective { var, is_collective } => {
                let of = if is_classic { of_file } else { *var };
                if *is_collective {
                    mine.collective.insert(of)
                } else {
                    mine.collective.remove(&of)
                };
                false
            }
            Call::Put { var, .. } | Call::CheckPut { var, .. } | Call::TakePart { var } => {
                mine.collective.contains(var) || mine.collective.contains(&of_file)
            }
            Call::Enddef { .. }
            | Call::EndDefinitions
            | Call::Redef
            | Call::Sync
            | Call::Close
            | Call::Abort => true,
            _ => false,
        };
        if !is_of_all {
            return None;
        }
        mine.n += 1;
        let number = mine.n;
        drop(ranks);
        self.changed.notify_all();
        Some(number)
    }

    /// Ranks for whose calls shadows of others wait.
    pub(super) fn waited_for(&self) -> Vec<usize> {
        let ranks = self.ranks.lock();
        let number = ranks.iter().map(|rank| rank.gathers).max().unwrap_or_default();
        let missing = (0..).zip(&*ranks).filter(|(_, rank)| !rank.is_ended && rank.n < number);
        missing.map(|(rank, _)| rank).collect()
    }

    /// A rank will tell nothing more.
    pub(super) fn end(&self, rank: usize) {
        if let Some(mine) = self.ranks.lock().get_mut(rank) {
            mine.is_ended = true;
        }
        self.changed.notify_all();
    }

    /// Waits until all ranks have told so many calls. False where one of them has ended before, or was waited for too long: then the file ends for all.
    pub(super) fn wait_for(&self, rank: usize, number: u64) -> bool {
        let mut clock = WaitClock::minutely();
        let mut gathering = Gathering::new(rank);
        let mut ranks = self.ranks.lock();
        loop {
            let missing: Vec<usize> = (0..)
                .zip(&*ranks)
                .filter(|(_, rank)| rank.n < number)
                .map(|(rank, _)| rank)
                .collect();
            if missing.is_empty() {
                return true;
            }
            if missing.iter().any(|&rank| ranks.get(rank).is_some_and(|rank| rank.is_ended)) {
                return false;
            }
            gathering.pause();
            if let Some(mine) = ranks.get_mut(rank) {
                mine.gathers = number;
            }
            let (again, is_over) = self.changed.wait_timeout(ranks, SERVER_SLEEP);
            ranks = again;
            if !is_over {
                continue;
            }
            // A rank that works on while its calls wait here misses nobody.
            let is_waiting = ranks
                .get(rank)
                .and_then(|rank| rank.queue.as_ref())
                .is_some_and(|queue| queue.is_waited_for());
            if !is_waiting {
                clock = WaitClock::minutely();
                continue;
            }
            let waited = clock.look();
            if self.timeout.is_some_and(|timeout| waited >= timeout) {
                drop(ranks);
                self.give_up(waited, &missing);
                return false;
            }
            if clock.has_to_say() {
                let (whom, file) = (named_ranks(&missing), self.file.display());
                // Nobody may be there to read it.
                let _ = writeln!(
                    std::io::stderr().lock(),
                    "zonda iod: rank {rank} has waited {} s for calls of {whom} to {file}",
                    waited.as_secs()
                );
            }
        }
    }

    /// Ends the file for all ranks, since some were waited for in vain.
    fn give_up(&self, waited: Duration, missing: &[usize]) {
        let file = self.file.display().to_string();
        let call = String::from("the next call of all ranks");
        let error =
            of_team(&TeamError::TimedOut { call, file, waited, whom: named_ranks(missing) });
        let mut ranks = self.ranks.lock();
        ranks.iter_mut().for_each(|rank| rank.is_ended = true);
        let queues: Vec<_> = ranks.iter().filter_map(|rank| rank.queue.clone()).collect();
        drop(ranks);
        self.changed.notify_all();
        queues.iter().for_each(|queue| queue.end_because(&error));
    }
}

#[cfg(test)]
mod tests {
    use zonda_runtime::worker::{self, Purpose};

    use super::super::queue::Load;
    use super::*;

    #[test]
    fn calls_wait_for_all_ranks() {
        let gate = Gate::new(Path::new("x.nc"), 2, None);
        assert_eq!(gate.told(0, &Call::Sync, true), Some(1));
        let var = VarRef { group: GroupId::ROOT, var: zonda_model::VarId(3) };
        assert_eq!(gate.told(1, &Call::TakePart { var }, false), None);
        let together = Call::SetCollective { var, is_collective: true };
        assert_eq!(gate.told(1, &together, false), None);
        assert_eq!(gate.told(1, &Call::TakePart { var }, false), Some(1));
        assert!(gate.wait_for(0, 1));
        assert_eq!(gate.told(1, &Call::Close, false), Some(2));
        std::thread::scope(|scope| {
            let wait = || gate.wait_for(1, 2);
            let waits = worker::spawn_scoped(scope, String::new(), Purpose::WriteBehind, wait);
            gate.end(0);
            assert!(!waits.unwrap().join().unwrap());
        });
        assert!(gate.wait_for(0, 1), "what all told is made");
        assert!(gate.waited_for().is_empty(), "who has ended is not waited for");
    }

    #[test]
    fn a_rank_that_is_missed_ends_the_file_for_all() {
        let gate = Gate::new(Path::new("x.nc"), 2, Some(Duration::from_millis(400)));
        let load = Arc::new(Load::new());
        let queues = [(); 2].map(|()| Arc::new(Queue::new(Arc::clone(&load))));
        (0..).zip(&queues).for_each(|(rank, queue)| gate.enter(rank, queue));
        assert_eq!(gate.told(0, &Call::Sync, true), Some(1));
        std::thread::scope(|scope| {
            let wait = || gate.wait_for(0, 1);
            let waits =
                worker::spawn_scoped(scope, String::new(), Purpose::WriteBehind, wait).unwrap();
            // Rank 0 works on.
            std::thread::sleep(Duration::from_millis(1000));
            assert!(!waits.is_finished());
            assert_eq!(gate.waited_for(), [1]);
            load.while_waiting(|| assert!(!waits.join().unwrap()));
        });
        for queue in &queues {
            let (left, why) = queue.end_work();
            let why = why.expect("why it ended").error();
            assert!(left.is_empty() && why.to_string().contains("rank 1"), "{why}");
        }
    }
}
