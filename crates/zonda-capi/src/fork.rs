//! Fork and exit.
//!
//! A child of `fork` has one thread and copies of all locks as they were. So the forking thread
//! takes every lock of every file first, in the order of the handle table, and both sides give them
//! back. What is not yet written then belongs to the parent; the child's copies only read.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use zonda::{Frozen, Quiet};

use crate::handles::{self, OpenFile};

/// The locks of a file, and the file, which must outlive them: fields are dropped in this order.
struct Held {
    _locks: Frozen<'static>,
    file: Arc<OpenFile>,
}

impl Held {
    fn new(file: Arc<OpenFile>) -> Held {
        let locks = file.dataset.freeze();
        // SAFETY: the locks lie in `file`, which does not move, and lives in the same `Held`
        // until they are given back.
        let locks = unsafe { std::mem::transmute::<Frozen<'_>, Frozen<'static>>(locks) };
        Held { _locks: locks, file }
    }
}

thread_local! {
    /// What this thread holds over its fork.
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
    /// What keeps work in the background from taking locks meanwhile.
    static QUIET: RefCell<Option<Quiet>> = const { RefCell::new(None) };
    /// The trace, which those who hold other locks may write to: taken last.
    static TRACE: RefCell<Option<zonda_trace::Forking>> = const { RefCell::new(None) };
}

/// To be called before the first file opens.
pub(crate) fn prepare_for_fork_and_exit() {
    zonda_trace::init();
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        zonda::release::find_by(crate::displaced::release);
        // SAFETY: the handlers are functions of this library, which is never unloaded
        // (it is linked with `nodelete`). Where there is no memory for them, forks and exits go
        // without, as they would in any other library.
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
            libc::atexit(at_exit);
        }
    });
}

/// No panic leaves a handler that C calls.
fn guarded(body: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(body));
}

extern "C" fn before() {
    guarded(|| {
        let _ = QUIET.try_with(|held| held.replace(Some(zonda::quiet())));
        let files = handles::all();
        let _ = HELD.try_with(|held| {
            held.borrow_mut().extend(files.into_iter().map(Held::new));
        });
        let _ = TRACE.try_with(|held| held.replace(zonda_trace::fork_prepare()));
    });
}

extern "C" fn in_parent() {
    guarded(|| {
        let _ = TRACE.try_with(|held| held.take());
        let _ = HELD.try_with(|held| held.take());
        let _ = QUIET.try_with(|held| held.take());
    });
}

extern "C" fn in_child() {
    guarded(|| {
        let _ = TRACE.try_with(|held| zonda_trace::fork_child(held.take()));
        let _ = HELD.try_with(|held| {
            for held in held.take() {
                held.file.dataset.mark_forked();
            }
        });
        let _ = QUIET.try_with(|held| held.take());
    });
}

/// A program that ends without `nc_close` keeps what it put. An error has nobody to be told to.
extern "C" fn at_exit() {
    for file in handles::all() {
        guarded(|| {
            let _ = file.dataset.drain();
        });
    }
    guarded(zonda_trace::flush);
}
