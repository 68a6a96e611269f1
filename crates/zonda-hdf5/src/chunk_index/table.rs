//! Where some chunks are, in as few bytes as will do: 8 for a chunk without filters, 12 for a
//! filtered one, 4 more where filters were skipped, and 4 for its key in a leaf of a tree.

use super::ChunkLocation;

/// Marks a chunk that does not exist.
const ABSENT: u64 = u64::MAX;

/// What was read of one chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Byte of the storage; `None` for a chunk that does not exist.
    pub(super) at: Option<u64>,
    /// Stored bytes.
    pub(super) len: u64,
    /// Filters skipped.
    pub(super) mask: u32,
}

#[derive(Debug)]
enum Lens {
    All(u64),
    Narrow(Box<[u32]>),
    Wide(Box<[u64]>),
}

/// Locations by position.
#[derive(Debug)]
pub(super) struct Table {
    at: Box<[u64]>,
    len: Lens,
    /// `None` where no filter was skipped in any of them.
    mask: Option<Box<[u32]>>,
}

impl Table {
    /// What is at a position; `None` where there is no chunk.
    #[inline]
    pub(super) fn get(&self, i: usize) -> Option<ChunkLocation> {
        let at = *self.at.get(i)?;
        if at == ABSENT {
            return None;
        }
        let len = match &self.len {
            Lens::All(len) => *len,
            Lens::Narrow(lens) => u64::from(*lens.get(i)?),
            Lens::Wide(lens) => *lens.get(i)?,
        };
        let mask = match &self.mask {
            None => 0,
            Some(masks) => *masks.get(i)?,
        };
        Some(ChunkLocation { at, len, mask })
    }
}

/// Collects a table.
#[derive(Debug, Default)]
pub(super) struct Builder {
    entries: Vec<Entry>,
}

impl Builder {
    /// For `n` entries, a number that was compared with the bytes there.
    pub(super) fn with_capacity(n: usize) -> Builder {
        Builder { entries: Vec::with_capacity(n) }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub(super) fn finish(self) -> Table {
        let entries = self.entries;
        // An address that would mean "absent" is as far outside any file as the one before it.
        let place = |entry: &Entry| entry.at.map_or(ABSENT, |at| at.min(ABSENT.wrapping_sub(1)));
        let at = entries.iter().map(place).collect();
        let present = || entries.iter().filter(|entry| entry.at.is_some());
        let common = present().next().map_or(0, |entry| entry.len);
        let len = if present().all(|entry| entry.len == common) {
            Lens::All(common)
        } else {
            let narrow: Option<Box<[u32]>> =
                entries.iter().map(|entry| u32::try_from(entry.len).ok()).collect();
            match narrow {
                Some(lens) => Lens::Narrow(lens),
                None => Lens::Wide(entries.iter().map(|entry| entry.len).collect()),
            }
        };
        let mask = present()
            .any(|entry| entry.mask != 0)
            .then(|| entries.iter().map(|entry| entry.mask).collect());
        Table { at, len, mask }
    }
}

#[derive(Debug)]
enum KeyList {
    /// Above `base`.
    Narrow(Box<[u32]>),
    Wide(Box<[u64]>),
}

/// Ascending keys.
#[derive(Debug)]
pub(super) struct Keys {
    base: u64,
    list: KeyList,
}

impl Keys {
    pub(super) fn new(keys: &[u64]) -> Keys {
        let base = keys.first().copied().unwrap_or(0);
        let narrow: Option<Box<[u32]>> = keys
            .iter()
            .map(|key| key.checked_sub(base).and_then(|above| u32::try_from(above).ok()))
            .collect();
        let list = narrow.map_or_else(|| KeyList::Wide(keys.into()), KeyList::Narrow);
        Keys { base, list }
    }

    /// Key `i`.
    #[inline]
    pub(super) fn get(&self, i: usize) -> Option<u64> {
        match &self.list {
            KeyList::Narrow(keys) => keys.get(i).map(|&key| self.base.wrapping_add(u64::from(key))),
            KeyList::Wide(keys) => keys.get(i).copied(),
        }
    }

    /// How many keys are below `key`.
    #[inline]
    pub(super) fn below(&self, key: u64) -> usize {
        match &self.list {
            KeyList::Narrow(keys) => match key.checked_sub(self.base).map(u32::try_from) {
                None => 0,
                Some(Ok(above)) => keys.partition_point(|&key| key < above),
                Some(Err(_)) => keys.len(),
            },
            KeyList::Wide(keys) => keys.partition_point(|&other| other < key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_what_they_were_given() {
        let wide = u64::from(u32::MAX) + 5;
        for lens in [[7, 7, 7], [1, 2, 3], [wide, 2, 3]] {
            for masks in [[0, 0, 0], [0, 5, u32::MAX]] {
                let entries = [
                    Entry { at: Some(100), len: lens[0], mask: masks[0] },
                    Entry { at: None, len: 0, mask: 0 },
                    Entry { at: Some(u64::MAX), len: lens[1], mask: masks[1] },
                    Entry { at: Some(9), len: lens[2], mask: masks[2] },
                ];
                let mut builder = Builder::with_capacity(4);
                entries.iter().for_each(|&entry| builder.push(entry));
                let table = builder.finish();
                let at =
                    |i| table.get(i).map(|found: ChunkLocation| (found.at, found.len, found.mask));
                assert_eq!(at(0), Some((100, lens[0], masks[0])));
                assert_eq!(at(1), None);
                assert_eq!(at(2), Some((u64::MAX - 1, lens[1], masks[1])));
                assert_eq!(at(3), Some((9, lens[2], masks[2])));
                assert_eq!(at(4), None);
            }
        }
    }

    #[test]
    fn keys_are_found_in_both_widths() {
        for top in [90, u64::MAX - 1] {
            let keys = Keys::new(&[5, 8, top]);
            assert_eq!([0, 5, 6, 8, 9].map(|key| keys.below(key)), [0, 0, 1, 1, 2]);
            assert_eq!([top, top + 1].map(|key| keys.below(key)), [2, 3]);
            assert_eq!([0, 2, 3].map(|i| keys.get(i)), [Some(5), Some(top), None]);
        }
        assert_eq!(Keys::new(&[]).below(3), 0);
    }
}
