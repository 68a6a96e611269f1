//! Memory for blocks of one length that come and go, such as decoded chunks, without a fault for each of their pages.
//!
//! The kernel clears memory that is new to a process page by page, when each is touched first: for chunks that are kept this took
//! a third of the processor time of reading them (`zonda-chunk/optimization-notes.md`). So blocks are cut from regions, each as
//! large as all before it, which lie on huge pages where the system has them. A block that comes back gives its pages to the system, and
//! the last one of a region all of it: what blocks take is what is out, but for pages at their ends.
//!
//! Small blocks, and where a limit on addresses or locked memory counts what is not used, the program's allocator is better. So [`Blocks::take`]
//! may give nothing. Nobody waits here: a thread may be in the middle of it when another one forks.

mod huge;
#[allow(unsafe_code)]
mod region;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use crate::lock::{Mutex, MutexGuard, Rank};
use crate::os;
use crate::tuning::{
    BLOCK_LOOKS, BLOCK_REGION_PART, FIRST_BLOCKS_BYTES, LARGE_BLOCK_BYTES, LEAST_BLOCK_BYTES,
    MOST_BLOCK_REGION_BYTES,
};
pub use region::Block;
use region::Region;

/// Blocks begin at multiples of this: of a line of memory.
const BLOCK_ALIGN: usize = 64;

/// A pool of blocks of one length. The first megabyte is left to the allocator of the program: most arrays never need more.
#[derive(Debug)]
pub struct Blocks {
    block_bytes: usize,
    /// Bytes that were asked for, as far as that is still of interest.
    asked: AtomicUsize,
    /// Regions that have blocks out. The lock is only tried.
    regions: Mutex<Vec<Weak<Region>>>,
}

impl Blocks {
    /// A pool of blocks of so many bytes; nothing is taken yet.
    #[must_use]
    pub const fn new(block_bytes: usize) -> Blocks {
        Blocks {
            block_bytes,
            asked: AtomicUsize::new(0),
            regions: Mutex::ranked(Rank::Blocks, Vec::new()),
        }
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// A block, where its memory is better had here than from the program's allocator, and the system has it. What comes and goes (not
    /// `stays`) is the allocator's unless it is large: that keeps what it gets back, and the next one finds it there.
    #[must_use]
    pub fn take(&self, stays: bool) -> Option<Block> {
        let least = if stays { LEAST_BLOCK_BYTES } else { LARGE_BLOCK_BYTES };
        if self.block_bytes < least {
            return None;
        }
        let before = self.asked.load(Ordering::Relaxed);
        if before < FIRST_BLOCKS_BYTES {
            self.asked.store(before.saturating_add(self.block_bytes), Ordering::Relaxed);
            if self.block_bytes < LARGE_BLOCK_BYTES {
                return None;
            }
        }
        let block = {
            let mut regions = self.regions()?;
            match Self::taken(&regions) {
                Ok(block) => block,
                Err(total) => {
                    regions.retain(|region| region.strong_count() > 0);
                    regions.try_reserve(1).ok()?;
                    let region = Arc::new(self.region_after(total)?);
                    let block = Block::take(&region)?;
                    regions.push(Arc::downgrade(&region));
                    block
                }
            }
        };
        block.fetch();
        Some(block)
    }

    /// The list, unless others have it for longer than a look at it takes.
    fn regions(&self) -> Option<MutexGuard<'_, Vec<Weak<Region>>>> {
        for _ in 0..BLOCK_LOOKS {
            if let Some(regions) = self.regions.try_lock() {
                return Some(regions);
            }
            std::hint::spin_loop();
        }
        None
    }

    /// A block of a region that is there, the newest first; else the bytes of all of these.
    fn taken(regions: &[Weak<Region>]) -> Result<Block, usize> {
        let mut total = 0;
        for region in regions.iter().rev().filter_map(Weak::upgrade) {
            if let Some(block) = Block::take(&region) {
                return Ok(block);
            }
            total += region.bytes();
        }
        Err(total)
    }

