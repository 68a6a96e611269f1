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
//!
//! Each has its place in one order ([`Rank`]). What threads of the whole process share is a
//! [`Global`], which every fork holds; what a fork or an exit waits for is [`Polite`].

mod global;
mod order;
mod polite;

use crate::tuning::POLL_EVERY;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError, TryLockResult};
use std::time::{Duration, Instant};

use order::{HeldLock, Ranked};

use crate::callout::{self, Mark};
use crate::fork::MOST_WAIT;

pub use global::Global;
pub use order::{Level, Rank};
pub(crate) use order::{begin_child, set_aside};
pub use polite::Polite;

/// A lock that nobody has; one of which the holder panicked, too.
fn attempted<G>(taken: TryLockResult<G>) -> Option<G> {
    match taken {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// What `attempt` gives until a time that is not to be passed. It is made once at least.
pub fn take_until<T>(until: Instant, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        if let Some(taken) = attempt() {
            return Some(taken);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(POLL_EVERY);
    }
}

/// A lock that is held, until it is dropped: the one of std, and its place in the order.
macro_rules! guard {
    ($(#[$about:meta])* $guard:ident) => {
        $(#[$about])*
        #[derive(Debug)]
        #[must_use = "it is given back when it is dropped"]
        pub struct $guard<'a, T: ?Sized> {
            inner: std::sync::$guard<'a, T>,
            _held: HeldLock,
        }

        impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                &self.inner
            }
        }
    };
}

guard!(
    /// A [`Mutex`] that is held.
    MutexGuard
);
guard!(
    /// An [`RwLock`] that is shared.
    RwLockReadGuard
);
guard!(
    /// An [`RwLock`] that is held alone.
    RwLockWriteGuard
);

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// A mutual exclusion lock.
#[derive(Debug)]
pub struct Mutex<T: ?Sized> {
    rank: Ranked,
    inner: std::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// One that nobody holds, with its place in the order.
    pub const fn ranked(rank: Rank, value: T) -> Mutex<T> {
        Mutex { rank: Ranked::of(rank), inner: std::sync::Mutex::new(value) }
    }

    /// The same, of one of several layers over each other.
    pub const fn at(rank: Rank, level: Level, value: T) -> Mutex<T> {
        Mutex { rank: Ranked::at(rank, level), inner: std::sync::Mutex::new(value) }
    }

    /// What it guarded.
    pub fn into_inner(self) -> T {
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for it.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.rank.check();
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { inner, _held: self.rank.held() }
    }

    /// Takes it if nobody has it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        attempted(self.inner.try_lock()).map(|inner| MutexGuard { inner, _held: self.rank.held() })
    }

    /// Waits for it, not beyond a time.
    pub fn lock_until(&self, until: Instant) -> Option<MutexGuard<'_, T>> {
        take_until(until, || self.try_lock())
    }

    /// What it guarded, for who has it alone.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether this thread may wait for it, for who then tries first.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn check_order(&self) {
        self.rank.check();
    }
}

/// A lock that readers share and a writer has alone.
#[derive(Debug)]
pub struct RwLock<T: ?Sized> {
    rank: Ranked,
    inner: std::sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// One that nobody holds, with its place in the order.
    pub const fn ranked(rank: Rank, value: T) -> RwLock<T> {
        RwLock { rank: Ranked::of(rank), inner: std::sync::RwLock::new(value) }
    }

    /// The same, of one of several layers over each other.
    pub const fn at(rank: Rank, level: Level, value: T) -> RwLock<T> {
        RwLock { rank: Ranked::at(rank, level), inner: std::sync::RwLock::new(value) }
    }

    /// What it guarded.
    pub fn into_inner(self) -> T {
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until no writer has it.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.rank.check();
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        RwLockReadGuard { inner, _held: self.rank.held() }
    }

