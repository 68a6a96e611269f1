//! The operations of a recorded program on its storage stacks, in their order.

use std::collections::HashMap;
use std::io::Read;

use crate::tuning::REPLAYED_ACCESSES;
use zonda_trace::EventKind;
use zonda_trace::decode::{DecodeError, Decoder, RecordedEvent, TraceNames, TraceStep};

/// An operation on a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessKind {
    Open,
    Close,
    Read,
    Write,
    Fill,
    Len,
    SetLen,
    Barrier,
    Sync,
    Invalidate,
    /// `offset` is the bytes of a record, `len` those of the file, `parts` the record's parts.
    Advise,
}

/// A recorded operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct TracedAccess {
    /// Nanoseconds from the beginning of the process's trace.
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    /// Index in [`Accesses::openings`].
    pub(super) opening: usize,
    pub(super) what: AccessKind,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) parts: u32,
    /// Further ranges of the call: begin and end in [`Accesses::more`].
    pub(super) more: (usize, usize),
}

/// One opening of a file.
#[derive(Debug, Clone)]
pub(super) struct RecordedOpening {
    /// Index in [`Accesses::paths`].
    pub(super) path: usize,
    /// Bytes of the file when it was opened.
    pub(super) len: u64,
    pub(super) writes: bool,
}

/// The operations of all openings of a trace.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    pub(super) paths: Vec<String>,
    pub(super) openings: Vec<RecordedOpening>,
    pub(super) all: Vec<TracedAccess>,
    pub(super) more: Vec<(u64, u64)>,
    /// Whether accesses were left out because there were too many.
    pub(super) cut: bool,
    /// Bytes that are read, written or filled.
    pub(super) bytes: u64,
    /// Advice of formats about their files, the largest record first.
    pub(super) advice: Vec<(u64, u32, u64)>,
}

/// What reading a trace needs besides what it found.
#[derive(Default)]
struct AccessScan {
    paths: HashMap<String, usize>,
    /// By the number that an opening has in the process that is read.
    openings: HashMap<u32, usize>,
    /// The last access of each thread of that process, to which further ranges belong.
    last: HashMap<u32, usize>,
}

impl Accesses {
    /// Reads a trace; what comes after `most_bytes` of transfers is left out.
    ///
    /// # Errors
    /// Where it is not a trace.
    pub(super) fn read(input: impl Read, most_bytes: u64) -> Result<Accesses, DecodeError> {
        let mut found = Accesses::default();
        let mut state = AccessScan::default();
        let mut decoder = Decoder::new(input);
        let mut events: Vec<RecordedEvent> = Vec::new();
        // Index of the first access of the process that is read.
        let mut first = 0;
        loop {
            match decoder.step()? {
                None => break,
                Some(TraceStep::Process(_)) => {
                    found.order(first);
                    first = found.all.len();
                    state.openings.clear();
                    state.last.clear();
                    continue;
                }
                Some(TraceStep::Events(block)) => {
                    events.clear();
                    events.extend_from_slice(block);
                }
            }
            events.iter().for_each(|event| found.add(event, decoder.names(), &mut state));
        }
        found.order(first);
        found.paths = vec![String::new(); state.paths.len()];
        for (path, index) in state.paths {
            found.paths[index] = path;
        }
        found.cut_at(most_bytes);
        found.advice.sort_unstable_by(|a, b| b.cmp(a));
        found.advice.dedup();
        Ok(found)
    }

    /// Adds an event, if it is an operation on the uppermost layer of a stack.
    fn add(&mut self, event: &RecordedEvent, names: &TraceNames, state: &mut AccessScan) {
        let Some((kind, what)) = event.kind.and_then(|kind| Some((kind, what(kind)?))) else {
            state.last.remove(&event.thread);
            return;
        };
        if event.depth() != 0 {
            return;
        }
        if matches!(kind, EventKind::ReadMore | EventKind::WriteMore) {
            if let Some(&index) = state.last.get(&event.thread) {
                self.extend(index, event);
            }
            return;
        }
        let opening = *state.openings.entry(event.opening()).or_insert_with(|| {
            let path = names.file(event.file).unwrap_or("").to_owned();
            let n_paths = state.paths.len();
            let path = *state.paths.entry(path).or_insert(n_paths);
            self.openings.push(RecordedOpening { path, len: 0, writes: false });
            self.openings.len() - 1
        });
        if self.all.len() >= REPLAYED_ACCESSES {
            self.cut = true;
            return;
        }
        self.push(opening, what, event);
        state.last.insert(event.thread, self.all.len() - 1);
    }

