//! Where what is in the shared memory. All numbers are native words of 64 bits: both processes run on
//! one machine.
//!
//! | Bytes | What |
//! |---|---|
//! | 0 to 63 | [`MAGIC`], number of slots, where blocks begin, bytes of all |
//! | 64 each | slots: one for each block, as below |
//! | the rest | blocks |
//!
//! A block has values from its beginning on, and records from its end backwards. A record is words; the
//! last of them is their number, that one included. The number of words of all records is stored last,
//! so that what a killed process left half written is not there.

/// First word; it changes with the layout.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"zonda\0\0\x01");
/// Bytes of the head, and of each slot.
pub(crate) const SLOT: usize = 64;
/// Blocks that there may be at a time.
pub(crate) const SLOTS: usize = 16 << 10;
/// Where blocks begin.
pub(crate) const BLOCKS_AT: usize = SLOT + SLOTS * SLOT;
/// Bytes of a word.
pub(crate) const WORD: usize = size_of::<u64>();
/// Blocks begin and end at multiples of it: a line of the cache.
pub(crate) const STEP: usize = 64;

/// Words of a slot.
pub(crate) mod slot {
    /// 1 where the block counts, else 0. Written last.
    pub(crate) const IS_LIVE: usize = 0;
    /// Whose it is.
    pub(crate) const OWNER: usize = 1;
    /// Its place among those of its owner.
    pub(crate) const NUMBER: usize = 2;
    /// Its first byte, counted from the beginning of the memory.
    pub(crate) const AT: usize = 3;
    /// Its bytes.
    pub(crate) const CAPACITY: usize = 4;
    /// Words of its records.
    pub(crate) const WORDS: usize = 5;
}
