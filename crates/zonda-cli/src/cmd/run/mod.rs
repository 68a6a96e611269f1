//! `zonda run`: an unmodified program on Zonda's library.

mod check;
mod loader;
pub(in crate::cmd) mod loads;
pub(in crate::cmd) mod maps;
mod plan;
mod program;
mod server_traces;
mod servers;
mod watch;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use zonda::storage::{Spec, SyncLevel};

use crate::failure::{CommandFailure, Result};
pub(super) use plan::LibraryMode;
use plan::{Effect, Means, RunPlan, ZondaLibrary};
use program::{Program, SHELL};
use servers::Servers;
use zonda::servers::ServersSpec;

/// Runs a program on Zonda's netCDF library
///
/// Programs find the library by LD_LIBRARY_PATH. Those that are bound to a libnetcdf of their own (by
/// RPATH, or by another file name, as in the netCDF4 package of PyPI) get it by LD_PRELOAD. Which one
/// is needed is found out by asking the loader what the program, and for Python its netCDF4 package,
/// would load; --mode decides otherwise. Programs that it starts inherit the same; statically linked
/// and setuid programs cannot be helped.
///
/// With --servers it is 1 where the program ended with 0 and a server could not write all.
///
/// The exit status is the program's, 128 and the number of the signal if it was killed by one, 127 if
/// it was not found, 126 if it could not be started.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How the program gets the library
    #[arg(long, value_enum, default_value_t = LibraryMode::Auto)]
    mode: LibraryMode,

    /// Folder of the library [default: ../lib, seen from this program]
    #[arg(long, value_name = "DIR")]
    lib: Option<PathBuf>,

    /// Storage layers, such as cache:256:8,file (ZONDA_IO)
    #[arg(long, value_name = "SPEC", value_parser = spec)]
    io: Option<String>,

    /// File for a recording of calls, transfers and waits (ZONDA_TRACE), which `zonda trace` shows;
    /// %p in it stands for the process, %r for the MPI rank. What is in the file stays: it is appended to. I/O servers record, too:
    /// `server1` and so on stand for %r or %p, or come behind the name
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// What protects data that is synced: none, data or full (ZONDA_SYNC)
    #[arg(long, value_name = "LEVEL", value_parser = sync_level)]
    sync: Option<SyncLevel>,

    /// Has processes write the files that the program creates, so that it need not wait for them: groups=N,size=K[,PATTERN=GROUP...][,read=on], as in
    /// groups=2,size=3,out_*=2. Each file belongs to one of N groups, and a file of several MPI ranks is written by all K servers of its group. The
    /// first pattern that fits a file's name decides its group, from 1; * stands for any characters, and ? for one. Other files go where the least waits.
    /// With read=on servers also read compressed variables of files that the program opens for reading, with read=all others, too. N times K processes are started before the program, and have written all
    /// when the command ends. The ranks of `mpiexec`, and all other programs that it starts on this node, have them, too
    #[arg(long, value_name = "SPEC")]
    servers: Option<ServersSpec>,

    /// Proves that the program will use Zonda before it is started, or fails. A Python's netCDF4 package is imported once
    /// for that, and asked which library it calls
    #[arg(long)]
    check: bool,

    /// Says which libnetcdf the program uses, and watches it being loaded
    #[arg(short, long)]
    verbose: bool,

    /// The program and its arguments, after --
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Checks a layer spec now, because the library would only warn.
pub(super) fn spec(text: &str) -> std::result::Result<String, String> {
    text.parse::<Spec>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

pub(super) fn sync_level(text: &str) -> std::result::Result<SyncLevel, String> {
    text.parse::<SyncLevel>().map_err(|error| error.to_string())
}

/// Prints a message about the run on standard error.
fn say(text: impl std::fmt::Display) {
    eprintln!("zonda run: {text}");
}

pub(crate) fn execute(args: &Args) -> Result<ExitCode> {
    let (name, rest) = args.program.split_first().ok_or_else(|| {
        // clap requires a program, so this does not happen; it is an error rather than a panic.
        CommandFailure::Usage("run: a program is needed".to_owned())
    })?;
    let library = ZondaLibrary::find(args.lib.as_deref())?;
    let program = Program::find(name)?;
    let plan = RunPlan::make(&program, &library, args.mode);

    if args.check {
        for line in check::check(&program, &plan, &library.environment(plan.means))? {
            say(line);
        }
    }
    let mut command = Command::new(program.path());
    command.arg0(name).args(rest).envs(library.environment(plan.means));
    if let Some(spec) = &args.io {
        command.env("ZONDA_IO", spec);
    }
    if let Some(file) = &args.trace {
        // The path is made absolute, because the program may change its folder.
        let file = std::path::absolute(file).map_err(|error| CommandFailure::at(file, error))?;
        command.env("ZONDA_TRACE", file);
    }
    if let Some(level) = args.sync {
        command.env("ZONDA_SYNC", level.to_string());
    }

    if let Effect::None(reason) = &plan.effect {
        say(format_args!("warning: {} will not use Zonda: {reason}", program.path().display()));
    }
    let servers = match &args.servers {
        Some(spec) => Servers::start(spec, &command)?,
        None => None,
    };
    if let Some(servers) = servers {
        return with_servers(command, &program, servers);
    }
    if args.verbose {
        let mode = if plan.means == Means::Path { "library" } else { "preload" };
        say(format_args!("mode {mode}: {}", plan.why));
        watched(command, &program, &library, &plan)
    } else {
        // The program replaces this process, so that nothing stands between it and its signals, its
        // terminal and its parent.
        let error = command.exec();
        let error = by_shell(&command, &program, error)
            .map_or_else(|error| error, |mut shell| shell.exec());
        Err(not_started(program.path(), &error))
    }
}

/// Runs the program as a child, and waits for it and then for its servers.
fn with_servers(mut command: Command, program: &Program, servers: Servers) -> Result<ExitCode> {
    command.env(zonda::servers::VARIABLE, servers.folder());
    let signals = watch::ForwardedSignals::catch()
        .map_err(|error| CommandFailure::text(error.to_string()))?;
    let mut child = spawn(command, program, Stdio::inherit)?;
    let forwarding = signals.forward_to(child.id());
    let status = child.wait();
    forwarding.end();
    let is_whole = servers.finish();
    let status = status.map_err(|error| CommandFailure::at(program.path(), error))?;
    if status.success() && !is_whole {
        say("an I/O server could not write all: see above");
        return Err(CommandFailure::Reported);
    }
    Ok(exit_code(status))
}

/// Runs a program that records to `trace`, with its output on standard error, and waits for its
/// end.
pub(super) fn recorded(
    program: &[OsString],
    lib: Option<&Path>,
    mode: LibraryMode,
    trace: &Path,
) -> Result<ExitStatus> {
    let Some((name, rest)) = program.split_first() else {
        return Err(CommandFailure::Usage("a program is needed".to_owned()));
    };
    let library = ZondaLibrary::find(lib)?;
    let program = Program::find(name)?;
    let plan = RunPlan::make(&program, &library, mode);
    if let Effect::None(reason) = &plan.effect {
        let path = program.path().display();
        return Err(CommandFailure::Failed(format!("{path} will not use Zonda: {reason}")));
    }
    let mut command = Command::new(program.path());
    command.arg0(name).args(rest).envs(library.environment(plan.means));
    command.env("ZONDA_TRACE", trace);
    let signals = watch::ForwardedSignals::catch()
        .map_err(|error| CommandFailure::text(error.to_string()))?;
    let mut child = spawn(command, &program, || io::stderr().into())?;
    let forwarding = signals.forward_to(child.id());
    let status = child.wait();
    forwarding.end();
    status.map_err(|error| CommandFailure::at(program.path(), error))
}

/// Starts a program as a child.
fn spawn(mut command: Command, program: &Program, output: fn() -> Stdio) -> Result<Child> {
    let spawned = command.stdout(output()).spawn().or_else(|error| {
        let mut shell = by_shell(&command, program, error)?;
        shell.stdout(output()).spawn()
    });
    spawned.map_err(|error| not_started(program.path(), &error))
}

/// The same command for the shell, where it failed since the system cannot run the file: not all C libraries try that by themselves.
fn by_shell(command: &Command, program: &Program, error: io::Error) -> io::Result<Command> {
    let is_no_executable = error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error());
    if !is_no_executable || !program.is_for_shell {
        return Err(error);
    }
    let mut shell = Command::new(SHELL);
    let values = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    shell.arg(program.path()).args(command.get_args()).envs(values);
    Ok(shell)
}

