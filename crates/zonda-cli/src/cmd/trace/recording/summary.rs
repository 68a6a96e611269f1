//! A recording added up: which functions were called, which bytes were transferred, and what the
//! time went into.

mod adding;

use std::collections::BTreeMap;

use serde::Serialize;
use zonda_plot::FileAccess;
use zonda_trace::decode::{RecordedEvent, RecordedProcess};

use super::bins::{Bins, LevelOverTime};
use adding::AddingState;

/// What the time of a span counts as, if the span contains no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stage {
    Convert,
    Filter,
    Copy,
    Disk,
    Wait,
}

impl Stage {
    pub(super) const ALL: [Stage; 5] =
        [Stage::Convert, Stage::Filter, Stage::Copy, Stage::Disk, Stage::Wait];

    pub(super) fn text(self) -> &'static str {
        match self {
            Stage::Convert => "convert",
            Stage::Filter => "filter",
            Stage::Copy => "chunk copies",
            Stage::Disk => "disk",
            Stage::Wait => "wait",
        }
    }
}

/// How often something happened, how many bytes it was about, and how long it took.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) errors: u64,
    pub(super) bytes: u64,
    pub(super) ns: u64,
    pub(super) most_ns: u64,
}

impl Sum {
    fn add(&mut self, event: &RecordedEvent) {
        self.count += 1;
        self.errors += u64::from(event.code != 0);
        self.bytes = self.bytes.saturating_add(event.bytes);
        self.ns = self.ns.saturating_add(event.took_ns);
        self.most_ns = self.most_ns.max(event.took_ns);
    }

    fn add_all(&mut self, more: &Sum) {
        self.count += more.count;
        self.errors += more.errors;
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.ns = self.ns.saturating_add(more.ns);
        self.most_ns = self.most_ns.max(more.most_ns);
    }
}

/// Reads or writes of one layer of one file.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct TransferSum {
    pub(super) calls: u64,
    pub(super) errors: u64,
    pub(super) ranges: u64,
    pub(super) bytes: u64,
    pub(super) least: u64,
    pub(super) most: u64,
    /// Ranges that began where the one before ended.
    pub(super) sequential: u64,
    pub(super) first: Option<u64>,
    pub(super) end: Option<u64>,
    pub(super) ns: u64,
    /// Ranges by size: number i has those of 2^i bytes and more, below 2^(i+1); 0 also those of none.
    pub(super) sizes: Vec<u64>,
    #[serde(skip)]
    last: Option<u64>,
}

impl TransferSum {
    fn range(&mut self, event: &RecordedEvent) {
        let (at, len) = (event.offset, event.bytes);
        let end = at.saturating_add(len);
        self.least = if self.ranges == 0 { len } else { self.least.min(len) };
        self.most = self.most.max(len);
        self.sequential += u64::from(self.last == Some(at));
        self.last = Some(end);
        self.ranges += 1;
        self.bytes = self.bytes.saturating_add(len);
        if len > 0 {
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
            self.end = Some(self.end.map_or(end, |e| e.max(end)));
        }
        let power = len.checked_ilog2().unwrap_or(0) as usize;
        if self.sizes.len() <= power {
            self.sizes.resize(power + 1, 0);
        }
        self.sizes[power] += 1;
    }

    /// Share of ranges that began where the one before ended, of all but the first.
    pub(super) fn sequential_share(&self) -> f64 {
        self.sequential as f64 / self.ranges.saturating_sub(1).max(1) as f64
    }
}

/// A layer of the stacks on one file.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct LayerSummary {
    /// How many layers stand above it.
    pub(super) depth: u32,
    /// As its spec names it.
    pub(super) token: String,
    pub(super) openings: u64,
    pub(super) read: TransferSum,
    pub(super) write: TransferSum,
    /// Fill values, by their runs.
    pub(super) fill: Sum,
    /// All other operations: lengths, barriers, syncs.
    pub(super) other: Sum,
}

