//! Who may do what with a page when, so that what a cache shows is always what was put last.
//!
//! A page is in a *slot*; the *table* says which page is where. A page comes in and goes by these steps, each under the write
//! lock of its slot, and none of which waits for another page while it has one (`try_write`), so that there is no deadlock.
//! Lock order: page, then table.
//!
//! | step | from | to | in |
//! |---|---|---|---|
//! | *acquire* | not in the table | in the table, nothing known | `find.rs` |
//! | *fill* | a byte is absent | it is as below | `read.rs` |
//! | *merge* | any | a byte is newer than below | `write.rs` |
//! | *write back* | newer than below | as below: written first, noted afterwards | `flush.rs` |
//! | *evict* | nothing is newer than below | not in the table | `find.rs`, `reclaim.rs` |
//! | *cut* | behind the new length | nothing known; the storage was cut first | `flush.rs` |
//!
//! So as long as a byte is newer than below, its page is in the table, and who looks there finds it; and what a page shows as
//! being below is there. One kind of call does not hold the pages that it is about: a *straight write*, of so much that it goes
//! past them (`straight.rs`). Around it are two rules:
//!
//! - Before: pages that are there take their part of it as any other write; the rest goes past. A page that only awaits fill
//!   values there gives them up (`withheld.rs`), so that nobody writes them over it.
//! - After, however it ended: pages of its range *forget* what they read from below, which may be from before it. What others
//!   have merged meanwhile stays, and is written later.
//!
//! So the last who wrote a byte below has no page left that shows another one, in whatever order calls over each other went.
//! `tests/model_cache.rs` tries orders of all of this.
//!
//! A page may be *lent* to a thread that comes back to it again and again (`lease.rs`); it is back before anybody else sees it.
//!
//! A hit takes its page's lock only; a slot is found by a table of hints, without any other. What goes down is what was given,
//! to the byte (`tests/exact.rs`): a clean byte between dirty ones may be stale, since another process may have written it.

pub(crate) mod call_pace;
mod find;
mod flush;
mod lease;
mod read;
mod reclaim;
mod shared_pages;
mod straight;
mod table;
mod thread_tasks;
mod withheld;
mod write;

pub(crate) use shared_pages::{MOST_SHARED, SharedPages, SharingCache};

use super::background::{self, BackgroundWork};
use super::{pages, policy};
use crate::StorageError;
use crate::forward;
use crate::storage::{Leased, ReadRange, Rows, Storage, WriteRange, fill_by_writes};
use crate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::lock::{Level, Mutex, Rank};
use crate::tuning::{FIRST_PAGES, MOST_HINTS};
use call_pace::{CallPace, ReturnRate};
use policy::{CacheShape, RecentReads};
use std::fmt;
use std::sync::{Arc, OnceLock};
use table::{PageSlot, PageTable};
use withheld::WithheldFills;
use zonda_runtime::memory::{self, Kind};

/// Slots are made this many at a time at first, and then twice as many each time.
const SEGMENT_SLOTS: u32 = 16;
/// Segments of slots, enough for the most pages that a shape has.
const SEGMENTS: usize = 17;

/// The layer.
#[derive(Debug)]
pub struct Cache<S> {
    pub(crate) inner: S,
    /// The process that made it.
    pid: u32,
    level: Level,
    shape: CacheShape,
    /// The most pages it may have now.
    limit: AtomicU64,
    /// `page_bytes` as a shift, when it is a power of two: a division costs as much as the copy.
    shift: Option<u32>,
    /// The logical length.
    pub(crate) len: Arc<AtomicU64>,
    /// Nothing was handed down from here on, so that there is nothing to be read.
    below_to: AtomicU64,
    /// Where the last fill ended: a miss here is sequential.
    expected: AtomicU64,
    /// The last large reads.
    large: Mutex<RecentReads>,
    /// How often scattered reads come back to pages that have a part already.
    dense: ReturnRate,
    /// How often large ones come back to what was read.
    again: ReturnRate,
    /// How long reads and writes of what is below take.
    reads: CallPace,
    writes: CallPace,
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
    slots: [OnceLock<Box<[PageSlot]>>; SEGMENTS],
    table: Mutex<PageTable>,
    /// Slots whose pages may be lent.
    lent: Mutex<Vec<u32>>,
    /// Fill values that pages do not await while something is written past them.
    withheld: WithheldFills,
    /// Held by `set_len`.
    resize: Mutex<()>,
    /// The pages it has together with other caches.
    shared: Option<Arc<SharedPages>>,
    /// Work for its thread, if it has one.
    background: Option<Arc<BackgroundWork>>,
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
    pub(crate) fn with(
        inner: S,
        shape: CacheShape,
        shared: Option<Arc<SharedPages>>,
        background: Option<Arc<BackgroundWork>>,
    ) -> Result<Self, StorageError> {
        let len = inner.len()?;
        let page = shape.page_bytes;
        let level = background.as_ref().map_or_else(Level::next, |background| background.level());
        Ok(Cache {
            level,
            inner,
            pid: zonda_runtime::fork::process_id(),
            shape,
            limit: AtomicU64::new(shape.at_first),
            shift: page.is_power_of_two().then(|| page.trailing_zeros()),
            len: Arc::new(AtomicU64::new(len)),
            below_to: AtomicU64::new(len),
            expected: AtomicU64::new(u64::MAX),
            large: Mutex::ranked(Rank::RecentReads, RecentReads::default()),
            dense: ReturnRate::default(),
            again: ReturnRate::default(),
            reads: CallPace::default(),
            writes: CallPace::default(),
            streamed: AtomicU64::new(0),
            clock: AtomicU64::new(2),
            n_dirty: AtomicUsize::new(0),
            hints: no_hints(shape.pages.min(FIRST_PAGES)),
            more_hints: OnceLock::new(),
            slots: std::array::from_fn(|_| OnceLock::new()),
            table: Mutex::ranked(Rank::Table, PageTable::default()),
            lent: Mutex::ranked(Rank::Lent, Vec::new()),
            withheld: WithheldFills::default(),
            resize: Mutex::at(Rank::Resize, level, ()),
            shared,
            background,
        })
    }

