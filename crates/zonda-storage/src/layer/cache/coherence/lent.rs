//! Fill values that pages no longer await while a write goes past them.
//!
//! A large write takes the fill values away that its place awaits, since a page that left meanwhile would
//! write them over it. Until it has succeeded they are kept here, where a cut finds them, and so does what
//! others write there; when it fails they go back to their pages as they then are. Those whose page finds no
//! room on a device that takes nothing stay until the next flush.

use super::pages::Ground;
use crate::storage::WriteRange;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::lock::{Mutex, Rank};

/// Who has what was lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// A write that is under way.
    Write(u64),
    /// Nobody: the write failed, and the page has no room.
    Nobody,
}

/// Fill values of one page.
#[derive(Debug)]
struct Piece {
    holder: Holder,
    index: u64,
    ground: Ground,
}

/// All of one cache.
#[derive(Debug)]
pub(super) struct Lent {
    pieces: Mutex<Vec<Piece>>,
    /// How many there are: mostly none, and then nobody takes the lock.
    n: AtomicUsize,
    writes: AtomicU64,
}

impl Default for Lent {
    fn default() -> Lent {
        let pieces = Mutex::ranked(Rank::Lent, Vec::new());
        Lent { pieces, n: AtomicUsize::new(0), writes: AtomicU64::new(0) }
    }
}

impl Lent {
    /// A write that may take some.
    pub(super) fn begin(&self) -> Holder {
        Holder::Write(self.writes.fetch_add(1, Ordering::Relaxed))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Piece>) -> T) -> T {
        let mut pieces = self.pieces.lock();
        let done = change(&mut pieces);
        self.n.store(pieces.len(), Ordering::Release);
        done
    }

    fn is_empty(&self) -> bool {
        self.n.load(Ordering::Acquire) == 0
    }

    /// Notes what was taken from page `index`, whose lock the caller has.
    pub(super) fn add(&self, holder: Holder, index: u64, taken: &[Ground]) {
        let piece = |ground: &Ground| Piece { holder, index, ground: *ground };
        self.change(|pieces| pieces.extend(taken.iter().map(piece)));
    }

    /// Forgets what `holder` has: its place was written.
    pub(super) fn forget(&self, holder: Holder) {
        if !self.is_empty() {
            self.change(|pieces| pieces.retain(|piece| piece.holder != holder));
        }
    }

    /// Pages of which `holder` has something.
    pub(super) fn pages_of(&self, holder: Holder) -> Vec<u64> {
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

    /// Takes what `holder` has of page `index`, whose lock the caller has.
    pub(super) fn take(&self, holder: Holder, index: u64) -> Vec<Ground> {
        let is_asked = |piece: &mut Piece| piece.holder == holder && piece.index == index;
        self.change(|pieces| pieces.extract_if(.., is_asked).map(|piece| piece.ground).collect())
    }

    /// Leaves what `holder` has to nobody.
    pub(super) fn abandon(&self, holder: Holder) {
        self.change(|pieces| {
            for piece in pieces.iter_mut().filter(|piece| piece.holder == holder) {
                piece.holder = Holder::Nobody;
            }
        });
    }

    /// Forgets what lies at `len` and behind it, in pages of `page_bytes`. To be called before pages are
    /// cut: what goes back to a page until then is cut there.
    pub(super) fn truncate(&self, len: u64, page_bytes: u64) {
        if self.is_empty() {
            return;
        }
        self.change(|pieces| {
            pieces.retain_mut(|piece| {
                let keep = len.saturating_sub(piece.index * page_bytes).min(page_bytes);
                piece.ground.truncate(keep as usize)
            });
        });
    }

    /// Forgets what lies under ranges that somebody else than `holder` may have: they were written below.
    pub(super) fn written(
        &self,
        holder: Option<Holder>,
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
                    let Piece { holder, index, ground } = piece;
                    let rest = ground.without(within(range.at), within(end));
                    left.extend(rest.map(|ground| Piece { holder, index, ground }));
                }
                *pieces = left;
            }
        });
    }
}
