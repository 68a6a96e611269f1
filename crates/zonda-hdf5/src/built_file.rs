//! Files built byte by byte, for tests of single structures.

use crate::checksum::lookup3;
use crate::{File, FileAddr, NewBlocks, ReadLimits, Sizes, Space};

/// A file in the making.
#[derive(Default)]
pub(crate) struct BuiltFile {
    pub(crate) bytes: Vec<u8>,
}

impl BuiltFile {
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

/// A file of what `make` puts into fresh space, which begins at byte 64.
pub(crate) fn written<T>(sizes: Sizes, make: impl FnOnce(&mut NewBlocks<'_>) -> T) -> (File, T) {
    let storage = crate::testing::storage(&[]);
    let mut space = Space::new(64);
    let mut fresh = NewBlocks::new(&mut space);
    let made = make(&mut fresh);
    fresh.write(&File::bare(storage.clone(), sizes, ReadLimits::default())).unwrap();
    (File::bare(storage, sizes, ReadLimits::default()), made)
}

pub(crate) fn at(addr: u64) -> FileAddr {
    FileAddr(addr)
}

/// Concatenates little-endian numbers, each of the width given.
pub(crate) fn le(numbers: &[(u64, usize)]) -> Vec<u8> {
    let number = |&(value, width): &(u64, usize)| value.to_le_bytes()[..width].to_vec();
    numbers.iter().flat_map(number).collect()
}

/// A version 2 object header with these messages: type, body.
pub(crate) fn object(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, message) in messages {
        body.extend(le(&[(u64::from(*kind), 1), (message.len() as u64, 2), (0, 1)]));
        body.extend(message);
    }
    let mut bytes = b"OHDR\x02\x01".to_vec();
    bytes.extend(le(&[(body.len() as u64, 2)]));
    bytes.extend(body);
    bytes
}

/// A fractal heap of one direct block of 4096 bytes with one object in it: its address, and the
/// object's id of as many bytes as asked for.
pub(crate) fn heap_of_one(built: &mut BuiltFile, bytes: &[u8], id_len: usize) -> (u64, Vec<u8>) {
    const BLOCK_HEAD: u64 = 21;
    let addr = built.bytes.len().next_multiple_of(8) as u64;
    // Signature to root row count, and the checksum.
    const HEADER: u64 = 146;
    let root = (addr + HEADER).next_multiple_of(8);
    let mut header = b"FRHP".to_vec();
    header.extend(le(&[(0, 1), (id_len as u64, 2), (0, 2), (0, 1), (4096, 4)]));
    header.extend(le(&[(0, 8), (u64::MAX, 8), (0, 8), (u64::MAX, 8)]));
    header.extend([0; 64]);
    header.extend(le(&[(4, 2), (4096, 8), (65536, 8), (32, 2), (1, 2), (root, 8), (0, 2)]));
    assert_eq!(built.put_checked(&header), addr);
    let mut block = b"FHDB".to_vec();
    block.extend(le(&[(0, 1), (addr, 8), (0, 4)]));
    block.resize(usize::try_from(BLOCK_HEAD).unwrap(), 0);
    block.extend(bytes);
    block.resize(4096, 0);
    assert_eq!(built.put(&block), root);
    let mut id = le(&[(0, 1), (BLOCK_HEAD, 4), (bytes.len() as u64, 2)]);
    id.resize(id_len, 0);
    (addr, id)
}

/// A version 2 B-tree of one leaf.
pub(crate) fn tree_of_one_leaf(built: &mut BuiltFile, kind: u8, records: &[Vec<u8>]) -> u64 {
    let mut leaf = b"BTLF\x00".to_vec();
    leaf.push(kind);
    leaf.extend(records.concat());
    let leaf = built.put_checked(&leaf);
    let (count, len) = (records.len() as u64, records[0].len() as u64);
    let mut header = b"BTHD\x00".to_vec();
    header.extend(le(&[(u64::from(kind), 1), (count * len + 10, 4), (len, 2), (0, 2)]));
    header.extend(le(&[(100, 1), (40, 1), (leaf, 8), (count, 2), (count, 8)]));
    built.put_checked(&header)
}
