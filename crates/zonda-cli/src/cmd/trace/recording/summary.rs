//! A recording added up: what was called, what moved where, and what the time went into.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use zonda_plot::{Access, Direction};
use zonda_trace::decode::{Event, Names, Process};
use zonda_trace::{Kind, NO_ITEM};

use super::bins::{Bins, Level};

/// What a span that contains no other is time of.
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

/// How often, how much, how long.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) errors: u64,
    pub(super) bytes: u64,
    pub(super) ns: u64,
    pub(super) most_ns: u64,
}

impl Sum {
    fn add(&mut self, event: &Event) {
        self.count += 1;
        self.errors += u64::from(event.code != 0);
        self.bytes = self.bytes.saturating_add(event.bytes);
        self.ns = self.ns.saturating_add(event.took_ns);
        self.most_ns = self.most_ns.max(event.took_ns);
    }
}

/// Reads or writes of one layer of one file.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Moved {
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

impl Moved {
    fn range(&mut self, event: &Event) {
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
pub(super) struct Layer {
    /// How many stand above it.
    pub(super) depth: u32,
    /// As its spec names it.
    pub(super) token: String,
    pub(super) openings: u64,
    pub(super) read: Moved,
    pub(super) write: Moved,
    /// Fill values, by their runs.
    pub(super) fill: Sum,
    /// Everything else that was asked: lengths, barriers, syncs.
    pub(super) other: Sum,
}

/// A file of a process.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) layers: BTreeMap<String, Layer>,
}

/// A variable, by what was put and got.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Variable {
    pub(super) file: String,
    pub(super) name: String,
    pub(super) put: Sum,
    pub(super) get: Sum,
}

/// Write-behind.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Queue {
    pub(super) accepted: Sum,
    pub(super) executed: Sum,
    pub(super) blocked: Sum,
    pub(super) drained: Sum,
    pub(super) most_bytes: u64,
    pub(super) most_jobs: u64,
}

/// A process of a recording.
#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) pid: u32,
    pub(super) command: Vec<String>,
    pub(super) library: String,
    pub(super) unix_ns: u64,
    pub(super) events: u64,
    /// From the first event to the end of the last.
    pub(super) ns: u64,
    pub(super) threads: usize,
    /// Threads that called the library, and the time they spent in it.
    pub(super) callers: usize,
    pub(super) called_ns: u64,
    pub(super) put_ns: u64,
    pub(super) put_bytes: u64,
    pub(super) get_ns: u64,
    pub(super) get_bytes: u64,
    /// What calling threads did and waited for, and what others did.
    pub(super) caller_ns: BTreeMap<Stage, u64>,
    pub(super) other_ns: BTreeMap<Stage, u64>,
    pub(super) waits: BTreeMap<&'static str, Sum>,
    pub(super) filters: BTreeMap<String, Sum>,
    pub(super) stages: BTreeMap<&'static str, Sum>,
    pub(super) calls: BTreeMap<String, Sum>,
    pub(super) variables: Vec<Variable>,
    pub(super) files: Vec<File>,
    pub(super) queue: Queue,
    #[serde(skip)]
    pub(super) charts: Charts,
    #[serde(skip)]
    state: State,
}

/// What only pictures need.
#[derive(Debug, Default)]
pub(super) struct Charts {
    /// What reached the backend.
    pub(super) accesses: Vec<Access>,
    /// Of so many accesses one is kept.
    pub(super) every: u64,
    pub(super) read: Bins,
    pub(super) written: Bins,
    pub(super) put: Bins,
    pub(super) got: Bins,
    pub(super) stages: BTreeMap<Stage, Bins>,
    pub(super) queue_bytes: Level,
    pub(super) queue_jobs: Level,
}

/// Accesses that a picture is drawn from, at most.
const MOST_ACCESSES: usize = 1 << 20;
/// Functions, variables and files that are told apart; what comes later is one.
const MOST_ROWS: usize = 100_000;
/// Calls of a thread that may contain each other.
const NESTED: usize = 64;

