//! What a server has under way: files that it closes, by path, and teams whose ranks are still to come.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use zonda_runtime::lock::{Condvar, Mutex, Rank};
use zonda_runtime::worker::{self, Purpose};
use zonda_team::spread::{self, Mesh, TeamName, Watcher};

use super::members::{self, Others, Word};
use super::progress::Progress;
use super::queue::{Load, Queue};
use super::reading::Readings;
use super::team::Team;
use super::watch::Watch;
use super::wire::FileIdentity;

/// Most ranks of a team for each server of a group: each has a thread.
const MOST_RANKS: usize = 1024;

fn no_team(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Files that clients have closed and that are not closed here yet, for who asks when they are whole, and teams.
#[derive(Debug)]
pub(super) struct Board {
    state: Mutex<State>,
    changed: Condvar,
    /// The other servers of the group, where there are some.
    mesh: Option<Arc<Mesh>>,
    /// For those who look.
    pub(super) watch: Watch,
    /// Files that are read for clients.
    pub(super) readings: Readings,
}

#[derive(Debug, Default)]
struct State {
    /// Files that clients have closed: by what name they were created, and which they are.
    closing: Vec<(PathBuf, Option<FileIdentity>)>,
    /// Files that clients have created and not closed, as far as they have told.
    open: Vec<OpenFile>,
    teams: HashMap<TeamName, Arc<Team>>,
    /// What waits, of each client.
    loads: Vec<Weak<Load>>,
    /// Lines about files that are not whole.
    n_failed: usize,
}

/// A file that a client has created here.
#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    queue: Weak<Queue>,
    progress: Arc<Progress>,
}

impl Board {
    pub(super) fn new(mesh: Option<Arc<Mesh>>) -> Board {
        let state = Mutex::ranked(Rank::Files, State::default());
        let (changed, watch, readings) = (Condvar::new(), Watch::new(), Readings::new());
        Board { state, changed, mesh, watch, readings }
    }

    /// A client creates a file.
    pub(super) fn open(&self, path: &Path, queue: &Arc<Queue>, progress: &Arc<Progress>) {
        let mut state = self.state.lock();
        // Those of clients that have gone.
        state.open.retain(|file| file.queue.strong_count() > 0);
        let (queue, progress) = (Arc::downgrade(queue), Arc::clone(progress));
        state.open.push(OpenFile { path: path.to_owned(), queue, progress });
    }

    /// A client has closed the file that it created at a path.
    pub(super) fn begin_close(&self, path: &Path, queue: &Arc<Queue>) {
        let mut state = self.state.lock();
        state.closing.push((path.to_owned(), queue.identity()));
        state.open.retain(|file| !std::ptr::eq(file.queue.as_ptr(), Arc::as_ptr(queue)));
    }

    /// The clients that have a file open that was created at a path, or that is what has this identity.
    pub(super) fn writers(&self, path: &Path, identity: Option<FileIdentity>) -> Vec<Arc<Progress>> {
        let state = self.state.lock();
        let is_it = |file: &&OpenFile| {
            let own = || file.queue.upgrade().and_then(|queue| queue.identity());
            file.path == path || identity.is_some() && own() == identity
        };
        state.open.iter().filter(is_it).map(|file| Arc::clone(&file.progress)).collect()
    }

    /// Waits until what clients have told of a file until now was taken, and then as [`Board::wait_for`] does.
    pub(super) fn settle(&self, writers: &[Arc<Progress>], path: &Path, identity: Option<FileIdentity>) {
        for writer in writers {
            writer.wait();
        }
        self.wait_for(path, identity);
    }

