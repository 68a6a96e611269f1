//! Chunks in memory: incomplete ones, in the order in which they were last put, and complete ones
//! that wait for others of their kind, in the order in which they became so.

use hashbrown::HashMap;

use super::put_part::PutPart;
use super::spill::{SpillSlot, Spills};
use super::store::{ChunkSource, PutMemory, SpareMemory};
use super::written_bits::WrittenBits;
use crate::ChunkError;
use crate::array::NewerChunks;
use crate::recency::{NodeId, NodeTable, RecencyList};
use crate::selection::Coords;
use crate::stored::lengthen;
use crate::tuning::TRACED_GATHER_BYTES;
use zonda_runtime::memory::tick;

/// A chunk that waits in memory.
#[derive(Debug)]
pub(crate) struct PendingChunk {
    /// Index of its array.
    pub array: usize,
    pub key: Coords,
    /// Its first element in the array.
    pub origin: Coords,
    pub elems: ChunkElems,
    /// The storage does not have it as it is here.
    pub dirty: bool,
    /// It is complete, waits for others, and is not changed any more.
    pub is_deferred: bool,
    /// When it was put last; runs into a chunk that is in memory do not count.
    pub used: u64,
}

/// The elements of a chunk, in the file's form, and which of them were put.
#[derive(Debug, Default)]
pub(crate) struct ChunkElems {
    pub bytes: Vec<u8>,
    pub written: WrittenBits,
    /// Where the bytes are if they were spilled: then `bytes` is empty.
    pub spilled: Option<SpillSlot>,
}

/// All chunks of a file that wait.
#[derive(Debug, Default)]
pub(crate) struct PendingChunks {
    pub(super) nodes: NodeTable<PendingChunk>,
    /// Incomplete ones, oldest first, and the bytes they take.
    order: RecencyList,
    bytes: u64,
    /// Deferred chunks, and the bytes of their elements.
    deferred: RecencyList,
    deferred_bytes: u64,
    /// The bytes of chunks for which there is no memory.
    pub(super) spills: Spills,
}

/// Numbers of the chunks of one array that wait.
pub(crate) type PendingIds = HashMap<Coords, NodeId>;

impl PendingChunks {
    /// Bytes of the incomplete ones.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many are incomplete.
    pub(crate) fn len(&self) -> usize {
        self.order.len
    }

    pub(crate) fn deferred_bytes(&self) -> u64 {
        self.deferred_bytes
    }

    /// Bytes of all, wherever they are.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.deferred_bytes)
    }

    /// Bytes that they take in memory.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.waiting_bytes().saturating_sub(self.spills.bytes())
    }

    /// The incomplete one put last.
    pub(crate) fn newest(&self) -> Option<NodeId> {
        self.order.newest()
    }

    /// The incomplete one in memory that was put longest ago, and when.
    pub(crate) fn oldest_held(&self) -> Option<(NodeId, u64)> {
        let mut held = self.oldest_first().filter(|(_, pending)| pending.elems.spilled.is_none());
        held.next().map(|(id, pending)| (id, pending.used))
    }

    pub(crate) fn has_deferred(&self) -> bool {
        self.deferred.len > 0
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<&PendingChunk> {
        self.nodes.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: NodeId) -> Option<&mut PendingChunk> {
        self.nodes.get_mut(id)
    }

    /// An incomplete chunk that is about to be put.
    #[inline]
    pub(crate) fn touch(&mut self, id: NodeId) -> Option<&mut PendingChunk> {
        if self.order.newest() != Some(id) {
            self.nodes.get(id)?;
            self.nodes.unlink(&mut self.order, id);
            self.nodes.link(&mut self.order, id);
        }
        self.nodes.get_mut(id)
    }

    pub(crate) fn insert(&mut self, keys: &mut PendingIds, pending: PendingChunk) -> NodeId {
        self.bytes = self.bytes.saturating_add(pending.cost());
        let key = pending.key.clone();
        let id = self.nodes.insert(pending);
        self.nodes.link(&mut self.order, id);
        keys.insert(key, id);
        id
    }

    pub(crate) fn remove(&mut self, keys: &mut PendingIds, key: &[u64], spare: &mut SpareMemory) {
        if let Some(elems) = self.take(keys, key) {
            spare.put(elems.bytes);
        }
    }

    /// Removes a chunk, and gives its elements. The place of spilled ones is free then.
    pub(crate) fn take(&mut self, keys: &mut PendingIds, key: &[u64]) -> Option<ChunkElems> {
        let id = keys.remove(key)?;
        let pending = self.nodes.get(id)?;
        let (list, bytes) = match pending.is_deferred {
            true => (&mut self.deferred, &mut self.deferred_bytes),
            false => (&mut self.order, &mut self.bytes),
        };
        *bytes = bytes.saturating_sub(pending.cost());
        self.nodes.unlink(list, id);
        let elems = self.nodes.remove(id)?.elems;
        elems.spilled.into_iter().for_each(|slot| self.spills.release(slot));
        Some(elems)
    }

    /// A chunk has become complete, and waits for others.
    pub(crate) fn defer(&mut self, id: NodeId) {
        let Some(pending) = self.nodes.get_mut(id).filter(|pending| !pending.is_deferred) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(pending.cost());
        pending.is_deferred = true;
        // Nobody asks any more what of it is written.
        pending.elems.written = WrittenBits::default();
        self.deferred_bytes = self.deferred_bytes.saturating_add(pending.cost());
        self.nodes.unlink(&mut self.order, id);
        self.nodes.link(&mut self.deferred, id);
    }

    /// Takes the elements of a chunk out, to be given back by [`PendingChunks::put_back`].
    pub(crate) fn lend(&mut self, id: NodeId) -> ChunkElems {
        let Some(pending) = self.nodes.get_mut(id) else { return ChunkElems::default() };
        let spilled = pending.elems.spilled;
        std::mem::replace(&mut pending.elems, ChunkElems { spilled, ..ChunkElems::default() })
    }

    pub(crate) fn put_back(&mut self, id: NodeId, elems: ChunkElems) {
        let Some(pending) = self.nodes.get_mut(id) else { return };
        let spilled = pending.elems.spilled.filter(|_| elems.spilled.is_none());
        spilled.into_iter().for_each(|slot| self.spills.release(slot));
        (pending.elems, pending.used) = (elems, tick());
    }

    /// The storage has it as it is now.
    pub(crate) fn clean(&mut self, id: NodeId) {
        if let Some(pending) = self.nodes.get_mut(id) {
            pending.dirty = false;
        }
    }

    /// All incomplete ones, those put longest ago first.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = (NodeId, &PendingChunk)> {
        self.all_of(&self.order)
    }

    /// All deferred chunks, in the order in which they became complete.
    pub(crate) fn deferred(&self) -> impl Iterator<Item = (NodeId, &PendingChunk)> {
        self.all_of(&self.deferred)
    }

    fn all_of(&self, list: &RecencyList) -> impl Iterator<Item = (NodeId, &PendingChunk)> {
        let mut next = list.oldest();
        std::iter::from_fn(move || {
            let id = next?;
            next = self.nodes.newer(id);
            Some((id, self.nodes.get(id)?))
        })
    }
}

