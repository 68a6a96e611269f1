//! The cache under a scheduler that tries orders of its threads, as the pool is in `zonda-runtime`. The sources are those of
//! the crate, over locks, atomics and threads that the scheduler knows, with pages of 8 bytes; what is below takes a call in
//! pieces, so that others come in between. A failing order is printed, and can be run again.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use shuttle::rand::Rng;
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use zonda_storage::{
    Advice, Leased, ReadRange, Rows, Storage, StorageStamp, WriteRange, fill_by_writes,
};
pub(crate) use zonda_storage::{BLOCK_BYTES, Op, StorageError, forward};

#[allow(dead_code, unreachable_pub, unused_imports)]
#[path = "../src/layer/cache"]
mod cache {
    pub(crate) mod background;
    pub(crate) mod coherence;
    mod pages;
    pub(crate) mod policy;
    pub(crate) mod threaded;
    pub(crate) use coherence::Cache;
}
#[path = "../src/copy.rs"]
mod copy;
#[allow(dead_code)]
#[path = "../src/slab.rs"]
mod slab;
#[allow(dead_code)]
#[path = "../src/tuning.rs"]
mod tuning;

/// As in the crate.
mod storage {
    pub(crate) use zonda_storage::{
        Advice, Leased, ReadRange, Rows, Storage, WriteRange, fill_by_writes,
    };
}

/// As in the crate, of places that every storage has.
mod error {
    pub(crate) use super::{Op, StorageError};
    pub(crate) use zonda_storage::check_place;

    #[allow(clippy::unnecessary_wraps)]
    pub(crate) fn range_end(_: Op, at: u64, len: usize) -> Result<u64, StorageError> {
        Ok(at + len as u64)
    }

    pub(crate) fn held_end(at: u64, len: usize, _: impl FnOnce() -> u64) -> Option<u64> {
        (len > 0).then_some(at + len as u64)
    }
}

/// As in the crate, but what the scheduler knows.
mod sync {
    pub(crate) use shuttle::sync::atomic;
    pub(crate) use shuttle::thread::JoinHandle;

    pub(crate) mod lock {
        use std::time::Duration;

        pub(crate) use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

        /// The order of locks is looked at in the crate's own.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Rank {
            Failed,
            WithheldFills,
            BackgroundWork,
            Lives,
            Members,
            Page,
            Lease,
            Lent,
            Resize,
            Sharing,
            Table,
            RecentReads,
        }

        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Level;

        impl Level {
            pub(crate) fn next() -> Level {
                Level
            }
        }

        #[derive(Debug)]
        pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

        impl<T> Mutex<T> {
            pub(crate) const fn ranked(_: Rank, value: T) -> Mutex<T> {
                Mutex(shuttle::sync::Mutex::new(value))
            }

            pub(crate) fn at(rank: Rank, _: Level, value: T) -> Mutex<T> {
                Mutex::ranked(rank, value)
            }

            pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
                self.0.lock().unwrap()
            }

            pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
                self.0.try_lock().ok()
            }

            pub(crate) fn get_mut(&mut self) -> &mut T {
                self.0.get_mut().unwrap()
            }
        }

        #[derive(Debug)]
        pub(crate) struct RwLock<T>(shuttle::sync::RwLock<T>);

        impl<T> RwLock<T> {
            pub(crate) fn at(_: Rank, _: Level, value: T) -> RwLock<T> {
                RwLock(shuttle::sync::RwLock::new(value))
            }

            pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
                self.0.read().unwrap()
            }

            pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
                self.0.write().unwrap()
            }

            pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
                self.0.try_read().ok()
            }

            pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
                self.0.try_write().ok()
            }
        }

        #[derive(Debug)]
        pub(crate) struct Condvar(shuttle::sync::Condvar);

        impl Condvar {
            pub(crate) fn new() -> Condvar {
                Condvar(shuttle::sync::Condvar::new())
            }

            pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
                self.0.wait(guard).unwrap()
            }

            /// Now and then the time has passed at once.
            pub(crate) fn wait_timeout<'a, T>(
                &self,
                guard: MutexGuard<'a, T>,
                _: Duration,
            ) -> (MutexGuard<'a, T>, bool) {
                use shuttle::rand::Rng;
                match shuttle::rand::thread_rng().gen_bool(0.3) {
                    true => (guard, true),
                    false => (self.wait(guard), false),
                }
            }

            pub(crate) fn notify_one(&self) {
                self.0.notify_one();
            }

            pub(crate) fn notify_all(&self) {
                self.0.notify_all();
            }
        }

        /// That of the process, which nobody takes here.
        pub(crate) struct Global<T: 'static>(Mutex<T>);

        impl<T: 'static> Global<T> {
            pub(crate) const fn new(rank: Rank, first: T, _: fn() -> T) -> Global<T> {
                Global(Mutex::ranked(rank, first))
            }

            pub(crate) fn lock(&'static self) -> MutexGuard<'static, T> {
                self.0.lock()
            }
        }
    }

    /// No process forks here.
    pub(crate) mod fork {
        pub(crate) struct Inside;

        #[allow(clippy::unnecessary_wraps)]
        pub(crate) fn enter() -> Option<Inside> {
            Some(Inside)
        }
    }

    /// Now and then the system gives no thread.
    pub(crate) mod worker {
        use shuttle::rand::Rng;
        use shuttle::thread::JoinHandle;

        pub(crate) enum Purpose {
            Layer,
        }

        pub(crate) fn spawn(
            _: String,
            _: Purpose,
            body: impl FnOnce() + Send + 'static,
        ) -> Result<JoinHandle<()>, ()> {
            match shuttle::rand::thread_rng().gen_bool(0.2) {
                true => Err(()),
                false => Ok(shuttle::thread::spawn(body)),
            }
        }

        pub(crate) fn join(thread: JoinHandle<()>) {
            thread.join().unwrap();
        }

        pub(crate) fn waits() -> Option<u64> {
            None
        }
    }
}

use cache::Cache;
use cache::background::ThreadUse;
use cache::policy::CacheShape;
use cache::threaded::ThreadedCache;

/// Orders that are tried of each case; each is another one.
const ORDERS: usize = 1000;
const PAGE: u64 = 8;

fn in_many_orders(test: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(test, ORDERS);
}

/// What is below. Calls of others come in between pieces of a call.
#[derive(Clone, Default)]
struct Disk(Arc<State>);

#[derive(Default)]
struct State {
    bytes: Mutex<Vec<u8>>,
    /// Now and then it refuses a write, or what is left of it.
    is_broken: AtomicBool,
    n_refused: AtomicUsize,
}

/// Bytes that are written or read at once.
const PIECE: usize = 4;

impl Disk {
    fn new(bytes: &[u8]) -> Disk {
        let disk = Disk::default();
        *disk.0.bytes.lock().unwrap() = bytes.to_vec();
        disk
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.bytes.lock().unwrap().clone()
    }

    fn breaks(&self, is_broken: bool) {
        self.0.is_broken.store(is_broken, Ordering::SeqCst);
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("disk")
    }
}

impl Storage for Disk {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        let mut got = 0;
        for part in buf.chunks_mut(PIECE) {
            let bytes = self.0.bytes.lock().unwrap();
            let left = bytes.get(at as usize + got..).unwrap_or_default();
            let n = part.len().min(left.len());
            part[..n].copy_from_slice(&left[..n]);
            got += n;
        }
        Ok(got)
    }
    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        for range in ranges {
            range.got = self.read_at(range.at, range.buf)?;
        }
        Ok(())
    }
    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        for (n, part) in data.chunks(PIECE).enumerate() {
            if self.0.is_broken.load(Ordering::SeqCst) && shuttle::rand::thread_rng().gen_bool(0.3)
            {
                self.0.n_refused.fetch_add(1, Ordering::SeqCst);
                let (path, errno) = (Path::new("disk").into(), 28);
                return Err(StorageError::Io { path, op: Op::Write, at, len: 0, errno });
            }
            let mut bytes = self.0.bytes.lock().unwrap();
            let from = at as usize + n * PIECE;
            let end = from + part.len();
            let len = bytes.len().max(end);
            bytes.resize(len, 0);
            bytes[from..end].copy_from_slice(part);
        }
        Ok(())
    }
    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        ranges.iter().try_for_each(|range| self.write_at(range.at, range.data))
    }
    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        fill_by_writes(self, at, len, element)
    }
    fn advise(&self, _: Advice) {}
    fn rest(&self) {}
    fn len(&self) -> Result<u64, StorageError> {
        Ok(self.0.bytes.lock().unwrap().len() as u64)
    }
    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.0.bytes.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }
    fn barrier(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn sync(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn invalidate(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        Ok(StorageStamp::default())
    }
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("disk")
    }
}

