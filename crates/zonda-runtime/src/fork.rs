//! Forks: what is held while a process makes a child of itself, by one list, within one time.
//!
//! A child of `fork` has one thread, and copies of all locks as they were. So who forks first lets no thread in the
//! background take a lock ([`enter`]), then takes the locks that threads share, in the order of their ranks, and both
//! sides give them back. All of it together waits for [`MOST_WAIT`] at most: transfers may take as long as a device is
//! slow, and a thread that forks in a signal handler may have a lock itself. Each part then says what its child goes
//! without.
//!
//! The program's forks come here by `pthread_atfork` ([`install`]), or by calls where a language has hooks of its own.

use crate::tuning::POLL_EVERY;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::lock::{self, Rank};
use crate::{beside, memory, os};

/// The number of this process, for who asks often: a child has its own from its first call on, however it was forked.
#[inline]
#[must_use]
pub fn process_id() -> u32 {
    os::process_id()
}

/// Forks that began in this process, and in those that it comes from.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// How many forks there were: where it has changed, a child may have what was open before.
#[must_use]
pub fn count() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// How long a fork waits, for everything together; an exit that waits for others, too.
pub const MOST_WAIT: Duration = Duration::from_secs(2);

/// Something that a fork holds.
pub trait Freeze: Sync {
    /// Where it comes among the others: outermost first.
    fn rank(&self) -> Rank;

    /// Takes it, or as much of it as is to be had until the time that is said.
    fn hold(&'static self, until: Instant) -> Box<dyn Frozen>;
}

/// A part that is held. Nothing of it is dropped before all are given back.
pub trait Frozen {
    /// In the child, before it is given back: what was not to be had goes out of use.
    fn in_child(&mut self, child: Child);

    /// Gives the locks back, in parent and child.
    fn give_back(&mut self);
}

/// What the child of a fork is told.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// No thread in the background had a lock: what such threads work with is whole.
    pub is_quiet: bool,
}

/// Places for parts: each lock of the process has one; more, where threads came to one for the first time together.
const MOST_PARTS: usize = 256;

static PARTS: [OnceLock<&'static dyn Freeze>; MOST_PARTS] = [const { OnceLock::new() }; MOST_PARTS];
static N_PARTS: AtomicUsize = AtomicUsize::new(0);

/// Has every fork from now on hold `part`. Nobody waits here, also not in a child whose parent was in the middle of it.
pub fn register(part: &'static dyn Freeze) {
    if known().any(|known| is_same(known, part)) {
        return;
    }
    let at = N_PARTS.fetch_add(1, Ordering::Relaxed);
    if let Some(place) = PARTS.get(at) {
        // Nobody else has this number.
        let _ = place.set(part);
    }
}

fn known() -> impl Iterator<Item = &'static dyn Freeze> {
    PARTS.iter().filter_map(|part| part.get().copied())
}

/// Parts without a size may have one address.
fn is_same(one: &dyn Freeze, other: &dyn Freeze) -> bool {
    std::ptr::addr_eq(one, other) && one.rank() == other.rank()
}

/// What a fork holds, each once, outermost first.
fn parts() -> Vec<&'static dyn Freeze> {
    let mut parts: Vec<&'static dyn Freeze> = Vec::new();
    for part in known() {
        if !parts.iter().any(|held| is_same(*held, part)) {
            parts.push(part);
        }
    }
    crate::sort::sort_by_key(&mut parts, |part| part.rank());
    parts
}

/// Has the program's forks come here. Where there is no memory for the handlers, forks go without, as in any other
/// library.
pub fn install() {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    if !IS_INSTALLED.swap(true, Ordering::Relaxed) {
        memory::process().know_of_forks();
        os::at_fork(c_before, c_in_parent, c_in_child);
    }
}

