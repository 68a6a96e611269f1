//! Memory with blocks, as the process that fills it has it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zonda_runtime::lock::{Mutex, MutexGuard, Rank};

use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::channel::behind_standard;

use crate::layout::{BLOCKS_AT, MAGIC, SLOT, SLOTS, STEP, WORD, slot};

/// Shared memory of a fixed size, of which blocks are taken. Pages that nobody wrote to take no memory.
#[derive(Debug)]
pub struct Arena {
    map: MmapRaw,
    fd: OwnedFd,
    /// The process that may change it: a forked child has the same memory.
    pid: u32,
    capacity: usize,
    free: Mutex<FreeSpace>,
}

#[derive(Debug)]
struct FreeSpace {
    /// Gaps by their first byte.
    gaps: BTreeMap<usize, usize>,
    slots: Vec<usize>,
}

impl Arena {
    /// Memory for blocks of so many bytes together.
    ///
    /// # Errors
    /// What the system says if it has none.
    pub fn new(capacity: usize) -> io::Result<Arc<Arena>> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let capacity = capacity.checked_next_multiple_of(STEP).ok_or_else(too_large)?;
        let len = capacity.checked_add(BLOCKS_AT).ok_or_else(too_large)?;
        // The system ends a program (`SIGXFSZ`) that makes a file longer than it may, this one as well.
        if getrlimit(Resource::Fsize).current.is_some_and(|most| most < len as u64) {
            return Err(Errno::FBIG.into());
        }
        let fd = memfd_create("zonda", MemfdFlags::CLOEXEC)?;
        let fd = behind_standard(fd)?;
        ftruncate(&fd, len as u64)?;
        let map = MmapRaw::map_raw(&fd)?;
        let gaps = BTreeMap::from([(BLOCKS_AT, capacity)]);
        let free =
            Mutex::ranked(Rank::Arena, FreeSpace { gaps, slots: (0..SLOTS).rev().collect() });
        let arena = Arena { map, fd, pid: zonda_runtime::fork::process_id(), capacity, free };
        let head = [MAGIC, SLOTS as u64, BLOCKS_AT as u64, len as u64];
        for (number, value) in head.into_iter().enumerate() {
            arena.word(number * WORD).store(value, Ordering::Relaxed);
        }
        Ok(Arc::new(arena))
    }

    /// What another process needs to see it.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Bytes of all blocks together at most.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether a block of so many bytes can be taken.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        let Some(bytes) = rounded(bytes) else { return false };
        let free = self.lock();
        !free.slots.is_empty() && free.gaps.values().any(|&len| len >= bytes)
    }

    /// Whether all blocks were given back.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.lock().slots.len() == SLOTS
    }

    /// Takes an empty block; `None` where there is no room now.
    pub fn take(self: &Arc<Arena>, bytes: usize) -> Option<Block> {
        let capacity = rounded(bytes)?;
        if self.pid != zonda_runtime::fork::process_id() {
            return None;
        }
        let mut free = self.lock();
        let slot = free.slots.pop()?;
        let Some((&at, &len)) = free.gaps.iter().find(|(_, len)| **len >= capacity) else {
            free.slots.push(slot);
            return None;
        };
        free.gaps.remove(&at);
        if len > capacity {
            free.gaps.insert(at + capacity, len - capacity);
        }
        drop(free);
        Some(Block { arena: Arc::clone(self), slot, at, capacity, len: 0, tail: 0 })
    }

    fn give_back(&self, block: &Block) {
        let mut free = self.lock();
        let (mut at, mut len) = (block.at, block.capacity);
        if let Some((&before, &its_len)) = free.gaps.range(..at).next_back()
            && before + its_len == at
        {
            free.gaps.remove(&before);
            (at, len) = (before, its_len + len);
        }
        if let Some(its_len) = free.gaps.remove(&(at + len)) {
            len += its_len;
        }
        free.gaps.insert(at, len);
        free.slots.push(block.slot);
    }

    fn lock(&self) -> MutexGuard<'_, FreeSpace> {
        self.free.lock()
    }

    /// A word, for both processes.
    #[expect(unsafe_code, reason = "memory that another process sees")]
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(
            at.is_multiple_of(WORD) && at <= self.map.len() - WORD,
            "a word outside of the memory"
        );
        // SAFETY: inside of the mapping and aligned, as was just checked; the mapping lives as long as
        // the reference; words of the head and of slots are reached in this way only, and by other
        // processes not by references at all.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    fn slot_word(&self, slot: usize, word: usize) -> &AtomicU64 {
        self.word(SLOT + slot * SLOT + word * WORD)
    }
}

