//! A file of any format that several ranks have open: what one of them has of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zonda_format::{
    Capabilities, Dispatch, DispatchWrite, Error, GroupId, Reserve, Result, UnfilledRun, VarRef,
};
use zonda_model::{Answer, NcError};
use zonda_runtime::lock::{Mutex, Rank};
use zonda_storage::Striping;
use zonda_team::{Message, Mine, Reduction, Step, Team, TeamError, agree, agree_and_reduce};

use crate::behind::ChunksBehind;
use crate::common::{ParallelError, common};
use crate::hints::Hints;
use crate::kept::KeptPuts;
use crate::later::LaterPut;
use crate::ledger::Ledger;
use crate::queue::PutNotes;
use crate::replica::Replica;
use crate::said::{Said, first_difference};
use crate::uncommitted::Uncommitted;

/// How many numbers of ranks come together when they agree: see the calls of [`ParallelFile::agree`].
pub(crate) const MORE: usize = 21;

/// Where it is what went wrong with puts that waited in a queue.
pub(crate) const FAILED: usize = 11;

/// Calls by which a rank means to leave: after an error in one it may not come again.
pub(crate) const LAST_CALLS: [&str; 2] = ["nc_close", "nc_abort"];

/// What one rank has of a file that several opened together. It is a file as any other: definitions, puts and gets are its methods, and
/// those that all ranks make together come together by themselves.
#[derive(Debug)]
pub struct ParallelFile {
    pub(crate) file: Box<dyn Dispatch>,
    pub(crate) team: Arc<dyn Team>,
    pub(crate) replica: Arc<Replica>,
    /// How messages name the file.
    pub(crate) name: String,
    pub(crate) said: Said,
    pub(crate) access: AccessModes,
    /// The put that was checked and that all ranks make together.
    pub(crate) begun: Option<VarRef>,
    pub(crate) n_puts_together: u64,
    /// Attributes with other values than on rank 0 are an error.
    pub(crate) wants_equal_attributes: bool,
    /// What the program asked for, the same on all ranks.
    pub(crate) hints: Hints,
    /// Over which stripes the file system has spread the file, where it says so.
    pub(crate) striping: Option<Striping>,
    /// It was said that attributes have other values.
    pub(crate) has_warned: bool,
    /// Puts of this rank whose elements lie in the definitions, since the last commit.
    pub(crate) later: Vec<LaterPut>,
    /// Places that are in the file and have to be filled: all ranks have the same list.
    pub(crate) unfilled: Vec<UnfilledRun>,
    /// Giving places ended with an error.
    pub(crate) is_unplaced: bool,
    /// Why there are places that are not filled, where an error left some: its code and its text.
    pub(crate) unfilled_why: Option<(NcError, String)>,
    /// Puts that wait in queues of ranks.
    pub(crate) notes: PutNotes,
    /// Chunks of puts that returned before these had places.
    pub(crate) behind: ChunksBehind,
    /// What no commit has.
    pub(crate) uncommitted: Uncommitted,
    /// Chunks that wait with their owners.
    pub(crate) ledger: Ledger,
    /// What this rank put alone to chunks that have owners.
    pub(crate) kept: KeptPuts,
    /// How many bytes of chunks may wait on all ranks together.
    pub(crate) waiting_limit: u64,
    /// Bytes that all ranks put to such variables since the last commit.
    pub(crate) put_bytes: u64,
    /// Ranks lost each other, or their definitions: the file can only be closed.
    is_lost: AtomicBool,
    /// What rank 0 holds while the file is open, such as the lock of writers.
    lock: Option<Box<dyn std::any::Any + Send + Sync>>,
}

/// Which puts all ranks make together.
#[derive(Debug)]
pub(crate) struct AccessModes {
    /// One switch for the whole file.
    is_of_file: bool,
    is_all: AtomicBool,
    vars: Mutex<BTreeSet<(u16, i32)>>,
}

impl AccessModes {
    pub(crate) fn is_collective(&self, of: VarRef) -> bool {
        self.is_all.load(Ordering::Relaxed) || self.vars.lock().contains(&key(of))
    }

    /// Whether one switch is that of the whole file.
    pub(crate) fn is_of_file(&self) -> bool {
        self.is_of_file
    }

    pub(crate) fn set(&self, of: VarRef, is_collective: bool) {
        if self.is_of_file {
            self.is_all.store(is_collective, Ordering::Relaxed);
            return;
        }
        let mut vars = self.vars.lock();
        if is_collective {
            vars.insert(key(of))
        } else {
            vars.remove(&key(of))
        };
    }
}

