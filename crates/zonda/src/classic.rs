//! A classic file as the dataset keeps it: the file, and its lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use zonda_classic::ClassicFile;
use zonda_runtime::callout::Mark;
use zonda_runtime::lock::{Polite, Rank, RwLockReadGuard, RwLockWriteGuard};
use zonda_storage::Storage;

/// Inquiries, gets and puts share the file; who changes definitions or commits has it alone.
#[derive(Debug)]
pub(crate) struct Classic {
    file: Polite<ClassicFile>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) is_writable: bool,
    forked: Arc<AtomicBool>,
}

impl Classic {
    pub(crate) fn new(file: ClassicFile) -> Classic {
        Classic {
            storage: Arc::clone(file.storage()),
            is_writable: file.is_writable(),
            forked: file.fork_mark(),
            file: Polite::ranked(Rank::File, file),
        }
    }

    /// The file, shared.
    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, ClassicFile> {
        self.file
            .read_by(|file| zonda_trace::lock(|| file.try_read(), || file.read_for(Mark::NONE)))
    }

    /// The file alone.
    #[inline]
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, ClassicFile> {
        self.file
            .write_by(|file| zonda_trace::lock(|| file.try_write(), || file.write_for(Mark::NONE)))
    }

    /// Takes the file, for a fork, and not beyond `until`. Those who come anew are held back meanwhile.
    pub(crate) fn freeze(&self, until: Instant) -> Option<RwLockWriteGuard<'_, ClassicFile>> {
        self.file.write_until(until)
    }

    /// To be called in a forked child.
    pub(crate) fn mark_forked(&self) {
        self.forked.store(true, Ordering::Relaxed);
    }
}
