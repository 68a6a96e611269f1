//! A memory that is far away: what has not come yet costs a message there and back, which is counted.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zonda_storage::{
    Advice, Op, ReadRange, RemoteFailure, RemoteReads, Storage, StorageError, StorageStamp,
    WriteRange,
};

/// Bytes in which presence is counted.
const BLOCK: u64 = 4096;
/// Bytes that the first request brings.
const HEAD: u64 = 256 << 10;
/// Bytes that come with those that a read misses.
const WITH_READ: u64 = 64 << 10;

/// Bytes that are read over a network, as far as counting is concerned.
///
/// A [`RemoteReads::will_read`] of something that is not here is one trip, whatever the number of its ranges; they are here from then on, in
/// whole blocks of 4 KiB. A read of bytes that are not here is one trip, and brings 64 KiB from there on. Reads of what is here cost
/// nothing. The beginning is here: the first trip brings it.
#[derive(Debug)]
pub struct DistantMemory {
    bytes: Arc<[u8]>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Blocks that are here.
    here: Vec<bool>,
    /// Blocks whose request failed, and that nobody has read since.
    failed: BTreeSet<u64>,
    counts: TripCounts,
    /// The number of the trip that fails.
    fails: Option<u64>,
}

/// What was counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TripCounts {
    /// Messages there and back, one after the other.
    pub trips: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// The most ranges that were told in one call.
    pub most_ranges: usize,
}

impl State {
    /// Whether something of a range is neither here nor on its way; what is missing comes.
    fn fetch(&mut self, range: Range<u64>, len: u64) -> bool {
        let mut is_trip = false;
        for block in blocks(&range, len) {
            if let Some(here) = usize::try_from(block)
                .ok()
                .and_then(|i| self.here.get_mut(i))
                .filter(|here| !**here)
            {
                *here = true;
                is_trip = true;
                self.counts.bytes += BLOCK.min(len - block * BLOCK);
            }
        }
        is_trip
    }

    /// Counts a trip; whether it fails.
    fn trip(&mut self) -> bool {
        self.counts.trips += 1;
        self.fails == Some(self.counts.trips)
    }
}

fn blocks(range: &Range<u64>, len: u64) -> Range<u64> {
    let (start, end) = (range.start.min(len), range.end.min(len));
    if start < end { start / BLOCK..end.div_ceil(BLOCK) } else { 0..0 }
}

impl DistantMemory {
    /// A memory of which the beginning is here.
    #[must_use]
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> DistantMemory {
        let bytes = bytes.into();
        let len = bytes.len() as u64;
        let here = vec![false; usize::try_from(len.div_ceil(BLOCK)).unwrap_or(0)];
        let mut state = State { here, ..State::default() };
        state.fetch(0..HEAD, len);
        state.counts.trips = 1;
        DistantMemory { bytes, state: Mutex::new(state) }
    }

    /// As [`DistantMemory::new`]; trip number `nth` fails, the first one of all being 1. What was told in it fails when it is read, once.
    #[must_use]
    pub fn failing(bytes: impl Into<Arc<[u8]>>, nth: u64) -> DistantMemory {
        let memory = DistantMemory::new(bytes);
        memory.state().fails = Some(nth);
        memory
    }

    /// What was counted until now.
    #[must_use]
    pub fn counts(&self) -> TripCounts {
        self.state().counts
    }

    /// Forgets all but the beginning, and what was counted.
    pub fn forget(&self) {
        let fresh = DistantMemory::new(Arc::clone(&self.bytes));
        let fails = self.state().fails;
        *self.state() =
            State { fails, ..fresh.state.into_inner().unwrap_or_else(PoisonError::into_inner) };
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn len_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Brings ranges that are read now.
    fn come<'r>(
        &self,
        ranges: impl Iterator<Item = (u64, usize)> + Clone + 'r,
    ) -> Result<(), StorageError> {
        let len = self.len_bytes();
        let mut state = self.state();
        let wanted = ranges.clone().map(|(at, n)| at..at.saturating_add(n as u64));
        for range in wanted.clone() {
            let broken: Vec<u64> =
                blocks(&range, len).filter(|block| state.failed.contains(block)).collect();
            if !broken.is_empty() {
                state.failed.clear();
                return Err(failure(&range));
            }
        }
        let missing: Vec<Range<u64>> = wanted
            .filter(|range| {
                blocks(range, len).any(|block| usize::try_from(block).is_ok_and(|i| !state.here[i]))
            })
            .collect();
        let Some(first) = missing.first() else { return Ok(()) };
        if state.trip() {
            return Err(failure(first));
        }
        for range in missing {
            let end = range.end.max(range.start.saturating_add(WITH_READ));
            state.fetch(range.start..end, len);
        }
        Ok(())
    }
}

