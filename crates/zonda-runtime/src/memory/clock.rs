//! The time by which all holders say when something was used: it goes on with each use.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Apart;

/// What was used so long ago is of no use: memory that is only kept to be used again.
pub const USELESS: u64 = 0;

/// In a line of its own: each use of any file writes it.
static CLOCK: Apart<AtomicU64> = Apart(AtomicU64::new(USELESS + 1));

/// The time: later calls give larger numbers, no two the same.
#[inline]
pub fn tick() -> u64 {
    CLOCK.fetch_add(1, Ordering::Relaxed) + 1
}

/// The time, which does not go on by this.
#[inline]
#[must_use]
pub fn now() -> u64 {
    CLOCK.load(Ordering::Relaxed)
}
