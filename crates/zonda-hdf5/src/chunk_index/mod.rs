//! Where the chunks of a dataset are.
//! Spec: HDF5 File Format, "The Data Layout Message" and "Appendix C: Types of Indexes for Dataset
//! Chunks".
//!
//! All kinds of indexes answer one question: which chunks of a box exist, and where. They number
//! chunks by keys ([`grid`]) and answer for a segment of keys at a time: those of one node, block
//! or page. What was read stays in memory, in 8 to 20 bytes a chunk.

mod btree_v1;
mod btree_v2;
mod chunk_btree;
mod extensible_array;
mod fixed_array;
mod grid;
mod implicit;
mod location_table;
mod scattered;
mod single;
mod write_tree;

use std::ops::Range;
use std::sync::Arc;

use self::chunk_btree::{ChunkBtree, ChunkLeaf, NodeReader};
use self::grid::{ChunkGrid, DimValues, Region};
use self::location_table::{LocationEntry, LocationTable};
use crate::message::{ChunkIndexKind, ChunkedLayout};
use crate::{File, FileAddr, HdfError, Reader, Result};

pub use self::write_tree::{ChunkTree, TreeCommit};

const NAME: &str = "chunk index";

/// A chunk in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLocation {
    /// First byte in the storage. It was not compared with the length of the file: a wrong one
    /// concerns this chunk only.
    pub at: u64,
    /// Stored bytes; those of a whole chunk where there are no filters.
    pub len: u64,
    /// Bit `i` is set where filter `i` (in pipeline order) was skipped; all are for chunks that the
    /// extent cuts, where the layout says that these are not filtered.
    pub mask: u32,
}

/// The chunks of a run of keys: from the key that was asked for up to `high`, not included.
#[derive(Debug)]
struct KeySegment<'a> {
    high: u64,
    chunks: SegmentChunks<'a>,
}

