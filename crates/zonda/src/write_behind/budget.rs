//! The bytes that accepted values may take, and the memory that they take.
//!
//! Memory that values left is kept for the next ones within the same limit: pages that a process has
//! for the first time cost more than the copy.
//!
//! What is taken counts as memory of the process, too ([`memory`]): others give back for it what is less
//! useful, and get what is kept for later. The limit that puts wait at is this one alone, so that no put
//! waits for memory that nobody is going to give back.

use std::sync::{Arc, Weak};
use std::time::Instant;
use zonda_runtime::fork;
use zonda_runtime::lock::{Condvar, Global, Mutex, MutexGuard, Rank};
use zonda_runtime::memory::{self, Holder, Kind, USELESS};

use arc_swap::ArcSwapOption;
use zonda_shared::Arena;

use super::memory::ValueMemory;
use super::settings::WriteBehindOptions;
use crate::tuning::SPARE_PIECES;

/// The one that files share which have none of their own, and the process whose it is: a forked child has its
/// own, whatever threads of its parent are at.
static SHARED: Global<OfProcess> = Global::new(Rank::Budgets, None, || None);
/// The same for files that a helper process watches.
static WATCHED: Global<OfProcess> = Global::new(Rank::Watched, None, || None);

/// The one that files share, for a fork, which has no lock to find it by.
static KEPT: ArcSwapOption<Budget> = ArcSwapOption::const_empty();
static SPARE: OfForks = OfForks;

/// What a parent kept for its next puts is not kept by its child.
struct OfForks;

impl fork::Freeze for OfForks {
    fn rank(&self) -> Rank {
        Rank::Budget
    }

    fn hold(&'static self, _: Instant) -> Box<dyn fork::Frozen> {
        Box::new(OfForks)
    }
}

impl fork::Frozen for OfForks {
    fn in_child(&mut self, _: fork::Child) {
        if let Some(budget) = &*KEPT.load() {
            budget.rest();
        }
    }

    fn give_back(&mut self) {}
}

type OfProcess = Option<(u32, Arc<Budget>)>;

fn of_this(known: &OfProcess) -> Option<Arc<Budget>> {
    let (pid, budget) = known.as_ref()?;
    (*pid == std::process::id()).then(|| Arc::clone(budget))
}

/// Leaves what a parent had to it; memory that it kept for later goes.
fn leave(known: OfProcess) {
    if let Some((_, budget)) = &known {
        budget.rest();
    }
    std::mem::forget(known);
}

/// Nothing waits in the process: memory that files share goes that was kept for the next puts.
pub(super) fn rest() {
    for known in [&SHARED, &WATCHED] {
        let budget = known.lock().as_ref().map(|(_, budget)| Arc::clone(budget));
        if let Some(budget) = budget {
            budget.rest();
        }
    }
}

/// Bytes that values of all files of the process may take together.
fn limit_of_process() -> u64 {
    let from_env = match super::WriteBehind::from_env() {
        super::WriteBehind::On(how) => how.memory_bytes,
        super::WriteBehind::Off => None,
    };
    from_env.unwrap_or_else(WriteBehindOptions::default_memory)
}

/// A limit and what is taken of it.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    /// The process whose memory it counts.
    pid: u32,
    /// The memory itself, where a helper process sees it.
    arena: Option<Arc<Arena>>,
    taken: Mutex<TakenBytes>,
    /// Something was given back, or a queue stopped.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct TakenBytes {
    /// Bytes in use, spare ones not among them.
    used: usize,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    /// How often those who wait were woken.
    n_wakes: u64,
}

impl Budget {
    fn new(limit: u64) -> Arc<Budget> {
        Budget::with(limit, None)
    }

    fn with(limit: u64, arena: Option<Arc<Arena>>) -> Arc<Budget> {
        let budget = Arc::new(Budget {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            pid: std::process::id(),
            arena,
            taken: Mutex::ranked(Rank::Budget, TakenBytes::default()),
            changed: Condvar::new(),
        });
        let holder: Weak<Budget> = Arc::downgrade(&budget);
        memory::process().join(holder);
        budget
    }

