//! Chunks that change while they are decoded in the background, under a scheduler that tries orders of the threads, as the
//! pool is in `zonda-runtime`. The sources of the cache and of the work are those of the crate, over locks, atomics and threads
//! that the scheduler knows; what is around them is as small as can be: a chunk is one byte, and decoding it takes a while.

use std::sync::{Arc, Weak};

use shuttle::sync::Mutex;
use smallvec::{SmallVec, smallvec};

#[allow(dead_code, unreachable_pub)]
#[path = "../src/cache/mod.rs"]
mod cache;
#[allow(dead_code, unreachable_pub)]
#[path = "../src/prefetch/work.rs"]
mod prefetch;
#[allow(dead_code, unreachable_pub)]
#[path = "../src/recency.rs"]
mod recency;

#[allow(dead_code, unreachable_pub)]
#[path = "../src/tuning.rs"]
mod tuning;

/// As in the crate, but what the scheduler knows.
mod sync {
    pub(crate) use shuttle::sync::atomic;

    pub(crate) mod lock {
        use std::time::Duration;

        /// The order of locks is looked at in the crate's own.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Rank {
            ChunkCache,
        }

        #[derive(Debug)]
        pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

        pub(crate) struct MutexGuard<'a, T> {
            mutex: &'a Mutex<T>,
            inner: shuttle::sync::MutexGuard<'a, T>,
        }

        impl<T> std::ops::Deref for MutexGuard<'_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.inner
            }
        }

        impl<T> std::ops::DerefMut for MutexGuard<'_, T> {
            fn deref_mut(&mut self) -> &mut T {
                &mut self.inner
            }
        }

        impl<T> Mutex<T> {
            pub(crate) fn ranked(_: Rank, value: T) -> Mutex<T> {
                Mutex(shuttle::sync::Mutex::new(value))
            }

            pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
                MutexGuard { mutex: self, inner: self.0.lock().unwrap() }
            }

            pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
                Some(MutexGuard { mutex: self, inner: self.0.try_lock().ok()? })
            }

            pub(crate) fn get_mut(&mut self) -> &mut T {
                self.0.get_mut().unwrap()
            }
        }

        #[derive(Debug)]
        pub(crate) struct Condvar;

        impl Condvar {
            pub(crate) fn new() -> Condvar {
                Condvar
            }

            /// The time is short: who waits looks again, for one that gave up rings no bell.
            pub(crate) fn wait_timeout<'a, T>(
                &self,
                guard: MutexGuard<'a, T>,
                _: Duration,
            ) -> (MutexGuard<'a, T>, bool) {
                let mutex = guard.mutex;
                drop(guard);
                shuttle::thread::yield_now();
                (mutex.lock(), true)
            }

            pub(crate) fn notify_all(&self) {}
        }
    }

    pub(crate) fn sleep(_: std::time::Duration) {
        shuttle::thread::yield_now();
    }

    /// Now and then somebody forks, and no thread in the background may take a lock.
    pub(crate) mod fork {
        use shuttle::rand::Rng;

        pub(crate) struct Inside;

        impl Drop for Inside {
            fn drop(&mut self) {
                shuttle::thread::yield_now();
            }
        }

        pub(crate) fn enter() -> Option<Inside> {
            (!shuttle::rand::thread_rng().gen_bool(0.1)).then_some(Inside)
        }
    }
}

/// As in the crate.
mod chunk_bytes {
    pub(crate) type ChunkBytes = Vec<u8>;
}

/// As in the crate.
mod selection {
    pub(crate) type Coords = smallvec::SmallVec<[u64; 4]>;
}

/// As in the crate.
mod table {
    pub(crate) use zonda_chunk::ChunkAt;
}

/// As in the crate.
mod stored {
    #[derive(Debug)]
    #[expect(dead_code, reason = "what of it is needed here is the place")]
    pub(crate) struct LocatedChunk<'a> {
        pub key: &'a [u64],
        pub place: super::table::ChunkAt,
        pub is_edge: bool,
    }
}

/// Threads for whoever wants one, and memory without end.
mod engine {
    use super::{Arc, Weak};
    use zonda_runtime::memory::{Holder, Kind};

    #[derive(Debug)]
    pub(crate) struct Engine;

    impl Engine {
        #[expect(clippy::unused_self, reason = "as in the crate")]
        pub(crate) fn threads(&self) -> usize {
            2
        }

        #[expect(clippy::unused_self, reason = "as in the crate")]
        pub(crate) fn budget_bytes(&self) -> u64 {
            1 << 20
        }

        #[expect(clippy::unused_self, reason = "as in the crate")]
        pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) -> bool {
            drop(shuttle::thread::spawn(work));
            true
        }

        pub(crate) fn broker(&self) -> &Engine {
            self
        }

        pub(crate) fn join(&self, _: Weak<dyn Holder>) {}

        pub(crate) fn take(&self, _: Kind, _: u64) -> bool {
            true
        }

