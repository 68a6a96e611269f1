//! The threads that decode chunks, and the bytes that decoded chunks may take: the process's, or a
//! test's own.
//!
//! The pool is made by the first request that is worth it. The calling thread takes part in its
//! request, and no lock is held while it waits for the others. A forked child has none of its
//! parent's threads, so it leaves the pool it inherited alone and makes its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use zonda_runtime::lock::{Mutex, Rank};

use zonda_runtime::{Pool, Settled, memory};
use zonda_trace::{Args, Kind};

use crate::cache::Cache;

/// Threads and memory that arrays share.
#[derive(Debug)]
pub struct Engine {
    /// Threads that a request may use, the caller's among them.
    threads: usize,
    pool: Mutex<Option<Made>>,
    budget: Budget,
    /// Caches that may be asked to give up chunks for others.
    caches: Mutex<Vec<Weak<Cache>>>,
}

/// The pool, and the process whose threads it has.
#[derive(Debug)]
struct Made {
    pid: u32,
    pool: Arc<Pool>,
}

/// Bytes that decoded chunks may take.
#[derive(Debug)]
enum Budget {
    /// Those that all caches of the process share.
    Process,
    Own {
        most: u64,
        used: AtomicU64,
    },
}

impl Engine {
    /// The process's: `ZONDA_THREADS` threads (default: the cores that the process may use), and
    /// the memory budget of all caches.
    #[must_use]
    pub fn process() -> Arc<Engine> {
        static ENGINE: Settled<Arc<Engine>> = Settled::new();
        let make = || Arc::new(Engine::with(zonda_runtime::threads(), Budget::Process));
        Arc::clone(ENGINE.get_or_make(make))
    }

    /// One with its own threads, and with a budget of its own in bytes.
    #[must_use]
    pub fn new(threads: usize, budget_bytes: u64) -> Arc<Engine> {
        let budget = Budget::Own { most: budget_bytes, used: AtomicU64::new(0) };
        Arc::new(Engine::with(threads.max(1), budget))
    }

    fn with(threads: usize, budget: Budget) -> Engine {
        Engine {
            threads,
            pool: Mutex::ranked(Rank::Engine, None),
            budget,
            caches: Mutex::ranked(Rank::ChunkCaches, Vec::new()),
        }
    }

    /// Threads that a request may use.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Bytes that decoded chunks take now; for the process's engine, all caches.
    #[must_use]
    pub fn bytes_in_use(&self) -> u64 {
        match &self.budget {
            Budget::Process => memory::in_use(),
            Budget::Own { used, .. } => used.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn budget_bytes(&self) -> u64 {
        match &self.budget {
            Budget::Process => memory::budget(),
            Budget::Own { most, .. } => *most,
        }
    }

    /// Takes bytes of the budget if it has them.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        match &self.budget {
            Budget::Process => memory::take(bytes),
            Budget::Own { most, used } => {
                let fits = |used: u64| used.checked_add(bytes).filter(|sum| sum <= most);
                used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
            }
        }
    }

    /// Takes bytes whether the budget has them or not.
    pub(crate) fn take_anyway(&self, bytes: u64) {
        match &self.budget {
            Budget::Process => memory::take_anyway(bytes),
            Budget::Own { used, .. } => {
                used.fetch_add(bytes, Ordering::Relaxed);
            }
        }
    }

    /// Gives back what was taken.
    pub(crate) fn give_back(&self, bytes: u64) {
        match &self.budget {
            Budget::Process => memory::give_back(bytes),
            Budget::Own { used, .. } => {
                used.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn add_cache(&self, cache: &Arc<Cache>) {
        let mut caches = self.caches.lock();
        if caches.len() == caches.capacity() {
            caches.retain(|cache| cache.strong_count() > 0);
        }
        caches.push(Arc::downgrade(cache));
    }

    /// The cache that holds the chunk longest unused, and since when, `but` excepted.
    pub(crate) fn oldest_cache(&self, but: &Cache) -> Option<(u64, Arc<Cache>)> {
        let caches = self.caches.lock();
        let others = caches.iter().filter(|cache| !std::ptr::eq(cache.as_ptr(), but));
        let aged = others.filter_map(|cache| {
            let cache = cache.upgrade()?;
            Some((cache.oldest()?, cache))
        });
        aged.min_by_key(|(stamp, _)| *stamp)
    }

    /// The pool, made if this process has none.
    fn pool(&self) -> Arc<Pool> {
        let mut made = self.pool.lock();
        let pid = std::process::id();
        if let Some(made) = made.as_ref().filter(|made| made.pid == pid) {
            return Arc::clone(&made.pool);
        }
        let pool = Arc::new(Pool::new(self.threads));
        let fresh = Made { pid, pool: Arc::clone(&pool) };
        // What a fork left behind may be locked by threads that are not there: it is not dropped.
        std::mem::forget(made.replace(fresh));
        pool
    }

    /// Runs `work` on this thread and on up to `more` others that have nothing to do, and returns
    /// when all have come to its end.
    pub(crate) fn run(&self, more: usize, work: &(dyn Fn() + Sync)) {
        self.run_beside(more, work, work);
    }

    /// Runs `here` on this thread and `work` on up to `more` others that have nothing to do, and
    /// returns when all have come to their end. Nothing says that `work` runs at all.
    pub(crate) fn run_beside<T>(
        &self,
        more: usize,
        work: &(dyn Fn() + Sync),
        here: impl FnOnce() -> T,
    ) -> T {
        let more = more.min(self.threads.saturating_sub(1));
        if more == 0 {
            return here();
        }
        let (file, mut done) = (zonda_trace::current_file(), 0);
        let work = || {
            zonda_trace::set_current_file(file);
            work();
            zonda_trace::set_current_file(0);
        };
        let result = self.pool().run_beside(more, &work, || {
            let result = here();
            done = zonda_trace::start();
            result
        });
        zonda_trace::span_since(done, Kind::WaitPool, Args::default);
        result
    }

    /// Runs `work` on the pool when a thread has time; false if none has.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) -> bool {
        self.threads > 1 && self.pool().spawn(work)
    }
}
