//! The threads that carry out accepted puts, for all files of the process.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use zonda_runtime::lock::{Condvar, Global, MutexGuard, Rank};

use zonda_runtime::worker::{self, Purpose};

use super::WriteQueue;
use crate::tuning::{QUEUE_REST_WAIT, QUEUE_THREAD_IDLE, QUEUE_THREADS};

static POOL: Global<QueueThreads> =
    Global::new(Rank::Ready, QueueThreads::of(0), || QueueThreads::of(0));
/// Signalled when a file has puts to carry out.
static WORK: Condvar = Condvar::new();

struct QueueThreads {
    /// The process whose threads these are: a forked child has none of them.
    pid: u32,
    /// Files that have puts to carry out, and no thread yet.
    ready: VecDeque<Arc<WriteQueue>>,
    /// Files whose puts were all carried out, and whose layers may have gathered bytes to write.
    resting: Vec<Weak<WriteQueue>>,
    n_threads: usize,
    n_idle: usize,
    /// Most threads that there may be.
    most: usize,
}

impl QueueThreads {
    const fn of(pid: u32) -> QueueThreads {
        QueueThreads {
            pid,
            ready: VecDeque::new(),
            resting: Vec::new(),
            n_threads: 0,
            n_idle: 0,
            most: 0,
        }
    }

    /// Takes a file off the `resting` list, and with it files that were closed.
    fn rouse(&mut self, file: &Weak<WriteQueue>) {
        self.resting.retain(|other| !other.ptr_eq(file) && other.strong_count() > 0);
    }
}

fn lock() -> MutexGuard<'static, QueueThreads> {
    POOL.lock()
}

/// Makes a thread carry out the queue of a file; false where the system gives no thread.
///
/// `threads` is the most threads that there may be, 0 for the default.
pub(super) fn schedule(file: Arc<WriteQueue>, threads: usize) -> bool {
    let mut pool = lock();
    let pid = std::process::id();
    if pool.pid != pid {
        // The queues that a forked child inherits belong to the parent.
        let inherited = std::mem::take(&mut pool.ready);
        std::mem::forget(inherited);
        *pool = QueueThreads::of(pid);
    }
    let threads = if threads == 0 { QUEUE_THREADS } else { threads };
    pool.most = pool.most.max(threads);
    if pool.n_idle <= pool.ready.len() && pool.n_threads < pool.most {
        let name = format!("zonda-io-{}", pool.n_threads);
        if worker::spawn(name, Purpose::WriteBehind, run).is_ok() {
            pool.n_threads += 1;
        }
    }
    if pool.n_threads == 0 {
        return false;
    }
    pool.rouse(&Arc::downgrade(&file));
    pool.ready.push_back(file);
    drop(pool);
    WORK.notify_one();
    true
}

/// What a thread does from start to end.
fn run() {
    let mut pool = lock();
    loop {
        let Some(file) = pool.ready.pop_front() else {
            match idle(pool) {
                Some(still) => pool = still,
                None => return end(),
            }
            continue;
        };
        drop(pool);
        // Carries out one batch; then it is the turn of another file.
        let has_more = file.work();
        pool = lock();
        if has_more {
            pool.ready.push_back(file);
        } else {
            let weak = Arc::downgrade(&file);
            pool.rouse(&weak);
            pool.resting.push(weak);
            drop(pool);
            // Dropping the last reference closes the file, so it is done without the lock.
            drop(file);
            pool = lock();
        }
    }
}

/// The end of a thread. The last one frees spare memory of the budget.
fn end() {
    if !is_there() {
        super::budget::free_spare();
    }
}

/// Whether there is any of these threads.
pub(super) fn is_there() -> bool {
    let pool = lock();
    pool.pid == std::process::id() && pool.n_threads > 0
}

/// Waits for work. Where none comes for a while, files that have nothing more to do are let rest; then the thread
/// ends, and `None` says so.
fn idle(mut pool: MutexGuard<'static, QueueThreads>) -> Option<MutexGuard<'static, QueueThreads>> {
    pool.n_idle += 1;
    let mut rests = false;
    if pool.resting.is_empty() {
        let waited = WORK.wait_timeout(pool, QUEUE_THREAD_IDLE);
        pool = waited.0;
        if waited.1 && pool.ready.is_empty() && pool.resting.is_empty() {
            // Who has work from now on starts another one.
            pool.n_idle -= 1;
            pool.n_threads -= 1;
            return None;
        }
    } else {
        let waited = WORK.wait_timeout(pool, QUEUE_REST_WAIT);
        rests = waited.1 && waited.0.ready.is_empty();
        pool = waited.0;
    }
    pool.n_idle -= 1;
    let file = if rests { pool.resting.pop() } else { None };
    if let Some(file) = file.and_then(|file| file.upgrade()) {
        drop(pool);
        file.rest();
        // Dropping the last reference closes the file, so it is done without the lock.
        drop(file);
        pool = lock();
    }
    Some(pool)
}
