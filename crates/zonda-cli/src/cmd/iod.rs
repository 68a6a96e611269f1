//! `zonda iod`: the helper process of programs that run with `ZONDA_ASYNC=helper`.

use std::os::fd::AsFd;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

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
}

pub(crate) fn execute(args: &Args) -> Result<ExitCode> {
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
    // This fails only for the leader of a process group, which has a group of its own already.
    let _ = rustix::process::setsid();
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        // The program decides when it ends.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .map_err(|error| CommandFailure::text(error.to_string()))?;
    }
    match zonda::serve_as_helper(std::io::stdin().as_fd()) {
        Ok(true) => crate::done(),
        Ok(false) => Err(CommandFailure::Reported),
        Err(error) => Err(CommandFailure::text(format!("iod: {error}"))),
    }
}
