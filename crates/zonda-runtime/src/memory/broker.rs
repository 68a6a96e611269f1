//! One limit for all that takes memory: who needs more asks, and the least useful goes first.
//!
//! To take and to give back costs three counts without order. Only where the limit is reached are the
//! holders asked how useful what they have is: memory that nobody needs goes before all, and of the rest
//! what was used longest ago, of whatever kind. Nothing goes that is as useful as what it would make room
//! for: the one who asks says how old that is.
//!
//! Nobody waits here. A holder only tries its own locks, since whoever asks may have them; of two threads
//! that want something given back at once one goes without. So one may ask while one holds any lock.

use crate::tuning::RELOOK_AFTER_USES;
use crate::tuning::RELOOK_AFTER_USES_IF_NONE;
use std::sync::{Arc, Weak};
use std::time::Instant;

use crate::Apart;
use crate::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::fork::{self, Child, Freeze};
use crate::lock::{Global, Mutex, MutexGuard, Rank};
use crate::memory::{Kind, USELESS, clock};

/// Somebody with memory that can be had back.
pub trait Holder: Send + Sync {
    /// When the least useful part of it was used last ([`tick`](super::tick)); `None` where nothing can be
    /// given back now. Takes no lock that it would have to wait for.
    fn least_useful(&self) -> Option<u64>;

    /// Gives up its least useful parts, as far as they were used before `before`, until that makes `bytes`
    /// bytes, and gives them back to the broker. Returns how many there were. It never waits: of a lock
    /// that somebody has, it is not the one to take what is under it.
    fn give_back(&self, bytes: u64, before: u64) -> u64;
}

/// Who has how much, and how much there may be.
pub struct Broker {
    /// What may be taken, in bytes; `None` asks the process's settings.
    limit: Option<u64>,
    /// In a line of its own, as the kinds are: all threads write it, and what is beside is read by all.
    used: Apart<AtomicU64>,
    /// What the process had from its parent when it was forked: no use to it, and not counted against it.
    inherited: AtomicU64,
    kinds: Apart<[KindUse; Kind::COUNT]>,
    /// No holder has anything that was used before, as far as is known until it is `look_at`.
    least: AtomicU64,
    look_at: AtomicU64,
    holders: Holders,
}

type HolderList = Vec<Weak<dyn Holder>>;

/// Who may be asked to give something back.
enum Holders {
    /// Those of the process, which every fork holds.
    Process,
    /// A test's.
    Own(Mutex<HolderList>),
}

/// Where a fork could not have them in time, the child knows of none that its parent had: their memory is not
/// counted against it either.
static PROCESS: Global<HolderList> = Global::new(Rank::Holders, Vec::new(), Vec::new);

impl Holders {
    fn lock(&self) -> MutexGuard<'_, HolderList> {
        match self {
            Holders::Process => PROCESS.lock(),
            Holders::Own(list) => list.lock(),
        }
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, HolderList>> {
        match self {
            Holders::Process => PROCESS.try_lock(),
            Holders::Own(list) => list.try_lock(),
        }
    }

    fn lock_until(&self, until: Instant) -> Option<MutexGuard<'_, HolderList>> {
        match self {
            Holders::Process => PROCESS.lock_until(until),
            Holders::Own(list) => list.lock_until(until),
        }
    }
}

/// What is had of one kind.
struct KindUse {
    now: AtomicU64,
    most: AtomicU64,
}

impl KindUse {
    const fn new() -> KindUse {
        KindUse { now: AtomicU64::new(0), most: AtomicU64::new(0) }
    }

    fn add(&self, bytes: u64) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if now > self.most.load(Ordering::Relaxed) {
            self.most.fetch_max(now, Ordering::Relaxed);
        }
    }
}

/// What is had of a kind, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// The kind.
    pub kind: Kind,
    /// Now.
    pub bytes: u64,
    /// The most at any time.
    pub most: u64,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker")
            .field("limit", &self.limit())
            .field("used", &self.in_use())
            .finish()
    }
}

