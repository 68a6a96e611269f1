//! What a server has under way: files that it closes, by path, and teams whose ranks are still to come.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zonda_runtime::lock::{Condvar, Mutex, Rank};

use super::gate::Gate;
use super::reading::Readings;
use super::work::FileWork;

/// Most ranks of a team in one server: each has a thread.
const MOST_RANKS: usize = 1024;

fn no_team() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "ranks of a number that a server does not write for")
}

/// Files that clients have closed and that are not closed here yet, for who asks when they are whole, and teams.
#[derive(Debug)]
pub(super) struct Board {
    state: Mutex<State>,
    changed: Condvar,
    /// Files that are read for clients.
    pub(super) readings: Readings,
}

#[derive(Debug, Default)]
struct State {
    /// How many of a path there are.
    closing: HashMap<PathBuf, usize>,
    teams: HashMap<[u64; 2], Arc<Team>>,
    /// Lines about files that are not whole.
    n_failed: usize,
}

/// Ranks that write a file together.
#[derive(Debug)]
pub(super) struct Team {
    pub(super) gate: Gate,
    pub(super) size: usize,
    seats: Mutex<Seats>,
    taken: Condvar,
}

/// The work of ranks that have come.
#[derive(Debug)]
struct Seats {
    work: Vec<Option<FileWork>>,
    /// Who has not come will not come.
    is_given_up: bool,
}

impl Team {
    fn new(path: &Path, size: usize) -> Team {
        let work = (0..size).map(|_| None).collect();
        let seats = Mutex::ranked(Rank::Settings, Seats { work, is_given_up: false });
        let gate = Gate::new(path, size, zonda_mpi::Settings::from_environment().timeout);
        Team { gate, size, seats, taken: Condvar::new() }
    }

    /// Brings the work of a rank.
    ///
    /// # Errors
    /// `InvalidData` where it is there, or there is no such rank.
    pub(super) fn sit_down(&self, rank: usize, work: FileWork) -> io::Result<()> {
        let mut seats = self.seats.lock();
        let seat = seats.work.get_mut(rank).filter(|seat| seat.is_none());
        let seat = seat.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        *seat = Some(work);
        drop(seats);
        self.taken.notify_all();
        Ok(())
    }

    /// Waits for the work of a rank; `None` where it will not come.
    pub(super) fn seat(&self, rank: usize) -> Option<FileWork> {
        let mut seats = self.seats.lock();
        loop {
            if let Some(work) = seats.work.get_mut(rank)?.take() {
                return Some(work);
            }
            if seats.is_given_up {
                return None;
            }
            seats = self.taken.wait(seats);
        }
    }

    /// A client has ended: ranks that have not come are not waited for.
    pub(super) fn give_up_missing(&self) {
        self.seats.lock().is_given_up = true;
        self.taken.notify_all();
    }
}

impl Board {
    pub(super) fn new() -> Board {
        let state = Mutex::ranked(Rank::Files, State::default());
        Board { state, changed: Condvar::new(), readings: Readings::new() }
    }

    pub(super) fn begin_close(&self, path: &Path) {
        *self.state.lock().closing.entry(path.to_owned()).or_default() += 1;
    }

    pub(super) fn end_close(&self, path: &Path) {
        let mut state = self.state.lock();
        if let Some(n) = state.closing.get_mut(path) {
            *n = n.saturating_sub(1);
            if *n == 0 {
                state.closing.remove(path);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until no file at a path is being closed.
    pub(super) fn wait_for(&self, path: &Path) {
        let mut state = self.state.lock();
        while state.closing.contains_key(path) {
            state = self.changed.wait(state);
        }
    }

    /// The team of that name, which writes a file, and whether this rank is the first to ask.
    ///
    /// # Errors
    /// `InvalidData` for another size than other ranks say, or an impossible one.
    pub(super) fn team(
        &self,
        name: [u64; 2],
        size: usize,
        path: &Path,
    ) -> io::Result<(Arc<Team>, bool)> {
        let mut state = self.state.lock();
        if let Some(team) = state.teams.get(&name) {
            let is_same = team.size == size;
            return if is_same { Ok((Arc::clone(team), false)) } else { Err(no_team()) };
        }
        if !(1..=MOST_RANKS).contains(&size) {
            return Err(no_team());
        }
        let team = Arc::new(Team::new(path, size));
        state.teams.insert(name, Arc::clone(&team));
        Ok((team, true))
    }

    pub(super) fn forget_team(&self, name: [u64; 2]) {
        self.state.lock().teams.remove(&name);
    }

    pub(super) fn note_failed(&self) {
        self.state.lock().n_failed += 1;
    }

    pub(super) fn n_failed(&self) -> usize {
        self.state.lock().n_failed
    }
}
