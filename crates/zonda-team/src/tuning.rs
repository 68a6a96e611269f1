//! Numbers that change how long something takes or how much of it is said, and not what comes of it. Each says its unit and
//! its reason.

use std::time::Duration;

/// How long a rank of a simulated team waits before it says for whom, and between one such line and the next. A step of a
/// healthy team takes less; a user who looks at a program that stands still looks for about this long.
pub(crate) const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Bytes of the stack of a simulated rank. A thousand of them then reserve half a GiB of addresses, of which they use what they
/// touch; calls of the library in a debug build need a quarter of it.
pub(crate) const STACK_BYTES: usize = 512 << 10;

/// Ranks of a simulated team: one thread each. More would measure the scheduler; the model says what becomes of more ranks.
pub(crate) const MOST_RANKS: usize = 1024;

/// Runs of ranks that a report names before it says how many there are besides. A line that a person can read.
pub(crate) const MOST_NAMED_RUNS: usize = 8;

/// Bytes of a description that ranks send each other when they disagree. It becomes a part of one line of an error; with this many
/// of 32,768 ranks, rank 0 gathers at most 32 MiB.
pub(crate) const MOST_DESCRIPTION_BYTES: usize = 1024;

/// Bytes that all ranks tell all others by a reduction, at most; more go by a gather and a broadcast. A reduction carries all of them in each of its rounds, and
/// so many are sent in the time of a message. Row: `deflate` with 8 ranks of `bench/parallel.py`.
pub(crate) const TELL_BY_REDUCTION_BYTES: usize = 4096;

/// How often a line says that a rank of a real team waits. No row: it is for people.
pub(crate) const SAY_EVERY: Duration = Duration::from_secs(60);

/// What counts of the time between two looks: a process that was stopped meanwhile has not waited for others. No row: as [`SAY_EVERY`].
pub(crate) const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// How many ranks such a line names. No row: as [`SAY_EVERY`].
pub(crate) const RANKS_NAMED: usize = 16;

/// Names of teams that were here, of which late words are dropped. Such words come at most as late as a process was stopped meanwhile; a name takes some 50 bytes.
pub(crate) const MOST_OVER: usize = 16 << 10;

/// Bytes that a member reads at once from another one: as many as a socket holds.
pub(crate) const PEER_BUFFER_BYTES: usize = 64 << 10;
