//! Fractal heap ("FRHP", "FHDB", "FHIB"): objects of any length, for links, attributes and shared
//! messages of groups and objects that have many.
//! Spec: HDF5 File Format, "Disk Format: Level 1G - Fractal Heap". Managed, huge and tiny objects
//! are read, also in filtered heaps; free space is ignored. Heaps are written without filters:
//! whole, or with objects that are added.
//! Watch: heap offsets count the headers of blocks, so offset 0 is the first byte of a "FHDB".
//! Watch: the checksum of a direct block stands in its header and covers it as zeros.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::btree_v2::{BtreeV2, record_type, width_of};
use crate::checksum::verified;
use crate::checksum::{agrees, lookup3};
use crate::message::{FilterDescription, decode_filter_pipeline};
use crate::traversal_budget::TraversalBudget;
use crate::tuning::{FILTERED_HEAP_GAIN, HEAP_BLOCK_CACHE_BYTES, UNFILTERED_MAX_BYTES};
use crate::{File, FileAddr, HdfError, Reader, Result, Sizes};

mod build;
mod doubling_table;
pub(crate) mod extents;

pub(crate) use build::GrowingHeap;
pub use build::{BuiltHeap, HeapParams, build};
use doubling_table::DoublingTable;

/// By how much filters are believed to shorten names of links: a group of similar ones.
const HEADER: &str = "fractal heap header";
const DIRECT: &str = "fractal heap direct block";
const INDIRECT: &str = "fractal heap indirect block";
const OBJECT: &str = "fractal heap object";

/// An open heap. It keeps blocks that it has read, so it is for one thread and for one task.
#[derive(Debug)]
pub struct FractalHeap {
    addr: FileAddr,
    /// Bytes of its header.
    header_len: u64,
    id_len: usize,
    filters: Vec<FilterDescription>,
    direct_checksums: bool,
    max_managed: u64,
    huge_btree: Option<FileAddr>,
    free_space_manager: Option<FileAddr>,
    table: DoublingTable,
    root: Option<HeapBlock>,
    root_rows: u32,
    /// Bytes of a heap offset.
    offset_width: usize,
    /// Bytes of a managed object's length.
    length_width: usize,
    blocks: RefCell<BlockCache>,
}

#[derive(Debug, Default)]
struct BlockCache {
    bytes: usize,
    direct: HashMap<u64, Arc<[u8]>>,
    indirect: HashMap<FileAddr, Arc<[Option<HeapBlock>]>>,
}

/// A block in the file.
#[derive(Clone, Copy, Debug)]
struct HeapBlock {
    addr: FileAddr,
    /// Bytes in the file and mask of skipped filters, of direct blocks in a filtered heap.
    filtered: Option<(u64, u32)>,
}

/// A direct block, and which bytes of the heap it has.
#[derive(Clone, Copy, Debug)]
struct DirectBlockPlace {
    block: HeapBlock,
    offset: u64,
    len: u64,
}

/// Bytes that hold a number of `bits` bits.
fn bytes_of_bits(bits: u32) -> usize {
    bits.div_ceil(8) as usize
}

/// Bytes of a managed object's length in its id: the least that hold offsets in the largest direct
/// block, or the largest length.
fn length_width(max_direct: u64, max_managed: u64) -> usize {
    bytes_of_bits(max_direct.checked_ilog2().unwrap_or(0)).min(width_of(max_managed))
}

/// Bytes that say where a huge object is.
fn huge_place_len(sizes: Sizes, filtered: bool) -> usize {
    let (offset, length) = (usize::from(sizes.offset), usize::from(sizes.length));
    let filter_part = if filtered { length.saturating_add(4) } else { 0 };
    offset.saturating_add(length).saturating_add(filter_part)
}

/// Bytes of a huge object's number in its id: as much as fits into both.
fn huge_number_width(sizes: Sizes, id_len: usize) -> usize {
    usize::from(sizes.length).min(id_len.saturating_sub(1))
}

