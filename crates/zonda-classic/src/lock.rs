//! The lock under which records are added: one of `zonda_runtime::lock`, whose waits are in a trace. Exclusive access to the file
//! (`&mut`) needs no lock.

use zonda_runtime::lock::{self, MutexGuard, Rank};

/// A mutual exclusion lock.
#[derive(Debug)]
pub(crate) struct TracedMutex<T>(lock::Mutex<T>);

impl<T> TracedMutex<T> {
    pub(crate) fn new(rank: Rank, value: T) -> TracedMutex<T> {
        TracedMutex(lock::Mutex::ranked(rank, value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.check_order();
        zonda_trace::lock(|| self.0.try_lock(), || self.0.lock())
    }
}
