//! The locks of a file: those of `zonda_runtime::lock`; a trace has the waits for them, and a fork can take
//! them in a bounded time.

use std::time::Instant;

use zonda_runtime::callout::Mark;
use zonda_runtime::lock::{
    self, MutexGuard, Polite, Rank, RwLockReadGuard, RwLockWriteGuard, take_until,
};

/// A file's reader-writer lock.
#[derive(Debug)]
pub(crate) struct RwLock<T>(Polite<T>);

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> RwLock<T> {
        RwLock(Polite::ranked(Rank::File, value))
    }

    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read_by(|lock| zonda_trace::lock(|| lock.try_read(), || lock.read_for(Mark::NONE)))
    }

    #[inline]
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0
            .write_by(|lock| zonda_trace::lock(|| lock.try_write(), || lock.write_for(Mark::NONE)))
    }

    /// The same, not beyond a time. Until then those who come anew are held back.
    pub(crate) fn write_until(&self, until: Instant) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.write_until(until)
    }
}

/// A mutual exclusion lock.
#[derive(Debug)]
pub(crate) struct Mutex<T>(lock::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(rank: Rank, value: T) -> Mutex<T> {
        Mutex(lock::Mutex::ranked(rank, value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.check_order();
        zonda_trace::lock(|| self.0.try_lock(), || self.0.lock())
    }

    /// The same, not beyond a time.
    pub(crate) fn lock_until(&self, until: Instant) -> Option<MutexGuard<'_, T>> {
        take_until(until, || self.0.try_lock())
    }
}
