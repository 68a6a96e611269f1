//! `cachea:BLOCKS:PAGES[:AHEAD[:ID]]`: a page cache whose own thread writes pages back and reads
//! AHEAD of them (by default one) before its users ask.
//!
//! Layers that give the same ID, 1 to 15, share one set of pages between their files, of the size that
//! the first of them asks for. The numbers are those of FFIO's layer of this name.

use super::cache::{AsyncCacheSpec, CacheShape, MOST_SHARED};
use crate::spec::{LayerSpec, Registered, SpecArgs, SpecError};
use std::sync::Arc;

/// How a spec names this layer.
pub(super) const REGISTERED: Registered = Registered { name: "cachea", parse };

/// Pages where a spec does not say, as in FFIO.
const DEFAULT_PAGES: u64 = 4;

fn parse(args: &mut SpecArgs<'_>) -> Result<Arc<dyn LayerSpec>, SpecError> {
    Ok(Arc::new(numbers("cachea", args)?))
}

/// Reads the four numbers of a layer called `name`.
pub(super) fn numbers(
    name: &'static str,
    args: &mut SpecArgs<'_>,
) -> Result<AsyncCacheSpec, SpecError> {
    let shape = CacheShape::parse(args, DEFAULT_PAGES)?;
    let ahead = args.next().map(|argument| args.number(argument)).transpose()?;
    let mut shared = None;
    if let Some(argument) = args.next() {
        let id = args.number(argument)?;
        if id > MOST_SHARED {
            return Err(args.out_of_range(argument, "the number of a shared cache", "0 to 15"));
        }
        // As in FFIO, 0 is a cache of its own.
        shared = (id > 0).then_some(id);
    }
    args.end()?;
    Ok(AsyncCacheSpec { name, shape, ahead, shared, follows: false, keeps_reads: false })
}
