//! Recordings of the whole library (`ZONDA_TRACE`): added up, and as other tools and a browser show them.

mod bins;
mod chrome;
pub(super) mod job;
mod page;
mod summary;
mod tables;

use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use zonda_plot::{OffsetOptions, OffsetPanel, offsets};
use zonda_trace::decode::{Decoder, TraceStep};

use super::{Args, wrong_call};
use crate::cmd::view::write_picture;
use crate::failure::{CommandFailure, Result};
use crate::tuning::RECORDED_PROCESSES;
use summary::ProcessSummary;

/// A recording, added up.
struct RecordingSummary {
    label: String,
    processes: Vec<ProcessSummary>,
    /// Events that were lost because the trace could not be written.
    lost: u64,
    /// Byte at which the trace breaks off within a block.
    torn: Option<u64>,
}

/// Shows a recording and writes the files that `args` ask for.
pub(super) fn show(
    label: &Path,
    input: impl Read,
    args: &Args,
    format: Option<zonda_plot::Format>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut chrome = match &args.chrome {
        Some(path) => Some(chrome::ChromeWriter::create(path)?),
        None => None,
    };
    let recording = RecordingSummary::read(label, input, chrome.as_mut(), false)?;
    if let Some(chrome) = chrome {
        chrome.end()?;
    }
    let speed = copy_bytes_per_s();
    if args.json {
        writeln!(out, "{}", json(&recording, speed)?)?;
    } else {
        tables::write(&recording, speed, out)?;
    }
    if let Some(path) = &args.html {
        let page =
            page::make(&recording, speed).map_err(|error| CommandFailure::at(path, error))?;
        zonda::storage::whole::write(path, page.as_bytes())
            .map_err(|error| CommandFailure::at(path, error))?;
    }
    if let (Some(output), Some(format)) = (&args.output, format) {
        let panels: Vec<OffsetPanel<'_>> = recording.processes.iter().map(panel).collect();
        let title = "File offset over time".to_owned();
        let options = OffsetOptions { title, width: args.width, ..OffsetOptions::default() };
        let chart = offsets(&panels, &options).map_err(|error| wrong_call(output, error))?;
        write_picture(output, &chart, format)?;
    }
    Ok(())
}

impl RecordingSummary {
    /// Adds a recording up, and writes its events to `chrome`. One without a process is an error, unless it `may_be_empty`.
    fn read(
        label: &Path,
        input: impl Read,
        mut chrome: Option<&mut chrome::ChromeWriter>,
        may_be_empty: bool,
    ) -> Result<RecordingSummary> {
        let mut decoder = Decoder::new(input);
        let mut processes: Vec<ProcessSummary> = Vec::new();
        // A copy, because a step borrows the decoder, whose names are needed beside the events.
        let mut events = Vec::new();
        loop {
            match decoder.step().map_err(|error| CommandFailure::at(label, error))? {
                None => break,
                Some(TraceStep::Process(process)) => {
                    if processes.len() == RECORDED_PROCESSES {
                        let why = format!("more than {RECORDED_PROCESSES} processes");
                        return Err(CommandFailure::at(label, why));
                    }
                    if let Some(chrome) = &mut chrome {
                        chrome.process(process)?;
                    }
                    processes.push(ProcessSummary::new(process));
                    continue;
                }
                Some(TraceStep::Events(block)) => {
                    events.clear();
                    events.extend_from_slice(block);
                }
            }
            let names = decoder.names();
            if let Some(summary) = processes.last_mut() {
                events.iter().for_each(|event| summary.add(event, names));
                summary.role = names.role().map(str::to_owned);
            }
            if let Some(chrome) = &mut chrome {
                events.iter().try_for_each(|event| chrome.event(event, names))?;
            }
        }
        if let Some(summary) = processes.last_mut() {
            // Also of one that recorded no event.
            summary.role = decoder.names().role().map(str::to_owned);
        }
        if processes.is_empty() && !may_be_empty {
            return Err(CommandFailure::at(label, "no process in it"));
        }
        processes.iter_mut().for_each(ProcessSummary::finish);
        let (lost, torn) = (decoder.lost(), decoder.torn());
        Ok(RecordingSummary { label: label.display().to_string(), processes, lost, torn })
    }
}

fn panel(process: &ProcessSummary) -> OffsetPanel<'_> {
    let notes = vec![format!("process {}: what reached the file system", process.pid)];
    OffsetPanel { title: process.program(), notes, accesses: &process.charts.accesses }
}

impl ProcessSummary {
    /// The program and its arguments, cut to one line.
    fn program(&self) -> String {
        let line = self.command.join(" ");
        let cut: String = line.chars().filter(|c| !c.is_control()).take(100).collect();
        if cut.len() < line.len() { format!("{cut}…") } else { cut }
    }
}

/// How fast this machine copies memory that is in no cache, in bytes a second.
fn copy_bytes_per_s() -> f64 {
    const BYTES: usize = 32 << 20;
    let (from, mut to) = (vec![1u8; BYTES], vec![0u8; BYTES]);
    let round = |to: &mut [u8]| {
        let begin = Instant::now();
        to.copy_from_slice(&from);
        std::hint::black_box(&mut *to);
        begin.elapsed().as_secs_f64()
    };
    let best = (0..3).map(|_| round(&mut to)).fold(f64::INFINITY, f64::min);
    BYTES as f64 / best.max(1e-9)
}

/// What `--json` prints.
#[derive(Serialize)]
struct RecordingJson<'a> {
    path: &'a str,
    lost: u64,
    torn: Option<u64>,
    copy_bytes_per_s: f64,
    processes: Vec<ProcessJson<'a>>,
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    #[serde(flatten)]
    summary: &'a ProcessSummary,
    rest_ns: u64,
    hidable_ns: u64,
}

fn json(recording: &RecordingSummary, speed: f64) -> Result<String> {
    let json = RecordingJson {
        path: &recording.label,
        lost: recording.lost,
        torn: recording.torn,
        copy_bytes_per_s: speed,
        processes: recording
            .processes
            .iter()
            .map(|summary| ProcessJson {
                summary,
                rest_ns: summary.rest_ns(),
                hidable_ns: summary.hidable_ns(speed),
            })
            .collect(),
    };
    serde_json::to_string(&json)
        .map_err(|error| CommandFailure::at(Path::new(&recording.label), error))
}

/// A file to write to, buffered.
fn create(path: &Path) -> Result<BufWriter<std::fs::File>> {
    let file = std::fs::File::create(path).map_err(|error| CommandFailure::at(path, error))?;
    Ok(BufWriter::with_capacity(1 << 16, file))
}
