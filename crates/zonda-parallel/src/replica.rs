//! The storage of one rank.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use zonda_model::memory::NoMemory;
use zonda_runtime::lock::{Mutex, Rank};
use zonda_storage::{
    Advice, ReadRange, RemoteReads, Storage, StorageError, StorageStamp, WriteRange,
};

use crate::exchange::{Collector, Packets};
use crate::queue::{PutLabel, RankQueue};
use crate::record::{Answer, Asked, Record, RecordError, What};

/// What goes on in a storage and in the neighbours of its file.
#[derive(Debug)]
pub(crate) struct StepState {
    mode: Mutex<Mode>,
}

#[derive(Debug)]
enum Mode {
    /// The rank's own reads and writes go to the file.
    Own,
    /// Writes are kept for the owners of the stripes where they go.
    Collecting(Collector),
    /// Writes are those of a put, and wait in the queue of the rank.
    Queueing(PutLabel),
    /// All ranks do the same in memory: the file must not be changed.
    Memory,
    /// This is rank 0 in a common step.
    Recording(Record),
    /// Another rank in a common step.
    Replaying { record: std::vec::IntoIter<(Asked, Answer)>, diverged: Option<RecordError> },
}

/// What to do with an operation.
pub(crate) enum Course {
    /// The file answers.
    File,
    /// The file answers, and its answer is recorded.
    Record,
    /// The record has answered.
    Answered(Answer),
}

impl StepState {
    pub(crate) fn new() -> Arc<StepState> {
        Arc::new(StepState { mode: Mutex::ranked(Rank::StepRecord, Mode::Own) })
    }

    /// Whether the rank is outside of common steps.
    fn is_own(&self) -> bool {
        matches!(*self.mode.lock(), Mode::Own | Mode::Collecting(_) | Mode::Queueing(_))
    }

    /// Whether answers come from a record.
    fn is_replaying(&self) -> bool {
        matches!(*self.mode.lock(), Mode::Replaying { .. })
    }

    /// Has writes wait in the queue from now on: those of a put.
    pub(crate) fn queue(&self, put: PutLabel) {
        *self.mode.lock() = Mode::Queueing(put);
    }

    /// The put whose writes wait in the queue, if that is what goes on.
    fn queued_put(&self) -> Option<PutLabel> {
        match &*self.mode.lock() {
            Mode::Queueing(put) => Some(put.clone()),
            _ => None,
        }
    }

    /// Keeps writes from now on.
    pub(crate) fn collect(&self, collector: Collector) {
        *self.mode.lock() = Mode::Collecting(collector);
    }

    /// Ends keeping writes, and gives them.
    ///
    /// # Errors
    /// There was no memory for some of them.
    pub(crate) fn collected(&self) -> Result<Packets, NoMemory> {
        match std::mem::replace(&mut *self.mode.lock(), Mode::Own) {
            Mode::Collecting(collector) => collector.into_packets(),
            _ => Ok(Packets::new()),
        }
    }

