//! The bytes that the library may take in this process (`ZONDA_MEMORY`), and who has them.
//!
//! All that grows with data counts: pages, decoded chunks, queues, chunks that wait for more data, memory
//! that is kept, traces ([`Kind`]). Only caches that size themselves are held to the limit: one whose size
//! was asked for by name has it. A cache may always have a few pages, so that many open files slow each
//! other down but still work.

use crate::tuning::SMALL_BUDGET_BYTES;

mod ages;
mod blocks;
mod broker;
mod clock;
mod kind;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

pub use ages::Ages;
pub use blocks::{Block, Blocks};
pub use broker::{Broker, Holder, MemoryUse};
pub use clock::{USELESS, now, tick};
pub use kind::Kind;

use crate::machine::Machine;
use crate::{Settled, setting};

/// The most that a program takes for itself, see [`limit`].
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// The one of this process.
static PROCESS: Broker = Broker::of_process();

/// The one of this process, which has [`budget`] bytes.
#[inline]
#[must_use]
pub fn process() -> &'static Broker {
    &PROCESS
}

/// How many bytes there are for all.
#[must_use]
pub fn budget() -> u64 {
    static BUDGET: Settled<u64> = Settled::new();
    let default = || Machine::of_process().default_memory().value;
    let budget = *BUDGET.get_or_make(|| setting::bytes("ZONDA_MEMORY", default));
    budget.min(LIMIT.load(Ordering::Relaxed))
}

/// So many bytes there are in any case, unless somebody says otherwise: to find out how much there is takes longer than to
/// change an attribute.
fn little() -> u64 {
    static KNOWN: Settled<u64> = Settled::new();
    let known = *KNOWN.get_or_make(|| match setting::text("ZONDA_MEMORY") {
        Some(_) => 0,
        None => SMALL_BUDGET_BYTES,
    });
    known.min(LIMIT.load(Ordering::Relaxed))
}

/// Takes no more than so many bytes in this process, if the user did not say how
/// many there are: for a program that was told of how much memory to take in all.
pub fn limit(bytes: u64) {
    if setting::text("ZONDA_MEMORY").is_none() {
        LIMIT.store(bytes, Ordering::Relaxed);
    }
}
