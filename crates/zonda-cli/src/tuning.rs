//! Numbers that change how fast the command is, how much memory it takes or how exact its pictures are,
//! and not what it finds or writes.
//!
//! Rows are those of `bench/tools.py` (`ncdump`, `ncgen`) and `bench/nccopy.py` (`nccopy`).

use std::time::Duration;

// Output
/// Bytes that are collected before they are written to standard output. Row: `ncdump, float in
/// rows of 1000`.
pub(crate) const OUTPUT_BUFFER_BYTES: usize = 64 << 10;

/// Bytes of CDL that are collected before they are handed to the output. Row: `ncdump, int in
/// rows of 4`.
pub(crate) const LINES_BUFFER_BYTES: usize = 64 << 10;

// Dumps
/// Bytes of data that are read at a time. This bounds memory, whatever the size of a variable.
/// Row: `ncdump, float in one row`.
pub(crate) const DATA_BLOCK_BYTES: usize = 4 << 20;

/// Elements whose text one thread makes at a time: enough to hide the hand-over between threads.
/// Row: `ncdump, float in rows of 1000`.
pub(crate) const SPAN_ELEMS: usize = 16 << 10;

/// Estimated bytes of an element with strings or sequences, whose size is unknown until it is
/// read. It decides how many are read at a time. No row: the rows have numbers.
pub(crate) const VLEN_ELEM_BYTES: usize = 1 << 10;

/// Usual bytes of the text of a number with its delimiter, for which memory is reserved. Row:
/// `ncdump, double in rows of 1000`.
pub(crate) const TEXT_BYTES_PER_ELEM: usize = 12;

/// Jobs that wait beyond those that threads are doing, so that no thread waits for the reader.
/// Row: `ncdump, double, all digits`.
pub(crate) const QUEUED_JOBS: usize = 2;

// Copies
/// Bytes of memory for data of `nccopy` where no option gives any. Row: `nccopy, maps become
/// series, 256 MB`.
pub(crate) const NCCOPY_MEMORY_BYTES: u64 = 256 << 20;

/// Bytes of memory for data that `nccopy` takes at least, since its options are about buffers of
/// the reference, which are small. No row: the rows give no such option.
pub(crate) const NCCOPY_LEAST_MEMORY_BYTES: u64 = 64 << 20;

/// One part in so many of the memory for data is for chunks that are kept for later. Row:
/// `nccopy, deflated maps become series, 256 MB`.
pub(crate) const CHUNK_CACHE_SHARE: u64 = 4;

// Traces and pictures
/// Values of a coordinate that are read at a time to find one of them. No row: it is done once.
pub(crate) const COORDINATE_PIECE_ELEMS: usize = 1 << 20;

/// The most values of a coordinate that one is looked for among: 1 GiB of memory, some seconds. No row: files have fewer.
pub(crate) const MOST_COORDINATES: usize = 1 << 27;

/// The most processes of a recording; a limit for files that are no recordings. No row: nobody
/// waits for it.
pub(crate) const RECORDED_PROCESSES: usize = 10_000;

/// The most accesses of a process that a picture is drawn from, some dozen megabytes of memory.
/// No row: recordings are not measured.
pub(crate) const PICTURE_ACCESSES: usize = 1 << 20;

/// The most functions, variables or files with a sum of their own; later ones share one. No row:
/// recordings are not measured.
pub(crate) const SUMS_PER_KIND: usize = 100_000;

/// Ended calls of a thread that are remembered, because a later call may turn out to contain
/// them. No row: recordings are not measured.
pub(crate) const REMEMBERED_CALLS: usize = 64;

/// The most bins of a curve, an even number; a picture has about twice as many pixels. No row:
/// recordings are not measured.
pub(crate) const BINS: usize = 512;

/// Nanoseconds of a bin at first. No row: recordings are not measured.
pub(crate) const FINEST_BIN_NS: u64 = 1000;

/// The most points of a number that changes over time. No row: recordings are not measured.
pub(crate) const LEVEL_POINTS: usize = 8192;

/// The most elements along a dimension of a map that are read. Of longer dimensions only every
/// second, third, ... element is read. No picture shows more. No row: views are not measured.
pub(crate) const MAP_ELEMS: usize = 2400;

/// The same limit for a line. It is higher, because peaks must not be lost. No row: views are not
/// measured.
pub(crate) const LINE_ELEMS: usize = 1 << 24;

// `zonda tune`
/// The most operations that are replayed. They take a few hundred megabytes of memory. No row: it
/// measures by itself.
pub(crate) const REPLAYED_ACCESSES: usize = 4 << 20;

/// Bytes of the longest call that is replayed as it was. Longer calls are split. No row: it
/// measures by itself.
pub(crate) const REPLAYED_CALL_BYTES: usize = 64 << 20;

/// Bytes of a file that are compared. The limit is for files with holes, which may have any
/// length. No row: it measures by itself.
pub(crate) const DIGEST_BYTES: u64 = 8 << 30;

/// A stack that takes so many times as long as the best in the first round is not tried again. No
/// row: it measures by itself.
pub(crate) const HOPELESS_RATIO: f64 = 4.0;

/// Bytes that the caches of a stack by rule of thumb may take. No row: it measures by itself.
pub(crate) const CANDIDATE_CACHE_BYTES: u64 = 1 << 30;

// `zonda run`
/// First pause between two looks at the memory map of a program. Libraries are mapped within a
/// millisecond or two. No row: it runs beside the program.
pub(crate) const FIRST_LOOK_PAUSE: Duration = Duration::from_micros(300);

/// Longest pause between two looks: programs in Python load modules at any time. No row: it runs
/// beside the program.
pub(crate) const LAST_LOOK_PAUSE: Duration = Duration::from_millis(250);

// `zonda top`
/// How often the table is drawn anew. No row: it is for people.
pub(crate) const TOP_EVERY: Duration = Duration::from_secs(1);

/// How long servers are waited for that do not answer. No row: it is for people.
pub(crate) const TOP_PATIENCE: Duration = Duration::from_secs(2);

/// The same where there is one table only: nobody looks again. A server on a busy node may need seconds. No row: it is for scripts.
pub(crate) const TOP_PATIENCE_ONCE: Duration = Duration::from_secs(10);

/// How often rank 0 says for whom it waits, and the other ranks, who wait for it as long as it works alone. No row: it is for people.
pub(crate) const LEAD_SAYS_EVERY: Duration = Duration::from_secs(60);
pub(crate) const OTHERS_SAY_EVERY: Duration = Duration::from_hours(24);

// Checks
/// A file that was changed longer ago is not looked for among those that other processes have open for writing. No row: it bounds
/// what checking an archive takes.
pub(crate) const WRITTEN_LATELY: Duration = Duration::from_mins(10);
