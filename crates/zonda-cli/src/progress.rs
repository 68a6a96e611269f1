//! Work that takes long: shows a progress bar on a terminal, and lets signals end the work cleanly.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use zonda::copy::Progress;

use crate::failure::{CommandFailure, Result};

/// What shells add to the number of a signal for the exit status of what it ended.
const SIGNALLED: i32 = 128;

/// Runs a copy with a progress bar. A signal stops the copy, which removes what it has written;
/// then the signal ends the program.
pub(crate) fn watched<T>(
    quiet: bool,
    copy: impl FnOnce(&mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>) -> zonda::Result<T>,
) -> Result<zonda::Result<T>> {
    let came = StopSignals::watch()?;
    let bar = bar(quiet);
    let copied = copy(&mut |progress| {
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.done_bytes);
        if bar.message() != progress.var {
            bar.set_message(progress.var.to_owned());
        }
        if came.signal().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.finish_and_clear();
    if let (Err(_), Some(signal)) = (&copied, came.signal()) {
        // A rank that dies of a signal is an accident for its launcher.
        if crate::ranks::finish() {
            std::process::exit(SIGNALLED + signal);
        }
        // Nothing is left behind, so the signal may now do what it does by default.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    Ok(copied)
}

/// Does what rank 0 orders: signals go to all ranks, and rank 0 ends the work of all.
pub(crate) fn following<T>(follow: impl FnOnce() -> T) -> Result<T> {
    let _came = StopSignals::watch()?;
    Ok(follow())
}

/// A bar on a terminal, and nothing elsewhere.
fn bar(quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let form = "{wide_bar} {percent:>3} %  {bytes}/{total_bytes}  {bytes_per_sec}  {eta}  {msg}";
    let style = ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr()).with_style(style)
}

/// Signals that end the work at its next step.
struct StopSignals(Vec<(i32, Arc<AtomicUsize>)>);

impl StopSignals {
    fn watch() -> Result<StopSignals> {
        let mut signals = Vec::new();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let came = Arc::new(AtomicUsize::new(0));
            let watched = signal_hook::flag::register_usize(signal, Arc::clone(&came), 1);
            watched.map_err(|error| CommandFailure::text(format!("signals: {error}")))?;
            signals.push((signal, came));
        }
        Ok(StopSignals(signals))
    }

    /// The signal that was received, if any.
    fn signal(&self) -> Option<i32> {
        self.0.iter().find(|(_, came)| came.load(Ordering::Relaxed) > 0).map(|(signal, _)| *signal)
    }
}
