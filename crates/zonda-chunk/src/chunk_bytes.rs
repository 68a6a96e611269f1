//! Memory that decoded chunks are kept in.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use crate::ChunkError;
use crate::stored::lengthen;
use crate::tuning::MAPPED_BYTES;

/// The bytes of a chunk.
#[derive(Debug)]
pub(crate) enum ChunkBytes {
    Heap(Vec<u8>),
    Mapped(MmapMut),
}

impl ChunkBytes {
    /// `len` bytes; `spare` is used if it has that length, and keeps what it holds.
    pub(crate) fn new(len: usize, spare: Option<ChunkBytes>) -> Result<ChunkBytes, ChunkError> {
        if let Some(spare) = spare.filter(|spare| spare.len() == len) {
            return Ok(spare);
        }
        if len >= MAPPED_BYTES
            && let Ok(mapped) = MmapMut::map_anon(len)
        {
            return Ok(ChunkBytes::Mapped(mapped));
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
            ChunkBytes::Mapped(bytes) => bytes,
        }
    }
}

impl DerefMut for ChunkBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            ChunkBytes::Heap(bytes) => bytes,
            ChunkBytes::Mapped(bytes) => bytes,
        }
    }
}
