//! Memory that decoded chunks are kept in.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use crate::ChunkError;
use crate::stored::lengthen;

/// Bytes from which on memory comes from the system, clear already.
pub(crate) const MAPPED_BYTES: usize = 1 << 20;

/// The bytes of a chunk.
#[derive(Debug)]
pub(crate) enum Bytes {
    Heap(Vec<u8>),
    Mapped(MmapMut),
}

impl Bytes {
    /// `len` bytes; `spare` is used if it has that length, and keeps what it holds.
    pub(crate) fn new(len: usize, spare: Option<Bytes>) -> Result<Bytes, ChunkError> {
        if let Some(spare) = spare.filter(|spare| spare.len() == len) {
            return Ok(spare);
        }
        if len >= MAPPED_BYTES
            && let Ok(mapped) = MmapMut::map_anon(len)
        {
            return Ok(Bytes::Mapped(mapped));
        }
        let mut bytes = Vec::new();
        lengthen(&mut bytes, len)?;
        Ok(Bytes::Heap(bytes))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Heap(bytes) => bytes,
            Bytes::Mapped(bytes) => bytes,
        }
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Bytes::Heap(bytes) => bytes,
            Bytes::Mapped(bytes) => bytes,
        }
    }
}
