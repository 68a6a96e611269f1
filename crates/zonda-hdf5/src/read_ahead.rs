//! Metadata read a little ahead, for a walk over many objects.
//!
//! The headers of objects made one after the other follow each other in the file, and so do their
//! continuations, in another place. A window goes along with each such row: a read that begins where
//! one ends, or little behind, takes the place of that window and reads twice as much. Reads that
//! follow no other are as long as they are asked to be.
//!
//! Windows are as old as the walk that they were made for and are dropped with it: nothing is seen
//! later than a walk without them would have seen it, but by the time that the walk takes.

use crate::{File, FileAddr, Result};
use zonda_model::memory;

/// Rows that are followed at a time: headers, their continuations, and one more of each for the
/// objects that a group was taken from.
const WINDOWS: usize = 4;

/// Most bytes that are read at once without having been asked for.
const MOST: u64 = 16 << 10;

/// Bytes between two reads that still follow each other.
const NEAR: u64 = 2 << 10;

/// Windows on a file.
#[derive(Debug, Default)]
pub struct Ahead {
    windows: [ReadAheadWindow; WINDOWS],
    /// Counts reads, for the age of windows.
    reads: u64,
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

    /// Whether a read at `at` goes on where this one was.
    fn leads_to(&self, at: u64) -> bool {
        !self.bytes.is_empty() && at >= self.at && at <= self.end().saturating_add(NEAR)
    }
}

impl Ahead {
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
        let place = match self.windows.iter().position(has) {
            Some(place) => place,
            None => self.fill(file, structure, addr, len)?,
        };
        let window = self.windows.get_mut(place);
        let bytes = window.and_then(|window| {
            window.used = self.reads;
            window.get(at, want)
        });
        Ok(bytes.unwrap_or_default())
    }

    /// Makes a window that begins at an address, and gives its place.
    fn fill(
        &mut self,
        file: &File,
        structure: &'static str,
        addr: FileAddr,
        len: u64,
    ) -> Result<usize> {
        let at = file.position(addr);
        let before = self.windows.iter().position(|window| window.leads_to(at));
        let oldest = || (0..WINDOWS).min_by_key(|&i| self.windows.get(i).map(|w| w.used));
        let place = before.or_else(oldest).unwrap_or(0);
        let Some(window) = self.windows.get_mut(place) else { return Ok(place) };
        let ahead = match before {
            Some(_) => (window.bytes.len() as u64).saturating_mul(2).min(MOST),
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
            // What nobody asked for may be damaged.
            window.bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
            read = file.read_into(structure, addr, &mut window.bytes);
        }
        if let Err(error) = read {
            window.bytes.clear();
            return Err(error);
        }
        Ok(place)
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
        let mut ahead = Ahead::default();
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
        assert_eq!(*lens.last().unwrap() as u64, MOST);
        assert!(
            ahead.windows.iter().any(|window| window.bytes.len() == 300),
            "no longer than asked"
        );
    }

    #[test]
    fn what_nobody_asked_for_may_be_missing() {
        let bytes = bytes(8000);
        let file = file(&bytes);
        let mut ahead = Ahead::default();
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
