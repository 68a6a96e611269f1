//! `zonda check`: whether files are sound.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use zonda::Answer;
use zonda::check::{Checked, Finding, Grade, check_with, follow_check};

use super::info::grouped;
use crate::failure::Result;
use crate::ranks::Part;
use crate::writers::{self, Writer};
use crate::{input, progress, ranks};

/// The most findings that are shown for a file without `--all`.
const MOST_SHOWN: usize = 20;
/// Exit status where something is damaged.
const DAMAGED: u8 = 1;
/// Exit status where something could not be checked.
const UNCHECKED: u8 = 2;
/// Exit status where something is sound but cannot be represented in netCDF.
const NO_WORDS: u8 = 3;

/// Checks that files are sound
///
/// Of HDF5 files all structures are walked and every chunk is read and decoded, which compares their
/// checksums; of classic files the places of all variables are compared with each other and with the
/// length of the file. Of datasets of OPeNDAP all attributes and values are read. Each damage is told
/// with its object and its first byte. A process that has the file open for writing is told of, as the helper of ZONDA_ASYNC=helper,
/// which completes a file after its program was killed: check again when it has ended.
///
/// Exit status 0 for sound files, 1 where something is damaged, 2 where a file could not be read or
/// something in it cannot be decoded here, as for want of a filter, 3 where all of it is sound and
/// something cannot be represented in netCDF, as attributes of several dimensions. Of several files
/// the first of these in the order 1, 2, 3.
///
/// Ranks that mpiexec starts divide the reading of chunks. Rank 0 prints what all of them found.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zonda check run.nc
  zonda check --json archive/*.nc > report.jsonl
  zonda check -q run.nc && echo sound")]
pub(crate) struct Args {
    /// Shows all that was found, not only the first of it
    #[arg(short = 'a', long)]
    all: bool,

    /// For machines: a JSON object for each file, one a line
    #[arg(long)]
    json: bool,

    /// Nothing but the exit status, and messages
    #[arg(short = 'q', long, conflicts_with_all = ["all", "json"])]
    quiet: bool,

    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let mut status = 0;
    let first = args.files.first().map_or(Path::new(""), |path| path);
    let lead = match ranks::part(
        "zonda check",
        first,
        input::undivided(args.files.iter().map(PathBuf::as_path)),
    )? {
        Part::Alone => None,
        Part::Lead(lead) => Some(lead),
        Part::Follow(follower) => {
            let follow = || follow_check(&*follower.team, follower.step());
            follower.ended(progress::following(follow)?);
            return crate::done();
        }
        Part::Nothing => return crate::done(),
    };
    for path in &args.files {
        let (lead, label) = (lead.as_deref(), input::label(path));
        let checked = progress::watched(args.quiet, |progress| {
            check_with(lead, &input::place(path), progress)
        })?;
        match checked {
            Ok(mut checked) => {
                tell_of_writers(path, &mut checked);
                if args.json {
                    let report = FileReport::of(&label, &checked);
                    serde_json::to_writer(&mut *out, &report).map_err(std::io::Error::from)?;
                    writeln!(out)?;
                } else if !args.quiet {
                    write_text(out, &label, &checked, args.all)?;
                }
                let grade = match checked.worst() {
                    Some(Grade::Damage) => DAMAGED,
                    Some(Grade::Unchecked) => UNCHECKED,
                    Some(Grade::Unrepresentable) => NO_WORDS,
                    Some(Grade::Remark) | None => 0,
                };
                status = worse(status, grade);
            }
            Err(error) => {
                // Flushes, so that messages stay in the order of the files where both streams have
                // one target.
                out.flush()?;
                eprintln!("zonda: {}", error.line());
                status = worse(status, UNCHECKED);
            }
        }
    }
    Ok(ExitCode::from(status))
}

/// Adds a remark for each process that writes the file: its own program, or the helper that completes what a killed one put.
fn tell_of_writers(path: &Path, checked: &mut Checked) {
    for Writer { pid, name } in writers::of(path) {
        let what = format!(
            "process {pid} ({name}) has it open for writing: what it has not committed is not in this check"
        );
        checked.findings.push(Finding { grade: Grade::Remark, object: None, at: None, what });
        checked.n_findings += 1;
    }
}

/// The more important exit status: damage comes first, and success last.
fn worse(a: u8, b: u8) -> u8 {
    match (a, b) {
        (0, other) | (other, 0) => other,
        (a, b) => a.min(b),
    }
}

fn write_text(out: &mut dyn Write, path: &Path, checked: &Checked, all: bool) -> Result<()> {
    let path = path.display();
    let most = if all { usize::MAX } else { MOST_SHOWN };
    for finding in checked.findings.iter().take(most) {
        writeln!(out, "{path}: {}", shown(finding))?;
    }
    let hidden = checked.n_findings.saturating_sub(checked.findings.len().min(most) as u64);
    if hidden > 0 {
        writeln!(out, "{path}: and {} more findings", grouped(hidden))?;
    }
    let count = |grade| checked.findings.iter().filter(|finding| finding.grade == grade).count();
    let verdict = match checked.worst() {
        Some(Grade::Damage) => format!("damaged in {}", places(count(Grade::Damage))),
        Some(Grade::Unchecked) if checked.format.is_none() => "not checked".to_owned(),
        Some(Grade::Unchecked) => {
            let n = places(count(Grade::Unchecked));
            format!("sound as far as it was checked, but for {n} that cannot be decoded here")
        }
        Some(Grade::Unrepresentable) => {
            let things = match count(Grade::Unrepresentable) {
                1 => "1 thing".to_owned(),
                n => format!("{} things", grouped(n as u64)),
            };
            format!("sound, but for {things} that cannot be represented in netCDF")
        }
        Some(Grade::Remark) | None => "sound".to_owned(),
    };
    let chunks = match checked.n_chunks {
        0 => String::new(),
        n => format!(", {} chunks", grouped(n)),
    };
    // A dataset of OPeNDAP is none.
    let file = match checked.file_bytes {
        0 => String::new(),
        n => format!("{} bytes of file, ", grouped(n)),
    };
    writeln!(
        out,
        "{path}: {verdict}; {file}{} variables{chunks}, {} bytes of data",
        checked.n_vars,
        grouped(checked.data_bytes)
    )?;
    Ok(())
}

fn places(n: usize) -> String {
    if n == 1 { "1 place".to_owned() } else { format!("{} places", grouped(n as u64)) }
}

/// `/ocean/temp: chunk [3, 0, 1] at byte 81920: …`
fn shown(finding: &Finding) -> String {
    let mut text = String::new();
    if let Some(object) = &finding.object {
        text.push_str(object);
        text.push_str(": ");
    }
    text.push_str(&finding.what);
    match finding.grade {
        Grade::Damage => Answer::Damaged.said_of(text),
        Grade::Unchecked => Answer::Undecodable.said_of(text),
        Grade::Unrepresentable => Answer::Unrepresentable.said_of(text),
        Grade::Remark => text,
    }
}

/// What was found in a file, for machines.
#[derive(Serialize)]
struct FileReport<'a> {
    path: Cow<'a, str>,
    /// `null` for a file that cannot be opened.
    format: Option<&'static str>,
    /// Nothing is damaged, and everything was looked at.
    sound: bool,
    file_bytes: u64,
    variables: usize,
    chunks: u64,
    data_bytes: u64,
    unaccounted_bytes: u64,
    n_findings: u64,
    findings: Vec<FindingReport<'a>>,
}

#[derive(Serialize)]
struct FindingReport<'a> {
    /// `damage`, `unchecked`, `unrepresentable`, `remark`
    grade: &'static str,
    object: Option<&'a str>,
    /// First byte in the file.
    byte: Option<u64>,
    what: &'a str,
}

impl<'a> FileReport<'a> {
    fn of(path: &'a Path, checked: &'a Checked) -> FileReport<'a> {
        let found = |finding: &'a Finding| FindingReport {
            grade: match finding.grade {
                Grade::Damage => "damage",
                Grade::Unchecked => "unchecked",
                Grade::Unrepresentable => "unrepresentable",
                Grade::Remark => "remark",
            },
            object: finding.object.as_deref(),
            byte: finding.at,
            what: &finding.what,
        };
        FileReport {
            path: path.to_string_lossy(),
            format: checked.format.map(zonda::Format::kind),
            sound: checked.worst().is_none_or(|grade| grade <= Grade::Unrepresentable),
            file_bytes: checked.file_bytes,
            variables: checked.n_vars,
            chunks: checked.n_chunks,
            data_bytes: checked.data_bytes,
            unaccounted_bytes: checked.unaccounted_bytes,
            n_findings: checked.n_findings,
            findings: checked.findings.iter().map(found).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &str) -> std::result::Result<Args, clap::Error> {
        Cli::try_parse_from(line.split(' ')).map(|cli| cli.args)
    }

    #[test]
    fn options() {
        assert!(parse("check").is_err());
        assert!(parse("check -q --json a").is_err());
        let args = parse("check -a a b").unwrap();
        assert!(args.all && args.files.len() == 2);
    }

    #[test]
    fn statuses() {
        assert_eq!(
            [worse(0, 3), worse(3, 2), worse(2, 1), worse(1, 3), worse(0, 0)],
            [3, 2, 1, 1, 0]
        );
    }

    #[test]
    fn findings_as_text() {
        let mut finding = Finding {
            grade: Grade::Damage,
            object: Some("/v".to_owned()),
            at: Some(7),
            what: "bad at byte 7".to_owned(),
        };
        assert_eq!(shown(&finding), "/v: bad at byte 7 (damaged)");
        finding.grade = Grade::Unchecked;
        assert_eq!(shown(&finding), "/v: bad at byte 7 (cannot be decoded here)");
        finding.object = None;
        assert_eq!(shown(&finding), "bad at byte 7 (cannot be decoded here)");
        assert_eq!((places(1), places(1200)), ("1 place".to_owned(), "1_200 places".to_owned()));
    }
}
