//! A cache with a thread, which is joined when the cache is dropped.

use super::background::{BackgroundWork, CacheTask, CacheWorker, ThreadUse};
use super::coherence::{Cache, SharedPages, SharingCache};
use super::policy::CacheShape;
use crate::StorageError;
use crate::storage::Storage;
use crate::sync::lock::{Mutex, Rank};
use crate::tuning::LEAVE_WAIT;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Instant;
use zonda_runtime::memory::{self, Holder};

/// What the thread, and the files that share pages, hold of a cache.
struct Core<S: Storage> {
    cache: Cache<S>,
    /// Locked while another file takes a page from this one. False once the layer is being dropped: then it writes no
    /// more.
    lives: Mutex<bool>,
}

impl<S: Storage> CacheWorker for Core<S> {
    fn work(&self, task: CacheTask, background: &Arc<BackgroundWork>) {
        match task {
            CacheTask::ReadAhead(pages) => self.cache.load_ahead(pages),
            CacheTask::ReadBlock(first) => self.cache.load_block(first),
            // `background` has kept the error.
            CacheTask::WriteComplete(index) => {
                let _ = self.cache.write_complete_now(index, Some(background), false);
            }
            CacheTask::WriteIncompleteRun(index) => {
                let _ = self.cache.write_complete_now(index, Some(background), true);
            }
            CacheTask::WritePassed(index) => self.cache.write_one(index, background),
            CacheTask::CleanOldest => self.cache.clean_oldest(background),
        }
    }
}

impl<S: Storage> SharingCache for Core<S> {
    fn n_pages(&self) -> u64 {
        self.cache.n_pages()
    }

    fn give_up(&self) -> bool {
        // Where two layers of one stack share pages, the upper one may wait for this one, so the lock is only tried.
        self.lives.try_lock().is_some_and(|lives| *lives && self.cache.give_up())
    }
}

impl<S: Storage> Holder for Core<S> {
    fn least_useful(&self) -> Option<u64> {
        self.cache.clean_age()
    }

    fn give_back(&self, bytes: u64, before: u64) -> u64 {
        self.cache.give_clean(bytes, before)
    }
}

/// A cache with a thread, which is joined when this is dropped.
pub(crate) struct ThreadedCache<S: Storage> {
    core: Arc<Core<S>>,
    background: Arc<BackgroundWork>,
    /// The cache as the broker of memory knows it, if its pages count as memory of the process.
    holder: Option<Weak<dyn Holder>>,
}

impl<S: Storage> fmt::Debug for ThreadedCache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadedCache")
            .field("background", &self.background)
            .finish_non_exhaustive()
    }
}

impl<S: Storage + 'static> ThreadedCache<S> {
    /// A cache above `inner`, whose pages may be shared with other files. The thread starts with its first task.
    ///
    /// # Errors
    /// What `inner` reports when asked for its length.
    pub(crate) fn new(
        inner: S,
        shape: CacheShape,
        shared: Option<Arc<SharedPages>>,
        when: ThreadUse,
    ) -> Result<ThreadedCache<S>, StorageError> {
        let background = BackgroundWork::new(when);
        let cache = Cache::with(inner, shape, shared.clone(), Some(Arc::clone(&background)))?;
        let core =
            Arc::new(Core { cache, lives: Mutex::at(Rank::Lives, background.level(), true) });
        let weak = Arc::downgrade(&core);
        let holder = shape.within_budget.then(|| Weak::clone(&weak) as Weak<dyn Holder>);
        if let Some(holder) = &holder {
            memory::process().join(Weak::clone(holder));
        }
        if let Some(shared) = shared {
            shared.join(Weak::clone(&weak) as Weak<dyn SharingCache>);
        }
        background.is_done_by(weak);
        Ok(ThreadedCache { core, background, holder })
    }

    /// The thread's work.
    pub(crate) fn background(&self) -> &Arc<BackgroundWork> {
        &self.background
    }
}

impl<S: Storage> Deref for ThreadedCache<S> {
    type Target = Cache<S>;

    #[inline]
    fn deref(&self) -> &Cache<S> {
        &self.core.cache
    }
}

impl<S: Storage> Drop for ThreadedCache<S> {
    fn drop(&mut self) {
        // In a forked child a thread that it does not have may hold both locks for ever.
        if !self.background.is_inherited() {
            if let Some(holder) = &self.holder {
                // Nobody else may still use the cache then: the caller closes the file, and not another thread.
                memory::process().leave(holder, Instant::now() + LEAVE_WAIT);
            }
            *self.core.lives.lock() = false;
            self.background.stop();
        }
    }
}
