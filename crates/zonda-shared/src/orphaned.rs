//! What a process that has ended left in the memory.
//!
//! It is read, not mapped: whatever a third process does to it meanwhile, what was read stays.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use crate::layout::{BLOCKS_AT, MAGIC, SLOT, SLOTS, WORD, slot};

/// The memory of another process.
#[derive(Debug)]
pub struct OrphanedMemory {
    file: File,
    len: usize,
}

/// A block that counted when the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrphanedBlock {
    /// Whose it is.
    pub owner: u64,
    /// Its place among those of the owner.
    pub number: u64,
    at: usize,
    capacity: usize,
    words: usize,
}

impl OrphanedMemory {
    /// # Errors
    /// `InvalidData` for what is no such memory; what the system says.
    pub fn of(fd: OwnedFd) -> io::Result<OrphanedMemory> {
        let file = File::from(fd);
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        let mut head = [0; 4 * WORD];
        file.read_exact_at(&mut head, 0)?;
        let expected = [MAGIC, SLOTS as u64, BLOCKS_AT as u64, len as u64];
        let is_ours = words(&head).eq(expected);
        if is_ours {
            Ok(OrphanedMemory { file, len })
        } else {
            Err(damaged("no memory of this version"))
        }
    }

    /// The blocks that count, by owner and number. What does not fit the memory is left out.
    #[must_use]
    pub fn blocks(&self) -> Vec<OrphanedBlock> {
        let mut table = vec![0; SLOTS * SLOT];
        if self.file.read_exact_at(&mut table, SLOT as u64).is_err() {
            return Vec::new();
        }
        let blocks = table.chunks_exact(SLOT).filter_map(|bytes| {
            let words: Vec<u64> = words(bytes).collect();
            let word = |number: usize| words.get(number).copied().unwrap_or(0);
            let size = |number: usize| usize::try_from(word(number)).ok();
            let block = OrphanedBlock {
                owner: word(slot::OWNER),
                number: word(slot::NUMBER),
                at: size(slot::AT)?,
                capacity: size(slot::CAPACITY)?,
                words: size(slot::WORDS)?,
            };
            let end = block.at.checked_add(block.capacity)?;
            let fits = block.at >= BLOCKS_AT && end <= self.len;
            let has_room = block.words.checked_mul(WORD)? <= block.capacity;
            (word(slot::IS_LIVE) == 1 && fits && has_room).then_some(block)
        });
        let mut blocks: Vec<OrphanedBlock> = blocks.collect();
        zonda_runtime::sort::sort_by_key(&mut blocks, |block| (block.owner, block.number));
        blocks
    }

    /// The bytes of a block, and its records in the order in which they were added.
    ///
    /// # Errors
    /// `InvalidData` for records that do not fit; what the system says.
    pub fn read(&self, block: &OrphanedBlock) -> io::Result<(Vec<u8>, Vec<Vec<u64>>)> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(block.capacity).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(block.capacity, 0);
        self.file.read_exact_at(&mut bytes, block.at as u64)?;
        let wrong = || damaged("records that do not fit their block");
        let at = block.capacity.checked_sub(block.words * WORD).ok_or_else(wrong)?;
        let mut rest: Vec<u64> = words(bytes.get(at..).unwrap_or_default()).collect();
        let mut records = Vec::new();
        while let Some(count) = rest.pop() {
            let n = usize::try_from(count).ok().and_then(|count| count.checked_sub(1));
            let from = n.and_then(|n| rest.len().checked_sub(n)).ok_or_else(wrong)?;
            records.push(rest.split_off(from));
        }
        Ok((bytes, records))
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    bytes.chunks_exact(WORD).map(word)
}

fn damaged(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
