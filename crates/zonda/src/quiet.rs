//! Work in the background, kept from taking locks.

use std::time::Instant;

use crate::behind;

/// What holds background work back.
#[derive(Debug)]
pub struct Quiet {
    chunks: zonda_chunk::Quiet,
    puts: behind::Quiet,
}

impl Quiet {
    /// In a forked child, while it is kept: what could not be had goes out of use. Whether files may be
    /// used there that were open: not where work in the background may have their locks.
    #[must_use]
    pub fn in_child(&self) -> bool {
        self.puts.in_child();
        self.chunks.is_whole()
    }
}

/// Waits until background work holds no lock that all files share, and keeps it from taking any.
///
/// For the time of a fork: the child then inherits no lock from a thread that it does not have. To be
/// called before [`Dataset::freeze`](crate::Dataset::freeze), and dropped in parent and child. A transfer
/// in the background may take as long as the storage is slow, and a thread that forks in a signal handler may
/// have such locks itself: `until` says when it waits no longer.
#[must_use]
pub fn quiet(until: Option<Instant>) -> Quiet {
    Quiet { chunks: zonda_chunk::quiet(until), puts: behind::quiet(until) }
}
