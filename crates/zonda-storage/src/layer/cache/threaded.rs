//! A cache and the thread that works for it, which ends with it.

use super::background::{BackgroundWork, Task, When, Worker};
use super::coherence::{Cache, Member, Shared};
use super::policy::CacheShape;
use crate::StorageError;
use crate::storage::Storage;
use crate::sync::lock::{Mutex, Rank};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use zonda_runtime::memory::{self, Holder};

/// The cache, as its thread and the files that share its pages see it.
struct Core<S: Storage> {
    cache: Cache<S>,
    /// Held while another file takes a page from this one; false once the layer goes, which then
    /// writes no more.
    lives: Mutex<bool>,
}

impl<S: Storage> Worker for Core<S> {
    fn work(&self, task: Task, background: &Arc<BackgroundWork>) {
        match task {
            Task::Ahead(pages) => self.cache.load_ahead(pages),
            Task::Block(first) => self.cache.load_block(first),
            // `background` has been told of the error.
            Task::Complete(index) => {
                let _ = self.cache.write_complete_now(index, Some(background), false);
            }
            Task::Rest(index) => {
                let _ = self.cache.write_complete_now(index, Some(background), true);
            }
            Task::Left(index) => self.cache.write_one(index, background),
            Task::Clean => self.cache.clean_oldest(background),
        }
    }
}

impl<S: Storage> Member for Core<S> {
    fn n_pages(&self) -> u64 {
        self.cache.n_pages()
    }

    fn give_up(&self) -> bool {
        // Where two layers of one stack share pages, this may be what the upper one waits for.
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

/// A cache with a thread, which ends with it.
pub(crate) struct ThreadedCache<S: Storage> {
    core: Arc<Core<S>>,
    background: Arc<BackgroundWork>,
    /// The cache, as the broker of memory knows it: where its pages count.
    holder: Option<Weak<dyn Holder>>,
}

/// How long a cache waits at most for one that takes pages from it for others, before it goes.
const MOST_WAIT: Duration = Duration::from_secs(1);

impl<S: Storage> fmt::Debug for ThreadedCache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadedCache")
            .field("background", &self.background)
            .finish_non_exhaustive()
    }
}

impl<S: Storage + 'static> ThreadedCache<S> {
    /// A cache above `inner`, whose pages may be shared with others'. The thread starts when there is
    /// something to do.
    ///
    /// # Errors
    /// What `inner` reports when asked for its length.
    pub(crate) fn new(
        inner: S,
        shape: CacheShape,
        shared: Option<Arc<Shared>>,
        when: When,
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
            shared.join(Weak::clone(&weak) as Weak<dyn Member>);
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
        // In a forked child both may be held for ever by a thread that it does not have.
        if !self.background.is_inherited() {
            if let Some(holder) = &self.holder {
                // The file is closed by its user, and not by one who still has it in hand.
                memory::process().leave(holder, Instant::now() + MOST_WAIT);
            }
            *self.core.lives.lock() = false;
            self.background.stop();
        }
    }
}
