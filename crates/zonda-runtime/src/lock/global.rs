//! Locks of the whole process, which every fork holds.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::{Mutex, MutexGuard, Rank};
use crate::fork::{self, Child, Freeze, Frozen};

/// What all threads of a process share, under a lock.
///
/// It enters itself into the list of what a fork holds when it is first taken, so the child finds it as it was between
/// two uses. Where a fork could not have it in time (the thread that forks is in a signal handler, and has it itself),
/// the child begins with what [`Global::new`] says, instead of waiting for ever for a thread that it does not have.
pub struct Global<T: 'static> {
    rank: Rank,
    first: Mutex<T>,
    /// What a child has in its place.
    later: OnceLock<&'static Global<T>>,
    fresh: fn() -> T,
    is_known: AtomicBool,
}

impl<T: 'static> std::fmt::Debug for Global<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Global").field("rank", &self.rank).finish_non_exhaustive()
    }
}

impl<T: Send + 'static> Global<T> {
    /// `first`, and for the child of a fork that could not have it what `fresh` gives.
    pub const fn new(rank: Rank, first: T, fresh: fn() -> T) -> Global<T> {
        let first = Mutex::ranked(rank, first);
        Global { rank, first, later: OnceLock::new(), fresh, is_known: AtomicBool::new(false) }
    }

    /// Waits for it.
    #[inline]
    pub fn lock(&'static self) -> MutexGuard<'static, T> {
        self.known().lock()
    }

    /// Takes it if nobody has it.
    #[inline]
    pub fn try_lock(&'static self) -> Option<MutexGuard<'static, T>> {
        self.known().try_lock()
    }

    /// Waits for it, not beyond a time.
    pub fn lock_until(&'static self, until: Instant) -> Option<MutexGuard<'static, T>> {
        self.known().lock_until(until)
    }

    #[inline]
    fn known(&'static self) -> &'static Mutex<T> {
        if !self.is_known.load(Ordering::Acquire) {
            // Nobody takes it before a fork would hold it.
            fork::register(self);
            self.is_known.store(true, Ordering::Release);
        }
        self.now()
    }

    fn now(&'static self) -> &'static Mutex<T> {
        let mut now = self;
        while let Some(later) = now.later.get() {
            now = later;
        }
        &now.first
    }
}

impl<T: Send + 'static> Freeze for Global<T> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn hold(&'static self, until: Instant) -> Box<dyn Frozen> {
        Box::new(HeldGlobal { of: self, guard: self.now().lock_until(until) })
    }
}

struct HeldGlobal<T: 'static> {
    of: &'static Global<T>,
    guard: Option<MutexGuard<'static, T>>,
}

impl<T: Send + 'static> Frozen for HeldGlobal<T> {
    fn in_child(&mut self, _: Child) {
        if self.guard.is_none() {
            let of = self.of;
            let mut last = of;
            while let Some(later) = last.later.get() {
                last = later;
            }
            let fresh = Global::new(of.rank, (of.fresh)(), of.fresh);
            // Nobody else is there who could have set it.
            let _ = last.later.set(Box::leak(Box::new(fresh)));
        }
    }

    fn give_back(&mut self) {
        self.guard = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static COUNT: Global<u32> = Global::new(Rank::Said, 1, || 100);

    #[test]
    fn a_child_begins_anew_where_the_lock_was_not_to_be_had() {
        let child = Child { is_quiet: true };
        *COUNT.lock() += 1;
        let mut held = COUNT.hold(Instant::now());
        assert!(COUNT.lock_until(Instant::now()).is_none());
        held.in_child(child);
        held.give_back();
        assert_eq!(*COUNT.lock(), 2, "the child has what the parent had");
        for fresh in [100, 100] {
            let lost = COUNT.lock();
            let mut held = COUNT.hold(Instant::now());
            held.in_child(child);
            held.give_back();
            assert_eq!(*COUNT.lock_until(Instant::now()).unwrap(), fresh);
            drop(lost);
            *COUNT.lock() = 7;
        }
    }
}
