//! The order of locks: who holds one may wait for those further down, never for one further up or beside it.
//!
//! Two threads that take two locks in opposite order wait for each other for ever, and tests meet that moment seldom. So
//! each lock that is held while another one is taken has a rank, and builds with debug assertions look, each time a thread
//! waits for a lock, at what it has already: the order is broken by one thread alone, in the first run that goes that way.
//! A lock that is only tried may be tried in any order, since that waits for nobody.
//!
//! Release builds carry nothing of it: [`Ranked`], [`Level`] and [`HeldLock`] have no size there.

macro_rules! ranks {
    ($($(#[$doc:meta])+ $rank:ident,)+) => {
        /// Which locks may be taken while which are held: outermost first. A lock is taken by a thread that holds only
        /// locks above its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Rank {
            $($(#[$doc])+ $rank,)+
        }
    };
}

ranks! {
    /// What the threads of one call come to in turn, before anything else.
    Turns,
    /// What a program registers and sets for files that it opens later: formats, plugins, caches.
    Settings,
    /// The list of files that are open, where there is one. The table of handles has no lock.
    Files,
    /// A dataset in memory is being written to its path.
    Persist,
    /// A file. A fork takes those of all files, in the order of their slots; nobody else has two.
    File,
    /// Records being added to a classic file.
    Growth,
    /// Values that commits have go back in the order in which they came.
    Release,
    /// What write-behind has accepted for a file.
    Queue,
    /// What inquiries look at while puts wait.
    View,
    /// What a helper process knows of a file.
    Watch,
    /// The helper process.
    Helper,
    /// Queues that have work, and threads that may do it.
    Ready,
    /// The memory of files that a helper process watches, while it is made.
    Watched,
    /// The memory of other files with write-behind, while it is made.
    Budgets,
    /// Bytes that accepted values take.
    Budget,
    /// The gaps of memory that another process sees.
    Arena,
    /// The walk over the objects of a file, at its first inquiry.
    Walk,
    /// What one object of a file keeps for itself.
    Object,
    /// Where the data of an array are that other files have.
    Sources,
    /// Other files that a file names.
    Others,
    /// The index of the chunks of an array.
    ChunkIndex,
    /// Strings and sequences that a file gets.
    NewHeap,
    /// Strings and sequences of a file.
    Heap,
    /// How requests walk through an array.
    Pattern,
    /// The work of one put into chunks.
    Put,
    /// Decoded chunks of one array.
    ChunkCache,
    /// Which caches of chunks there are.
    ChunkCaches,
    /// The pool of the engine that decodes chunks, while it is made.
    Engine,
    /// What filter plugins were found.
    Plugins,
    /// One call of a plugin.
    Plugin,
    /// Jobs for the threads of a pool.
    Pool,
    /// Who takes part in the work of one call.
    CallWork,
    /// What a file knows of the writer that it is.
    Writer,
    /// The locks that writers of this process have against other processes.
    WriterLocks,
    /// Which of the writers of this process may change a file.
    Turn,
    /// The copy beside a file.
    Sidecars,
    /// The files without a name in which chunks wait.
    Spills,
    /// One such file.
    Spill,
    /// Which caches share pages, and which of them a file has.
    Sharing,
    /// Whether a cache with a thread still lives.
    Lives,
    /// The size of a cache.
    Resize,
    /// A page of a cache. Others are tried.
    Page,
    /// Files of lines that layers write, and which they are.
    Sinks,
    /// Which files are mapped.
    Mappings,
    /// The syncs of a file, one at a time.
    Syncs,
    /// A layer's own state.
    Layer,
    /// A mapped file.
    Mapping,
    /// A backend.
    Storage,
    /// A piece of a backend's memory.
    Segment,
    /// A page that is lent to a thread.
    Lease,
    /// Which pages of a cache may be lent.
    Lent,
    /// Why a backend failed, for who asks later.
    Cause,
    /// Which pages of a cache are where.
    Table,
    /// Fill values of pages that writes have taken out.
    WithheldFills,
    /// Reads that a cache remembers.
    RecentReads,
    /// The caches that share pages.
    Members,
    /// What the thread of a cache has to do.
    BackgroundWork,
    /// What is kept of a server's responses, and what of them is still to be asked for.
    Responses,
    /// The threads that ask servers, while they are made.
    Fetching,
    /// What they have to do.
    FetchQueue,
    /// Who has memory of the process that others may have back. Under it the locks of those are only tried.
    Holders,
    /// What failed first of what threads share.
    Failed,
    /// Which servers are spoken to, and how many requests each has. Nothing is taken under it, and no request runs under it.
    Servers,
    /// Which puts ranks make together. Nothing is taken under it.
    AccessModes,
    /// The memory that blocks of one length are cut from. It is only tried.
    Blocks,
    /// What rank 0 of a team met in a common step. Nothing is taken under it.
    StepRecord,
    /// Lines that a layer writes.
    Lines,
    /// What ranks of a simulated team have for each other. Steps are called with locks of files held; nothing is taken under it.
    Mailbox,
    /// The loader of libraries, which a fork must not meet half way. Nothing is taken under it.
    Loading,
    /// What was already said.
    Said,
    /// The trace.
    Trace,
}

/// Which of several layers over each other a lock is of that is held while the layer below is called. What is made later
/// lies over what was made before, and its locks come first.
#[derive(Clone, Copy, Debug)]
pub struct Level(#[cfg(debug_assertions)] u32);

impl Level {
    /// The level of a layer that is being made.
    #[must_use]
    pub fn next() -> Level {
        #[cfg(debug_assertions)]
        {
            use std::sync::atomic::{AtomicU32, Ordering};
            static LAST: AtomicU32 = AtomicU32::new(0);
            Level(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
        }
        #[cfg(not(debug_assertions))]
        Level()
    }
}

/// The place of a lock in the order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked(#[cfg(debug_assertions)] checked::LockPlace);

/// A lock that this thread has, as long as it lives.
#[derive(Debug)]
#[must_use]
pub(super) struct HeldLock(#[cfg(debug_assertions)] checked::LockPlace);

/// In the child of a fork: the thread may be in a signal handler, above a call that had locks. That call has them still,
/// but there is no other thread that it could keep waiting.
#[inline]
pub(crate) fn begin_child() {
    #[cfg(debug_assertions)]
    checked::forget_all();
}

/// While it is kept, this thread counts as one that has no lock: code of others runs, which begins anew.
pub(crate) fn set_aside() -> Aside {
    Aside(
        #[cfg(debug_assertions)]
        checked::take_all(),
    )
}

/// What a thread has that counts again afterwards.
#[must_use]
pub(crate) struct Aside(#[cfg(debug_assertions)] checked::AllHeld);

#[cfg(not(debug_assertions))]
impl Ranked {
    pub(super) const fn of(_: Rank) -> Ranked {
        Ranked()
    }

    pub(super) const fn at(_: Rank, _: Level) -> Ranked {
        Ranked()
    }

    #[inline]
    pub(super) fn check(self) {}

    #[inline]
    pub(super) fn held(self) -> HeldLock {
        HeldLock()
    }
}

#[cfg(debug_assertions)]
mod checked {
    use std::cell::Cell;

    use super::{HeldLock, Level, Rank, Ranked};

    /// A rank, and a level where there is one.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(super) struct LockPlace {
        rank: Rank,
        level: u32,
    }

    /// Locks that are noted of one thread. A fork has more; it waits for none of them without end.
    const MOST_HELD: usize = 32;

    thread_local! {
        /// What this thread has. An entry comes and goes with one store, since a signal handler may take locks between
        /// any two.
        static HELD: [Cell<Option<LockPlace>>; MOST_HELD] = const { [const { Cell::new(None) }; MOST_HELD] };
    }

    impl LockPlace {
        /// Whether who holds it may wait for `other`.
        fn is_before(self, other: LockPlace) -> bool {
            if self.level != 0 && other.level != 0 && self.level != other.level {
                return self.level > other.level;
            }
            self.rank < other.rank
        }
    }

    impl Ranked {
        pub(in super::super) const fn of(rank: Rank) -> Ranked {
            Ranked(LockPlace { rank, level: 0 })
        }

        pub(in super::super) const fn at(rank: Rank, level: Level) -> Ranked {
            Ranked(LockPlace { rank, level: level.0 })
        }

        /// To be called before it is waited for.
        #[track_caller]
        pub(in super::super) fn check(self) {
            // A thread that ends may have no list any more.
            let in_the_way = HELD.try_with(|held| {
                held.iter().filter_map(Cell::get).find(|held| !held.is_before(self.0))
            });
            if let Ok(Some(held)) = in_the_way {
                panic!(
                    "a thread waits for a lock of rank {:?} while it holds one of rank {:?}",
                    self.0.rank, held.rank
                );
            }
        }

        /// To be called when it is taken.
        pub(in super::super) fn held(self) -> HeldLock {
            change(None, Some(self.0));
            HeldLock(self.0)
        }
    }

    impl Drop for HeldLock {
        fn drop(&mut self) {
            change(Some(self.0), None);
        }
    }

    pub(super) fn forget_all() {
        let _ = HELD.try_with(|held| held.iter().for_each(|entry| entry.set(None)));
    }

    /// All that a thread has.
    pub(super) type AllHeld = [Option<LockPlace>; MOST_HELD];

    pub(super) fn take_all() -> AllHeld {
        let mut all = [None; MOST_HELD];
        let _ = HELD.try_with(|held| {
            held.iter().zip(&mut all).for_each(|(entry, kept)| *kept = entry.take());
        });
        all
    }

    impl Drop for super::Aside {
        fn drop(&mut self) {
            let _ = HELD.try_with(|held| {
                held.iter().zip(self.0).for_each(|(entry, kept)| entry.set(kept));
            });
        }
    }

    fn change(from: Option<LockPlace>, to: Option<LockPlace>) {
        let _ = HELD.try_with(|held| {
            if let Some(entry) = held.iter().find(|entry| entry.get() == from) {
                entry.set(to);
            }
        });
    }
}
