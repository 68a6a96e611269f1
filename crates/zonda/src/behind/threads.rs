//! The threads that carry out what was accepted: of one process, for all its files.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Behind;

static POOL: Mutex<Pool> =
    Mutex::new(Pool { pid: 0, ready: VecDeque::new(), n_threads: 0, n_idle: 0, most: 0 });
/// Files are ready.
static WORK: Condvar = Condvar::new();

/// Files written at the same time unless the user says so.
const DEFAULT_THREADS: usize = 2;

struct Pool {
    /// The process whose threads these are: a forked child has none of them.
    pid: u32,
    /// Files that have something to do, and no thread yet.
    ready: VecDeque<Arc<Behind>>,
    n_threads: usize,
    n_idle: usize,
    /// Threads that there may be.
    most: usize,
}

fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Held for a fork.
pub(super) struct Frozen {
    _pool: MutexGuard<'static, Pool>,
}

pub(super) fn freeze() -> Frozen {
    Frozen { _pool: lock() }
}

/// Has a thread come to the file's queue; false where the system gives none.
///
/// `threads` is the number that there may be, 0 for the default.
pub(super) fn schedule(file: Arc<Behind>, threads: usize) -> bool {
    let mut pool = lock();
    let pid = std::process::id();
    if pool.pid != pid {
        // The queues of a parent are the parent's.
        let inherited = std::mem::take(&mut pool.ready);
        std::mem::forget(inherited);
        *pool = Pool { pid, ready: VecDeque::new(), n_threads: 0, n_idle: 0, most: 0 };
    }
    let threads = if threads == 0 { DEFAULT_THREADS } else { threads };
    pool.most = pool.most.max(threads);
    if pool.n_idle <= pool.ready.len() && pool.n_threads < pool.most {
        let name = format!("zonda-io-{}", pool.n_threads);
        if zonda_storage::thread::spawn(name, run).is_ok() {
            pool.n_threads += 1;
        }
    }
    if pool.n_threads == 0 {
        return false;
    }
    pool.ready.push_back(file);
    drop(pool);
    WORK.notify_one();
    true
}

/// The life of a thread.
fn run() {
    let mut pool = lock();
    loop {
        let Some(file) = pool.ready.pop_front() else {
            pool.n_idle += 1;
            pool = WORK.wait(pool).unwrap_or_else(PoisonError::into_inner);
            pool.n_idle -= 1;
            continue;
        };
        drop(pool);
        // One piece of the queue; then it is another file's turn.
        let has_more = file.work();
        pool = lock();
        if has_more {
            pool.ready.push_back(file);
        } else {
            drop(pool);
            // It may be the last to know the file.
            drop(file);
            pool = lock();
        }
    }
}
