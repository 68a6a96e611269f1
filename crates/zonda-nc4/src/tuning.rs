//! Tuning constants: numbers that change how fast files are read and written, or how much of a damaged file is
//! looked at, and not what a sound file says.
//!
//! Each says its reason, and which bench row shows a change: *reads* are rows of `bench/reads.py`, *writes* of
//! `bench/writes.py`, *edits* of `bench/edits.py`. Those that say so also decide where things lie in a file.

use std::time::Duration;

// ---- Remote files ---------------------------------------------------------------------------------------------------

/// Messages there and back in which the objects of a remote file come. A group in a group costs some of them; what is deeper is read one by
/// one. No row: a bound for hostile files.
pub(crate) const REHEARSAL_ROUNDS: u32 = 256;

// ---- Reads ----------------------------------------------------------------------------------------------------------

/// Bytes of elements as the file has them that are fetched before their strings and sequences are looked up.
/// Reads: "strings, 10^6".
pub(crate) const VLEN_READ_BYTES: usize = 4 << 20;
/// Bytes of sequences that one value may have in any file, however short; besides, four times as many as the
/// file has bytes. No row: a bound for damaged files.
pub(crate) const VLEN_VALUE_MIN_BYTES: u64 = 1 << 16;
/// Names of a list up to which it is looked through one by one; a longer list gets a table. Reads: "open + every
/// inquiry, 10 variables x 5 attributes", "open + every inquiry, 10 variables x 1000 attributes".
pub(crate) const SHORT_LIST_NAMES: usize = 16;
/// Type messages of atomic types that a walk remembers, with the numbers of the types, and the most bytes of one. Most
/// files have a few, of 12 or 20 bytes. Reads: "open + every inquiry, 1000 variables x 5 attributes".
pub(crate) const KNOWN_TYPE_MESSAGES: usize = 8;
pub(crate) const KNOWN_TYPE_BYTES: usize = 64;
/// Objects that a walk may meet again through groups that it met before. No row: a bound for files whose groups
/// contain each other.
pub(crate) const WALK_REVISITS: u64 = 1 << 20;
/// Files that links, virtual datasets and external data of one file may lead to. No row: a bound for hostile
/// files.
pub(crate) const LINKED_FILES: usize = 1024;
/// Virtual datasets that may lead to each other. No row: a bound for hostile files.
pub(crate) const VIRTUAL_LEVELS: u8 = 16;
/// Numbered blocks of a virtual dataset that are looked for. No row: no bench has virtual datasets.
pub(crate) const VIRTUAL_BLOCKS: u64 = 1 << 16;

// ---- Reads of files that another program writes ---------------------------------------------------------------------

/// How long a stamp of a file must have been seen before it is believed to change with the next write: longer than
/// the steps of any file system's clock. No row: shows in `nc_sync` of a reader.
pub(crate) const STAMP_SETTLES_AFTER: Duration = Duration::from_millis(2100);
/// Seconds since the last change of a file up to which what does not fit together in it may be a change that is
/// not complete. No row: it is met while another program writes.
pub(crate) const CHANGING_SECONDS: u64 = 5;
/// The first pause before what another program may be writing is read again; each of the next four is twice as
/// long. No row: as [`CHANGING_SECONDS`].
pub(crate) const REREAD_PAUSE: Duration = Duration::from_millis(2);
/// How often it is read again where the file is seen to change. No row: as [`CHANGING_SECONDS`].
pub(crate) const REREADS_CHANGING: u32 = 8;
/// How often it is read again where the file is not seen to change. No row: as [`CHANGING_SECONDS`].
pub(crate) const REREADS_UNCHANGED: u32 = 3;

// ---- Puts -----------------------------------------------------------------------------------------------------------

/// Bytes that are converted, copied or filled before they are written, where elements are not in chunks: they stay
/// in the second-level cache. Writes: "whole, uncompressed, float from double, contiguous".
pub(crate) const PUT_BLOCK_BYTES: usize = 256 << 10;
/// Rows that are written by one call, where elements are not in chunks. Writes: "slices, uncompressed, float,
/// contiguous".
pub(crate) const PUT_BLOCK_ROWS: usize = 1024;
/// Bytes between two elements up to which they are written with what is between them, which is read before. No
/// row: puts at a stride into contiguous variables are not in the benches.
pub(crate) const PUT_GAP_BYTES: u64 = 512;
/// Bytes of fill values that are written at least where a put into a contiguous variable leaves elements before it
/// out. No row: the cases put all elements.
pub(crate) const FILL_AHEAD_BYTES: u64 = 1 << 20;
/// Bytes of chunks without a value that a commit stores for one variable of strings or sequences, at most: its
/// only element may be a thousand million records from the beginning. No row: the cases put all elements.
pub(crate) const UNWRITTEN_CHUNKS_BYTES: u64 = 64 << 20;
/// Bytes of an attribute up to which a put does not ask whether there is memory for the commit, too. Writes:
/// "definitions, 100 variables x 1000 attributes".
pub(crate) const SMALL_ATTRIBUTE_BYTES: usize = 1 << 16;
/// Values of a put from which on the bits that quantization keeps are looked up by steps, not computed for each
/// value. Writes: "whole, 3 digits, deflate 1 shuffle, float, chunks of 64 KiB" with granular bit rounding.
pub(crate) const QUANTIZE_BY_STEPS_VALUES: usize = 4096;

