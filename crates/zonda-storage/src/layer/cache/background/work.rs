//! The thread of a cache, which waits for tasks. It starts with the first one, and ends when there was none for a while or
//! the cache goes.

use super::first_error::FirstError;
use super::task_queue::{CacheTask, TaskQueue};
use crate::StorageError;
use crate::sync::lock::{Condvar, Level, Mutex, Rank};
use crate::sync::worker::{self, Purpose};
use crate::sync::{JoinHandle, fork};
use crate::tuning::{FORK_NAP, INCOMPLETE_RUN_WAIT, SLOW_INCOMPLETE_RUN_WAIT, THREAD_IDLE};
use std::mem::ManuallyDrop;
use std::ops::Range;
// Numbers in names.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// When a cache leaves work to its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadUse {
    /// Whenever there is some. The next call reports an error of the thread.
    Always,
    /// Where calls to the storage below take long, and where much is written in order. A write at which the thread failed
    /// is tried again by callers, who get the error if it fails again.
    Worthwhile,
}

/// The cache, as its thread sees it.
pub(crate) trait CacheWorker: Send + Sync {
    /// Does one task. An error of a write is kept in `background`, one of a read-ahead is dropped.
    fn work(&self, task: CacheTask, background: &Arc<BackgroundWork>);
}

/// What the thread and the calls share.
#[derive(Debug, Default)]
struct BackgroundState {
    tasks: TaskQueue,
    /// The cache is being dropped, so the thread ends.
    stop: bool,
    /// There is a thread.
    running: bool,
    /// It waits, and nobody has woken it yet: to wake who is awake is a system call, too.
    naps: bool,
    /// The thread, until it is joined. It is never dropped unjoined: a forked child would detach a thread that it does not
    /// have.
    thread: Option<ManuallyDrop<JoinHandle<()>>>,
}

/// The tasks of one cache, and its thread.
pub(crate) struct BackgroundWork {
    when: ThreadUse,
    level: Level,
    state: Mutex<BackgroundState>,
    wake: Condvar,
    /// The process whose thread it is.
    pid: u32,
    worker: OnceLock<Weak<dyn CacheWorker>>,
    failed: FirstError,
}

