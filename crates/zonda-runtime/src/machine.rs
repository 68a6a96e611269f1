//! What this process may use of the machine, and why: processors, threads, memory.
//!
//! | Question | Answer |
//! |---|---|
//! | Which processors? | those of the mask that the process had when the library was loaded, of the masks of its threads now, and of the places of an OpenMP runtime in it; of these, those that its control groups allow |
//! | How many threads? | `ZONDA_THREADS`; else as many as these processors, at most the quota of its control groups, and at most its share where ranks of one program are on the node |
//! | How much memory? | `ZONDA_MEMORY`; else an eighth of the least of: the machine's, its control groups', what `ulimit -v` and `-d` leave; at most 1 GiB; divided by the ranks on the node |
//!
//! One mask alone is no answer: an OpenMP runtime that binds its threads binds the first one, in its own
//! constructor, to one processor before anything else is loaded. A share is counted of the processors
//! that control groups leave, not of the mask: a launcher that binds ranks has divided the mask already.

use crate::tuning::MEMORY_PART;
use crate::tuning::MOST_MASKS_THREADS;
use crate::tuning::MOST_MEMORY_BYTES;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cgroup::Limits;
use crate::ranks::Ranks;
use crate::{CpuSet, Settled, os, setting};

/// More threads would not find the memory bandwidth to pay.
pub const MOST_THREADS: usize = 1024;

/// What the process may use, as it was when it was looked at.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The mask when the library was loaded.
    pub at_load: Option<CpuSet>,
    /// The masks of all threads, joined.
    pub of_threads: Option<CpuSet>,
    /// The places of an OpenMP runtime.
    pub of_openmp: Option<CpuSet>,
    /// The processors of the node that are switched on.
    pub online: usize,
    /// What control groups leave.
    pub limits: Limits,
    /// Ranks of this program on this node.
    pub ranks: Ranks,
    /// The machine's memory in bytes, where it says so.
    pub memory_bytes: Option<u64>,
    /// What the process's own limits leave, in bytes.
    pub left_bytes: Option<u64>,
}

/// What was decided, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision<T> {
    /// The answer.
    pub value: T,
    /// What decided, in words.
    pub because: String,
}

/// Ranks that the parallel layer has counted, 0 where it has not.
static COUNTED_RANKS: AtomicUsize = AtomicUsize::new(0);

/// Says how many ranks of this program are on this node, once MPI itself has told: what launchers say
/// counts no more. Pools and budgets that there are already stay as they are.
pub fn set_ranks(count: usize) {
    COUNTED_RANKS.store(count, Ordering::Relaxed);
}

