//! Implicit index: all chunks of the largest extent lie one after the other.
//! Spec: HDF5 File Format, "Appendix C.2: The Implicit Index".

use std::sync::Arc;

use super::grid::ChunkGrid;
use super::{KeySegment, LocationCoding, SegmentChunks};
use crate::{File, FileAddr, Result};

/// Where the first one is.
#[derive(Debug)]
pub(super) struct Implicit {
    file: Arc<File>,
    addr: FileAddr,
    coding: LocationCoding,
}

impl Implicit {
    pub(super) fn new(file: Arc<File>, addr: FileAddr, coding: LocationCoding) -> Implicit {
        Implicit { file, addr, coding }
    }

    pub(super) fn segment(&self, grid: &ChunkGrid) -> Result<KeySegment<'_>> {
        // All were allocated together, so a file that ends before the last one is not sound, and
        // the number of chunks is bounded by the file's length.
        let len = self.coding.chunk_bytes;
        let at =
            self.file.locate("implicit chunk index", self.addr, grid.total.saturating_mul(len))?;
        Ok(KeySegment { high: grid.total, chunks: SegmentChunks::Adjacent { at, len } })
    }
}
