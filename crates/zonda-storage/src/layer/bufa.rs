//! `bufa:BLOCKS:BUFFERS`: double buffering of sequential streams, both ways, by a thread of its own.
//!
//! While one buffer is filled the ones before it are written, and while one is read the others are
//! filled. A buffer is written when its stream goes on to the next, complete or not. Programs that
//! jump between more places than there are buffers want a cache.

use super::cache::{AsyncCacheSpec, CacheShape};
use crate::spec::{LayerSpec, Registered, SpecArgs, SpecError};
use std::sync::Arc;

/// How a spec names this layer.
pub(super) const REGISTERED: Registered = Registered { name: "bufa", parse };

/// Buffers where a spec does not say, as in FFIO.
const DEFAULT_BUFFERS: u64 = 2;

fn parse(args: &mut SpecArgs<'_>) -> Result<Arc<dyn LayerSpec>, SpecError> {
    let shape = CacheShape::parse(args, DEFAULT_BUFFERS)?;
    args.end()?;
    let plan = AsyncCacheSpec {
        name: "bufa",
        shape,
        ahead: None,
        shared: None,
        follows: true,
        keeps_reads: true,
    };
    Ok(Arc::new(plan))
}
