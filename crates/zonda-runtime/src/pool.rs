//! Threads that help calls with their work.
//!
//! A call offers its work to threads that have nothing to do, does its own part, takes the offer back,
//! and waits for those that had begun: for nothing else, and meanwhile it does nothing for anybody
//! else. So it may hold locks, it may be made on any thread (one of another pool, one of this one), and
//! work that nobody began costs nothing. What a call must never count on is that anybody helps.
//!
//! How many threads there are follows from the calls and not from how busy the machine is: when a call
//! returns, nothing of it is in the queue any more and no thread counts as busy with it, however late the
//! system lets these threads run. So calls that come one after another start as many threads as one of them.

use crate::lock::{Condvar, Mutex, MutexGuard, Rank};
use crate::tuning::LOOKS_BEFORE_SLEEP;
use crate::tuning::{POOL_THREAD_IDLE, WOKEN_BY_ONE};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::call_work::{CallWork, RunningHelper};
use crate::worker::{self, Purpose};

/// Threads that are started when there is work for them, and end when there was none for a while.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<PoolShared>,
}

#[derive(Debug)]
struct PoolShared {
    queue: Mutex<PoolQueue>,
    /// Rung when there is a job, or the pool goes.
    wake: Condvar,
    /// What its threads are for.
    purpose: Purpose,
}

#[derive(Debug)]
struct PoolQueue {
    jobs: VecDeque<PoolJob>,
    /// Threads there are, and those of them that have a job.
    n_threads: usize,
    n_busy: usize,
    /// Threads there may be.
    most: usize,
    /// Whether the pool is gone: threads end when there are no more jobs.
    closing: bool,
}

enum PoolJob {
    /// An offer to take part in a call's work.
    Offer(Arc<CallWork>),
    /// Work that nobody waits for.
    Own(Box<dyn FnOnce() + Send>),
}

/// A job that a thread has taken.
enum TakenJob {
    Part(RunningHelper),
    Own(Box<dyn FnOnce() + Send>),
}

impl std::fmt::Debug for PoolJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PoolJob::Offer(_) => "Offer",
            PoolJob::Own(_) => "Own",
        })
    }
}

impl PoolShared {
    /// No code that can panic runs under the lock, so a poisoned one is whole.
    fn lock(&self) -> MutexGuard<'_, PoolQueue> {
        self.queue.lock()
    }

    /// Wakes threads for so many jobs, a few of them: each that takes a job wakes as many more. So nobody wakes all, one after another,
    /// before he has begun himself.
    fn wake_some(&self, n_jobs: usize) {
        for _ in 0..n_jobs.min(WOKEN_BY_ONE) {
            self.wake.notify_one();
        }
    }

    /// The life of a thread.
    fn serve(&self) {
        let (mut looks, mut is_late) = (0, false);
        let mut queue = self.lock();
        loop {
            if let Some(task) = queue.take() {
                let n_left = queue.jobs.len();
                drop(queue);
                self.wake_some(n_left);
                match task {
                    TakenJob::Part(begun) => {
                        begun.work();
                        self.lock().n_busy -= 1;
                        // The caller may return now.
                        drop(begun);
                    }
                    TakenJob::Own(work) => {
                        // A panic on a thread that nobody waits for would end the process.
                        drop(catch_unwind(AssertUnwindSafe(work)));
                        self.lock().n_busy -= 1;
                    }
                }
                (looks, is_late) = (0, false);
                queue = self.lock();
            } else if queue.closing {
                queue.n_threads -= 1;
                return;
            } else if looks < LOOKS_BEFORE_SLEEP {
                looks += 1;
                drop(queue);
                std::thread::yield_now();
                queue = self.lock();
            } else if is_late {
                queue.n_threads -= 1;
                return;
            } else {
                (queue, is_late) = self.wake.wait_timeout(queue, POOL_THREAD_IDLE);
            }
        }
    }
}

impl PoolQueue {
    /// Threads that have nothing to do and nothing to come, those that are not yet started among them.
    fn n_free(&self) -> usize {
        self.most.saturating_sub(self.n_busy).saturating_sub(self.jobs.len())
    }

