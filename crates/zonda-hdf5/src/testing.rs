//! Bytes of structures, put together for tests.

use std::sync::Arc;

use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use crate::checksum::lookup3;
use crate::{File, ReadLimits, Result, Sizes, Writer};

/// Bytes of a structure.
#[derive(Clone, Debug, Default)]
pub(crate) struct StructureBytes {
    pub(crate) bytes: Vec<u8>,
}

impl StructureBytes {
    /// Begins with `len` zeros: what is before a structure.
    pub(crate) fn new(len: usize) -> StructureBytes {
        StructureBytes { bytes: vec![0; len] }
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> StructureBytes {
        self.bytes.extend(bytes);
        self
    }

    pub(crate) fn then(self, other: StructureBytes) -> StructureBytes {
        self.bytes(&other.bytes)
    }

    pub(crate) fn u16(self, value: u16) -> StructureBytes {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(self, value: u32) -> StructureBytes {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> StructureBytes {
        self.bytes(&value.to_le_bytes())
    }

    /// The checksum of all bytes so far.
    pub(crate) fn checksum(self) -> StructureBytes {
        let sum = lookup3(&self.bytes, 0);
        self.u32(sum)
    }

    /// Zeros up to byte `at`.
    pub(crate) fn pad_to(mut self, at: usize) -> StructureBytes {
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
    File::bare(storage(bytes), Sizes::EIGHT, ReadLimits::default())
}

/// Bytes given as hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|digit| !digit.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// What an `encode` writes, addresses and lengths having 8 bytes.
pub(crate) fn encoded(encode: impl FnOnce(&mut Writer) -> Result<()>) -> Result<Vec<u8>> {
    let mut writer = Writer::new("test", Sizes::EIGHT);
    encode(&mut writer).map(|()| writer.finish())
}