/// Bytes of the header of a heap without filters, but for its checksum.
fn plain_header_len(sizes: Sizes) -> u64 {
    let (offset, length) = (u64::from(sizes.offset), u64::from(sizes.length));
    length.saturating_mul(12).saturating_add(offset.saturating_mul(3)).saturating_add(22)
}

/// Reads the beginning of a header: bytes of an id, bytes of the filter pipeline, and bytes of the
/// header with its checksum.
fn read_header_len(file: &File, addr: FileAddr) -> Result<(u16, u64, u64)> {
    let head = file.read(HEADER, addr, 9)?;
    let mut reader = file.reader(HEADER, addr, &head);
    reader.signature(*b"FRHP")?;
    reader.version(0..=0)?;
    let id_len = reader.u16()?;
    let filters_len = u64::from(reader.u16()?);
    let filtered_len = match filters_len {
        0 => 0,
        _ => u64::from(file.sizes().length).saturating_add(filters_len).saturating_add(4),
    };
    let len = plain_header_len(file.sizes()).saturating_add(filtered_len).saturating_add(4);
    Ok((id_len, filters_len, len))
}

/// The doubling table of a header, which `reader` has read.
fn doubling_table(
    reader: &Reader<'_>,
    width: u64,
    start_block: u64,
    max_direct: u64,
    max_bits: u32,
) -> Result<DoublingTable> {
    for (what, value) in [
        ("the width of the table", width),
        ("the first block's size", start_block),
        ("the largest direct block's size", max_direct),
    ] {
        if !value.is_power_of_two() {
            return Err(reader.bad(what, value));
        }
    }
    let table = DoublingTable::new(width, start_block, max_direct, max_bits);
    table.ok_or_else(|| reader.bad("the number of bits of heap offsets", u64::from(max_bits)))
}

impl FractalHeap {
    /// Reads a heap's header.
    ///
    /// # Errors
    /// Damage; a doubling table that no writer makes.
    pub fn open(file: &File, addr: FileAddr) -> Result<FractalHeap> {
        let (id_len, filters_len, len) = read_header_len(file, addr)?;
        let bytes = file.read(HEADER, addr, len)?;
        let mut reader = verified(file.reader(HEADER, addr, &bytes))?;
        reader.skip(9)?;
        let flags = reader.u8()?;
        let max_managed = u64::from(reader.u32()?);
        let _next_huge_id = reader.length()?;
        let huge_btree = reader.addr()?;
        let _free_space = reader.length()?;
        let free_space_manager = reader.addr()?;
        for _managed_space_huge_and_tiny in 0..8 {
            reader.length()?;
        }
        let width = u64::from(reader.u16()?);
        let start_block = reader.length()?;
        let max_direct = reader.length()?;
        let max_bits = u32::from(reader.u16()?);
        let _start_rows = reader.u16()?;
        let root = reader.addr()?;
        let root_rows = u32::from(reader.u16()?);
        let mut root_filtered = None;
        let mut filters = Vec::new();
        if filters_len > 0 {
            root_filtered = Some((reader.length()?, reader.u32()?));
            filters = decode_filter_pipeline(reader, file.limits())?;
        }

        let table = doubling_table(&reader, width, start_block, max_direct, max_bits)?;
        if root_rows > table.max_rows {
            return Err(reader.bad("the number of rows", u64::from(root_rows)));
        }
        if id_len == 0 {
            return Err(reader.bad("the length of an id", 0));
        }
        Ok(FractalHeap {
            addr,
            header_len: len,
            id_len: usize::from(id_len),
            filters,
            direct_checksums: flags & 2 != 0,
            max_managed,
            huge_btree,
            free_space_manager,
            table,
            root: root.map(|addr| HeapBlock { addr, filtered: root_filtered }),
            root_rows,
            offset_width: bytes_of_bits(max_bits),
            length_width: length_width(max_direct, max_managed),
            blocks: RefCell::default(),
        })
    }

