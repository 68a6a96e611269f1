//! Symbol table nodes ("SNOD") and entries: the members of old groups.
//! Spec: HDF5 File Format, "Disk Format: Level 1B - Group Symbol Table Nodes" and "Level 1C -
//! Symbol Table Entry".
//! Watch: names and the targets of soft links are offsets in the group's local heap; the header's
//! address of a soft link (cache type 2) is undefined.

use crate::{File, FileAddr, Reader, Result};

const NODE: &str = "symbol table node";

/// Bytes of a node that are asked for first: a node of the default size, 2 x 4 entries.
const FIRST_READ: u64 = 8 + 8 * 40;

/// One member of an old group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Offset of the name in the local heap.
    pub name: u64,
    /// What it stands for.
    pub target: EntryTarget,
}

/// What an entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryTarget {
    /// An object header.
    Object(FileAddr),
    /// A path, at this offset of the local heap.
    Soft(u64),
}

impl Entry {
    /// Bytes of an entry.
    #[must_use]
    pub fn encoded_len(sizes: crate::Sizes) -> usize {
        usize::from(sizes.offset).saturating_mul(2).saturating_add(24)
    }

    /// Decodes one entry.
    ///
    /// # Errors
    /// An unknown cache type; an object without an address.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Entry> {
        // The offset of a name has the width of an address.
        let name = reader.uint(usize::from(reader.sizes().offset))?;
        let object = reader.addr()?;
        let cache_type = reader.u32()?;
        let _reserved = reader.u32()?;
        let mut scratch = reader.sub(16)?;
        let target = match (cache_type, object) {
            (2, _) => EntryTarget::Soft(u64::from(scratch.u32()?)),
            (0 | 1, Some(object)) => EntryTarget::Object(object),
            (0 | 1, None) => return Err(reader.missing("the object of an entry")),
            (other, _) => return Err(reader.bad("the cache type of an entry", u64::from(other))),
        };
        Ok(Entry { name, target })
    }
}

/// Bytes of a node with `count` entries.
#[must_use]
pub fn node_len(file: &File, count: usize) -> u64 {
    let entries = count.saturating_mul(Entry::encoded_len(file.sizes()));
    (entries as u64).saturating_add(8)
}

/// Reads the entries of a node, in the order of their names.
///
/// # Errors
/// Damaged nodes; [`HdfError::OutOfFile`](crate::HdfError::OutOfFile).
pub fn read_node(file: &File, addr: FileAddr) -> Result<Vec<Entry>> {
    let mut bytes = file.read_up_to(NODE, addr, FIRST_READ)?;
    let mut reader = file.reader(NODE, addr, &bytes);
    reader.signature(*b"SNOD")?;
    reader.version(1..=1)?;
    reader.skip(1)?;
    let count = u64::from(reader.u16()?);
    let entry_len = Entry::encoded_len(reader.sizes());
    let len = count.saturating_mul(entry_len as u64).saturating_add(8);
    if len > bytes.len() as u64 {
        bytes = file.read(NODE, addr, len)?;
    }
    let mut reader = file.reader(NODE, addr, &bytes);
    reader.skip(8)?;
    let mut entries = Vec::with_capacity(reader.count(count, entry_len)?);
    for _ in 0..count {
        entries.push(Entry::decode(&mut reader)?);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HdfError;
    use crate::built::{Built, at, le};

    fn node(entries: &[(u64, u64, u64, u64)]) -> Vec<u8> {
        let mut bytes = b"SNOD".to_vec();
        bytes.extend(le(&[(1, 1), (0, 1), (entries.len() as u64, 2)]));
        for &(name, object, cache_type, scratch) in entries {
            bytes.extend(le(&[(name, 8), (object, 8), (cache_type, 4), (0, 4)]));
            bytes.extend(le(&[(scratch, 8), (0, 8)]));
        }
        bytes
    }

    #[test]
    fn entries_of_all_cache_types() {
        let mut built = Built::default();
        let mut many = vec![(8, 96, 0, 0), (16, 200, 1, 1000), (24, u64::MAX, 2, 40)];
        many.extend((0..20).map(|i| (32 + i, 300 + i, 0, 0)));
        let addr = built.put(&node(&many));
        let entries = read_node(&built.file(), at(addr)).unwrap();
        assert_eq!(entries.len(), 23);
        assert_eq!(entries[0], Entry { name: 8, target: EntryTarget::Object(at(96)) });
        assert_eq!(entries[1], Entry { name: 16, target: EntryTarget::Object(at(200)) });
        assert_eq!(entries[2], Entry { name: 24, target: EntryTarget::Soft(40) });
        assert_eq!(entries[22], Entry { name: 51, target: EntryTarget::Object(at(319)) });
        built.bytes.pop();
        assert!(matches!(read_node(&built.file(), at(addr)), Err(HdfError::OutOfFile { .. })));
    }

    #[test]
    fn bad_entries_are_errors() {
        for entry in [(8, u64::MAX, 0, 0), (8, 96, 3, 0)] {
            let mut built = Built::default();
            let addr = built.put(&node(&[entry]));
            assert!(read_node(&built.file(), at(addr)).is_err(), "{entry:?}");
        }
    }
}
