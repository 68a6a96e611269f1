//! Single chunk: the layout message says where the only chunk of the dataset is.
//! Spec: HDF5 File Format, "Appendix C.1: The Single Chunk Index".

use super::{ChunkLocation, LocationCoding};
use crate::FileAddr;

/// Where it is; `filtered` are its stored bytes and the mask of skipped filters.
pub(super) fn location(
    addr: FileAddr,
    coding: LocationCoding,
    filtered: Option<(u64, u32)>,
) -> ChunkLocation {
    let (len, mask) = filtered.unwrap_or((coding.chunk_bytes, 0));
    ChunkLocation { at: coding.at(addr), len, mask }
}
