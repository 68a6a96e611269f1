//! `zonda man`: the manual pages, from the same description as the help.

use std::io::Write;
use std::process::ExitCode;

use crate::failure::{CommandFailure, Result};

/// Writes a manual page to standard output
///
/// For instance: zonda man run | man -l -
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command that the page is about; without it, zonda as a whole
    command: Option<String>,
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let mut zonda = crate::definition();
    // Gives subcommands their full names: `zonda run`.
    zonda.build();
    let page = match &args.command {
        None => zonda,
        Some(name) => zonda
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| CommandFailure::Usage(format!("there is no command `{name}`")))?,
    };
    // Subcommands have no version of their own, so they get that of `zonda`.
    clap_mangen::Man::new(page).source(concat!("zonda ", env!("CARGO_PKG_VERSION"))).render(out)?;
    crate::done()
}
