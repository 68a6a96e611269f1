//! How much memory and time a file may cost. The defaults are above any real file.

/// Bounds that every decoder keeps, so that hostile bytes cost bounded time and memory.
///
/// Counts from the file are also held to the bytes that are left (see
/// [`Reader::count`](crate::Reader::count)); these bounds are for what no byte count limits.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// Blocks of one object header.
    pub header_blocks: usize,
    /// Messages of one object header.
    pub header_messages: usize,
    /// Nesting of datatypes in datatypes.
    pub type_depth: usize,
    /// Members of all compounds of one datatype together.
    pub type_members: usize,
    /// Levels of a B-tree or of the indirect blocks of a heap.
    pub tree_depth: usize,
    /// Soft and external links followed for one path.
    pub link_hops: usize,
    /// Bytes of one chunk before its filters are undone and after.
    pub chunk_bytes: u64,
    /// Dimensions of a dataspace (the format's own limit).
    pub rank: usize,
    /// Filters of one pipeline (the format's own limit).
    pub filters: usize,
    /// Bytes of collections of the global heap that are kept in memory.
    pub heap_cache_bytes: usize,
}

impl Default for ReadLimits {
    fn default() -> ReadLimits {
        ReadLimits {
            header_blocks: 65_535,
            header_messages: 1 << 20,
            type_depth: 256,
            type_members: 1_000_000,
            tree_depth: 64,
            link_hops: 16,
            chunk_bytes: 4 << 30,
            rank: 32,
            filters: 32,
            heap_cache_bytes: 64 << 20,
        }
    }
}
