//! A client's connection to one group of servers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use zonda_format::Error;
use zonda_model::{Answer, NcError};
use zonda_runtime::lock::{Mutex, Rank};
use zonda_served::{Call, Line, Reply, Told};
use zonda_trace::{Args, EventKind};

use super::memory_way::MemoryWay;
use super::message_way::MessageWay;
use super::watch::word;
use super::way::{Address, Came, Fill, Way, of_system, other_version};
use super::wire::{self, FrameHead, NamedFile, Notice, Outcome, SentError, What};
use crate::error::Result;
use crate::tuning::{SERVER_NEXT_POLL, SERVER_NEXT_WAIT};

/// A connection, which all files of a process that go to the group share.
#[derive(Debug)]
pub(super) struct Connection {
    way: Box<dyn Way>,
    /// Who asks has it until the reply is there: nobody else reads messages meanwhile.
    asking: Mutex<()>,
    /// The first failure of each file that was not told yet.
    failures: Mutex<HashMap<u64, SentError>>,
    next_file: AtomicU64,
    /// Paths of files that were created here, and that the server has not said to have closed.
    paths: Mutex<HashSet<Vec<u8>>>,
    /// The news up to which messages were read.
    n_seen: AtomicU64,
    pid: u32,
}

impl Connection {
    /// Connects to the group at an address.
    pub(super) fn to(address: &Address) -> Result<Connection> {
        let way: Box<dyn Way> = match address {
            Address::Socket(path) => Box::new(MemoryWay::to(path)?),
            Address::Rank(rank) => Box::new(MessageWay::to(*rank)?),
        };
        Ok(Connection::by(way))
    }

    /// Connects to what takes the place of a server that has ended, and may wait for it for a while.
    pub(super) fn to_next(address: &Address, is_waited_for: bool) -> Result<Connection> {
        let begin = Instant::now();
        loop {
            match Connection::to(address) {
                Err(_) if is_waited_for && begin.elapsed() < SERVER_NEXT_WAIT => {
                    std::thread::sleep(SERVER_NEXT_POLL)
                }
                connection => return connection,
            }
        }
    }

    fn by(way: Box<dyn Way>) -> Connection {
        Connection {
            way,
            asking: Mutex::ranked(Rank::Helper, ()),
            failures: Mutex::ranked(Rank::Budget, HashMap::new()),
            next_file: AtomicU64::new(1),
            paths: Mutex::ranked(Rank::Budget, HashSet::new()),
            n_seen: AtomicU64::new(0),
            pid: zonda_runtime::fork::process_id(),
        }
    }

    /// Whether this process made it, and not the one that it was forked from.
    pub(super) fn is_own(&self) -> bool {
        self.pid == zonda_runtime::fork::process_id()
    }

    /// Whether the server is there.
    pub(super) fn is_there(&self) -> bool {
        self.way.is_there()
    }

    /// A file at this path is created by the server.
    pub(super) fn note_path(&self, path: &[u8]) {
        self.paths.lock().insert(path.to_vec());
    }

    /// Waits until the server has closed the files that clients have closed: one, or all.
    pub(super) fn settle(&self, file: Option<&NamedFile>) -> Result<()> {
        self.ask(0, What::Settle { file: file.cloned() }, &[])?;
        let mut paths = self.paths.lock();
        match file {
            Some(file) => drop(paths.remove(&file.path)),
            None => paths.clear(),
        }
        Ok(())
    }

    /// The paths of files of which nobody knows whether the server had written them.
    pub(super) fn take_paths(&self) -> HashSet<Vec<u8>> {
        std::mem::take(&mut *self.paths.lock())
    }

