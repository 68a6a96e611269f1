//! A cache and the thread that works for it: what is complete is written behind its users, and what they
//! are about to read is read ahead of them.

use super::evict::Held;
use super::line::{Line, Task, When, Worker};
use super::read::SLOW_AHEAD_BYTES;
use super::shared::{Member, Shared};
use super::table::Slot;
use super::{Cache, CacheShape};
use crate::StorageError;
use crate::storage::{ReadRange, Storage};
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::memory::{self, Holder};

/// A program that has written so much goes on to do so.
const LONG_STREAM_BYTES: u64 = 16 << 20;

/// The cache, as its thread and the files that share its pages see it.
struct Core<S: Storage> {
    cache: Cache<S>,
    /// Held while another file takes a page from this one; false once the layer goes, which then
    /// writes no more.
    lives: Mutex<bool>,
}

impl<S: Storage> Worker for Core<S> {
    fn work(&self, task: Task, line: &Arc<Line>) {
        match task {
            Task::Ahead(pages) => self.cache.load_ahead(pages),
            Task::Block(first) => self.cache.load_block(first),
            // `line` has been told of the error.
            Task::Complete(index) => {
                let _ = self.cache.write_complete_now(index, Some(line), false);
            }
            Task::Rest(index) => {
                let _ = self.cache.write_complete_now(index, Some(line), true);
            }
            Task::Left(index) => self.cache.write_one(index, line),
            Task::Clean => self.cache.clean_oldest(line),
        }
    }
}

impl<S: Storage> Member for Core<S> {
    fn n_pages(&self) -> u64 {
        self.cache.table.lock().in_use()
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
pub(super) struct Served<S: Storage> {
    core: Arc<Core<S>>,
    line: Arc<Line>,
    /// The cache, as the broker of memory knows it: where its pages count.
    holder: Option<Weak<dyn Holder>>,
}

/// How long a cache waits at most for one that takes pages from it for others, before it goes.
const MOST_WAIT: Duration = Duration::from_secs(1);

impl<S: Storage> fmt::Debug for Served<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("line", &self.line).finish_non_exhaustive()
    }
}

impl<S: Storage + 'static> Served<S> {
    /// A cache above `inner`, whose pages may be shared with others'. The thread starts when there is
    /// something to do.
    ///
    /// # Errors
    /// What `inner` reports when asked for its length.
    pub(super) fn new(
        inner: S,
        shape: CacheShape,
        shared: Option<Arc<Shared>>,
        when: When,
    ) -> Result<Served<S>, StorageError> {
        let line = Line::new(when);
        let cache = Cache::with(inner, shape, shared.clone(), Some(Arc::clone(&line)))?;
        let core = Arc::new(Core { cache, lives: Mutex::at(Rank::Lives, line.level(), true) });
        let weak = Arc::downgrade(&core);
        let holder = shape.within_budget.then(|| Weak::clone(&weak) as Weak<dyn Holder>);
        if let Some(holder) = &holder {
            memory::process().join(Weak::clone(holder));
        }
        if let Some(shared) = shared {
            shared.join(Weak::clone(&weak) as Weak<dyn Member>);
        }
        line.is_done_by(weak);
        Ok(Served { core, line, holder })
    }

    /// The thread's work.
    pub(super) fn line(&self) -> &Arc<Line> {
        &self.line
    }
}

impl<S: Storage> Deref for Served<S> {
    type Target = Cache<S>;

    #[inline]
    fn deref(&self) -> &Cache<S> {
        &self.core.cache
    }
}

impl<S: Storage> Drop for Served<S> {
    fn drop(&mut self) {
        // In a forked child both may be held for ever by a thread that it does not have.
        if !self.line.is_inherited() {
            if let Some(holder) = &self.holder {
                // The file is closed by its user, and not by one who still has it in hand.
                memory::process().leave(holder, Instant::now() + MOST_WAIT);
            }
            *self.core.lives.lock() = false;
            self.line.stop();
        }
    }
}

impl<S: Storage> Cache<S> {
    /// The thread, where a write is to be left to it.
    #[inline]
    pub(super) fn writer(&self) -> Option<&Arc<Line>> {
        self.line.as_ref().filter(|line| match line.when() {
            When::Always => true,
            // What it failed at its users try themselves, and have the error.
            When::Worthwhile => {
                (self.writes.is_slow() || self.is_long_stream()) && !line.has_failed()
            }
        })
    }