    /// A region that comes after those with so many bytes.
    fn region_after(&self, total: usize) -> Option<Region> {
        let stride = self.block_bytes.checked_next_multiple_of(BLOCK_ALIGN).filter(|&n| n > 0)?;
        let most = MOST_BLOCK_REGION_BYTES.max(total / BLOCK_REGION_PART);
        let wanted = match os::counts_unused_memory() {
            // As if each block were taken from the system by itself.
            true if self.block_bytes >= LARGE_BLOCK_BYTES => 0,
            true => return None,
            false => total.clamp(FIRST_BLOCKS_BYTES, most),
        };
        Region::new(self.block_bytes, stride, (wanted / stride).max(1))
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        let regions = self.regions.get_mut();
        regions.iter().filter_map(Weak::upgrade).for_each(|region| region.end());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const PAGE: usize = 4096;

    fn addresses(block: &Block) -> (usize, usize) {
        let begin = block.as_ptr() as usize;
        (begin, begin + block.len())
    }

    /// How many of the pages that these addresses are in are in memory, and how many there are.
    fn resident(places: &[(usize, usize)]) -> (usize, usize) {
        use std::os::unix::fs::FileExt;
        let pages = std::fs::File::open("/proc/self/pagemap").expect("Linux");
        let all = places.iter().flat_map(|(from, to)| from / PAGE..to.div_ceil(PAGE));
        let is_there = |page: &usize| {
            let mut word = [0; 8];
            pages.read_exact_at(&mut word, *page as u64 * 8).expect("a page");
            u64::from_ne_bytes(word) >> 63 == 1
        };
        let all: HashSet<usize> = all.collect();
        (all.iter().filter(|page| is_there(page)).count(), all.len())
    }

    #[test]
    fn blocks_are_apart_and_keep_what_is_put() {
        for bytes in [65_536usize, 65_537, 80_000, 1_000_000, 3_000_001, 10_000_000] {
            let pool = Blocks::new(bytes);
            let mut all: Vec<Block> = Vec::new();
            let mut little = 0;
            while all.len() < 200 && all.len() * bytes < 60_000_000 {
                match pool.take(true) {
                    Some(block) => all.push(block),
                    None => little += bytes,
                }
                assert!(little <= FIRST_BLOCKS_BYTES + bytes, "{bytes}");
            }
            for (number, block) in all.iter_mut().enumerate() {
                assert_eq!((block.len(), block.as_ptr() as usize % BLOCK_ALIGN), (bytes, 0));
                block.fill(number as u8);
            }
            let mut places: Vec<_> = all.iter().map(addresses).collect();
            places.sort_unstable();
            assert!(places.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{bytes}");
            for (number, block) in all.iter().enumerate() {
                assert!(block.iter().all(|&byte| byte == number as u8), "{bytes}");
            }
        }
    }

    #[test]
    fn what_came_back_goes_out_again() {
        let pool = Blocks::new(100_000);
        let mut all: Vec<Block> =
            std::iter::repeat_with(|| pool.take(true)).flatten().take(300).collect();
        let places: HashSet<_> = all.iter().map(addresses).collect();
        for _ in 0..1000 {
            let block = all.swap_remove(7);
            drop(block);
            all.push(pool.take(true).expect("memory"));
        }
        // A region has room for more than are out.
        let after: HashSet<_> = all.iter().map(addresses).collect();
        assert!(after.difference(&places).count() < 300);
        let regions = pool.regions.lock().len();
        assert!(regions < 10, "{regions}");
    }

    #[test]
    fn small_blocks_are_the_allocators() {
        for bytes in [0, 1, 2048, LEAST_BLOCK_BYTES - 1] {
            let pool = Blocks::new(bytes);
            assert!((0..2000).all(|_| pool.take(true).is_none()));
        }
    }

    #[test]
    fn what_comes_and_goes_is_the_allocators_unless_it_is_large() {
        let (small, large) = (Blocks::new(LARGE_BLOCK_BYTES - 1), Blocks::new(LARGE_BLOCK_BYTES));
        assert!((0..10).all(|_| small.take(false).is_none()));
        assert!((0..10).all(|_| large.take(false).is_some()));
    }

    #[test]
    fn nobody_waits_for_the_list() {
        let pool = Blocks::new(2_000_000);
        let held = pool.regions.lock();
        assert!(pool.take(true).is_none());
        drop(held);
        assert!(pool.take(true).is_some());
    }

    #[test]
    fn memory_goes_back_to_the_system() {
        let (bytes, n) = (1_300_000, 60);
        let pool = Blocks::new(bytes);
        let mut all: Vec<Block> =
            std::iter::repeat_with(|| pool.take(true)).flatten().take(n).collect();
        all.iter_mut().for_each(|block| block.fill(1));
        let places: Vec<_> = all.iter().map(addresses).collect();
        let (full, pages) = resident(&places);
        assert_eq!(full, pages);
        // Every other one.
        let mut number = 0;
        all.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        let (half, _) = resident(&places);
        assert!(half * 8 < pages * 5, "{half} of {pages}");
        assert!(all.iter().all(|block| block.iter().all(|&byte| byte == 1)));
        drop(all);
        let regions: Vec<_> = pool.regions.lock().clone();
        assert!(regions.iter().all(|region| region.strong_count() == 0));
    }

    #[test]
    fn blocks_outlive_their_pool() {
        let pool = Blocks::new(2_000_000);
        let mut block = pool.take(true).expect("memory");
        drop(pool);
        block.fill(3);
        assert!(block.iter().all(|&byte| byte == 3));
    }

    #[test]
    fn no_region_has_room_for_some() {
        assert!(Blocks::new(isize::MAX as usize).take(true).is_none());
        assert!(Blocks::new(usize::MAX).take(true).is_none());
        assert!(Blocks::new(1 << 55).take(true).is_none());
    }

    #[test]
    fn threads_never_have_one_block() {
        let pool = Blocks::new(70_000);
        let out = Mutex::ranked(Rank::Failed, HashSet::new());
        std::thread::scope(|scope| {
            for seed in 1..5u64 {
                let (pool, out) = (&pool, &out);
                scope.spawn(move || {
                    let (mut mine, mut draw) = (Vec::new(), seed);
                    for _ in 0..3000 {
                        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed);
                        if draw >> 63 == 0 && mine.len() < 60 {
                            let Some(mut block) = pool.take(true) else { continue };
                            assert!(out.lock().insert(addresses(&block)));
                            block[..8].copy_from_slice(&draw.to_ne_bytes());
                            mine.push((block, draw));
                        } else if let Some((block, draw)) = mine.pop() {
                            assert_eq!(block[..8], draw.to_ne_bytes());
                            assert!(out.lock().remove(&addresses(&block)));
                        }
                    }
                    out.lock().retain(|at| !mine.iter().any(|(b, _)| addresses(b) == *at));
                });
            }
        });
    }
}
