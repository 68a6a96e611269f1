//! Tuning constants: numbers that change how fast something is, and not what it does.

/// Bytes of values that are converted at once: what fits the first-level cache with the result.
pub(crate) const CONVERTED_BLOCK_BYTES: usize = 16 << 10;
