//! A heap made whole from all its objects.
//!
//! Objects go into direct blocks one after the other. Where one does not fit into the next block of
//! the doubling table, blocks are passed over until one is long enough; they take no space in the
//! file. The HDF5 library goes on behind the last block: what is left free in the blocks is counted
//! in the header, and no free space manager says where it is.

use super::table::Table;
use super::{
    DIRECT, HEADER, INDIRECT, OBJECT, bytes_of_bits, huge_number_width, huge_place_len,
    length_width, plain_header_len,
};
use crate::btree_v2::{self, record_type};
use crate::checksum::lookup3;
use crate::{FileAddr, Fresh, HdfError, Result, Sizes, Writer};

/// Types of ids, as their first byte has them.
const HUGE_ID: u8 = 0x10;
const TINY_ID: u8 = 0x20;
/// Header flag: direct blocks have checksums.
const CHECKSUMS: u8 = 2;
/// Most bytes of a tiny object whose length is in the first byte of its id.
const TINY_MAX: usize = 16;

/// What a heap is made like.
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

/// A heap that was made.
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

    /// The id of the object at this place of the list; empty behind the last.
    #[must_use]
    pub fn id(&self, i: usize) -> &[u8] {
        self.ids.chunks_exact(self.id_len.max(1)).nth(i).unwrap_or_default()
    }
}

/// Makes a heap of these objects.
///
/// # Errors
/// [`HdfError::TooLarge`] for more than the heap's offsets reach or than the file can hold;
/// [`HdfError::BadValue`] for an object of no bytes, which heaps do not have.
pub fn build(
    objects: &[&[u8]],
    params: &HeapParams,
    sizes: Sizes,
    fresh: &mut Fresh<'_>,
) -> Result<BuiltHeap> {
    let header_len = plain_header_len(sizes).saturating_add(4);
    let addr = fresh.space().alloc(header_len)?;
    let id_len = usize::from(params.id_len);
    let mut ids = Writer::new(OBJECT, sizes);
    let mut blocks = Blocks::new(params, sizes, addr)?;
    let mut huge = Huge::new(params, sizes);
    let length_width = byte(length_width(params.max_direct, params.max_managed.into()));
    let (mut tiny, mut tiny_len) = (0u64, 0u64);
    let max_managed = usize::try_from(params.max_managed).unwrap_or(usize::MAX);
    for object in objects {
        let (start, len) = (ids.len(), object.len());
        if len < id_len && len <= TINY_MAX {
            let short = len.checked_sub(1).and_then(|len| u8::try_from(len).ok());
            let (at, what) = (addr.0, "the length");
            let empty = HdfError::BadValue { structure: OBJECT, at, what, value: 0 };
            ids.u8(TINY_ID | short.ok_or(empty)?).put(object);
            (tiny, tiny_len) = (tiny.saturating_add(1), tiny_len.saturating_add(len as u64));
        } else if len > max_managed {
            huge.put(object, &mut ids, fresh)?;
        } else {
            let offset = blocks.put(object)?;
            ids.u8(0).uint(offset, blocks.offset_width)?.uint(len as u64, length_width)?;
        }
        ids.zeros(start.saturating_add(id_len).saturating_sub(ids.len()));
    }

    let managed = blocks.finish(fresh)?;
    let (huge_count, huge_len) = (huge.records.len() as u64, huge.len);
    let huge_tree = huge.finish(fresh)?;
    let mut header = Writer::new(HEADER, sizes);
    header.put(b"FRHP").u8(0).u16(params.id_len).u16(0).u8(CHECKSUMS).u32(params.max_managed);
    header.length(huge_tree.map_or(0, |_| huge_count))?.addr(huge_tree)?;
    header.length(managed.free)?.addr(None)?;
    for value in [managed.span, managed.allocated, managed.next, managed.count] {
        header.length(value)?;
    }
    for value in [huge_len, huge_count, tiny_len, tiny] {
        header.length(value)?;
    }
    header.u16(params.width).length(params.start_block)?.length(params.max_direct)?;
    header.u16(params.max_bits).u16(1).addr(managed.root)?.uint(managed.rows.into(), 2)?;
    fresh.put_at(addr, header.finish_checked());
    Ok(BuiltHeap { addr, id_len, ids: ids.finish() })
}

/// A width of at most 8 bytes.
fn byte(width: usize) -> u8 {
    u8::try_from(width).unwrap_or(u8::MAX)
}

