//! The bytes that accepted values may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zonda_runtime::memory::{self, Kind};

/// A limit, and what queues have of it: of one file, or of all files of ranks in the process.
///
/// What is taken counts in the memory of the process, too: caches give way to it. Nobody waits here: a put waits for its own queue alone.
#[derive(Debug)]
pub struct QueueRoom {
    limit: u64,
    taken: AtomicU64,
}

impl QueueRoom {
    /// Room for so many bytes.
    #[must_use]
    pub fn new(limit: u64) -> Arc<QueueRoom> {
        Arc::new(QueueRoom { limit, taken: AtomicU64::new(0) })
    }

    /// How many bytes there are.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Takes bytes if there is room for them.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let more = |taken: u64| taken.checked_add(bytes).filter(|&sum| sum <= self.limit);
        let is_taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if is_taken {
            memory::process().take_first(Kind::Queues, bytes);
        }
        is_taken
    }

    /// Whether there is room for bytes.
    pub(super) fn has(&self, bytes: u64) -> bool {
        self.taken.load(Ordering::Relaxed).saturating_add(bytes) <= self.limit
    }

    /// Takes bytes in any case: few, for what belongs to bytes that found room.
    pub(super) fn take_anyway(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        memory::process().take_anyway(Kind::Queues, bytes);
    }

    /// Gives bytes back that were taken.
    pub(super) fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
        memory::process().give_back(Kind::Queues, bytes);
    }
}
