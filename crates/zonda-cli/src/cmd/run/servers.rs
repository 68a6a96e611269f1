//! I/O servers of a run: they are started before the program, and have written all when they end.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use zonda::servers::ServersSpec;

use super::super::iod::READY;
use super::server_traces;
use crate::failure::{CommandFailure, Result};

/// Servers that are there.
pub(super) struct Servers {
    folder: tempfile::TempDir,
    processes: Vec<Child>,
}

impl Servers {
    /// Starts them; `None` for no groups. The environment is that of the program, so that layers and all else are the same.
    pub(super) fn start(spec: &ServersSpec, program: &Command) -> Result<Option<Servers>> {
        if spec.groups == 0 {
            return Ok(None);
        }
        let fail = |error: std::io::Error| CommandFailure::text(format!("I/O servers: {error}"));
        let own = std::env::current_exe().map_err(fail)?;
        // Only this user may come into it.
        let folder = tempfile::Builder::new().prefix("zonda-").tempdir().map_err(fail)?;
        spec.write_to(folder.path()).map_err(fail)?;
        let mut servers = Servers { folder, processes: Vec::new() };
        for socket in spec.sockets(servers.folder.path()) {
            let mut command = Command::new(&own);
            for (name, value) in program.get_envs() {
                match value {
                    // Of the library that the program is to find, which this one has.
                    _ if ["LD_PRELOAD", "LD_LIBRARY_PATH"].iter().any(|other| name == *other) => {}
                    Some(value) => drop(command.env(name, value)),
                    None => drop(command.env_remove(name)),
                }
            }
            server_traces::name(&mut command, program, &socket);
            command.arg("iod").arg("--group").arg(socket);
            command.arg("--members").arg(spec.size.to_string());
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            servers.processes.push(command.spawn().map_err(fail)?);
        }
        // Those of a group wait for each other before they are ready.
        for process in &mut servers.processes {
            let mut said = vec![0; READY.len()];
            let ready = process.stdout.as_mut().map(|out| out.read_exact(&mut said));
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