    /// A number for a file.
    pub(super) fn new_file(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// Hands a frame over, with values that `fill` writes to where they are carried from.
    fn send(&self, head: &FrameHead, n_bytes: usize, fill: Fill<'_>) -> Result<()> {
        if !self.is_own() {
            return Err(NcError::System(ECHILD).into());
        }
        self.way.look()?;
        let first = wire::head_with_length(head)?;
        let most = self.way.most_bytes();
        if first.len().saturating_add(n_bytes) <= most {
            return self.send_frame(&first, n_bytes, fill);
        }
        // Too many for one frame: in pieces.
        let mut values = zonda_model::memory::filled(n_bytes, 0)?;
        fill(&mut values)?;
        let FrameHead { file, is_asked, .. } = *head;
        let piece_bytes = most.checked_sub(PIECE_HEAD_BYTES).ok_or(NcError::NoMem)?;
        let mut pieces = values.chunks(piece_bytes).peekable();
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                let rest = first.len().saturating_add(piece.len());
                if rest > most {
                    // The head and the last piece do not fit together.
                    self.send_piece((file, is_asked), piece)?;
                    return self.send_frame(&first, 0, &mut |_| Ok(()));
                }
                return self.send_frame(&first, piece.len(), &mut copy(piece));
            }
            self.send_piece((file, is_asked), piece)?;
        }
        Ok(())
    }

    fn send_piece(&self, (file, is_asked): (u64, bool), piece: &[u8]) -> Result<()> {
        let head = FrameHead { file, is_asked, has_more: true, what: What::Load };
        let head = wire::head_with_length(&head)?;
        self.send_frame(&head, piece.len(), &mut copy(piece))
    }

    fn send_frame(&self, head: &[u8], n_bytes: usize, fill: Fill<'_>) -> Result<()> {
        if head.len().saturating_add(n_bytes) > self.way.most_bytes() {
            return Err(NcError::NoMem.into());
        }
        self.way.send(head, n_bytes, fill)
    }

    /// Hands a question over, and waits for the reply.
    pub(super) fn ask(&self, file: u64, what: What, values: &[u8]) -> Result<Reply> {
        let args = || Args { bytes: values.len() as u64, name: word(&what), ..Args::default() };
        let _asks = zonda_trace::span(EventKind::ServerAsk, args);
        let _alone = self.asking.lock();
        let head = FrameHead { file, is_asked: true, has_more: false, what };
        self.send(&head, values.len(), &mut copy(values))?;
        loop {
            let Some((bytes, values)) = self.way.message(true)? else { continue };
            match wire::decode(&bytes) {
                Some(Notice::Reply { outcome, len }) => {
                    if len.is_some() && values.is_none() {
                        return Err(lost_memory());
                    }
                    let reply = outcome.reply()?;
                    return Ok(Reply { values: values.unwrap_or(reply.values), ..reply });
                }
                Some(Notice::Failure { file, error }) => self.note_failure(file, error),
                _ => return Err(other_version()),
            }
        }
    }

    /// The same for elements, which go to `room` where they are as many bytes as it has. An error says that the server cannot be asked.
    pub(super) fn ask_for_values(&self, file: u64, what: What, room: &mut [u8]) -> Result<Asked> {
        let _alone = self.asking.lock();
        let head = FrameHead { file, is_asked: true, has_more: false, what };
        self.send(&head, 0, &mut |_| Ok(()))?;
        loop {
            let Some((bytes, came)) = self.way.message_into(room)? else { continue };
            match wire::decode(&bytes) {
                Some(Notice::Reply { len: Some(_), .. }) if matches!(came, Came::Nothing) => {
                    return Err(lost_memory());
                }
                Some(Notice::Reply { outcome, .. }) => return Ok(Asked::of(outcome, came, room)),
                Some(Notice::Failure { file, error }) => self.note_failure(file, error),
                _ => return Err(other_version()),
            }
        }
    }

    /// Tells that a file that was opened for reading is read no more.
    pub(super) fn tell_close(&self, file: u64) -> Result<()> {
        let what = What::Call(Call::Close.into());
        let head = FrameHead { file, is_asked: false, has_more: false, what };
        self.send(&head, 0, &mut |_| Ok(()))
    }

    fn note_failure(&self, file: u64, error: SentError) {
        self.failures.lock().entry(file).or_insert(error);
    }

    /// What went wrong with calls of a file that were told.
    fn failure(&self, file: u64) -> Option<Error> {
        if !self.is_own() {
            return None;
        }
        let n_news = self.way.n_news();
        if n_news == self.n_seen.load(Ordering::Acquire) {
            return None;
        }
        // Who asks reads the messages itself.
        let alone = self.asking.try_lock();
        if alone.is_some() {
            while let Ok(Some((bytes, _))) = self.way.message(false) {
                if let Some(Notice::Failure { file, error }) = wire::decode(&bytes) {
                    self.note_failure(file, error);
                }
            }
        }
        let mut failures = self.failures.lock();
        let failure = failures.remove(&file);
        if alone.is_some() && failures.is_empty() {
            self.n_seen.store(n_news, Ordering::Release);
        }
        failure.map(|error| error.error())
    }
}

