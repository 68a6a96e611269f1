//! The error of a thread that nobody waits for, kept until a call reports it.

use crate::StorageError;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::lock::{Mutex, Rank};

/// The first error that no call has reported yet.
#[derive(Debug)]
pub(crate) struct FirstError {
    error: Mutex<Option<StorageError>>,
    /// Whether there is one. It is set under the lock, and read without it on every write.
    is_some: AtomicBool,
}

impl Default for FirstError {
    fn default() -> FirstError {
        FirstError { error: Mutex::ranked(Rank::Failed, None), is_some: AtomicBool::new(false) }
    }
}

impl FirstError {
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.is_some.load(Ordering::Acquire)
    }

    /// Keeps an error until it is taken. A second one before that adds nothing.
    pub(crate) fn note(&self, error: &StorageError) {
        let mut kept = self.error.lock();
        kept.get_or_insert_with(|| error.clone());
        self.is_some.store(true, Ordering::Release);
    }

    /// Takes the error, if there is one.
    pub(crate) fn take(&self) -> Option<StorageError> {
        let mut kept = self.error.lock();
        self.is_some.store(false, Ordering::Release);
        kept.take()
    }
}