#[derive(Debug, Default)]
struct State {
    first_ns: Option<u64>,
    end_ns: u64,
    threads: HashSet<u32>,
    /// Calls that ended, by thread, the last ones: those that a later one turns out to contain are
    /// no time of their own.
    ended: HashMap<u32, Vec<Call>>,
    /// Time by thread and stage, until it is known which threads call.
    stage_ns: HashMap<(u32, Stage), u64>,
    variables: HashMap<(u32, u64, u32), usize>,
    files: HashMap<u32, usize>,
    /// How many layers stand above the backend of an opening.
    bottoms: HashMap<u32, u32>,
    /// File, key of the layer and whether it writes, of the last transfer of each thread.
    last: HashMap<u32, (usize, String, bool)>,
    seen: u64,
}

#[derive(Debug, Clone, Copy)]
struct Call {
    begin_ns: u64,
    ns: u64,
    bytes: u64,
    way: Option<Direction>,
}

impl Call {
    fn is_within(&self, outer: &Event) -> bool {
        let end_ns = self.begin_ns.saturating_add(self.ns);
        self.begin_ns >= outer.begin_ns && end_ns <= outer.end_ns() && self.ns < outer.took_ns
    }
}

impl Summary {
    pub(super) fn new(process: &Process) -> Summary {
        Summary {
            pid: process.pid,
            command: process.command.clone(),
            library: process.library.clone(),
            unix_ns: process.unix_ns,
            ..Summary::default()
        }
    }

    /// Adds an event; those of a thread in the order in which they ended.
    pub(super) fn add(&mut self, event: &Event, names: &Names) {
        self.events += 1;
        let Some(kind) = event.kind else { return };
        let first = self.state.first_ns.map_or(event.begin_ns, |first| first.min(event.begin_ns));
        self.state.first_ns = Some(first);
        self.state.end_ns = self.state.end_ns.max(event.end_ns());
        self.state.threads.insert(event.thread);
        if kind != Kind::ReadMore && kind != Kind::WriteMore {
            self.state.last.remove(&event.thread);
        }
        match kind {
            Kind::Call => self.call(event, names),
            Kind::Read | Kind::Write | Kind::Fill | Kind::Len | Kind::SetLen | Kind::Barrier => {
                self.storage(kind, event, names);
            }
            Kind::Sync | Kind::Invalidate | Kind::Open => self.storage(kind, event, names),
            Kind::ReadMore | Kind::WriteMore => self.more(event),
            Kind::Advise | Kind::Close => {}
            Kind::ChunkScatter | Kind::ChunkGather => self.stage(kind, Stage::Copy, event),
            Kind::Convert => self.stage(kind, Stage::Convert, event),
            Kind::Filter => {
                let name = names.word(event.name).unwrap_or("filter");
                let undone = if event.code == 1 { "undo " } else { "" };
                let event = Event { code: 0, ..*event };
                row(&mut self.filters, &format!("{undone}{name}")).add(&event);
                self.stage(kind, Stage::Filter, &event);
            }
            Kind::WaitLock | Kind::WaitPool | Kind::WaitChunk => self.wait(kind, event),
            Kind::QueueBlocked => {
                self.queue.blocked.add(event);
                self.wait(kind, event);
            }
            Kind::QueueDrain => {
                self.queue.drained.add(event);
                self.wait(kind, event);
            }
            Kind::QueueAccept => self.queue.accepted.add(event),
            Kind::QueueExecute => self.queue.executed.add(event),
            Kind::QueueBytes => self.charts.queue_bytes.add(event.begin_ns, event.offset),
            Kind::QueueJobs => self.charts.queue_jobs.add(event.begin_ns, event.offset),
            Kind::ChunkRead
            | Kind::ChunkDecode
            | Kind::ChunkEncode
            | Kind::ChunkWrite
            | Kind::ChunkSpill
            | Kind::ChunkFetch => {
                self.stages.entry(kind.text()).or_default().add(event);
            }
            Kind::ChunkHit | Kind::Commit => self.stages.entry(kind.text()).or_default().add(event),
        }
    }