/// Many values come as memory, which is a file to the system: one too many is dropped on the way.
fn lost_memory() -> Error {
    let why = "values of an I/O server did not come: this process may have no more open files (ulimit -n)";
    Error::answered(NcError::System(EMFILE), Answer::System, why)
}

/// What became of a question for elements.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) outcome: Outcome,
    /// The elements are in the room that was given, and not in the outcome.
    pub(super) is_in_room: bool,
}

impl Asked {
    fn of(outcome: Outcome, came: Came, room: &mut [u8]) -> Asked {
        let Outcome::Done { out_of_range, values, shape } = outcome else {
            return Asked { outcome, is_in_room: false };
        };
        let came = match came {
            Came::Nothing => Came::of(values, room),
            came => came,
        };
        let (values, is_in_room) = match came {
            Came::Apart(values) => (values, false),
            Came::InRoom | Came::Nothing => (Vec::new(), true),
        };
        Asked { outcome: Outcome::Done { out_of_range, values, shape }, is_in_room }
    }
}

/// Copies a piece to where it is carried from.
fn copy(piece: &[u8]) -> impl FnMut(&mut [u8]) -> Result<()> {
    move |to| {
        to.copy_from_slice(piece);
        Ok(())
    }
}

/// Bytes that the head of a piece takes at most.
const PIECE_HEAD_BYTES: usize = 64;
/// `EMFILE` of Linux.
const EMFILE: i32 = 24;
/// `ECHILD` of Linux: what a forked child is told.
const ECHILD: i32 = 10;

/// The line of one file.
#[derive(Debug)]
pub(super) struct ServerLine {
    pub(super) connection: Arc<Connection>,
    pub(super) file: u64,
}

impl Line for ServerLine {
    fn tell(
        &self,
        told: &Told,
        n_bytes: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let name = told.call.word();
        let args = || Args { bytes: n_bytes as u64, name, ..Args::default() };
        let _tells = zonda_trace::span(EventKind::ServerTell, args);
        let what = What::Call(told.clone());
        let head = FrameHead { file: self.file, is_asked: false, has_more: false, what };
        self.connection.send(&head, n_bytes, fill)
    }

    fn ask(&self, call: &Call, values: &[u8]) -> Result<Reply> {
        self.connection.ask(self.file, What::Call(call.clone().into()), values)
    }

    fn failure(&self) -> Option<Error> {
        self.connection.failure(self.file)
    }
}

/// How a reply is sent: values that do not fit a message go as memory.
pub(super) fn notice_of(outcome: Outcome) -> Result<(Vec<u8>, Option<std::os::fd::OwnedFd>)> {
    let (outcome, large) = match outcome {
        Outcome::Done { out_of_range, values, shape } if values.len() > LARGE_BYTES => {
            (Outcome::Done { out_of_range, values: Vec::new(), shape }, Some(values))
        }
        outcome => (outcome, None),
    };
    let Some(values) = large else {
        return Ok((wire::encode(&Notice::Reply { outcome, len: None })?, None));
    };
    let memory = zonda_shared::memory_of(&values).map_err(|error| of_system(&error))?;
    let notice = Notice::Reply { outcome, len: Some(values.len() as u64) };
    Ok((wire::encode(&notice)?, Some(memory)))
}

/// Values of more bytes do not go into a message.
const LARGE_BYTES: usize = 32 << 10;
