//! Adds the events of a recording up, one by one.

use std::collections::{BTreeMap, HashMap, HashSet};

use zonda_plot::{AccessDirection, FileAccess};
use zonda_trace::decode::{RecordedEvent, TraceNames};
use zonda_trace::{EventKind, NO_ITEM};

use super::{FileSummary, HintSummary, LayerSummary, ProcessSummary, Stage, Sum, VariableSummary};
use crate::tuning::{PICTURE_ACCESSES, REMEMBERED_CALLS, SUMS_PER_KIND};

/// What has to be kept between events.
#[derive(Debug, Default)]
pub(super) struct AddingState {
    pub(super) first_ns: Option<u64>,
    pub(super) end_ns: u64,
    pub(super) threads: HashSet<u32>,
    /// The last calls that ended, by thread. The time of those that a later call contains must not
    /// be counted twice.
    pub(super) ended: HashMap<u32, Vec<EndedCall>>,
    /// Time by thread and stage. Which threads are callers is known at the end only.
    pub(super) stage_ns: HashMap<(u32, Stage), u64>,
    /// Indices of variables by file, group and number.
    variables: HashMap<(u32, u64, u32), usize>,
    /// Waits for ranks since the last call of a thread: when the first began, when the last ended, and all of them. The call that they
    /// are in ends after them.
    rank_waits: HashMap<u32, (u64, u64, Sum)>,
    /// Files that several ranks have open, by their number in the trace.
    of_ranks: HashSet<u32>,
    /// Indices of files by their number in the trace.
    files: HashMap<u32, usize>,
    /// How many layers stand above the backend of an opening.
    bottoms: HashMap<u32, u32>,
    /// The last transfer of each thread: index of its file, key of its layer, and whether it writes.
    last: HashMap<u32, (usize, String, bool)>,
    /// Accesses to the backend so far.
    n_accesses: u64,
}

/// A call that ended, and which a later one may contain.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedCall {
    begin_ns: u64,
    ns: u64,
    bytes: u64,
    /// Whether it put or got values; `None` for other calls.
    direction: Option<AccessDirection>,
    /// It was about a file that several ranks have open.
    is_of_ranks: bool,
}

impl EndedCall {
    fn is_within(&self, outer: &RecordedEvent) -> bool {
        let end_ns = self.begin_ns.saturating_add(self.ns);
        self.begin_ns >= outer.begin_ns && end_ns <= outer.end_ns() && self.ns < outer.took_ns
    }
}

impl AddingState {
    /// Notes that something happened then, on that thread.
    fn came(&mut self, kind: EventKind, event: &RecordedEvent) {
        let first = self.first_ns.map_or(event.begin_ns, |first| first.min(event.begin_ns));
        self.first_ns = Some(first);
        self.end_ns = self.end_ns.max(event.end_ns());
        self.threads.insert(event.thread);
        if kind != EventKind::ReadMore && kind != EventKind::WriteMore {
            self.last.remove(&event.thread);
        }
    }
}

