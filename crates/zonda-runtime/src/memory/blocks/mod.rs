//! Memory for blocks of one length that come and go, such as decoded chunks, without a fault for each of their pages.
//!
//! The kernel clears memory that is new to a process page by page, when each is touched first: for chunks that are kept this took
//! a third of the processor time of reading them (`zonda-chunk/optimization-notes.md`). So blocks are cut from regions, each as
//! large as all before it, which lie on huge pages where the system has them; and a block that came back is the next to go out.
//!
//! Nobody waits here, and no lock is taken: a thread may be in the middle of it when another one forks.

mod huge;
#[allow(unsafe_code)]
mod region;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::Settled;
use crate::tuning::{BLOCK_REGION_PART, FIRST_BLOCKS_BYTES, MOST_BLOCK_REGION_BYTES};
pub use region::Block;
use region::Region;

/// Regions of one pool, at most.
const MOST_REGIONS: usize = 96;
/// Blocks begin at multiples of this: of a line of memory.
const BLOCK_ALIGN: usize = 64;

/// A pool of blocks of one length. The first megabyte is left to the allocator of the program: most arrays never need more.
#[derive(Debug)]
pub struct Blocks {
    block_bytes: usize,
    /// Bytes that were asked for, as far as that is still of interest.
    asked: AtomicUsize,
    pool: Settled<Pool>,
}

/// What there is once a region was needed.
#[derive(Debug)]
struct Pool {
    regions: Box<[Settled<Arc<Region>>]>,
    usage: Arc<Usage>,
}

/// Bytes of a pool's blocks that are out, and of those that came back and are still in memory.
#[derive(Debug, Default)]
struct Usage {
    out: AtomicU64,
    idle: AtomicU64,
    /// The pool is no more: its memory goes with the last block.
    is_over: AtomicBool,
}

impl Blocks {
    /// A pool of blocks of so many bytes; nothing is taken yet.
    #[must_use]
    pub fn new(block_bytes: usize) -> Blocks {
        Blocks { block_bytes, asked: AtomicUsize::new(0), pool: Settled::new() }
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// A block, where its memory is better had here than from the program's allocator, and the system has it.
    #[must_use]
    pub fn take(&self) -> Option<Block> {
        let before = self.asked.load(Ordering::Relaxed);
        if before < FIRST_BLOCKS_BYTES {
            self.asked.store(before.saturating_add(self.block_bytes), Ordering::Relaxed);
            if self.block_bytes < FIRST_BLOCKS_BYTES {
                return None;
            }
        }
        let Pool { regions, usage } = self.pool.get_or_make(|| Pool {
            regions: (0..MOST_REGIONS).map(|_| Settled::new()).collect(),
            usage: Arc::default(),
        });
        let mut total = 0;
        for place in regions {
            let region = match place.get() {
                Some(region) => region,
                None => {
                    let made = Arc::new(self.region_after(total)?);
                    // Where another thread was first, this one goes.
                    place.get_or_make(|| made)
                }
            };
            if let Some(block) = Block::take(region, usage) {
                return Some(block);
            }
            total += region.bytes();
        }
        None
    }

    /// A region that comes after those with so many bytes.
    fn region_after(&self, total: usize) -> Option<Region> {
        let stride = self.block_bytes.checked_next_multiple_of(BLOCK_ALIGN).filter(|&n| n > 0)?;
        let most = MOST_BLOCK_REGION_BYTES.max(total / BLOCK_REGION_PART);
        let n_blocks = (total.clamp(FIRST_BLOCKS_BYTES, most) / stride).max(1);
        Region::new(self.block_bytes, stride, n_blocks)
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.get() {
            pool.usage.is_over.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;

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
        for bytes in [1usize, 63, 64, 65, 5_000, 80_000, 1_000_000, 3_000_001, 10_000_000] {
            let pool = Blocks::new(bytes);
            let mut all: Vec<Block> = Vec::new();
            let mut little = 0;
            while all.len() < 200 && all.len() * bytes < 60_000_000 {
                match pool.take() {
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
            std::iter::repeat_with(|| pool.take()).flatten().take(300).collect();
        let places: HashSet<_> = all.iter().map(addresses).collect();
        for _ in 0..1000 {
            let block = all.swap_remove(7);
            drop(block);
            all.push(pool.take().expect("memory"));
        }
        assert_eq!(places, all.iter().map(addresses).collect());
    }

    #[test]
    fn most_memory_goes_back_to_the_system() {
        let (bytes, n) = (1_300_000, 60);
        let pool = Blocks::new(bytes);
        let mut all: Vec<Block> =
            std::iter::repeat_with(|| pool.take()).flatten().take(n).collect();
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
        // Some stay for whoever comes next, and so do pages that blocks have with their neighbours.
        let (none, _) = resident(&places);
        assert!(none * 6 < pages, "{none} of {pages}");
    }

    #[test]
    fn blocks_outlive_their_pool() {
        let pool = Blocks::new(2_000_000);
        let mut block = pool.take().expect("memory");
        drop(pool);
        block.fill(3);
        assert!(block.iter().all(|&byte| byte == 3));
    }

    #[test]
    fn no_region_has_room_for_some() {
        assert!(Blocks::new(isize::MAX as usize).take().is_none());
        assert!(Blocks::new(usize::MAX).take().is_none());
        assert!(Blocks::new(1 << 55).take().is_none());
    }

    #[test]
    fn threads_never_have_one_block() {
        let pool = Blocks::new(70_000);
        let out = Mutex::new(HashSet::new());
        std::thread::scope(|scope| {
            for seed in 1..5u64 {
                let (pool, out) = (&pool, &out);
                scope.spawn(move || {
                    let (mut mine, mut draw) = (Vec::new(), seed);
                    for _ in 0..3000 {
                        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed);
                        if draw >> 63 == 0 && mine.len() < 60 {
                            let Some(mut block) = pool.take() else { continue };
                            assert!(out.lock().expect("no panic").insert(addresses(&block)));
                            block[..8].copy_from_slice(&draw.to_ne_bytes());
                            mine.push((block, draw));
                        } else if let Some((block, draw)) = mine.pop() {
                            assert_eq!(block[..8], draw.to_ne_bytes());
                            assert!(out.lock().expect("no panic").remove(&addresses(&block)));
                        }
                    }
                    out.lock()
                        .expect("no panic")
                        .retain(|at| !mine.iter().any(|(b, _)| addresses(b) == *at));
                });
            }
        });
    }
}
