//! Which bytes of a file belong to what: every extent that can be reached, with its kind and its
//! object.
//!
//! A walk goes from the superblock through all objects. It reports what is damaged and passes over
//! it, so that all else is known nevertheless. It reports extents that overlap, too: in a sound
//! file none do.
//!
//! Only values refer to collections of the global heap, and values are not read here. Collections
//! are found by their signature in bytes that belong to nothing else, so one that no value refers
//! to any more counts as used.
//!
//! Memory is in proportion to the number of extents, where pieces of one object that lie side by
//! side count once; `USAGE_EXTENTS` (`tuning.rs`) bounds it.

mod chunks;
mod gaps;
mod walk;

use std::sync::Arc;

use hashbrown::HashMap;

use crate::tuning::{USAGE_EXTENTS, USAGE_REPORTS};
use crate::{File, FileAddr, HdfError};

/// What an extent holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExtentKind {
    /// Before the superblock: for other programs.
    UserBlock,
    /// Superblock and driver information.
    Superblock,
    /// A block of an object header.
    ObjectHeader,
    /// Links of a group outside of its header: B-trees, symbol tables, heaps.
    Links,
    /// Attributes of an object outside of its header: heaps and B-trees.
    Attributes,
    /// An index of chunks.
    ChunkIndex,
    /// Chunks, as they are stored.
    Chunks,
    /// Data in one run.
    Contiguous,
    /// Names of external files.
    ExternalNames,
    /// A collection of the global heap.
    GlobalHeap,
    /// Shared messages: table, indexes, heaps.
    SharedMessages,
    /// Free-space managers with their lists.
    FreeSpace,
    /// The image of a metadata cache.
    CacheImage,
}

impl ExtentKind {
    /// All of them.
    pub const ALL: [ExtentKind; 13] = [
        ExtentKind::UserBlock,
        ExtentKind::Superblock,
        ExtentKind::ObjectHeader,
        ExtentKind::Links,
        ExtentKind::Attributes,
        ExtentKind::ChunkIndex,
        ExtentKind::Chunks,
        ExtentKind::Contiguous,
        ExtentKind::ExternalNames,
        ExtentKind::GlobalHeap,
        ExtentKind::SharedMessages,
        ExtentKind::FreeSpace,
        ExtentKind::CacheImage,
    ];

    /// A word or two for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ExtentKind::UserBlock => "user block",
            ExtentKind::Superblock => "superblock",
            ExtentKind::ObjectHeader => "object headers",
            ExtentKind::Links => "links",
            ExtentKind::Attributes => "attributes",
            ExtentKind::ChunkIndex => "chunk indexes",
            ExtentKind::Chunks => "chunks",
            ExtentKind::Contiguous => "contiguous data",
            ExtentKind::ExternalNames => "names of external files",
            ExtentKind::GlobalHeap => "global heap",
            ExtentKind::SharedMessages => "shared messages",
            ExtentKind::FreeSpace => "free-space managers",
            ExtentKind::CacheImage => "cache image",
        }
    }

    /// Whether it is data as they are stored, and not what describes them.
    #[must_use]
    pub fn is_raw_data(self) -> bool {
        matches!(self, ExtentKind::Chunks | ExtentKind::Contiguous | ExtentKind::GlobalHeap)
    }
}

/// A run of bytes of the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedExtent {
    /// First byte, user block included.
    pub at: u64,
    /// Bytes.
    pub len: u64,
    /// What it holds.
    pub kind: ExtentKind,
    /// Header of the object that it belongs to; `None` for what belongs to the file.
    pub owner: Option<FileAddr>,
}

impl UsedExtent {
    /// The byte behind it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.at.saturating_add(self.len)
    }
}

/// The bytes that belong to one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectUsage {
    /// Bytes that describe it: header, attributes, links, index of chunks.
    pub metadata_bytes: u64,
    /// Bytes of data as they are stored.
    pub data_bytes: u64,
    /// Of these, bytes in chunks without filters that are outside of the extent.
    pub unused_bytes: u64,
    /// Chunks in the file.
    pub n_chunks: u64,
    /// Chunks that do not begin where the chunk before them, in the order of the index, ends.
    pub n_jumps: u64,
}

/// Something that is damaged.
#[derive(Clone, Debug)]
pub struct UsageFault {
    /// Header of the object that it belongs to; `None` for what belongs to the file.
    pub owner: Option<FileAddr>,
    /// What is wrong, and where.
    pub error: HdfError,
}

