//! A timer that lets an exit go on whose thread waits for a lock that it holds itself.
//!
//! A signal handler that calls `exit` may have interrupted an allocation, of the program or of this library.
//! The thread then holds a lock of the allocator that it never gives back, and all that an exit does here
//! takes memory. So a timer interrupts this thread, which writes one line and goes on with the other exit
//! functions. The C library allows that: `exit` within a function that `exit` calls does
//! what is left.
//!
//! The C library drops thread-local values before it calls any exit function, before the timer can be
//! set. This library has none that are dropped: `scripts/link.sh` checks that.

use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use libc::{c_int, c_void};

/// The signal of the timer; it is sent to this thread alone.
const SIGNAL: c_int = libc::SIGALRM;

const LINE: &str = "zonda: the program ended in the middle of something that its thread can never \
                    finish, such as an allocation of memory: what was put into open files since the \
                    last nc_sync, if anything, is given up\n";

/// The status that the program gave to `exit`.
static STATUS: AtomicI32 = AtomicI32::new(1);

/// Notes the status that the program gave to `exit`. Other C libraries do not tell it.
#[cfg(target_env = "gnu")]
pub(super) fn note_status(status: c_int) {
    STATUS.store(status, Ordering::Relaxed);
}

/// Whether the program ends by `quick_exit`, whose status is not known.
static IS_QUICK: AtomicBool = AtomicBool::new(false);

/// Notes that the program ends by `quick_exit`.
pub(super) fn note_quick() {
    IS_QUICK.store(true, Ordering::Relaxed);
}

/// While it lives, the exiting thread is interrupted after a time.
pub(super) struct ExitTimer {
    timer: c_int,
    old_action: libc::sigaction,
    old_mask: libc::sigset_t,
}

impl ExitTimer {
    /// Sets the timer; `None` where the system has none. Takes no memory, and neither does the drop.
    pub(super) fn begin(at_most: Duration) -> Option<ExitTimer> {
        // SAFETY: all of these are plain numbers and pointers, for which zeros are valid; the calls get
        // addresses of locals.
        let watch = unsafe {
            let mut event: libc::sigevent = zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            // By its number: its function came with glibc 2.30, and wheels are linked for an older one.
            event.sigev_notify_thread_id = libc::syscall(libc::SYS_gettid) as libc::pid_t;
            let mut timer: c_int = 0;
            // Not the function of the C library, which may take memory.
            let (clock, at) = (libc::CLOCK_MONOTONIC, &raw mut timer);
            if libc::syscall(libc::SYS_timer_create, clock, &raw mut event, at) != 0 {
                return None;
            }
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = go_on as extern "C" fn(c_int) as usize;
            let (mut old_action, mut old_mask) = (zeroed(), zeroed());
            libc::sigaction(SIGNAL, &raw const action, &raw mut old_action);
            let mut set: libc::sigset_t = zeroed();
            libc::sigaddset(&raw mut set, SIGNAL);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, &raw mut old_mask);
            ExitTimer { timer, old_action, old_mask }
        };
        // SAFETY: zeros are a valid time; the timer is ours.
        unsafe {
            let mut when: libc::itimerspec = zeroed();
            when.it_value.tv_sec = at_most.as_secs().cast_signed();
            when.it_value.tv_nsec = at_most.subsec_nanos().into();
            let nothing = null_mut::<c_void>();
            libc::syscall(libc::SYS_timer_settime, watch.timer, 0, &raw const when, nothing);
        }
        Some(watch)
    }
}

impl Drop for ExitTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours, and gone before the signal means again what it meant before.
        unsafe {
            libc::syscall(libc::SYS_timer_delete, self.timer);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.old_mask, null_mut());
            libc::sigaction(SIGNAL, &raw const self.old_action, null_mut());
        }
    }
}

/// The signal handler: the thread waits for itself.
extern "C" fn go_on(_: c_int) {
    // SAFETY: the bytes are those of the line; `exit` is allowed in a handler, see the top of this file. Not so
    // after `quick_exit`: then the process ends at once.
    unsafe {
        let _ = libc::write(2, LINE.as_ptr().cast(), LINE.len());
        if IS_QUICK.load(Ordering::Relaxed) {
            libc::_exit(STATUS.load(Ordering::Relaxed));
        }
        libc::exit(STATUS.load(Ordering::Relaxed))
    }
}

/// Bytes of an allocation that needs the lock of the allocator: more than caches of threads have, less than
/// is taken from the system directly.
const BYTES: usize = 64 << 10;

/// Returns only where this thread can take memory.
pub(super) fn try_memory() {
    // SAFETY: what is taken is freed; the compiler does not see that, and cannot leave out both.
    unsafe { libc::free(std::hint::black_box(libc::malloc(BYTES))) };
}
