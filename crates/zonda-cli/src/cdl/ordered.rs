//! Work for all cores, the results of which are taken in order.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use crate::failure::{Failure, Result};

/// Jobs that are given out beyond those that threads are at.
const AHEAD: usize = 2;

/// Gives the jobs of `next` to threads, and what `work` makes of them, in the order of the jobs, to
/// `done`. Few jobs are under way at a time; `next` and `done` run in this thread. A single job, too.
///
/// # Errors
/// The first of `next` or `done`.
pub(super) fn in_order<J: Send, R: Send>(
    mut next: impl FnMut() -> Result<Option<J>>,
    work: impl Fn(J) -> R + Sync,
    mut done: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let Some(first) = next()? else { return Ok(()) };
    let Some(second) = next()? else { return done(work(first)) };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let most = threads * (1 + AHEAD);
    let (give, take) = mpsc::sync_channel::<(J, SyncSender<R>)>(most);
    let take = Mutex::new(take);
    thread::scope(|scope| {
        // Of this scope, so that threads see its end when this one leaves.
        let give = give;
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((job, result)) = receive(&take) {
                    // Nobody waits for it if something failed.
                    let _ = result.send(work(job));
                }
            });
        }
        let mut waiting: VecDeque<Receiver<R>> = VecDeque::new();
        let mut ready = VecDeque::from([first, second]);
        let mut is_over = false;
        loop {
            while !is_over && waiting.len() < most {
                let job = match ready.pop_front() {
                    Some(job) => Some(job),
                    None => next()?,
                };
                let Some(job) = job else {
                    is_over = true;
                    break;
                };
                let (result, wait) = mpsc::sync_channel(1);
                give.send((job, result)).map_err(|_| gone())?;
                waiting.push_back(wait);
            }
            let Some(wait) = waiting.pop_front() else { return Ok(()) };
            done(wait.recv().map_err(|_| gone())?)?;
        }
    })
}

/// The next job, `None` when there will be no more.
fn receive<T>(from: &Mutex<Receiver<T>>) -> Option<T> {
    from.lock().ok()?.recv().ok()
}

/// A thread that panicked has said why.
fn gone() -> Failure {
    Failure::text("a thread ended before its work was done")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(n: u64, fail_at: Option<u64>) -> (Result<()>, Vec<u64>) {
        let (mut at, mut seen) = (0, Vec::new());
        let end = in_order(
            || {
                at += 1;
                Ok((at <= n).then_some(at))
            },
            |n| {
                // The earlier ones take longer.
                thread::sleep(std::time::Duration::from_micros(500 / n));
                n * n
            },
            |square| {
                seen.push(square);
                if fail_at == Some(square) { Err(Failure::text("enough")) } else { Ok(()) }
            },
        );
        (end, seen)
    }

    #[test]
    fn results_are_in_order() {
        for n in [0, 1, 2, 3, 100] {
            let (end, seen) = squares(n, None);
            assert!(end.is_ok());
            assert_eq!(seen, (1..=n).map(|n| n * n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_failure_ends_it() {
        let (end, seen) = squares(1000, Some(16));
        assert!(end.is_err());
        assert_eq!(seen, [1, 4, 9, 16]);
    }
}
