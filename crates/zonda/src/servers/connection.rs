//! A client's connection to one group of servers.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use zonda_format::Error;
use zonda_model::{Answer, NcError};
use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::memory;
use zonda_served::{Call, Line, Reply, Told};
use zonda_shared::{Channel, Happened, Ring};

use super::wire::{self, FrameHead, Hello, Notice, Outcome, SentError, What};
use crate::error::Result;
use crate::tuning::{
    SERVER_HELLO_WAIT, SERVER_LEAST_RING_BYTES, SERVER_LOOK_INTERVAL, SERVER_RING_BYTES,
};

/// A connection, which all files of a process that go to the group share.
#[derive(Debug)]
pub(super) struct Connection {
    ring: Arc<Ring>,
    channel: Channel,
    /// Who asks has it until the reply is there: nobody else reads messages meanwhile.
    asking: Mutex<()>,
    /// The first failure of each file that was not told yet.
    failures: Mutex<HashMap<u64, SentError>>,
    next_file: AtomicU64,
    /// The news of the ring up to which the socket was read.
    n_seen: AtomicU64,
    began: Instant,
    /// When the server was last seen, in milliseconds from the beginning.
    seen_ms: AtomicU64,
    pid: u32,
}

fn gone() -> Error {
    let why = "the I/O server of the file is gone; the file has what it had committed";
    Error::answered(NcError::Io, Answer::System, why)
}

fn of_system(error: &io::Error) -> Error {
    let text = format!("the I/O server cannot be reached: {error}");
    Error::answered(NcError::Io, Answer::System, text)
}

impl Connection {
    /// Connects to the group that listens at a path.
    pub(super) fn to(path: &Path) -> Result<Connection> {
        let channel = Channel::to(path).map_err(|error| of_system(&error))?;
        let ring = Ring::new(ring_bytes()).map_err(|error| of_system(&error))?;
        let hello =
            wire::encode(&Hello { version: wire::VERSION.to_owned(), pid: std::process::id() })?;
        channel.send(&hello, Some(ring.fd())).map_err(|error| of_system(&error))?;
        let answer = channel.take_within(SERVER_HELLO_WAIT).map_err(|error| of_system(&error))?;
        let Some(Happened::Message(bytes, _)) = answer else { return Err(gone()) };
        match wire::decode(&bytes) {
            Some(Notice::Welcome { refused: None, .. }) => {}
            Some(Notice::Welcome { refused: Some(why), .. }) => {
                return Err(Error::answered(NcError::Io, Answer::Request, why));
            }
            _ => return Err(other_version()),
        }
        Ok(Connection {
            ring,
            channel,
            asking: Mutex::ranked(Rank::Helper, ()),
            failures: Mutex::ranked(Rank::Budget, HashMap::new()),
            next_file: AtomicU64::new(1),
            n_seen: AtomicU64::new(0),
            began: Instant::now(),
            seen_ms: AtomicU64::new(0),
            pid: zonda_runtime::fork::process_id(),
        })
    }

    /// Whether this process made it, and not the one that it was forked from.
    pub(super) fn is_own(&self) -> bool {
        self.pid == zonda_runtime::fork::process_id()
    }

