//! Chunks that a thread of the queue sends through their filters. What comes of them waits here until all ranks have told each other how long it has
//! become.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use zonda_format::{DetachedChunks, FilteredBytes, UnfilteredChunk};
use zonda_model::NcError;
use zonda_runtime::lock::MutexGuard;
use zonda_runtime::memory::{self, Kind};

use super::piece::PutLabel;
use super::rank_queue::{QueueState, RankQueue};
use super::room::QueueRoom;

/// What became of a chunk.
pub(crate) type FilterResult = Result<FilteredBytes, UnfilteredChunk>;

/// Bytes that count as long as this is there: of the room of a queue, or of the process where there is none.
#[derive(Debug)]
pub(crate) struct CountedBytes {
    room: Option<Arc<QueueRoom>>,
    bytes: u64,
}

impl CountedBytes {
    /// Bytes that are there, whether or not there is room for them.
    pub(super) fn anyway(room: Option<Arc<QueueRoom>>, bytes: u64) -> CountedBytes {
        match &room {
            Some(room) => room.take_anyway(bytes),
            None => {
                // Caches give way; where that is not enough it is taken all the same, and chunks that wait go to their file next.
                let broker = memory::process();
                if !broker.take(Kind::Incomplete, bytes) {
                    broker.take_anyway(Kind::Incomplete, bytes);
                }
            }
        }
        CountedBytes { room, bytes }
    }

    /// Bytes that a process has that belong to no queue.
    pub(crate) fn of_process(bytes: u64) -> CountedBytes {
        CountedBytes::anyway(None, bytes)
    }

    /// The same for another number of bytes.
    fn changed_to(self, bytes: u64) -> CountedBytes {
        CountedBytes::anyway(self.room.clone(), bytes)
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        match &self.room {
            Some(room) => room.give_back(self.bytes),
            None => memory::process().give_back(Kind::Incomplete, self.bytes),
        }
    }
}

/// Chunks that wait for their filters.
#[derive(Debug)]
struct FilterTask {
    number: u64,
    of: PutLabel,
    chunks: Box<dyn DetachedChunks>,
    counted: CountedBytes,
}

/// All of them, and what came of others.
#[derive(Debug, Default)]
pub(super) struct FilterTasks {
    n_begun: u64,
    waiting: VecDeque<FilterTask>,
    /// One of them is with a thread, and has so many bytes.
    running: Option<u64>,
    done: BTreeMap<u64, (Vec<FilterResult>, CountedBytes)>,
    /// Why the first chunk that did not get through its filters did not, until somebody has told the others.
    refused: Option<(NcError, String)>,
}

impl FilterTasks {
    pub(super) fn has_work(&self) -> bool {
        self.running.is_none() && !self.waiting.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running.is_none() && self.waiting.is_empty()
    }

    /// Bytes of what is not written.
    pub(super) fn n_bytes(&self) -> u64 {
        let waiting = self.waiting.iter().map(|task| task.counted.bytes);
        let done = self.done.values().map(|(_, counted)| counted.bytes);
        waiting.chain(done).chain(self.running).fold(0, u64::saturating_add)
    }
}

impl RankQueue {
    /// Bytes of the room, when there is some: waits for what this rank writes itself. `None` where that is of no use.
    pub(crate) fn room_for(&self, bytes: u64) -> Option<CountedBytes> {
        if self.is_inherited() {
            return None;
        }
        let mut state = self.state.lock();
        let room = state.room.clone().filter(|room| self.is_on() && bytes <= room.limit())?;
        loop {
            if room.take(bytes) {
                return Some(CountedBytes { room: Some(room), bytes });
            }
            if state.free_spare(1) > 0 {
                continue;
            }
            if state.failure.is_some() || state.is_empty() {
                return None;
            }
            state = self.go_on(state);
        }
    }

    /// Whether there is no room for so many bytes more.
    pub(crate) fn is_short_of(&self, bytes: u64) -> bool {
        if self.is_inherited() {
            return true;
        }
        let state = self.state.lock();
        state.room.as_ref().filter(|_| self.is_on()).is_none_or(|room| !room.has(bytes))
    }

    /// Counts bytes that a rank has whether or not there is room for them.
    pub(crate) fn counted(&self, bytes: u64) -> CountedBytes {
        let is_used = self.is_on() && !self.is_inherited();
        let room = if is_used { self.state.lock().room.clone() } else { None };
        CountedBytes::anyway(room, bytes)
    }

