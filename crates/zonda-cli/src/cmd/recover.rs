//! `zonda recover`: completes what a program that died had begun in a file, and saves what can be read
//! of damaged ones.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use zonda::copy::{CopiedVar, CopyOptions, Loss, copy_dataset};
use zonda::{Damaged, Dataset, NcError, Recovery};

use super::info::grouped;
use crate::failure::{CommandFailure, Result};
use crate::{input, progress};

/// Exit status where something is lost.
const PARTLY: u8 = 3;
/// The most losses that are shown without `--all`.
const MOST_SHOWN: usize = 20;

/// Repairs files whose writer died, and saves what can be read of damaged ones
///
/// A change that takes more than one write leaves a journal (FILE.zonda-journal) beside the file
/// until it is complete. This command completes it and removes the journal, and the unfinished copy
/// (FILE.zonda-copy) that a rewriting program may leave. A file that needs nothing is not changed.
/// Zonda does the same when it opens such a file for writing.
///
/// A journal that belongs to another user is not used: whoever may write to the folder could have put
/// it there. What it would change is shown, and --trust says that it may.
///
/// With --to, all that can be read of a damaged file goes to a new one, in the same format, and what
/// cannot is told of: values become fill values, attributes and variables are left out. The file
/// itself is not changed. It may be cut off anywhere, and parts of it may be written over: variables
/// of an HDF5 file whose groups are damaged are looked for in all of its bytes, and go under
/// object_at_ and their place where their names are lost. Of a classic file all records are taken of
/// which the file has something. At the end there is a line for each variable that says how much of
/// it is saved. Exit status 3 where something is lost, 1 where no value could be saved.
///
/// With --records, the header of a classic file is made to say how many complete records the file
/// has, by its length.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zonda recover history.nc
  zonda recover --trust maria history.nc
  zonda recover --to saved.nc damaged.nc
  zonda recover --records history.nc")]
pub(crate) struct Args {
    /// Copies what can be read to this file
    #[arg(long, value_name = "NEW", conflicts_with = "records")]
    to: Option<PathBuf>,

    /// Replaces a file that is there already
    #[arg(short = 'f', long, requires = "to")]
    force: bool,

    /// Shows all that is lost, not only the first of it
    #[arg(short = 'a', long, requires = "to")]
    all: bool,

    /// Writes the number of records that follows from the length of the file into its header
    #[arg(long)]
    records: bool,

    /// Completes what a journal of this user says, too: a name or a number
    #[arg(long, value_name = "USER", conflicts_with = "to")]
    trust: Option<String>,

    /// Files to be repaired; with --to one
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// A verb for what was done, and whether the file is in order now.
fn outcome(recovery: Recovery) -> (&'static str, bool) {
    match recovery {
        Recovery::Nothing => ("nothing to recover", true),
        Recovery::Untouched => ("unchanged since its last commit; journal removed", true),
        Recovery::Header => ("header completed", true),
        Recovery::Move => ("data moved to its new places, header completed", true),
        Recovery::Objects => ("changes completed", true),
        Recovery::NotItsJournal => (
            "made or changed since its journal was written; both left as they are: where the file \
              is right, remove the journal",
            false,
        ),
        Recovery::InUse => ("its writer is alive; nothing done", false),
    }
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    if let Some(target) = &args.to {
        let [source] = &args.files[..] else {
            return Err(CommandFailure::Usage("--to goes with one file; see --help".to_owned()));
        };
        return save(args, source, target, out);
    }
    let trusted = args.trust.as_deref().map(user).transpose()?;
    let mut failed = false;
    for path in &args.files {
        match repair(path, args.records, trusted, out) {
            Ok((what, right)) => {
                writeln!(out, "{}: {what}", path.display())?;
                failed |= !right;
            }
            Err(error) => {
                // Flushes, so that messages stay in the order of the files where both streams have
                // one target.
                out.flush()?;
                eprintln!("zonda: {}", error.line());
                if let Some(owner) = error.refused_owner() {
                    foreign(path, owner, out)?;
                }
                failed = true;
            }
        }
    }
    if failed { Err(CommandFailure::Reported) } else { crate::done() }
}

/// The number of a user.
fn user(name: &str) -> Result<u32> {
    zonda::storage::neighbour::user_id(name)
        .ok_or_else(|| CommandFailure::Usage(format!("there is no user {name}; see --help")))
}

/// Writes what a journal changes.
fn list(path: &Path, verb: &str, lines: &[String], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "{}: its journal {verb}", path.display())?;
    lines.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    out.flush()
}

/// Shows what the journal of another user would change. Nothing is changed.
fn foreign(path: &Path, owner: u32, out: &mut dyn Write) -> Result<()> {
    let mut lines = Vec::new();
    let mut show = |shown: &[String]| {
        lines = shown.to_vec();
        Err(NcError::Perm.into())
    };
    match zonda::recover_of(path, owner, &mut show) {
        Err(_) if !lines.is_empty() => list(path, "would change", &lines, out)?,
        Ok(Recovery::NotItsJournal) => {
            writeln!(out, "{}: the journal was not written for this file", path.display())?;
        }
        // There is nothing to show: the journal is void, its writer is alive, or it cannot be read.
        _ => return Ok(()),
    }
    writeln!(
        out,
        "{}: --trust {owner} completes what a journal of that user says",
        path.display()
    )?;
    Ok(())
}

