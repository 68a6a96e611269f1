//! A file that clients read: open once for all of them, and with results that several want, or that somebody will want.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use zonda_format::Error;
use zonda_model::{NcError, memory};
use zonda_runtime::lock::{Condvar, Mutex, Rank};
use zonda_runtime::memory::{Kind, budget, process};
use zonda_served::Call;

use super::super::wire::{self, Notice, Outcome};
use super::super::work::whole;
use super::ahead::Ahead;
use super::identity::{FileIdentity, ReadOpening};
use super::sheets::{Sheet, Sheets};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::open::OpenOptions;
use crate::tuning::{SERVER_INLINE_BYTES, SERVER_MOST_RESULTS, SERVER_RESULT_BYTES};

/// All files that a server reads.
#[derive(Debug)]
pub(in super::super) struct Readings {
    files: Mutex<Vec<Weak<ReadingFile>>>,
    sheets: Arc<Sheets>,
    pub(super) ahead: Arc<Ahead>,
}

/// One of them.
#[derive(Debug)]
pub(super) struct ReadingFile {
    identity: FileIdentity,
    /// Others may have it, too.
    is_shared: bool,
    dataset: Dataset,
    sheets: Arc<Sheets>,
    n_users: AtomicUsize,
    results: Mutex<Vec<Entry>>,
}

/// A client's use of a file.
#[derive(Debug)]
pub(super) struct User(Arc<ReadingFile>);

/// A get that was made, or is.
#[derive(Debug)]
struct Entry {
    call: Call,
    slot: Arc<Slot>,
    /// How many have asked.
    n_gets: usize,
    /// Nobody had asked when it was begun.
    is_ahead: bool,
}

/// The place of a result.
#[derive(Debug)]
pub(super) struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
enum State {
    /// Nobody makes it yet.
    Empty,
    BeingMade,
    Made(Arc<Ready>),
    Failed,
}

/// What a get gave.
#[derive(Debug)]
pub(super) struct Ready {
    values: Held,
    /// It counts as memory of the process while it is kept.
    counted: Option<Counted>,
}

#[derive(Debug)]
enum Held {
    Few(Vec<u8>),
    Many(Sheet, u64),
}

#[derive(Debug)]
struct Counted(u64);

impl Counted {
    /// `None` where the memory that the process may have is spent.
    fn new(n_bytes: u64) -> Option<Counted> {
        process().take(Kind::Chunks, n_bytes).then_some(Counted(n_bytes))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        process().give_back(Kind::Chunks, self.0);
    }
}

/// Most bytes of results that are kept of one file.
fn most_bytes() -> u64 {
    (budget() / 4).min(SERVER_RESULT_BYTES)
}

impl Readings {
    pub(in super::super) fn new() -> Readings {
        let files = Mutex::ranked(Rank::Turns, Vec::new());
        Readings { files, sheets: Arc::new(Sheets::new()), ahead: Arc::new(Ahead::new()) }
    }

    /// The file that a client has open: one that is open already, or a new one.
    pub(super) fn open(&self, asked: &ReadOpening) -> Result<User> {
        if let Some(known) = self.find(asked) {
            return Ok(known);
        }
        let new = Arc::new(ReadingFile::open(&asked.path(), asked, &self.sheets)?);
        // Another client may have brought it meanwhile.
        let mut files = self.files.lock();
        if let Some(known) = found(&files, asked) {
            return Ok(known);
        }
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&new));
        Ok(User::of(new))
    }

    fn find(&self, asked: &ReadOpening) -> Option<User> {
        found(&self.files.lock(), asked)
    }
}

fn found(files: &[Weak<ReadingFile>], asked: &ReadOpening) -> Option<User> {
    let mut there = files.iter().filter_map(Weak::upgrade);
    let same =
        there.find(|file| file.is_shared && file.identity.is(&asked.identity, asked.is_same_node));
    same.map(User::of)
}

impl User {
    fn of(file: Arc<ReadingFile>) -> User {
        file.n_users.fetch_add(1, Ordering::AcqRel);
        User(file)
    }

