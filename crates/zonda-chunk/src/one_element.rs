//! One element of an array: which chunk it is in, and where in that.

use crate::tuning::RECENT_CHUNKS;

/// The place of a chunk in a table of [`RECENT_CHUNKS`] places. Chunks may share one.
#[inline]
pub(crate) fn slot_of(key: impl Iterator<Item = u64>) -> usize {
    let number = key.fold(0, |number: u64, k| number.wrapping_mul(31).wrapping_add(k));
    // The golden ratio: numbers near each other get places far from each other, whatever grid they are of.
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT_CHUNKS.ilog2())) as usize
}

/// The coordinates, in the chunk grid, of the chunk with the element `at`.
#[inline]
pub(crate) fn key_of(chunk_dims: &[u64], at: &[usize]) -> impl Iterator<Item = u64> {
    at.iter().zip(chunk_dims).map(|(&at, &n)| at as u64 / n)
}

/// The number of the element `at` in the chunk of so many elements that begins at `origin`; `None` if it is in another chunk or outside of
/// the extent. All lists have as many numbers as the array has dimensions.
#[inline]
pub(crate) fn number_in(
    chunk_dims: &[u64],
    extent: &[u64],
    origin: impl Iterator<Item = u64>,
    at: &[usize],
) -> Option<usize> {
    let mut number = 0;
    for (((&n, &len), first), &at) in chunk_dims.iter().zip(extent).zip(origin).zip(at) {
        let at = at as u64;
        let within = at.wrapping_sub(first);
        if within >= n || at >= len {
            return None;
        }
        number = number * n + within;
    }
    Some(number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_counting() {
        let (dims, extent) = ([2, 3], [9, 7]);
        let number_at =
            |origin: [u64; 2], at: [usize; 2]| number_in(&dims, &extent, origin.into_iter(), &at);
        for y in 0..12 {
            for x in 0..12 {
                let is_in = (4..6).contains(&y) && (3..6).contains(&x);
                let number = is_in.then(|| (y - 4) * 3 + (x - 3));
                assert_eq!(number_at([4, 3], [y, x]), number, "{y} {x}");
            }
        }
        // The extent cuts the chunk.
        assert_eq!(number_at([8, 6], [8, 6]), Some(0));
        assert_eq!(number_at([8, 6], [9, 6]), None);
        assert_eq!(number_at([8, 6], [8, 7]), None);
        assert_eq!(number_in(&[], &[], [].into_iter(), &[]), Some(0));
    }

    /// Grids as programs have them use most of the places.
    #[test]
    fn few_chunks_share_a_place() {
        for grid in [[10, 2, 2], [64, 1, 1], [1, 8, 8], [1, 1, 64]] {
            let mut used = std::collections::HashSet::new();
            for z in 0..grid[0] {
                for y in 0..grid[1] {
                    for x in 0..grid[2] {
                        let (first, last) =
                            ([z * 10, y * 50, x * 50], [z * 10 + 9, y * 50 + 49, x * 50]);
                        let slot = slot_of(key_of(&[10, 50, 50], &first));
                        assert!(slot < RECENT_CHUNKS);
                        assert_eq!(slot, slot_of(key_of(&[10, 50, 50], &last)));
                        used.insert(slot);
                    }
                }
            }
            let n: usize = grid.iter().product();
            assert!(used.len() * 4 > n * 3, "{grid:?}: {} places", used.len());
        }
    }
}
