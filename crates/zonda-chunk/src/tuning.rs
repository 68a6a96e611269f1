//! Tuning constants: numbers that change how fast chunks are read and written, and not what is read.
//!
//! Each says its reason, and which bench row shows a change: *reads* are rows of `bench/reads.py`, *writes* rows of
//! `bench/writes.py`. Those under "Puts" that say so also decide where chunks lie in a file.

use std::time::Duration;

// ---- Reads: threads -----------------------------------------------------------------------------------------------

/// Decoded bytes of filtered chunks from which on a read uses the pool. Below, waking threads costs more than it
/// saves. Reads: "layers, chunks 256x16x16, default cache".
pub(crate) const READ_POOL_DECODED_BYTES: usize = 256 << 10;
/// Bytes of unfiltered chunks from which on a read uses the pool: two threads copy faster than one. Reads: "whole,
/// unfiltered chunks 1x640x640".
pub(crate) const READ_POOL_UNFILTERED_BYTES: usize = 8 << 20;
/// Bytes of cached chunks from which on a read uses the pool to convert them. No row: the cases read more or much less.
pub(crate) const READ_POOL_CACHED_BYTES: usize = 4 << 20;
/// Decoded bytes that a thread claims at a time: small chunks go by the handful, so that claiming costs nothing beside
/// decoding. Reads: "whole, deflate 4 shuffle, chunks of 16 KiB".
pub(crate) const READ_CLAIM_BYTES: usize = 64 << 10;
/// How often a thread comes back for more of a read, at least, where claims are made longer because there are many threads. No row: as
/// [`CLAIMING_THREADS`].
pub(crate) const CLAIMS_OF_A_THREAD: usize = 4;
/// Chunks of a read that are looked up together. Bounds the memory for what is known of each. Reads: "open + one value,
/// 1000000 chunks" shows the look-up.
pub(crate) const READ_BATCH_CHUNKS: usize = 1 << 16;
/// Boxes of the chunk grid that are looked up one by one where a stride leaves out most chunks between them. Reads:
/// "strided 1x7x7, deflate 4 shuffle, float".
pub(crate) const MOST_LOOKUP_BOXES: usize = 4096;
/// Chunks in a row for each chunk that is wanted from which on boxes are looked up one by one. Reads: as
/// [`MOST_LOOKUP_BOXES`].
pub(crate) const SPARSE_CHUNKS: u64 = 4;
/// Elements of a row from which on a shuffled chunk is put together row by row in the caller's memory. Shorter rows
/// are faster by way of the whole chunk. Reads: "2-D blocks, deflate 4 shuffle, float".
pub(crate) const SHUFFLED_ROW_ELEMS: usize = 64;

// ---- Reads: memory of threads -------------------------------------------------------------------------------------

/// Chunks up to this size leave a thread its buffers for the next request, whatever the budget. Reads: "one value, 20000
/// random".
pub(crate) const KEPT_BUFFERS_CHUNK_BYTES: usize = 4 << 20;
/// All threads together keep buffers for larger chunks up to the budget divided by this. No row: shows in the memory of
/// the process.
pub(crate) const KEPT_BUFFERS_BUDGET_PART: u64 = 8;
/// Bytes of a stored chunk from which on the length of the storage is compared before memory is taken: asking costs a
/// call, and a damaged index may claim any length. Reads: "whole, deflate 4 shuffle, float".
pub(crate) const CHECKED_FETCH_BYTES: u64 = 1 << 20;
/// Bytes of a chunk from which on it is given up early where a walk has left it behind: the next one takes its memory. Reads: "layers,
/// chunks 256x128x256, default cache".
pub(crate) const LARGE_CHUNK_BYTES: usize = 1 << 20;

// ---- Reads: rows from the storage ---------------------------------------------------------------------------------

/// Stored bytes that are read before they are converted: they stay in the second-level cache. Reads: "whole,
/// contiguous".
pub(crate) const ROW_BLOCK_BYTES: usize = 256 << 10;
/// Rows of such a block: the list of them stays in the cache, too. Reads: "time series, unfiltered chunks".
pub(crate) const ROW_BLOCK_ROWS: usize = 8 << 10;
/// Bytes between two rows that are read though nobody wants them, because another call would cost more. Reads: "2-D
/// blocks, unfiltered chunks".
pub(crate) const READ_GAP_BYTES: u64 = 4 << 10;
/// Bytes of a row from which on it is read straight into the caller's memory, if it needs no conversion. Reads: "whole,
/// contiguous".
pub(crate) const STRAIGHT_ROW_BYTES: usize = 32 << 10;
/// Bytes of a contiguous array up to which a read takes the short way over the stack. No row: `zonda get` of attributes
/// and scalars.
pub(crate) const SHORT_READ_BYTES: usize = 256;
/// The most bytes of one element that nobody wrote. A damaged type may claim any length, and no byte of the file stands
/// for it. No row: a limit for damaged files.
pub(crate) const MOST_UNWRITTEN_ELEM_BYTES: u64 = 64 << 20;

// ---- Conversion ---------------------------------------------------------------------------------------------------

