//! Bytes of structures, put together for tests.

use std::sync::Arc;

use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use crate::checksum::lookup3;
use crate::{File, Limits, Sizes};

/// Bytes of a structure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Builder {
    pub(crate) bytes: Vec<u8>,
}

impl Builder {
    /// Begins with `len` zeros: what is before a structure.
    pub(crate) fn new(len: usize) -> Builder {
        Builder { bytes: vec![0; len] }
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Builder {
        self.bytes.extend(bytes);
        self
    }

    pub(crate) fn then(self, other: Builder) -> Builder {
        self.bytes(&other.bytes)
    }

    pub(crate) fn u16(self, value: u16) -> Builder {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(self, value: u32) -> Builder {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Builder {
        self.bytes(&value.to_le_bytes())
    }

    /// The checksum of all bytes so far.
    pub(crate) fn checksum(self) -> Builder {
        let sum = lookup3(&self.bytes, 0);
        self.u32(sum)
    }

    /// Zeros up to byte `at`.
    pub(crate) fn pad_to(mut self, at: usize) -> Builder {
        assert!(self.bytes.len() <= at, "{} bytes are there already", self.bytes.len());
        self.bytes.resize(at, 0);
        self
    }
}

/// A storage with these bytes.
pub(crate) fn storage(bytes: &[u8]) -> Arc<dyn Storage> {
    let memory = Memory::new();
    memory.write_at(0, bytes).unwrap();
    Arc::new(memory)
}

/// A file with these bytes and no superblock: all addresses are bytes of the storage.
pub(crate) fn file(bytes: &[u8]) -> File {
    File::bare(storage(bytes), Sizes::EIGHT, Limits::default())
}
