//! Symbol table nodes ("SNOD") and entries: the members of old groups.
//! Spec: HDF5 File Format, "Disk Format: Level 1B - Group Symbol Table Nodes" and "Level 1C -
//! Symbol Table Entry".
//! Watch: names and the targets of soft links are offsets in the group's local heap; the header's
//! address of a soft link (cache type 2) is undefined.
//! Watch: the specification says that the offset of a name is as wide as an address; libraries make
//! it as wide as a length. Nodes are allocated for the most entries they may have.

mod extents;
mod write;

use crate::{File, FileAddr, HdfError, Reader, Result, Sizes, Superblock, Writer};

pub use extents::symbol_table_extents;
pub use write::write_symbol_table;

const NODE: &str = "symbol table node";

/// Bytes of a node that are asked for first: a node of the default size, 2 x 4 entries.
const FIRST_READ: u64 = 8 + 8 * 40;

/// Cache type of an entry that has the symbol table of its group.
pub(crate) const CACHED_TABLE: [u8; 4] = 1u32.to_le_bytes();

/// Where in a node the cache type of entry `i` is, with the cached bytes behind it, and the bytes
/// of both.
pub(crate) fn cache_at(sizes: Sizes, i: usize) -> (u64, u64) {
    let entry_len = SymbolTableEntry::encoded_len(sizes) as u64;
    let places = u64::from(sizes.length).saturating_add(u64::from(sizes.offset));
    let at = entry_len.saturating_mul(i as u64).saturating_add(8).saturating_add(places);
    (at, entry_len.saturating_sub(places))
}

/// One member of an old group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolTableEntry {
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

impl SymbolTableEntry {
    /// Bytes of an entry.
    #[must_use]
    pub fn encoded_len(sizes: Sizes) -> usize {
        usize::from(sizes.length).saturating_add(usize::from(sizes.offset)).saturating_add(24)
    }

    /// Decodes one entry.
    ///
    /// # Errors
    /// An unknown cache type; an object without an address.
    pub fn decode(reader: &mut Reader<'_>) -> Result<SymbolTableEntry> {
        let name = reader.length()?;
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
        Ok(SymbolTableEntry { name, target })
    }

    /// Encodes it. Of an object it has the address alone (cache type 0).
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] where the target of a soft link is behind the first 4 GiB of the heap,
    /// and for addresses and offsets that are too wide.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.length(self.name)?;
        let (object, cache_type, target) = match self.target {
            EntryTarget::Object(object) => (Some(object), 0, 0),
            EntryTarget::Soft(path) => (None, 2, path),
        };
        writer.addr(object)?.u32(cache_type).u32(0).uint(target, 4)?.zeros(12);
        Ok(())
    }
}

/// Most entries that a node may have.
fn most_entries(superblock: &Superblock) -> usize {
    usize::from(superblock.group_leaf_k).saturating_mul(2)
}

/// Bytes that a node takes of a file, whatever the number of its entries.
fn node_space(superblock: &Superblock) -> u64 {
    let entries =
        most_entries(superblock).saturating_mul(SymbolTableEntry::encoded_len(superblock.sizes));
    (entries as u64).saturating_add(8)
}

/// Encodes a node of these entries, which are in the order of their names.
fn encode_node(entries: &[SymbolTableEntry], superblock: &Superblock) -> Result<Vec<u8>> {
    let too_large = HdfError::TooLarge { structure: NODE, value: entries.len() as u64 };
    let count = u16::try_from(entries.len()).map_err(|_| too_large.clone())?;
    let space = usize::try_from(node_space(superblock)).unwrap_or_default();
    let mut writer = Writer::with_room(NODE, superblock.sizes, space);
    writer.put(b"SNOD").u8(1).u8(0).u16(count);
    for entry in entries {
        entry.encode(&mut writer)?;
    }
    let padding = space.checked_sub(writer.len()).ok_or(too_large)?;
    writer.zeros(padding);
    Ok(writer.finish())
}

/// Bytes of a node that is full, as far as they are read: what a remote storage is told of a node that was not read yet.
pub(crate) fn usual_len(file: &File) -> u64 {
    node_space(file.superblock()).max(FIRST_READ)
}

/// Bytes of a node with `count` entries.
#[must_use]
pub fn node_len(file: &File, count: usize) -> u64 {
    let entries = count.saturating_mul(SymbolTableEntry::encoded_len(file.sizes()));
    (entries as u64).saturating_add(8)
}

/// Reads the entries of a node, in the order of their names.
///
/// # Errors
/// Damaged nodes; [`HdfError::OutOfFile`].
pub fn read_node(file: &File, addr: FileAddr) -> Result<Vec<SymbolTableEntry>> {
    let (entries, cut) = read_node_left(file, addr)?;
    match cut {
        Some(error) => Err(error),
        None => Ok(entries),
    }
}

