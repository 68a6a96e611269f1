//! How many threads a pool has; alone in its process, whose threads are counted.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use zonda_runtime::worker::{Purpose, alive};
use zonda_runtime::{MOST_THREADS, Pool};

#[test]
fn threads_follow_from_calls() {
    // However late its threads come to run: the next call finds all of them free.
    let pool = Pool::new(8);
    let (begun, helpers) = (AtomicUsize::new(0), 2);
    for _ in 0..2000 {
        let work = || {
            begun.fetch_add(1, Ordering::Relaxed);
        };
        pool.run_beside(helpers, &work, work);
        assert_eq!(pool.load(), (0, 0));
    }
    // One may be started and not yet counted.
    assert!(alive(Purpose::Pool) <= helpers);
    let both = Barrier::new(helpers + 1);
    let meet = || {
        both.wait();
    };
    pool.run_beside(helpers, &meet, meet);
    assert_eq!(alive(Purpose::Pool), helpers);

    // As many as the library ever starts, or as the system gives.
    let many = Pool::new(MOST_THREADS);
    let (next, sum, n) = (AtomicUsize::new(0), AtomicUsize::new(0), 100_000);
    let work = || {
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            if k >= n {
                return;
            }
            sum.fetch_add(k, Ordering::Relaxed);
        }
    };
    many.run_beside(10 * MOST_THREADS, &work, work);
    assert_eq!(sum.load(Ordering::Relaxed), n * (n - 1) / 2);
    assert_eq!(many.load(), (0, 0));
    assert!(alive(Purpose::Pool) <= helpers + MOST_THREADS);
}
