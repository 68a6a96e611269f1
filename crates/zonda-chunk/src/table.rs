//! Where the chunks of an array are: what a format tells the pipeline, and is told by it.

use crate::ArrayId;

/// A chunk in the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkAt {
    /// First byte in the storage.
    pub at: u64,
    /// Bytes there, after filtering.
    pub len: u64,
    /// Bit i is set where filter i (in pipeline order) was skipped.
    pub mask: u32,
}

/// What a format meets while it looks for chunks; it comes back to the format unchanged.
pub type TableError = Box<dyn std::error::Error + Send + Sync>;

/// Where the chunks of one array are.
pub trait ChunkTable: Send + Sync {
    /// Tells `found` of the chunks that exist in a box of the chunk grid, both corners included, in
    /// any order. Coordinates count chunks, slowest dimension first. Chunks not told of were never
    /// written.
    ///
    /// # Errors
    /// What the format met while it read its index.
    fn locate(
        &self,
        first: &[u64],
        last: &[u64],
        found: &mut dyn FnMut(&[u64], ChunkAt),
    ) -> Result<(), TableError>;

    /// Where one chunk is; `None` for one that was never written.
    ///
    /// # Errors
    /// As [`ChunkTable::locate`].
    fn find(&self, key: &[u64]) -> Result<Option<ChunkAt>, TableError> {
        let mut place = None;
        let mut found = |there: &[u64], at: ChunkAt| {
            if there == key {
                place = Some(at);
            }
        };
        self.locate(key, key, &mut found)?;
        Ok(place)
    }
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn ChunkTable + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ChunkTable")
    }
}

/// A table in which chunks can be entered.
pub trait WriteTable: ChunkTable {
    /// Enters a chunk, whose bytes are in the storage already; gives the place that it had before.
    /// Called in ascending row-major order within one call to [`ChunkWriter`](crate::ChunkWriter).
    ///
    /// # Errors
    /// What the format met. The table is then as it was.
    fn insert(&self, key: &[u64], at: ChunkAt) -> Result<Option<ChunkAt>, TableError>;
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn WriteTable + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("WriteTable")
    }
}

/// Space of a storage.
pub trait Allocate {
    /// Takes `len` bytes that are not in use, and says where they begin in the storage.
    ///
    /// # Errors
    /// What the format met, such as a storage that would become too long.
    fn allocate(&mut self, len: u64) -> Result<u64, TableError>;

    /// Gives back what nothing refers to any more. When it may serve again is the format's affair.
    fn free(&mut self, at: u64, len: u64);

    /// Behind the bytes that belong to what was taken at `at`: what is there up to the next good
    /// place. They may be written, too.
    fn padded(&self, at: u64, len: u64) -> u64 {
        at.saturating_add(len)
    }

    /// Called with each incomplete chunk, in the file's form, before it is stored: where elements
    /// that nobody put refer to something outside of the array, the format may give each of them
    /// something of its own.
    ///
    /// # Errors
    /// What the format met. The chunk is then not stored.
    fn before_store(&mut self, array: ArrayId, chunk: &mut [u8]) -> Result<(), TableError> {
        let _nothing_to_do = (array, chunk);
        Ok(())
    }
}