/// The entries of a node that the end of the file may cut: those before the end, and the error for
/// the others.
///
/// # Errors
/// As [`read_node`].
pub(crate) fn read_node_left(
    file: &File,
    addr: FileAddr,
) -> Result<(Vec<SymbolTableEntry>, Option<HdfError>)> {
    let mut bytes = file.read_up_to(NODE, addr, FIRST_READ)?;
    let mut reader = file.reader(NODE, addr, &bytes);
    reader.signature(*b"SNOD")?;
    reader.version(1..=1)?;
    reader.skip(1)?;
    let mut count = u64::from(reader.u16()?);
    let entry_len = SymbolTableEntry::encoded_len(reader.sizes());
    let len = count.saturating_mul(entry_len as u64).saturating_add(8);
    let mut cut = None;
    if len > bytes.len() as u64 {
        match file.read(NODE, addr, len) {
            Ok(all) => bytes = all,
            Err(error @ HdfError::OutOfFile { .. }) => {
                let n_whole = (bytes.len() as u64).saturating_sub(8).checked_div(entry_len as u64);
                count = n_whole.unwrap_or(0).min(count);
                cut = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    let mut reader = file.reader(NODE, addr, &bytes);
    reader.skip(8)?;
    let mut entries = Vec::with_capacity(reader.count(count, entry_len)?);
    for _ in 0..count {
        entries.push(SymbolTableEntry::decode(&mut reader)?);
    }
    Ok((entries, cut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_file::{BuiltFile, at, le};
    use crate::testing::{encoded, hex};

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
        let mut built = BuiltFile::default();
        let mut many = vec![(8, 96, 0, 0), (16, 200, 1, 1000), (24, u64::MAX, 2, 40)];
        many.extend((0..20).map(|i| (32 + i, 300 + i, 0, 0)));
        let addr = built.put(&node(&many));
        let entries = read_node(&built.file(), at(addr)).unwrap();
        assert_eq!(entries.len(), 23);
        assert_eq!(entries[0], SymbolTableEntry { name: 8, target: EntryTarget::Object(at(96)) });
        assert_eq!(entries[1], SymbolTableEntry { name: 16, target: EntryTarget::Object(at(200)) });
        assert_eq!(entries[2], SymbolTableEntry { name: 24, target: EntryTarget::Soft(40) });
        assert_eq!(
            entries[22],
            SymbolTableEntry { name: 51, target: EntryTarget::Object(at(319)) }
        );
        built.bytes.pop();
        assert!(matches!(read_node(&built.file(), at(addr)), Err(HdfError::OutOfFile { .. })));
    }

    #[test]
    fn written_as_libraries_do() {
        // HDF5 2.0 (h5py 3.16, libver "earliest"): an object and a soft link.
        let entries = [
            "1000000000000000 2807000000000000 00000000 00000000 0000000000000000 0000000000000000",
            "2000000000000000 ffffffffffffffff 02000000 00000000 2800000000000000 0000000000000000",
        ];
        for bytes in entries.map(hex) {
            let mut reader = Reader::new("test", &bytes, 0, Sizes::EIGHT);
            let entry = SymbolTableEntry::decode(&mut reader).unwrap();
            assert_eq!(encoded(|writer| entry.encode(writer)).unwrap(), bytes);
        }
    }

    #[test]
    fn names_have_the_width_of_lengths() {
        let entry = SymbolTableEntry { name: 0x0102_0304, target: EntryTarget::Object(at(0x20)) };
        for (offset, length) in [(8, 4), (4, 8), (2, 4)] {
            let sizes = Sizes { offset, length };
            let mut writer = Writer::new("test", sizes);
            entry.encode(&mut writer).unwrap();
            assert_eq!(writer.len(), SymbolTableEntry::encoded_len(sizes));
            assert_eq!(writer.bytes()[usize::from(length)], 0x20);
            let mut reader = Reader::new("test", writer.bytes(), 0, sizes);
            assert_eq!(SymbolTableEntry::decode(&mut reader).unwrap(), entry);
        }
        let soft = SymbolTableEntry { name: 8, target: EntryTarget::Soft(1 << 32) };
        let error = encoded(|writer| soft.encode(writer)).unwrap_err();
        assert!(matches!(error, HdfError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn bad_entries_are_errors() {
        for entry in [(8, u64::MAX, 0, 0), (8, 96, 3, 0)] {
            let mut built = BuiltFile::default();
            let addr = built.put(&node(&[entry]));
            assert!(read_node(&built.file(), at(addr)).is_err(), "{entry:?}");
        }
    }
}