// ---- Shapes of chunks that nobody chose (docs/dev/chunk-sizes.md) ---------------------------------------------------

/// Most bytes of a chunk, unless one element has more. Reads: "layers, chunks 256x128x256, default cache" shows
/// chunks of 32 MiB.
pub(crate) const CHUNK_MAX_BYTES: u64 = 4 << 20;
/// Bytes of the chunks that short records are put together into. Writes: "two variables, C, chunk default, slice 1".
pub(crate) const RECORDS_CHUNK_BYTES: u64 = 8 << 10;
/// Bytes of a record from which on it is a chunk by itself. Writes: as [`RECORDS_CHUNK_BYTES`].
pub(crate) const LONG_RECORD_BYTES: u64 = 4 << 10;
/// Most records of a chunk. Writes: as [`RECORDS_CHUNK_BYTES`].
pub(crate) const CHUNK_MAX_RECORDS: u64 = 2048;
/// Least bytes of a chunk of a series of single values: no fewer than in the reference. Edits: "append 1 record,
/// 10^5 chunks, by netCDF-C" has such a series.
pub(crate) const SERIES_CHUNK_BYTES: u64 = 4096;
/// Bytes of a chunk where all of several dimensions are unlimited. No row: the cases have one unlimited dimension.
pub(crate) const UNLIMITED_CHUNK_BYTES: u64 = 1 << 20;

// ---- Commits --------------------------------------------------------------------------------------------------------

/// Bytes put since the last commit from which on a put that begins another record commits those before it. Decides
/// where chunks lie. Writes: "records, uncompressed, float, chunks of 1 MiB".
pub(crate) const COMMIT_AFTER_BYTES: u64 = 64 << 20;
/// Bytes of space that was given back and is not used again yet: readers may still read it. A writer of small records
/// gives some KiB back with each commit, so a reader may take hundreds of commits to read what it has opened. Decides
/// where things lie. Edits: "append 1 record, 10^5 chunks, by netCDF-C".
pub(crate) const FREED_WAIT_BYTES: u64 = 4 << 20;
/// Commits after which a writer is expected to commit again soon. Edits: all of one commit show that it costs them
/// nothing.
pub(crate) const FREQUENT_COMMITS: u64 = 3;
/// Least bytes by which a file that is committed to again and again is longer than what is used of it. No row: shows
/// in files that are read while they are written.
pub(crate) const FILE_AHEAD_BYTES: u64 = 8 << 20;
/// Bytes that are read at once in the search for the last byte of a file whose writer died. No row: such files are
/// not in the benches.
pub(crate) const TAIL_READ_BYTES: u64 = 1 << 20;
/// Bytes of the first block of an object header that is not one block. Decides where headers lie. Writes:
/// "definitions, 10000 variables x 5 attributes".
pub(crate) const HEADER_SPLIT_BYTES: u64 = 256;
/// Least bytes of the first block of an object header, so that something can come to it. Decides where headers lie.
/// Writes: as [`HEADER_SPLIT_BYTES`].
pub(crate) const HEADER_MIN_BYTES: u64 = 128;

// ---- Several ranks --------------------------------------------------------------------------------------------------

/// Most chunks of a variable that several ranks write: each rank has all their places in memory, some 100 bytes each. No row:
/// the cases have fewer. The text MANY_CHUNKS has the number, too.
pub(crate) const MOST_TEAM_CHUNKS: u64 = 1 << 22;

// ---- Close ----------------------------------------------------------------------------------------------------------

/// Commits that a close makes at most to move definitions from the end of a file into holes: what one gives back may
/// have room for what the next one moves. Edits: "add 1 variable to 10,000".
pub(crate) const TIDY_ROUNDS: usize = 3;
/// Bytes of a file up to which a close finds out what space its earlier writers left free: all its structures are read
/// for that. Edits: "add 1 variable to 10,000".
pub(crate) const TIDY_WALK_BYTES: u64 = 4 << 20;
