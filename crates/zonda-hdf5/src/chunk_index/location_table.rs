//! Locations of chunks in few bytes: 8 for a chunk without filters, 12 for a filtered one, 4 more
//! where filters were skipped, and 4 for its key in a leaf of a tree.

use super::ChunkLocation;

/// Marks a chunk that does not exist.
const ABSENT: u64 = u64::MAX;

/// The location of one chunk, as an index has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocationEntry {
    /// Byte of the storage; `None` for a chunk that does not exist.
    pub(super) at: Option<u64>,
    /// Stored bytes.
    pub(super) len: u64,
    /// Filters skipped.
    pub(super) mask: u32,
}

#[derive(Debug)]
enum StoredLens {
    All(u64),
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

/// Locations by position.
#[derive(Debug)]
pub(super) struct LocationTable {
    at: Box<[u64]>,
    len: StoredLens,
    /// `None` where no filter was skipped in any of them.
    mask: Option<Box<[u32]>>,
}

impl LocationTable {
    /// Number of positions.
    pub(super) fn len(&self) -> usize {
        self.at.len()
    }

    /// The chunk at a position; `None` where there is none.
    #[inline]
    pub(super) fn get(&self, i: usize) -> Option<ChunkLocation> {
        let at = *self.at.get(i)?;
        if at == ABSENT {
            return None;
        }
        let len = match &self.len {
            StoredLens::All(len) => *len,
            StoredLens::Narrow(lens) => u64::from(*lens.get(i)?),
            StoredLens::Wide(lens) => *lens.get(i)?,
        };
        let mask = match &self.mask {
            None => 0,
            Some(masks) => *masks.get(i)?,
        };
        Some(ChunkLocation { at, len, mask })
    }
}

/// Collects a table, in no more memory than it will have.
#[derive(Debug)]
pub(super) struct LocationTableBuilder {
    at: Vec<u64>,
    len: StoredLens,
    mask: Option<Vec<u32>>,
    /// Whether there is no chunk so far, so that any length may still be the common one.
    is_bare: bool,
}

impl Default for LocationTableBuilder {
    fn default() -> LocationTableBuilder {
        LocationTableBuilder::with_capacity(0)
    }
}

impl LocationTableBuilder {
    /// For `n` entries, a number that was compared with the bytes there.
    pub(super) fn with_capacity(n: usize) -> LocationTableBuilder {
        LocationTableBuilder {
            at: Vec::with_capacity(n),
            len: StoredLens::All(0),
            mask: None,
            is_bare: true,
        }
    }

    pub(super) fn push(&mut self, entry: LocationEntry) {
        let Some(at) = entry.at else {
            self.at.push(ABSENT);
            match &mut self.len {
                StoredLens::All(_) => {}
                StoredLens::Narrow(lens) => lens.push(0),
                StoredLens::Wide(lens) => lens.push(0),
            }
            self.mask.iter_mut().for_each(|mask| mask.push(0));
            return;
        };
        if let StoredLens::All(common) = &mut self.len {
            if self.is_bare {
                *common = entry.len;
            } else if *common != entry.len {
                let (n, room) = (self.at.len(), self.at.capacity());
                match u32::try_from(*common) {
                    Ok(common) => self.len = StoredLens::Narrow(repeated(common, n, room)),
                    Err(_) => self.len = StoredLens::Wide(repeated(*common, n, room)),
                }
            }
        }
        if let StoredLens::Narrow(lens) = &mut self.len {
            match u32::try_from(entry.len) {
                Ok(len) => lens.push(len),
                Err(_) => {
                    self.len = StoredLens::Wide(lens.iter().map(|&len| u64::from(len)).collect())
                }
            }
        }
        if let StoredLens::Wide(lens) = &mut self.len {
            lens.push(entry.len);
        }
        if entry.mask != 0 && self.mask.is_none() {
            self.mask = Some(repeated(0, self.at.len(), self.at.capacity()));
        }
        self.mask.iter_mut().for_each(|mask| mask.push(entry.mask));
        // An address that would mean "absent" is as far outside any file as the one before it.
        self.at.push(at.min(ABSENT.wrapping_sub(1)));
        self.is_bare = false;
    }

