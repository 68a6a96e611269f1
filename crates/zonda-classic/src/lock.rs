//! The locks of a file: those of std, without poisoning; a trace has the waits for them.
//!
//! A forked child gives back locks that other threads were waiting for, threads that it does not
//! have. The futex locks of std wake whoever may wait and go on; parking_lot's may hand the lock
//! over to the first in its queue, and with that to nobody.
//!
//! A panic while a lock is held is caught at the C boundary and leaves the file usable, as far as
//! it is: that is why poisoning is ignored.

use std::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use zonda_storage::{attempted, take_until};

/// A reader-writer lock.
#[derive(Debug)]
pub(crate) struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> RwLock<T> {
        RwLock(std::sync::RwLock::new(value))
    }

    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        zonda_trace::lock(|| self.0.try_read(), || self.0.read())
    }

    #[inline]
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        zonda_trace::lock(|| self.0.try_write(), || self.0.write())
    }

    /// The same, not beyond a time.
    pub(crate) fn write_until(&self, until: Option<Instant>) -> Option<RwLockWriteGuard<'_, T>> {
        take_until(until, || attempted(self.0.try_write()), || self.write())
    }
}

/// A mutual exclusion lock.
#[derive(Debug)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        zonda_trace::lock(|| self.0.try_lock(), || self.0.lock())
    }

    /// The same, not beyond a time.
    pub(crate) fn lock_until(&self, until: Option<Instant>) -> Option<MutexGuard<'_, T>> {
        take_until(until, || attempted(self.0.try_lock()), || self.lock())
    }
}
