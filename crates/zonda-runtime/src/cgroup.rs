//! What control groups leave to the process: memory, processor time, processors.
//!
//! `/proc/self/cgroup` says in which group of each hierarchy the process is, `/proc/self/mountinfo`
//! where the hierarchies are mounted. Each group on the way from the root limits those below it, so
//! the least of each limit counts. Version 2 has one hierarchy, version 1 one for each controller,
//! and systems may have both (documentation of the kernel: cgroup-v2, cgroup-v1/memory, cpusets,
//! sched-bwc). Inside a container the path may begin outside of what is mounted: what is mounted is
//! then the group.

use std::path::{Path, PathBuf};

use crate::CpuSet;

/// The limits of the process's control groups; `None` where nothing limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory: the least of hard limits and, in version 2, of `memory.high`.
    pub memory_bytes: Option<u64>,
    /// Processors' worth of time, rounded up: at least 1.
    pub cpus: Option<usize>,
    /// Processors that its groups may use.
    pub cpu_set: Option<CpuSet>,
}

impl Limits {
    /// Reads them below `root`, which is `/` but in tests.
    #[must_use]
    pub fn read(root: &Path) -> Limits {
        let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let (groups, mounts) = (text("proc/self/cgroup"), text("proc/self/mountinfo"));
        let mut limits = Limits::default();
        for hierarchy in mounts.lines().filter_map(Hierarchy::parse) {
            let Some(path) = hierarchy.group(&groups) else { continue };
            let bottom =
                root.join(hierarchy.mount_point.strip_prefix("/").unwrap_or(Path::new("")));
            for group in path.ancestors().take_while(|path| !path.as_os_str().is_empty()) {
                let relative = group.strip_prefix("/").unwrap_or(group);
                limits.narrow(&hierarchy, &bottom.join(relative));
            }
        }
        limits
    }

    /// Takes in the limits of one group, whose files are in `folder`.
    fn narrow(&mut self, hierarchy: &Hierarchy, folder: &Path) {
        let text = |name: &str| {
            let text = std::fs::read_to_string(folder.join(name)).ok()?;
            Some(text.trim().to_owned())
        };
        let number = |name: &str| text(name)?.parse::<u64>().ok();
        if hierarchy.is_v2 {
            self.limit_memory(number("memory.max"));
            self.limit_memory(number("memory.high"));
            if let Some(max) = text("cpu.max")
                && let Some((quota, period)) = max.split_once(' ')
            {
                self.limit_cpus(quota.parse().ok(), period.parse().ok());
            }
            self.limit_set(text("cpuset.cpus.effective"));
            return;
        }
        if hierarchy.has("memory") {
            self.limit_memory(number("memory.limit_in_bytes"));
        }
        if hierarchy.has("cpu") {
            // An unlimited quota is -1, which is no u64.
            self.limit_cpus(number("cpu.cfs_quota_us"), number("cpu.cfs_period_us"));
        }
        if hierarchy.has("cpuset") {
            self.limit_set(text("cpuset.effective_cpus").or_else(|| text("cpuset.cpus")));
        }
    }

    fn limit_memory(&mut self, bytes: Option<u64>) {
        // Version 1 says "unlimited" by the largest number of pages.
        let bytes = bytes.filter(|&bytes| bytes < i64::MAX as u64 & !0xffff);
        self.memory_bytes = self.memory_bytes.into_iter().chain(bytes).min();
    }

    fn limit_cpus(&mut self, quota: Option<u64>, period: Option<u64>) {
        let cpus = quota.zip(period.filter(|&period| period > 0)).map(|(quota, period)| {
            usize::try_from(quota.div_ceil(period).max(1)).unwrap_or(usize::MAX)
        });
        self.cpus = self.cpus.into_iter().chain(cpus).min();
    }

    fn limit_set(&mut self, list: Option<String>) {
        let Some(set) = list.and_then(|list| CpuSet::parse(&list)).filter(|set| !set.is_empty())
        else {
            return;
        };
        self.cpu_set = Some(match &self.cpu_set {
            Some(narrower) => narrower.intersection(&set),
            None => set,
        });
    }
}

/// A hierarchy of control groups that is mounted.
struct Hierarchy {
    is_v2: bool,
    /// The controllers of a hierarchy of version 1, `,` between.
    controllers: String,
    /// The group that is mounted.
    mounted: PathBuf,
    mount_point: PathBuf,
}

impl Hierarchy {
    /// One line of `mountinfo` (proc(5)): `36 35 98:0 /root /point rw shared:1 - type source options`.
    fn parse(line: &str) -> Option<Hierarchy> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let mut system = system.split(' ');
        let is_v2 = match system.next()? {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        Some(Hierarchy {
            is_v2,
            mounted: PathBuf::from(unescaped(mount.next()?)),
            mount_point: PathBuf::from(unescaped(mount.next()?)),
            controllers: system.nth(1)?.to_owned(),
        })
    }