    /// Keeps writes, if that is what goes on.
    fn keep(&self, ranges: &[WriteRange<'_>]) -> bool {
        match &mut *self.mode.lock() {
            Mode::Collecting(collector) => {
                ranges.iter().for_each(|range| collector.add(range.at, range.data));
                true
            }
            _ => false,
        }
    }

    /// Refuses from now on what changes the file.
    pub(crate) fn stay_in_memory(&self) {
        *self.mode.lock() = Mode::Memory;
    }

    /// Reads and writes are the rank's own again.
    pub(crate) fn be_own(&self) {
        *self.mode.lock() = Mode::Own;
    }

    /// Begins to record.
    pub(crate) fn record(&self) {
        *self.mode.lock() = Mode::Recording(Record::default());
    }

    /// Ends recording, and gives the record. `None` where nothing was being recorded.
    pub(crate) fn recorded(&self) -> Option<Record> {
        match std::mem::replace(&mut *self.mode.lock(), Mode::Own) {
            Mode::Recording(record) => Some(record),
            _ => None,
        }
    }

    /// Begins to answer from a record.
    pub(crate) fn replay(&self, record: Record) {
        *self.mode.lock() = Mode::Replaying { record: record.answers.into_iter(), diverged: None };
    }

    /// Ends answering from a record.
    ///
    /// # Errors
    /// [`RecordError::Diverged`] where this rank did not do what rank 0 did.
    pub(crate) fn replayed(&self) -> Result<(), RecordError> {
        match std::mem::replace(&mut *self.mode.lock(), Mode::Own) {
            Mode::Replaying { diverged: Some(error), .. } => Err(error),
            Mode::Replaying { mut record, .. } => match record.next() {
                None => Ok(()),
                Some((next, _)) => Err(diverged("nothing more", next.to_string())),
            },
            _ => Err(diverged("the end of a common step", String::from("its beginning"))),
        }
    }

    /// What becomes of an operation.
    pub(crate) fn course(&self, asked: Asked) -> Course {
        let mut mode = self.mode.lock();
        match &mut *mode {
            Mode::Own | Mode::Collecting(_) | Mode::Queueing(_) => Course::File,
            Mode::Memory if asked.what.only_reads() => Course::File,
            Mode::Memory => Course::Answered(Answer::Failed(not_now(asked))),
            Mode::Recording(_) => Course::Record,
            Mode::Replaying { record, diverged: is } => {
                if is.is_none() {
                    match record.next() {
                        Some((next, answer)) if next == asked => return Course::Answered(answer),
                        Some((next, _)) => *is = Some(diverged(asked, next.to_string())),
                        None => *is = Some(diverged(asked, String::from("nothing more"))),
                    }
                }
                Course::Answered(Answer::Failed(lost(asked)))
            }
        }
    }

    /// Notes what the file answered.
    pub(crate) fn note(&self, asked: Asked, answer: impl FnOnce() -> Answer) {
        if let Mode::Recording(record) = &mut *self.mode.lock() {
            record.answers.push((asked, answer()));
        }
    }

    /// Has an operation answered by the file, or by the record.
    pub(crate) fn ask<T>(
        &self,
        asked: Asked,
        of_file: impl FnOnce() -> Result<T, StorageError>,
        to_answer: impl FnOnce(&T) -> Answer,
        from_answer: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<T, StorageError> {
        match self.course(asked) {
            Course::File => of_file(),
            Course::Record => {
                let found = of_file();
                self.note(asked, || match &found {
                    Ok(found) => to_answer(found),
                    Err(error) => Answer::Failed(error.clone()),
                });
                found
            }
            Course::Answered(Answer::Failed(error)) => Err(error),
            Course::Answered(answer) => from_answer(answer).ok_or_else(|| lost(asked)),
        }
    }

    /// The same for what answers nothing.
    pub(crate) fn act(
        &self,
        asked: Asked,
        of_file: impl FnOnce() -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.ask(asked, of_file, |()| Answer::Done, |answer| (answer == Answer::Done).then_some(()))
    }
}

fn diverged(asked: impl fmt::Display, expected: String) -> RecordError {
    RecordError::Diverged { asked: asked.to_string(), expected }
}

/// The answer to a rank that does something else than rank 0: it ends what it does, and the end of the step tells why.
fn lost(asked: Asked) -> StorageError {
    StorageError::OfRank {
        rank: 0,
        errno: EIO,
        at: Some(asked.at),
        lost_sync: false,
        refused: false,
        text: Arc::from(format!("it did not do what this rank does ({asked})")),
    }
}

/// The answer to what would change the file on each rank for itself.
fn not_now(asked: Asked) -> StorageError {
    StorageError::OfRank {
        rank: 0,
        errno: EIO,
        at: Some(asked.at),
        lost_sync: false,
        refused: false,
        text: Arc::from(format!(
            "bug in Zonda: ranks do this in memory, and it would change the file ({asked})"
        )),
    }
}

/// `EIO` of Linux on every architecture.
const EIO: i32 = 5;

/// The storage of one rank of a team. Outside of common steps ([`common`](crate::common)) it is the file: reads and writes of the rank itself.
///
/// A common step uses it from one thread.
#[derive(Debug)]
pub struct Replica {
    /// What of the file this rank reads and writes by itself.
    file: Arc<dyn Storage>,
    /// What puts of this rank have written and the file does not have yet.
    queue: Arc<RankQueue>,
    state: Arc<StepState>,
    /// The other ranks write, too.
    has_other_writers: bool,
}

impl Replica {
    /// The storage of a rank, on a file that it has opened for itself.
    #[must_use]
    pub fn new(file: Arc<dyn Storage>) -> Replica {
        let queue = RankQueue::new(Arc::clone(&file));
        Replica { file, queue, state: StepState::new(), has_other_writers: true }
    }

    /// The same in the steps of another storage: a journal belongs to the steps of its file.
    pub(crate) fn within(file: Arc<dyn Storage>, state: Arc<StepState>) -> Replica {
        // Nothing is put into it.
        let queue = RankQueue::new(Arc::clone(&file));
        Replica { file, queue, state, has_other_writers: false }
    }

    /// The queue of this rank for the file.
    #[must_use]
    pub fn queue(&self) -> &Arc<RankQueue> {
        &self.queue
    }

    pub(crate) fn state(&self) -> &Arc<StepState> {
        &self.state
    }

    /// Waits until the file has what waits in the queue, before it is asked about as a whole. A put needs no more than its own
    /// places; what went wrong is told by who drains the queue.
    fn settle(&self) {
        if self.state.queued_put().is_none() {
            let _told_elsewhere = self.queue.drain(false);
        }
    }

    fn act(
        &self,
        what: What,
        at: u64,
        len: u64,
        of_file: impl FnOnce() -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.state.act(Asked { what, at, len }, of_file)
    }
}

/// Of what is behind a network each rank has a connection of its own; what the record answers is not asked for.
impl RemoteReads for Replica {
    fn will_read(&self, ranges: &[Range<u64>]) {
        if let Some(remote) = self.file.remote().filter(|_| !self.state.is_replaying()) {
            remote.will_read(ranges);
        }
    }

    fn shown(&self) -> Arc<str> {
        self.file.remote().map(RemoteReads::shown).unwrap_or_default()
    }
}

impl Storage for Replica {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.queue.before(std::iter::once((at, buf.len() as u64)))?;
        let asked = Asked { what: What::Read, at, len: buf.len() as u64 };
        match self.state.course(asked) {
            Course::File => self.file.read_at(at, buf),
            Course::Record => {
                let got = self.file.read_at(at, buf);
                self.state.note(asked, || match &got {
                    Ok(got) => Answer::Bytes(buf[..*got].to_vec()),
                    Err(error) => Answer::Failed(error.clone()),
                });
                got
            }
            Course::Answered(Answer::Bytes(bytes)) if bytes.len() <= buf.len() => {
                buf[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            }
            Course::Answered(Answer::Failed(error)) => Err(error),
            Course::Answered(_) => Err(lost(asked)),
        }
    }

    fn read_unseen(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        let len = buf.len() as u64;
        let got = self.state.ask(
            Asked { what: What::Read, at, len },
            || Ok(self.file.read_unseen(at, buf)? as u64),
            |got| Answer::Number(*got),
            |answer| match answer {
                Answer::Number(got) if got <= len => Some(got),
                _ => None,
            },
        )?;
        Ok(usize::try_from(got).unwrap_or(usize::MAX))
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        if self.state.is_own() {
            self.queue.before(ranges.iter().map(|range| (range.at, range.buf.len() as u64)))?;
            return self.file.read_ranges(ranges);
        }
        // Each has an answer of its own in the record.
        for range in ranges {
            range.got = self.read_at(range.at, range.buf)?;
        }
        Ok(())
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        let range = [WriteRange { at, data }];
        if self.state.keep(&range) {
            return Ok(());
        }
        if let Some(put) = self.state.queued_put() {
            return self.queue.accept(&range, &put);
        }
        self.queue.before(std::iter::once((at, data.len() as u64)))?;
        self.act(What::Write, at, data.len() as u64, || self.file.write_at(at, data))
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        if self.state.keep(ranges) {
            return Ok(());
        }
        if let Some(put) = self.state.queued_put() {
            return self.queue.accept(ranges, &put);
        }
        self.queue.before(ranges.iter().map(|range| (range.at, range.data.len() as u64)))?;
        let at = ranges.first().map_or(0, |range| range.at);
        let len =
            ranges.iter().fold(0, |len: u64, range| len.saturating_add(range.data.len() as u64));
        self.act(What::Write, at, len, || self.file.write_ranges(ranges))
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        self.queue.before(std::iter::once((at, len)))?;
        self.act(What::Fill, at, len, || self.file.fill_at(at, len, element))
    }

    fn advise(&self, advice: Advice) {
        self.file.advise(advice);
    }

    fn rest(&self) {
        self.file.rest();
    }

    fn len(&self) -> Result<u64, StorageError> {
        self.settle();
        let asked = Asked { what: What::Len, at: 0, len: 0 };
        self.state.ask(
            asked,
            || self.file.len(),
            |len| Answer::Number(*len),
            |answer| match answer {
                Answer::Number(len) => Some(len),
                _ => None,
            },
        )
    }

    fn most_len(&self) -> u64 {
        // All ranks have the same file.
        self.file.most_len()
    }

    fn has_other_writers(&self) -> bool {
        self.has_other_writers
    }

    fn remote(&self) -> Option<&dyn RemoteReads> {
        self.file.remote().map(|_| self as &dyn RemoteReads)
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.settle();
        self.act(What::SetLen, 0, len, || self.file.set_len(len))
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.settle();
        self.act(What::Barrier, 0, 0, || self.file.barrier())
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.settle();
        self.act(What::Sync, 0, 0, || self.file.sync())
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        self.settle();
        self.act(What::Invalidate, 0, 0, || self.file.invalidate())
    }

    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        let asked = Asked { what: What::Stamp, at: 0, len: 0 };
        self.state.ask(
            asked,
            || self.file.stamp(),
            |stamp| Answer::Stamp(*stamp),
            |answer| match answer {
                Answer::Stamp(stamp) => Some(stamp),
                _ => None,
            },
        )
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No spec has it: ranks of a parallel file put it above what a spec says.
        self.file.describe(f)
    }
}
