//! The layers `cachea`, `bufa` and `eie`: a cache that always has its thread (`threaded.rs`), each in its own
//! manner.
//!
//! Data is in a page when a write returns, so a read sees it at once, and memory is that of the pages: nothing is copied for the
//! thread. A caller that needs a page while all pages wait to be written writes one itself. Large requests go through the pages
//! too, up to half of the cache, since only data in pages can be written later.

use super::CacheShape;
use super::background::ThreadUse;
use super::coherence::SharedPages;
use super::policy::StraightSizes;
use super::threaded::ThreadedCache;
use crate::forward;
use crate::spec::{Below, Building, LayerSpec};
use crate::storage::{ReadRange, Storage, WriteRange};
use crate::tuning::STREAM_GAP_BYTES;
use crate::{BLOCK_BYTES, StorageError};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where nothing ends.
const NOWHERE: u64 = 1 << 63;

/// How many pages ahead of a reader are read where a spec does not say.
const DEFAULT_AHEAD: u64 = 1;

/// How one of these layers is named and behaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsyncCacheSpec {
    pub(crate) name: &'static str,
    pub(crate) shape: CacheShape,
    /// Pages that are read ahead; a spec may leave them out.
    pub(crate) ahead: Option<u64>,
    /// The number of the pages that it shares with other files.
    pub(crate) shared: Option<u64>,
    /// A page is written when its stream goes on to the next one, complete or not.
    pub(crate) follows: bool,
    /// All pages that are read stay: the reader is itself a cache.
    pub(crate) keeps_reads: bool,
}

impl AsyncCacheSpec {
    /// The cache's shape, with what goes straight through.
    fn shape(&self) -> CacheShape {
        let CacheShape { page_bytes, pages, .. } = self.shape;
        let mut straight = StraightSizes::of_pages(page_bytes);
        straight.write_bytes = (page_bytes * pages / 2).max(page_bytes);
        if self.keeps_reads {
            straight.read_bytes = page_bytes;
        }
        CacheShape { straight, ..self.shape }
    }
}

impl fmt::Display for AsyncCacheSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CacheShape { page_bytes, pages, .. } = self.shape;
        write!(f, "{}:{}:{pages}", self.name, page_bytes / BLOCK_BYTES)?;
        match (self.ahead, self.shared) {
            (None, None) => Ok(()),
            (Some(ahead), None) => write!(f, ":{ahead}"),
            (ahead, Some(shared)) => write!(f, ":{}:{shared}", ahead.unwrap_or(DEFAULT_AHEAD)),
        }
    }
}

impl LayerSpec for AsyncCacheSpec {
    fn build(&self, below: Below, _: &mut Building<'_>) -> Result<Below, StorageError> {
        Ok(Arc::new(AsyncCache::new(below, *self)?))
    }

    fn buffers(&self) -> bool {
        true
    }
}

/// The layer.
pub struct AsyncCache<S: Storage + 'static> {
    cache: ThreadedCache<S>,
    plan: AsyncCacheSpec,
    /// Pages to be read ahead.
    n_ahead: u64,
    /// Where the last read and the last write ended.
    read_to: AtomicU64,
    written_to: AtomicU64,
    /// The first page that was not yet read ahead.
    ahead_to: AtomicU64,
}

impl<S: Storage> fmt::Debug for AsyncCache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncCache").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl<S: Storage + 'static> AsyncCache<S> {
    pub(crate) fn new(inner: S, mut plan: AsyncCacheSpec) -> Result<AsyncCache<S>, StorageError> {
        let shared = plan.shared.map(|id| SharedPages::of(id, plan.shape));
        if let Some(shared) = &shared {
            plan.shape = shared.shape();
        }
        let cache = ThreadedCache::new(inner, plan.shape(), shared, ThreadUse::Always)?;
        // What was read stays a while: a reader may step back.
        let most = plan.shape.pages / 2;
        let n_ahead = plan.ahead.unwrap_or(if plan.follows { most } else { DEFAULT_AHEAD });
        let n_ahead = n_ahead.min(most);
        Ok(AsyncCache {
            cache,
            plan,
            n_ahead,
            read_to: AtomicU64::new(NOWHERE),
            written_to: AtomicU64::new(NOWHERE),
            ahead_to: AtomicU64::new(0),
        })
    }

    /// Takes note of a read, and has the pages after it read where reading goes on from page to page:
    /// from one end to the next beginning, or little after. Steps are no stream.
    #[inline]
    fn note_read(&self, at: u64, len: usize) {
        if len == 0 || self.n_ahead == 0 {
            return;
        }
        let end = at + len as u64;
        let before = self.read_to.swap(end, Ordering::Relaxed);
        if at.wrapping_sub(before) <= STREAM_GAP_BYTES {
            let (last, _) = self.cache.place(end - 1);
            let (last_before, _) = self.cache.place(before.saturating_sub(1));
            if last > last_before {
                self.go_ahead_of(last);
            }
        }
    }

    /// Has the pages after `page` read, as far as they were not asked for, and if they are some.
    fn go_ahead_of(&self, page: u64) {
        let to = page + 1 + self.n_ahead;
        let asked = self.ahead_to.load(Ordering::Relaxed);
        let from = if (page + 1..=to).contains(&asked) { asked } else { page + 1 };
        let len = self.cache.len.load(Ordering::Acquire);
        let few = to - from < self.n_ahead.div_ceil(2);
        if few || self.cache.base(from) >= len {
            return;
        }
        self.ahead_to.store(to, Ordering::Relaxed);
        self.cache.background().ahead(from..to);
    }

    /// Takes note of a write, and has the page written that its stream has left.
    #[inline]
    fn note_write(&self, at: u64, len: usize) {
        if !self.plan.follows || len == 0 {
            return;
        }
        let end = at + len as u64;
        let before = self.written_to.swap(end, Ordering::Relaxed);
        if at.wrapping_sub(before) <= STREAM_GAP_BYTES {
            let (last, _) = self.cache.place(end - 1);
            let (last_before, _) = self.cache.place(before.saturating_sub(1));
            if last > last_before {
                self.cache.background().passed(last_before);
            }
        }
    }

    /// Hands down all that was accepted, and reports an error that the thread met.
    fn flush(&self) -> Result<(), StorageError> {
        let flushed = self.cache.flush_from(0);
        flushed.and(self.cache.background().tell())
    }
}

impl<S: Storage + 'static> Storage for AsyncCache<S> {
    forward! { this => this.cache; advise, len, most_len, has_other_writers, remote, set_len, invalidate, stamp }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        let got = self.cache.read_at(at, buf)?;
        self.note_read(at, got);
        Ok(got)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        self.cache.read_ranges(ranges)?;
        ranges.iter().for_each(|range| self.note_read(range.at, range.got));
        Ok(())
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.cache.background().tell()?;
        self.cache.write_at(at, data)?;
        self.note_write(at, data.len());
        Ok(())
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        self.cache.background().tell()?;
        self.cache.write_ranges(ranges)?;
        ranges.iter().for_each(|range| self.note_write(range.at, range.data.len()));
        Ok(())
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        self.cache.background().tell()?;
        self.cache.fill_at(at, len, element)
    }

    fn rest(&self) {
        if self.cache.is_inherited() {
            return self.cache.give_all();
        }
        // Its own thread writes what is complete.
        self.cache.inner.rest();
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.flush()?;
        self.cache.inner.barrier()
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.flush()?;
        self.cache.inner.sync()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},", self.plan)?;
        self.cache.inner.describe(f)
    }
}
