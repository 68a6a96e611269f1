//! Fixed array ("FAHD", "FADB"): datasets whose largest extent is bounded.
//! Spec: HDF5 File Format, "Appendix C.3: The Fixed Array Index".
//! Watch: chunks are numbered within the largest extent, not the present one.
//! Watch: a page that was never written has no valid checksum; a bitmap says which pages were
//! written.

use std::sync::{Arc, OnceLock};

use super::location_table::LocationTable;
use super::{KeySegment, LocationCoding, SegmentChunks};
use crate::checksum::verified;
use crate::tuning::ARRAY_PAGES_READ_BYTES;
use crate::{File, FileAddr, HdfError, Reader, Result};

const HEADER: &str = "fixed array header";
const BLOCK: &str = "fixed array data block";
const PAGE: &str = "fixed array page";

/// A fixed array.
#[derive(Debug)]
pub(super) struct FixedArray {
    file: Arc<File>,
    addr: FileAddr,
    coding: LocationCoding,
    open: OnceLock<OpenFixedArray>,
}

#[derive(Debug)]
struct OpenFixedArray {
    /// The data block and its bytes, those of its pages included.
    block: Option<(FileAddr, u64)>,
    n_elems: u64,
    elements: FixedArrayElements,
}

#[derive(Debug)]
enum FixedArrayElements {
    /// Nothing was ever written.
    None,
    All(LocationTable),
    /// Which pages were written, from the highest bit of the first byte on.
    Pages(ElementPages, Box<[u8]>),
}

/// The elements of a block page by page, each with its checksum.
#[derive(Debug)]
pub(super) struct ElementPages {
    /// The first page.
    addr: FileAddr,
    /// Elements of a page, as a power of two.
    bits: u32,
    /// Elements in all.
    n_elems: u64,
    element_len: u64,
    size_width: usize,
    pages: Box<[OnceLock<LocationTable>]>,
}

impl ElementPages {
    /// Pages that begin at `addr`. They have to be inside the file.
    pub(super) fn new(
        file: &File,
        addr: FileAddr,
        bits: u32,
        n_elems: u64,
        element_len: u64,
        size_width: usize,
    ) -> Result<ElementPages> {
        let page_elems = 1u64.checked_shl(bits).unwrap_or(u64::MAX);
        let n_pages = n_elems.div_ceil(page_elems.max(1));
        let len = n_elems.saturating_mul(element_len).saturating_add(n_pages.saturating_mul(4));
        file.locate(PAGE, addr, len)?;
        let n_pages = usize::try_from(n_pages).unwrap_or(usize::MAX);
        let pages = (0..n_pages).map(|_| OnceLock::new()).collect();
        Ok(ElementPages { addr, bits, n_elems, element_len, size_width, pages })
    }

    /// Number of pages of a block.
    pub(super) fn len(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Bytes of a full page with its checksum.
    fn page_len(&self) -> u64 {
        1u64.checked_shl(self.bits).unwrap_or(0).saturating_mul(self.element_len).saturating_add(4)
    }

    /// Elements of a page; the last may be short.
    fn elems(&self, page: u64) -> u64 {
        let page_elems = 1u64.checked_shl(self.bits).unwrap_or(0);
        self.n_elems.saturating_sub(page.saturating_mul(page_elems)).min(page_elems)
    }

    /// The segment at element `i`, where the first element of the block has the key `low`. Pages up
    /// to element `until` are read with it. `is_written` says whether a page was ever written.
    pub(super) fn segment(
        &self,
        file: &File,
        coding: &LocationCoding,
        low: u64,
        (i, until): (u64, u64),
        is_written: &dyn Fn(u64) -> bool,
    ) -> Result<KeySegment<'_>> {
        let page = i.checked_shr(self.bits).unwrap_or(0);
        let begin = page.checked_shl(self.bits).unwrap_or(u64::MAX);
        let high = low.saturating_add(begin).saturating_add(self.elems(page));
        if !is_written(page) {
            return Ok(KeySegment { high, chunks: SegmentChunks::Nothing });
        }
        let cell = usize::try_from(page).ok().and_then(|page| self.pages.get(page));
        let (structure, at, what) = (PAGE, self.addr.0, "a page that was asked for");
        let missing = HdfError::Missing { structure, at, what };
        let cell = cell.ok_or_else(|| missing.clone())?;
        if cell.get().is_none() {
            let last = until.saturating_sub(1).max(i).checked_shr(self.bits).unwrap_or(0);
            self.read(file, coding, (page, last), is_written)?;
        }
        let low = low.saturating_add(begin);
        let table = cell.get().ok_or(missing)?;
        Ok(KeySegment { high, chunks: SegmentChunks::Linear { low, table } })
    }

