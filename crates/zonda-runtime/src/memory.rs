//! The bytes that all caches of the process may use together (`ZONDA_MEMORY`).
//!
//! Only caches that size themselves are held to it: one whose size was asked for by name has it. A
//! cache may always have a few pages, so that many open files slow each other down but still work.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::machine::Machine;
use crate::{Settled, setting};

/// Bytes in use by the caches that count.
static IN_USE: AtomicU64 = AtomicU64::new(0);

/// The most that a program takes for itself, see [`limit`].
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// How many bytes there are for all caches.
#[must_use]
pub fn budget() -> u64 {
    static BUDGET: Settled<u64> = Settled::new();
    let default = || Machine::of_process().default_memory().value;
    let budget = *BUDGET.get_or_make(|| setting::bytes("ZONDA_MEMORY", default));
    budget.min(LIMIT.load(Ordering::Relaxed))
}

/// Takes no more than so many bytes for all caches of this process, if the user did not say how
/// many there are: for a program that was told of how much memory to take in all.
pub fn limit(bytes: u64) {
    if setting::text("ZONDA_MEMORY").is_none() {
        LIMIT.store(bytes, Ordering::Relaxed);
    }
}

/// Bytes that are taken now.
#[must_use]
pub fn in_use() -> u64 {
    IN_USE.load(Ordering::Relaxed)
}

/// Takes `bytes` if the budget has them.
#[must_use = "what was not taken must not be given back"]
pub fn take(bytes: u64) -> bool {
    let taken = IN_USE.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    let fits = taken <= budget();
    if !fits {
        give_back(bytes);
    }
    fits
}

/// Takes `bytes` whether the budget has them or not.
pub fn take_anyway(bytes: u64) {
    IN_USE.fetch_add(bytes, Ordering::Relaxed);
}

/// Gives back what was taken.
pub fn give_back(bytes: u64) {
    IN_USE.fetch_sub(bytes, Ordering::Relaxed);
}
