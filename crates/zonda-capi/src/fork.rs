//! What a fork holds of the files of C programs, and what is to be done before the first of them opens.
//!
//! The forking thread takes every lock of every file, in the order of the handle table, and both sides give them back
//! ([`zonda_runtime::fork`]). What is not yet written then belongs to the parent; the child's copies only read. A file whose
//! locks are not to be had in time is out of the child's reach: each call on it is `ECHILD` at once.
//!
//! An exit commits what was put ([`crate::exit`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use zonda::FrozenFile;
use zonda_runtime::fork::{self, Child, Freeze, Frozen};
use zonda_runtime::lock::Rank;

use crate::exit;
use crate::handles::{self, SharedFile};

/// To be called before the first file opens.
pub(crate) fn prepare_for_fork_and_exit() {
    zonda_trace::init(zonda::storage::neighbour::trusts_environment);
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if !IS_DONE.load(Ordering::Acquire) {
        // Several threads may do this at once: nobody waits for another one, whom a child would not have.
        zonda::report_gaps(crate::boundary::remember_report);
        zonda::release::find_by(crate::other_libnetcdf::release);
        fork::register(&OpenFiles);
        if !IS_DONE.swap(true, Ordering::AcqRel) {
            fork::install();
            exit::register();
        }
    }
}

/// The files of the handle table.
struct OpenFiles;

impl Freeze for OpenFiles {
    fn rank(&self) -> Rank {
        Rank::File
    }

    /// Also those that other threads open meanwhile, as long as there is time.
    fn hold(&'static self, until: Instant) -> Box<dyn Frozen> {
        let mut held = LockedFiles(Vec::new());
        loop {
            let n_before = held.0.len();
            for file in handles::all() {
                if !held.has(&file) {
                    held.0.push(LockedFile::new(file, until));
                }
            }
            if held.0.len() == n_before || Instant::now() >= until {
                return Box::new(held);
            }
        }
    }
}

/// The locks of a file, and the file, which must outlive them: fields are dropped in this order.
struct LockedFile {
    locks: Option<FrozenFile<'static>>,
    file: SharedFile,
}

impl LockedFile {
    fn new(file: SharedFile, until: Instant) -> LockedFile {
        let locks = file.dataset.freeze(until);
        // SAFETY: the locks lie in `file`, which does not move, and lives in the same `LockedFile`
        // until they are given back.
        let locks = unsafe { std::mem::transmute::<FrozenFile<'_>, FrozenFile<'static>>(locks) };
        LockedFile { locks: Some(locks), file }
    }
}

struct LockedFiles(Vec<LockedFile>);

impl LockedFiles {
    fn has(&self, file: &SharedFile) -> bool {
        self.0.iter().any(|held| held.file.is(file))
    }
}

impl Frozen for LockedFiles {
    fn in_child(&mut self, child: Child) {
        for file in handles::all() {
            // Another thread opened it in the last moment, and may have been at work with it.
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
                // Whoever drops it last would wait for ever.
                std::mem::forget(file.clone());
            }
        }
    }

    fn give_back(&mut self) {
        for held in &mut self.0 {
            held.locks = None;
        }
    }
}
