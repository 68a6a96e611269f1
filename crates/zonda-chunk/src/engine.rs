//! The threads that decode chunks, and the broker of the memory that chunks take: the process's, or a
//! test's own.
//!
//! The pool is made by the first request that is worth it. The calling thread takes part in its
//! request, and no lock is held while it waits for the others. A forked child has none of its
//! parent's threads, so it leaves the pool it inherited alone and makes its own.

use std::sync::Arc;

use zonda_runtime::callout;
use zonda_runtime::lock::{Mutex, Rank};

use zonda_runtime::memory::{self, Broker, Kind};
use zonda_runtime::{Pool, Settled};
use zonda_trace::{Args, EventKind};

/// Threads and memory that arrays share.
#[derive(Debug)]
pub struct Engine {
    /// Threads that a request may use, the caller's among them.
    threads: usize,
    pool: Mutex<Option<ProcessPool>>,
    budget: EngineBroker,
}

/// The pool, and the process whose threads it has.
#[derive(Debug)]
struct ProcessPool {
    pid: u32,
    pool: Arc<Pool>,
}

/// Whom memory is asked of.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a process has one, and a test a few")]
enum EngineBroker {
    /// The process's broker.
    Process,
    /// A test's.
    Own(Broker),
}

impl Engine {
    /// The process's: `ZONDA_THREADS` threads (default: the cores that the process may use), and
    /// the memory budget of all caches.
    #[must_use]
    pub fn process() -> Arc<Engine> {
        static ENGINE: Settled<Arc<Engine>> = Settled::new();
        let make = || Arc::new(Engine::with(zonda_runtime::threads(), EngineBroker::Process));
        Arc::clone(ENGINE.get_or_make(make))
    }

    /// One with its own threads, and with a budget of its own in bytes.
    #[must_use]
    pub fn new(threads: usize, budget_bytes: u64) -> Arc<Engine> {
        Arc::new(Engine::with(threads.max(1), EngineBroker::Own(Broker::new(budget_bytes))))
    }

    fn with(threads: usize, budget: EngineBroker) -> Engine {
        Engine { threads, pool: Mutex::ranked(Rank::Engine, None), budget }
    }

    /// Threads that a request may use.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Whom memory is asked of.
    pub(crate) fn broker(&self) -> &Broker {
        match &self.budget {
            EngineBroker::Process => memory::process(),
            EngineBroker::Own(broker) => broker,
        }
    }

    /// Bytes that are taken now: for the process's engine, by all that takes memory.
    #[must_use]
    pub fn bytes_in_use(&self) -> u64 {
        self.broker().in_use()
    }

    /// Bytes that are taken now, by what they are for.
    #[must_use]
    pub fn memory_use(&self) -> [memory::MemoryUse; Kind::COUNT] {
        self.broker().memory_use()
    }

    pub(crate) fn budget_bytes(&self) -> u64 {
        self.broker().limit()
    }

    /// Whether so little is taken that what is kept will stay.
    pub(crate) fn has_room(&self) -> bool {
        self.broker().in_use() < self.budget_bytes() / 2
    }

    /// The pool, made if this process has none.
    fn pool(&self) -> Arc<Pool> {
        let mut made = self.pool.lock();
        let pid = zonda_runtime::fork::process_id();
        if let Some(made) = made.as_ref().filter(|made| made.pid == pid) {
            return Arc::clone(&made.pool);
        }
        let pool = Arc::new(Pool::new(self.threads));
        let fresh = ProcessPool { pid, pool: Arc::clone(&pool) };
        // What a fork left behind may be locked by threads that are not there: it is not dropped.
        std::mem::forget(made.replace(fresh));
        pool
    }

    /// Runs `work` on this thread and on up to `more` others that have nothing to do, and returns
    /// when all have come to its end.
    pub fn run(&self, more: usize, work: &(dyn Fn() + Sync)) {
        self.run_beside(more, work, work);
    }

    /// Runs `own_work` on this thread and `work` on up to `more` others that have nothing to do, and
    /// returns when all have come to their end. Nothing says that `work` runs at all.
    pub(crate) fn run_beside<T>(
        &self,
        more: usize,
        work: &(dyn Fn() + Sync),
        own_work: impl FnOnce() -> T,
    ) -> T {
        let more = more.min(self.threads.saturating_sub(1));
        // Those who would help could come to the plugin that this thread is in, and wait for it.
        if more == 0 || callout::is_within() {
            return own_work();
        }
        let (file, mut done) = (zonda_trace::current_file(), 0);
        let work = || {
            zonda_trace::set_current_file(file);
            work();
            zonda_trace::set_current_file(0);
        };
        let result = self.pool().run_beside(more, &work, || {
            let result = own_work();
            done = zonda_trace::start();
            result
        });
        zonda_trace::span_since(done, EventKind::WaitPool, Args::default);
        result
    }

    /// Runs `work` on the pool when a thread has time; false if none has.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) -> bool {
        self.threads > 1 && !callout::is_within() && self.pool().spawn(work)
    }
}
