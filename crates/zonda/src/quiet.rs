//! Work in the background, kept from taking locks.

use crate::behind;

/// What holds background work back.
#[derive(Debug)]
pub struct Quiet {
    _chunks: zonda_chunk::Quiet,
    _puts: behind::Quiet,
}

/// Waits until background work holds no lock that all files share, and keeps it from taking any.
///
/// For the time of a fork: the child then inherits no lock from a thread that it does not have. To be
/// called before [`Dataset::freeze`](crate::Dataset::freeze), and dropped in parent and child.
#[must_use]
pub fn quiet() -> Quiet {
    Quiet { _chunks: zonda_chunk::quiet(), _puts: behind::quiet() }
}