/// `NC_FORMATX_PNETCDF`: what the reference says of classic files that ranks opened together.
const PNETCDF: i32 = 4;

fn key(of: VarRef) -> (u16, i32) {
    (of.group.0, of.var.0)
}

impl ParallelFile {
    /// Prepares a file that was opened on a replica: to be called in the step that opens it.
    ///
    /// # Errors
    /// `NC_ENOPAR` for a format that ranks cannot write together, where the file is open for writing.
    pub fn join(file: &mut dyn Dispatch) -> Result<()> {
        // What definitions there are is read by one rank for all.
        file.definitions().check_group(GroupId::ROOT)?;
        if !file.is_writable() {
            return Ok(());
        }
        file.writer().ok_or_else(Error::only_read)?.in_team()?.join_team()
    }

    /// The file of a rank, on its replica of the storage. All ranks call it with equal files, which are open and were prepared
    /// ([`ParallelFile::join`]).
    ///
    /// # Errors
    /// Those of the ranks that come together, and of the places that data get.
    pub fn new(
        file: Box<dyn Dispatch>,
        team: Arc<dyn Team>,
        replica: Arc<Replica>,
        name: &std::path::Path,
        lock: Option<Box<dyn std::any::Any + Send + Sync>>,
    ) -> Result<ParallelFile> {
        let name = name.display().to_string();
        let access = AccessModes {
            // As in PnetCDF, by which the reference writes these.
            is_of_file: !file.capabilities().dialect.is_netcdf4(),
            is_all: AtomicBool::new(false),
            vars: Mutex::ranked(Rank::AccessModes, BTreeSet::new()),
        };
        let mut parallel = ParallelFile {
            file,
            team,
            replica,
            name,
            said: Said::default(),
            access,
            begun: None,
            n_puts_together: 0,
            wants_equal_attributes: false,
            hints: Hints::default(),
            striping: None,
            has_warned: false,
            later: Vec::new(),
            unfilled: Vec::new(),
            is_unplaced: false,
            unfilled_why: None,
            notes: PutNotes::default(),
            behind: ChunksBehind::default(),
            uncommitted: Uncommitted::default(),
            ledger: Ledger::default(),
            kept: KeptPuts::default(),
            waiting_limit: 0,
            put_bytes: 0,
            is_lost: AtomicBool::new(false),
            lock,
        };
        // Elements that no program wrote yet may have no place in a file that is there, as in HDF5.
        if let Some(shared) = parallel.in_team().ok().and_then(|file| file.shared_chunks()) {
            parallel.waiting_limit = shared.waiting_limit();
        }
        if parallel.file.is_writable() && !parallel.file.in_define_mode() {
            parallel.place_and("nc_open_par", Reserve::Default, |_| Ok(()))?;
        }
        Ok(parallel)
    }

    /// Has all ranks get an error where attributes have other values on some rank, instead of those of rank 0 and a warning.
    pub fn want_equal_attributes(&mut self, wants: bool) {
        self.wants_equal_attributes = wants;
    }

