//! Tuning constants: numbers that change how fast something is, and not what it does.

/// Bytes of values that are converted at once: what fits the first-level cache with the result.
pub(crate) const CONVERTED_BLOCK_BYTES: usize = 16 << 10;

/// Gets of fewer bytes of variables without filters are read by the client: to ask takes longer.
pub(crate) const ASKED_BYTES: usize = 4 << 10;
/// So many gets of fewer bytes than that are asked for of variables with filters, for each file. Who goes on like that has its own cache of chunks, which
/// answers sooner than a server.
pub(crate) const ASKED_SMALL_GETS: u32 = 64;
/// Gets of more bytes are read by the client: the server would have all of them in memory.
pub(crate) const MOST_ASKED_BYTES: usize = 256 << 20;
