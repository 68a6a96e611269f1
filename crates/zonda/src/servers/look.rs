//! A look at a running server, by a process that is no client of it: `zonda top`.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use zonda_served::Reply;
use zonda_shared::{Channel, Happened};

use super::board::Board;
use super::connection::notice_of;
use super::memory_way::values_in;
use super::wire::{self, Hello, Notice, Outcome};

/// Calls, and the bytes of their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCount {
    /// How many.
    pub calls: u64,
    /// Of the values that came with them.
    pub bytes: u64,
}

impl From<(u64, u64)> for CallCount {
    fn from((calls, bytes): (u64, u64)) -> CallCount {
        CallCount { calls, bytes }
    }
}

/// What a server has under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerLook {
    /// Its process.
    pub pid: u32,
    /// Nanoseconds since it began.
    pub age_ns: u64,
    /// What it took from clients since then.
    pub taken: CallCount,
    /// What of it was carried out.
    pub done: CallCount,
    /// Bytes of values that wait in it.
    pub waiting_bytes: u64,
    /// How often it said that a file is not whole.
    pub n_failed: usize,
    /// Bytes of memory that its process has, and had at most.
    pub memory_bytes: u64,
    /// See `memory_bytes`.
    pub most_memory_bytes: u64,
    /// Who is there.
    pub clients: Vec<ClientLook>,
    /// Files that are being written; one of several ranks is there once for each of them.
    pub files: Vec<FileLook>,
}

/// A client of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientLook {
    /// Its process.
    pub pid: u32,
    /// Files of it that are being written.
    pub n_files: usize,
    /// It waits for the server: for an answer, or for room.
    pub waits: bool,
}

/// A file of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileLook {
    /// Where it is.
    pub path: String,
    /// The client's process.
    pub pid: u32,
    /// Of a file of several ranks, which one the client is.
    pub rank: Option<usize>,
    /// And how many there are.
    pub n_ranks: Option<usize>,
    /// Nanoseconds since the client created it.
    pub age_ns: u64,
    /// What came of this client about it.
    pub taken: CallCount,
    /// What of it was carried out.
    pub done: CallCount,
    /// Bytes of values that wait.
    pub waiting_bytes: u64,
    /// Ranks whose calls others wait for: the same for all ranks of the file.
    pub waits_for_ranks: Vec<usize>,
}

/// What became of a look.
#[derive(Debug)]
pub enum Looked {
    /// It answered.
    Seen(Box<ServerLook>),
    /// It did not within the time.
    Silent,
    /// Nobody listens there any more.
    Gone,
    /// It does not want to, and says why.
    Refused(String),
}

/// Who looks at one server. A server that does not answer is asked once, however often it is looked at.
#[derive(Debug, Default)]
pub struct Watcher {
    /// Where the answer to the last question is to come.
    asked: Option<Channel>,
}

impl Watcher {
    /// Looks at the server that listens at a socket, and waits for it so long at most.
    ///
    /// # Errors
    /// What the system says.
    pub fn look(&mut self, socket: &Path, within: Duration) -> io::Result<Looked> {
        let until = Instant::now().checked_add(within);
        let looked = self.ask(socket, within, until);
        match looked {
            // Its answer may come before the next look.
            Ok(Looked::Silent) => {}
            _ => self.asked = None,
        }
        looked.or_else(|error| match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => Ok(Looked::Gone),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ok(Looked::Silent),
            _ => Err(error),
        })
    }

    fn ask(
        &mut self,
        socket: &Path,
        within: Duration,
        until: Option<Instant>,
    ) -> io::Result<Looked> {
        if self.asked.as_ref().is_some_and(Channel::is_cut) {
            self.asked = None;
        }
        let channel = match &self.asked {
            Some(channel) => channel,
            None => {
                let channel = Channel::to_within(socket, within)?;
                // Without memory: one that is no client.
                let hello = Hello::of_process(false);
                channel.send(&wire::encode(&hello).map_err(io::Error::other)?, None)?;
                self.asked.insert(channel)
            }
        };
        loop {
            let left =
                until.map_or(within, |until| until.saturating_duration_since(Instant::now()));
            match channel.take_within(left)? {
                None => return Ok(Looked::Silent),
                Some(Happened::Ended) => return Ok(Looked::Gone),
                Some(Happened::Message(bytes, memory)) => match wire::decode(&bytes) {
                    Some(Notice::Welcome { refused: None, .. }) => {}
                    Some(Notice::Welcome { refused: Some(why), .. }) => {
                        return Ok(Looked::Refused(why));
                    }
                    Some(Notice::Reply { outcome, .. }) => {
                        let reply = outcome.reply().map_err(io::Error::other)?;
                        let values = match memory {
                            Some(memory) => values_in(&memory.into()).map_err(io::Error::other)?,
                            None => reply.values,
                        };
                        let look = wire::decode::<ServerLook>(&values);
                        return Ok(
                            look.map_or_else(other_version, |look| Looked::Seen(Box::new(look)))
                        );
                    }
                    _ => return Ok(other_version()),
                },
            }
        }
    }
}