    /// Waits until nobody has it.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.rank.check();
        let inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        RwLockWriteGuard { inner, _held: self.rank.held() }
    }

    /// The same of a file: from code in the middle of a call ([`callout`]) without waiting for the call's own, nor
    /// without end for another one.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn read_for(&self, mark: Mark) -> RwLockReadGuard<'_, T> {
        self.rank.check();
        self.try_read().unwrap_or_else(|| self.wait_for(mark, RwLock::try_read, RwLock::read))
    }

    /// As [`RwLock::write`], in the same way.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn write_for(&self, mark: Mark) -> RwLockWriteGuard<'_, T> {
        self.rank.check();
        self.try_write().unwrap_or_else(|| self.wait_for(mark, RwLock::try_write, RwLock::write))
    }

    #[cold]
    fn wait_for<'a, G>(
        &'a self,
        mark: Mark,
        attempt: fn(&'a RwLock<T>) -> Option<G>,
        wait: fn(&'a RwLock<T>) -> G,
    ) -> G {
        if !callout::is_within() {
            return wait(self);
        }
        let patience = if callout::is_for(mark) { Duration::ZERO } else { MOST_WAIT };
        let taken = take_until(Instant::now() + patience, || attempt(self));
        taken.unwrap_or_else(|| callout::give_up())
    }

    /// Takes it if no writer has it or waits for it.
    #[inline]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        let taken = attempted(self.inner.try_read());
        taken.map(|inner| RwLockReadGuard { inner, _held: self.rank.held() })
    }

    /// Takes it if nobody has it.
    #[inline]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        let taken = attempted(self.inner.try_write());
        taken.map(|inner| RwLockWriteGuard { inner, _held: self.rank.held() })
    }

    /// Waits until nobody has it, not beyond a time.
    pub fn write_until(&self, until: Instant) -> Option<RwLockWriteGuard<'_, T>> {
        take_until(until, || self.try_write())
    }

    /// What it guards, for who has it alone.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether this thread may wait for it, for who then tries first.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn check_order(&self) {
        self.rank.check();
    }
}

/// Waiting for something that others do under a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

impl Condvar {
    /// One that nobody waits at.
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar(std::sync::Condvar::new())
    }

    /// Gives the lock back, waits to be woken (or is, for no reason), and takes the lock again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let MutexGuard { inner, _held: held } = guard;
        let inner = self.0.wait(inner).unwrap_or_else(PoisonError::into_inner);
        MutexGuard { inner, _held: held }
    }

    /// The same for a time; whether that had passed.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let MutexGuard { inner, _held: held } = guard;
        let waited = self.0.wait_timeout(inner, time);
        let (inner, ended) = waited.unwrap_or_else(PoisonError::into_inner);
        (MutexGuard { inner, _held: held }, ended.timed_out())
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

/// What a release build carries of ranks: nothing.
#[cfg(not(debug_assertions))]
const _: () = assert!(
    size_of::<(Ranked, HeldLock, Level)>() == 0
        && size_of::<Mutex<u32>>() == size_of::<std::sync::Mutex<u32>>()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_leaves_a_lock_to_the_next() {
        let (mutex, lock) = (Mutex::ranked(Rank::Said, 1), RwLock::ranked(Rank::Trace, 2));
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
        let (mutex, lock) = (Mutex::ranked(Rank::Said, ()), RwLock::ranked(Rank::Trace, ()));
        let soon = || Instant::now() + Duration::from_millis(2);
        let held = (mutex.lock(), lock.read());
        assert!(mutex.try_lock().is_none() && mutex.lock_until(soon()).is_none());
        assert!(lock.try_write().is_none() && lock.write_until(soon()).is_none());
        assert!(lock.try_read().is_some());
        drop(held);
        assert!(mutex.lock_until(soon()).is_some() && lock.write_until(soon()).is_some());
    }

    /// What the order says of `body`, in builds that look at it.
    fn refused(body: impl FnOnce() + Send) -> Option<String> {
        let end = std::thread::scope(|scope| scope.spawn(body).join());
        end.err().and_then(|panic| panic.downcast_ref::<String>().cloned())
    }

    #[test]
    fn a_lock_further_up_is_not_waited_for() {
        let (file, budget) = (RwLock::ranked(Rank::File, ()), Mutex::ranked(Rank::Budget, ()));
        let other = RwLock::ranked(Rank::File, ());
        assert_eq!(refused(|| drop((file.read(), budget.lock()))), None);
        assert_eq!(
            refused(|| drop((budget.lock(), file.try_read()))),
            None,
            "a try waits for nobody"
        );
        // Given back in any order.
        let in_turn = || {
            let (first, second) = (file.read(), budget.lock());
            drop(first);
            let again = file.try_read();
            drop((second, again));
            drop(file.write());
        };
        assert_eq!(refused(in_turn), None);
        let below = RwLock::at(Rank::Page, Level::next(), ());
        let level = Level::next();
        let (above, within) = (RwLock::at(Rank::Page, level, ()), Mutex::ranked(Rank::Table, ()));
        assert_eq!(refused(|| drop((above.read(), below.read(), within.lock()))), None);
        if cfg!(debug_assertions) {
            let text = "a thread waits for a lock of rank File while it holds one of rank";
            let upwards = refused(|| drop((budget.lock(), file.read())));
            assert_eq!(upwards, Some(format!("{text} Budget")));
            let beside = refused(|| drop((file.read(), other.read())));
            assert_eq!(beside, Some(format!("{text} File")));
            let from_below = refused(|| drop((below.read(), above.read())));
            assert_eq!(from_below.map(|text| text.contains("Page while")), Some(true));
        }
    }
}