impl ProcessSummary {
    /// Adds an event. Events of a thread come in the order in which they ended.
    pub(in super::super) fn add(&mut self, event: &RecordedEvent, names: &TraceNames) {
        self.events += 1;
        let Some(kind) = event.kind else { return };
        self.state.came(kind, event);
        match kind {
            EventKind::Call => {
                self.call(names.word(event.name).unwrap_or("a function"), event, names)
            }
            EventKind::Read
            | EventKind::Write
            | EventKind::Fill
            | EventKind::Len
            | EventKind::SetLen
            | EventKind::Barrier => {
                self.storage(kind, event, names);
            }
            EventKind::Sync | EventKind::Invalidate | EventKind::Open => {
                self.storage(kind, event, names)
            }
            EventKind::ReadMore | EventKind::WriteMore => self.more(event),
            EventKind::Advise | EventKind::Close => {}
            EventKind::ChunkScatter | EventKind::ChunkGather => {
                self.stage(kind, Stage::Copy, event)
            }
            EventKind::Convert => self.stage(kind, Stage::Convert, event),
            EventKind::Filter => {
                let name = names.word(event.name).unwrap_or("filter");
                let undone = if event.code == 1 { "undo " } else { "" };
                let event = RecordedEvent { code: 0, ..*event };
                row(&mut self.filters, &format!("{undone}{name}")).add(&event);
                self.stage(kind, Stage::Filter, &event);
            }
            EventKind::WaitLock
            | EventKind::WaitPool
            | EventKind::WaitChunk
            | EventKind::WaitRanks => self.wait(kind, event),
            EventKind::QueueBlocked => {
                self.queue.blocked.add(event);
                self.wait(kind, event);
            }
            EventKind::QueueDrain => {
                self.queue.drained.add(event);
                self.wait(kind, event);
            }
            EventKind::QueueAccept => self.queue.accepted.add(event),
            EventKind::QueueExecute => self.queue.executed.add(event),
            EventKind::QueueBytes => self.charts.queue_bytes.add(event.begin_ns, event.offset),
            EventKind::QueueJobs => self.charts.queue_jobs.add(event.begin_ns, event.offset),
            EventKind::ChunkRead
            | EventKind::ChunkDecode
            | EventKind::ChunkEncode
            | EventKind::ChunkWrite
            | EventKind::ChunkSpill
            | EventKind::ChunkFetch => {
                self.stages.entry(kind.text()).or_default().add(event);
            }
            EventKind::ServerTell
            | EventKind::ServerAsk
            | EventKind::ServerTake
            | EventKind::ServerQueue
            | EventKind::ServerCall
            | EventKind::ServerGather => {
                self.served(kind, names.word(event.name).unwrap_or("a call"), event);
            }
            EventKind::Request => {
                self.stages.entry(kind.text()).or_default().add(event);
                let (begin, end, charts) = (event.begin_ns, event.end_ns(), &mut self.charts);
                charts.requests.add(begin, end, event.took_ns as f64 / 1e9);
                charts.fetched.add(begin, end, event.bytes as f64);
            }
            EventKind::Hint => self.hint(event, names),
            EventKind::ChunkHit
            | EventKind::Commit
            | EventKind::Exchange
            | EventKind::ReadFound => self.stages.entry(kind.text()).or_default().add(event),
        }
    }

    fn stage(&mut self, kind: EventKind, stage: Stage, event: &RecordedEvent) {
        // Filters, storage and waits have tables of their own.
        if !matches!(stage, Stage::Filter | Stage::Disk | Stage::Wait) {
            self.stages.entry(kind.text()).or_default().add(event);
        }
        let sum = self.state.stage_ns.entry((event.thread, stage)).or_default();
        *sum = sum.saturating_add(event.took_ns);
        let bins = self.charts.stages.entry(stage).or_default();
        bins.add(event.begin_ns, event.end_ns(), event.took_ns as f64 / 1e9);
    }

    /// Adds what a client says to I/O servers, or what a server does.
    pub(super) fn served(&mut self, kind: EventKind, name: &str, event: &RecordedEvent) {
        let served = &mut self.served;
        let seconds = event.took_ns as f64 / 1e9;
        match kind {
            EventKind::ServerTell => row(&mut served.told, name).add(event),
            EventKind::ServerAsk => {
                row(&mut served.asked, name).add(event);
                self.wait(kind, event);
            }
            EventKind::ServerTake => {
                row(&mut served.taken, name).add(event);
                let n_clients = served.taken_from.len();
                if n_clients < SUMS_PER_KIND || served.taken_from.contains_key(&event.item) {
                    served.taken_from.entry(event.item).or_default().add(event);
                }
            }
            EventKind::ServerQueue => served.queued.add(event),
            EventKind::ServerCall => {
                row(&mut served.carried_out, name).add(event);
                self.charts.carried_out.add(event.begin_ns, event.end_ns(), seconds);
            }
            _ => {
                served.gathered.add(event);
                self.charts.gathered.add(event.begin_ns, event.end_ns(), seconds);
                self.wait(kind, event);
            }
        }
    }

    /// Notes what a hint did, once where it did the same again.
    fn hint(&mut self, event: &RecordedEvent, names: &TraceNames) {
        let hint = HintSummary {
            file: names.file(event.file).unwrap_or("a file").to_owned(),
            effect: names.word(event.name).unwrap_or("a hint").to_owned(),
            given: event.offset,
            real: event.bytes,
            code: event.code,
        };
        if self.hints.len() < SUMS_PER_KIND && !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
    }

