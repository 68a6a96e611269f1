//! Chunks that wait and for which there is no memory: those put longest ago go to a file without a name
//! beside the data, until they are put again or stored.
//!
//! That decides nothing else. A chunk that is away counts for the write cache as if it were in memory, and is
//! stored when and where it would be then: the file is the same whatever memory there is. Where the file
//! without a name cannot be made or is full, chunks stay in memory; also where it would take the room on the
//! device that the data need ([`most_new`]).

use std::fmt;
use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use std::sync::Arc;
use zonda_runtime::memory::Kind;
use zonda_storage::{DeviceSpace, Op, StorageError};
use zonda_trace::{Args, EventKind, span};

use super::ChunkWriter;
use super::spill_file::{SpillFile, SpillStore, release_spills_on_device};
use crate::ChunkError;
use crate::engine::Engine;
use crate::stored::lengthen;
use crate::tuning::{SPILL_PART, SPILL_RESERVE_BYTES};

/// Makes an empty file that is gone when it is dropped.
pub type MakeSpillFile = Box<dyn Fn() -> Result<Arc<dyn SpillFile>, StorageError> + Send + Sync>;

/// How many bytes more the file may take so that the device has room for as much as all chunks take that wait, and for
/// a reserve; `None` where it has not now.
fn most_new(room: DeviceSpace, waiting: u64) -> Option<u64> {
    let reserve = SPILL_RESERVE_BYTES.min(room.size / 100);
    room.free.checked_sub(waiting.checked_add(reserve)?)
}

/// Where a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpillSlot {
    at: u64,
    len: u64,
}

impl SpillSlot {
    /// Bytes of the chunk.
    pub(crate) fn bytes(self) -> u64 {
        self.len
    }
}

/// The file of one writer.
#[derive(Default)]
pub(crate) struct Spills {
    make: Option<MakeSpillFile>,
    /// The data beside which it is.
    beside: PathBuf,
    file: Option<Arc<SpillStore>>,
    /// Places that serve again, by their length.
    free: HashMap<u64, Vec<u64>>,
    end: u64,
    bytes: u64,
    /// The file took no more; it is tried again after a flush.
    is_refused: bool,
}

impl fmt::Debug for Spills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spills").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Spills {
    /// Bytes of spilled chunks.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// By how many bytes the file may grow when chunks of `waiting` bytes wait; `None` where nothing may be sent away.
    fn may_grow(&mut self, waiting: u64, engine: &Arc<Engine>) -> Option<u64> {
        if self.is_refused {
            return None;
        }
        if self.file.is_none() {
            let made = self.make.as_ref().and_then(|make| make().ok());
            self.file = made.map(|file| SpillStore::new(file, &self.beside, engine));
        }
        let room = self.file.as_ref().and_then(|file| file.room());
        let most = room.and_then(|room| most_new(room, waiting));
        self.is_refused = most.is_none();
        most
    }

    /// Takes the bytes of a chunk, and what the file grows by for them from `may_grow`; `None` where they have to stay in
    /// memory.
    fn take(&mut self, bytes: &[u8], may_grow: &mut u64) -> Option<SpillSlot> {
        let end = self.end;
        let slot = self.write(bytes, *may_grow);
        self.is_refused = slot.is_none();
        *may_grow = may_grow.saturating_sub(self.end - end);
        slot
    }

    fn write(&mut self, bytes: &[u8], may_grow: u64) -> Option<SpillSlot> {
        let file = self.file.as_ref()?;
        let len = bytes.len() as u64;
        let _span = span(EventKind::ChunkSpill, || Args { bytes: len, ..Args::default() });
        let free = self.free.get_mut(&len).and_then(Vec::pop);
        if free.is_none() && len > may_grow {
            return None;
        }
        let at = free.unwrap_or(self.end);
        if !file.write_at(at, bytes) {
            self.free.entry(len).or_default().extend(free);
            return None;
        }
        self.end = self.end.max(at + len);
        self.bytes += len;
        Some(SpillSlot { at, len })
    }

    /// Reads the bytes of a chunk, which stay where they are, too.
    pub(crate) fn read(
        &self,
        key: &[u64],
        slot: SpillSlot,
        out: &mut [u8],
    ) -> Result<(), ChunkError> {
        let _span = span(EventKind::ChunkFetch, || Args { bytes: slot.len, ..Args::default() });
        let failed = |error| ChunkError::Spill { chunk: key.to_vec(), error };
        if self.is_inherited() {
            let (path, op) = (Arc::from(Path::new("")), Op::Read);
            return Err(failed(Some(StorageError::Inherited {
                path,
                op,
                at: slot.at,
                len: slot.len,
            })));
        }
        let read = self.file.as_ref().map_or(Ok(0), |file| file.read_at(slot.at, out));
        match read.map_err(|error| failed(Some(error)))? {
            got if got == out.len() => Ok(()),
            _ => Err(failed(None)),
        }
    }

    /// Whether it is the parent's, of which this process is a fork: who may have put other chunks there.
    pub(crate) fn is_inherited(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.is_inherited())
    }

    /// Gives back the place of bytes that nobody needs any more.
    pub(crate) fn release(&mut self, slot: SpillSlot) {
        self.bytes = self.bytes.saturating_sub(slot.len);
        self.free.entry(slot.len).or_default().push(slot.at);
        if self.bytes == 0 {
            // Its blocks go back to the device.
            (self.file, self.end) = (None, 0);
            self.free.clear();
        }
    }
}

