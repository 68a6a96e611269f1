//! What a small call costs when its page is cached, and how that scales with threads.
//!
//! `cargo bench -p zonda-storage` prints nanoseconds per call, the best of several rounds.

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;
use zonda_storage::backend::Memory;
use zonda_storage::{Spec, Storage};

const CALLS: u64 = 2_000_000;
const ROUNDS: usize = 7;

/// Nanoseconds per call of `f(i)`.
fn time(mut f: impl FnMut(u64)) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            (0..CALLS).for_each(&mut f);
            begin.elapsed().as_secs_f64() * 1e9 / CALLS as f64
        })
        .fold(f64::INFINITY, f64::min)
}

fn say(what: &str, ns: f64) {
    let _ = writeln!(std::io::stdout(), "{what:<52} {ns:>8.1} ns");
}

fn main() {
    let storage = Spec::default_stack().build_on(Arc::new(Memory::new())).expect("memory");
    storage.write_at(0, &vec![1; 8 << 20]).expect("fits");
    let s: &dyn Storage = &*storage;
    let mut word = [0; 4];
    let mut read = |at: u64| {
        s.read_at(at, &mut word).expect("cached");
        black_box(&word);
    };
    (0..64).for_each(|page| read(page * (256 << 10) % (8 << 20)));
    for at in (0..8 << 20).step_by(4096) {
        s.write_at(at, &[1; 4096]).expect("cached");
    }
    say("read_at, 4 bytes, one page", time(|i| read((i * 4) & 0x3_FFFC)));
    say(
        "read_at, 4 bytes, any of 32 pages",
        time(|i| read((i.wrapping_mul(0x9E37_79B9) * 4) & 0x7F_FFFC)),
    );
    say(
        "write_at, 4 bytes, one page",
        time(|i| s.write_at((i * 4) & 0x3_FFFC, &[2; 4]).expect("cached")),
    );
    say(
        "write_at, 4 bytes, any of 32 pages",
        time(|i| {
            s.write_at((i.wrapping_mul(0x9E37_79B9) * 4) & 0x7F_FFFC, &[2; 4]).expect("cached")
        }),
    );
    say(
        "write_at, 4 bytes, sequential over 8 MB",
        time(|i| s.write_at((i * 4) & 0x7F_FFFC, &[2; 4]).expect("cached")),
    );
    for n_threads in [1_u64, 2, 4] {
        for (what, spread) in [("one page", 0), ("a page each", 1 << 18)] {
            let begin = Instant::now();
            std::thread::scope(|scope| {
                for thread in 0..n_threads {
                    scope.spawn(move || {
                        let mut buf = [0; 4096];
                        for i in 0..CALLS / 4 {
                            let at = thread * spread + ((i * 4096) & 0x3_F000);
                            s.read_at(at, &mut buf).expect("cached");
                            black_box(&buf);
                        }
                    });
                }
            });
            let ns = begin.elapsed().as_secs_f64() * 1e9 / (CALLS / 4 * n_threads) as f64;
            say(&format!("read_at, 4096 bytes, {n_threads} threads, {what}"), ns);
        }
    }
    say(
        "make a default stack, write 1 KB, sync, drop",
        time_few(|| {
            let s = Spec::default_stack().build_on(Arc::new(Memory::new())).expect("memory");
            s.write_at(0, &[1; 1024]).expect("fits");
            s.sync().expect("memory");
        }),
    );
}

/// As `time`, for something slower.
fn time_few(mut f: impl FnMut()) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            (0..2000).for_each(|_| f());
            begin.elapsed().as_secs_f64() * 1e9 / 2000.0
        })
        .fold(f64::INFINITY, f64::min)
}
