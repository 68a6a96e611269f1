//! What the thread of a cache has to do, and what became of it.
//!
//! The thread is a help and never a need: nobody waits for it to begin something, and what it does
//! not do its users do, when a page has to leave or at a barrier. So a forked child, which has no such
//! thread, works as a cache without one, and it never takes the locks in here, which the thread
//! may have held.
//!
//! A write that fails leaves its page dirty, and the error here; the thread then writes no more until that
//! was told, or (`When::Worthwhile`) until somebody else's write succeeded.

use crate::StorageError;
use std::collections::{BTreeSet, VecDeque};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use zonda_runtime::fork;
use zonda_runtime::lock::{Condvar, Level, Mutex, Rank};
use zonda_runtime::worker::{self, Purpose};

/// How long a thread that met a fork waits before it looks again.
const FORK_NAP: Duration = Duration::from_micros(100);

/// How long a few complete pages wait for more.
const REST_NAP: Duration = Duration::from_millis(5);

/// The same where each call takes long.
const SLOW_REST_NAP: Duration = Duration::from_millis(50);

/// How long a thread without work stays.
const IDLE: Duration = Duration::from_millis(500);

/// The most blocks that wait to be read: of so many streams each has its next one.
const MOST_BLOCKS: usize = 16;

/// When a cache leaves work to its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Whenever there is some; an error of the thread is told by the next call.
    Always,
    /// Where calls of what is below take long, and where much is written in order. What the thread
    /// failed at is tried again by its users, who have the error if it fails again.
    Worthwhile,
}

/// One thing to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Read these pages, that somebody is about to ask for.
    Ahead(Range<u64>),
    /// Read the block that begins with this page, after one that somebody reads.
    Block(u64),
    /// Write this page, which became complete, with those around it.
    Complete(u64),
    /// Write this complete page, and no more may follow.
    Rest(u64),
    /// Write this page, which its stream has left.
    Left(u64),
    /// Write some of the pages that would have to leave next.
    Clean,
}

/// What does the work.
pub(super) trait Worker: Send + Sync {
    /// Does one thing; an error of a write is told to `line`, one of a read-ahead to nobody.
    fn work(&self, task: Task, line: &Arc<Line>);
}

#[derive(Debug, Default)]
struct Tasks {
    ahead: Option<Range<u64>>,
    /// Those asked for last, newest at the end.
    blocks: VecDeque<u64>,
    complete: BTreeSet<u64>,
    left: BTreeSet<u64>,
    /// Complete pages that were too few to be written.
    rest: BTreeSet<u64>,
    clean: bool,
    /// The cache goes; so does the thread.
    stop: bool,
    /// The thread is there.
    running: bool,
    /// The thread, until it is joined. Never dropped unjoined: a forked child would detach what is no
    /// thread there.
    thread: Option<ManuallyDrop<JoinHandle<()>>>,
}

impl Tasks {
    /// The next thing to do: first what somebody may be waiting for.
    fn take(&mut self) -> Option<Task> {
        let ahead = self.ahead.take().map(Task::Ahead);
        ahead
            .or_else(|| self.blocks.pop_front().map(Task::Block))
            .or_else(|| self.complete.pop_first().map(Task::Complete))
            .or_else(|| self.left.pop_first().map(Task::Left))
            .or_else(|| std::mem::take(&mut self.clean).then_some(Task::Clean))
    }

    /// Waits for the end of a thread that counts as gone, which takes no more locks.
    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            worker::join(ManuallyDrop::into_inner(thread));
        }
    }

    /// Forgets what is to be written: those pages stay dirty.
    fn forget_writes(&mut self) {
        self.complete.clear();
        self.left.clear();
        self.rest.clear();
        self.clean = false;
    }
}

/// The work of one cache.
pub(super) struct Line {
    when: When,
    level: Level,
    tasks: Mutex<Tasks>,
    bell: Condvar,
    /// The process whose thread it is.
    pid: u32,
    worker: OnceLock<Weak<dyn Worker>>,
    failed: Mutex<Option<StorageError>>,
    has_failed: AtomicBool,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").field("has_failed", &self.has_failed).finish_non_exhaustive()
    }
}

impl Line {
    pub(super) fn new(when: When) -> Arc<Line> {
        let level = Level::next();
        Arc::new(Line {
            when,
            level,
            tasks: Mutex::ranked(Rank::Line, Tasks::default()),
            bell: Condvar::new(),
            pid: std::process::id(),
            worker: OnceLock::new(),
            failed: Mutex::ranked(Rank::Failed, None),
            has_failed: AtomicBool::new(false),
        })
    }

    /// The place of the cache among the layers of all files.
    pub(super) fn level(&self) -> Level {
        self.level
    }

    #[inline]
    pub(super) fn when(&self) -> When {
        self.when
    }

    /// Says who does the work. Until then none is taken.
    pub(super) fn is_done_by(&self, worker: Weak<dyn Worker>) {
        // A second one would be a slip of the only caller.
        let _ = self.worker.set(worker);
    }

    /// Leaves a complete page to the thread; false if there is none.
    pub(super) fn complete(self: &Arc<Self>, index: u64) -> bool {
        self.add(|tasks| {
            tasks.complete.insert(index);
        })
    }

    /// Leaves a page to the thread that its stream has left; false if there is none.
    pub(super) fn left(self: &Arc<Self>, index: u64) -> bool {
        self.add(|tasks| {
            tasks.left.insert(index);
        })
    }