/// Bytes that a block of at least so many takes.
fn rounded(bytes: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(STEP)
}

/// A block has no room for what it was to take, and is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// A piece of the memory that is its holder's alone, until it is dropped.
#[derive(Debug)]
pub struct Block {
    arena: Arc<Arena>,
    slot: usize,
    at: usize,
    capacity: usize,
    /// Bytes of values.
    len: usize,
    /// Bytes of records.
    tail: usize,
}

impl Block {
    /// Bytes that values and records may take together.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The values.
    #[must_use]
    pub fn values(&self) -> &[u8] {
        self.all().get(..self.len).unwrap_or_default()
    }

    /// Room for so many bytes of values behind those that are there.
    ///
    /// # Errors
    /// [`NoRoom`] where less is left than that.
    pub fn grow(&mut self, bytes: usize) -> Result<&mut [u8], NoRoom> {
        if bytes > self.left() {
            return Err(NoRoom);
        }
        let from = self.len;
        self.len += bytes;
        let to = self.len;
        self.all_mut().get_mut(from..to).ok_or(NoRoom)
    }

    /// Bytes that neither values nor records have.
    fn left(&self) -> usize {
        self.capacity - self.tail - self.len
    }

    /// Bytes that [`Block::record`] takes for so many words: one more says how many there are.
    #[must_use]
    pub const fn record_bytes(n_words: usize) -> usize {
        n_words.saturating_add(1).saturating_mul(WORD)
    }

    /// Lets it count from now on, for an owner, at a place among the owner's blocks.
    pub fn begin(&mut self, owner: u64, number: u64) {
        let words = [
            (slot::OWNER, owner),
            (slot::NUMBER, number),
            (slot::AT, self.at as u64),
            (slot::CAPACITY, self.capacity as u64),
            (slot::WORDS, (self.tail / WORD) as u64),
        ];
        for (word, value) in words {
            self.arena.slot_word(self.slot, word).store(value, Ordering::Relaxed);
        }
        self.arena.slot_word(self.slot, slot::IS_LIVE).store(1, Ordering::Release);
    }

    /// Adds a record of what the values are. From now on it is there, whatever happens to the process.
    ///
    /// # Errors
    /// [`NoRoom`] where less is left than [`Block::record_bytes`]: then there is no such record.
    pub fn record(&mut self, words: &[u64]) -> Result<(), NoRoom> {
        let bytes = Block::record_bytes(words.len());
        if bytes > self.left() {
            return Err(NoRoom);
        }
        let at = self.capacity - self.tail - bytes;
        let count = words.len() as u64 + 1;
        let room = self.all_mut().get_mut(at..at + bytes).ok_or(NoRoom)?;
        for (to, word) in room.chunks_exact_mut(WORD).zip(words.iter().chain([&count])) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        self.tail += bytes;
        let n_words = (self.tail / WORD) as u64;
        self.arena.slot_word(self.slot, slot::WORDS).store(n_words, Ordering::Release);
        Ok(())
    }

    #[expect(unsafe_code, reason = "memory that another process sees")]
    fn all(&self) -> &[u8] {
        // SAFETY: the arena keeps the range for this block alone, and inside of the mapping, which
        // lives as long as the block; it is initialised, as all of a new file; nobody else changes it
        // in this process, where changes need the block mutably, and in another one nobody writes.
        unsafe { std::slice::from_raw_parts(self.arena.map.as_ptr().add(self.at), self.capacity) }
    }

