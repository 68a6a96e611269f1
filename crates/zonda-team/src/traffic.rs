//! What steps cost: messages and bytes, counted by who carries them.

use std::sync::atomic::{AtomicU64, Ordering};

/// The kinds of steps, as they are counted. [`Team::meet`](crate::Team::meet) is a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// [`Team::broadcast`](crate::Team::broadcast).
    Broadcast,
    /// [`Team::reduce`](crate::Team::reduce).
    Reduce,
    /// [`Team::scan`](crate::Team::scan).
    Scan,
    /// [`Team::gather`](crate::Team::gather).
    Gather,
    /// [`Team::exchange`](crate::Team::exchange).
    Exchange,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] =
        [Kind::Broadcast, Kind::Reduce, Kind::Scan, Kind::Gather, Kind::Exchange];

    /// Its name in messages to users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Broadcast => "broadcast",
            Kind::Reduce => "reduce",
            Kind::Scan => "scan",
            Kind::Gather => "gather",
            Kind::Exchange => "exchange",
        }
    }
}

/// What one rank did in steps of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Steps that began.
    pub steps: u64,
    /// Messages that were sent to other ranks.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Messages that came from other ranks. A rank to which all others send is slow although each of them sends one message.
    pub received: u64,
}

/// What one rank did in all of its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic([Count; Kind::ALL.len()]);

impl Traffic {
    /// What it did in steps of this kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> Count {
        self.0[kind as usize]
    }

    /// The sum over all kinds.
    #[must_use]
    pub fn total(&self) -> Count {
        self.0.iter().fold(Count::default(), |sum, count| Count {
            steps: sum.steps + count.steps,
            messages: sum.messages + count.messages,
            bytes: sum.bytes + count.bytes,
            received: sum.received + count.received,
        })
    }

    /// What came after `earlier`, which is of the same rank.
    #[must_use]
    pub fn since(&self, earlier: &Traffic) -> Traffic {
        let mut later = *self;
        for (count, before) in later.0.iter_mut().zip(&earlier.0) {
            count.steps -= before.steps;
            count.messages -= before.messages;
            count.bytes -= before.bytes;
            count.received -= before.received;
        }
        later
    }
}

/// Counters of one rank, for who carries its messages: one thread counts, others may look.
#[derive(Debug, Default)]
pub struct Counters([[AtomicU64; 4]; Kind::ALL.len()]);

impl Counters {
    fn add(&self, kind: Kind, which: usize, amount: u64) {
        self.0[kind as usize][which].fetch_add(amount, Ordering::Relaxed);
    }

    /// A step begins.
    pub fn begin(&self, kind: Kind) {
        self.add(kind, 0, 1);
    }

    /// A message of so many bytes goes to another rank.
    pub fn sent(&self, kind: Kind, n_bytes: usize) {
        self.add(kind, 1, 1);
        self.add(kind, 2, n_bytes as u64);
    }

    /// A message came from another rank.
    pub fn received(&self, kind: Kind) {
        self.add(kind, 3, 1);
    }

    /// What was counted so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        Traffic(Kind::ALL.map(|kind| {
            let of = &self.0[kind as usize];
            let [steps, messages, bytes, received] =
                std::array::from_fn(|i| of[i].load(Ordering::Relaxed));
            Count { steps, messages, bytes, received }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_by_kind() {
        let counters = Counters::default();
        counters.begin(Kind::Gather);
        counters.sent(Kind::Gather, 10);
        let earlier = counters.traffic();
        counters.begin(Kind::Reduce);
        counters.sent(Kind::Reduce, 0);
        counters.sent(Kind::Reduce, 5);
        counters.received(Kind::Reduce);
        let reduce = Count { steps: 1, messages: 2, bytes: 5, received: 1 };
        assert_eq!(counters.traffic().of(Kind::Reduce), reduce);
        assert_eq!(counters.traffic().since(&earlier).total(), reduce);
        let total = Count { steps: 2, messages: 3, bytes: 15, received: 1 };
        assert_eq!(counters.traffic().total(), total);
        assert_eq!(Kind::ALL.map(|kind| kind as usize), [0, 1, 2, 3, 4]);
    }
}
