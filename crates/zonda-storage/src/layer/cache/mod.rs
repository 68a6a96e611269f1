//! `cache:BLOCKS:PAGES`: a write-back page cache; `cache` alone is one that sizes itself.
//!
//! A page is BLOCKS * 4096 bytes; at most PAGES are kept, the least recently used leaving first.
//! Without arguments there are as many as the records of the file ask for, within the memory of the
//! process (`adaptive.rs`). Pages whose every byte was written leave as soon as there are enough of
//! them and what lies before them is below already: whole records go out in order and in large
//! pieces, whatever order they came in.
//! Writes need no read: each page knows byte by byte what is valid and what is dirty, and what is
//! missing is read only when it is asked for. A failed write-back keeps the page dirty and gives
//! the error to the call that met it. Dropping the cache forgets what was not flushed.
//!
//! Locks. A hit takes its page's lock only. The table's lock is held for look-ups. A page's own
//! lock is held while that page is filled or written back; a thread that holds one page never
//! waits for another (`try_write`), so there is no deadlock. Lock order: page, then table.
//!
//! Requests of at least a page go straight through where no page is cached; pages that appeared while a
//! straight write was under way get its data after it.
//!
//! What goes down is what was given, to the byte (`tests/exact.rs`): a clean byte between dirty ones may
//! be stale, since another process may have written it.

mod adaptive;
mod behind;
mod evict;
mod extents;
mod flush;
mod given;
mod lent;
mod line;
mod pace;
mod read;
mod served;
mod shared;
mod table;
mod visits;
mod write;

use crate::spec::{Args, Below, Building, Plan, Registered, SpecError};
use crate::storage::{Advice, ReadRange, Stamp, Storage, WriteRange, fill_by_writes};
use crate::{BLOCK_BYTES, DEFAULT_PAGE_BLOCKS, DEFAULT_PAGES, StorageError};
use lent::Lent;
use line::Line;
use pace::Pace;
use shared::Shared;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use table::{Slot, Table};
use visits::{Returns, Visits};
use zonda_runtime::lock::{Level, Mutex, Rank};
use zonda_runtime::memory::{self, Kind};

pub use adaptive::Adaptive;
pub use behind::Behind;
pub(super) use behind::Conduct;
pub(super) use shared::MOST_SHARED;

/// The largest page, in bytes.
const MAX_PAGE_BYTES: u64 = 1 << 30;
/// The largest cache, in bytes.
const MAX_CACHE_BYTES: u64 = 64 << 30;
/// The most pages: what a table of moderate size can find.
const MAX_PAGES: u64 = 1 << 20;
/// Slots are made this many at a time at first, and then twice as many each time.
const SEGMENT_SLOTS: u32 = 16;
/// Segments of slots, enough for [`MAX_PAGES`].
const SEGMENTS: usize = 17;
/// The most entries of the hint table (256 KiB).
const MAX_HINTS: u64 = 1 << 16;
/// Until it has more pages, a cache makes do with a small hint table.
const FIRST_PAGES: u64 = 256;
/// Reads of at least this length bring no pages in: what a page saves is less than its copy costs.
const READ_STRAIGHT_BYTES: u64 = 16 << 10;
/// What a cache within the memory of the process may have however little of that is left: enough to
/// read ahead and to write runs.
const LEAST_PAGES: u64 = 16;

/// How a spec names this layer.
pub(super) const REGISTERED: Registered = Registered { name: "cache", plan };

fn plan(args: &mut Args<'_>) -> Result<Arc<dyn Plan>, SpecError> {
    if !args.has_more() {
        return Ok(adaptive_plan());
    }
    let shape = CacheShape::parse(args, DEFAULT_PAGES)?;
    args.end()?;
    Ok(shape.plan())
}

/// A cache that sizes itself.
pub(super) fn adaptive_plan() -> Arc<dyn Plan> {
    Arc::new(adaptive::Planned)
}

/// Page size and number of pages of a [`Cache`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShape {
    page_bytes: u64,
    /// The most pages.
    pages: u64,
    /// Pages it makes do with until it turns out to need more; `pages` where the size was asked for.
    at_first: u64,
    /// Whether its pages count as memory of the process (`ZONDA_MEMORY`).
    within_budget: bool,
    /// Reads and writes of at least so many bytes go past its pages.
    straight: Straight,
}

/// From which length on requests go straight to what is below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Straight {
    read_bytes: u64,
    write_bytes: u64,
}

