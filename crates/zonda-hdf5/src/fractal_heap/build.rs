//! A heap that is written: whole, or one object after the other.
//!
//! Objects are put into direct blocks one after the other. Where one does not fit into the next
//! block of the doubling table, blocks are passed over until one is long enough; they take no space
//! in the file. The header counts the bytes that are left free in blocks, and no free space manager
//! says where they are: the HDF5 library then goes on behind the last block.

use std::collections::BTreeMap;

use super::doubling_table::DoublingTable;
use super::{
    DIRECT, HEADER, INDIRECT, OBJECT, bytes_of_bits, huge_number_width, huge_place_len,
    length_width, plain_header_len,
};
use crate::btree_v2::{RecordTree, TreeRecord, record_type};
use crate::checksum::lookup3;
use crate::{FileAddr, FileRange, HdfError, NewBlocks, Result, Sizes, Writer};

/// Types of ids, as their first byte has them.
const HUGE_ID: u8 = 0x10;
const TINY_ID: u8 = 0x20;
/// Header flag: direct blocks have checksums.
const CHECKSUMS: u8 = 2;
/// Most bytes of a tiny object whose length is in the first byte of its id.
const TINY_MAX: usize = 16;

/// The parameters of a new heap.
#[derive(Clone, Copy, Debug)]
pub struct HeapParams {
    /// Bytes of an id.
    id_len: u16,
    /// Most bytes of an object in a block.
    max_managed: u32,
    /// Blocks in a row of the doubling table.
    width: u16,
    /// Bytes of the first block.
    start_block: u64,
    /// Most bytes of a direct block.
    max_direct: u64,
    /// Bits of an offset.
    max_bits: u16,
}

impl HeapParams {
    /// As the HDF5 library has it for the links of a group.
    pub const LINKS: HeapParams = HeapParams {
        id_len: 7,
        max_managed: 4096,
        width: 4,
        start_block: 512,
        max_direct: 65536,
        max_bits: 32,
    };

    /// As the HDF5 library has it for the attributes of an object.
    pub const ATTRIBUTES: HeapParams =
        HeapParams { id_len: 8, start_block: 1024, max_bits: 40, ..HeapParams::LINKS };
}

/// A heap that was written.
#[derive(Clone, Debug)]
pub struct BuiltHeap {
    addr: FileAddr,
    id_len: usize,
    ids: Vec<u8>,
}

impl BuiltHeap {
    /// Where its header is.
    #[must_use]
    pub fn addr(&self) -> FileAddr {
        self.addr
    }

    /// The id of object `i` of the list; empty behind the last.
    #[must_use]
    pub fn id(&self, i: usize) -> &[u8] {
        self.ids.chunks_exact(self.id_len.max(1)).nth(i).unwrap_or_default()
    }
}

/// Writes a heap of these objects.
///
/// # Errors
/// [`HdfError::TooLarge`] for more than the heap's offsets reach or than the file can hold;
/// [`HdfError::BadValue`] for an object of no bytes, which heaps do not have.
pub fn build(
    objects: &[&[u8]],
    params: &HeapParams,
    sizes: Sizes,
    fresh: &mut NewBlocks<'_>,
) -> Result<BuiltHeap> {
    let mut heap = GrowingHeap::new(params, sizes, fresh)?;
    let mut ids = Writer::new(OBJECT, sizes);
    for object in objects {
        heap.put(object, &mut ids, fresh)?;
    }
    let _new_header = heap.write(fresh, &mut Vec::new())?;
    Ok(BuiltHeap { addr: heap.addr, id_len: heap.id_len, ids: ids.finish() })
}

