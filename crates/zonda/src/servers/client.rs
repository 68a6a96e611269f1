//! Files that a program creates, and that servers write.

use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zonda_format::Error;
use zonda_model::{Answer, NcError};
use zonda_parallel::{of_team, status_of, with_worst};
use zonda_runtime::lock::{Global, Rank};
use zonda_served::Line;
use zonda_team::{Reduction, Step, Team, spread};

use super::connection::{Connection, ServerLine};
use super::extra_ranks;
use super::memory_way::MemoryWay;
use super::group::writes_alone;
use super::spec::ServersSpec;
use super::way::{Address, gone};
use super::wire::{Creation, NamedFile, RankOf, What, identity_at, is_served};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::open::CreateOptions;

/// The servers that this process has come to.
#[derive(Debug, Default)]
struct Connections {
    known: HashMap<Address, Arc<Connection>>,
    /// Paths of files that servers had, and may not have written, when they ended. The next opening is told.
    lost: HashSet<Vec<u8>>,
    /// Servers that have ended, and whose place no other one took while somebody waited for that.
    gone: HashSet<Address>,
}

impl Connections {
    /// Those that this process has made, and not the one that it was forked from.
    fn own(&self) -> Connections {
        let own = self.known.iter().filter(|(_, connection)| connection.is_own());
        let known = own.map(|(server, connection)| (server.clone(), Arc::clone(connection))).collect();
        Connections { known, ..Connections::default() }
    }
}

/// Connections of the process.
static CONNECTIONS: Global<Option<Connections>> = Global::new(Rank::Files, None, || None);
/// Files of ranks that this process created, for names of their teams.
static N_TEAMS: AtomicU64 = AtomicU64::new(0);

/// The servers that write what this process creates.
#[derive(Clone, Debug)]
pub(super) struct Servers {
    pub(super) spec: ServersSpec,
    /// Where they are: those of one group after the other.
    pub(super) addresses: Vec<Address>,
}

/// The servers that there are; `None` where there are none.
pub(super) fn servers() -> Result<Option<Servers>> {
    let Some(folder) = std::env::var_os(super::VARIABLE).filter(|name| !name.is_empty()) else {
        return Ok(extra_ranks::servers());
    };
    if writes_alone() {
        return Ok(None);
    }
    let folder = PathBuf::from(folder);
    match ServersSpec::of_folder(&folder) {
        Some(spec) if spec.groups > 0 => {
            let addresses = spec.sockets(&folder).map(Address::Socket).collect();
            Ok(Some(Servers { spec, addresses }))
        }
        _ => {
            let folder = folder.display();
            let text =
                format!("{}: no I/O servers in {folder}: zonda run starts them", super::VARIABLE);
            Err(Error::answered(NcError::Io, Answer::Request, text))
        }
    }
}

/// Whether servers write the files that a program creates in this way.
fn goes_to_servers(options: &CreateOptions) -> bool {
    options.in_memory.is_none() && !options.share && is_served(options.format)
}

/// The connection to a server, which is made where there is none; a new one where the server has ended, since another one may have taken its place.
pub(super) fn connection(server: &Address) -> Result<Arc<Connection>> {
    let mut connections = CONNECTIONS.lock();
    let connections = connections.get_or_insert_default();
    // Those of the process that this one was forked from are not for this one.
    let known = connections.known.get(server).filter(|known| known.is_own()).cloned();
    let new = match known {
        Some(known) if known.is_there() => return Ok(known),
        None => Connection::to(server)?,
        Some(ended) => {
            connections.lost.extend(ended.take_paths());
            let is_waited_for = !connections.gone.contains(server);
            let new = Connection::to_next(server, is_waited_for);
            match &new {
                Ok(_) => drop(connections.gone.remove(server)),
                Err(_) => drop(connections.gone.insert(server.clone())),
            }
            new?
        }
    };
    let new = Arc::new(new);
    connections.known.insert(server.clone(), Arc::clone(&new));
    Ok(new)
}

impl Servers {
    /// Where a server is. Groups count from 1, members from 0.
    fn address(&self, group: usize, member: usize) -> Result<&Address> {
        let at = group.checked_sub(1).map(|before| before * self.spec.size + member);
        Ok(at.and_then(|at| self.addresses.get(at)).ok_or(NcError::Internal)?)
    }