    fn wait(&mut self, kind: EventKind, event: &RecordedEvent) {
        self.waits.entry(kind.text()).or_default().add(event);
        if matches!(
            kind,
            EventKind::WaitRanks
                | EventKind::QueueBlocked
                | EventKind::QueueDrain
                | EventKind::ServerAsk
        ) {
            let seconds = event.took_ns as f64 / 1e9;
            self.charts.waited.add(event.begin_ns, event.end_ns(), seconds);
        }
        if kind == EventKind::WaitRanks {
            let waits = self.state.rank_waits.entry(event.thread);
            let (_, end_ns, sum) = waits.or_insert((event.begin_ns, 0, Sum::default()));
            *end_ns = event.end_ns().max(*end_ns);
            sum.add(event);
        }
        self.stage(kind, Stage::Wait, event);
    }

    pub(super) fn call(&mut self, name: &str, event: &RecordedEvent, names: &TraceNames) {
        row(&mut self.calls, name).add(event);
        if let Some((begin_ns, end_ns, waits)) = self.state.rank_waits.remove(&event.thread)
            && (begin_ns >= event.begin_ns && end_ns <= event.end_ns())
        {
            row(&mut self.waits_for_ranks, name).add_all(&waits);
        }
        if name.starts_with("nc_create_par") || name.starts_with("nc_open_par") {
            self.state.of_ranks.insert(event.file);
        }
        let direction = if name.starts_with("nc_put_var") {
            Some(AccessDirection::Write)
        } else if name.starts_with("nc_get_var") {
            Some(AccessDirection::Read)
        } else {
            None
        };
        if let Some(direction) = direction.filter(|_| event.item != NO_ITEM) {
            let variable = self.variable(event, names);
            let sum = if direction == AccessDirection::Write {
                &mut variable.put
            } else {
                &mut variable.get
            };
            sum.add(event);
        }
        let bins = match direction {
            Some(AccessDirection::Write) => Some(&mut self.charts.put),
            Some(AccessDirection::Read) => Some(&mut self.charts.got),
            None => None,
        };
        if let Some(bins) = bins {
            bins.add(event.begin_ns, event.end_ns(), event.bytes as f64);
        }
        let call = EndedCall {
            begin_ns: event.begin_ns,
            ns: event.took_ns,
            bytes: event.bytes,
            direction,
            is_of_ranks: self.state.of_ranks.contains(&event.file),
        };
        let ended = self.state.ended.entry(event.thread).or_default();
        let within = ended.iter().rev().take_while(|inner| inner.is_within(event)).count();
        let inner = ended.split_off(ended.len() - within);
        if ended.len() == REMEMBERED_CALLS {
            ended.remove(0);
        }
        ended.push(call);
        for inner in &inner {
            self.count_time(inner, u64::saturating_sub);
            self.draw_time(inner, -1.0);
        }
        self.count_time(&call, u64::saturating_add);
        self.draw_time(&call, 1.0);
    }

    fn draw_time(&mut self, call: &EndedCall, sign: f64) {
        let end_ns = call.begin_ns.saturating_add(call.ns);
        self.charts.called.add(call.begin_ns, end_ns, sign * call.ns as f64 / 1e9);
    }

    /// Adds the time and bytes of a call, or takes them off again.
    fn count_time(&mut self, call: &EndedCall, add: fn(u64, u64) -> u64) {
        self.called_ns = add(self.called_ns, call.ns);
        match call.direction {
            Some(AccessDirection::Write) => {
                self.put_ns = add(self.put_ns, call.ns);
                self.put_bytes = add(self.put_bytes, call.bytes);
                if call.is_of_ranks {
                    self.ranks_put_ns = add(self.ranks_put_ns, call.ns);
                    self.ranks_put_bytes = add(self.ranks_put_bytes, call.bytes);
                }
            }
            Some(AccessDirection::Read) => {
                self.get_ns = add(self.get_ns, call.ns);
                self.get_bytes = add(self.get_bytes, call.bytes);
            }
            None => {}
        }
    }

    fn variable(&mut self, event: &RecordedEvent, names: &TraceNames) -> &mut VariableSummary {
        let key = (event.file, event.offset, event.item);
        let known = self.state.variables.get(&key).copied();
        let index = known.unwrap_or_else(|| {
            if self.variables.len() < SUMS_PER_KIND {
                let group = u32::try_from(event.offset).unwrap_or(u32::MAX);
                let name = names.variable(event.file, group, event.item);
                let name = name.map_or_else(|| format!("variable {}", event.item), str::to_owned);
                let file = names.file(event.file).unwrap_or("").to_owned();
                self.variables.push(VariableSummary { file, name, ..VariableSummary::default() });
            }
            let index = self.variables.len() - 1;
            self.state.variables.insert(key, index);
            index
        });
        &mut self.variables[index]
    }

