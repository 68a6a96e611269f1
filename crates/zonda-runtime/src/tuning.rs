//! Numbers that change how fast something is, and not what it does. Each says its unit, its reason, and which rows of `bench/run.py`
//! (`--list` shows all of them) or another runner of `bench` change with it.

use std::time::Duration;

/// How often a thread of a pool looks for another job before it sleeps: the next call often comes soon, and to wake a thread
/// takes longer than a small chunk. Rows: `bench/reads.py`, `layers, chunks ...`.
pub(crate) const LOOKS_BEFORE_SLEEP: usize = 32;

/// Threads that are woken by who offers work and by each that takes some, at most: to wake one is a system call, so with many threads they wake each
/// other. No row: it takes more cores than the rows have.
pub(crate) const WOKEN_BY_ONE: usize = 2;

/// How long a thread of a pool stays without work: a program whose own threads have all ended has come to its end only when
/// those of the library have ended, too. No row: the end of a program is not measured.
pub(crate) const POOL_THREAD_IDLE: Duration = Duration::from_millis(500);

/// How often a thread looks again for a lock, or for a gate to be empty, that it waits for until a given time. No row: only forks,
/// exits and calls of plugins wait in this way.
pub(crate) const POLL_EVERY: Duration = Duration::from_micros(50);

/// The most memory that is taken unless the user says how much. Rows: `history 1576 MB, ...`.
pub(crate) const MOST_MEMORY_BYTES: u64 = 1 << 30;

/// One part in this many of the memory there is is taken. Rows: as above, on a machine with less than 8 GiB.
pub(crate) const MEMORY_PART: u64 = 8;

/// Threads whose masks of processors are looked at: a program with more has said enough by these. No row: programs with so
/// many threads are not measured.
pub(crate) const MOST_MASKS_THREADS: usize = 512;

/// After this many uses the broker asks all holders again who has something older. No row: memory is not scarce there.
pub(crate) const RELOOK_AFTER_USES: u64 = 1024;

/// The same where no holder had anything to give back: they may have been at work with it. No row: as above.
pub(crate) const RELOOK_AFTER_USES_IF_NONE: u64 = 32;

/// This many bytes are given out before anybody has found out how much memory there is, which takes longer than to change an
/// attribute. Rows: `inq`.
pub(crate) const SMALL_BUDGET_BYTES: u64 = 1 << 20;

/// Moments at which the time of a holder and that of the process were noted together. More make ages more exact. No row:
/// memory is not scarce there.
pub(crate) const REMEMBERED_MOMENTS: usize = 32;

/// Bytes of a pool's blocks that come from the program's allocator, and of its first region. Rows: `bench/reads.py`, `time series, chunks 256x16x16`.
pub(crate) const FIRST_BLOCKS_BYTES: usize = 1 << 20;

/// Bytes of a region of blocks, at most, unless all before it have more than this many times as many. Rows: `bench/reads.py`, `tiles ..., in time`.
pub(crate) const MOST_BLOCK_REGION_BYTES: usize = 64 << 20;

/// A region has at most one part in this many of all before it, beyond that. No row: memory of more than a gigabyte.
pub(crate) const BLOCK_REGION_PART: usize = 8;

/// Bytes of a block from which on it is cut from a region: pages that two blocks share stay in memory, and of smaller ones these are most. Rows: as above.
pub(crate) const LEAST_BLOCK_BYTES: usize = 64 << 10;

/// Bytes of a block from which on even the first one has memory of the system, which gets it back at once. Rows: `layers, chunks 256x128x256`.
pub(crate) const LARGE_BLOCK_BYTES: usize = 1 << 20;

/// Looks at the list of regions before a block comes from the allocator: about as long as another thread has it. No row: threads meet there seldom.
pub(crate) const BLOCK_LOOKS: usize = 1000;

/// Bytes from which on a region lies on huge pages. Rows: as above.
pub(crate) const HUGE_REGION_BYTES: usize = 4 << 20;

/// The first touch of a huge page that takes this long was not worth it: the small ones that it stands for take about as long. Rows: as above.
pub(crate) const SLOW_HUGE_PAGE: Duration = Duration::from_millis(1);