impl Straight {
    /// A page saves no call to one who has as much in hand.
    fn of_pages(page_bytes: u64) -> Straight {
        Straight { read_bytes: page_bytes.min(READ_STRAIGHT_BYTES), write_bytes: page_bytes }
    }
}

impl CacheShape {
    /// `pages` pages of `blocks` * 4096 bytes; `None` outside the range that a spec accepts.
    #[must_use]
    pub fn new(blocks: u64, pages: u64) -> Option<CacheShape> {
        let page_bytes = blocks.checked_mul(BLOCK_BYTES)?;
        let shape = CacheShape::sized(page_bytes, pages);
        let total = page_bytes.checked_mul(pages)?;
        let page_fits = (BLOCK_BYTES..=MAX_PAGE_BYTES).contains(&page_bytes);
        (page_fits && (1..=MAX_PAGES).contains(&pages) && total <= MAX_CACHE_BYTES).then_some(shape)
    }

    fn sized(page_bytes: u64, pages: u64) -> CacheShape {
        let straight = Straight::of_pages(page_bytes);
        CacheShape { page_bytes, pages, at_first: pages, within_budget: false, straight }
    }

    /// Reads `:BLOCKS:PAGES`, each of which may be left out.
    pub(crate) fn parse(args: &mut Args<'_>, default_pages: u64) -> Result<Self, SpecError> {
        let mut page_bytes = DEFAULT_PAGE_BLOCKS * BLOCK_BYTES;
        let mut pages = default_pages;
        if let Some(argument) = args.next() {
            page_bytes = args.size(argument)?;
            if !page_bytes.is_multiple_of(BLOCK_BYTES) {
                return Err(args.out_of_range(
                    argument,
                    "the page size",
                    "a multiple of 4096 bytes",
                ));
            }
            if !(BLOCK_BYTES..=MAX_PAGE_BYTES).contains(&page_bytes) {
                return Err(args.out_of_range(argument, "the page size", "4096 bytes to 1G"));
            }
        }
        if let Some(argument) = args.next() {
            pages = args.number(argument)?;
            if !(1..=MAX_PAGES).contains(&pages) {
                return Err(args.out_of_range(argument, "the number of pages", "1 to 1048576"));
            }
            if pages * page_bytes > MAX_CACHE_BYTES {
                return Err(args.out_of_range(
                    argument,
                    "the number of pages",
                    "so that all fit in 64G",
                ));
            }
        }
        Ok(CacheShape::sized(page_bytes, pages))
    }

    pub(crate) fn plan(self) -> Arc<dyn Plan> {
        Arc::new(self)
    }
}

impl fmt::Display for CacheShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cache:{}:{}", self.page_bytes / BLOCK_BYTES, self.pages)
    }
}

impl Plan for CacheShape {
    fn build(&self, below: Below, _: &mut Building<'_>) -> Result<Below, StorageError> {
        Ok(Arc::new(Cache::new(below, *self)?))
    }

    fn buffers(&self) -> bool {
        true
    }
}

/// The layer.
#[derive(Debug)]
pub struct Cache<S> {
    inner: S,
    /// The process that made it.
    pid: u32,
    level: Level,
    shape: CacheShape,
    /// The most pages it may have now.
    limit: AtomicU64,
    /// `page_bytes` as a shift, when it is a power of two: a division costs as much as the copy.
    shift: Option<u32>,
    /// The logical length.
    len: AtomicU64,
    /// Nothing was handed down from here on, so that there is nothing to be read.
    below_to: AtomicU64,
    /// Where the last fill ended: a miss here is sequential.
    expected: AtomicU64,
    /// The last large reads.
    large: Visits,
    /// How often scattered reads come back to pages that have a part already.
    dense: Returns,
    /// How often large ones come back to what was read.
    again: Returns,
    /// How long reads and writes of what is below take.
    reads: Pace,
    writes: Pace,
    /// How many bytes were written as complete pages.
    streamed: AtomicU64,
    /// Goes up by 2 whenever a page comes in; a page used since has the odd value above.
    clock: AtomicU64,
    /// Pages with unwritten data.
    n_dirty: AtomicUsize,
    /// Slot + 1 where a page was last seen, by a hash of its index. Only a hint: the slot's page
    /// says which it is. It keeps hits off the table's lock.
    hints: Box<[AtomicU32]>,
    /// The same for a cache with more than [`FIRST_PAGES`] pages, which takes the other's place.
    more_hints: OnceLock<Box<[AtomicU32]>>,
    slots: [OnceLock<Box<[Slot]>>; SEGMENTS],
    table: Mutex<Table>,
    /// Fill values that pages do not await while something is written past them.
    lent: Lent,
    /// Held by `set_len`.
    resize: Mutex<()>,
    /// The pages it has together with other caches.
    shared: Option<Arc<Shared>>,
    /// Work for its thread, if it has one.
    line: Option<Arc<Line>>,
}

