//! I/O servers that are ranks of the program: one call divides the ranks into those that compute and those that write.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
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
use zonda_team::{Reduction, Step, Team, TeamError, tell_all};

use super::client::{Servers, share};
use super::group;
use super::memory_way::MemoryWay;
use super::post_office::{self, Mail, Pauses, STEP};
use super::spec::ServersSpec;
use super::way::{Address, Message, Way, gone};
use super::wire::{self, Notice, Outcome};
use crate::error::Result;
use crate::mpi::of_mpi;
use crate::tuning::SERVER_MESSAGE_BYTES;

/// Which ranks are servers, and how others reach them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layout {
    spec: ServersSpec,
    /// Others reach them by messages, on one node, too.
    by_messages: bool,
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Layout, String> {
        let words = text.split(',').map(str::trim);
        let (ways, rest): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with("way="));
        let by_messages = match ways[..] {
            [] | ["way=auto"] => false,
            ["way=messages"] => true,
            _ => return Err(format!("{}: known are way=auto and way=messages", ways.join(","))),
        };
        Ok(Layout { spec: rest.join(",").parse()?, by_messages })
    }
}

/// Servers among the ranks, as a rank that computes knows them.
#[derive(Debug)]
struct Extra {
    servers: Servers,
    ranks: Vec<usize>,
}

static EXTRA: Global<Option<Extra>> = Global::new(Rank::Settings, None, || None);

/// The servers among the ranks; `None` without such.
pub(super) fn servers() -> Option<Servers> {
    EXTRA.lock().as_ref().map(|extra| extra.servers.clone())
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
    let n_servers = layout.spec.groups * layout.spec.size;
    let n_compute = size.checked_sub(n_servers).filter(|n| *n > 0);
    let n_compute = n_compute.ok_or_else(|| {
        inval(format!("{text}: {size} ranks are too few: at least one has to compute"))
    })?;
    let split = |number| MadeComm::split(word, number).map_err(|error| of_mpi(&error));
    if n_servers == 0 {
        let all = split(0)?;
        post.end(CALL).map_err(|error| of_team(&error))?;
        return Ok(all);
    }
    let nodes = nodes_of_servers(team, n_compute, &layout.spec)?;
    let own = rank.checked_sub(n_compute);
    let folder = own.filter(|&own| first_of_node(&nodes, own) == own).map(|_| new_folder());
    let folders = tell_folders(team, folder.as_ref(), n_compute)?;
    let socket = |at| layout.spec.sockets(&folders[first_of_node(&nodes, at)]).nth(at);
    let sockets: Vec<PathBuf> =
        (0..n_servers).map(socket).collect::<Option<_>>().ok_or(NcError::Internal)?;
    let server = own.map(|own| Server::start(sockets[own].clone(), layout.spec.size));
    let server = share(team, CALL, server.transpose())?;
    let part = split(u16::from(server.is_some()))?;
    let Some(server) = server else {
        let address = |at: usize| match !layout.by_messages && nodes[at] == zonda_mpi::node() {
            true => Address::Socket(sockets[at].clone()),
            false => Address::Rank(n_compute + at),
        };
        let servers =
            Servers { spec: layout.spec, addresses: (0..n_servers).map(address).collect() };
        post_office::open(post);
        *EXTRA.lock() = Some(Extra { servers, ranks: (n_compute..size).collect() });
        zonda_mpi::at_finalize(end_client).map_err(|error| of_mpi(&error))?;
        return Ok(part);
    };
    part.free().map_err(|error| of_mpi(&error))?;
    // The folder stays until all servers are over.
    let served = server.serve(post, n_compute);
    drop(folder);
    served.and_then(|()| MadeComm::null().map_err(|error| of_mpi(&error)))
}

/// What all ranks say, where they say the same.
fn agreed_layout(team: &dyn Team, text: &str) -> Result<Layout> {
    let mut layout = text.parse::<Layout>();
    if EXTRA.lock().is_some() {
        layout = Err(String::from("nc_zonda_servers was called before"));
    }
    // Servers that were there before the program began write its files.
    if std::env::var_os(super::VARIABLE).is_some_and(|name| !name.is_empty())
        && let Ok(layout) = &mut layout
    {
        layout.spec.groups = 0;
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

/// The nodes of the servers. Those of a group are on one.
fn nodes_of_servers(team: &dyn Team, n_compute: usize, spec: &ServersSpec) -> Result<Vec<u64>> {
    let mine = zonda_mpi::node().to_le_bytes().to_vec();
    let all = tell_all(team, CALL, |_| WORD, mine).map_err(|error| of_team(&error))?;
    let numbers = all.chunks_exact(WORD).skip(n_compute);
    let nodes: Vec<u64> =
        numbers.map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes)).collect();
    match nodes.chunks(spec.size).position(|group| group.iter().any(|node| *node != group[0])) {
        None => Ok(nodes),
        Some(group) => Err(inval(format!(
            "group {} has servers on several nodes: the servers of a group share memory, so far",
            group + 1
        ))),
    }
}

