//! What locks and counts are made of: std's. `tests/interleavings` includes modules of this crate with another
//! one in its place, which runs threads in every order it can think of.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, RwLock};
pub use std::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