/// A file of a process.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct FileSummary {
    pub(super) path: String,
    pub(super) layers: BTreeMap<String, LayerSummary>,
}

/// A variable, by what was put and got.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct VariableSummary {
    pub(super) file: String,
    pub(super) name: String,
    pub(super) put: Sum,
    pub(super) get: Sum,
}

/// What a hint to a file of several ranks did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct HintSummary {
    pub(super) file: String,
    /// Words that begin with its key.
    pub(super) effect: String,
    /// The numbers that were given and that are in effect, 0 for none.
    pub(super) given: u64,
    pub(super) real: u64,
    /// The system's number of an error.
    pub(super) code: i32,
}

/// Write-behind.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct QueueSummary {
    pub(super) accepted: Sum,
    pub(super) executed: Sum,
    pub(super) blocked: Sum,
    pub(super) drained: Sum,
    pub(super) most_bytes: u64,
    /// When that was.
    pub(super) most_bytes_ns: u64,
    pub(super) most_jobs: u64,
}

/// I/O servers: what a client says to them, or what a server does for clients.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct ServedSummary {
    /// Of a client, by kind of call.
    pub(super) told: BTreeMap<String, Sum>,
    pub(super) asked: BTreeMap<String, Sum>,
    /// Of a server: what it took, by kind of call, and by the client's process.
    pub(super) taken: BTreeMap<String, Sum>,
    pub(super) taken_from: BTreeMap<u32, Sum>,
    /// How long calls waited in it, and what of that was for calls of other ranks.
    pub(super) queued: Sum,
    pub(super) gathered: Sum,
    pub(super) carried_out: BTreeMap<String, Sum>,
}

impl ServedSummary {
    /// All kinds together.
    pub(super) fn whole(sums: &BTreeMap<String, Sum>) -> Sum {
        let mut whole = Sum::default();
        sums.values().for_each(|sum| whole.add_all(sum));
        whole
    }
}

/// A process of a recording.
#[derive(Debug, Default, Serialize)]
pub(super) struct ProcessSummary {
    pub(super) pid: u32,
    pub(super) command: Vec<String>,
    pub(super) library: String,
    pub(super) unix_ns: u64,
    /// What it is in its job: "rank 3", "server1".
    pub(super) role: Option<String>,
    /// When it began to record, from the first process that is shown on.
    pub(super) since_ns: u64,
    pub(super) events: u64,
    /// From the first event to the end of the last.
    pub(super) ns: u64,
    pub(super) threads: usize,
    /// Threads that called the library, and the time they spent in it.
    pub(super) callers: usize,
    pub(super) called_ns: u64,
    pub(super) put_ns: u64,
    pub(super) put_bytes: u64,
    /// Of these, those to files that several ranks have open: what write-behind would hide of them is not estimated.
    pub(super) ranks_put_ns: u64,
    pub(super) ranks_put_bytes: u64,
    pub(super) get_ns: u64,
    pub(super) get_bytes: u64,
    /// What calling threads did and waited for, and what others did.
    pub(super) caller_ns: BTreeMap<Stage, u64>,
    pub(super) other_ns: BTreeMap<Stage, u64>,
    pub(super) waits: BTreeMap<&'static str, Sum>,
    /// Of the waits for other MPI ranks, those in calls, by function.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) waits_for_ranks: BTreeMap<String, Sum>,
    pub(super) filters: BTreeMap<String, Sum>,
    pub(super) stages: BTreeMap<&'static str, Sum>,
    pub(super) calls: BTreeMap<String, Sum>,
    pub(super) variables: Vec<VariableSummary>,
    pub(super) files: Vec<FileSummary>,
    pub(super) hints: Vec<HintSummary>,
    pub(super) queue: QueueSummary,
    pub(super) served: ServedSummary,
    #[serde(skip)]
    pub(super) charts: Charts,
    #[serde(skip)]
    state: AddingState,
}

