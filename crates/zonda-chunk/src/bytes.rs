//! Memory that decoded chunks are kept in.

use std::ops::{Deref, DerefMut};

use memmap2::{Advice, MmapMut};

use crate::ChunkError;
use crate::stored::lengthen;

/// Bytes from which on memory comes from the system: it is clear already, and may have large pages.
const MAPPED_BYTES: usize = 1 << 20;

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
            // One fault for 2 MiB instead of 512: on a virtual machine they cost as much as
            // inflating. Not every system has it, and none needs it.
            #[cfg(target_os = "linux")]
            let _ = mapped.advise(Advice::HugePage);
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
