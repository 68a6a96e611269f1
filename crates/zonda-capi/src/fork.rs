//! Fork, and what is to be done before the first file opens.
//!
//! A child of `fork` has one thread and copies of all locks as they were. So the forking thread
//! takes every lock of every file first, in the order of the handle table, and both sides give them
//! back. What is not yet written then belongs to the parent; the child's copies only read. A file whose
//! locks are not to be had in time is out of the child's reach: each call on it is `ECHILD` at once.
//!
//! An exit commits what was put ([`crate::ending`]).

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use std::time::{Duration, Instant};

use zonda::{Frozen, Quiet};
use zonda_runtime::memory;

use crate::ending;
use crate::handles::{self, OpenFile};

/// How long a fork or an exit waits that may wait for itself.
pub(crate) const MOST_WAIT: Duration = Duration::from_secs(2);

/// The locks of a file, and the file, which must outlive them: fields are dropped in this order.
struct Held {
    locks: Frozen<'static>,
    file: Arc<OpenFile>,
}

impl Held {
    fn new(file: Arc<OpenFile>, until: Option<Instant>) -> Held {
        let locks = file.dataset.freeze(until);
        // SAFETY: the locks lie in `file`, which does not move, and lives in the same `Held`
        // until they are given back.
        let locks = unsafe { std::mem::transmute::<Frozen<'_>, Frozen<'static>>(locks) };
        Held { locks, file }
    }
}

thread_local! {
    /// What this thread holds over its fork.
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
    /// What keeps work in the background from taking locks meanwhile.
    static QUIET: RefCell<Option<Quiet>> = const { RefCell::new(None) };
    /// What keeps other threads from asking for memory back: taken behind the locks of files.
    static MEMORY: RefCell<Option<memory::Frozen<'static>>> = const { RefCell::new(None) };
    /// The trace, which those who hold other locks may write to: taken last.
    static TRACE: RefCell<Option<zonda_trace::Forking>> = const { RefCell::new(None) };
}

/// To be called before the first file opens.
pub(crate) fn prepare_for_fork_and_exit() {
    zonda_trace::init(zonda::storage::neighbour::trusts_environment);
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        zonda::tell_of_gaps(crate::boundary::tell);
        zonda::release::find_by(crate::displaced::release);
        // SAFETY: the handlers are functions of this library, which is never unloaded
        // (it is linked with `nodelete`). Where there is no memory for them, forks and exits go
        // without, as they would in any other library.
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
        }
        ending::register();
    });
}

/// No panic leaves a handler that C calls.
pub(crate) fn guarded(body: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(body));
}

/// Takes the locks of all files, also of those that other threads open meanwhile, as long as there is time.
fn hold_all(held: &mut Vec<Held>, until: Option<Instant>) {
    loop {
        let n_before = held.len();
        for file in handles::all() {
            if !has(held, &file) {
                held.push(Held::new(file, until));
            }
        }
        let is_over = until.is_some_and(|until| Instant::now() >= until);
        if held.len() == n_before || is_over {
            return;
        }
    }
}

fn has(held: &[Held], file: &Arc<OpenFile>) -> bool {
    held.iter().any(|held| Arc::ptr_eq(&held.file, file))
}

extern "C" fn before() {
    guarded(|| {
        // Transfers in the background and calls of other threads may take as long as the storage is slow,
        // and in a signal handler the thread itself may be in the middle of a call: one bound for all.
        let until = Some(Instant::now() + MOST_WAIT);
        let _ = QUIET.try_with(|held| held.replace(Some(zonda::quiet(until))));
        let _ = HELD.try_with(|held| hold_all(&mut held.borrow_mut(), until));
        let _ = MEMORY.try_with(|held| held.replace(memory::process().freeze(until)));
        let _ = TRACE.try_with(|held| held.replace(zonda_trace::fork_prepare(until)));
    });
}

extern "C" fn in_parent() {
    guarded(|| {
        let _ = TRACE.try_with(|held| held.take());
        let _ = MEMORY.try_with(|held| held.take());
        let _ = HELD.try_with(|held| held.take());
        let _ = QUIET.try_with(|held| held.take());
    });
}

extern "C" fn in_child() {
    guarded(|| {
        let _ = TRACE.try_with(|held| zonda_trace::fork_child(held.take()));
        let _ = MEMORY.try_with(|held| held.take());
        memory::process().in_child();
        let quiet = QUIET.try_with(|held| held.take()).ok().flatten();
        let is_quiet = quiet.as_ref().is_some_and(Quiet::in_child);
        let _ = HELD.try_with(|held| {
            let all_held = held.take();
            for file in handles::all() {
                // Another thread opened it in the last moment, and may have been at work with it.
                if !has(&all_held, &file) {
                    file.dataset.mark_out_of_reach();
                    std::mem::forget(file);
                }
            }
            for held in all_held {
                if is_quiet && held.locks.is_whole() {
                    held.file.dataset.mark_forked();
                } else {
                    held.file.dataset.mark_out_of_reach();
                    // Whoever drops it last would wait for ever.
                    std::mem::forget(held.file);
                }
            }
        });
    });
}