        pub(crate) fn take_anyway(&self, _: Kind, _: u64) {}

        pub(crate) fn give_back(&self, _: Kind, _: u64) {}

        pub(crate) fn reclaim(&self, _: u64, _: u64) -> bool {
            false
        }
    }

    impl Engine {
        pub(crate) fn new() -> Arc<Engine> {
            Arc::new(Engine)
        }
    }
}

/// An array of chunks of one byte each, whose places are numbers of bytes of a disk.
mod array {
    use super::cache::ChunkCache;
    use super::engine::Engine;
    use super::prefetch::BackgroundDecoding;
    use super::table::ChunkAt;
    use super::{Arc, Mutex};
    use crate::sync::atomic::AtomicU64;

    #[derive(Debug)]
    pub(crate) struct SharedArray {
        pub engine: Arc<Engine>,
        pub table: Table,
        pub disk: Mutex<Vec<u8>>,
        pub chunk_dims: Vec<u64>,
        pub chunk_bytes: Option<usize>,
        pub cache: Arc<ChunkCache>,
        pub since: AtomicU64,
        pub background: BackgroundDecoding,
    }

    /// Where each chunk is.
    #[derive(Debug)]
    pub(crate) struct Table(pub Mutex<Vec<u64>>);

    impl Table {
        pub(crate) fn at(&self, key: u64) -> ChunkAt {
            ChunkAt { at: self.0.lock().unwrap()[key as usize], len: 1, mask: 0 }
        }

        pub(crate) fn locate(
            &self,
            first: &[u64],
            last: &[u64],
            found: &mut dyn FnMut(&[u64], ChunkAt),
        ) -> Result<(), ()> {
            (first[0]..=last[0]).for_each(|key| found(&[key], self.at(key)));
            Ok(())
        }
    }
}

/// As in the crate.
mod worker {
    use super::engine::Engine;

    #[derive(Debug, Default)]
    pub(crate) struct WorkerBuffers {
        pub rows: RowBuffers,
    }

    #[derive(Debug, Default)]
    pub(crate) struct RowBuffers {
        pub stored: Vec<u8>,
    }

    impl WorkerBuffers {
        pub(crate) fn take() -> WorkerBuffers {
            WorkerBuffers::default()
        }

        pub(crate) fn put_back(self, _: usize, _: &Engine) {}
    }
}

/// As in the crate, but with a disk in place of filters and a storage.
mod reads {
    use super::array::SharedArray;
    use super::stored::LocatedChunk;
    use super::worker::WorkerBuffers;

    impl SharedArray {
        #[expect(clippy::unused_self, reason = "as in the crate")]
        pub(crate) fn is_filtered(&self) -> bool {
            true
        }

        #[expect(clippy::unused_self, reason = "as in the crate")]
        pub(crate) fn is_remote(&self) -> bool {
            false
        }

        #[expect(clippy::unused_self, reason = "as in the crate")]
        pub(crate) fn will_read(&self, places: impl Iterator<Item = super::table::ChunkAt>) {
            drop(places);
        }

        #[expect(clippy::unused_self, reason = "as in the crate")]
        pub(crate) fn is_raw(&self, _: &LocatedChunk<'_>) -> bool {
            false
        }

        pub(crate) fn fetch(
            &self,
            found: &LocatedChunk<'_>,
            stored: &mut Vec<u8>,
        ) -> Result<(), ()> {
            *stored = vec![self.disk.lock().unwrap()[found.place.at as usize]];
            Ok(())
        }

        /// A byte of a place that nobody uses is no chunk.
        #[expect(clippy::unused_self, reason = "as in the crate")]
        pub(crate) fn unfilter(
            &self,
            _: &LocatedChunk<'_>,
            _: usize,
            _: Option<Vec<u8>>,
            buffers: &mut WorkerBuffers,
        ) -> Result<Vec<u8>, ()> {
            shuttle::thread::yield_now();
            match buffers.rows.stored[..] {
                [super::NOTHING] => Err(()),
                _ => Ok(buffers.rows.stored.clone()),
            }
        }
    }
}

use array::{SharedArray, Table};
use cache::{CacheClaim, ChunkCache, ClaimTerms};
use prefetch::{BackgroundDecoding, PrefetchBox, WalkPosition};
use stored::LocatedChunk;
use sync::atomic::AtomicU64;
use worker::WorkerBuffers;

/// Orders that are tried of each case; each is another one.
const ORDERS: usize = 3000;
/// What is at a place that nobody uses.
const NOTHING: u8 = 255;
const N_CHUNKS: u64 = 3;

fn in_many_orders(test: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(test, ORDERS);
}

/// Chunks 0, 10 and 20, side by side.
fn array() -> Arc<SharedArray> {
    let engine = engine::Engine::new();
    Arc::new(SharedArray {
        cache: ChunkCache::new(&engine, 1),
        engine,
        table: Table(Mutex::new((0..N_CHUNKS).collect())),
        disk: Mutex::new((0..N_CHUNKS).map(|key| 10 * key as u8).collect()),
        chunk_dims: vec![1],
        chunk_bytes: Some(1),
        since: AtomicU64::new(0),
        background: BackgroundDecoding::default(),
    })
}

