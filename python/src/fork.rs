//! Forks and exits: the module registers these with `os.register_at_fork` and `atexit`.
//!
//! As in C: the forking thread takes every lock of every file first, and both sides give them back
//! (`zonda_runtime::fork`). The GIL is released while it waits for them, since a thread that holds such a lock may
//! need the GIL: a file may be read through a Python object.

use std::sync::{Arc, Weak};
use std::time::Instant;

use pyo3::prelude::*;
use zonda::Dataset;
use zonda_runtime::fork::{self, Child, Freeze, Frozen};
use zonda_runtime::lock::{Mutex, MutexGuard, Rank};

use crate::memory::FrozenFile;

/// Every open file. The module has a [`Freeze`] of its own, which holds this list and the files in it.
static FILES: Mutex<Vec<Weak<Dataset>>> = Mutex::ranked(Rank::Files, Vec::new());

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

/// The list, and the files in it.
struct Files;

impl Freeze for Files {
    fn rank(&self) -> Rank {
        Rank::Files
    }

    fn hold(&'static self, until: Instant) -> Box<dyn Frozen> {
        let list = FILES.lock_until(until);
        // As in C: a file that a long call of another thread uses cannot be used in the child.
        let files = list.iter().flat_map(|list| all(list)).map(|file| FrozenFile::new(file, until));
        Box::new(FrozenFiles { files: files.collect(), list })
    }
}

struct FrozenFiles {
    files: Vec<FrozenFile>,
    list: Option<MutexGuard<'static, Vec<Weak<Dataset>>>>,
}

impl Frozen for FrozenFiles {
    /// In the child: what is not yet written belongs to the parent.
    fn in_child(&mut self, child: Child) {
        for file in &self.files {
            if child.is_quiet && file.locks.as_ref().is_some_and(zonda::FrozenFile::is_whole) {
                file.dataset.mark_forked();
            } else {
                file.dataset.mark_out_of_reach();
                // Dropping the last reference would wait for ever.
                std::mem::forget(Arc::clone(&file.dataset));
            }
        }
    }

    fn give_back(&mut self) {
        for file in &mut self.files {
            file.locks = None;
        }
        self.list = None;
    }
}

/// Before `os.fork`.
#[pyfunction]
pub(crate) fn before_fork(py: Python<'_>) {
    fork::register(&Files);
    py.detach(fork::before);
}

/// After `os.fork`, in the parent.
#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    fork::in_parent();
}

/// After `os.fork`, in the child.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    fork::in_child();
}

/// At exit: commits what was put to files that are still open. There is nobody to report an error to.
#[pyfunction]
pub(crate) fn drain_all(py: Python<'_>) {
    py.detach(|| {
        let files = all(&list());
        for file in files {
            let _ = file.drain();
        }
        // I/O servers close what the program closed: who runs after it finds whole files.
        if let Err(error) = zonda::servers::finish() {
            eprintln!("zonda: {error}");
        }
        zonda_trace::flush();
    });
}
