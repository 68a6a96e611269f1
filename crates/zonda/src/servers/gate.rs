//! What keeps the shadows of a file's ranks together where a client ends early, or does not come: a call that all ranks make is made when all
//! clients have told it, so that all shadows come to the same last one.
//!
//! Where the servers of a group share the ranks, each says to the others what its clients have told. What a client told before it ended is said before that,
//! so all servers come to the same last call.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use zonda_format::{Error, GroupId, VarRef};
use zonda_model::{Answer, NcError};
use zonda_parallel::of_team;
use zonda_runtime::lock::{Condvar, Mutex, Rank};
use zonda_served::Call;
use zonda_team::{TeamError, WaitClock, named_ranks};

use super::members::{Others, Word};
use super::queue::Queue;
use super::watch::Gathering;
use super::wire::SentError;
use crate::tuning::SERVER_SLEEP;

/// The clients of a file of several ranks.
#[derive(Debug)]
pub(super) struct Gate {
    file: Mutex<PathBuf>,
    /// How long a rank is waited for while another one waits: `ZONDA_PAR_TIMEOUT`.
    timeout: Option<Duration>,
    ranks: Mutex<Vec<RankCalls>>,
    changed: Condvar,
    /// Other servers that have ranks of the file.
    others: Option<Others>,
}

/// What one client has told.
#[derive(Clone, Debug, Default)]
struct RankCalls {
    /// Calls that all ranks make.
    n: u64,
    /// The last of them for which its shadow had to wait for others.
    gathers: u64,
    is_ended: bool,
    has_closed: bool,
    /// Variables whose puts all ranks make; the root stands for all of a classic file.
    collective: BTreeSet<VarRef>,
    queue: Option<Arc<Queue>>,
}

impl Gate {
    pub(super) fn new(
        file: &Path,
        n_ranks: usize,
        timeout: Option<Duration>,
        others: Option<Others>,
    ) -> Gate {
        let ranks = Mutex::ranked(Rank::View, vec![RankCalls::default(); n_ranks]);
        let file = Mutex::ranked(Rank::Watch, file.to_owned());
        Gate { file, timeout, ranks, changed: Condvar::new(), others }
    }

    /// Notes where the calls of a rank wait, and which file they are for.
    pub(super) fn enter(&self, rank: usize, queue: &Arc<Queue>, file: &Path) {
        file.clone_into(&mut self.file.lock());
        if let Some(mine) = self.ranks.lock().get_mut(rank) {
            mine.queue = Some(Arc::clone(queue));
        }
    }

    /// Whether a rank is the first of those that come to this server, and speaks for them.
    pub(super) fn is_first(&self, rank: usize) -> bool {
        self.ranks.lock().iter().position(|one| one.queue.is_some()) == Some(rank)
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
        let is_last = matches!(call, Call::Close | Call::Abort);
        mine.n += 1;
        mine.has_closed |= is_last;
        let number = mine.n;
        drop(ranks);
        self.changed.notify_all();
        self.tell(|| Word::Told { rank, n: number, is_last });
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
        self.note_ended(rank);
        self.tell(|| Word::Ended { rank });
    }

    fn tell(&self, word: impl FnOnce() -> Word) {
        if let Some(others) = &self.others {
            others.tell(&word());
        }
    }

    /// Notes what another server says of a rank of its own.
    pub(super) fn note_told(&self, rank: usize, n: u64, is_last: bool) {
        if let Some(its) = self.ranks.lock().get_mut(rank) {
            its.n = its.n.max(n);
            its.has_closed |= is_last;
        }
        self.changed.notify_all();
    }

    pub(super) fn note_ended(&self, rank: usize) {
        if let Some(its) = self.ranks.lock().get_mut(rank) {
            its.is_ended = true;
        }
        self.changed.notify_all();
    }

    /// The server of some ranks has ended. The file is over, unless that one had nothing more to do for it but what all know of.
    pub(super) fn lose(&self, lost: Range<usize>) {
        let ranks = self.ranks.lock();
        let its = ranks.get(lost).unwrap_or_default();
        let is_missed = its.iter().any(|rank| !rank.has_closed && !rank.is_ended);
        drop(ranks);
        if is_missed {
            let file = self.file.lock().display().to_string();
            let text = format!(
                "{file}: another I/O server of the group has ended; the file has what it had committed"
            );
            self.end_all(&(&Error::answered(NcError::Io, Answer::System, text)).into());
        }
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
                let (whom, file) = (named_ranks(&missing), self.file.lock().display().to_string());
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
        let file = self.file.lock().display().to_string();
        let call = String::from("the next call of all ranks");
        let error =
            of_team(&TeamError::TimedOut { call, file, waited, whom: named_ranks(missing) });
        let why = SentError::from(&error);
        self.end_all(&why);
        self.tell(|| Word::Over { why });
    }

    /// Ends the file for all ranks that this server has.
    pub(super) fn end_all(&self, why: &SentError) {
        let mut ranks = self.ranks.lock();
        ranks.iter_mut().for_each(|rank| rank.is_ended = true);
        let queues: Vec<_> = ranks.iter().filter_map(|rank| rank.queue.clone()).collect();
        drop(ranks);
        self.changed.notify_all();
        queues.iter().for_each(|queue| queue.end_because(why));
    }
}

#[cfg(test)]
mod tests {
    use zonda_runtime::worker::{self, Purpose};

    use super::super::queue::Load;
    use super::*;

    #[test]
    fn calls_wait_for_all_ranks() {
        let gate = Gate::new(Path::new("x.nc"), 2, None, None);
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
    fn what_other_servers_say_counts_as_what_clients_told() {
        let gate = Gate::new(Path::new("x.nc"), 3, None, None);
        let queue = Arc::new(Queue::new(Arc::new(Load::new())));
        gate.enter(1, &queue, Path::new("y.nc"));
        assert!(gate.is_first(1) && !gate.is_first(0));
        assert_eq!(gate.told(1, &Call::Sync, true), Some(1));
        gate.note_told(0, 1, false);
        gate.note_told(2, 2, true);
        assert!(gate.wait_for(1, 1));
        // That server has nothing more to do for it.
        gate.lose(2..3);
        assert_eq!(gate.told(1, &Call::Sync, true), Some(2));
        std::thread::scope(|scope| {
            let wait = || gate.wait_for(1, 2);
            let waits = worker::spawn_scoped(scope, String::new(), Purpose::WriteBehind, wait);
            gate.lose(0..1);
            assert!(!waits.unwrap().join().unwrap());
        });
        let (_, why) = queue.end_work();
        let why = why.expect("why it ended").error().to_string();
        assert!(why.contains("y.nc: another I/O server of the group has ended"), "{why}");
        assert!(gate.wait_for(1, 1), "what all told is made");
    }

    #[test]
    fn a_rank_that_is_missed_ends_the_file_for_all() {
        let gate = Gate::new(Path::new("x.nc"), 2, Some(Duration::from_millis(400)), None);
        let load = Arc::new(Load::new());
        let queues = [(); 2].map(|()| Arc::new(Queue::new(Arc::clone(&load))));
        (0..).zip(&queues).for_each(|(rank, queue)| gate.enter(rank, queue, Path::new("x.nc")));
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
