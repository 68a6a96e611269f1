//! What the cache decides: how large it is, what is brought in and kept, what is written when, and who leaves.
//!
//! All of it is arithmetic over what was seen: no lock, no clock, no storage, no bytes. So each rule is tested as a table. No
//! rule decides which bytes are read or written in the end, only when, how many at a time, and what stays in memory.

mod order;
mod pace;
mod reads;
mod room;
mod shape;
mod visits;
mod writes;

pub(crate) use order::{COLD, Left, Order};
pub(crate) use pace::{Call, Score, TOLD_BY_BYTES, TOLD_BY_PIECES};
pub(crate) use reads::{Fill, Miss, READ_BEHIND_BYTES, ahead_bytes, block_pages, goes_by_pages};
pub(crate) use room::Another;
pub use shape::CacheShape;
pub(crate) use shape::{
    FIRST_PAGES, GRANULE_BYTES, LEAST_PAGES, MAX_CACHE_BYTES, MAX_PAGE_BYTES, MAX_PAGES, Straight,
};
pub(crate) use visits::{Returns, Visit, Visits};
pub(crate) use writes::{
    CLEANED_PART, MOST_PIECES, RUN_PAGES, Run, is_left_behind, is_long_stream, is_past_cache,
    straight_from,
};