/// Everything that one fork holds.
struct HeldOverFork {
    gate: Closed,
    parts: Vec<(&'static dyn Freeze, Box<dyn Frozen>)>,
}

impl HeldOverFork {
    /// In the child: parts that other threads came to for the first time when the fork had its list already. What
    /// nobody has at this moment is whole; else it is held by a thread that is not there.
    fn come_late(&self) -> impl Iterator<Item = Box<dyn Frozen>> {
        let is_held = |part: &dyn Freeze| self.parts.iter().any(|(held, _)| is_same(*held, part));
        let now = Instant::now();
        parts().into_iter().filter(move |part| !is_held(*part)).map(move |part| part.hold(now))
    }
}

thread_local! {
    /// What this thread holds over its fork.
    static HOLDING: RefCell<Option<HeldOverFork>> = const { RefCell::new(None) };
}

/// Before a fork, on its thread. A second call before the fork does nothing: the thread has the locks already, and
/// would wait for itself.
pub fn before() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let _ = HOLDING.try_with(|held| {
        if held.borrow().is_some() {
            return;
        }
        let until = Instant::now() + MOST_WAIT;
        beside::hold_in_forks();
        let gate = GATE.close(Some(until));
        let parts = parts().into_iter().map(|part| (part, part.hold(until))).collect();
        held.replace(Some(HeldOverFork { gate, parts }));
    });
}

/// After a fork, in the parent.
pub fn in_parent() {
    let Ok(Some(mut holding)) = HOLDING.try_with(RefCell::take) else { return };
    for (_, part) in holding.parts.iter_mut().rev() {
        part.give_back();
    }
}

/// After a fork, in the child.
pub fn in_child() {
    let Ok(Some(mut holding)) = HOLDING.try_with(RefCell::take) else { return };
    let child = Child { is_quiet: holding.gate.is_empty() };
    for mut part in holding.come_late() {
        part.in_child(child);
        part.give_back();
    }
    for (_, part) in holding.parts.iter_mut().rev() {
        part.in_child(child);
        part.give_back();
    }
    lock::begin_child();
}

/// No panic leaves a handler that C calls.
fn guarded(body: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(body));
}

extern "C" fn c_before() {
    guarded(before);
}

extern "C" fn c_in_parent() {
    guarded(in_parent);
}

extern "C" fn c_in_child() {
    guarded(in_child);
}

/// Passed by threads in the background, closed by a fork.
///
/// It counts and does not lock: who closes it waits for a time at most, those who come anew do not keep it
/// open meanwhile, and in a forked child it is open again whoever was inside.
#[derive(Debug)]
struct Gate {
    inside: AtomicU32,
    closed: AtomicU32,
    /// How many forks made this process what it is.
    generation: AtomicU32,
}

/// The one of the process.
static GATE: Gate = Gate::new();

/// Leave to take locks, while it is kept.
#[derive(Debug)]
pub struct Inside {
    gate: &'static Gate,
    generation: u32,
}

/// Keeps the gate closed.
#[derive(Debug)]
pub struct Closed {
    gate: &'static Gate,
    pid: u32,
    is_empty: bool,
}

/// Leave for work in the background to take locks, while it is kept; `None` during a fork, which is never waited for:
/// who forks may be waiting for one who waits for this thread's end. To be asked for with no lock held.
#[must_use]
pub fn enter() -> Option<Inside> {
    GATE.enter()
}

/// Waits until no work in the background holds a lock, until `until` where that is said, and keeps it from taking any
/// while the answer is kept: what [`before`] begins with. To be dropped in parent and child.
///
/// It waits for no more than one transfer of each such thread, and nobody waits for such a thread to begin
/// something, so nobody is kept from giving locks back meanwhile.
#[must_use]
pub fn quiet(until: Option<Instant>) -> Closed {
    GATE.close(until)
}

impl Gate {
    const fn new() -> Gate {
        Gate { inside: AtomicU32::new(0), closed: AtomicU32::new(0), generation: AtomicU32::new(0) }
    }

    fn enter(&'static self) -> Option<Inside> {
        // Each side says what it does before it looks at the other: one of both sees it.
        self.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside { gate: self, generation: self.generation.load(Ordering::Relaxed) };
        (self.closed.load(Ordering::SeqCst) == 0).then_some(inside)
    }

