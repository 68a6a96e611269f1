//! Numbers that change how fast something is, and not what it does. Each says its unit, its reason, and which rows of `bench/run.py`
//! (`--list` shows all of them) change with it.

use std::time::Duration;

// Files and memory

/// Bytes of a slab, and its alignment: a huge page, which costs one fault. Rows: `history 1576 MB, ..., write`.
pub(crate) const SLAB_BYTES: usize = 2 << 20;

/// Ranges that lie this many bytes apart or less are read by one call, and the bytes between are thrown away: to copy 4 KiB
/// takes less time than to enter the kernel once more. Rows: `get_vars stride 1000, ...`.
pub(crate) const READ_OVER_BYTES: u64 = 4096;

/// Where syncs reach the device, it is set to work each time that this many bytes were written, so that a sync finds little
/// left to wait for. Rows: `history ..., write and sync`.
pub(crate) const START_WRITING_BYTES: u64 = 2 << 20;

/// Bytes that the kernel is asked to copy from file to file by one call, so that a signal has not to wait long. Rows: `100 bytes more, the
/// reference's file: data must move`.
pub(crate) const COPY_CALL_BYTES: u64 = 16 << 20;

/// Bytes that are copied at a time where the kernel would copy page by page: they stay in the second-level cache on the way. 1 GB in ms, by the
/// kernel and through 1 MiB, 256 KiB, 64 KiB: ext4 351, 186, 179, 208; tmpfs 404, 349, 341, 361. Row: the same.
pub(crate) const COPY_BLOCK_BYTES: usize = 256 << 10;

/// Bytes of a segment of a memory: large enough that a copy takes much longer than to find the segment, small enough that
/// several threads have segments of their own. No row: files in memory are not measured.
pub(crate) const SEGMENT_BYTES: u64 = 1 << 20;

/// Bytes of a repeated element that are written by one call, where no cache keeps the element instead. Rows:
/// `history ..., fill, NC_SHARE, write`.
pub(crate) const FILL_BLOCK_BYTES: usize = 256 << 10;

/// The same where there is no memory for that many. No row: memory is not scarce there.
pub(crate) const FILL_LEAST_BYTES: usize = 4096;

/// Bytes that `direct` moves at a time through aligned memory of its own: from here on a device's latency counts little. No
/// row: `make stacks` measures it.
pub(crate) const BOUNCE_BYTES: usize = 1 << 20;

/// How many pieces of such memory `direct` keeps for later calls. No row: `make stacks` measures it.
pub(crate) const MOST_KEPT_BOUNCES: usize = 4;

/// Bytes of a mapped file that are converted between two looks whether somebody waits to write it. No row: `make stacks` measures it.
pub(crate) const SHOWN_AT_ONCE_BYTES: usize = 1 << 20;

// How large a cache is

/// Pages that a cache within the memory of the process may have however little of that is left: enough to read ahead and to
/// write several pages by one call. No row: memory is not scarce there.
pub(crate) const LEAST_PAGES: u64 = 16;

/// The smallest page that follows from a file: a few of them fit the first-level cache, and their memory is touched in no
/// time. Rows: `history 22 MB, ..., random, write`.
pub(crate) const LEAST_PAGE_BYTES: u64 = 16 << 10;

/// The largest page that follows from a file: from here on a system call costs little beside its copy. Rows:
/// `history 1576 MB, ...`.
pub(crate) const MOST_PAGE_BYTES: u64 = 256 << 10;

/// A page is about this part of what is worked on together, a record or a file. Rows: `history 197 MB, ..., random, write`.
pub(crate) const PAGES_TOGETHER: u64 = 32;

/// The most pieces that a page should be put together from, one for each part of a record. Rows:
/// `history 22 MB, ..., random, write`.
pub(crate) const PIECES_PER_PAGE: u64 = 256;

/// Bytes of pages that a cache may have before it turns out to need more. Rows: `put_vara 1 random, 512 MB`.
pub(crate) const AT_FIRST_BYTES: u64 = 32 << 20;

/// Where each call takes long, a cache may have this many times the pages that it may have at first. Rows:
/// `500 MB/s, 100 us: history 22 MB, ..., random, read`.
pub(crate) const ROOMY_TIMES: u64 = 4;

/// A cache with no more pages than this makes do with a small table of hints. Rows: `get_vara 1 random, 8 MB`.
pub(crate) const FIRST_PAGES: u64 = 256;

/// The most entries of the table of hints (256 KiB). Rows: `get_vara 1 random, 512 MB`.
pub(crate) const MOST_HINTS: u64 = 1 << 16;

