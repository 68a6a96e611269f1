//! `fault:log`: records every change, so that crash tests can replay any prefix of them.

use super::page_cuts;
use crate::forward;
use crate::spec::{Below, Building, LayerSpec};
use crate::storage::fill_by_writes;
use crate::{Storage, StorageError, WriteRange};
use std::fmt;
use std::sync::Arc;
use zonda_runtime::lock::{Mutex, Rank};

#[derive(Debug)]
pub(super) struct LogSpec;

impl fmt::Display for LogSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fault:log")
    }
}

impl LayerSpec for LogSpec {
    fn build(&self, below: Below, building: &mut Building<'_>) -> Result<Below, StorageError> {
        let log = Log::new(below)?;
        building.handles.logs.push(log.handle());
        Ok(Arc::new(log))
    }

    fn buffers(&self) -> bool {
        false
    }
}

/// One recorded change. A call with many ranges gives one entry for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEntry {
    /// `data` was written at `at`.
    Write {
        /// Where, in bytes.
        at: u64,
        /// What.
        data: Vec<u8>,
    },
    /// The length was set.
    SetLen(u64),
    /// `barrier`.
    Barrier,
    /// `sync`.
    Sync,
}

#[derive(Debug)]
struct LoggedChanges {
    /// What the storage held when recording began.
    base: Vec<u8>,
    entries: Vec<LogEntry>,
}

/// What a [`Log`] recorded.
#[derive(Debug, Clone)]
pub struct WriteLog(Arc<Mutex<LoggedChanges>>);

impl WriteLog {
    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().entries.len()
    }

    /// Whether nothing was recorded; a crash test over such a log proves nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the entries, in order.
    #[must_use]
    pub fn entries(&self) -> Vec<LogEntry> {
        self.0.lock().entries.clone()
    }

    /// How many page borders lie inside entry `n`: the places where a killed write may have
    /// stopped. 0 for entries that are no write.
    #[must_use]
    pub fn cuts(&self, n: usize) -> usize {
        match self.0.lock().entries.get(n) {
            Some(LogEntry::Write { at, data }) => page_cuts(*at, data.len()).count(),
            Some(LogEntry::SetLen(_) | LogEntry::Barrier | LogEntry::Sync) | None => 0,
        }
    }

    /// The contents after the first `prefix` entries, and of the next one what comes before its
    /// page border number `cut` (from 1 on; with 0 nothing of it).
    ///
    /// Larger numbers than there are entries or borders mean all of them.
    #[must_use]
    pub fn replay(&self, prefix: usize, cut: usize) -> Vec<u8> {
        let record = self.0.lock();
        let mut bytes = record.base.clone();
        let prefix = prefix.min(record.entries.len());
        for entry in &record.entries[..prefix] {
            match entry {
                LogEntry::Write { at, data } => put(&mut bytes, *at, data),
                LogEntry::SetLen(len) => bytes.resize(*len as usize, 0),
                LogEntry::Barrier | LogEntry::Sync => {}
            }
        }
        if cut > 0
            && let Some(LogEntry::Write { at, data }) = record.entries.get(prefix)
            && let Some(len) = page_cuts(*at, data.len()).take(cut).last()
        {
            put(&mut bytes, *at, &data[..len]);
        }
        bytes
    }
}

fn put(bytes: &mut Vec<u8>, at: u64, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let at = at as usize;
    if at + data.len() > bytes.len() {
        bytes.resize(at + data.len(), 0);
    }
    bytes[at..at + data.len()].copy_from_slice(data);
}

/// The layer. Changes are made one at a time, so that the log has the order in which they landed.
#[derive(Debug)]
pub struct Log<S> {
    inner: S,
    log: WriteLog,
}

impl<S: Storage> Log<S> {
    /// Wraps `inner`, whose contents are read first: it should be small.
    ///
    /// # Errors
    /// What `inner` reports.
    pub fn new(inner: S) -> Result<Self, StorageError> {
        let len = inner.len()?;
        let limit =
            StorageError::MemoryLimit { op: crate::Op::Read, at: 0, len, limit: isize::MAX as u64 };
        let mut base = Vec::new();
        let n = usize::try_from(len).map_err(|_| limit.clone())?;
        base.try_reserve_exact(n).map_err(|_| limit)?;
        base.resize(n, 0);
        inner.read_at(0, &mut base)?;
        let record = LoggedChanges { base, entries: Vec::new() };
        Ok(Log { inner, log: WriteLog(Arc::new(Mutex::ranked(Rank::Layer, record))) })
    }

    /// A handle to the record.
    #[must_use]
    pub fn handle(&self) -> WriteLog {
        self.log.clone()
    }

    fn change(
        &self,
        change: impl FnOnce() -> Result<(), StorageError>,
        entries: impl FnOnce(&mut Vec<LogEntry>),
    ) -> Result<(), StorageError> {
        let mut record = self.log.0.lock();
        change()?;
        entries(&mut record.entries);
        Ok(())
    }
}

impl<S: Storage> Storage for Log<S> {
    forward! { this => this.inner; read_at, read_ranges, advise, rest, len, remote, invalidate, stamp }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.change(
            || self.inner.write_at(at, data),
            |log| log.push(LogEntry::Write { at, data: data.to_vec() }),
        )
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        let entry = |r: &WriteRange<'_>| LogEntry::Write { at: r.at, data: r.data.to_vec() };
        self.change(|| self.inner.write_ranges(ranges), |log| log.extend(ranges.iter().map(entry)))
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        fill_by_writes(self, at, len, element)
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.change(|| self.inner.set_len(len), |log| log.push(LogEntry::SetLen(len)))
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.change(|| self.inner.barrier(), |log| log.push(LogEntry::Barrier))
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.change(|| self.inner.sync(), |log| log.push(LogEntry::Sync))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fault:log,")?;
        self.inner.describe(f)
    }
}