impl Machine {
    /// As it was when this process first asked.
    pub fn of_process() -> &'static Machine {
        static MACHINE: Settled<Machine> = Settled::new();
        MACHINE.get_or_make(Machine::look)
    }

    /// As it is now.
    #[must_use]
    pub fn look() -> Machine {
        let variable = |name: &str| std::env::var(name).ok();
        Machine {
            at_load: os::affinity_at_load(),
            of_threads: masks_of_threads(),
            of_openmp: os::openmp_places(),
            online: os::processors_online(),
            limits: Limits::read(Path::new("/")),
            ranks: Ranks::of(variable, &os::host()),
            memory_bytes: machine_memory(),
            left_bytes: left_of("Max address space", "VmSize:")
                .into_iter()
                .chain(left_of("Max data size", "VmData:"))
                .min(),
        }
    }

    /// The processors that the process may use; empty where the system says nothing.
    #[must_use]
    pub fn cpus(&self) -> CpuSet {
        let masks = [&self.at_load, &self.of_threads, &self.of_openmp];
        let all = masks.into_iter().flatten().fold(CpuSet::default(), |all, mask| all.union(mask));
        match &self.limits.cpu_set {
            // Groups that leave none of them are read wrongly.
            Some(allowed) if !all.intersection(allowed).is_empty() => all.intersection(allowed),
            _ => all,
        }
    }

    /// Ranks of this program on this node.
    #[must_use]
    pub fn ranks(&self) -> usize {
        match COUNTED_RANKS.load(Ordering::Relaxed) {
            0 => self.ranks.count.max(1),
            counted => counted,
        }
    }

    /// Threads that compute at the same time, the caller's among them, unless `ZONDA_THREADS` says
    /// otherwise.
    #[must_use]
    pub fn default_threads(&self) -> Decision<usize> {
        let cpus = self.cpus().len();
        let decision = |value: usize, because: String| Decision { value, because };
        let mut least = match cpus {
            0 => decision(1, "the system does not say which processors there are".to_owned()),
            n => decision(n, format!("the process may use {n} processors")),
        };
        let mut at_most = |value: usize, because: String| {
            if value < least.value {
                least = decision(value, because);
            }
        };
        let node = self.limits.cpu_set.as_ref().map_or(self.online, CpuSet::len).max(1);
        let quota = self.limits.cpus.unwrap_or(usize::MAX);
        at_most(quota, format!("its control groups give it the time of {quota} processors"));
        let ranks = self.ranks();
        if ranks > 1 {
            let share = (node.min(quota) / ranks).max(1);
            at_most(share, format!("{ranks} ranks share {} processors", node.min(quota)));
        }
        at_most(MOST_THREADS, "more would not pay".to_owned());
        least
    }

    /// Threads that compute at the same time, the caller's among them.
    #[must_use]
    pub fn threads(&self) -> Decision<usize> {
        const VARIABLE: &str = "ZONDA_THREADS";
        let default = || self.default_threads();
        let Some(text) = setting::text(VARIABLE) else { return default() };
        match text.parse::<usize>() {
            Ok(asked) if asked > 0 => {
                let because = match asked {
                    ..=MOST_THREADS => format!("{VARIABLE} says so"),
                    _ => format!(
                        "{VARIABLE} says {asked}, and there are never more than {MOST_THREADS}"
                    ),
                };
                Decision { value: asked.min(MOST_THREADS), because }
            }
            _ => {
                let default = default();
                setting::warn_once(VARIABLE, &text, &"not a number of threads", &default.value);
                default
            }
        }
    }

    /// Bytes of memory for caches and queues, unless `ZONDA_MEMORY` says otherwise.
    #[must_use]
    pub fn default_memory(&self) -> Decision<u64> {
        let limits = [
            (self.memory_bytes, "of the machine's memory"),
            (self.limits.memory_bytes, "of what its control groups leave"),
            (self.left_bytes, "of what its own limits (ulimit) leave"),
        ];
        let known = limits.into_iter().filter_map(|(bytes, what)| Some((bytes?, what)));
        let (all, what) = match known.min_by_key(|(bytes, _)| *bytes) {
            Some((bytes, what)) => (bytes / MEMORY_PART, format!("an eighth {what}")),
            None => (
                MOST_MEMORY_BYTES / MEMORY_PART,
                "the system does not say how much there is".to_owned(),
            ),
        };
        let (all, what) = if all > MOST_MEMORY_BYTES {
            (MOST_MEMORY_BYTES, "at most 1 GiB".to_owned())
        } else {
            (all, what)
        };
        match self.ranks() {
            1 => Decision { value: all, because: what },
            n => {
                Decision { value: all / n as u64, because: format!("{what}, divided by {n} ranks") }
            }
        }
    }

    /// Where a thread is to run whose maker may run on `maker` only: on the other processors of the
    /// process, or, if there are none, on all. `None`: where its maker does, which is bound to nothing.
    pub(crate) fn place_beside(&self, maker: Option<CpuSet>) -> Option<CpuSet> {
        let (maker, cpus) = (maker?, self.cpus());
        if cpus.without(&maker).is_empty() {
            return None;
        }
        Some(cpus.without(&maker))
    }
}

/// The processors on which some thread of this process may run.
fn masks_of_threads() -> Option<CpuSet> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let ids = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
    let masks = ids.take(MOST_MASKS_THREADS).filter_map(os::affinity);
    masks.reduce(|all, mask| all.union(&mask)).or_else(|| os::affinity(0))
}

fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    kibibytes(line)
}

/// What the process may still take of one of its limits (`ulimit -v`, `-d`), where it has that limit.
fn left_of(limit: &str, used: &str) -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(limit))?;
    let most: u64 = line.split_whitespace().next()?.parse().ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(used))?;
    // More may be in use than a limit that was lowered later.
    Some(most.saturating_sub(kibibytes(line)?))
}

/// `  16384 kB`, in bytes.
fn kibibytes(text: &str) -> Option<u64> {
    let kib: u64 = text.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn set(list: &str) -> Option<CpuSet> {
        CpuSet::parse(list)
    }

    fn machine(mask: &str, online: usize) -> Machine {
        Machine {
            at_load: set(mask),
            of_threads: set(mask),
            of_openmp: None,
            online,
            limits: Limits::default(),
            ranks: Ranks { count: 1, told_by: None },
            memory_bytes: Some(64 * GIB),
            left_bytes: None,
        }
    }

    #[test]
    fn openmp_has_bound_the_first_thread_already() {
        let mut bound = machine("0", 16);
        assert_eq!(bound.default_threads().value, 1);
        bound.of_openmp = set("0-15");
        assert_eq!(bound.default_threads().value, 16);
        assert_eq!(bound.place_beside(set("0")), set("1-15"));
        // Its threads are there, and its functions are not found.
        bound.of_openmp = None;
        bound.of_threads = set("0-7");
        assert_eq!(bound.default_threads().value, 8);
    }

    #[test]
    fn a_mask_that_the_user_set_holds() {
        let pinned = machine("3", 16);
        assert_eq!(pinned.default_threads().value, 1);
        assert_eq!(pinned.place_beside(set("3")), None);
        let free = machine("0-15", 16);
        assert_eq!(free.place_beside(set("0-15")), None);
        assert_eq!(free.place_beside(None), None);
    }

    #[test]
    fn ranks_divide_the_node_and_not_what_was_divided() {
        for (mask, ranks, threads) in [
            ("0-127", 1, 128),
            ("0-127", 128, 1),
            ("0-127", 16, 8),
            ("0-63", 2, 64),
            ("0-127", 1000, 1),
        ] {
            let mut node = machine(mask, 128);
            node.ranks.count = ranks;
            assert_eq!(node.default_threads().value, threads, "{mask} {ranks}");
        }
        let mut container = machine("0-15", 128);
        container.limits.cpu_set = set("0-15");
        container.ranks.count = 4;
        assert_eq!(container.default_threads().value, 4);
    }

    #[test]
    fn groups_limit_time_and_processors() {
        let mut limited = machine("0-127", 128);
        limited.limits.cpus = Some(3);
        assert_eq!(limited.default_threads().value, 3);
        limited.limits.cpu_set = set("0-1");
        assert_eq!(limited.default_threads().value, 2);
        limited.limits.cpu_set = set("200");
        assert_eq!(limited.cpus(), set("0-127").unwrap());
        limited.ranks.count = 3;
        limited.limits.cpu_set = None;
        assert_eq!(limited.default_threads().value, 1);
    }

    #[test]
    fn memory_follows_the_least_limit_and_the_ranks() {
        let mut node = machine("0-3", 4);
        assert_eq!(node.default_memory().value, GIB);
        node.ranks.count = 128;
        assert_eq!(node.default_memory().value, GIB / 128);
        node.limits.memory_bytes = Some(2 * GIB);
        node.ranks.count = 1;
        assert_eq!(node.default_memory().value, GIB / 4);
        node.left_bytes = Some(GIB);
        assert_eq!(node.default_memory().value, GIB / 8);
        assert!(node.default_memory().because.contains("ulimit"));
    }

    #[test]
    fn this_process_has_processors() {
        let machine = Machine::look();
        assert!(machine.default_threads().value >= 1);
        assert!(!machine.cpus().is_empty());
        assert!(machine.default_memory().value > 0);
    }
}
