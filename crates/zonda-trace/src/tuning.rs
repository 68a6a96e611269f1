//! Numbers that change what a trace costs, and not what it says. Each says its unit, its reason, and which rows of `bench/run.py`
//! change with it.

/// Bytes of the buffer of a thread, less what does not make an event. No row: as `HAND_OVER_TICKS`.
pub(crate) const BUFFER_BYTES: usize = 64 << 10;

/// Ticks of the clock after which a thread hands its events over though its buffer is not full, so that little is lost when the
/// process is killed: about a second of a processor's counter, or less. No row: `make bench` records no trace;
/// `bench/trace.py` and `cargo bench -p zonda-trace` show what an event costs.
pub(crate) const HAND_OVER_TICKS: u64 =
    if cfg!(target_arch = "x86_64") { 1 << 31 } else { 1 << 27 };

/// How many names and variables a thread remembers the numbers of without a lock. A power of two. No row: as above.
pub(crate) const KNOWN_NAMES: usize = 64;

/// Bytes of names that are kept in memory at most; what comes later shows as numbers. No row: as above.
pub(crate) const MOST_NAMES_BYTES: usize = 16 << 20;
