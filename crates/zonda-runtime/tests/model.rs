//! The pool under a scheduler that tries orders of its threads: what holds does so in each of them. The sources
//! are those of the crate, over locks and threads that the scheduler knows; a wait that nothing ends is
//! found as such. A failing order is printed, and can be run again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[allow(dead_code, unsafe_code)]
#[path = "../src/call_work.rs"]
mod call_work;
#[allow(dead_code, unreachable_pub)]
#[path = "../src/pool.rs"]
mod pool;

#[allow(dead_code)]
#[path = "../src/tuning.rs"]
mod tuning;

/// As `lock` of the crate.
mod lock {
    use std::time::Duration;

    pub(crate) use shuttle::sync::MutexGuard;

    /// The order of locks is looked at in the crate's own.
    pub(crate) enum Rank {
        Pool,
        CallWork,
    }

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn ranked(_rank: Rank, value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(shuttle::sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Condvar {
            Condvar(shuttle::sync::Condvar::new())
        }

        pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
        }

        /// Now and then the time has passed at once: threads also end in the middle of things.
        pub(crate) fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            _time: Duration,
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
}

/// As `worker` of the crate; now and then the system gives no thread.
mod worker {
    use shuttle::rand::Rng;

    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Purpose {
        Pool,
    }

    pub(crate) struct About {
        pub(crate) name: &'static str,
    }

    impl Purpose {
        pub(crate) fn about(self) -> About {
            About { name: "zonda" }
        }
    }

    pub(crate) fn spawn(
        _name: String,
        _purpose: Purpose,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<(), ()> {
        if shuttle::rand::thread_rng().gen_bool(0.2) {
            return Err(());
        }
        drop(shuttle::thread::spawn(body));
        Ok(())
    }
}

use pool::Pool;

/// Orders that are tried; each is another one.
const ORDERS: usize = 2000;

fn in_many_orders(test: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(test, ORDERS);
}

/// Numbers below `n`, taken by all who help; each is taken once, and nobody is at it any more at the end.
fn share(pool: &Pool, helpers: usize, n: usize) {
    let (next, sum, inside) = (
        shuttle::sync::atomic::AtomicUsize::new(0),
        AtomicUsize::new(0),
        shuttle::sync::atomic::AtomicUsize::new(0),
    );
    let work = || {
        inside.fetch_add(1, Ordering::SeqCst);
        loop {
            let k = next.fetch_add(1, Ordering::SeqCst);
            if k >= n {
                break;
            }
            sum.fetch_add(k + 1, Ordering::SeqCst);
        }
        inside.fetch_sub(1, Ordering::SeqCst);
    };
    pool.run_beside(helpers, &work, work);
    assert_eq!(sum.load(Ordering::SeqCst), n * (n + 1) / 2);
    assert_eq!(
        inside.load(Ordering::SeqCst),
        0,
        "somebody is still at the work of a call that has returned"
    );
}

#[test]
fn calls_of_two_threads() {
    in_many_orders(|| {
        let pool = Arc::new(Pool::new(2));
        let other = Arc::clone(&pool);
        let thread = shuttle::thread::spawn(move || share(&other, 2, 3));
        share(&pool, 1, 3);
        share(&pool, 2, 2);
        thread.join().unwrap();
        assert_eq!(pool.load(), (0, 0));
    });
}

#[test]
fn a_call_within_a_call() {
    in_many_orders(|| {
        let pool = Pool::new(2);
        let n = AtomicUsize::new(0);
        let work = || {
            share(&pool, 2, 2);
            n.fetch_add(1, Ordering::SeqCst);
        };
        pool.run_beside(2, &work, work);
        assert!((1..=3).contains(&n.load(Ordering::SeqCst)));
        assert_eq!(pool.load(), (0, 0));
    });
}

#[test]
fn a_lock_is_held_meanwhile() {
    in_many_orders(|| {
        let pool = Arc::new(Pool::new(1));
        let file = Arc::new(lock::Mutex::ranked(lock::Rank::Pool, 0));
        let put = |pool: &Pool, file: &lock::Mutex<u32>| {
            let mut held = file.lock();
            share(pool, 1, 2);
            *held += 1;
        };
        let (other_pool, other_file) = (Arc::clone(&pool), Arc::clone(&file));
        let thread = shuttle::thread::spawn(move || put(&other_pool, &other_file));
        put(&pool, &file);
        thread.join().unwrap();
        assert_eq!(*file.lock(), 2);
    });
}

#[test]
fn a_panic_of_one_who_helps() {
    in_many_orders(|| {
        let pool = Pool::new(2);
        let helped = AtomicUsize::new(0);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let work = || {
                helped.fetch_add(1, Ordering::SeqCst);
                std::panic::resume_unwind(Box::new("on purpose"));
            };
            pool.run_beside(2, &work, shuttle::thread::yield_now);
        }));
        assert_eq!(ended.is_err(), helped.load(Ordering::SeqCst) > 0);
        assert_eq!(pool.load(), (0, 0));
        share(&pool, 2, 2);
    });
}

#[test]
fn work_that_nobody_waits_for() {
    in_many_orders(|| {
        let pool = Pool::new(2);
        let done = Arc::new(shuttle::sync::atomic::AtomicUsize::new(0));
        let mut accepted = 0;
        for _ in 0..3 {
            let done = Arc::clone(&done);
            accepted += usize::from(pool.spawn(move || {
                done.fetch_add(1, Ordering::SeqCst);
            }));
        }
        share(&pool, 2, 2);
        drop(pool);
        while done.load(Ordering::SeqCst) < accepted {
            shuttle::thread::yield_now();
        }
    });
}
