//! `zonda trace`: what the `event` layer recorded, as numbers and as a picture.

mod lines;
mod recording;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use zonda_plot::{Format, OffsetOptions, OffsetPanel, offsets};

use super::info::grouped;
use super::view::write_picture;
use crate::failure::{CommandFailure, Result};
use crate::input;
use lines::{LineTrace, Operation, TracedLayer};
use zonda_trace::decode::Decoder;

/// Tells what a program did with its files, and what it waited for
///
/// A recording is what ZONDA_TRACE=FILE or `zonda run --trace FILE` leaves: calls, what passes between
/// the layers, chunks, filters, waits, write-behind. It is summed up by process, and shown as a page for
/// browsers (--html) or in the form of Chrome and Perfetto (--chrome). Several recordings, as of the ranks
/// of a program and of its I/O servers, are shown as one job: a table, and a time line in the page and as
/// a picture (-o). Lines of the event layer
/// (ZONDA_IO=event:FILE,...) are read as well, and several of them are drawn side by side; openings of
/// files that follow each other are put one behind the other.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zonda run --trace run.trace -- ncks -O in.nc out.nc && zonda trace run.trace
  zonda trace --html run.html --chrome run.json run.trace
  ZONDA_TRACE=t.%r zonda run --servers groups=2 -- mpiexec -n 8 ./model && zonda trace --html job.html t.*
  zonda trace without.txt with.txt --label 'file alone' --label cached -o offsets.png")]
pub(crate) struct Args {
    /// File offset over time, of several recordings the time line of the job; PNG or SVG by its extension
    #[arg(short = 'o', long = "output", value_name = "OUT.png|.svg")]
    output: Option<PathBuf>,

    /// For machines: a JSON object for each trace, one a line
    #[arg(long)]
    json: bool,

    /// A page with tables and plots, which needs nothing else
    #[arg(long, value_name = "OUT.html")]
    html: Option<PathBuf>,

    /// The events for Perfetto (ui.perfetto.dev) and chrome://tracing
    #[arg(long, value_name = "OUT.json")]
    chrome: Option<PathBuf>,

    /// Of lines, the event layer that is shown, by its place in the stack; by default the lowest
    #[arg(long, value_name = "N")]
    layer: Option<usize>,

    /// What a trace is called in the picture, in the order of the traces; by default as its file
    #[arg(long = "label", value_name = "TEXT")]
    labels: Vec<String>,

    /// Width of the picture in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 1200, requires = "output")]
    width: u32,

    /// The recording, or lines of the event layer; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// A trace, and which of its layers is shown.
struct ShownTrace {
    label: String,
    title: String,
    number: usize,
    layer: TracedLayer,
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    // The name of the picture is checked before anything is read, because a wrong name is a wrong
    // call.
    let usage = |error| CommandFailure::Usage(format!("{error}; see --help"));
    let format = args.output.as_deref().map(Format::of).transpose().map_err(usage)?;
    if args.files.len() > 1 && recording::job::is_asked(args)? {
        recording::job::show(args, format, out)?;
        return crate::done();
    }
    let mut traces = Vec::new();
    for path in &args.files {
        match read(path, args, format, out)? {
            Some(shown) => traces.push(shown),
            None if args.files.len() == 1 => return crate::done(),
            None => {
                let what = "a recording from a pipe is shown by itself, not beside other traces";
                return Err(CommandFailure::at(&input::label(path), what));
            }
        }
    }
    if args.html.is_some() || args.chrome.is_some() {
        let what =
            "--html and --chrome need a recording (ZONDA_TRACE), not lines of the event layer";
        return Err(CommandFailure::text(what));
    }
    if args.labels.len() > traces.len() {
        let (labels, traces) = (args.labels.len(), traces.len());
        return Err(CommandFailure::Usage(format!(
            "{labels} times --label for {traces} traces; see --help"
        )));
    }
    for (trace, label) in traces.iter_mut().zip(&args.labels) {
        trace.title.clone_from(label);
    }
    for (index, trace) in traces.iter().enumerate() {
        if args.json {
            writeln!(out, "{}", trace.json()?)?;
        } else {
            if index > 0 {
                writeln!(out)?;
            }
            trace.write_text(out)?;
        }
    }
    if let (Some(output), Some(format)) = (&args.output, format) {
        let panels: Vec<OffsetPanel<'_>> = traces.iter().map(ShownTrace::panel).collect();
        let title = "File offset over time".to_owned();
        let options = OffsetOptions { title, width: args.width, ..OffsetOptions::default() };
        let chart = offsets(&panels, &options).map_err(|error| wrong_call(output, error))?;
        write_picture(output, &chart, format)?;
    }
    crate::done()
}

/// The failure for a picture that cannot be made of a trace.
fn wrong_call(output: &Path, error: zonda_plot::Error) -> CommandFailure {
    match error {
        zonda_plot::Error::Width { .. } => CommandFailure::Usage(format!("{error}; see --help")),
        zonda_plot::Error::Empty => CommandFailure::at(output, "no read or write to draw"),
        other => CommandFailure::at(output, other),
    }
}

/// Reads lines of the event layer. A recording is shown at once, and `None` returned.
fn read(
    path: &Path,
    args: &Args,
    format: Option<Format>,
    out: &mut dyn Write,
) -> Result<Option<ShownTrace>> {
    let at = |error: String| CommandFailure::at(&input::label(path), error);
    let mut input: Box<dyn BufRead> = if input::is_stdin(path) {
        Box::new(BufReader::with_capacity(1 << 20, std::io::stdin()))
    } else {
        if zonda::is_url(path) {
            let what = "a trace is read from a file or standard input; what was read of a URL shows the trace of the program that read it (ZONDA_TRACE=FILE)";
            return Err(CommandFailure::at(path, what));
        }
        let file = File::open(path).map_err(|error| CommandFailure::at(path, error))?;
        Box::new(BufReader::with_capacity(1 << 20, file))
    };
    let first = input.fill_buf().map_err(|error| at(error.to_string()))?;
    if Decoder::<&[u8]>::is_trace(first) {
        if args.layer.is_some() || !args.labels.is_empty() {
            let what =
                "it is a recording, and --layer and --label are for lines of the event layer";
            return Err(at(what.to_owned()));
        }
        recording::show(&input::label(path), input, args, format, out)?;
        return Ok(None);
    }
    let number = args.layer;
    let mut trace = LineTrace::read(input).map_err(at)?;
    let known: Vec<String> = trace.layers.keys().map(usize::to_string).collect();
    let Some(number) = number.or_else(|| trace.layers.keys().next_back().copied()) else {
        return Err(at("no operation in it".to_owned()));
    };
    let layer = trace
        .layers
        .remove(&number)
        .ok_or_else(|| at(format!("no event#{number} in it, only {}", known.join(", "))))?;
    let label = input::label(path);
    let title = label.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Some(ShownTrace { label: label.display().to_string(), title, number, layer }))
}

