//! Chunks as they are stored, on their way from one file to another: many at a time, so that what
//! lies side by side is read and written by one call.

use zonda_storage::{ReadRange, Storage, WriteRange};

use super::writer_array::WriterArray;
use super::{ArrayId, ChunkWriter, NO_ARRAY, RANK};
use crate::selection::Coords;
use crate::stored::{LocatedChunk, lengthen};
use crate::table::{Allocate, ChunkAt, ChunkTable};
use crate::tuning::JOINED_CHUNK_BYTES;
use crate::{ChunkError, ChunkedArray};

/// Some chunks of an array as they are stored. Its memory serves for the next ones.
#[derive(Debug, Default)]
pub struct StoredChunks {
    /// Chunk after chunk. What is behind the last one is left from others before.
    bytes: Vec<u8>,
    n_bytes: usize,
    chunks: Vec<StoredChunk>,
}

#[derive(Debug)]
struct StoredChunk {
    key: Coords,
    mask: u32,
    len: usize,
}

impl StoredChunks {
    /// Forgets all chunks.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.n_bytes = 0;
    }

    /// Adds a chunk: its coordinates in the chunk grid, its mask (bit i is set where filter i was
    /// skipped) and its bytes.
    pub fn push(&mut self, key: &[u64], mask: u32, bytes: &[u8]) {
        self.bytes.truncate(self.n_bytes);
        self.bytes.extend_from_slice(bytes);
        self.n_bytes = self.bytes.len();
        self.chunks.push(StoredChunk { key: Coords::from_slice(key), mask, len: bytes.len() });
    }

    /// Bytes of all chunks.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// The chunks in their order: coordinates, mask, bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&[u64], u32, &[u8])> {
        let mut rest = &self.bytes[..self.n_bytes];
        self.chunks.iter().map(move |chunk| {
            let (bytes, behind) = rest.split_at(chunk.len);
            rest = behind;
            (&chunk.key[..], chunk.mask, bytes)
        })
    }
}

/// Looks up the box of the chunk grid that these chunks are in, so that what the index has of it comes together and not chunk by chunk.
fn have_index_come<K: AsRef<[u64]>>(table: &dyn ChunkTable, keys: &[K]) -> Result<(), ChunkError> {
    let Some(first) = keys.first().map(|key| Coords::from_slice(key.as_ref())) else {
        return Ok(());
    };
    let (mut lower, mut upper) = (first.clone(), first);
    for key in keys {
        for ((lower, upper), &k) in lower.iter_mut().zip(&mut upper).zip(key.as_ref()) {
            (*lower, *upper) = ((*lower).min(k), (*upper).max(k));
        }
    }
    table.locate(&lower, &upper, &mut |_, _| {}).map_err(ChunkError::Table)
}

impl ChunkedArray {
    /// Fetches chunks as they are stored into `out`, in the order of `keys`; those that were never
    /// written are left out. The array's shape is `extent`. What was put and is not stored yet is
    /// not seen.
    ///
    /// # Errors
    /// Those of table and storage; [`ChunkError::OutOfFile`] for a chunk that is not in the file.
    pub fn stored_chunks<K: AsRef<[u64]>>(
        &self,
        extent: &[u64],
        keys: &[K],
        out: &mut StoredChunks,
    ) -> Result<(), ChunkError> {
        out.clear();
        let fetched = self.fetch_stored(extent, keys, out);
        if fetched.is_err() {
            out.clear();
        }
        fetched
    }