    /// Has chunks of a put sent through their filters. The number by which to ask for them.
    pub(crate) fn filter_later(
        &self,
        of: PutLabel,
        chunks: Box<dyn DetachedChunks>,
        counted: CountedBytes,
    ) -> u64 {
        let mut state = self.state.lock();
        let tasks = &mut state.tasks;
        let number = tasks.n_begun;
        tasks.n_begun = number.saturating_add(1);
        tasks.waiting.push_back(FilterTask { number, of, chunks, counted });
        self.count_one_more();
        self.call_thread(state);
        number
    }

    /// How many of these numbers, from the first on, have been through their filters.
    pub(crate) fn n_filtered(&self, numbers: impl Iterator<Item = Option<u64>>) -> usize {
        if self.is_inherited() {
            return 0;
        }
        let state = self.state.lock();
        let is_done =
            |number: &Option<u64>| number.is_none_or(|n| state.tasks.done.contains_key(&n));
        numbers.take_while(is_done).count()
    }

    /// What the filters made of chunks, when they have. Nothing where these were given up.
    pub(crate) fn filtered(&self, number: u64) -> Option<(Vec<FilterResult>, CountedBytes)> {
        if self.is_inherited() {
            return None;
        }
        let mut state = self.state.lock();
        loop {
            if let Some(done) = state.tasks.done.remove(&number) {
                return Some(done);
            }
            if state.tasks.is_idle() {
                return None;
            }
            // Also where the queue stands still: filters need nothing that it has to write.
            state = match state.tasks.has_work() {
                true => self.carry_out_filters(state),
                false => self.wait_for_progress(state),
            };
        }
    }

    /// Gives up what waits for filters, and what came of others: nobody asks for it any more.
    pub(crate) fn give_up_filters(&self) {
        if self.is_inherited() {
            return;
        }
        let mut state = self.state.lock();
        let given_up = std::mem::take(&mut state.tasks.waiting);
        self.count_less(given_up.len());
        while state.tasks.running.is_some() {
            state = self.wait_for_progress(state);
        }
        state.tasks.done.clear();
        drop(state);
        self.ring();
    }

    /// Why a chunk did not get through its filters, if nobody was told yet.
    pub(crate) fn refused(&self) -> Option<(NcError, String)> {
        if self.is_inherited() { None } else { self.state.lock().tasks.refused.clone() }
    }

    /// All ranks are told of it now.
    pub(crate) fn take_refused(&self) -> Option<(NcError, String)> {
        self.state.lock().tasks.refused.take()
    }

    /// Sends the first chunks through their filters.
    pub(super) fn carry_out_filters<'a>(
        &'a self,
        mut state: MutexGuard<'a, QueueState>,
    ) -> MutexGuard<'a, QueueState> {
        let Some(task) = state.tasks.waiting.pop_front() else { return state };
        let FilterTask { number, of, chunks, counted } = task;
        state.tasks.running = Some(counted.bytes);
        drop(state);
        let done = catch_unwind(AssertUnwindSafe(|| chunks.filter()));
        let mut state = self.state.lock();
        state.tasks.running = None;
        self.count_less(1);
        let done = done.map_err(|_| {
            (
                NcError::Io,
                String::from("bug in Zonda: filters of what was accepted before panicked"),
            )
        });
        let refused = match &done {
            Ok(done) => done
                .iter()
                .find_map(|one| one.as_ref().err())
                .map(|chunk| (chunk.error.code(), chunk.error.cause())),
            Err(panicked) => Some(panicked.clone()),
        };
        if let Some((code, why)) = refused {
            state.tasks.refused.get_or_insert((code, format!("{of} failed: {why}")));
        }
        let done = done.unwrap_or_default();
        let n_bytes = |one: &FilterResult| match one {
            Ok(chunk) => chunk.bytes.capacity() as u64,
            Err(chunk) => chunk.bytes.capacity() as u64,
        };
        let bytes = done.iter().map(n_bytes).fold(0, u64::saturating_add);
        state.tasks.done.insert(number, (done, counted.changed_to(bytes)));
        self.ring();
        state
    }
}

#[cfg(test)]
mod tests;
