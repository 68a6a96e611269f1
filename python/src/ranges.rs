//! Many ranges of a file of fsspec in one call (`cat_ranges`), and the bytes that came, for a while.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;
use zonda_runtime::lock::{Mutex, Rank};

/// Ranges are asked for together where no more bytes than this lie between them: on most networks they come sooner than another answer.
const JOINED_GAP: u64 = 256 << 10;
/// Longer ranges are asked for in pieces, which file systems fetch at the same time.
const PIECE_BYTES: u64 = 16 << 20;
/// The least that is asked for, since reads of a file's definitions go on.
const LEAST_BYTES: u64 = 256 << 10;
/// The most that is asked for before it is read.
const AHEAD_BYTES: u64 = 64 << 20;
/// The most that is kept.
const KEPT_BYTES: u64 = 128 << 20;

/// The file system of a file, and what it gave.
pub(crate) struct Ranges {
    fs: Py<PyAny>,
    path: Py<PyAny>,
    len: u64,
    kept: Mutex<Kept>,
}

/// Runs of bytes by their beginning.
#[derive(Default)]
struct Kept {
    runs: BTreeMap<u64, PyBackedBytes>,
    /// Beginnings, the oldest first.
    order: VecDeque<u64>,
    bytes: u64,
}

impl Kept {
    /// The run that has a byte: where it begins, and its bytes.
    fn run_at(&self, at: u64) -> Option<(u64, &PyBackedBytes)> {
        let (&start, bytes) = self.runs.range(..=at).next_back()?;
        (at - start < bytes.len() as u64).then_some((start, bytes))
    }

    /// Copies from `at` on what is here without a gap; gives how many bytes that is.
    fn copy(&self, at: u64, buf: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buf.len() {
            let Some((start, bytes)) = self.run_at(at + done as u64) else { break };
            let from = &bytes[(at + done as u64 - start) as usize..];
            let n = from.len().min(buf.len() - done);
            buf[done..done + n].copy_from_slice(&from[..n]);
            done += n;
        }
        done
    }

    /// Adds the parts of a range that are not here to `missing`.
    fn add_missing(&self, range: Range<u64>, missing: &mut Vec<Range<u64>>) {
        let mut at = range.start;
        while at < range.end {
            if let Some((start, bytes)) = self.run_at(at) {
                at = start + bytes.len() as u64;
                continue;
            }
            let next = self.runs.range(at..range.end).next().map_or(range.end, |(&start, _)| start);
            missing.push(at..next);
            at = next;
        }
    }

    fn insert(&mut self, at: u64, bytes: PyBackedBytes) {
        self.bytes += bytes.len() as u64;
        match self.runs.insert(at, bytes) {
            Some(old) => self.bytes -= old.len() as u64,
            None => self.order.push_back(at),
        }
        while self.bytes > KEPT_BYTES && self.order.len() > 1 {
            let oldest = self.order.pop_front().and_then(|at| self.runs.remove(&at));
            self.bytes -= oldest.map_or(0, |bytes| bytes.len() as u64);
        }
    }
}

impl Ranges {
    /// Of an open file of fsspec that is not on this machine; `None` for all others, and for those that fsspec keeps on a disk.
    pub(crate) fn of_file(file: &Bound<'_, PyAny>, len: u64) -> Option<Ranges> {
        let (fs, path) = (file.getattr("fs").ok()?, file.getattr("path").ok()?);
        if !fs.hasattr("cat_ranges").ok()? {
            return None;
        }
        let protocol = fs.getattr("protocol").ok()?;
        let protocols: Vec<String> =
            protocol.extract().or_else(|_| protocol.extract().map(|one| vec![one])).ok()?;
        let is_local = protocols.iter().any(|one| one == "file" || one == "local");
        let cache = file.getattr("cache").ok().and_then(|cache| cache.get_type().name().ok());
        let is_on_disk = cache.is_some_and(|name| name == "MMapCache");
        let kept = Mutex::ranked(Rank::Storage, Kept::default());
        (!is_local && !is_on_disk).then(|| Ranges {
            fs: fs.unbind(),
            path: path.unbind(),
            len,
            kept,
        })
    }

