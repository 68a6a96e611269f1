//! The bytes that accepted values may take, and the memory that they take.
//!
//! Memory of values that were written is kept for the next ones, within the same limit: new pages from the system
//! cost more than the copy.
//!
//! Bytes that are taken also count in the budget of the process ([`memory`]): caches give back less useful memory for
//! them, and get memory that is kept for later. Puts wait at this limit alone, so that no put waits for memory that
//! nobody is going to give back.

use std::sync::{Arc, Weak};
use std::time::Instant;
use zonda_runtime::fork;
use zonda_runtime::lock::{Condvar, Global, Mutex, MutexGuard, Rank};
use zonda_runtime::memory::{self, Holder, Kind, USELESS};

use arc_swap::ArcSwapOption;
use zonda_shared::Arena;

use super::memory::{OwnMemory, ValueMemory};
use super::of_ranks::limit_of_process;
use super::settings::WriteBehindOptions;
use crate::tuning::SPARE_PIECES;

/// The budget that files without one of their own share, and the process that it belongs to. A forked child gets its
/// own, since threads of the parent may be using the other one.
static SHARED: Global<OfProcess> = Global::new(Rank::Budgets, None, || None);
/// The same for files that a helper process watches.
static WATCHED: Global<OfProcess> = Global::new(Rank::Watched, None, || None);

/// The budget that files share, for a fork, which must not take a lock to find it.
static KEPT: ArcSwapOption<Budget> = ArcSwapOption::const_empty();
static SPARE: BudgetAtFork = BudgetAtFork;

/// A forked child does not keep the spare memory of its parent.
struct BudgetAtFork;

impl fork::Freeze for BudgetAtFork {
    fn rank(&self) -> Rank {
        Rank::Budget
    }

    fn hold(&'static self, _: Instant) -> Box<dyn fork::Frozen> {
        Box::new(BudgetAtFork)
    }
}

impl fork::Frozen for BudgetAtFork {
    fn in_child(&mut self, _: fork::Child) {
        if let Some(budget) = &*KEPT.load() {
            budget.free_spare();
        }
    }

    fn give_back(&mut self) {}
}

type OfProcess = Option<(u32, Arc<Budget>)>;

fn of_this(known: &OfProcess) -> Option<Arc<Budget>> {
    let (pid, budget) = known.as_ref()?;
    (*pid == std::process::id()).then(|| Arc::clone(budget))
}

/// In a forked child: leaves the budget of the parent alone, and frees spare memory.
fn leave(known: OfProcess) {
    if let Some((_, budget)) = &known {
        budget.free_spare();
    }
    std::mem::forget(known);
}

/// Frees spare memory of the shared budget, when no put waits in the process.
pub(super) fn free_spare() {
    for known in [&SHARED, &WATCHED] {
        let budget = known.lock().as_ref().map(|(_, budget)| Arc::clone(budget));
        if let Some(budget) = budget {
            budget.free_spare();
        }
    }
}

/// A limit and what is taken of it.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    /// The process whose memory it counts.
    pid: u32,
    /// The memory itself, where it is shared with a helper process.
    arena: Option<Arc<Arena>>,
    taken: Mutex<TakenBytes>,
    /// Signalled when bytes were given back, or a queue stopped.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct TakenBytes {
    /// Bytes in use, without spare ones.
    used: usize,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    /// How often waiting threads were woken.
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

    /// The budget of all files together.
    pub(super) fn of_process() -> Arc<Budget> {
        let mut shared = SHARED.lock();
        if let Some(budget) = of_this(&shared) {
            return budget;
        }
        let budget = Budget::new(limit_of_process());
        // Bytes that threads of the parent took from the other budget are not given back to this one.
        leave(shared.replace((std::process::id(), Arc::clone(&budget))));
        fork::register(&SPARE);
        KEPT.store(Some(Arc::clone(&budget)));
        budget
    }

    /// A budget whose memory is shared with a helper process. Where the system has no such memory, a warning is
    /// printed, and it is the ordinary one.
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

    /// The budget of a file: its own where the options give a size other than that of all files.
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

    /// The memory, where it is shared with a helper process.
    pub(super) fn arena(&self) -> Option<&Arc<Arena>> {
        self.arena.as_ref()
    }

    /// Whether it belongs to the parent of this forked child: bytes that the parent took do not count here.
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
            return Some(ValueMemory::Own(OwnMemory::of(memory)));
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
        // Bytes that the allocator gave beyond the request are counted, too, since they are given back with it.
        let more = memory.capacity() - bytes;
        if more > 0 {
            self.lock().used += more;
            memory::process().take_anyway(Kind::Queues, more as u64);
        }
        Some(ValueMemory::Own(OwnMemory::of(memory)))
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
        let memory = match memory {
            ValueMemory::Own(memory) => memory.into_bytes(),
            ValueMemory::Shared(block) => {
                memory::process().give_back(Kind::Queues, block.capacity() as u64);
                drop(block);
                return self.wake();
            }
        };
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

    /// Frees spare memory. The lock is only tried: in a forked child a thread that does not exist there may hold it.
    pub(super) fn free_spare(&self) {
        let Some(mut taken) = self.taken.try_lock() else { return };
        let mut given_up = Vec::new();
        while let Some(spare) = taken.pop_spare() {
            given_up.push(spare);
        }
        drop(taken);
    }

    /// Wakes waiting threads, to look again.
    pub(super) fn wake(&self) {
        self.lock().n_wakes += 1;
        self.changed.notify_all();
    }

    /// Waits until so many bytes are free, or `stop` returns true because waiting is of no use. A thread that changes
    /// what `stop` looks at calls [`Budget::wake`] afterwards. No lock is held while `stop` runs.
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
    /// Frees a spare piece.
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
