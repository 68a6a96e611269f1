//! What the cache decides: how large it is, what is brought in and kept, what is written when, and who leaves.
//!
//! All of it is arithmetic over what was seen: no lock, no clock, no storage, no bytes. So each rule is tested as a table. No
//! rule decides which bytes are read or written in the end, only when, how many at a time, and what stays in memory.

mod eviction;
mod pace;
mod reads;
mod recent_reads;
mod room;
mod shape;
mod writes;

pub(crate) use eviction::{COLD, EvictionOrder, RecentlyEvicted};
pub(crate) use pace::{CallKind, PaceScore};
pub(crate) use reads::{Miss, MissFill, ahead_bytes, block_pages, goes_by_pages, is_read_apart};
pub(crate) use recent_reads::{ReadPattern, RecentReads, Returns};
pub(crate) use room::PageGrant;
pub use shape::CacheShape;
pub(crate) use shape::{MAX_CACHE_BYTES, MAX_PAGE_BYTES, MAX_PAGES, StraightSizes};
pub(crate) use writes::{WriteRun, is_left_behind, is_long_stream, is_past_cache, straight_from};
