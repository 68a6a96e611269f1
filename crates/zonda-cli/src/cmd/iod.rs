//! `zonda iod`: the helper process of programs that run with `ZONDA_ASYNC=helper`.

use std::io::Write as _;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use zonda_runtime::worker::{self, Purpose};

use crate::failure::{CommandFailure, Result};

/// The helper process of programs that run with ZONDA_ASYNC=helper; not to be called by hand
///
/// The library starts it at the first put to a file that is written behind with a helper, one for
/// each program. Values that the program put are in memory that both have, until a commit brings them
/// into the file. The helper sleeps. When the program ends without closing its files (kill -9, out of
/// memory, a crash, _exit), it carries out every put that had returned, commits, closes the
/// files and says so on standard error, which it has from the program. When nothing is left to do it
/// ends without a word.
///
/// It is in a session of its own and lets signals that end programs (SIGINT, SIGTERM, SIGHUP,
/// SIGQUIT) pass. If it is killed, nothing is lost: the program itself carries out its puts.
///
/// The library looks for this program where ZONDA_IOD says, in ../bin seen from itself, and in PATH.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Started by the library, which is at the other end of standard input
    #[arg(long, hide = true, value_name = "PID")]
    started: Option<u32>,

    /// Started by the one that the library started
    #[arg(long, hide = true, conflicts_with = "started", value_name = "PID")]
    program: Option<u32>,

    /// Started by `zonda run --servers`, which is at the other end of standard input and output: serves who comes to this socket
    #[arg(long, hide = true, conflicts_with_all = ["started", "program"], value_name = "PATH")]
    group: Option<PathBuf>,

    /// How many servers the group has
    #[arg(long, hide = true, requires = "group", value_name = "N", default_value_t = 1)]
    members: usize,
}

pub(crate) fn execute(args: &Args) -> Result<ExitCode> {
    if let Some(socket) = &args.group {
        return serve_group(socket, args.members);
    }
    if let Some(pid) = args.started {
        // This process ends at once. The one that it started stays, and is no child of the program.
        let own =
            std::env::current_exe().map_err(|error| CommandFailure::text(error.to_string()))?;
        let mut command = Command::new(own);
        // The number only shows in lists of processes.
        command.args(["iod", "--program", &pid.to_string()]);
        command.stdin(Stdio::inherit()).stdout(Stdio::null());
        command.spawn().map_err(|error| CommandFailure::text(error.to_string()))?;
        return crate::done();
    }
    if args.program.is_none() {
        return Err(CommandFailure::Usage(
            "iod: the library starts it for programs that run with ZONDA_ASYNC=helper; see --help"
                .to_owned(),
        ));
    }
    outlive_signals()?;
    match zonda::serve_as_helper(std::io::stdin().as_fd()) {
        Ok(true) => crate::done(),
        Ok(false) => Err(CommandFailure::Reported),
        Err(error) => Err(CommandFailure::text(format!("iod: {error}"))),
    }
}

/// Goes on when the program is told to end: the program decides when this process does.
fn outlive_signals() -> Result<()> {
    // This fails only for the leader of a process group, which has a group of its own already.
    let _ = rustix::process::setsid();
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .map_err(|error| CommandFailure::text(error.to_string()))?;
    }
    Ok(())
}

/// Serves until standard input ends, and all clients have.
fn serve_group(socket: &Path, n_members: usize) -> Result<ExitCode> {
    outlive_signals()?;
    // Files get the modes that clients would have given them, and are nobody else's before.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let is_over = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_over);
    let watch = move || {
        // Whoever started this process writes nothing; it ends, or closes its end.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        seen.store(true, Ordering::Release);
    };
    worker::spawn(String::from("zonda-stdin"), Purpose::Watch, watch)
        .map_err(|error| CommandFailure::text(format!("iod: {error}")))?;
    let ready = || {
        // Whoever waits for it may be gone.
        let _ = std::io::stdout().lock().write_all(READY).and_then(|()| std::io::stdout().flush());
    };
    match zonda::servers::serve(socket, n_members, &is_over, ready) {
        Ok(0) => crate::done(),
        Ok(_) => Err(CommandFailure::Reported),
        Err(error) => Err(CommandFailure::text(format!("iod: {}: {error}", socket.display()))),
    }
}

/// What a server says when clients can come.
pub(super) const READY: &[u8] = b"ready\n";
