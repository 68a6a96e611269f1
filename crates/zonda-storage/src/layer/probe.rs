//! What passes between two layers, into the process's trace (`zonda_trace`).
//!
//! No spec names it: while a trace is recorded, every stack that is opened gets one above each layer
//! and above the backend. Without a trace there is none, so that it costs nothing. It does not show in
//! the stack's text.

use crate::forward;
use crate::spec::Below;
use crate::{Advice, ReadRange, Storage, StorageError, WriteRange};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use zonda_trace::{Args, EventKind};

/// An opening of a file in the trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TracedOpening {
    file: u32,
    number: u32,
}

impl TracedOpening {
    /// A new one, if a trace is recorded. `path` is that of the file, if there is one.
    pub(crate) fn of(path: Option<&Path>) -> Option<TracedOpening> {
        static OPENINGS: AtomicU32 = AtomicU32::new(1);
        zonda_trace::on().then(|| {
            let number = OPENINGS.fetch_add(1, Ordering::Relaxed) & 0xff_ffff;
            TracedOpening { file: path.map_or(0, zonda_trace::file), number }
        })
    }

    /// Puts a probe on `below`, whose token is `token`, `depth` layers standing above it.
    pub(crate) fn probe(self, below: Below, depth: usize, token: String) -> Below {
        // A stack deeper than the number has room for shows its lowest layers as one.
        let depth = u32::try_from(depth).unwrap_or(u32::MAX).min(0xff);
        zonda_trace::layer(self.number, depth, token);
        let probe = TraceProbe { below, file: self.file, item: self.number << 8 | depth };
        zonda_trace::instant(EventKind::Open, || Args {
            bytes: probe.below.len().unwrap_or(0),
            ..probe.args(0, 0)
        });
        Arc::new(probe)
    }
}

#[derive(Debug)]
struct TraceProbe {
    below: Below,
    file: u32,
    /// Opening and depth, as events carry them.
    item: u32,
}

impl TraceProbe {
    fn args(&self, offset: u64, bytes: u64) -> Args {
        Args { file: self.file, item: self.item, offset, bytes, ..Args::default() }
    }

    /// Runs `call` and records it; `moved` says where and how many bytes.
    fn record<T>(
        &self,
        kind: EventKind,
        call: impl FnOnce() -> Result<T, StorageError>,
        moved: impl FnOnce(Option<&T>) -> (u64, u64),
    ) -> Result<T, StorageError> {
        let begin = zonda_trace::start();
        let outcome = call();
        zonda_trace::span_since(begin, kind, || {
            let (offset, bytes) = moved(outcome.as_ref().ok());
            let code = outcome.as_ref().err().map_or(0, StorageError::raw_os_error);
            Args { code, ..self.args(offset, bytes) }
        });
        outcome
    }

    /// The ranges behind the first of one call.
    fn more(&self, kind: EventKind, ranges: impl Iterator<Item = (u64, u64)>) {
        if zonda_trace::on() {
            for (offset, bytes) in ranges.skip(1) {
                zonda_trace::instant(kind, || self.args(offset, bytes));
            }
        }
    }
}

impl Drop for TraceProbe {
    fn drop(&mut self) {
        zonda_trace::instant(EventKind::Close, || self.args(0, 0));
        if self.item & 0xff == 0 {
            // So that the trace of a file that was closed is complete, whatever becomes of the process.
            zonda_trace::flush();
        }
    }
}

impl Storage for TraceProbe {
    forward! { this => this.below; rest, most_len, has_other_writers, remote, stamp }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.record(
            EventKind::Read,
            || self.below.read_at(at, buf),
            |n| (at, n.map_or(0, |n| *n as u64)),
        )
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        let begin = zonda_trace::start();
        let outcome = self.below.read_ranges(ranges);
        let got = || ranges.iter().map(|r| (r.at, r.got as u64));
        zonda_trace::span_since(begin, EventKind::Read, || {
            let (offset, bytes) = got().next().unwrap_or_default();
            let code = outcome.as_ref().err().map_or(0, StorageError::raw_os_error);
            Args { code, ..self.args(offset, bytes) }
        });
        self.more(EventKind::ReadMore, got());
        outcome
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        let len = data.len() as u64;
        self.record(EventKind::Write, || self.below.write_at(at, data), |_| (at, len))
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        let given = || ranges.iter().map(|r| (r.at, r.data.len() as u64));
        let first = given().next().unwrap_or_default();
        let outcome = self.record(EventKind::Write, || self.below.write_ranges(ranges), |_| first);
        self.more(EventKind::WriteMore, given());
        outcome
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        self.record(EventKind::Fill, || self.below.fill_at(at, len, element), |_| (at, len))
    }

    fn advise(&self, advice: Advice) {
        zonda_trace::instant(EventKind::Advise, || Args {
            code: i32::try_from(advice.n_record_parts).unwrap_or(i32::MAX),
            ..self.args(advice.record_bytes, advice.file_bytes)
        });
        self.below.advise(advice);
    }

    fn len(&self) -> Result<u64, StorageError> {
        self.record(EventKind::Len, || self.below.len(), |len| (len.copied().unwrap_or(0), 0))
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.record(EventKind::SetLen, || self.below.set_len(len), |_| (len, 0))
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.record(EventKind::Barrier, || self.below.barrier(), |_| (0, 0))
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.record(EventKind::Sync, || self.below.sync(), |_| (0, 0))
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        self.record(EventKind::Invalidate, || self.below.invalidate(), |_| (0, 0))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.below.describe(f)
    }
}