    /// Whether so much is written in order that the copies are worth another core, where there is one.
    fn is_long_stream(&self) -> bool {
        self.streamed.load(Ordering::Relaxed) >= LONG_STREAM_BYTES && zonda_runtime::threads() > 1
    }

    /// The thread, where it is to read the block after one that is read.
    #[inline]
    pub(super) fn reader(&self) -> Option<&Arc<Line>> {
        self.line.as_ref().filter(|line| line.when() == When::Worthwhile && self.reads.is_slow())
    }

    /// Whether those who read from pages bring in what follows, and not only its thread.
    #[inline]
    pub(super) fn readers_go_ahead(&self) -> bool {
        self.line.as_ref().is_none_or(|line| line.when() == When::Worthwhile)
    }

    /// Pages that are read ahead together where each call takes long.
    pub(super) fn block_pages(&self) -> u64 {
        (SLOW_AHEAD_BYTES / self.shape.page_bytes).max(1)
    }

    /// Page `index`, in `slot`, is the first of a block that was read ahead and is now used: the thread
    /// is to read the next one.
    #[cold]
    pub(super) fn go_on(&self, index: u64, slot: &Slot) {
        if slot.opens_block.swap(false, Ordering::Relaxed) {
            self.ask_for_block(index.saturating_add(self.block_pages()));
        }
    }

    /// Has the thread read the block that begins with page `first`, if there is a thread for it and
    /// such a page.
    pub(super) fn ask_for_block(&self, first: u64) {
        if let Some(line) = self.reader()
            && self.base(first) < self.len.load(Ordering::Acquire)
        {
            line.block(first);
        }
    }

    /// Brings a block of pages in, as far as the first of them that is cached; who uses the first asks
    /// for the block after it.
    fn load_block(&self, first: u64) {
        let most = (self.limit.load(Ordering::Relaxed) / 4).max(1);
        let mut held = self.claim(first..first.saturating_add(self.block_pages().min(most)));
        if let Some((id, _)) = held.first() {
            self.slot(*id).opens_block.store(true, Ordering::Relaxed);
            self.load(&mut held);
        }
    }

    /// Brings pages in that are not cached, as far as there is room that need not be written first. An
    /// error is met again by whoever asks for them.
    fn load_ahead(&self, pages: Range<u64>) {
        let len = self.len.load(Ordering::Acquire);
        let end = pages.end.min(len.div_ceil(self.shape.page_bytes));
        let mut next = pages.start;
        while next < end {
            let mut held = self.claim(next..end);
            if held.is_empty() {
                next += 1;
                continue;
            }
            next += held.len() as u64;
            if !self.load(&mut held) {
                return;
            }
        }
    }

    /// Reads pages that were claimed, neighbours in ascending order; false if that failed.
    fn load(&self, held: &mut [Held<'_>]) -> bool {
        let len = self.len.load(Ordering::Acquire);
        let mut ranges = Vec::with_capacity(held.len());
        let mut reached = 0;
        for (_, page) in &mut *held {
            let page = &mut **page;
            let begin = self.base(page.index);
            let n = usize::try_from(len.saturating_sub(begin)).unwrap_or(usize::MAX);
            let n = n.min(self.page_bytes());
            if page.reach(n, self.page_bytes()).is_err() {
                return false;
            }
            reached = begin + n as u64;
            ranges.push(ReadRange::new(begin, &mut page.buf[..n]));
        }
        let bytes = ranges.iter().map(|range| range.buf.len()).sum();
        if self.reads.time(bytes, || self.inner.read_ranges(&mut ranges)).is_err() {
            return false;
        }
        let mut lengths = Vec::with_capacity(ranges.len());
        for range in &mut ranges {
            range.buf[range.got..].fill(0);
            lengths.push(range.buf.len());
        }
        for ((_, page), n) in held.iter_mut().zip(lengths) {
            page.add_read(0, n);
        }
        self.expected.store(reached, Ordering::Relaxed);
        true
    }

    /// Writes page `index` back if it is dirty and nobody uses it.
    fn write_one(&self, index: u64, line: &Line) {
        let Some(id) = self.table.lock().map.get(&index).copied() else { return };
        let Some(mut page) = self.slot(id).page.try_write() else { return };
        if page.index == index
            && !page.is_clean()
            && let Err(error) = self.write_back(id, &mut page)
        {
            line.fail(&error);
        }
    }
}