/// A heap in memory to which objects are added. It knows which of its blocks the file has, and
/// where.
///
/// Objects keep their bytes and their ids. When the heap is written, the last direct block goes to
/// a new address with the objects that were added to it, and so do all indirect blocks above it.
/// All blocks have the address of the header, so the header stays where it is and is written over:
/// it lies within a sector, and both its old and its new bytes are right for all objects that were
/// there before.
#[derive(Clone, Debug)]
pub(crate) struct GrowingHeap {
    params: HeapParams,
    sizes: Sizes,
    /// Where the header is.
    addr: FileAddr,
    /// Whether the file has a header there.
    is_there: bool,
    is_changed: bool,
    id_len: usize,
    blocks: ManagedBlocks,
    huge: HugeObjects,
    /// The number of objects that are in their ids, and their bytes.
    tiny: u64,
    tiny_len: u64,
    /// Blocks of the file that the heap has no more.
    dropped: Vec<FileRange>,
}

impl GrowingHeap {
    /// A heap without objects, whose header gets an address.
    ///
    /// # Errors
    /// As [`build`].
    pub(crate) fn new(
        params: &HeapParams,
        sizes: Sizes,
        fresh: &mut NewBlocks<'_>,
    ) -> Result<GrowingHeap> {
        let header_len = plain_header_len(sizes).saturating_add(4);
        let addr = fresh.space().alloc_in_sector(header_len)?;
        Ok(GrowingHeap {
            params: *params,
            sizes,
            addr,
            is_there: false,
            is_changed: true,
            id_len: usize::from(params.id_len),
            blocks: ManagedBlocks::new(params, sizes, addr)?,
            huge: HugeObjects::new(params, sizes)?,
            tiny: 0,
            tiny_len: 0,
            dropped: Vec::new(),
        })
    }

    /// Where its header is.
    pub(crate) fn addr(&self) -> FileAddr {
        self.addr
    }

    /// Puts an object into the heap, and appends its id to `ids`.
    ///
    /// # Errors
    /// As [`build`].
    pub(crate) fn put(
        &mut self,
        object: &[u8],
        ids: &mut Writer,
        fresh: &mut NewBlocks<'_>,
    ) -> Result<()> {
        self.is_changed = true;
        let (start, len) = (ids.len(), object.len());
        let max_managed = usize::try_from(self.params.max_managed).unwrap_or(usize::MAX);
        if len < self.id_len && len <= TINY_MAX {
            let short = len.checked_sub(1).and_then(|len| u8::try_from(len).ok());
            let (at, what) = (self.addr.0, "the length");
            let empty = HdfError::BadValue { structure: OBJECT, at, what, value: 0 };
            ids.u8(TINY_ID | short.ok_or(empty)?).put(object);
            self.tiny = self.tiny.saturating_add(1);
            self.tiny_len = self.tiny_len.saturating_add(len as u64);
        } else if len > max_managed {
            self.huge.put(object, ids, fresh)?;
        } else {
            let offset = self.blocks.put(object, fresh, &mut self.dropped)?;
            let (max_direct, max_managed) = (self.params.max_direct, self.params.max_managed);
            let length_width = byte(length_width(max_direct, max_managed.into()));
            ids.u8(0).uint(offset, self.blocks.offset_width)?.uint(len as u64, length_width)?;
        }
        ids.zeros(start.saturating_add(self.id_len).saturating_sub(ids.len()));
        Ok(())
    }

    /// Gives what changed to `fresh`, at new addresses, and the space of what it replaces to
    /// `freed`. What it returns is to be written over the header when all that is in the file, and
    /// before anything in the file has one of the new ids; `None` where the file has no header yet.
    ///
    /// # Errors
    /// As [`build`].
    pub(crate) fn write(
        &mut self,
        fresh: &mut NewBlocks<'_>,
        freed: &mut Vec<FileRange>,
    ) -> Result<Option<(FileAddr, Vec<u8>)>> {
        if !std::mem::take(&mut self.is_changed) {
            return Ok(None);
        }
        let managed = self.blocks.write(fresh, &mut self.dropped)?;
        freed.append(&mut self.dropped);
        let (huge, huge_len) = (self.huge.records.len(), self.huge.len);
        let huge_tree = match huge {
            0 => None,
            _ => Some(self.huge.records.write(fresh, freed)?),
        };
        let params = &self.params;
        let mut header = Writer::new(HEADER, self.sizes);
        header.put(b"FRHP").u8(0).u16(params.id_len).u16(0).u8(CHECKSUMS).u32(params.max_managed);
        header.length(huge)?.addr(huge_tree)?;
        header.length(managed.free)?.addr(None)?;
        for value in [managed.span, managed.allocated, managed.next, managed.count] {
            header.length(value)?;
        }
        for value in [huge_len, huge, self.tiny_len, self.tiny] {
            header.length(value)?;
        }
        header.u16(params.width).length(params.start_block)?.length(params.max_direct)?;
        header.u16(params.max_bits).u16(1).addr(managed.root)?.uint(managed.rows.into(), 2)?;
        let header = header.finish_checked();
        if std::mem::replace(&mut self.is_there, true) {
            return Ok(Some((self.addr, header)));
        }
        fresh.put_at(self.addr, header);
        Ok(None)
    }

