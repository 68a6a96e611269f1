//! Waiting for room on a full device, by processes that write for programs: a helper because no program is left that could try again, a server because the program went on.

use std::time::Duration;

use zonda_model::NcError;
use zonda_runtime::setting;
use zonda_storage::has_no_room;

use crate::error::{Error, Result};
use crate::tuning::{FULL_DEVICE_FIRST_WAIT, FULL_DEVICE_LONGEST_WAIT, FULL_DEVICE_PATIENCE};

/// The time that is left to wait for one file.
#[derive(Debug)]
pub(crate) struct DevicePatience {
    left: Duration,
    nap: Duration,
    is_reported: bool,
}

impl Default for DevicePatience {
    fn default() -> DevicePatience {
        let default = FULL_DEVICE_PATIENCE;
        let used = format!("{} s", default.as_secs());
        DevicePatience {
            left: setting::seconds("ZONDA_FULL_DEVICE_WAIT", &used).unwrap_or(default),
            nap: FULL_DEVICE_FIRST_WAIT,
            is_reported: false,
        }
    }
}

impl DevicePatience {
    /// Calls `act`, and again while the device is full and time is left. `on_wait` is called once, before the first
    /// wait.
    ///
    /// # Errors
    /// The last error of `act`.
    pub(crate) fn with<T>(
        &mut self,
        on_wait: impl Fn(&Error, Duration),
        mut act: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        loop {
            let error = match act() {
                Err(error) if is_full(&error) => error,
                done => return done,
            };
            let left = self.left;
            let Some(nap) = self.next_nap() else { return Err(error) };
            if !std::mem::replace(&mut self.is_reported, true) {
                on_wait(&error, left);
            }
            std::thread::sleep(nap);
        }
    }

    /// How long to wait before the next attempt, which is taken from the time that is left; `None` where none is.
    pub(crate) fn next_nap(&mut self) -> Option<Duration> {
        let nap = self.nap.min(self.left);
        self.left -= nap;
        self.nap = (2 * self.nap).min(FULL_DEVICE_LONGEST_WAIT);
        (!nap.is_zero()).then_some(nap)
    }

    /// The time that is left.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }
}

/// Whether there may be room later: not after an error of a limit of the process (`EFBIG`) or of a broken device.
pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error.code(), NcError::System(errno) if has_no_room(errno))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const EIO: i32 = 5;
    const ENOSPC: i32 = 28;
    const EDQUOT: i32 = 122;

    fn short() -> DevicePatience {
        let ms = Duration::from_millis;
        DevicePatience { left: ms(7), nap: ms(1), is_reported: false }
    }

    #[test]
    fn a_full_device_is_tried_again_until_time_is_up_and_nothing_else_is() {
        let (n_waits, n_tried) = (Cell::new(0), Cell::new(0));
        let on_wait = |_: &Error, _: Duration| n_waits.set(n_waits.get() + 1);
        let fails = |code: i32| -> Result<()> {
            n_tried.set(n_tried.get() + 1);
            Err(NcError::System(code).into())
        };
        let mut patience = short();
        assert!(patience.with(on_wait, || fails(ENOSPC)).is_err());
        // After 1, 2 and 4 ms.
        assert_eq!((n_tried.take(), n_waits.take()), (4, 1));
        assert!(patience.with(on_wait, || fails(EDQUOT)).is_err());
        assert_eq!((n_tried.take(), n_waits.take()), (1, 0), "there is no time left");

        assert!(short().with(on_wait, || fails(EIO)).is_err());
        assert_eq!((n_tried.take(), n_waits.take()), (1, 0));

        let works_at = |n: i32| if n_tried.get() == n { Ok(n) } else { fails(ENOSPC).map(|()| 0) };
        assert_eq!(short().with(on_wait, || works_at(2)).expect("room"), 2);
        assert_eq!(n_waits.take(), 1);
    }
}