    fn fetch_stored<K: AsRef<[u64]>>(
        &self,
        extent: &[u64],
        keys: &[K],
        out: &mut StoredChunks,
    ) -> Result<(), ChunkError> {
        let inner = &self.inner;
        // Memory is taken only for what the file can have.
        let file_len = inner.storage.len()?;
        if inner.is_remote() {
            have_index_come(&*inner.table, keys)?;
        }
        let mut places = Vec::with_capacity(keys.len());
        let mut n_bytes = 0usize;
        for key in keys {
            let key = key.as_ref();
            if [key.len(), extent.len()] != [inner.chunk_dims.len(); 2] {
                return Err(RANK);
            }
            let Some(place) = inner.find(key)? else { continue };
            let found = LocatedChunk { key, place, is_edge: inner.is_edge(key, extent) };
            if place.at.checked_add(place.len).is_none_or(|end| end > file_len) {
                return Err(found.out_of_file());
            }
            let mask = if inner.is_raw(&found) { inner.filters.mask_of_all() } else { place.mask };
            let no_memory = ChunkError::NoMemory { bytes: place.len };
            let len = usize::try_from(place.len).ok();
            let sum = len.and_then(|len| Some((len, n_bytes.checked_add(len)?)));
            let (len, sum) = sum.ok_or(no_memory)?;
            n_bytes = sum;
            out.chunks.push(StoredChunk { key: Coords::from_slice(key), mask, len });
            places.push(place);
        }
        lengthen(&mut out.bytes, n_bytes)?;
        let mut rest = &mut out.bytes[..n_bytes];
        let mut ranges = Vec::new();
        for run in places.chunk_by(|a, b| a.at + a.len == b.at) {
            // Their sum is that of `n_bytes`.
            let len: u64 = run.iter().map(|place| place.len).sum();
            let (buf, behind) = rest.split_at_mut(len as usize);
            rest = behind;
            ranges.push(ReadRange::new(run[0].at, buf));
        }
        ranges.sort_unstable_by_key(|range| range.at);
        inner.storage.read_ranges(&mut ranges)?;
        if let Some(short) = ranges.iter().find(|range| range.got < range.buf.len()) {
            let end = short.at + short.got as u64;
            let is_cut = |place: &ChunkAt| place.at >= short.at && place.at + place.len > end;
            let index = places.iter().position(is_cut).unwrap_or(0);
            let found =
                LocatedChunk { key: &out.chunks[index].key, place: places[index], is_edge: false };
            return Err(found.out_of_file());
        }
        out.n_bytes = n_bytes;
        Ok(())
    }
}

impl ChunkWriter {
    /// Puts chunks that are filtered already, whose coordinates ascend, as
    /// [`ChunkedArray::stored_chunks`] gives them. Those that get places one behind the other are
    /// written by one call.
    ///
    /// # Errors
    /// As [`ChunkWriter::put`]; [`ChunkError::Length`] for an unfiltered chunk of another length.
    pub fn put_stored(
        &mut self,
        id: ArrayId,
        chunks: &StoredChunks,
        space: &mut dyn Allocate,
    ) -> Result<(), ChunkError> {
        let array = self.arrays.get(id.0).and_then(Option::as_ref).ok_or(NO_ARRAY)?;
        check_stored(array, chunks)?;
        self.store_complete(space)?;
        let array = self.arrays[id.0].as_ref().ok_or(NO_ARRAY)?;
        let mut places: Vec<PlacedChunk> = Vec::with_capacity(chunks.chunks.len());
        let mut error = None;
        for chunk in &chunks.chunks {
            let old = match array.writes_over() {
                true => array.read.inner.find(&chunk.key),
                false => Ok(None),
            };
            let placed = old.and_then(|old| PlacedChunk::new(chunk, old, space));
            match placed {
                Ok(placed) => places.push(placed),
                Err(failed) => {
                    error = Some(failed);
                    break;
                }
            }
        }
        let mut spare = self.spare.take().unwrap_or_default();
        let written = write(&*self.storage, chunks, &places, &*space, &mut spare);
        self.spare.put(spare);
        let mut n_entered = 0;
        let mut freed = Vec::new();
        match written {
            Err(failed) => error = Some(failed),
            Ok(()) => {
                for (chunk, placed) in chunks.chunks.iter().zip(&places) {
                    if placed.old != Some(placed.at) {
                        match array.table.insert(&chunk.key, placed.at) {
                            Ok(old) => freed.extend(old.filter(|old| old.at != placed.at.at)),
                            Err(failed) => {
                                error = Some(ChunkError::Table(failed));
                                break;
                            }
                        }
                    }
                    n_entered += 1;
                }
            }
        }
        // Nothing refers to these places.
        let unused = places[n_entered..].iter().filter(|placed| placed.is_new());
        unused.for_each(|placed| space.free(placed.at.at, placed.at.len));
        freed.iter().for_each(|old| space.free(old.at, old.len));
        if let Some(array) = &mut self.arrays[id.0] {
            for chunk in &chunks.chunks[..n_entered] {
                array.read.inner.changed(&chunk.key);
                self.pending.remove(&mut array.keys, &chunk.key, &mut self.spare);
            }
        }
        error.map_or(Ok(()), Err)
    }
}