/// Bytes that are packed before they are converted, or converted before they are spread: they stay in the first-level
/// cache. Reads: "strided 2, deflate 4 shuffle, float"; writes: "whole, deflate 1 shuffle, float from double, chunks of 1
/// MiB".
pub(crate) const CONVERT_BLOCK_BYTES: usize = 8 << 10;
/// Bytes copied at a time while a chunk is filled with fill values: they stay in the first-level cache. Writes:
/// "random, uncompressed, float, chunks of 1 MiB".
pub(crate) const FILL_BLOCK_BYTES: usize = 8 << 10;
/// Bytes put into a chunk from which on the trace has an event of it: that of fewer would take longer than they do.
/// Writes: "put_var1, sequence, 8 MB, chunks 10x50x50".
pub(crate) const TRACED_GATHER_BYTES: usize = 4096;
/// Bytes of a decoded chunk up to which memory is taken whatever is stored of it; larger ones are proved first. No row: a
/// limit for damaged files.
pub(crate) const TRUSTED_CHUNK_BYTES: usize = 16 << 20;

// ---- The cache of decoded chunks ----------------------------------------------------------------------------------

/// Uses from which on a chunk counts as one that is asked for again and again. Reads: "layers, chunks 64x128x256, 1 MiB
/// cache".
pub(crate) const REUSED_USES: u8 = 2;
/// Chunks that went and are remembered, at least. Reads: "layers, chunks 256x16x16, 1 MiB cache".
pub(crate) const LEAST_GHOST_CHUNKS: usize = 1024;
/// Chunks that one claim evicts at most, and times that it asks other caches. Bounds the time under the lock. Reads:
/// "10,000 random hyperslabs, 4 threads, 1 file".
pub(crate) const MOST_EVICTED_CHUNKS: usize = 64;
/// How long a thread waits for another that decodes a chunk before it looks whether that thread still lives. No row: it
/// is met after a fork.
pub(crate) const DECODER_CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// Bytes of unfiltered chunks up to which they may be cached: then a copy is cheap beside the calls that it saves. Reads:
/// "2-D blocks, unfiltered chunks".
pub(crate) const CACHED_UNFILTERED_BYTES: usize = 1 << 20;
/// Small requests to the same unfiltered chunk after which it is cached. Reads: as [`CACHED_UNFILTERED_BYTES`].
pub(crate) const CACHED_UNFILTERED_REQUESTS: u32 = 3;
/// A request is small for that if it wants at most the bytes of a chunk divided by this. Reads: as
/// [`CACHED_UNFILTERED_BYTES`].
pub(crate) const SMALL_REQUEST_PART: usize = 8;

// ---- Prefetch -----------------------------------------------------------------------------------------------------

/// Equal steps after which requests are taken for a walk. Reads: "layers, chunks 1x128x256, default cache".
pub(crate) const WALK_STEPS: u32 = 2;
/// Chunks that are decoded ahead at a time. Reads: "time series, chunks 256x16x16, default cache".
pub(crate) const MOST_PREFETCH_CHUNKS: u64 = 1024;
/// Chunks are decoded ahead if they take at most the budget divided by this. Reads: "layers, chunks 256x128x256, 1 MiB
/// cache".
pub(crate) const PREFETCH_BUDGET_PART: u64 = 4;
/// Stored bytes of chunks ahead of a walk that a remote storage is told of at a time. Rows: `bench/remote.py`.
pub(crate) const TOLD_AHEAD_BYTES: u64 = 32 << 20;
/// Bytes of decoded chunks that are on their way ahead of a walk, at most. Rows: `bench/remote.py`.
pub(crate) const TOLD_WALK_BYTES: u64 = 16 << 20;
/// First and longest sleep between two looks whether the work in the background has ended. No row: when arrays are
/// closed.
pub(crate) const STOP_NAPS: (Duration, Duration) =
    (Duration::from_micros(20), Duration::from_millis(1));

// ---- Single elements ----------------------------------------------------------------------------------------------

/// Chunks that a single element of an array is put to without a look into the table of all that wait; a power of two. An array has a place of 4
/// bytes for each. Writes: "put_var1, random, 8 MB, chunks 10x50x50".
pub(crate) const RECENT_CHUNKS: usize = 256;

// ---- Puts: chunks that wait ---------------------------------------------------------------------------------------

