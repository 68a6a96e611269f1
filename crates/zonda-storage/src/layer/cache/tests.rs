//! What has locks and clocks of its own. Calls over each other are in `tests/model_cache.rs`, what a cache does with a storage
//! in `tests/cache.rs` and `tests/async_cache.rs`.

use super::background::{BackgroundWork, ThreadUse};
use super::coherence::call_pace::CallPace;
use crate::StorageError;
use std::time::{Duration, Instant};

#[test]
fn the_first_error_of_a_thread_is_told_once() {
    let error = |bytes| StorageError::NoMemory { bytes };
    for when in [ThreadUse::Always, ThreadUse::Worthwhile] {
        let background = BackgroundWork::new(when);
        assert_eq!((background.has_failed(), background.tell()), (false, Ok(())));
        background.fail(&error(1));
        background.fail(&error(2));
        assert!(background.has_failed());
        assert_eq!(background.tell(), Err(error(1)));
        assert_eq!((background.has_failed(), background.tell()), (false, Ok(())));
        // Where users try again what failed, a write that succeeds is all there is to tell.
        background.fail(&error(3));
        background.note_written();
        assert_eq!(
            background.tell(),
            if when == ThreadUse::Always { Err(error(3)) } else { Ok(()) }
        );
    }
}

#[test]
fn calls_that_compute_are_not_slow_and_calls_that_wait_are() {
    let long = Duration::from_micros(50);
    let spin = || {
        let begin = Instant::now();
        while begin.elapsed() < long {}
    };
    let pace = CallPace::default();
    (0..50).for_each(|_| pace.time(4096, spin));
    assert!(!pace.is_slow());
    (0..10).for_each(|_| pace.time(4096, || std::thread::sleep(long)));
    assert!(pace.is_slow());
}
