//! I/O servers that are ranks of the program: one call divides the ranks into those that compute and those that write.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use zonda_format::Error;
use zonda_model::{Answer, NcError};
use zonda_mpi::{Communicator, MadeComm, Post};
use zonda_parallel::of_team;
use zonda_runtime::lock::{Global, Rank};
use zonda_runtime::worker::{self, Purpose};
use zonda_team::{Reduction, Step, Team, TeamError};

use super::group;
use super::memory_way::MemoryWay;
use super::post_office::{self, Mail, Pauses, STEP};
use super::reading::Reading;
use super::way::{Address, Message, Way, gone};
use super::wire::{self, Notice, Outcome};
use crate::error::Result;
use crate::mpi::of_mpi;

/// How many ranks are servers, and how others reach them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    groups: usize,
    /// Others reach them by messages, on one node, too.
    by_messages: bool,
    read: Reading,
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Layout, String> {
        let mut layout = Layout { groups: 1, by_messages: false, read: Reading::Off };
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (key, value, value.parse::<usize>()) {
                ("groups", _, Ok(n)) => layout.groups = n,
                ("size", _, Ok(1)) | ("way", "auto", _) => {}
                ("way", "messages", _) => layout.by_messages = true,
                ("read", word, _) if Reading::of(word).is_some() => {
                    layout.read = Reading::of(word).unwrap_or_default();
                }
                ("groups" | "size", _, Err(_)) => return Err(format!("{pair}: no number")),
                ("size", ..) => return Err(format!("{pair}: groups have one server: size=1")),
                _ => {
                    return Err(format!(
                        "{pair}: known are groups=N, size=1, way=auto, way=messages, read=on, read=all and read=off"
                    ));
                }
            }
        }
        Ok(layout)
    }
}

/// Servers among the ranks, as a rank that computes knows them.
#[derive(Debug)]
struct Extra {
    addresses: Vec<Address>,
    ranks: Vec<usize>,
    read: Reading,
}

static EXTRA: Global<Option<Extra>> = Global::new(Rank::Settings, None, || None);

/// Where the servers among the ranks are; none without such.
pub(super) fn servers() -> Vec<Address> {
    EXTRA.lock().as_ref().map(|extra| extra.addresses.clone()).unwrap_or_default()
}

/// What these read.
pub(super) fn reading() -> Reading {
    EXTRA.lock().as_ref().map(|extra| extra.read).unwrap_or_default()
}

fn inval(text: impl Into<String>) -> Error {
    Error::answered(NcError::Inval, Answer::Request, text)
}

const CALL: Step<'static> = Step { call: "nc_zonda_servers", file: "(no file)" };
const WORD: usize = 8;

/// Divides the ranks of a communicator into those that compute, which get a communicator of their own, and I/O servers, which stay in this call until all others
/// are at `MPI_Finalize`, and then get `MPI_COMM_NULL`. All ranks call it, with the same text: `groups=2` has the last two ranks serve. With `groups=0`, or where
/// [`VARIABLE`](super::VARIABLE) names servers, all ranks compute.
///
/// # Errors
/// `NC_EINVAL` on all ranks for a text that says no such thing, or another one on some ranks, and where no rank would be left to compute. `NC_EIO` on a server that has not
/// written all, `NC_EMPI` where MPI fails. Those of [`team`](crate::mpi::team).
pub fn divide_ranks(world: Communicator, text: &str) -> Result<MadeComm> {
    let word = world.word().map_err(|error| of_mpi(&error))?;
    let post = Post::new(CALL, word).map_err(|error| of_mpi(&error))?;
    let team = post.team();
    let (rank, size) = (team.rank(), team.size());
    let layout = agreed_layout(team, text)?;
    let n_compute = size.checked_sub(layout.groups).filter(|n| *n > 0);
    let n_compute = n_compute.ok_or_else(|| {
        inval(format!("{text}: {size} ranks are too few: at least one has to compute"))
    })?;
    let split = |number| MadeComm::split(word, number).map_err(|error| of_mpi(&error));
    if layout.groups == 0 {
        let all = split(0)?;
        post.end(CALL).map_err(|error| of_team(&error))?;
        return Ok(all);
    }
    let is_server = rank >= n_compute;
    let own = if is_server { Some(Server::start()) } else { None };
    let places = tell_places(team, own.as_ref().map(Result::as_ref), n_compute)?;
    let own = own.transpose()?;
    let part = split(u16::from(is_server))?;
    match own {
        Some(server) => {
            part.free().map_err(|error| of_mpi(&error))?;
            server.serve(post, n_compute)?;
            MadeComm::null().map_err(|error| of_mpi(&error))
        }
        None => {
            let address = |(at, place): (usize, Place)| match place {
                Place { node, path } if !layout.by_messages && node == zonda_mpi::node() => {
                    Address::Socket(path)
                }
                _ => Address::Rank(n_compute + at),
            };
            let addresses = places.into_iter().enumerate().map(address).collect();
            let ranks = (n_compute..size).collect();
            let extra = Extra { addresses, ranks, read: layout.read };
            post_office::open(post);
            *EXTRA.lock() = Some(extra);
            zonda_mpi::at_finalize(end_client).map_err(|error| of_mpi(&error))?;
            Ok(part)
        }
    }
}

