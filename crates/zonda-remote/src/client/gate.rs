//! How many requests a server has at once.

use std::time::{Duration, Instant};

use zonda_runtime::lock::{Condvar, Mutex, Rank};

/// Lets requests to one server through, a number at a time.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    most: usize,
}

#[derive(Debug)]
struct State {
    n_running: usize,
    limit: usize,
    /// Requests that went well since the limit changed.
    n_good: usize,
}

/// A request more at once is tried after so many that went well.
const GOOD_FOR_ONE_MORE: usize = 32;

/// A request that may run, until it is dropped.
#[derive(Debug)]
pub(crate) struct Pass<'a>(&'a Gate);

impl Gate {
    /// `most` requests at once, at least one.
    pub(crate) fn new(most: usize) -> Gate {
        let most = most.max(1);
        let state = State { n_running: 0, limit: most, n_good: 0 };
        Gate { state: Mutex::ranked(Rank::Servers, state), changed: Condvar::default(), most }
    }

    /// Waits until one more may run; `None` if that takes until `until`.
    pub(crate) fn enter(&self, until: Instant) -> Option<Pass<'_>> {
        let mut state = self.state.lock();
        while state.n_running >= state.limit {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.changed.wait_timeout(state, left.min(Duration::from_secs(1))).0;
        }
        state.n_running += 1;
        Some(Pass(self))
    }

    /// A request whose pass was kept is over.
    pub(crate) fn leave(&self) {
        self.state.lock().n_running -= 1;
        self.changed.notify_one();
    }

    /// How many may run at once now.
    pub(crate) fn limit(&self) -> usize {
        self.state.lock().limit
    }

    /// The server asked for less.
    pub(crate) fn narrow(&self) {
        let mut state = self.state.lock();
        state.limit = (state.limit / 2).max(1);
        state.n_good = 0;
    }

    /// A request went well.
    pub(crate) fn went_well(&self) {
        let mut state = self.state.lock();
        if state.limit < self.most {
            state.n_good += 1;
            if state.n_good >= GOOD_FOR_ONE_MORE {
                state.limit += 1;
                state.n_good = 0;
                drop(state);
                self.changed.notify_one();
            }
        }
    }
}

impl Pass<'_> {
    /// The request goes on; [`Gate::leave`] is called when it is over.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_asks_for_less_gets_less_for_a_while() {
        let gate = Gate::new(4);
        let soon = || Instant::now() + Duration::from_millis(5);
        let passes: Vec<_> = (0..4).map(|_| gate.enter(soon()).unwrap()).collect();
        assert!(gate.enter(soon()).is_none());
        drop(passes);
        gate.narrow();
        let passes: Vec<_> = (0..2).map(|_| gate.enter(soon()).unwrap()).collect();
        assert!(gate.enter(soon()).is_none());
        drop(passes);
        (0..5).for_each(|_| gate.narrow());
        assert_eq!(gate.limit(), 1);
        (0..GOOD_FOR_ONE_MORE * 5).for_each(|_| gate.went_well());
        assert_eq!(gate.limit(), 4);
    }
}
