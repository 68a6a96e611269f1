//! Chunks in memory: incomplete ones, in the order in which they were last put, and complete ones
//! that wait for others of their kind, in the order in which they became so.

use hashbrown::HashMap;

use super::part::Part;
use super::spill::{Away, Spills};
use super::store::{self, Source, Spare};
use super::written::Written;
use crate::ChunkError;
use crate::array::Newer;
use crate::recency::{Id, List, Nodes};
use crate::selection::Coords;
use crate::stored::lengthen;
use zonda_runtime::memory::tick;

/// A chunk that waits in memory.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Index of its array.
    pub array: usize,
    pub key: Coords,
    /// Its first element in the array.
    pub origin: Coords,
    pub body: Body,
    /// The storage does not have it as it is.
    pub dirty: bool,
    /// It is complete, not in the storage, and not changed any more.
    pub is_ripe: bool,
    /// When it was put last, but for runs into a chunk that is in memory.
    pub used: u64,
}

/// The elements of a chunk, in the file's form, and which of them were put.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub bytes: Vec<u8>,
    pub written: Written,
    /// Where they are if they are not in memory: then there are none here.
    pub away: Option<Away>,
}

/// All chunks of a file that wait.
#[derive(Debug, Default)]
pub(crate) struct PendingChunks {
    pub(super) nodes: Nodes<Pending>,
    /// Incomplete ones, oldest first, and the bytes they take.
    order: List,
    bytes: u64,
    /// Ripe ones, and the bytes of their elements.
    ripe: List,
    ripe_bytes: u64,
    /// Where those are for which there is no memory.
    pub(super) spills: Spills,
}

/// Numbers of the chunks of one array that wait.
pub(crate) type Keys = HashMap<Coords, Id>;

impl PendingChunks {
    /// Bytes of the incomplete ones.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many are incomplete.
    pub(crate) fn len(&self) -> usize {
        self.order.len
    }

    pub(crate) fn ripe_bytes(&self) -> u64 {
        self.ripe_bytes
    }

    /// Bytes of all, wherever they are.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.ripe_bytes)
    }

    /// Bytes that they take in memory.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.waiting_bytes().saturating_sub(self.spills.bytes())
    }

    /// The incomplete one put last.
    pub(crate) fn newest(&self) -> Option<Id> {
        self.order.newest()
    }

    /// The incomplete one in memory that was put longest ago, and when.
    pub(crate) fn oldest_held(&self) -> Option<(Id, u64)> {
        let mut held = self.oldest_first().filter(|(_, pending)| pending.body.away.is_none());
        held.next().map(|(id, pending)| (id, pending.used))
    }

    pub(crate) fn has_ripe(&self) -> bool {
        self.ripe.len > 0
    }

    pub(crate) fn get(&self, id: Id) -> Option<&Pending> {
        self.nodes.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut Pending> {
        self.nodes.get_mut(id)
    }

    /// An incomplete chunk that is about to be put.
    #[inline]
    pub(crate) fn touch(&mut self, id: Id) -> Option<&mut Pending> {
        if self.order.newest() != Some(id) {
            self.nodes.get(id)?;
            self.nodes.unlink(&mut self.order, id);
            self.nodes.link(&mut self.order, id);
        }
        self.nodes.get_mut(id)
    }

    pub(crate) fn insert(&mut self, keys: &mut Keys, pending: Pending) -> Id {
        self.bytes = self.bytes.saturating_add(pending.cost());
        let key = pending.key.clone();
        let id = self.nodes.insert(pending);
        self.nodes.link(&mut self.order, id);
        keys.insert(key, id);
        id
    }

    pub(crate) fn remove(&mut self, keys: &mut Keys, key: &[u64], spare: &mut Spare) {
        let Some(id) = keys.remove(key) else { return };
        let Some(pending) = self.nodes.get(id) else { return };
        let (list, bytes) = match pending.is_ripe {
            true => (&mut self.ripe, &mut self.ripe_bytes),
            false => (&mut self.order, &mut self.bytes),
        };
        *bytes = bytes.saturating_sub(pending.cost());
        self.nodes.unlink(list, id);
        if let Some(pending) = self.nodes.remove(id) {
            pending.body.away.into_iter().for_each(|slot| self.spills.release(slot));
            spare.put(pending.body.bytes);
        }
    }

    /// A chunk has become complete, and waits for others.
    pub(crate) fn ripen(&mut self, id: Id) {
        let Some(pending) = self.nodes.get_mut(id).filter(|pending| !pending.is_ripe) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(pending.cost());
        pending.is_ripe = true;
        // Nobody asks any more what of it is written.
        pending.body.written = Written::default();
        self.ripe_bytes = self.ripe_bytes.saturating_add(pending.cost());
        self.nodes.unlink(&mut self.order, id);
        self.nodes.link(&mut self.ripe, id);
    }

    /// Takes the elements of a chunk out, to be given back by [`PendingChunks::put_back`].
    pub(crate) fn lend(&mut self, id: Id) -> Body {
        let Some(pending) = self.nodes.get_mut(id) else { return Body::default() };
        let away = pending.body.away;
        std::mem::replace(&mut pending.body, Body { away, ..Body::default() })
    }

    pub(crate) fn put_back(&mut self, id: Id, body: Body) {
        let Some(pending) = self.nodes.get_mut(id) else { return };
        let away = pending.body.away.filter(|_| body.away.is_none());
        away.into_iter().for_each(|slot| self.spills.release(slot));
        (pending.body, pending.used) = (body, tick());
    }

    /// The storage has it as it is now.
    pub(crate) fn clean(&mut self, id: Id) {
        if let Some(pending) = self.nodes.get_mut(id) {
            pending.dirty = false;
        }
    }

    /// All incomplete ones, those put longest ago first.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = (Id, &Pending)> {
        self.all_of(&self.order)
    }

    /// All ripe ones, in the order in which they became so.
    pub(crate) fn ripe(&self) -> impl Iterator<Item = (Id, &Pending)> {
        self.all_of(&self.ripe)
    }

    fn all_of(&self, list: &List) -> impl Iterator<Item = (Id, &Pending)> {
        let mut next = list.oldest();
        std::iter::from_fn(move || {
            let id = next?;
            next = self.nodes.newer(id);
            Some((id, self.nodes.get(id)?))
        })
    }
}

