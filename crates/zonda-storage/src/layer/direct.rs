//! `direct`: transfers past the system's cache (`O_DIRECT`), for files larger than memory that are
//! written or read once.
//!
//! What is asked for is cut at blocks of 4096 bytes and goes through aligned memory of the layer's own
//! where the caller's is not. Whole blocks pass the cache by. The parts of blocks at the ends of a
//! write go through it: the system reads and changes the block, a file is never longer than what was
//! written, and writers of one block lose nothing. Reads take whole blocks.
//!
//! Where the file system refuses, one line on standard error says so, and all goes as without the
//! layer; so it does on a memory.

use crate::error::{Op, range_end};
use crate::forward;
use crate::slab;
use crate::spec::{Below, Building, LayerSpec, Registered, SpecArgs, SpecError};
use crate::storage::{ReadRange, Storage, WriteRange, fill_by_writes};
use crate::tuning::{BOUNCE_BYTES, MOST_KEPT_BOUNCES};
use crate::{BLOCK_BYTES, StorageError, backend};
use std::fmt;
use std::sync::Arc;
use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::setting::say_once;

/// How a spec names this layer.
pub(super) const REGISTERED: Registered = Registered { name: "direct", parse };

/// A block as a length in memory.
const BLOCK: usize = BLOCK_BYTES as usize;

fn parse(args: &mut SpecArgs<'_>) -> Result<Arc<dyn LayerSpec>, SpecError> {
    args.end()?;
    Ok(Arc::new(DirectSpec))
}

#[derive(Debug)]
struct DirectSpec;

impl fmt::Display for DirectSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("direct")
    }
}

impl LayerSpec for DirectSpec {
    fn build(&self, below: Below, building: &mut Building<'_>) -> Result<Below, StorageError> {
        if let Some(file) = building.file
            && let Err(errno) = file.go_direct()
        {
            let why = std::io::Error::from_raw_os_error(errno.0);
            let path = file.path().display();
            say_once(format!("direct: {path}: {why}; through the system's cache"));
        }
        Ok(Arc::new(Direct::new(below, building.file.map(Arc::clone))))
    }

    fn buffers(&self) -> bool {
        false
    }
}

/// Memory that begins at a block.
#[derive(Debug)]
struct BounceBuffer {
    memory: Vec<u8>,
    begin: usize,
}

impl BounceBuffer {
    fn new() -> Result<BounceBuffer, StorageError> {
        let bytes = BOUNCE_BYTES + BLOCK;
        let no_memory = StorageError::NoMemory { bytes: bytes as u64 };
        let memory = slab::zeros(bytes).ok_or(no_memory)?;
        let begin = memory.as_ptr().align_offset(BLOCK).min(BLOCK);
        Ok(BounceBuffer { memory, begin })
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + BOUNCE_BYTES]
    }
}

/// The layer.
#[derive(Debug)]
pub struct Direct<S> {
    inner: S,
    file: Option<Arc<backend::File>>,
    kept: Mutex<Vec<BounceBuffer>>,
}

/// Whether something of this length in this memory can pass the cache by as it is.
fn is_aligned(at: u64, memory: &[u8]) -> bool {
    (at | memory.as_ptr().addr() as u64 | memory.len() as u64).is_multiple_of(BLOCK_BYTES)
}

impl<S: Storage> Direct<S> {
    pub(crate) fn new(inner: S, file: Option<Arc<backend::File>>) -> Self {
        Direct { inner, file, kept: Mutex::ranked(Rank::Layer, Vec::new()) }
    }