/// A direct block.
#[derive(Clone, Copy)]
struct Block {
    /// The heap offset where it begins.
    offset: u64,
    len: u64,
    /// Where it is among the bytes of all.
    at: u64,
}

/// The blocks of managed objects.
struct Blocks {
    table: Table,
    sizes: Sizes,
    heap: FileAddr,
    offset_width: u8,
    /// Bytes of a direct block before its objects.
    overhead: u64,
    /// The direct blocks in the order of their offsets, and their bytes, the last unfinished.
    direct: Vec<Block>,
    bytes: Vec<u8>,
    /// Objects, and bytes of them.
    count: u64,
    used: u64,
}

/// What the header says of managed objects.
struct Managed {
    root: Option<FileAddr>,
    /// Rows of the root; 0 where it is a direct block.
    rows: u32,
    /// Bytes that the table has offsets for, and those of its blocks that are there.
    span: u64,
    allocated: u64,
    /// Bytes for objects in all blocks, there or not, that no object takes.
    free: u64,
    /// The offset of the next block, where the root is an indirect one.
    next: u64,
    count: u64,
}

impl Blocks {
    fn new(params: &HeapParams, sizes: Sizes, heap: FileAddr) -> Result<Blocks> {
        let max_bits = u32::from(params.max_bits);
        let table =
            Table::new(params.width.into(), params.start_block, params.max_direct, max_bits)
                .ok_or(HdfError::TooLarge { structure: HEADER, value: params.start_block })?;
        let offset_width = byte(bytes_of_bits(max_bits));
        Ok(Blocks {
            table,
            sizes,
            heap,
            offset_width,
            overhead: u64::from(sizes.offset).saturating_add(offset_width.into()).saturating_add(9),
            direct: Vec::new(),
            bytes: Vec::new(),
            count: 0,
            used: 0,
        })
    }

    /// Puts an object into a block and gives its offset.
    fn put(&mut self, object: &[u8]) -> Result<u64> {
        let len = object.len() as u64;
        let mut block = match self.direct.last() {
            Some(&block) => block,
            None => self.begin(len)?,
        };
        let mut inside = (self.bytes.len() as u64).saturating_sub(block.at);
        if inside.saturating_add(len) > block.len {
            self.end();
            block = self.begin(len)?;
            inside = self.overhead;
        }
        self.bytes.extend_from_slice(object);
        self.count = self.count.saturating_add(1);
        self.used = self.used.saturating_add(len);
        Ok(block.offset.saturating_add(inside))
    }

    /// Begins the next block with room for an object of `len` bytes.
    fn begin(&mut self, len: u64) -> Result<Block> {
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
        let block = Block { offset, len: block_len, at: self.bytes.len() as u64 };
        let mut head = Writer::new(DIRECT, self.sizes);
        head.put(b"FHDB").u8(0).addr(Some(self.heap))?.uint(offset, self.offset_width)?.u32(0);
        self.bytes.extend(head.finish());
        self.direct.push(block);
        Ok(block)
    }

    /// Fills the last block with zeros and gives it its checksum.
    fn end(&mut self) {
        let Some(block) = self.direct.last() else { return };
        let start = usize::try_from(block.at).unwrap_or(usize::MAX);
        let end = usize::try_from(block.at.saturating_add(block.len)).unwrap_or(usize::MAX);
        self.bytes.resize(end, 0);
        let Some(bytes) = self.bytes.get_mut(start..) else { return };
        let sum = lookup3(bytes, 0).to_le_bytes();
        let field = usize::try_from(self.overhead).unwrap_or(usize::MAX).saturating_sub(4);
        bytes.iter_mut().skip(field).zip(sum).for_each(|(byte, sum)| *byte = sum);
    }