/// Where the chunks of a segment are.
#[derive(Debug)]
enum SegmentChunks<'a> {
    /// There are none.
    Nothing,
    /// The segment is one key, which has this chunk or none.
    One(Option<ChunkLocation>),
    /// In a table by position; the first position is that of the key `low`.
    Linear { low: u64, table: &'a LocationTable },
    /// In a leaf, which has the keys of its chunks.
    Sorted(&'a ChunkLeaf),
    /// Side by side in the file: the first chunk of the dataset at `at`, each of `len` bytes.
    Adjacent { at: u64, len: u64 },
}

/// How the index of one dataset encodes the locations of chunks.
#[derive(Clone, Copy, Debug)]
struct LocationCoding {
    /// What addresses are relative to.
    base: u64,
    /// Bytes of a chunk without filters.
    chunk_bytes: u64,
    filtered: bool,
}

impl LocationCoding {
    fn at(&self, addr: FileAddr) -> u64 {
        self.base.saturating_add(addr.0)
    }

    fn len(&self, stored: u64) -> u64 {
        if self.filtered { stored } else { self.chunk_bytes }
    }

    /// Bytes of a stored size in elements of `len` bytes: an element has an address, and a size and
    /// a mask where chunks are filtered. The layout's version says the width, too; it agrees with
    /// the elements.
    fn size_width(
        &self,
        file: &File,
        structure: &'static str,
        addr: FileAddr,
        len: u64,
    ) -> Result<usize> {
        let offset = u64::from(file.sizes().offset);
        let fixed = if self.filtered { offset.saturating_add(4) } else { offset };
        match len.checked_sub(fixed) {
            Some(width) if self.filtered && (1..=8).contains(&width) => {
                Ok(usize::try_from(width).unwrap_or(8))
            }
            Some(0) if !self.filtered => Ok(0),
            _ => Err(HdfError::BadValue {
                structure,
                at: self.at(addr),
                what: "the bytes of an element",
                value: len,
            }),
        }
    }

    /// Reads an element: address, and size and mask where filtered.
    #[inline]
    fn entry(&self, reader: &mut Reader<'_>, size_width: usize) -> Result<LocationEntry> {
        let at = reader.addr()?.map(|addr| self.at(addr));
        if self.filtered {
            Ok(LocationEntry { at, len: reader.uint(size_width)?, mask: reader.u32()? })
        } else {
            Ok(LocationEntry { at, len: self.chunk_bytes, mask: 0 })
        }
    }

    /// Reads `n` elements.
    fn table(&self, reader: &mut Reader<'_>, n: u64, size_width: usize) -> Result<LocationTable> {
        let element = usize::from(reader.sizes().offset).saturating_add(size_width);
        let n = reader.count(n, element)?;
        let mut table = location_table::LocationTableBuilder::with_capacity(n);
        for _ in 0..n {
            table.push(self.entry(reader, size_width)?);
        }
        Ok(table.finish())
    }
}

#[derive(Debug)]
enum IndexStructure {
    /// Nothing was ever written.
    Empty,
    Tree(ChunkBtree),
    Single(ChunkLocation),
    Implicit(implicit::Implicit),
    FixedArray(fixed_array::FixedArray),
    ExtensibleArray(extensible_array::ExtensibleArray),
}

/// The index of the chunks of one dataset. All methods may be called from any thread.
#[derive(Debug)]
pub struct ChunkIndex {
    grid: ChunkGrid,
    index: IndexStructure,
    partial_edge_unfiltered: bool,
    is_remote: bool,
}

impl ChunkIndex {
    /// The index of a dataset. Reads nothing: that waits until chunks are asked for.
    ///
    /// `dims` is the extent in elements, `max_dims` the largest one (`u64::MAX` for unlimited, empty
    /// where it is `dims`). `filtered` says whether the dataset has a filter pipeline.
    ///
    /// # Errors
    /// [`HdfError::BadValue`] for chunks of no elements or of too many, and where the shape does not
    /// fit the kind of index.
    pub fn new(
        file: Arc<File>,
        layout: &ChunkedLayout,
        dims: &[u64],
        max_dims: &[u64],
        filtered: bool,
    ) -> Result<ChunkIndex> {
        let at = layout.addr.map_or(0, |addr| addr.0);
        let grid = ChunkGrid::new(layout.index, &layout.chunk_dims, dims, max_dims)?;
        let most = file.limits().chunk_bytes;
        let elem = u64::from(layout.elem_size);
        let bytes = layout.chunk_dims.iter().try_fold(elem, |bytes, &dim| bytes.checked_mul(dim));
        let Some(chunk_bytes) = bytes.filter(|&bytes| bytes <= most) else {
            let what = "bytes in a chunk";
            return Err(HdfError::Limit { structure: NAME, at, what, limit: most });
        };
        let base = file.locate(NAME, FileAddr(0), 0)?;
        let coding = LocationCoding { base, chunk_bytes, filtered };
        let rank = grid.rank();
        let is_remote = file.is_remote();
        let index = match (layout.addr, layout.index) {
            (None, _) => IndexStructure::Empty,
            (Some(addr), ChunkIndexKind::BtreeV1) => {
                let nodes = btree_v1::NodesV1::new(addr, rank, coding);
                IndexStructure::Tree(ChunkBtree::new(file, NodeReader::V1(nodes)))
            }
            (Some(addr), ChunkIndexKind::BtreeV2 { .. }) => {
                let nodes = btree_v2::NodesV2::new(addr, coding);
                IndexStructure::Tree(ChunkBtree::new(file, NodeReader::V2(nodes)))
            }
            (Some(addr), ChunkIndexKind::Single { filtered }) => {
                IndexStructure::Single(single::location(addr, coding, filtered))
            }
            (Some(addr), ChunkIndexKind::Implicit) => {
                IndexStructure::Implicit(implicit::Implicit::new(file, addr, coding))
            }
            (Some(addr), ChunkIndexKind::FixedArray { .. }) => {
                IndexStructure::FixedArray(fixed_array::FixedArray::new(file, addr, coding))
            }
            (Some(addr), ChunkIndexKind::ExtensibleArray { .. }) => {
                IndexStructure::ExtensibleArray(extensible_array::ExtensibleArray::new(
                    file, addr, coding,
                ))
            }
        };
        let partial_edge_unfiltered = layout.partial_edge_unfiltered;
        Ok(ChunkIndex { grid, index, partial_edge_unfiltered, is_remote })
    }

    /// Chunks along each dimension, the last perhaps cut by the extent.
    #[must_use]
    pub fn grid(&self) -> &[u64] {
        &self.grid.counts
    }

    /// Tells `found` of the chunks that exist in a box, both corners included, in the order of the
    /// index. Coordinates count chunks, slowest dimension first; those outside the extent have no
    /// chunks. Reads the parts of the index that the box needs and that no call before has read.
    ///
    /// # Errors Damage in these parts, perhaps after `found` was called.
    pub fn locate(
        &self,
        first: &[u64],
        last: &[u64],
        found: &mut dyn FnMut(&[u64], ChunkLocation),
    ) -> Result<()> {
        if first == last {
            if let Some(location) = self.find(first)? {
                found(first, location);
            }
            return Ok(());
        }
        let Some(region) = Region::new(&self.grid, first, last) else { return Ok(()) };
        if let IndexStructure::Tree(tree) = &self.index {
            tree.prepare(&self.grid, &region)?;
        }
        let mut coords = DimValues::from_elem(0, self.grid.rank());
        let mut run = region.next(0);
        if let Some((low, _)) = run {
            self.prepare(low, self.grid.key(last).map_or(u64::MAX, |key| key.saturating_add(1)))?;
        }
        while let Some((low, high)) = run {
            let segment = self.segment(low, high)?;
            // A segment counts as one key at least, so that this loop ends whatever the file says.
            let end = segment.high.max(low.saturating_add(1)).min(high);
            // There are no more chunks with keys before this one.
            let mut next = end;
            match segment.chunks {
                SegmentChunks::Nothing => next = segment.high.max(end),
                SegmentChunks::One(location) => {
                    self.grid.coords(low, &mut coords);
                    self.report(&coords, location, found);
                }
                SegmentChunks::Linear { low: begin, table } => {
                    self.grid.coords(low, &mut coords);
                    for key in low..end {
                        let i = usize::try_from(key.saturating_sub(begin)).unwrap_or(usize::MAX);
                        self.report(&coords, table.get(i), found);
                        self.grid.advance(&mut coords);
                    }
                }
                SegmentChunks::Adjacent { at, len } => {
                    self.grid.coords(low, &mut coords);
                    for key in low..end {
                        let at = at.saturating_add(key.saturating_mul(len));
                        self.report(&coords, Some(ChunkLocation { at, len, mask: 0 }), found);
                        self.grid.advance(&mut coords);
                    }
                }
                SegmentChunks::Sorted(leaf) => {
                    let after = self.report_leaf(leaf, low..end, &mut coords, found);
                    next = after.map_or(segment.high, |key| key.min(segment.high)).max(end);
                }
            }
            run = if next < high { Some((next, high)) } else { region.next(next) };
        }
        Ok(())
    }

    /// Has the blocks of a remote file's array come that have the keys from `low` up to, not including, `high`. What is damaged may not be
    /// needed.
    fn prepare(&self, low: u64, high: u64) -> Result<()> {
        HdfError::of_storage(match &self.index {
            IndexStructure::FixedArray(array) if self.is_remote => array.prepare(low, high),
            IndexStructure::ExtensibleArray(array) if self.is_remote => array.prepare(low, high),
            _ => Ok(()),
        })
    }

    /// Tells `found` of the chunks of a leaf that have these keys; gives the key of the first chunk
    /// behind them. `coords` is scratch.
    fn report_leaf(
        &self,
        leaf: &ChunkLeaf,
        keys: Range<u64>,
        coords: &mut DimValues,
        found: &mut dyn FnMut(&[u64], ChunkLocation),
    ) -> Option<u64> {
        let mut i = leaf.keys.below(keys.start);
        let mut before = None;
        let mut after = leaf.keys.get(i);
        while let Some(key) = after.filter(|&key| key < keys.end) {
            if before.is_some_and(|before: u64| before.saturating_add(1) == key) {
                self.grid.advance(coords);
            } else {
                self.grid.coords(key, coords);
            }
            self.report(coords, leaf.table.get(i), found);
            before = Some(key);
            i = i.saturating_add(1);
            after = leaf.keys.get(i);
        }
        after
    }

    /// Tells `found` of all chunks that exist.
    ///
    /// # Errors
    /// As [`ChunkIndex::locate`].
    pub fn for_each(&self, found: &mut dyn FnMut(&[u64], ChunkLocation)) -> Result<()> {
        let first = DimValues::from_elem(0, self.grid.rank());
        let last: DimValues =
            self.grid.counts.iter().map(|count| count.saturating_sub(1)).collect();
        if self.grid.total == 0 { Ok(()) } else { self.locate(&first, &last, found) }
    }

    /// The extents of an index that is an array; none for other kinds.
    ///
    /// # Errors
    /// Damage of its blocks.
    pub(crate) fn array_extents(&self) -> Result<Vec<(FileAddr, u64)>> {
        match &self.index {
            IndexStructure::FixedArray(array) => array.extents(),
            IndexStructure::ExtensibleArray(array) => array.extents(),
            _ => Ok(Vec::new()),
        }
    }

    /// How many chunks exist.
    ///
    /// # Errors
    /// As [`ChunkIndex::locate`].
    pub fn n_chunks(&self) -> Result<u64> {
        let mut n = 0u64;
        self.for_each(&mut |_, _| n = n.saturating_add(1))?;
        Ok(n)
    }

    /// The chunk with these coordinates, if it exists.
    ///
    /// # Errors
    /// As [`ChunkIndex::locate`].
    pub fn find(&self, coords: &[u64]) -> Result<Option<ChunkLocation>> {
        let Some(key) = self.grid.key(coords) else { return Ok(None) };
        let segment = self.segment(key, key.saturating_add(1))?;
        let location = match segment.chunks {
            SegmentChunks::Nothing => None,
            SegmentChunks::One(location) => location,
            SegmentChunks::Linear { low, table } => {
                table.get(usize::try_from(key.saturating_sub(low)).unwrap_or(usize::MAX))
            }
            SegmentChunks::Adjacent { at, len } => {
                let at = at.saturating_add(key.saturating_mul(len));
                Some(ChunkLocation { at, len, mask: 0 })
            }
            SegmentChunks::Sorted(leaf) => {
                let i = leaf.keys.below(key);
                if leaf.keys.get(i) == Some(key) { leaf.table.get(i) } else { None }
            }
        };
        Ok(location.map(|location| self.adjust(coords, location)))
    }

    /// The segment that begins at `key`. The caller needs no keys from `until` on.
    fn segment(&self, key: u64, until: u64) -> Result<KeySegment<'_>> {
        match &self.index {
            IndexStructure::Empty => {
                Ok(KeySegment { high: u64::MAX, chunks: SegmentChunks::Nothing })
            }
            IndexStructure::Tree(tree) => tree.segment(&self.grid, key),
            IndexStructure::Single(location) => {
                Ok(KeySegment { high: u64::MAX, chunks: SegmentChunks::One(Some(*location)) })
            }
            IndexStructure::Implicit(implicit) => implicit.segment(&self.grid),
            IndexStructure::FixedArray(array) => array.segment(key, until),
            IndexStructure::ExtensibleArray(array) => array.segment(key, until),
        }
    }

    /// Tells `found` of a chunk, if there is one.
    fn report(
        &self,
        coords: &[u64],
        location: Option<ChunkLocation>,
        found: &mut dyn FnMut(&[u64], ChunkLocation),
    ) {
        if let Some(location) = location {
            found(coords, self.adjust(coords, location));
        }
    }

    /// The location with the mask that a chunk which the extent cuts has where the layout says so.
    fn adjust(&self, coords: &[u64], location: ChunkLocation) -> ChunkLocation {
        if self.partial_edge_unfiltered && self.grid.is_cut(coords) {
            ChunkLocation { mask: u32::MAX, ..location }
        } else {
            location
        }
    }
}
