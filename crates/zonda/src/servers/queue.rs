//! Calls of one client about one file that wait in the server.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use zonda_runtime::lock::{Condvar, Mutex, Rank};

use super::buffers::Bytes;
use super::gate::Gate;
use super::wire::{FileIdentity, SentError, What};
use crate::tuning::SERVER_CALL_BYTES;

/// A call that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) what: What,
    pub(super) values: Bytes,
    pub(super) is_asked: bool,
    /// Its number among the calls that all ranks make, of a file of several ranks.
    pub(super) number: Option<u64>,
    /// When it was taken from the client, for the trace.
    pub(super) taken: u64,
}

impl Waiting {
    /// Bytes that it takes in memory, about: many small calls take more than their values.
    fn memory_bytes(&self) -> usize {
        self.values.memory_bytes().saturating_add(SERVER_CALL_BYTES)
    }
}

/// The calls that wait, in order. One thread adds, one takes.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// Of all queues of the client.
    load: Arc<Load>,
    /// The client has closed the file.
    is_closing: AtomicBool,
    share: QueueShare,
    /// Which file it is, whatever its names are by now; set before the client knows that it was created.
    identity: OnceLock<FileIdentity>,
}

#[derive(Debug, Default)]
struct State {
    calls: VecDeque<Waiting>,
    /// No more will come.
    is_ended: bool,
    /// None is carried out any more.
    is_over: bool,
    /// Why no more are carried out, where it is not the client who ended.
    why: Option<SentError>,
}

/// What a queue has of the load. It is changed under the lock of the load.
#[derive(Debug, Default)]
struct QueueShare {
    bytes: AtomicUsize,
    /// The device of its file is full, and a call is made again and again.
    is_full: AtomicBool,
}

/// What waits of one client.
#[derive(Debug)]
pub(super) struct Load {
    state: Mutex<LoadState>,
    less: Condvar,
}

#[derive(Debug, Default)]
struct LoadState {
    bytes: usize,
    /// Those of them that wait for devices that are full.
    full_bytes: usize,
    /// Files that the client has closed and that are not closed here yet.
    n_closing: usize,
    /// Threads of the client that wait for this server.
    n_waiting: usize,
}

impl Load {
    pub(super) fn new() -> Load {
        let state = Mutex::ranked(Rank::Budget, LoadState::default());
        Load { state, less: Condvar::new() }
    }

    pub(super) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Waits until less than so many bytes wait. Those for devices that are full do not count: nobody knows how long that takes.
    pub(super) fn wait_below(&self, most: usize) {
        let waiting = zonda_trace::start();
        if self.wait_until(|state| state.bytes.saturating_sub(state.full_bytes) < most) {
            let kind = zonda_trace::EventKind::QueueBlocked;
            zonda_trace::span_since(waiting, kind, zonda_trace::Args::default);
        }
    }

    fn note_full(&self, share: &QueueShare, is_full: bool) {
        let mut state = self.state.lock();
        if share.is_full.swap(is_full, Ordering::AcqRel) != is_full {
            let bytes = share.bytes.load(Ordering::Relaxed);
            state.full_bytes = match is_full {
                true => state.full_bytes.saturating_add(bytes),
                false => state.full_bytes.saturating_sub(bytes),
            };
            self.less.notify_all();
        }
    }

    fn full_bytes(&self) -> usize {
        self.state.lock().full_bytes
    }

    /// Whether the client waits for this server.
    pub(super) fn is_waited_for(&self) -> bool {
        self.state.lock().n_waiting > 0
    }

    /// Waits until all files are closed that the client has closed.
    pub(super) fn wait_closed(&self) {
        self.wait_until(|state| state.n_closing == 0);
    }

    /// Whether there was something to wait for.
    fn wait_until(&self, is_so: impl Fn(&LoadState) -> bool) -> bool {
        let mut state = self.state.lock();
        let mut has_waited = false;
        state.n_waiting += 1;
        while !is_so(&state) {
            has_waited = true;
            state = self.less.wait(state);
        }
        state.n_waiting -= 1;
        has_waited
    }

    /// Does what the client waits for.
    pub(super) fn while_waiting<T>(&self, work: impl FnOnce() -> T) -> T {
        self.begin_wait();
        let done = work();
        self.end_wait();
        done
    }

    fn begin_wait(&self) {
        self.state.lock().n_waiting += 1;
    }

    fn end_wait(&self) {
        let mut state = self.state.lock();
        state.n_waiting = state.n_waiting.saturating_sub(1);
    }

    pub(super) fn begin_close(&self) {
        self.state.lock().n_closing += 1;
    }

    pub(super) fn end_close(&self) {
        let mut state = self.state.lock();
        state.n_closing = state.n_closing.saturating_sub(1);
        self.less.notify_all();
    }

    fn add(&self, share: &QueueShare, n: usize) {
        let mut state = self.state.lock();
        state.bytes += n;
        share.bytes.fetch_add(n, Ordering::Relaxed);
        if share.is_full.load(Ordering::Relaxed) {
            state.full_bytes += n;
        }
    }

    fn take(&self, share: &QueueShare, n: usize) {
        let mut state = self.state.lock();
        state.bytes = state.bytes.saturating_sub(n);
        share.bytes.fetch_sub(n, Ordering::Relaxed);
        if share.is_full.load(Ordering::Relaxed) {
            state.full_bytes = state.full_bytes.saturating_sub(n);
        }
        self.less.notify_all();
    }
}

