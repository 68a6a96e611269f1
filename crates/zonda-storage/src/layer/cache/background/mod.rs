//! The thread of a cache: its tasks, how it starts and ends, and the errors it met.
//!
//! A cache works without its thread, too: nobody waits for the thread to begin a task, and callers do what it has not done when
//! a page is evicted or at a barrier. So a forked child, which has no such thread, works as a cache without one. It never takes
//! the locks in here, which the thread may have held.
//!
//! When a write fails, its page stays dirty and the error is kept here. The thread then writes no more until a call has
//! reported the error, or, with [`ThreadUse::Worthwhile`], until somebody else's write succeeded.
//!
//! This module knows numbers of pages. What is done to a page is up to its [`CacheWorker`].

mod first_error;
mod task_queue;
mod work;

pub(crate) use task_queue::CacheTask;
pub(crate) use work::{BackgroundWork, CacheWorker, ThreadUse};
