//! One object as a storage that is read.
//!
//! | Module | |
//! |---|---|
//! | `plan` | from ranges that are wanted to requests |
//! | `extents` | which bytes are here, come, or are to be asked for |
//! | `fetch` | who asks for them, who waits for them, how much is kept |
//! | `disk` | what was fetched, for later openings and other processes |
//! | `speed` | how fast the way to the server is |

mod disk;
mod extents;
mod fetch;
mod plan;
mod speed;
mod tuning;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zonda_runtime::memory::{self, Kind};
use zonda_storage::{
    Advice, Op, ReadRange, RemoteReads, Storage, StorageError, StorageStamp, WriteRange,
};
use zonda_trace::{Args, EventKind};

use crate::objects::{Objects, RangeRead};
use crate::{RemoteError, RemoteUrl};
use fetch::Fetcher;

/// An object, opened for reading.
///
/// It stays what it was when it was opened: an object that another one replaces meanwhile is an error ([`StorageError::Remote`]) of
/// all reads that ask the server again, never a mixture of both.
#[derive(Debug)]
pub struct RemoteFile {
    /// The beginning, which the first request brought; from a server that sends no ranges everything.
    head: Vec<u8>,
    fetcher: Arc<Fetcher>,
}

impl RemoteFile {
    /// Opens the object of a URL: one request, which brings the beginning, the length and what tells a change.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn open(objects: Arc<dyn Objects>, url: &RemoteUrl) -> Result<RemoteFile, RemoteError> {
        RemoteFile::open_key(objects, &url.path)
    }

    /// As [`RemoteFile::open`], of the object with that key.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn open_key(objects: Arc<dyn Objects>, key: &str) -> Result<RemoteFile, RemoteError> {
        let trace = if zonda_trace::on() {
            zonda_trace::file(std::path::Path::new(&*objects.shown(key)))
        } else {
            0
        };
        let mut head = vec![0; tuning::HEAD_BYTES];
        let (begin, event) = (Instant::now(), zonda_trace::start());
        let RangeRead { got, state, whole } = objects.get_range(key, 0, &mut head, None)?;
        let bytes = whole.as_ref().map_or(got, Vec::len) as u64;
        zonda_trace::span_since(event, EventKind::Request, || Args {
            file: trace,
            bytes,
            ..Args::default()
        });
        let broken = |what: &str| {
            RemoteError::new(&objects.shown(key), zonda_storage::RemoteFailure::Broken, what)
        };
        let head = match whole {
            Some(whole) => whole,
            None => {
                head.truncate(got);
                head
            }
        };
        let (len, expected) = (head.len() as u64, state.len.min(tuning::HEAD_BYTES as u64));
        if len != expected && len != state.len {
            return Err(broken("the first bytes are fewer than the object has"));
        }
        // What the connection took is no part of the latency of later requests.
        let took = begin.elapsed() / 2;
        let fetcher = Fetcher::new(
            objects,
            key.to_owned(),
            state,
            len,
            took.max(Duration::from_micros(1)),
            trace,
        );
        memory::process().take_first(Kind::Pages, head.capacity() as u64);
        Ok(RemoteFile { head, fetcher })
    }

    fn len_bytes(&self) -> u64 {
        self.fetcher.state().len
    }

    fn refused(&self, op: Op, at: u64, len: u64) -> StorageError {
        StorageError::ReadOnly { path: PathBuf::from(&*self.fetcher.shown()).into(), op, at, len }
    }
}

impl Drop for RemoteFile {
    fn drop(&mut self) {
        self.fetcher.close();
        memory::process().give_back(Kind::Pages, self.head.capacity() as u64);
    }
}

impl RemoteReads for RemoteFile {
    fn will_read(&self, ranges: &[Range<u64>]) {
        self.fetcher.will_read(ranges);
    }

    fn shown(&self) -> Arc<str> {
        self.fetcher.shown()
    }

    fn state(&self) -> Option<Arc<str>> {
        let state = self.fetcher.state();
        Some(format!("{} {}", state.len, state.validator).into())
    }
}

impl Storage for RemoteFile {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        let left = usize::try_from(self.len_bytes().saturating_sub(at)).unwrap_or(usize::MAX);
        let n = left.min(buf.len());
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(self.head.len());
        let in_head = n.min(self.head.len() - from);
        let (first, behind) = buf[..n].split_at_mut(in_head);
        first.copy_from_slice(&self.head[from..from + in_head]);
        if !behind.is_empty() {
            self.fetcher.read(at + in_head as u64, behind)?;
        }
        Ok(n)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        if ranges.len() > 1 {
            let wanted: Vec<Range<u64>> = ranges
                .iter()
                .map(|range| range.at..range.at.saturating_add(range.buf.len() as u64))
                .collect();
            self.fetcher.will_read(&wanted);
        }
        for range in ranges {
            range.got = self.read_at(range.at, range.buf)?;
        }
        Ok(())
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        Err(self.refused(Op::Write, at, data.len() as u64))
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        ranges.first().map_or(Ok(()), |range| self.write_at(range.at, range.data))
    }

    fn fill_at(&self, at: u64, len: u64, _element: &[u8]) -> Result<(), StorageError> {
        Err(self.refused(Op::Write, at, len))
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
        Err(self.refused(Op::SetLen, len, 0))
    }

    fn barrier(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        // The object is the one that was opened, or all further reads fail.
        Ok(())
    }

    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        Ok(StorageStamp { len: self.len_bytes(), changed: [0; 5] })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("remote")
    }
}