impl Queue {
    pub(super) fn new(load: Arc<Load>) -> Queue {
        let state = Mutex::ranked(Rank::Queue, State::default());
        Queue {
            state,
            changed: Condvar::new(),
            load,
            is_closing: AtomicBool::new(false),
            share: QueueShare::default(),
            identity: OnceLock::new(),
        }
    }

    /// Notes which file it is.
    pub(super) fn identify(&self, identity: FileIdentity) {
        self.identity.get_or_init(|| identity);
    }

    pub(super) fn identity(&self) -> Option<FileIdentity> {
        self.identity.get().copied()
    }

    /// Adds a call; gives it back where none are carried out any more.
    pub(super) fn push(&self, call: Waiting) -> Option<Waiting> {
        let mut state = self.state.lock();
        if state.is_over {
            return Some(call);
        }
        self.load.add(&self.share, call.memory_bytes());
        if call.is_asked {
            self.load.begin_wait();
        }
        state.calls.push_back(call);
        drop(state);
        self.changed.notify_all();
        None
    }

    /// No call is carried out any more. Gives those that waited, and why, where it is not the client who ended.
    pub(super) fn end_work(&self) -> (VecDeque<Waiting>, Option<SentError>) {
        let mut state = self.state.lock();
        state.is_over = true;
        let left = (std::mem::take(&mut state.calls), state.why.clone());
        drop(state);
        left.0.iter().for_each(|call| self.done(call));
        left
    }

    /// Whether the client waits for this server.
    pub(super) fn is_waited_for(&self) -> bool {
        self.load.is_waited_for()
    }

    /// Notes whether the device of the file is full.
    pub(super) fn set_full(&self, is_full: bool) {
        if self.share.is_full.load(Ordering::Acquire) != is_full {
            self.load.note_full(&self.share, is_full);
        }
    }

    /// Whether values of a further put can not be kept: the device is full, and so is the memory for what waits for it.
    pub(super) fn is_overfull(&self, most: usize) -> bool {
        self.share.is_full.load(Ordering::Acquire) && self.load.full_bytes() >= most
    }

    /// The client has closed the file, which is so here when the queue has come to that. Whether that is new.
    pub(super) fn begin_close(&self) -> bool {
        // Before the file can be found to be closing: who ends that counts it down.
        self.load.begin_close();
        let is_new = !self.is_closing.swap(true, Ordering::AcqRel);
        if !is_new {
            self.load.end_close();
        }
        is_new
    }

    /// The file is closed. Whether the client has closed it, and nobody was told so before.
    pub(super) fn end_close(&self) -> bool {
        let is_closing = self.is_closing.swap(false, Ordering::AcqRel);
        if is_closing {
            self.load.end_close();
        }
        is_closing
    }

    /// No more will come.
    pub(super) fn end(&self) {
        self.state.lock().is_ended = true;
        self.changed.notify_all();
    }

    /// No more are carried out, though the client is there.
    pub(super) fn end_because(&self, why: &SentError) {
        let mut state = self.state.lock();
        state.is_ended = true;
        state.why.get_or_insert_with(|| why.clone());
        drop(state);
        self.changed.notify_all();
    }

    /// The next call; `None` where no more will come. Of a file of several ranks only what all ranks have told, once one of them has ended.
    pub(super) fn next(&self, gate: Option<(&Gate, usize)>) -> Option<Waiting> {
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
        if gate.zip(call.number).is_none_or(|((gate, rank), number)| gate.wait_for(rank, number)) {
            return Some(call);
        }
        self.state.lock().calls.push_front(call);
        None
    }

    /// What a call that is over took.
    pub(super) fn done(&self, call: &Waiting) {
        self.load.take(&self.share, call.memory_bytes());
        if call.is_asked {
            self.load.end_wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use zonda_runtime::worker::{self, Purpose};
    use zonda_served::Call;

    use super::*;

    fn waiting(n_bytes: usize) -> Waiting {
        let what = What::Call(Call::Sync.into());
        Waiting { what, values: vec![0; n_bytes].into(), is_asked: false, number: None, taken: 0 }
    }

    #[test]
    fn a_full_device_leaves_the_bound_of_other_files() {
        let load = Arc::new(Load::new());
        let [full, other] = [(); 2].map(|()| Queue::new(Arc::clone(&load)));
        assert!(full.push(waiting(1000)).is_none());
        full.set_full(true);
        assert!(full.push(waiting(1000)).is_none());
        assert!(full.is_overfull(2000) && !full.is_overfull(9000));
        // What waits for the full device holds nobody up.
        load.wait_below(1000);
        assert!(other.push(waiting(1000)).is_none());
        assert!(!other.is_overfull(1));
        std::thread::scope(|scope| {
            let wait = || load.wait_below(1000);
            let waits = worker::spawn_scoped(scope, String::new(), Purpose::WriteBehind, wait);
            let waits = waits.unwrap();
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert!(!waits.is_finished(), "the other file has as much waiting as it may");
            other.done(&other.next(None).unwrap());
            waits.join().unwrap();
        });
        full.set_full(false);
        assert!(load.bytes() >= 2000 && load.full_bytes() == 0 && !full.is_overfull(1));
        drop(full.end_work());
        load.wait_below(1);
    }
}
