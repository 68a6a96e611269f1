//! A library that `tests/par` loads into programs of each MPI: all steps of a team against their definition, refusals, waits.
//! It has a C interface, since each program is compiled with the `mpi.h` of its MPI, and none with this one.
#![allow(unsafe_code)]

mod measure;
mod steps;

use std::ffi::{CStr, CString, c_char, c_int};
use std::io::Write;
use std::time::Duration;
use zonda_mpi::abi::{Kind, Table, Word};
use zonda_mpi::{MpiError, MpiTeam, Settings, info_from_fortran, info_value};
use zonda_team::{Message, Reduction, Step, Team, TeamError};

const STEP: Step<'static> = Step { call: "nc_selftest", file: "/x/y.nc" };

fn say(line: &str) {
    // In one piece: other ranks write there, too.
    let _ = std::io::stderr().lock().write_all(format!("selftest: {line}\n").as_bytes());
}

/// What failed, as a line and a status.
fn status(result: Result<(), String>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(why) => {
            say(&why);
            1
        }
    }
}

/// Gives all constants of a table: a value, or the name of the symbol whose address it is.
#[unsafe(no_mangle)]
extern "C" fn zonda_mpi_constants(
    kind: c_int,
    see: extern "C" fn(*const c_char, i64, *const c_char),
) {
    let kind = [Kind::Mpich, Kind::OpenMpi, Kind::Standard][kind as usize];
    let table = Table::of(kind);
    for (name, word) in table.handles.named() {
        match word {
            Word::Value(value) => see(name.as_ptr(), value as i64, std::ptr::null()),
            Word::Symbol(symbol) => see(name.as_ptr(), 0, symbol.as_ptr()),
        }
    }
    for (name, value) in [
        (c"MPI_STATUS_IGNORE", table.status_ignore as i64),
        (c"MPI_ANY_SOURCE", table.any_source.into()),
        (c"MPI_THREAD_SERIALIZED", table.thread_serialized.into()),
        (c"MPI_THREAD_FUNNELED", table.thread_funneled.into()),
        (c"MPI_MAX_INFO_KEY", table.max_info_key as i64),
        (c"sizeof(MPI_Comm)", table.handle_bytes as i64),
    ] {
        see(name.as_ptr(), value, std::ptr::null());
    }
}

/// All steps against their definition. `round_bytes` is 0 for the usual ones.
#[unsafe(no_mangle)]
extern "C" fn zonda_mpi_selftest(comm: usize, seed: u64, round_bytes: usize) -> c_int {
    let mut settings = Settings::from_environment();
    settings.round_bytes = (round_bytes > 0).then_some(round_bytes);
    let made = MpiTeam::with_settings(STEP, comm, settings).map_err(|why| why.to_string());
    status(made.and_then(|team| steps::check(&team, seed)))
}

/// Steps with more than 2^31 bytes.
#[unsafe(no_mangle)]
extern "C" fn zonda_mpi_large(comm: usize) -> c_int {
    let made = MpiTeam::new(STEP, comm).map_err(|why| why.to_string());
    status(made.and_then(|team| steps::large(&team)))
}

/// The number of an answer, and its text on standard error.
fn refused(made: Result<MpiTeam, MpiError>) -> c_int {
    let Err(why) = made else { return 0 };
    say(&why.to_string());
    match why {
        MpiError::NoMpi | MpiError::NotLoaded { .. } => 1,
        MpiError::TwoMpis { .. } => 2,
        MpiError::UnknownMpi { .. } => 3,
        MpiError::Lacks { .. } => 4,
        MpiError::NotInitialized => 5,
        MpiError::Finalized => 6,
        MpiError::NullCommunicator => 7,
        MpiError::InterCommunicator => 8,
        MpiError::ForbiddenThread => 9,
        MpiError::Call { .. } => 10,
        MpiError::Team(_) => 11,
    }
}

/// Why no team is made of a communicator; 0 if one is.
#[unsafe(no_mangle)]
extern "C" fn zonda_mpi_refused(comm: usize) -> c_int {
    refused(MpiTeam::new(STEP, comm))
}

/// The same of a communicator of Fortran.
#[unsafe(no_mangle)]
extern "C" fn zonda_mpi_refused_fortran(comm: c_int) -> c_int {
    refused(MpiTeam::from_fortran(STEP, comm))
}

/// How many ranks the communicator of Fortran has, and the same by one more step; -1 if there is no team.
#[unsafe(no_mangle)]
extern "C" fn zonda_mpi_count_fortran(comm: c_int) -> c_int {
    let Ok(team) = MpiTeam::from_fortran(STEP, comm) else { return -1 };
    let mut count = [1];
    match team.reduce(STEP, Reduction::Sum, &mut count) {
        Ok(()) if count[0] == team.size() as u64 => team.size() as c_int,
        _ => -1,
    }
}

