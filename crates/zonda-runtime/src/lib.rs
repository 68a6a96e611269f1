//! What runs below everything: the threads of the library, and what the process may use of its machine.
//!
//! This is the only crate that starts threads and that decides how many there are, where they run, and how
//! much memory caches and queues may take. It knows processors, ranks and control groups; it knows no file, no
//! chunk and no netCDF. Nothing happens before somebody asks, but for one system call when the
//! library is loaded ([`Machine::at_load`]).
#![deny(unsafe_code)]

/// Those of std. A model puts others in their place.
mod atomic {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}
mod apart;
pub mod beside;
#[allow(unsafe_code)]
mod call_work;
pub mod callout;
pub mod cgroup;
mod cpus;
pub mod fork;
pub mod lock;
mod machine;
pub mod memory;
#[allow(unsafe_code)]
mod os;
mod pool;
mod process_pool;
mod ranks;
pub mod setting;
mod settled;
pub mod sort;
mod tuning;
pub mod worker;

pub use apart::Apart;
pub use cpus::CpuSet;
pub use machine::{Decision, MOST_THREADS, Machine, set_ranks};
pub use pool::Pool;
pub use process_pool::ProcessPool;
pub use ranks::{Ranks, launched_rank, rank_number};
pub use settled::Settled;

/// How many threads compute at the same time in this process, the caller's among them: `ZONDA_THREADS`, else
/// what [`Machine::default_threads`] says. Decided once.
#[must_use]
pub fn threads() -> usize {
    static THREADS: Settled<usize> = Settled::new();
    *THREADS.get_or_make(|| Machine::of_process().threads().value)
}