    #[expect(unsafe_code, reason = "memory that another process sees")]
    fn all_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `all`; the block is borrowed mutably, so there is no other reference to it.
        unsafe {
            std::slice::from_raw_parts_mut(self.arena.map.as_mut_ptr().add(self.at), self.capacity)
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // What a forked child drops is still its parent's.
        if self.arena.pid == zonda_runtime::fork::process_id() {
            self.arena.slot_word(self.slot, slot::IS_LIVE).store(0, Ordering::Release);
            self.arena.give_back(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OrphanedMemory;

    /// Owner, number, bytes and records of a block.
    type Found = (u64, u64, Vec<u8>, Vec<Vec<u64>>);

    fn left(arena: &Arena) -> Vec<Found> {
        let left = OrphanedMemory::of(arena.fd().try_clone_to_owned().unwrap()).unwrap();
        let blocks = left.blocks().into_iter().map(|block| {
            let (bytes, records) = left.read(&block).unwrap();
            (block.owner, block.number, bytes, records)
        });
        blocks.collect()
    }

    #[test]
    fn what_is_recorded_is_left() {
        let arena = Arena::new(1 << 20).unwrap();
        let mut one = arena.take(100).unwrap();
        one.grow(3).unwrap().copy_from_slice(b"abc");
        one.record(&[7]).unwrap();
        assert!(left(&arena).is_empty(), "it does not count yet");
        one.begin(5, 1);
        let mut two = arena.take(1000).unwrap();
        two.begin(5, 0);
        two.grow(2).unwrap().copy_from_slice(b"xy");
        two.record(&[1, 2, 3]).unwrap();
        two.record(&[]).unwrap();
        let found = left(&arena);
        // Records are in order, blocks by owner and number.
        assert_eq!((found[0].0, found[0].1, &found[0].2[..2]), (5, 0, &b"xy"[..]));
        assert_eq!(found[0].3, [vec![1, 2, 3], vec![]]);
        assert_eq!((found[1].1, &found[1].2[..3]), (1, &b"abc"[..]));
        assert_eq!(found[1].3, [vec![7]]);
        drop(two);
        assert_eq!(left(&arena).len(), 1);
        drop(one);
        assert!(left(&arena).is_empty() && arena.is_unused());
    }

    #[test]
    fn no_block_overlaps_another_and_all_room_comes_back() {
        let arena = Arena::new(64 * 100).unwrap();
        let mut held: Vec<(Block, u8)> = Vec::new();
        let mut rng = fastrand::Rng::with_seed(1);
        for step in 0..5000u32 {
            let pick = rng.usize(..);
            if !pick.is_multiple_of(3)
                && let Some(mut block) = arena.take(pick % 700)
            {
                let mark = step as u8;
                let n = block.capacity();
                block.grow(n).unwrap().fill(mark);
                assert!(block.grow(1).is_err() && block.record(&[]).is_err());
                held.push((block, mark));
            } else if !held.is_empty() {
                let (block, mark) = held.swap_remove(pick % held.len());
                assert!(block.values().iter().all(|byte| *byte == mark));
            }
        }
        held.clear();
        assert!(arena.has_room(64 * 100) && !arena.has_room(64 * 100 + 1));
        assert!(arena.take(usize::MAX).is_none());
    }

    #[test]
    fn what_finds_no_room_changes_nothing() {
        let arena = Arena::new(4096).unwrap();
        // Records that just fit behind values of any length, and that just do not.
        for values in (0..=248).step_by(8).chain([1, 247, 249]) {
            let most = (256 - values) / 8_usize;
            for n_words in most.saturating_sub(2)..=most {
                let mut block = arena.take(256).unwrap();
                block.begin(1, 1);
                block.grow(values).unwrap().fill(7);
                let words = vec![5; n_words];
                let fits = values + Block::record_bytes(n_words) <= 256;
                assert_eq!(block.record(&words).is_ok(), fits, "{values} {n_words}");
                let found = left(&arena);
                assert_eq!(found[0].3, if fits { vec![words] } else { Vec::new() });
                assert_eq!(block.grow(257), Err(NoRoom));
                assert_eq!(block.values(), vec![7; values]);
            }
        }
    }

    #[test]
    fn damaged_slots_are_left_out() {
        let arena = Arena::new(4096).unwrap();
        let mut block = arena.take(256).unwrap();
        block.begin(1, 1);
        block.record(&[1]).unwrap();
        for (word, value) in [
            (slot::AT, u64::MAX),
            (slot::AT, 0),
            (slot::CAPACITY, u64::MAX - 5),
            (slot::CAPACITY, 1 << 20),
            (slot::WORDS, u64::MAX),
            (slot::WORDS, 64),
        ] {
            let word = arena.slot_word(block.slot, word);
            let before = word.swap(value, Ordering::Relaxed);
            assert!(left(&arena).is_empty());
            word.store(before, Ordering::Relaxed);
        }
        let at = block.capacity - WORD;
        for count in [0, 3, u64::MAX] {
            block.all_mut()[at..].copy_from_slice(&count.to_ne_bytes());
            let left = OrphanedMemory::of(arena.fd().try_clone_to_owned().unwrap()).unwrap();
            assert!(left.read(&left.blocks()[0]).is_err(), "{count}");
        }
    }
}
