//! What waits in a queue: bytes, where they go, and of which put they are.

use std::fmt;
use std::sync::Arc;

use zonda_format::VarRef;
use zonda_model::memory::{self, NoMemory};
use zonda_storage::{Storage, StorageError, WriteRange};

use super::filter_tasks::CountedBytes;
use super::room::QueueRoom;

/// Which put it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PutLabel {
    /// Its number among the puts that all ranks made together; of a put of this rank alone, that of the last one before it.
    pub(crate) number: u64,
    /// This rank put alone.
    pub(crate) is_alone: bool,
    pub(crate) var: VarRef,
    /// How messages name the variable.
    pub(crate) name: Arc<str>,
}

impl fmt::Display for PutLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PutLabel { number, name, .. } = self;
        match self.is_alone {
            true => write!(f, "a put of this rank alone to {name}"),
            false => write!(f, "put {number} of all ranks, to {name},"),
        }
    }
}

/// Bytes of a run's place in the list of runs.
const HEAD_BYTES: u64 = size_of::<(u64, usize)>() as u64;
/// The room that places of runs take at a time.
const HEADS_BYTES: u64 = 4096;

/// Runs that are written together: copied one after the other, or chunks that came of filters, each in memory of its own.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) of: PutLabel,
    chunks: Vec<(u64, Vec<u8>)>,
    /// The bytes of these count as long as they are here.
    _counted: Option<CountedBytes>,
    /// Where each run goes, and how long it is, in the order of the calls.
    runs: Vec<(u64, usize)>,
    bytes: Vec<u8>,
    /// Bytes that it has of the room.
    taken: u64,
}

impl Piece {
    /// An empty one, in memory that has its room already. At least one byte fits. Without memory for places gives the other memory back.
    pub(super) fn new(
        of: PutLabel,
        bytes: Vec<u8>,
        room: &QueueRoom,
    ) -> Result<Piece, (NoMemory, Vec<u8>)> {
        let taken = bytes.capacity() as u64;
        let (runs, chunks) = (Vec::new(), Vec::new());
        let mut piece = Piece { of, chunks, _counted: None, runs, bytes, taken };
        match piece.take_heads(room) {
            Ok(()) => Ok(piece),
            Err(refused) => Err((refused, piece.bytes)),
        }
    }

    /// Chunks with their places.
    pub(super) fn of_chunks(
        of: PutLabel,
        chunks: Vec<(u64, Vec<u8>)>,
        counted: CountedBytes,
    ) -> Piece {
        let _counted = Some(counted);
        Piece { of, chunks, _counted, runs: Vec::new(), bytes: Vec::new(), taken: 0 }
    }

    /// Memory for more places of runs.
    fn take_heads(&mut self, room: &QueueRoom) -> Result<(), NoMemory> {
        memory::reserve(&mut self.runs, usize::try_from(HEADS_BYTES / HEAD_BYTES).unwrap_or(1))?;
        room.take_anyway(HEADS_BYTES);
        self.taken += HEADS_BYTES;
        Ok(())
    }

    /// Bytes of values in it.
    pub(super) fn len(&self) -> usize {
        let chunks = self.chunks.iter().map(|(_, chunk)| chunk.len());
        chunks.fold(self.bytes.len(), usize::saturating_add)
    }

    /// How many bytes fit. Places of runs have no more bytes than values may have.
    pub(super) fn n_free(&self) -> usize {
        let is_full = self.runs.len() as u64 * HEAD_BYTES >= self.bytes.capacity() as u64;
        if is_full { 0 } else { self.bytes.capacity() - self.bytes.len() }
    }

    /// Takes as much as fits of what goes to a place; how much that was.
    pub(super) fn add(
        &mut self,
        at: u64,
        data: &[u8],
        room: &QueueRoom,
    ) -> Result<usize, NoMemory> {
        let n = data.len().min(self.n_free());
        let Some(data) = data.get(..n).filter(|data| !data.is_empty()) else { return Ok(0) };
        match self.runs.last_mut() {
            Some((last, len)) if last.checked_add(*len as u64) == Some(at) => *len += n,
            _ => {
                if self.runs.len() == self.runs.capacity() {
                    self.take_heads(room)?;
                }
                self.runs.push((at, n));
            }
        }
        self.bytes.extend_from_slice(data);
        Ok(n)
    }

    /// Whether it has bytes of a range.
    pub(super) fn meets(&self, at: u64, len: u64) -> bool {
        let end = at.saturating_add(len);
        let chunks = self.chunks.iter().map(|(first, chunk)| (*first, chunk.len()));
        let mut all = self.runs.iter().copied().chain(chunks);
        all.any(|(first, n)| first < end && at < first.saturating_add(n as u64))
    }

    /// Writes all of it. May be done again after an error.
    pub(super) fn write_to(&self, storage: &dyn Storage) -> Result<(), StorageError> {
        let chunks = self.chunks.iter().map(|(at, data)| WriteRange { at: *at, data });
        let (mut ranges, mut rest): (Vec<_>, _) = (chunks.collect(), &self.bytes[..]);
        for &(at, len) in &self.runs {
            let (data, behind) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            ranges.push(WriteRange { at, data });
            rest = behind;
        }
        storage.write_ranges(&ranges)
    }

    /// Its memory without what it had, and the bytes of room that go with it; the room of all else is given back.
    pub(super) fn into_memory(mut self, room: &QueueRoom) -> Vec<u8> {
        let bytes = self.bytes.capacity() as u64;
        room.give_back(self.taken.saturating_sub(bytes));
        self.bytes.clear();
        self.bytes
    }

    /// Gives up what it has.
    pub(super) fn give_up(self, room: &QueueRoom) {
        room.give_back(self.taken);
    }
}
