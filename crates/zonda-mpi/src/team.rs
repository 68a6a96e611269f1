//! The ranks of a communicator.

use crate::calls::{Mpi, Word};
use crate::error::MpiError;
use crate::flight::{Channel, Fault, Flight, Landed};
use crate::settings::Settings;
use crate::wait::{Ended, Waiter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use zonda_runtime::{Machine, fork};
use zonda_team::{Step, TeamError};

/// The ranks of a communicator, by MPI.
///
/// A program that allows MPI calls by one thread at a time (`MPI_THREAD_SERIALIZED`) has to see to that itself for two teams,
/// and for its own calls.
#[derive(Debug)]
pub struct MpiTeam {
    pub(crate) channel: Channel,
    waiter: Waiter,
    n_on_node: usize,
    /// The process that made it: a forked child must not call MPI.
    process: u32,
    /// A thread is in a step.
    is_busy: AtomicBool,
    /// A step failed.
    is_broken: AtomicBool,
}

/// A thread that is in a step. Nobody else is.
#[derive(Debug)]
pub(crate) struct InStep<'a> {
    pub(crate) team: &'a MpiTeam,
    step: Step<'a>,
}

impl Drop for InStep<'_> {
    fn drop(&mut self) {
        self.team.is_busy.store(false, Ordering::Release);
    }
}

/// The error of a flight.
fn team_error(mpi: &Mpi, step: Step<'_>, ended: Ended) -> TeamError {
    let (call, file) = (step.call.to_owned(), step.file.to_owned());
    let what = match ended {
        Ended::TimedOut { waited, whom } => {
            return TeamError::TimedOut { call, file, waited, whom };
        }
        Ended::Fault(Fault::Call(failed)) => mpi.error(failed).to_string(),
        Ended::Fault(Fault::Memory(bytes)) => {
            format!("no memory for {bytes} bytes that other ranks send")
        }
        Ended::Fault(Fault::Number(number)) => {
            format!("{number} is no number of a rank, or of what MPI can count")
        }
    };
    TeamError::Failed { call, file, what }
}

impl MpiTeam {
    /// A team of the ranks of a communicator, which comes as C passes it: in the low half of the word where handles have 32 bits. All of
    /// its ranks call this, and may free the communicator afterwards.
    ///
    /// # Errors
    /// See [`MpiError`].
    pub fn new(step: Step<'_>, comm: usize) -> Result<MpiTeam, MpiError> {
        MpiTeam::with_settings(step, comm, Settings::from_environment())
    }

    /// As [`MpiTeam::new`], of a communicator that a Fortran program passes.
    ///
    /// # Errors
    /// See [`MpiError`].
    pub fn from_fortran(step: Step<'_>, comm: i32) -> Result<MpiTeam, MpiError> {
        let mpi = Mpi::of_process()?;
        mpi.check_callable()?;
        let comm = mpi.fortran_comm(comm).unwrap_or(mpi.handles.comm_null);
        MpiTeam::new(step, comm)
    }

    /// As [`MpiTeam::new`], with settings that the environment does not have.
    ///
    /// # Errors
    /// See [`MpiError`].
    pub fn with_settings(
        step: Step<'_>,
        comm: usize,
        settings: Settings,
    ) -> Result<MpiTeam, MpiError> {
        let mpi = Mpi::of_process()?;
        mpi.check_callable()?;
        let comm = mpi.handle(comm);
        if comm == 0 || comm == mpi.handles.comm_null {
            return Err(MpiError::NullCommunicator);
        }
        let asked = |failed| mpi.error(failed);
        if mpi.is_inter(comm).map_err(asked)? {
            return Err(MpiError::InterCommunicator);
        }
        let (rank, size) = (mpi.rank(comm).map_err(asked)?, mpi.size(comm).map_err(asked)?);
        let most_bytes = settings.most_bytes();
        let mut channel = Channel { mpi, comm, rank, size, most_bytes };
        let processors = Machine::of_process().cpus().len();
        let waiter = Waiter { rank, is_crowded: size > processors, settings };
        channel.comm = duplicate(step, channel, &waiter)?;
        let mut team = MpiTeam {
            channel,
            waiter,
            n_on_node: 1,
            process: fork::process_id(),
            is_busy: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
        };
        mpi.let_errors_return(channel.comm).map_err(asked)?;
        let n_on_node = team.enter(step)?.count_node()?;
        team.n_on_node = n_on_node;
        team.waiter.is_crowded = team.n_on_node > processors;
        Ok(team)
    }

