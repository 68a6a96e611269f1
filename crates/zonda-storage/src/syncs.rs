//! Syncs of one file, of which the first that fails is the last that is tried.
//!
//! Linux tells of data that it could not write once, by the next `fsync` or `fdatasync`; after that the
//! pages that were lost count as written, and another sync succeeds without them. So a sync that failed
//! stays an error until everything since the last good one was written again. A storage does not keep
//! what it handed on, so here that is for as long as the file is open. (A journal or a copy beside the
//! file is another file: it is thrown away, and the next one is written from its beginning.)

use crate::StorageError;
use zonda_runtime::lock::{Mutex, Rank};

/// What became of the syncs of a file.
#[derive(Debug)]
pub(crate) struct Syncs(Mutex<Option<StorageError>>);

impl Default for Syncs {
    fn default() -> Syncs {
        Syncs(Mutex::ranked(Rank::Syncs, None))
    }
}

impl Syncs {
    /// Runs `sync`, unless one has failed before.
    ///
    /// One at a time: the system tells only one of two that run together what was lost.
    ///
    /// # Errors
    /// The first error that there ever was.
    pub(crate) fn run(
        &self,
        sync: impl FnOnce() -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let mut failed = self.0.lock();
        if let Some(error) = &*failed {
            return Err(error.clone());
        }
        sync().inspect_err(|error| *failed = Some(error.clone()))
    }
}
