//! `eie.sds:BLOCKS:PAGES[:AHEAD[:ID]]`: a second-level cache, large, below a first-level one.
//!
//! In 1995 its pages lay on a solid-state device (`.sds`); here they lie in memory. The numbers are
//! those of `cachea`, which took this layer's place in FFIO, and so is its thread. What differs: all
//! that is read through it stays in its pages, however much the cache above asks for at a time.

use super::cache::AsyncCacheSpec;
use super::cachea;
use crate::spec::{LayerSpec, Registered, SpecArgs, SpecError};
use std::sync::Arc;

/// How a spec names this layer.
pub(super) const REGISTERED: Registered = Registered { name: "eie", parse };

fn parse(args: &mut SpecArgs<'_>) -> Result<Arc<dyn LayerSpec>, SpecError> {
    let numbers = cachea::numbers("eie", args)?;
    Ok(Arc::new(AsyncCacheSpec { keeps_reads: true, ..numbers }))
}