/// What it is called.
const URL: &str = "http://distant/file.nc";

fn failure(range: &Range<u64>) -> StorageError {
    StorageError::Remote {
        url: URL.into(),
        range: Some((range.start, range.end.saturating_sub(range.start))),
        kind: RemoteFailure::Broken,
        status: Some(500),
        what: "status 500: the line was cut".into(),
    }
}

impl RemoteReads for DistantMemory {
    fn shown(&self) -> Arc<str> {
        URL.into()
    }

    fn will_read(&self, ranges: &[Range<u64>]) {
        let len = self.len_bytes();
        let mut state = self.state();
        state.counts.most_ranges = state.counts.most_ranges.max(ranges.len());
        let mut is_trip = false;
        let before = state.here.clone();
        for range in ranges {
            is_trip |= state.fetch(range.clone(), len);
        }
        if is_trip && state.trip() {
            for range in ranges {
                let lost: Vec<u64> = blocks(range, len)
                    .filter(|&block| usize::try_from(block).is_ok_and(|i| !before[i]))
                    .collect();
                state.failed.extend(lost);
            }
            state.here = before;
        }
    }
}

impl Storage for DistantMemory {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.come(std::iter::once((at, buf.len())))?;
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(self.bytes.len());
        let n = buf.len().min(self.bytes.len() - from);
        buf[..n].copy_from_slice(&self.bytes[from..from + n]);
        Ok(n)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        let places: Vec<(u64, usize)> =
            ranges.iter().map(|range| (range.at, range.buf.len())).collect();
        self.come(places.iter().copied())?;
        for range in ranges {
            range.got = self.read_at(range.at, range.buf)?;
        }
        Ok(())
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        Err(refused(Op::Write, at, data.len() as u64))
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        ranges.first().map_or(Ok(()), |range| self.write_at(range.at, range.data))
    }

    fn fill_at(&self, at: u64, len: u64, _element: &[u8]) -> Result<(), StorageError> {
        Err(refused(Op::Write, at, len))
    }

    fn advise(&self, _advice: Advice) {}

    fn rest(&self) {}

    fn len(&self) -> Result<u64, StorageError> {
        Ok(self.len_bytes())
    }

    fn remote(&self) -> Option<&dyn RemoteReads> {
        Some(self)
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        Err(refused(Op::SetLen, len, 0))
    }

    fn barrier(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        Ok(StorageStamp { len: self.len_bytes(), changed: [0; 5] })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("distant")
    }
}

fn refused(op: Op, at: u64, len: u64) -> StorageError {
    StorageError::ReadOnly {
        path: std::path::Path::new("http://distant/file.nc").into(),
        op,
        at,
        len,
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "lists of ranges, some of one")]
mod tests {
    use super::*;

    #[test]
    fn trips_and_bytes_are_counted_and_one_fails() {
        let bytes: Vec<u8> = (0..2_000_000u32).map(|i| i as u8).collect();
        let memory = DistantMemory::new(bytes.clone());
        let mut buf = [0; 100];
        memory.read_at(1000, &mut buf).unwrap();
        assert_eq!(memory.counts(), TripCounts { trips: 1, bytes: HEAD, most_ranges: 0 });
        memory.will_read(&[HEAD..HEAD + 1, 1_000_000..1_000_001]);
        memory.will_read(&[HEAD..HEAD + 5000]);
        assert_eq!(
            (memory.counts().trips, memory.counts().bytes),
            (3, HEAD + 3 * BLOCK),
            "the second has one block more"
        );
        memory.read_at(1_000_000, &mut buf[..1]).unwrap();
        assert_eq!(memory.counts().trips, 3);
        memory.read_at(1_500_000, &mut buf).unwrap();
        assert_eq!(buf[..], bytes[1_500_000..1_500_100]);
        memory.read_at(1_500_000 + 60_000, &mut buf).unwrap();
        assert_eq!(memory.counts().trips, 4);
        assert_eq!(memory.read_at(2_000_000, &mut buf), Ok(0), "the end");
        assert_eq!(memory.counts().trips, 4);

        let memory = DistantMemory::failing(bytes.clone(), 2);
        memory.will_read(&[1_000_000..1_000_100]);
        assert!(matches!(memory.read_at(1_000_000, &mut buf), Err(StorageError::Remote { .. })));
        assert_eq!(memory.read_at(1_000_000, &mut buf), Ok(100), "the next try");
        assert_eq!(buf[..], bytes[1_000_000..1_000_100]);
    }
}
