//! The queue of a rank: what it writes to the file is copied, and a thread writes it, in the order in which it came.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use zonda_format::{Error, VarRef};
use zonda_runtime::fork;
use zonda_runtime::lock::{Condvar, Mutex, MutexGuard, Rank};
use zonda_runtime::memory::{self, Holder, Kind, USELESS};
use zonda_runtime::worker::{self, Purpose};
use zonda_storage::{Storage, StorageError, WriteRange};

use super::filter_tasks::{CountedBytes, FilterTasks};
use super::piece::{Piece, PutLabel};
use super::room::QueueRoom;
use crate::tuning::{QUEUE_FORK_NAP, QUEUE_PIECE_BYTES, QUEUE_PIECE_LEAST, QUEUE_THREAD_IDLE};

/// The queue of one rank for one file. It is there in any case, and takes nothing until it is switched on.
///
/// One thread at a time puts; others may get and ask meanwhile. What failed stays, with all that came after it, until
/// [`RankQueue::drain`] tries again.
#[derive(Debug)]
pub struct RankQueue {
    this: Weak<RankQueue>,
    storage: Arc<dyn Storage>,
    /// The process whose queue it is: a forked child leaves it alone.
    pid: u32,
    is_on: AtomicBool,
    /// Pieces that are not written, and chunks of puts that are not filtered.
    n_pieces: AtomicUsize,
    pub(super) state: Mutex<QueueState>,
    /// Rung when there is more to do, when something was done, and at the end.
    progress: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct QueueState {
    pub(super) room: Option<Arc<QueueRoom>>,
    pieces: VecDeque<Piece>,
    /// The last one, to which more of the same put may come.
    open: Option<Piece>,
    /// The one that is being written.
    running: Option<Arc<Piece>>,
    /// The first piece could not be written: the queue stands still.
    pub(super) failure: Option<StorageError>,
    /// What filters have to do.
    pub(super) tasks: FilterTasks,
    /// Memory of pieces that were written, for the next ones.
    spare: Vec<Vec<u8>>,
    /// Not dropped in a forked child, which has no such thread.
    thread: Option<ManuallyDrop<JoinHandle<()>>>,
    /// There is a thread.
    is_served: bool,
    /// The file ends.
    is_over: bool,
}

impl QueueState {
    /// Pieces that wait, in their order.
    fn all(&self) -> impl Iterator<Item = &Piece> {
        let running = self.running.as_deref();
        running.into_iter().chain(&self.pieces).chain(&self.open)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all().next().is_none() && self.tasks.is_idle()
    }

    fn has_work(&self) -> bool {
        self.has_writes() || self.tasks.has_work()
    }

    /// Whether there is something to write now.
    fn has_writes(&self) -> bool {
        self.running.is_none()
            && self.failure.is_none()
            && (self.open.is_some() || !self.pieces.is_empty())
    }

    /// Empty memory for some of so many bytes; `None` where there is no room now.
    fn memory(&mut self, bytes: usize) -> Option<(Vec<u8>, Arc<QueueRoom>)> {
        let room = Arc::clone(self.room.as_ref()?);
        let most =
            usize::try_from(room.limit() / 4).unwrap_or(usize::MAX).clamp(1, QUEUE_PIECE_BYTES);
        let bytes = bytes.max(QUEUE_PIECE_LEAST).min(most);
        let fits = |memory: &Vec<u8>| memory.capacity() >= bytes && memory.capacity() / 2 <= bytes;
        if let Some(at) = self.spare.iter().position(fits) {
            let memory = self.spare.swap_remove(at);
            memory::process().turn(Kind::Spare, Kind::Queues, memory.capacity() as u64);
            return Some((memory, room));
        }
        while !room.take(bytes as u64) {
            if self.free_spare(1) == 0 {
                return None;
            }
        }
        let mut memory = Vec::new();
        if memory.try_reserve_exact(bytes).is_err() {
            room.give_back(bytes as u64);
            return None;
        }
        // What the allocator gave beyond the request is given back with it.
        room.take_anyway((memory.capacity() - bytes) as u64);
        Some((memory, room))
    }

