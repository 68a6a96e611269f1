//! Fill values that are withheld from their pages while a large write goes past the pages.
//!
//! A page that awaits fill values writes them when it is evicted. During a straight write to the same place that would undo
//! the write. So the write first takes the fill values of its place out of the pages and keeps them here. When it succeeds they
//! are forgotten; when it fails they go back to the pages. What is cut off, or written by others, meanwhile is removed from
//! them here. If a page finds no room in the cache, its fill values stay here until the next flush.

use super::pages::FillRun;
use crate::storage::WriteRange;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::lock::{Mutex, Rank};

/// Whose write withholds fill values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FillOwner {
    /// A write that is under way.
    Write(u64),
    /// The write failed, and the page found no room: the next flush writes them.
    Nobody,
}

/// Fill values that are withheld from one page.
#[derive(Debug)]
struct WithheldFill {
    holder: FillOwner,
    index: u64,
    fill_run: FillRun,
}

/// All fill values that are withheld from the pages of one cache.
#[derive(Debug)]
pub(super) struct WithheldFills {
    pieces: Mutex<Vec<WithheldFill>>,
    /// How many pieces there are. Most of the time there are none, and then nobody takes the lock.
    n: AtomicUsize,
    writes: AtomicU64,
}

impl Default for WithheldFills {
    fn default() -> WithheldFills {
        let pieces = Mutex::ranked(Rank::WithheldFills, Vec::new());
        WithheldFills { pieces, n: AtomicUsize::new(0), writes: AtomicU64::new(0) }
    }
}

impl WithheldFills {
    /// Begins a write that may withhold some.
    pub(super) fn begin(&self) -> FillOwner {
        FillOwner::Write(self.writes.fetch_add(1, Ordering::Relaxed))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<WithheldFill>) -> T) -> T {
        let mut pieces = self.pieces.lock();
        let done = change(&mut pieces);
        self.n.store(pieces.len(), Ordering::Release);
        done
    }

    fn is_empty(&self) -> bool {
        self.n.load(Ordering::Acquire) == 0
    }

    /// Adds what was taken from page `index`, which the caller has locked.
    pub(super) fn add(&self, holder: FillOwner, index: u64, taken: &[FillRun]) {
        let piece = |fill_run: &FillRun| WithheldFill { holder, index, fill_run: *fill_run };
        self.change(|pieces| pieces.extend(taken.iter().map(piece)));
    }

    /// Forgets what `holder` withholds: the place was written.
    pub(super) fn forget(&self, holder: FillOwner) {
        if !self.is_empty() {
            self.change(|pieces| pieces.retain(|piece| piece.holder != holder));
        }
    }

    /// The pages from which `holder` withholds something, ascending.
    pub(super) fn pages_of(&self, holder: FillOwner) -> Vec<u64> {
        if self.is_empty() {
            return Vec::new();
        }
        let pieces = self.pieces.lock();
        let of_holder = pieces.iter().filter(|piece| piece.holder == holder);
        let mut pages: Vec<u64> = of_holder.map(|piece| piece.index).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// Takes out what `holder` withholds from page `index`, which the caller has locked.
    pub(super) fn take(&self, holder: FillOwner, index: u64) -> Vec<FillRun> {
        let is_asked = |piece: &mut WithheldFill| piece.holder == holder && piece.index == index;
        self.change(|pieces| pieces.extract_if(.., is_asked).map(|piece| piece.fill_run).collect())
    }

    /// Leaves what `holder` withholds to the next flush.
    pub(super) fn abandon(&self, holder: FillOwner) {
        self.change(|pieces| {
            for piece in pieces.iter_mut().filter(|piece| piece.holder == holder) {
                piece.holder = FillOwner::Nobody;
            }
        });
    }

    /// Removes what lies at byte `len` and behind it; pages have `page_bytes` bytes. To be called before pages are cut: what
    /// goes back to a page until then is cut there.
    pub(super) fn truncate(&self, len: u64, page_bytes: u64) {
        if self.is_empty() {
            return;
        }
        self.change(|pieces| {
            pieces.retain_mut(|piece| {
                let keep = len.saturating_sub(piece.index * page_bytes).min(page_bytes);
                piece.fill_run.truncate(keep as usize)
            });
        });
    }

    /// Removes what lies in `ranges`, which were written below, from what all but `holder` withhold.
    pub(super) fn written(
        &self,
        holder: Option<FillOwner>,
        ranges: &[WriteRange<'_>],
        page_bytes: u64,
    ) {
        if self.is_empty() {
            return;
        }
        self.change(|pieces| {
            for range in ranges {
                let mut left = Vec::with_capacity(pieces.len());
                for piece in pieces.drain(..) {
                    if Some(piece.holder) == holder {
                        left.push(piece);
                        continue;
                    }
                    let base = piece.index * page_bytes;
                    let within = |at: u64| at.saturating_sub(base).min(page_bytes) as usize;
                    let end = range.at + range.data.len() as u64;
                    let WithheldFill { holder, index, fill_run } = piece;
                    let rest = fill_run.without(within(range.at), within(end));
                    left.extend(rest.map(|fill_run| WithheldFill { holder, index, fill_run }));
                }
                *pieces = left;
            }
        });
    }
}