/// What an Info has under a key: bytes of it at `value` (256), 1 if it has it, 0 if not, -1 if there is an error.
///
/// # Safety
/// `key` is a NUL-terminated text, `value` valid for writes of 256 bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn zonda_mpi_info(
    info: usize,
    of_fortran: c_int,
    key: *const c_char,
    value: *mut c_char,
) -> c_int {
    // SAFETY: by contract.
    let key = unsafe { CStr::from_ptr(key) }.to_string_lossy();
    let info = if of_fortran != 0 { info_from_fortran(info as i32) } else { Ok(info) };
    match info.and_then(|info| info_value(info, &key)) {
        Ok(Some(text)) => {
            let text = CString::new(text).unwrap_or_default();
            let bytes = text.as_bytes_with_nul();
            assert!(bytes.len() <= 256);
            // SAFETY: as many bytes as there is room for, by the line above and the contract.
            unsafe { value.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
            1
        }
        Ok(None) => 0,
        Err(why) => {
            say(&why.to_string());
            -1
        }
    }
}

/// One step of each kind; a message goes from each rank to each.
fn one_step(team: &MpiTeam, which: c_int) -> Result<(), TeamError> {
    match which {
        0 => team.reduce(STEP, Reduction::Max, &mut [1]),
        // All but the root may be through before it comes, so they say that they have it.
        1 => team.broadcast(STEP, team.size() - 1, &mut vec![7; 100_000]),
        2 => team.gather(STEP, 0, &[1, 2, 3]).and_then(|_| team.meet(STEP)),
        3 => {
            let all = (0..team.size()).map(|rank| Message { rank, bytes: vec![1; 9] });
            team.exchange(STEP, all.collect()).map(drop)
        }
        _ => team.scan(STEP, &mut [1]).and_then(|()| team.meet(STEP)),
    }
}

/// A step to which one rank, the last one, does not come. 0 if that is an error in time, and each step after it another one.
#[unsafe(no_mangle)]
extern "C" fn zonda_mpi_absent(comm: usize, which: c_int) -> c_int {
    let mut team = match MpiTeam::new(STEP, comm) {
        Ok(team) => team,
        Err(why) => return status(Err(why.to_string())),
    };
    if team.rank() == team.size() - 1 {
        return 0;
    }
    team.set_timeout(Some(Duration::from_millis(400)));
    let first = one_step(&team, which);
    let second = one_step(&team, 0);
    match (first, second) {
        (Err(TeamError::TimedOut { .. }), Err(TeamError::Broken { .. })) => 0,
        other => status(Err(format!("rank {} step {which}: {other:?}", team.rank()))),
    }
}

/// A communicator of which one rank does not make a team.
#[unsafe(no_mangle)]
extern "C" fn zonda_mpi_absent_at_new(comm: usize) -> c_int {
    let mut settings = Settings::from_environment();
    settings.timeout = Some(Duration::from_millis(400));
    match MpiTeam::with_settings(STEP, comm, settings) {
        Err(MpiError::Team(TeamError::TimedOut { .. })) => 0,
        other => status(Err(format!("{other:?}"))),
    }
}

/// A step to which the last rank comes when there is a file of this name: until then the others say, each 300 ms, that they wait.
///
/// # Safety
/// `path` is a NUL-terminated text.
#[unsafe(no_mangle)]
unsafe extern "C" fn zonda_mpi_late(comm: usize, path: *const c_char) -> c_int {
    // SAFETY: by contract.
    let path = unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned();
    let mut settings = Settings::from_environment();
    settings.say_every = Duration::from_millis(300);
    let check = || {
        let team = MpiTeam::with_settings(STEP, comm, settings).map_err(|why| why.to_string())?;
        while team.rank() == team.size() - 1 && !std::path::Path::new(&path).exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        team.meet(STEP).map_err(|why| why.to_string())
    };
    status(check())
}

/// A team that was made by this thread, and a step by another one. 0 if the step is refused (`is_refused`), or is not.
#[unsafe(no_mangle)]
extern "C" fn zonda_mpi_thread(comm: usize, is_refused: c_int) -> c_int {
    let check = || {
        let team = MpiTeam::new(STEP, comm).map_err(|why| why.to_string())?;
        let step = std::thread::scope(|scope| {
            scope.spawn(|| team.reduce(STEP, Reduction::Sum, &mut [1])).join()
        });
        match step {
            Ok(Err(TeamError::Refused { what, .. })) if is_refused != 0 => {
                if what.contains("main thread only") { Ok(()) } else { Err(what) }
            }
            Ok(Ok(())) if is_refused == 0 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    };
    status(check())
}

/// A team whose last owner is a forked child, or that ends after `MPI_Finalize`: kept for `zonda_mpi_end`.
#[unsafe(no_mangle)]
extern "C" fn zonda_mpi_keep(comm: usize) -> *mut MpiTeam {
    MpiTeam::new(STEP, comm).map_or(std::ptr::null_mut(), |team| Box::into_raw(Box::new(team)))
}

/// A step, which must be refused with these words, and the end of the team.
///
/// # Safety
/// `team` is of `zonda_mpi_keep`, and not used again; `words` is a NUL-terminated text.
#[unsafe(no_mangle)]
unsafe extern "C" fn zonda_mpi_end(team: *mut MpiTeam, words: *const c_char) -> c_int {
    // SAFETY: by contract.
    let (team, words) = unsafe { (Box::from_raw(team), CStr::from_ptr(words).to_string_lossy()) };
    match team.reduce(STEP, Reduction::Sum, &mut [1]) {
        Err(why) if why.to_string().contains(&*words) => 0,
        other => status(Err(format!("{other:?}, expected {words}"))),
    }
}

/// So many teams, one after the other: each gives back its communicator, of which MPIs have some thousands at most.
#[unsafe(no_mangle)]
extern "C" fn zonda_mpi_many(comm: usize, count: c_int) -> c_int {
    status((0..count).try_for_each(|at| match MpiTeam::new(STEP, comm) {
        Ok(_) => Ok(()),
        Err(why) => Err(format!("team {at}: {why}")),
    }))
}

/// Times, as lines on standard output of rank 0.
#[unsafe(no_mangle)]
extern "C" fn zonda_mpi_measure(comm: usize) -> c_int {
    status(measure::measure(comm))
}
