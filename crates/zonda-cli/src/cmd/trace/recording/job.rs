//! Several recordings, of the ranks of a program and of its I/O servers: one overview of the job, with one clock.

use std::fs::File;
use std::io::{BufReader, Read as _, Write};
use std::path::Path;

use zonda_plot::{
    Axis, AxisKind, Chart, Curve, LineOptions, TimelineOptions, TimelinePart, TimelineRow, lines,
    timeline,
};
use zonda_trace::decode::{Decoder, TraceStep};

use super::summary::{ProcessSummary, ServedSummary, Stage};
use super::tables::{RecordingTable, seconds};
use super::{RecordingSummary, chrome, json, page};
use crate::cmd::info::grouped;
use crate::cmd::trace::{Args, wrong_call};
use crate::cmd::view::write_picture;
use crate::failure::{CommandFailure, Result};
use crate::input;

/// The most rows of the time line and curves of levels: pictures with more of them show nobody anything.
const MOST_ROWS: usize = 400;
const MOST_CURVES: usize = 7;

/// The recordings of a job.
pub(super) struct Job {
    pub(super) recordings: Vec<RecordingSummary>,
    /// What the overview has to say of recordings that are not whole.
    pub(super) notes: Vec<String>,
}

/// Whether the files are recordings: any of them is, and no other is anything else.
pub(in crate::cmd::trace) fn is_asked(args: &Args) -> Result<bool> {
    let kinds: Vec<Kind> = args.files.iter().map(|path| kind(path)).collect::<Result<_>>()?;
    if !kinds.contains(&Kind::Recording) {
        return Ok(false);
    }
    let other = args.files.iter().zip(&kinds).find(|(_, kind)| **kind == Kind::Other);
    match other {
        Some((path, _)) if input::is_stdin(path) => {
            let what = "standard input is not read beside recordings";
            Err(CommandFailure::Usage(format!("{what}; see --help")))
        }
        Some((path, _)) => {
            let what = "it is no recording, and is not shown beside recordings";
            Err(CommandFailure::at(path, what))
        }
        None => Ok(true),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Recording,
    /// As a process leaves it that was killed before it wrote anything.
    Nothing,
    Other,
}

fn kind(path: &Path) -> Result<Kind> {
    if input::is_stdin(path) {
        return Ok(Kind::Other);
    }
    let at = |error| CommandFailure::at(path, error);
    let mut first = Vec::new();
    let file = File::open(path).map_err(at)?;
    // What was read of a pipe would be gone.
    if !file.metadata().map_err(at)?.is_file() {
        return Ok(Kind::Other);
    }
    file.take(zonda_trace::format::MAGIC.len() as u64).read_to_end(&mut first).map_err(at)?;
    Ok(match Decoder::<&[u8]>::is_trace(&first) {
        true => Kind::Recording,
        false if zonda_trace::format::MAGIC.starts_with(&first) => Kind::Nothing,
        false => Kind::Other,
    })
}

/// Shows the recordings, and writes the files that `args` ask for.
pub(in crate::cmd::trace) fn show(
    args: &Args,
    format: Option<zonda_plot::Format>,
    out: &mut dyn Write,
) -> Result<()> {
    if args.layer.is_some() || !args.labels.is_empty() {
        let what = "--layer and --label are for lines of the event layer, not for recordings";
        return Err(CommandFailure::text(what));
    }
    let mut chrome = match &args.chrome {
        Some(path) => Some(chrome::ChromeWriter::create(path)?),
        None => None,
    };
    let first = args.files.iter().filter_map(|path| first_unix_ns(path)).min();
    if let (Some(chrome), Some(first)) = (&mut chrome, first) {
        chrome.begin_at(first);
    }
    let mut recordings = Vec::new();
    for path in &args.files {
        let file = File::open(path).map_err(|error| CommandFailure::at(path, error))?;
        let input = BufReader::with_capacity(1 << 20, file);
        recordings.push(RecordingSummary::read(path, input, chrome.as_mut(), true)?);
    }
    if let Some(chrome) = chrome {
        chrome.end()?;
    }
    let job = Job::new(recordings);
    let speed = super::copy_bytes_per_s();
    if args.json {
        for recording in &job.recordings {
            writeln!(out, "{}", json(recording, speed)?)?;
        }
    } else {
        job.write_text(out)?;
    }
    if let Some(path) = &args.html {
        let page = page::of_job(&job, speed).map_err(|error| CommandFailure::at(path, error))?;
        zonda::storage::whole::write(path, page.as_bytes())
            .map_err(|error| CommandFailure::at(path, error))?;
    }
    if let (Some(output), Some(format)) = (&args.output, format) {
        let chart = job.timeline(args.width).map_err(|error| wrong_call(output, error))?;
        write_picture(output, &chart, format)?;
    }
    Ok(())
}

/// When the first process of a recording began.
fn first_unix_ns(path: &Path) -> Option<u64> {
    let mut decoder = Decoder::new(BufReader::new(File::open(path).ok()?));
    match decoder.step() {
        Ok(Some(TraceStep::Process(process))) => Some(process.unix_ns),
        _ => None,
    }
}

/// A table of the overview.
pub(super) struct Overview {
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Job {
    /// Puts the processes of recordings on one clock: the system's, which is the same for all processes of a node.
    pub(super) fn new(mut recordings: Vec<RecordingSummary>) -> Job {
        let begins = recordings.iter().flat_map(|r| &r.processes).map(|process| process.unix_ns);
        let first = begins.min().unwrap_or(0);
        let mut notes = Vec::new();
        for recording in &mut recordings {
            for process in &mut recording.processes {
                process.since_ns = process.unix_ns.saturating_sub(first);
            }
            let label = &recording.label;
            if recording.processes.is_empty() {
                notes.push(format!("{label}: nothing in it, as of a process that was killed"));
            }
            if let Some(at) = recording.torn {
                notes.push(format!("{label} breaks off at byte {at}, as when a process is killed"));
            }
            if recording.lost > 0 {
                let lost = grouped(recording.lost);
                notes.push(format!("{label}: {lost} events were lost: it could not be written"));
            }
        }
        Job { recordings, notes }
    }

    /// Ranks by their numbers, other programs, servers.
    pub(super) fn processes(&self) -> Vec<&ProcessSummary> {
        let mut all: Vec<_> = self.recordings.iter().flat_map(|r| &r.processes).collect();
        let number = |process: &ProcessSummary| {
            let role = process.role.as_deref().unwrap_or_default();
            let digits = role.trim_start_matches(|c: char| !c.is_ascii_digit());
            let mut parts = digits.split('.').map(|part| part.parse::<u64>().unwrap_or(u64::MAX));
            (parts.next().unwrap_or(u64::MAX), parts.next().unwrap_or(0))
        };
        all.sort_by_key(|process| (process.is_server(), number(process), process.since_ns));
        all
    }

    pub(super) fn ns(&self) -> u64 {
        self.processes().iter().map(|process| process.end_ns()).max().unwrap_or(0)
    }

    pub(super) fn title(&self) -> String {
        format!("{} recordings, {} processes", self.recordings.len(), self.processes().len())
    }

    /// A row for each process that is no server, `bytes` and `time` as the reader is to see them.
    pub(super) fn programs(
        &self,
        bytes: impl Fn(u64) -> String,
        time: impl Fn(u64) -> String,
    ) -> Overview {
        let head = vec![
            "process",
            "begins",
            "took",
            "calls",
            "put",
            "in calls",
            "waits",
            "for room",
            "for servers",
            "for ranks",
            "handed over",
            "values",
            "written",
        ];
        let row = |process: &&ProcessSummary| {
            let told = ServedSummary::whole(&process.served.told);
            let waits = |name: &str| process.waits.get(name).map_or(0, |sum| sum.ns);
            vec![
                process.name(),
                time(process.since_ns),
                time(process.ns),
                grouped(process.calls.values().map(|sum| sum.count).sum()),
                bytes(process.put_bytes),
                time(process.called_ns),
                time(process.caller_ns.get(&Stage::Wait).copied().unwrap_or(0)),
                time(process.queue.blocked.ns),
                time(ServedSummary::whole(&process.served.asked).ns),
                time(waits("wait: ranks")),
                grouped(told.count),
                bytes(told.bytes),
                bytes(process.written_bytes()),
            ]
        };
        let programs = self.processes().into_iter().filter(|process| !process.is_server());
        Overview { head, rows: programs.collect::<Vec<_>>().iter().map(row).collect() }
    }

    /// A row for each server.
    pub(super) fn servers(
        &self,
        bytes: impl Fn(u64) -> String,
        time: impl Fn(u64) -> String,
    ) -> Overview {
        let head = vec![
            "server",
            "begins",
            "took",
            "clients",
            "taken",
            "values",
            "carried out",
            "in",
            "queued, mean",
            "longest",
            "for ranks",
            "most waited",
            "at",
            "took none",
            "written",
        ];
        let row = |process: &&ProcessSummary| {
            let served = &process.served;
            let taken = ServedSummary::whole(&served.taken);
            let carried_out = ServedSummary::whole(&served.carried_out);
            let queued = &served.queued;
            vec![
                process.name(),
                time(process.since_ns),
                time(process.ns),
                grouped(served.taken_from.len() as u64),
                grouped(taken.count),
                bytes(taken.bytes),
                grouped(carried_out.count),
                time(carried_out.ns),
                time(queued.ns / queued.count.max(1)),
                time(queued.most_ns),
                time(served.gathered.ns),
                bytes(process.queue.most_bytes),
                time(process.since_ns.saturating_add(process.queue.most_bytes_ns)),
                time(process.queue.blocked.ns),
                bytes(process.written_bytes()),
            ]
        };
        let servers = self.processes().into_iter().filter(|process| process.is_server());
        Overview { head, rows: servers.collect::<Vec<_>>().iter().map(row).collect() }
    }

    fn write_text(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{}, {} s; times in seconds", self.title(), seconds(self.ns()))?;
        for overview in [self.programs(grouped, seconds), self.servers(grouped, seconds)] {
            if overview.rows.is_empty() {
                continue;
            }
            let mut rows = vec![overview.head.into_iter().map(str::to_owned).collect()];
            rows.extend(overview.rows);
            writeln!(out)?;
            RecordingTable { rows }.write(out)?;
        }
        if !self.notes.is_empty() {
            writeln!(out)?;
        }
        for note in &self.notes {
            writeln!(out, "{note}")?;
        }
        writeln!(out, "\n`zonda trace` of one of them tells more, --html of all has a time line")?;
        Ok(())
    }

    /// What processes did, on one clock.
    pub(super) fn timeline(&self, width: u32) -> zonda_plot::Result<Chart> {
        let kinds = [
            "in calls of the library",
            "waiting in them",
            "server carries out calls",
            "server waits for calls of other ranks",
        ];
        let rows: Vec<TimelineRow> =
            self.processes().into_iter().take(MOST_ROWS).map(row).collect();
        let options = TimelineOptions {
            title: "What processes did".to_owned(),
            kinds: kinds.map(str::to_owned).to_vec(),
            width,
        };
        timeline(&rows, &options)
    }

    /// Bytes that wait in servers, on the same clock.
    pub(super) fn levels(&self, width: u32) -> zonda_plot::Result<Chart> {
        let processes = self.processes();
        let mut servers: Vec<_> = processes.iter().filter(|process| process.is_server()).collect();
        servers.sort_by_key(|process| std::cmp::Reverse(process.queue.most_bytes));
        let mut curves = Vec::new();
        for server in servers.into_iter().take(MOST_CURVES) {
            let since_s = server.since_ns as f64 / 1e9;
            let points = server.charts.queue_bytes.points();
            let points = points.into_iter().map(|(at, level)| (since_s + at, level)).collect();
            curves.push(Curve { name: server.name(), points });
        }
        let options = LineOptions {
            title: "Bytes that wait in I/O servers".to_owned(),
            x: Axis::new("time", AxisKind::Seconds),
            y: Axis::new("wait", AxisKind::Bytes),
            width,
            ..LineOptions::default()
        };
        lines(&curves, &options)
    }
}

/// The row of a process in the time line.
fn row(process: &ProcessSummary) -> TimelineRow {
    let charts = &process.charts;
    let all = [&charts.called, &charts.waited, &charts.carried_out, &charts.gathered];
    let width_ns = all.iter().map(|bins| bins.width_ns()).max().unwrap_or(1);
    let [mut called, mut waited, carried_out, gathered] = all.map(|bins| bins.in_bins_of(width_ns));
    // Waits of other threads than callers are no part of calls.
    waited.resize(called.len(), 0.0);
    for (called, waited) in called.iter_mut().zip(&mut waited) {
        *waited = waited.clamp(0.0, called.max(0.0));
        *called -= *waited;
    }
    let since_s = process.since_ns as f64 / 1e9;
    let bin_s = width_ns as f64 / 1e9;
    let mut parts = Vec::new();
    for (kind, amounts) in [called, waited, carried_out, gathered].iter().enumerate() {
        for (bin, amount) in amounts.iter().enumerate().filter(|(_, amount)| **amount > 0.0) {
            let start_s = since_s + bin as f64 * bin_s;
            let share = amount / bin_s;
            parts.push(TimelinePart { kind, start_s, end_s: start_s + bin_s, share });
        }
    }
    let end_s = process.end_ns() as f64 / 1e9;
    TimelineRow { name: process.name(), begin_s: since_s, end_s, parts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_trace::EventKind;
    use zonda_trace::decode::{RecordedEvent, RecordedProcess, TraceNames};

    fn process(role: &str, unix_ns: u64, events: &[(EventKind, u64, u64, u64)]) -> ProcessSummary {
        let about = RecordedProcess { unix_ns, ..RecordedProcess::default() };
        let mut summary = ProcessSummary::new(&about);
        summary.role = Some(role.to_owned());
        for &(kind, begin_ns, took_ns, number) in events {
            let event = RecordedEvent {
                kind: Some(kind),
                thread: 1,
                begin_ns,
                took_ns,
                file: 0,
                item: 7,
                offset: number,
                bytes: number,
                code: 0,
                name: 0,
            };
            summary.add(&event, &TraceNames::default());
        }
        summary.finish();
        summary
    }

    fn job() -> Job {
        let ms = 1_000_000;
        let rank = [(EventKind::ServerAsk, 2 * ms, 3 * ms, 0), (EventKind::Call, 0, 10 * ms, 0)];
        let server = [
            (EventKind::QueueBytes, 5 * ms, 0, 4096),
            (EventKind::QueueBytes, 6 * ms, 0, 0),
            (EventKind::ServerCall, 5 * ms, 10 * ms, 4096),
        ];
        let whole = |label: &str, process: Option<ProcessSummary>, torn| RecordingSummary {
            label: label.to_owned(),
            processes: process.into_iter().collect(),
            lost: 0,
            torn,
        };
        Job::new(vec![
            whole("s", Some(process("server1", 1000 * ms, &server)), Some(77)),
            whole("b", Some(process("rank 10", 1030 * ms, &rank)), None),
            whole("a", Some(process("rank 9", 1020 * ms, &rank)), None),
            whole("e", None, None),
        ])
    }

    #[test]
    fn processes_have_one_clock() {
        let job = job();
        let names: Vec<_> = job.processes().iter().map(|process| process.name()).collect();
        assert_eq!(names, ["rank 9", "rank 10", "server1"]);
        let since: Vec<_> = job.processes().iter().map(|process| process.since_ns).collect();
        assert_eq!(since, [20_000_000, 30_000_000, 0]);
        assert_eq!((job.ns(), job.notes.len()), (40_000_000, 2));
        let servers = job.servers(|bytes| bytes.to_string(), |ns| ns.to_string());
        let at = |name: &str| servers.head.iter().position(|head| *head == name).unwrap();
        let row = &servers.rows[0];
        assert_eq!((&row[at("most waited")][..], &row[at("at")][..]), ("4096", "5000000"));
        assert_eq!(job.programs(|bytes| bytes.to_string(), |ns| ns.to_string()).rows.len(), 2);
    }

    #[test]
    fn waits_are_a_part_of_calls() {
        let job = job();
        let row = row(job.processes()[1]);
        let seconds = |kind| -> f64 {
            let parts = row.parts.iter().filter(|part| part.kind == kind);
            parts.map(|part| (part.end_s - part.start_s) * part.share).sum()
        };
        assert!((seconds(0) - 0.007).abs() < 1e-5 && (seconds(1) - 0.003).abs() < 1e-5);
        assert!(row.parts.iter().all(|part| part.start_s >= 0.03 && part.end_s < 0.0402));
        assert!(job.timeline(800).is_ok() && job.levels(800).is_ok());
    }
}