    /// Keeps memory of a piece for the next one.
    fn keep(&mut self, memory: Vec<u8>) {
        memory::process().turn(Kind::Queues, Kind::Spare, memory.capacity() as u64);
        memory::process().has_spare();
        self.spare.push(memory);
    }

    /// Gives up memory that is kept for later; how many bytes.
    pub(super) fn free_spare(&mut self, most: u64) -> u64 {
        let mut freed = 0;
        while freed < most {
            let Some(memory) = self.spare.pop() else { break };
            let bytes = memory.capacity() as u64;
            memory::process().turn(Kind::Spare, Kind::Queues, bytes);
            if let Some(room) = &self.room {
                room.give_back(bytes);
            }
            freed += bytes;
        }
        freed
    }
}

impl RankQueue {
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Arc<RankQueue> {
        Arc::new_cyclic(|this| RankQueue {
            this: Weak::clone(this),
            storage,
            pid: fork::process_id(),
            is_on: AtomicBool::new(false),
            n_pieces: AtomicUsize::new(0),
            state: Mutex::ranked(Rank::BackgroundWork, QueueState::default()),
            progress: Condvar::new(),
        })
    }

    /// Has puts wait in the queue from now on, as far as there is room; none of this rank without any. What waits is written first.
    ///
    /// # Errors
    /// What went wrong with puts that were accepted before; then all stays as it is.
    pub fn set(&self, room: Option<Arc<QueueRoom>>) -> Result<(), Error> {
        self.drain(true)?;
        let mut state = self.state.lock();
        state.free_spare(u64::MAX);
        self.is_on.store(room.is_some(), Ordering::Release);
        if room.is_some() && state.room.is_none() {
            let holder: Weak<dyn Holder> = Weak::<RankQueue>::clone(&self.this);
            drop(state);
            memory::process().join(holder);
            state = self.state.lock();
        }
        // What is written has given its room back.
        if room.is_some() {
            state.room = room;
        }
        Ok(())
    }

    /// Whether puts of this rank wait in it.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Bytes that wait, and what went wrong with the first of them. Never waits for them.
    #[must_use]
    pub fn status(&self) -> (usize, Option<Error>) {
        if self.is_inherited() {
            return (0, None);
        }
        let state = self.state.lock();
        let filters = usize::try_from(state.tasks.n_bytes()).unwrap_or(usize::MAX);
        let bytes = state.all().fold(filters, |sum, piece| sum.saturating_add(piece.len()));
        (bytes, error_of(&state))
    }

    /// What keeps it from going on.
    pub(crate) fn failure(&self) -> Option<Error> {
        if self.is_idle() { None } else { error_of(&self.state.lock()) }
    }

    fn is_idle(&self) -> bool {
        self.n_pieces.load(Ordering::Acquire) == 0 || self.is_inherited()
    }

    pub(super) fn is_inherited(&self) -> bool {
        self.pid != fork::process_id()
    }

    /// The first of the puts that all ranks made together that may not be in the file; `None` if all are.
    pub(crate) fn first_number(&self) -> Option<u64> {
        if self.is_idle() {
            return None;
        }
        let state = self.state.lock();
        // What filters had for long comes behind later puts.
        let number = |piece: &Piece| piece.of.number.wrapping_add(u64::from(piece.of.is_alone));
        state.all().map(number).min()
    }

    /// Whether something waits that this rank put alone to a variable.
    pub(crate) fn has_alone(&self, var: VarRef) -> bool {
        !self.is_idle()
            && self.state.lock().all().any(|piece| piece.of.is_alone && piece.of.var == var)
    }