/// The first pages of a cache, of this many bytes together, have memory of their own, which grows with their data; only a
/// cache that needs more is worth a slab. Rows: `inq`, `put_var1 sequential, 8 MB`.
pub(crate) const OWN_MEMORY_BYTES: u64 = 2 << 20;

/// Memory of a page that grows beyond this many bytes becomes that of a whole page at once. Below it grows with its data, so
/// that a small file costs little. Rows: `inq`.
pub(crate) const GROW_WHOLE_BYTES: usize = 64 << 10;

/// From this many separate ranges on, what is known of a page is a flag for each byte. Rows: `put_vars stride 2, 512 MB`.
pub(crate) const MOST_PAGE_RANGES: usize = 1024;

/// How many pages that had to leave are remembered, to allow a cache more when they come back. A power of two. Rows:
/// `get_vara 64 random, 512 MB`.
pub(crate) const REMEMBERED_EVICTIONS: usize = 4096;

/// How many of the longest unused pages are looked at for one that is clean, when others need memory. No row: memory is not
/// scarce there.
pub(crate) const RECLAIM_LOOKS_PAGES: usize = 32;

// What is read

/// A first, scattered miss reads this many bytes around what was asked for; the rest of the page is read when the next miss
/// shows that reading goes on there. Rows: `get_vara 1 random, 512 MB`.
pub(crate) const GRANULE_BYTES: usize = 16 << 10;

/// Each further scattered miss in a page reads twice as much, up to this many times: a page that is asked for again and again
/// is read whole in a few steps. Rows: `get_vara 64 random, 512 MB`.
pub(crate) const GRANULE_DOUBLINGS: u32 = 4;

/// The most bytes of a row that the processor is asked for while the one before is converted: it foresees the rest itself. Rows:
/// `history 197 MB, ..., random, read`.
#[cfg(target_arch = "x86_64")]
pub(crate) const MOST_PREFETCHED_BYTES: usize = 1024;

/// Reads of this many bytes or more bring no pages in: what a page saves is less than its copy costs. Rows:
/// `array 64 MB, ..., read`.
pub(crate) const READ_STRAIGHT_BYTES: u64 = GRANULE_BYTES as u64;

/// A sequential reader's pages are given up this many bytes behind it. Rows: `get_vara 256 sequential, 512 MB`.
pub(crate) const READ_BEHIND_BYTES: u64 = 256 << 10;

/// How many bytes are read ahead of a sequential reader, in whole pages of at least one. Rows:
/// `get_vara 256 sequential, 512 MB`.
pub(crate) const READ_AHEAD_BYTES: u64 = 256 << 10;

/// The same where each call takes long. Requests up to this length then go through pages too, when they follow one another.
/// Rows: `500 MB/s, 100 us: history 22 MB, ..., read`.
pub(crate) const SLOW_AHEAD_BYTES: u64 = 1 << 20;

/// How many reads are remembered: as many streams side by side are known. Rows:
/// `500 MB/s, 100 us: history 22 MB, ..., read`.
pub(crate) const REMEMBERED_READS: usize = 16;

/// From this on reads are said to come back: twice the returns, less the first visits since. Rows:
/// `500 MB/s, 100 us: history 22 MB, ..., random, read`.
pub(crate) const RETURNS_OFTEN_FROM: u32 = 8;

/// The most of that number that is remembered, so that it can change within this many reads. Rows: as above.
pub(crate) const MOST_RETURNS: u32 = 24;

/// A stream may leave out this many bytes between two requests. No row: `make stacks` measures `bufa` and `cachea`.
pub(crate) const STREAM_GAP_BYTES: u64 = 16 << 10;

/// How many blocks wait to be read at most: each of as many streams has its next one. Rows: as `SLOW_AHEAD_BYTES`.
pub(crate) const MOST_WAITING_BLOCKS: usize = 16;

// What is written

/// The most pages that are written by one call, so that a flush does not hold them all. Rows: `history 22 MB, ..., write`.
pub(crate) const RUN_PAGES: usize = 64;

/// The most ranges that one call is given. Rows: `put_vars stride 10, 512 MB`.
pub(crate) const MOST_WRITE_RANGES: usize = 4096;

/// One part in this many of the pages is written back together before it has to leave. Rows: `put_vara 64 random, 512 MB`.
pub(crate) const CLEANED_PART: u64 = 8;

/// Complete pages are written when there are this many bytes of them: a system call costs little beside that, and the
/// second-level cache holds it. Rows: `history 197 MB, ..., write`.
pub(crate) const COMPLETE_RUN_BYTES: u64 = 256 << 10;

/// The same where each call takes long. Rows: `500 MB/s, 100 us: history 22 MB, ..., write`.
pub(crate) const SLOW_RUN_BYTES: u64 = 1 << 20;

