//! Forks and exits: the module registers these with `os.register_at_fork` and `atexit`.
//!
//! As in C: the forking thread takes every lock of every file first, and both sides give them back.
//! The GIL is given up while it waits for them, since one who has such a lock may want the GIL: a
//! file may be read through an object of Python.

use std::cell::RefCell;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use zonda_runtime::lock::{Mutex, MutexGuard};

use pyo3::prelude::*;
use zonda::{Dataset, Quiet};

use crate::memory::Frozen;

/// Every open file.
static FILES: Mutex<Vec<Weak<Dataset>>> = Mutex::new(Vec::new());

/// How long a fork waits for the locks of all files together.
const MOST_WAIT: Duration = Duration::from_secs(2);

struct Held {
    trace: Option<zonda_trace::Forking>,
    files: Vec<Frozen>,
    quiet: Quiet,
    _list: MutexGuard<'static, Vec<Weak<Dataset>>>,
}

thread_local! {
    /// What this thread holds over its fork.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

fn list() -> MutexGuard<'static, Vec<Weak<Dataset>>> {
    FILES.lock()
}

/// Notes an open file. Not to be called with the GIL: a thread that forks has the list.
pub(crate) fn note(dataset: &Arc<Dataset>) {
    let mut list = list();
    if list.len() == list.capacity() {
        list.retain(|file| file.strong_count() > 0);
    }
    list.push(Arc::downgrade(dataset));
}

fn all(list: &[Weak<Dataset>]) -> Vec<Arc<Dataset>> {
    list.iter().filter_map(Weak::upgrade).filter(|file| file.is_open()).collect()
}

/// Before `os.fork`. A second call before the fork does nothing: the thread has the locks already, and
/// would wait for itself.
#[pyfunction]
pub(crate) fn before_fork(py: Python<'_>) {
    if HELD.with_borrow(Option::is_some) {
        return;
    }
    py.detach(|| {
        let list = list();
        // As in C: a file that a long call of another thread has is out of the child's reach.
        let until = Instant::now() + MOST_WAIT;
        let quiet = zonda::quiet(Some(until));
        let files = all(&list).into_iter().map(|file| Frozen::new(file, until)).collect();
        let trace = zonda_trace::fork_prepare(Some(until));
        let held = Held { trace, files, quiet, _list: list };
        HELD.with(|slot| slot.replace(Some(held)));
    });
}

/// After `os.fork`, in the parent.
#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    HELD.with(|slot| slot.take());
}

/// After `os.fork`, in the child: what is not yet written belongs to the parent.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    if let Some(mut held) = HELD.with(|slot| slot.take()) {
        zonda_trace::fork_child(held.trace.take());
        let is_quiet = held.quiet.in_child();
        for file in &held.files {
            if is_quiet && file.locks.is_whole() {
                file.dataset.mark_forked();
            } else {
                file.dataset.mark_out_of_reach();
                // Whoever drops it last would wait for ever.
                std::mem::forget(Arc::clone(&file.dataset));
            }
        }
    }
}

/// At exit: commits what was put to files that are still open. An error has nobody to be told to.
#[pyfunction]
pub(crate) fn drain_all(py: Python<'_>) {
    py.detach(|| {
        let files = all(&list());
        for file in files {
            let _ = file.drain();
        }
        zonda_trace::flush();
    });
}