impl ChunkWriter {
    /// Where chunks of the data at `path` that wait go when there is no memory for them; without it they stay.
    pub fn spill_to(&mut self, make: MakeSpillFile, path: &Path) {
        self.pending.spills.make = Some(make);
        path.clone_into(&mut self.pending.spills.beside);
    }

    /// Bytes of chunks that wait in the file without a name.
    #[must_use]
    pub fn spilled_bytes(&self) -> u64 {
        self.pending.spills.bytes()
    }

    /// Gives the room of the file without a name back to the device, which has no more: the data come first. What is there
    /// comes back to memory, whatever the limit, and nothing goes there any more; nor stays what other files of the process have
    /// on this device. Whether there was any; false also where there is no memory for it.
    pub fn release_spill(&mut self) -> bool {
        let beside = std::mem::take(&mut self.pending.spills.beside);
        let own = self.give_own_room_back();
        let of_others = release_spills_on_device(&beside);
        self.pending.spills.beside = beside;
        own || of_others
    }

    fn give_own_room_back(&mut self) -> bool {
        let had_some = self.spilled_bytes() > 0;
        let ids: Vec<_> =
            self.arrays.iter().flatten().flat_map(|array| array.keys.values().copied()).collect();
        let super::PendingChunks { nodes, spills, .. } = &mut self.pending;
        spills.make = None;
        for id in ids {
            let Some(pending) = nodes.get_mut(id) else { continue };
            let Some(place) = pending.elems.spilled else { continue };
            let mut bytes = Vec::new();
            let is_there = usize::try_from(place.len)
                .is_ok_and(|len| lengthen(&mut bytes, len).is_ok())
                && spills.read(&pending.key, place, &mut bytes).is_ok();
            if !is_there {
                return false;
            }
            (pending.elems.bytes, pending.elems.spilled) = (bytes, None);
            spills.release(place);
        }
        had_some
    }

    /// Whether the file takes no more chunks, and there is no memory for those that wait.
    pub(super) fn is_stuck(&self) -> bool {
        self.pending.spills.is_refused && self.engine.broker().excess() > 0
    }

    /// Tries a file again that took no more.
    pub(super) fn try_spilling_again(&mut self) {
        self.pending.spills.is_refused = false;
        self.reported.stuck = 0;
    }

    /// Chunks that are put at once: with more there would be no memory for what they begin.
    pub(super) fn most_at_once(&self, chunk_bytes: usize) -> usize {
        let chunks = self.engine.budget_bytes() / SPILL_PART / (chunk_bytes as u64).max(1);
        usize::try_from(chunks).unwrap_or(usize::MAX).max(self.engine.threads())
    }

