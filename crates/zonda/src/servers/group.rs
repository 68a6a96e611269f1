//! A server process: it takes clients in until it is told that no more will come.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zonda_runtime::worker::{self, Purpose};
use zonda_shared::Listener;
use zonda_team::spread::Watcher;

use super::board::{Board, Hearing};
use super::{members, session};
use crate::tuning::SERVER_SLEEP;

/// Whether this process writes its files by itself, whatever servers there are.
static WRITES_ALONE: AtomicBool = AtomicBool::new(false);

/// Has this process write its files by itself: a server, and tools that rename what they have made as soon as it is closed.
pub fn write_alone() {
    WRITES_ALONE.store(true, Ordering::Relaxed);
}

/// Whether it does.
pub(super) fn writes_alone() -> bool {
    WRITES_ALONE.load(Ordering::Relaxed)
}

/// The name of the server whose socket is there, for people: `server2` is the first one of the second group, `server2.3` the third one.
#[must_use]
pub fn name_of(socket: &Path) -> String {
    let socket = socket.file_name().unwrap_or_default().to_string_lossy();
    format!("server{}", socket.strip_suffix(".1").unwrap_or(&socket))
}

/// Before the first client comes, so that its first calls are recorded.
fn begin_trace(socket: &Path) {
    zonda_trace::init(crate::storage::neighbour::trusts_environment);
    zonda_trace::role(&name_of(socket));
}

/// Whether a client could not be taken in because the process or the system has too many open files, or no memory: that passes.
fn is_shortage(error: &io::Error) -> bool {
    const ENOMEM: i32 = 12;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(error.raw_os_error(), Some(ENOMEM | ENFILE | EMFILE | ENOBUFS))
}

/// Clients that have to wait, or are sent away.
#[derive(Debug, Default)]
struct Shortage {
    is_said: bool,
}

impl Shortage {
    /// Says once why.
    fn say(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.is_said, true) {
            let text = "zonda iod: a client cannot be taken in now";
            // Nobody may be there to read it.
            let _ = writeln!(io::stderr().lock(), "{text}: {error}");
        }
    }
}

/// Serves the clients that come to a socket, which is made at `path`, until `is_over` and all of them are gone. Gives how many files are not
/// whole; what is wrong with them was said on standard error.
///
/// In a group of several servers the path is one of [`ServersSpec::sockets`](super::ServersSpec::sockets), and the others are started at the same time.
/// `ready` is called when clients can come.
///
/// # Errors
/// What the system says: where something is at the path, and for paths of more than about 100 bytes; `TimedOut` where the other servers of the group do not come.
pub fn serve(
    path: &Path,
    n_members: usize,
    is_over: &AtomicBool,
    ready: impl FnOnce(),
) -> io::Result<usize> {
    write_alone();
    begin_trace(path);
    let _most = zonda_shared::raise_open_files();
    let listener = Listener::at(path)?;
    let mesh = match n_members {
        0 | 1 => None,
        // Whoever started it has ended: no client will come.
        _ => match members::meet(path, n_members, is_over)? {
            None => return Ok(0),
            mesh => mesh,
        },
    };
    let board = Arc::new(Board::new(mesh));
    if let Some(mesh) = board.mesh() {
        let hearing: Arc<dyn Watcher> = Arc::new(Hearing(Arc::clone(&board)));
        mesh.listen(&hearing)?;
    }
    let mut sessions = Vec::new();
    let mut shortage = Shortage::default();
    ready();
    loop {
        // Who came before the end is served.
        let is_last = is_over.load(Ordering::Acquire);
        let within = if is_last { std::time::Duration::ZERO } else { SERVER_SLEEP };
        loop {
            let channel = match listener.accept(within) {
                Ok(Some(channel)) => channel,
                Ok(None) => break,
                // Who came waits until another one has gone: those who are there keep what they have put.
                Err(error) if is_shortage(&error) && !sessions.is_empty() => {
                    shortage.say(&error);
                    std::thread::sleep(SERVER_SLEEP);
                    break;
                }
                Err(error) => return Err(error),
            };
            let board = Arc::clone(&board);
            let serve = move || {
                if let Err(error) = session::serve(channel, &board) {
                    board.note_failed();
                    // Nobody may be there to read it.
                    let _ = writeln!(io::stderr().lock(), "zonda iod: a client: {error}");
                }
            };
            let name = String::from("zonda-client");
            match worker::spawn(name, Purpose::WriteBehind, serve) {
                Ok(session) => sessions.push(session),
                // This one is sent away, and hears of it by the end of its channel.
                Err(error) => shortage.say(&error),
            }
        }
        sessions.retain(|session| !session.is_finished());
        if is_last && sessions.is_empty() {
            zonda_trace::flush();
            return Ok(board.n_failed());
        }
        if is_last {
            std::thread::sleep(SERVER_SLEEP / 10);
        }
    }
}
