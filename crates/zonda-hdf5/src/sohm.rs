//! Shared object header messages: the table ("SMTB"), its indexes and the heaps behind them.
//! Spec: HDF5 File Format, "Disk Format: Level 1I - Shared Object Header Messages".
//! A message that is shared has, in each object that uses it, the id of its bytes in a heap; the
//! index (a list, "SMLI", or a version 2 B-tree) is for writers that look for equal messages.
//! Watch: the number of indexes is in the superblock extension, not in the table.

use crate::btree_v2::{BtreeV2, record_type};
use crate::checksum::verified;
use crate::fractal_heap::FractalHeap;
use crate::{File, FileAddr, HdfError, Reader, Result};

const TABLE: &str = "shared message table";
const LIST: &str = "shared message list";

/// Bytes of an id in the heaps of shared messages.
pub const HEAP_ID_LEN: usize = 8;

/// The table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMessages {
    indexes: Vec<SharedIndex>,
}

/// One index of the table: which messages it has, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedIndex {
    /// Bit n: messages of type n.
    pub types: u16,
    /// Whether the index is a B-tree.
    pub is_btree: bool,
    /// Least bytes of a message that is shared.
    pub min_len: u32,
    /// Most entries of a list.
    pub list_max: u16,
    /// Messages in the index.
    pub count: u16,
    /// The index.
    pub index: Option<FileAddr>,
    /// The heap of the messages' bytes.
    pub heap: Option<FileAddr>,
}

/// One entry of an index: where a message is that may be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRecord {
    /// Hash of the message's bytes.
    pub hash: u32,
    /// Where the bytes are.
    pub place: SharedPlace,
}

/// Where a message is that may be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedPlace {
    /// In the heap, used by this many objects.
    Heap {
        /// Objects that use it.
        references: u32,
        /// Its id.
        id: [u8; HEAP_ID_LEN],
    },
    /// In an object header, as the only one so far.
    Header {
        /// Type of message.
        message_type: u8,
        /// Which of the header's messages of this type.
        index: u16,
        /// The object header.
        object: FileAddr,
    },
}

impl SharedRecord {
    /// Decodes one record of a list or a B-tree; unused places of lists give `None`.
    ///
    /// # Errors
    /// An unknown place.
    pub fn decode(mut reader: Reader<'_>) -> Result<Option<SharedRecord>> {
        let place = reader.u8()?;
        let hash = reader.u32()?;
        let place = match place {
            0 => {
                let references = reader.u32()?;
                let mut id = [0; HEAP_ID_LEN];
                id.copy_from_slice(reader.take(HEAP_ID_LEN)?);
                SharedPlace::Heap { references, id }
            }
            1 => {
                reader.skip(1)?;
                let message_type = reader.u8()?;
                let index = reader.u16()?;
                let object = reader.defined_addr("the object of a shared message")?;
                SharedPlace::Header { message_type, index, object }
            }
            // libhdf5 marks unused records so.
            0xff => return Ok(None),
            other => return Err(reader.bad("the place of a shared message", u64::from(other))),
        };
        Ok(Some(SharedRecord { hash, place }))
    }

    /// Bytes of a record: the longer of the two forms.
    #[must_use]
    pub fn encoded_len(sizes: crate::Sizes) -> usize {
        usize::from(sizes.offset).saturating_add(4).max(12).saturating_add(5)
    }
}

/// The heap of shared messages of a type.
///
/// # Errors
/// [`HdfError::Missing`] where messages of this type are not shared in this file.
pub fn heap(file: &File, message_type: u16) -> Result<FractalHeap> {
    let message = file.required_shared_message_table()?;
    SharedMessages::read(file, message.addr, message.n_indexes)?.heap(file, message_type)
}

/// The bytes of the shared message of a type that has this id.
///
/// # Errors
/// Those of [`heap`]; damage.
pub fn message(file: &File, message_type: u16, id: &[u8]) -> Result<Vec<u8>> {
    heap(file, message_type)?.get(file, id)
}

impl SharedMessages {
    /// Reads the table of `indexes` indexes at `addr`.
    ///
    /// # Errors
    /// Damage.
    pub fn read(file: &File, addr: FileAddr, indexes: u8) -> Result<SharedMessages> {
        let entry = u64::from(file.sizes().offset).saturating_mul(2).saturating_add(14);
        let len = u64::from(indexes).saturating_mul(entry).saturating_add(8);
        let bytes = file.read(TABLE, addr, len)?;
        let mut reader = verified(file.reader(TABLE, addr, &bytes))?;
        reader.signature(*b"SMTB")?;
        let mut table = Vec::with_capacity(usize::from(indexes));
        for _ in 0..indexes {
            reader.version(0..=0)?;
            let kind = reader.u8()?;
            if kind > 1 {
                return Err(reader.bad("the kind of an index", u64::from(kind)));
            }
            let types = reader.u16()?;
            let min_len = reader.u32()?;
            let list_max = reader.u16()?;
            let _btree_min = reader.u16()?;
            let count = reader.u16()?;
            let index = reader.addr()?;
            let heap = reader.addr()?;
            let is_btree = kind == 1;
            table.push(SharedIndex { types, is_btree, min_len, list_max, count, index, heap });
        }
        Ok(SharedMessages { indexes: table })
    }

