//! `event[:FILE]`: records every operation as a line of text, changes none.
//!
//! Columns: seconds since the layer was made, `event#N` with the layer's place in the stack (1 is
//! the top), operation, offset, bytes asked, microseconds taken, and the outcome: bytes moved, or
//! the error. A call with many ranges gives a line for each, named `readv` or `writev`, the time
//! standing on the first. When the layer goes, a summary follows in lines that begin with `#`.
//!
//! The lines go to FILE, else to standard error. Where the process records a trace (`ZONDA_TRACE`), all
//! that passes a layer without FILE is in there already (`probe.rs`), and no line is written.

use crate::forward;
use crate::spec::{Below, Building, LayerSpec, Registered, SpecArgs, SpecError};
use crate::storage::fill_by_writes;
use crate::{Op, ReadRange, Storage, StorageError, WriteRange};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use zonda_runtime::lock::{Global, Mutex, Rank};

/// How a spec names this layer.
pub(super) const REGISTERED: Registered = Registered { name: "event", parse };

fn parse(args: &mut SpecArgs<'_>) -> Result<Arc<dyn LayerSpec>, SpecError> {
    let file = match args.remainder() {
        Some("") => return Err(args.bad("", "a file name")),
        other => other.map(PathBuf::from),
    };
    Ok(Arc::new(EventSpec { file }))
}

#[derive(Debug)]
struct EventSpec {
    file: Option<PathBuf>,
}

impl fmt::Display for EventSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        token(f, self.file.as_deref())
    }
}

fn token(f: &mut fmt::Formatter<'_>, file: Option<&Path>) -> fmt::Result {
    f.write_str("event")?;
    file.map_or(Ok(()), |file| write!(f, ":{}", file.display()))
}

impl LayerSpec for EventSpec {
    fn build(&self, below: Below, building: &mut Building<'_>) -> Result<Below, StorageError> {
        Ok(Arc::new(Event::new(below, self.file.as_deref(), building.depth + 1)?))
    }

    fn buffers(&self) -> bool {
        false
    }
}

/// Where lines go. Layers that name the same file share one.
#[derive(Debug)]
enum LineSink {
    /// The process's trace has it.
    Trace,
    Stderr,
    File(LineFile),
}

impl LineSink {
    /// The sink for `path`, or for the trace or standard error. Files are appended to.
    fn open(path: Option<&Path>) -> Result<Arc<LineSink>, StorageError> {
        static OPEN: Global<BTreeMap<PathBuf, Weak<LineSink>>> =
            Global::new(Rank::Sinks, BTreeMap::new(), BTreeMap::new);
        let Some(path) = path else {
            let sink = if zonda_trace::on() { LineSink::Trace } else { LineSink::Stderr };
            return Ok(Arc::new(sink));
        };
        let mut open = OPEN.lock();
        if let Some(sink) = open.get(path).and_then(Weak::upgrade) {
            return Ok(sink);
        }
        let file =
            std::fs::OpenOptions::new().append(true).create(true).open(path).map_err(|e| {
                StorageError::Trace {
                    path: path.into(),
                    errno: e.raw_os_error().unwrap_or(libc::EIO),
                }
            })?;
        let (file, lost) =
            (Mutex::ranked(Rank::Lines, BufWriter::new(file)), AtomicBool::new(false));
        let sink = Arc::new(LineSink::File(LineFile { path: path.to_owned(), file, lost }));
        open.retain(|_, sink| sink.strong_count() > 0);
        open.insert(path.to_owned(), Arc::downgrade(&sink));
        Ok(sink)
    }

    /// Writes whole lines. A trace that cannot be written never fails the transfer it describes.
    fn write(&self, lines: &str) {
        match self {
            LineSink::Trace => {}
            // Where standard error takes nothing there is nobody to tell.
            LineSink::Stderr => {
                let _untold = std::io::stderr().lock().write_all(lines.as_bytes());
            }
            LineSink::File(file) => file.done(|file| file.write_all(lines.as_bytes())),
        }
    }