    /// Reads what is here, or what one call brings.
    pub(crate) fn read(&self, py: Python<'_>, at: u64, buf: &mut [u8]) -> PyResult<usize> {
        let end = at.saturating_add(buf.len() as u64).min(self.len);
        let wanted = usize::try_from(end.saturating_sub(at)).unwrap_or(buf.len()).min(buf.len());
        let buf = &mut buf[..wanted];
        let least = at.saturating_add(LEAST_BYTES).min(self.len);
        let mut missing = Vec::new();
        {
            // In one step, since what is here may go when others read.
            let kept = self.kept.lock();
            if kept.copy(at, buf) == wanted {
                return Ok(wanted);
            }
            kept.add_missing(at..end.max(least), &mut missing);
            let mut place = at;
            for gap in &missing {
                let (from, until) = (place.min(end), gap.start.min(end));
                kept.copy(from, &mut buf[(from - at) as usize..(until - at) as usize]);
                place = gap.end;
            }
            let from = place.min(end);
            kept.copy(from, &mut buf[(from - at) as usize..]);
        }
        let fetched = self.fetch(py, pieces(missing))?;
        copy_from(&fetched, at, buf);
        let mut kept = self.kept.lock();
        fetched.into_iter().for_each(|(at, bytes)| kept.insert(at, bytes));
        Ok(wanted)
    }

    /// Has the file system bring ranges, first what is wanted first.
    pub(crate) fn fetch_ahead(&self, py: Python<'_>, ranges: &[Range<u64>]) -> PyResult<()> {
        let mut missing = Vec::new();
        let mut bytes = 0;
        {
            let kept = self.kept.lock();
            for range in ranges {
                let from = missing.len();
                let (start, end) = (range.start.min(self.len), range.end.min(self.len));
                let end = end.min(start.saturating_add(AHEAD_BYTES - bytes));
                kept.add_missing(start..end, &mut missing);
                bytes += missing[from..].iter().map(|one| one.end - one.start).sum::<u64>();
                if bytes >= AHEAD_BYTES {
                    break;
                }
            }
        }
        let fetched = self.fetch(py, pieces(missing))?;
        let mut kept = self.kept.lock();
        fetched.into_iter().for_each(|(at, bytes)| kept.insert(at, bytes));
        Ok(())
    }

    fn fetch(
        &self,
        py: Python<'_>,
        ranges: Vec<Range<u64>>,
    ) -> PyResult<Vec<(u64, PyBackedBytes)>> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let paths: Vec<_> = ranges.iter().map(|_| self.path.bind(py)).collect();
        let starts: Vec<u64> = ranges.iter().map(|range| range.start).collect();
        let ends: Vec<u64> = ranges.iter().map(|range| range.end).collect();
        let how = PyDict::new(py);
        how.set_item("on_error", "raise")?;
        let came = self.fs.bind(py).call_method("cat_ranges", (paths, starts, ends), Some(&how))?;
        let came: Vec<PyBackedBytes> = came.extract()?;
        let is_right = came.len() == ranges.len()
            && came
                .iter()
                .zip(&ranges)
                .all(|(bytes, range)| bytes.len() as u64 == range.end - range.start);
        if !is_right {
            let n: usize = came.iter().map(|bytes| bytes.len()).sum();
            let wanted: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            return Err(PyOSError::new_err(format!(
                "cat_ranges gave {n} bytes in {} parts where {wanted} bytes in {} parts were asked for",
                came.len(),
                ranges.len()
            )));
        }
        Ok(ranges.into_iter().map(|range| range.start).zip(came).collect())
    }
}

/// Copies the parts of `buf`, which stands for the bytes from `at` on, that came.
fn copy_from(fetched: &[(u64, PyBackedBytes)], at: u64, buf: &mut [u8]) {
    let end = at + buf.len() as u64;
    for (start, bytes) in fetched {
        let (from, to) = ((*start).max(at), (start + bytes.len() as u64).min(end));
        if from < to {
            let part = &bytes[(from - start) as usize..(to - start) as usize];
            buf[(from - at) as usize..(to - at) as usize].copy_from_slice(part);
        }
    }
}

/// Ranges in order, with those joined that are near each other, and long ones cut.
fn pieces(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(JOINED_GAP) => {
                last.end = last.end.max(range.end)
            }
            _ => joined.push(range),
        }
    }
    let cut = |range: Range<u64>| {
        let starts = range.clone().step_by(PIECE_BYTES as usize);
        starts.map(move |start| start..start.saturating_add(PIECE_BYTES).min(range.end))
    };
    joined.into_iter().flat_map(cut).collect()
}