impl<S: Storage> Cache<S> {
    /// Wraps `inner`, which is asked for its length.
    ///
    /// # Errors
    /// What `inner` reports.
    pub fn new(inner: S, shape: CacheShape) -> Result<Self, StorageError> {
        Cache::with(inner, shape, None, None)
    }

    /// As [`Cache::new`], with pages shared with others, and with a thread that works for it.
    fn with(
        inner: S,
        shape: CacheShape,
        shared: Option<Arc<Shared>>,
        line: Option<Arc<Line>>,
    ) -> Result<Self, StorageError> {
        let len = inner.len()?;
        let page = shape.page_bytes;
        let level = line.as_ref().map_or_else(Level::next, |line| line.level());
        Ok(Cache {
            level,
            inner,
            pid: std::process::id(),
            shape,
            limit: AtomicU64::new(shape.at_first),
            shift: page.is_power_of_two().then(|| page.trailing_zeros()),
            len: AtomicU64::new(len),
            below_to: AtomicU64::new(len),
            expected: AtomicU64::new(u64::MAX),
            large: Visits::default(),
            dense: Returns::default(),
            again: Returns::default(),
            reads: Pace::default(),
            writes: Pace::default(),
            streamed: AtomicU64::new(0),
            clock: AtomicU64::new(2),
            n_dirty: AtomicUsize::new(0),
            hints: no_hints(shape.pages.min(FIRST_PAGES)),
            more_hints: OnceLock::new(),
            slots: std::array::from_fn(|_| OnceLock::new()),
            table: Mutex::ranked(Rank::Table, Table::default()),
            lent: Lent::default(),
            resize: Mutex::at(Rank::Resize, level, ()),
            shared,
            line,
        })
    }

    /// Whether this process is a fork of the one that made it, which writes what is in its pages. Here they are old
    /// soon: they serve reads, and never leave.
    fn is_inherited(&self) -> bool {
        self.pid != std::process::id()
    }

    /// A page's size as a memory length; at most 1 GiB.
    #[inline]
    fn page_bytes(&self) -> usize {
        self.shape.page_bytes as usize
    }

    /// The page of byte `at`, and its place in it.
    #[inline]
    fn place(&self, at: u64) -> (u64, usize) {
        match self.shift {
            Some(shift) => (at >> shift, (at & (self.shape.page_bytes - 1)) as usize),
            None => (at / self.shape.page_bytes, (at % self.shape.page_bytes) as usize),
        }
    }

    /// Where page `index` begins.
    fn base(&self, index: u64) -> u64 {
        index * self.shape.page_bytes
    }

    #[inline]
    fn hint(&self, index: u64) -> &AtomicU32 {
        let hints = self.more_hints.get().unwrap_or(&self.hints);
        // Fibonacci hashing: neighbours and strides alike spread over the table.
        let bits = hints.len().trailing_zeros();
        let hash = index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits);
        &hints[hash as usize]
    }

    /// The slot where page `index` was last seen, unless another has taken it since.
    #[inline]
    fn hinted(&self, index: u64) -> Option<(u32, &Slot)> {
        let id = self.hint(index).load(Ordering::Acquire).checked_sub(1)?;
        let (segment, place) = segment_of(id);
        let slot = &self.slots[segment].get()?[place];
        // Another page may be in somebody's hands for long.
        (slot.holds.load(Ordering::Relaxed) == index).then_some((id, slot))
    }

    fn slot(&self, id: u32) -> &Slot {
        let (segment, place) = segment_of(id);
        match self.slots[segment].get() {
            Some(slots) => &slots[place],
            None => unreachable!("a number is given only to a slot that is there"),
        }
    }

    /// Makes sure that there is a slot of this number; false where there is no memory for it.
    fn has_slot(&self, id: u32) -> bool {
        let (segment, _) = segment_of(id);
        let slots = &self.slots[segment];
        slots.get().is_some()
            || new_slots(segment, self.level).is_some_and(|new| slots.set(new).is_ok())
    }

    /// The most bytes that may be in pages.
    fn most_bytes(&self) -> u64 {
        let all = self.shape.pages * self.shape.page_bytes;
        if self.shape.within_budget { all.min(memory::budget()) } else { all }
    }

    /// Notes a use. Pages used since the last page came in count as equally recent, so that hits
    /// write nothing shared in the common case.
    #[inline]
    fn touch(&self, slot: &Slot) {
        let now = self.clock.load(Ordering::Relaxed) | 1;
        if slot.stamp.load(Ordering::Relaxed) != now {
            slot.stamp.store(now, Ordering::Relaxed);
        }
    }

    /// Raises the logical length.
    #[inline]
    fn extend_to(&self, end: u64) {
        if end > self.len.load(Ordering::Acquire) {
            self.len.fetch_max(end, Ordering::AcqRel);
        }
    }
}

