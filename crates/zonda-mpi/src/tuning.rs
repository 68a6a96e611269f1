//! Tuning constants: sizes of messages, and how a rank waits for others.

use std::time::Duration;

/// Bytes of one operation, of any MPI: well below 2^31. The functions that count in 64 bits (`MPI_Ibcast_c`, ...) are not used: Open MPI has
/// none before version 6, and in MPICH 4.0.2 steps of 2.25 GiB by them (which of the functions is not known) end with "Invalid communicator" on
/// one rank and never on the other.
pub(crate) const ROUND_BYTES: usize = 1 << 30;

/// Bytes of the first part of a broadcast, which carries the length: what is no longer needs no second one. MPIs send this much at
/// once ("eagerly").
pub(crate) const FIRST_BYTES: usize = 512;

/// Bytes of the message that begins what one rank sends another in an exchange; short messages are wholly in it. As
/// [`FIRST_BYTES`].
pub(crate) const HEADING_BYTES: usize = 512;

/// Bytes of one operation that carries a message of an exchange. Who has no memory for a message takes it in such parts, which it drops; for one of them there
/// is memory, since it was taken before.
pub(crate) const PART_BYTES: usize = 256 << 10;

/// Tests, one right after the other, with which a wait begins: some microseconds, within which ranks with a processor each
/// answer.
pub(crate) const SPINS: u32 = 200;

/// The same where a node has more ranks than processors: who is waited for may need this very processor.
pub(crate) const SPINS_CROWDED: u32 = 2;

/// Tests after which the processor is given to who else wants it, before the first sleep. Reductions of 8 ranks on 2 processors with
/// MPICH 4.0.2 and 5.0.2: 70 microseconds, with 50 of them 600, since ranks that sleep are not there at the next stage. Beside other
/// programs that want the processors, 500 and 600, and with 1,000 of them 2,000. Open MPI: 40 to 80 in all cases.
pub(crate) const YIELDS: u32 = 200;

/// The first sleep. The system makes it some 50 microseconds longer.
pub(crate) const FIRST_SLEEP: Duration = Duration::from_micros(1);

/// The longest sleep: what a rank that others have waited for may be held up by at each stage of an operation.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// How much longer each sleep is than the last one, in per cent: so it is about a twentieth of the wait until then. An operation has
/// stages, and a rank that sleeps through one holds up all others: with sleeps of a fifth of the wait (125), a reduction of 8 ranks on 2
/// processors takes 5 ms with MPICH 4.0.2 and 5.0.2, with this 0.55 ms; Open MPI does not notice.
pub(crate) const SLEEP_GROWTH: u32 = 105;

/// How often a line says that a rank waits. No row: it is for people.
pub(crate) const SAY_EVERY: Duration = Duration::from_secs(60);
