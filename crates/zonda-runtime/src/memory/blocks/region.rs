//! A piece of memory of the system, which blocks are cut from.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use memmap2::{Advice, MmapMut, MmapRaw, UncheckedAdvice};

use super::huge;

/// Regions of the process, at most: the kernel has a limit for all mappings of a process, and the program needs some.
const MOST_REGIONS_OF_PROCESS: usize = 4096;

/// Regions of the process.
static N_REGIONS: AtomicUsize = AtomicUsize::new(0);

/// Memory for some blocks, and which of them are out. It goes back to the system with the last of them.
#[derive(Debug)]
pub(super) struct Region {
    memory: MmapRaw,
    /// Where the first block begins.
    begin: usize,
    block_bytes: usize,
    /// Bytes from one block to the next.
    stride: usize,
    n_blocks: usize,
    /// A bit for each block that is out, and how many these are.
    out: Box<[AtomicU64]>,
    n_out: AtomicUsize,
    /// Huge pages of the region, and how many of them, from the first on, were touched.
    n_huge: AtomicUsize,
    n_touched: AtomicUsize,
    /// No more blocks are taken, so that all of it goes soon, by one call.
    is_over: AtomicBool,
    _counted: Counted,
}

/// One of [`N_REGIONS`].
#[derive(Debug)]
struct Counted;

