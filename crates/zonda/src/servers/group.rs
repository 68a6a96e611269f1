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
    ready();
    loop {
        // Who came before the end is served.
        let is_last = is_over.load(Ordering::Acquire);
        while let Some(channel) =
            listener.accept(if is_last { std::time::Duration::ZERO } else { SERVER_SLEEP })?
        {
            let board = Arc::clone(&board);
            let serve = move || {
                if let Err(error) = session::serve(channel, &board) {
                    board.note_failed();
                    // Nobody may be there to read it.
                    let _ = writeln!(io::stderr().lock(), "zonda iod: a client: {error}");
                }
            };
            sessions.push(worker::spawn(
                String::from("zonda-client"),
                Purpose::WriteBehind,
                serve,
            )?);
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
