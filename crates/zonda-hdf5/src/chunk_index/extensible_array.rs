//! Extensible array ("EAHD", "EAIB", "EASB", "EADB"): datasets with one unlimited dimension.
//! Spec: HDF5 File Format, "Appendix C.4: The Extensible Array Index". The first elements are in
//! the index block, the others in super blocks: super block `u` has 2^(u/2) data blocks of
//! 2^((u+1)/2) times the least number of elements. The index block holds the addresses of the data
//! blocks of the first few super blocks and of all other super blocks.
//! Watch: the bits that say which pages were written go on from one data block to the next.
//! Watch: the offset that a data block has of itself is not its place in the array; it is not used
//! here.

use std::sync::{Arc, OnceLock};

use super::fixed_array::{ElementPages, bit, check_client, read_block_head};
use super::location_table::LocationTable;
use super::{KeySegment, LocationCoding, SegmentChunks};
use crate::checksum::verified;
use crate::{File, FileAddr, Reader, Result};

const HEADER: &str = "extensible array header";
const INDEX: &str = "extensible array index block";
const SUPER: &str = "extensible array super block";
const DATA: &str = "extensible array data block";

/// An extensible array.
#[derive(Debug)]
pub(super) struct ExtensibleArray {
    file: Arc<File>,
    addr: FileAddr,
    coding: LocationCoding,
    open: OnceLock<OpenExtensibleArray>,
}

#[derive(Debug)]
struct OpenExtensibleArray {
    shape: ExtensibleArrayShape,
    /// The index block and its bytes.
    index: Option<(FileAddr, u64)>,
    /// Elements beyond this one were never set.
    n_elems: u64,
    /// Elements in the index block.
    first: Option<LocationTable>,
    /// Data blocks that the index block knows.
    blocks: Box<[DataBlock]>,
    /// Super blocks after those.
    supers: Box<[SuperBlock]>,
}

/// The parameters of an array, from its header.
#[derive(Clone, Copy, Debug)]
struct ExtensibleArrayShape {
    element_len: u64,
    size_width: usize,
    max_bits: u32,
    index_elems: u64,
    /// The least number of elements of a data block, as a power of two.
    min_elems_bits: u32,
    /// Super blocks whose data blocks the index block knows.
    direct: u32,
    /// Super blocks in all.
    supers: u32,
    page_bits: u32,
}

#[derive(Debug)]
struct SuperBlock {
    addr: Option<FileAddr>,
    read: OnceLock<SuperBlockContents>,
}

#[derive(Debug)]
struct SuperBlockContents {
    /// Which pages were written; empty without pages.
    bitmap: Box<[u8]>,
    blocks: Box<[DataBlock]>,
}

#[derive(Debug)]
struct DataBlock {
    addr: Option<FileAddr>,
    read: OnceLock<DataBlockElements>,
}

#[derive(Debug)]
enum DataBlockElements {
    All(LocationTable),
    Pages(ElementPages),
}

/// A data block, if the array has it.
enum FoundBlock<'a> {
    /// The block, and which pages were written of all blocks of its super block, where it has one.
    Block(&'a DataBlock, Option<&'a [u8]>),
    /// There are no such super blocks.
    NoSuperBlocks,
    /// The super block was never written.
    NoSuperBlock,
    /// The super block does not have this block.
    NoBlock,
}

impl DataBlock {
    fn read_from(reader: &mut Reader<'_>) -> Result<DataBlock> {
        Ok(DataBlock { addr: reader.addr()?, read: OnceLock::new() })
    }
}

/// `n` is below 64 wherever this is called.
fn pow2(n: u32) -> u64 {
    1u64.checked_shl(n).unwrap_or(u64::MAX)
}

impl ExtensibleArrayShape {
    /// Super block, data block in it and element in that of an element after the index block's.
    fn place(&self, i: u64) -> (u32, u64, u64) {
        let u = (i >> self.min_elems_bits).saturating_add(1).ilog2();
        let within = i.saturating_sub(self.first_of(u));
        let bits = self.block_bits(u);
        (u, within.checked_shr(bits).unwrap_or(0), within & pow2(bits).wrapping_sub(1))
    }