impl Pending {
    /// Bytes that it takes.
    pub(crate) fn cost(&self) -> u64 {
        self.body.cost()
    }
}

impl Body {
    pub(crate) fn cost(&self) -> u64 {
        let away = self.away.map_or(0, Away::bytes);
        (self.bytes.len() + self.written.bytes()) as u64 + away
    }

    /// All of it, to be stored.
    pub(crate) fn ready<'a>(&'a self, spills: &'a Spills) -> store::Bytes<'a> {
        match self.away {
            Some(place) => store::Bytes::Away(spills, place),
            None => store::Bytes::Ready(&self.bytes),
        }
    }

    /// Puts the elements of a part.
    pub(crate) fn put(
        &mut self,
        part: &Part,
        source: &Source<'_>,
        block: &mut Vec<u8>,
    ) -> zonda_convert::Converted {
        let bytes = part.n_elems() * source.encode.file_size();
        let _span = gathering(bytes);
        part.put(source.encode, source.src, &mut self.bytes, Some(&mut self.written), block)
    }
}

/// The event of elements that go into a chunk. That of a few would take longer than they do.
#[inline(always)]
fn gathering(bytes: usize) -> zonda_trace::Span {
    const WORTH: usize = 4096;
    if bytes < WORTH {
        return zonda_trace::Span::none();
    }
    let args = || zonda_trace::Args { bytes: bytes as u64, ..zonda_trace::Args::default() };
    zonda_trace::span(zonda_trace::Kind::ChunkGather, args)
}

/// The chunks of one array that wait, for reads.
pub(crate) struct OfArray<'a> {
    pub keys: &'a Keys,
    pub chunks: &'a PendingChunks,
}

impl Newer for OfArray<'_> {
    fn chunk<'a>(
        &'a self,
        key: &[u64],
        room: &'a mut Vec<u8>,
    ) -> Result<Option<&'a [u8]>, ChunkError> {
        let pending = self.keys.get(key).and_then(|&id| self.chunks.get(id));
        let Some(body) = pending.map(|pending| &pending.body) else { return Ok(None) };
        let Some(slot) = body.away else { return Ok(Some(&body.bytes)) };
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
