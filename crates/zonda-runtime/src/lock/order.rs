//! The order of locks: who holds one may wait for those further down, never for one further up or beside it.
//!
//! Two threads that take two locks in opposite order wait for each other for ever, and tests meet that moment seldom. So
//! each lock that is held while another one is taken has a rank, and builds with debug assertions look, each time a thread
//! waits for a lock, at what it has already: the order is broken by one thread alone, in the first run that goes that way.
//! A lock that is only tried may be tried in any order, since that waits for nobody.
//!
//! Release builds carry nothing of it: [`Ranked`] and [`Held`] have no size there.

macro_rules! ranks {
    ($($(#[$doc:meta])+ $rank:ident,)+) => {
        /// Which locks may be taken while which are held: outermost first. A lock is taken by a thread that holds only
        /// locks above its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Rank {
            $($(#[$doc])+ $rank,)+
        }

        /// All of them, outermost first.
        pub const RANKS: &[Rank] = &[$(Rank::$rank,)+];
    };
}

ranks! {
    /// What a program registers and sets for files that it opens later: formats, plugins, caches.
    Settings,
    /// The list of files that are open, where there is one. The table of handles has no lock.
    Files,
    /// A file. A fork takes those of all files, in the order of their slots; nobody else has two.
    File,
    /// Records being added to a classic file.
    Growth,
    /// What a file knows of the writer that it is.
    Writer,
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
    /// Other files that a file takes data from.
    Others,
    /// The index of the chunks of an array.
    ChunkIndex,
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
    Crew,
    /// The locks that writers of this process have against other processes.
    WriterLocks,
    /// Which of the writers of this process may change a file.
    Turn,
    /// The copy beside a file.
    Beside,
    /// Whether a cache with a thread still lives.
    Lives,
    /// The size of a cache.
    Resize,
    /// A page of a cache. Others are tried.
    Page,
    /// Which pages of a cache are where.
    Table,
    /// What the thread of a cache has to do.
    Line,
    /// What it failed at.
    Failed,
    /// Which caches share pages, and which of them a file has.
    Sharing,
    /// The caches that share some.
    Members,
    /// Files of lines that layers write, and which they are.
    Sinks,
    /// Which files are mapped.
    Mappings,
    /// A layer's own state.
    Layer,
    /// A mapped file.
    Mapping,
    /// A backend.
    Storage,
    /// A piece of a backend's memory.
    Segment,
    /// Lines that a layer writes.
    Lines,
    /// What was already said.
    Said,
    /// The trace.
    Trace,
}

/// The rank of a lock; none for locks that are taken alone, as in tests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ranked(#[cfg(debug_assertions)] Option<Rank>);

/// A lock that this thread has, as long as it lives.
#[derive(Debug)]
#[must_use]
pub(super) struct Held(#[cfg(debug_assertions)] Option<Rank>);

#[cfg(not(debug_assertions))]
impl Ranked {
    pub(super) const fn none() -> Ranked {
        Ranked()
    }

    pub(super) const fn of(_: Rank) -> Ranked {
        Ranked()
    }

    #[inline]
    pub(super) fn check(self) {}

    #[inline]
    pub(super) fn held(self) -> Held {
        Held()
    }
}

#[cfg(debug_assertions)]
thread_local! {
    /// How many locks of each rank this thread has: plain numbers, which a signal handler may come upon.
    static HELD: [std::cell::Cell<u8>; RANKS.len()] = const { [const { std::cell::Cell::new(0) }; RANKS.len()] };
}

#[cfg(debug_assertions)]
impl Ranked {
    pub(super) const fn none() -> Ranked {
        Ranked(None)
    }

    pub(super) const fn of(rank: Rank) -> Ranked {
        Ranked(Some(rank))
    }

    /// To be called before it is waited for.
    #[track_caller]
    pub(super) fn check(self) {
        let Some(rank) = self.0 else { return };
        let inner = HELD.try_with(|held| {
            (rank as usize..RANKS.len()).rev().find(|&at| held[at].get() > 0)
        });
        if let Ok(Some(inner)) = inner {
            panic!(
                "a thread waits for a lock of rank {rank:?} while it holds one of rank {:?}",
                RANKS[inner]
            );
        }
    }

    /// To be called when it is taken.
    pub(super) fn held(self) -> Held {
        if let Some(rank) = self.0 {
            let _ = HELD.try_with(|held| {
                let held = &held[rank as usize];
                held.set(held.get().saturating_add(1));
            });
        }
        Held(self.0)
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        if let Some(rank) = self.0 {
            let _ = HELD.try_with(|held| {
                let held = &held[rank as usize];
                held.set(held.get().saturating_sub(1));
            });
        }
    }
}
