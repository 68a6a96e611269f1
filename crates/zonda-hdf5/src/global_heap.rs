//! Global heap: bytes of variable length, such as strings.
//! Spec: HDF5 File Format, "Disk Format: Level 1E - Global Heap". Version 1 read.
//! Watch: objects are in no order; object 0 is free space and its size counts its own header; with
//! fewer than 8 bytes to a length, headers are still filled up to 16 bytes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use hashbrown::HashMap;

use crate::{File, FileAddr, Limits, Reader, Result, Sizes};

const NAME: &str = "global heap collection";

/// Bytes of the least collection that libraries write.
const FIRST_READ: usize = 4096;

/// Most bytes that are read before the length of a collection is known.
const MOST_FIRST_READ: usize = 1 << 20;

/// Bytes of the header of a collection, and of that of an object.
const HEADER: usize = 16;

/// A collection of objects, in memory as in the file.
#[derive(Debug)]
pub struct Collection {
    bytes: Box<[u8]>,
    /// For each object number where its bytes begin, in units of 8; 0 where there is none.
    starts: Box<[u32]>,
    sizes: Sizes,
}

impl Collection {
    /// Decodes a collection, which begins with the first of `bytes`.
    ///
    /// # Errors
    /// Also where an object goes on after the end.
    pub fn decode(bytes: Box<[u8]>, at: u64, sizes: Sizes) -> Result<Collection> {
        let mut reader = Reader::new(NAME, &bytes, at, sizes);
        let len = collection_len(&mut reader)?;
        let mut reader =
            Reader::new(NAME, &bytes, at, sizes).sub(usize::try_from(len).unwrap_or(usize::MAX))?;
        reader.skip(HEADER)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        // Objects mostly have some bytes each: room for them, and for as many more as there are.
        let mut starts = Vec::with_capacity(reader.left() / (2 * HEADER));
        while let Some((header, _)) = reader.rest().split_first_chunk::<HEADER>() {
            let [low, high, _, _, _, _, _, _, length @ ..] = header;
            let index = usize::from(u16::from_le_bytes([*low, *high]));
            let size = match sizes.length {
                8 => u64::from_le_bytes(*length),
                _ => Reader::new(NAME, length, reader.at(), sizes).length()?,
            };
            reader.skip(HEADER)?;
            if index == 0 {
                // What is free; nothing is behind it, and a size of 0 leads nowhere.
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
            // The last object may end without what would fill it up.
            let padding = 8usize.saturating_sub(usize::try_from(size % 8).unwrap_or_default()) % 8;
            reader.skip(padding.min(reader.left()))?;
            if starts.len() <= index {
                starts.resize(index.saturating_add(1), 0);
            }
            if let Some(place) = starts.get_mut(index) {
                *place = start;
            }
        }
        Ok(Collection { bytes, starts: starts.into(), sizes })
    }

    /// The bytes of an object; `None` where the collection has no object of this number.
    #[must_use]
    #[inline]
    pub fn get(&self, index: u32) -> Option<&[u8]> {
        let start = *self.starts.get(usize::try_from(index).ok()?)?;
        let start = usize::try_from(start).ok()?.checked_mul(8).filter(|&start| start != 0)?;
        // The size was seen to fit when the collection was decoded.
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

    /// Bytes of memory.
    fn weight(&self) -> usize {
        self.bytes.len().saturating_add(self.starts.len().saturating_mul(4))
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
    /// The collection at `addr`, from memory where it was read before.
    ///
    /// # Errors
    /// Those of reading and decoding it.
    pub fn global_heap_collection(&self, addr: FileAddr) -> Result<Arc<Collection>> {
        if let Some(collection) = self.heap_cache().get(addr) {
            return Ok(collection);
        }
        let cleared = self.heap_cache().cleared();
        // Collections of a file are mostly as long as each other, so that one read is enough.
        let first = self.heap_cache().last_len.load(Ordering::Relaxed);
        let mut bytes = self.read_up_to(NAME, addr, first as u64)?;
        let len = collection_len(&mut self.reader(NAME, addr, &bytes))?;
        let at = self.locate(NAME, addr, len)?;
        if let Some(missing) = len.checked_sub(bytes.len() as u64) {
            let rest = FileAddr(addr.0.saturating_add(bytes.len() as u64));
            bytes.extend(self.read(NAME, rest, missing)?);
        } else {
            bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        }
        let usual = bytes.len().clamp(FIRST_READ, MOST_FIRST_READ);
        self.heap_cache().last_len.store(usual, Ordering::Relaxed);
        let collection = Arc::new(Collection::decode(bytes.into(), at, self.sizes())?);
        self.heap_cache().put(addr, &collection, cleared);
        Ok(collection)
    }
}

/// Looks up objects one after the other, without asking for the collection again while it stays
/// the same, as it mostly does from one element of an array to the next.
#[derive(Debug, Default)]
pub struct HeapCursor {
    last: Option<(FileAddr, Arc<Collection>)>,
}

impl HeapCursor {
    /// The bytes of an object; `None` where the collection has no object of this number.
    ///
    /// # Errors
    /// Those of [`File::global_heap_collection`].
    pub fn get(&mut self, file: &File, addr: FileAddr, index: u32) -> Result<Option<&[u8]>> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != addr) {
            self.last = Some((addr, file.global_heap_collection(addr)?));
        }
        Ok(self.last.as_ref().and_then(|(_, collection)| collection.get(index)))
    }
}

/// Collections that were read, up to a number of bytes. There are two generations: what is used
/// moves to the young one, and when that is full the old one is forgotten.
#[derive(Debug)]
pub(crate) struct HeapCache {
    generations: RwLock<Generations>,
    /// How often all was forgotten.
    cleared: AtomicU64,
    limit: usize,
    /// Bytes of the collection that was read last, for the next.
    last_len: AtomicUsize,
}

#[derive(Debug, Default)]
struct Generations {
    /// What [`HeapCache::cleared`] was when the first of these collections were read.
    cleared: u64,
    young: HashMap<FileAddr, Arc<Collection>>,
    old: HashMap<FileAddr, Arc<Collection>>,
    young_bytes: usize,
}

/// Times that a lock is tried. A cache is only a cache: a forked child may find the lock held by a
/// thread that it does not have, and then goes on without.
const TRIES: usize = 64;

impl HeapCache {
    pub(crate) fn new(limits: &Limits) -> HeapCache {
        let (generations, limit) = (RwLock::default(), limits.heap_cache_bytes);
        let (cleared, last_len) = (AtomicU64::new(0), AtomicUsize::new(FIRST_READ));
        HeapCache { generations, cleared, limit, last_len }
    }