    /// The next job, which counts as begun from here on: whoever takes an offer back sees either it in the
    /// queue or a thread that is at work.
    fn take(&mut self) -> Option<TakenJob> {
        loop {
            let task = match self.jobs.pop_front()? {
                PoolJob::Offer(call_work) => match call_work.begin() {
                    Some(begun) => TakenJob::Part(begun),
                    None => continue,
                },
                PoolJob::Own(work) => TakenJob::Own(work),
            };
            self.n_busy += 1;
            return Some(task);
        }
    }
}

impl Pool {
    /// A pool of up to `most` threads, none of which is there yet.
    #[must_use]
    pub fn new(most: usize) -> Pool {
        Pool::of(Purpose::Pool, Rank::Pool, most)
    }

    /// One whose threads are for something else than chunks; `rank` is that of its jobs.
    #[must_use]
    pub fn of(purpose: Purpose, rank: Rank, most: usize) -> Pool {
        let queue =
            PoolQueue { jobs: VecDeque::new(), n_threads: 0, n_busy: 0, most, closing: false };
        Pool {
            shared: Arc::new(PoolShared {
                queue: Mutex::ranked(rank, queue),
                wake: Condvar::new(),
                purpose,
            }),
        }
    }

    /// Runs `own_part` on this thread and `work` on up to `helpers` threads of the pool that have nothing
    /// to do, and returns when all that began have come to their end. Nothing says that `work` runs
    /// at all: where no thread is free, or `own_part` ends first, it does not.
    ///
    /// # Panics
    /// If `own_part` or `work` does; first all come to their end.
    pub fn run_beside<T>(
        &self,
        helpers: usize,
        work: &(dyn Fn() + Sync),
        own_part: impl FnOnce() -> T,
    ) -> T {
        let (result, panic) = CallWork::run(
            work,
            |call_work| self.offer(helpers, call_work) > 0,
            |call_work| self.withdraw(call_work),
            own_part,
        );
        panic.map_or(result, |panic| resume_unwind(panic))
    }

    /// Threads that are busy, and jobs that wait, at this moment.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        let queue = self.shared.lock();
        (queue.n_busy, queue.jobs.len())
    }

    /// Has `work` done by a thread when one has nothing to do; false where none has, or the system
    /// gives none.
    pub fn spawn(&self, work: impl FnOnce() + Send + 'static) -> bool {
        let mut queue = self.shared.lock();
        if queue.n_free() == 0 || !self.add(&mut queue, || PoolJob::Own(Box::new(work))) {
            return false;
        }
        drop(queue);
        self.shared.wake.notify_one();
        true
    }

    /// Offers a call's work to up to `helpers` threads; to how many.
    fn offer(&self, helpers: usize, call_work: &Arc<CallWork>) -> usize {
        let mut queue = self.shared.lock();
        let wanted = helpers.min(queue.n_free());
        let mut offered = 0;
        while offered < wanted && self.add(&mut queue, || PoolJob::Offer(Arc::clone(call_work))) {
            offered += 1;
        }
        drop(queue);
        self.shared.wake_some(offered);
        offered
    }

    /// Takes back what nobody has taken.
    fn withdraw(&self, call_work: &Arc<CallWork>) {
        let is_other =
            |job: &PoolJob| !matches!(job, PoolJob::Offer(of) if Arc::ptr_eq(of, call_work));
        self.shared.lock().jobs.retain(is_other);
    }

    /// Puts a job into the queue if there is a thread for it, or one can be started.
    fn add(&self, queue: &mut PoolQueue, job: impl FnOnce() -> PoolJob) -> bool {
        let n_idle = queue.n_threads - queue.n_busy;
        if n_idle <= queue.jobs.len() && !self.start(queue) {
            return false;
        }
        queue.jobs.push_back(job());
        true
    }

    /// Starts one more thread.
    fn start(&self, queue: &mut PoolQueue) -> bool {
        if queue.n_threads >= queue.most {
            return false;
        }
        let shared = Arc::clone(&self.shared);
        let purpose = self.shared.purpose;
        let name = format!("{}-{}", purpose.about().name, queue.n_threads);
        let started = worker::spawn(name, purpose, move || shared.serve()).is_ok();
        queue.n_threads += usize::from(started);
        started
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.wake.notify_all();
    }
}
