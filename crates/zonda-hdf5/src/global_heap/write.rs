//! Writing to the global heap.
//!
//! Objects are put into the open collection, one behind the other, until it is full. Collections
//! are longer the more is put between two commits, up to the length at which libhdf5 goes on to
//! fill them itself. An object that needs more space than the shortest collection gets a collection
//! of its own.
//!
//! To a collection that a commit refers to, objects are only added, in the free space behind the
//! others. First all is written but the header of the first new object: no reader looks there yet.
//! After a barrier that header is written over the header of the free space. It lies in one sector,
//! so a reader finds either the free space or the objects. (A new collection for each commit would
//! take 4096 bytes each time.)

use zonda_storage::WriteRange;

use super::{HEADER, NAME};
use crate::space::SECTOR;
use crate::tuning::COLLECTION_MAX_BYTES;
use crate::{File, FileAddr, HdfError, Result, Sizes, Space};
use zonda_model::memory;

/// Bytes of the least collection that libraries accept.
const LEAST: usize = 4096;

/// Where an object of the global heap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeapId {
    /// The collection.
    pub collection: FileAddr,
    /// The object in it, from 1 on.
    pub index: u32,
}

impl HeapId {
    /// Appends an element of variable length: a string of `n` bytes or a sequence of `n` elements
    /// that are in the heap. `None` is an absent element, for which `n` is 0; a string of no bytes
    /// is not absent and has an object.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] where the file's addresses are too narrow.
    #[inline]
    pub fn encode(id: Option<HeapId>, n: u32, sizes: Sizes, out: &mut Vec<u8>) -> Result<()> {
        let HeapId { collection, index } =
            id.unwrap_or(HeapId { collection: FileAddr(0), index: 0 });
        out.extend_from_slice(&n.to_le_bytes());
        let addr = collection.0.to_le_bytes();
        let (addr, above) =
            addr.split_at_checked(usize::from(sizes.offset)).unwrap_or((&addr, &[]));
        if above.iter().any(|&byte| byte != 0) {
            return Err(HdfError::TooLarge { structure: NAME, value: collection.0 });
        }
        out.extend_from_slice(addr);
        out.extend_from_slice(&index.to_le_bytes());
        Ok(())
    }
}

/// A collection that is being filled.
#[derive(Debug)]
struct OpenCollection {
    addr: FileAddr,
    /// Bytes it has in the file.
    len: usize,
    /// Its header and objects.
    bytes: Vec<u8>,
    /// Number of the last object.
    last: u16,
    /// How many of `bytes` are in the file.
    written: usize,
    /// Whether the file has had a part of it, though all of it is to be written again.
    was_written: bool,
    /// Whether a commit refers to it.
    is_committed: bool,
}

/// The header of an object, which is written over the header of the free space.
type HeaderSwitch = (FileAddr, Vec<u8>);

impl OpenCollection {
    /// A new one of `len` bytes.
    fn new(len: usize, space: &mut Space) -> Result<OpenCollection> {
        let addr = space.alloc(len as u64)?;
        let mut bytes = memory::room(len)?;
        bytes.extend_from_slice(b"GCOL\x01\0\0\0");
        bytes.extend_from_slice(&(len as u64).to_le_bytes());
        Ok(OpenCollection {
            addr,
            len,
            bytes,
            last: 0,
            written: 0,
            was_written: false,
            is_committed: false,
        })
    }

    fn left(&self) -> usize {
        self.len.saturating_sub(self.bytes.len())
    }

    fn has_room(&self, need: usize) -> bool {
        need <= self.left() && self.last < u16::MAX
    }

    /// Appends an object, for which there is room.
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> HeapId {
        self.last = self.last.saturating_add(1);
        self.header(self.last, bytes.len());
        self.bytes.extend_from_slice(bytes);
        // The header and all before it are a multiple of 8 bytes.
        let end = self.bytes.len();
        self.bytes.resize(end.checked_next_multiple_of(8).unwrap_or(end), 0);
        HeapId { collection: self.addr, index: u32::from(self.last) }
    }

    /// Appends the header of an object. It has 16 bytes even where lengths are narrow; the last
    /// ones are 0 then.
    #[inline]
    fn header(&mut self, index: u16, len: usize) {
        let mut header = [0; HEADER];
        let (number, length) = header.split_at_mut(8);
        number.copy_from_slice(&u64::from(index).to_le_bytes());
        length.copy_from_slice(&(len as u64).to_le_bytes());
        self.bytes.extend_from_slice(&header);
    }

    /// The bytes from `from` on as they have to be in the file, with the header of the free space
    /// behind them.
    fn from(&self, from: usize) -> Vec<u8> {
        let mut out = self.bytes.get(from..).unwrap_or_default().to_vec();
        let left = self.left();
        if left >= HEADER {
            out.extend_from_slice(&[0; 8]);
            out.extend_from_slice(&(left as u64).to_le_bytes());
        }
        // The file has zeros behind that, except before the first write.
        if from == 0 {
            out.resize(self.len.max(out.len()), 0);
        }
        out
    }