impl Broker {
    /// One that may give out `limit` bytes.
    #[must_use]
    pub const fn new(limit: u64) -> Broker {
        Broker::with(Some(limit), Holders::Own(Mutex::ranked(Rank::Holders, Vec::new())))
    }

    pub(super) const fn of_process() -> Broker {
        Broker::with(None, Holders::Process)
    }

    const fn with(limit: Option<u64>, holders: Holders) -> Broker {
        Broker {
            limit,
            used: Apart(AtomicU64::new(0)),
            inherited: AtomicU64::new(0),
            kinds: Apart([const { KindUse::new() }; Kind::COUNT]),
            least: AtomicU64::new(0),
            look_at: AtomicU64::new(0),
            holders,
        }
    }

    /// What may be taken in all, in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.unwrap_or_else(super::budget)
    }

    /// What is taken now, in bytes.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// What is taken above the limit, in bytes.
    #[must_use]
    pub fn excess(&self) -> u64 {
        self.in_use().saturating_sub(self.most())
    }

    fn most(&self) -> u64 {
        self.limit().saturating_add(self.inherited.load(Ordering::Relaxed))
    }

    /// What is taken now of each kind, and the most that was.
    #[must_use]
    pub fn memory_use(&self) -> [MemoryUse; Kind::COUNT] {
        Kind::ALL.map(|kind| {
            let KindUse { now, most } = &self.kinds[kind as usize];
            let bytes = now.load(Ordering::Relaxed);
            MemoryUse { kind, bytes, most: most.load(Ordering::Relaxed).max(bytes) }
        })
    }

    /// Takes `bytes` if the limit allows it; nobody gives anything back for it.
    #[must_use = "what was not taken must not be given back"]
    pub fn take(&self, kind: Kind, bytes: u64) -> bool {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let is_little = self.limit.is_none() && used <= super::little();
        if !is_little && used > self.most() {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.kinds[kind as usize].add(bytes);
        true
    }

    /// As [`Broker::take`], after as much as that needs was given back of what was used before `before`.
    #[must_use = "what was not taken must not be given back"]
    pub fn take_over(&self, kind: Kind, bytes: u64, before: u64) -> bool {
        self.take(kind, bytes) || (self.reclaim(bytes, before) && self.take(kind, bytes))
    }

    /// Takes `bytes` whether the limit allows it or not.
    pub fn take_anyway(&self, kind: Kind, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.kinds[kind as usize].add(bytes);
    }

    /// Takes `bytes` whether the limit allows it or not, after others gave back for it what they can.
    pub fn take_first(&self, kind: Kind, bytes: u64) {
        if !self.take_over(kind, bytes, u64::MAX) {
            self.take_anyway(kind, bytes);
        }
    }

    /// Gives back what was taken.
    pub fn give_back(&self, kind: Kind, bytes: u64) {
        // Nothing is written for nothing: others would have to fetch these lines again.
        if bytes == 0 {
            return;
        }
        let used = self.used.fetch_sub(bytes, Ordering::Relaxed).saturating_sub(bytes);
        if self.inherited.load(Ordering::Relaxed) > used {
            // So much of what the parent had is left at most.
            self.inherited.fetch_min(used, Ordering::Relaxed);
        }
        self.kinds[kind as usize].now.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What was taken for one kind is now another.
    pub fn turn(&self, from: Kind, to: Kind, bytes: u64) {
        self.kinds[from as usize].now.fetch_sub(bytes, Ordering::Relaxed);
        self.kinds[to as usize].add(bytes);
    }

    /// Takes note of a holder. It is forgotten once it is gone, or by [`Broker::leave`].
    pub fn join(&self, holder: Weak<dyn Holder>) {
        if matches!(self.holders, Holders::Process) {
            super::process().know_of_forks();
        }
        let mut holders = self.holders.lock();
        if holders.len() == holders.capacity() {
            holders.retain(|holder| holder.strong_count() > 0);
        }
        holders.push(holder);
        self.has_spare();
    }

    /// Forgets a holder: when this returns, nobody here has it in hand any more. Not beyond `until`: where
    /// it is not known until then, it stays in the list until it is gone.
    pub fn leave(&self, holder: &Weak<dyn Holder>, until: Instant) {
        if let Some(mut holders) = self.holders.lock_until(until) {
            holders.retain(|other| !other.ptr_eq(holder));
        }
    }

    /// Somebody has memory that nobody needs, to be given back before all, or something of which it is
    /// not known how useful it is.
    #[inline]
    pub fn has_spare(&self) {
        if self.least.load(Ordering::Relaxed) != USELESS {
            self.least.store(USELESS, Ordering::Relaxed);
        }
    }

    /// Has holders give back what was used before `before`, the least useful first, until `bytes` more can
    /// be taken. Whether that many can.
    pub fn reclaim(&self, bytes: u64, before: u64) -> bool {
        let now = clock::now();
        let is_known = now < self.look_at.load(Ordering::Relaxed);
        if is_known && self.least.load(Ordering::Relaxed) >= before {
            return false;
        }
        // Another thread is at it, or this one was when a signal came.
        let Some(holders) = self.holders.try_lock() else { return false };
        let most = self.most();
        let missing = || self.in_use().saturating_add(bytes).saturating_sub(most);
        // Those who could give nothing, although they said so, are not asked twice.
        let mut refused: Vec<usize> = Vec::new();
        loop {
            let wanted = missing();
            if wanted == 0 {
                return true;
            }
            let aged = holders.iter().enumerate().filter_map(|(place, holder)| {
                let holder = holder.upgrade().filter(|_| !refused.contains(&place))?;
                Some((holder.least_useful()?, place, holder))
            });
            // The two oldest: the first gives no more than makes it younger than the second.
            let mut oldest: Option<(u64, usize, Arc<dyn Holder>)> = None;
            let mut next = u64::MAX;
            for (stamp, place, holder) in aged {
                match &oldest {
                    Some((first, ..)) if stamp >= *first => next = next.min(stamp),
                    _ => {
                        next = oldest.as_ref().map_or(u64::MAX, |(first, ..)| *first);
                        oldest = Some((stamp, place, holder));
                    }
                }
            }
            let least = oldest.as_ref().map_or(u64::MAX, |(stamp, ..)| *stamp);
            self.least.store(least, Ordering::Relaxed);
            // Where nobody had anything, they may have been at work with it.
            let patience =
                if oldest.is_some() { RELOOK_AFTER_USES } else { RELOOK_AFTER_USES_IF_NONE };
            self.look_at.store(now.saturating_add(patience), Ordering::Relaxed);
            match oldest.filter(|(stamp, ..)| *stamp < before) {
                None => return false,
                Some((stamp, place, holder)) => {
                    let before = before.min(next.max(stamp.saturating_add(1)));
                    if holder.give_back(wanted, before) == 0 {
                        refused.push(place);
                    }
                }
            }
        }
    }

    /// In a child of `fork`: what its parent has taken is the parent's, and leaves the child all that the
    /// limit allows. What was accepted is of no use here at all, and nobody is there who would give it back.
    fn in_child(&self) {
        let accepted = self.kinds[Kind::Queues as usize].now.swap(0, Ordering::Relaxed);
        self.used.fetch_sub(accepted, Ordering::Relaxed);
        self.inherited.store(self.in_use(), Ordering::Relaxed);
    }

    /// Has every fork from now on tell it in the child.
    pub(crate) fn know_of_forks(&'static self) {
        static IS_KNOWN: AtomicBool = AtomicBool::new(false);
        if !IS_KNOWN.load(Ordering::Relaxed) {
            fork::register(self);
            IS_KNOWN.store(true, Ordering::Relaxed);
        }
    }
}

/// Its holders are a part of their own, with a lock; what is counted needs none.
impl Freeze for Broker {
    fn rank(&self) -> Rank {
        Rank::Holders
    }

    fn hold(&'static self, _: Instant) -> Box<dyn fork::Frozen> {
        Box::new(CountsOverFork(self))
    }
}

struct CountsOverFork(&'static Broker);

impl fork::Frozen for CountsOverFork {
    fn in_child(&mut self, _: Child) {
        self.0.in_child();
    }

    fn give_back(&mut self) {}
}
