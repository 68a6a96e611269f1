//! Forks and the threads of layers.
//!
//! A forked child has none of its parent's threads, but a copy of every lock as it was. So a thread
//! of a layer takes locks only while it has leave, and who forks takes that leave away first.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Passed by threads in the background, closed by a fork.
///
/// It counts and does not lock: who closes it waits for a time at most, those who come anew do not keep it
/// open meanwhile, and in a forked child it is open again whoever was inside.
#[derive(Debug)]
pub struct Gate {
    inside: AtomicU32,
    closed: AtomicU32,
    /// How many forks made this process what it is.
    generation: AtomicU32,
}

/// Leave to take locks, while it is kept.
#[derive(Debug)]
pub struct Inside {
    gate: &'static Gate,
    generation: u32,
}

/// Keeps a gate closed.
#[derive(Debug)]
pub struct Closed {
    gate: &'static Gate,
    pid: u32,
    is_empty: bool,
}

impl Gate {
    /// One that is open.
    #[must_use]
    pub const fn new() -> Gate {
        Gate { inside: AtomicU32::new(0), closed: AtomicU32::new(0), generation: AtomicU32::new(0) }
    }

    /// Goes in; `None` while it is closed. Never waits: who forks may be waiting for one who waits for
    /// this thread's end.
    pub fn enter(&'static self) -> Option<Inside> {
        // Each side says what it does before it looks at the other: one of both sees it.
        self.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside { gate: self, generation: self.generation.load(Ordering::Relaxed) };
        (self.closed.load(Ordering::SeqCst) == 0).then_some(inside)
    }

    /// Closes it, and waits until nobody is inside, until `until` where that is said. To be dropped in
    /// parent and child.
    #[must_use]
    pub fn close(&'static self, until: Option<Instant>) -> Closed {
        self.closed.fetch_add(1, Ordering::SeqCst);
        let mut closed = Closed { gate: self, pid: std::process::id(), is_empty: false };
        loop {
            closed.is_empty = self.inside.load(Ordering::SeqCst) == 0;
            if closed.is_empty || until.is_some_and(|until| Instant::now() >= until) {
                return closed;
            }
            std::thread::sleep(STEP);
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Gate::new()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // In a child nobody is counted who came in before.
        if self.gate.generation.load(Ordering::Relaxed) == self.generation {
            self.gate.inside.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Closed {
    /// Whether nobody is inside: not where that could not be had in time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        if std::process::id() == self.pid {
            self.gate.closed.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        // A forked child has one thread, and none of those who were inside or were closing it.
        self.gate.generation.fetch_add(1, Ordering::Relaxed);
        self.gate.inside.store(0, Ordering::SeqCst);
        self.gate.closed.store(0, Ordering::SeqCst);
    }
}

/// Passed by threads of layers while they hold any other lock.
static GATE: Gate = Gate::new();

/// What holds the threads of layers back.
#[derive(Debug)]
pub struct Quiet {
    gate: Closed,
}

impl Quiet {
    /// Whether they are held back: not where that could not be had in time.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.gate.is_empty()
    }
}

/// How often somebody looks who does not wait longer than he said.
const STEP: Duration = Duration::from_micros(50);

/// Waits until no thread of a layer holds a lock, and keeps them from taking any.
///
/// For the time of a fork: to be called before it, and dropped in parent and child. It waits for no
/// more than one transfer of each such thread, and no caller of a layer waits for its thread to begin
/// something, so nobody is kept from giving locks back meanwhile. One transfer may take long, so who has
/// better to do says `until` when it waits.
#[must_use]
pub fn quiet(until: Option<Instant>) -> Quiet {
    Quiet { gate: GATE.close(until) }
}

/// Leave for a thread of a layer to take locks, while it is kept; `None` during a fork. To be asked
/// for with none held.
pub(crate) fn enter() -> Option<Inside> {
    GATE.enter()
}

#[cfg(test)]
mod tests {
    use super::*;

    static TRIED: Gate = Gate::new();

    #[test]
    fn a_gate_waits_for_a_time_and_lets_nobody_in_meanwhile() {
        let inside = TRIED.enter().unwrap();
        let begin = Instant::now();
        let closed = TRIED.close(Some(begin + Duration::from_millis(20)));
        assert!(!closed.is_empty() && begin.elapsed() >= Duration::from_millis(20));
        assert!(TRIED.enter().is_none());
        drop(closed);
        drop((TRIED.enter().unwrap(), inside));
        let closed = TRIED.close(None);
        assert!(closed.is_empty() && TRIED.enter().is_none());
        drop(closed);
        // Threads that come and go without a pause do not keep it open.
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let first = TRIED.enter();
                        std::thread::sleep(Duration::from_micros(30));
                        drop(first);
                    }
                });
            }
            for _ in 0..50 {
                assert!(TRIED.close(Some(Instant::now() + Duration::from_secs(5))).is_empty());
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
