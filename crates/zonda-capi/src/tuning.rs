//! Numbers that change how fast the C interface is, and not what it does.

use std::time::Duration;

/// Variables of which a thread remembers what the trace needs to know, while a trace is recorded. A power
/// of two, so that a place is found without a division; 16 covers the variables that a loop over time
/// steps writes. No row: only what is traced gets slower where it is too small.
pub(crate) const TRACED_VARS: usize = 16;

/// How often the exiting thread looks whether all files are committed: as much as an exit may last longer
/// than the commits. No row: tests/c/exit_*.c check what is committed, not how long that takes.
pub(crate) const EXIT_STEP: Duration = Duration::from_millis(1);

/// How long an exit waits for the trace to be written, after everything else. No row: nothing is measured
/// after the end of a program.
pub(crate) const EXIT_TRACE_WAIT: Duration = Duration::from_millis(200);

/// Entries that the first push into an `NClist` makes room for: more than ncdump has open groups. No row:
/// only ncdump of the distribution uses these lists.
pub(crate) const NCLIST_FIRST_ENTRIES: usize = 16;