    /// The one of all files together.
    pub(super) fn of_process() -> Arc<Budget> {
        let mut shared = SHARED.lock();
        if let Some(budget) = of_this(&shared) {
            return budget;
        }
        let budget = Budget::new(limit_of_process());
        // What a parent's threads may have taken of theirs is not given back here.
        leave(shared.replace((std::process::id(), Arc::clone(&budget))));
        fork::register(&SPARE);
        KEPT.store(Some(Arc::clone(&budget)));
        budget
    }

    /// One whose memory a helper process sees. Where the system has no such memory, that is told, and it
    /// is another one.
    fn watched(how: &WriteBehindOptions) -> Arc<Budget> {
        let mut shared = WATCHED.lock();
        let of_process = of_this(&shared);
        let limit_of_process = limit_of_process();
        let limit = how.memory_bytes.unwrap_or(limit_of_process);
        let is_shared = limit == limit_of_process;
        if let (Some(budget), true) = (of_process, is_shared) {
            return budget;
        }
        let budget = match Arena::new(usize::try_from(limit).unwrap_or(usize::MAX)) {
            Ok(arena) => Budget::with(limit, Some(arena)),
            Err(error) => {
                super::helper::warn(&format_args!(
                    "memory cannot be shared with the helper process: {error}"
                ));
                return Budget::of_process();
            }
        };
        if is_shared {
            leave(shared.replace((std::process::id(), Arc::clone(&budget))));
        }
        budget
    }