    /// The server for a new file: of the group that its name says, or else of the one for which the least waits, that for which the least waits; and of several
    /// the next one in turn.
    fn choose(&self, path: &Path) -> Result<(usize, usize)> {
        static TURN: AtomicU64 = AtomicU64::new(0);
        let turn = TURN.fetch_add(1, Ordering::Relaxed).wrapping_add(u64::from(std::process::id()));
        let turn = usize::try_from(turn % (1 << 30)).unwrap_or_default();
        let ServersSpec { groups, size, .. } = self.spec;
        let named = self.spec.group_of(path);
        if size == 1 && (groups == 1 || named.is_some()) {
            return Ok((named.unwrap_or(1), 0));
        }
        let mut best: Option<(usize, usize, Vec<usize>)> = None;
        let mut unreached = None;
        let in_turn = (0..groups).map(|step| (turn + step) % groups + 1);
        for group in in_turn.filter(|group| named.is_none_or(|named| named == *group)) {
            let loads = match self.loads(group) {
                Ok(loads) => loads,
                Err(error) => {
                    unreached = Some(error);
                    continue;
                }
            };
            let load = loads.iter().fold(0, |sum: usize, load| sum.saturating_add(*load));
            if best.as_ref().is_none_or(|(least, ..)| load < *least) {
                best = Some((load, group, loads));
            }
        }
        let Some((_, group, loads)) = best else {
            return Err(unreached.unwrap_or_else(|| NcError::Internal.into()));
        };
        let in_turn = (0..size).map(|step| (turn / groups + step) % size);
        let member = in_turn.min_by_key(|&member| loads.get(member).copied());
        Ok((group, member.unwrap_or_default()))
    }

    /// Bytes that wait in each server of a group.
    fn loads(&self, group: usize) -> Result<Vec<usize>> {
        let mut loads = zonda_model::memory::room(self.spec.size)?;
        for member in 0..self.spec.size {
            let reply = connection(self.address(group, member)?)?.ask(0, What::Load, &[])?;
            loads.push(reply.shape.first().copied().unwrap_or_default());
        }
        Ok(loads)
    }
}

/// Creates a file that servers write; `None` where there are none, or they do not write such files.
pub(crate) fn create(path: &Path, options: &CreateOptions) -> Option<Result<Dataset>> {
    if !goes_to_servers(options) {
        return None;
    }
    let made = servers().transpose()?.and_then(|servers| {
        // Whatever was there is replaced.
        is_settled(path)?;
        let (group, member) = servers.choose(path)?;
        let line = created(servers.address(group, member)?, path, options, None)?;
        Dataset::create_served(line, path, options)
    });
    Some(made.map_err(|error| error.at(path)))
}

fn created(
    server: &Address,
    path: &Path,
    options: &CreateOptions,
    ranks: Option<RankOf>,
) -> Result<Arc<dyn Line>> {
    let absolute = absolute(path)?;
    let connection = connection(server)?;
    let file = connection.new_file();
    let creation = Creation::new(&absolute, options, ranks);
    let reply = connection.ask(file, What::Create(creation), &[])?;
    connection.note_path(absolute.as_os_str().as_bytes());
    let same = identity_at(path).map(|(device, inode)| [device.to_le_bytes(), inode.to_le_bytes()].concat());
    if matches!(server, Address::Socket(_)) && !reply.values.is_empty() && same.as_ref() != Some(&reply.values) {
        connection.tell_close(file)?;
        let why = "the I/O server has made another file of that name than this program sees: they have different mounts (containers)";
        return Err(Error::answered(NcError::Io, Answer::System, why));
    }
    Ok(Arc::new(ServerLine { connection, file }))
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path)
        .map_err(|error| NcError::System(error.raw_os_error().unwrap_or(libc_enoent())).into())
}

const fn libc_enoent() -> i32 {
    crate::open::ENOENT
}

/// Whether ranks have servers, for their agreement on how a file is created.
pub(crate) fn are_there(options: &CreateOptions) -> bool {
    goes_to_servers(options) && servers().is_ok_and(|servers| servers.is_some())
}

