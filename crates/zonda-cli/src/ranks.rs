//! A command that a launcher of MPI has started several times, as `mpiexec -n 4 zonda copy a.nc b.nc` does.
//!
//! Commands do not call MPI and do not divide their work. All ranks would make the same file, or print the same text, so rank 0
//! alone goes on.
//!
//! Other processes have the variables of a launcher, too: what a rank of a model starts by `system`, and what a script starts that ranks run, each
//! with files of its own. They have work of their own. So it counts as well whether the parent is a launcher.

use std::ffi::OsStr;

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
struct Rank {
    rank: usize,
    size: usize,
}

/// Whether another process does the work of this one. Rank 0 says once that it works alone.
pub(crate) fn leaves_to_rank_0() -> bool {
    let name = std::fs::read(format!("/proc/{}/comm", std::os::unix::process::parent_id()));
    let parent = name.unwrap_or_default();
    let parent = String::from_utf8_lossy(&parent);
    let found = of(|name| std::env::var(name).ok(), parent.trim_end());
    if let Some(Rank { rank: 0, size }) = found {
        eprintln!(
            "zonda: {size} ranks were started, but the command does not divide its work: rank 0 does all of it"
        );
    }
    found.is_some_and(|found| found.rank > 0)
}

/// Which of several ranks this is, by the variables and the name of the parent.
fn of(variable: impl Fn(&str) -> Option<String>, parent: &str) -> Option<Rank> {
    let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
    let both =
        |(rank, size): &(&str, &str)| Some(Rank { rank: number(rank)?, size: number(size)? });
    let found = LAUNCHERS.iter().find_map(both)?;
    let is_rank = found.size > 1 && found.rank < found.size && PARENTS.contains(&parent);
    is_rank.then_some(found)
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
        }
        assert!(!is_for_each_rank(None));
    }
}