    /// Elements before super block `u`, those of the index block left out.
    fn first_of(&self, u: u32) -> u64 {
        pow2(u).saturating_sub(1).saturating_mul(pow2(self.min_elems_bits))
    }

    /// Elements of a data block of super block `u`, as a power of two.
    fn block_bits(&self, u: u32) -> u32 {
        (u.saturating_add(1) / 2).saturating_add(self.min_elems_bits)
    }

    /// Data blocks of super block `u`.
    fn n_blocks(u: u32) -> u64 {
        pow2(u / 2)
    }

    /// Pages of a data block of super block `u`; 0 where it has none.
    fn n_pages(&self, u: u32) -> u64 {
        let bits = self.block_bits(u);
        if bits > self.page_bits { pow2(bits.saturating_sub(self.page_bits)) } else { 0 }
    }

    /// Data blocks of all super blocks before `u`.
    fn blocks_before(u: u32) -> u64 {
        let whole = pow2(u / 2).saturating_sub(1).saturating_mul(2);
        if u % 2 == 1 { whole.saturating_add(pow2(u / 2)) } else { whole }
    }

    /// Bytes of an offset in the array.
    fn offset_len(&self) -> u64 {
        u64::from(self.max_bits.div_ceil(8))
    }
}

impl ExtensibleArray {
    pub(super) fn new(file: Arc<File>, addr: FileAddr, coding: LocationCoding) -> ExtensibleArray {
        ExtensibleArray { file, addr, coding, open: OnceLock::new() }
    }

    fn open(&self) -> Result<&OpenExtensibleArray> {
        if let Some(open) = self.open.get() {
            return Ok(open);
        }
        let open = self.read()?;
        Ok(self.open.get_or_init(|| open))
    }

    fn read(&self) -> Result<OpenExtensibleArray> {
        let file = &*self.file;
        let bytes = file.read(HEADER, self.addr, self.header_len())?;
        let mut reader = verified(file.reader(HEADER, self.addr, &bytes))?;
        reader.signature(*b"EAHD")?;
        reader.version(0..=0)?;
        check_client(&mut reader, &self.coding)?;
        let (shape, min_pointers) = self.read_shape(&mut reader)?;
        let _super_and_data_blocks =
            (reader.length()?, reader.length()?, reader.length()?, reader.length()?);
        let n_elems = reader.length()?;
        let _reserved_elems = reader.length()?;
        match reader.addr()? {
            Some(index) => self.read_index(shape, n_elems, index, min_pointers),
            None => Ok(OpenExtensibleArray {
                shape,
                index: None,
                n_elems: 0,
                first: None,
                blocks: [].into(),
                supers: [].into(),
            }),
        }
    }

    /// Bytes of the header.
    fn header_len(&self) -> u64 {
        let sizes = self.file.sizes();
        u64::from(sizes.length)
            .saturating_mul(6)
            .saturating_add(u64::from(sizes.offset))
            .saturating_add(16)
    }

    /// The parameters in the header, and the least number of pointers in a super block.
    fn read_shape(&self, reader: &mut Reader<'_>) -> Result<(ExtensibleArrayShape, u8)> {
        let element_len = u64::from(reader.u8()?);
        let max_bits = u32::from(reader.u8()?);
        let index_elems = u64::from(reader.u8()?);
        let min_elems = reader.u8()?;
        let min_pointers = reader.u8()?;
        let page_bits = u32::from(reader.u8()?);
        for (what, value) in [
            ("the least number of elements", min_elems),
            ("the least number of pointers", min_pointers),
        ] {
            if !value.is_power_of_two() {
                return Err(reader.bad(what, u64::from(value)));
            }
        }
        let min_elems_bits = min_elems.trailing_zeros();
        if max_bits > 64 || max_bits < min_elems_bits {
            return Err(reader.bad("the bits of an index", u64::from(max_bits)));
        }
        if page_bits >= 32 {
            return Err(reader.bad("the bits of a page", u64::from(page_bits)));
        }
        let size_width = self.coding.size_width(&self.file, HEADER, self.addr, element_len)?;
        let supers = max_bits.saturating_sub(min_elems_bits).saturating_add(1);
        let direct = min_pointers.trailing_zeros().saturating_mul(2).min(supers);
        let shape = ExtensibleArrayShape {
            element_len,
            size_width,
            max_bits,
            index_elems,
            min_elems_bits,
            direct,
            supers,
            page_bits,
        };
        Ok((shape, min_pointers))
    }