    /// What it is to the caller: as the format below, but puts are made one after the other.
    pub(crate) fn shown_capabilities(&self) -> &'static Capabilities {
        const CLASSIC: &Capabilities =
            &Capabilities { shared_puts: false, formatx: PNETCDF, ..Capabilities::CLASSIC };
        let below = self.file.capabilities();
        if below.shared_puts { CLASSIC } else { below }
    }

    /// The ranks that have it open.
    #[must_use]
    pub fn team(&self) -> &dyn Team {
        &*self.team
    }

    pub(crate) fn step<'a>(&'a self, call: &'a str) -> Step<'a> {
        Step { call, file: &self.name }
    }

    /// The file is of no use any more.
    pub(crate) fn lose<E>(&self, error: E) -> E {
        self.is_lost.store(true, Ordering::Release);
        error
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Sends messages to some ranks, and gives those that were sent to this one. The outer error is that of ranks that lost each other, the
    /// inner one that of this rank, which has no memory for them.
    pub(crate) fn exchange(
        &self,
        call: &'static str,
        messages: Vec<Message>,
    ) -> Result<Result<Vec<Message>>> {
        self.without_loss(self.team.exchange(self.step(call), messages))
    }

    /// As [`ParallelFile::exchange`], where all know who sends what ([`Team::exchange_known`]).
    pub(crate) fn exchange_known(
        &self,
        call: &'static str,
        messages: Vec<(Message, usize)>,
        expected: &[(usize, usize)],
    ) -> Result<Result<Vec<Message>>> {
        self.without_loss(self.team.exchange_known(self.step(call), messages, expected))
    }

    /// A lack of memory is this rank's own error, after which the ranks go on.
    fn without_loss<T>(&self, done: std::result::Result<T, TeamError>) -> Result<Result<T>> {
        match done {
            Err(error @ TeamError::NoMemory { .. }) => {
                Ok(Err(Error::with_text(NcError::NoMem, error.to_string())))
            }
            done => done.map(Ok).map_err(|error| self.lost_team(error)),
        }
    }

    /// Refuses what needs the other ranks, once they are lost.
    pub(crate) fn check_whole(&self) -> Result<()> {
        if !self.is_lost() {
            return Ok(());
        }
        let why = "ranks lost each other in an earlier call, or defined different things: the file can only be closed, and has what \
                   was committed before";
        Err(Error::answered(NcError::Mpi, Answer::Request, why))
    }

    pub(crate) fn lost_team(&self, error: TeamError) -> Error {
        self.lose(of_team(&error))
    }

    /// Comes together with the other ranks, as the first step of a call: all must make the same one, with the same definitions before it. Gives
    /// the greatest status of a rank, and makes each of `more`, of which all calls have the same number, the greatest of all ranks. A put is
    /// one to the variable `of`.
    pub(crate) fn agree(
        &mut self,
        call: &'static str,
        of: Option<VarRef>,
        status: u64,
        more: &mut [u64; MORE],
    ) -> Result<u64> {
        self.check_whole()?;
        if self.team.size() == 1 {
            return Ok(status);
        }
        let step = Step { call, file: &self.name };
        let detail = of.map(numbers_of);
        let detail = detail.as_ref().map_or(&[][..], |numbers| numbers);
        let mine = hash_of(call, detail) ^ self.said.hash();
        let what =
            || of.map_or_else(|| call.to_owned(), |of| format!("{call}({})", self.object(of)));
        let mut numbers = [0; MORE + 1];
        numbers[..MORE].copy_from_slice(more);
        numbers[MORE] = u64::from(LAST_CALLS.contains(&call));
        let found = agree_and_reduce(&*self.team, step, (mine, status), &mut numbers, what);
        let found = found.map_err(|error| match error {
            // The others wait for this rank, which can make the call in another thread.
            TeamError::Refused { .. } => of_team(&error),
            _ => self.lost_team(error),
        })?;
        more.copy_from_slice(&numbers[..MORE]);
        let Some(differing) = found.differing else { return Ok(found.status) };
        let ((_, first), (other_rank, other)) = (&differing.first, &differing.other);
        if first != other {
            let error = different_calls(first, *other_rank, other);
            // The file is what it was, but for ranks that have it no more: the others would wait for them in each later call.
            return Err(if numbers[MORE] == 0 { error } else { self.lose(error) });
        }
        Err(self.differing_definitions(call)?)
    }

    /// Which definition of which ranks differs.
    fn differing_definitions(&self, call: &'static str) -> Result<Error> {
        let step = self.step(call);
        let fail = |error| self.lost_team(error);
        let lists = self.team.gather(step, 0, &self.said.hashes()).map_err(fail)?;
        let mut number = (first_difference(&lists) as u64).to_le_bytes().to_vec();
        self.team.broadcast(step, 0, &mut number).map_err(fail)?;
        let number = number.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let what = self.said.text(number);
        let mine = Mine { what, hash: hash_of(what, b""), status: 0 };
        let found = agree(&*self.team, step, &mine).map_err(fail)?;
        let text = match found.differing {
            Some(differing) => {
                let ((_, first), (rank, other)) = (differing.first, differing.other);
                format!(
                    "ranks defined different things: rank 0 {first}, rank {rank} {other}; all ranks have to make the same definitions \
                     in the same order"
                )
            }
            None => format!("ranks defined different things by {what}: its arguments differ"),
        };
        Ok(self.lose(Error::answered(NcError::Mpi, Answer::Request, text)))
    }

    /// Carries out a step on rank 0, and on the others over its record.
    pub(crate) fn common<T>(
        &mut self,
        call: &'static str,
        work: impl FnOnce(&mut dyn DispatchWrite) -> Result<T>,
    ) -> Result<T> {
        let ParallelFile { file, team, replica, name, is_lost, .. } = self;
        let step = Step { call, file: name };
        let work = || work(file.writer().ok_or_else(Error::only_read)?);
        common(&**team, step, replica, work).unwrap_or_else(|error| {
            is_lost.store(true, Ordering::Release);
            Err(of_step(error))
        })
    }

    /// All ranks learn of an error that one of them had with the storage: its own error for who had one, and its code for the
    /// others.
    pub(crate) fn share<T>(&self, call: &'static str, own: Result<T>) -> Result<T> {
        if self.team.size() == 1 {
            return own;
        }
        let status = own.as_ref().err().map_or(0, status_of);
        let mut worst = [status];
        let told = self.team.reduce(self.step(call), Reduction::Max, &mut worst);
        told.map_err(|error| self.lost_team(error))?;
        with_worst(own, worst[0])
    }

    /// Comes together with the other ranks at the end of a file that all only read: a program that has closed it may change it or put another in
    /// its place, and then no rank may still be reading. The file has ended then, and after an error too, unless the call can be made again.
    ///
    /// # Errors
    /// `NC_EMPI`, with whether the file has ended.
    pub fn leave(&mut self) -> std::result::Result<(), (Error, bool)> {
        let left = self.agree("nc_close", None, 0, &mut [0; MORE]);
        left.map(drop).map_err(|error| (error, self.is_lost()))
    }

    /// The file ends: nothing is held any more.
    pub(crate) fn let_go(&mut self) {
        self.replica.queue().end();
        self.lock = None;
    }
}

