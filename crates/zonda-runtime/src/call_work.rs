//! One call's work, and the threads that help with it: the only other module with `unsafe`.
//!
//! The work borrows from the caller's stack. That is sound because a thread calls it only while it is
//! counted as running ([`RunningHelper`]), it is counted only while the crew is open, and the caller does not go on,
//! by no way out, before it has closed the crew and nobody is running.

use crate::lock::{Condvar, Mutex, MutexGuard, Rank};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a thread panicked with.
pub(crate) type Panic = Box<dyn Any + Send>;

/// The work of one call.
pub(crate) struct CallWork {
    work: ErasedWork,
    state: Mutex<CallWorkState>,
    /// Rung when the last that ran has ended.
    done: Condvar,
}

struct CallWorkState {
    /// Whether others may still begin.
    is_open: bool,
    n_running: usize,
    /// The first panic among those that helped.
    panic: Option<Panic>,
}

/// The caller's closure, without the lifetime that it has.
struct ErasedWork(*const (dyn Fn() + Sync));

// SAFETY: what it points to is `Sync`, so any thread may call it; `CallWork` says when.
unsafe impl Send for ErasedWork {}
// SAFETY: as above.
unsafe impl Sync for ErasedWork {}

impl CallWork {
    /// Makes a crew for `work`, has `offer` tell others of it (whether there are any), runs `own_part`, has
    /// `withdraw` take back what nobody has taken, and waits for those that began. Gives also what one of
    /// them panicked with.
    pub(crate) fn run<T>(
        work: &(dyn Fn() + Sync),
        offer: impl FnOnce(&Arc<CallWork>) -> bool,
        withdraw: impl Fn(&Arc<CallWork>),
        own_part: impl FnOnce() -> T,
    ) -> (T, Option<Panic>) {
        /// Takes back, closes the crew and waits, also when `own_part` panics.
        struct CloseOnDrop<'a, W: Fn(&Arc<CallWork>)> {
            call_work: &'a Arc<CallWork>,
            withdraw: W,
            is_offered: bool,
        }
        impl<W: Fn(&Arc<CallWork>)> Drop for CloseOnDrop<'_, W> {
            fn drop(&mut self) {
                if self.is_offered {
                    (self.withdraw)(self.call_work);
                }
                self.call_work.close();
            }
        }
        let pointer = std::ptr::from_ref(work);
        // SAFETY: only the lifetime changes; it is called as the head of this file says.
        let pointer = unsafe {
            std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync + 'static)>(
                pointer,
            )
        };
        let call_work = Arc::new(CallWork {
            work: ErasedWork(pointer),
            state: Mutex::ranked(
                Rank::CallWork,
                CallWorkState { is_open: true, n_running: 0, panic: None },
            ),
            done: Condvar::new(),
        });
        // Also where `offer` panics half-way.
        let mut closing = CloseOnDrop { call_work: &call_work, withdraw, is_offered: true };
        closing.is_offered = offer(&call_work);
        let result = own_part();
        drop(closing);
        let panic = call_work.lock().panic.take();
        (result, panic)
    }

    /// Nothing that can panic runs under the lock, so a poisoned one is whole.
    fn lock(&self) -> MutexGuard<'_, CallWorkState> {
        self.state.lock()
    }

    /// Counts a thread as running, if the crew is still open.
    pub(crate) fn begin(self: Arc<Self>) -> Option<RunningHelper> {
        let mut state = self.lock();
        if !state.is_open {
            return None;
        }
        state.n_running += 1;
        drop(state);
        Some(RunningHelper(self))
    }

    /// Lets nobody begin any more, and waits for those that have.
    fn close(&self) {
        let mut state = self.lock();
        state.is_open = false;
        while state.n_running > 0 {
            state = self.done.wait(state);
        }
    }
}

/// A thread that is counted as running, until this is dropped.
pub(crate) struct RunningHelper(Arc<CallWork>);

impl RunningHelper {
    /// Does the work on this thread. A panic is kept for the caller.
    pub(crate) fn work(&self) {
        // SAFETY: this thread is counted as running, and was counted while the crew was open, so the
        // caller waits in `close` until the drop of `self` has given the count back.
        let work = unsafe { &*self.0.work.0 };
        let Err(panic) = catch_unwind(AssertUnwindSafe(work)) else { return };
        let mut state = self.0.lock();
        // Dropping a second one could panic again.
        let later = state.panic.is_some();
        if later { std::mem::forget(panic) } else { state.panic = Some(panic) }
    }
}

impl Drop for RunningHelper {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.n_running -= 1;
        // Rung under the lock: the caller may be gone as soon as it is given back, but the crew is not.
        if state.n_running == 0 && !state.is_open {
            self.0.done.notify_all();
        }
    }
}
