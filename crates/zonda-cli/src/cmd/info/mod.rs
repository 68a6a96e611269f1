//! `zonda info`: what a file is, where things lie in it, and through which layers it is read.

mod dap;
mod facts;
mod hdf5;
mod runtime;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use super::table::TextTable;
use crate::failure::{CommandFailure, Result};
use facts::{FileFacts, FilePart, VariableFacts};

/// The most lines about errors that are shown for a file.
const MOST_LINES: usize = 20;

/// Shows the format, layout and sizes of files
///
/// Sizes and positions are in bytes. Of netCDF-4 and other HDF5 files, the chunks, filters and stored
/// bytes of each variable are shown; no data is read. What cannot be told is ?, and a line on standard error
/// says which object it is of, and why: damaged, not to be represented in netCDF, or not to be decoded
/// here. Exit status 1 then, and if a file is shorter than its header says.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For machines: a JSON object for each file, one a line
    #[arg(long)]
    json: bool,

    /// How many threads and how much memory the library takes here, and why
    #[arg(long, conflicts_with = "files")]
    runtime: bool,

    /// The files; `-` for standard input
    #[arg(required_unless_present = "runtime", value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    if args.runtime {
        runtime::write(out, args.json)?;
        return crate::done();
    }
    let mut failed = false;
    for (index, path) in args.files.iter().enumerate() {
        let facts = FileFacts::of(path);
        if args.json {
            let json =
                serde_json::to_string(&facts).map_err(|error| CommandFailure::at(path, error))?;
            writeln!(out, "{json}")?;
        } else if facts.format.is_some() {
            if index > 0 {
                writeln!(out)?;
            }
            write_text(out, &facts)?;
        }
        if !facts.lines.is_empty() {
            // Flushes, so that messages stay in the order of the files where both streams have one
            // target.
            out.flush()?;
            failed = true;
        }
        for line in facts.lines.iter().take(MOST_LINES) {
            eprintln!("zonda: {line}");
        }
        if let Some(more @ 1..) = facts.lines.len().checked_sub(MOST_LINES) {
            eprintln!("zonda: {}: and {more} more; zonda check tells of all", facts.path);
        }
    }
    if failed { Err(CommandFailure::Reported) } else { crate::done() }
}

fn write_text(out: &mut dyn Write, facts: &FileFacts) -> Result<()> {
    writeln!(out, "{}", facts.path)?;
    let mut line = |label: &str, text: String| writeln!(out, "  {label:<10} {text}");
    if let Some(format) = &facts.format {
        let version = facts.version.filter(|version| version != format);
        let version = version.map_or(String::new(), |version| format!(" ({version})"));
        line("format", format!("{format}{version}"))?;
    }
    if let Some(bytes) = facts.file_bytes {
        line("file", format!("{} bytes", grouped(bytes)))?;
    }
    if facts.superblock.is_some() {
        return hdf5::write_text(out, facts);
    }
    // Nothing more is known of a file that could not be opened.
    let Some(stack) = &facts.stack else { return Ok(()) };
    if let Some(layout) = &facts.layout {
        let (header, room) = (grouped(layout.header_bytes), grouped(layout.room_bytes));
        line("header", format!("{header} bytes, room for {room} more"))?;
        let (begin, end) = (grouped(layout.data_begin), grouped(layout.data_end));
        line("data", format!("from byte {begin} to {end}"))?;
    }
    if let Some(records) = &facts.records {
        let dimension = &records.dimension;
        let each = match records.variables {
            0 => "no variable has them".to_owned(),
            n => format!(
                "{} bytes each from byte {}, {n} variable{}",
                grouped(records.bytes),
                grouped(records.begin),
                if n == 1 { ", unpadded" } else { "s" }
            ),
        };
        line("records", format!("{} along {dimension}, {each}", grouped(records.count)))?;
    }
    if !stack.is_empty() {
        line("layers", stack.clone())?;
    }
    if let Some(groups) = facts.groups.as_ref().filter(|groups| !groups.is_empty()) {
        line("groups", groups.join(", "))?;
    }
    let dims: Vec<String> =
        facts.dimensions.iter().map(|dim| format!("{}={}", dim.name, dim.len)).collect();
    if !dims.is_empty() {
        line("dimensions", dims.join(", "))?;
    }
    line("attributes", global(facts))?;
    line("variables", facts.variables.len().to_string())?;
    write_variables(out, &facts.variables)
}

/// `3 global`
fn global(facts: &FileFacts) -> String {
    facts.global_attributes.map_or_else(|| "? global".to_owned(), |n| format!("{n} global"))
}

fn write_variables(out: &mut dyn Write, variables: &[VariableFacts]) -> Result<()> {
    let mut table = TextTable::new(["name", "type", "shape", "begin", "bytes", "%"], 3);
    for variable in variables {
        let part = if variable.part == Some(FilePart::Record) { "*" } else { "" };
        table.rows.push([
            variable.name.clone(),
            variable.r#type.clone(),
            format!("({})", variable.shape_text()),
            variable.begin.map_or(String::new(), |begin| format!("{}{part}", grouped(begin))),
            grouped(variable.bytes),
            format!("{:.1}", variable.percent),
        ]);
    }
    table.write(out)?;
    let begins = |variable: &VariableFacts| variable.begin.is_some();
    if variables.iter().any(|variable| variable.part == Some(FilePart::Record) && begins(variable))
    {
        writeln!(out, "    * in the first record")?;
    }
    Ok(())
}

/// A number with its digits in groups of three: `1_234_567`.
pub(in crate::cmd) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_groups() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1_000"),
            (1_234_567, "1_234_567"),
            (100_000, "100_000"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
