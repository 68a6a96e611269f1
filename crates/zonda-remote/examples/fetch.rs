//! Reads all of an object in ranges, as many at once as its server is asked for, and says how long that took.
//!
//!     fetch URL [BYTES OF A RANGE]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use zonda_remote::{Objects, RemoteError, RemoteUrl, objects};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_default();
    let range = arguments.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(4 << 20);
    if let Err(error) = fetch(&url, range) {
        eprintln!("{error} ({:?})", error.kind);
        std::process::exit(1);
    }
}

fn fetch(url: &str, range: u64) -> Result<(), RemoteError> {
    let (objects, key) = objects::of_url(&RemoteUrl::parse(url)?)?;
    let begin = Instant::now();
    let state = objects.get_range(&key, 0, &mut [0; 1], None)?.state;
    let first = begin.elapsed();
    let (next, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    let objects: &dyn Objects = &*objects;
    std::thread::scope(|scope| {
        let run = || -> Result<(), RemoteError> {
            let mut buf = vec![0; range as usize];
            loop {
                let at = next.fetch_add(range, Ordering::Relaxed);
                if at >= state.len {
                    return Ok(());
                }
                let n = range.min(state.len - at) as usize;
                let read = objects.get_range(&key, at, &mut buf[..n], Some(&state))?;
                sum.fetch_add(read.got as u64, Ordering::Relaxed);
            }
        };
        let threads: Vec<_> = (0..objects.parallel()).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
    })?;
    let time = begin.elapsed().as_secs_f64();
    let sum = sum.into_inner();
    eprintln!(
        "{sum} of {} bytes in {time:.4} s, {:.0} MB/s, the first answer after {:.1} ms",
        state.len,
        sum as f64 / 1e6 / time,
        first.as_secs_f64() * 1e3
    );
    Ok(())
}