/// What `--json` prints.
#[derive(Serialize)]
struct TraceJson<'a> {
    path: &'a str,
    layer: usize,
    openings: usize,
    operations: &'a [Operation],
}

impl ShownTrace {
    fn json(&self) -> Result<String> {
        let operations = &self.layer.operations[..];
        let (layer, openings) = (self.number, self.layer.openings);
        let json = TraceJson { path: &self.label, layer, openings, operations };
        serde_json::to_string(&json)
            .map_err(|error| CommandFailure::at(Path::new(&self.label), error))
    }

    fn write_text(&self, out: &mut dyn Write) -> Result<()> {
        let openings = match self.layer.openings {
            1 => "1 opening".to_owned(),
            n => format!("{n} openings"),
        };
        writeln!(out, "{}: event#{}, {openings}", self.label, self.number)?;
        let head = [
            "operation",
            "calls",
            "errors",
            "ranges",
            "bytes",
            "mean",
            "sequential",
            "first",
            "end",
            "seconds",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(self.layer.operations.iter().map(row));
        let widths: [usize; 10] = std::array::from_fn(|column| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        });
        for row in &rows {
            let mut line = format!("    {:<1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(widths).skip(1) {
                line.push_str(&format!("  {cell:>width$}"));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn panel(&self) -> OffsetPanel<'_> {
        let parts = self.layer.operations.iter().filter(|operation| operation.ranges > 0);
        let notes = parts.map(|operation| {
            let plural = if operation.ranges == 1 { "" } else { "s" };
            format!(
                "{} {}{plural} of {} on average, {:.0} % sequential",
                // Formatted for people, because no program reads this.
                grouped(operation.ranges).replace('_', "\u{a0}"),
                operation.name,
                size(operation.mean_bytes()),
                100.0 * operation.sequential_share()
            )
        });
        OffsetPanel {
            title: self.title.clone(),
            notes: notes.collect(),
            accesses: &self.layer.accesses,
        }
    }
}

fn row(operation: &Operation) -> [String; 10] {
    let moves = operation.ranges > 0;
    let only = |text: String| if moves { text } else { String::new() };
    let place = |byte: Option<u64>| byte.map_or(String::new(), grouped);
    [
        operation.name.clone(),
        grouped(operation.calls),
        grouped(operation.errors),
        only(grouped(operation.ranges)),
        only(grouped(operation.bytes)),
        only(grouped(operation.mean_bytes())),
        only(format!("{:.1} %", 100.0 * operation.sequential_share())),
        place(operation.first),
        place(operation.end),
        format!("{:.6}", operation.us / 1e6),
    ]
}

/// A number of bytes in the unit that makes it short.
pub(super) fn size(bytes: u64) -> String {
    let number = bytes as f64;
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.1} kB", number / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", number / 1e6),
        _ => format!("{:.1} GB", number / 1e9),
    }
}
