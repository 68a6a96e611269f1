//! A server process: it takes clients in until it is told that no more will come.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zonda_runtime::worker::{self, Purpose};
use zonda_shared::Listener;

use super::board::Board;
use super::session;
use crate::tuning::SERVER_SLEEP;

/// Set in a server, whose own files are written by itself.
static IS_SERVER: AtomicBool = AtomicBool::new(false);

/// Whether this process is a server.
pub(super) fn is_server() -> bool {
    IS_SERVER.load(Ordering::Relaxed)
}

/// Serves the clients that come to a socket, which is made at `path`, until `is_over` and all of them are gone. Gives how many files are not
/// whole; what is wrong with them was said on standard error.
///
/// `ready` is called when clients can come.
///
/// # Errors
/// What the system says: where something is at the path, and for paths of more than about 100 bytes.
pub fn serve(path: &Path, is_over: &AtomicBool, ready: impl FnOnce()) -> io::Result<usize> {
    IS_SERVER.store(true, Ordering::Relaxed);
    let _most = zonda_shared::raise_open_files();
    let listener = Listener::at(path)?;
    let board = Arc::new(Board::new());
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
            return Ok(board.n_failed());
        }
        if is_last {
            std::thread::sleep(SERVER_SLEEP / 10);
        }
    }
}