    /// The one for a file: of its own where a size is said that is not the one of all files.
    pub(super) fn of(how: &WriteBehindOptions) -> Arc<Budget> {
        if how.helper {
            return Budget::watched(how);
        }
        let of_process = Budget::of_process();
        match how.memory_bytes {
            Some(bytes) if bytes != of_process.limit as u64 => Budget::new(bytes),
            _ => of_process,
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// The memory, where a helper process sees it.
    pub(super) fn arena(&self) -> Option<&Arc<Arena>> {
        self.arena.as_ref()
    }

    /// Whether it is a parent's, of which this process is a forked child: what that took is not taken here.
    fn is_inherited(&self) -> bool {
        self.pid != std::process::id()
    }

    fn has_room(&self, taken: &TakenBytes, bytes: usize) -> bool {
        match &self.arena {
            Some(arena) => arena.has_room(bytes),
            None => bytes <= self.limit.saturating_sub(taken.used),
        }
    }

    fn lock(&self) -> MutexGuard<'_, TakenBytes> {
        self.taken.lock()
    }

    /// Empty memory for at least so many bytes; `None` where the limit does not allow it
    /// now, or where the system has none.
    pub(super) fn memory(&self, bytes: usize) -> Option<ValueMemory> {
        if let Some(arena) = &self.arena {
            let block = arena.take(bytes)?;
            memory::process().take_first(Kind::Queues, block.capacity() as u64);
            return Some(ValueMemory::Shared(block));
        }
        let mut taken = self.lock();
        let fits = |len: usize| len >= bytes && len / 2 <= bytes;
        if let Some(at) = taken.spare.iter().position(|spare| fits(spare.capacity())) {
            let memory = taken.spare.swap_remove(at);
            taken.spare_bytes -= memory.capacity();
            taken.used += memory.capacity();
            memory::process().turn(Kind::Spare, Kind::Queues, memory.capacity() as u64);
            return Some(ValueMemory::Own(memory));
        }
        if bytes > self.limit.saturating_sub(taken.used) {
            return None;
        }
        let mut given_up = Vec::new();
        while bytes > self.limit - taken.used.saturating_add(taken.spare_bytes).min(self.limit) {
            let Some(spare) = taken.pop_spare() else { break };
            given_up.push(spare);
        }
        taken.used += bytes;
        drop(taken);
        drop(given_up);
        memory::process().take_first(Kind::Queues, bytes as u64);
        let mut memory = Vec::new();
        if memory.try_reserve_exact(bytes).is_err() {
            self.give_back_bytes(bytes);
            return None;
        }
        // What the allocator gave beyond it is counted, since it is given back with it.
        let more = memory.capacity() - bytes;
        if more > 0 {
            self.lock().used += more;
            memory::process().take_anyway(Kind::Queues, more as u64);
        }
        Some(ValueMemory::Own(memory))
    }

    /// Counts bytes that are taken elsewhere; false where the limit does not allow it now.
    pub(super) fn take_bytes(&self, bytes: usize) -> bool {
        let mut taken = self.lock();
        let fits = bytes <= self.limit.saturating_sub(taken.used);
        if fits {
            taken.used += bytes;
            while taken.used.saturating_add(taken.spare_bytes) > self.limit {
                let Some(_spare) = taken.pop_spare() else { break };
            }
            drop(taken);
            memory::process().take_first(Kind::Queues, bytes as u64);
        }
        fits
    }

    pub(super) fn give_back(&self, memory: ValueMemory) {
        if self.is_inherited() {
            memory.leave();
            return;
        }
        let mut memory = match memory {
            ValueMemory::Own(memory) => memory,
            ValueMemory::Shared(block) => {
                memory::process().give_back(Kind::Queues, block.capacity() as u64);
                drop(block);
                return self.wake();
            }
        };
        memory.clear();
        let bytes = memory.capacity();
        let mut taken = self.lock();
        taken.used = taken.used.saturating_sub(bytes);
        let fits = taken.used.saturating_add(taken.spare_bytes).saturating_add(bytes) <= self.limit;
        let given_up = if fits && taken.spare.len() < SPARE_PIECES && bytes > 0 {
            taken.spare_bytes += bytes;
            taken.spare.push(memory);
            memory::process().turn(Kind::Queues, Kind::Spare, bytes as u64);
            memory::process().has_spare();
            None
        } else {
            memory::process().give_back(Kind::Queues, bytes as u64);
            Some(memory)
        };
        taken.n_wakes += 1;
        drop(taken);
        self.changed.notify_all();
        drop(given_up);
    }

    pub(super) fn give_back_bytes(&self, bytes: usize) {
        if self.is_inherited() {
            return;
        }
        memory::process().give_back(Kind::Queues, bytes as u64);
        let mut taken = self.lock();
        taken.used = taken.used.saturating_sub(bytes);
        taken.n_wakes += 1;
        drop(taken);
        self.changed.notify_all();
    }

    /// Gives up what was kept for the next puts. It is only tried: in a child of a fork a thread may have the lock that is not
    /// there.
    pub(super) fn rest(&self) {
        let Some(mut taken) = self.taken.try_lock() else { return };
        let mut given_up = Vec::new();
        while let Some(spare) = taken.pop_spare() {
            given_up.push(spare);
        }
        drop(taken);
    }

    /// Tells those who wait that they should look again.
    pub(super) fn wake(&self) {
        self.lock().n_wakes += 1;
        self.changed.notify_all();
    }

    /// Waits until so many bytes are free, or `stop` says that there is no use in waiting; whoever
    /// changes what `stop` looks at calls [`Budget::wake`] afterwards. No lock is held while it is
    /// asked.
    pub(super) fn wait(&self, bytes: usize, stop: impl Fn() -> bool) {
        loop {
            let taken = self.lock();
            let n_wakes = taken.n_wakes;
            if self.has_room(&taken, bytes) {
                return;
            }
            drop(taken);
            if stop() {
                return;
            }
            let mut taken = self.lock();
            while taken.n_wakes == n_wakes {
                taken = self.changed.wait(taken);
            }
        }
    }
}

impl TakenBytes {
    /// Gives up a piece that was kept.
    fn pop_spare(&mut self) -> Option<Vec<u8>> {
        let spare = self.spare.pop()?;
        self.spare_bytes -= spare.capacity();
        memory::process().give_back(Kind::Spare, spare.capacity() as u64);
        Some(spare)
    }
}

impl Holder for Budget {
    fn least_useful(&self) -> Option<u64> {
        let taken = self.taken.try_lock()?;
        (!taken.spare.is_empty()).then_some(USELESS)
    }

    fn give_back(&self, bytes: u64, _before: u64) -> u64 {
        let Some(mut taken) = self.taken.try_lock() else { return 0 };
        let (mut given, mut given_up) = (0, Vec::new());
        while given < bytes {
            let Some(spare) = taken.pop_spare() else { break };
            given += spare.capacity() as u64;
            given_up.push(spare);
        }
        drop(taken);
        given
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        let taken = self.taken.get_mut();
        while taken.pop_spare().is_some() {}
    }
}