    fn read_index(
        &self,
        shape: ExtensibleArrayShape,
        n_elems: u64,
        addr: FileAddr,
        min_pointers: u8,
    ) -> Result<OpenExtensibleArray> {
        let file = &*self.file;
        let offset = u64::from(file.sizes().offset);
        let n_blocks = u64::from(min_pointers).saturating_sub(1).saturating_mul(2);
        let n_supers = u64::from(shape.supers.saturating_sub(shape.direct));
        let len = n_blocks
            .saturating_add(n_supers)
            .saturating_add(1)
            .saturating_mul(offset)
            .saturating_add(shape.index_elems.saturating_mul(shape.element_len))
            .saturating_add(10);
        let bytes = file.read(INDEX, addr, len)?;
        let mut reader = verified(file.reader(INDEX, addr, &bytes))?;
        read_block_head(&mut reader, *b"EAIB", &self.coding, self.addr)?;
        let first = self.coding.table(&mut reader, shape.index_elems, shape.size_width)?;
        let blocks: Result<_> = (0..n_blocks).map(|_| DataBlock::read_from(&mut reader)).collect();
        let supers: Result<_> = (0..n_supers)
            .map(|_| Ok(SuperBlock { addr: reader.addr()?, read: OnceLock::new() }))
            .collect();
        let (first, index) = (Some(first), Some((addr, len)));
        Ok(OpenExtensibleArray { shape, index, n_elems, first, blocks: blocks?, supers: supers? })
    }

    /// The extents of all parts of the array.
    pub(super) fn extents(&self) -> Result<Vec<(FileAddr, u64)>> {
        let open = self.open()?;
        let shape = &open.shape;
        let mut out = vec![(self.addr, self.header_len())];
        out.extend(open.index);
        let mut u = 0u32;
        for (i, block) in (0u64..).zip(&open.blocks) {
            while ExtensibleArrayShape::blocks_before(u.saturating_add(1)) <= i {
                u = u.saturating_add(1);
            }
            out.extend(block.addr.map(|addr| (addr, self.block_len(shape, u, true))));
        }
        for (u, block) in (shape.direct..).zip(&open.supers) {
            let Some(addr) = block.addr else { continue };
            out.push((addr, self.super_len(shape, u)));
            let blocks = self.read_super(shape, u, addr)?.blocks;
            let there = blocks.iter().filter_map(|block| block.addr);
            out.extend(there.map(|addr| (addr, self.block_len(shape, u, true))));
        }
        Ok(out)
    }

    fn super_len(&self, shape: &ExtensibleArrayShape, u: u32) -> u64 {
        let n_blocks = ExtensibleArrayShape::n_blocks(u);
        n_blocks
            .saturating_add(1)
            .saturating_mul(u64::from(self.file.sizes().offset))
            .saturating_add(shape.n_pages(u).div_ceil(8).saturating_mul(n_blocks))
            .saturating_add(shape.offset_len())
            .saturating_add(10)
    }

    /// Bytes of a data block, its pages included or not.
    fn block_len(&self, shape: &ExtensibleArrayShape, u: u32, with_pages: bool) -> u64 {
        let n_pages = shape.n_pages(u);
        let elements = pow2(shape.block_bits(u)).saturating_mul(shape.element_len);
        let body = match (n_pages > 0, with_pages) {
            (true, false) => 0,
            _ => elements.saturating_add(n_pages.saturating_mul(4)),
        };
        u64::from(self.file.sizes().offset)
            .saturating_add(shape.offset_len())
            .saturating_add(body)
            .saturating_add(10)
    }