    /// Of a collection that a commit refers to: the bytes that were added and that no reader looks
    /// at yet, and the header that shows them to readers.
    fn appended(&self) -> Option<(FinishedBytes, HeaderSwitch)> {
        if !self.is_committed || self.bytes.len() <= self.written {
            return None;
        }
        let at = FileAddr(self.addr.0.saturating_add(self.written as u64));
        let mut bytes = self.from(self.written);
        let body = bytes.split_off(HEADER.min(bytes.len()));
        let behind = FileAddr(at.0.saturating_add(bytes.len() as u64));
        Some((FinishedBytes { addr: behind, bytes: body, was_written: true }, (at, bytes)))
    }

    /// Whether objects may be added when a commit refers to the collection: there is room for one,
    /// and its header lies in one sector.
    fn can_grow(&self) -> bool {
        let at = self.addr.0.saturating_add(self.bytes.len() as u64);
        let inside = at.checked_rem(SECTOR).unwrap_or(0);
        self.left() > HEADER && inside.saturating_add(HEADER as u64) <= SECTOR
    }

    /// Gives back the space that it does not need. To be called before a commit refers to it.
    fn trim(&mut self, space: &mut Space) {
        let len = self.bytes.len().max(LEAST).min(self.len);
        if let Some(surplus) = self.len.checked_sub(len).filter(|&surplus| surplus > 0) {
            let at = self.addr.0.saturating_add(len as u64);
            space.untake(FileAddr(at), surplus as u64);
            self.len = len;
            if let Some(place) = self.bytes.get_mut(8..HEADER) {
                place.copy_from_slice(&(len as u64).to_le_bytes());
            }
        }
    }

    /// Ends the collection, and gives back the space that it does not need.
    fn finish(mut self, space: &mut Space) -> FinishedBytes {
        self.trim(space);
        let was_written = self.written > 0;
        FinishedBytes { addr: self.addr, bytes: self.from(0), was_written }
    }
}

/// The bytes of a collection that changes no more, or of objects that are added to one, which are
/// to be written.
#[derive(Debug)]
struct FinishedBytes {
    addr: FileAddr,
    bytes: Vec<u8>,
    /// Whether a part of the collection is in the file.
    was_written: bool,
}

/// Writes objects to the global heap of one file.
#[derive(Debug)]
pub struct HeapWriter {
    sizes: Sizes,
    open: Option<OpenCollection>,
    finished: Vec<FinishedBytes>,
    finished_bytes: u64,
    /// Headers that show added objects to readers, to be written when these objects are in the
    /// file.
    switches: Vec<HeaderSwitch>,
    /// Bytes put since the last commit.
    since: usize,
}

impl HeapWriter {
    /// Nothing so far. `sizes` are those of the file.
    #[must_use]
    pub fn new(sizes: Sizes) -> HeapWriter {
        HeapWriter {
            sizes,
            open: None,
            finished: Vec::new(),
            finished_bytes: 0,
            switches: Vec::new(),
            since: 0,
        }
    }

