//! Numbers that change how fast the C interface is, and not what it does.

/// Variables of which a thread remembers what the trace needs to know, while a trace is recorded. A power
/// of two, so that a place is found without a division; 16 covers the variables that a loop over time
/// steps writes. No row: only what is traced gets slower where it is too small.
pub(crate) const TRACED_VARS: usize = 16;
