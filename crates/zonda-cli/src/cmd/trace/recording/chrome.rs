//! The Trace Event Format of Chrome, which Perfetto (ui.perfetto.dev) and chrome://tracing read.
//!
//! Format: "Trace Event Format", Google, 2016: an object with `traceEvents`; of each event `ph` is the
//! kind ("X" complete, "i" instant, "C" counter, "M" names of processes and threads), `ts` and `dur` are
//! microseconds.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use zonda_trace::decode::{RecordedEvent, RecordedProcess, TraceNames};
use zonda_trace::{EventKind, NO_ITEM};

use crate::failure::{CommandFailure, Result};

/// Writes a recording as it is read.
pub(super) struct ChromeWriter {
    path: PathBuf,
    out: BufWriter<File>,
    pid: u32,
    /// Nanoseconds from the first process's beginning to this one's.
    since_ns: u64,
    first_unix_ns: Option<u64>,
    /// Threads of this process whose names were written.
    named: std::collections::HashSet<u32>,
    begun: bool,
}

impl ChromeWriter {
    pub(super) fn create(path: &Path) -> Result<ChromeWriter> {
        Ok(ChromeWriter {
            path: path.to_owned(),
            out: super::create(path)?,
            pid: 0,
            since_ns: 0,
            first_unix_ns: None,
            named: std::collections::HashSet::new(),
            begun: false,
        })
    }

    /// Times count from this moment, in nanoseconds since 1970.
    pub(super) fn begin_at(&mut self, unix_ns: u64) {
        self.first_unix_ns = Some(unix_ns);
    }

    fn failed(&self, error: impl std::fmt::Display) -> CommandFailure {
        CommandFailure::at(&self.path, error)
    }

    fn put(&mut self, event: &Value) -> Result<()> {
        let before: &[u8] =
            if self.begun { b",\n" } else { b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" };
        self.begun = true;
        let done = self.out.write_all(before);
        let done = done.and_then(|()| Ok(serde_json::to_writer(&mut self.out, event)?));
        done.map_err(|error| self.failed(error))
    }

    pub(super) fn process(&mut self, process: &RecordedProcess) -> Result<()> {
        let first = *self.first_unix_ns.get_or_insert(process.unix_ns);
        self.since_ns = process.unix_ns.saturating_sub(first);
        self.pid = process.pid;
        self.named.clear();
        let name = process.command.join(" ");
        self.put(&json!({"ph": "M", "name": "process_name", "pid": self.pid, "tid": 0,
            "args": {"name": name}}))
    }

    pub(super) fn event(&mut self, event: &RecordedEvent, names: &TraceNames) -> Result<()> {
        let Some(kind) = event.kind else { return Ok(()) };
        let tid = event.thread;
        if self.named.insert(tid)
            && let Some(name) = names.thread(tid)
        {
            let name = json!({"ph": "M", "name": "thread_name", "pid": self.pid, "tid": tid,
                "args": {"name": name}});
            self.put(&name)?;
        }
        let us = |ns: u64| ns as f64 / 1e3;
        let ts = us(self.since_ns.saturating_add(event.begin_ns));
        let value = match kind {
            EventKind::QueueBytes | EventKind::QueueJobs => json!({"ph": "C", "name": kind.text(),
                "pid": self.pid, "tid": tid, "ts": ts, "args": {"value": event.offset}}),
            EventKind::Advise
            | EventKind::Open
            | EventKind::Close
            | EventKind::QueueAccept
            | EventKind::ChunkHit
            | EventKind::ReadFound
            | EventKind::ReadMore
            | EventKind::WriteMore => json!({"ph": "i", "s": "t",
                "name": name(kind, event, names), "cat": category(kind), "pid": self.pid,
                "tid": tid, "ts": ts, "args": args(kind, event, names)}),
            _ => json!({"ph": "X", "name": name(kind, event, names), "cat": category(kind),
                "pid": self.pid, "tid": tid, "ts": ts, "dur": us(event.took_ns),
                "args": args(kind, event, names)}),
        };
        self.put(&value)
    }

    pub(super) fn end(mut self) -> Result<()> {
        let done = self.out.write_all(b"\n]}\n").and_then(|()| self.out.flush());
        let done = done.and_then(|()| zonda::storage::whole::check_close(self.out.get_ref()));
        done.map_err(|error| self.failed(error))
    }
}

fn category(kind: EventKind) -> &'static str {
    match kind as u16 {
        0..16 => "api",
        16..32 => "storage",
        32..48 => "chunk",
        48..64 => "convert",
        64..80 => "wait",
        80..96 => "queue",
        _ => "commit",
    }
}

fn name(kind: EventKind, event: &RecordedEvent, names: &TraceNames) -> String {
    let word = names.word(event.name);
    match (kind, word) {
        (EventKind::Call, Some(word)) => word.to_owned(),
        (EventKind::Filter, Some(word)) if event.code == 1 => format!("undo {word}"),
        (EventKind::Filter, Some(word)) => word.to_owned(),
        _ if (16..32).contains(&(kind as u16)) => {
            let token = names.layer(event.opening(), event.depth()).unwrap_or("storage");
            format!("{token} {}", kind.text())
        }
        _ => kind.text().to_owned(),
    }
}

fn args(kind: EventKind, event: &RecordedEvent, names: &TraceNames) -> Value {
    let mut args = serde_json::Map::new();
    if let Some(file) = names.file(event.file) {
        args.insert("file".into(), file.into());
    }
    if kind == EventKind::Call && event.item != NO_ITEM {
        let group = u32::try_from(event.offset).unwrap_or(u32::MAX);
        let name = names.variable(event.file, group, event.item).map(str::to_owned);
        args.insert("variable".into(), name.unwrap_or_else(|| event.item.to_string()).into());
    } else if kind != EventKind::Call && event.offset != 0 {
        args.insert("offset".into(), event.offset.into());
    }
    args.insert("bytes".into(), event.bytes.into());
    if event.code != 0 && kind != EventKind::Filter {
        args.insert("code".into(), event.code.into());
    }
    Value::Object(args)
}