fn other_version() -> Looked {
    Looked::Refused(String::from(
        "the I/O server is of another version: use zonda top of the same installation",
    ))
}

/// Shows one who looks what there is.
pub(super) fn show(channel: &Channel, board: &Arc<Board>) {
    let look = wire::encode(&board.watch.look(board));
    let reply = look.map(|values| Reply { values, ..Reply::default() });
    if let Ok((bytes, memory)) = notice_of(Outcome::of(reply)) {
        // Who does not wait for the answer does not need it.
        let _ = channel.send(&bytes, memory.as_ref().map(std::os::fd::AsFd::as_fd));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use zonda_runtime::worker::{self, Purpose};
    use zonda_shared::Listener;

    use super::super::group::serve;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_server_answers_and_forgives_who_goes_early() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("0");
        let (is_over, is_ready) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let serve = || serve(&socket, 1, &is_over, || is_ready.store(true, Ordering::Release));
            let serves =
                worker::spawn_scoped(scope, String::new(), Purpose::WriteBehind, serve).unwrap();
            while !is_ready.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            for _ in 0..2 {
                let looked = Watcher::default().look(&socket, PATIENCE).unwrap();
                let Looked::Seen(look) = looked else { panic!("{looked:?}") };
                assert_eq!((look.pid, look.clients.len()), (std::process::id(), 0));
            }
            let other = Channel::to(&socket).unwrap();
            let hello = Hello { version: String::from("0.0.0"), ..Hello::of_process(false) };
            other.send(&wire::encode(&hello).unwrap(), None).unwrap();
            let Ok(Happened::Message(bytes, _)) = other.wait(None, true) else { panic!("no word") };
            let welcome = wire::decode::<Notice>(&bytes);
            assert!(
                matches!(welcome, Some(Notice::Welcome { refused: Some(why), .. }) if why.contains("0.0.0"))
            );
            // One whose ring was lost on the way: what it gets is no look.
            let other = Channel::to(&socket).unwrap();
            other.send(&wire::encode(&Hello::of_process(true)).unwrap(), None).unwrap();
            let Ok(Happened::Message(bytes, _)) = other.wait(None, true) else { panic!("no word") };
            let welcome = wire::decode::<Notice>(&bytes);
            assert!(
                matches!(welcome, Some(Notice::Welcome { refused: Some(why), .. }) if why.contains("open files"))
            );
            // One goes without a word, and one before the answer.
            drop(Channel::to(&socket).unwrap());
            let hello = Hello::of_process(false);
            Channel::to(&socket).unwrap().send(&wire::encode(&hello).unwrap(), None).unwrap();
            is_over.store(true, Ordering::Release);
            assert_eq!(serves.join().unwrap().unwrap(), 0, "no file is less whole for it");
        });
    }

    #[test]
    fn who_does_not_answer_is_asked_once() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("0");
        let mut watcher = Watcher::default();
        let look =
            |watcher: &mut Watcher| watcher.look(&socket, Duration::from_millis(20)).unwrap();
        assert!(matches!(look(&mut watcher), Looked::Gone));
        let listener = Listener::at(&socket).unwrap();
        for _ in 0..3 {
            assert!(matches!(look(&mut watcher), Looked::Silent));
        }
        let came = listener.accept(PATIENCE).unwrap().expect("one that looks");
        assert!(listener.accept(Duration::ZERO).unwrap().is_none(), "it came again");
        // What is no answer is of another version.
        came.send(b"?", None).unwrap();
        assert!(matches!(look(&mut watcher), Looked::Refused(_)));
        drop((came, listener));
        assert!(matches!(look(&mut watcher), Looked::Gone));
    }
}
