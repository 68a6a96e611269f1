//! The threads of the process that ask servers.

use std::sync::Arc;

use crate::fork;
use crate::lock::{Global, Rank};
use crate::pool::Pool;
use crate::tuning::MOST_NETWORK_THREADS;
use crate::worker::Purpose;

/// The pool of this process whose threads ask servers, whatever protocol they speak. A forked child has one of its own.
#[must_use]
pub fn network_pool() -> Arc<Pool> {
    static POOL: Global<Option<(u32, Arc<Pool>)>> = Global::new(Rank::Fetching, None, || None);
    let pid = fork::process_id();
    let mut made = POOL.lock();
    if let Some((_, pool)) = made.as_ref().filter(|(of, _)| *of == pid) {
        return Arc::clone(pool);
    }
    let pool = Arc::new(Pool::of(Purpose::Remote, Rank::FetchQueue, MOST_NETWORK_THREADS));
    // What a fork left behind may be locked by threads that are not there: it is not dropped.
    std::mem::forget(made.replace((pid, Arc::clone(&pool))));
    pool
}
