//! What went wrong in a thread that nobody waits for.

use crate::StorageError;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::lock::{Mutex, Rank};

/// The first error that nobody has been told of.
#[derive(Debug)]
pub(crate) struct Failed {
    error: Mutex<Option<StorageError>>,
    /// Whether there is one, mostly: no lock is taken to see that there is none.
    is_some: AtomicBool,
}

impl Default for Failed {
    fn default() -> Failed {
        Failed { error: Mutex::ranked(Rank::Failed, None), is_some: AtomicBool::new(false) }
    }
}

impl Failed {
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
