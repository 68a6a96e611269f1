//! The keys of a node of a chunk tree, in eight bytes each where they fit.
//!
//! The coordinates of a key are packed into one number, the slowest in its highest bits: the
//! numbers have the order of the keys, and the search for a key is a search for a number. A node
//! with a key that does not fit keeps all of its keys as coordinates.

use smallvec::SmallVec;

use super::super::grid::DimValues;
use crate::tuning::{CACHE_LINE_KEYS, SLOWEST_COORD_BITS};

/// How many bits of a number each coordinate has.
#[derive(Debug)]
pub(super) struct KeyPacking {
    widths: SmallVec<[u8; 4]>,
}

/// A key to look for, as coordinates and packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchKey<'a> {
    pub(super) coords: &'a [u64],
    packed: Option<u64>,
    /// Whether it is known to be behind all keys.
    is_behind: bool,
}

impl SearchKey<'_> {
    /// The same key, known to be behind all others.
    pub(super) fn behind(self) -> Self {
        SearchKey { is_behind: true, ..self }
    }
}

impl KeyPacking {
    pub(super) fn new(rank: usize) -> KeyPacking {
        let others = u8::try_from(rank.saturating_sub(1)).unwrap_or(u8::MAX);
        let width = 64u8.wrapping_sub(SLOWEST_COORD_BITS).checked_div(others);
        let mut widths = SmallVec::from_elem(width.unwrap_or(0), rank);
        if let Some(slowest) = widths.first_mut() {
            *slowest = if others == 0 { 64 } else { SLOWEST_COORD_BITS };
        }
        KeyPacking { widths }
    }

    fn rank(&self) -> usize {
        self.widths.len()
    }

    #[inline]
    pub(super) fn search_key<'a>(&self, coords: &'a [u64]) -> SearchKey<'a> {
        let mut packed = 0u64;
        for (&coord, &width) in coords.iter().zip(&self.widths) {
            let width = u32::from(width);
            if coord.checked_shr(width).is_some_and(|above| above != 0) {
                return SearchKey { coords, packed: None, is_behind: false };
            }
            packed = packed.checked_shl(width).unwrap_or(0) | coord;
        }
        SearchKey { coords, packed: Some(packed), is_behind: false }
    }

    fn unpack(&self, mut packed: u64, out: &mut DimValues) {
        out.resize(self.rank(), 0);
        for (out, &width) in out.iter_mut().zip(&self.widths).rev() {
            let width = u32::from(width);
            *out = packed & u64::MAX.checked_shl(width).map_or(u64::MAX, |above| !above);
            packed = packed.checked_shr(width).unwrap_or(0);
        }
    }
}

/// Ascending keys.
#[derive(Debug)]
pub(super) struct NodeKeys {
    list: Vec<u64>,
    is_packed: bool,
}

impl NodeKeys {
    pub(super) fn new() -> NodeKeys {
        NodeKeys { list: Vec::new(), is_packed: true }
    }

    /// Numbers of `list` that a key takes.
    fn step(&self, packing: &KeyPacking) -> usize {
        if self.is_packed { 1 } else { packing.rank() }
    }

    /// Reads key `i` into `out`; `false` where there are not so many.
    #[inline]
    pub(super) fn read(&self, packing: &KeyPacking, i: usize, out: &mut DimValues) -> bool {
        if self.is_packed {
            self.list.get(i).map(|&packed| packing.unpack(packed, out)).is_some()
        } else {
            let key = raw(&self.list, packing.rank(), i);
            out.clear();
            out.extend_from_slice(key.unwrap_or_default());
            key.is_some()
        }
    }

    /// How many keys come before this one, and whether it is among them.
    #[inline]
    pub(super) fn search(&self, packing: &KeyPacking, search_key: SearchKey<'_>) -> (usize, bool) {
        if search_key.is_behind {
            return (self.list.len().checked_div(self.step(packing)).unwrap_or(0), false);
        }
        if let Some(packed) = search_key.packed.filter(|_| self.is_packed) {
            let before = before(&self.list, packed);
            return (before, self.list.get(before) == Some(&packed));
        }
        let mut key = DimValues::new();
        let (mut low, mut high) = (0, self.list.len().checked_div(self.step(packing)).unwrap_or(0));
        while low < high {
            let mid = usize::midpoint(low, high);
            self.read(packing, mid, &mut key);
            if key.as_slice() < search_key.coords {
                low = mid.saturating_add(1);
            } else {
                high = mid;
            }
        }
        (low, self.read(packing, low, &mut key) && key.as_slice() == search_key.coords)
    }

    /// Inserts a key before key `i`, with room for `more` keys where there is none for this one.
    #[inline]
    pub(super) fn insert(
        &mut self,
        packing: &KeyPacking,
        i: usize,
        search_key: SearchKey<'_>,
        more: usize,
    ) {
        if self.is_packed && search_key.packed.is_none() {
            self.spread(packing);
        }
        let step = self.step(packing);
        if self.list.capacity().saturating_sub(self.list.len()) < step {
            self.list.reserve_exact(more.max(1).saturating_mul(step));
        }
        let (from, end) = (i.saturating_mul(step).min(self.list.len()), self.list.len());
        match search_key.packed.filter(|_| self.is_packed) {
            Some(packed) => self.list.insert(from, packed),
            None => {
                self.list.extend_from_slice(search_key.coords);
                if from < end {
                    self.list.copy_within(from..end, from.saturating_add(step));
                    self.put(packing, i, search_key);
                }
            }
        }
    }

