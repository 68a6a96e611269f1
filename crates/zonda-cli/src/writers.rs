//! Which other processes have a file open for writing: what they hold is in no answer about the file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::tuning::WRITTEN_LATELY;

/// A process that has a file open for writing.
pub(crate) struct Writer {
    pub(crate) pid: u32,
    /// As the system has it.
    pub(crate) name: String,
}

/// The other processes that have a file open for writing, of those that this user may look at. A file that nobody has
/// changed lately has none: looking at all processes for each file of an archive would take longer than checking it.
pub(crate) fn of(path: &Path) -> Vec<Writer> {
    let Ok(file) = fs::metadata(path) else { return Vec::new() };
    let is_old = file.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > WRITTEN_LATELY));
    if !file.is_file() || is_old {
        return Vec::new();
    }
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let others = pids.filter(|pid: &u32| *pid != std::process::id());
    others
        .filter(|pid| writes(*pid, (file.dev(), file.ino())))
        .map(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            Writer { pid, name: name.trim_end().to_owned() }
        })
        .collect()
}

/// Whether a process has the file with these numbers open for writing. What may not be looked at, or has just ended, has not.
fn writes(pid: u32, file: (u64, u64)) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.flatten().any(|one| {
        fs::metadata(one.path()).is_ok_and(|seen| (seen.dev(), seen.ino()) == file)
            && one.file_name().to_str().is_some_and(|fd| may_write(pid, fd))
    })
}

/// Whether a descriptor was opened for writing.
fn may_write(pid: u32, fd: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok());
    // O_ACCMODE: 0 is for reading alone.
    flags.is_some_and(|flags| flags & 3 != 0)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn writers_are_found_and_readers_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let own = fs::File::create(&path).unwrap();
        assert!(of(&path).is_empty(), "this process is none of the others");
        let holding = |how: &str| {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &format!("exec {how}; echo; read x"), "sh"]).arg(&path);
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
        };
        for (how, expected) in [("3>>\"$1\"", 1), ("3<\"$1\"", 0)] {
            let mut child = holding(how);
            // It says when it has the file.
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
            let found = of(&path);
            assert_eq!(found.len(), expected, "{how}");
            assert!(found.iter().all(|writer| writer.pid == child.id() && writer.name == "sh"));
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        own.set_modified(std::time::SystemTime::now() - WRITTEN_LATELY * 2).unwrap();
        let mut child = holding("3>>\"$1\"");
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        assert!(of(&path).is_empty(), "nobody has changed it lately");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