/// A request has come to chunk `edge` of a walk: what comes next is decoded in the background.
fn walk(inner: &Arc<SharedArray>, edge: u64) {
    inner.background.note(WalkPosition { walk: 1, edge, keeps: true });
    let one = |n: u64| -> SmallVec<[u64; 4]> { smallvec![n] };
    let ahead = PrefetchBox {
        first: one((edge + 1).min(N_CHUNKS - 1)),
        last: one(N_CHUNKS - 1),
        behind: None,
        extent: one(N_CHUNKS),
        axis: 0,
        forward: true,
        walk: 1,
    };
    assert!(inner.may_prefetch(&ahead));
    ahead.launch(inner);
}

/// The chunk, as a request reads it.
fn read(inner: &Arc<SharedArray>, key: u64) -> u8 {
    if let Some(chunk) = inner.cache.get(&[key]) {
        return chunk.bytes[0];
    }
    let (key, place) = (smallvec![key], inner.table.at(key));
    let found = LocatedChunk { key: &key, place, is_edge: false };
    let mut buffers = WorkerBuffers::take();
    let decode = |buffers: &mut WorkerBuffers| {
        inner.fetch(&found, &mut buffers.rows.stored).unwrap();
        inner.unfilter(&found, 1, None, buffers).expect("a chunk")
    };
    match inner.cache.claim(&key, ClaimTerms { keep: true, since: 0, now: true }) {
        CacheClaim::Ready(chunk) => chunk.bytes[0],
        CacheClaim::Decode(ticket) => ticket.publish(decode(&mut buffers)).bytes[0],
        CacheClaim::Bypass => decode(&mut buffers)[0],
    }
}

/// Stores a chunk at a new place, as the writer does; gives the old one.
fn store_elsewhere(inner: &SharedArray, key: u64, byte: u8) -> usize {
    let mut disk = inner.disk.lock().unwrap();
    disk.push(byte);
    let at = disk.len() as u64 - 1;
    drop(disk);
    let old = std::mem::replace(&mut inner.table.0.lock().unwrap()[key as usize], at);
    inner.background.changed(&inner.cache, &[key]);
    old as usize
}

/// The same where the old one stays as it was for a while.
fn store(inner: &SharedArray, key: u64, byte: u8) {
    store_elsewhere(inner, key, byte);
}

/// The same where it is used for something else at once.
fn store_and_reuse(inner: &SharedArray, key: u64, byte: u8) {
    let old = store_elsewhere(inner, key, byte);
    inner.disk.lock().unwrap()[old] = NOTHING;
}

/// Stores a chunk where it is.
fn store_over(inner: &SharedArray, key: u64, byte: u8) {
    let at = inner.table.at(key).at as usize;
    inner.disk.lock().unwrap()[at] = byte;
    inner.background.changed(&inner.cache, &[key]);
}

/// Requests and changes one after another, as the lock of a file has it, and decoding in the background beside them: each
/// request reads what was stored last.
fn changes_beside_a_walk(store: fn(&SharedArray, u64, u8)) {
    let inner = array();
    assert_eq!(read(&inner, 0), 0);
    walk(&inner, 0);
    store(&inner, 1, 11);
    assert_eq!(read(&inner, 1), 11);
    store(&inner, 2, 21);
    walk(&inner, 1);
    store(&inner, 2, 22);
    assert_eq!((read(&inner, 1), read(&inner, 2)), (11, 22));
    inner.background.stop();
    assert_eq!((read(&inner, 0), read(&inner, 1), read(&inner, 2)), (0, 11, 22));
}

#[test]
fn chunks_that_move() {
    in_many_orders(|| changes_beside_a_walk(store));
}

#[test]
fn chunks_that_move_and_leave_nothing() {
    in_many_orders(|| changes_beside_a_walk(store_and_reuse));
}

#[test]
fn chunks_that_change_where_they_are() {
    in_many_orders(|| changes_beside_a_walk(store_over));
}

/// Two requests at once for what is being decoded ahead of them and has changed meanwhile.
#[test]
fn requests_beside_a_walk() {
    in_many_orders(|| {
        let inner = array();
        walk(&inner, 0);
        store(&inner, 1, 11);
        let other = Arc::clone(&inner);
        let thread = shuttle::thread::spawn(move || (read(&other, 1), read(&other, 2)));
        assert_eq!((read(&inner, 1), read(&inner, 2)), (11, 20));
        assert_eq!(thread.join().unwrap(), (11, 20));
        inner.background.stop();
        // Nothing is kept twice.
        assert!(inner.cache.bytes() < N_CHUNKS, "{}", inner.cache.bytes());
        assert_eq!((read(&inner, 1), read(&inner, 2)), (11, 20));
    });
}