/// What all ranks say, where they say the same.
fn agreed_layout(team: &dyn Team, text: &str) -> Result<Layout> {
    let mut layout = text.parse::<Layout>();
    // Servers that were there before the program began write its files.
    if std::env::var_os(super::VARIABLE).is_some_and(|name| !name.is_empty())
        && let Ok(layout) = &mut layout
    {
        layout.groups = 0;
    }
    let said = match &layout {
        Ok(layout) => format!("{layout:?} {}", wire::VERSION),
        Err(why) => why.clone(),
    };
    let mut first = said.clone().into_bytes();
    let agreed = team.broadcast(CALL, 0, &mut first).and_then(|()| {
        let mut worst = [u64::from(layout.is_err()), u64::from(first != said.as_bytes())];
        team.reduce(CALL, Reduction::Max, &mut worst).map(|()| worst)
    });
    match agreed.map_err(|error| of_team(&error))? {
        [0, 0] => layout.map_err(inval),
        _ => Err(inval(match layout {
            Err(why) => format!("{text:?}: {why}"),
            Ok(_) => format!(
                "{text:?}, and other ranks say something else, have another library or environment, or a text that is wrong; rank 0: {}",
                String::from_utf8_lossy(&first)
            ),
        })),
    }
}

/// Where a server is.
#[derive(Debug)]
struct Place {
    node: u64,
    path: PathBuf,
}

/// Tells all ranks where the servers are.
fn tell_places(
    team: &dyn Team,
    own: Option<std::result::Result<&Server, &Error>>,
    n_compute: usize,
) -> Result<Vec<Place>> {
    let mine = match own {
        Some(Ok(server)) => {
            let path = std::os::unix::ffi::OsStrExt::as_bytes(server.socket.as_os_str());
            [&zonda_mpi::node().to_le_bytes()[..], path].concat()
        }
        // It says why by its own error.
        Some(Err(_)) | None => Vec::new(),
    };
    let lens = team.gather(CALL, 0, &mine).and_then(|all| {
        let mut bytes = Vec::new();
        for told in all {
            bytes.extend((told.len() as u64).to_le_bytes());
            bytes.extend(told);
        }
        team.broadcast(CALL, 0, &mut bytes).map(|()| bytes)
    });
    let bytes = lens.map_err(|error| of_team(&error))?;
    let (mut rest, mut places) = (&bytes[..], Vec::new());
    for rank in 0..team.size() {
        let told = (|| {
            let (len, behind) = rest.split_first_chunk::<WORD>()?;
            let (told, behind) =
                behind.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
            rest = behind;
            Some(told)
        })();
        let told = told.ok_or_else(post_office::not_understood)?;
        if rank < n_compute {
            continue;
        }
        let Some((node, path)) = told.split_first_chunk::<WORD>() else {
            return match own {
                Some(Err(why)) => Err(Error::answered(why.code(), Answer::System, why.to_string())),
                _ => Err(inval(format!("rank {rank} cannot be an I/O server: it says why"))),
            };
        };
        let path = <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(path.to_vec());
        places.push(Place { node: u64::from_le_bytes(*node), path: path.into() });
    }
    Ok(places)
}

/// `MPI_Finalize` of a rank that computes: what it has told is written, and its servers may go.
fn end_client() {
    let Some(extra) = EXTRA.lock().take() else { return };
    let finished = super::client::finish();
    super::client::forget(&extra.addresses);
    if let Err(error) = finished.and(post_office::close(&extra.ranks)) {
        // Nobody may be there to read it.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr().lock(),
            format_args!("zonda: MPI_Finalize: {error}\n"),
        );
    }
}

/// A server in this process.
#[derive(Debug)]
struct Server {
    /// The socket is in it; only this user may come into it.
    _folder: tempfile::TempDir,
    socket: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<usize>>,
}

impl Server {
    fn start() -> Result<Server> {
        let fail = |error: std::io::Error| {
            let text = format!("a rank cannot be an I/O server: {error}");
            Error::answered(NcError::Io, Answer::System, text)
        };
        let folder = tempfile::Builder::new().prefix("zonda-").tempdir().map_err(fail)?;
        let socket = folder.path().join("server");
        let is_over = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = mpsc::channel();
        let (path, over) = (socket.clone(), Arc::clone(&is_over));
        let serve = move || {
            group::serve(&path, &over, || {
                // Who started it waits for this.
                let _ = ready.send(());
            })
        };
        let name = String::from("zonda-servers");
        let thread = worker::spawn(name, Purpose::WriteBehind, serve).map_err(fail)?;
        if is_ready.recv().is_err() {
            let ended = thread.join().unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
            return Err(ended.err().map_or_else(gone, fail));
        }
        Ok(Server { _folder: folder, socket, is_over, thread })
    }