    /// The indexes.
    #[must_use]
    pub fn indexes(&self) -> &[SharedIndex] {
        &self.indexes
    }

    /// The heap of the messages of a type.
    ///
    /// # Errors
    /// [`HdfError::Missing`] where messages of this type are not shared.
    pub fn heap(&self, file: &File, message_type: u16) -> Result<FractalHeap> {
        let bit = 1u16.checked_shl(u32::from(message_type)).unwrap_or(0);
        let heap = self.indexes.iter().find(|index| index.types & bit != 0);
        let heap = heap.and_then(|index| index.heap).ok_or(HdfError::Missing {
            structure: TABLE,
            at: 0,
            what: "the heap of shared messages of this type",
        })?;
        FractalHeap::open(file, heap)
    }
}

impl SharedIndex {
    /// All records of the index.
    ///
    /// # Errors
    /// Damage.
    pub fn records(&self, file: &File) -> Result<Vec<SharedRecord>> {
        let Some(addr) = self.index else { return Ok(Vec::new()) };
        let mut records = Vec::new();
        if self.is_btree {
            let tree = BtreeV2::open(file, addr, record_type::SHARED_MESSAGE)?;
            tree.walk(file, &mut |record| {
                records.extend(SharedRecord::decode(tree.reader(file, record))?);
                Ok(true)
            })?;
            return Ok(records);
        }
        // The checksum follows the used records; the rest of the list is padding.
        let record_len = SharedRecord::encoded_len(file.sizes());
        let used = u64::from(self.count.min(self.list_max));
        let len = used.saturating_mul(record_len as u64).saturating_add(8);
        let bytes = file.read(LIST, addr, len)?;
        let mut reader = verified(file.reader(LIST, addr, &bytes))?;
        reader.signature(*b"SMLI")?;
        for _ in 0..used {
            records.extend(SharedRecord::decode(reader.sub(record_len)?)?);
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_file::{BuiltFile, at, le};

    const HEAP_RECORD: [(u64, usize); 4] = [(0, 1), (0xabcd, 4), (3, 4), (0x1122, 8)];
    const HEADER_RECORD: [(u64, usize); 6] = [(1, 1), (0xef01, 4), (0, 1), (3, 1), (7, 2), (96, 8)];

    fn expected() -> [SharedRecord; 2] {
        let id = [0x22, 0x11, 0, 0, 0, 0, 0, 0];
        let heap = SharedPlace::Heap { references: 3, id };
        let header = SharedPlace::Header { message_type: 3, index: 7, object: at(96) };
        [SharedRecord { hash: 0xabcd, place: heap }, SharedRecord { hash: 0xef01, place: header }]
    }

    #[test]
    fn table_with_a_list_and_a_tree() {
        let mut built = BuiltFile::default();
        let mut records = le(&HEAP_RECORD);
        records.extend(le(&HEADER_RECORD));
        let mut list = b"SMLI".to_vec();
        list.extend(&records);
        let list = built.put_checked(&list);
        built.put(&[0xee; 17 * 10]);
        let mut leaf = b"BTLF".to_vec();
        leaf.extend([0, 7]);
        leaf.extend(&records);
        let leaf = built.put_checked(&leaf);
        let mut tree = b"BTHD".to_vec();
        tree.extend(le(&[(0, 1), (7, 1), (512, 4), (17, 2), (0, 2), (100, 1), (40, 1)]));
        tree.extend(le(&[(leaf, 8), (2, 2), (2, 8)]));
        let tree = built.put_checked(&tree);
        let mut table = b"SMTB".to_vec();
        for (kind, types, index) in [(0, 0x1000, list), (1, 0x000a, tree)] {
            table.extend(le(&[(0, 1), (kind, 1), (types, 2), (50, 4), (12, 2), (8, 2), (2, 2)]));
            table.extend(le(&[(index, 8), (u64::MAX, 8)]));
        }
        let table = built.put_checked(&table);
        let file = built.file();
        let shared = SharedMessages::read(&file, at(table), 2).unwrap();
        let [first, second] = shared.indexes() else { panic!("two indexes") };
        assert_eq!((first.is_btree, first.types, first.min_len), (false, 0x1000, 50));
        assert_eq!((second.is_btree, second.types, second.count), (true, 0x000a, 2));
        assert_eq!(first.records(&file).unwrap(), expected());
        assert_eq!(second.records(&file).unwrap(), expected());
        let error = shared.heap(&file, 3).unwrap_err();
        assert!(matches!(error, HdfError::Missing { .. }), "its heap was never made: {error}");
        assert!(SharedMessages::read(&file, at(table), 1).is_err(), "the checksum is elsewhere");
    }
}
