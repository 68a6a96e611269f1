//! Reading ahead of writing: while one thread writes what a buffer holds, another reads the next.

use std::sync::mpsc;
use std::thread;
use zonda_runtime::lock::{Mutex, Rank};

use zonda_runtime::worker::{self, Purpose};

use crate::error::Result;

/// Fills buffers and empties them in the same order, until `fill` returns false because there is no more. `fill` runs
/// on a thread of its own, unless there is only one buffer, or the process is to use one thread only. It gets each
/// buffer as `empty` left it.
///
/// # Errors
/// The first error in the order of the buffers, of `fill` or `empty`. Buffers filled before the failure are emptied,
/// later ones are not.
pub(super) fn run<B: Send>(
    buffers: &mut [B],
    fill: impl FnMut(&mut B) -> Result<bool> + Send,
    mut empty: impl FnMut(&mut B) -> Result<()>,
) -> Result<()> {
    let fill = Mutex::ranked(Rank::Turns, fill);
    let fill = &|buffer: &mut B| (fill.lock())(buffer);
    if buffers.len() > 1 && zonda_runtime::threads() > 1 {
        let beside = thread::scope(|scope| {
            let (give_back, to_fill) = mpsc::channel();
            let (give, to_empty) = mpsc::channel();
            let reader = move || {
                while let Ok(buffer) = to_fill.recv() {
                    let buffer: &mut B = buffer;
                    let filled = match fill(buffer) {
                        Ok(true) => Ok(buffer),
                        Ok(false) => break,
                        Err(error) => Err(error),
                    };
                    let is_end = filled.is_err();
                    if give.send(filled).is_err() || is_end {
                        break;
                    }
                }
            };
            let name = String::from("zonda-ahead");
            if worker::spawn_scoped(scope, name, Purpose::Ahead, reader).is_err() {
                return None;
            }
            for buffer in &mut *buffers {
                let _ = give_back.send(buffer);
            }
            for filled in to_empty {
                let emptied = filled.and_then(|buffer| empty(buffer).map(|()| buffer));
                match emptied {
                    // Sending fails where the reader has ended, and needs no more buffers.
                    Ok(buffer) => drop(give_back.send(buffer)),
                    Err(error) => return Some(Err(error)),
                }
            }
            Some(Ok(()))
        });
        if let Some(done) = beside {
            return done;
        }
    }
    let Some(buffer) = buffers.first_mut() else { return Ok(()) };
    while fill(buffer)? {
        empty(buffer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use zonda_model::NcError;

    /// Numbers pass from `fill` to `empty` until one of the two fails.
    fn numbers(
        n_buffers: usize,
        fill_fails: usize,
        empty_fails: usize,
    ) -> (Vec<usize>, Result<()>) {
        let mut next = 0;
        let mut seen = Vec::new();
        let fill = |buffer: &mut usize| {
            *buffer = next;
            next += 1;
            if *buffer == fill_fails { Err(Error::from(NcError::Inval)) } else { Ok(*buffer < 20) }
        };
        let empty = |buffer: &mut usize| {
            if *buffer == empty_fails {
                return Err(Error::from(NcError::Edge));
            }
            seen.push(*buffer);
            Ok(())
        };
        let done = run(&mut vec![0; n_buffers], fill, empty);
        (seen, done)
    }

    #[test]
    fn all_comes_in_order() {
        for n_buffers in [1, 2, 3, 7] {
            let (seen, done) = numbers(n_buffers, 99, 99);
            assert_eq!(seen, (0..20).collect::<Vec<_>>());
            done.unwrap();
        }
        assert!(numbers(0, 99, 99).0.is_empty());
    }

    #[test]
    fn the_first_failure_is_told() {
        for n_buffers in [1, 2, 3] {
            let (seen, done) = numbers(n_buffers, 7, 99);
            assert_eq!((seen.len(), done.unwrap_err().code()), (7, NcError::Inval));
            let (seen, done) = numbers(n_buffers, 12, 11);
            assert_eq!((seen.len(), done.unwrap_err().code()), (11, NcError::Edge));
            let (seen, done) = numbers(n_buffers, 11, 12);
            assert_eq!((seen.len(), done.unwrap_err().code()), (11, NcError::Inval));
        }
    }
}
