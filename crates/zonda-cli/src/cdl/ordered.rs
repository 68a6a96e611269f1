//! Does work on all cores and takes the results in order.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use zonda_runtime::lock::{Mutex, Rank};

use zonda_runtime::worker::{self, Purpose};

use crate::failure::{CommandFailure, Result};
use crate::tuning::QUEUED_JOBS;

/// Takes jobs from `next`, has threads do `work`, and gives the results to `done` in the order of
/// the jobs. Only a few jobs are under way at a time. `next` and `done` run in this thread, and so
/// does the work of a single job.
///
/// # Errors
/// The first error of `done`; an error of `next`, after all jobs before it are done.
pub(super) fn in_order<J: Send, R: Send>(
    mut next: impl FnMut() -> Result<Option<J>>,
    work: impl Fn(J) -> R + Sync,
    mut done: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let Some(first) = next()? else { return Ok(()) };
    let second = match next() {
        Ok(Some(second)) => second,
        end => {
            done(work(first))?;
            return end.map(|_| ());
        }
    };
    let threads = zonda_runtime::threads();
    let most = threads * (1 + QUEUED_JOBS);
    let (give, take) = mpsc::sync_channel::<(J, SyncSender<R>)>(most);
    let (take, work) = (Mutex::ranked(Rank::Turns, take), &work);
    let serve = &|| {
        while let Some((job, result)) = receive(&take) {
            // If something failed, nobody receives the result.
            let _ = result.send(work(job));
        }
    };
    thread::scope(|scope| {
        // The sender belongs to this scope: when this thread leaves it, the others see the end of
        // the queue.
        let give = give;
        let start = || {
            let name = String::from("zonda-share");
            worker::spawn_scoped(scope, name, Purpose::Share, serve).is_ok()
        };
        if (0..threads).filter(|_| start()).count() == 0 {
            drop(give);
            return alone([first, second], next, work, done);
        }
        let mut waiting: VecDeque<Receiver<R>> = VecDeque::new();
        let mut ready = VecDeque::from([first, second]);
        // How `next` ended, once it has no more jobs.
        let mut end = None;
        loop {
            while end.is_none() && waiting.len() < most {
                let job = match ready.pop_front() {
                    Some(job) => Ok(Some(job)),
                    None => next(),
                };
                match job {
                    Ok(Some(job)) => {
                        let (result, wait) = mpsc::sync_channel(1);
                        give.send((job, result)).map_err(|_| thread_panicked())?;
                        waiting.push_back(wait);
                    }
                    Ok(None) => end = Some(Ok(())),
                    Err(failure) => end = Some(Err(failure)),
                }
            }
            let Some(wait) = waiting.pop_front() else { return end.unwrap_or(Ok(())) };
            done(wait.recv().map_err(|_| thread_panicked())?)?;
        }
    })
}

/// Does the jobs one after the other, where the system gives no thread.
fn alone<J, R>(
    first: [J; 2],
    mut next: impl FnMut() -> Result<Option<J>>,
    work: impl Fn(J) -> R,
    mut done: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    for job in first {
        done(work(job))?;
    }
    while let Some(job) = next()? {
        done(work(job))?;
    }
    Ok(())
}

/// The next job, `None` when there will be no more.
fn receive<T>(from: &Mutex<Receiver<T>>) -> Option<T> {
    from.lock().recv().ok()
}

/// The failure for a thread that panicked; it has printed why.
fn thread_panicked() -> CommandFailure {
    CommandFailure::text("a thread ended before its work was done")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(n: u64, fail_at: Option<u64>) -> (Result<()>, Vec<u64>) {
        let (mut at, mut seen) = (0, Vec::new());
        let end = in_order(
            || {
                at += 1;
                match at {
                    13 => Err(CommandFailure::text("unlucky")),
                    _ => Ok((at <= n).then_some(at)),
                }
            },
            |n| {
                // The earlier ones take longer.
                thread::sleep(std::time::Duration::from_micros(500 / n));
                n * n
            },
            |square| {
                seen.push(square);
                if fail_at == Some(square) { Err(CommandFailure::text("enough")) } else { Ok(()) }
            },
        );
        (end, seen)
    }

    #[test]
    fn results_are_in_order() {
        for n in [0, 1, 2, 3, 11] {
            let (end, seen) = squares(n, None);
            assert!(end.is_ok());
            assert_eq!(seen, (1..=n).map(|n| n * n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_failure_ends_it() {
        let (end, seen) = squares(1000, None);
        assert!(end.is_err());
        assert_eq!(seen, (1..13).map(|n| n * n).collect::<Vec<_>>());
        let (end, seen) = squares(1000, Some(16));
        assert!(end.is_err());
        assert_eq!(seen, [1, 4, 9, 16]);
    }
}
