//! Threads of the library's own, in a program that does not know of them.
//!
//! No signal of the program is delivered to them: its handlers run on its own threads, which may be in
//! the middle of something that they rely on. Where the thread that starts one is bound to some of the
//! processors that the process has (`OMP_PROC_BIND`, a program's own binding), the new one keeps off
//! them: it would else take turns with its maker, and nothing would happen at the same time. A thread that is started by
//! one of the library's stays where that one is: off the program's threads, not off its maker.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crate::machine::Machine;
use crate::os;

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Decodes and filters chunks, and does other shares of calls that wait.
    Pool,
    /// Carries out what write-behind has accepted.
    WriteBehind,
    /// Writes and reads ahead for a layer of storage.
    Layer,
    /// Reads what comes next while a tool writes.
    Ahead,
    /// Commits at the end of a process whose own threads cannot.
    Exit,
    /// Does its share of a computation of a tool, and ends with it.
    Share,
    /// Looks after a program that a tool has started, or a wait of a tool.
    Watch,
    /// Asks servers for parts of remote files.
    Remote,
}

/// One line of the table of threads.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// What such threads are for.
    pub purpose: Purpose,
    /// The name that debuggers show, without a number.
    pub name: &'static str,
    /// What they do.
    pub does: &'static str,
    /// How they end.
    pub ends: &'static str,
}

/// All kinds of threads there are.
pub const KINDS: [About; 8] = [
    About {
        purpose: Purpose::Pool,
        name: "zonda",
        does: "decode and filter chunks, and read parts of large arrays, for calls that wait",
        ends: "after half a second without work; a forked child starts its own",
    },
    About {
        purpose: Purpose::WriteBehind,
        name: "zonda-io",
        does: "carry out puts that write-behind has accepted",
        ends: "after half a second without work; exit waits until queues are empty",
    },
    About {
        purpose: Purpose::Layer,
        name: "zonda-io",
        does: "write and read ahead for a storage layer",
        ends: "with the file, or after a while without work",
    },
    About {
        purpose: Purpose::Ahead,
        name: "zonda-ahead",
        does: "read what comes next while a copy writes",
        ends: "with the copy",
    },
    About {
        purpose: Purpose::Exit,
        name: "zonda-exit",
        does: "commit at an exit that came into a call",
        ends: "with the process, after 2 s at most",
    },
    About {
        purpose: Purpose::Share,
        name: "zonda-share",
        does: "do a share of what a tool computes",
        ends: "with that computation",
    },
    About {
        purpose: Purpose::Watch,
        name: "zonda-watch",
        does: "look after a program that `zonda run -v` has started, or tell that MPI waits for ranks to begin",
        ends: "with that program, or when MPI has begun",
    },
    About {
        purpose: Purpose::Remote,
        name: "zonda-net",
        does: "ask servers for parts of remote files",
        ends: "after half a second without work; a forked child starts its own",
    },
];

/// Threads of each purpose that are alive, in the order of [`KINDS`].
static ALIVE: [AtomicUsize; KINDS.len()] = [const { AtomicUsize::new(0) }; KINDS.len()];

impl Purpose {
    /// Its line of the table.
    pub(crate) fn about(self) -> &'static About {
        &KINDS[self as usize]
    }

    fn count(self) -> &'static AtomicUsize {
        &ALIVE[self as usize]
    }
}

/// How many threads of a purpose are alive in this process, those of a parent not counted exactly.
#[must_use]
pub fn alive(purpose: Purpose) -> usize {
    purpose.count().load(Ordering::Relaxed)
}

/// Counts a thread as long as it lives, also when it panics.
struct Alive(Purpose);