    pub(super) fn file(&self) -> &Arc<ReadingFile> {
        &self.0
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.0.n_users.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ReadingFile {
    fn open(path: &Path, asked: &ReadOpening, sheets: &Arc<Sheets>) -> Result<ReadingFile> {
        let dataset = whole(|| Dataset::open(path, &OpenOptions::default()))?;
        let identity = dataset.file.as_ref().and_then(|file| FileIdentity::of(file));
        let identity = identity
            .filter(|identity| identity.is(&asked.identity, asked.is_same_node))
            .filter(|_| wire::is_served(dataset.format()))
            .ok_or_else(|| Error::because(NcError::Io, "another file than the client has open"))?;
        let results = Mutex::ranked(Rank::View, Vec::new());
        let (is_shared, n_users) = (identity.is_settled(), AtomicUsize::new(0));
        let sheets = Arc::clone(sheets);
        Ok(ReadingFile { identity, is_shared, dataset, sheets, n_users, results })
    }

    /// What a get gives, which this thread makes, or another one for another client.
    pub(super) fn get(&self, call: &Call, scratch: &mut Vec<u8>) -> Result<Arc<Ready>> {
        let (slot, was_there, was_ahead) = {
            let mut results = self.results.lock();
            let known = results.iter().position(|entry| entry.call == *call);
            let mut entry = match known {
                Some(at) => results.remove(at),
                None => Entry::new(call),
            };
            entry.n_gets += 1;
            let told = (Arc::clone(&entry.slot), known.is_some(), entry.is_ahead);
            // What was used last goes last.
            results.push(entry);
            told
        };
        let was_made_elsewhere = !self.make(call, &slot, scratch);
        let ready = slot.wait();
        self.forget_what_all_have(call);
        let ready = ready.ok_or_else(|| {
            Error::because(NcError::Io, "the I/O server could not read it; the client knows why")
        })?;
        if was_there && was_made_elsewhere {
            let args = || zonda_trace::Args {
                bytes: ready.len() as u64,
                code: i32::from(was_ahead),
                ..zonda_trace::Args::default()
            };
            zonda_trace::instant(zonda_trace::EventKind::ReadFound, args);
        }
        Ok(ready)
    }

    /// Makes a result, if nobody does. Whether this thread has made it.
    pub(super) fn make(&self, call: &Call, slot: &Slot, scratch: &mut Vec<u8>) -> bool {
        if !slot.begin() {
            return false;
        }
        let ready = whole(|| self.read(call, scratch)).ok().map(Arc::new);
        if scratch.capacity() as u64 > SERVER_RESULT_BYTES / 4 {
            *scratch = Vec::new();
        }
        let n_bytes = ready.as_ref().filter(|ready| ready.counted.is_some()).map(|it| it.len());
        slot.end(ready);
        self.make_room(call, n_bytes);
        true
    }

    fn read(&self, call: &Call, scratch: &mut Vec<u8>) -> Result<Ready> {
        let Call::Get { var, slab, mem } = call else { return Err(NcError::Internal.into()) };
        if mem.is_none() {
            // What lies between fields of compounds is nobody's, and is not to be what somebody else read.
            scratch.clear();
        }
        let converted = self.dataset.get_for_client(*var, slab, *mem, scratch)?;
        if converted.out_of_range > 0 {
            // Elements that do not fit stay what they were in the program's memory, which is not here.
            return Err(NcError::Range.into());
        }
        let n_bytes = scratch.len() as u64;
        let values = if scratch.len() <= SERVER_INLINE_BYTES {
            Held::Few(memory::copied(scratch)?)
        } else {
            let sheet = self.sheets.sheet(scratch);
            Held::Many(sheet.map_err(|_| NcError::NoMem)?, n_bytes)
        };
        Ok(Ready { values, counted: Counted::new(n_bytes) })
    }

    /// After a new result: drops those that were used longest ago where there are too many, and the new one where it cannot be kept.
    fn make_room(&self, call: &Call, n_bytes: Option<usize>) {
        let mut results = self.results.lock();
        if n_bytes.is_none_or(|n| n as u64 > most_bytes()) {
            results.retain(|entry| entry.call != *call);
            return;
        }
        let mut left = most_bytes();
        let mut n_left = SERVER_MOST_RESULTS;
        // From the one that was used last on.
        let mut is_kept: Vec<bool> = Vec::new();
        for entry in results.iter().rev() {
            let rest = left.checked_sub(entry.slot.made_bytes()).filter(|_| n_left > 0);
            is_kept.push(rest.is_some());
            (left, n_left) = (rest.unwrap_or(0), n_left.saturating_sub(1));
        }
        let mut is_kept = is_kept.into_iter().rev();
        results.retain(|_| is_kept.next().unwrap_or(true));
    }

    /// A result for which all clients have asked is not asked for again.
    fn forget_what_all_have(&self, call: &Call) {
        let n_users = self.n_users.load(Ordering::Acquire);
        self.results.lock().retain(|entry| entry.call != *call || entry.n_gets < n_users);
    }

    /// A place for a result for which somebody is likely to ask; `None` where it has one, or there is no memory for it.
    pub(super) fn expect(&self, call: &Call, n_bytes: u64) -> Option<Arc<Slot>> {
        let mut results = self.results.lock();
        if results.iter().any(|entry| entry.call == *call) {
            return None;
        }
        while !has_room(&results, n_bytes) {
            // What somebody had is the least useful.
            let had = |entry: &Entry| entry.n_gets > 0 && entry.slot.is_over();
            let at = results.iter().position(had)?;
            results.remove(at);
        }
        let entry = Entry { is_ahead: true, ..Entry::new(call) };
        let slot = Arc::clone(&entry.slot);
        results.push(entry);
        Some(slot)
    }

    /// Nobody will ask for it any more, unless somebody has.
    pub(super) fn give_up(&self, call: &Call) {
        self.results.lock().retain(|entry| entry.call != *call || entry.n_gets > 0);
    }
}

/// Whether there is memory for one more result.
fn has_room(results: &[Entry], n_bytes: u64) -> bool {
    let made = results.iter().map(|entry| entry.slot.made_bytes()).sum::<u64>();
    // Those that are being made are about as large.
    let n_coming = results.iter().filter(|entry| !entry.slot.is_over()).count() as u64;
    let wanted = n_bytes.saturating_mul(n_coming + 1);
    made.saturating_add(wanted) <= most_bytes()
        && process().in_use().saturating_add(wanted) <= process().limit()
        && results.len() < SERVER_MOST_RESULTS
}

impl Entry {
    fn new(call: &Call) -> Entry {
        let slot =
            Slot { state: Mutex::ranked(Rank::Watch, State::Empty), changed: Condvar::new() };
        Entry { call: call.clone(), slot: Arc::new(slot), n_gets: 0, is_ahead: false }
    }
}

impl Slot {
    /// Whether the caller is to make the result.
    fn begin(&self) -> bool {
        let mut state = self.state.lock();
        let is_empty = matches!(*state, State::Empty);
        if is_empty {
            *state = State::BeingMade;
        }
        is_empty
    }

    fn end(&self, made: Option<Arc<Ready>>) {
        *self.state.lock() = made.map_or(State::Failed, State::Made);
        self.changed.notify_all();
    }

    /// The result; `None` where it failed.
    fn wait(&self) -> Option<Arc<Ready>> {
        let mut state = self.state.lock();
        loop {
            match &*state {
                State::Made(ready) => return Some(Arc::clone(ready)),
                State::Failed => return None,
                State::Empty | State::BeingMade => state = self.changed.wait(state),
            }
        }
    }

    fn made_bytes(&self) -> u64 {
        match &*self.state.lock() {
            State::Made(ready) => ready.len() as u64,
            _ => 0,
        }
    }

    fn is_over(&self) -> bool {
        matches!(&*self.state.lock(), State::Made(_) | State::Failed)
    }
}

impl Ready {
    /// Bytes of the values.
    pub(super) fn len(&self) -> usize {
        match &self.values {
            Held::Few(values) => values.len(),
            Held::Many(_, n) => usize::try_from(*n).unwrap_or(usize::MAX),
        }
    }

    /// What is said to a client, and the memory that goes with it.
    pub(super) fn notice(&self) -> Result<(Vec<u8>, Option<BorrowedFd<'_>>)> {
        let (values, len, shown) = match &self.values {
            Held::Few(values) => (memory::copied(values)?, None, None),
            Held::Many(sheet, n) => (Vec::new(), Some(*n), sheet.shown()),
        };
        let outcome = Outcome::Done { out_of_range: 0, values, shape: Vec::new() };
        Ok((wire::encode(&Notice::Reply { outcome, len })?, shown))
    }
}

#[cfg(test)]
mod tests;
