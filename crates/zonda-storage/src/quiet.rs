//! Forks and the threads of layers.
//!
//! A forked child has none of its parent's threads, but a copy of every lock as it was. So a thread
//! of a layer takes locks only while it has leave, and who forks takes that leave away first.

use std::sync::{
    PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult,
};
use std::time::{Duration, Instant};

/// Held for reading by threads of layers while they hold any other lock.
static GATE: RwLock<()> = RwLock::new(());

/// What holds the threads of layers back.
#[derive(Debug)]
pub struct Quiet {
    gate: Option<RwLockWriteGuard<'static, ()>>,
}

impl Quiet {
    /// Whether they are held back: not where that could not be had in time.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.gate.is_some()
    }
}

/// How often somebody looks who does not wait longer than he said.
const STEP: Duration = Duration::from_micros(50);

/// A lock that nobody has; one of which the holder panicked, too.
pub fn attempted<G>(taken: TryLockResult<G>) -> Option<G> {
    match taken {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// A lock: what `wait` waits for, or, where there is a time that is not to be passed, what `attempt`
/// gives until then.
pub fn take_until<T>(
    until: Option<Instant>,
    mut attempt: impl FnMut() -> Option<T>,
    wait: impl FnOnce() -> T,
) -> Option<T> {
    let Some(until) = until else { return Some(wait()) };
    loop {
        if let Some(taken) = attempt() {
            return Some(taken);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(STEP);
    }
}

/// Waits until no thread of a layer holds a lock, and keeps them from taking any.
///
/// For the time of a fork: to be called before it, and dropped in parent and child. It waits for no
/// more than one transfer of each such thread, and no caller of a layer waits for its thread to begin
/// something, so nobody is kept from giving locks back meanwhile. A thread that may itself be in the
/// middle of something, as one that forks in a signal handler, says `until` when it waits.
#[must_use]
pub fn quiet(until: Option<Instant>) -> Quiet {
    let wait = || GATE.write().unwrap_or_else(PoisonError::into_inner);
    Quiet { gate: take_until(until, || attempted(GATE.try_write()), wait) }
}

/// Leave for a thread of a layer to take locks, while it is kept; `None` during a fork. To be asked
/// for with none held. Never waits: who forks may be waiting for one who waits for that thread's end.
pub(crate) fn enter() -> Option<RwLockReadGuard<'static, ()>> {
    attempted(GATE.try_read())
}