    fn push(&mut self, opening: usize, what: AccessKind, event: &RecordedEvent) {
        match what {
            AccessKind::Open => self.openings[opening].len = event.bytes,
            AccessKind::Write | AccessKind::Fill | AccessKind::SetLen => {
                self.openings[opening].writes = true
            }
            AccessKind::Advise => {
                let parts = u32::try_from(event.code).unwrap_or(0);
                self.advice.push((event.offset, parts, event.bytes));
            }
            _ => {}
        }
        self.all.push(TracedAccess {
            begin_ns: event.begin_ns,
            end_ns: event.end_ns(),
            opening,
            what,
            offset: event.offset,
            len: event.bytes,
            parts: u32::try_from(event.code).unwrap_or(0),
            more: (self.more.len(), self.more.len()),
        });
    }

    /// Adds a range to the call at `index`.
    fn extend(&mut self, index: usize, event: &RecordedEvent) {
        let end = self.more.len();
        if self.more.len() >= REPLAYED_ACCESSES {
            self.cut = true;
            return;
        }
        let (begin, known) = self.all[index].more;
        // If ranges of other threads' calls lie in between, those of this call are copied to the
        // end.
        let begin = if known == end { begin } else { self.moved((begin, known)) };
        self.more.push((event.offset, event.bytes));
        self.all[index].more = (begin, self.more.len());
    }

    fn moved(&mut self, (begin, end): (usize, usize)) -> usize {
        let at = self.more.len();
        self.more.extend_from_within(begin..end);
        at
    }

    /// Sorts the accesses of a process, from `first` on, by their beginning.
    fn order(&mut self, first: usize) {
        self.all[first..].sort_by_key(|access| access.begin_ns);
    }

    /// Leaves out the accesses after the first `most_bytes`, except closes.
    fn cut_at(&mut self, most_bytes: u64) {
        let mut bytes = 0u64;
        let (mut all, mut cut) = (std::mem::take(&mut self.all), self.cut);
        all.retain(|access| {
            let mut over = bytes > most_bytes;
            if matches!(access.what, AccessKind::Read | AccessKind::Write | AccessKind::Fill)
                && !over
            {
                let more = self.more[access.more.0..access.more.1].iter();
                let sum = more.fold(access.len, |sum, (_, len)| sum.saturating_add(*len));
                // An access that is larger than the limit itself is left out.
                over = sum > most_bytes;
                if !over {
                    bytes = bytes.saturating_add(sum);
                }
            }
            cut |= over;
            !over || access.what == AccessKind::Close
        });
        (self.all, self.cut, self.bytes) = (all, cut, bytes);
    }

    /// By path, the length that each file had when it was first opened.
    pub(super) fn lengths(&self) -> Vec<u64> {
        let mut lengths = vec![None; self.paths.len()];
        for opening in &self.openings {
            // Later openings find what the replay of earlier ones left, so only the first counts.
            lengths[opening.path].get_or_insert(opening.len);
        }
        lengths.into_iter().map(|len| len.unwrap_or(0)).collect()
    }
}

fn what(kind: EventKind) -> Option<AccessKind> {
    Some(match kind {
        EventKind::Open => AccessKind::Open,
        EventKind::Close => AccessKind::Close,
        EventKind::Read | EventKind::ReadMore => AccessKind::Read,
        EventKind::Write | EventKind::WriteMore => AccessKind::Write,
        EventKind::Fill => AccessKind::Fill,
        EventKind::Len => AccessKind::Len,
        EventKind::SetLen => AccessKind::SetLen,
        EventKind::Barrier => AccessKind::Barrier,
        EventKind::Sync => AccessKind::Sync,
        EventKind::Invalidate => AccessKind::Invalidate,
        EventKind::Advise => AccessKind::Advise,
        _ => return None,
    })
}