    /// Tells a remote file of the pages with the elements from `from` up to, not including, `until`.
    pub(super) fn foretell(&self, file: &File, from: u64, until: u64) {
        let first = from.checked_shr(self.bits).unwrap_or(0);
        let last = until.saturating_sub(1).max(from).checked_shr(self.bits).unwrap_or(0);
        let n_pages = last.saturating_sub(first).saturating_add(1);
        let addr = self.addr.0.saturating_add(first.saturating_mul(self.page_len()));
        file.will_read([(FileAddr(addr), n_pages.saturating_mul(self.page_len()))]);
    }

    /// Reads the first of the pages given, and those after it up to the last that are not in memory
    /// yet.
    fn read(
        &self,
        file: &File,
        coding: &LocationCoding,
        (first, last): (u64, u64),
        is_written: &dyn Fn(u64) -> bool,
    ) -> Result<()> {
        let from = usize::try_from(first).unwrap_or(usize::MAX);
        let at_once = ARRAY_PAGES_READ_BYTES.checked_div(self.page_len()).unwrap_or(0).max(1);
        let wanted = last.saturating_sub(first).saturating_add(1).min(at_once);
        let cells = self.pages.iter().skip(from).zip(first..);
        let cells = cells.take(usize::try_from(wanted).unwrap_or(1));
        let cells =
            || cells.clone().take_while(|(cell, page)| cell.get().is_none() && is_written(*page));
        let lens = |page| self.elems(page).saturating_mul(self.element_len).saturating_add(4);
        let len = cells().map(|(_, page)| lens(page)).fold(0, u64::saturating_add);
        let addr = self.addr.0.saturating_add(first.saturating_mul(self.page_len()));
        let bytes = file.read(PAGE, FileAddr(addr), len)?;
        let mut reader = file.reader(PAGE, FileAddr(addr), &bytes);
        for (cell, page) in cells() {
            let len = usize::try_from(lens(page)).unwrap_or(usize::MAX);
            let mut body = verified(reader.sub(len)?)?;
            let table = coding.table(&mut body, self.elems(page), self.size_width)?;
            // Another thread may have been first, with the same bytes.
            let _ = cell.set(table);
        }
        Ok(())
    }
}

/// Bit `i` of a bitmap that begins with the highest bit of its first byte.
pub(super) fn bit(bitmap: &[u8], i: u64) -> bool {
    let byte = usize::try_from(i / 8).ok().and_then(|byte| bitmap.get(byte));
    byte.is_some_and(|byte| byte & (0x80 >> (i % 8)) != 0)
}

/// Checks the client that an array of chunks has to name: 1 with filters, 0 without.
pub(super) fn check_client(reader: &mut Reader<'_>, coding: &LocationCoding) -> Result<()> {
    let client = reader.u8()?;
    if client == u8::from(coding.filtered) {
        Ok(())
    } else {
        Err(reader.bad("the kind of elements", u64::from(client)))
    }
}

/// Reads the beginning of a block of an array: its signature, version 0, the client and the header
/// that it belongs to.
pub(super) fn read_block_head(
    reader: &mut Reader<'_>,
    letters: [u8; 4],
    coding: &LocationCoding,
    header: FileAddr,
) -> Result<()> {
    reader.signature(letters)?;
    reader.version(0..=0)?;
    check_client(reader, coding)?;
    let owner = reader.defined_addr("its header")?;
    if owner == header { Ok(()) } else { Err(reader.bad("the address of its header", owner.0)) }
}

impl FixedArray {
    pub(super) fn new(file: Arc<File>, addr: FileAddr, coding: LocationCoding) -> FixedArray {
        FixedArray { file, addr, coding, open: OnceLock::new() }
    }

