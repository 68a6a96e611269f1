//! `count`: counts operations and bytes, so that "open costs N reads" can be asserted.

use crate::forward;
use crate::spec::{Below, Building, LayerSpec, Registered, SpecArgs, SpecError};
use crate::storage::fill_by_writes;
use crate::{Op, ReadRange, Storage, StorageError, WriteRange};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a spec names this layer.
pub(super) const REGISTERED: Registered = Registered { name: "count", parse };

fn parse(args: &mut SpecArgs<'_>) -> Result<Arc<dyn LayerSpec>, SpecError> {
    args.end()?;
    Ok(Arc::new(CountSpec))
}

#[derive(Debug)]
struct CountSpec;

impl fmt::Display for CountSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("count")
    }
}

impl LayerSpec for CountSpec {
    fn build(&self, below: Below, building: &mut Building<'_>) -> Result<Below, StorageError> {
        let count = Count::new(below);
        building.handles.counts.push(count.handle());
        Ok(Arc::new(count))
    }

    fn buffers(&self) -> bool {
        false
    }
}

/// One kind of operation: how often it was called and what it moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls, failed ones included.
    pub calls: u64,
    /// Ranges in those calls: 1 for `read_at` and `write_at`.
    pub ranges: u64,
    /// Bytes that were read or written by the calls that succeeded.
    pub bytes: u64,
    /// Calls that failed.
    pub errors: u64,
}

/// A snapshot of the counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// `read_at` and `read_ranges`.
    pub read: Tally,
    /// `write_at` and `write_ranges`.
    pub write: Tally,
    /// `len`.
    pub len: Tally,
    /// `set_len`.
    pub set_len: Tally,
    /// `barrier`.
    pub barrier: Tally,
    /// `sync`.
    pub sync: Tally,
    /// `invalidate`.
    pub invalidate: Tally,
}

#[derive(Debug, Default)]
struct Counter {
    calls: AtomicU64,
    ranges: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
}

impl Counter {
    fn add(&self, ranges: usize, outcome: Result<usize, ()>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.ranges.fetch_add(ranges as u64, Ordering::Relaxed);
        match outcome {
            Ok(bytes) => self.bytes.fetch_add(bytes as u64, Ordering::Relaxed),
            Err(()) => self.errors.fetch_add(1, Ordering::Relaxed),
        };
    }

    fn tally(&self) -> Tally {
        Tally {
            calls: self.calls.load(Ordering::Relaxed),
            ranges: self.ranges.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }

    fn reset(&self) {
        for counter in [&self.calls, &self.ranges, &self.bytes, &self.errors] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

#[derive(Debug, Default)]
struct Counters {
    read: Counter,
    write: Counter,
    len: Counter,
    set_len: Counter,
    barrier: Counter,
    sync: Counter,
    invalidate: Counter,
}

impl Counters {
    fn of(&self, op: Op) -> &Counter {
        match op {
            Op::Read => &self.read,
            Op::Write => &self.write,
            // A storage that is there is never opened, and removing is no operation of one.
            Op::Open | Op::Replace | Op::Remove | Op::Len => &self.len,
            Op::SetLen => &self.set_len,
            Op::Barrier => &self.barrier,
            Op::Sync => &self.sync,
            Op::Invalidate => &self.invalidate,
        }
    }
}

/// Reads the counters of a [`Count`] from outside the stack.
#[derive(Debug, Clone)]
pub struct CountHandle(Arc<Counters>);

impl CountHandle {
    /// The counters now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            read: self.0.read.tally(),
            write: self.0.write.tally(),
            len: self.0.len.tally(),
            set_len: self.0.set_len.tally(),
            barrier: self.0.barrier.tally(),
            sync: self.0.sync.tally(),
            invalidate: self.0.invalidate.tally(),
        }
    }

    /// Sets all counters to 0.
    pub fn reset(&self) {
        let c = &self.0;
        for counter in [&c.read, &c.write, &c.len, &c.set_len, &c.barrier, &c.sync, &c.invalidate] {
            counter.reset();
        }
    }
}

/// The layer.
#[derive(Debug)]
pub struct Count<S> {
    inner: S,
    counters: Arc<Counters>,
}

impl<S: Storage> Count<S> {
    /// Wraps `inner`, all counters 0.
    pub fn new(inner: S) -> Self {
        Count { inner, counters: Arc::default() }
    }

    /// A handle to the counters.
    #[must_use]
    pub fn handle(&self) -> CountHandle {
        CountHandle(Arc::clone(&self.counters))
    }

    /// Counts `outcome` with the bytes it moved.
    fn note<T>(
        &self,
        op: Op,
        ranges: usize,
        outcome: Result<T, StorageError>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Result<T, StorageError> {
        self.counters.of(op).add(ranges, outcome.as_ref().map(bytes).map_err(|_| ()));
        outcome
    }
}

impl<S: Storage> Storage for Count<S> {
    forward! { this => this.inner; advise, rest, most_len, has_other_writers, remote, stamp }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.note(Op::Read, 1, self.inner.read_at(at, buf), |n| *n)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        let outcome = self.inner.read_ranges(ranges);
        self.note(Op::Read, ranges.len(), outcome, |()| ranges.iter().map(|r| r.got).sum())
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.note(Op::Write, 1, self.inner.write_at(at, data), |()| data.len())
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        let bytes = ranges.iter().map(|r| r.data.len()).sum();
        self.note(Op::Write, ranges.len(), self.inner.write_ranges(ranges), |()| bytes)
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        fill_by_writes(self, at, len, element)
    }

    fn len(&self) -> Result<u64, StorageError> {
        self.note(Op::Len, 0, self.inner.len(), |_| 0)
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.note(Op::SetLen, 0, self.inner.set_len(len), |()| 0)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.note(Op::Barrier, 0, self.inner.barrier(), |()| 0)
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.note(Op::Sync, 0, self.inner.sync(), |()| 0)
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        self.note(Op::Invalidate, 0, self.inner.invalidate(), |()| 0)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("count,")?;
        self.inner.describe(f)
    }
}
