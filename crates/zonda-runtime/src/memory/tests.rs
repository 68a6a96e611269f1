//! The broker with made-up holders.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::{Broker, Holder, Kind, USELESS, tick};
use crate::fork::{Child, Freeze, MOST_WAIT};
use crate::lock::{Mutex, Rank};

/// Parts of one size, with the time of their last use.
struct Shelf {
    broker: Arc<Broker>,
    kind: Kind,
    part_bytes: u64,
    parts: Mutex<VecDeque<u64>>,
}

impl Shelf {
    fn new(broker: &Arc<Broker>, kind: Kind, part_bytes: u64) -> Arc<Shelf> {
        let parts = Mutex::ranked(Rank::ChunkCache, VecDeque::new());
        let shelf = Arc::new(Shelf { broker: Arc::clone(broker), kind, part_bytes, parts });
        let weak: Weak<Shelf> = Arc::downgrade(&shelf);
        broker.join(weak);
        shelf
    }

    /// Takes one more part, if it is to be had for what was used before `before`.
    fn add(&self, before: u64) -> bool {
        let taken = self.broker.take_over(self.kind, self.part_bytes, before);
        if taken {
            let stamp = if self.kind == Kind::Spare { USELESS } else { tick() };
            self.parts.lock().push_back(stamp);
        }
        taken
    }

    fn len(&self) -> usize {
        self.parts.lock().len()
    }
}

impl Holder for Shelf {
    fn least_useful(&self) -> Option<u64> {
        self.parts.try_lock()?.front().copied()
    }

    fn give_back(&self, bytes: u64, before: u64) -> u64 {
        let Some(mut parts) = self.parts.try_lock() else { return 0 };
        let mut given = 0;
        while given < bytes && parts.front().is_some_and(|stamp| *stamp < before) {
            parts.pop_front();
            self.broker.give_back(self.kind, self.part_bytes);
            given += self.part_bytes;
        }
        given
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let bytes = self.part_bytes * self.parts.get_mut().len() as u64;
        self.broker.give_back(self.kind, bytes);
    }
}

#[test]
fn the_least_useful_goes_first_whatever_it_is() {
    let broker = Arc::new(Broker::new(100));
    let pages = Shelf::new(&broker, Kind::Pages, 10);
    let chunks = Shelf::new(&broker, Kind::Chunks, 20);
    let spare = Shelf::new(&broker, Kind::Spare, 5);
    assert!(pages.add(u64::MAX) && chunks.add(u64::MAX) && pages.add(u64::MAX));
    assert!(chunks.add(u64::MAX) && pages.add(u64::MAX) && pages.add(u64::MAX));
    // 80 bytes so far.
    (0..4).for_each(|_| assert!(spare.add(u64::MAX)));
    assert_eq!(broker.in_use(), 100);
    // What nobody needs goes first, and only as much as is needed.
    assert!(broker.take_over(Kind::Queues, 10, u64::MAX));
    assert_eq!((spare.len(), pages.len(), chunks.len()), (2, 4, 2));
    // Then by age: the rest of it, the first page, the first chunk.
    assert!(broker.take_over(Kind::Queues, 25, u64::MAX));
    assert_eq!((spare.len(), pages.len(), chunks.len()), (0, 3, 1));
    assert!(broker.in_use() <= 100);
    // The second page comes before the second chunk.
    assert!(broker.take_over(Kind::Queues, 20, u64::MAX));
    assert_eq!((pages.len(), chunks.len()), (2, 1), "{}", broker.in_use());
}

#[test]
fn nothing_goes_for_what_is_no_more_useful() {
    let broker = Arc::new(Broker::new(40));
    let chunks = Shelf::new(&broker, Kind::Chunks, 10);
    (0..4).for_each(|_| assert!(chunks.add(u64::MAX)));
    let first = chunks.parts.lock()[0];
    assert!(!broker.take_over(Kind::Pages, 10, first));
    assert_eq!((chunks.len(), broker.in_use()), (4, 40));
    assert!(broker.take_over(Kind::Pages, 10, first + 1));
    assert_eq!((chunks.len(), broker.in_use()), (3, 40));
    // More than there can be is refused, and what went for it is free.
    assert!(!broker.take_over(Kind::Pages, 1000, u64::MAX));
    assert_eq!((chunks.len(), broker.in_use()), (0, 10));
}