    /// A number for a file.
    pub(super) fn new_file(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// Now and then sees whether the server is there.
    fn look(&self) -> Result<()> {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let every = u64::try_from(SERVER_LOOK_INTERVAL.as_millis()).unwrap_or(u64::MAX);
        if now.saturating_sub(self.seen_ms.load(Ordering::Relaxed)) < every {
            return Ok(());
        }
        self.seen_ms.store(now, Ordering::Relaxed);
        if self.channel.is_cut() { Err(gone()) } else { Ok(()) }
    }

    /// Hands a frame over, with values that `fill` writes to where they are carried from.
    fn send(
        &self,
        head: &FrameHead,
        n_bytes: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        if !self.is_own() {
            return Err(NcError::System(ECHILD).into());
        }
        self.look()?;
        let first = wire::head_with_length(head)?;
        let most = self.ring.most_bytes();
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

    fn send_frame(
        &self,
        head: &[u8],
        n_bytes: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let len = head.len().saturating_add(n_bytes);
        if len > self.ring.most_bytes() {
            return Err(NcError::NoMem.into());
        }
        let waiting = zonda_trace::start();
        let mut has_waited = false;
        loop {
            match self.ring.begin(len) {
                Ok(mut frame) => {
                    let (to, values) = frame.bytes().split_at_mut(head.len());
                    to.copy_from_slice(head);
                    fill(values)?;
                    if frame.send() {
                        // It sleeps at the socket, and has slept for a while.
                        self.channel.send(BELL, None).map_err(|error| of_system(&error))?;
                    }
                    break;
                }
                Err(full) => {
                    has_waited = true;
                    self.ring
                        .wait(full, SERVER_LOOK_INTERVAL)
                        .map_err(|error| of_system(&error))?;
                    if self.channel.is_cut() {
                        return Err(gone());
                    }
                }
            }
        }
        if has_waited {
            let args =
                || zonda_trace::Args { bytes: n_bytes as u64, ..zonda_trace::Args::default() };
            zonda_trace::span_since(waiting, zonda_trace::EventKind::QueueBlocked, args);
        }
        Ok(())
    }

    /// Hands a question over, and waits for the reply.
    pub(super) fn ask(&self, file: u64, what: What, values: &[u8]) -> Result<Reply> {
        let _alone = self.asking.lock();
        let head = FrameHead { file, is_asked: true, has_more: false, what };
        self.send(&head, values.len(), &mut copy(values))?;
        self.ring.wake();
        loop {
            match self.channel.wait(None, true).map_err(|error| of_system(&error))? {
                Happened::Ended => return Err(gone()),
                Happened::Message(bytes, memory) => match wire::decode(&bytes) {
                    Some(Notice::Reply { outcome, len }) => {
                        return with_memory(outcome.reply()?, memory, len);
                    }
                    Some(Notice::Failure { file, error }) => self.note_failure(file, error),
                    _ => return Err(other_version()),
                },
            }
        }
    }

    fn note_failure(&self, file: u64, error: SentError) {
        self.failures.lock().entry(file).or_insert(error);
    }

    /// What went wrong with calls of a file that were told.
    fn failure(&self, file: u64) -> Option<Error> {
        if !self.is_own() {
            return None;
        }
        let n_news = self.ring.n_news();
        if n_news == self.n_seen.load(Ordering::Acquire) {
            return None;
        }
        // Who asks reads the messages itself.
        let alone = self.asking.try_lock();
        if alone.is_some() {
            let next = || self.channel.take_within(Duration::ZERO);
            while let Ok(Some(Happened::Message(bytes, _))) = next() {
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

/// Bytes of the ring of a connection: no more than half of what the process may have.
fn ring_bytes() -> usize {
    let most = usize::try_from(memory::budget() / 2).unwrap_or(usize::MAX);
    most.clamp(SERVER_LEAST_RING_BYTES, SERVER_RING_BYTES)
}

/// Copies a piece to where it is carried from.
fn copy(piece: &[u8]) -> impl FnMut(&mut [u8]) -> Result<()> {
    move |to| {
        to.copy_from_slice(piece);
        Ok(())
    }
}

fn other_version() -> Error {
    let text = format!(
        "the I/O server is of another version than this library ({}): use zonda run of the same installation",
        wire::VERSION
    );
    Error::answered(NcError::Io, Answer::Request, text)
}

/// A reply whose values come as memory.
fn with_memory(
    mut reply: Reply,
    memory: Option<std::os::fd::OwnedFd>,
    len: Option<u64>,
) -> Result<Reply> {
    use std::os::unix::fs::FileExt as _;
    if let (Some(memory), Some(len)) = (memory, len) {
        let len = usize::try_from(len).map_err(|_| NcError::NoMem)?;
        let mut values = zonda_model::memory::filled(len, 0)?;
        let memory = std::fs::File::from(memory);
        memory.read_exact_at(&mut values, 0).map_err(|error| of_system(&error))?;
        reply.values = values;
    }
    Ok(reply)
}

/// What tells a server that sleeps at its socket that there is a call.
const BELL: &[u8] = b"!";
/// Bytes that the head of a piece takes at most.
const PIECE_HEAD_BYTES: usize = 64;
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