/// Checks that chunks are such as the array has: of its rank, filtered where it is filtered, and of its length
/// where they are not filtered.
fn check_stored(array: &WriterArray, chunks: &StoredChunks) -> Result<(), ChunkError> {
    for (key, mask, bytes) in chunks.iter() {
        if key.len() != array.chunk_dims.len() {
            return Err(RANK);
        }
        let skips_all = array.filters.skips_all(mask);
        if array.is_unfiltered(key) && !skips_all {
            return Err(ChunkError::Request {
                what: "the chunk is filtered, and the array has unfiltered ones there",
            });
        }
        let (got, expected) = (bytes.len() as u64, array.chunk_bytes as u64);
        if skips_all && got != expected {
            let chunk = crate::error::coordinates(key);
            return Err(ChunkError::Length { chunk, at: 0, got, expected });
        }
    }
    Ok(())
}

/// Writes chunks to their places. Short ones that lie one behind the other go by one write, with
/// zeros between them.
fn write(
    storage: &dyn Storage,
    chunks: &StoredChunks,
    places: &[PlacedChunk],
    space: &dyn Allocate,
    spare: &mut Vec<u8>,
) -> Result<(), ChunkError> {
    let follows = |a: &PlacedChunk, b: &PlacedChunk| {
        b.at.at >= a.at.at + a.at.len && b.at.at <= space.padded(a.at.at, a.at.len)
    };
    let mut bytes = chunks.iter().map(|(.., bytes)| bytes);
    let mut ranges = Vec::new();
    // What is put together, and where it goes: ranges of it are made when it is complete.
    spare.clear();
    let mut together = Vec::new();
    for run in places.chunk_by(follows) {
        let begin = run[0].at.at;
        let end = run.last().map_or(begin, |last| last.at.at + last.at.len);
        if run.len() == 1 || (end - begin) / run.len() as u64 >= JOINED_CHUNK_BYTES {
            let each = run.iter().zip(&mut bytes);
            ranges.extend(each.map(|(placed, data)| WriteRange { at: placed.at.at, data }));
            continue;
        }
        let first = spare.len();
        for (placed, data) in run.iter().zip(&mut bytes) {
            // At most what was fetched, and a few zeros for each.
            spare.resize(first + (placed.at.at - begin) as usize, 0);
            spare.extend_from_slice(data);
        }
        together.push((begin, first..spare.len()));
    }
    let joined = together.into_iter().map(|(at, part)| WriteRange { at, data: &spare[part] });
    ranges.extend(joined);
    ranges.sort_unstable_by_key(|range| range.at);
    Ok(storage.write_ranges(&ranges)?)
}

/// Where a chunk goes, and where it is if it is written over.
struct PlacedChunk {
    at: ChunkAt,
    old: Option<ChunkAt>,
}

impl PlacedChunk {
    fn new(
        chunk: &StoredChunk,
        old: Option<ChunkAt>,
        space: &mut dyn Allocate,
    ) -> Result<PlacedChunk, ChunkError> {
        let (len, mask) = (chunk.len as u64, chunk.mask);
        let at = match old.filter(|old| old.len == len) {
            Some(old) => old.at,
            None => space.allocate(len).map_err(ChunkError::Table)?,
        };
        Ok(PlacedChunk { at: ChunkAt { at, len, mask }, old })
    }

    fn is_new(&self) -> bool {
        self.old.is_none_or(|old| old.at != self.at.at)
    }
}
