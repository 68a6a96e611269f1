//! How far a server is with what a client has told, for who waits for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use zonda_shared::RingNews;

use crate::tuning::SERVER_TAKE_POLL;

/// How far a server is with what one client has told.
#[derive(Debug)]
pub(super) struct Progress {
    ring: RingNews,
    /// Bytes of the ring whose calls were taken.
    taken: AtomicU64,
    /// The client has gone, and all of its calls were taken.
    is_over: AtomicBool,
}

impl Progress {
    pub(super) fn new(ring: RingNews) -> Arc<Progress> {
        Arc::new(Progress { ring, taken: AtomicU64::new(0), is_over: AtomicBool::new(false) })
    }

    /// All calls in so many bytes of the ring were taken.
    pub(super) fn note(&self, taken: u64) {
        self.taken.store(taken, Ordering::Release);
    }

    /// No further call will come.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Waits until what the client has told until now was taken.
    pub(super) fn wait(&self) {
        let told = self.ring.written();
        while self.taken.load(Ordering::Acquire) < told && !self.is_over.load(Ordering::Acquire) {
            std::thread::sleep(SERVER_TAKE_POLL);
        }
    }
}
