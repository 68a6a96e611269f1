//! How long steps take on a machine with more ranks than there are here: LogGP.
//!
//! The model is that of Alexandrov, Ionescu, Schauser and Scheiman (LogGP: Incorporating Long Messages into the LogP Model, 1995). A
//! message of k bytes keeps its sender for `o`, is on its way for `L` and (k - 1) times `G`, and keeps its receiver for `o`; a rank sends
//! its next message not before `g` has passed. The steps are those of [`algorithms`](crate::algorithms), along the longest chain of
//! messages that wait for each other.
//!
//! What it leaves out, and so where it is too good: all ranks come at the same time; links of the network that several nodes share are never
//! the narrow place; nothing else runs on the cores. What it leaves out in the other direction: ranks on one node are nearer to each
//! other than [`Machine::latency_seconds`]. It is for comparing numbers of steps, messages and ranks, not for promising times.
//!
//! ```
//! use zonda_team::model::{Machine, Planned, seconds};
//!
//! // An enddef: one look whether all agree, one broadcast of 100 kB. Then each rank sends 1 MB to each of 4 others.
//! let steps = [Planned::reduce(5), Planned::broadcast(100_000), Planned::exchange(4, 4_000_000)];
//! let few = seconds(&Machine::CLUSTER, 128, &steps);
//! let many = seconds(&Machine::CLUSTER, 32_768, &steps);
//! assert!(many < 4.0 * few, "256 times as many ranks: {few} s, then {many} s");
//! ```

use crate::Kind;
use crate::algorithms::rounds;

/// A machine, as LogGP sees it. Times are seconds of one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// L: from when a message leaves its sender's hands until it is with its receiver.
    pub latency_seconds: f64,
    /// o: how long a message keeps its sender, and its receiver.
    pub overhead_seconds: f64,
    /// g: the least time between two messages of a rank.
    pub gap_seconds: f64,
    /// G: how much longer a message takes for each of its bytes.
    pub byte_seconds: f64,
    /// How many messages in a row a reduction takes for each doubling of the ranks: 1 for recursive doubling, as
    /// [`algorithms::reduce`](crate::algorithms::reduce) does it; 2 for an MPI that reduces to one rank and broadcasts.
    pub rounds_per_doubling: f64,
}

impl Machine {
    /// A cluster of 2020 and after, as its users see it through MPI: nodes of 64 ranks on 100 Gbit/s each.
    ///
    /// Assumed are 1.5 µs between two nodes and 0.4 µs of a core for a short message (what is commonly published for InfiniBand and Slingshot with
    /// MPI on top is 1 to 2 µs for half of a ping-pong, which is L + 2 o), and one message in 0.5 µs of a rank. Bytes: 12.5 GB/s of a node,
    /// which its 64 ranks use at the same time, so 0.2 GB/s of a rank, 5 ns a byte; one rank alone would be 64 times as fast.
    pub const CLUSTER: Machine = Machine {
        latency_seconds: 1.5e-6,
        overhead_seconds: 0.4e-6,
        gap_seconds: 0.5e-6,
        byte_seconds: 5e-9,
        rounds_per_doubling: 1.0,
    };

    /// The same on Ethernet with TCP: 25 µs and 5 µs of a core for a message (the kernel is in each), nodes of 16 ranks on 10 Gbit/s each,
    /// so 13 ns a byte; reductions as two trees.
    pub const ETHERNET: Machine = Machine {
        latency_seconds: 25e-6,
        overhead_seconds: 5e-6,
        gap_seconds: 5e-6,
        byte_seconds: 13e-9,
        rounds_per_doubling: 2.0,
    };

    /// One message, from its sender's call until its receiver has it.
    fn message(&self, n_bytes: f64) -> f64 {
        self.latency_seconds
            + 2.0 * self.overhead_seconds
            + (n_bytes - 1.0).max(0.0) * self.byte_seconds
    }
}

/// A step that is to be taken, as its busiest rank sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// The kind.
    pub kind: Kind,
    /// Messages that the busiest rank sends or gets (whichever is more) in an exchange; no matter in other steps.
    pub n_messages: u64,
    /// Bytes: of the list in a broadcast, a reduction or a scan; of each rank's in a gather; that the busiest rank sends or gets in all
    /// in an exchange.
    pub n_bytes: u64,
}

impl Planned {
    /// A broadcast of so many bytes.
    #[must_use]
    pub const fn broadcast(n_bytes: u64) -> Planned {
        Planned { kind: Kind::Broadcast, n_messages: 0, n_bytes }
    }

    /// A reduction of so many numbers.
    #[must_use]
    pub const fn reduce(n_numbers: u64) -> Planned {
        Planned { kind: Kind::Reduce, n_messages: 0, n_bytes: n_numbers * 8 }
    }

    /// A scan of so many numbers.
    #[must_use]
    pub const fn scan(n_numbers: u64) -> Planned {
        Planned { kind: Kind::Scan, n_messages: 0, n_bytes: n_numbers * 8 }
    }

    /// A gather of so many bytes of each rank.
    #[must_use]
    pub const fn gather(n_bytes: u64) -> Planned {
        Planned { kind: Kind::Gather, n_messages: 0, n_bytes }
    }