    /// Replaces key `i`.
    pub(super) fn put(&mut self, packing: &KeyPacking, i: usize, search_key: SearchKey<'_>) {
        if self.is_packed && search_key.packed.is_none() {
            self.spread(packing);
        }
        let step = self.step(packing);
        let from = i.saturating_mul(step);
        let packed = search_key.packed.as_slice();
        let new = if self.is_packed { packed } else { search_key.coords };
        if let Some(place) = self.list.get_mut(from..from.saturating_add(step)) {
            place.copy_from_slice(new);
        }
    }

    /// Removes key `i`.
    pub(super) fn remove(&mut self, packing: &KeyPacking, i: usize) {
        let step = self.step(packing);
        let from = i.saturating_mul(step).min(self.list.len());
        self.list.drain(from..from.saturating_add(step).min(self.list.len()));
    }

    /// Removes the keys from key `i` on, and gives them.
    pub(super) fn split_off(&mut self, packing: &KeyPacking, i: usize) -> NodeKeys {
        let from = i.saturating_mul(self.step(packing)).min(self.list.len());
        NodeKeys { list: self.list.split_off(from), is_packed: self.is_packed }
    }

    /// Keeps the keys as coordinates from now on.
    #[cold]
    fn spread(&mut self, packing: &KeyPacking) {
        let packed = std::mem::take(&mut self.list);
        let mut key = DimValues::new();
        for packed in packed {
            packing.unpack(packed, &mut key);
            self.list.extend_from_slice(&key);
        }
        self.is_packed = false;
    }
}

/// How many numbers of a list come before a key.
///
/// The nodes of a large tree are not in the processor's cache. A search by halves would wait for
/// one line after the other; here one number of each line is read, and all lines are waited for at
/// once.
#[inline]
fn before(list: &[u64], key: u64) -> usize {
    if list.len() > 32 * CACHE_LINE_KEYS {
        return list.partition_point(|&other| other < key);
    }
    let count = |n: usize, &other: &u64| n.wrapping_add(usize::from(other < key));
    let lines = list.iter().step_by(CACHE_LINE_KEYS).fold(0, count);
    let from = lines.saturating_sub(1).saturating_mul(CACHE_LINE_KEYS).min(list.len());
    let line = list.get(from..).unwrap_or_default();
    line.iter().take(CACHE_LINE_KEYS).fold(from, count)
}

#[inline]
fn raw(list: &[u64], rank: usize, i: usize) -> Option<&[u64]> {
    let from = i.checked_mul(rank)?;
    list.get(from..from.checked_add(rank)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(keys: &NodeKeys, packing: &KeyPacking) -> Vec<Vec<u64>> {
        let mut key = DimValues::new();
        let read = |i| keys.read(packing, i, &mut key).then(|| key.to_vec());
        (0..).map_while(read).collect()
    }

    #[test]
    fn keys_keep_their_order_whether_they_fit_or_not() {
        for rank in 1..8 {
            let packing = KeyPacking::new(rank);
            // The last ones do not fit, but for a rank of 1.
            let tops = [0, 1, 2, 6, 63, 1 << 20, (1 << 28) - 1, 1 << 28, u64::MAX - 1, u64::MAX];
            let mut want: Vec<Vec<u64>> = Vec::new();
            let mut keys = NodeKeys::new();
            for (i, &top) in tops.iter().enumerate() {
                for (j, &low) in tops.iter().rev().enumerate() {
                    let mut key = vec![(i * j % 3) as u64; rank];
                    key[0] = top;
                    key[rank - 1] = if rank > 1 && i > 2 { low } else { key[rank - 1] };
                    let search_key = packing.search_key(&key);
                    let place = want.partition_point(|other| *other < key);
                    let is_there = want.get(place) == Some(&key);
                    assert_eq!(keys.search(&packing, search_key), (place, is_there), "{key:?}");
                    if !is_there {
                        keys.insert(&packing, place, search_key, 4);
                        want.insert(place, key);
                    }
                    assert_eq!(all(&keys, &packing), want);
                }
            }
            assert_eq!(keys.is_packed, rank == 1);
            for i in [want.len() - 1, want.len() / 2, 0] {
                want.remove(i);
                keys.remove(&packing, i);
            }
            let second = keys.split_off(&packing, 3);
            assert_eq!(all(&second, &packing), want[3..]);
            assert_eq!(all(&keys, &packing), want[..3]);
        }
    }

    #[test]
    fn numbers_are_found_in_lists_of_any_length() {
        for n in (0..130).chain([255, 256, 257, 1000]) {
            let list: Vec<u64> = (0..n).map(|i| 10 * i + 5).collect();
            for key in 0..10 * n + 20 {
                assert_eq!(before(&list, key) as u64, ((key + 4) / 10).min(n), "{key} of {n}");
            }
        }
    }

    #[test]
    fn a_key_takes_the_place_of_another() {
        let packing = KeyPacking::new(2);
        let mut keys = NodeKeys::new();
        keys.insert(&packing, 0, packing.search_key(&[3, 4]), 1);
        keys.insert(&packing, 1, packing.search_key(&[5, 6]), 1);
        keys.put(&packing, 0, packing.search_key(&[3, 3]));
        assert!(keys.is_packed);
        keys.put(&packing, 1, packing.search_key(&[5, u64::MAX]));
        assert!(!keys.is_packed);
        keys.put(&packing, 0, packing.search_key(&[1, 2]));
        assert_eq!(all(&keys, &packing), [vec![1, 2], vec![5, u64::MAX]]);
    }
}
