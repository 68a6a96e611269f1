//! Gets that are made before anybody asks.

use std::collections::VecDeque;
use std::sync::Arc;

use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::worker::{self, Purpose};
use zonda_served::Call;

use super::file::{ReadingFile, Slot};
use crate::tuning::SERVER_MOST_AHEAD;

/// Gets that wait for a thread, which is there while there are any.
#[derive(Debug)]
pub(super) struct Ahead {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Job>,
    has_thread: bool,
}

#[derive(Debug)]
struct Job {
    file: Arc<ReadingFile>,
    call: Call,
    slot: Arc<Slot>,
}

impl Ahead {
    pub(super) fn new() -> Ahead {
        Ahead { state: Mutex::ranked(Rank::Ready, State::default()) }
    }

    /// Has a get be made that somebody is likely to ask for, if there is time and memory for it. The last one took `n_bytes`.
    pub(super) fn expect(self: &Arc<Self>, file: &Arc<ReadingFile>, call: Call, n_bytes: u64) {
        let Some(slot) = file.expect(&call, n_bytes) else { return };
        let job = Job { file: Arc::clone(file), call, slot };
        let mut state = self.state.lock();
        if state.waiting.len() >= SERVER_MOST_AHEAD {
            drop(state);
            return job.file.give_up(&job.call);
        }
        state.waiting.push_back(job);
        let needs_thread = !std::mem::replace(&mut state.has_thread, true);
        drop(state);
        if needs_thread {
            let this = Arc::clone(self);
            let thread = worker::spawn(String::from("zonda-ahead"), Purpose::Ahead, move || {
                this.make_all();
            });
            if thread.is_err() {
                // Who asks for one of these makes it.
                self.state.lock().has_thread = false;
            }
        }
    }

    fn make_all(&self) {
        let mut scratch = Vec::new();
        loop {
            let job = {
                let mut state = self.state.lock();
                let job = state.waiting.pop_front();
                state.has_thread = job.is_some();
                job
            };
            let Some(Job { file, call, slot }) = job else { return };
            file.make(&call, &slot, &mut scratch);
        }
    }
}