fn not_started(path: &Path, error: &io::Error) -> CommandFailure {
    let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    CommandFailure::NotStarted(format!("{}: {error}", path.display()), status)
}

/// Runs the program as a child and reports what its process loads.
fn watched(
    command: Command,
    program: &Program,
    library: &ZondaLibrary,
    plan: &RunPlan,
) -> Result<ExitCode> {
    let signals = watch::ForwardedSignals::catch()
        .map_err(|error| CommandFailure::text(error.to_string()))?;
    let mut child = spawn(command, program, Stdio::inherit)?;
    let forwarding = signals.forward_to(child.id());
    let watching = watch::Maps::watch(child.id(), library);
    let status = child.wait();
    forwarding.end();
    let seen = watching.end();
    let status = status.map_err(|error| CommandFailure::at(program.path(), error))?;
    if !seen {
        match &plan.effect {
            Effect::Certain { object, file } => say(format_args!(
                "{} uses {} (Zonda), by the loader's list; it ended before it could be looked at",
                object.display(),
                file.display()
            )),
            Effect::Unknown(reason) => say(format_args!(
                "warning: no libnetcdf was seen in {}: {reason}",
                program.path().display()
            )),
            // It was reported before the start.
            Effect::None(_) => {}
        }
    }
    Ok(exit_code(status))
}

/// 0 to 255: the program's own, or 128 and the signal, as shells have it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255))
}

/// A list for the loader: `first`, then what the variable `name` holds already.
fn prepend(name: &str, first: &Path) -> OsString {
    let mut value = first.as_os_str().to_owned();
    if let Some(old) = std::env::var_os(name).filter(|old| !old.is_empty()) {
        value.push(":");
        value.push(old);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_of_shells() {
        let code = |raw| format!("{:?}", exit_code(ExitStatus::from_raw(raw)));
        assert_eq!(code(0), format!("{:?}", ExitCode::from(0)));
        assert_eq!(code(3 << 8), format!("{:?}", ExitCode::from(3)));
        assert_eq!(code(15), format!("{:?}", ExitCode::from(143)));
    }
}
