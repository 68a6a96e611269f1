//! Extensible array ("EAHD", "EAIB", "EASB", "EADB"): datasets with one unlimited dimension.
//! Spec: HDF5 File Format, "Appendix C.4: The Extensible Array Index".
//! The first elements are in the index block. The rest is in super blocks: super block `u` has
//! 2^(u/2) data blocks of 2^((u+1)/2) times the least number of elements. The index block holds the
//! addresses of the data blocks of the first few super blocks and of all other super blocks.
//! Watch: the bits that say which pages were written go on from one data block to the next.
//! Watch: what data blocks say of their offset in the array is not what one expects; unused here.

use std::sync::{Arc, OnceLock};

use super::fixed_array::{Pages, bit, check_client, check_owner};
use super::table::Table;
use super::{Segment, Stored, What};
use crate::guard::verified;
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
    stored: Stored,
    open: OnceLock<Open>,
}

#[derive(Debug)]
struct Open {
    shape: Shape,
    /// The index block and its bytes.
    index: Option<(FileAddr, u64)>,
    /// Elements beyond this one were never set.
    n_elems: u64,
    /// Elements in the index block.
    first: Option<Table>,
    /// Data blocks that the index block knows.
    blocks: Box<[DataBlock]>,
    /// Super blocks after those.
    supers: Box<[SuperBlock]>,
}

/// What follows from the header.
#[derive(Clone, Copy, Debug)]
struct Shape {
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
    read: OnceLock<Super>,
}

#[derive(Debug)]
struct Super {
    /// Which pages were written; empty without pages.
    bitmap: Box<[u8]>,
    blocks: Box<[DataBlock]>,
}

#[derive(Debug)]
struct DataBlock {
    addr: Option<FileAddr>,
    read: OnceLock<Elements>,
}

#[derive(Debug)]
enum Elements {
    All(Table),
    Pages(Pages),
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

impl Shape {
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
    pub(super) fn new(file: Arc<File>, addr: FileAddr, stored: Stored) -> ExtensibleArray {
        ExtensibleArray { file, addr, stored, open: OnceLock::new() }
    }

    fn open(&self) -> Result<&Open> {
        if let Some(open) = self.open.get() {
            return Ok(open);
        }
        let open = self.read()?;
        Ok(self.open.get_or_init(|| open))
    }

    fn read(&self) -> Result<Open> {
        let file = &*self.file;
        let sizes = file.sizes();
        let offset = u64::from(sizes.offset);
        let len =
            u64::from(sizes.length).saturating_mul(6).saturating_add(offset).saturating_add(16);
        let bytes = file.read(HEADER, self.addr, len)?;
        let mut reader = verified(file.reader(HEADER, self.addr, &bytes))?;
        reader.signature(*b"EAHD")?;
        reader.version(0..=0)?;
        check_client(&mut reader, &self.stored)?;
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
        let size_width = self.stored.size_width(file, HEADER, self.addr, element_len)?;
        let supers = max_bits.saturating_sub(min_elems_bits).saturating_add(1);
        let direct = min_pointers.trailing_zeros().saturating_mul(2).min(supers);
        let shape = Shape {
            element_len,
            size_width,
            max_bits,
            index_elems,
            min_elems_bits,
            direct,
            supers,
            page_bits,
        };
        let _super_and_data_blocks =
            (reader.length()?, reader.length()?, reader.length()?, reader.length()?);
        let n_elems = reader.length()?;
        let _reserved_elems = reader.length()?;
        let Some(index) = reader.addr()? else {
            return Ok(Open {
                shape,
                index: None,
                n_elems: 0,
                first: None,
                blocks: [].into(),
                supers: [].into(),
            });
        };
        self.read_index(shape, n_elems, index, min_pointers)
    }

    fn read_index(
        &self,
        shape: Shape,
        n_elems: u64,
        addr: FileAddr,
        min_pointers: u8,
    ) -> Result<Open> {
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
        reader.signature(*b"EAIB")?;
        reader.version(0..=0)?;
        check_client(&mut reader, &self.stored)?;
        check_owner(&mut reader, self.addr)?;
        let first = self.stored.table(&mut reader, shape.index_elems, shape.size_width)?;
        let blocks: Result<_> = (0..n_blocks).map(|_| DataBlock::read_from(&mut reader)).collect();
        let supers: Result<_> = (0..n_supers)
            .map(|_| Ok(SuperBlock { addr: reader.addr()?, read: OnceLock::new() }))
            .collect();
        let (first, index) = (Some(first), Some((addr, len)));
        Ok(Open { shape, index, n_elems, first, blocks: blocks?, supers: supers? })
    }