    /// Whether there is a file whose system takes part.
    fn is_on(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.is_direct())
    }

    /// Runs `body` with aligned memory.
    fn with_bounce<T>(
        &self,
        body: impl FnOnce(&mut [u8]) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let kept = self.kept.lock().pop();
        let mut bounce = kept.map_or_else(BounceBuffer::new, Ok)?;
        let done = body(bounce.bytes());
        let mut kept = self.kept.lock();
        if kept.len() < MOST_KEPT_BOUNCES {
            kept.push(bounce);
        }
        done
    }

    /// Reads ranges that ascend without overlap, no further from each other than a block, in whole
    /// blocks; gives how many bytes of them there are from the first on.
    fn read_run(&self, run: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return Ok(()) };
        let end = last.at + last.buf.len() as u64;
        let mut at = first.at - first.at % BLOCK_BYTES;
        self.with_bounce(|bounce| {
            while at < end {
                let blocks = (end - at).next_multiple_of(BLOCK_BYTES);
                let n = usize::try_from(blocks).unwrap_or(usize::MAX).min(BOUNCE_BYTES);
                let got = self.inner.read_at(at, &mut bounce[..n])?;
                let reached = at + got as u64;
                for range in &mut *run {
                    let from = range.at.max(at);
                    let to = (range.at + range.buf.len() as u64).min(reached);
                    if from < to {
                        let place = (from - range.at) as usize;
                        let n = (to - from) as usize;
                        let bytes = &bounce[(from - at) as usize..][..n];
                        range.buf[place..place + n].copy_from_slice(bytes);
                        range.got = place + n;
                    }
                }
                if got < n {
                    break;
                }
                at = reached;
            }
            Ok(())
        })
    }

    /// Writes pieces that follow one another from `at` on: whole blocks past the cache.
    fn write_run(&self, mut at: u64, run: &[WriteRange<'_>]) -> Result<(), StorageError> {
        if let [one] = run {
            let head = (at.next_multiple_of(BLOCK_BYTES) - at).min(one.data.len() as u64) as usize;
            let body = (one.data.len() - head) / BLOCK * BLOCK;
            if is_aligned(at + head as u64, &one.data[head..head + body]) {
                let parts = [(0, head), (head, head + body), (head + body, one.data.len())];
                return parts
                    .iter()
                    .filter(|(a, b)| a < b)
                    .try_for_each(|(a, b)| self.inner.write_at(at + *a as u64, &one.data[*a..*b]));
            }
        } else if run.iter().all(|range| is_aligned(range.at, range.data)) {
            return run.iter().try_for_each(|range| self.inner.write_at(range.at, range.data));
        }
        let mut left: usize = run.iter().map(|range| range.data.len()).sum();
        let mut pieces = run.iter().map(|range| range.data);
        let mut piece: &[u8] = &[];
        self.with_bounce(|bounce| {
            while left > 0 {
                let to_block = (at.next_multiple_of(BLOCK_BYTES) - at) as usize;
                let n = match to_block {
                    0 if left >= BLOCK => (left / BLOCK * BLOCK).min(BOUNCE_BYTES),
                    0 => left,
                    head => head.min(left),
                };
                let mut filled = 0;
                while filled < n {
                    if piece.is_empty() {
                        piece = pieces.next().unwrap_or_default();
                        continue;
                    }
                    let (now, later) = piece.split_at(piece.len().min(n - filled));
                    bounce[filled..filled + now.len()].copy_from_slice(now);
                    filled += now.len();
                    piece = later;
                }
                self.inner.write_at(at, &bounce[..n])?;
                at += n as u64;
                left -= n;
            }
            Ok(())
        })
    }
}

impl<S: Storage> Storage for Direct<S> {
    forward! {
        this => this.inner;
        advise, rest, len, most_len, has_other_writers, remote, set_len, barrier, sync, invalidate, stamp
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        range_end(Op::Read, at, buf.len())?;
        if !self.is_on() || is_aligned(at, buf) {
            return self.inner.read_at(at, buf);
        }
        let mut range = [ReadRange::new(at, buf)];
        self.read_run(&mut range)?;
        Ok(range[0].got)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        if !self.is_on() {
            return self.inner.read_ranges(ranges);
        }
        for range in &mut *ranges {
            range_end(Op::Read, range.at, range.buf.len())?;
            range.got = 0;
        }
        let near = |a: &ReadRange<'_>, b: &ReadRange<'_>| {
            let end = a.at + a.buf.len() as u64;
            b.at >= end && b.at - end <= BLOCK_BYTES
        };
        ranges.chunk_by_mut(near).try_for_each(|run| self.read_run(run))
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        if !self.is_on() {
            return self.inner.write_at(at, data);
        }
        range_end(Op::Write, at, data.len())?;
        self.write_run(at, &[WriteRange { at, data }])
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        if !self.is_on() {
            return self.inner.write_ranges(ranges);
        }
        for range in ranges {
            range_end(Op::Write, range.at, range.data.len())?;
        }
        let touch = |a: &WriteRange<'_>, b: &WriteRange<'_>| a.at + a.data.len() as u64 == b.at;
        ranges.chunk_by(touch).try_for_each(|run| self.write_run(run[0].at, run))
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        fill_by_writes(self, at, len, element)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("direct,")?;
        self.inner.describe(f)
    }
}
