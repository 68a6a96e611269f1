//! A command that a launcher of MPI has started several times, as `mpiexec -n 4 zonda copy a.nc b.nc` does.
//!
//! All ranks would make the same file, or print the same text. So rank 0 alone writes and speaks. `copy`, `check` and `nccopy` divide what takes
//! the time: they load the MPI of the launcher, and the other ranks do what rank 0 orders. Of other commands rank 0 does all of the work.
//!
//! Other processes have the variables of a launcher, too: what a rank of a model starts by `system`, and what a script starts that ranks run, each
//! with files of its own. They have work of their own. So it counts as well whether the parent is a launcher.

use std::ffi::OsStr;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::sync::{Arc, mpsc};

use zonda::mpi::World;
use zonda::ranks::Lead;
use zonda::team::{Step, Team};
use zonda_runtime::lock::{Global, Rank};
use zonda_runtime::worker::{self, Purpose};

use crate::failure::{CommandFailure, Result};
use crate::tuning::{LEAD_SAYS_EVERY, OTHERS_SAY_EVERY};

/// Variables with the number of a rank, and with how many there are.
const LAUNCHERS: [(&str, &str); 7] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];

/// What processes are called that start ranks, as far as Linux keeps their names (15 bytes).
const PARENTS: [&str; 15] = [
    "hydra_pmi_proxy",
    "pmi_proxy",
    "hydra_bstrap_pr",
    "orted",
    "orterun",
    "prted",
    "prte",
    "prterun",
    "mpirun",
    "mpirun.openmpi",
    "mpiexec",
    "mpiexec.openmpi",
    "palsd",
    "flux-shell",
    "slurmstepd",
];

/// A process among those that a launcher has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Started {
    rank: usize,
    size: usize,
}

/// What this process does of a command that ranks divide.
#[derive(Debug)]
pub(crate) enum Part {
    /// All of it.
    Alone,
    /// It is rank 0, and leads others.
    Lead(Arc<Lead>),
    /// It does what rank 0 orders.
    Follow(Follower),
    /// Rank 0 does all of it.
    Nothing,
}

/// A rank that does what rank 0 orders.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) team: Arc<dyn Team>,
    call: &'static str,
    file: String,
}

impl Follower {
    /// What it does, for messages about waiting.
    pub(crate) fn step(&self) -> Step<'_> {
        Step { call: self.call, file: &self.file }
    }

    /// Tells that the ranks have lost each other, which rank 0 may not know.
    pub(crate) fn ended(&self, followed: zonda::Result<()>) {
        if let Err(error) = followed {
            eprintln!("zonda: rank {}: {}", self.team.rank(), error.line());
            let session = SESSION.lock().take();
            if let Some(session) = session {
                session.world.abort(1);
            }
        }
    }
}

/// MPI, as long as the command uses it.
struct Session {
    world: World,
    lead: Option<Arc<Lead>>,
}

static SESSION: Global<Option<Session>> = Global::new(Rank::Settings, None, || None);

/// The part of this process in a command about a file that ranks divide: loads the MPI of the launcher. Where that cannot be, rank 0 says
/// why, and does all of it. `refusal` is why the command cannot be divided this time.
///
/// # Errors
/// Ranks that were called with different arguments.
pub(crate) fn part(call: &'static str, file: &Path, refusal: Option<&str>) -> Result<Part> {
    let Some(Started { rank, size }) = found() else { return Ok(Part::Alone) };
    let file = zonda::shown_name(file).display().to_string();
    let joined = match refusal {
        Some(why) => Err(why.to_owned()),
        None => join(rank, size, call, &file),
    };
    match joined {
        Ok(Some(part)) => Ok(part),
        Ok(None) | Err(_) if rank > 0 => Ok(Part::Nothing),
        Ok(None) => {
            let why = "ranks were called with different arguments: start different commands one by one, or in scripts";
            Err(CommandFailure::Usage(why.to_owned()))
        }
        Err(why) => {
            eprintln!("zonda: {size} ranks were started, but rank 0 does all of the work: {why}");
            Ok(Part::Alone)
        }
    }
}

/// Joins the other ranks; `None` where they have other arguments.
///
/// # Errors
/// Why rank 0 has to work alone, in words.
fn join(
    rank: usize,
    size: usize,
    call: &'static str,
    file: &str,
) -> std::result::Result<Option<Part>, String> {
    let launcher = std::fs::read_link(format!("/proc/{}/exe", parent_id())).ok();
    let world = {
        let _told = TellsOfWait::new(rank);
        World::begin(launcher.as_deref()).map_err(|error| error.cause())?
    };
    let mpi = world.size();
    if mpi != size {
        world.end();
        return Err(format!(
            "the MPI that was found counts {mpi}, so it is not that of the launcher; name that by ZONDA_MPI=/path/to/libmpi.so"
        ));
    }
    // The others wait for rank 0 whenever that is at work.
    let say_every = if rank == 0 { LEAD_SAYS_EVERY } else { OTHERS_SAY_EVERY };
    let team = world.team(call, file, say_every).map_err(|error| error.cause())?;
    let mut args = Vec::new();
    for arg in std::env::args_os() {
        args.extend_from_slice(arg.as_encoded_bytes());
        args.push(0);
    }
    let alike = zonda::ranks::are_alike(&*team, Step { call, file }, &args);
    if !alike.map_err(|error| error.cause())? {
        drop(team);
        world.end();
        return Ok(None);
    }
    let lead = (team.rank() == 0).then(|| Arc::new(Lead::new(Arc::clone(&team), call, file)));
    let session = Session { world, lead: lead.clone() };
    *SESSION.lock() = Some(session);
    Ok(Some(match lead {
        Some(lead) => Part::Lead(lead),
        None => Part::Follow(Follower { team, call, file: file.to_owned() }),
    }))
}

