//! The way to a server on the same node: frames go through a ring in memory that both have, what is rare over a socket.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use zonda_format::Error;
use zonda_model::{Answer, NcError};
use zonda_runtime::memory;
use zonda_shared::{Channel, Frame, Happened, Ring};

use super::way::{Came, Fill, Message, Way, gone, of_system, other_version};
use super::wire::{self, Hello, NamedFile, Notice};
use crate::error::Result;
use crate::tuning::{
    SERVER_HELLO_WAIT, SERVER_LEAST_RING_BYTES, SERVER_LOOK_INTERVAL, SERVER_RING_BYTES,
};

/// A ring and a socket.
#[derive(Debug)]
pub(super) struct MemoryWay {
    ring: Arc<Ring>,
    channel: Channel,
    began: Instant,
    /// When the server was last seen, in milliseconds from the beginning.
    seen_ms: AtomicU64,
}

/// What tells a server that sleeps at its socket that there is a frame.
const BELL: &[u8] = b"!";

/// Bytes of a ring besides those of frames.
const RING_EXTRA_BYTES: usize = 4096;

/// Bytes of a ring: no more than half of what the process may have.
fn ring_bytes() -> usize {
    let most = usize::try_from(memory::budget() / 2).unwrap_or(usize::MAX);
    most.clamp(SERVER_LEAST_RING_BYTES, SERVER_RING_BYTES)
}

impl MemoryWay {
    /// Connects to the server that listens at a path.
    pub(super) fn to(path: &Path) -> Result<MemoryWay> {
        MemoryWay::with_ring(path, ring_bytes())
    }

    /// Waits until the server that listens at a path has closed what clients have closed of a file: for a process that has no other business there.
    pub(super) fn settle(path: &Path, file: &NamedFile) -> Result<()> {
        let channel = Channel::to(path).map_err(|error| of_system(&error))?;
        let hello = Hello { settles: Some(file.clone()), ..Hello::of_process(false) };
        channel.send(&wire::encode(&hello)?, None).map_err(|error| of_system(&error))?;
        loop {
            match channel.wait(None, true).map_err(|error| of_system(&error))? {
                Happened::Ended => return Err(gone()),
                Happened::Message(bytes, _) => match wire::decode(&bytes) {
                    Some(Notice::Welcome { refused: None, .. }) => {}
                    Some(Notice::Welcome { refused: Some(why), .. }) => {
                        return Err(Error::answered(NcError::Io, Answer::Request, why));
                    }
                    Some(Notice::Reply { outcome, .. }) => return outcome.reply().map(drop),
                    _ => return Err(other_version()),
                },
            }
        }
    }

    /// The same for who passes frames of others on, which may be of so many bytes.
    pub(super) fn for_frames(path: &Path, most_bytes: usize) -> Result<MemoryWay> {
        // A frame of half a ring fits at any time.
        MemoryWay::with_ring(
            path,
            ring_bytes().max(most_bytes.saturating_mul(2).saturating_add(RING_EXTRA_BYTES)),
        )
    }

    fn with_ring(path: &Path, ring_bytes: usize) -> Result<MemoryWay> {
        let channel = Channel::to(path).map_err(|error| of_system(&error))?;
        let ring = Ring::new(ring_bytes).map_err(|error| of_system(&error))?;
        let hello = wire::encode(&Hello::of_process(true))?;
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
        let (began, seen_ms) = (Instant::now(), AtomicU64::new(0));
        Ok(MemoryWay { ring, channel, began, seen_ms })
    }

    /// Hands a frame over as [`Way::send`] does, if there is room for it now. Whether there was.
    pub(super) fn try_send(&self, bytes: &[u8]) -> bool {
        let Ok(mut frame) = self.ring.begin(bytes.len()) else { return false };
        frame.bytes().copy_from_slice(bytes);
        // One that is gone is seen to be so later.
        let _ = self.hand_over(frame);
        // Somebody may wait for the answer, who cannot say so here.
        self.ring.wake();
        true
    }

    fn hand_over(&self, frame: Frame<'_>) -> Result<()> {
        if frame.send() {
            // It has slept for long, and sleeps at the socket.
            self.channel.send(BELL, None).map_err(|error| of_system(&error))?;
        }
        Ok(())
    }

    /// Whether there is room for a frame now.
    pub(super) fn has_room(&self, len: usize) -> bool {
        self.ring.begin(len).is_ok()
    }
}

impl Way for MemoryWay {
    fn most_bytes(&self) -> usize {
        self.ring.most_bytes()
    }

    fn send(&self, head: &[u8], n_bytes: usize, fill: Fill<'_>) -> Result<()> {
        let len = head.len().saturating_add(n_bytes);
        let waiting = zonda_trace::start();
        let mut has_waited = false;
        loop {
            match self.ring.begin(len) {
                Ok(mut frame) => {
                    let (to, values) = frame.bytes().split_at_mut(head.len());
                    to.copy_from_slice(head);
                    fill(values)?;
                    self.hand_over(frame)?;
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

    fn look(&self) -> Result<()> {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let every = u64::try_from(SERVER_LOOK_INTERVAL.as_millis()).unwrap_or(u64::MAX);
        if now.saturating_sub(self.seen_ms.load(Ordering::Relaxed)) < every {
            return Ok(());
        }
        self.seen_ms.store(now, Ordering::Relaxed);
        if self.channel.is_cut() { Err(gone()) } else { Ok(()) }
    }

    fn is_there(&self) -> bool {
        !self.channel.is_cut()
    }

    fn n_news(&self) -> u64 {
        self.ring.n_news()
    }

    fn message(&self, is_patient: bool) -> Result<Option<Message>> {
        let Some((bytes, memory)) = self.receive(is_patient)? else { return Ok(None) };
        Ok(Some((bytes, memory.map(|memory| values_in(&memory)).transpose()?)))
    }

    fn message_into(&self, room: &mut [u8]) -> Result<Option<(Vec<u8>, Came)>> {
        let Some((bytes, memory)) = self.receive(true)? else { return Ok(None) };
        let Some(memory) = memory else { return Ok(Some((bytes, Came::Nothing))) };
        let len = memory.metadata().map_err(|error| of_system(&error))?.len();
        if len != room.len() as u64 {
            return Ok(Some((bytes, Came::Apart(values_in(&memory)?))));
        }
        memory.read_exact_at(room, 0).map_err(|error| of_system(&error))?;
        Ok(Some((bytes, Came::InRoom)))
    }
}

impl MemoryWay {
    /// The next message, with memory that it brought.
    fn receive(&self, is_patient: bool) -> Result<Option<(Vec<u8>, Option<File>)>> {
        let happened = match is_patient {
            true => {
                // A server that dozes would look later.
                self.ring.wake();
                self.channel.wait(None, true).map(Some)
            }
            false => self.channel.take_within(Duration::ZERO),
        };
        match happened.map_err(|error| of_system(&error))? {
            None => Ok(None),
            Some(Happened::Ended) => Err(gone()),
            Some(Happened::Message(bytes, memory)) => Ok(Some((bytes, memory.map(File::from)))),
        }
    }
}

/// The bytes of memory that came with a message.
pub(super) fn values_in(memory: &File) -> Result<Vec<u8>> {
    let len = memory.metadata().map_err(|error| of_system(&error))?.len();
    let len = usize::try_from(len).map_err(|_| NcError::NoMem)?;
    let mut values = zonda_model::memory::filled(len, 0)?;
    memory.read_exact_at(&mut values, 0).map_err(|error| of_system(&error))?;
    Ok(values)
}