#[test]
fn a_holder_in_use_is_passed_over() {
    let broker = Arc::new(Broker::new(20));
    let old = Shelf::new(&broker, Kind::Chunks, 10);
    let new = Shelf::new(&broker, Kind::Chunks, 10);
    assert!(old.add(u64::MAX) && new.add(u64::MAX));
    let parts = old.parts.lock();
    assert!(broker.take_over(Kind::Pages, 10, u64::MAX));
    drop(parts);
    assert_eq!((old.len(), new.len()), (1, 0));
}

#[test]
fn who_is_gone_is_forgotten() {
    let broker = Arc::new(Broker::new(10));
    let shelf = Shelf::new(&broker, Kind::Chunks, 10);
    assert!(shelf.add(u64::MAX));
    let weak: Weak<dyn Holder> = Arc::downgrade(&shelf) as Weak<dyn Holder>;
    broker.leave(&weak, Instant::now() + MOST_WAIT);
    assert!(!broker.take_over(Kind::Pages, 10, u64::MAX), "nobody knows of it");
    drop(shelf);
    assert!(broker.take_over(Kind::Pages, 10, u64::MAX));
    broker.give_back(Kind::Pages, 10);
    assert_eq!(broker.in_use(), 0);
}

#[test]
fn counters_tell_who_has_what() {
    let broker = Broker::new(100);
    broker.take_anyway(Kind::Incomplete, 150);
    assert!(!broker.take(Kind::Pages, 1));
    broker.take_first(Kind::Queues, 7);
    broker.give_back(Kind::Incomplete, 100);
    broker.turn(Kind::Queues, Kind::Spare, 7);
    assert!(broker.take(Kind::Pages, 43) && !broker.take(Kind::Pages, 1));
    let held = broker.memory_use();
    let of = |kind: Kind| held[kind as usize];
    assert_eq!((of(Kind::Incomplete).bytes, of(Kind::Incomplete).most), (50, 150));
    assert_eq!((of(Kind::Queues).bytes, of(Kind::Queues).most), (0, 7));
    assert_eq!((of(Kind::Spare).bytes, of(Kind::Pages).bytes), (7, 43));
    assert_eq!(held.iter().map(|held| held.bytes).sum::<u64>(), broker.in_use());
}

#[test]
fn what_a_parent_has_leaves_its_child_the_whole_limit() {
    let broker: &'static Broker = Box::leak(Box::new(Broker::new(100)));
    broker.take_anyway(Kind::Incomplete, 120);
    broker.take_anyway(Kind::Queues, 7);
    let mut held = broker.hold(Instant::now());
    assert!(!broker.take(Kind::Pages, 1));
    held.in_child(Child { is_quiet: true });
    held.give_back();
    // What was accepted is of no use to it.
    assert_eq!((broker.memory_use()[Kind::Queues as usize].bytes, broker.in_use()), (0, 120));
    assert!(broker.take(Kind::Pages, 100) && !broker.take(Kind::Pages, 1));
    // The child closes what it inherited: it has one limit, and not what its parent had beside it.
    broker.give_back(Kind::Incomplete, 120);
    broker.give_back(Kind::Pages, 100);
    assert_eq!(broker.in_use(), 0);
    assert!(broker.take(Kind::Pages, 100) && !broker.take(Kind::Pages, 1));
    assert_eq!(broker.excess(), 0);
}

#[test]
fn threads_keep_to_the_limit_together() {
    const PART: u64 = 8;
    let broker = Arc::new(Broker::new(50 * PART));
    std::thread::scope(|scope| {
        for kind in [Kind::Pages, Kind::Chunks, Kind::Spare] {
            let broker = &broker;
            scope.spawn(move || {
                for round in 0..200 {
                    let shelf = Shelf::new(broker, kind, PART);
                    for _ in 0..30 {
                        shelf.add(u64::MAX);
                        assert!(broker.in_use() <= broker.limit() + 3 * PART, "{round}");
                    }
                }
            });
        }
    });
    assert_eq!(broker.in_use(), 0);
    assert_eq!(broker.memory_use().map(|held| held.bytes), [0; Kind::COUNT]);
    assert!(broker.take(Kind::Pages, broker.limit()));
}