    /// Adds the extents of what the file has of it.
    pub(crate) fn extents(&self, out: &mut Vec<FileRange>) {
        out.push((self.addr, plain_header_len(self.sizes).saturating_add(4)));
        out.extend(self.blocks.direct.iter().filter_map(|block| Some((block.addr?, block.len))));
        out.extend(self.blocks.indirect.values());
        if self.huge.records.len() > 0 {
            self.huge.records.extents(out);
        }
        out.extend(&self.huge.places);
    }
}

/// A width of at most 8 bytes.
fn byte(width: usize) -> u8 {
    u8::try_from(width).unwrap_or(u8::MAX)
}

/// A direct block.
#[derive(Clone, Copy, Debug)]
struct DirectBlock {
    /// The heap offset where it begins.
    offset: u64,
    len: u64,
    /// Where the file has it.
    addr: Option<FileAddr>,
}

/// The blocks of managed objects.
#[derive(Clone, Debug)]
struct ManagedBlocks {
    table: DoublingTable,
    sizes: Sizes,
    heap: FileAddr,
    offset_width: u8,
    /// Bytes of a direct block before its objects.
    overhead: u64,
    /// The direct blocks in the order of their offsets.
    direct: Vec<DirectBlock>,
    /// The bytes of the last block so far.
    last: Vec<u8>,
    /// Whether the file has all of these bytes.
    last_is_there: bool,
    /// Blocks that begin at lower offsets are where they were when indirect blocks were last
    /// written.
    changed_from: u64,
    /// Indirect blocks by the offsets where they begin.
    indirect: BTreeMap<u64, FileRange>,
    /// The number of objects, and their bytes.
    count: u64,
    used: u64,
}

/// What the header says of managed objects.
#[derive(Default)]
struct ManagedSummary {
    root: Option<FileAddr>,
    /// Rows of the root; 0 where it is a direct block.
    rows: u32,
    /// Bytes that the table has offsets for, and bytes of the blocks that the file has.
    span: u64,
    allocated: u64,
    /// Bytes for objects that no object takes, in all blocks, also in those that the file does not
    /// have.
    free: u64,
    /// The offset of the next block, where the root is an indirect one.
    next: u64,
    count: u64,
}

impl ManagedBlocks {
    fn new(params: &HeapParams, sizes: Sizes, heap: FileAddr) -> Result<ManagedBlocks> {
        let max_bits = u32::from(params.max_bits);
        let table = DoublingTable::new(
            params.width.into(),
            params.start_block,
            params.max_direct,
            max_bits,
        )
        .ok_or(HdfError::TooLarge { structure: HEADER, value: params.start_block })?;
        let offset_width = byte(bytes_of_bits(max_bits));
        Ok(ManagedBlocks {
            table,
            sizes,
            heap,
            offset_width,
            overhead: u64::from(sizes.offset).saturating_add(offset_width.into()).saturating_add(9),
            direct: Vec::new(),
            last: Vec::new(),
            last_is_there: true,
            changed_from: 0,
            indirect: BTreeMap::new(),
            count: 0,
            used: 0,
        })
    }