/// The segment of a slot, and its place there.
#[inline]
fn segment_of(id: u32) -> (usize, usize) {
    let segment = (id / SEGMENT_SLOTS + 1).ilog2();
    let before = ((1 << segment) - 1) * SEGMENT_SLOTS;
    (segment as usize, (id - before) as usize)
}

/// The slots of a segment, of which later ones are large; `None` where there is no memory for them.
fn new_slots(segment: usize, level: Level) -> Option<Box<[Slot]>> {
    let n = (SEGMENT_SLOTS as usize) << segment;
    let mut slots = Vec::new();
    slots.try_reserve_exact(n).ok()?;
    slots.resize_with(n, || Slot::new(level));
    Some(slots.into_boxed_slice())
}

/// An empty hint table for a cache of `pages` pages.
fn no_hints(pages: u64) -> Box<[AtomicU32]> {
    let n_hints = (2 * pages).next_power_of_two().min(MAX_HINTS);
    (0..n_hints).map(|_| AtomicU32::new(0)).collect()
}

/// The same, where there is memory for it.
fn more_hints(pages: u64) -> Option<Box<[AtomicU32]>> {
    let n_hints = (2 * pages).next_power_of_two().min(MAX_HINTS) as usize;
    let mut hints = Vec::new();
    hints.try_reserve_exact(n_hints).ok()?;
    hints.resize_with(n_hints, AtomicU32::default);
    Some(hints.into_boxed_slice())
}

impl<S> Drop for Cache<S> {
    fn drop(&mut self) {
        let in_use = self.table.get_mut().in_use();
        if self.shape.within_budget {
            memory::process().give_back(Kind::Pages, in_use * self.shape.page_bytes);
        }
        if let Some(shared) = &self.shared {
            shared.give_back(in_use);
        }
    }
}

impl<S: Storage> Storage for Cache<S> {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        let (index, a) = self.place(at);
        if buf.len() <= self.page_bytes() - a
            && at
                .checked_add(buf.len() as u64)
                .is_some_and(|e| e <= self.len.load(Ordering::Acquire))
            && self.hit(index, a, buf)
        {
            return Ok(buf.len());
        }
        let mut range = [ReadRange::new(at, buf)];
        self.read_all(&mut range)?;
        Ok(range[0].got)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        self.read_all(ranges)
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        let (index, a) = self.place(at);
        if data.len() <= self.page_bytes() - a && self.hit_write(at, index, a, data)? {
            return Ok(());
        }
        self.write_all(&[WriteRange { at, data }])
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        self.write_all(ranges)
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        // More than half of what fits would push out its own beginning.
        if len > self.most_bytes() / 2 || !(1..=8).contains(&element.len()) {
            return fill_by_writes(self, at, len, element);
        }
        self.fill_pages(at, len, element)
    }

    fn advise(&self, advice: Advice) {
        self.inner.advise(advice);
    }

    fn rest(&self) {
        if self.is_inherited() {
            return self.give_all();
        }
        self.write_what_is_complete();
        self.inner.rest();
    }

    fn len(&self) -> Result<u64, StorageError> {
        Ok(self.len.load(Ordering::Acquire))
    }

    fn most_len(&self) -> u64 {
        self.inner.most_len()
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.resize_to(len)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.flush_from(0)?;
        self.inner.barrier()
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.flush_from(0)?;
        self.inner.sync()
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        self.forget_clean()
    }

    fn stamp(&self) -> Result<Stamp, StorageError> {
        self.inner.stamp()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},", self.shape)?;
        self.inner.describe(f)
    }
}
