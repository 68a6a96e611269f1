//! What keeps the shadows of a file's ranks together where a client ends early: a call that all ranks make is made when all clients have
//! told it, so that all shadows come to the same last one.

use std::collections::BTreeSet;

use zonda_format::{GroupId, VarRef};
use zonda_runtime::lock::{Condvar, Mutex, Rank};
use zonda_served::Call;

/// The clients of a file of several ranks.
#[derive(Debug)]
pub(super) struct Gate {
    ranks: Mutex<Vec<RankCalls>>,
    changed: Condvar,
}

/// What one client has told.
#[derive(Clone, Debug, Default)]
struct RankCalls {
    /// Calls that all ranks make.
    n: u64,
    is_ended: bool,
    /// Variables whose puts all ranks make; the root stands for all of a classic file.
    collective: BTreeSet<VarRef>,
}

impl Gate {
    pub(super) fn new(n_ranks: usize) -> Gate {
        let ranks = (0..n_ranks).map(|_| RankCalls::default()).collect();
        let ranks = Mutex::ranked(Rank::View, ranks);
        Gate { ranks, changed: Condvar::new() }
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
        self.changed.notify_all();
        Some(number)
    }

    /// A rank will tell nothing more.
    pub(super) fn end(&self, rank: usize) {
        if let Some(mine) = self.ranks.lock().get_mut(rank) {
            mine.is_ended = true;
        }
        self.changed.notify_all();
    }

    /// Waits until all ranks have told so many calls. False where one of them has ended before.
    pub(super) fn wait_for(&self, number: u64) -> bool {
        let mut ranks = self.ranks.lock();
        loop {
            if ranks.iter().all(|rank| rank.n >= number) {
                return true;
            }
            if ranks.iter().any(|rank| rank.n < number && rank.is_ended) {
                return false;
            }
            ranks = self.changed.wait(ranks);
        }
    }
}

#[cfg(test)]
mod tests {
    use zonda_runtime::worker::{self, Purpose};

    use super::*;

    #[test]
    fn calls_wait_for_all_ranks() {
        let gate = Gate::new(2);
        assert_eq!(gate.told(0, &Call::Sync, true), Some(1));
        let var = VarRef { group: GroupId::ROOT, var: zonda_model::VarId(3) };
        assert_eq!(gate.told(1, &Call::TakePart { var }, false), None);
        let together = Call::SetCollective { var, is_collective: true };
        assert_eq!(gate.told(1, &together, false), None);
        assert_eq!(gate.told(1, &Call::TakePart { var }, false), Some(1));
        assert!(gate.wait_for(1));
        assert_eq!(gate.told(1, &Call::Close, false), Some(2));
        std::thread::scope(|scope| {
            let wait = || gate.wait_for(2);
            let waits = worker::spawn_scoped(scope, String::new(), Purpose::WriteBehind, wait);
            gate.end(0);
            assert!(!waits.unwrap().join().unwrap());
        });
        assert!(gate.wait_for(1), "what all told is made");
    }
}
