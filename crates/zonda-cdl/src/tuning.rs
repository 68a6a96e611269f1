//! Numbers that change how fast this crate is, or how much memory it takes, and not what it makes.
//!
//! Rows are those of `bench/tools.py`.

// Reading the text
/// Bytes: a text that can be read only once, as from a pipe, is kept in memory below this length,
/// and otherwise in a temporary file, so that memory does not grow with the text. No row: the
/// rows read files.
pub(crate) const TEXT_IN_MEMORY_BYTES: u64 = 64 << 20;

/// Bytes of the text that the lexer reads at a time: few calls, within the second-level cache.
/// Row: `ncgen -k nc6, int in rows of 4`.
pub(crate) const CURSOR_BLOCK_BYTES: usize = 256 << 10;

/// Bytes of the text that are read at a time to find the line of an error. No row: errors are
/// rare.
pub(crate) const FAULT_BLOCK_BYTES: usize = 64 << 10;

// Data
/// Bytes of the text that a thread parses at a time: long enough that starting threads costs
/// nothing. Row: `ncgen -k nc6, float in rows of 1000`.
pub(crate) const PARSED_PART_BYTES: usize = 2 << 20;

/// The most threads that parse numbers. More do not pay, because one thread writes the values.
/// Row: `ncgen -k nc6, double in rows of 1000`.
pub(crate) const MOST_PARSER_THREADS: usize = 8;

/// Bytes of the longest number that the fast reader takes; the general grammar reads longer ones.
/// No row: numbers in files are shorter.
pub(crate) const FAST_NUMBER_BYTES: usize = 512;

/// Bytes of values that are collected before they are put: long writes, in bounded memory. Row:
/// `ncgen -k nc4, float in rows of 1000`.
pub(crate) const PUT_BLOCK_BYTES: usize = 4 << 20;
