//! The extents of the data of one dataset.

use std::sync::Arc;

use super::walk::UsageWalk;
use super::{ExtentKind, UsedExtent};
use crate::btree_v1::NodeType;
use crate::btree_v2::{BtreeV2, record_type};
use crate::chunk_index::ChunkIndex;
use crate::message::{ChunkIndexKind, ChunkedLayout, DataLayout};
use crate::{FileRange, Object, Result};

impl UsageWalk<'_> {
    pub(super) fn dataset(&mut self, object: &Object) {
        if let Err(error) = self.data(object) {
            self.usage.fault(Some(object.addr()), error);
        }
    }

    fn data(&mut self, object: &Object) -> Result<()> {
        let owner = Some(object.addr());
        let file = self.file;
        match object.layout(file)? {
            DataLayout::Compact { .. } | DataLayout::Contiguous { addr: None, .. } => {}
            // The mapping is in the global heap.
            DataLayout::Virtual { .. } => {}
            DataLayout::Contiguous { addr: Some(addr), len } => {
                let len = match len {
                    Some(len) => len,
                    None => {
                        let elem = u64::from(object.datatype(file)?.size);
                        let dims = object.dataspace(file)?.dims;
                        dims.iter().fold(elem, |bytes, &dim| bytes.saturating_mul(dim))
                    }
                };
                self.claim(ExtentKind::Contiguous, owner, addr, len);
            }
            DataLayout::Chunked(layout) => self.chunked(object, &layout)?,
        }
        Ok(())
    }

    fn chunked(&mut self, object: &Object, layout: &ChunkedLayout) -> Result<()> {
        let (owner, file) = (object.addr(), self.file);
        let space = object.dataspace(file)?;
        let filtered = !object.filters(file)?.is_empty();
        let index =
            ChunkIndex::new(Arc::clone(file), layout, &space.dims, &space.max_dims, filtered)?;
        let nodes = self.index(layout, &index, filtered)?;
        for (addr, len) in nodes {
            self.claim(ExtentKind::ChunkIndex, Some(owner), addr, len);
        }
        let elem = u64::from(layout.elem_size);
        let chunk_bytes = layout.chunk_dims.iter().fold(elem, |n, &dim| n.saturating_mul(dim));
        let (mut n_chunks, mut n_jumps, mut unused, mut reached) = (0u64, 0u64, 0u64, None);
        let usage = &mut self.usage;
        index.for_each(&mut |coords, chunk| {
            n_chunks = n_chunks.saturating_add(1);
            if reached.is_some_and(|reached| reached != chunk.at) {
                n_jumps = n_jumps.saturating_add(1);
            }
            reached = Some(chunk.at.saturating_add(chunk.len));
            if !filtered {
                let inside = inside(coords, &layout.chunk_dims, &space.dims).saturating_mul(elem);
                unused = unused.saturating_add(chunk_bytes.saturating_sub(inside));
            }
            let (kind, owner) = (ExtentKind::Chunks, Some(owner));
            usage.claim(UsedExtent { at: chunk.at, len: chunk.len, kind, owner });
        })?;
        let of = self.usage.objects.entry(owner).or_default();
        (of.n_chunks, of.n_jumps, of.unused_bytes) = (n_chunks, n_jumps, unused);
        Ok(())
    }

    /// The extents of an index of chunks.
    fn index(
        &self,
        layout: &ChunkedLayout,
        index: &ChunkIndex,
        filtered: bool,
    ) -> Result<Vec<FileRange>> {
        let Some(addr) = layout.addr else { return Ok(Vec::new()) };
        match layout.index {
            ChunkIndexKind::BtreeV1 => {
                // Size and mask, and the offsets of the chunk with one for the element size.
                let key_len = layout.chunk_dims.len().saturating_add(2).saturating_mul(8);
                self.nodes(addr, NodeType::Chunk, key_len, self.file.superblock().chunk_k)
            }
            ChunkIndexKind::BtreeV2 { .. } => {
                let kind = if filtered { record_type::FILTERED_CHUNK } else { record_type::CHUNK };
                BtreeV2::open(self.file, addr, kind)?.extents(self.file)
            }
            _ => index.array_extents(),
        }
    }
}

/// Elements of a chunk that are inside the extent of the dataset.
fn inside(coords: &[u64], chunk: &[u64], dims: &[u64]) -> u64 {
    coords.iter().zip(chunk).zip(dims).fold(1, |n: u64, ((&at, &len), &dim)| {
        n.saturating_mul(dim.saturating_sub(at.saturating_mul(len)).min(len))
    })
}