    /// All that the array takes of the file.
    pub(super) fn extents(&self) -> Result<Vec<(FileAddr, u64)>> {
        let open = self.open()?;
        let (shape, sizes) = (&open.shape, self.file.sizes());
        let header_len = u64::from(sizes.length)
            .saturating_mul(6)
            .saturating_add(u64::from(sizes.offset))
            .saturating_add(16);
        let mut out = vec![(self.addr, header_len)];
        out.extend(open.index);
        let mut u = 0u32;
        for (i, block) in (0u64..).zip(&open.blocks) {
            while Shape::blocks_before(u.saturating_add(1)) <= i {
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

    fn super_len(&self, shape: &Shape, u: u32) -> u64 {
        let n_blocks = Shape::n_blocks(u);
        n_blocks
            .saturating_add(1)
            .saturating_mul(u64::from(self.file.sizes().offset))
            .saturating_add(shape.n_pages(u).div_ceil(8).saturating_mul(n_blocks))
            .saturating_add(shape.offset_len())
            .saturating_add(10)
    }

    /// Bytes of a data block, its pages included or not.
    fn block_len(&self, shape: &Shape, u: u32, with_pages: bool) -> u64 {
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

    pub(super) fn segment(&self, key: u64, until: u64) -> Result<Segment<'_>> {
        let open = self.open()?;
        let shape = &open.shape;
        if key >= open.n_elems {
            return Ok(Segment { high: u64::MAX, what: What::Nothing });
        }
        let Some(after) = key.checked_sub(shape.index_elems) else {
            let what = match &open.first {
                Some(table) => What::Linear { low: 0, table },
                None => What::Nothing,
            };
            return Ok(Segment { high: shape.index_elems, what });
        };
        let (u, block, element) = shape.place(after);
        // Where things begin and end, as keys.
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
        let nothing = |high| Ok(Segment { high, what: What::Nothing });
        let (data, bitmap) = if u < shape.direct {
            let i = Shape::blocks_before(u).saturating_add(block);
            let data = usize::try_from(i).ok().and_then(|i| open.blocks.get(i));
            (data, None)
        } else {
            let i = u.saturating_sub(shape.direct) as usize;
            let Some(block_of) = open.supers.get(i) else { return nothing(u64::MAX) };
            let Some(addr) = block_of.addr else { return nothing(super_high) };
            let read = match block_of.read.get() {
                Some(read) => read,
                None => {
                    let read = self.read_super(shape, u, addr)?;
                    block_of.read.get_or_init(|| read)
                }
            };
            let data = usize::try_from(block).ok().and_then(|i| read.blocks.get(i));
            (data, Some(&read.bitmap))
        };
        let Some(data) = data else { return nothing(block_high) };
        let Some(addr) = data.addr else { return nothing(block_high) };
        let elements = match data.read.get() {
            Some(elements) => elements,
            None => {
                let elements = self.read_data(shape, u, addr)?;
                data.read.get_or_init(|| elements)
            }
        };
        match elements {
            Elements::All(table) => {
                Ok(Segment { high: block_high, what: What::Linear { low: block_low, table } })
            }
            Elements::Pages(pages) => {
                let before = block.saturating_mul(pages.len());
                // Data blocks that the index block knows have no bits; they have no pages either,
                // unless the numbers in the header are strange.
                let is_written = |page: u64| {
                    bitmap.is_none_or(|bitmap| bit(bitmap, before.saturating_add(page)))
                };
                let until = until.min(block_high).saturating_sub(block_low);
                pages.segment(&self.file, &self.stored, block_low, (element, until), &is_written)
            }
        }
    }

    fn read_super(&self, shape: &Shape, u: u32, addr: FileAddr) -> Result<Super> {
        let file = &*self.file;
        let n_blocks = Shape::n_blocks(u);
        let bitmap_len = shape.n_pages(u).div_ceil(8).saturating_mul(n_blocks);
        let bytes = file.read(SUPER, addr, self.super_len(shape, u))?;
        let mut reader = verified(file.reader(SUPER, addr, &bytes))?;
        reader.signature(*b"EASB")?;
        reader.version(0..=0)?;
        check_client(&mut reader, &self.stored)?;
        check_owner(&mut reader, self.addr)?;
        reader.take_u64(shape.offset_len())?;
        let bitmap = reader.take_u64(bitmap_len)?.into();
        let blocks: Result<_> = (0..n_blocks).map(|_| DataBlock::read_from(&mut reader)).collect();
        Ok(Super { bitmap, blocks: blocks? })
    }

    fn read_data(&self, shape: &Shape, u: u32, addr: FileAddr) -> Result<Elements> {
        let file = &*self.file;
        let n_elems = pow2(shape.block_bits(u));
        let paged = shape.n_pages(u) > 0;
        let len = self.block_len(shape, u, false);
        let bytes = file.read(DATA, addr, len)?;
        let mut reader = verified(file.reader(DATA, addr, &bytes))?;
        reader.signature(*b"EADB")?;
        reader.version(0..=0)?;
        check_client(&mut reader, &self.stored)?;
        check_owner(&mut reader, self.addr)?;
        reader.take_u64(shape.offset_len())?;
        if paged {
            let first = FileAddr(addr.0.saturating_add(len));
            let (bits, width) = (shape.page_bits, shape.size_width);
            Ok(Elements::Pages(Pages::new(file, first, bits, n_elems, shape.element_len, width)?))
        } else {
            Ok(Elements::All(self.stored.table(&mut reader, n_elems, shape.size_width)?))
        }
    }
}
