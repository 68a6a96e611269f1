//! Calls of one client about one file that wait in the server.

use std::collections::VecDeque;
use std::sync::Arc;

use zonda_runtime::lock::{Condvar, Mutex, Rank};

use super::gate::Gate;
use super::wire::What;

/// A call that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) what: What,
    pub(super) values: Vec<u8>,
    pub(super) is_asked: bool,
    /// Its number among the calls that all ranks make, of a file of several ranks.
    pub(super) number: Option<u64>,
}

/// The calls that wait, in order. One thread adds, one takes.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// Bytes of all queues of the client.
    bytes: Arc<Load>,
}

#[derive(Debug, Default)]
struct State {
    calls: VecDeque<Waiting>,
    /// No more will come.
    is_ended: bool,
}

/// Bytes that wait.
#[derive(Debug)]
pub(super) struct Load {
    bytes: Mutex<usize>,
    less: Condvar,
}

impl Load {
    pub(super) fn new() -> Load {
        Load { bytes: Mutex::ranked(Rank::Budget, 0), less: Condvar::new() }
    }

    pub(super) fn bytes(&self) -> usize {
        *self.bytes.lock()
    }

    /// Waits until less than so many bytes wait.
    pub(super) fn wait_below(&self, most: usize) {
        let mut bytes = self.bytes.lock();
        while *bytes >= most {
            bytes = self.less.wait(bytes);
        }
    }

    fn add(&self, n: usize) {
        *self.bytes.lock() += n;
    }

    fn take(&self, n: usize) {
        let mut bytes = self.bytes.lock();
        *bytes = bytes.saturating_sub(n);
        self.less.notify_all();
    }
}

impl Queue {
    pub(super) fn new(bytes: Arc<Load>) -> Queue {
        let state = Mutex::ranked(Rank::Queue, State::default());
        Queue { state, changed: Condvar::new(), bytes }
    }

    pub(super) fn push(&self, call: Waiting) {
        self.bytes.add(call.values.len());
        self.state.lock().calls.push_back(call);
        self.changed.notify_all();
    }

    /// No more will come.
    pub(super) fn end(&self) {
        self.state.lock().is_ended = true;
        self.changed.notify_all();
    }

    /// The next call; `None` where no more will come. Of a file of several ranks only what all ranks have told, once one of them has ended.
    pub(super) fn next(&self, gate: Option<&Gate>) -> Option<Waiting> {
        let mut state = self.state.lock();
        let call = loop {
            if let Some(call) = state.calls.pop_front() {
                break call;
            }
            if state.is_ended {
                return None;
            }
            state = self.changed.wait(state);
        };
        drop(state);
        let is_free = gate.zip(call.number).is_none_or(|(gate, number)| gate.wait_for(number));
        is_free.then_some(call)
    }

    /// What a call that is over took.
    pub(super) fn done(&self, call: &Waiting) {
        self.bytes.take(call.values.len());
    }
}
