//! Locks whose newcomers let those pass who wait for a time only.

use crate::tuning::POLL_EVERY;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use super::{Rank, RwLock, RwLockReadGuard, RwLockWriteGuard, take_until};

/// A reader-writer lock for what a fork or an exit waits for: std's have no waiting with an end, and to who only looks
/// now and then, threads that come and go without pause leave no moment.
///
/// How one waits is for the caller to say, who may want to record it.
#[derive(Debug)]
pub struct Polite<T> {
    lock: RwLock<T>,
    /// The process of who waits for a time only, else 0. In a forked child nobody does.
    closing: AtomicU32,
}

impl<T> Polite<T> {
    /// One that nobody holds.
    pub const fn ranked(rank: Rank, value: T) -> Polite<T> {
        Polite { lock: RwLock::ranked(rank, value), closing: AtomicU32::new(0) }
    }

    /// The value, of which nobody else knows any more.
    pub fn into_inner(self) -> T {
        self.lock.into_inner()
    }

    /// Shares it: `take` gets the lock when nobody is to be let pass.
    #[inline]
    pub fn read_by<'a>(
        &'a self,
        take: impl FnOnce(&'a RwLock<T>) -> RwLockReadGuard<'a, T>,
    ) -> RwLockReadGuard<'a, T> {
        self.let_pass();
        self.lock.check_order();
        take(&self.lock)
    }

    /// Takes it alone, in the same way.
    #[inline]
    pub fn write_by<'a>(
        &'a self,
        take: impl FnOnce(&'a RwLock<T>) -> RwLockWriteGuard<'a, T>,
    ) -> RwLockWriteGuard<'a, T> {
        self.let_pass();
        self.lock.check_order();
        take(&self.lock)
    }

    /// Takes it alone, not beyond a time. Until then those who come anew are held back.
    pub fn write_until(&self, until: Instant) -> Option<RwLockWriteGuard<'_, T>> {
        self.closing.store(crate::fork::process_id(), Ordering::Relaxed);
        let taken = take_until(until, || self.lock.try_write());
        self.closing.store(0, Ordering::Relaxed);
        taken
    }

    #[inline]
    fn let_pass(&self) {
        while self.closing.load(Ordering::Relaxed) != 0 && self.is_closing_here() {
            std::thread::sleep(POLL_EVERY);
        }
    }

    #[cold]
    fn is_closing_here(&self) -> bool {
        self.closing.load(Ordering::Relaxed) == crate::fork::process_id()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    #[test]
    fn readers_without_pause_leave_a_moment() {
        let lock = Polite::ranked(Rank::File, 0);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let held = lock.read_by(RwLock::read);
                        std::thread::sleep(Duration::from_micros(200));
                        drop(held);
                    }
                });
            }
            for _ in 0..20 {
                *lock.write_until(Instant::now() + Duration::from_secs(20)).unwrap() += 1;
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(*lock.write_by(RwLock::write), 20);
    }

    #[test]
    fn who_waited_in_a_parent_holds_nobody_back() {
        let lock = Polite::ranked(Rank::File, ());
        lock.closing.store(crate::fork::process_id() + 1, Ordering::Relaxed);
        drop(lock.read_by(RwLock::read));
        let _held = lock.write_by(RwLock::write);
    }
}
