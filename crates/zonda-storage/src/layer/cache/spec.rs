//! How a spec names the cache: `cache:BLOCKS:PAGES`, or `cache` for the one that sizes itself.

use super::adaptive;
use super::policy::{MAX_CACHE_BYTES, MAX_PAGE_BYTES, MAX_PAGES};
use super::{Cache, CacheShape};
use crate::spec::{Below, Building, LayerSpec, Registered, SpecArgs, SpecError};
use crate::{BLOCK_BYTES, DEFAULT_PAGE_BLOCKS, DEFAULT_PAGES, StorageError};
use std::sync::Arc;

/// How a spec names this layer.
pub(in crate::layer) const REGISTERED: Registered = Registered { name: "cache", parse };

fn parse(args: &mut SpecArgs<'_>) -> Result<Arc<dyn LayerSpec>, SpecError> {
    if !args.has_more() {
        return Ok(adaptive_spec());
    }
    let shape = CacheShape::parse(args, DEFAULT_PAGES)?;
    args.end()?;
    Ok(Arc::new(shape))
}

/// A cache that sizes itself.
pub(in crate::layer) fn adaptive_spec() -> Arc<dyn LayerSpec> {
    Arc::new(adaptive::AdaptiveSpec)
}

impl CacheShape {
    /// Reads `:BLOCKS:PAGES`, each of which may be left out.
    pub(crate) fn parse(args: &mut SpecArgs<'_>, default_pages: u64) -> Result<Self, SpecError> {
        let mut page_bytes = DEFAULT_PAGE_BLOCKS * BLOCK_BYTES;
        let mut pages = default_pages;
        if let Some(argument) = args.next() {
            page_bytes = args.size(argument)?;
            if !page_bytes.is_multiple_of(BLOCK_BYTES) {
                return Err(args.out_of_range(
                    argument,
                    "the page size",
                    "a multiple of 4096 bytes",
                ));
            }
            if !(BLOCK_BYTES..=MAX_PAGE_BYTES).contains(&page_bytes) {
                return Err(args.out_of_range(argument, "the page size", "4096 bytes to 1G"));
            }
            // Of the largest pages fewer fit than there are by default.
            pages = pages.min(MAX_CACHE_BYTES / page_bytes);
        }
        if let Some(argument) = args.next() {
            pages = args.number(argument)?;
            if !(1..=MAX_PAGES).contains(&pages) {
                return Err(args.out_of_range(argument, "the number of pages", "1 to 1048576"));
            }
            if pages * page_bytes > MAX_CACHE_BYTES {
                return Err(args.out_of_range(
                    argument,
                    "the number of pages",
                    "so that all fit in 64G",
                ));
            }
        }
        Ok(CacheShape::sized(page_bytes, pages))
    }
}

impl LayerSpec for CacheShape {
    fn build(&self, below: Below, _: &mut Building<'_>) -> Result<Below, StorageError> {
        Ok(Arc::new(Cache::new(below, *self)?))
    }

    fn buffers(&self) -> bool {
        true
    }
}