    fn flush(&self) {
        if let LineSink::File(file) = self {
            file.done(|file| {
                file.flush()?;
                // Some file systems tell only at the close that they could not keep what was written.
                crate::whole::check_close(file.get_ref())
            });
        }
    }
}

/// A file of lines. The first one that cannot be written is told of on standard error, and the file then gets
/// no more: a trace with holes would be taken for a whole one.
#[derive(Debug)]
struct LineFile {
    path: PathBuf,
    file: Mutex<BufWriter<std::fs::File>>,
    lost: AtomicBool,
}

impl LineFile {
    fn done(&self, write: impl FnOnce(&mut BufWriter<std::fs::File>) -> std::io::Result<()>) {
        if self.lost.load(Ordering::Relaxed) {
            return;
        }
        let Err(error) = write(&mut self.file.lock()) else { return };
        if !self.lost.swap(true, Ordering::Relaxed) {
            let path = self.path.display();
            // Where standard error takes nothing there is nobody to tell.
            let _untold =
                writeln!(std::io::stderr().lock(), "zonda: {path}: {error}; no further events");
        }
    }
}

/// What the summary says about one operation.
#[derive(Debug, Clone, Copy, Default)]
struct OpStats {
    calls: u64,
    errors: u64,
    ranges: u64,
    bytes: u64,
    min: u64,
    max: u64,
    /// Ranges that began where the one before of the same operation ended.
    sequential: u64,
    end: u64,
    time: Duration,
}

impl OpStats {
    fn range(&mut self, at: u64, len: u64) {
        self.min = if self.ranges == 0 { len } else { self.min.min(len) };
        self.max = self.max.max(len);
        self.sequential += u64::from(self.ranges > 0 && at == self.end);
        self.end = at + len;
        self.ranges += 1;
        self.bytes += len;
    }
}

/// The operations in the order of the summary.
const OPS: [Op; 7] =
    [Op::Read, Op::Write, Op::Len, Op::SetLen, Op::Barrier, Op::Sync, Op::Invalidate];

/// The layer.
#[derive(Debug)]
pub struct Event<S: Storage> {
    inner: S,
    file: Option<PathBuf>,
    number: usize,
    sink: Arc<LineSink>,
    begin: Instant,
    stats: Mutex<[OpStats; OPS.len()]>,
}

impl<S: Storage> Event<S> {
    /// Wraps `inner`; lines carry `number`.
    ///
    /// # Errors
    /// [`StorageError::Trace`] if the file cannot be opened.
    pub fn new(inner: S, file: Option<&Path>, number: usize) -> Result<Self, StorageError> {
        Ok(Event {
            inner,
            file: file.map(PathBuf::from),
            number,
            sink: LineSink::open(file)?,
            begin: Instant::now(),
            stats: Mutex::ranked(Rank::Layer, Default::default()),
        })
    }

    /// Runs `call` and records it with its ranges: (offset, bytes asked).
    fn record<T>(
        &self,
        op: Op,
        many: bool,
        ranges: &[(u64, u64)],
        call: impl FnOnce() -> Result<T, StorageError>,
        moved: impl Fn(&T, usize) -> u64,
    ) -> Result<T, StorageError> {
        if matches!(*self.sink, LineSink::Trace) {
            return call();
        }
        let begin = Instant::now();
        let outcome = call();
        let took = begin.elapsed();
        let mut lines = String::new();
        let since = (begin - self.begin).as_secs_f64();
        let plural = if many { "v" } else { "" };
        let mut us = Some(took.as_secs_f64() * 1e6);
        for (i, (at, len)) in ranges.iter().enumerate() {
            let _ = write!(lines, "{since:.6} event#{} {op}{plural} {at} {len} ", self.number);
            let _ = match us.take() {
                Some(us) => write!(lines, "{us:.1} "),
                None => write!(lines, "- "),
            };
            let _ = match &outcome {
                Ok(value) => writeln!(lines, "{}", moved(value, i)),
                Err(error) => writeln!(lines, "error {} {error}", error.raw_os_error()),
            };
        }
        self.sink.write(&lines);
        if let Some(i) = OPS.iter().position(|known| *known == op) {
            let stats = &mut self.stats.lock()[i];
            stats.calls += 1;
            stats.time += took;
            match &outcome {
                Ok(value) => {
                    for (i, (at, _)) in ranges.iter().enumerate() {
                        stats.range(*at, moved(value, i));
                    }
                }
                Err(_) => stats.errors += 1,
            }
        }
        outcome
    }

