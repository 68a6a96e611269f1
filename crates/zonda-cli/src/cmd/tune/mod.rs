//! `zonda tune`: measures which storage stack is best for a program.

mod accesses;
mod candidates;
mod replay;

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use zonda::storage::{Spec, SyncLevel};

use super::info::grouped;
use super::run::{LibraryMode, spec, sync_level};
use crate::failure::{CommandFailure, Result};
use crate::tuning::HOPELESS_RATIO;
use accesses::Accesses;
use candidates::Candidate;
use replay::{ReplayFailure, ScratchFiles, TriedStack};

/// Finds the storage stack that is best for a program
///
/// Records what the program asks of its files (or takes a recording of ZONDA_TRACE), and does the same
/// again on scratch files over the default stack, stacks that rules of thumb give for its records, and
/// others, in turns. Says which took the least time, and how to choose it. The program's files are not
/// touched but by the program; scratch files are made beside them, so on the same device, and removed.
///
/// What is measured is time in the storage, with one thread and the system's cache as it is. The program's
/// output goes to standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zonda tune -- ./model namelist
  zonda tune --trace run.trace --scratch /scratch/tmp
  zonda tune --device 100M:5ms --pauses --trace run.trace     as if the device were a slow one")]
pub(crate) struct Args {
    /// A recording of the program, instead of running it
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    trace: Option<PathBuf>,

    /// Folder for scratch files [default: those of the files]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    /// How often each stack is tried
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Transfers that are replayed, from the first one on, and bytes of scratch files, such as 512M
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = bytes)]
    limit: u64,

    /// Waits between transfers as the program did: what works in the background has its chance
    #[arg(long)]
    pauses: bool,

    /// What protects data that is synced: none, data or full (ZONDA_SYNC)
    #[arg(long, value_name = "LEVEL", value_parser = sync_level)]
    sync: Option<SyncLevel>,

    /// Bytes a second, and latency, of a slower device that stacks stand on, such as 100M:5ms
    #[arg(long, value_name = "PACE", value_parser = device)]
    device: Option<String>,

    /// One more stack to try; may be given several times
    #[arg(long = "try", value_name = "SPEC", value_parser = spec)]
    tries: Vec<String>,

    /// For machines: one JSON object
    #[arg(long)]
    json: bool,

    /// How the program gets the library, as for `zonda run`
    #[arg(long, value_enum, default_value_t = LibraryMode::Auto)]
    mode: LibraryMode,

    /// Folder of the library [default: ../lib, seen from this program]
    #[arg(long, value_name = "DIR")]
    lib: Option<PathBuf>,

    /// The program and its arguments, after --
    #[arg(trailing_var_arg = true, value_name = "PROGRAM", required_unless_present = "trace")]
    program: Vec<OsString>,
}

/// A number of bytes with k, M, G or T behind it, powers of 1024.
fn bytes(text: &str) -> std::result::Result<u64, String> {
    let (digits, power) = match text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len() {
        n if n + 1 == text.len() => {
            let unit = "kMGT".find(&text[n..]).ok_or("the unit is one of k, M, G, T")?;
            (&text[..n], unit + 1)
        }
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| "not a number of bytes".to_owned())?;
    number.checked_mul(1 << (10 * power)).ok_or_else(|| "too many bytes".to_owned())
}

fn device(text: &str) -> std::result::Result<String, String> {
    let layer = format!("throttle:{text}");
    layer.parse::<Spec>().map(|_| layer).map_err(|error| error.to_string())
}

/// A stack and its times.
#[derive(Debug, Serialize)]
struct StackTimes {
    spec: String,
    why: &'static str,
    /// Seconds of each round, unless it failed.
    seconds: Vec<f64>,
    median: Option<f64>,
    failed: Option<String>,
}

impl StackTimes {
    /// The median in seconds; without one the stack is behind all others.
    fn sort_key(&self) -> f64 {
        self.median.unwrap_or(f64::INFINITY)
    }
}

impl Args {
    /// The layer of `--device` with a comma behind it; empty without that option.
    fn device_layer(&self) -> String {
        self.device.as_ref().map_or(String::new(), |layer| format!("{layer},"))
    }
}

/// A stack that is less than so many times as fast as the default is not recommended, since that
/// may be chance.
const WORTH: f64 = 1.03;

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let sync = args.sync.unwrap_or_else(SyncLevel::from_env);
    let accesses = match &args.trace {
        Some(trace) => read(std::slice::from_ref(trace), args.limit)?,
        None => record(args)?,
    };
    if accesses.bytes == 0 {
        return Err(CommandFailure::text(
            "nothing to tune: no transfer of a netCDF file was recorded",
        ));
    }
    let below = args.device_layer();
    let mut candidates = candidates::of(&accesses, &below);
    for text in &args.tries {
        // All stacks stand on the same device. The parser of arguments has checked the text.
        let text = text.trim_end_matches("file").trim_end_matches(',');
        let separator = if text.is_empty() { "" } else { "," };
        if let Ok(spec) = format!("{text}{separator}{below}file").parse::<Spec>()
            && candidates.iter().all(|known| known.spec != spec)
        {
            candidates.push(Candidate { spec, why: "asked for" });
        }
    }
    let mut stacks = measure(args, &accesses, &candidates, sync)?;
    stacks.sort_by(|a, b| a.sort_key().total_cmp(&b.sort_key()));
    let outcome = TuneOutcome::of(args, &accesses, &stacks, &candidates[0]);
    match args.json {
        true => outcome.write_json(out)?,
        false => outcome.write_text(out)?,
    }
    crate::done()
}

