//! Which call the thread is in, and which file that call is about.

use std::cell::Cell;

thread_local! {
    /// The upper half counts the calls that the thread is in, one within the other: a filter plugin or a
    /// program's own format calls the library from within a call. The lower half is the slot of the file
    /// that the innermost call has found, 0 if none. One number, since each call of some nanoseconds
    /// passes here.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// One more call in `CALLS`.
const ONE_CALL: u64 = 1 << 32;

/// Notes which file the call of this thread is about, so that its failure can name it.
#[inline]
pub(crate) fn note_file(slot: usize) {
    CALLS.set(CALLS.get() & !(ONE_CALL - 1) | slot as u64);
}

/// The slot of the file that the call of this thread is about; 0 if it has found none.
pub(crate) fn slot() -> usize {
    (CALLS.get() & (ONE_CALL - 1)) as usize
}

/// Whether the thread is in a call. Where the library itself does not ask, the thread is then in a signal
/// handler that interrupted the call, and may hold any lock.
pub(crate) fn is_in_call() -> bool {
    CALLS.get() >= ONE_CALL || crate::leases::are_in_use()
}

/// Counts a call of this thread as long as it lives; keeps what the call around it had noted.
pub(crate) struct CallGuard {
    outer: u64,
}

impl CallGuard {
    /// The thread enters a call.
    #[inline]
    pub(crate) fn enter() -> CallGuard {
        let outer = CALLS.get();
        CALLS.set((outer & !(ONE_CALL - 1)) + ONE_CALL);
        CallGuard { outer }
    }
}

impl Drop for CallGuard {
    #[inline]
    fn drop(&mut self) {
        CALLS.set(self.outer);
    }
}
