//! Watches a running program: finds the libnetcdf that its process has mapped, and passes signals
//! on to it.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, Signals as SignalIterator};

use zonda_runtime::worker::{self, Purpose};

use super::plan::ZondaLibrary;
use super::{loader, maps, say};
use crate::tuning::{FIRST_LOOK_PAUSE, LAST_LOOK_PAUSE};

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

/// Signals that were sent to `zonda run` and are meant for the program.
pub(super) struct ForwardedSignals(SignalIterator);

/// Signals being passed on.
pub(super) struct Forwarding {
    handle: Handle,
    /// The thread; `None` where the system could not start one.
    thread: Option<JoinHandle<()>>,
}

impl ForwardedSignals {
    /// Takes signals from now on, so that none ends this process before the program.
    pub(super) fn catch() -> io::Result<ForwardedSignals> {
        let all = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT];
        SignalIterator::new(all).map(ForwardedSignals)
    }

    /// Passes them on to a process.
    pub(super) fn forward_to(mut self, id: u32) -> Forwarding {
        let handle = self.0.handle();
        let thread = worker::spawn(String::from("zonda-watch"), Purpose::Watch, move || {
            // A terminal sends these signals to the program, too, as to all processes in the
            // foreground.
            let at_terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
            for number in self.0.forever() {
                if at_terminal && matches!(number, SIGINT | SIGQUIT) {
                    continue;
                }
                if let (Some(pid), Some(signal)) = (pid(id), Signal::from_named_raw(number)) {
                    // This fails if the program has just ended.
                    let _ = kill_process(pid, signal);
                }
            }
        });
        if let Err(error) = &thread {
            say(format_args!("warning: signals are not passed on to process {id}: {error}"));
        }
        Forwarding { handle, thread: thread.ok() }
    }
}

impl Forwarding {
    /// Stops passing signals on, before the system can give the process's number to another
    /// process.
    pub(super) fn end(self) {
        self.handle.close();
        let _ = self.thread.map(JoinHandle::join);
    }
}

/// Looks at the memory map of a process again and again, until a libnetcdf is there.
pub(super) struct Maps {
    ended: Arc<AtomicBool>,
    /// None where the system gave none.
    thread: Option<JoinHandle<bool>>,
}

impl Maps {
    /// Begins to watch a process, and reports what it finds.
    pub(super) fn watch(id: u32, library: &ZondaLibrary) -> Maps {
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let library = library.clone();
        let thread = worker::spawn(String::from("zonda-watch"), Purpose::Watch, move || {
            let mut pause = FIRST_LOOK_PAUSE;
            while !end.load(Ordering::Relaxed) {
                if let Some(file) = mapped(id, &library) {
                    if library.is_ours(&file) {
                        say(format_args!("process {id} uses {} (Zonda)", file.display()));
                    } else {
                        say(format_args!("warning: process {id} uses {}", file.display()));
                    }
                    return true;
                }
                std::thread::park_timeout(pause);
                pause = (pause * 3 / 2).min(LAST_LOOK_PAUSE);
            }
            false
        });
        if let Err(error) = &thread {
            say(format_args!("warning: process {id} is not watched: {error}"));
        }
        Maps { ended, thread: thread.ok() }
    }

    /// Stops watching, and returns whether a libnetcdf was seen.
    pub(super) fn end(self) -> bool {
        self.ended.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread else { return false };
        thread.thread().unpark();
        thread.join().unwrap_or(false)
    }
}

/// The netCDF library in a process. If Zonda's is there, it is the answer, because it comes before
/// any other; what was preloaded, if both of Zonda's are there, since it loads the other one.
fn mapped(id: u32, library: &ZondaLibrary) -> Option<PathBuf> {
    let maps = fs::read(format!("/proc/{id}/maps")).ok()?;
    choose(&String::from_utf8_lossy(&maps), |path| library.is_ours(path))
}

fn choose(maps: &str, is_ours: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let (mut ours, mut other) = (None, None);
    for file in maps::files(maps).map(|mapped| mapped.file) {
        let is_preloaded = file.ends_with("libzonda-preload.so");
        if !is_preloaded && !loader::is_netcdf(file) {
            continue;
        }
        match is_ours(file) {
            true if is_preloaded => return Some(file.to_owned()),
            true => ours = ours.or_else(|| Some(file.to_owned())),
            false => other = other.or_else(|| Some(file.to_owned())),
        }
    }
    ours.or(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_library_goes_before_the_programs_own() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 12 /usr/bin/python3\n\
                    7f02-7f03 r-xp 00000000 08:01 13 /v/netCDF4.libs/libnetcdf-5c1ab0f3.so.22\n\
                    7f03-7f04 r-xp 00000000 08:01 15 /z z/libnetcdf.so.19\n\
                    7f04-7f05 r-xp 00000000 08:01 14 /z z/libzonda-preload.so\n\
                    7f06-7f07 rw-p 00000000 00:00 0 [heap]\n";
        let ours = |path: &Path| path.starts_with("/z z");
        assert_eq!(choose(maps, ours), Some("/z z/libzonda-preload.so".into()));
        let none = |_: &Path| false;
        assert_eq!(choose(maps, none), Some("/v/netCDF4.libs/libnetcdf-5c1ab0f3.so.22".into()));
        assert_eq!(choose("", none), None);
    }
}
