//! The messages of MPI of a process that has I/O servers among the ranks of its program, or is one of these.
//!
//! | From | To | Bytes |
//! |---|---|---|
//! | client | server | a frame; none: the client is over |
//! | server | client | what kind it is, see [`Mail`]; none: all servers' files of this program are closed |

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use zonda_mpi::Post;
use zonda_parallel::of_team;
use zonda_runtime::lock::{Global, Rank};
use zonda_team::{Step, Team as _, TeamError};

use super::way::{Message, gone};
use crate::error::Result;

/// What ranks do when they are in messages.
pub(super) const STEP: Step<'static> = Step { call: "a call to an I/O server", file: "its file" };

/// What a server sends.
#[derive(Debug)]
pub(super) enum Mail {
    /// It has taken so many bytes of frames, which make room for others.
    Room(u64),
    /// A message as over a socket, with the values that came with it.
    Message(Message),
}

const KIND_ROOM: u8 = 0;
const KIND_MESSAGE: u8 = 1;
const WORD: usize = 8;

impl Mail {
    pub(super) fn encode(self) -> Vec<u8> {
        match self {
            Mail::Room(n) => [&[KIND_ROOM][..], &n.to_le_bytes()].concat(),
            Mail::Message((bytes, values)) => {
                let head = (bytes.len() as u64).to_le_bytes();
                let has_values = u8::from(values.is_some());
                let mut mail = [&[KIND_MESSAGE, has_values][..], &head, &bytes].concat();
                mail.extend(values.unwrap_or_default());
                mail
            }
        }
    }

    /// `None` for what no server sends.
    pub(super) fn decode(bytes: &[u8]) -> Option<Mail> {
        let (kind, rest) = bytes.split_first()?;
        match *kind {
            KIND_ROOM => Some(Mail::Room(u64::from_le_bytes(rest.try_into().ok()?))),
            KIND_MESSAGE => {
                let (has_values, rest) = rest.split_first()?;
                let (len, rest) = rest.split_first_chunk::<WORD>()?;
                let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
                let (bytes, values) = rest.split_at_checked(len)?;
                Some(Mail::Message((bytes.to_vec(), (*has_values != 0).then(|| values.to_vec()))))
            }
            _ => None,
        }
    }
}

/// The messages of this process, and what came of each server and was not looked at yet.
#[derive(Debug)]
struct Office {
    post: Post,
    boxes: BTreeMap<usize, Mailbox>,
}

/// What came of one server.
#[derive(Debug, Default)]
struct Mailbox {
    messages: VecDeque<Message>,
    n_messages: u64,
    /// Bytes of frames that were sent, and that the server has taken.
    sent: u64,
    taken: u64,
    /// It will send nothing more.
    is_over: bool,
}

static OFFICE: Global<Option<Office>> = Global::new(Rank::Arena, None, || None);

/// Of every frame, besides its bytes: many small ones take memory, too.
const FRAME_BYTES: u64 = 512;

fn cost(n_bytes: usize) -> u64 {
    n_bytes as u64 + FRAME_BYTES
}

/// Has the messages of this process go this way from now on.
pub(super) fn open(post: Post) {
    *OFFICE.lock() = Some(Office { post, boxes: BTreeMap::new() });
}

impl Office {
    /// Takes what has come.
    fn take_all(&mut self) -> std::result::Result<(), TeamError> {
        while let Some((from, bytes)) = self.post.take(STEP, &mut |_, _| true)? {
            let mailbox = self.boxes.entry(from).or_default();
            match Mail::decode(&bytes) {
                Some(Mail::Room(n)) => mailbox.taken = mailbox.taken.saturating_add(n),
                Some(Mail::Message(message)) => {
                    mailbox.messages.push_back(message);
                    mailbox.n_messages += 1;
                }
                // It is over, or says what no server says: then nothing more can be understood.
                None => mailbox.is_over = true,
            }
        }
        Ok(())
    }
}

/// Does something with the office, and takes what has come. What waits for others looks again by this.
fn with<T>(work: impl FnOnce(&mut Office) -> std::result::Result<T, TeamError>) -> Result<T> {
    let mut office = OFFICE.lock();
    let office = office.as_mut().ok_or_else(gone)?;
    office.take_all().and_then(|()| work(office)).map_err(|error| of_team(&error))
}

