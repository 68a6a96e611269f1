//! I/O servers of a run: they are started before the program, and have written all when they end.

use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;

use zonda::servers::Reading;

use super::super::iod::READY;
use crate::failure::{CommandFailure, Result};

/// How many servers there are: `groups=2`, with the number of servers of each group, `size=1`; and what they read: `read=on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServersSpec {
    groups: usize,
    read: Reading,
}

/// Most groups: each is a process.
const MOST_GROUPS: usize = 64;

impl FromStr for ServersSpec {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<ServersSpec, String> {
        let (mut groups, mut read) = (1, Reading::Off);
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if key == "read" {
                let known = Reading::of(value);
                read = known.ok_or_else(|| format!("{pair}: known are read=on, all and off"))?;
                continue;
            }
            let number = value.parse::<usize>().map_err(|_| format!("{pair}: no number"))?;
            match (key, number) {
                ("groups", n) if n <= MOST_GROUPS => groups = n,
                ("groups", _) => return Err(format!("{pair}: at most {MOST_GROUPS} groups")),
                ("size", 1) => {}
                ("size", _) => {
                    return Err(format!("{pair}: groups have one server so far: size=1"));
                }
                _ => {
                    return Err(format!(
                        "{pair}: known are groups=N, size=1, read=on, read=all and read=off"
                    ));
                }
            }
        }
        Ok(ServersSpec { groups, read })
    }
}

impl fmt::Display for ServersSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "groups={},size=1,read={}", self.groups, self.read.word())
    }
}

/// Servers that are there.
pub(super) struct Servers {
    folder: tempfile::TempDir,
    processes: Vec<Child>,
}

impl Servers {
    /// Starts them; `None` for no groups. The environment is that of the program, so that layers and all else are the same.
    pub(super) fn start(spec: ServersSpec, program: &Command) -> Result<Option<Servers>> {
        if spec.groups == 0 {
            return Ok(None);
        }
        let fail = |error: std::io::Error| CommandFailure::text(format!("I/O servers: {error}"));
        let own = std::env::current_exe().map_err(fail)?;
        // Only this user may come into it.
        let folder = tempfile::Builder::new().prefix("zonda-").tempdir().map_err(fail)?;
        let mut servers = Servers { folder, processes: Vec::new() };
        if spec.read != Reading::Off {
            let mark = servers.folder.path().join(zonda::servers::READING_MARK);
            std::fs::write(mark, spec.read.word()).map_err(fail)?;
        }
        for number in 0..spec.groups {
            let mut command = Command::new(&own);
            for (name, value) in program.get_envs() {
                match value {
                    // Of the library that the program is to find, which this one has.
                    _ if ["LD_PRELOAD", "LD_LIBRARY_PATH"].iter().any(|other| name == *other) => {}
                    Some(value) => drop(command.env(name, value)),
                    None => drop(command.env_remove(name)),
                }
            }
            command.arg("iod").arg("--group").arg(servers.folder.path().join(number.to_string()));
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut process = command.spawn().map_err(fail)?;
            let mut said = vec![0; READY.len()];
            let ready = process.stdout.as_mut().map(|out| out.read_exact(&mut said));
            servers.processes.push(process);
            if !matches!(ready, Some(Ok(()))) || said != READY {
                // It said why on standard error.
                return Err(CommandFailure::Reported);
            }
        }
        Ok(Some(servers))
    }

    /// The folder with their sockets.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until they have written all. Whether they have.
    pub(super) fn finish(mut self) -> bool {
        for process in &mut self.processes {
            drop(process.stdin.take());
        }
        let end = |process: &mut Child| process.wait().as_ref().is_ok_and(ExitStatus::success);
        // All are waited for.
        self.processes.iter_mut().map(end).fold(true, |so_far, is_whole| so_far & is_whole)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for process in &mut self.processes {
            drop(process.stdin.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs() {
        let groups = |text: &str| text.parse::<ServersSpec>().map(|spec| spec.groups);
        assert_eq!(groups("groups=2,size=1"), Ok(2));
        assert_eq!(groups(""), Ok(1));
        assert_eq!(groups("groups=0"), Ok(0));
        for wrong in ["groups=x", "groups=65", "size=2", "group=2", "groups", "groups=-1", "read=x"]
        {
            assert!(groups(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            "groups=3".parse::<ServersSpec>().unwrap().to_string(),
            "groups=3,size=1,read=off"
        );
        assert_eq!("groups=1,read=all".parse::<ServersSpec>().unwrap().read, Reading::All);
    }
}