    /// Has the broker know what chunks take that wait. Where the limit does not allow it, and nobody has
    /// anything that was used before them, those put longest ago go to the file without a name.
    pub(super) fn account(&mut self) {
        let held = self.pending.held_bytes();
        // Chunks that were begun in it.
        let used = self.reported.spare.saturating_sub(self.spare.bytes());
        self.reported.spare -= used;
        self.engine.broker().give_back(Kind::Spare, used);
        self.report_incomplete(held);
        if self.engine.broker().excess() > 0 && held > self.reported.stuck {
            let engine = Arc::clone(&self.engine);
            let before = self.pending.oldest_held().map_or(0, |(_, used)| used);
            if !engine.broker().reclaim(0, before) {
                // Many at a time: who is next has to be looked for.
                self.spill(self.engine.broker().excess().max(held / SPILL_PART));
                let left = self.pending.held_bytes();
                self.reported.stuck = if left < held { 0 } else { held };
                self.report_incomplete(left);
            }
        }
        let (reported, spare) = (self.reported.spare, self.spare.bytes());
        let broker = self.engine.broker();
        if spare > reported && !broker.take(Kind::Spare, spare - reported) {
            self.spare.clear();
        }
        let kept = self.spare.bytes();
        // Where it was cleared, what was told of before is free.
        broker.give_back(Kind::Spare, reported.saturating_sub(kept));
        self.reported.spare = kept;
    }

    fn report_incomplete(&mut self, held: u64) {
        let reported = std::mem::replace(&mut self.reported.incomplete, held);
        let broker = self.engine.broker();
        match held.checked_sub(reported) {
            Some(0) => {}
            Some(more) => broker.take_anyway(Kind::Incomplete, more),
            None => broker.give_back(Kind::Incomplete, reported - held),
        }
    }

    /// Spills chunks, those put longest ago first, until that makes `bytes` bytes. The one put last stays.
    fn spill(&mut self, bytes: u64) {
        let newest = self.pending.newest();
        let stays = |array: usize| {
            // What such elements refer to is decided when they are stored.
            self.arrays.get(array).and_then(Option::as_ref).is_none_or(|array| array.always_fresh)
        };
        let mut sum = 0;
        let ids: Vec<_> = self
            .pending
            .oldest_first()
            .filter(|(id, pending)| {
                Some(*id) != newest && pending.elems.spilled.is_none() && !stays(pending.array)
            })
            .take_while(|(_, pending)| {
                let is_wanted = sum < bytes;
                sum += pending.elems.bytes.len() as u64;
                is_wanted
            })
            .map(|(id, _)| id)
            .collect();
        let waiting = self.pending.waiting_bytes();
        let Some(mut may_grow) = self.pending.spills.may_grow(waiting, &self.engine) else {
            return;
        };
        for id in ids {
            let super::PendingChunks { nodes, spills, .. } = &mut self.pending;
            let Some(pending) = nodes.get_mut(id) else { continue };
            let Some(slot) = spills.take(&pending.elems.bytes, &mut may_grow) else { return };
            pending.elems.spilled = Some(slot);
            // For the next chunks: given back to the allocator it would often not go to the system.
            self.spare.put(std::mem::take(&mut pending.elems.bytes));
        }
    }
}

/// What was reported to the broker, in bytes.
#[derive(Debug, Default)]
pub(super) struct ReportedBytes {
    incomplete: u64,
    spare: u64,
    /// Bytes in memory when nothing could be spilled: with no more than that it is not tried again.
    stuck: u64,
}

impl Drop for ChunkWriter {
    fn drop(&mut self) {
        let broker = self.engine.broker();
        broker.give_back(Kind::Incomplete, self.reported.incomplete);
        broker.give_back(Kind::Spare, self.reported.spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_the_data_is_left() {
        const MIB: u64 = 1 << 20;
        let most = |free: u64, size: u64, waiting: u64| {
            most_new(DeviceSpace { free: free * MIB, size: size * MIB }, waiting * MIB)
        };
        // The reserve: a hundredth of a small device, 64 MiB of a large one.
        assert_eq!(most(90, 100, 30), Some(59 * MIB));
        assert_eq!(most(90_000, 100_000, 30), Some((90_000 - 30 - 64) * MIB));
        assert_eq!(most(31, 100, 30), Some(0));
        assert_eq!(most(30, 100, 30), None);
        // A file system that says nothing.
        assert_eq!(most(0, 0, 1), None);
        assert_eq!(most_new(DeviceSpace { free: 0, size: u64::MAX }, u64::MAX), None);
    }
}
