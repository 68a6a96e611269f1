//! The thread of a cache: what it is to do, how it begins and ends, and what went wrong there.
//!
//! The thread is a help and never a need: nobody waits for it to begin something, and what it does
//! not do its users do, when a page has to leave or at a barrier. So a forked child, which has no such
//! thread, works as a cache without one, and it never takes the locks in here, which the thread
//! may have held.
//!
//! A write that fails leaves its page dirty, and the error here; the thread then writes no more until that
//! was told, or ([`When::Worthwhile`]) until somebody else's write succeeded.
//!
//! Knows numbers of pages; whose they are and what is done to them is its [`Worker`]'s affair.

mod failed;
mod tasks;
mod work;

pub(crate) use tasks::Task;
pub(crate) use work::{BackgroundWork, When, Worker};