    /// Lets steps wait that long for other ranks from now on; for ever if `None`.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.waiter.settings.timeout = timeout;
    }

    pub(crate) fn n_on_node(&self) -> usize {
        self.n_on_node
    }

    /// Begins a step, in which this thread is alone and may call MPI.
    pub(crate) fn enter<'a>(&'a self, step: Step<'a>) -> Result<InStep<'a>, TeamError> {
        if self.is_broken.load(Ordering::Acquire) {
            let (call, file) = (step.call.to_owned(), step.file.to_owned());
            return Err(TeamError::Broken { call, file });
        }
        if self.is_busy.swap(true, Ordering::Acquire) {
            return Err(not_now(step, "another thread is in a call that waits for other ranks"));
        }
        let inside = InStep { team: self, step };
        if self.process != fork::process_id() {
            return Err(self.refuse(step, "a forked child must not call MPI"));
        }
        match self.channel.mpi.check_callable() {
            Ok(()) => Ok(inside),
            Err(why @ MpiError::ForbiddenThread) => Err(not_now(step, &why.to_string())),
            Err(MpiError::Finalized) => {
                Err(self.refuse(step, "MPI is finalized; close files before MPI_Finalize"))
            }
            Err(why) => Err(self.refuse(step, &why.to_string())),
        }
    }

    /// This rank cannot take part, so its team is of no use.
    fn refuse(&self, step: Step<'_>, what: &str) -> TeamError {
        self.is_broken.store(true, Ordering::Release);
        let (call, file) = (step.call.to_owned(), step.file.to_owned());
        TeamError::Failed { call, file, what: what.to_owned() }
    }
}

/// Another thread, or this one later, can make the step.
fn not_now(step: Step<'_>, what: &str) -> TeamError {
    TeamError::Refused {
        call: step.call.to_owned(),
        file: step.file.to_owned(),
        what: what.to_owned(),
    }
}

/// A communicator of the same ranks, which nobody else has.
fn duplicate(step: Step<'_>, channel: Channel, waiter: &Waiter) -> Result<Word, MpiError> {
    let begin = || {
        let mut flight = Flight::new(channel);
        let slot = flight.duplicate()?;
        Ok((slot, waiter.wait(step, flight)?))
    };
    match begin() {
        Ok((slot, mut landed)) => Ok(landed.numbers(slot)[0] as Word),
        Err(Ended::Fault(Fault::Call(failed))) => Err(channel.mpi.error(failed)),
        Err(ended) => Err(MpiError::Team(team_error(channel.mpi, step, ended))),
    }
}

impl InStep<'_> {
    /// Operations of this step, which `begin` begins.
    pub(crate) fn flight<T>(
        &self,
        begin: impl FnOnce(&mut Flight) -> Result<T, Fault>,
    ) -> Result<(T, Flight), TeamError> {
        let mut flight = Flight::new(self.team.channel);
        match begin(&mut flight) {
            Ok(begun) => Ok((begun, flight)),
            Err(fault) => Err(self.fail(Ended::Fault(fault))),
        }
    }

    /// Waits until a flight is over.
    pub(crate) fn land(&self, flight: Flight) -> Result<Landed, TeamError> {
        self.team.waiter.wait(self.step, flight).map_err(|ended| self.fail(ended))
    }

    /// Begins operations, and waits until they are over.
    pub(crate) fn fly<T>(
        &self,
        begin: impl FnOnce(&mut Flight) -> Result<T, Fault>,
    ) -> Result<(T, Landed), TeamError> {
        let (begun, flight) = self.flight(begin)?;
        Ok((begun, self.land(flight)?))
    }

    /// The team is of no use any more.
    pub(crate) fn fail(&self, ended: Ended) -> TeamError {
        self.team.is_broken.store(true, Ordering::Release);
        team_error(self.team.channel.mpi, self.step, ended)
    }

    /// This rank has no memory for what others sent, and took it all the same: the team goes on.
    pub(crate) fn without_memory(&self, bytes: usize) -> TeamError {
        let (call, file) = (self.step.call.to_owned(), self.step.file.to_owned());
        TeamError::NoMemory { call, file, bytes }
    }

    /// As [`InStep::fail`], for what no call of MPI says.
    pub(crate) fn refuse(&self, what: &str) -> TeamError {
        self.team.refuse(self.step, what)
    }

    /// A rank that the caller names has to exist.
    pub(crate) fn check_rank(&self, rank: usize) -> Result<(), TeamError> {
        let size = self.team.channel.size;
        if rank < size {
            return Ok(());
        }
        Err(self.refuse(&format!("there is no rank {rank} among {size}")))
    }
}

impl Drop for MpiTeam {
    fn drop(&mut self) {
        // What cannot be freed stays: operations may be under way on it, or nobody may call MPI here.
        if self.is_broken.load(Ordering::Acquire) || self.process != fork::process_id() {
            return;
        }
        let Channel { mpi, comm, .. } = self.channel;
        if mpi.check_callable().is_ok() {
            // There is nobody left to tell.
            let _ = mpi.free(comm);
        }
    }
}
