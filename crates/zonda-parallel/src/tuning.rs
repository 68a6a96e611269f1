//! Numbers that tune behaviour. They decide how much memory and time steps take, and nothing else that users see.

use std::time::Duration;

/// Bytes of a queue that are written together, at most: enough for the device, and a put that finds the queue full waits for no more. Row:
/// `hidden-*` of `bench/parallel.py`.
pub(crate) const QUEUE_PIECE_BYTES: usize = 4 << 20;
/// Bytes of the smallest memory for what waits: short puts are collected in it. Row: as [`QUEUE_PIECE_BYTES`].
pub(crate) const QUEUE_PIECE_LEAST: usize = 64 << 10;
/// How long the thread of a queue stays without work: starting one anew is to be rare. No row: the rows put more often.
pub(crate) const QUEUE_THREAD_IDLE: Duration = Duration::from_millis(500);
/// How long it sleeps between looks at a fork that is under way. No row: forks are rare.
pub(crate) const QUEUE_FORK_NAP: Duration = Duration::from_millis(1);
/// Puts of all ranks that are not known to be in the file, at most: what a put is compared with. No row: so many small puts wait where a
/// device is slow.
pub(crate) const MOST_UNSETTLED: usize = 4096;

/// Chunks of puts through filters that returned and are not in the file, at most, before all ranks wait for them: each rank has a list of them, of some 200 bytes
/// each. No row: chunks are rarely so small.
pub(crate) const MOST_BEHIND_CHUNKS: usize = 64 << 10;

/// The longest runs of a collective put that go to owners of stripes (`exchange.rs`), in bytes. Row: `columns-*` and `blocks-*` of
/// `bench/parallel.py`.
pub(crate) const EXCHANGE_RUN_BYTES: usize = 16 << 10;
/// The fewest runs of a rank's put that do: a round takes as long as some hundred short writes. Row: as [`EXCHANGE_RUN_BYTES`].
pub(crate) const EXCHANGE_LEAST_RUNS: usize = 64;
/// Bytes of a stripe: what one rank writes at once, and a multiple of what striped file systems have. Row: as [`EXCHANGE_RUN_BYTES`].
pub(crate) const EXCHANGE_STRIPE_BYTES: u64 = 1 << 20;
/// Bytes of the shortest stripe, a page: the heads of shorter runs would take as much memory as their bytes, and the ranks would write to the
/// same pages again. No row: who asks for less by a hint gets this.
pub(crate) const EXCHANGE_LEAST_STRIPE: u64 = 4 << 10;
/// Bytes of the smallest round: each takes all ranks some hundred microseconds. No row: as [`EXCHANGE_LEAST_STRIPE`].
pub(crate) const EXCHANGE_LEAST_ROUND: u64 = 64 << 10;
/// Bytes that a rank hands on in a round: it has them twice, and as much again of what it gets. Row: as [`EXCHANGE_RUN_BYTES`].
pub(crate) const EXCHANGE_ROUND_BYTES: u64 = 4 << 20;

/// Bytes of chunks of the ranks' own puts that are placed in one round, where chunks are small. Each rank has no more than that in memory, as
/// merged and as filtered, besides what it kept, and fewer rounds are no faster: a round of 64 MiB is filtered for a second or so.
pub(crate) const KEPT_ROUND_BYTES: u64 = 64 << 20;
/// Chunks of such a round at least, so that ranks have work where chunks are large.
pub(crate) const KEPT_ROUND_LEAST: u64 = 32;
/// Bytes of these chunks at most, but for a single one that is longer: all of them may be of one rank, which has them in memory.
pub(crate) const KEPT_ROUND_MOST_BYTES: u64 = 512 << 20;
/// Chunks of such a round at most: each rank tells of each by a bit, so that rank 0 has 512 bytes of each rank.
pub(crate) const KEPT_ROUND_MOST: u64 = 4096;

/// Chunks that one round of a put through filters puts to, at most: all ranks know of each who puts to it and how long it becomes, in some 300 bytes.
/// Filters take longer for so many than ranks do to come together. Row: `deflate` of `bench/parallel.py`.
pub(crate) const PLAN_ROUND_CHUNKS: usize = 16 << 10;
/// Parts of ranks in these chunks, at most, of 8 bytes each; the last chunk of a round may have more. So 1,024 ranks that all have parts of each chunk have
/// as many chunks in a round as there are of them.
pub(crate) const PLAN_ROUND_PARTS: usize = 1 << 20;
/// Bytes of these chunks for each rank: what filters make of a round is in memory until it has places. No fewer than one chunk for each rank.
pub(crate) const PLAN_ROUND_BYTES: u64 = 256 << 20;