    fn storage(&mut self, kind: EventKind, event: &RecordedEvent, names: &TraceNames) {
        if kind == EventKind::Open {
            // The event of the backend, which is the deepest, comes first.
            let bottom = self.state.bottoms.entry(event.opening()).or_default();
            *bottom = (*bottom).max(event.depth());
        }
        let token = names.layer(event.opening(), event.depth()).unwrap_or("");
        if kind == EventKind::Open && matches!(token.split([':', '.']).next(), Some("mmap")) {
            // `mmap` reads without the layers below it, so it counts as the backend.
            self.state.bottoms.insert(event.opening(), event.depth());
        }
        let key = format!("{:03} {token}", event.depth());
        let n_files = self.files.len();
        let file = *self.state.files.entry(event.file).or_insert_with(|| {
            if n_files < SUMS_PER_KIND {
                let path = names.file(event.file).unwrap_or("in memory").to_owned();
                self.files.push(FileSummary { path, layers: BTreeMap::new() });
            }
            self.files.len() - 1
        });
        let layer = self.files[file].layers.entry(key.clone()).or_insert_with(|| LayerSummary {
            depth: event.depth(),
            token: token.to_owned(),
            ..LayerSummary::default()
        });
        match kind {
            EventKind::Open => {
                layer.openings += 1;
                return;
            }
            EventKind::Read | EventKind::Write => {
                let writes = kind == EventKind::Write;
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
            EventKind::Fill => layer.fill.add(event),
            _ => layer.other.add(event),
        }
        if self.is_bottom(event) {
            self.reached(kind, event);
            self.stage(kind, Stage::Disk, event);
        }
    }

    fn is_bottom(&self, event: &RecordedEvent) -> bool {
        self.state.bottoms.get(&event.opening()).is_none_or(|bottom| *bottom == event.depth())
    }

    /// Adds one more range of the call before.
    fn more(&mut self, event: &RecordedEvent) {
        let Some((file, key, writes)) = self.state.last.get(&event.thread) else { return };
        let Some(layer) = self.files[*file].layers.get_mut(key) else { return };
        let moved = if *writes { &mut layer.write } else { &mut layer.read };
        moved.range(event);
        if self.is_bottom(event) {
            self.reached(
                if event.kind == Some(EventKind::WriteMore) {
                    EventKind::Write
                } else {
                    EventKind::Read
                },
                event,
            );
        }
    }

    /// Notes an access to the backend.
    fn reached(&mut self, kind: EventKind, event: &RecordedEvent) {
        let direction = match kind {
            EventKind::Read => AccessDirection::Read,
            EventKind::Write | EventKind::Fill => AccessDirection::Write,
            _ => return,
        };
        if event.code != 0 || event.bytes == 0 {
            return;
        }
        let charts = &mut self.charts;
        let bins =
            if direction == AccessDirection::Read { &mut charts.read } else { &mut charts.written };
        bins.add(event.begin_ns, event.end_ns(), event.bytes as f64);
        charts.every = charts.every.max(1);
        self.state.n_accesses += 1;
        if self.state.n_accesses.is_multiple_of(charts.every) {
            charts.accesses.push(FileAccess {
                start_s: event.begin_ns as f64 / 1e9,
                took_s: event.took_ns as f64 / 1e9,
                offset: event.offset,
                len_bytes: event.bytes,
                direction,
            });
        }
        if charts.accesses.len() >= PICTURE_ACCESSES {
            let mut odd = false;
            charts.accesses.retain(|_| {
                odd = !odd;
                odd
            });
            charts.every *= 2;
        }
    }
}

/// The sum with this name, or the common one of all later names where there are too many.
fn row<'a>(rows: &'a mut BTreeMap<String, Sum>, name: &str) -> &'a mut Sum {
    let name = if rows.len() < SUMS_PER_KIND || rows.contains_key(name) { name } else { "others" };
    rows.entry(name.to_owned()).or_default()
}
