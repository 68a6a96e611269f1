//! Numbers that only speed and memory depend on. How they were found: docs/dev/opendap.md.

/// Variables of so many elements are asked for whole, and together with what else is asked for: the limit of the reference.
pub(super) const SMALL_ELEMS: u64 = 4096;

/// Bytes of such variables in one request.
pub(super) const MOST_PREFETCH_BYTES: u64 = 256 << 10;

/// Characters of the query of a request for several variables. Servers refuse longer ones from 2,048 on.
pub(super) const MOST_QUERY: usize = 1800;

/// A variable that is read whole is kept if it has no more bytes than this.
pub(super) const MOST_KEPT_VAR_BYTES: u64 = 4 << 20;

/// Bytes of variables that come ahead of being asked for, in one request. Never more than was read in their order before.
pub(super) const MOST_AHEAD_BYTES: u64 = 8 << 20;

/// What a dataset keeps: the part of the process's memory, and the most and least in bytes.
pub(super) const KEPT_PART: u64 = 8;
pub(super) const MOST_KEPT_BYTES: u64 = 64 << 20;
pub(super) const LEAST_KEPT_BYTES: u64 = 1 << 20;

/// The least and the most bytes of each part of a long selection.
pub(super) const LEAST_PART_BYTES: u64 = 8 << 20;
pub(super) const MOST_PART_BYTES: u64 = 64 << 20;

/// Requests of the process at the same time, besides those of the threads that call.
pub(super) const MOST_THREADS: usize = 32;
