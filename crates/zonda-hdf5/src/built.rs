//! Files built byte by byte, for tests of single structures.

use crate::checksum::lookup3;
use crate::{File, FileAddr};

/// A file in the making.
#[derive(Default)]
pub(crate) struct Built {
    pub(crate) bytes: Vec<u8>,
}

impl Built {
    /// Puts a structure at the next multiple of 8 and says where that is.
    pub(crate) fn put(&mut self, structure: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(structure);
        at
    }

    /// The same with the checksum of the structure after it.
    pub(crate) fn put_checked(&mut self, structure: &[u8]) -> u64 {
        let at = self.put(structure);
        self.bytes.extend(lookup3(structure, 0).to_le_bytes());
        at
    }

    pub(crate) fn file(&self) -> File {
        crate::testing::file(&self.bytes)
    }
}

pub(crate) fn at(addr: u64) -> FileAddr {
    FileAddr(addr)
}

/// Concatenates little-endian numbers, each of the width given.
pub(crate) fn le(numbers: &[(u64, usize)]) -> Vec<u8> {
    let number = |&(value, width): &(u64, usize)| value.to_le_bytes()[..width].to_vec();
    numbers.iter().flat_map(number).collect()
}
