//! Single chunk: the layout message says where the only chunk of the dataset is.
//! Spec: HDF5 File Format, "Appendix C.1: The Single Chunk Index".

use super::{ChunkLocation, Stored};
use crate::FileAddr;

/// Where it is; `filtered` are its stored bytes and the mask of skipped filters.
pub(super) fn location(
    addr: FileAddr,
    stored: Stored,
    filtered: Option<(u64, u32)>,
) -> ChunkLocation {
    let (len, mask) = filtered.unwrap_or((stored.chunk_bytes, 0));
    ChunkLocation { at: stored.at(addr), len, mask }
}