    fn stage(&mut self, kind: Kind, stage: Stage, event: &Event) {
        // What has a table of its own is not in this one.
        if !matches!(stage, Stage::Filter | Stage::Disk | Stage::Wait) {
            self.stages.entry(kind.text()).or_default().add(event);
        }
        let sum = self.state.stage_ns.entry((event.thread, stage)).or_default();
        *sum = sum.saturating_add(event.took_ns);
        let bins = self.charts.stages.entry(stage).or_default();
        bins.add(event.begin_ns, event.end_ns(), event.took_ns as f64 / 1e9);
    }

    fn wait(&mut self, kind: Kind, event: &Event) {
        self.waits.entry(kind.text()).or_default().add(event);
        self.stage(kind, Stage::Wait, event);
    }

    fn call(&mut self, event: &Event, names: &Names) {
        let name = names.word(event.name).unwrap_or("a function");
        row(&mut self.calls, name).add(event);
        let way = if name.starts_with("nc_put_var") {
            Some(Direction::Write)
        } else if name.starts_with("nc_get_var") {
            Some(Direction::Read)
        } else {
            None
        };
        if let Some(way) = way.filter(|_| event.item != NO_ITEM) {
            let variable = self.variable(event, names);
            let sum = if way == Direction::Write { &mut variable.put } else { &mut variable.get };
            sum.add(event);
        }
        let bins = match way {
            Some(Direction::Write) => Some(&mut self.charts.put),
            Some(Direction::Read) => Some(&mut self.charts.got),
            None => None,
        };
        if let Some(bins) = bins {
            bins.add(event.begin_ns, event.end_ns(), event.bytes as f64);
        }
        let ended = self.state.ended.entry(event.thread).or_default();
        while let Some(inner) = ended.last().copied().filter(|c| c.is_within(event)) {
            ended.pop();
            self.called_ns = self.called_ns.saturating_sub(inner.ns);
            match inner.way {
                Some(Direction::Write) => {
                    self.put_ns = self.put_ns.saturating_sub(inner.ns);
                    self.put_bytes = self.put_bytes.saturating_sub(inner.bytes);
                }
                Some(Direction::Read) => {
                    self.get_ns = self.get_ns.saturating_sub(inner.ns);
                    self.get_bytes = self.get_bytes.saturating_sub(inner.bytes);
                }
                None => {}
            }
        }
        let call = Call { begin_ns: event.begin_ns, ns: event.took_ns, bytes: event.bytes, way };
        if ended.len() == NESTED {
            ended.remove(0);
        }
        ended.push(call);
        self.called_ns = self.called_ns.saturating_add(call.ns);
        match way {
            Some(Direction::Write) => {
                self.put_ns = self.put_ns.saturating_add(call.ns);
                self.put_bytes = self.put_bytes.saturating_add(call.bytes);
            }
            Some(Direction::Read) => {
                self.get_ns = self.get_ns.saturating_add(call.ns);
                self.get_bytes = self.get_bytes.saturating_add(call.bytes);
            }
            None => {}
        }
    }

    fn variable(&mut self, event: &Event, names: &Names) -> &mut Variable {
        let key = (event.file, event.offset, event.item);
        let known = self.state.variables.get(&key).copied();
        let index = known.unwrap_or_else(|| {
            if self.variables.len() < MOST_ROWS {
                let group = u32::try_from(event.offset).unwrap_or(u32::MAX);
                let name = names.variable(event.file, group, event.item);
                let name = name.map_or_else(|| format!("variable {}", event.item), str::to_owned);
                let file = names.file(event.file).unwrap_or("").to_owned();
                self.variables.push(Variable { file, name, ..Variable::default() });
            }
            let index = self.variables.len() - 1;
            self.state.variables.insert(key, index);
            index
        });
        &mut self.variables[index]
    }

