//! The pool, from outside: whoever calls, whatever fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use zonda_runtime::Pool;

/// Takes numbers up to `n` by all who help; each is taken once.
fn share(pool: &Pool, helpers: usize, n: usize) -> usize {
    let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            if k >= n {
                return;
            }
            sum.fetch_add(k, Ordering::Relaxed);
        }
    };
    pool.run_beside(helpers, &work, work);
    sum.load(Ordering::Relaxed)
}

#[test]
fn work_is_done_whoever_helps() {
    for most in [0, 1, 2, 7] {
        let pool = Pool::new(most);
        for helpers in [0, 1, 3, 100] {
            assert_eq!(share(&pool, helpers, 1000), 1000 * 999 / 2);
        }
    }
}

/// Both threads are needed at the same moment, so one that is free does help.
#[test]
fn a_free_thread_helps() {
    let pool = Pool::new(1);
    let both = Barrier::new(2);
    pool.run_beside(
        1,
        &|| {
            both.wait();
        },
        || {
            both.wait();
        },
    );
}

/// The caller has what it has locked to itself while it waits: no foreign work comes in between.
#[test]
fn a_wait_runs_nothing_of_others() {
    let pool = Pool::new(2);
    let lock = Mutex::new(());
    let threads = 4;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..200 {
                    let held = lock.try_lock();
                    let inside = AtomicBool::new(held.is_ok());
                    assert_eq!(share(&pool, 2, 50), 50 * 49 / 2);
                    assert_eq!(inside.load(Ordering::Relaxed), held.is_ok());
                }
            });
        }
    });
}

/// Calls from the pool's own threads, to any depth, with all threads taken.
#[test]
fn calls_may_be_nested() {
    let pool = Arc::new(Pool::new(2));
    fn deep(pool: &Pool, depth: usize, count: &AtomicUsize) {
        count.fetch_add(1, Ordering::Relaxed);
        if depth > 0 {
            let work = || deep(pool, depth - 1, count);
            pool.run_beside(2, &work, work);
        }
    }
    let count = AtomicUsize::new(0);
    deep(&pool, 6, &count);
    assert!(count.load(Ordering::Relaxed) >= 7);
}

#[test]
fn a_panic_is_the_calls() {
    let pool = Pool::new(2);
    let both = Barrier::new(2);
    let of_helper = catch_unwind(AssertUnwindSafe(|| {
        let work = || {
            both.wait();
            panic!("the helper's")
        };
        pool.run_beside(1, &work, || {
            both.wait();
        });
    }));
    assert_eq!(of_helper.unwrap_err().downcast_ref::<&str>(), Some(&"the helper's"));
    let ended = AtomicBool::new(false);
    let of_caller = catch_unwind(AssertUnwindSafe(|| {
        let work = || {
            both.wait();
            std::thread::sleep(Duration::from_millis(20));
            ended.store(true, Ordering::SeqCst);
        };
        pool.run_beside(1, &work, || {
            both.wait();
            panic!("the caller's")
        })
    }));
    assert_eq!(of_caller.unwrap_err().downcast_ref::<&str>(), Some(&"the caller's"));
    assert!(ended.load(Ordering::SeqCst), "the helper was waited for");
    assert_eq!(share(&pool, 2, 100), 100 * 99 / 2);
}

/// An offer that nobody took is taken back, also when its turn comes later.
#[test]
fn late_offers_find_nothing() {
    let pool = Pool::new(1);
    let (to, from) = std::sync::mpsc::channel::<()>();
    assert!(pool.spawn(move || {
        let _ = from.recv();
    }));
    assert!(!pool.spawn(|| ()), "the only thread is taken");
    for _ in 0..100 {
        assert_eq!(share(&pool, 1, 10), 45);
    }
    drop(to);
    let end = Instant::now() + Duration::from_secs(20);
    while !pool.spawn(|| ()) {
        assert!(Instant::now() < end, "the thread came back");
        std::thread::yield_now();
    }
}

#[test]
fn work_that_nobody_waits_for_may_panic() {
    let pool = Pool::new(1);
    assert!(pool.spawn(|| panic!("on purpose")));
    let (to, from) = std::sync::mpsc::channel();
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let to = to.clone();
        if pool.spawn(move || to.send(()).unwrap()) {
            break;
        }
        assert!(Instant::now() < end, "the thread lives on");
        std::thread::yield_now();
    }
    from.recv_timeout(Duration::from_secs(20)).unwrap();
}

/// What was begun comes to its end when the pool goes.
#[test]
fn a_pool_that_goes_leaves_nothing_undone() {
    let (to, from) = std::sync::mpsc::channel();
    {
        let pool = Pool::new(2);
        assert!(pool.spawn(move || to.send(7).unwrap()));
    }
    assert_eq!(from.recv_timeout(Duration::from_secs(20)), Ok(7));
}

/// As an executor of asynchronous tasks does it: calls block on threads that it keeps for that, of which there
/// are more than cores, each with work of many tasks, and some of them end and are made anew meanwhile.
#[test]
fn calls_from_blocking_threads_of_an_executor() {
    let pool = Arc::new(Pool::new(3));
    let file = Arc::new(Mutex::new(0_usize));
    let (to, tasks) = std::sync::mpsc::channel::<usize>();
    let tasks = Arc::new(Mutex::new(tasks));
    let (answer, answers) = std::sync::mpsc::channel();
    let threads: Vec<_> = (0..32)
        .map(|_| {
            let (pool, file, tasks) = (Arc::clone(&pool), Arc::clone(&file), Arc::clone(&tasks));
            let answer = answer.clone();
            std::thread::spawn(move || {
                loop {
                    let task = tasks.lock().unwrap().recv();
                    let Ok(n) = task else { return };
                    // Every other task has a file to itself, as a call does that writes.
                    let held = n.is_multiple_of(2).then(|| file.lock().unwrap());
                    answer.send((n, share(&pool, 3, n))).unwrap();
                    if let Some(mut held) = held {
                        *held += 1;
                    }
                    if n.is_multiple_of(7) {
                        // The next one is another thread's, made for it.
                        let (pool, answer) = (Arc::clone(&pool), answer.clone());
                        let other = move || answer.send((n, share(&pool, 3, n))).unwrap();
                        drop(std::thread::spawn(other));
                    }
                }
            })
        })
        .collect();
    (0..400).for_each(|n| to.send(n).unwrap());
    drop((to, answer));
    let mut n_answers = 0;
    for (n, sum) in answers {
        assert_eq!(sum, n * n.saturating_sub(1) / 2);
        n_answers += 1;
    }
    assert_eq!(n_answers, 400 + 400_usize.div_ceil(7));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*file.lock().unwrap(), 200);
    assert_eq!(pool.load(), (0, 0));
}

/// Who offers work wakes two threads, and each that takes some wakes two more: all come, also those that slept.
#[test]
fn threads_that_sleep_wake_each_other() {
    let helpers = 23;
    let pool = Pool::new(helpers);
    for pause in [0, 0, 30, 0, 60] {
        // Longer than a thread looks around before it sleeps.
        std::thread::sleep(std::time::Duration::from_millis(pause));
        let all = std::sync::Barrier::new(helpers + 1);
        let meet = || {
            all.wait();
        };
        // Without one of them the others would wait for ever.
        pool.run_beside(helpers, &meet, meet);
        assert_eq!(pool.load(), (0, 0));
    }
}