    /// Serves until all clients are over.
    fn serve(self, mut post: Post, n_clients: usize) -> Result<()> {
        let passed = self.pass_messages(&mut post, n_clients);
        self.is_over.store(true, Ordering::Release);
        let written = self.thread.join();
        let told = passed.and_then(|()| {
            // None may go before: MPI ends when all have gone.
            (0..n_clients).try_for_each(|client| post.send(STEP, client, Vec::new()))?;
            post.end(STEP)
        });
        told.map_err(|error| of_team(&error))?;
        match written {
            Ok(Ok(0)) => Ok(()),
            _ => {
                let why = "I/O server: not all files are whole; what is wrong with them was said on standard error";
                Err(Error::answered(NcError::Io, Answer::System, why))
            }
        }
    }

    /// Brings what clients of other nodes send to the server, and what it says to them.
    fn pass_messages(
        &self,
        post: &mut Post,
        n_clients: usize,
    ) -> std::result::Result<(), TeamError> {
        let (mut clients, mut n_over) = (BTreeMap::new(), 0);
        let mut pauses = Pauses::new();
        while n_over < n_clients {
            let mut is_idle = true;
            let come = post.take(STEP, &mut |from, len| {
                clients.get(&from).is_none_or(|client: &Passing| client.has_room(len))
            })?;
            if let Some((from, frame)) = come {
                is_idle = false;
                if frame.is_empty() {
                    n_over += 1;
                    clients.remove(&from);
                } else {
                    let client = clients.entry(from).or_insert_with(|| Passing::to(&self.socket));
                    client.pass(&frame);
                    post.send(STEP, from, post_office::room_of(&frame).encode())?;
                }
            }
            for (&to, client) in &mut clients {
                while let Some(message) = client.message() {
                    is_idle = false;
                    post.send(STEP, to, Mail::Message(message).encode())?;
                }
            }
            if is_idle { pauses.pause() } else { pauses = Pauses::new() }
        }
        Ok(())
    }
}

/// A client that is no process of this node: what it sends goes to the server as if it were one.
#[derive(Debug)]
enum Passing {
    Way(MemoryWay),
    /// It is not served, or not any more. What it is told of its last calls.
    Ended {
        why: Error,
        answers: VecDeque<Message>,
    },
}

impl Passing {
    fn to(socket: &Path) -> Passing {
        match MemoryWay::to(socket) {
            Ok(way) => Passing::Way(way),
            Err(why) => Passing::Ended { why, answers: VecDeque::new() },
        }
    }

    fn has_room(&self, len: usize) -> bool {
        match self {
            Passing::Way(way) => way.has_room(len) || way.look().is_err(),
            Passing::Ended { .. } => true,
        }
    }

    /// Passes a frame on, for which there is room.
    fn pass(&mut self, frame: &[u8]) {
        if let Passing::Way(way) = self {
            if way.try_send(frame) {
                return;
            }
            *self = Passing::Ended { why: gone(), answers: VecDeque::new() };
        }
        let Passing::Ended { why, answers } = self else { return };
        let Some((head, _)) = wire::frame(frame) else { return };
        let notice = match head.is_asked {
            true => Notice::Reply { outcome: Outcome::Failed((&*why).into()), len: None },
            false => Notice::Failure { file: head.file, error: (&*why).into() },
        };
        if let Ok(bytes) = wire::encode(&notice) {
            answers.push_back((bytes, None));
        }
    }

    /// What the server says.
    fn message(&mut self) -> Option<Message> {
        match self {
            Passing::Way(way) => match way.message(false) {
                Ok(message) => message,
                Err(why) => {
                    *self = Passing::Ended { why, answers: VecDeque::new() };
                    None
                }
            },
            Passing::Ended { answers, .. } => answers.pop_front(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let groups = |text: &str| text.parse::<Layout>().map(|layout| layout.groups);
        assert_eq!(groups("groups=2, size=1"), Ok(2));
        assert_eq!(groups(""), Ok(1));
        assert_eq!(groups("groups=0"), Ok(0));
        assert_eq!("read=on".parse::<Layout>().unwrap().read, Reading::On);
        assert!("way=messages".parse::<Layout>().unwrap().by_messages);
        for wrong in ["groups=x", "size=2", "group=2", "groups", "groups=-1", "way=x", "read=1"] {
            assert!(groups(wrong).is_err(), "{wrong}");
        }
    }
}
