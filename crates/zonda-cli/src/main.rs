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
mod ranks;
mod similar;
mod tuning;
mod writers;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use signal_hook::consts::SIGABRT;

use crate::tuning::OUTPUT_BUFFER_BYTES;
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

fn main() -> ExitCode {
    end_without_memory();
    zonda::servers::write_alone();
    let args: Vec<OsString> = std::env::args_os().collect();
    let tool = args.first().and_then(|called| classic::tool(called));
    let word = args.get(1).map(OsString::as_os_str);
    let is_divided = match tool {
        Some(_) => args.first().is_some_and(|called| classic::is_divided(called)),
        None => ranks::is_divided(word),
    };
    let is_for_each_rank = tool.is_none() && ranks::is_for_each_rank(word);
    if !is_divided && !is_for_each_rank && ranks::leaves_to_rank_0() {
        return ExitCode::SUCCESS;
    }
    let status = match tool {
        Some(run) => run(&args),
        None => run_command(args),
    };
    let _had_ranks = ranks::finish();
    status
}

fn run_command(args: Vec<OsString>) -> ExitCode {
    let is_divided = ranks::is_divided(args.get(1).map(OsString::as_os_str));
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        // All ranks of such a command are called alike.
        Err(_) if is_divided && ranks::is_silent() => return ExitCode::SUCCESS,
        Err(error) => return wrong_call(&error),
    };
    let mut out = BufWriter::with_capacity(OUTPUT_BUFFER_BYTES, io::stdout().lock());
    let is_asked = cli.command.is_question();
    let done = cmd::execute(cli.command, &mut out);
    // What was written before a failure is correct, so it is written out, too.
    let flushed = ended(&mut out).map_err(CommandFailure::from);
    match (done, flushed) {
        // The answer is known, even if nobody reads the output.
        (Ok(status), Ok(()) | Err(CommandFailure::ReaderGone)) => status,
        // The answer is not known, and status 0 would be an answer.
        (Err(CommandFailure::ReaderGone), _) if is_asked => ExitCode::from(READER_GONE),
        (Err(failure), _) | (_, Err(failure)) => failure.report(),
    }
}

/// Makes the program end with status 1, and without a core file, where Rust aborts because there is
/// no memory even for little (the text of a number, the stack of a thread). Rust prints how many
/// bytes were missing. The unfinished target of a copy has a temporary name, and the next copy
/// removes it.
fn end_without_memory() {
    let always = Arc::new(AtomicBool::new(true));
    // If the signal cannot be caught, it ends the program, as it would anyway.
    let _as_it_was = signal_hook::flag::register_conditional_shutdown(SIGABRT, 1, always);
}

/// Flushes standard output and checks its close: some file systems report only there that they
/// could not store the data.
fn ended(out: &mut dyn Write) -> io::Result<()> {
    out.flush()?;
    zonda::storage::whole::check_close(io::stdout())
}

/// Prints help or version if they were asked for; else reports in one line what is wrong with the
/// arguments.
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
            // If the reader went away, it has seen enough.
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
    // clap puts its advice on a line of its own.
    let cause = cause.join(" ").replace(" tip: ", "; tip: ");
    CommandFailure::Usage(format!("{cause}; see --help")).report()
}

/// What `main` was built from, for completions and manual pages.
fn definition() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// The exit status of a command that succeeded.
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
