//! I/O servers of a run: they are started before the program, and have written all when they end.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use zonda::servers::ServersSpec;
use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::worker::{self, Purpose};

use super::super::iod::READY;
use super::{say, server_traces};
use crate::failure::{CommandFailure, Result};

/// Servers that are there.
pub(super) struct Servers {
    folder: tempfile::TempDir,
    places: Vec<Arc<ServerPlace>>,
    /// One for each place that gets another server where its own is killed.
    watches: Vec<JoinHandle<()>>,
}

/// Where a server is, and how it is started.
struct ServerPlace {
    socket: PathBuf,
    command: Mutex<Command>,
    process: Mutex<Child>,
    /// No further server is needed.
    is_over: AtomicBool,
    /// A server of this place ended before it was told to, or said that a file is not whole.
    has_failed: AtomicBool,
}

/// How often another server takes a place: what kills one may kill all.
const MOST_RESTARTS: usize = 3;

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
        let mut servers = Servers { folder, places: Vec::new(), watches: Vec::new() };
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
            command.arg("iod").arg("--group").arg(&socket);
            command.arg("--members").arg(spec.size.to_string());
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let process = Mutex::ranked(Rank::Helper, command.spawn().map_err(fail)?);
            let command = Mutex::ranked(Rank::Helper, command);
            let (is_over, has_failed) = (AtomicBool::new(false), AtomicBool::new(false));
            servers.places.push(Arc::new(ServerPlace {
                socket,
                command,
                process,
                is_over,
                has_failed,
            }));
        }
        // Those of a group wait for each other before they are ready.
        for place in &servers.places {
            if !is_ready(&mut place.process.lock()) {
                // It said why on standard error.
                return Err(CommandFailure::Reported);
            }
        }
        // Those of larger groups have connections to each other, and parts of the same files.
        if spec.size == 1 {
            for place in &servers.places {
                let place = Arc::clone(place);
                let watch =
                    worker::spawn(String::from("zonda-server"), Purpose::Watch, move || {
                        place.watch()
                    });
                servers.watches.push(watch.map_err(fail)?);
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
        self.tell_end();
        for watch in self.watches.drain(..) {
            // It has no result; a panic of it was said.
            drop(watch.join());
        }
        let is_whole = |place: &Arc<ServerPlace>| {
            let is_success = place.process.lock().wait().as_ref().is_ok_and(ExitStatus::success);
            is_success && !place.has_failed.load(Ordering::Acquire)
        };
        // All are waited for.
        self.places.iter().map(is_whole).fold(true, |so_far, is_whole| so_far & is_whole)
    }

    fn tell_end(&self) {
        for place in &self.places {
            place.is_over.store(true, Ordering::Release);
            drop(place.process.lock().stdin.take());
        }
    }
}

/// Whether a server says that clients can come.
fn is_ready(process: &mut Child) -> bool {
    let mut said = vec![0; READY.len()];
    let ready = process.stdout.as_mut().map(|out| out.read_exact(&mut said));
    matches!(ready, Some(Ok(()))) && said == READY
}

impl ServerPlace {
    /// Waits until the server ends; where it was killed, starts another one for files that are created later.
    fn watch(&self) {
        for _ in 0..MOST_RESTARTS {
            let out = self.process.lock().stdout.take();
            // It writes nothing more. So this is its end.
            drop(out.map(|mut out| std::io::copy(&mut out, &mut std::io::sink())));
            if self.is_over.load(Ordering::Acquire) || !self.start_next() {
                return;
            }
        }
    }

    /// Starts the server that takes the place of one that has ended. False where that ends what is to be watched.
    fn start_next(&self) -> bool {
        let mut process = self.process.lock();
        let how =
            process.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        self.has_failed.store(true, Ordering::Release);
        // Where a server of that name is, no other can come.
        drop(std::fs::remove_file(&self.socket));
        let name = zonda::servers::name_of(&self.socket);
        let next = self.command.lock().spawn().map(|mut next| is_ready(&mut next).then_some(next));
        match next {
            Ok(Some(next)) => {
                say(format_args!(
                    "I/O {name} has ended ({how}): its files have what it had committed; another server takes its place, for files that are created from now on"
                ));
                *process = next;
                if self.is_over.load(Ordering::Acquire) {
                    drop(process.stdin.take());
                }
                true
            }
            _ => {
                say(format_args!(
                    "I/O {name} has ended ({how}): its files have what it had committed; no other server could be started"
                ));
                false
            }
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.tell_end();
    }
}