impl Alive {
    fn new(purpose: Purpose) -> Alive {
        purpose.count().fetch_add(1, Ordering::Relaxed);
        Alive(purpose)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        // A count that a fork reset may be zero already.
        let less = |n: usize| Some(n.saturating_sub(1));
        let _ = self.0.count().fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// How often this thread gave its processor up to wait for something, such as a device: what distinguishes a call
/// that waits from one whose processor others had meanwhile. A system call. `None` where the system does not say.
#[must_use]
pub fn waits() -> Option<u64> {
    os::voluntary_switches()
}

/// Starts a thread. A panic ends that thread only. Nobody has to join it.
///
/// # Errors
/// What the system says if it gives no thread.
pub fn spawn<T: Send + 'static>(
    name: String,
    purpose: Purpose,
    body: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    let named = std::thread::Builder::new().name(name);
    let body = prepared(purpose, body);
    // A thread begins with the mask of the one that starts it, so that there is no moment between.
    os::with_signals_blocked(|| named.spawn(body))
}

/// The same for a thread that ends before `scope` does, which reports its panic.
///
/// # Errors
/// What the system says if it gives no thread.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: String,
    purpose: Purpose,
    body: impl FnOnce() -> T + Send + 'scope,
) -> std::io::Result<std::thread::ScopedJoinHandle<'scope, T>> {
    let named = std::thread::Builder::new().name(name);
    let body = prepared(purpose, body);
    os::with_signals_blocked(|| named.spawn_scoped(scope, body))
}

/// Whether the process is at its end.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Says that the process ends, by the first of what is done then.
pub fn note_end() {
    IS_ENDING.store(true, Ordering::Relaxed);
}

/// Waits until a thread that has nothing left to do is gone. Not at the end of the process: where the program's own
/// threads have ended, the last thread of the library ends the process, and is not gone before all is done.
pub fn join(thread: JoinHandle<()>) {
    if !IS_ENDING.load(Ordering::Relaxed) {
        // A panic has been reported on standard error, and what it was at is done by others.
        let _ = thread.join();
    }
}

thread_local! {
    /// Set in threads of the library's own.
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// A thread's body, which first goes where it may run, and is counted.
fn prepared<T>(purpose: Purpose, body: impl FnOnce() -> T + Send) -> impl FnOnce() -> T + Send {
    // What one of our threads starts begins where that one is, which is where it belongs.
    let maker = if IS_OWN.get() { None } else { os::affinity(0) };
    let place = Machine::of_process().place_beside(maker);
    move || {
        IS_OWN.set(true);
        let _alive = Alive::new(purpose);
        if let Some(cpus) = place {
            // Refused where the group has become smaller: then it runs where its maker does.
            let _ = os::set_affinity(&cpus);
        }
        body()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuSet;

    #[test]
    fn kinds_are_in_the_order_of_their_counts() {
        for (n, about) in KINDS.iter().enumerate() {
            assert_eq!(about.purpose as usize, n);
            assert!(!about.does.is_empty() && !about.ends.is_empty());
        }
    }

    #[test]
    fn a_thread_is_counted_while_it_lives() {
        let (to, from) = std::sync::mpsc::channel::<()>();
        let before = alive(Purpose::Exit);
        let thread = spawn("test".to_owned(), Purpose::Exit, move || {
            let _ = from.recv();
        })
        .unwrap();
        while alive(Purpose::Exit) == before {
            std::thread::yield_now();
        }
        drop(to);
        thread.join().unwrap();
        assert_eq!(alive(Purpose::Exit), before);
    }

    /// Where a thread runs, and one that it starts, and one that this starts.
    fn places(depth: usize) -> Vec<CpuSet> {
        let here = os::affinity(0).unwrap();
        let Some(deeper) = depth.checked_sub(1) else { return vec![here] };
        let next = spawn("test".to_owned(), Purpose::Share, move || places(deeper)).unwrap();
        let mut all = next.join().unwrap();
        all.insert(0, here);
        all
    }

    #[test]
    fn threads_that_threads_start_keep_off_the_program_too() {
        let all = Machine::of_process().cpus();
        let Some(first) = (0..all.len() * 64).find(|&cpu| all.contains(cpu)) else { return };
        let mut bound = CpuSet::default();
        bound.insert(first);
        if all.without(&bound).is_empty() {
            eprintln!("skipped: there is one processor");
            return;
        }
        // A thread of the program, bound as OpenMP does it.
        let bound_to = bound.clone();
        let program = std::thread::spawn(move || {
            assert!(os::set_affinity(&bound_to));
            places(3)
        });
        let found = program.join().unwrap();
        assert_eq!(found[0], bound);
        for place in &found[1..] {
            assert_eq!(*place, all.without(&bound), "{found:?}");
        }
    }

    #[test]
    fn a_panic_ends_its_thread_only() {
        let thread = spawn("test".to_owned(), Purpose::Ahead, || panic!("on purpose"));
        assert!(thread.unwrap().join().is_err());
    }
}
