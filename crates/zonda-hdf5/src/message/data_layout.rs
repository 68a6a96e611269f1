//! Data Layout message (0x0008): where a dataset's raw bytes are.
//! Spec: HDF5 File Format, "The Data Layout Message". Versions 1 to 5.
//! Watch: the chunk dimension list has rank + 1 entries, the last being the element size.

use crate::FileAddr;

/// Where a dataset's raw bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataLayout {
    /// In the message itself.
    Compact {
        /// The bytes.
        data: Box<[u8]>,
    },
    /// In one run.
    Contiguous {
        /// Where; `None` where nothing was ever written, or the bytes are in external files.
        addr: Option<FileAddr>,
        /// Bytes; `None` in versions 1 and 2, where it follows from type and shape.
        len: Option<u64>,
    },
    /// In chunks.
    Chunked(ChunkedLayout),
    /// In other datasets; the mapping is an object of the global heap.
    Virtual {
        /// Heap collection; `None` where nothing is mapped.
        heap: Option<FileAddr>,
        /// Object in it.
        index: u32,
    },
}

/// How and where chunks are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkedLayout {
    /// Shape of a chunk in elements, slowest first, without the element size.
    pub chunk_dims: Vec<u64>,
    /// Bytes of an element, as the message says.
    pub elem_size: u32,
    /// How chunks are found.
    pub index: ChunkIndexKind,
    /// Where the index is; `None` where no chunk was ever written.
    pub addr: Option<FileAddr>,
    /// Chunks that the extent cuts are not filtered (version 4, flag bit 0).
    pub partial_edge_unfiltered: bool,
    /// Sizes of filtered chunks have the width of a length (version 5), not one that follows from
    /// the bytes of a chunk.
    pub wide_filtered_sizes: bool,
}

/// How chunks are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkIndexKind {
    /// B-tree of version 1 (layout versions 1 to 3).
    BtreeV1,
    /// There is only one.
    Single {
        /// Bytes in the file and mask of skipped filters, where it is filtered.
        filtered: Option<(u64, u32)>,
    },
    /// One after the other.
    Implicit,
    /// Fixed array.
    FixedArray {
        /// Bits of the number of elements in a page.
        page_bits: u8,
    },
    /// Extensible array.
    ExtensibleArray {
        /// Bits of the largest index.
        max_bits: u8,
        /// Elements in the index block.
        index_elems: u8,
        /// Least number of pointers in a super block.
        min_pointers: u8,
        /// Least number of elements in a data block.
        min_elems: u8,
        /// Bits of the number of elements in a page.
        page_bits: u8,
    },
    /// B-tree of version 2.
    BtreeV2 {
        /// Bytes of a node.
        node_size: u32,
        /// Percentage.
        split: u8,
        /// Percentage.
        merge: u8,
    },
}