    /// Takes writes of a put. Where there is no room, and nothing waits whose room would come back, they are made at once. A queue that stands still
    /// takes them, too, as long as there is room: all ranks learn together why it does.
    ///
    /// # Errors
    /// There is no room, for what keeps the queue from going on; then it has a part of the put. Else those of a write that is made at once.
    pub(crate) fn accept(
        &self,
        ranges: &[WriteRange<'_>],
        of: &PutLabel,
    ) -> Result<(), StorageError> {
        let each = ranges.iter().map(|range| range.data.len());
        let mut left = each.fold(0, usize::saturating_add);
        let mut open = self.opened(of);
        for range in ranges {
            let (mut at, mut data) = (range.at, range.data);
            while !data.is_empty() {
                let added = open.as_mut().map(|(piece, room)| piece.add(at, data, room));
                let n = added.and_then(Result::ok).unwrap_or(0);
                if n > 0 {
                    left = left.saturating_sub(n);
                    (at, data) = (at.saturating_add(n as u64), data.get(n..).unwrap_or_default());
                    continue;
                }
                self.push(open.take().map(|(piece, _)| piece));
                open = self.begun(left, of)?;
                if open.is_none() {
                    self.storage.write_at(at, data)?;
                    left = left.saturating_sub(data.len());
                    break;
                }
            }
        }
        self.close(open.map(|(piece, _)| piece));
        Ok(())
    }

    /// The last piece, if more of this put may come to it, and its room.
    fn opened(&self, of: &PutLabel) -> Option<(Piece, Arc<QueueRoom>)> {
        let mut state = self.state.lock();
        let room = state.room.clone()?;
        let piece = state.open.take()?;
        if piece.of == *of {
            self.n_pieces.fetch_sub(1, Ordering::AcqRel);
            return Some((piece, room));
        }
        state.pieces.push_back(piece);
        None
    }

    /// A new piece, when there is room for one; `None` where waiting for that is of no use, since nothing waits.
    fn begun(
        &self,
        left: usize,
        of: &PutLabel,
    ) -> Result<Option<(Piece, Arc<QueueRoom>)>, StorageError> {
        let mut state = self.state.lock();
        loop {
            if let Some((memory, room)) = state.memory(left) {
                match Piece::new(of.clone(), memory, &room) {
                    Ok(piece) => return Ok(Some((piece, room))),
                    Err((_, memory)) => state.keep(memory),
                }
            }
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if state.is_empty() {
                return Ok(None);
            }
            state = self.go_on(state);
        }
    }

    /// Puts a piece behind all others.
    fn push(&self, piece: Option<Piece>) {
        let Some(piece) = piece else { return };
        let mut state = self.state.lock();
        self.n_pieces.fetch_add(1, Ordering::AcqRel);
        state.pieces.push_back(piece);
        self.call_thread(state);
    }

    /// The same with the last one of a call, to which more may come.
    fn close(&self, piece: Option<Piece>) {
        let Some(piece) = piece else { return };
        let mut state = self.state.lock();
        self.n_pieces.fetch_add(1, Ordering::AcqRel);
        state.open = Some(piece);
        self.call_thread(state);
    }

    /// Sees that there is a thread for what waits. Where the system gives none, who waits does the work.
    pub(super) fn call_thread(&self, mut state: MutexGuard<'_, QueueState>) {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        if state.has_work()
            && !state.is_served
            && !state.is_over
            && let Some(this) = self.this.upgrade()
        {
            // One that had nothing to do for long.
            drop(state.thread.take().map(ManuallyDrop::into_inner));
            let name = format!("zonda-io-{}", STARTED.fetch_add(1, Ordering::Relaxed));
            let started = worker::spawn(name, Purpose::WriteBehind, move || this.serve());
            state.thread = started.ok().map(ManuallyDrop::new);
            state.is_served = state.thread.is_some();
        }
        drop(state);
        self.progress.notify_all();
    }

    /// What the thread does from start to end.
    fn serve(&self) {
        while self.has_next() {
            let Some(_gate) = self.passed_gate() else { break };
            let state = self.state.lock();
            if state.has_work() {
                drop(self.carry_out(state));
            }
        }
    }

    /// Waits for work. Where none comes for a while, or the file ends, the thread counts as gone, and the answer is no.
    fn has_next(&self) -> bool {
        let mut state = self.state.lock();
        while !state.is_over {
            if state.has_work() {
                return true;
            }
            let (again, is_late) = self.progress.wait_timeout(state, QUEUE_THREAD_IDLE);
            state = again;
            if is_late && !state.has_work() {
                break;
            }
        }
        self.leave(state);
        false
    }

    /// Waits until no fork is under way, and then keeps forks waiting; `None` if the file ends first.
    fn passed_gate(&self) -> Option<fork::Inside> {
        loop {
            if let Some(gate) = fork::enter() {
                return Some(gate);
            }
            let state = self.state.lock();
            if state.is_over {
                self.leave(state);
                return None;
            }
            drop(state);
            std::thread::sleep(QUEUE_FORK_NAP);
        }
    }

    /// The thread counts as gone.
    fn leave(&self, mut state: MutexGuard<'_, QueueState>) {
        state.free_spare(u64::MAX);
        state.is_served = false;
        drop(state);
        self.progress.notify_all();
    }

    /// Writes the first piece; where there is none, sends the first chunks through their filters.
    fn carry_out<'a>(&'a self, state: MutexGuard<'a, QueueState>) -> MutexGuard<'a, QueueState> {
        if state.has_writes() { self.write_first(state) } else { self.carry_out_filters(state) }
    }

    fn write_first<'a>(
        &'a self,
        mut state: MutexGuard<'a, QueueState>,
    ) -> MutexGuard<'a, QueueState> {
        let first = state.pieces.pop_front();
        let Some(piece) = first.or_else(|| state.open.take()) else { return state };
        let piece = Arc::new(piece);
        state.running = Some(Arc::clone(&piece));
        drop(state);
        let written = catch_unwind(AssertUnwindSafe(|| piece.write_to(&*self.storage)));
        let mut state = self.state.lock();
        state.running = None;
        // Nobody has it outside of the lock.
        let piece = Arc::into_inner(piece);
        match written.unwrap_or_else(|_| Err(panicked())) {
            Ok(()) => {
                self.n_pieces.fetch_sub(1, Ordering::AcqRel);
                if let Some((piece, room)) = piece.zip(state.room.clone()) {
                    let memory = piece.into_memory(&room);
                    if memory.capacity() > 0 {
                        state.keep(memory);
                    }
                }
            }
            Err(error) => {
                piece.into_iter().for_each(|piece| state.pieces.push_front(piece));
                state.failure = Some(error);
            }
        }
        self.progress.notify_all();
        state
    }

