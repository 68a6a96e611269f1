//! How many processes of the same parallel program share this node, by what its launcher says.
//!
//! | Launcher | Variables, the first that is there decides |
//! |---|---|
//! | Open MPI (`mpirun`, and under other launchers) | `OMPI_COMM_WORLD_LOCAL_SIZE` |
//! | Hydra: MPICH, Intel MPI | `MPI_LOCALNRANKS` |
//! | MVAPICH | `MV2_COMM_WORLD_LOCAL_SIZE`, `MVP_COMM_WORLD_LOCAL_SIZE` |
//! | PALS (HPE Cray) | `PALS_LOCAL_SIZE` |
//! | PMI with a local size (PMI-1 of some vendors, PMIx shims) | `PMI_LOCAL_SIZE`, `PMIX_LOCAL_SIZE` |
//! | LSF: `jsrun` | `JSM_NAMESPACE_LOCAL_SIZE` |
//! | Slurm: `srun` | `SLURM_STEP_TASKS_PER_NODE` (such as `64(x3),8`), at place `SLURM_NODEID`; else `SLURM_STEP_NUM_TASKS` by `SLURM_STEP_NUM_NODES` |
//! | Flux | `FLUX_JOB_SIZE` by `FLUX_JOB_NNODES`, where there is a `FLUX_TASK_LOCAL_ID` |
//! | LSF: `blaunch` | `LSB_MCPU_HOSTS` (`host 4 host 4`): the slots of this host, where there is an `LS_JOBPID` |
//! | any PMI of one node | `PMI_SIZE`, where no other variable tells of nodes |
//!
//! Counts that do not come out even are rounded up: a node is then assumed to be as full as the
//! fullest. Nothing, or nothing that can be read, means one rank.

/// What was found: how many ranks, and by which variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Ranks of this program on this node, at least 1.
    pub count: usize,
    /// The variable that said so; `None` where nothing did.
    pub told_by: Option<&'static str>,
}

/// Variables that are the number itself.
const LOCAL_SIZES: [&str; 8] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "MVP_COMM_WORLD_LOCAL_SIZE",
    "PALS_LOCAL_SIZE",
    "PMI_LOCAL_SIZE",
    "PMIX_LOCAL_SIZE",
    "JSM_NAMESPACE_LOCAL_SIZE",
];

/// Variables with the number of this process among all of its program.
const NUMBERS: [&str; 7] = [
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
    "JSM_NAMESPACE_RANK",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
];

/// The number of this process among all of its program, as its launcher says it by one of the variables; 0 where none does.
pub fn rank_number(variable: impl Fn(&str) -> Option<String>) -> usize {
    launched_rank(variable).unwrap_or(0)
}

/// The same; `None` where no launcher says it.
pub fn launched_rank(variable: impl Fn(&str) -> Option<String>) -> Option<usize> {
    NUMBERS.iter().find_map(|name| variable(name)?.trim().parse().ok())
}

/// No node runs more; what says so is not believed.
const MOST_RANKS: usize = 1 << 16;

impl Ranks {
    /// What the environment says, as `variable` gives it: the value of a name.
    pub fn of(variable: impl Fn(&str) -> Option<String>, host: &str) -> Ranks {
        let number = |name: &str| -> Option<usize> {
            variable(name)?.trim().parse().ok().filter(|n| (1..=MOST_RANKS).contains(n))
        };
        let found = |count: usize, told_by| Ranks { count, told_by: Some(told_by) };
        for name in LOCAL_SIZES {
            if let Some(count) = number(name) {
                return found(count, name);
            }
        }
        if let Some(list) = variable("SLURM_STEP_TASKS_PER_NODE") {
            let node = variable("SLURM_NODEID").and_then(|node| node.trim().parse().ok());
            if let Some(count) = slurm_tasks(&list, node.unwrap_or(0)) {
                return found(count, "SLURM_STEP_TASKS_PER_NODE");
            }
        }
        if let Some(tasks) = number("SLURM_STEP_NUM_TASKS") {
            let nodes = number("SLURM_STEP_NUM_NODES").unwrap_or(1);
            return found(tasks.div_ceil(nodes), "SLURM_STEP_NUM_TASKS");
        }
        if variable("FLUX_TASK_LOCAL_ID").is_some()
            && let Some(tasks) = number("FLUX_JOB_SIZE")
        {
            let nodes = number("FLUX_JOB_NNODES").unwrap_or(1);
            return found(tasks.div_ceil(nodes), "FLUX_JOB_SIZE");
        }
        if variable("LS_JOBPID").is_some()
            && let Some(hosts) = variable("LSB_MCPU_HOSTS")
            && let Some(count) = lsf_slots(&hosts, host)
        {
            return found(count, "LSB_MCPU_HOSTS");
        }
        if variable("PMI_RANK").is_some()
            && let Some(count) = number("PMI_SIZE")
        {
            return found(count, "PMI_SIZE");
        }
        Ranks { count: 1, told_by: None }
    }
}