    /// An exchange in which the busiest rank sends or gets so many messages, with so many bytes in all.
    #[must_use]
    pub const fn exchange(n_messages: u64, n_bytes: u64) -> Planned {
        Planned { kind: Kind::Exchange, n_messages, n_bytes }
    }
}

/// How many seconds steps take, one after the other, at `n` ranks.
///
/// At one rank that is 0: nobody is there to wait for.
#[must_use]
pub fn seconds(machine: &Machine, n: usize, steps: &[Planned]) -> f64 {
    match n {
        0 | 1 => 0.0,
        _ => steps.iter().map(|step| step_seconds(machine, n, *step)).sum(),
    }
}

/// One step at two ranks or more.
fn step_seconds(machine: &Machine, n: usize, step: Planned) -> f64 {
    let n_rounds = f64::from(rounds(n));
    let n_bytes = step.n_bytes as f64;
    let others = (n - 1) as f64;
    match step.kind {
        // Down the tree, or over twice the distance each time, always with the whole list.
        Kind::Broadcast | Kind::Scan => n_rounds * machine.message(n_bytes),
        Kind::Reduce => {
            // Ranks above the greatest power of two hand theirs in before and get the result after.
            let outside = if n.is_power_of_two() { 0.0 } else { 2.0 };
            let doublings = f64::from(n.ilog2()) * machine.rounds_per_doubling;
            (doublings + outside) * machine.message(n_bytes)
        }
        // The root hears from a half, a quarter, ... of the ranks: all bytes but its own, with their lengths.
        Kind::Gather => {
            n_rounds * machine.message(0.0) + others * (n_bytes + 8.0) * machine.byte_seconds
        }
        Kind::Exchange => {
            // At worst all counts are sent.
            let agreement = n_rounds * machine.message(0.0) + others * 8.0 * machine.byte_seconds;
            agreement + messages_seconds(machine, step.n_messages as f64, n_bytes)
        }
    }
}

/// Messages of one rank, one after the other.
fn messages_seconds(machine: &Machine, n_messages: f64, n_bytes: f64) -> f64 {
    if n_messages < 1.0 {
        return 0.0;
    }
    let between = machine.gap_seconds.max(machine.overhead_seconds);
    (n_messages - 1.0) * between + machine.message(n_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that one can add up by hand.
    const SIMPLE: Machine = Machine {
        latency_seconds: 10.0,
        overhead_seconds: 1.0,
        gap_seconds: 3.0,
        byte_seconds: 0.5,
        rounds_per_doubling: 1.0,
    };

    #[track_caller]
    fn takes(n: usize, step: Planned, expected: f64) {
        let found = seconds(&SIMPLE, n, &[step]);
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn steps_take_what_one_adds_up_by_hand() {
        takes(2, Planned::broadcast(1), 12.0);
        takes(2, Planned::broadcast(0), 12.0);
        takes(8, Planned::broadcast(101), 3.0 * (12.0 + 50.0));
        takes(8, Planned::scan(2), 3.0 * (12.0 + 7.5));
        takes(8, Planned::reduce(1), 3.0 * (12.0 + 3.5));
        takes(9, Planned::reduce(1), 5.0 * (12.0 + 3.5));
        takes(4, Planned::gather(12), 2.0 * 12.0 + 3.0 * 20.0 * 0.5);
        takes(4, Planned::exchange(0, 0), 2.0 * 12.0 + 12.0);
        takes(4, Planned::exchange(3, 101), 2.0 * 12.0 + 12.0 + 2.0 * 3.0 + 12.0 + 50.0);
    }

    #[test]
    fn one_rank_waits_for_nobody_and_steps_add_up() {
        let steps = [Planned::reduce(5), Planned::gather(100), Planned::exchange(2, 1000)];
        assert_eq!(seconds(&SIMPLE, 1, &steps), 0.0);
        assert_eq!(seconds(&SIMPLE, 64, &[]), 0.0);
        let apart: f64 = steps.iter().map(|step| seconds(&SIMPLE, 64, &[*step])).sum();
        assert!((seconds(&SIMPLE, 64, &steps) - apart).abs() < 1e-9);
    }

    #[test]
    fn a_reduction_of_two_trees_takes_twice_as_long() {
        let twice = Machine { rounds_per_doubling: 2.0, ..SIMPLE };
        let step = [Planned::reduce(3)];
        assert_eq!(seconds(&twice, 1024, &step), 2.0 * seconds(&SIMPLE, 1024, &step));
    }

    #[test]
    fn more_ranks_messages_and_bytes_never_take_less() {
        for machine in [Machine::CLUSTER, Machine::ETHERNET, SIMPLE] {
            let of = |n, step| seconds(&machine, n, &[step]);
            for power in 1..15 {
                let n = 1 << power;
                for step in [Planned::broadcast(99), Planned::reduce(5), Planned::scan(1)] {
                    assert!(of(n, step) < of(2 * n, step));
                    // The count of rounds is what grows: from 2 ranks to 32,768, fifteen times.
                    assert!(of(2 * n, step) <= 15.0 * of(2, step) + 1e-9);
                }
                assert!(of(n, Planned::gather(9)) < of(n, Planned::gather(10)));
                assert!(of(n, Planned::exchange(1, 9)) < of(n, Planned::exchange(2, 9)));
            }
        }
    }
}
