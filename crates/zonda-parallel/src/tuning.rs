//! Numbers that tune behaviour. They decide how much memory steps take, and nothing else that users see.

/// Bytes of chunks of the ranks' own puts that are placed in one round. Each rank has no more than that in memory besides what it kept, and
/// fewer rounds are no faster: a round of 64 MiB is filtered for a second or so.
pub(crate) const KEPT_ROUND_BYTES: u64 = 64 << 20;
/// Chunks of such a round at least, so that ranks have work where chunks are large.
pub(crate) const KEPT_ROUND_LEAST: u64 = 32;
/// Chunks of such a round at most: each rank tells of each by a bit, so that rank 0 has 512 bytes of each rank.
pub(crate) const KEPT_ROUND_MOST: u64 = 4096;
