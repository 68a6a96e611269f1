//! The `zonda` command: runs programs on Zonda's library and looks into netCDF files. Called by the
//! name of a tool of netCDF-C, it is that tool ([`classic`]).
//!
//! Data goes to standard output, everything else to standard error. Exit status: 0 done, 1 failed,
//! 2 called wrongly; that of the program for `zonda run`.
#![forbid(unsafe_code)]

mod cdl;
mod classic;
mod cmd;
mod failure;
mod input;
mod markup;
mod ncml;
mod placed;
mod progress;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use signal_hook::consts::SIGABRT;

use failure::{CommandFailure, Result};

/// netCDF files and the programs that use them.
#[derive(Debug, Parser)]
#[command(name = "zonda", version, max_term_width = 100)]
#[command(after_help = "Examples:
  zonda info data.nc                            what is in a file, and how it is stored
  zonda view data.nc temp                       a variable in numbers
  zonda view data.nc temp --at time=0 -o t.png  and as a picture
  zonda check data.nc                           whether it is sound
  zonda copy -d 4 -s data.nc small.nc           the same, compressed
  zonda diff data.nc small.nc                   what is different
  zonda run -- python3 script.py                a program on this library

`zonda help COMMAND` tells more about each, with examples.")]
struct Cli {
    #[command(subcommand)]
    command: cmd::Command,
}

/// The exit status that shells give a program which ended since nobody read its output (SIGPIPE).
const READER_GONE: u8 = 128 + 13;

/// Bytes collected before they are written.
const OUTPUT_BUFFER: usize = 64 << 10;

fn main() -> ExitCode {
    end_without_memory();
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(run) = args.first().and_then(|called| classic::tool(called)) {
        return run(&args);
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return wrong_call(&error),
    };
    let mut out = BufWriter::with_capacity(OUTPUT_BUFFER, io::stdout().lock());
    let is_asked = cli.command.is_question();
    let done = cmd::execute(cli.command, &mut out);
    // What was written before a failure is good and goes out, too.
    let flushed = ended(&mut out).map_err(CommandFailure::from);
    match (done, flushed) {
        // The answer is known, whoever reads what was written.
        (Ok(status), Ok(()) | Err(CommandFailure::ReaderGone)) => status,
        // It is not, and 0 would be one.
        (Err(CommandFailure::ReaderGone), _) if is_asked => ExitCode::from(READER_GONE),
        (Err(failure), _) | (_, Err(failure)) => failure.report(),
    }
}

/// Where there is not even memory for what takes little (the text of a number, the stack of a thread), Rust
/// says for how many bytes and aborts. That then ends the program with status 1, as any other failure, and
/// without a core file. What a copy had written by then has a name of its own, and is removed by the next.
fn end_without_memory() {
    let always = Arc::new(AtomicBool::new(true));
    // Where it cannot be caught it is as it was: the program ends by the signal.
    let _as_it_was = signal_hook::flag::register_conditional_shutdown(SIGABRT, 1, always);
}

/// Writes the rest of what goes to standard output, and gives what its end reports: some file systems tell
/// only at the close of a file that they could not keep it.
fn ended(out: &mut dyn Write) -> io::Result<()> {
    out.flush()?;
    zonda::storage::whole::check_close(io::stdout())
}

/// Help and version, which were asked for; or what is wrong with the arguments, in one line.
fn wrong_call(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
    };
    if matches!(
        error.kind(),
        DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let shown = error.print().and_then(|()| ended(&mut io::stdout()));
        return match shown.map_err(CommandFailure::from) {
            // A reader that went away has seen enough of it.
            Ok(()) | Err(CommandFailure::ReaderGone) => {
                ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
            }
            Err(failure) => failure.report(),
        };
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let lines = text.lines().map(str::trim);
    let cause: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    // Its advice comes on a line of its own.
    let cause = cause.join(" ").replace(" tip: ", "; tip: ");
    CommandFailure::Usage(format!("{cause}; see --help")).report()
}

/// What `main` was built from, for completions and manual pages.
fn definition() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// The end of a command that did what it was asked for.
fn done() -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    #[test]
    fn command_line_is_consistent() {
        super::definition().debug_assert();
    }
}