    /// Does what comes next, or waits until it is done.
    pub(super) fn go_on<'a>(
        &'a self,
        state: MutexGuard<'a, QueueState>,
    ) -> MutexGuard<'a, QueueState> {
        if state.has_work() { self.carry_out(state) } else { self.progress.wait(state) }
    }

    pub(super) fn wait_for_progress<'a>(
        &'a self,
        state: MutexGuard<'a, QueueState>,
    ) -> MutexGuard<'a, QueueState> {
        self.progress.wait(state)
    }

    /// Something was done.
    pub(super) fn ring(&self) {
        self.progress.notify_all();
    }

    pub(super) fn count_one_more(&self) {
        self.n_pieces.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn count_less(&self, n: usize) {
        self.n_pieces.fetch_sub(n, Ordering::AcqRel);
    }

    /// Takes chunks of a put with their places, whether or not there is room for more. A queue that is switched off writes them before this returns;
    /// what cannot be written stays in any case, and is tried again by the next commit.
    pub(crate) fn accept_chunks(
        &self,
        of: PutLabel,
        chunks: Vec<(u64, Vec<u8>)>,
        counted: CountedBytes,
    ) {
        if chunks.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        let open = state.open.take();
        state.pieces.extend(open);
        state.pieces.push_back(Piece::of_chunks(of, chunks, counted));
        self.count_one_more();
        match self.is_on() {
            true => self.call_thread(state),
            false => {
                drop(state);
                let _told_by_number = self.drain(false);
            }
        }
    }

    /// Waits until all is written; what failed is tried again if that is asked for.
    ///
    /// # Errors
    /// What keeps the queue from going on.
    pub(crate) fn drain(&self, tries_again: bool) -> Result<(), Error> {
        if self.is_idle() {
            return Ok(());
        }
        let mut state = self.state.lock();
        if tries_again {
            state.failure = None;
        }
        loop {
            if let Some(error) = error_of(&state) {
                return Err(error);
            }
            if state.is_empty() {
                return Ok(());
            }
            state = self.go_on(state);
        }
    }

    /// Before something else is done with ranges of the file: waits until what goes there is written.
    ///
    /// # Errors
    /// What keeps the queue from writing it.
    pub(crate) fn before(
        &self,
        ranges: impl Iterator<Item = (u64, u64)> + Clone,
    ) -> Result<(), StorageError> {
        if self.is_idle() {
            return Ok(());
        }
        let mut state = self.state.lock();
        while state.all().any(|piece| ranges.clone().any(|(at, len)| piece.meets(at, len))) {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            state = self.go_on(state);
        }
        Ok(())
    }

    /// Gives up what cannot be written.
    pub(crate) fn discard(&self) {
        if self.is_inherited() {
            return;
        }
        let mut state = self.state.lock();
        while state.running.is_some() {
            state = self.progress.wait(state);
        }
        let QueueState { pieces, open, room, .. } = &mut *state;
        let given_up: Vec<Piece> = pieces.drain(..).chain(open.take()).collect();
        self.n_pieces.fetch_sub(given_up.len(), Ordering::AcqRel);
        if let Some(room) = room {
            given_up.into_iter().for_each(|piece| piece.give_up(room));
        }
        state.failure = None;
        drop(state);
        self.progress.notify_all();
    }

    /// The file ends: what can be written is, and the thread is gone when this returns.
    pub(crate) fn end(&self) {
        if self.is_inherited() {
            return;
        }
        // Their places are given by all ranks together, or by nobody.
        self.give_up_filters();
        if self.drain(true).is_err() {
            self.discard();
        }
        let mut state = self.state.lock();
        state.free_spare(u64::MAX);
        state.is_over = true;
        self.progress.notify_all();
        while state.is_served {
            state = self.progress.wait(state);
        }
        let thread = state.thread.take();
        drop(state);
        // It takes no more locks.
        thread.into_iter().for_each(|thread| worker::join(ManuallyDrop::into_inner(thread)));
    }
}

/// The error of the put that keeps a queue from going on.
fn error_of(state: &QueueState) -> Option<Error> {
    let failure = Error::from(state.failure.clone()?);
    let put = state.all().next().map(|piece| format!("{} which was accepted before", piece.of));
    let put = put.unwrap_or_else(|| String::from("a put that was accepted before"));
    let text = format!("{put} failed: {}", failure.cause());
    Some(failure.with_other_text(text))
}

/// What became of a write that panicked.
fn panicked() -> StorageError {
    StorageError::OfRank {
        rank: 0,
        errno: 5,
        at: None,
        lost_sync: false,
        refused: false,
        text: Arc::from("bug in Zonda: writing what was accepted before panicked"),
    }
}

impl Holder for RankQueue {
    fn least_useful(&self) -> Option<u64> {
        let state = self.state.try_lock()?;
        (!state.spare.is_empty()).then_some(USELESS)
    }

    fn give_back(&self, bytes: u64, _before: u64) -> u64 {
        self.state.try_lock().map_or(0, |mut state| state.free_spare(bytes))
    }
}

#[cfg(test)]
mod tests;
