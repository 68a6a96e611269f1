//! Write-behind: a put returns when its values are copied, and a thread of the rank writes them.
//!
//! What ranks tell each other stays in the put. What is queued is the writes that the format makes after that, at the storage of the rank
//! ([`RankQueue`]): addressed bytes, which any rank may write at any time, but for writes of other ranks to the same place. So a put that
//! touches elements of a put before it that may still wait on some rank ([`UnsettledPuts`]) comes after all queues are empty.
//!
//! Chunks that go through filters have no places before all ranks know how long they become. The thread sends them through their filters
//! (`filter_tasks.rs`), what comes of them waits until all ranks have given places (`behind.rs`), and comes back to be written.

mod filter_tasks;
mod piece;
mod puts;
mod rank_queue;
mod room;
mod unsettled;

pub(crate) use filter_tasks::{CountedBytes, FilterResult};
pub(crate) use piece::PutLabel;
pub(crate) use puts::PutNotes;
pub use rank_queue::RankQueue;
pub use room::QueueRoom;
pub(crate) use unsettled::{BOUNDED, PutBounds};