    /// The chunks from a key on; pages up to the key `until` are read with that of `key`.
    pub(super) fn segment(&self, key: u64, until: u64) -> Result<KeySegment<'_>> {
        let open = self.open()?;
        let shape = &open.shape;
        let nothing = |high| Ok(KeySegment { high, chunks: SegmentChunks::Nothing });
        if key >= open.n_elems {
            return nothing(u64::MAX);
        }
        let Some(after) = key.checked_sub(shape.index_elems) else {
            let chunks = match &open.first {
                Some(table) => SegmentChunks::Linear { low: 0, table },
                None => SegmentChunks::Nothing,
            };
            return Ok(KeySegment { high: shape.index_elems, chunks });
        };
        let (u, block, element) = shape.place(after);
        // Where super block and data block begin and end, as keys.
        let super_low = shape.first_of(u).saturating_add(shape.index_elems);
        let super_high = shape.first_of(u.saturating_add(1)).saturating_add(shape.index_elems);
        let block_low = key.saturating_sub(element);
        let block_high = block_low.saturating_add(pow2(shape.block_bits(u)));
        if super_low > block_low {
            // Its own sizes say that the block is not in its super block.
            return Err(crate::HdfError::TooLarge {
                structure: "extensible array block",
                value: key,
            });
        }
        let (data, bitmap) = match self.data_block(open, u, block)? {
            FoundBlock::Block(data, bitmap) => (data, bitmap),
            FoundBlock::NoSuperBlocks => return nothing(u64::MAX),
            FoundBlock::NoSuperBlock => return nothing(super_high),
            FoundBlock::NoBlock => return nothing(block_high),
        };
        let Some(addr) = data.addr else { return nothing(block_high) };
        let elements = match data.read.get() {
            Some(elements) => elements,
            None => {
                let elements = self.read_data(shape, u, addr)?;
                data.read.get_or_init(|| elements)
            }
        };
        match elements {
            DataBlockElements::All(table) => {
                let chunks = SegmentChunks::Linear { low: block_low, table };
                Ok(KeySegment { high: block_high, chunks })
            }
            DataBlockElements::Pages(pages) => {
                let before = block.saturating_mul(pages.len());
                // Data blocks that the index block knows have no bits; they have no pages either,
                // unless the numbers in the header are strange.
                let is_written = |page: u64| {
                    bitmap.is_none_or(|bitmap| bit(bitmap, before.saturating_add(page)))
                };
                let until = until.min(block_high).saturating_sub(block_low);
                pages.segment(&self.file, &self.coding, block_low, (element, until), &is_written)
            }
        }
    }

    /// Data block `block` of super block `u`; its super block is read if need be.
    fn data_block<'a>(
        &self,
        open: &'a OpenExtensibleArray,
        u: u32,
        block: u64,
    ) -> Result<FoundBlock<'a>> {
        let shape = &open.shape;
        let (blocks, i, bitmap) = if u < shape.direct {
            (&open.blocks, ExtensibleArrayShape::blocks_before(u).saturating_add(block), None)
        } else {
            let i = u.saturating_sub(shape.direct) as usize;
            let Some(super_block) = open.supers.get(i) else {
                return Ok(FoundBlock::NoSuperBlocks);
            };
            let Some(contents) = self.contents(shape, u, super_block)? else {
                return Ok(FoundBlock::NoSuperBlock);
            };
            (&contents.blocks, block, Some(&*contents.bitmap))
        };
        let data = usize::try_from(i).ok().and_then(|i| blocks.get(i));
        Ok(data.map_or(FoundBlock::NoBlock, |data| FoundBlock::Block(data, bitmap)))
    }

    /// What a super block has, read if need be; `None` for one that was never written.
    fn contents<'a>(
        &self,
        shape: &ExtensibleArrayShape,
        u: u32,
        super_block: &'a SuperBlock,
    ) -> Result<Option<&'a SuperBlockContents>> {
        let Some(addr) = super_block.addr else { return Ok(None) };
        if let Some(contents) = super_block.read.get() {
            return Ok(Some(contents));
        }
        let contents = self.read_super(shape, u, addr)?;
        Ok(Some(super_block.read.get_or_init(|| contents)))
    }

    /// Has the blocks of a remote file come that have the keys from `low` up to, not including, `high`: all super blocks in one go, then all
    /// data blocks.
    pub(super) fn prepare(&self, low: u64, high: u64) -> Result<()> {
        let open = self.open()?;
        let shape = &open.shape;
        let Some(last) = high.min(open.n_elems).checked_sub(shape.index_elems.saturating_add(1))
        else {
            return Ok(());
        };
        let first = low.saturating_sub(shape.index_elems).min(last);
        let ((from, from_block, _), (to, to_block, _)) = (shape.place(first), shape.place(last));
        // The blocks of a super block that are wanted.
        let wanted = |u: u32| {
            let begin = if u == from { from_block } else { 0 };
            let end = if u == to { to_block } else { u64::MAX };
            move |i: u64| (begin..=end).contains(&i)
        };
        let unread = |u: u32, block: &DataBlock| {
            let addr = block.addr.filter(|_| block.read.get().is_none())?;
            Some((addr, self.block_len(shape, u, true)))
        };
        let supers = (shape.direct..).zip(&open.supers).filter(|(u, _)| (from..=to).contains(u));
        let heads = supers.clone().filter(|(_, block)| block.read.get().is_none());
        let heads = heads.filter_map(|(u, block)| Some((block.addr?, self.super_len(shape, u))));
        let mut told: Vec<(FileAddr, u64)> = heads.collect();
        for u in (from..=to).take_while(|&u| u < shape.direct) {
            let before = usize::try_from(ExtensibleArrayShape::blocks_before(u));
            let blocks = open.blocks.iter().skip(before.unwrap_or(usize::MAX));
            let blocks = blocks.zip(0..ExtensibleArrayShape::n_blocks(u));
            let blocks = blocks.filter(|&(_, i)| wanted(u)(i));
            told.extend(blocks.filter_map(|(block, _)| unread(u, block)));
        }
        self.file.will_read(told);
        let mut told = Vec::new();
        for (u, block) in supers {
            let Some(contents) = self.contents(shape, u, block)? else { continue };
            let blocks = contents.blocks.iter().zip(0u64..).filter(|&(_, i)| wanted(u)(i));
            told.extend(blocks.filter_map(|(block, _)| unread(u, block)));
        }
        self.file.will_read(told);
        Ok(())
    }

    fn read_super(
        &self,
        shape: &ExtensibleArrayShape,
        u: u32,
        addr: FileAddr,
    ) -> Result<SuperBlockContents> {
        let file = &*self.file;
        let n_blocks = ExtensibleArrayShape::n_blocks(u);
        let bitmap_len = shape.n_pages(u).div_ceil(8).saturating_mul(n_blocks);
        let bytes = file.read(SUPER, addr, self.super_len(shape, u))?;
        let mut reader = verified(file.reader(SUPER, addr, &bytes))?;
        read_block_head(&mut reader, *b"EASB", &self.coding, self.addr)?;
        reader.take_u64(shape.offset_len())?;
        let bitmap = reader.take_u64(bitmap_len)?.into();
        let blocks: Result<_> = (0..n_blocks).map(|_| DataBlock::read_from(&mut reader)).collect();
        Ok(SuperBlockContents { bitmap, blocks: blocks? })
    }

    fn read_data(
        &self,
        shape: &ExtensibleArrayShape,
        u: u32,
        addr: FileAddr,
    ) -> Result<DataBlockElements> {
        let file = &*self.file;
        let n_elems = pow2(shape.block_bits(u));
        let paged = shape.n_pages(u) > 0;
        let len = self.block_len(shape, u, false);
        let bytes = file.read(DATA, addr, len)?;
        let mut reader = verified(file.reader(DATA, addr, &bytes))?;
        read_block_head(&mut reader, *b"EADB", &self.coding, self.addr)?;
        reader.take_u64(shape.offset_len())?;
        if paged {
            let first = FileAddr(addr.0.saturating_add(len));
            let (bits, width) = (shape.page_bits, shape.size_width);
            Ok(DataBlockElements::Pages(ElementPages::new(
                file,
                first,
                bits,
                n_elems,
                shape.element_len,
                width,
            )?))
        } else {
            Ok(DataBlockElements::All(self.coding.table(&mut reader, n_elems, shape.size_width)?))
        }
    }
}