    fn storage(&mut self, kind: Kind, event: &Event, names: &Names) {
        if kind == Kind::Open {
            // The backend's comes first, it is the deepest.
            let bottom = self.state.bottoms.entry(event.opening()).or_default();
            *bottom = (*bottom).max(event.depth());
        }
        let token = names.layer(event.opening(), event.depth()).unwrap_or("");
        if kind == Kind::Open && matches!(token.split([':', '.']).next(), Some("mmap")) {
            // It reads past what is below it.
            self.state.bottoms.insert(event.opening(), event.depth());
        }
        let key = format!("{:03} {token}", event.depth());
        let n_files = self.files.len();
        let file = *self.state.files.entry(event.file).or_insert_with(|| {
            if n_files < MOST_ROWS {
                let path = names.file(event.file).unwrap_or("in memory").to_owned();
                self.files.push(File { path, layers: BTreeMap::new() });
            }
            self.files.len() - 1
        });
        let layer = self.files[file].layers.entry(key.clone()).or_insert_with(|| Layer {
            depth: event.depth(),
            token: token.to_owned(),
            ..Layer::default()
        });
        match kind {
            Kind::Open => {
                layer.openings += 1;
                return;
            }
            Kind::Read | Kind::Write => {
                let writes = kind == Kind::Write;
                let moved = if writes { &mut layer.write } else { &mut layer.read };
                moved.calls += 1;
                moved.ns = moved.ns.saturating_add(event.took_ns);
                if event.code == 0 {
                    moved.range(event);
                } else {
                    moved.errors += 1;
                }
                self.state.last.insert(event.thread, (file, key, writes));
            }
            Kind::Fill => layer.fill.add(event),
            _ => layer.other.add(event),
        }
        if self.is_bottom(event) {
            self.reached(kind, event);
            self.stage(kind, Stage::Disk, event);
        }
    }

    fn is_bottom(&self, event: &Event) -> bool {
        self.state.bottoms.get(&event.opening()).is_none_or(|bottom| *bottom == event.depth())
    }

    /// One more range of the call before it.
    fn more(&mut self, event: &Event) {
        let Some((file, key, writes)) = self.state.last.get(&event.thread) else { return };
        let Some(layer) = self.files[*file].layers.get_mut(key) else { return };
        let moved = if *writes { &mut layer.write } else { &mut layer.read };
        moved.range(event);
        if self.is_bottom(event) {
            self.reached(
                if event.kind == Some(Kind::WriteMore) { Kind::Write } else { Kind::Read },
                event,
            );
        }
    }

    /// Bytes came to the backend, or from it.
    fn reached(&mut self, kind: Kind, event: &Event) {
        let direction = match kind {
            Kind::Read => Direction::Read,
            Kind::Write | Kind::Fill => Direction::Write,
            _ => return,
        };
        if event.code != 0 || event.bytes == 0 {
            return;
        }
        let charts = &mut self.charts;
        let bins =
            if direction == Direction::Read { &mut charts.read } else { &mut charts.written };
        bins.add(event.begin_ns, event.end_ns(), event.bytes as f64);
        charts.every = charts.every.max(1);
        self.state.seen += 1;
        if self.state.seen.is_multiple_of(charts.every) {
            charts.accesses.push(Access {
                start_s: event.begin_ns as f64 / 1e9,
                took_s: event.took_ns as f64 / 1e9,
                offset: event.offset,
                len_bytes: event.bytes,
                direction,
            });
        }
        if charts.accesses.len() >= MOST_ACCESSES {
            let mut odd = false;
            charts.accesses.retain(|_| {
                odd = !odd;
                odd
            });
            charts.every *= 2;
        }
    }

    /// To be called after the last event.
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
        self.queue.most_jobs = self.charts.queue_jobs.most;
    }

    /// Time in calls that is none of the stages: looking things up, checking, copying into pages.
    pub(super) fn rest_ns(&self) -> u64 {
        self.caller_ns.values().fold(self.called_ns, |rest, ns| rest.saturating_sub(*ns))
    }

    /// What puts took beyond a copy of the same bytes at `copy_bytes_per_s`: what write-behind could
    /// have hidden, had there been a core for it.
    pub(super) fn hidable_ns(&self, copy_bytes_per_s: f64) -> u64 {
        let copy_ns = self.put_bytes as f64 / copy_bytes_per_s * 1e9;
        self.put_ns.saturating_sub(copy_ns as u64)
    }
}