impl Drop for ParallelFile {
    fn drop(&mut self) {
        // A program that does not close has put, too.
        self.replica.queue().end();
    }
}

/// What a rank makes of its own result and of the greatest status of all ranks ([`status_of`]): all of them have one code. Who had the error of
/// that code keeps its words.
///
/// # Errors
/// As said.
pub fn with_worst<T>(own: Result<T>, worst: u64) -> Result<T> {
    match own {
        own if worst == 0 => own,
        Err(own) if status_of(&own) == worst => Err(own),
        _ => {
            let code = code_of(worst);
            let why = "another rank could not do its part";
            Err(Error::answered(code, Answer::of_code(code), format!("{code}: {why}")))
        }
    }
}

pub(crate) fn different_calls(first: &str, rank: usize, other: &str) -> Error {
    let is_put = [first, other].iter().any(|call| call.starts_with(crate::put::CALL));
    // Where one puts alone, and another one together with all.
    let or = if is_put { ", or a rank did not call nc_var_par_access" } else { "" };
    let text = format!(
        "ranks make different calls: rank 0 {first}, rank {rank} {other}; all ranks have to make the same ones in the same order{or}"
    );
    Error::answered(NcError::Mpi, Answer::Request, text)
}

/// A hash of a call and of what is to be the same about it.
pub(crate) fn hash_of(call: &str, detail: &[u8]) -> u128 {
    let mut said = Said::default();
    said.call(call.to_owned(), detail);
    said.hash()
}

/// The numbers of a variable, as bytes.
fn numbers_of(var: VarRef) -> [u8; 6] {
    let ([a, b], [c, d, e, f]) = (var.group.0.to_le_bytes(), var.var.0.to_le_bytes());
    [a, b, c, d, e, f]
}

/// An error as a number that is greater than 0.
#[must_use]
pub fn status_of(error: &Error) -> u64 {
    u64::from(error.code().code().cast_unsigned()).max(1)
}

/// The code that is in such a number.
pub(crate) fn code_of(status: u64) -> NcError {
    let code = u32::try_from(status).unwrap_or_default().cast_signed();
    NcError::from_code(code).unwrap_or(NcError::Io)
}

/// The error of a call whose ranks did not come together, or did different things.
#[must_use]
pub fn of_step(error: ParallelError) -> Error {
    Error::answered(NcError::Mpi, Answer::Request, error.to_string())
}

/// The error of a call whose ranks did not come together.
#[must_use]
pub fn of_team(error: &TeamError) -> Error {
    Error::answered(NcError::Mpi, Answer::Request, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ranks_have_one_code() {
        let full = || Error::with_text(NcError::System(28), "no room at byte 7");
        let broken = || Error::with_text(NcError::System(5), "broken at byte 9");
        let worst = status_of(&full()).max(status_of(&broken()));
        let results = [Ok(()), Err(full()), Err(broken())].map(|own| with_worst(own, worst));
        let errors = results.map(Result::unwrap_err);
        assert!(errors.iter().all(|error| error.code() == errors[0].code()), "{errors:?}");
        // Who had that error keeps its words.
        assert_eq!(errors.iter().filter(|error| error.to_string().contains("at byte")).count(), 1);
        assert!(with_worst(Ok(()), 0).is_ok());
    }
}