/// What is needed for pictures only.
#[derive(Debug, Default)]
pub(super) struct Charts {
    /// Accesses to the backend.
    pub(super) accesses: Vec<FileAccess>,
    /// One access in so many is kept.
    pub(super) every: u64,
    pub(super) read: Bins,
    pub(super) written: Bins,
    pub(super) put: Bins,
    pub(super) got: Bins,
    pub(super) stages: BTreeMap<Stage, Bins>,
    pub(super) queue_bytes: LevelOverTime,
    pub(super) queue_jobs: LevelOverTime,
    /// Of remote files: seconds of requests, and their bytes.
    pub(super) requests: Bins,
    pub(super) fetched: Bins,
    /// For the time line: seconds in calls, in those waits that calls may contain, and what servers did.
    pub(super) called: Bins,
    pub(super) waited: Bins,
    pub(super) carried_out: Bins,
    pub(super) gathered: Bins,
}

impl ProcessSummary {
    pub(super) fn new(process: &RecordedProcess) -> ProcessSummary {
        ProcessSummary {
            pid: process.pid,
            command: process.command.clone(),
            library: process.library.clone(),
            unix_ns: process.unix_ns,
            ..ProcessSummary::default()
        }
    }

    /// Completes the sums. Call this after the last event.
    pub(super) fn finish(&mut self) {
        let state = &self.state;
        self.ns = state.end_ns.saturating_sub(state.first_ns.unwrap_or(0));
        self.threads = state.threads.len();
        self.callers = state.ended.len();
        for ((thread, stage), ns) in &state.stage_ns {
            let calls = state.ended.contains_key(thread);
            let sums = if calls { &mut self.caller_ns } else { &mut self.other_ns };
            let sum = sums.entry(*stage).or_default();
            *sum = sum.saturating_add(*ns);
        }
        self.queue.most_bytes = self.charts.queue_bytes.most;
        self.queue.most_bytes_ns = self.charts.queue_bytes.most_at_ns;
        self.queue.most_jobs = self.charts.queue_jobs.most;
    }

    /// Whether it is an I/O server, one among the ranks of a program included.
    pub(super) fn is_server(&self) -> bool {
        let is_called_so = self.role.as_deref().is_some_and(|role| role.starts_with("server"));
        is_called_so || !self.served.taken.is_empty()
    }

    /// What it is called beside others.
    pub(super) fn name(&self) -> String {
        self.role.clone().unwrap_or_else(|| format!("process {}", self.pid))
    }

    /// When it ended, or the last event that there is of it, on the clock of the job.
    pub(super) fn end_ns(&self) -> u64 {
        self.since_ns.saturating_add(self.state.end_ns)
    }

    /// Bytes that it wrote to files, below all layers.
    pub(super) fn written_bytes(&self) -> u64 {
        let bottom = |file: &FileSummary| {
            let layer = file.layers.values().next_back();
            layer.map_or(0, |layer| layer.write.bytes.saturating_add(layer.fill.bytes))
        };
        self.files.iter().map(bottom).fold(0, u64::saturating_add)
    }

    /// Time in calls that is none of the stages: looking things up, checking, copying into pages.
    pub(super) fn rest_ns(&self) -> u64 {
        self.caller_ns.values().fold(self.called_ns, |rest, ns| rest.saturating_sub(*ns))
    }

    /// Time and bytes of puts to files of this process alone.
    pub(super) fn own_puts(&self) -> (u64, u64) {
        let Self { put_ns, put_bytes, ranks_put_ns, ranks_put_bytes, .. } = self;
        (put_ns.saturating_sub(*ranks_put_ns), put_bytes.saturating_sub(*ranks_put_bytes))
    }

    /// What puts took beyond a copy of the same bytes at `copy_bytes_per_s`: what write-behind could
    /// have hidden, had there been a core for it.
    pub(super) fn hidable_ns(&self, copy_bytes_per_s: f64) -> u64 {
        let (ns, bytes) = self.own_puts();
        let copy_ns = bytes as f64 / copy_bytes_per_s * 1e9;
        ns.saturating_sub(copy_ns as u64)
    }
}

#[cfg(test)]
mod tests;