    fn open(&self) -> Result<&OpenFixedArray> {
        if let Some(open) = self.open.get() {
            return Ok(open);
        }
        let open = self.read()?;
        Ok(self.open.get_or_init(|| open))
    }

    fn read(&self) -> Result<OpenFixedArray> {
        let file = &*self.file;
        let sizes = file.sizes();
        let offset = u64::from(sizes.offset);
        let len = 12u64.saturating_add(offset).saturating_add(u64::from(sizes.length));
        let bytes = file.read(HEADER, self.addr, len)?;
        let mut reader = verified(file.reader(HEADER, self.addr, &bytes))?;
        reader.signature(*b"FAHD")?;
        reader.version(0..=0)?;
        check_client(&mut reader, &self.coding)?;
        let element_len = u64::from(reader.u8()?);
        let bits = u32::from(reader.u8()?);
        let n_elems = reader.length()?;
        let Some(block) = reader.addr()? else {
            return Ok(OpenFixedArray { block: None, n_elems, elements: FixedArrayElements::None });
        };
        if bits >= 32 {
            return Err(reader.bad("the bits of a page", u64::from(bits)));
        }
        let size_width = self.coding.size_width(file, HEADER, self.addr, element_len)?;

        let page_elems = 1u64 << bits;
        let paged = n_elems > page_elems;
        let n_pages = n_elems.div_ceil(page_elems);
        let after_head =
            if paged { n_pages.div_ceil(8) } else { n_elems.saturating_mul(element_len) };
        let len = 10u64.saturating_add(offset).saturating_add(after_head);
        let bytes = file.read(BLOCK, block, len)?;
        let mut reader = verified(file.reader(BLOCK, block, &bytes))?;
        read_block_head(&mut reader, *b"FADB", &self.coding, self.addr)?;
        let elements = if paged {
            let bitmap = reader.rest().into();
            let first = FileAddr(block.0.saturating_add(len));
            let pages = ElementPages::new(file, first, bits, n_elems, element_len, size_width)?;
            FixedArrayElements::Pages(pages, bitmap)
        } else {
            FixedArrayElements::All(self.coding.table(&mut reader, n_elems, size_width)?)
        };
        let pages = n_elems.saturating_mul(element_len).saturating_add(n_pages.saturating_mul(4));
        let whole = if paged { len.saturating_add(pages) } else { len };
        Ok(OpenFixedArray { block: Some((block, whole)), n_elems, elements })
    }

    /// The extents of all parts of the array.
    pub(super) fn extents(&self) -> Result<Vec<(FileAddr, u64)>> {
        let sizes = self.file.sizes();
        let len = 12u64.saturating_add(sizes.offset.into()).saturating_add(sizes.length.into());
        let mut out = vec![(self.addr, len)];
        out.extend(self.open()?.block);
        Ok(out)
    }

    /// Has the pages of a remote file come that have the keys from `low` up to, not including, `high`.
    pub(super) fn prepare(&self, low: u64, high: u64) -> Result<()> {
        let open = self.open()?;
        if let FixedArrayElements::Pages(pages, _) = &open.elements {
            pages.foretell(&self.file, low, high.min(open.n_elems));
        }
        Ok(())
    }

    pub(super) fn segment(&self, key: u64, until: u64) -> Result<KeySegment<'_>> {
        let open = self.open()?;
        if key >= open.n_elems {
            let (structure, at) = (HEADER, self.coding.at(self.addr));
            let what = "the number of elements, fewer than chunks:";
            return Err(HdfError::BadValue { structure, at, what, value: open.n_elems });
        }
        let high = open.n_elems;
        match &open.elements {
            FixedArrayElements::None => Ok(KeySegment { high, chunks: SegmentChunks::Nothing }),
            FixedArrayElements::All(table) => {
                Ok(KeySegment { high, chunks: SegmentChunks::Linear { low: 0, table } })
            }
            FixedArrayElements::Pages(pages, bitmap) => {
                let is_written = |page| bit(bitmap, page);
                pages.segment(&self.file, &self.coding, 0, (key, until.min(high)), &is_written)
            }
        }
    }
}