/// The entry for node number `node` of a list such as `64(x3),8`.
fn slurm_tasks(list: &str, node: usize) -> Option<usize> {
    let mut first = 0_usize;
    for part in list.trim().split(',') {
        let (tasks, times) = match part.split_once("(x") {
            Some((tasks, times)) => (tasks, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1_usize),
        };
        let tasks: usize = tasks.trim().parse().ok()?;
        first = first.checked_add(times)?;
        if node < first {
            return (1..=MOST_RANKS).contains(&tasks).then_some(tasks);
        }
    }
    None
}

/// The slots of `host` in a list `HOST SLOTS HOST SLOTS ...`, whose names may have a domain.
fn lsf_slots(list: &str, host: &str) -> Option<usize> {
    let short = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let words: Vec<&str> = list.split_whitespace().collect();
    let mut slots = 0_usize;
    for pair in words.chunks_exact(2) {
        if short(pair[0]) == short(host) {
            slots = slots.checked_add(pair[1].parse().ok()?)?;
        }
    }
    (1..=MOST_RANKS).contains(&slots).then_some(slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(variables: &[(&str, &str)]) -> (usize, Option<&'static str>) {
        let of = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let ranks = Ranks::of(of, "node7.cluster");
        (ranks.count, ranks.told_by)
    }

    #[test]
    fn a_process_has_the_number_that_its_launcher_says() {
        let told = |all: &'static [(&str, &str)]| {
            rank_number(|name| Some(all.iter().find(|(found, _)| *found == name)?.1.to_owned()))
        };
        assert_eq!(told(&[]), 0);
        assert_eq!(told(&[("PMI_RANK", " 7\n")]), 7);
        // Open MPI under Slurm: its own number counts.
        assert_eq!(told(&[("SLURM_PROCID", "1"), ("OMPI_COMM_WORLD_RANK", "3")]), 3);
        assert_eq!(told(&[("OMPI_COMM_WORLD_RANK", "-1"), ("SLURM_PROCID", "2")]), 2);
    }

    #[test]
    fn each_launcher_is_understood() {
        for name in LOCAL_SIZES {
            assert_eq!(told(&[(name, "16")]), (16, Some(name)));
        }
        let slurm = "SLURM_STEP_TASKS_PER_NODE";
        assert_eq!(told(&[(slurm, "128")]), (128, Some(slurm)));
        let uneven = [(slurm, "64(x2),8"), ("SLURM_NODEID", "2")];
        assert_eq!(told(&uneven), (8, Some(slurm)));
        assert_eq!(told(&[(slurm, "64(x2),8"), ("SLURM_NODEID", "1")]), (64, Some(slurm)));
        let counts = [("SLURM_STEP_NUM_TASKS", "9"), ("SLURM_STEP_NUM_NODES", "2")];
        assert_eq!(told(&counts), (5, Some("SLURM_STEP_NUM_TASKS")));
        let flux = [("FLUX_TASK_LOCAL_ID", "0"), ("FLUX_JOB_SIZE", "8"), ("FLUX_JOB_NNODES", "2")];
        assert_eq!(told(&flux), (4, Some("FLUX_JOB_SIZE")));
        let lsf = [("LS_JOBPID", "1"), ("LSB_MCPU_HOSTS", "node6 4 node7 3")];
        assert_eq!(told(&lsf), (3, Some("LSB_MCPU_HOSTS")));
        assert_eq!(told(&[("PMI_RANK", "0"), ("PMI_SIZE", "4")]), (4, Some("PMI_SIZE")));
    }

    /// A batch script itself is no rank of a step, and an allocation of Flux or LSF alone says nothing.
    #[test]
    fn what_is_no_rank_is_one() {
        for none in [
            &[("SLURM_TASKS_PER_NODE", "64"), ("SLURM_PROCID", "0")][..],
            &[("FLUX_JOB_SIZE", "64")],
            &[("LSB_MCPU_HOSTS", "node7 64")],
            &[("PMI_SIZE", "64")],
            &[("MPI_LOCALNRANKS", "0")],
            &[("MPI_LOCALNRANKS", "many")],
            &[("MPI_LOCALNRANKS", "99999999999999999999")],
            &[("SLURM_STEP_TASKS_PER_NODE", "64(x2"), ("SLURM_NODEID", "0")],
            &[("SLURM_STEP_TASKS_PER_NODE", "64"), ("SLURM_NODEID", "3")],
            &[],
        ] {
            assert_eq!(told(none), (1, None), "{none:?}");
        }
    }

    /// Open MPI under srun: both say something, and the launcher of the ranks is right.
    #[test]
    fn the_nearest_launcher_decides() {
        let both = [("SLURM_STEP_TASKS_PER_NODE", "1"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "12")];
        assert_eq!(told(&both), (12, Some("OMPI_COMM_WORLD_LOCAL_SIZE")));
    }
}