/// A cache of `pages` pages over these bytes.
fn cache(bytes: &[u8], pages: u64) -> (Disk, Arc<Cache<Disk>>) {
    let disk = Disk::new(bytes);
    let cache = Cache::new(disk.clone(), CacheShape::sized(PAGE, pages)).unwrap();
    (disk, Arc::new(cache))
}

/// Runs each of these beside the others, and waits for all.
fn beside<S: Send + Sync + 'static>(shared: &Arc<S>, calls: Vec<fn(&S)>) {
    let spawn = |call: fn(&S)| {
        let shared = Arc::clone(shared);
        shuttle::thread::spawn(move || call(&shared))
    };
    let threads: Vec<_> = calls.into_iter().map(spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Byte `at`, where it is or by a read. Where a page has to leave for it that a broken disk refuses, that is the reader's error.
fn byte(cache: &dyn Storage, at: u64) -> u8 {
    let mut byte = [0];
    if shuttle::rand::thread_rng().gen_bool(0.5) {
        let row = Rows { at, len: 1, step: 1, count: 1 };
        if cache.show_rows(row, &mut |bytes| byte.copy_from_slice(bytes)) == 1 {
            return byte[0];
        }
    }
    loop {
        if let Ok(got) = cache.read_at(at, &mut byte) {
            assert_eq!(got, 1);
            return byte[0];
        }
    }
}

/// What a cache shows when nobody is at it any more. It is what is below after a sync, and what is then read from there.
fn shown(cache: &dyn Storage, disk: &Disk) -> Vec<u8> {
    let len = cache.len().unwrap();
    let show = || (0..len).map(|at| byte(cache, at)).collect::<Vec<u8>>();
    let first = show();
    cache.sync().unwrap();
    assert_eq!(disk.bytes(), first, "what is below is not what is shown");
    assert_eq!(show(), first, "what is shown changes by a sync");
    cache.invalidate().unwrap();
    assert_eq!(show(), first, "what is shown changes when it is read again");
    first
}

/// A write past the pages, while others read what it is about: who has written it sees it.
#[test]
fn a_straight_write_beside_reads() {
    in_many_orders(|| {
        let (disk, cache) = cache(&[1; 32], 3);
        let write = |cache: &Cache<Disk>| {
            cache.write_at(4, &[2; 20]).unwrap();
            for at in [4, 9, 15, 23] {
                assert_eq!(byte(cache, at), 2, "its own older byte is read back at {at}");
            }
        };
        let read = |cache: &Cache<Disk>| {
            for at in [20, 4, 12] {
                assert!([1, 2].contains(&byte(cache, at)));
            }
            let mut many = [0; 16];
            assert_eq!(cache.read_at(2, &mut many).unwrap(), 16);
            assert!(many.iter().all(|byte| [1, 2].contains(byte)));
        };
        beside(&cache, vec![write, read]);
        let expected = [vec![1; 4], vec![2; 20], vec![1; 8]].concat();
        assert_eq!(shown(&*cache, &disk), expected);
    });
}

/// The same where some writes fail, after a part of them is there: what is shown is what is below all the same.
#[test]
fn a_straight_write_that_fails_beside_reads() {
    in_many_orders(|| {
        let (disk, cache) = cache(&[1; 32], 3);
        disk.breaks(true);
        let calls: Vec<fn(&Cache<Disk>)> =
            vec![|cache| drop(cache.write_at(4, &[2; 20])), |cache| {
                for at in [20, 4, 12] {
                    assert!([1, 2].contains(&byte(cache, at)));
                }
            }];
        beside(&cache, calls);
        disk.breaks(false);
        let shown = shown(&*cache, &disk);
        assert!(shown[..4] == [1; 4] && shown[24..] == [1; 8]);
    });
}

/// Straight writes, short ones and syncs over each other: some order of them is the one that all see from then on.
#[test]
fn writes_over_each_other() {
    in_many_orders(|| {
        let (disk, cache) = cache(&[1; 32], 3);
        let calls: Vec<fn(&Cache<Disk>)> = vec![
            |cache| cache.write_at(0, &[2; 24]).unwrap(),
            |cache| cache.write_at(8, &[3; 20]).unwrap(),
            |cache| {
                cache.write_at(10, &[4; 2]).unwrap();
                cache.sync().unwrap();
                cache.write_at(18, &[5]).unwrap();
            },
        ];
        beside(&cache, calls);
        let shown = shown(&*cache, &disk);
        assert!(shown[..8] == [2; 8] && shown[24..28] == [3; 4] && shown[28..] == [1; 4]);
        assert!(shown[10..12].iter().all(|byte| [2, 3, 4].contains(byte)));
        assert!(shown[8..24].iter().all(|byte| (2..=5).contains(byte)));
    });
}

/// More pages than there is room for, each put together by two threads: who has put a byte reads it, wherever its page is,
/// and finds it below after a sync.
#[test]
fn pages_leave_while_they_are_put_together() {
    fn put<const OWN: u64>(shared: &(Disk, Arc<Cache<Disk>>)) {
        let (disk, cache) = shared;
        for page in [0, 3, 1, 2, 0] {
            let at = page * PAGE + OWN;
            cache.write_at(at, &[OWN as u8]).unwrap();
            assert_eq!(byte(&**cache, at), OWN as u8);
        }
        cache.sync().unwrap();
        let below = disk.bytes();
        let all_there = (0..4).all(|page| below[(page * PAGE + OWN) as usize] == OWN as u8);
        assert!(all_there, "{below:?} after a sync");
    }
    in_many_orders(|| {
        let (disk, cache) = cache(&[9; 32], 2);
        let shared = Arc::new((disk.clone(), Arc::clone(&cache)));
        beside(
            &shared,
            vec![put::<1>, put::<2>, |(_, cache)| {
                for at in [0, 8, 27, 16] {
                    assert_eq!(byte(&**cache, at), 9);
                }
            }],
        );
        let expected: Vec<u8> = [9, 1, 2, 9, 9, 9, 9, 9].repeat(4);
        assert_eq!(shown(&*cache, &disk), expected);
    });
}

/// The same on a disk that refuses some writes: what was accepted stays, and is below as soon as it takes all.
#[test]
fn pages_leave_to_a_broken_disk() {
    fn put<const OWN: u64>(cache: &Cache<Disk>) {
        for page in [0, 3, 1, 2] {
            let at = page * PAGE + OWN;
            // A page that cannot be written makes no room, and the caller has the error.
            while cache.write_at(at, &[OWN as u8]).is_err() {}
            let _told = cache.sync();
        }
    }
    in_many_orders(|| {
        let (disk, cache) = cache(&[9; 32], 2);
        disk.breaks(true);
        beside(&cache, vec![put::<1>, put::<2>]);
        disk.breaks(false);
        let expected: Vec<u8> = [9, 1, 2, 9, 9, 9, 9, 9].repeat(4);
        assert_eq!(shown(&*cache, &disk), expected);
    });
}

/// Fill values under a straight write and others' short ones; with `is_broken` it may fail.
fn fill_values(is_broken: bool) {
    let (disk, cache) = cache(&[], 6);
    cache.fill_at(2, 14, &[7, 8]).unwrap();
    cache.fill_at(16, 16, &[7, 8]).unwrap();
    disk.breaks(is_broken);
    let fails = Arc::new(AtomicBool::new(false));
    let shared = Arc::new((Arc::clone(&cache), Arc::clone(&fails)));
    beside(
        &shared,
        vec![
            |(cache, fails)| fails.store(cache.write_at(6, &[1; 20]).is_err(), Ordering::SeqCst),
            |(cache, _)| {
                while cache.write_at(29, &[2]).is_err() {}
                let _told = cache.sync();
                byte(&**cache, 12);
            },
        ],
    );
    disk.breaks(false);
    let shown = shown(&*cache, &disk);
    let fill = |at: usize| if at < 2 { 0 } else { 7 + (at % 2) as u8 };
    for (at, byte) in shown.iter().enumerate() {
        match at {
            29 => assert_eq!(*byte, 2),
            6..26 if fails.load(Ordering::SeqCst) => {
                assert!([1, fill(at)].contains(byte), "{at}: {byte}")
            }
            6..26 => assert_eq!(*byte, 1),
            _ => assert_eq!(*byte, fill(at), "byte {at}"),
        }
    }
}

#[test]
fn fill_values_under_a_straight_write() {
    in_many_orders(|| fill_values(false));
}

#[test]
fn fill_values_under_a_straight_write_that_fails() {
    in_many_orders(|| fill_values(true));
}

/// A page goes to another cache, or to other uses of memory, while it is written and read.
#[test]
fn pages_are_given_up() {
    in_many_orders(|| {
        let (disk, cache) = cache(&[9; 32], 4);
        let calls: Vec<fn(&Cache<Disk>)> = vec![
            |cache| {
                for at in [1, 9, 17, 1] {
                    cache.write_at(at, &[1]).unwrap();
                    assert_eq!(byte(cache, at), 1);
                }
            },
            |cache| {
                for at in [0, 24, 8] {
                    assert_eq!(byte(cache, at), 9);
                }
            },
            |cache| {
                for _ in 0..3 {
                    cache.give_up();
                }
            },
        ];
        beside(&cache, calls);
        let mut expected = vec![9; 32];
        [1, 9, 17].into_iter().for_each(|at| expected[at] = 1);
        assert_eq!(shown(&*cache, &disk), expected);
    });
}

/// A cache with its thread, and how many errors its users had.
type WithThread = (ThreadedCache<Disk>, AtomicUsize);

/// Asks until there is no error.
fn insist<T>(
    (cache, had): &WithThread,
    call: impl Fn(&ThreadedCache<Disk>) -> Result<T, StorageError>,
) -> T {
    loop {
        match call(cache) {
            Ok(done) => return done,
            Err(_) => had.fetch_add(1, Ordering::SeqCst),
        };
    }
}

/// A stream of complete pages, read back from behind, beside a write past all of it, with a thread that writes and reads
/// ahead; where `is_broken`, nothing is lost, and each error is somebody's.
fn with_a_thread(when: ThreadUse, is_broken: bool) {
    fn read(with: &WithThread, at: u64) -> u8 {
        insist(with, |cache| {
            let mut byte = [0];
            cache.read_at(at, &mut byte).map(|_| byte[0])
        })
    }
    let disk = Disk::new(&[9; 48]);
    let served = ThreadedCache::new(disk.clone(), CacheShape::sized(PAGE, 4), None, when).unwrap();
    let with = Arc::new((served, AtomicUsize::new(0)));
    disk.breaks(is_broken);
    let calls: Vec<fn(&WithThread)> = vec![
        |with| {
            (0..32).step_by(4).for_each(|at| insist(with, |cache| cache.write_at(at, &[1; 4])));
            assert_eq!(read(with, 12), 1);
        },
        |with| {
            with.0.background().ahead(3..6);
            assert!([1, 9].contains(&read(with, 24)));
            assert_eq!(read(with, 40), 9);
            insist(with, |cache| cache.write_at(32, &[3; 12]));
            assert_eq!(read(with, 40), 3);
        },
    ];
    beside(&with, calls);
    disk.breaks(false);
    let (cache, had) = &*with;
    let expected = [vec![1; 32], vec![3; 12], vec![9; 4]].concat();
    assert_eq!(shown(&**cache, &disk), expected);
    let had = had.load(Ordering::SeqCst);
    let refused = disk.0.n_refused.load(Ordering::SeqCst);
    let told = cache.background().tell();
    match when {
        ThreadUse::Always => {
            assert_eq!(told.is_err(), refused > had, "{refused} refused, {had} had")
        }
        // What its users try again need not be told.
        ThreadUse::Worthwhile => assert!(told.is_ok() || refused > had),
    }
    assert_eq!(cache.background().tell(), Ok(()), "an error is told once");
}

#[test]
fn a_thread_writes_and_reads_ahead() {
    in_many_orders(|| with_a_thread(ThreadUse::Always, false));
}

#[test]
fn a_thread_on_a_broken_disk() {
    in_many_orders(|| with_a_thread(ThreadUse::Always, true));
}

#[test]
fn a_thread_where_it_is_worthwhile() {
    in_many_orders(|| with_a_thread(ThreadUse::Worthwhile, true));
}

/// Puts and gets of all orders that went by a lease.
static N_LEASED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// A thread that comes back to a page again and again: by its lease, or else the ordinary way, after which it asks for a lease.
#[derive(Default)]
struct Leaseholder(Option<Arc<dyn Leased>>);

impl Leaseholder {
    fn by_lease(&self, call: impl FnOnce(&dyn Leased) -> bool) -> bool {
        let is_done = self.0.as_deref().is_some_and(call);
        N_LEASED.fetch_add(usize::from(is_done), Ordering::Relaxed);
        is_done
    }

    fn put(&mut self, cache: &Cache<Disk>, at: u64, byte: u8) {
        if !self.by_lease(|lease| lease.put(at, &[byte])) {
            while cache.write_at(at, &[byte]).is_err() {}
            self.0 = cache.lease(at, true);
        }
    }

    fn get(&mut self, cache: &Cache<Disk>, at: u64) -> u8 {
        let mut out = [0];
        if !self.by_lease(|lease| lease.get(at, &mut out)) {
            out[0] = byte(cache, at);
            self.0 = cache.lease(at, true).or_else(|| cache.lease(at, false));
        }
        out[0]
    }
}

/// Two threads with leases of the same pages, beside evictions, commits, a write past the pages and ends of all leases.
fn leases_beside(is_broken: bool) {
    fn holds<const BYTE: u8>(cache: &Cache<Disk>) {
        let mut thread = Leaseholder::default();
        for page in if BYTE == 1 { [0, 1, 2] } else { [2, 1, 0] } {
            for round in [10, 20, 0] {
                // Every fourth byte is this thread's.
                for at in [page * PAGE + u64::from(BYTE), page * PAGE + u64::from(BYTE) + 4] {
                    thread.put(cache, at, BYTE + round);
                    let got = thread.get(cache, at);
                    assert_eq!(got, BYTE + round, "what was put at {at} is not there");
                }
            }
            assert!([9, 1, 2, 11, 12, 21, 22].contains(&thread.get(cache, page * PAGE + 3)));
        }
    }
    let (disk, cache) = cache(&[9; 40], 3);
    disk.breaks(is_broken);
    let calls: Vec<fn(&Cache<Disk>)> = vec![holds::<1>, holds::<2>, |cache| {
        cache.give_up();
        cache.give_up();
        while cache.write_at(24, &[7; 16]).is_err() {}
        cache.give_up();
        let _told = cache.sync();
        cache.give_up();
        while !cache.try_end_leases() {
            shuttle::thread::yield_now();
        }
        cache.end_leases();
        assert_eq!(byte(cache, 30), 7);
    }];
    beside(&cache, calls);
    disk.breaks(false);
    let mut expected = [vec![9; 24], vec![7; 16]].concat();
    (1..24).step_by(4).for_each(|at| expected[at] = 1);
    (2..24).step_by(4).for_each(|at| expected[at] = 2);
    assert_eq!(shown(&*cache, &disk), expected);
}

#[test]
fn leases_beside_everything_else() {
    in_many_orders(|| leases_beside(false));
    assert!(N_LEASED.load(Ordering::Relaxed) > ORDERS, "hardly any lease was given");
}

#[test]
fn leases_on_a_broken_disk() {
    in_many_orders(|| leases_beside(true));
}

/// A put by a lease at the end of a file makes it longer; a cut takes that back, and the lease with it.
#[test]
fn leases_at_the_end_of_a_file() {
    in_many_orders(|| {
        let (disk, cache) = cache(&[9; 8], 3);
        let calls: Vec<fn(&Cache<Disk>)> = vec![
            |cache| {
                let mut writes = Leaseholder::default();
                (8..15).for_each(|at| writes.put(cache, at, 1));
            },
            |cache| {
                let len = cache.len().unwrap();
                assert!((8..16).contains(&len));
                let mut all = [0; 16];
                let got = cache.read_at(0, &mut all).unwrap();
                assert!(got as u64 >= len && all[..got].iter().all(|byte| [9, 1].contains(byte)));
            },
        ];
        beside(&cache, calls);
        assert_eq!(shown(&*cache, &disk), [vec![9; 8], vec![1; 7]].concat());
        let mut writes = Leaseholder::default();
        (9..12).for_each(|at| writes.put(&cache, at, 2));
        cache.set_len(10).unwrap();
        writes.put(&cache, 12, 3);
        assert_eq!(shown(&*cache, &disk), [vec![9; 8], vec![1, 2, 0, 0, 3]].concat());
    });
}

/// When leases have ended, nothing comes by them any more.
#[test]
fn leases_that_have_ended() {
    in_many_orders(|| {
        let (_, cache) = cache(&[9; 16], 2);
        cache.write_at(1, &[0]).unwrap();
        let lease = cache.lease(1, true).unwrap();
        let by_lease = {
            let lease = Arc::clone(&lease);
            shuttle::thread::spawn(move || (1..6).take_while(|n| lease.put(1, &[*n])).count())
        };
        cache.end_leases();
        let then = byte(&*cache, 1);
        assert!(!lease.put(1, &[8]) && !lease.get(1, &mut [0]));
        let n_put = by_lease.join().unwrap();
        assert_eq!((byte(&*cache, 1), usize::from(then)), (then, n_put));
    });
}
