//! Memory that decoded chunks are kept in.

use std::ops::{Deref, DerefMut};

use zonda_runtime::memory::{Block, Blocks};

use crate::ChunkError;
use crate::stored::lengthen;

/// The bytes of a chunk.
#[derive(Debug)]
pub(crate) enum ChunkBytes {
    Heap(Vec<u8>),
    Block(Block),
}

impl ChunkBytes {
    /// As many bytes as a block has, of any value; `spare` is used if it has that length. `stays`: it will not be evicted soon.
    pub(crate) fn new(
        blocks: &Blocks,
        spare: Option<ChunkBytes>,
        stays: bool,
    ) -> Result<ChunkBytes, ChunkError> {
        let len = blocks.block_bytes();
        if let Some(spare) = spare.filter(|spare| spare.len() == len) {
            return Ok(spare);
        }
        if let Some(block) = blocks.take(stays) {
            return Ok(ChunkBytes::Block(block));
        }
        let mut bytes = Vec::new();
        lengthen(&mut bytes, len)?;
        Ok(ChunkBytes::Heap(bytes))
    }
}

impl Deref for ChunkBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            ChunkBytes::Heap(bytes) => bytes,
            ChunkBytes::Block(bytes) => bytes,
        }
    }
}

impl DerefMut for ChunkBytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            ChunkBytes::Heap(bytes) => bytes,
            ChunkBytes::Block(bytes) => bytes,
        }
    }
}
