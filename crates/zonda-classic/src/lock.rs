//! The locks of a file: those of `zonda_runtime::lock`; a trace has the waits for them, and a fork can take
//! them in a bounded time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use zonda_runtime::lock::{self, MutexGuard, RwLockReadGuard, RwLockWriteGuard, take_until};

/// How often those look who are held back for somebody who waits for a time only.
const STEP: Duration = Duration::from_micros(50);

/// A reader-writer lock.
#[derive(Debug)]
pub(crate) struct RwLock<T> {
    inner: lock::RwLock<T>,
    /// Somebody waits for a time only. Std has no such waiting: without this, threads that come and go
    /// without pause would leave it no moment.
    closing: AtomicBool,
}

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> RwLock<T> {
        RwLock { inner: lock::RwLock::new(value), closing: AtomicBool::new(false) }
    }

    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.come_in();
        zonda_trace::lock(|| self.inner.try_read(), || self.inner.read())
    }

    #[inline]
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.come_in();
        self.wait()
    }

    /// The same, not beyond a time. Until then those who come anew are held back.
    pub(crate) fn write_until(&self, until: Option<Instant>) -> Option<RwLockWriteGuard<'_, T>> {
        self.closing.store(true, Ordering::Relaxed);
        let taken = take_until(until, || self.inner.try_write(), || self.wait());
        self.closing.store(false, Ordering::Relaxed);
        taken
    }

    fn wait(&self) -> RwLockWriteGuard<'_, T> {
        zonda_trace::lock(|| self.inner.try_write(), || self.inner.write())
    }

    #[inline]
    fn come_in(&self) {
        while self.closing.load(Ordering::Relaxed) {
            std::thread::sleep(STEP);
        }
    }
}

/// A mutual exclusion lock.
#[derive(Debug)]
pub(crate) struct Mutex<T>(lock::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(lock::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        zonda_trace::lock(|| self.0.try_lock(), || self.0.lock())
    }

    /// The same, not beyond a time.
    pub(crate) fn lock_until(&self, until: Option<Instant>) -> Option<MutexGuard<'_, T>> {
        take_until(until, || self.0.try_lock(), || self.lock())
    }
}
