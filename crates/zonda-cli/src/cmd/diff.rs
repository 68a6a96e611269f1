//! `zonda diff`: what is different between two files.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use zonda::copy::Pattern;
use zonda::diff::{DiffOptions, Difference, DifferenceKind, Side, Tolerance, ValuesDiffer, diff};

use super::info::grouped;
use crate::failure::{CommandFailure, Result};
use crate::{input, progress};

/// Exit status where something is different.
const DIFFERENT: u8 = 1;
/// Exit status where something went wrong.
const TROUBLE: u8 = 2;

/// Shows what is different between two files
///
/// Definitions and values are compared by name, whatever the formats and however data are stored:
/// groups, dimensions, types, variables, attributes, and every value. Not-a-numbers are equal to each
/// other. Of values that differ, the number, the first and the largest difference are told.
///
/// Exit status as of cmp: 0 for the same, 1 for a difference, 2 for trouble.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zonda diff old.nc new.nc
  zonda diff --relative 1e-6 --ignore history old.nc new.nc
  zonda diff -v 'T*,S' --values a.nc b.nc
  zonda diff --metadata a.nc b.nc")]
pub(crate) struct Args {
    /// Only these variables
    #[arg(short = 'v', long = "var", value_name = "VAR,...")]
    vars: Vec<String>,

    /// Not these variables
    #[arg(short = 'x', long, value_name = "VAR,...")]
    exclude: Vec<String>,

    /// Not attributes of these names
    #[arg(short = 'i', long, value_name = "NAME,...", conflicts_with = "values")]
    ignore: Vec<String>,

    /// Numbers that differ by no more than this are the same
    #[arg(short = 't', long, value_name = "NUMBER", default_value = "0", value_parser = tolerance)]
    absolute: f64,

    /// Numbers that differ by no more than this part of the larger one are the same
    #[arg(short = 'r', long, value_name = "PART", default_value = "0", value_parser = tolerance)]
    relative: f64,

    /// Only definitions and attributes
    #[arg(short = 'm', long, conflicts_with_all = ["values", "absolute", "relative"])]
    metadata: bool,

    /// Only values of variables that both have
    #[arg(long)]
    values: bool,

    /// Nothing but the exit status, at the first difference
    #[arg(short = 'q', long, conflicts_with = "json")]
    quiet: bool,

    /// For machines: a JSON object for each difference, one a line
    #[arg(long)]
    json: bool,

    /// The first file; `-` for standard input
    first: PathBuf,

    /// The second file
    second: PathBuf,
}

fn tolerance(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number >= 0.0 && number.is_finite());
    number.ok_or_else(|| "expected a number that is not negative".to_owned())
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    match compare(args, out) {
        // An error must not have the exit status of a difference.
        Err(
            failure @ (CommandFailure::Failed(_)
            | CommandFailure::InFile(_)
            | CommandFailure::Library(_)),
        ) => {
            out.flush()?;
            eprintln!("zonda: {}", failure.into_text());
            Ok(ExitCode::from(TROUBLE))
        }
        done => done,
    }
}

fn compare(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let patterns = |lists: &[String]| -> Vec<Pattern> {
        let names = lists.iter().flat_map(|list| list.split(','));
        names.filter(|name| !name.is_empty()).map(Pattern::new).collect()
    };
    let options = DiffOptions {
        vars: patterns(&args.vars),
        exclude: patterns(&args.exclude),
        ignore_attributes: patterns(&args.ignore),
        values: !args.metadata,
        definitions: !args.values,
        tolerance: Tolerance { absolute: args.absolute, relative: args.relative },
        ..DiffOptions::default()
    };
    zonda_runtime::memory::limit(options.memory_bytes / 4);
    let (first, second) = (input::open(&args.first)?, input::open(&args.second)?);
    if options.values && !args.quiet {
        input::warn_of_missing(&first, &args.first)?;
        input::warn_of_missing(&second, &args.second)?;
    }
    let mut written: Result<()> = Ok(());
    let mut seen = false;
    let is_enough = std::cell::Cell::new(false);
    let mut found = |difference: Difference| {
        seen = true;
        is_enough.set(args.quiet);
        if written.is_ok() && !args.quiet {
            written = if args.json { json(out, &difference) } else { text(out, &difference) };
        }
    };
    let done = progress::watched(args.quiet, |progress| {
        let mut go_on = |at: &zonda::copy::Progress<'_>| match is_enough.get() {
            true => std::ops::ControlFlow::Break(()),
            false => progress(at),
        };
        diff(&first, &second, &options, &mut found, &mut go_on)
    })?;
    written?;
    match done {
        // `--quiet` stopped the comparison at the first difference.
        Err(_) if is_enough.get() => {}
        done => drop(done?),
    }
    first.close()?;
    second.close()?;
    Ok(ExitCode::from(if seen { DIFFERENT } else { 0 }))
}

