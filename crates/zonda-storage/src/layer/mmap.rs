//! `mmap`: reads from a mapping of the file, without a call and a copy by the system each.
//!
//! A file that is cut while it is mapped would end the program by `SIGBUS`. So a file is mapped only
//! with a read lease, which the system gives for a file that is opened for reading, that nobody has
//! open for writing, and that belongs to the user; not every file system has leases. Whoever opens
//! the file for writing then waits until the lease is given back, which the next read does, or for
//! `/proc/sys/fs/lease-break-time` (45 seconds) while nothing is read; this process gives it back before
//! it opens the file for writing itself. From then on, and wherever there is no lease, reads go to what
//! is below as without the layer. A device that fails under a mapping raises `SIGBUS` in any program.
//!
//! Only the lowest layer of a stack maps: what stands below it should see the reads.

use crate::error::{Op, range_end};
use crate::forward;
use crate::os::Mapping;
use crate::spec::{Below, Building, LayerSpec, Registered, SpecArgs, SpecError};
use crate::storage::{ReadRange, Rows, Storage};
use crate::tuning::SHOWN_AT_ONCE_BYTES;
use crate::{StorageError, backend};
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use zonda_runtime::lock::{Global, Rank, RwLock};

/// How a spec names this layer.
pub(super) const REGISTERED: Registered = Registered { name: "mmap", parse };

fn parse(args: &mut SpecArgs<'_>) -> Result<Arc<dyn LayerSpec>, SpecError> {
    args.end()?;
    Ok(Arc::new(MmapSpec))
}

#[derive(Debug)]
struct MmapSpec;

impl fmt::Display for MmapSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mmap")
    }
}

impl LayerSpec for MmapSpec {
    fn build(&self, below: Below, building: &mut Building<'_>) -> Result<Below, StorageError> {
        let file = building.file.filter(|file| building.is_lowest && !file.is_writable());
        Ok(Arc::new(Mmap::new(below, file.map(Arc::clone))))
    }

    fn buffers(&self) -> bool {
        false
    }
}

/// The layer.
#[derive(Debug)]
pub struct Mmap<S> {
    inner: S,
    /// What may be mapped.
    file: Option<Arc<backend::File>>,
    mapping: Arc<RwLock<Option<Mapping>>>,
}

/// How many layers map a file, and which they are.
static N_MAPPING: AtomicUsize = AtomicUsize::new(0);
static MAPPING: Global<Vec<Weak<RwLock<Option<Mapping>>>>> =
    Global::new(Rank::Mappings, Vec::new(), Vec::new);

/// To be called before this process opens `path` for writing: it would wait for itself.
pub(crate) fn give_way_to_writing(path: &Path) {
    if N_MAPPING.load(Ordering::Acquire) == 0 {
        return;
    }
    let Ok(status) = std::fs::metadata(path) else { return };
    let all: Vec<_> = MAPPING.lock().iter().filter_map(Weak::upgrade).collect();
    for mapping in all {
        let mut mapping = mapping.write();
        let identity = mapping.as_ref().and_then(Mapping::identity);
        if identity == Some((status.dev(), status.ino())) {
            *mapping = None;
        }
    }
}

impl<S: Storage> Mmap<S> {
    pub(crate) fn new(inner: S, file: Option<Arc<backend::File>>) -> Self {
        let layer = Mmap { inner, file, mapping: Arc::new(RwLock::ranked(Rank::Mapping, None)) };
        if layer.file.is_some() {
            MAPPING.lock().push(Arc::downgrade(&layer.mapping));
            N_MAPPING.fetch_add(1, Ordering::AcqRel);
        }
        layer.map();
        layer
    }

    /// Maps the file, where that can be.
    fn map(&self) {
        if let Some(file) = &self.file {
            *self.mapping.write() = file.fd.map().ok();
        }
    }

    /// Reads from the mapping; `None` where there is none.
    fn mapped(&self, at: u64, buf: &mut [u8]) -> Option<usize> {
        let mapping = self.mapping.read();
        let Some(bytes) = mapping.as_ref()?.bytes() else {
            drop(mapping);
            // Whoever waits to write goes on.
            *self.mapping.write() = None;
            return None;
        };
        let there = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let n = there.len().min(buf.len());
        buf[..n].copy_from_slice(&there[..n]);
        Some(n)
    }
}

