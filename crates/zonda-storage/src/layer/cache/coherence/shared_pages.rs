//! Pages that several files have together: layers that name the same number (`cachea:8:64:2:1`).
//!
//! The first file that names a number says how large the pages are and how many there are. A file
//! takes what nobody uses; when all are taken, one that has less than its share gets a page from
//! the file that has most.

use super::policy::CacheShape;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::lock::{Global, Mutex, Rank};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// The largest number that a spec may give: as many as there were in 1995.
pub(crate) const MOST_SHARED: u64 = 15;

/// A cache that shares pages.
pub(crate) trait SharingCache: Send + Sync {
    /// How many pages it has.
    fn n_pages(&self) -> u64;

    /// Gives one page up; false if it would have to wait.
    fn give_up(&self) -> bool;
}

/// The pages that layers with one number share.
pub(crate) struct SharedPages {
    shape: CacheShape,
    used: AtomicU64,
    members: Mutex<Vec<Weak<dyn SharingCache>>>,
}

impl std::fmt::Debug for SharedPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedPages").field("used", &self.used).finish_non_exhaustive()
    }
}

impl SharedPages {
    /// The pages of number `id`; those of `shape`, if no file has any now.
    pub(crate) fn of(id: u64, shape: CacheShape) -> Arc<SharedPages> {
        static ALL: Global<BTreeMap<u64, Weak<SharedPages>>> =
            Global::new(Rank::Sharing, BTreeMap::new(), BTreeMap::new);
        let mut all = ALL.lock();
        if let Some(shared) = all.get(&id).and_then(Weak::upgrade) {
            return shared;
        }
        let (used, members) = (AtomicU64::new(0), Mutex::ranked(Rank::Members, Vec::new()));
        let shared = Arc::new(SharedPages { shape, used, members });
        all.insert(id, Arc::downgrade(&shared));
        shared
    }

    /// Page size and number of pages.
    pub(crate) fn shape(&self) -> CacheShape {
        self.shape
    }

    pub(crate) fn join(&self, member: Weak<dyn SharingCache>) {
        let mut members = self.members.lock();
        members.retain(|member| member.strong_count() > 0);
        members.push(member);
    }

    /// Takes a page if there is one.
    pub(crate) fn take(&self) -> bool {
        let one_more = |used| (used < self.shape.pages).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    pub(crate) fn give_back(&self, pages: u64) {
        self.used.fetch_sub(pages, Ordering::Relaxed);
    }

    /// For a cache that has `mine` pages and needs one more: if none is left and it has less than its
    /// share, the one that has most gives one up. The caller holds no page and no table.
    pub(crate) fn make_room(&self, mine: u64) {
        if self.used.load(Ordering::Relaxed) < self.shape.pages {
            return;
        }
        let members: Vec<Arc<dyn SharingCache>> =
            self.members.lock().iter().filter_map(Weak::upgrade).collect();
        let share = (self.shape.pages / members.len().max(1) as u64).max(1);
        if mine >= share {
            return;
        }
        let most = members.iter().max_by_key(|member| member.n_pages());
        if let Some(most) = most.filter(|most| most.n_pages() > share)
            && most.give_up()
        {
            self.give_back(1);
        }
    }
}