fn text(out: &mut dyn Write, difference: &Difference) -> Result<()> {
    let Difference { thing, path, how } = difference;
    let what = match how {
        DifferenceKind::OnlyIn(Side::First) => "only in the first file".to_owned(),
        DifferenceKind::OnlyIn(Side::Second) => "only in the second file".to_owned(),
        DifferenceKind::Defined { what, first, second } => format!("{what} {first} | {second}"),
        DifferenceKind::NotComparable(why) => format!("not comparable: {why}"),
        DifferenceKind::Values(values) => shown(values),
    };
    Ok(writeln!(out, "{thing} {path}: {what}")?)
}

/// `3 of 12 values differ; first at [0, 1]: 1.5 | 1.6; largest difference 0.1 at [0, 1]`
fn shown(values: &ValuesDiffer) -> String {
    let ValuesDiffer { n, of, at, first, second, largest } = values;
    let (n, of) = (grouped(*n), grouped(*of));
    let mut text = format!("{n} of {of} values differ; first at {at:?}: {first} | {second}");
    if let Some((by, at)) = largest {
        text.push_str(&format!("; largest difference {by} at {at:?}"));
    }
    text
}

/// A difference, for machines.
#[derive(Serialize)]
struct DifferenceJson<'a> {
    thing: String,
    path: &'a str,
    /// `only in first`, `only in second`, `values`, `not comparable`, or what of the definition.
    what: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    second: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    differing: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a [u64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    largest: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    largest_at: Option<&'a [u64]>,
}

fn json(out: &mut dyn Write, difference: &Difference) -> Result<()> {
    let mut record = DifferenceJson {
        thing: difference.thing.to_string(),
        path: &difference.path,
        what: "values",
        first: None,
        second: None,
        differing: None,
        values: None,
        at: None,
        largest: None,
        largest_at: None,
    };
    match &difference.how {
        DifferenceKind::OnlyIn(Side::First) => record.what = "only in first",
        DifferenceKind::OnlyIn(Side::Second) => record.what = "only in second",
        DifferenceKind::NotComparable(why) => {
            record.what = "not comparable";
            record.first = Some(why);
        }
        DifferenceKind::Defined { what, first, second } => {
            (record.what, record.first, record.second) = (what, Some(&**first), Some(&**second));
        }
        DifferenceKind::Values(values) => {
            (record.first, record.second) = (Some(&*values.first), Some(&*values.second));
            (record.differing, record.values) = (Some(values.n), Some(values.of));
            record.at = Some(&values.at);
            record.largest = values.largest.as_ref().map(|(by, _)| *by);
            record.largest_at = values.largest.as_ref().map(|(_, at)| &at[..]);
        }
    }
    serde_json::to_writer(&mut *out, &record).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances() {
        assert_eq!(tolerance("1e-6"), Ok(1e-6));
        for text in ["-1", "nan", "inf", "x", ""] {
            assert!(tolerance(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_as_text() {
        let mut values = ValuesDiffer {
            n: 1,
            of: 1200,
            at: vec![0, 3],
            first: "1".to_owned(),
            second: "2".to_owned(),
            largest: Some((1.0, vec![0, 3])),
        };
        let all =
            "1 of 1_200 values differ; first at [0, 3]: 1 | 2; largest difference 1 at [0, 3]";
        assert_eq!(shown(&values), all);
        values.largest = None;
        assert_eq!(shown(&values), "1 of 1_200 values differ; first at [0, 3]: 1 | 2");
    }
}