    fn summary(&self) -> String {
        let mut text = String::new();
        let n = self.number;
        for (op, s) in OPS.iter().zip(self.stats.lock().iter()).filter(|(_, s)| s.calls > 0) {
            let us = s.time.as_secs_f64() * 1e6;
            let _ = write!(
                text,
                "# event#{n} {op}: {} calls, {} errors, {us:.1} us",
                s.calls, s.errors
            );
            if matches!(op, Op::Read | Op::Write) && s.ranges > 0 {
                let _ = write!(
                    text,
                    ", {} ranges, {} bytes, size min {} avg {} max {}, sequential {:.3}",
                    s.ranges,
                    s.bytes,
                    s.min,
                    s.bytes / s.ranges,
                    s.max,
                    s.sequential as f64 / s.ranges.saturating_sub(1).max(1) as f64,
                );
            }
            text.push('\n');
        }
        text
    }
}

impl<S: Storage> Drop for Event<S> {
    fn drop(&mut self) {
        self.sink.write(&self.summary());
        self.sink.flush();
    }
}

impl<S: Storage> Storage for Event<S> {
    forward! { this => this.inner; advise, rest, most_len, has_other_writers, remote, stamp }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        let range = (at, buf.len() as u64);
        self.record(Op::Read, false, &[range], || self.inner.read_at(at, buf), |n, _| *n as u64)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        let asked: Vec<(u64, u64)> = ranges.iter().map(|r| (r.at, r.buf.len() as u64)).collect();
        let call = || {
            self.inner.read_ranges(ranges)?;
            Ok(ranges.iter().map(|r| r.got as u64).collect::<Vec<u64>>())
        };
        self.record(Op::Read, true, &asked, call, |got, i| got[i]).map(drop)
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        let len = data.len() as u64;
        self.record(Op::Write, false, &[(at, len)], || self.inner.write_at(at, data), |(), _| len)
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        let asked: Vec<(u64, u64)> = ranges.iter().map(|r| (r.at, r.data.len() as u64)).collect();
        let call = || self.inner.write_ranges(ranges);
        self.record(Op::Write, true, &asked, call, |(), i| asked[i].1)
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        fill_by_writes(self, at, len, element)
    }

    fn len(&self) -> Result<u64, StorageError> {
        self.record(Op::Len, false, &[(0, 0)], || self.inner.len(), |len, _| *len)
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.record(Op::SetLen, false, &[(len, 0)], || self.inner.set_len(len), |(), _| 0)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.record(Op::Barrier, false, &[(0, 0)], || self.inner.barrier(), |(), _| 0)
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.record(Op::Sync, false, &[(0, 0)], || self.inner.sync(), |(), _| 0)
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        self.record(Op::Invalidate, false, &[(0, 0)], || self.inner.invalidate(), |(), _| 0)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        token(f, self.file.as_deref())?;
        f.write_str(",")?;
        self.inner.describe(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_cannot_be_written_are_told_of_once() {
        let sink = LineSink::open(Some(Path::new("/dev/full"))).unwrap();
        let LineSink::File(lines) = &*sink else { panic!("no file: {sink:?}") };
        sink.write("a line\n");
        assert!(!lines.lost.load(Ordering::Relaxed));
        sink.flush();
        assert!(lines.lost.load(Ordering::Relaxed));
        // It gets no more, and nothing fails for that.
        lines.done(|_| panic!("written to a file that lost lines"));
    }
}