    fn close(&'static self, until: Option<Instant>) -> Closed {
        self.closed.fetch_add(1, Ordering::SeqCst);
        let mut closed = Closed { gate: self, pid: std::process::id(), is_empty: false };
        loop {
            closed.is_empty = self.inside.load(Ordering::SeqCst) == 0;
            if closed.is_empty || until.is_some_and(|until| Instant::now() >= until) {
                return closed;
            }
            std::thread::sleep(POLL_EVERY);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::{Global, Mutex};

    /// Held by one test that forks in name at a time.
    static ALONE: Mutex<()> = Mutex::ranked(Rank::Turns, ());

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

    #[test]
    fn a_fork_holds_the_loader_before_a_library_was_loaded() {
        let _alone = ALONE.lock();
        before();
        let is_held = HOLDING.with_borrow(|held| {
            let parts = held.iter().flat_map(|held| &held.parts);
            parts.into_iter().any(|(part, _)| part.rank() == Rank::Loading)
        });
        in_parent();
        assert!(is_held);
    }

    /// What was done with parts, in order.
    static DONE: Mutex<Vec<(char, Rank)>> = Mutex::ranked(Rank::Trace, Vec::new());

    struct Noted(Rank);

    impl Freeze for Noted {
        fn rank(&self) -> Rank {
            self.0
        }

        fn hold(&'static self, _: Instant) -> Box<dyn Frozen> {
            DONE.lock().push(('h', self.0));
            Box::new(Noted(self.0))
        }
    }

    impl Frozen for Noted {
        fn in_child(&mut self, child: Child) {
            assert!(child.is_quiet);
            DONE.lock().push(('c', self.0));
        }

        fn give_back(&mut self) {
            DONE.lock().push(('g', self.0));
        }
    }

    /// A lock that another thread takes for the first time while a process forks is as any other to the child: as it was,
    /// or new. (A child of a program whose first puts started a helper process waited for ever.)
    #[test]
    fn a_lock_that_comes_late_is_no_trap_for_the_child() {
        static LATE: Global<u32> = Global::new(Rank::Said, 1, || 100);
        static LATE_AND_FREE: Global<u32> = Global::new(Rank::Said, 2, || 200);
        let _alone = ALONE.lock();
        let (taken, is_taken) = std::sync::mpsc::channel();
        let (go, is_over) = std::sync::mpsc::channel::<()>();
        before();
        let other = std::thread::spawn(move || {
            *LATE_AND_FREE.lock() += 1;
            let mut late = LATE.lock();
            *late += 1;
            taken.send(()).unwrap();
            let _ = is_over.recv();
        });
        is_taken.recv().unwrap();
        in_child();
        let now = Instant::now();
        assert_eq!(LATE.lock_until(now).map(|late| *late), Some(100));
        assert_eq!(LATE_AND_FREE.lock_until(now).map(|late| *late), Some(3));
        go.send(()).unwrap();
        other.join().unwrap();
    }

    #[test]
    fn parts_are_held_from_without_to_within_and_given_back_the_other_way() {
        static INNER: Noted = Noted(Rank::Pool);
        static OUTER: Noted = Noted(Rank::File);
        let _alone = ALONE.lock();
        register(&INNER);
        register(&OUTER);
        // Another time: it is held once.
        register(&INNER);
        let done = || std::mem::take(&mut *DONE.lock());
        before();
        // A second time before the fork: nothing.
        before();
        in_parent();
        let (out, inn) = (Rank::File, Rank::Pool);
        assert_eq!(done(), [('h', out), ('h', inn), ('g', inn), ('g', out)]);
        in_child();
        assert_eq!(done(), []);
        before();
        in_child();
        assert_eq!(
            done(),
            [('h', out), ('h', inn), ('c', inn), ('g', inn), ('c', out), ('g', out)]
        );
        assert!(enter().is_some(), "the gate is open again");
    }
}
