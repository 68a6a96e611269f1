//! Metadata read a little ahead, for a walk over many objects.
//!
//! Writers put the headers of objects that they make one after the other side by side, and the
//! continuations of these headers side by side elsewhere. A window follows each such row: a read
//! that begins where a window ends, or a little behind, replaces that window and is twice as long.
//! A read that follows no window is as long as was asked.
//!
//! Windows live as long as the walk that they were made for. So what a walk finds in them is at
//! most as old as the walk.

use crate::tuning::{READ_AHEAD_GAP_BYTES, READ_AHEAD_MAX_BYTES, READ_AHEAD_WINDOWS};
use crate::{File, FileAddr, Result};
use zonda_model::memory;

/// The windows of one walk over a file.
#[derive(Debug, Default)]
pub struct ReadAhead {
    windows: [ReadAheadWindow; READ_AHEAD_WINDOWS],
    /// Counts reads, for the age of windows.
    reads: u64,
    /// Memory in which the blocks of a header are put together, for the next header.
    pub(crate) scratch: Vec<u8>,
}

#[derive(Debug, Default)]
struct ReadAheadWindow {
    at: u64,
    bytes: Vec<u8>,
    used: u64,
}

impl ReadAheadWindow {
    fn end(&self) -> u64 {
        self.at.saturating_add(self.bytes.len() as u64)
    }

    /// The `len` bytes at `at`, where it has all of them.
    fn get(&self, at: u64, len: usize) -> Option<&[u8]> {
        let skip = usize::try_from(at.checked_sub(self.at)?).ok()?;
        self.bytes.get(skip..)?.get(..len)
    }

    /// Whether a read at `at` begins in this window or a little behind its end.
    fn leads_to(&self, at: u64) -> bool {
        !self.bytes.is_empty()
            && at >= self.at
            && at <= self.end().saturating_add(READ_AHEAD_GAP_BYTES)
    }
}

impl ReadAhead {
    /// Keeps the memory of one header for the next one, if it is not much.
    pub(crate) fn keep_scratch(&mut self, scratch: Vec<u8>) {
        if scratch.capacity() as u64 <= READ_AHEAD_MAX_BYTES {
            self.scratch = scratch;
        }
    }

    /// The `len` bytes at an address, as [`File::read`] gives them.
    ///
    /// # Errors
    /// As [`File::read`].
    pub(crate) fn read(
        &mut self,
        file: &File,
        structure: &'static str,
        addr: FileAddr,
        len: u64,
    ) -> Result<&[u8]> {
        let at = file.locate(structure, addr, len)?;
        let want = usize::try_from(len).unwrap_or(usize::MAX);
        self.reads = self.reads.saturating_add(1);
        let has = |window: &ReadAheadWindow| window.get(at, want).is_some();
        let index = match self.windows.iter().position(has) {
            Some(index) => index,
            None => self.fill(file, structure, addr, len)?,
        };
        let window = self.windows.get_mut(index);
        let bytes = window.and_then(|window| {
            window.used = self.reads;
            window.get(at, want)
        });
        Ok(bytes.unwrap_or_default())
    }

    /// Reads a window from an address on; gives its index.
    fn fill(
        &mut self,
        file: &File,
        structure: &'static str,
        addr: FileAddr,
        len: u64,
    ) -> Result<usize> {
        let at = file.position(addr);
        let before = self.windows.iter().position(|window| window.leads_to(at));
        let oldest =
            || (0..READ_AHEAD_WINDOWS).min_by_key(|&i| self.windows.get(i).map(|w| w.used));
        let index = before.or_else(oldest).unwrap_or(0);
        let Some(window) = self.windows.get_mut(index) else { return Ok(index) };
        let ahead = match before {
            // A remote storage was told of what is wanted; more would be another request.
            _ if file.is_remote() => 0,
            Some(_) => (window.bytes.len() as u64).saturating_mul(2).min(READ_AHEAD_MAX_BYTES),
            None => 0,
        };
        let most = file.len().saturating_sub(at);
        let more = ahead.max(len).min(most);
        window.at = at;
        let more_bytes = usize::try_from(more).unwrap_or(usize::MAX);
        window.bytes.truncate(more_bytes);
        memory::lengthen(&mut window.bytes, more_bytes, 0)?;
        let mut read = file.read_into(structure, addr, &mut window.bytes);
        if read.is_err() && more > len {
            // The bytes that nobody asked for may be damaged.
            window.bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
            read = file.read_into(structure, addr, &mut window.bytes);
        }
        if let Err(error) = read {
            window.bytes.clear();
            return Err(error);
        }
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::file;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i / 7 % 251) as u8).collect()
    }

    #[test]
    fn windows_grow_along_rows_and_only_there() {
        let bytes = bytes(100_000);
        let file = file(&bytes);
        let mut ahead = ReadAhead::default();
        // Two rows, one a little disordered, and reads that belong to none.
        let mut lens = Vec::new();
        for i in 0..60usize {
            let far = [90_000, 70_000, 95_000][i % 3];
            for (at, len) in [(1000 + i * 456, 512), (40_000 + (i ^ 1) * 114, 114), (far, 300)] {
                let got = ahead.read(&file, "test", FileAddr(at as u64), len as u64).unwrap();
                assert_eq!(got, &bytes[at..at + len], "{at}");
            }
            lens.push(ahead.windows.iter().map(|window| window.bytes.len()).max().unwrap());
        }
        assert_eq!(&lens[..3], &[512, 1024, 1024], "twice as much each time, once it is used up");
        assert_eq!(*lens.last().unwrap() as u64, READ_AHEAD_MAX_BYTES);
        assert!(
            ahead.windows.iter().any(|window| window.bytes.len() == 300),
            "no longer than asked"
        );
    }

    #[test]
    fn what_nobody_asked_for_may_be_missing() {
        let bytes = bytes(8000);
        let file = file(&bytes);
        let mut ahead = ReadAhead::default();
        ahead.read(&file, "test", FileAddr(0), 512).unwrap();
        ahead.read(&file, "test", FileAddr(512), 512).unwrap();
        // Cut by somebody else: what is left can be read, and what is not is an error.
        file.storage().set_len(2000).unwrap();
        let got = ahead.read(&file, "test", FileAddr(1536), 400).unwrap();
        assert_eq!(got, &bytes[1536..1936]);
        assert!(ahead.read(&file, "test", FileAddr(1936), 512).is_err());
        assert!(ahead.read(&file, "test", FileAddr(1936), 512).is_err(), "nothing is left of it");
        assert!(ahead.read(&file, "test", FileAddr(7999), 2).is_err(), "behind the end");
    }
}