/// The most that a thread writes by one call: who needs a page of it waits as long. Rows: `history 1576 MB, ..., write`.
pub(crate) const THREAD_RUN_BYTES: u64 = 4 << 20;

/// At the beginning of a file this many complete pages are enough: the file may be a small one, and memory that is not
/// touched costs nothing. Rows: `history 22 MB, ..., write`.
pub(crate) const COMPLETE_RUN_PAGES: u64 = 4;

/// Where each call takes long, writes of this many bytes or more go straight to what is below: shorter ones are left to the
/// thread. Rows: `500 MB/s, 100 us: history 22 MB, ..., write`.
pub(crate) const SLOW_STRAIGHT_BYTES: u64 = 4 << 20;

/// With more bytes than this waiting to be written, what is put is out of the processor's cache before it leaves, and is
/// copied past it. Rows: `history 1576 MB, ..., random, write`.
pub(crate) const PAST_CACHE_BYTES: u64 = 4 << 20;

/// Pieces of fewer bytes are not copied past the processor's cache: nothing is gained over a plain copy. Rows:
/// `put_vara 64 sequential, 512 MB`.
pub(crate) const PAST_CACHE_LEAST_BYTES: usize = 256;

/// A program that has written this many bytes in order is expected to go on, so that a thread writes them. Rows:
/// `history 1576 MB, ..., sorted, write`.
pub(crate) const LONG_STREAM_BYTES: u64 = 16 << 20;

// Whether a device is slow

/// How long a call may take that the system answers from its memory, whatever else the machine does. Rows: all that begin
/// with `500 MB/s` and `2 GB/s`, and beside them `history ...`, which must not be taken for slow.
pub(crate) const FAST_CALL: Duration = Duration::from_micros(25);

/// Bytes that such a call moves in a nanosecond at least: half of what one core copies. Rows: as above.
pub(crate) const FAST_BYTES_PER_NS: u128 = 2;

/// Calls that move more bytes than this are not judged: most of their time is the transfer. Rows: as above.
pub(crate) const JUDGED_CALL_BYTES: usize = 4 << 20;

/// Calls that move more separate ranges than this are not judged: each of them may be a call of its own. Rows: as above.
pub(crate) const JUDGED_CALL_RANGES: usize = 4;

/// A slow call counts as this many fast ones, so that one now and then is enough to stay slow. Rows: as above.
pub(crate) const SLOW_WEIGHT_CALLS: u32 = 4;

/// From this score on a device is slow: three slow calls together. Rows: as above.
pub(crate) const SLOW_FROM_CALLS: u32 = 12;

/// The most of that score that is remembered. Rows: as above.
pub(crate) const MOST_SLOW_CALLS: u32 = 24;

/// How many calls after a long one are looked at closely. More than what is remembered, so that nothing that counts as slow
/// goes unwatched. Rows: as above.
pub(crate) const WATCHED_CALLS: u32 = 32;

// Threads of caches

/// How long the thread of a cache that met a fork waits before it looks again. No row: a fork during writes is not measured.
pub(crate) const FORK_NAP: Duration = Duration::from_micros(100);

/// How long complete pages that are too few for a large write wait for more. No row: `make stacks` measures `bufa` and `cachea`.
pub(crate) const INCOMPLETE_RUN_WAIT: Duration = Duration::from_millis(5);

/// The same where each call takes long. Rows: `500 MB/s, 100 us: history 22 MB, ..., write`.
pub(crate) const SLOW_INCOMPLETE_RUN_WAIT: Duration = Duration::from_millis(50);

/// How long a thread without work stays: a program whose own threads have ended ends when this one has. No row: the end of a
/// program is not measured.
pub(crate) const THREAD_IDLE: Duration = Duration::from_millis(500);

/// How long a cache that is closed waits at most for a thread that takes pages from it for others. No row: memory is not
/// scarce there.
pub(crate) const LEAVE_WAIT: Duration = Duration::from_secs(1);

// Remote storages

/// Bytes of a read that a remote storage is told of at a time; twice as many are on their way. Ten gigabits a second fill half of it in the
/// 20 ms that a request takes. Rows: `bench/remote.py`.
pub(crate) const TOLD_LOT_BYTES: u64 = 16 << 20;

/// The most ranges that are told at a time: a list of 128 KiB. Rows: `bench/remote.py`.
pub(crate) const TOLD_LOT_RANGES: usize = 8192;

/// How often a writer asks for the lock of a journal or copy that it has just made: a reader that looks at it has the lock for a moment. No row:
/// it decides how long somebody who does not give it back holds up a commit.
pub(crate) const LOCK_TRIES: u32 = 1000;

/// How long it waits in between. No row: as above.
pub(crate) const LOCK_PAUSE: Duration = Duration::from_millis(2);