/// Creates a file of several ranks that servers write. All ranks call it, with equal options, where [`are_there`].
pub(crate) fn create_parallel(
    team: &Arc<dyn Team>,
    step: Step<'_>,
    path: &Path,
    options: &CreateOptions,
) -> Result<Dataset> {
    // All ranks have seen that there are some.
    let servers = servers()?.ok_or(NcError::Io)?;
    // Rank 0 chooses the group, whose servers divide the ranks.
    let chosen = match team.rank() {
        0 => is_settled(path).and_then(|_| servers.choose(path)).map(|(group, _)| group),
        _ => Ok(0),
    };
    let own = u64::from(std::process::id()) << 32 | N_TEAMS.fetch_add(1, Ordering::Relaxed);
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64);
    let words = [chosen.as_ref().map_or(u64::MAX, |&group| group as u64), own, now];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    team.broadcast(step, 0, &mut bytes).map_err(|error| of_team(&error))?;
    let mut words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
    let mut word = || words.next().unwrap_or(u64::MAX);
    let (group, name) = (word(), [word(), word()]);
    let ServersSpec { groups, size, .. } = servers.spec;
    let group = usize::try_from(group).ok().filter(|group| (1..=groups).contains(group));
    let member = spread::member_of(team.rank(), team.size(), size);
    // All have to come to the server, or none: it waits for all.
    let reached = chosen.and_then(|_| {
        let why = "rank 0 reaches no I/O server";
        let group = group.ok_or_else(|| Error::because(NcError::Io, why))?;
        let server = servers.address(group, member)?;
        connection(server).map(|_| server)
    });
    let server = share(&**team, step, reached)?;
    let ranks = Some(RankOf { team: name, rank: team.rank(), size: team.size() });
    let line = share(&**team, step, created(server, path, options, ranks))?;
    Dataset::create_served_parallel(line, path, options)
}

/// All ranks have an error if one has one.
pub(super) fn share<T>(team: &dyn Team, step: Step<'_>, own: Result<T>) -> Result<T> {
    let mut worst = [own.as_ref().err().map_or(0, status_of)];
    team.reduce(step, Reduction::Max, &mut worst).map_err(|error| of_team(&error))?;
    with_worst(own, worst[0])
}

/// The connections that this process has made.
fn connections() -> Vec<Arc<Connection>> {
    let connections = CONNECTIONS.lock();
    let known = connections.iter().flat_map(|connections| connections.known.values());
    known.filter(|connection| connection.is_own()).cloned().collect()
}

/// Waits until all files that this process has closed are closed by their servers: at the end of the process, so that the next one finds
/// them.
///
/// # Errors
/// `NC_EIO` where a server is gone.
pub fn finish() -> Result<()> {
    let is_lost =
        CONNECTIONS.lock().as_ref().is_some_and(|connections| !connections.lost.is_empty());
    let lost = if is_lost { Err(gone()) } else { Ok(()) };
    connections().into_iter().map(|connection| connection.settle(None)).fold(lost, Result::and)
}

/// Waits until servers have closed the file at a path that clients have closed, by whatever name it was created: before it is opened.
///
/// # Errors
/// `NC_EIO`, once, where a server ended that had the file, and that may not have written it.
pub(crate) fn settle(path: &Path) -> Result<()> {
    if is_settled(path)? { Ok(()) } else { Err(gone()) }
}

/// The same before a file is created or opened at the path. Whether what was there is whole, as far as servers know.
///
/// All servers are asked, also those to which this process has handed nothing over: another process of the job may have closed the file.
fn is_settled(path: &Path) -> Result<bool> {
    let Ok(Some(servers)) = servers() else { return Ok(true) };
    let named = absolute(path)?.as_os_str().as_bytes().to_vec();
    let file = NamedFile { path: named, identity: identity_at(path) };
    let known: Connections = CONNECTIONS.lock().as_ref().map(Connections::own).unwrap_or_default();
    for address in &servers.addresses {
        match (known.known.get(address), address) {
            (Some(connection), _) => match connection.settle(Some(&file)) {
                Ok(()) => {}
                Err(error) if connection.is_there() => return Err(error),
                Err(_) => note_lost(connection),
            },
            (None, Address::Socket(socket)) => {
                // One that has ended has no file of this process.
                let _ = MemoryWay::settle(socket, &file);
            }
            (None, Address::Rank(_)) => connection(address)?.settle(Some(&file))?,
        }
    }
    let mut connections = CONNECTIONS.lock();
    Ok(connections.as_mut().is_none_or(|connections| !connections.lost.remove(&file.path)))
}

/// Takes note of the files of a server that has ended.
fn note_lost(ended: &Connection) {
    let paths = ended.take_paths();
    CONNECTIONS.lock().get_or_insert_default().lost.extend(paths);
}

/// Drops the connections to some servers, which go.
pub(super) fn forget(servers: &[Address]) {
    super::reading::forget(servers);
    let mut connections = CONNECTIONS.lock();
    if let Some(connections) = connections.as_mut() {
        connections.known.retain(|server, _| !servers.contains(server));
    }
}
