//! Storages that wrap another one. A layer's name in a spec is its file's name.
//!
//! `passthrough.rs` shows what a layer consists of; a new one gets its `mod`, `pub use` and registry line here
//! (`docs/dev/adding-a-layer.md`).

mod bufa;
mod cache;
mod cachea;
mod count;
mod direct;
mod eie;
mod event;
mod fault;
mod mmap;
mod passthrough;
mod probe;
mod throttle;

pub use cache::{Adaptive, AsyncCache, Cache, CacheShape};
pub use count::{Count, CountHandle, Counts, Tally};
pub use direct::Direct;
pub use event::Event;
pub use fault::{
    FaultHandle, FaultLayer, FaultPlan, InjectedFault, Log, LogEntry, Watched, WriteLog,
};
pub use mmap::Mmap;
pub(crate) use mmap::give_way_to_writing;
pub use passthrough::Passthrough;
pub(crate) use probe::TracedOpening;
pub use throttle::Throttle;

use crate::spec::{LayerSpec, Registered};
use std::sync::Arc;

/// Every layer that a spec can name; the order is that of the list in error messages.
pub(crate) const LAYERS: &[Registered] = &[
    bufa::REGISTERED,
    cache::REGISTERED,
    cachea::REGISTERED,
    count::REGISTERED,
    direct::REGISTERED,
    eie::REGISTERED,
    event::REGISTERED,
    fault::REGISTERED,
    mmap::REGISTERED,
    passthrough::REGISTERED,
    throttle::REGISTERED,
];

/// The layer of the default stack: a cache that sizes itself.
pub(crate) fn adaptive_spec() -> Arc<dyn LayerSpec> {
    cache::adaptive_spec()
}