    /// Puts all blocks into the file.
    fn finish(mut self, fresh: &mut Fresh<'_>) -> Result<Managed> {
        self.end();
        let bytes = std::mem::take(&mut self.bytes);
        let (count, allocated) = (self.count, bytes.len() as u64);
        let (Some(first), Some(last)) = (self.direct.first(), self.direct.last()) else {
            return Ok(Managed {
                root: None,
                rows: 0,
                span: 0,
                allocated: 0,
                free: 0,
                next: 0,
                count: 0,
            });
        };
        let start = fresh.put(bytes)?;
        if self.direct.len() == 1 && first.offset == 0 {
            let free = first.len.saturating_sub(self.overhead).saturating_sub(self.used);
            let span = first.len;
            return Ok(Managed {
                root: Some(start),
                rows: 0,
                span,
                allocated,
                free,
                next: 0,
                count,
            });
        }
        let next = last.offset.saturating_add(last.len);
        let full = HdfError::TooLarge { structure: HEADER, value: next };
        let rows = self.table.cell(last.offset).map(|cell| cell.row.saturating_add(1));
        // The HDF5 library doubles the rows of the root when all are in use.
        let rows = rows.and_then(u32::checked_next_power_of_two).ok_or_else(|| full.clone())?;
        let rows = rows.min(self.table.max_rows);
        let root = self.indirect(&mut self.direct.as_slice(), start, 0, rows, fresh)?;
        let span = self.table.span(rows).ok_or(full)?;
        let free = self.table.room(rows, self.overhead).saturating_sub(self.used);
        Ok(Managed { root: Some(root), rows, span, allocated, free, next, count })
    }

    /// Puts an indirect block and all under it into the file. The first of the `direct` blocks,
    /// which are behind byte `start` of the file, are taken away where they belong to it.
    fn indirect(
        &self,
        direct: &mut &[Block],
        start: FileAddr,
        offset: u64,
        rows: u32,
        fresh: &mut Fresh<'_>,
    ) -> Result<FileAddr> {
        let mut block = Writer::new(INDIRECT, self.sizes);
        block.put(b"FHIB").u8(0).addr(Some(self.heap))?.uint(offset, self.offset_width)?;
        let mut at = offset;
        for row in 0..rows {
            let full = HdfError::TooLarge { structure: INDIRECT, value: at };
            let len = self.table.block_len(row).ok_or_else(|| full.clone())?;
            for _ in 0..self.table.width {
                let behind = at.saturating_add(len);
                let child = match direct.split_first() {
                    Some((first, rest)) if first.offset < behind => {
                        if row < self.table.direct_rows {
                            *direct = rest;
                            Some(FileAddr(start.0.saturating_add(first.at)))
                        } else {
                            let below = self.table.rows_of(len).filter(|&below| below < rows);
                            let below = below.ok_or_else(|| full.clone())?;
                            Some(self.indirect(direct, start, at, below, fresh)?)
                        }
                    }
                    _ => None,
                };
                block.addr(child)?;
                at = behind;
            }
        }
        fresh.put(block.finish_checked())
    }
}

/// The objects that are too long for blocks.
struct Huge {
    sizes: Sizes,
    /// Whether ids say where objects are, and not their numbers.
    in_id: bool,
    number_width: u8,
    /// Addresses and lengths of the objects.
    records: Vec<(FileAddr, u64)>,
    len: u64,
}

impl Huge {
    fn new(params: &HeapParams, sizes: Sizes) -> Huge {
        let id_len = usize::from(params.id_len);
        Huge {
            sizes,
            in_id: huge_place_len(sizes, false) < id_len,
            number_width: byte(huge_number_width(sizes, id_len)),
            records: Vec::new(),
            len: 0,
        }
    }

    /// Puts an object into the file and what finds it into its id.
    fn put(&mut self, object: &[u8], id: &mut Writer, fresh: &mut Fresh<'_>) -> Result<()> {
        let len = object.len() as u64;
        let addr = fresh.put(object.to_vec())?;
        self.records.push((addr, len));
        self.len = self.len.saturating_add(len);
        id.u8(HUGE_ID);
        if self.in_id {
            id.addr(Some(addr))?.length(len)?;
        } else {
            id.uint(self.records.len() as u64, self.number_width)?;
        }
        Ok(())
    }

    /// Makes the tree over the objects.
    fn finish(mut self, fresh: &mut Fresh<'_>) -> Result<Option<FileAddr>> {
        if self.records.is_empty() {
            return Ok(None);
        }
        let mut kind = record_type::HUGE_INDIRECT;
        if self.in_id {
            kind = record_type::HUGE_DIRECT;
            self.records.sort_unstable();
        }
        let mut records = Writer::new(OBJECT, self.sizes);
        for (number, &(addr, len)) in (1u64..).zip(&self.records) {
            records.addr(Some(addr))?.length(len)?;
            if !self.in_id {
                records.length(number)?;
            }
        }
        let len = records.len().checked_div(self.records.len()).unwrap_or(0);
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        btree_v2::build(kind, len, records.bytes(), self.sizes, fresh).map(Some)
    }
}

#[cfg(test)]
mod tests;
