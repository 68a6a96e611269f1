//! The locks of the library: those of std, without poisoning.
//!
//! Not parking_lot's: these keep all who wait in one table of the process. A child of `fork` has that table as
//! it was, with entries of threads that it has not, whose memory its own threads then get: it runs in
//! circles, or waits for ever, in the first lock that somebody waits for. Std's wait in the kernel, and a lock
//! that nobody holds is as good as new.
//!
//! A panic while a lock is held is caught at the C boundary, which gives the file up, or ends a thread in the
//! background; what it was at is left as far as it is. So who comes next gets the lock as if nothing had been.
//! This is the one place that says so: no other module takes locks from std.

use std::sync::{PoisonError, TryLockError, TryLockResult};
use std::time::{Duration, Instant};

use crate::sync;
pub use crate::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// How often somebody looks who does not wait longer than he said.
const STEP: Duration = Duration::from_micros(50);

/// A lock that nobody has; one of which the holder panicked, too.
fn attempted<G>(taken: TryLockResult<G>) -> Option<G> {
    match taken {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// A lock: what `wait` waits for, or, where there is a time that is not to be passed, what `attempt`
/// gives until then.
pub fn take_until<T>(
    until: Option<Instant>,
    mut attempt: impl FnMut() -> Option<T>,
    wait: impl FnOnce() -> T,
) -> Option<T> {
    let Some(until) = until else { return Some(wait()) };
    loop {
        if let Some(taken) = attempt() {
            return Some(taken);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(STEP);
    }
}

/// A mutual exclusion lock.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// One that nobody holds.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(sync::Mutex::new(value))
    }

    /// What it guarded.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes it if nobody has it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        attempted(self.0.try_lock())
    }

    /// Waits for it, and where a time is said not beyond that.
    pub fn lock_until(&self, until: Option<Instant>) -> Option<MutexGuard<'_, T>> {
        take_until(until, || self.try_lock(), || self.lock())
    }

    /// What it guards, for who has it alone.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lock that readers share and a writer has alone.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(sync::RwLock<T>);

impl<T> RwLock<T> {
    /// One that nobody holds.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(sync::RwLock::new(value))
    }

    /// What it guarded.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until no writer has it.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody has it.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes it if no writer has it or waits for it.
    #[inline]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        attempted(self.0.try_read())
    }

    /// Takes it if nobody has it.
    #[inline]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        attempted(self.0.try_write())
    }

    /// Waits until nobody has it, and where a time is said not beyond that.
    pub fn write_until(&self, until: Option<Instant>) -> Option<RwLockWriteGuard<'_, T>> {
        take_until(until, || self.try_write(), || self.write())
    }

    /// What it guards, for who has it alone.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waiting for something that others do under a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// One that nobody waits at.
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar(sync::Condvar::new())
    }

    /// Gives the lock back, waits to be woken (or is, for no reason), and takes the lock again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for a time; whether that had passed.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let waited = self.0.wait_timeout(guard, time);
        let (guard, ended) = waited.unwrap_or_else(PoisonError::into_inner);
        (guard, ended.timed_out())
    }

    /// Wakes one who waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_leaves_a_lock_to_the_next() {
        let (mutex, lock) = (Mutex::new(1), RwLock::new(2));
        let end = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let _held = (mutex.lock(), lock.write());
                panic!("on purpose");
            });
            thread.join()
        });
        assert!(end.is_err());
        *mutex.lock() += 1;
        *lock.write() += 1;
        assert_eq!((*mutex.try_lock().unwrap(), *lock.try_read().unwrap()), (2, 3));
        assert_eq!((mutex.into_inner(), lock.into_inner()), (2, 3));
    }

    #[test]
    fn who_waits_for_a_time_goes_on_without_it() {
        let (mutex, lock) = (Mutex::new(()), RwLock::new(()));
        let soon = || Some(Instant::now() + Duration::from_millis(2));
        let held = (mutex.lock(), lock.read());
        assert!(mutex.try_lock().is_none() && mutex.lock_until(soon()).is_none());
        assert!(lock.try_write().is_none() && lock.write_until(soon()).is_none());
        assert!(lock.try_read().is_some());
        drop(held);
        assert!(mutex.lock_until(soon()).is_some() && lock.write_until(None).is_some());
    }
}
