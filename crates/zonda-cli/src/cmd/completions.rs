//! `zonda completions`: what a shell needs to complete command lines of `zonda`.

use std::io::Write;
use std::process::ExitCode;

use clap_complete::Shell;

use crate::failure::Result;

/// Writes completions for a shell to standard output
///
/// For bash, for instance: zonda completions bash >~/.local/share/bash-completion/completions/zonda
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    // The generator panics if it cannot write, so it writes to memory: a closed pipe is no reason
    // to panic.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut crate::definition(), "zonda", &mut text);
    out.write_all(&text)?;
    crate::done()
}
