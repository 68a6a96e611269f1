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

use super::background::ThreadUse;
use super::threaded::ThreadedCache;
use super::{Cache, CacheShape};
use crate::StorageError;
use crate::forward;
use crate::spec::{Below, Building, LayerSpec};
use crate::storage::{Advice, Storage, WriteRange};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The layer as a spec holds it.
#[derive(Debug)]
pub(super) struct AdaptiveSpec;

impl fmt::Display for AdaptiveSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cache")
    }
}

impl LayerSpec for AdaptiveSpec {
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
    cache: OnceLock<ThreadedCache<S>>,
}

impl<S: Storage + Clone + 'static> Adaptive<S> {
    /// Wraps `inner`.
    pub fn new(inner: S) -> Adaptive<S> {
        Adaptive { inner, cache: OnceLock::new() }
    }

    /// The cache, made now if it is not there.
    fn cache(&self, advice: Advice) -> Result<&Cache<S>, StorageError> {
        if let Some(cache) = self.cache.get() {
            return Ok(cache);
        }
        let shape = CacheShape::of_file(advice);
        let cache = ThreadedCache::new(self.inner.clone(), shape, None, ThreadUse::Worthwhile)?;
        Ok(self.cache.get_or_init(|| cache))
    }

    /// What reads go to: the cache, or before there is one what lies below.
    #[inline]
    fn now(&self) -> &dyn Storage {
        self.cache.get().map_or(&self.inner as &dyn Storage, |cache| &**cache)
    }
}

impl<S: Storage + Clone + 'static> Storage for Adaptive<S> {
    forward! { this => this.now(); show_rows, read_ranges, rest, len, set_len, barrier, sync, invalidate, lease, end_leases, try_end_leases }
    forward! { this => this.inner; most_len, has_other_writers, remote, plain_file, stamp }

    #[inline]
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        match self.cache.get() {
            Some(cache) => cache.read_at(at, buf),
            None => self.inner.read_at(at, buf),
        }
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
            Some(cache) => cache.grow_to(&CacheShape::of_file(advice)),
            // Where it cannot be made now, the next write says why.
            None => drop(self.cache(advice)),
        }
        self.inner.advise(advice);
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cache,")?;
        self.inner.describe(f)
    }
}