    /// Whether this process is a fork of the one that made it, which writes what is in its pages. Here they are old
    /// soon: they serve reads, and never leave.
    pub(crate) fn is_inherited(&self) -> bool {
        self.pid != zonda_runtime::fork::process_id()
    }

    /// A page's size as a memory length; at most 1 GiB.
    #[inline]
    fn page_bytes(&self) -> usize {
        self.shape.page_bytes as usize
    }

    /// The page of byte `at`, and its place in it.
    #[inline]
    pub(crate) fn place(&self, at: u64) -> (u64, usize) {
        match self.shift {
            Some(shift) => (at >> shift, (at & (self.shape.page_bytes - 1)) as usize),
            None => (at / self.shape.page_bytes, (at % self.shape.page_bytes) as usize),
        }
    }

    /// Where page `index` begins.
    pub(crate) fn base(&self, index: u64) -> u64 {
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
    fn hinted(&self, index: u64) -> Option<(u32, &PageSlot)> {
        let id = self.hint(index).load(Ordering::Acquire).checked_sub(1)?;
        let (segment, place) = segment_of(id);
        let slot = &self.slots[segment].get()?[place];
        // Another page may be in somebody's hands for long.
        (slot.holds.load(Ordering::Relaxed) == index).then_some((id, slot))
    }

    /// Makes sure that there is a slot of this number; false where there is no memory for it.
    fn has_slot(&self, id: u32) -> bool {
        let (segment, _) = segment_of(id);
        let slots = &self.slots[segment];
        slots.get().is_some()
            || new_slots(segment, self.level).is_some_and(|new| slots.set(new).is_ok())
    }

    /// Notes a use. Pages used since the last page came in count as equally recent, so that hits
    /// write nothing shared in the common case.
    #[inline]
    fn touch(&self, slot: &PageSlot) {
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

impl<S> Cache<S> {
    fn slot(&self, id: u32) -> &PageSlot {
        let (segment, place) = segment_of(id);
        match self.slots[segment].get() {
            Some(slots) => &slots[place],
            None => unreachable!("a number is given only to a slot that is there"),
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
fn new_slots(segment: usize, level: Level) -> Option<Box<[PageSlot]>> {
    let n = (SEGMENT_SLOTS as usize) << segment;
    let mut slots = Vec::new();
    slots.try_reserve_exact(n).ok()?;
    slots.resize_with(n, || PageSlot::new(level));
    Some(slots.into_boxed_slice())
}

/// An empty hint table for a cache of `pages` pages.
fn no_hints(pages: u64) -> Box<[AtomicU32]> {
    let n_hints = (2 * pages).next_power_of_two().min(MOST_HINTS);
    (0..n_hints).map(|_| AtomicU32::new(0)).collect()
}

/// The same, where there is memory for it.
fn more_hints(pages: u64) -> Option<Box<[AtomicU32]>> {
    let n_hints = (2 * pages).next_power_of_two().min(MOST_HINTS) as usize;
    let mut hints = Vec::new();
    hints.try_reserve_exact(n_hints).ok()?;
    hints.resize_with(n_hints, AtomicU32::default);
    Some(hints.into_boxed_slice())
}

impl<S> Drop for Cache<S> {
    fn drop(&mut self) {
        // Pages that are lent go with the others. In the child of a fork a thread of the parent may have locked one.
        for id in std::mem::take(self.lent.get_mut()) {
            drop(self.slot(id).try_write());
        }
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
    forward! { this => this.inner; advise, most_len, has_other_writers, remote, plain_file, stamp }

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

    fn show_rows(&self, rows: Rows, see: &mut dyn FnMut(&[u8])) -> usize {
        self.show(rows, see)
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

    fn lease(&self, at: u64, writes: bool) -> Option<Arc<dyn Leased>> {
        self.lend(at, writes).map(|lease| lease as Arc<dyn Leased>)
    }

    fn end_leases(&self) {
        Cache::end_leases(self);
    }

    fn try_end_leases(&self) -> bool {
        Cache::try_end_leases(self)
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        // More than half of what fits would push out its own beginning.
        if len > self.shape.most_bytes(memory::budget) / 2 || !(1..=8).contains(&element.len()) {
            return fill_by_writes(self, at, len, element);
        }
        self.fill_pages(at, len, element)
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

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},", self.shape)?;
        self.inner.describe(f)
    }
}
