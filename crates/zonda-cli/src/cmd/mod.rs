//! The commands, one file each.

mod check;
mod completions;
mod copy;
mod diff;
mod doctor;
mod dump;
mod info;
mod iod;
mod man;
mod recover;
mod run;
mod table;
mod top;
mod trace;
mod tune;
mod view;

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::Result;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::Args),
    Info(info::Args),
    Dump(dump::Args),
    Copy(copy::Args),
    Check(check::Args),
    Diff(diff::Args),
    View(view::Args),
    Trace(trace::Args),
    Top(top::Args),
    Doctor(doctor::Args),
    Iod(iod::Args),
    Tune(tune::Args),
    Recover(recover::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// Whether the exit status is the answer to a question.
    pub(crate) fn is_question(&self) -> bool {
        matches!(self, Command::Check(_) | Command::Diff(_))
    }
}

/// Executes a command; data goes to `out`.
pub(crate) fn execute(command: Command, out: &mut dyn Write) -> Result<ExitCode> {
    match command {
        Command::Run(args) => run::execute(&args),
        Command::Info(args) => info::execute(&args, out),
        Command::Dump(args) => dump::execute(&args, out),
        Command::Copy(args) => copy::execute(&args, out),
        Command::Check(args) => check::execute(&args, out),
        Command::Diff(args) => diff::execute(&args, out),
        Command::View(args) => view::execute(&args, out),
        Command::Doctor(args) => doctor::execute(&args, out),
        Command::Iod(args) => iod::execute(&args),
        Command::Trace(args) => trace::execute(&args, out),
        Command::Top(args) => top::execute(&args, out),
        Command::Tune(args) => tune::execute(&args, out),
        Command::Recover(args) => recover::execute(&args, out),
        Command::Completions(args) => completions::execute(&args, out),
        Command::Man(args) => man::execute(&args, out),
    }
}
