//! Global heap: bytes of variable length, such as strings.
//! Spec: HDF5 File Format, "Disk Format: Level 1E - Global Heap". Version 1.
//! Watch: objects have no order; object 0 is free space, and its size counts its own header; where
//! lengths have fewer than 8 bytes, headers are still filled up to 16 bytes.

mod write;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use zonda_runtime::lock::{Rank, RwLock};

use hashbrown::{HashMap, HashSet};

use crate::tuning::{
    COLLECTION_READ_MAX_BYTES, COLLECTIONS_ONCE, COLLECTIONS_ONCE_BYTES, CURSOR_COLLECTIONS,
    FORGOTTEN_COLLECTIONS, LOCK_TRIES,
};
use crate::{File, FileAddr, HdfError, ReadLimits, Reader, Result, Sizes};
use zonda_model::memory;

pub use self::write::{HeapId, HeapWriter};

const NAME: &str = "global heap collection";

/// Bytes of the least collection that libraries write.
const FIRST_READ: usize = 4096;

/// Bytes of the header of a collection, and of that of an object.
const HEADER: usize = 16;

/// A collection of objects, in memory as in the file.
#[derive(Debug)]
pub struct Collection {
    bytes: Vec<u8>,
    /// For each object number where its bytes begin, in units of 8; 0 where there is none.
    starts: Vec<u32>,
    sizes: Sizes,
}

impl Collection {
    /// Decodes a collection, which begins with the first of `bytes`.
    ///
    /// # Errors
    /// Also where an object goes on after the end.
    pub fn decode(bytes: Box<[u8]>, at: u64, sizes: Sizes) -> Result<Collection> {
        Collection::decode_into(bytes.into(), Vec::new(), at, sizes)
    }

    /// The same with memory for `starts`, whatever is in it.
    fn decode_into(
        bytes: Vec<u8>,
        mut starts: Vec<u32>,
        at: u64,
        sizes: Sizes,
    ) -> Result<Collection> {
        let mut reader = Reader::new(NAME, &bytes, at, sizes);
        let len = collection_len(&mut reader)?;
        let mut reader =
            Reader::new(NAME, &bytes, at, sizes).sub(usize::try_from(len).unwrap_or(usize::MAX))?;
        reader.skip(HEADER)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        // Objects mostly have at least as many bytes as their headers.
        starts.clear();
        memory::reserve(&mut starts, reader.left() / (2 * HEADER))?;
        while let Some((header, _)) = reader.rest().split_first_chunk::<HEADER>() {
            let [low, high, _, _, _, _, _, _, length @ ..] = header;
            let index = usize::from(u16::from_le_bytes([*low, *high]));
            let size = match sizes.length {
                8 => u64::from_le_bytes(*length),
                _ => Reader::new(NAME, length, reader.at(), sizes).length()?,
            };
            reader.skip(HEADER)?;
            if index == 0 {
                // Free space: nothing is behind it, and a size of 0 ends the search.
                let Some(rest) = size.checked_sub(HEADER as u64) else { break };
                reader.take_u64(rest)?;
                continue;
            }
            let start = len.saturating_sub(reader.left());
            let start = match u32::try_from(start / 8) {
                Ok(units) if start % 8 == 0 => units,
                _ => return Err(reader.bad("first byte of an object", start as u64)),
            };
            reader.take_u64(size)?;
            // The last object may have no padding.
            let padding = 8usize.saturating_sub(usize::try_from(size % 8).unwrap_or_default()) % 8;
            reader.skip(padding.min(reader.left()))?;
            if starts.len() <= index {
                starts.resize(index.saturating_add(1), 0);
            }
            if let Some(place) = starts.get_mut(index) {
                *place = start;
            }
        }
        Ok(Collection { bytes, starts, sizes })
    }

