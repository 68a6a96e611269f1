//! Ranks that write a file together, as far as their clients come to this server.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use zonda_runtime::lock::{Condvar, Mutex, Rank};
use zonda_team::spread::{self, TeamName};
use zonda_team::{Team as _, threads};

use super::board::Board;
use super::gate::Gate;
use super::members::Others;
use super::work::FileWork;

/// Ranks that write a file together.
#[derive(Debug)]
pub(super) struct Team {
    pub(super) gate: Gate,
    pub(super) size: usize,
    name: TeamName,
    seats: Mutex<Seats>,
    taken: Condvar,
    is_begun: AtomicBool,
}

/// The work of ranks that have come.
#[derive(Debug)]
struct Seats {
    work: Vec<Option<FileWork>>,
    /// Who has not come will not come.
    is_given_up: bool,
    /// All shadows have ended.
    is_over: bool,
}

impl Team {
    pub(super) fn new(name: TeamName, size: usize, path: &Path, others: Option<Others>) -> Team {
        let work = (0..size).map(|_| None).collect();
        let seats = Seats { work, is_given_up: false, is_over: false };
        let seats = Mutex::ranked(Rank::Settings, seats);
        let timeout = zonda_mpi::Settings::from_environment().timeout;
        let gate = Gate::new(path, size, timeout, others);
        let is_begun = AtomicBool::new(false);
        Team { gate, size, name, seats, taken: Condvar::new(), is_begun }
    }

    /// Whether the caller is to [`Team::run`] it: the first one who asks.
    pub(super) fn begins(&self) -> bool {
        !self.is_begun.swap(true, Ordering::AcqRel)
    }

    /// Brings the work of a rank.
    ///
    /// # Errors
    /// `InvalidData` where it is there, or there is no such rank, and where the file is over.
    pub(super) fn sit_down(&self, rank: usize, work: FileWork) -> io::Result<()> {
        let mut seats = self.seats.lock();
        let is_over = seats.is_over;
        let seat = seats.work.get_mut(rank).filter(|seat| seat.is_none() && !is_over);
        let seat = seat.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        *seat = Some(work);
        drop(seats);
        self.taken.notify_all();
        Ok(())
    }

    /// Waits for the work of a rank; `None` where it will not come.
    fn seat(&self, rank: usize) -> Option<FileWork> {
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

    /// Has a shadow of each rank that comes here make the calls of its client, until all have ended.
    pub(super) fn run(&self, board: &Board) {
        let options = threads::Options { stack_bytes: STACK_BYTES, ..Default::default() };
        let shadow = |rank: &threads::Threads| {
            if let Some(work) = self.seat(rank.rank()) {
                work.run(Some((rank, &self.gate)));
            }
        };
        match board.mesh() {
            None => drop(threads::run(self.size, &options, shadow)),
            Some(mesh) => drop(spread::run(mesh, self.name, self.size, &options, shadow)),
        }
        board.forget_team(self.name);
        let mut seats = self.seats.lock();
        seats.is_over = true;
        let late: Vec<FileWork> = seats.work.iter_mut().filter_map(Option::take).collect();
        drop(seats);
        late.into_iter().for_each(FileWork::refuse);
    }
}

/// Of the thread of a rank, which runs the whole engine.
const STACK_BYTES: usize = 2 << 20;