/// Completes the change that was begun in a file, then corrects its number of records.
fn repair(
    path: &Path,
    records: bool,
    trusted: Option<u32>,
    out: &mut dyn Write,
) -> zonda::Result<(String, bool)> {
    let done = match trusted {
        None => zonda::recover(path)?,
        Some(user) => zonda::recover_of(path, user, &mut |lines| {
            // The repair goes on even if the reader of the output went away.
            let _ = list(path, "changes", lines, out);
            Ok(())
        })?,
    };
    let (what, right) = outcome(done);
    if !right {
        return Ok((what.to_owned(), right));
    }
    if !records {
        return Ok(match damage(path) {
            None => (format!("{what}{}", uncounted(path)), true),
            Some(cause) => (
                format!("{what}, and it is damaged: {cause}; --to NEW saves what can be read"),
                false,
            ),
        });
    }
    let counted = match zonda::set_records(path)? {
        None => "no variable has records".to_owned(),
        Some((before, after)) if before == after => {
            format!("its {} records are as many as its header says", grouped(after))
        }
        Some((before, after)) => {
            let (before, after) = (grouped(before), grouped(after));
            format!("its header says {after} records now; it said {before}")
        }
    };
    Ok(match done {
        Recovery::Nothing => (counted, true),
        _ => (format!("{what}; {counted}"), true),
    })
}

/// What to do for records behind those that the header of a classic file counts: a writer that died had not counted them. One that lives
/// has not counted them yet, so they are not counted by themselves.
fn uncounted(path: &Path) -> String {
    match zonda::count_records(path) {
        Ok(Some((before, after))) if after > before => format!(
            "; it has {} records, and its header counts {}: where nobody writes it, --records counts them all",
            grouped(after),
            grouped(before)
        ),
        _ => String::new(),
    }
}

/// Damage that has another cause than the writer's death, as far as opening the file shows it.
/// Without this, users could take "nothing to complete" for "sound".
fn damage(path: &Path) -> Option<String> {
    let look = || {
        let file = Dataset::open(path, &zonda::OpenOptions::default())?;
        file.in_group(zonda::GroupId::ROOT, |_| ())?;
        let missing = file.missing_bytes()?;
        file.close()?;
        zonda::Result::Ok(missing)
    };
    match look() {
        Ok(0) => None,
        Ok(missing) => Some(format!("{missing} bytes are missing at its end")),
        Err(error) => Some(error.cause()),
    }
}

/// Copies what can be read.
fn save(args: &Args, source: &Path, target: &Path, out: &mut dyn Write) -> Result<ExitCode> {
    let file = match input::is_stdin(source) {
        true => input::open(source)?,
        false => Dataset::open_damaged(source, Damaged::Search)?,
    };
    let options = CopyOptions { salvage: true, replace: args.force, ..CopyOptions::default() };
    zonda_runtime::memory::limit(options.memory_bytes / 4);
    let copied =
        progress::watched(false, |progress| copy_dataset(&file, target, &options, progress))??;
    file.close()?;
    for note in &copied.notes {
        eprintln!("zonda: {}: {note}", input::label(target).display());
    }
    let most = if args.all { usize::MAX } else { MOST_SHOWN };
    for lost in copied.lost.iter().take(most) {
        writeln!(out, "lost: {}", shown(lost))?;
    }
    let hidden = copied.n_lost.saturating_sub(copied.lost.len().min(most) as u64);
    if hidden > 0 {
        writeln!(out, "lost: and {} more", grouped(hidden))?;
    }
    for var in &copied.vars {
        writeln!(out, "{}", saved(var))?;
    }
    let (from, to) = (input::label(source), input::label(target));
    let (from, to) = (from.display(), to.display());
    let vars = copied.vars.len();
    if copied.n_lost == 0 {
        writeln!(out, "{from}: {vars} variables saved to {to}, nothing lost")?;
        return crate::done();
    }
    let has_values = copied.vars.iter().any(|var| var.n_elems > 0);
    if has_values && copied.vars.iter().all(|var| var.n_lost >= var.n_elems) {
        writeln!(out, "{from}: no value saved of {vars} variables; {to} has what they are")?;
        return Ok(ExitCode::FAILURE);
    }
    let things = match copied.n_lost {
        1 => "1 thing".to_owned(),
        n => format!("{} things", grouped(n)),
    };
    writeln!(out, "{from}: {vars} variables saved to {to}, but for {things}")?;
    Ok(ExitCode::from(PARTLY))
}

/// `saved: /ocean/temp: 3_200 of 6_400 elements`
fn saved(var: &CopiedVar) -> String {
    let (n, lost) = (var.n_elems, var.n_lost.min(var.n_elems));
    match lost {
        0 => format!("saved: {}: all of {} elements", var.path, grouped(n)),
        _ => format!("saved: {}: {} of {} elements", var.path, grouped(n - lost), grouped(n)),
    }
}

/// `/ocean/temp [0, 40] to [0, 79]: deflate at byte 81920: …`
fn shown(lost: &Loss) -> String {
    let part = lost.part.as_ref().map_or_else(String::new, |(start, count)| {
        let last: Vec<u64> = start
            .iter()
            .zip(count)
            .map(|(start, count)| (start + count).saturating_sub(1))
            .collect();
        format!(" {start:?} to {last:?}")
    });
    lost.answer.said_of(format!("{}{part}: {}", lost.path, lost.why))
}

#[cfg(test)]
mod tests {
    use zonda::Answer;

    use super::*;

    #[test]
    fn losses_as_text() {
        let part = Some((vec![0, 40], vec![1, 40]));
        let (path, why, answer) = ("/v".to_owned(), "bad".to_owned(), Answer::Damaged);
        let mut lost = Loss { path, part, why, answer };
        assert_eq!(shown(&lost), "/v [0, 40] to [0, 79]: bad (damaged)");
        (lost.part, lost.answer) = (None, Answer::Undecodable);
        assert_eq!(shown(&lost), "/v: bad (cannot be decoded here)");
    }
}