    /// Puts an object of any number of bytes, also none, into the heap. It can be read after the
    /// next [`flush`](HeapWriter::flush).
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] for an object that is longer than lengths in the file can be, and as
    /// [`Space::alloc`].
    #[inline]
    pub fn put(&mut self, bytes: &[u8], space: &mut Space) -> Result<HeapId> {
        let padded = bytes.len().checked_next_multiple_of(8);
        let need = padded.and_then(|padded| padded.checked_add(HEADER));
        let need = need.ok_or_else(|| too_large(bytes.len()))?;
        self.since = self.since.saturating_add(need);
        match &mut self.open {
            Some(open) if open.has_room(need) => Ok(open.put(bytes)),
            _ => self.put_elsewhere(bytes, need, space),
        }
    }

    #[cold]
    fn put_elsewhere(&mut self, bytes: &[u8], need: usize, space: &mut Space) -> Result<HeapId> {
        let whole = need.checked_add(HEADER).ok_or_else(|| too_large(bytes.len()))?;
        let bits = u32::from(self.sizes.length).saturating_mul(8);
        if (whole as u64).checked_shr(bits).is_some_and(|above| above != 0) {
            return Err(too_large(bytes.len()));
        }
        if whole >= LEAST {
            let mut own = OpenCollection::new(whole, space)?;
            let id = own.put(bytes);
            self.push(own.finish(space));
            return Ok(id);
        }
        // A collection of eight such objects has little left at its end.
        let len = (self.since / 4).max(need.saturating_mul(8)).clamp(LEAST, COLLECTION_MAX_BYTES);
        let widest = 1usize.checked_shl(bits).unwrap_or(usize::MAX).saturating_sub(LEAST);
        let len = len.checked_next_multiple_of(LEAST).unwrap_or(len).min(widest.max(LEAST));
        let mut open = OpenCollection::new(len, space)?;
        let id = open.put(bytes);
        if let Some(full) = self.open.replace(open) {
            if !full.is_committed {
                self.push(full.finish(space));
            } else if let Some((body, switch)) = full.appended() {
                self.push(body);
                self.switches.push(switch);
            }
        }
        Ok(id)
    }

    /// Whether there is a collection that more objects can be put into.
    #[must_use]
    pub fn has_open(&self) -> bool {
        self.open.is_some()
    }

    /// Puts the next objects into a collection that the file has, if it has room behind its
    /// objects.
    ///
    /// # Errors
    /// Those of reading and decoding it.
    pub fn go_on_with(&mut self, file: &File, addr: FileAddr) -> Result<()> {
        let collection = file.global_heap_collection(addr)?;
        let Some((used, last)) = collection.used() else { return Ok(()) };
        let open = OpenCollection {
            addr,
            len: collection.bytes.len(),
            bytes: collection.bytes.get(..used).unwrap_or_default().to_vec(),
            last,
            written: used,
            was_written: true,
            is_committed: true,
        };
        if self.open.is_none() && self.sizes == Sizes::EIGHT && open.can_grow() {
            self.open = Some(open);
        }
        Ok(())
    }

    fn push(&mut self, finished: FinishedBytes) {
        self.finished_bytes = self.finished_bytes.saturating_add(finished.bytes.len() as u64);
        self.finished.push(finished);
    }

    /// Whether an object was put since the last commit, flushed or not.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.since > 0 || self.pending() > 0
    }

    /// Bytes in memory that a flush would write.
    #[must_use]
    pub fn pending(&self) -> u64 {
        let open = self.open.as_ref();
        let open = open.map_or(0, |open| open.bytes.len().saturating_sub(open.written));
        let hidden = self.switches.len().saturating_mul(HEADER) as u64;
        self.finished_bytes.saturating_add(open as u64).saturating_add(hidden)
    }

    /// Writes what was put, so that it can be read. More may be put behind it until the next
    /// commit.
    ///
    /// # Errors
    /// What the storage reports; what could not be written is tried again by the next flush.
    pub fn flush(&mut self, file: &File) -> Result<()> {
        self.write(file)?;
        if !self.switches.is_empty() {
            file.storage().barrier()?;
            self.show(file)?;
        }
        Ok(())
    }

    /// Writes all but the headers that show added objects to readers.
    fn write(&mut self, file: &File) -> Result<()> {
        let open = self.open.as_ref().filter(|open| open.bytes.len() > open.written);
        let (mut tail, mut switch) = (None, None);
        match open.map(|open| (open, open.appended())) {
            Some((_, Some((body, shows)))) => {
                tail = Some((body.addr, body.bytes));
                switch = Some(shows);
            }
            Some((open, None)) => {
                let at = open.addr.0.saturating_add(open.written as u64);
                tail = Some((FileAddr(at), open.from(open.written)));
            }
            None => {}
        }
        let finished = self.finished.iter().map(|finished| (finished.addr, &finished.bytes));
        let mut ranges = Vec::with_capacity(self.finished.len().saturating_add(1));
        for (addr, bytes) in finished.chain(tail.iter().map(|(addr, bytes)| (*addr, bytes))) {
            file.grown_to(addr.0.saturating_add(bytes.len() as u64));
            ranges.push(WriteRange { at: file.position(addr), data: bytes });
        }
        zonda_runtime::sort::sort_by_key(&mut ranges, |range| range.at);
        file.storage().write_ranges(&ranges)?;
        let was_written = self.finished.iter().any(|finished| finished.was_written);
        if was_written || open.is_some_and(|open| open.written > 0 || open.was_written) {
            // A reader may have kept the collection as it was.
            file.forget();
        }
        self.finished.clear();
        self.finished_bytes = 0;
        self.switches.extend(switch);
        if let Some(open) = &mut self.open {
            open.written = open.bytes.len();
        }
        Ok(())
    }

    /// Whether a commit has to call [`HeapWriter::show`].
    #[must_use]
    pub fn hides_some(&self) -> bool {
        !self.switches.is_empty()
    }

    /// Shows added objects, which are in the file, to readers. To be called before anything refers
    /// to them, with a barrier before and behind it.
    ///
    /// # Errors
    /// What the storage reports; the next call tries again.
    pub fn show(&mut self, file: &File) -> Result<()> {
        for (addr, bytes) in &self.switches {
            file.storage().write_at(file.position(*addr), bytes)?;
        }
        self.switches.clear();
        file.forget();
        Ok(())
    }

    /// Writes all for a commit but what [`HeapWriter::show`] writes. Objects that the next commit
    /// refers to change no more; others may be added behind them.
    ///
    /// # Errors
    /// As [`HeapWriter::flush`].
    pub fn commit(&mut self, file: &File, space: &mut Space) -> Result<()> {
        if let Some(open) = self.open.as_mut().filter(|open| !open.is_committed) {
            open.trim(space);
            // The header in the file may have another length.
            open.was_written |= open.written > 0;
            open.written = 0;
        }
        self.since = 0;
        self.write(file)?;
        if let Some(open) = &mut self.open {
            open.is_committed = true;
            if !open.can_grow() {
                self.open = None;
            }
        }
        Ok(())
    }
}

fn too_large(len: usize) -> HdfError {
    HdfError::TooLarge { structure: NAME, value: len as u64 }
}

#[cfg(test)]
mod tests;
