//! `cache:BLOCKS:PAGES`: a write-back page cache; `cache` alone is one that sizes itself, and `cachea`, `bufa` and `eie` are
//! ones that have a thread of their own.
//!
//! A page is BLOCKS * 4096 bytes; at most PAGES are kept, the least recently used leaving first.
//! Without arguments there are as many as the records of the file ask for, within the memory of the
//! process (`adaptive.rs`). Pages whose every byte was written leave as soon as there are enough of
//! them and what lies before them is below already: whole records go out in order and in large
//! pieces, whatever order they came in.
//! Writes need no read: each page knows byte by byte what is valid and what is dirty, and what is
//! missing is read only when it is asked for. A failed write-back keeps the page dirty and gives
//! the error to the call that met it. Dropping the cache forgets what was not flushed.
//!
//! Three parts can be read alone, and a fourth puts them together:
//!
//! | Part | Knows | Does not know |
//! |---|---|---|
//! | `pages` | the bytes of one page: which are valid, which are newer than below, what fill values are awaited | other pages, locks, storage |
//! | `policy` | how large a cache is, what is brought in and kept, what is written when, who leaves | bytes, locks, storage, clocks |
//! | `background` | what a thread is to do, its beginning and its end, what went wrong there | pages, storage |
//! | `coherence` | locks; the steps by which pages come, change and go, and calls that go past them | specs, what a thread is for |
//!
//! On top of them is what a spec names: `spec.rs`, `adaptive.rs`, `async_cache.rs`; `threaded.rs` is a cache with its thread.

mod adaptive;
mod async_cache;
mod background;
mod coherence;
mod pages;
mod policy;
mod spec;
#[cfg(test)]
mod tests;
mod threaded;

pub use adaptive::Adaptive;
pub use async_cache::AsyncCache;
pub(super) use async_cache::AsyncCacheSpec;
pub use coherence::Cache;
pub(super) use coherence::MOST_SHARED;
pub use policy::CacheShape;
pub(super) use spec::{REGISTERED, adaptive_spec};