impl PendingChunk {
    /// Bytes that it takes.
    pub(crate) fn cost(&self) -> u64 {
        self.elems.cost()
    }
}

impl ChunkElems {
    pub(crate) fn cost(&self) -> u64 {
        let spilled = self.spilled.map_or(0, SpillSlot::bytes);
        (self.bytes.len() + self.written.bytes()) as u64 + spilled
    }

    /// All of it, to be stored.
    pub(crate) fn ready<'a>(&'a self, spills: &'a Spills) -> ChunkSource<'a> {
        match self.spilled {
            Some(place) => ChunkSource::Spilled(spills, place),
            None => ChunkSource::Ready(&self.bytes),
        }
    }

    /// Puts the elements of a part.
    pub(crate) fn put(
        &mut self,
        part: &PutPart,
        source: &PutMemory<'_>,
        block: &mut Vec<u8>,
    ) -> zonda_convert::Converted {
        let bytes = part.n_elems() * source.encode.file_size();
        let _span = gathering(bytes);
        part.put(source.encode, source.src, &mut self.bytes, Some(&mut self.written), block)
    }
}

/// The event of elements that go into a chunk. That of a few would take longer than they do.
#[inline(always)]
fn gathering(bytes: usize) -> zonda_trace::TraceSpan {
    if bytes < TRACED_GATHER_BYTES {
        return zonda_trace::TraceSpan::none();
    }
    let args = || zonda_trace::Args { bytes: bytes as u64, ..zonda_trace::Args::default() };
    zonda_trace::span(zonda_trace::EventKind::ChunkGather, args)
}

/// The chunks of one array that wait, for reads.
pub(crate) struct PendingOfArray<'a> {
    pub keys: &'a PendingIds,
    pub chunks: &'a PendingChunks,
}

impl NewerChunks for PendingOfArray<'_> {
    fn chunk<'a>(
        &'a self,
        key: &[u64],
        room: &'a mut Vec<u8>,
    ) -> Result<Option<&'a [u8]>, ChunkError> {
        let pending = self.keys.get(key).and_then(|&id| self.chunks.get(id));
        let Some(elems) = pending.map(|pending| &pending.elems) else { return Ok(None) };
        let Some(slot) = elems.spilled else { return Ok(Some(&elems.bytes)) };
        if self.chunks.spills.is_inherited() && pending.is_some_and(|pending| !pending.dirty) {
            // The storage has it as it is here.
            return Ok(None);
        }
        let no_memory = ChunkError::NoMemory { bytes: slot.bytes() };
        lengthen(room, usize::try_from(slot.bytes()).map_err(|_| no_memory)?)?;
        self.chunks.spills.read(key, slot, room)?;
        Ok(Some(room))
    }
}
