//! Tuning constants: numbers that change how fast elements are converted, and not what they become.
//!
//! Each says its reason, and which bench shows a change: rows of `bench/run.py`, and the crate's own `bench_convert`.

/// Elements between two tests of the out-of-range flag. A flagged block is still in the first-level cache when its elements are
/// counted, and the test costs nothing beside the conversion. Rows: "array 64 MB, short <- float, write"; `bench_convert`.
pub(crate) const KERNEL_BLOCK_ELEMS: usize = 1024;

/// Elements of the packed block through which elements at a stride go: 1 KiB of the widest type. Rows: "put_vars stride 10,
/// 8 MB"; `bench_convert`.
pub(crate) const STRIDED_BLOCK_ELEMS: usize = 128;