/// The first server of the node on which a server is.
fn first_of_node(nodes: &[u64], server: usize) -> usize {
    nodes.iter().position(|node| *node == nodes[server]).unwrap_or(server)
}

/// A folder for sockets, which only this user may enter.
fn new_folder() -> Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("zonda-").tempdir().map_err(cannot_serve)
}

fn cannot_serve(error: std::io::Error) -> Error {
    let text = format!("a rank cannot be an I/O server: {error}");
    Error::answered(NcError::Io, Answer::System, text)
}

/// Tells all ranks the folders of servers; those that have made none are empty.
fn tell_folders(
    team: &dyn Team,
    own: Option<&Result<tempfile::TempDir>>,
    n_compute: usize,
) -> Result<Vec<PathBuf>> {
    let made = match own {
        Some(Err(why)) => Err(Error::answered(why.code(), Answer::System, why.to_string())),
        Some(Ok(folder)) => Ok(folder.path().as_os_str().as_bytes().to_vec()),
        None => Ok(Vec::new()),
    };
    let mine = share(team, CALL, made)?;
    let len = (mine.len() as u64).to_le_bytes().to_vec();
    let told = tell_all(team, CALL, |_| WORD, len).map_err(|error| of_team(&error))?;
    let numbers = told.chunks_exact(WORD);
    let lens: Vec<usize> = numbers
        .map(|bytes| bytes.try_into().ok().map(u64::from_le_bytes))
        .map(|len| len.and_then(|len| usize::try_from(len).ok()))
        .collect::<Option<_>>()
        .ok_or_else(other_lengths)?;
    if lens.len() != team.size() {
        return Err(other_lengths());
    }
    let all = tell_all(team, CALL, |rank| lens[rank], mine).map_err(|error| of_team(&error))?;
    let (mut rest, mut folders) = (&all[..], Vec::new());
    for len in lens {
        let (folder, behind) = rest.split_at_checked(len).ok_or_else(other_lengths)?;
        folders.push(OsString::from_vec(folder.to_vec()).into());
        rest = behind;
    }
    Ok(folders.split_off(n_compute))
}

fn other_lengths() -> Error {
    let why = "bug in Zonda: ranks tell folders of other lengths than they have said";
    Error::because(NcError::Internal, why)
}

/// `MPI_Finalize` of a rank that computes: what it has told is written, and its servers may go.
fn end_client() {
    let Some(extra) = EXTRA.lock().take() else { return };
    let finished = super::client::finish();
    super::client::forget(&extra.servers.addresses);
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
    socket: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<usize>>,
}

impl Server {
    /// Starts it, and waits until it can be reached.
    fn start(socket: PathBuf, n_members: usize) -> Result<Server> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = mpsc::channel();
        let (path, over) = (socket.clone(), Arc::clone(&is_over));
        let serve = move || {
            group::serve(&path, n_members, &over, || {
                // Who started it waits for this.
                let _ = ready.send(());
            })
        };
        let name = String::from("zonda-servers");
        let thread = worker::spawn(name, Purpose::WriteBehind, serve).map_err(cannot_serve)?;
        if is_ready.recv().is_err() {
            let ended = thread.join().unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
            return Err(ended.err().map_or_else(gone, cannot_serve));
        }
        Ok(Server { socket, is_over, thread })
    }

    /// Serves until all clients are over.
    fn serve(self, mut post: Post, n_clients: usize) -> Result<()> {
        let passed = self.pass_messages(&mut post, n_clients);
        self.is_over.store(true, Ordering::Release);
        let written = self.thread.join();
        let told = passed.and_then(|()| {
            // None may go before: MPI ends when all have gone.
            (0..n_clients).try_for_each(|client| post.send(STEP, client, Vec::new()))?;
            post.team().meet(STEP)?;
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
        match MemoryWay::for_frames(socket, SERVER_MESSAGE_BYTES) {
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
    use super::super::reading::Reading;
    use super::*;

    #[test]
    fn texts() {
        let layout = |text: &str| text.parse::<Layout>();
        let plain = layout("groups=2, size=3,out_*=1").unwrap();
        assert_eq!((plain.spec.groups, plain.spec.size, plain.by_messages), (2, 3, false));
        assert!(
            layout("way=messages").unwrap().by_messages
                && layout("read=on,size=1").unwrap().spec.read == Reading::On
        );
        assert_eq!(layout("groups=0,way=auto").unwrap().spec.groups, 0);
        for wrong in ["groups=x", "way=x", "way=auto,way=messages", "group=2"] {
            assert!(layout(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn servers_of_a_node_share_a_folder() {
        assert_eq!([0, 1, 2, 3].map(|at| first_of_node(&[7, 8, 7, 8], at)), [0, 1, 0, 1]);
    }
}