/// Runs the program with a recording, and reads that.
fn record(args: &Args) -> Result<Accesses> {
    let folder = tempfile::Builder::new().prefix("zonda-tune-").tempdir();
    let folder = folder.map_err(|error| CommandFailure::at(&std::env::temp_dir(), error))?;
    record_in(args, folder.path())
}

fn record_in(args: &Args, folder: &Path) -> Result<Accesses> {
    let status =
        super::run::recorded(&args.program, args.lib.as_deref(), args.mode, &folder.join("%p"))?;
    if !status.success() {
        eprintln!("zonda tune: the program ended with {status}; what it did until then counts");
    }
    let entries = std::fs::read_dir(folder).map_err(|error| CommandFailure::at(folder, error))?;
    let mut traces: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    traces.sort();
    if traces.is_empty() {
        let what = "nothing to tune: the program opened no netCDF file with Zonda's library";
        return Err(CommandFailure::text(what));
    }
    read(&traces, args.limit)
}

fn read(traces: &[PathBuf], limit: u64) -> Result<Accesses> {
    // Of several processes, the one that transfers most bytes is tuned.
    let mut most = Accesses::default();
    for path in traces {
        let file = File::open(path).map_err(|error| CommandFailure::at(path, error))?;
        let input = BufReader::with_capacity(1 << 20, file);
        let found =
            Accesses::read(input, limit).map_err(|error| CommandFailure::at(path, error))?;
        if found.bytes >= most.bytes {
            most = found;
        }
    }
    Ok(most)
}

/// Tries the candidates in turns, so that other load of the machine affects all of them.
fn measure(
    args: &Args,
    accesses: &Accesses,
    candidates: &[Candidate],
    sync: SyncLevel,
) -> Result<Vec<StackTimes>> {
    let mut scratch = ScratchFiles::make(accesses, args.scratch.as_deref(), args.limit)?;
    let mut stacks: Vec<StackTimes> = candidates
        .iter()
        .map(|candidate| StackTimes {
            spec: candidate.spec.to_string(),
            why: candidate.why,
            seconds: Vec::new(),
            median: None,
            failed: None,
        })
        .collect();
    let mut expected_digest = None;
    for round in 0..=args.rounds {
        // Round 0 warms up and compares the files that the stacks leave.
        for turn in 0..candidates.len() {
            let index = (turn + round as usize) % candidates.len();
            let best =
                stacks.iter().filter_map(|t| t.seconds.first()).copied().fold(f64::MAX, f64::min);
            let times = &mut stacks[index];
            let hopeless =
                times.seconds.first().is_some_and(|first| *first > best * HOPELESS_RATIO);
            if times.failed.is_some() || (round > 1 && hopeless && index != 0) {
                continue;
            }
            let stack = TriedStack { spec: &candidates[index].spec, sync };
            match scratch.replay(accesses, &stack, args.pauses) {
                Ok(_) if round == 0 => {
                    let digest = scratch.digest()?;
                    // The first candidate is the default, with which the others are compared.
                    if *expected_digest.get_or_insert(digest) != digest {
                        times.failed = Some("other bytes than through the default".to_owned());
                    }
                }
                Ok(seconds) => times.seconds.push(seconds),
                Err(ReplayFailure::Scratch(failure)) => return Err(failure),
                Err(ReplayFailure::Stack(why)) if index == 0 => {
                    return Err(CommandFailure::text(why));
                }
                Err(ReplayFailure::Stack(why)) => times.failed = Some(why),
            }
        }
    }
    for times in &mut stacks {
        times.median = if times.failed.is_none() { median(&times.seconds) } else { None };
    }
    Ok(stacks)
}

/// What is said if the difference may be chance.
const DOUBT: &str = "the slowest round of the best took longer than the fastest of the default, so this may be chance: \
                     --rounds 20 on a quiet machine tells more";

/// Whether the two sets of times overlap.
fn overlap(better: &[f64], others: &[f64]) -> bool {
    better.iter().any(|one| others.iter().any(|other| one >= other))
}

fn median(seconds: &[f64]) -> Option<f64> {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n.is_multiple_of(2) => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
        _ => Some(sorted[middle]),
    }
}

