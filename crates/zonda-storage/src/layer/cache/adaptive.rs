//! `cache` without arguments: a cache that takes its size from the file and from its use.
//!
//! Nothing is cached before the format has said what its file is like (or something is written):
//! a header is read past it. Then the page size follows from how much is worked on together; how
//! many pages there are, from need: as many as a record asks for, and more each time a page is
//! missed that had to leave a while ago, within the memory of the process (`ZONDA_MEMORY`).
//!
//! Where calls of what is below take long, a thread writes what is complete and reads the block after
//! the one that is read, so that the device and the program work at the same time. It writes what is
//! complete of long streams on any device, where the process has another core.

use super::line::When;
use super::served::Served;
use super::{Cache, CacheShape, LEAST_PAGES, Straight};
use crate::StorageError;
use crate::spec::{Below, Building, Plan};
use crate::storage::{Advice, ReadRange, Stamp, Storage, WriteRange};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The smallest page: a few of them fit the first-level cache, and their memory is touched in no time.
const LEAST_PAGE_BYTES: u64 = 16 << 10;
/// The largest page: past the knee where a system call costs little beside its copy.
const MOST_PAGE_BYTES: u64 = 256 << 10;
/// A page is about this part of what is worked on together.
const PAGES_TOGETHER: u64 = 32;
/// The most pieces that a page should be put together from, one for each part of a record.
const PIECES_PER_PAGE: u64 = 256;
/// What a cache has before it turns out to need more.
const AT_FIRST_BYTES: u64 = 32 << 20;
/// The most it may ever have.
const MOST_BYTES: u64 = 64 << 30;

/// The layer as a spec holds it.
#[derive(Debug)]
pub(super) struct Planned;

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cache")
    }
}

impl Plan for Planned {
    fn build(&self, below: Below, _: &mut Building<'_>) -> Result<Below, StorageError> {
        Ok(Arc::new(Adaptive::new(below)))
    }

    fn buffers(&self) -> bool {
        true
    }
}

/// The layer.
#[derive(Debug)]
pub struct Adaptive<S: Storage + Clone + 'static> {
    inner: S,
    cache: OnceLock<Served<S>>,
}

impl<S: Storage + Clone + 'static> Adaptive<S> {
    /// Wraps `inner`.
    pub fn new(inner: S) -> Adaptive<S> {
        Adaptive { inner, cache: OnceLock::new() }
    }

    /// The shape for what was said about a file. As the rules of thumb of 1995 have it, there is a
    /// page for each part of a record that is worked on side by side, and room for a whole record.
    fn shape(advice: Advice) -> CacheShape {
        let together = advice.record_bytes.max(advice.file_bytes) / PAGES_TOGETHER;
        let part_bytes = match advice.n_record_parts {
            0 | 1 => MOST_PAGE_BYTES,
            n => advice.record_bytes / n,
        };
        let wanted = together.min(part_bytes.saturating_mul(PIECES_PER_PAGE));
        let page_bytes = wanted.clamp(LEAST_PAGE_BYTES, MOST_PAGE_BYTES).next_power_of_two();
        // A record, and what lies around it.
        let record_pages = advice.record_bytes.div_ceil(page_bytes);
        let wanted = (record_pages + record_pages / 4 + LEAST_PAGES).max(advice.n_record_parts);
        let at_first = wanted.max(AT_FIRST_BYTES / page_bytes);
        let pages = MOST_BYTES / page_bytes;
        let straight = Straight::of_pages(page_bytes);
        CacheShape {
            page_bytes,
            pages,
            at_first: at_first.min(pages),
            within_budget: true,
            straight,
        }
    }

    /// The cache, made now if it is not there.
    fn cache(&self, advice: Advice) -> Result<&Cache<S>, StorageError> {
        if let Some(cache) = self.cache.get() {
            return Ok(cache);
        }
        let shape = Self::shape(advice);
        let cache = Served::new(self.inner.clone(), shape, None, When::Worthwhile)?;
        Ok(self.cache.get_or_init(|| cache))
    }

    /// What reads go to: the cache, or before there is one what lies below.
    #[inline]
    fn now(&self) -> &dyn Storage {
        self.cache.get().map_or(&self.inner as &dyn Storage, |cache| &**cache)
    }
}

impl<S: Storage + Clone + 'static> Storage for Adaptive<S> {
    #[inline]
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        match self.cache.get() {
            Some(cache) => cache.read_at(at, buf),
            None => self.inner.read_at(at, buf),
        }
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        self.now().read_ranges(ranges)
    }

    #[inline]
    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        match self.cache.get() {
            Some(cache) => cache.write_at(at, data),
            None => self.cache(Advice::default())?.write_at(at, data),
        }
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        self.cache(Advice::default())?.write_ranges(ranges)
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        self.cache(Advice::default())?.fill_at(at, len, element)
    }

    fn advise(&self, advice: Advice) {
        match self.cache.get() {
            Some(cache) => cache.grow_to(Self::shape(advice)),
            // Where it cannot be made now, the next write says why.
            None => drop(self.cache(advice)),
        }
        self.inner.advise(advice);
    }

    fn rest(&self) {
        self.now().rest();
    }

    fn len(&self) -> Result<u64, StorageError> {
        self.now().len()
    }

    fn most_len(&self) -> u64 {
        self.inner.most_len()
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.now().set_len(len)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.now().barrier()
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.now().sync()
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        self.now().invalidate()
    }

    fn stamp(&self) -> Result<Stamp, StorageError> {
        self.inner.stamp()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cache,")?;
        self.inner.describe(f)
    }
}

impl<S: Storage> Cache<S> {
    /// Takes over how much another shape may have at first; pages stay as they are.
    fn grow_to(&self, shape: CacheShape) {
        let pages = shape.at_first * shape.page_bytes / self.shape.page_bytes;
        self.raise_limit(pages.min(self.shape.pages));
    }
}