/// Bytes that incomplete chunks of a file may take, unless `ZONDA_WRITE_CACHE` says so. Decides where chunks lie. Writes:
/// "random, deflate 1 shuffle, float, chunks of 1 MiB".
pub(crate) const WRITE_CACHE_BYTES: u64 = 256 << 20;
/// Chunks of a put that are looked up together. Decides where chunks lie. Writes: "whole, deflate 1 shuffle, float, chunks
/// of 64 KiB".
pub(crate) const PUT_BATCH_CHUNKS: usize = 4096;
/// Bytes of incomplete chunks that are put before it is checked whether they are too many. Decides where chunks lie.
/// Writes: "slices, uncompressed, float, chunks of 4 MiB".
pub(crate) const PUT_ROUND_BYTES: u64 = 64 << 20;
/// Bytes of a put from which on copying or converting them into chunks is worth other threads. Writes: "records, uncompressed, float, chunks of 1
/// MiB".
pub(crate) const PUT_POOL_BYTES: usize = 1 << 20;
/// Decoded bytes from which on loading chunks to change them is worth other threads. Writes: "random, deflate 1 shuffle,
/// float, chunks of 64 KiB".
pub(crate) const PUT_POOL_LOADED_BYTES: usize = 256 << 10;
/// Deferred chunks for each thread that are filtered together. Writes: "records, deflate 1 shuffle, float, a chunk each".
pub(crate) const DEFERRED_CHUNKS_PER_THREAD: u64 = 2;
/// Bytes of these chunks, at least. Writes: "records, deflate 1 shuffle, float, chunks of 64 KiB".
pub(crate) const LEAST_DEFERRED_BYTES: u64 = 2 << 20;
/// Bytes of these chunks, at most. Writes: "records, deflate 1 shuffle, float, a chunk each".
pub(crate) const MOST_DEFERRED_BYTES: u64 = 64 << 20;
/// Where fewer bytes than this could be deferred, no chunk is. Writes: as [`LEAST_DEFERRED_BYTES`].
pub(crate) const WORTH_DEFERRING_BYTES: u64 = 512 << 10;
/// Free bytes that spilled chunks leave on their device besides those that the chunks need themselves, at most: for other
/// files. No row: `tests/runtime` fills devices.
pub(crate) const SPILL_RESERVE_BYTES: u64 = 64 << 20;
/// The part of the memory that is put, or spilled, at a time is one in this many. No row: `tests/runtime` limits memory.
pub(crate) const SPILL_PART: u64 = 8;

// ---- Puts: chunks on their way into the storage -------------------------------------------------------------------

/// Bytes of spare memory that a writer keeps for its next chunks. Writes: "whole, deflate 1 shuffle, float, chunks of 1
/// MiB".
pub(crate) const SPARE_BYTES: usize = 32 << 20;
/// Bytes to be filtered below which the caller does all of it alone. Writes: "records, deflate 1 shuffle, float, chunks of 64
/// KiB".
pub(crate) const STORE_POOL_BYTES: usize = 256 << 10;
/// Bytes behind a chunk that belong to its place, at most: what is set aside with one that is filtered before it has a place. No row: it is
/// one word.
pub(crate) const PLACE_TAIL_BYTES: usize = 8;
/// Bytes that a thread claims at a time to filter them. Writes: "whole, deflate 1 shuffle, float, chunks of 64 KiB".
pub(crate) const STORE_CLAIM_BYTES: usize = 64 << 10;
/// Filtered bytes that are worth a write of their own while others are being filtered. Writes: "whole, zstd 3 shuffle,
/// float, chunks of 1 MiB".
pub(crate) const STORE_WRITE_BYTES: usize = 1 << 20;
/// Threads that write chunks of one call at the same time, at most. Most file systems of Linux let one thread at a time write to a file, and then more
/// than these only wait (docs/dev/many-cores.md); some of several servers take more. No row: it takes more cores than the rows have.
pub(crate) const STORE_WRITERS: usize = 4;
/// Bytes of chunks between claim and write, at most: bounds memory. Writes: "whole, deflate 9 shuffle, float, chunks of 4
/// MiB".
pub(crate) const STORE_WINDOW_BYTES: usize = 64 << 20;
/// Chunks for each thread between claim and write. Writes: as [`STORE_WINDOW_BYTES`].
pub(crate) const STORE_WINDOW_CHUNKS: usize = 4;
/// Bytes that are converted before they are written, of a chunk that does not wait in memory. No row: chunks larger than
/// the write cache.
pub(crate) const LARGE_CHUNK_BLOCK_BYTES: usize = 256 << 10;
/// Runs of elements of such a chunk that are written together. No row: as [`LARGE_CHUNK_BLOCK_BYTES`].
pub(crate) const LARGE_CHUNK_BLOCK_RUNS: usize = 1024;
/// Copied chunks of fewer bytes than this on average are joined before they are written. No row: `zonda copy` of small
/// chunks.
pub(crate) const JOINED_CHUNK_BYTES: u64 = 64 << 10;

// ---- Many threads -------------------------------------------------------------------------------------------------

/// Threads of a call for each of which a claim is as long as it is for few: with more of them claims are longer, since they come to one lock. No
/// row: it takes more cores than the rows have.
const CLAIMING_THREADS: usize = 8;
/// How many times longer a claim may become. No row: as [`CLAIMING_THREADS`].
const MOST_CLAIMS_AT_ONCE: usize = 8;

/// How many times the bytes of a claim each of so many threads takes at a time.
pub(crate) fn claims_at_once(threads: usize) -> usize {
    (threads / CLAIMING_THREADS).clamp(1, MOST_CLAIMS_AT_ONCE)
}

#[cfg(test)]
mod tests {
    use super::claims_at_once;

    #[test]
    fn few_threads_claim_little() {
        let found = [1, 2, 8, 15, 16, 64, 128, 1024].map(claims_at_once);
        assert_eq!(found, [1, 1, 1, 1, 2, 8, 8, 8]);
    }
}