    /// The bytes that all objects of a list may have together. The objects of a sound file do not
    /// overlap, so together they are not longer than the file, unless filters made them shorter.
    pub(crate) fn budget(&self, file: &File) -> TraversalBudget {
        TraversalBudget::times(file, if self.filters.is_empty() { 1 } else { FILTERED_HEAP_GAIN })
    }

    /// Where its header is.
    #[must_use]
    pub fn addr(&self) -> FileAddr {
        self.addr
    }

    /// Bytes of an id.
    #[must_use]
    pub fn id_len(&self) -> usize {
        self.id_len
    }

    /// The object with this id.
    ///
    /// # Errors
    /// An id that leads nowhere; damaged blocks; filters that cannot be undone.
    pub fn get(&self, file: &File, id: &[u8]) -> Result<Vec<u8>> {
        self.look_at(file, id, |bytes| Ok(bytes.to_vec()))
    }

    /// What `look` makes of the object with this id, which is not copied where its block is in memory.
    ///
    /// # Errors
    /// As [`FractalHeap::get`], and those of `look`.
    pub fn look_at<T>(
        &self,
        file: &File,
        id: &[u8],
        look: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let mut reader = file.reader(OBJECT, self.addr, id);
        let first = reader.u8()?;
        if first >> 6 != 0 {
            return Err(reader.bad("the version of an id", u64::from(first >> 6)));
        }
        match (first >> 4) & 3 {
            0 => self.managed(file, reader, look),
            1 => look(&self.huge(file, reader)?),
            2 => {
                // Ids of more than 17 bytes have a length of 12 bits.
                let mut len = usize::from(first & 15);
                if self.id_len > 17 {
                    len = (len << 8) | usize::from(reader.u8()?);
                }
                look(reader.take(len.saturating_add(1))?)
            }
            kind => Err(reader.bad("the type of an id", u64::from(kind))),
        }
    }

    fn managed<T>(
        &self,
        file: &File,
        mut id: Reader<'_>,
        look: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let offset = id.uint(self.offset_width)?;
        let len = id.uint(self.length_width)?;
        if len > self.max_managed {
            return Err(id.bad("the length of an object", len));
        }
        let place = self.find(file, offset)?;
        let block = self.direct(file, place)?;
        let start = usize::try_from(offset.saturating_sub(place.offset)).unwrap_or(usize::MAX);
        let len_usize = usize::try_from(len).unwrap_or(usize::MAX);
        let object = start.checked_add(len_usize).and_then(|end| block.get(start..end));
        look(object.ok_or_else(|| id.bad("the end of an object in its block", len))?)
    }

    fn huge(&self, file: &File, mut id: Reader<'_>) -> Result<Vec<u8>> {
        let sizes = file.sizes();
        let filtered = !self.filters.is_empty();
        let (in_id, kind) = self.huge_ids(sizes);
        let record;
        let mut found = if in_id {
            id
        } else {
            let number = id.uint(huge_number_width(sizes, self.id_len))?;
            let addr = self.huge_btree.ok_or_else(|| id.missing("the B-tree of huge objects"))?;
            let tree = BtreeV2::open(file, addr, kind)?;
            let before_number = huge_place_len(sizes, filtered);
            let compare = &mut |record: &[u8]| -> Result<Ordering> {
                let mut reader = tree.reader(file, record);
                reader.skip(before_number)?;
                Ok(reader.length()?.cmp(&number))
            };
            record = tree
                .find(file, compare)?
                .ok_or_else(|| id.missing("the huge object of this number"))?;
            tree.reader(file, &record)
        };
        let addr = found.defined_addr("a huge object")?;
        let len = found.length()?;
        if !filtered {
            return file.read(OBJECT, addr, len);
        }
        let mask = found.u32()?;
        let mem_len = found.length()?;
        let stored = file.read(OBJECT, addr, len)?;
        self.unfilter(file, addr, mask, stored, mem_len)
    }

