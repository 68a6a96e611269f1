//! Forks and the threads of layers.
//!
//! A forked child has none of its parent's threads, but a copy of every lock as it was. So a thread
//! of a layer takes locks only while it has leave, and who forks takes that leave away first.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

/// Held for reading by threads of layers while they hold any other lock.
static GATE: RwLock<()> = RwLock::new(());

/// What holds the threads of layers back.
#[derive(Debug)]
pub struct Quiet {
    _gate: RwLockWriteGuard<'static, ()>,
}

/// Waits until no thread of a layer holds a lock, and keeps them from taking any.
///
/// For the time of a fork: to be called before it, and dropped in parent and child. It waits for no
/// more than one transfer of each such thread, and no caller of a layer waits for its thread to begin
/// something, so nobody is kept from giving locks back meanwhile.
#[must_use]
pub fn quiet() -> Quiet {
    Quiet { _gate: GATE.write().unwrap_or_else(PoisonError::into_inner) }
}

/// Leave for a thread of a layer to take locks, while it is kept; `None` during a fork. To be asked
/// for with none held. Never waits: who forks may be waiting for one who waits for that thread's end.
pub(crate) fn enter() -> Option<RwLockReadGuard<'static, ()>> {
    match GATE.try_read() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
