//! A pool that a process makes when it first needs it, and of which a forked child makes another one.

use std::sync::Arc;

use crate::fork;
use crate::lock::{Global, Rank};
use crate::pool::Pool;
use crate::worker::Purpose;

/// The pool of this process for one purpose; for a `static`.
#[derive(Debug)]
pub struct ProcessPool {
    made: Global<Option<(u32, Arc<Pool>)>>,
    purpose: Purpose,
    rank: Rank,
    most: usize,
}

impl ProcessPool {
    /// One of at most `most` threads; `rank` is that of its jobs.
    #[must_use]
    pub const fn new(purpose: Purpose, rank: Rank, most: usize) -> ProcessPool {
        let made = Global::new(Rank::Fetching, None, || None);
        ProcessPool { made, purpose, rank, most }
    }

    /// The pool, made if need be.
    #[must_use]
    pub fn get(&'static self) -> Arc<Pool> {
        let pid = fork::process_id();
        let mut made = self.made.lock();
        if let Some((_, pool)) = made.as_ref().filter(|(of, _)| *of == pid) {
            return Arc::clone(pool);
        }
        let pool = Arc::new(Pool::of(self.purpose, self.rank, self.most));
        // What a fork left behind may be locked by threads that are not there: it is not dropped.
        std::mem::forget(made.replace((pid, Arc::clone(&pool))));
        pool
    }
}
