//! `zonda recover`: completes what a program that died had begun in a file.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use zonda::Recovery;

use crate::failure::{Failure, Result};

/// Repairs files whose writer died
///
/// A change that takes more than one write leaves a journal (FILE.zonda-journal) beside the file
/// until it is complete. This command completes it and removes the journal, and the unfinished copy
/// (FILE.zonda-copy) that a rewriting program may leave. A file that needs nothing is not changed.
/// Zonda does the same when it opens such a file for writing.
///
/// For instance: zonda recover history.nc
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to be repaired
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// What was done, and whether the file is right now.
fn told(recovery: Recovery) -> (&'static str, bool) {
    match recovery {
        Recovery::Nothing => ("nothing to recover", true),
        Recovery::Untouched => ("unchanged since its last commit; journal removed", true),
        Recovery::Header => ("header completed", true),
        Recovery::Move => ("data moved to its new places, header completed", true),
        Recovery::Objects => ("changes completed", true),
        Recovery::NotItsJournal => {
            ("made or changed since its journal was written; both left as they are", false)
        }
        Recovery::InUse => ("its writer is alive; nothing done", false),
    }
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let mut failed = false;
    for path in &args.files {
        match zonda::recover(path) {
            Ok(recovery) => {
                let (what, right) = told(recovery);
                writeln!(out, "{}: {what}", path.display())?;
                failed |= !right;
            }
            Err(error) => {
                // In the order of the files, also where both streams go to one place.
                out.flush()?;
                eprintln!("zonda: {error}");
                failed = true;
            }
        }
    }
    if failed { Err(Failure::Reported) } else { crate::done() }
}
