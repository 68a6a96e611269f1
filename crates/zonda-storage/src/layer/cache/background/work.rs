//! The thread of a cache and its bell: it is there while there is something to do, and until the cache goes.

use super::failed::Failed;
use super::tasks::{Task, Tasks};
use crate::StorageError;
use crate::sync::lock::{Condvar, Level, Mutex, Rank};
use crate::sync::worker::{self, Purpose};
use crate::sync::{JoinHandle, fork};
use std::mem::ManuallyDrop;
use std::ops::Range;
// Numbers in names.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// How long a thread that met a fork waits before it looks again.
const FORK_NAP: Duration = Duration::from_micros(100);

/// How long a few complete pages wait for more.
const REST_NAP: Duration = Duration::from_millis(5);

/// The same where each call takes long.
const SLOW_REST_NAP: Duration = Duration::from_millis(50);

/// How long a thread without work stays.
const IDLE: Duration = Duration::from_millis(500);

/// When a cache leaves work to its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Whenever there is some; an error of the thread is told by the next call.
    Always,
    /// Where calls of what is below take long, and where much is written in order. What the thread
    /// failed at is tried again by its users, who have the error if it fails again.
    Worthwhile,
}

/// What does the work.
pub(crate) trait Worker: Send + Sync {
    /// Does one thing; an error of a write is told to `background`, one of a read-ahead to nobody.
    fn work(&self, task: Task, background: &Arc<BackgroundWork>);
}

/// What the thread and its users share.
#[derive(Debug, Default)]
struct State {
    tasks: Tasks,
    /// The cache goes; so does the thread.
    stop: bool,
    /// The thread is there.
    running: bool,
    /// The thread, until it is joined. Never dropped unjoined: a forked child would detach what is no
    /// thread there.
    thread: Option<ManuallyDrop<JoinHandle<()>>>,
}

/// The work of one cache.
pub(crate) struct BackgroundWork {
    when: When,
    level: Level,
    state: Mutex<State>,
    bell: Condvar,
    /// The process whose thread it is.
    pid: u32,
    worker: OnceLock<Weak<dyn Worker>>,
    failed: Failed,
}

impl std::fmt::Debug for BackgroundWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackgroundWork").field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl BackgroundWork {
    pub(crate) fn new(when: When) -> Arc<BackgroundWork> {
        let level = Level::next();
        Arc::new(BackgroundWork {
            when,
            level,
            state: Mutex::ranked(Rank::BackgroundWork, State::default()),
            bell: Condvar::new(),
            pid: zonda_runtime::fork::process_id(),
            worker: OnceLock::new(),
            failed: Failed::default(),
        })
    }

    /// The place of the cache among the layers of all files.
    pub(crate) fn level(&self) -> Level {
        self.level
    }

    #[inline]
    pub(crate) fn when(&self) -> When {
        self.when
    }

    /// Says who does the work. Until then none is taken.
    pub(crate) fn is_done_by(&self, worker: Weak<dyn Worker>) {
        // A second one would be a slip of the only caller.
        let _ = self.worker.set(worker);
    }

    /// Leaves a complete page to the thread; false if there is none.
    pub(crate) fn complete(self: &Arc<Self>, index: u64) -> bool {
        self.add(|tasks| {
            tasks.complete.insert(index);
        })
    }

    /// Leaves a page to the thread that its stream has left; false if there is none.
    pub(crate) fn left(self: &Arc<Self>, index: u64) -> bool {
        self.add(|tasks| {
            tasks.left.insert(index);
        })
    }

    /// Remembers complete pages that are too few to be written while more may come.
    pub(crate) fn rest(self: &Arc<Self>, index: u64) {
        self.add(|tasks| {
            tasks.rest.insert(index);
        });
    }

    /// Has pages cleaned that will have to leave.
    pub(crate) fn clean(self: &Arc<Self>) {
        self.add(|tasks| tasks.clean = true);
    }

    /// Has pages read; what was asked for before is forgotten.
    pub(crate) fn ahead(self: &Arc<Self>, pages: Range<u64>) {
        self.add(|tasks| tasks.ahead = Some(pages));
    }

    /// Has the block read that begins with page `first`.
    pub(crate) fn block(self: &Arc<Self>, first: u64) {
        self.add(|tasks| tasks.add_block(first));
    }

    /// Adds work, and starts the thread at the first.
    fn add(self: &Arc<Self>, add: impl FnOnce(&mut Tasks)) -> bool {
        if self.is_inherited() {
            return false;
        }
        let mut state = self.state.lock();
        if state.stop || (!state.running && !self.start(&mut state)) {
            return false;
        }
        add(&mut state.tasks);
        self.bell.notify_one();
        true
    }

    /// Whether this process is a fork of the one whose thread it is.
    pub(crate) fn is_inherited(&self) -> bool {
        self.pid != zonda_runtime::fork::process_id()
    }

    fn start(self: &Arc<Self>, state: &mut State) -> bool {
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

    /// The thread.
    fn serve(self: &Arc<Self>, worker: &Weak<dyn Worker>) {
        /// Says that the thread is gone, where it ended otherwise than by having nothing to do.
        struct Gone<'a>(&'a BackgroundWork);
        impl Drop for Gone<'_> {
            fn drop(&mut self) {
                self.0.state.lock().running = false;
                self.0.bell.notify_all();
            }
        }
        let gone = Gone(self);
        while let Some(task) = self.next() {
            let Some(_gate) = self.leave() else { return };
            let Some(worker) = worker.upgrade() else { return };
            if self.has_failed() && !matches!(task, Task::Ahead(_) | Task::Block(_)) {
                self.state.lock().tasks.forget_writes();
            } else {
                worker.work(task, self);
            }
        }
        // `next` has said so: there may be another one already.
        std::mem::forget(gone);
    }

    /// Leave to take locks; `None` when the cache goes first.
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

    /// The next thing to do; `None` if there is none for a while or the cache goes, and then the thread
    /// counts as gone.
    fn next(&self) -> Option<Task> {
        let mut state = self.state.lock();
        while !state.stop {
            if let Some(task) = state.tasks.take() {
                return Some(task);
            }
            let nap = match self.when {
                _ if !state.tasks.has_rest() => IDLE,
                When::Always => REST_NAP,
                When::Worthwhile => SLOW_REST_NAP,
            };
            let (again, is_late) = self.bell.wait_timeout(state, nap);
            state = again;
            if is_late && !state.stop {
                match state.tasks.take_late() {
                    None => break,
                    some => return some,
                }
            }
        }
        state.running = false;
        self.bell.notify_all();
        None
    }

    /// Ends the thread, and waits until it has done what it is at and is gone: a program that ends then
    /// has nothing of it left.
    pub(crate) fn stop(&self) {
        if self.is_inherited() {
            return;
        }
        let mut state = self.state.lock();
        state.stop = true;
        self.bell.notify_all();
        while state.running {
            state = self.bell.wait(state);
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

    /// A write has succeeded: where users try again what failed, the thread may, too. Its pages are dirty still: who writes
    /// them next has what goes wrong then.
    #[inline]
    pub(crate) fn note_written(&self) {
        if self.when == When::Worthwhile && self.has_failed() {
            drop(self.failed.take());
        }
    }

    /// Keeps an error until it is told.
    pub(crate) fn fail(&self, error: &StorageError) {
        self.failed.note(error);
    }

    /// Tells an error of the thread, once.
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