    /// Remembers complete pages that are too few to be written while more may come.
    pub(super) fn rest(self: &Arc<Self>, index: u64) {
        self.add(|tasks| {
            tasks.rest.insert(index);
        });
    }

    /// Has pages cleaned that will have to leave.
    pub(super) fn clean(self: &Arc<Self>) {
        self.add(|tasks| tasks.clean = true);
    }

    /// Has pages read; what was asked for before is forgotten.
    pub(super) fn ahead(self: &Arc<Self>, pages: Range<u64>) {
        self.add(|tasks| tasks.ahead = Some(pages));
    }

    /// Has the block read that begins with page `first`; of many that nobody came to read, the oldest
    /// is forgotten.
    pub(super) fn block(self: &Arc<Self>, first: u64) {
        self.add(|tasks| {
            if tasks.blocks.len() == MOST_BLOCKS {
                tasks.blocks.pop_front();
            }
            tasks.blocks.push_back(first);
        });
    }

    /// Adds work, and starts the thread at the first.
    fn add(self: &Arc<Self>, add: impl FnOnce(&mut Tasks)) -> bool {
        if self.is_inherited() {
            return false;
        }
        let mut tasks = self.tasks.lock();
        if tasks.stop || (!tasks.running && !self.start(&mut tasks)) {
            return false;
        }
        add(&mut tasks);
        self.bell.notify_one();
        true
    }

    /// Whether this process is a fork of the one whose thread it is.
    pub(super) fn is_inherited(&self) -> bool {
        self.pid != std::process::id()
    }

    fn start(self: &Arc<Self>, tasks: &mut Tasks) -> bool {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let Some(worker) = self.worker.get().cloned() else { return false };
        let line = Arc::clone(self);
        let name = format!("zonda-io-{}", STARTED.fetch_add(1, Ordering::Relaxed));
        // One that had nothing to do for long. It may be the last thread of a program, and so end it, by what is
        // written here.
        drop(tasks.thread.take().map(ManuallyDrop::into_inner));
        tasks.thread = worker::spawn(name, Purpose::Layer, move || line.serve(&worker))
            .ok()
            .map(ManuallyDrop::new);
        tasks.running = tasks.thread.is_some();
        tasks.running
    }

    /// The thread.
    fn serve(self: &Arc<Self>, worker: &Weak<dyn Worker>) {
        /// Says that the thread is gone, where it ended otherwise than by having nothing to do.
        struct Gone<'a>(&'a Line);
        impl Drop for Gone<'_> {
            fn drop(&mut self) {
                self.0.tasks.lock().running = false;
                self.0.bell.notify_all();
            }
        }
        let gone = Gone(self);
        while let Some(task) = self.next() {
            let Some(_gate) = self.leave() else { return };
            let Some(worker) = worker.upgrade() else { return };
            if self.has_failed() && !matches!(task, Task::Ahead(_) | Task::Block(_)) {
                self.tasks.lock().forget_writes();
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
            if self.tasks.lock().stop {
                return None;
            }
            std::thread::sleep(FORK_NAP);
        }
    }

    /// The next thing to do; `None` if there is none for a while or the cache goes, and then the thread
    /// counts as gone.
    fn next(&self) -> Option<Task> {
        let mut tasks = self.tasks.lock();
        while !tasks.stop {
            if let Some(task) = tasks.take() {
                return Some(task);
            }
            let nap = match self.when {
                _ if tasks.rest.is_empty() => IDLE,
                When::Always => REST_NAP,
                When::Worthwhile => SLOW_REST_NAP,
            };
            let (again, is_late) = self.bell.wait_timeout(tasks, nap);
            tasks = again;
            if is_late && !tasks.stop {
                match tasks.take().or_else(|| tasks.rest.pop_first().map(Task::Rest)) {
                    None => break,
                    some => return some,
                }
            }
        }
        tasks.running = false;
        self.bell.notify_all();
        None
    }

    /// Ends the thread, and waits until it has done what it is at and is gone: a program that ends then
    /// has nothing of it left.
    pub(super) fn stop(&self) {
        if self.is_inherited() {
            return;
        }
        let mut tasks = self.tasks.lock();
        tasks.stop = true;
        self.bell.notify_all();
        while tasks.running {
            tasks = self.bell.wait(tasks);
        }
        tasks.join();
    }

    /// Whether a write of the thread failed, and none has succeeded since.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// A write has succeeded: where users try again what failed, the thread may, too.
    #[inline]
    pub(super) fn note_written(&self) {
        if self.when == When::Worthwhile && self.has_failed() {
            // Its pages are dirty still: who writes them next has what goes wrong then.
            let _ = self.tell();
        }
    }

    /// Keeps an error until it is told. A second one before that adds nothing.
    pub(super) fn fail(&self, error: &StorageError) {
        self.failed.lock().get_or_insert_with(|| error.clone());
        self.has_failed.store(true, Ordering::Release);
    }

    /// Tells an error of the thread, once.
    ///
    /// # Errors
    /// That error.
    #[inline]
    pub(super) fn tell(&self) -> Result<(), StorageError> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut failed = self.failed.lock();
        self.has_failed.store(false, Ordering::Release);
        failed.take().map_or(Ok(()), Err)
    }
}