    /// Puts entry `i` at position `keys[i]` of `n`, nothing at the others. Keys have to ascend.
    pub(super) fn spread(&mut self, keys: &[u64], n: usize) {
        spread(&mut self.at, keys, n, ABSENT);
        match &mut self.len {
            StoredLens::All(_) => {}
            StoredLens::Narrow(lens) => spread(lens, keys, n, 0),
            StoredLens::Wide(lens) => spread(lens, keys, n, 0),
        }
        self.mask.iter_mut().for_each(|mask| spread(mask, keys, n, 0));
    }

    pub(super) fn finish(mut self) -> LocationTable {
        match &mut self.len {
            StoredLens::All(_) => {}
            StoredLens::Narrow(lens) => lens.shrink_to_fit(),
            StoredLens::Wide(lens) => lens.shrink_to_fit(),
        }
        LocationTable {
            at: self.at.into(),
            len: self.len,
            mask: self.mask.map(Vec::into_boxed_slice),
        }
    }
}

fn repeated<T: Clone>(value: T, n: usize, room: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(room.max(n));
    out.resize(n, value);
    out
}

/// Moves value `i` to position `keys[i]`. Goes from the last to the first, and no value moves
/// towards the front, so that there is no second list.
fn spread<T: Copy>(values: &mut Vec<T>, keys: &[u64], n: usize, nothing: T) {
    values.resize(n, nothing);
    for (i, &key) in keys.iter().enumerate().rev() {
        let Some(value) = values.get(i).copied() else { continue };
        if let Some(place) = values.get_mut(i) {
            *place = nothing;
        }
        if let Some(place) = usize::try_from(key).ok().and_then(|key| values.get_mut(key)) {
            *place = value;
        }
    }
}

#[derive(Debug)]
enum KeyList {
    /// Differences to `base`.
    Narrow(Box<[u32]>),
    Wide(Box<[u64]>),
}

/// Ascending keys.
#[derive(Debug)]
pub(super) struct LeafKeys {
    base: u64,
    list: KeyList,
}

impl LeafKeys {
    pub(super) fn new(keys: &[u64]) -> LeafKeys {
        let base = keys.first().copied().unwrap_or(0);
        let narrow: Option<Box<[u32]>> = keys
            .iter()
            .map(|key| key.checked_sub(base).and_then(|above| u32::try_from(above).ok()))
            .collect();
        let list = narrow.map_or_else(|| KeyList::Wide(keys.into()), KeyList::Narrow);
        LeafKeys { base, list }
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
                    LocationEntry { at: Some(100), len: lens[0], mask: masks[0] },
                    LocationEntry { at: None, len: 0, mask: 0 },
                    LocationEntry { at: Some(u64::MAX), len: lens[1], mask: masks[1] },
                    LocationEntry { at: Some(9), len: lens[2], mask: masks[2] },
                ];
                let mut builder = LocationTableBuilder::with_capacity(4);
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
    fn entries_are_spread_in_place() {
        for lens in [[7, 7, 7], [1, 2, 3], [u64::MAX, 2, 3]] {
            let entry =
                |i: usize| LocationEntry { at: Some(i as u64), len: lens[i], mask: i as u32 };
            for keys in [[0, 1, 2], [0, 1, 5], [3, 4, 5], [0, 3, 4]] {
                let mut builder = LocationTableBuilder::with_capacity(0);
                (0..3).for_each(|i| builder.push(entry(i)));
                builder.spread(&keys, 6);
                let table = builder.finish();
                for key in 0..6 {
                    let i = keys.iter().position(|&other| other == key);
                    let want = i.map(|i| (i as u64, lens[i], i as u32));
                    let found =
                        table.get(key as usize).map(|found| (found.at, found.len, found.mask));
                    assert_eq!(found, want);
                }
            }
        }
    }

    #[test]
    fn keys_are_found_in_both_widths() {
        for top in [90, u64::MAX - 1] {
            let keys = LeafKeys::new(&[5, 8, top]);
            assert_eq!([0, 5, 6, 8, 9].map(|key| keys.below(key)), [0, 0, 1, 1, 2]);
            assert_eq!([top, top + 1].map(|key| keys.below(key)), [2, 3]);
            assert_eq!([0, 2, 3].map(|i| keys.get(i)), [Some(5), Some(top), None]);
        }
        assert_eq!(LeafKeys::new(&[]).below(3), 0);
    }
}