impl Counted {
    fn new() -> Option<Counted> {
        let counted = Counted;
        (N_REGIONS.fetch_add(1, Ordering::Relaxed) < MOST_REGIONS_OF_PROCESS).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        N_REGIONS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Region {
    /// One of `n_blocks`, if the system has the memory.
    pub(super) fn new(block_bytes: usize, stride: usize, n_blocks: usize) -> Option<Region> {
        let counted = Counted::new()?;
        let bytes = stride.checked_mul(n_blocks)?;
        let (memory, begin, n_huge) = match huge::of_region(bytes) {
            true => {
                let memory = MmapMut::map_anon(bytes.checked_add(2 * huge::PAGE_BYTES)?).ok()?;
                let start = memory.as_ptr() as usize;
                let begin = start.next_multiple_of(huge::PAGE_BYTES) - start;
                // The last page is a huge one, too, where most of it is used.
                let n_huge = (bytes + huge::PAGE_BYTES / 4) / huge::PAGE_BYTES;
                // Where the system has no huge pages, the others do.
                let _ = memory.advise_range(Advice::HugePage, begin, n_huge * huge::PAGE_BYTES);
                (memory, begin, n_huge)
            }
            false => (MmapMut::map_anon(bytes).ok()?, 0, 0),
        };
        let bits = || (0..n_blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Some(Region {
            memory: MmapRaw::from(memory),
            begin,
            block_bytes,
            stride,
            n_blocks,
            out: bits(),
            n_out: AtomicUsize::new(0),
            n_huge: AtomicUsize::new(n_huge),
            n_touched: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            _counted: counted,
        })
    }

    /// Bytes of all blocks.
    pub(super) fn bytes(&self) -> usize {
        self.stride * self.n_blocks
    }

    /// No more blocks are taken of it.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// A block that is not out.
    fn take(&self) -> Option<usize> {
        if self.n_out.load(Ordering::Relaxed) >= self.n_blocks {
            return None;
        }
        for (out, first) in self.out.iter().zip((0..self.n_blocks).step_by(64)) {
            let there = match self.n_blocks - first {
                n @ 0..64 => (1u64 << n) - 1,
                _ => u64::MAX,
            };
            let mut now = out.load(Ordering::Relaxed);
            while let Some(bit) = lowest(there & !now) {
                // What was done with the block before is done.
                let next = now | bit;
                match out.compare_exchange_weak(now, next, Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => {
                        self.n_out.fetch_add(1, Ordering::Relaxed);
                        return Some(first + bit.trailing_zeros() as usize);
                    }
                    Err(found) => now = found,
                }
            }
        }
        None
    }

    /// Has the system give the memory of a block that was taken, in as few steps as it can.
    fn fetch(&self, number: usize) {
        let (from, to) = (number * self.stride, (number + 1) * self.stride);
        let n_huge = self.n_huge.load(Ordering::Relaxed);
        let touched = self.n_touched.fetch_max(to.div_ceil(huge::PAGE_BYTES), Ordering::Relaxed);
        for page in touched..to.div_ceil(huge::PAGE_BYTES).min(n_huge) {
            // Others may have the rest of the page, so nothing is changed there.
            let at = (page * huge::PAGE_BYTES).max(from);
            // SAFETY: the byte is one of the block, which the caller has alone.
            if !huge::is_fast(|| unsafe { self.at(at).write_volatile(0) }) {
                let rest = (page + 1) * huge::PAGE_BYTES;
                self.n_huge.store(page + 1, Ordering::Relaxed);
                let _ = self.advise(Advice::NoHugePage, rest, n_huge * huge::PAGE_BYTES);
                break;
            }
        }
        let small = from.max(self.n_huge.load(Ordering::Relaxed) * huge::PAGE_BYTES);
        if small < to {
            // Older kernels do not know this; then each page is fetched when it is touched.
            let _ = self.advise(Advice::PopulateWrite, small, to);
        }
    }

    /// Where a byte of the region is in memory.
    fn at(&self, byte: usize) -> *mut u8 {
        // SAFETY: `Region::new` made the mapping long enough for all blocks.
        unsafe { self.memory.as_mut_ptr().add(self.begin + byte) }
    }

    fn advise(&self, advice: Advice, from: usize, to: usize) -> std::io::Result<()> {
        match to.checked_sub(from) {
            None | Some(0) => Ok(()),
            Some(len) => self.memory.advise_range(advice, self.begin + from, len),
        }
    }

    /// Takes a block back, and gives its memory to the system, unless all of the region goes.
    fn put_back(&self, number: usize) {
        let (word, bit) = (number / 64, 1u64 << (number % 64));
        let is_last = self.n_out.fetch_sub(1, Ordering::Relaxed) == 1;
        if !is_last && !self.is_over.load(Ordering::Relaxed) {
            self.forget(number);
        }
        self.out[word].fetch_and(!bit, Ordering::Release);
    }

    /// Gives the pages of a block that is out to the system, those that are its own.
    fn forget(&self, number: usize) {
        let page = crate::os::page_bytes();
        let start = self.memory.as_ptr() as usize;
        let from = self.at(number * self.stride) as usize;
        let (from, to) = (from.next_multiple_of(page), (from + self.stride) / page * page);
        if from < to {
            // SAFETY: these pages have bytes of this block alone. Who gives it back has the one right to it; from now on the bytes
            // are zeros, and whoever takes the block finds bytes of any value.
            let done = unsafe {
                let advice = UncheckedAdvice::DontNeed;
                self.memory.unchecked_advise_range(advice, from - start, to - from)
            };
            // Locked memory stays.
            let _ = done;
        }
    }
}

/// The lowest bit that is set, alone.
fn lowest(bits: u64) -> Option<u64> {
    (bits != 0).then(|| bits & bits.wrapping_neg())
}

/// Some bytes of memory. What they are at first is whatever they were before.
#[derive(Debug)]
pub struct Block {
    region: Arc<Region>,
    /// Nobody else has it while its bit is set.
    number: usize,
}

impl Block {
    /// One of the region that is not out, if there is one.
    pub(super) fn take(region: &Arc<Region>) -> Option<Block> {
        let number = region.take()?;
        Some(Block { region: Arc::clone(region), number })
    }

    /// Has the system give the memory of the block in as few steps as it can. Nothing depends on it.
    pub(super) fn fetch(&self) {
        self.region.fetch(self.number);
    }

    fn pointer(&self) -> *mut u8 {
        self.region.at(self.number * self.region.stride)
    }
}

impl Deref for Block {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping has these bytes, all of them have a value, and while this block lives no other has its number.
        unsafe { std::slice::from_raw_parts(self.pointer(), self.region.block_bytes) }
    }
}

impl DerefMut for Block {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and whoever calls this has the block alone.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.region.block_bytes) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.region.put_back(self.number);
    }
}