    fn has(&self, controller: &str) -> bool {
        self.controllers.split(',').any(|name| name == controller)
    }

    /// The process's group in this hierarchy, from what is mounted on, by `/proc/self/cgroup`.
    fn group(&self, groups: &str) -> Option<PathBuf> {
        let path = groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let is_this = match self.is_v2 {
                true => controllers.is_empty(),
                false => controllers.split(',').any(|name| !name.is_empty() && self.has(name)),
            };
            is_this.then(|| PathBuf::from(path))
        })?;
        let below = path.strip_prefix(&self.mounted).ok();
        // A path out of the name space (`/../..`) or beside what is mounted says no more.
        let below = below.filter(|path| !path.components().any(|c| c.as_os_str() == ".."));
        Some(Path::new("/").join(below.unwrap_or(Path::new(""))))
    }
}

/// Octal escapes of mountinfo undone.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|code| u8::from_str_radix(code, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A made-up root with files of the kernel.
    struct Root(TempDir);

    impl Root {
        fn new(files: &[(&str, &str)]) -> Root {
            let root = TempDir::new().unwrap();
            for (path, text) in files {
                let path = root.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Root(root)
        }

        fn limits(&self) -> Limits {
            Limits::read(self.0.path())
        }
    }

    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

    #[test]
    fn version_2_nested() {
        let root = Root::new(&[
            ("proc/self/cgroup", "0::/user.slice/job 7/step\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/user.slice/memory.max", "8589934592\n"),
            ("sys/fs/cgroup/user.slice/job 7/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/user.slice/job 7/memory.high", "1073741824\n"),
            ("sys/fs/cgroup/user.slice/job 7/step/memory.max", "max\n"),
            ("sys/fs/cgroup/user.slice/job 7/cpu.max", "250000 100000\n"),
            ("sys/fs/cgroup/user.slice/job 7/step/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/user.slice/cpuset.cpus.effective", "0-15\n"),
            ("sys/fs/cgroup/user.slice/job 7/step/cpuset.cpus.effective", "4-7\n"),
        ]);
        let expected =
            Limits { memory_bytes: Some(1 << 30), cpus: Some(3), cpu_set: CpuSet::parse("4-7") };
        assert_eq!(root.limits(), expected);
    }

    #[test]
    fn version_1_has_a_hierarchy_for_each_controller() {
        let mounts = "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      32 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      33 25 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        let root = Root::new(&[
            (
                "proc/self/cgroup",
                "5:memory:/slurm/job_1\n4:cpu,cpuacct:/slurm\n3:cpuset:/slurm\n0::/\n",
            ),
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes", "2147483648\n"),
            ("sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpuset/slurm/cpuset.cpus", "0,2\n"),
        ]);
        let expected =
            Limits { memory_bytes: Some(2 << 30), cpus: Some(1), cpu_set: CpuSet::parse("0,2") };
        assert_eq!(root.limits(), expected);
    }

    /// A container sees its own group as the root of the mount, whatever the path says.
    #[test]
    fn a_container_sees_its_group_only() {
        let files = |path: &'static str, mounted: &str| {
            let mounts = V2.replacen(" / ", &format!(" {mounted} "), 1);
            Root::new(&[
                ("proc/self/cgroup", path),
                ("proc/self/mountinfo", &mounts),
                ("sys/fs/cgroup/memory.max", "1000000\n"),
            ])
        };
        for (path, mounted) in
            [("0::/docker/x\n", "/docker/x"), ("0::/../../y\n", "/"), ("0::/other\n", "/docker/x")]
        {
            assert_eq!(files(path, mounted).limits().memory_bytes, Some(1_000_000), "{path}");
        }
    }

    #[test]
    fn no_limits_and_broken_files() {
        assert_eq!(Root::new(&[("proc/none", "")]).limits(), Limits::default());
        let root = Root::new(&[
            ("proc/self/cgroup", "0::/a\nnonsense\n"),
            ("proc/self/mountinfo", &format!("short\n{V2}1 2 3:4 / - cgroup\n")),
            ("sys/fs/cgroup/a/memory.max", "lots\n"),
            ("sys/fs/cgroup/a/cpu.max", "5 0\n"),
            ("sys/fs/cgroup/a/cpuset.cpus.effective", "\n"),
        ]);
        assert_eq!(root.limits(), Limits::default());
        assert_eq!(unescaped(r"/a\040b\134c\9"), "/a b\\c\\9");
    }
}