    /// Whether the ids of huge objects say where these are, and the records of their B-tree.
    fn huge_ids(&self, sizes: Sizes) -> (bool, u8) {
        let filtered = !self.filters.is_empty();
        let in_id = huge_place_len(sizes, filtered) < self.id_len;
        let kind = match (in_id, filtered) {
            (false, false) => record_type::HUGE_INDIRECT,
            (false, true) => record_type::HUGE_INDIRECT_FILTERED,
            (true, false) => record_type::HUGE_DIRECT,
            (true, true) => record_type::HUGE_DIRECT_FILTERED,
        };
        (in_id, kind)
    }

    fn unfilter(
        &self,
        file: &File,
        addr: FileAddr,
        mask: u32,
        stored: Vec<u8>,
        len: u64,
    ) -> Result<Vec<u8>> {
        let at = addr.0;
        let limit = file.limits().chunk_bytes.min(UNFILTERED_MAX_BYTES);
        let most = usize::try_from(len).ok().filter(|_| len <= limit);
        let most = most.ok_or(HdfError::Limit {
            structure: OBJECT,
            at,
            what: "bytes before filters",
            limit,
        })?;
        let bytes = file.unfilter(OBJECT, addr, &self.filters, mask, stored, most)?;
        if bytes.len() == most {
            Ok(bytes)
        } else {
            let value = bytes.len() as u64;
            let what = "the length after undoing filters";
            Err(HdfError::BadValue { structure: OBJECT, at, what, value })
        }
    }

    /// The direct block that holds an offset of the heap.
    fn find(&self, file: &File, offset: u64) -> Result<DirectBlockPlace> {
        let nowhere =
            |what| HdfError::BadValue { structure: OBJECT, at: self.addr.0, what, value: offset };
        let root = self.root.ok_or_else(|| nowhere("the offset in an empty heap"))?;
        if self.root_rows == 0 {
            return Ok(DirectBlockPlace { block: root, offset: 0, len: self.table.start_block });
        }
        let (mut at, mut rows, mut base) = (root.addr, self.root_rows, 0u64);
        // Each level down has fewer rows, so this ends.
        loop {
            let inside = offset.saturating_sub(base);
            let cell = self.table.cell(inside).ok_or_else(|| nowhere("the offset in the heap"))?;
            if cell.row >= rows {
                return Err(nowhere("the offset in the heap"));
            }
            let children = self.indirect(file, at, base, rows)?;
            let index = u64::from(cell.row).saturating_mul(self.table.width);
            let index = index.saturating_add(cell.column);
            let child = usize::try_from(index).ok().and_then(|index| children.get(index).copied());
            let child = child.flatten().ok_or_else(|| nowhere("the offset without a block"))?;
            base = base.saturating_add(cell.start);
            if cell.row < self.table.direct_rows {
                return Ok(DirectBlockPlace { block: child, offset: base, len: cell.len });
            }
            let below = self.table.rows_of(cell.len).filter(|&below| below < rows);
            let below =
                below.ok_or_else(|| nowhere("the rows of a nested block for the offset"))?;
            (at, rows) = (child.addr, below);
        }
    }

    /// How many blocks an indirect block may have, and how many of them are direct.
    fn places(&self, rows: u32) -> (u64, u64) {
        let places = |rows: u32| u64::from(rows).saturating_mul(self.table.width);
        (places(rows.min(self.table.max_rows)), places(rows.min(self.table.direct_rows)))
    }

    /// Bytes of an indirect block.
    fn indirect_len(&self, file: &File, rows: u32) -> u64 {
        let sizes = file.sizes();
        let (all, direct) = self.places(rows);
        let extra =
            if self.filters.is_empty() { 0 } else { u64::from(sizes.length).saturating_add(4) };
        all.saturating_mul(u64::from(sizes.offset))
            .saturating_add(direct.saturating_mul(extra))
            .saturating_add(u64::from(sizes.offset))
            .saturating_add(self.offset_width as u64)
            .saturating_add(9)
    }

