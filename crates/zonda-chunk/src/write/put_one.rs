//! Single elements of a chunk that waits in memory: the short way of programs that put, or get, value by value.

use zonda_convert::{Converted, Decoder, Encoder};

use super::pending::PendingChunks;
use super::writer_array::WriterArray;
use super::{ArrayId, ChunkWriter};
use crate::one_element::{key_of, number_in, slot_of};
use crate::recency::NodeId;
use crate::selection::Coords;
use crate::tuning::RECENT_CHUNKS;

/// Chunks of one array that were put to lately, by [`slot_of`]. A number may be that of a chunk which is gone, or of another chunk by now: who
/// takes one looks whether its element is there.
#[derive(Debug, Default)]
pub(super) struct RecentChunks {
    /// Empty before the first is noted.
    nodes: Box<[u32]>,
}

impl RecentChunks {
    #[inline]
    fn get(&self, slot: usize) -> Option<NodeId> {
        self.nodes.get(slot).map(|&node| node as NodeId)
    }

    fn note(&mut self, slot: usize, node: NodeId) {
        if self.nodes.is_empty() {
            self.nodes = vec![u32::MAX; RECENT_CHUNKS].into();
        }
        if let (Some(place), Ok(node)) = (self.nodes.get_mut(slot), u32::try_from(node)) {
            *place = node;
        }
    }
}

/// An element that is looked for among the chunks that wait.
#[derive(Clone, Copy)]
struct SoughtElement<'a> {
    /// Index of its array.
    array: usize,
    chunk_dims: &'a [u64],
    extent: &'a [u64],
    at: &'a [usize],
}

impl SoughtElement<'_> {
    /// Its number in a chunk, if it is there and the chunk is in memory and may change.
    #[inline(always)]
    fn number_in(self, pending: &PendingChunks, node: NodeId) -> Option<usize> {
        let SoughtElement { array, chunk_dims, extent, at } = self;
        let chunk = pending.get(node)?;
        if chunk.array != array || chunk.is_deferred || chunk.elems.spilled.is_some() {
            return None;
        }
        number_in(chunk_dims, extent, chunk.origin.iter().copied(), at)
    }
}

impl WriterArray {
    /// What is looked for, if the lists fit the array.
    #[inline(always)]
    fn sought<'a>(
        &'a self,
        id: ArrayId,
        extent: &'a [u64],
        at: &'a [usize],
        elem_bytes: usize,
    ) -> Option<SoughtElement<'a>> {
        let chunk_dims = &self.chunk_dims[..];
        let fits = extent.len() == chunk_dims.len()
            && at.len() == chunk_dims.len()
            && elem_bytes == self.elem_size
            && self.may_have(extent);
        fits.then_some(SoughtElement { array: id.0, chunk_dims, extent, at })
    }
}

impl ChunkWriter {
    /// Puts the element `at` of an array whose shape is `extent`, as [`ChunkWriter::put`] does. `None` where that has more to do: the chunk
    /// does not wait in memory, or is complete with this element. Then nothing was put.
    #[inline]
    pub fn put_one(
        &mut self,
        id: ArrayId,
        extent: &[u64],
        at: &[usize],
        encoder: &Encoder,
        src: &[u8],
    ) -> Option<Converted> {
        if src.len() != encoder.mem_size() {
            return None;
        }
        let array = self.arrays.get_mut(id.0)?.as_mut()?;
        let (elem, pending) = (array.elem_size, &self.pending);
        let sought = array.sought(id, extent, at, encoder.ext_size())?;
        let last = array.last.and_then(|node| Some((node, sought.number_in(pending, node)?)));
        let (node, number) = match last {
            Some(found) => found,
            None => {
                let slot = slot_of(key_of(sought.chunk_dims, at));
                let recent = array.recent.get(slot);
                let found = recent.and_then(|node| Some((node, sought.number_in(pending, node)?)));
                let found = match found {
                    Some(found) => found,
                    None => {
                        let key: Coords = key_of(sought.chunk_dims, at).collect();
                        let node = *array.keys.get(&key)?;
                        let number = sought.number_in(pending, node)?;
                        array.recent.note(slot, node);
                        (node, number)
                    }
                };
                array.last = Some(found.0);
                found
            }
        };
        let pending = self.pending.touch(node)?;
        let elems = &mut pending.elems;
        let dst = elems.bytes.get_mut(number * elem..)?.get_mut(..elem)?;
        if !elems.written.mark_unless_last(number) {
            return None;
        }
        pending.dirty = true;
        Some(encoder.encode(src, dst))
    }

    /// Reads the element `at` of an array whose shape is `extent`, as [`ChunkWriter::read`] does. `None` where that has more to do, or fails:
    /// then `out` holds anything.
    #[inline]
    pub fn read_one(
        &self,
        id: ArrayId,
        extent: &[u64],
        at: &[usize],
        decoder: &Decoder,
        out: &mut [u8],
    ) -> Option<Converted> {
        let array = self.arrays.get(id.0)?.as_ref()?;
        if array.keys.is_empty() {
            return array.read.read_one(extent, at, decoder, out);
        }
        if out.len() != decoder.mem_size() {
            return None;
        }
        let sought = array.sought(id, extent, at, decoder.ext_size())?;
        let found = |node| Some((node, sought.number_in(&self.pending, node)?));
        let recent = || array.recent.get(slot_of(key_of(sought.chunk_dims, at))).and_then(found);
        let (node, number) = match array.last.and_then(found).or_else(recent) {
            Some(found) => found,
            None => {
                let key: Coords = key_of(sought.chunk_dims, at).collect();
                match array.keys.get(&key) {
                    Some(&node) => found(node)?,
                    None => return array.read.read_one(extent, at, decoder, out),
                }
            }
        };
        let bytes = &self.pending.get(node)?.elems.bytes;
        let src = bytes.get(number * array.elem_size..)?.get(..array.elem_size)?;
        Some(decoder.decode(src, out))
    }
}