/// Pauses between looks, longer and longer: a rank that waits must not take the processor from who does the work.
#[derive(Debug)]
pub(super) struct Pauses(Duration);

const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

impl Pauses {
    pub(super) fn new() -> Pauses {
        Pauses(FIRST_PAUSE)
    }

    pub(super) fn pause(&mut self) {
        std::thread::sleep(self.0);
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}

/// Whether there are messages to a rank.
pub(super) fn is_open() -> bool {
    OFFICE.lock().is_some()
}

/// Sends a frame to a server, and waits until not more than `most` bytes of frames are with it.
pub(super) fn send(to: usize, frame: Vec<u8>, most: u64) -> Result<bool> {
    let n_bytes = cost(frame.len());
    let (mut pauses, mut frame, mut has_waited) = (Pauses::new(), Some(frame), false);
    loop {
        let sent = with(|office| {
            let mailbox = office.boxes.entry(to).or_default();
            if mailbox.is_over {
                return Ok(None);
            }
            let waiting = mailbox.sent.saturating_sub(mailbox.taken);
            // A frame that is longer than all is alone on its way.
            if waiting > 0 && waiting.saturating_add(n_bytes) > most {
                return Ok(Some(false));
            }
            mailbox.sent += n_bytes;
            if let Some(frame) = frame.take() {
                office.post.send(STEP, to, frame)?;
            }
            Ok(Some(true))
        })?;
        match sent {
            None => return Err(gone()),
            Some(true) => return Ok(has_waited),
            Some(false) => has_waited = true,
        }
        pauses.pause();
    }
}

/// What is given back for a frame that a server has taken.
pub(super) fn room_of(frame: &[u8]) -> Mail {
    Mail::Room(cost(frame.len()))
}

/// How many messages have come from a server.
pub(super) fn n_messages(from: usize) -> u64 {
    let n = with(|office| Ok(office.boxes.get(&from).map_or(0, |mailbox| mailbox.n_messages)));
    n.unwrap_or_default()
}

/// The next message of a server; who is patient waits for it.
pub(super) fn message(from: usize, is_patient: bool) -> Result<Option<Message>> {
    let mut pauses = Pauses::new();
    loop {
        let got = with(|office| {
            let mailbox = office.boxes.entry(from).or_default();
            let message = mailbox.messages.pop_front();
            Ok((message.is_none() && mailbox.is_over, message))
        })?;
        match got {
            (true, _) => return Err(gone()),
            (_, None) if is_patient => pauses.pause(),
            (_, message) => return Ok(message),
        }
    }
}

/// Whether a server is there, as far as it is known.
pub(super) fn look(at: usize) -> Result<()> {
    let is_over = with(|office| Ok(office.boxes.get(&at).is_some_and(|mailbox| mailbox.is_over)))?;
    if is_over { Err(gone()) } else { Ok(()) }
}

/// Says to all servers that this client is over, waits until they are, and ends the messages.
pub(super) fn close(servers: &[usize]) -> Result<()> {
    with(|office| servers.iter().try_for_each(|&to| office.post.send(STEP, to, Vec::new())))?;
    let mut pauses = Pauses::new();
    let is_over = |office: &mut Office| {
        let over = |rank| office.boxes.get(rank).is_some_and(|mailbox| mailbox.is_over);
        Ok(servers.iter().all(over))
    };
    while !with(is_over)? {
        pauses.pause();
    }
    let office = OFFICE.lock().take();
    let end = |office: Office| office.post.team().meet(STEP).and_then(|()| office.post.end(STEP));
    let ended = office.map_or(Ok(()), end);
    ended.map_err(|error| of_team(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_comes_as_it_went() {
        let room = Mail::Room(u64::MAX).encode();
        assert!(matches!(Mail::decode(&room), Some(Mail::Room(u64::MAX))));
        for values in [None, Some(Vec::new()), Some(vec![7; 1000])] {
            let message = (b"text".to_vec(), values);
            let mail = Mail::Message(message.clone()).encode();
            let Some(Mail::Message(read)) = Mail::decode(&mail) else { panic!("no message") };
            assert_eq!(read, message);
            assert!((0..10 + 4).all(|cut| Mail::decode(&mail[..cut]).is_none()));
        }
        assert!(Mail::decode(&[]).is_none() && Mail::decode(&[9, 9]).is_none());
    }
}