/// Which bytes of a file belong to what.
#[derive(Clone, Debug, Default)]
pub struct FileUsage {
    /// Bytes of the storage.
    pub file_bytes: u64,
    /// Extents in ascending order, those of one object and kind that touch put together.
    pub extents: Vec<UsedExtent>,
    /// Pairs of extents that overlap, the first thousand.
    pub overlaps: Vec<(UsedExtent, UsedExtent)>,
    /// What is damaged, the first thousand.
    pub faults: Vec<UsageFault>,
    /// The bytes of each object, by the address of its header.
    pub objects: HashMap<FileAddr, ObjectUsage>,
    /// Something could not be counted: `faults` says what.
    pub is_partial: bool,
}

impl FileUsage {
    /// Walks a file.
    ///
    /// An error of the storage ends the part of the walk that met it, as damage does.
    #[must_use]
    pub fn of(file: &Arc<File>) -> FileUsage {
        walk::fetch(file);
        let mut walk = walk::UsageWalk::new(file);
        walk.whole_file();
        let mut usage = walk.usage;
        usage.settle();
        gaps::find_collections(file, &mut usage);
        usage.settle();
        usage.find_overlaps();
        usage
    }

    /// Bytes of all extents of the kinds that `counts` says yes to. Bytes of several extents count
    /// once for each.
    #[must_use]
    pub fn bytes(&self, counts: impl Fn(ExtentKind) -> bool) -> u64 {
        let counted = self.extents.iter().filter(|extent| counts(extent.kind));
        counted.fold(0, |sum, extent| sum.saturating_add(extent.len))
    }

    /// Bytes of the file that belong to nothing, all gaps together.
    #[must_use]
    pub fn unaccounted_bytes(&self) -> u64 {
        self.gaps().fold(0, |sum, (_, len)| sum.saturating_add(len))
    }

    /// The gaps between extents: first byte and number of bytes.
    pub fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut reached = 0u64;
        let ends = std::iter::once((self.file_bytes, self.file_bytes));
        let extents = self.extents.iter().map(|extent| (extent.at, extent.end()));
        extents.chain(ends).filter_map(move |(at, end)| {
            let at = at.min(self.file_bytes);
            let gap = at.checked_sub(reached).filter(|&len| len > 0).map(|len| (reached, len));
            reached = reached.max(end);
            gap
        })
    }

    /// Adds an extent, and counts it for its owner.
    fn claim(&mut self, extent: UsedExtent) {
        if extent.len == 0 {
            return;
        }
        if let Some(owner) = extent.owner {
            let of = self.objects.entry(owner).or_default();
            let bytes =
                if extent.kind.is_raw_data() { &mut of.data_bytes } else { &mut of.metadata_bytes };
            *bytes = bytes.saturating_add(extent.len);
        }
        let touches = |last: &&mut UsedExtent| {
            last.kind == extent.kind && last.owner == extent.owner && last.end() == extent.at
        };
        if let Some(last) = self.extents.last_mut().filter(touches) {
            last.len = last.len.saturating_add(extent.len);
        } else if self.extents.len() < USAGE_EXTENTS {
            self.extents.push(extent);
        } else if !self.is_partial {
            let (structure, what, limit) = ("file", "extents", USAGE_EXTENTS as u64);
            let error = HdfError::Limit { structure, at: extent.at, what, limit };
            self.fault(extent.owner, error);
        }
    }

    fn fault(&mut self, owner: Option<FileAddr>, error: HdfError) {
        self.is_partial = true;
        if self.faults.len() < USAGE_REPORTS {
            self.faults.push(UsageFault { owner, error });
        }
    }

    /// Sorts the extents, and joins those of one object and kind that touch.
    fn settle(&mut self) {
        zonda_runtime::sort::sort_by_key(&mut self.extents, |extent| (extent.at, extent.len));
        self.extents.dedup_by(|next, last| {
            let touches =
                next.kind == last.kind && next.owner == last.owner && next.at == last.end();
            if touches {
                last.len = last.len.saturating_add(next.len);
            }
            touches
        });
    }

    fn find_overlaps(&mut self) {
        let mut reaches: Option<UsedExtent> = None;
        for extent in &self.extents {
            if let Some(before) = reaches.filter(|before| extent.at < before.end())
                && self.overlaps.len() < USAGE_REPORTS
            {
                self.overlaps.push((before, *extent));
            }
            if reaches.is_none_or(|before| before.end() < extent.end()) {
                reaches = Some(*extent);
            }
        }
    }
}

#[cfg(test)]
mod tests;