    /// The children of an indirect block.
    fn indirect(
        &self,
        file: &File,
        addr: FileAddr,
        offset: u64,
        rows: u32,
    ) -> Result<Arc<[Option<HeapBlock>]>> {
        if let Some(children) = self.blocks.borrow().indirect.get(&addr) {
            return Ok(children.clone());
        }
        let sizes = file.sizes();
        let filtered = !self.filters.is_empty();
        let (all, direct) = self.places(rows);
        let len = self.indirect_len(file, rows);
        let bytes = file.read(INDIRECT, addr, len)?;
        let mut reader = verified(file.reader(INDIRECT, addr, &bytes))?;
        self.block_head(&mut reader, *b"FHIB", offset)?;
        let mut children = Vec::with_capacity(reader.count(all, usize::from(sizes.offset))?);
        for i in 0..all {
            let child = reader.addr()?;
            let filtered =
                if filtered && i < direct { Some((reader.length()?, reader.u32()?)) } else { None };
            children.push(child.map(|addr| HeapBlock { addr, filtered }));
        }
        let children: Arc<[Option<HeapBlock>]> = children.into();
        let mut blocks = self.blocks.borrow_mut();
        blocks.make_room(bytes.len());
        blocks.indirect.insert(addr, children.clone());
        Ok(children)
    }

    /// Signature, version, heap and offset of a block.
    fn block_head(&self, reader: &mut Reader<'_>, letters: [u8; 4], offset: u64) -> Result<()> {
        reader.signature(letters)?;
        reader.version(0..=0)?;
        let heap = reader.defined_addr("the heap of a block")?;
        if heap != self.addr {
            return Err(reader.bad("the heap of a block", heap.0));
        }
        let stored = reader.uint(self.offset_width)?;
        if stored == offset { Ok(()) } else { Err(reader.bad("the offset of a block", stored)) }
    }

    /// A direct block with its header, filters undone.
    fn direct(&self, file: &File, place: DirectBlockPlace) -> Result<Arc<[u8]>> {
        if let Some(block) = self.blocks.borrow().direct.get(&place.offset) {
            return Ok(block.clone());
        }
        let addr = place.block.addr;
        if place.len > self.table.max_direct {
            let (structure, at) = (DIRECT, addr.0);
            return Err(HdfError::BadValue { structure, at, what: "the length", value: place.len });
        }
        let bytes = match place.block.filtered {
            None => file.read(DIRECT, addr, place.len)?,
            Some((len, mask)) => {
                let stored = file.read(DIRECT, addr, len)?;
                self.unfilter(file, addr, mask, stored, place.len)?
            }
        };
        let mut reader = file.reader(DIRECT, addr, &bytes);
        self.block_head(&mut reader, *b"FHDB", place.offset)?;
        if self.direct_checksums {
            let field = bytes.len().saturating_sub(reader.left());
            let stored = reader.u32()?;
            let mut zeroed = bytes.clone();
            zeroed.iter_mut().skip(field).take(4).for_each(|byte| *byte = 0);
            let computed = lookup3(&zeroed, 0);
            if !agrees(stored, computed) {
                let (structure, at) = (DIRECT, addr.0);
                return Err(HdfError::BadChecksum { structure, at, stored, computed });
            }
        }
        let block: Arc<[u8]> = bytes.into();
        let mut blocks = self.blocks.borrow_mut();
        blocks.make_room(block.len());
        blocks.direct.insert(place.offset, block.clone());
        Ok(block)
    }
}

impl BlockCache {
    /// Counts `len` bytes that will be kept, and forgets all blocks where that is too many.
    fn make_room(&mut self, len: usize) {
        self.bytes = self.bytes.saturating_add(len);
        if self.bytes > HEAP_BLOCK_CACHE_BYTES {
            *self = BlockCache { bytes: len, ..BlockCache::default() };
        }
    }
}

#[cfg(test)]
mod tests;
