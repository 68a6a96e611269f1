//! Which locks a fork takes of the files of C programs, and what happens before the first of them opens.
//!
//! The forking thread takes every lock of every file, in the order of the handle table, and both sides give them back
//! ([`zonda_runtime::fork`]). The parent then writes what is not yet written; the child's copies only read. A file whose
//! locks cannot be taken in time is out of the child's reach: each call on it is `ECHILD` at once.
//!
//! An exit commits what was put ([`crate::exit`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use zonda::FrozenFile;
use zonda_runtime::fork::{self, Child, Freeze, Frozen};
use zonda_runtime::lock::Rank;

use crate::answers;
use crate::exit;
use crate::handles::{self, SharedFile};
use crate::leases;

/// Makes forks and the end of the process call this library. To be called before the first file opens.
pub(crate) fn prepare_for_fork_and_exit() {
    zonda_trace::init(zonda::storage::neighbour::trusts_environment);
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if !IS_DONE.load(Ordering::Acquire) {
        // Several threads may do this at once. None waits for another, which a forked child would not have.
        zonda::report_gaps(crate::boundary::remember_report);
        zonda::release::find_by(crate::other_libnetcdf::release);
        fork::register(&OpenFiles);
        if !IS_DONE.swap(true, Ordering::AcqRel) {
            fork::install();
            exit::register();
        }
    }
}

/// All files of the handle table.
struct OpenFiles;

impl Freeze for OpenFiles {
    fn rank(&self) -> Rank {
        Rank::File
    }

    /// Locks all files, also those that other threads open meanwhile, as long as there is time.
    fn hold(&'static self, until: Instant) -> Box<dyn Frozen> {
        let mut locked = LockedFiles(Vec::new());
        loop {
            let n_before = locked.0.len();
            for file in handles::all() {
                if !locked.has(&file) {
                    locked.0.push(LockedFile::new(file, until));
                }
            }
            if locked.0.len() == n_before || Instant::now() >= until {
                return Box::new(locked);
            }
        }
    }
}

/// A file with its locks. The file must outlive them: fields are dropped in this order.
struct LockedFile {
    locks: Option<FrozenFile<'static>>,
    file: SharedFile,
}

impl LockedFile {
    fn new(file: SharedFile, until: Instant) -> LockedFile {
        let locks = file.dataset.freeze(until);
        // SAFETY: the locks lie in what `file` points to, which does not move; `file` is in the same
        // `LockedFile` and is dropped after them.
        let locks = unsafe { std::mem::transmute::<FrozenFile<'_>, FrozenFile<'static>>(locks) };
        LockedFile { locks: Some(locks), file }
    }
}

struct LockedFiles(Vec<LockedFile>);

impl LockedFiles {
    fn has(&self, file: &SharedFile) -> bool {
        self.0.iter().any(|locked| locked.file.is(file))
    }
}

impl Frozen for LockedFiles {
    fn in_child(&mut self, child: Child) {
        leases::begin_child();
        answers::begin_child();
        for file in handles::all() {
            // Another thread opened it just before the fork, and may have held locks of it.
            if !self.has(&file) {
                file.dataset.mark_out_of_reach();
                std::mem::forget(file);
            }
        }
        for LockedFile { locks, file } in &self.0 {
            if child.is_quiet && locks.as_ref().is_some_and(FrozenFile::is_whole) {
                file.dataset.mark_forked();
            } else {
                file.dataset.mark_out_of_reach();
                // Dropping it would take its locks, which nobody in the child gives back.
                std::mem::forget(file.clone());
            }
        }
    }

    fn give_back(&mut self) {
        for locked in &mut self.0 {
            locked.locks = None;
        }
    }
}
