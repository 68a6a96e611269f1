//! Numbers that only speed and memory depend on. How they were found: docs/dev/remote.md.

use std::time::Duration;

/// Bytes of the first request, which brings the beginning of the object: the whole header of most files.
pub(crate) const HEAD_BYTES: usize = 256 << 10;

/// What is read where nobody told anything before, is read in blocks of so many bytes: a block takes little longer than a byte.
pub(crate) const BLOCK_BYTES: u64 = 64 << 10;

/// Reads that follow each other without being told before: no more than so many bytes are read ahead of them.
pub(crate) const MOST_AHEAD_BYTES: u64 = 1 << 20;

/// The same for reads that were told, each of which goes on where the one before ended.
pub(crate) const MOST_AHEAD_TOLD_BYTES: u64 = 960 << 10;

/// A stream has to have had so many times the bytes that are read ahead of it.
pub(crate) const AHEAD_PART: u64 = 4;

/// Requests of one file at the same time.
pub(crate) const MOST_REQUESTS: usize = 8;

/// Requests of the process at the same time; more wait.
pub(crate) const MOST_FETCH_THREADS: usize = 32;

/// The least and the most bytes of a part of a long range.
pub(crate) const LEAST_PART_BYTES: u64 = 512 << 10;
pub(crate) const MOST_PART_BYTES: u64 = 4 << 20;

/// Bytes between two ranges that are fetched with them: one in so many of all bytes that were wanted, and so many more.
pub(crate) const WASTE_PART: u64 = 32;
pub(crate) const WASTE_BYTES: u64 = 384 << 10;

/// More of them are fetched where that takes no more than one part in so many of the time: records of one variable among those of others.
pub(crate) const WORTH_WASTE: f64 = 4.0;

/// The longest gap between two ranges that is ever fetched.
pub(crate) const MOST_GAP_BYTES: u64 = 256 << 10;

/// Latency and bytes a second that are taken for true before anything was measured.
pub(crate) const FIRST_LATENCY: Duration = Duration::from_millis(20);
pub(crate) const FIRST_RATE: f64 = 50e6;

/// What one file keeps of what it fetched: the part of the process's memory, and the most.
pub(crate) const KEPT_PART: u64 = 8;
pub(crate) const MOST_KEPT_BYTES: u64 = 64 << 20;

/// The least that a file may have under way, however little memory there is.
pub(crate) const LEAST_KEPT_BYTES: u64 = 8 << 20;

/// Bytes of parts on a disk where the setting does not say, and how much of the limit is left when some have to go, in percent.
pub(crate) const DISK_BYTES: u64 = 1 << 30;
pub(crate) const DISK_KEPT_PERCENT: u64 = 80;

/// A longer part is neither made nor read: requests are for no more than this.
pub(crate) const MOST_KEPT_PART_BYTES: u64 = 2 * MOST_PART_BYTES;