    /// Forgets all collections, those too that other threads are just reading. It takes no lock, so
    /// that it cannot fail.
    pub(crate) fn clear(&self) {
        self.cleared.fetch_add(1, Ordering::AcqRel);
    }

    fn cleared(&self) -> u64 {
        self.cleared.load(Ordering::Acquire)
    }

    fn get(&self, addr: FileAddr) -> Option<Arc<Collection>> {
        let cleared = self.cleared();
        let found = tried(|| {
            let generations = self.generations.try_read().ok()?;
            if generations.cleared != self.cleared() {
                return Some((None, false));
            }
            if let Some(collection) = generations.young.get(&addr) {
                return Some((Some(Arc::clone(collection)), false));
            }
            Some((generations.old.get(&addr).cloned(), true))
        });
        let (collection, is_old) = found?;
        if let (Some(collection), true) = (&collection, is_old) {
            self.put(addr, collection, cleared);
        }
        collection
    }

    /// Keeps a collection that was read after `cleared` was asked for; where all was forgotten in
    /// the meantime, it will not be found.
    fn put(&self, addr: FileAddr, collection: &Arc<Collection>, cleared: u64) {
        let weight = collection.weight();
        // Half of the bytes are for a generation.
        let generation = self.limit / 2;
        if weight > generation {
            return;
        }
        tried(|| {
            let mut generations = self.generations.try_write().ok()?;
            if generations.cleared != cleared {
                *generations = Generations { cleared, ..Generations::default() };
            }
            if generations.young_bytes.saturating_add(weight) > generation {
                generations.old = std::mem::take(&mut generations.young);
                generations.young_bytes = 0;
            }
            if generations.young.insert(addr, Arc::clone(collection)).is_none() {
                generations.young_bytes = generations.young_bytes.saturating_add(weight);
            }
            Some(())
        });
    }
}

fn tried<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..TRIES {
        if let Some(value) = attempt() {
            return Some(value);
        }
        std::hint::spin_loop();
    }
    None
}

#[cfg(test)]
mod tests;