    /// The bytes of an object; `None` where the collection has no object of this number.
    #[must_use]
    #[inline]
    pub fn get(&self, index: u32) -> Option<&[u8]> {
        let start = *self.starts.get(usize::try_from(index).ok()?)?;
        let start = usize::try_from(start).ok()?.checked_mul(8).filter(|&start| start != 0)?;
        // The size was checked when the collection was decoded.
        let (header, data) = self.bytes.split_at_checked(start)?;
        let size = header.last_chunk::<8>()?;
        let size = match self.sizes.length {
            8 => u64::from_le_bytes(*size),
            _ => Reader::new(NAME, size, 0, self.sizes).length().ok()?,
        };
        data.get(..usize::try_from(size).ok()?)
    }

    /// Numbers of its objects, ascending.
    pub fn indexes(&self) -> impl Iterator<Item = u32> {
        let starts = self.starts.iter().enumerate();
        starts.filter(|&(_, &start)| start != 0).filter_map(|(index, _)| u32::try_from(index).ok())
    }

    /// Bytes of the header and the objects, and the greatest number of an object; `None` unless all
    /// free space is behind the objects. Lengths have 8 bytes.
    fn used(&self) -> Option<(usize, u16)> {
        let mut at = HEADER;
        let mut last = 0u16;
        while let Some(header) = self.bytes.get(at..)?.first_chunk::<HEADER>() {
            let [low, high, _, _, _, _, _, _, length @ ..] = header;
            let index = u16::from_le_bytes([*low, *high]);
            let len = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            if index == 0 {
                let is_rest = len == self.bytes.len().checked_sub(at)? && at.is_multiple_of(8);
                return is_rest.then_some((at, last));
            }
            last = last.max(index);
            at = at.checked_add(HEADER)?.checked_add(len.checked_next_multiple_of(8)?)?;
        }
        None
    }

    /// Bytes of memory.
    fn weight(&self) -> usize {
        self.bytes.capacity().saturating_add(self.starts.capacity().saturating_mul(4))
    }
}

/// Takes the header of a collection, gives its length.
fn collection_len(reader: &mut Reader<'_>) -> Result<u64> {
    reader.signature(*b"GCOL")?;
    reader.version(1..=1)?;
    reader.skip(3)?;
    let len = reader.length()?;
    if len < HEADER as u64 { Err(reader.bad("bytes of a collection", len)) } else { Ok(len) }
}

impl File {
    /// Has collections of a remote file come that will be asked for soon, in two messages there and back, however many they are. Does
    /// nothing where a read is a system call.
    ///
    /// # Errors
    /// What the storage reports.
    pub fn fetch_collections(&self, mut addrs: Vec<FileAddr>) -> Result<()> {
        if !self.is_remote() {
            return Ok(());
        }
        zonda_runtime::sort::sort(&mut addrs);
        addrs.dedup();
        let cache = self.heap_cache();
        addrs.retain(|&addr| cache.get(addr).is_none());
        let first = cache.last_len.load(Ordering::Relaxed) as u64;
        self.will_read(addrs.iter().map(|&addr| (addr, first)));
        let mut longer = Vec::new();
        let mut failed = Ok(());
        for addr in addrs {
            // Damage is met again by who asks for the collection.
            let head = self.read(NAME, addr, HEADER as u64);
            let len = head.and_then(|head| collection_len(&mut self.reader(NAME, addr, &head)));
            match len {
                Ok(len) if len > first => longer.push((addr, len)),
                Err(error) => failed = failed.and(HdfError::of_storage(Err(error))),
                Ok(_) => {}
            }
        }
        self.will_read(longer);
        failed
    }

