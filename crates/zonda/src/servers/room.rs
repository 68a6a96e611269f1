//! A device that is full while a program goes on: what it has told is made again until there is room, and what it tells beyond the memory
//! for that is refused.

use std::io::Write as _;
use std::time::Duration;

use zonda_format::Error;
use zonda_parallel::of_team;
use zonda_team::{Reduction, Step, Team};

use super::queue::Queue;
use crate::error::Result;
use crate::patience::{DevicePatience, is_full};

/// What waits for room, of one file.
#[derive(Debug, Default)]
pub(super) struct Room {
    patience: DevicePatience,
}

/// A call that may have to wait for room.
pub(super) struct Attempt<'a> {
    pub(super) queue: &'a Queue,
    /// The client waits for the reply: it is told at once.
    pub(super) is_asked: bool,
    /// The team that makes the call together.
    pub(super) team: Option<&'a dyn Team>,
}

const STEP: Step<'static> =
    Step { call: "a call on a full device", file: "a file of an I/O server" };

impl Room {
    /// Makes a call, and again while the device is full and time is left. `tell` is called once for the call, with what went wrong first.
    ///
    /// # Errors
    /// The last error of the call.
    pub(super) fn make<T>(
        &mut self,
        attempt: &Attempt<'_>,
        tell: impl FnOnce(&Error),
        mut call: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let mut tell = Some(tell);
        loop {
            let error = match call() {
                Err(error) if is_full(&error) => error,
                done => {
                    attempt.queue.set_full(false);
                    return done;
                }
            };
            let left = self.patience.left();
            let Some(nap) = self.agreed_nap(attempt)? else {
                attempt.queue.set_full(false);
                return Err(error);
            };
            attempt.queue.set_full(true);
            if let Some(tell) = tell.take() {
                tell(&error);
                // Nobody may be there to read it.
                let _ = writeln!(
                    std::io::stderr().lock(),
                    "zonda iod: {error}: tries again for up to {} s",
                    left.as_secs()
                );
            }
            std::thread::sleep(nap);
        }
    }

    /// How long to wait. Ranks that make the call together do so again, or none of them.
    fn agreed_nap(&mut self, attempt: &Attempt<'_>) -> Result<Option<Duration>> {
        let nap = if attempt.is_asked { None } else { self.patience.next_nap() };
        let Some(team) = attempt.team else { return Ok(nap) };
        let mut least = [nap.map_or(0, |nap| u64::try_from(nap.as_millis()).unwrap_or(1).max(1))];
        team.reduce(STEP, Reduction::Min, &mut least).map_err(|error| of_team(&error))?;
        Ok(Some(Duration::from_millis(least[0])).filter(|nap| !nap.is_zero()))
    }
}