impl<S> Drop for Mmap<S> {
    fn drop(&mut self) {
        if self.file.is_some() {
            let mine = Arc::as_ptr(&self.mapping);
            MAPPING.lock().retain(|other| other.as_ptr() != mine);
            N_MAPPING.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl<S: Storage> Storage for Mmap<S> {
    forward! {
        this => this.inner;
        write_at, write_ranges, fill_at, advise, rest, len, most_len, has_other_writers, remote, set_len, barrier, sync, stamp
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        range_end(Op::Read, at, buf.len())?;
        match self.mapped(at, buf) {
            Some(got) => Ok(got),
            None => self.inner.read_at(at, buf),
        }
    }

    fn show_rows(&self, rows: Rows, see: &mut dyn FnMut(&[u8])) -> usize {
        let mapping = self.mapping.read();
        // Without one, and where somebody waits to write, `read_at` knows what to do.
        let Some(bytes) = mapping.as_ref().and_then(Mapping::bytes) else { return 0 };
        let most = (SHOWN_AT_ONCE_BYTES / rows.len.max(1)).max(1).min(rows.count);
        let (mut at, mut n) = (rows.at, 0);
        while n < most {
            let from = usize::try_from(at).unwrap_or(usize::MAX);
            let Some(row) = bytes.get(from..from.saturating_add(rows.len)) else { break };
            see(row);
            n += 1;
            at = at.saturating_add(rows.step);
        }
        n
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        for range in &mut *ranges {
            range_end(Op::Read, range.at, range.buf.len())?;
            match self.mapped(range.at, range.buf) {
                Some(got) => range.got = got,
                // What was copied until now is read again with the rest.
                None => return self.inner.read_ranges(ranges),
            }
        }
        Ok(())
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        // Whoever wrote the file may have done so, and it may have another length.
        self.map();
        self.inner.invalidate()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mmap,")?;
        self.inner.describe(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;
    use std::time::Duration;
    use tempfile::TempPath;

    fn open(path: &std::path::Path) -> Mmap<Arc<backend::File>> {
        let file = Arc::new(backend::File::open_read(path).unwrap());
        Mmap::new(Arc::clone(&file), Some(file))
    }

    /// A file of `len` bytes; `None`, and a line that says so, where there are no leases.
    fn file(name: &str, len: usize) -> Option<TempPath> {
        let path =
            tempfile::Builder::new().prefix(&format!("zonda-mmap-{name}-")).tempfile().unwrap();
        let path = path.into_temp_path();
        let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + i / 251) as u8).collect();
        std::fs::write(&path, bytes).unwrap();
        let mapped = open(&path).mapping.read().is_some();
        if !mapped {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "skipped: {}: no leases here", path.display());
        }
        mapped.then_some(path)
    }

    #[test]
    fn reads_as_the_file_does() {
        let Some(path) = file("reads", 100_000) else { return };
        let (layer, bytes) = (open(&path), std::fs::read(&path).unwrap());
        for (at, len) in [(0, 100_000), (5, 17), (99_990, 40), (100_000, 3), (1 << 40, 8), (0, 0)] {
            let mut buf = vec![0xEE; len];
            let got = layer.mapped(at, &mut buf).unwrap();
            let from = usize::try_from(at).unwrap().min(bytes.len());
            assert_eq!(buf[..got], bytes[from..(from + len).min(bytes.len())], "{len} at {at}");
        }
        assert!(layer.read_at(u64::MAX, &mut [0; 2]).is_err());
    }

    #[test]
    fn shows_rows_of_the_file() {
        let Some(path) = file("rows", 100_000) else { return };
        let (layer, bytes) = (open(&path), std::fs::read(&path).unwrap());
        // Where the first begins, bytes of each, the step, how many there are; how many are shown.
        for (at, len, step, count, n) in [
            (0, 100, 1000, 3, 3),
            (7, 10, 0, 4, 4),
            (99_000, 100, 300, 9, 4),
            (99_901, 100, 1, 1, 0),
            (5, 0, 3, 2, 2),
            (50, 100_000, 1, 2, 0),
            (1, 1, u64::MAX, 2, 1),
            (u64::MAX, 2, 2, 2, 0),
            (0, usize::MAX, 1, 1, 0),
            // No more at a time than the one who waits to write can wait for.
            (0, 1 << 14, 1, 1000, SHOWN_AT_ONCE_BYTES >> 14),
        ] {
            let mut shown = 0;
            let rows = Rows { at, len, step, count };
            let told = layer.show_rows(rows, &mut |row| {
                let from = (at + shown as u64 * step) as usize;
                assert_eq!(row, &bytes[from..from + len], "{rows:?}");
                shown += 1;
            });
            assert_eq!((told, shown), (n, n), "{rows:?}");
        }
        let _writer =
            std::fs::OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&path);
        assert_eq!(
            layer.show_rows(Rows { at: 0, len: 1, step: 1, count: 1 }, &mut |_| ()),
            0,
            "somebody waits to write"
        );
    }

    #[test]
    fn a_file_that_is_open_for_writing_is_not_mapped() {
        let Some(path) = file("open", 5000) else { return };
        let writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let layer = open(&path);
        assert!(layer.mapping.read().is_none());
        let mut buf = [0; 100];
        assert_eq!(layer.read_at(4950, &mut buf), Ok(50));
        drop(writer);
        layer.invalidate().unwrap();
        assert!(layer.mapping.read().is_some(), "mapped once it can be");
    }

    #[test]
    fn this_process_does_not_wait_for_itself() {
        let Some(path) = file("self", 5000) else { return };
        let layer = open(&path);
        assert!(layer.mapping.read().is_some());
        let begin = std::time::Instant::now();
        let level = crate::SyncLevel::None;
        let writer = backend::File::open(&path, true, crate::Create::MustExist, level).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert!(layer.mapping.read().is_none());
        writer.write_at(4999, b"!").unwrap();
        let mut last = [0];
        assert_eq!((layer.read_at(4999, &mut last), last), (Ok(1), *b"!"));
    }

    #[test]
    fn a_file_that_is_cut_beside_ends_nothing() {
        let Some(path) = file("cut", 8 << 20) else { return };
        let layer = open(&path);
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut buf = vec![0; 1 << 20];
                    while !done.load(std::sync::atomic::Ordering::Acquire) {
                        for at in (0..8 << 20).step_by(1 << 20) {
                            layer.read_at(at, &mut buf).unwrap();
                            let rows = Rows { at, len: 4096, step: 8192, count: 128 };
                            layer.show_rows(rows, &mut |row| buf[..4096].copy_from_slice(row));
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(30));
            assert!(layer.mapping.read().is_some());
            // Both ways to cut one: by name, and by a descriptor.
            let writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            writer.set_len(100).unwrap();
            std::thread::sleep(Duration::from_millis(30));
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        assert!(layer.mapping.read().is_none());
        assert_eq!(layer.read_at(90, &mut [0; 50]), Ok(10));
    }
}