    pub(super) fn end_close(&self, path: &Path, identity: Option<FileIdentity>) {
        let mut state = self.state.lock();
        let files = || state.closing.iter();
        let at = files()
            .position(|(its, same)| its == path && *same == identity)
            // Of a client that closes what it has not been told to be there.
            .or_else(|| files().position(|(its, _)| its == path));
        if let Some(at) = at {
            state.closing.swap_remove(at);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until no file is being closed that was created at a path, or that is what has this identity.
    pub(super) fn wait_for(&self, path: &Path, identity: Option<FileIdentity>) {
        let is_it = |(its, same): &(PathBuf, Option<FileIdentity>)| {
            its == path || same.is_some() && *same == identity
        };
        let mut state = self.state.lock();
        while state.closing.iter().any(is_it) {
            state = self.changed.wait(state);
        }
    }

    /// Counts what waits of a client, as long as it is there.
    pub(super) fn count(&self, load: &Arc<Load>) {
        let mut state = self.state.lock();
        state.loads.retain(|load| load.strong_count() > 0);
        state.loads.push(Arc::downgrade(load));
    }

    /// Bytes that wait, of all clients.
    pub(super) fn waiting_bytes(&self) -> usize {
        let loads = self.state.lock().loads.clone();
        loads.iter().filter_map(Weak::upgrade).map(|load| load.bytes()).sum()
    }

    /// The other servers of the group, where there are some.
    pub(super) fn mesh(&self) -> Option<&Arc<Mesh>> {
        self.mesh.as_ref()
    }

    /// The team of that name, which writes a file.
    ///
    /// # Errors
    /// `InvalidData` for another size than other ranks say, or an impossible one, and for a file that is over.
    pub(super) fn team(&self, name: TeamName, size: usize, path: &Path) -> io::Result<Arc<Team>> {
        let mut state = self.state.lock();
        if let Some(team) = state.teams.get(&name) {
            let is_same = team.size == size;
            return if is_same { Ok(Arc::clone(team)) } else { Err(no_team(OTHER_SIZE)) };
        }
        let (me, n_members) = self.mesh.as_ref().map_or((0, 1), |mesh| (mesh.me(), mesh.size()));
        if !(1..=MOST_RANKS.saturating_mul(n_members)).contains(&size) {
            return Err(no_team(OTHER_SIZE));
        }
        let ranks = spread::ranks_of(me, size, n_members);
        if self.mesh.as_ref().is_some_and(|mesh| mesh.is_over(name)) {
            return Err(no_team("the file is over: another rank ended early"));
        }
        let others = self.mesh.as_ref().map(|mesh| Others::new(mesh, name, size));
        let team = Arc::new(Team::new(name, (size, ranks), path, others));
        state.teams.insert(name, Arc::clone(&team));
        Ok(team)
    }

    /// Ranks of a team whose calls others wait for now.
    pub(super) fn waited_for(&self, name: TeamName) -> Vec<usize> {
        let team = self.state.lock().teams.get(&name).cloned();
        team.map(|team| team.gate.waited_for()).unwrap_or_default()
    }

    pub(super) fn forget_team(&self, name: TeamName) {
        self.state.lock().teams.remove(&name);
    }

    pub(super) fn note_failed(&self) {
        self.state.lock().n_failed += 1;
    }

    pub(super) fn n_failed(&self) -> usize {
        self.state.lock().n_failed
    }
}

const OTHER_SIZE: &str = "ranks of a number that a server does not write for";

/// Has a board hear what other servers of the group say.
pub(super) struct Hearing(pub(super) Arc<Board>);

impl Hearing {
    /// A file that some client of another server has left: who has not come here is not waited for, and the others are told so.
    fn give_up(&self, team: &Arc<Team>) {
        team.give_up_missing();
        if team.begins() {
            let (team, board) = (Arc::clone(team), Arc::clone(&self.0));
            let run = move || team.run(&board);
            // Without a thread, ranks wait until all of their clients have ended.
            drop(worker::spawn(String::from("zonda-served"), Purpose::WriteBehind, run));
        }
    }
}

impl Watcher for Hearing {
    fn noticed(&self, member: usize, name: TeamName, bytes: &[u8]) {
        let Some((size, word)) = members::word(bytes) else { return };
        // The path comes with the first rank that comes here. A file that is over here hears nothing.
        let Ok(team) = self.0.team(name, size, Path::new("")) else { return };
        let n_members = self.0.mesh.as_ref().map_or(1, |mesh| mesh.size());
        let is_its = |rank| spread::member_of(rank, size, n_members) == member;
        match word {
            Word::Told { rank, n, is_last } if is_its(rank) => {
                team.gate.note_told(rank, n, is_last);
            }
            Word::Ended { rank } if is_its(rank) => {
                team.gate.note_ended(rank);
                self.give_up(&team);
            }
            Word::Over { why } => {
                team.gate.end_all(&why);
                self.give_up(&team);
            }
            Word::Told { .. } | Word::Ended { .. } => {}
        }
    }

    fn lost(&self, member: usize) {
        let teams: Vec<Arc<Team>> = self.0.state.lock().teams.values().cloned().collect();
        let n_members = self.0.mesh.as_ref().map_or(1, |mesh| mesh.size());
        for team in teams {
            let lost = spread::ranks_of(member, team.size, n_members);
            if !lost.is_empty() {
                team.gate.lose(lost);
                team.give_up_missing();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_file_that_is_closed_is_waited_for_by_all_of_its_names() {
        let board = Board::new(None);
        let (path, other) = (Path::new("/a/x.nc"), Path::new("/b/y.nc"));
        let queue = |identity| {
            let queue = Arc::new(Queue::new(Arc::new(Load::new())));
            if let Some(identity) = identity {
                queue.identify(identity);
            }
            queue
        };
        board.begin_close(path, &queue(Some((1, 7))));
        board.begin_close(path, &queue(None));
        // Neither the name nor the file.
        board.wait_for(other, Some((1, 8)));
        board.wait_for(other, None);
        std::thread::scope(|scope| {
            let spawn = |wait: Box<dyn FnOnce() + Send>| {
                worker::spawn_scoped(scope, String::new(), Purpose::WriteBehind, wait).unwrap()
            };
            let board = &board;
            let by_identity = spawn(Box::new(|| board.wait_for(other, Some((1, 7)))));
            let by_name = spawn(Box::new(|| board.wait_for(path, Some((1, 8)))));
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert!(!by_identity.is_finished() && !by_name.is_finished());
            board.end_close(path, Some((1, 7)));
            by_identity.join().unwrap();
            assert!(!by_name.is_finished(), "another file of that name is being closed");
            board.end_close(path, None);
            by_name.join().unwrap();
        });
    }

    #[test]
    fn servers_of_a_group_hear_who_will_not_come() {
        let (one, other) = UnixStream::pair().unwrap();
        let members = [(0, vec![None, Some(one)]), (1, vec![Some(other), None])];
        let boards = members.map(|(me, streams)| {
            let mesh = Mesh::new(me, streams);
            let board = Arc::new(Board::new(Some(mesh.unwrap())));
            let hearing: Arc<dyn Watcher> = Arc::new(Hearing(Arc::clone(&board)));
            board.mesh().unwrap().listen(&hearing).unwrap();
            board
        });
        let (name, path) = ([5, 6], Path::new("x.nc"));
        assert!(boards[0].team(name, 0, path).is_err());
        assert!(boards[0].team(name, 2 * MOST_RANKS + 1, path).is_err());
        let team = boards[0].team(name, 2, path).unwrap();
        assert!(boards[0].team(name, 3, path).is_err());
        // The client of rank 0 ends before anybody of rank 1 has come.
        team.gate.end(0);
        team.give_up_missing();
        assert!(team.begins() && !team.begins());
        team.run(&boards[0]);
        let other = boards[1].mesh().unwrap();
        let began = std::time::Instant::now();
        while !other.is_over(name) {
            assert!(began.elapsed().as_secs() < 120, "the other server does not hear of it");
            std::thread::yield_now();
        }
        for board in &boards {
            let late = board.team(name, 2, path).unwrap_err();
            assert!(late.to_string().contains("another rank ended early"), "{late}");
            board.mesh().unwrap().shut();
        }
    }
}