    /// The collection at `addr`, from memory where it was read before and kept.
    ///
    /// # Errors
    /// Those of reading and decoding it.
    pub fn global_heap_collection(&self, addr: FileAddr) -> Result<Arc<Collection>> {
        let cache = self.heap_cache();
        if let Some(collection) = cache.get(addr) {
            return Ok(collection);
        }
        let (mut bytes, starts) = cache.spare();
        // The collections of a file mostly have one length, so that one read is enough.
        let first = cache.last_len.load(Ordering::Relaxed) as u64;
        let left = self.len().saturating_sub(self.locate(NAME, addr, 1)?);
        let n = usize::try_from(first.min(left)).unwrap_or(usize::MAX);
        bytes.truncate(n);
        memory::lengthen(&mut bytes, n, 0)?;
        self.read_into(NAME, addr, &mut bytes)?;
        let len = collection_len(&mut self.reader(NAME, addr, &bytes))?;
        let at = self.locate(NAME, addr, len)?;
        let have = bytes.len();
        let n = usize::try_from(len).unwrap_or(usize::MAX);
        bytes.truncate(n);
        memory::lengthen(&mut bytes, n, 0)?;
        if let Some(rest) = bytes.get_mut(have..).filter(|rest| !rest.is_empty()) {
            self.read_into(NAME, FileAddr(addr.0.saturating_add(have as u64)), rest)?;
        }
        let usual = bytes.len().clamp(FIRST_READ, COLLECTION_READ_MAX_BYTES);
        cache.last_len.store(usual, Ordering::Relaxed);
        let collection = Arc::new(Collection::decode_into(bytes, starts, at, self.sizes())?);
        cache.put(addr, &collection);
        Ok(collection)
    }
}

/// Looks up objects one after the other. It holds the last few collections, since the elements of
/// an array are mostly in the same few.
#[derive(Debug, Default)]
pub struct HeapCursor {
    held: [Option<(FileAddr, Arc<Collection>)>; CURSOR_COLLECTIONS],
    /// The place for the next.
    next: usize,
}

impl HeapCursor {
    /// The bytes of an object; `None` where the collection has no object of this number.
    ///
    /// # Errors
    /// Those of [`File::global_heap_collection`].
    #[inline]
    pub fn get(&mut self, file: &File, addr: FileAddr, index: u32) -> Result<Option<&[u8]>> {
        Ok(self.collection(file, addr)?.and_then(|collection| collection.get(index)))
    }

    /// A collection.
    ///
    /// # Errors
    /// Those of [`File::global_heap_collection`].
    #[inline]
    pub fn collection(&mut self, file: &File, addr: FileAddr) -> Result<Option<&Arc<Collection>>> {
        let is_it = |held: &Option<(FileAddr, _)>| matches!(held, Some((at, _)) if *at == addr);
        let place = match self.held.iter().position(is_it) {
            Some(place) => place,
            None => self.fetch(file, addr)?,
        };
        Ok(self.held.get(place).and_then(Option::as_ref).map(|(_, collection)| collection))
    }

    #[cold]
    fn fetch(&mut self, file: &File, addr: FileAddr) -> Result<usize> {
        let place = self.next;
        if let Some(held) = self.held.get_mut(place) {
            // Released first: the next one may be read into its memory.
            *held = None;
            *held = Some((addr, file.global_heap_collection(addr)?));
        }
        self.next = place.saturating_add(1) % CURSOR_COLLECTIONS;
        Ok(place)
    }
}

/// Collections that were read, up to a number of bytes.
///
/// A collection that is asked for once is soon forgotten, so that reading a large array of strings
/// takes no more memory than its strings. A collection that is asked for again, while it is kept or
/// later, stays longer: in one of two generations. A collection that is used moves to the young
/// generation; when that is full, it becomes the old one, and the former old one is forgotten.
#[derive(Debug)]
pub(crate) struct HeapCache {
    collections: RwLock<CachedCollections>,
    limit: usize,
    /// Bytes of the collection that was read last: as many are read of the next one.
    last_len: AtomicUsize,
}

#[derive(Debug, Default)]
struct CachedCollections {
    /// Collections that were asked for once, the last one at the end.
    once: VecDeque<(FileAddr, Arc<Collection>)>,
    once_bytes: usize,
    /// Collections that were asked for once and forgotten.
    gone: HashSet<FileAddr>,
    /// The memory of a forgotten one, for reuse.
    spare: Option<Collection>,
    young: HashMap<FileAddr, Arc<Collection>>,
    old: HashMap<FileAddr, Arc<Collection>>,
    young_bytes: usize,
}