/// The sum of that name; of the last ones where there are too many.
fn row<'a>(rows: &'a mut BTreeMap<String, Sum>, name: &str) -> &'a mut Sum {
    let name = if rows.len() < MOST_ROWS || rows.contains_key(name) { name } else { "others" };
    rows.entry(name.to_owned()).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: Kind, begin_ns: u64, took_ns: u64) -> Event {
        Event {
            kind: Some(kind),
            thread: 1,
            begin_ns,
            took_ns,
            file: 0,
            item: NO_ITEM,
            offset: 0,
            bytes: 0,
            code: 0,
            name: 0,
        }
    }

    fn summary(events: &[Event]) -> Summary {
        let mut summary = Summary::new(&Process::default());
        events.iter().for_each(|event| summary.add(event, &Names::default()));
        summary.finish();
        summary
    }

    /// A call within another is no time of its own; other threads' work is beside the callers'.
    #[test]
    fn time_counts_once() {
        let elsewhere = Event { thread: 2, ..event(Kind::Filter, 0, 500) };
        let found = summary(&[
            event(Kind::Call, 0, 100),
            event(Kind::Convert, 210, 30),
            event(Kind::Call, 200, 50),
            event(Kind::Call, 260, 10),
            event(Kind::WaitPool, 275, 5),
            elsewhere,
            event(Kind::Call, 200, 100),
        ]);
        assert_eq!((found.called_ns, found.calls["a function"].count), (200, 4));
        assert_eq!((found.callers, found.threads, found.ns), (1, 2, 500));
        assert_eq!(found.caller_ns[&Stage::Convert], 30);
        assert_eq!(found.caller_ns[&Stage::Wait], 5);
        assert_eq!(
            (found.caller_ns.get(&Stage::Filter), found.other_ns[&Stage::Filter]),
            (None, 500)
        );
        assert_eq!(found.rest_ns(), 165);
    }

    /// Ranges of one call count each; what reaches the lowest layer is the disk's.
    #[test]
    fn ranges_and_layers() {
        let at = |kind, depth: u32, offset, bytes| Event {
            item: 7 << 8 | depth,
            offset,
            bytes,
            ..event(kind, 10, 5)
        };
        let found = summary(&[
            at(Kind::Open, 1, 0, 0),
            at(Kind::Open, 0, 0, 0),
            at(Kind::Write, 0, 0, 10),
            at(Kind::Write, 1, 100, 50),
            at(Kind::WriteMore, 1, 150, 20),
            at(Kind::WriteMore, 1, 300, 5),
            at(Kind::Sync, 1, 0, 0),
            // Of a call that is not there.
            at(Kind::WriteMore, 1, 0, 5),
            Event { code: 28, ..at(Kind::Write, 1, 0, 999) },
        ]);
        let layers: Vec<&Layer> = found.files[0].layers.values().collect();
        assert_eq!((layers[0].depth, layers[0].write.bytes), (0, 10));
        let write = &layers[1].write;
        assert_eq!((write.calls, write.ranges, write.bytes, write.errors), (2, 3, 75, 1));
        assert_eq!((write.first, write.end, write.sequential), (Some(100), Some(305), 1));
        assert_eq!((write.least, write.most), (5, 50));
        assert_eq!(write.sizes, [0, 0, 1, 0, 1, 1]);
        assert_eq!(found.other_ns[&Stage::Disk], 15);
        assert_eq!(found.charts.accesses.len(), 3);
    }

    /// Whatever a file says: no overflow, no endless loop.
    #[test]
    fn odd_events() {
        let all = |kind: &Kind| Event {
            offset: u64::MAX,
            bytes: u64::MAX,
            file: u32::MAX,
            item: u32::MAX,
            name: u16::MAX,
            code: i32::MIN,
            ..event(*kind, u64::MAX, u64::MAX)
        };
        let mut events: Vec<Event> = Kind::ALL.iter().map(all).collect();
        events.extend(events.clone());
        events.extend(Kind::ALL.iter().map(|kind| Event { code: 0, begin_ns: 0, ..all(kind) }));
        events.push(Event { kind: None, ..event(Kind::Call, 0, 0) });
        let found = summary(&events);
        assert_eq!(found.events, events.len() as u64);
        assert!(found.hidable_ns(1e-300) <= found.put_ns);
    }
}
