//! The broker of memory under a scheduler that tries orders of its threads, as `model.rs` does the pool: every count and
//! every lock is a place where another thread may come between.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// As `atomic` of the crate.
mod atomic {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

/// As `lock` of the crate.
mod lock {
    use std::time::Instant;

    pub(crate) use shuttle::sync::MutexGuard;

    /// The order of locks is looked at in the crate's own.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Rank {
        Holders,
        Freeze,
    }

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) const fn ranked(_rank: Rank, value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }

        /// The time is always long enough.
        pub(crate) fn lock_until(&self, _until: Instant) -> Option<MutexGuard<'_, T>> {
            Some(self.lock())
        }
    }

    /// That of the process, which nobody takes here.
    pub(crate) struct Global<T: 'static>(Mutex<T>);

    impl<T: 'static> Global<T> {
        pub(crate) const fn new(rank: Rank, first: T, _fresh: fn() -> T) -> Global<T> {
            Global(Mutex::ranked(rank, first))
        }

        pub(crate) fn lock(&'static self) -> MutexGuard<'static, T> {
            self.0.lock()
        }

        pub(crate) fn try_lock(&'static self) -> Option<MutexGuard<'static, T>> {
            self.0.try_lock()
        }

        pub(crate) fn lock_until(&'static self, until: Instant) -> Option<MutexGuard<'static, T>> {
            self.0.lock_until(until)
        }
    }
}

/// As `fork` of the crate.
mod fork {
    use std::time::Instant;

    use super::lock::Rank;

    pub(crate) struct Child;

    #[expect(dead_code, reason = "no process forks here")]
    pub(crate) trait Freeze: Sync {
        fn rank(&self) -> Rank;
        fn hold(&'static self, until: Instant) -> Box<dyn Frozen>;
    }

    #[expect(dead_code, reason = "no process forks here")]
    pub(crate) trait Frozen {
        fn in_child(&mut self, child: Child);
        fn give_back(&mut self);
    }

    pub(crate) fn register(_part: &'static dyn Freeze) {}
}

#[allow(dead_code, unreachable_pub)]
#[path = "../src/apart.rs"]
mod apart;
use apart::Apart;

#[allow(dead_code, unreachable_pub)]
#[path = "../src/memory"]
mod memory {
    pub(crate) mod broker;
    pub(crate) mod clock;
    mod kind;

    pub(crate) use broker::{Broker, Holder};
    pub(crate) use clock::{USELESS, tick};
    pub(crate) use kind::Kind;

    static PROCESS: Broker = Broker::of_process();

    pub(crate) fn process() -> &'static Broker {
        &PROCESS
    }

    pub(crate) fn budget() -> u64 {
        1 << 20
    }

    pub(crate) fn little() -> u64 {
        0
    }
}

#[allow(dead_code)]
#[path = "../src/tuning.rs"]
mod tuning;

use lock::{Mutex, Rank};
use memory::{Broker, Holder, Kind, tick};

/// Orders that are tried; each is another one.
const ORDERS: usize = 2000;
const LIMIT: u64 = 40;
const PART: u64 = 10;

fn in_many_orders(test: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(test, ORDERS);
}

/// Parts of one size, by the time of their last use.
struct Shelf {
    broker: Arc<Broker>,
    /// Bytes that the broker has granted to all, counted only while they are surely had.
    granted: Arc<AtomicU64>,
    parts: Mutex<VecDeque<u64>>,
    has_left: AtomicBool,
}

impl Shelf {
    fn new(broker: &Arc<Broker>, granted: &Arc<AtomicU64>) -> Arc<Shelf> {
        let (broker, granted) = (Arc::clone(broker), Arc::clone(granted));
        let parts = Mutex::ranked(Rank::Freeze, VecDeque::new());
        let shelf = Arc::new(Shelf { broker, granted, parts, has_left: AtomicBool::new(false) });
        let weak: Weak<Shelf> = Arc::downgrade(&shelf);
        shelf.broker.join(weak);
        shelf
    }

    /// One part more, asked for while its own lock is held, as caches do.
    fn add(&self, before: u64) -> bool {
        let mut parts = self.parts.lock();
        let taken = self.broker.take_over(Kind::Pages, PART, before);
        if taken {
            let all = self.granted.fetch_add(PART, Ordering::SeqCst) + PART;
            assert!(all <= LIMIT, "{all} bytes are granted of {LIMIT}");
            parts.push_back(tick());
        }
        taken
    }

    fn less(&self) {
        self.granted.fetch_sub(PART, Ordering::SeqCst);
        self.broker.give_back(Kind::Pages, PART);
    }

    fn len(&self) -> u64 {
        self.parts.lock().len() as u64
    }

    /// Goes: nobody asks for anything of it any more.
    fn leave(self: &Arc<Shelf>) {
        let weak: Weak<dyn Holder> = Arc::downgrade(self) as Weak<dyn Holder>;
        self.broker.leave(&weak, Instant::now() + Duration::from_secs(1));
        self.has_left.store(true, Ordering::SeqCst);
        let parts = std::mem::take(&mut *self.parts.lock());
        parts.iter().for_each(|_| self.less());
    }
}

impl Holder for Shelf {
    fn least_useful(&self) -> Option<u64> {
        self.parts.try_lock()?.front().copied()
    }

    fn give_back(&self, bytes: u64, before: u64) -> u64 {
        assert!(!self.has_left.load(Ordering::SeqCst), "it is asked after it has left");
        let Some(mut parts) = self.parts.try_lock() else { return 0 };
        let mut given = 0;
        while given < bytes && parts.front().is_some_and(|stamp| *stamp < before) {
            parts.pop_front();
            self.less();
            given += PART;
        }
        given
    }
}

/// Two caches that take from each other, each while it holds its own lock: nobody waits for ever, no more is granted than
/// there is, and in the end each byte is where somebody has it.
#[test]
fn who_takes_from_each_other() {
    in_many_orders(|| {
        let (broker, granted) = (Arc::new(Broker::new(LIMIT)), Arc::new(AtomicU64::new(0)));
        let shelves = [Shelf::new(&broker, &granted), Shelf::new(&broker, &granted)];
        let threads = shelves.iter().cloned().map(|shelf| {
            shuttle::thread::spawn(move || (0..4).filter(|_| shelf.add(u64::MAX)).count())
        });
        let threads: Vec<_> = threads.collect();
        let added: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        let held: u64 = shelves.iter().map(|shelf| shelf.len() * PART).sum();
        assert_eq!((broker.in_use(), granted.load(Ordering::SeqCst)), (held, held));
        assert!(held <= LIMIT && added as u64 * PART >= held);
        // Nobody is at it any more: what is asked for is had, after a few uses at most.
        let _later = (0..40).map(|_| tick()).max();
        assert!(broker.take_over(Kind::Queues, PART, u64::MAX));
    });
}

/// A file is closed while others take memory from it.
#[test]
fn who_leaves_is_not_asked_any_more() {
    in_many_orders(|| {
        let (broker, granted) = (Arc::new(Broker::new(LIMIT)), Arc::new(AtomicU64::new(0)));
        let leaving = Shelf::new(&broker, &granted);
        (0..LIMIT / PART).for_each(|_| assert!(leaving.add(u64::MAX)));
        let staying = Shelf::new(&broker, &granted);
        let taker = Arc::clone(&staying);
        let thread = shuttle::thread::spawn(move || {
            (0..3).for_each(|_| {
                taker.add(u64::MAX);
            });
        });
        leaving.leave();
        thread.join().unwrap();
        let held = staying.len() * PART;
        assert_eq!((broker.in_use(), granted.load(Ordering::SeqCst)), (held, held));
    });
}

/// What has to be had whatever the limit is, beside one who keeps to it.
#[test]
fn who_cannot_go_without_is_never_refused() {
    in_many_orders(|| {
        let (broker, granted) = (Arc::new(Broker::new(LIMIT)), Arc::new(AtomicU64::new(0)));
        let shelf = Shelf::new(&broker, &granted);
        let other = Arc::clone(&shelf);
        let thread = shuttle::thread::spawn(move || {
            (0..3).for_each(|_| {
                other.add(u64::MAX);
            });
        });
        broker.take_first(Kind::Incomplete, 3 * PART);
        broker.turn(Kind::Incomplete, Kind::Queues, PART);
        thread.join().unwrap();
        let held = shelf.len() * PART + 3 * PART;
        assert_eq!(broker.in_use(), held);
        let of =
            |kind: Kind| broker.memory_use().into_iter().find(|held| held.kind == kind).unwrap();
        assert_eq!(of(Kind::Incomplete).bytes, 2 * PART);
        assert_eq!(of(Kind::Queues).bytes, PART);
        assert_eq!(of(Kind::Pages).bytes, shelf.len() * PART);
        broker.give_back(Kind::Incomplete, 2 * PART);
        broker.give_back(Kind::Queues, PART);
        assert_eq!(broker.in_use(), shelf.len() * PART);
    });
}