/// Says on rank 0 that `MPI_Init_thread` waits for other ranks, which may lack the library.
struct TellsOfWait(
    #[expect(dead_code, reason = "its end is what it tells")] Option<mpsc::Sender<()>>,
);

impl TellsOfWait {
    fn new(rank: usize) -> TellsOfWait {
        if rank > 0 {
            return TellsOfWait(None);
        }
        let (begun, is_begun) = mpsc::channel();
        let tell = move || {
            let mut seconds = 0;
            while is_begun.recv_timeout(LEAD_SAYS_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                seconds += LEAD_SAYS_EVERY.as_secs();
                eprintln!(
                    "zonda: rank 0 has waited {seconds} s in MPI_Init_thread for other ranks: do all nodes have the library of MPI?"
                );
            }
        };
        // Without the thread, it waits in silence.
        let _thread = worker::spawn(String::from("zonda-watch"), Purpose::Watch, tell);
        TellsOfWait(Some(begun))
    }
}

/// Has the other ranks end, and ends MPI: before the process does, in whichever way. Whether there was one.
pub(crate) fn finish() -> bool {
    let session = SESSION.lock().take();
    let Some(Session { world, lead }) = session else { return false };
    let is_lost = lead.is_some_and(|lead| {
        lead.end();
        lead.is_lost()
    });
    // Where ranks have lost each other, some would wait for ever.
    if is_lost {
        world.abort(1)
    } else {
        world.end()
    }
    true
}

/// Whether this is another rank than the first one, which alone says what is wrong with a call.
pub(crate) fn is_silent() -> bool {
    found().is_some_and(|found| found.rank > 0)
}

/// Whether another process does the work of this one. Rank 0 says once that it works alone.
pub(crate) fn leaves_to_rank_0() -> bool {
    let found = found();
    if let Some(Started { rank: 0, size }) = found {
        eprintln!(
            "zonda: {size} ranks were started, but the command does not divide its work: rank 0 does all of it"
        );
    }
    found.is_some_and(|found| found.rank > 0)
}

/// Which of several ranks this process is.
fn found() -> Option<Started> {
    let name = std::fs::read(format!("/proc/{}/comm", parent_id()));
    let parent = name.unwrap_or_default();
    let parent = String::from_utf8_lossy(&parent);
    of(|name| std::env::var(name).ok(), parent.trim_end())
}

/// Which of several ranks this is, by the variables and the name of the parent.
fn of(variable: impl Fn(&str) -> Option<String>, parent: &str) -> Option<Started> {
    let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
    let both =
        |(rank, size): &(&str, &str)| Some(Started { rank: number(rank)?, size: number(size)? });
    let found = LAUNCHERS.iter().find_map(both)?;
    let is_rank = found.size > 1 && found.rank < found.size && PARENTS.contains(&parent);
    is_rank.then_some(found)
}

/// Whether ranks divide the work of a command.
pub(crate) fn is_divided(command: Option<&OsStr>) -> bool {
    command.is_some_and(|word| ["copy", "check"].into_iter().any(|known| word == known))
}

/// Whether a command is for each rank: `zonda run` starts programs, which are the ranks, `zonda iod` serves one program, and
/// `zonda info --runtime` tells of one process.
pub(crate) fn is_for_each_rank(command: Option<&OsStr>) -> bool {
    command.is_some_and(|word| ["run", "iod", "info"].into_iter().any(|known| word == known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)], parent: &str) -> Option<(usize, usize)> {
        let of_name = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        of(of_name, parent).map(|found| (found.rank, found.size))
    }

    #[test]
    fn ranks_of_each_launcher() {
        for (rank, size) in LAUNCHERS {
            for parent in PARENTS {
                assert!(parent.len() <= 15, "{parent}");
                assert_eq!(found(&[(rank, "2"), (size, "4")], parent), Some((2, 4)));
            }
            assert_eq!(found(&[(rank, "0"), (size, "1")], "orted"), None);
            assert_eq!(found(&[(rank, "4"), (size, "4")], "orted"), None);
            assert_eq!(found(&[(rank, "x"), (size, "4")], "orted"), None);
            assert_eq!(found(&[(rank, "1")], "orted"), None);
        }
        assert_eq!(found(&[], "orted"), None);
    }

    /// A rank of a model that starts a command has work of its own for it, as has a script that ranks run.
    #[test]
    fn children_of_ranks_are_no_ranks() {
        for parent in ["sh", "bash", "model", "python3", ""] {
            assert_eq!(found(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")], parent), None);
        }
    }

    #[test]
    fn commands_for_each_rank() {
        for (word, is) in
            [("run", true), ("iod", true), ("info", true), ("copy", false), ("check", false)]
        {
            assert_eq!(is_for_each_rank(Some(OsStr::new(word))), is);
            assert_eq!(is_divided(Some(OsStr::new(word))), !is);
        }
        assert!(!is_for_each_rank(None));
    }
}
