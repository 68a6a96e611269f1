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
