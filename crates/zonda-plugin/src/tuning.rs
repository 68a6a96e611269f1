//! Tuning constants: how long a call of a plugin waits for another one.

use std::time::Duration;

/// How often a thread that waits for its turn to call a plugin looks whether another call has ended. No row: no bench calls one
/// plugin from two threads.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Looks at which no call had ended, after which the thread gives up: the plugin waits for something that does not come, such as
/// a thread of its own that waits here. Looks are counted rather than time, so a process that was stopped meanwhile has not
/// waited. No row: as [`LOOK_INTERVAL`].
pub(crate) const MAX_LOOKS: u32 = 60;
