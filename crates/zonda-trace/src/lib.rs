#![doc = include_str!("../README.md")]
//!
//! ```
//! use zonda_trace::{Args, EventKind, counter, instant, span};
//!
//! fn put(bytes: &[u8]) {
//!     let mut span = span(EventKind::QueueExecute, || Args { bytes: bytes.len() as u64, ..Args::default() });
//!     instant(EventKind::QueueAccept, || Args { bytes: bytes.len() as u64, ..Args::default() });
//!     span.code(0);
//!     counter(EventKind::QueueBytes, 0, || bytes.len() as u64);
//! } // the span ends here, also where a function returns early
//! put(b"wind");
//! ```
#![deny(unsafe_code)]

mod buffer;
mod clock;
pub mod decode;
mod event;
pub mod format;
mod names;
mod secrets;
mod sink;
mod span;
mod tuning;

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

pub use event::{Args, EventKind, NO_ITEM};
pub use names::{current_file, file, layer, set_current_file, variable};
pub use sink::{flush, role};
pub use span::{TraceSpan, counter, instant, lock, span, span_between, span_since, start};

/// The variable of the environment that names the file; `%p` in it stands for the process's number, `%r` for its
/// number among the ranks that a launcher of MPI has started (0 without one).
pub const VARIABLE: &str = "ZONDA_TRACE";

const OFF: u8 = 0;
const ON: u8 = 1;
static STATE: AtomicU8 = AtomicU8::new(OFF);

/// Whether events are recorded now.
#[inline(always)]
#[must_use]
pub fn on() -> bool {
    STATE.load(Ordering::Relaxed) == ON
}

/// Begins to record if [`VARIABLE`] asks for it, and `is_asked` says that the environment of this process
/// may name files to be written. To be called before a program's first file is opened;
/// what it costs from the second call on is one load.
#[inline]
pub fn init(is_asked: fn() -> bool) {
    static IS_BEGUN: AtomicBool = AtomicBool::new(false);
    if !IS_BEGUN.load(Ordering::Relaxed)
        && !IS_BEGUN.swap(true, Ordering::Relaxed)
        && let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())
        && is_asked()
    {
        record_to(path.as_ref());
    }
}

/// Records to the file at `path` from now on, `%p` and `%r` standing for numbers as in [`VARIABLE`]. If it cannot be
/// written, a line on standard error says so, and nothing is recorded: a trace never fails what it
/// describes. Does nothing where a trace is recorded already.
pub fn record_to(path: &std::path::Path) {
    if sink::begin(path) {
        STATE.store(ON, Ordering::Relaxed);
    }
}

/// Stops recording for good, because the trace cannot be written any more.
fn stop() {
    STATE.store(OFF, Ordering::Relaxed);
}
