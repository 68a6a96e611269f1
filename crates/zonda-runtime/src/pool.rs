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
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::crew::{Begun, Crew};
use crate::worker::{self, Purpose};

/// Threads that are started when there is work for them, and end when there was none for a while.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// Rung when there is a job, or the pool goes.
    bell: Condvar,
}

#[derive(Debug)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Threads there are, and those of them that have a job.
    n_threads: usize,
    n_busy: usize,
    /// Threads there may be.
    most: usize,
    /// Whether the pool is gone: threads end when there are no more jobs.
    closing: bool,
}

enum Job {
    /// An offer to take part in a call's work.
    Offer(Arc<Crew>),
    /// Work that nobody waits for.
    Own(Box<dyn FnOnce() + Send>),
}

/// A job that a thread has taken.
enum Task {
    Part(Begun),
    Own(Box<dyn FnOnce() + Send>),
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Job::Offer(_) => "Offer",
            Job::Own(_) => "Own",
        })
    }
}

/// How often a thread looks for another job before it sleeps: the next call often comes soon, and
/// waking a thread takes longer than a small chunk.
const LOOKS: usize = 32;

/// How long a thread stays without work: a program whose own threads have all ended has come to its end only
/// when the library's have, too.
const IDLE: Duration = Duration::from_millis(500);

impl Shared {
    /// No code that can panic runs under the lock, so a poisoned one is whole.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// The life of a thread.
    fn serve(&self) {
        let (mut looks, mut is_late) = (0, false);
        let mut queue = self.lock();
        loop {
            if let Some(task) = queue.take() {
                drop(queue);
                match task {
                    Task::Part(begun) => {
                        begun.work();
                        self.lock().n_busy -= 1;
                        // The caller may return now.
                        drop(begun);
                    }
                    Task::Own(work) => {
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
            } else if looks < LOOKS {
                looks += 1;
                drop(queue);
                std::thread::yield_now();
                queue = self.lock();
            } else if is_late {
                queue.n_threads -= 1;
                return;
            } else {
                (queue, is_late) = self.bell.wait_timeout(queue, IDLE);
            }
        }
    }
}

impl Queue {
    /// Threads that have nothing to do and nothing to come, those that are not yet started among them.
    fn n_free(&self) -> usize {
        self.most.saturating_sub(self.n_busy).saturating_sub(self.jobs.len())
    }

    /// The next job, which counts as begun from here on: whoever takes an offer back sees either it in the
    /// queue or a thread that is at work.
    fn take(&mut self) -> Option<Task> {
        loop {
            let task = match self.jobs.pop_front()? {
                Job::Offer(crew) => match crew.begin() {
                    Some(begun) => Task::Part(begun),
                    None => continue,
                },
                Job::Own(work) => Task::Own(work),
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
        let queue = Queue { jobs: VecDeque::new(), n_threads: 0, n_busy: 0, most, closing: false };
        Pool {
            shared: Arc::new(Shared {
                queue: Mutex::ranked(Rank::Pool, queue),
                bell: Condvar::new(),
            }),
        }
    }

    /// Runs `here` on this thread and `work` on up to `helpers` threads of the pool that have nothing
    /// to do, and returns when all that began have come to their end. Nothing says that `work` runs
    /// at all: where no thread is free, or `here` ends first, it does not.
    ///
    /// # Panics
    /// If `here` or `work` does; first all come to their end.
    pub fn run_beside<T>(
        &self,
        helpers: usize,
        work: &(dyn Fn() + Sync),
        here: impl FnOnce() -> T,
    ) -> T {
        let (result, panic) = Crew::gather(
            work,
            |crew| self.offer(helpers, crew) > 0,
            |crew| self.withdraw(crew),
            here,
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
        if queue.n_free() == 0 || !self.add(&mut queue, || Job::Own(Box::new(work))) {
            return false;
        }
        drop(queue);
        self.shared.bell.notify_one();
        true
    }

    /// Offers a call's work to up to `helpers` threads; to how many.
    fn offer(&self, helpers: usize, crew: &Arc<Crew>) -> usize {
        let mut queue = self.shared.lock();
        let wanted = helpers.min(queue.n_free());
        let mut offered = 0;
        while offered < wanted && self.add(&mut queue, || Job::Offer(Arc::clone(crew))) {
            offered += 1;
        }
        drop(queue);
        for _ in 0..offered {
            self.shared.bell.notify_one();
        }
        offered
    }

    /// Takes back what nobody has taken.
    fn withdraw(&self, crew: &Arc<Crew>) {
        let is_other = |job: &Job| !matches!(job, Job::Offer(of) if Arc::ptr_eq(of, crew));
        self.shared.lock().jobs.retain(is_other);
    }

    /// Puts a job into the queue if there is a thread for it, or one can be started.
    fn add(&self, queue: &mut Queue, job: impl FnOnce() -> Job) -> bool {
        let n_idle = queue.n_threads - queue.n_busy;
        if n_idle <= queue.jobs.len() && !self.start(queue) {
            return false;
        }
        queue.jobs.push_back(job());
        true
    }

    /// Starts one more thread.
    fn start(&self, queue: &mut Queue) -> bool {
        if queue.n_threads >= queue.most {
            return false;
        }
        let shared = Arc::clone(&self.shared);
        let name = format!("zonda-{}", queue.n_threads);
        let started = worker::spawn(name, Purpose::Pool, move || shared.serve()).is_ok();
        queue.n_threads += usize::from(started);
        started
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.bell.notify_all();
    }
}