    /// Puts an object into a block and gives its offset.
    fn put(
        &mut self,
        object: &[u8],
        fresh: &mut NewBlocks<'_>,
        dropped: &mut Vec<FileRange>,
    ) -> Result<u64> {
        let len = object.len() as u64;
        let block = match self.direct.last() {
            Some(&block) if (self.last.len() as u64).saturating_add(len) <= block.len => block,
            _ => {
                self.end(fresh, dropped)?;
                self.begin(len)?
            }
        };
        let inside = self.last.len() as u64;
        self.last.extend_from_slice(object);
        self.last_is_there = false;
        self.changed_from = self.changed_from.min(block.offset);
        self.count = self.count.saturating_add(1);
        self.used = self.used.saturating_add(len);
        Ok(block.offset.saturating_add(inside))
    }

    /// Begins the next block with room for an object of `len` bytes.
    fn begin(&mut self, len: u64) -> Result<DirectBlock> {
        let mut offset = self.direct.last().map_or(0, |last| last.offset.saturating_add(last.len));
        let need = self.overhead.saturating_add(len);
        let full = HdfError::TooLarge { structure: HEADER, value: offset };
        let block_len = loop {
            let block_len = self.table.direct_at(offset).ok_or_else(|| full.clone())?;
            if block_len >= need {
                break block_len;
            }
            offset = offset.saturating_add(block_len);
        };
        let block = DirectBlock { offset, len: block_len, addr: None };
        let mut head = Writer::new(DIRECT, self.sizes);
        head.put(b"FHDB").u8(0).addr(Some(self.heap))?.uint(offset, self.offset_width)?.u32(0);
        self.last = head.finish();
        self.direct.push(block);
        Ok(block)
    }

    /// Gives the last block to `fresh`, with zeros behind its objects, unless the file has it as it
    /// is.
    fn end(&mut self, fresh: &mut NewBlocks<'_>, dropped: &mut Vec<FileRange>) -> Result<()> {
        let Some(block) = self.direct.last_mut().filter(|_| !self.last_is_there) else {
            return Ok(());
        };
        let len = usize::try_from(block.len).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(&self.last);
        bytes.resize(len, 0);
        let sum = lookup3(&bytes, 0).to_le_bytes();
        let field = usize::try_from(self.overhead).unwrap_or(usize::MAX).saturating_sub(4);
        bytes.iter_mut().skip(field).zip(sum).for_each(|(byte, sum)| *byte = sum);
        let addr = fresh.put(bytes)?;
        dropped.extend(block.addr.replace(addr).map(|addr| (addr, block.len)));
        self.last_is_there = true;
        Ok(())
    }

    /// Gives all that changed to `fresh`.
    fn write(
        &mut self,
        fresh: &mut NewBlocks<'_>,
        dropped: &mut Vec<FileRange>,
    ) -> Result<ManagedSummary> {
        self.end(fresh, dropped)?;
        let count = self.count;
        let lens = self.direct.iter().map(|block| block.len);
        let allocated = lens.fold(0, u64::saturating_add);
        let (Some(&first), Some(&last)) = (self.direct.first(), self.direct.last()) else {
            return Ok(ManagedSummary::default());
        };
        if self.direct.len() == 1 && first.offset == 0 {
            let free = first.len.saturating_sub(self.overhead).saturating_sub(self.used);
            let (root, span) = (first.addr, first.len);
            return Ok(ManagedSummary { root, rows: 0, span, allocated, free, next: 0, count });
        }
        let next = last.offset.saturating_add(last.len);
        let full = HdfError::TooLarge { structure: HEADER, value: next };
        let rows = self.table.cell(last.offset).map(|cell| cell.row.saturating_add(1));
        // The HDF5 library doubles the rows of the root when all are in use.
        let rows = rows.and_then(u32::checked_next_power_of_two).ok_or_else(|| full.clone())?;
        let rows = rows.min(self.table.max_rows);
        let root = self.indirect(0, rows, fresh, dropped)?;
        self.changed_from = u64::MAX;
        let span = self.table.span(rows).ok_or(full)?;
        let free = self.table.room(rows, self.overhead).saturating_sub(self.used);
        Ok(ManagedSummary { root: Some(root), rows, span, allocated, free, next, count })
    }