impl std::fmt::Debug for BackgroundWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackgroundWork").field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl BackgroundWork {
    pub(crate) fn new(when: ThreadUse) -> Arc<BackgroundWork> {
        let level = Level::next();
        Arc::new(BackgroundWork {
            when,
            level,
            state: Mutex::ranked(Rank::BackgroundWork, BackgroundState::default()),
            wake: Condvar::new(),
            pid: zonda_runtime::fork::process_id(),
            worker: OnceLock::new(),
            failed: FirstError::default(),
        })
    }

    /// The place of the cache among the layers of all files.
    pub(crate) fn level(&self) -> Level {
        self.level
    }

    #[inline]
    pub(crate) fn when(&self) -> ThreadUse {
        self.when
    }

    /// Says which cache does the tasks. Before that none are accepted.
    pub(crate) fn is_done_by(&self, worker: Weak<dyn CacheWorker>) {
        // A second one would be a slip of the only caller.
        let _ = self.worker.set(worker);
    }

    /// Leaves a complete page to the thread; false if there is no thread.
    pub(crate) fn complete(self: &Arc<Self>, index: u64) -> bool {
        self.add(|tasks| {
            tasks.complete.insert(index);
        })
    }

    /// Leaves a page to the thread whose stream has gone on to the next; false if there is no thread.
    pub(crate) fn passed(self: &Arc<Self>, index: u64) -> bool {
        self.add(|tasks| {
            tasks.passed.insert(index);
        })
    }

    /// Remembers page `index`, the first of a run of complete pages that is too short to be written while more may come.
    pub(crate) fn incomplete_run(self: &Arc<Self>, index: u64) {
        self.add(|tasks| {
            tasks.incomplete_runs.insert(index);
        });
    }

    /// Asks for pages to be written that would be evicted next.
    pub(crate) fn clean(self: &Arc<Self>) {
        self.add(|tasks| tasks.clean = true);
    }

    /// Asks for pages to be read; those asked for before are forgotten.
    pub(crate) fn ahead(self: &Arc<Self>, pages: Range<u64>) {
        self.add(|tasks| tasks.ahead = Some(pages));
    }

    /// Asks for the block to be read that begins with page `first`.
    pub(crate) fn block(self: &Arc<Self>, first: u64) {
        self.add(|tasks| tasks.add_block(first));
    }

    /// Adds a task, and starts the thread if there is none.
    fn add(self: &Arc<Self>, add: impl FnOnce(&mut TaskQueue)) -> bool {
        if self.is_inherited() {
            return false;
        }
        let mut state = self.state.lock();
        if state.stop || (!state.running && !self.start(&mut state)) {
            return false;
        }
        add(&mut state.tasks);
        let naps = std::mem::take(&mut state.naps);
        drop(state);
        if naps {
            self.wake.notify_one();
        }
        true
    }

    /// Whether this process was forked from the one that has the thread.
    pub(crate) fn is_inherited(&self) -> bool {
        self.pid != zonda_runtime::fork::process_id()
    }

    fn start(self: &Arc<Self>, state: &mut BackgroundState) -> bool {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let Some(worker) = self.worker.get().cloned() else { return false };
        let background = Arc::clone(self);
        let name = format!("zonda-io-{}", STARTED.fetch_add(1, Ordering::Relaxed));
        // One that had nothing to do for long. It may be the last thread of a program, and so end it, by what is
        // written here.
        drop(state.thread.take().map(ManuallyDrop::into_inner));
        state.thread = worker::spawn(name, Purpose::Layer, move || background.serve(&worker))
            .ok()
            .map(ManuallyDrop::new);
        state.running = state.thread.is_some();
        state.running
    }

    /// The body of the thread.
    fn serve(self: &Arc<Self>, worker: &Weak<dyn CacheWorker>) {
        /// Notes that the thread is gone where it did not end for want of tasks.
        struct MarkGone<'a>(&'a BackgroundWork);
        impl Drop for MarkGone<'_> {
            fn drop(&mut self) {
                self.0.state.lock().running = false;
                self.0.wake.notify_all();
            }
        }
        let gone = MarkGone(self);
        while let Some(task) = self.next() {
            let Some(_gate) = self.leave() else { return };
            let Some(worker) = worker.upgrade() else { return };
            if self.has_failed()
                && !matches!(task, CacheTask::ReadAhead(_) | CacheTask::ReadBlock(_))
            {
                self.state.lock().tasks.forget_writes();
            } else {
                worker.work(task, self);
            }
        }
        // `next` has said so: there may be another one already.
        std::mem::forget(gone);
    }

    /// Waits until no fork is under way, and then keeps forks waiting; `None` if the cache is dropped first.
    fn leave(&self) -> Option<fork::Inside> {
        loop {
            if let Some(gate) = fork::enter() {
                return Some(gate);
            }
            if self.state.lock().stop {
                return None;
            }
            std::thread::sleep(FORK_NAP);
        }
    }

    /// Waits for the next task; `None` if none comes for a while or the cache is dropped. Then the thread counts as
    /// gone.
    fn next(&self) -> Option<CacheTask> {
        let mut state = self.state.lock();
        while !state.stop {
            if let Some(task) = state.tasks.take() {
                return Some(task);
            }
            let nap = match self.when {
                _ if !state.tasks.has_incomplete_runs() => THREAD_IDLE,
                ThreadUse::Always => INCOMPLETE_RUN_WAIT,
                ThreadUse::Worthwhile => SLOW_INCOMPLETE_RUN_WAIT,
            };
            state.naps = true;
            let (again, is_late) = self.wake.wait_timeout(state, nap);
            state = again;
            state.naps = false;
            if is_late && !state.stop {
                match state.tasks.take_late() {
                    None => break,
                    some => return some,
                }
            }
        }
        state.running = false;
        self.wake.notify_all();
        None
    }

    /// Ends the thread, and waits until it has finished its task and is gone, so that nothing of it is left when the program
    /// ends.
    pub(crate) fn stop(&self) {
        if self.is_inherited() {
            return;
        }
        let mut state = self.state.lock();
        state.stop = true;
        // Only the thread, if there is one, waits here or is waited for: to wake nobody is a system call, too.
        if state.running {
            self.wake.notify_all();
        }
        while state.running {
            state = self.wake.wait(state);
        }
        // It counts as gone, and takes no more locks.
        if let Some(thread) = state.thread.take() {
            worker::join(ManuallyDrop::into_inner(thread));
        }
    }

    /// Whether a write of the thread failed, and none has succeeded since.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Notes that a write succeeded: with [`ThreadUse::Worthwhile`] the thread may then write again. The pages at which it
    /// failed are still dirty, and the next call that writes them gets the error if it comes again.
    #[inline]
    pub(crate) fn note_written(&self) {
        if self.when == ThreadUse::Worthwhile && self.has_failed() {
            drop(self.failed.take());
        }
    }

    /// Keeps an error until a call reports it.
    pub(crate) fn fail(&self, error: &StorageError) {
        self.failed.note(error);
    }

    /// Reports an error of the thread, once.
    ///
    /// # Errors
    /// That error.
    #[inline]
    pub(crate) fn tell(&self) -> Result<(), StorageError> {
        match self.has_failed() {
            false => Ok(()),
            true => self.failed.take().map_or(Ok(()), Err),
        }
    }
}
