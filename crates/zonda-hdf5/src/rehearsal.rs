//! Reading the structures of a remote file in as few messages there and back as they are deep.
//!
//! Who reads a structure knows where the next one is when the last one is there: one message for each. A rehearsal goes the same ways
//! with all objects at once. What is not here ends the way with an error, and is noted. When all ways have ended, all that was noted is asked
//! for in one go, and those ways are gone again that came to an end too early. So each step of all ways costs one message, and whoever then
//! reads the structures in earnest finds all of them here.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use zonda_runtime::lock::{Mutex, Rank};
use zonda_storage::{ReadRange, RemoteFailure, RemoteReads, Storage, StorageError, forward};

use crate::tuning::{REHEARSED_BYTES, REMOTE_HEAD_BYTES, REMOTE_READ_BYTES};

/// A storage for a rehearsal on a remote one.
#[derive(Debug)]
pub struct Rehearsal {
    storage: Arc<dyn Storage>,
    noted: Mutex<Noted>,
}

/// What was asked for.
#[derive(Debug, Default)]
struct Noted {
    /// Ranges that are here or on their way: where each begins and ends. No two touch.
    here: BTreeMap<u64, u64>,
    /// Ranges that a way came to, first what comes first.
    wanted: Vec<Range<u64>>,
    /// How often a way ended because something was not here.
    n_misses: u64,
    /// Bytes that may still be asked for.
    left: u64,
}

impl Noted {
    fn has(&self, range: &Range<u64>) -> bool {
        let before = self.here.range(..=range.start).next_back();
        range.is_empty() || before.is_some_and(|(_, &end)| end >= range.end)
    }

    /// Notes that a range is on its way; gives the bytes that were not before.
    fn add(&mut self, range: Range<u64>) -> u64 {
        let (mut start, mut end, mut known) = (range.start, range.end, 0u64);
        while let Some((&from, &to)) =
            self.here.range(..=end).next_back().filter(|(_, to)| **to >= start)
        {
            self.here.remove(&from);
            let within = to.min(range.end).saturating_sub(from.max(range.start));
            known = known.saturating_add(within);
            (start, end) = (start.min(from), end.max(to));
        }
        self.here.insert(start, end);
        range.end.saturating_sub(range.start).saturating_sub(known)
    }
}

impl Rehearsal {
    /// A rehearsal on a storage; `None` for one that is not remote.
    #[must_use]
    pub fn on(storage: &Arc<dyn Storage>) -> Option<Arc<Rehearsal>> {
        let head = 0..REMOTE_HEAD_BYTES.min(storage.len().ok()?);
        storage.remote()?.will_read(std::slice::from_ref(&head));
        let mut noted = Noted { left: REHEARSED_BYTES, ..Noted::default() };
        noted.add(head);
        let noted = Mutex::ranked(Rank::Layer, noted);
        Some(Arc::new(Rehearsal { storage: Arc::clone(storage), noted }))
    }

    /// How often something was not here until now: a way on which this grew is to be gone again.
    #[must_use]
    pub fn n_misses(&self) -> u64 {
        self.noted.lock().n_misses
    }

    /// Asks for all that was noted. `false` where nothing was, or where that is more than one may ask for.
    pub fn fetch(&self) -> bool {
        let len = self.storage.len().unwrap_or(0);
        let mut noted = self.noted.lock();
        let mut wanted = std::mem::take(&mut noted.wanted);
        for range in &mut wanted {
            // Of most structures it is not known how long they are before they are here.
            range.end = range.end.max(range.start.saturating_add(REMOTE_READ_BYTES)).min(len);
        }
        wanted.retain(|range| range.start < range.end && !noted.has(range));
        for range in &wanted {
            let bytes = noted.add(range.clone());
            let Some(left) = noted.left.checked_sub(bytes) else { return false };
            noted.left = left;
        }
        drop(noted);
        match self.storage.remote() {
            Some(remote) if !wanted.is_empty() => remote.will_read(&wanted),
            _ => return false,
        }
        true
    }

    fn check_here(&self, at: u64, len: usize) -> Result<(), StorageError> {
        let end = at.saturating_add(len as u64).min(self.storage.len()?);
        let range = at.min(end)..end;
        let mut noted = self.noted.lock();
        if noted.has(&range) {
            return Ok(());
        }
        noted.wanted.push(range);
        noted.n_misses = noted.n_misses.saturating_add(1);
        let (url, what) = ("".into(), "it is not here yet".into());
        let range = Some((at, len as u64));
        let (kind, status) = (RemoteFailure::Unreachable, None);
        Err(StorageError::Remote { url, range, kind, status, what })
    }
}

impl RemoteReads for Rehearsal {
    fn will_read(&self, ranges: &[Range<u64>]) {
        let mut noted = self.noted.lock();
        for range in ranges {
            if !noted.has(range) {
                noted.wanted.push(range.clone());
            }
        }
    }

    fn shown(&self) -> Arc<str> {
        self.storage.remote().map(RemoteReads::shown).unwrap_or_default()
    }
}

impl Storage for Rehearsal {
    forward! {
        this => this.storage;
        write_at, write_ranges, fill_at, advise, rest, len, most_len, has_other_writers, set_len, barrier, sync, invalidate, stamp
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.check_here(at, buf.len())?;
        self.storage.read_at(at, buf)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        let mut are_here = Ok(());
        for range in &*ranges {
            // All that is not here is noted, and not the first alone.
            are_here = are_here.and(self.check_here(range.at, range.buf.len()));
        }
        are_here?;
        self.storage.read_ranges(ranges)
    }

    fn remote(&self) -> Option<&dyn RemoteReads> {
        Some(self)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.storage.describe(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let mut noted = Noted::default();
        assert_eq!(noted.add(10..20), 10);
        assert_eq!(noted.add(30..40), 10);
        assert!(
            noted.has(&(12..20))
                && !noted.has(&(12..21))
                && !noted.has(&(25..26))
                && noted.has(&(7..7))
        );
        assert_eq!(noted.add(15..35), 10, "those between");
        assert_eq!(noted.here, BTreeMap::from([(10, 40)]));
        assert_eq!(noted.add(40..41), 1);
        assert_eq!(noted.add(0..100), 69);
        assert_eq!(noted.here, BTreeMap::from([(0, 100)]));
    }
}