    /// Gives an indirect block to `fresh`, and all under it that changed.
    fn indirect(
        &mut self,
        offset: u64,
        rows: u32,
        fresh: &mut NewBlocks<'_>,
        dropped: &mut Vec<FileRange>,
    ) -> Result<FileAddr> {
        let mut block = Writer::new(INDIRECT, self.sizes);
        block.put(b"FHIB").u8(0).addr(Some(self.heap))?.uint(offset, self.offset_width)?;
        let mut at = offset;
        for row in 0..rows {
            let full = HdfError::TooLarge { structure: INDIRECT, value: at };
            let len = self.table.block_len(row).ok_or_else(|| full.clone())?;
            for _ in 0..self.table.width {
                let behind = at.saturating_add(len);
                let i = self.direct.partition_point(|block| block.offset < at);
                let first = self.direct.get(i).filter(|first| first.offset < behind);
                let child = match (first, self.indirect.get(&at)) {
                    (None, _) => None,
                    (Some(first), _) if row < self.table.direct_rows => first.addr,
                    (_, Some((addr, _))) if behind <= self.changed_from => Some(*addr),
                    _ => {
                        let below = self.table.rows_of(len).filter(|&below| below < rows);
                        let below = below.ok_or_else(|| full.clone())?;
                        Some(self.indirect(at, below, fresh, dropped)?)
                    }
                };
                block.addr(child)?;
                at = behind;
            }
        }
        let bytes = block.finish_checked();
        let len = bytes.len() as u64;
        let addr = fresh.put_passing(bytes)?;
        dropped.extend(self.indirect.insert(offset, (addr, len)));
        Ok(addr)
    }
}

/// The objects of a heap that are too long for blocks.
#[derive(Clone, Debug)]
struct HugeObjects {
    /// Whether ids have the addresses of objects, not their numbers.
    in_id: bool,
    number_width: u8,
    records: RecordTree<HugeRecord>,
    /// The objects themselves.
    places: Vec<FileRange>,
    len: u64,
}

/// The address of one of them, and its number where ids have numbers.
#[derive(Clone, Debug)]
struct HugeRecord {
    addr: FileAddr,
    len: u64,
    number: Option<u64>,
}

impl TreeRecord for HugeRecord {
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.addr(Some(self.addr))?.length(self.len)?;
        if let Some(number) = self.number {
            writer.length(number)?;
        }
        Ok(())
    }
}

impl HugeObjects {
    fn new(params: &HeapParams, sizes: Sizes) -> Result<HugeObjects> {
        let id_len = usize::from(params.id_len);
        let in_id = huge_place_len(sizes, false) < id_len;
        let numbers = if in_id { 0 } else { u16::from(sizes.length) };
        let len = u16::from(sizes.offset).saturating_add(sizes.length.into());
        let kind = if in_id { record_type::HUGE_DIRECT } else { record_type::HUGE_INDIRECT };
        Ok(HugeObjects {
            in_id,
            number_width: byte(huge_number_width(sizes, id_len)),
            records: RecordTree::new(kind, len.saturating_add(numbers), sizes)?,
            places: Vec::new(),
            len: 0,
        })
    }

    /// Puts an object into the file, and its address or number into its id.
    fn put(&mut self, object: &[u8], id: &mut Writer, fresh: &mut NewBlocks<'_>) -> Result<()> {
        let len = object.len() as u64;
        let addr = fresh.put(object.to_vec())?;
        self.places.push((addr, len));
        self.len = self.len.saturating_add(len);
        let number = self.places.len() as u64;
        id.u8(HUGE_ID);
        if self.in_id {
            id.addr(Some(addr))?.length(len)?;
        } else {
            id.uint(number, self.number_width)?;
        }
        let record = HugeRecord { addr, len, number: (!self.in_id).then_some(number) };
        let key = (record.number, addr);
        self.records.insert(record, &|other| (other.number, other.addr).cmp(&key))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