impl HeapCache {
    pub(crate) fn new(limits: &ReadLimits) -> HeapCache {
        let (collections, limit) =
            (RwLock::ranked(Rank::Heap, CachedCollections::default()), limits.heap_cache_bytes);
        HeapCache { collections, limit, last_len: AtomicUsize::new(FIRST_READ) }
    }

    /// Forgets all collections. For writers of the file, while nobody reads it.
    pub(crate) fn clear(&self) {
        *self.collections.write() = CachedCollections::default();
    }

    /// Bytes of a generation; the collections that were asked for once may have as many.
    fn generation(&self) -> usize {
        self.limit / 3
    }

    fn get(&self, addr: FileAddr) -> Option<Arc<Collection>> {
        let found = tried(|| {
            let collections = self.collections.try_read()?;
            if let Some(collection) = collections.young.get(&addr) {
                return Some((Some(Arc::clone(collection)), false));
            }
            let once =
                || collections.once.iter().find(|(at, _)| *at == addr).map(|(_, found)| found);
            Some((collections.old.get(&addr).or_else(once).cloned(), true))
        });
        let (collection, is_old) = found?;
        if let (Some(collection), true) = (&collection, is_old) {
            tried(|| {
                self.collections.try_write()?.keep(addr, collection, self.generation());
                Some(())
            });
        }
        collection
    }

    /// Keeps a collection that was just read.
    fn put(&self, addr: FileAddr, collection: &Arc<Collection>) {
        let generation = self.generation();
        if collection.weight() > generation {
            return;
        }
        tried(|| {
            let mut collections = self.collections.try_write()?;
            if collections.gone.remove(&addr) {
                collections.keep(addr, collection, generation);
            } else {
                collections.pass(addr, collection, generation.min(COLLECTIONS_ONCE_BYTES));
            }
            Some(())
        });
    }

    /// Memory of a collection that was forgotten.
    fn spare(&self) -> (Vec<u8>, Vec<u32>) {
        let spare = tried(|| Some(self.collections.try_write()?.spare.take())).flatten();
        spare.map(|spare| (spare.bytes, spare.starts)).unwrap_or_default()
    }
}

impl CachedCollections {
    /// Keeps a collection that was asked for again.
    fn keep(&mut self, addr: FileAddr, collection: &Arc<Collection>, generation: usize) {
        if let Some(index) = self.once.iter().position(|(at, _)| *at == addr)
            && let Some((_, once)) = self.once.remove(index)
        {
            self.once_bytes = self.once_bytes.saturating_sub(once.weight());
        }
        let weight = collection.weight();
        if self.young_bytes.saturating_add(weight) > generation {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(addr, Arc::clone(collection)).is_none() {
            self.young_bytes = self.young_bytes.saturating_add(weight);
        }
    }

    /// Keeps a collection that was not asked for before. The last one stays in any case.
    fn pass(&mut self, addr: FileAddr, collection: &Arc<Collection>, most: usize) {
        if self.once.iter().any(|(at, _)| *at == addr) {
            return; // Two threads have read it.
        }
        self.once_bytes = self.once_bytes.saturating_add(collection.weight());
        self.once.push_back((addr, Arc::clone(collection)));
        while self.once.len() > 1 && (self.once_bytes > most || self.once.len() > COLLECTIONS_ONCE)
        {
            let Some((addr, forgotten)) = self.once.pop_front() else { break };
            self.once_bytes = self.once_bytes.saturating_sub(forgotten.weight());
            if self.gone.len() >= FORGOTTEN_COLLECTIONS {
                self.gone.clear();
            }
            self.gone.insert(addr);
            // Its memory, unless somebody still uses it.
            self.spare = Arc::into_inner(forgotten);
        }
    }
}

fn tried<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..LOCK_TRIES {
        if let Some(value) = attempt() {
            return Some(value);
        }
        std::hint::spin_loop();
    }
    None
}

#[cfg(test)]
mod tests;
