//! The servers of one group, which write files of several ranks together.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use zonda_team::spread::{self, Mesh, TeamName};

use super::spec;
use super::wire::{self, SentError};
use crate::tuning::{SERVER_HELLO_WAIT, SERVER_SLEEP};

/// What a member says of a file of several ranks to the others that have ranks of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// The client of a rank has told as many calls that all ranks make.
    Told {
        rank: usize,
        n: u64,
        /// The client has closed the file.
        is_last: bool,
    },
    /// The client of a rank will tell nothing more.
    Ended { rank: usize },
    /// The file ends for all ranks.
    Over { why: SentError },
}

/// The other members, for one file of several ranks.
#[derive(Clone, Debug)]
pub(super) struct Others {
    mesh: Arc<Mesh>,
    name: TeamName,
    n_ranks: usize,
}

impl Others {
    pub(super) fn new(mesh: &Arc<Mesh>, name: TeamName, n_ranks: usize) -> Others {
        Others { mesh: Arc::clone(mesh), name, n_ranks }
    }

    /// Tells those that have ranks of the file. Nobody is told once it is over here.
    pub(super) fn tell(&self, word: &Word) {
        // A word of numbers and a text can be written.
        if let Ok(bytes) = wire::encode(&(self.n_ranks, word)) {
            self.mesh.notify(spread::others_of(&self.mesh, self.n_ranks), self.name, &bytes);
        }
    }
}

/// The number of ranks of a file, and what a member says of it; `None` for what none says.
pub(super) fn word(bytes: &[u8]) -> Option<(usize, Word)> {
    wire::decode(bytes)
}

/// Connects the server of a socket with the other members of its group, which come at about the same time. `None` where it is told to end before they have
/// come.
///
/// # Errors
/// `InvalidInput` for a socket that no member has; `TimedOut` where the others do not come; what the system says.
pub(super) fn meet(
    socket: &Path,
    n_members: usize,
    is_over: &AtomicBool,
) -> io::Result<Option<Arc<Mesh>>> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidInput);
    let me = spec::member_at(socket).filter(|me| *me < n_members).ok_or_else(wrong)?;
    let place = |member| spec::meeting_place(socket, member).ok_or_else(wrong);
    let listener = UnixListener::bind(place(me)?)?;
    listener.set_nonblocking(true)?;
    let mut streams: Vec<Option<UnixStream>> = (0..n_members).map(|_| None).collect();
    let began = Instant::now();
    loop {
        for member in 0..me {
            let place = place(member)?;
            if let Some(stream @ None) = streams.get_mut(member) {
                *stream = connected(&place, me)?;
            }
        }
        match listener.accept() {
            Ok((stream, _)) => {
                let member = member_of(&stream)?;
                let free = streams.get_mut(member).filter(|_| member > me);
                let free = free.filter(|free| free.is_none()).ok_or(io::ErrorKind::InvalidData)?;
                *free = Some(stream);
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if streams.iter().filter(|stream| stream.is_some()).count() + 1 == n_members {
            return Mesh::new(me, streams).map(Some);
        }
        if is_over.load(Ordering::Acquire) {
            return Ok(None);
        }
        if began.elapsed() > SERVER_HELLO_WAIT {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(SERVER_SLEEP / 10);
    }
}

/// A connection to a member, which is told who comes; `None` where it is not there yet.
fn connected(place: &Path, me: usize) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect(place) {
        Ok(mut stream) => {
            stream.write_all(&(me as u64).to_le_bytes())?;
            Ok(Some(stream))
        }
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Who has come.
fn member_of(mut stream: &UnixStream) -> io::Result<usize> {
    let mut number = [0; 8];
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(HELLO_WAIT))?;
    stream.read_exact(&mut number)?;
    stream.set_read_timeout(None)?;
    usize::try_from(u64::from_le_bytes(number)).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// How long a member that has come may take to say who it is.
const HELLO_WAIT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use zonda_runtime::worker::{self, Purpose};

    use super::*;

    #[test]
    fn members_meet_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let meet = |member: usize| {
                let (socket, is_over) = (spec::socket(folder.path(), 7, member + 1), &is_over);
                let meet = move || meet(&socket, 4, is_over);
                worker::spawn_scoped(scope, String::new(), Purpose::WriteBehind, meet).unwrap()
            };
            let members = [3, 1, 0, 2].map(|member| (member, meet(member)));
            for (member, thread) in members {
                let mesh = thread.join().unwrap().unwrap().unwrap();
                assert_eq!((mesh.me(), mesh.size()), (member, 4));
            }
        });
    }

    #[test]
    fn who_is_told_to_end_waits_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let socket = spec::socket(folder.path(), 1, 2);
        assert!(meet(&socket, 2, &AtomicBool::new(true)).unwrap().is_none());
        for (path, n) in [("1.3", 2), ("1", 2), ("x", 3)] {
            let error = meet(&folder.path().join(path), n, &AtomicBool::new(true)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn words_come_as_they_went() {
        let said = wire::encode(&(9_usize, Word::Told { rank: 3, n: 70_000, is_last: true }));
        let said = said.unwrap();
        assert!(matches!(word(&said), Some((9, Word::Told { rank: 3, n: 70_000, is_last: true }))));
        assert!(word(&said[..said.len() - 1]).is_none() && word(&[9, 9]).is_none());
    }
}