/// What `--json` gives.
#[derive(Serialize)]
struct TuneJson<'a> {
    files: &'a [String],
    accesses: usize,
    bytes: u64,
    cut: bool,
    tried: &'a [StackTimes],
    best: &'a str,
    default: &'a str,
    /// Place among the stacks that did not fail; 1 is the best.
    default_rank: usize,
    ranked: usize,
    /// Time of the default divided by time of the best.
    gain: f64,
    environment: Option<String>,
}

/// What the trials show.
struct TuneOutcome<'a> {
    accesses: &'a Accesses,
    /// The fastest first; those that failed last.
    stacks: &'a [StackTimes],
    best: &'a StackTimes,
    default: &'a StackTimes,
    /// Place of the default among those that did not fail, 1 for the fastest.
    default_rank: usize,
    /// How many did not fail.
    n_ranked: usize,
    /// The time of the default divided by that of the best.
    gain: f64,
    /// What sets the best stack, where that is worth doing.
    environment: Option<String>,
}

impl<'a> TuneOutcome<'a> {
    fn of(
        args: &Args,
        accesses: &'a Accesses,
        stacks: &'a [StackTimes],
        default: &Candidate,
    ) -> TuneOutcome<'a> {
        let default = default.spec.to_string();
        let index = stacks.iter().position(|stack| stack.spec == default).unwrap_or(0);
        let (best, default) = (&stacks[0], &stacks[index]);
        let gain = default.sort_key() / best.sort_key();
        // The device is part of the trial, not of what is to be set.
        let setting = best.spec.replace(&args.device_layer(), "");
        TuneOutcome {
            accesses,
            stacks,
            best,
            default,
            default_rank: index + 1,
            n_ranked: stacks.iter().filter(|stack| stack.median.is_some()).count(),
            gain,
            environment: (gain >= WORTH).then(|| format!("ZONDA_IO={setting}")),
        }
    }

    fn write_json(self, out: &mut dyn Write) -> Result<()> {
        let json = TuneJson {
            files: &self.accesses.paths,
            accesses: self.accesses.all.len(),
            bytes: self.accesses.bytes,
            cut: self.accesses.cut,
            tried: self.stacks,
            best: &self.best.spec,
            default: &self.default.spec,
            default_rank: self.default_rank,
            ranked: self.n_ranked,
            gain: self.gain,
            environment: self.environment,
        };
        let text = serde_json::to_string(&json)
            .map_err(|error| CommandFailure::text(error.to_string()))?;
        Ok(writeln!(out, "{text}")?)
    }

    fn write_text(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(
            out,
            "{} operations, {} bytes, in {}{}",
            grouped(self.accesses.all.len() as u64),
            grouped(self.accesses.bytes),
            self.accesses.paths.join(", "),
            if self.accesses.cut { " (the first part of them)" } else { "" }
        )?;
        self.write_table(out)?;
        writeln!(out)?;
        let is_doubtful = overlap(&self.best.seconds, &self.default.seconds);
        if self.environment.is_some() && is_doubtful {
            writeln!(out, "{DOUBT}")?;
        }
        let (gain, rank, n_ranked) = (self.gain, self.default_rank, self.n_ranked);
        match &self.environment {
            Some(line) => writeln!(
                out,
                "best is {}, {gain:.2} times as fast as the default, which is number {rank} of {n_ranked}; \
                 {}:\n\n    export {line}",
                self.best.spec,
                if is_doubtful { "to try it where more runs say the same" } else { "to use it" },
            )?,
            None => writeln!(
                out,
                "the default is number {rank} of {n_ranked}, and the best no more than {:.0} % faster: \
                 nothing to set",
                (gain - 1.0) * 100.0
            )?,
        }
        Ok(())
    }

    fn write_table(&self, out: &mut dyn Write) -> Result<()> {
        let widths = self.stacks.iter().map(|stack| stack.spec.chars().count());
        let width = widths.max().unwrap_or(0).max(5);
        writeln!(out, "\n    {:<width$}      median        best   by the best  ", "stack")?;
        for stack in self.stacks {
            let Some(median) = stack.median else {
                let why = stack.failed.as_deref().unwrap_or("not tried");
                writeln!(out, "    {:<width$}  {why}", stack.spec)?;
                continue;
            };
            let least = stack.seconds.iter().copied().fold(f64::INFINITY, f64::min);
            let ratio = median / self.best.sort_key();
            writeln!(
                out,
                "    {:<width$}  {median:>8.6} s  {least:>8.6} s  {ratio:>10.2} x  {}",
                stack.spec, stack.why
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let sizes = ["7", "4k", "512M", "20G", "1T"].map(bytes);
        let expected = [7, 4 << 10, 512 << 20, 20 << 30, 1 << 40].map(Ok);
        assert_eq!(sizes, expected);
        for bad in ["", "G", "4g", "4GB", "-1", "99999999T", "é"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_that_overlap_prove_nothing() {
        assert!(overlap(&[1.0, 3.0], &[2.0, 4.0]));
        assert!(!overlap(&[1.0, 2.0], &[3.0, 4.0]));
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
