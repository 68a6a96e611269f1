//! Threads of the library's own, in a program that does not know of them.

use crate::os::with_signals_blocked;
use std::thread::JoinHandle;

/// Starts a thread that no signal of the program is delivered to: its handlers run on its own
/// threads, which may be in the middle of something that they rely on. A panic ends the thread only.
/// Nobody has to join it.
///
/// # Errors
/// What the system says if it gives no thread.
pub fn spawn(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    // A thread begins with the mask of the one that starts it, so that there is no moment between.
    with_signals_blocked(|| std::thread::Builder::new().name(name).spawn(body))
}

/// The same for a thread that ends before `scope` does, which reports its panic.
///
/// # Errors
/// What the system says if it gives no thread.
pub fn spawn_scoped<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: String,
    body: impl FnOnce() + Send + 'scope,
) -> std::io::Result<()> {
    let named = std::thread::Builder::new().name(name);
    with_signals_blocked(|| named.spawn_scoped(scope, body).map(drop))
}
