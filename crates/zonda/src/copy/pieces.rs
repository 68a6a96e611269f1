//! How boxes are cut into pieces for ranks, and how rank 0 tells them.

use crate::error::Result;
use crate::ranks::wire::{Reader, Writer};

/// A part of a box that one rank makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub rank: usize,
    /// Path of the variable in the source.
    pub path: Vec<u8>,
    pub start: Vec<u64>,
    pub count: Vec<u64>,
    /// Its chunks are wanted, and not its values.
    pub is_filtered: bool,
}

/// First element and number of elements along each dimension.
type Slab = (Vec<u64>, Vec<u64>);

impl Piece {
    /// The order that tells all ranks their pieces, of a file with this inode.
    pub(super) fn order(inode: u64, pieces: &[Piece]) -> Vec<u8> {
        let mut order = Writer::default();
        order.number(inode);
        for piece in pieces {
            order.number(piece.rank as u64);
            order.text(&piece.path);
            order.numbers(&piece.start);
            order.numbers(&piece.count);
            order.number(piece.is_filtered.into());
        }
        order.bytes
    }

    /// The inode of an order, and the pieces that are for one rank.
    pub(super) fn of_order(order: &[u8], own: usize) -> Result<(u64, Vec<Piece>)> {
        let mut from = Reader::new(order);
        let inode = from.number()?;
        let mut pieces = Vec::new();
        while !from.is_at_end() {
            let (rank, path) = (from.len()?, from.text()?);
            let (start, count) = (from.numbers()?, from.numbers()?);
            let is_filtered = from.number()? > 0;
            if rank == own {
                pieces.push(Piece { rank, path: path.to_vec(), start, count, is_filtered });
            }
        }
        Ok((inode, pieces))
    }
}

/// Where pieces of a length end that begins at `start`: about `n` of them, cut at multiples of `unit`.
fn cuts(start: u64, count: u64, unit: u64, n: u64) -> Vec<u64> {
    let (unit, end) = (unit.max(1), start.saturating_add(count));
    let first = start / unit;
    let n_units = end.div_ceil(unit) - first;
    let n = n.clamp(1, n_units.max(1));
    // The products have as many bits as both numbers.
    let cut = |k: u64| first + (u128::from(n_units) * u128::from(k) / u128::from(n)) as u64;
    (1..=n).map(|k| cut(k).saturating_mul(unit).min(end)).collect()
}

fn slabs(of: (&[u64], &[u64]), d: usize, unit: u64, n: u64) -> Vec<Slab> {
    let (start, count) = (of.0.to_vec(), of.1.to_vec());
    let mut begin = start[d];
    let mut found = Vec::new();
    for end in cuts(start[d], count[d], unit, n) {
        let (mut from, mut len) = (start.clone(), count.clone());
        (from[d], len[d]) = (begin, end - begin);
        begin = end;
        found.push((from, len));
    }
    found
}

/// Cuts a box of whole chunks into about `n` pieces of whole chunks. The chunks of all pieces, one after the other, are those of the
/// box in their order.
pub(super) fn slabs_of_box((start, count): (&[u64], &[u64]), chunk: &[u64], n: u64) -> Vec<Slab> {
    let along = |d: usize| count[d].div_ceil(chunk[d].max(1));
    let axis = (0..count.len()).find(|&d| along(d) > 1);
    let Some(d) = axis.filter(|_| n > 1) else { return vec![(start.to_vec(), count.to_vec())] };
    let found = slabs((start, count), d, chunk[d], n);
    let rest = n.div_ceil(along(d));
    if rest < 2 {
        return found;
    }
    // Each slab is one chunk thick, and is cut along the next dimension.
    found.iter().flat_map(|(start, count)| slabs_of_box((start, count), chunk, rest)).collect()
}

/// Cuts a box into up to `n` pieces whose elements, one after the other, are those of the box in their order. Cuts are between chunks of
/// the source.
pub(super) fn rows_of_box((start, count): (&[u64], &[u64]), chunk: &[u64], n: u64) -> Vec<Slab> {
    match (0..count.len()).find(|&d| count[d] > 1) {
        Some(d) => slabs((start, count), d, chunk.get(d).copied().unwrap_or(1), n),
        None => vec![(start.to_vec(), count.to_vec())],
    }
}

#[cfg(test)]
mod tests {
    use super::super::boxes::BoxWalk;
    use super::*;

    #[test]
    fn orders_are_read_by_whom_they_are_for() {
        let piece = |rank, is_filtered| Piece {
            rank,
            path: b"/v".to_vec(),
            start: vec![1, 2],
            count: vec![3, 4],
            is_filtered,
        };
        let pieces = [piece(1, true), piece(2, false), piece(1, false)];
        let order = Piece::order(7, &pieces);
        assert_eq!(Piece::of_order(&order, 1).unwrap(), (7, vec![piece(1, true), piece(1, false)]));
        assert_eq!(Piece::of_order(&order, 3).unwrap(), (7, Vec::new()));
        assert!(Piece::of_order(&order[..order.len() - 1], 1).is_err());
    }

    /// The chunks of a box in their order.
    fn chunks((start, count): (&[u64], &[u64]), chunk: &[u64]) -> Vec<Vec<u64>> {
        let n: Vec<u64> = count.iter().zip(chunk).map(|(n, by)| n.div_ceil(*by)).collect();
        let key = |at: Vec<u64>| (0..at.len()).map(|d| at[d] + start[d] / chunk[d]).collect();
        BoxWalk::new(&n, &vec![1; n.len()]).map(|(at, _)| key(at)).collect()
    }

    #[test]
    fn pieces_have_the_chunks_of_the_box_in_their_order() {
        for (start, count, chunk) in [
            ([0, 0, 0], [8, 9, 10], [1, 3, 5]),
            ([0, 6, 0], [1, 7, 10], [1, 3, 5]),
            ([4, 0, 10], [4, 3, 3], [4, 3, 5]),
            ([3, 3, 3], [5, 1, 1], [1, 1, 1]),
        ] {
            for n in 1..40 {
                let pieces = slabs_of_box((&start, &count), &chunk, n);
                let found: Vec<_> = pieces
                    .iter()
                    .flat_map(|(start, count)| chunks((start, count), &chunk))
                    .collect();
                let all = chunks((&start, &count), &chunk);
                assert_eq!(found, all, "{count:?} {n}");
                assert!(pieces.len() >= (n as usize).min(all.len()).div_ceil(2));
            }
        }
    }

    #[test]
    fn pieces_have_the_elements_of_the_box_in_their_order() {
        for (start, count) in
            [([0, 0], [7, 3]), ([5, 1], [1, 9]), ([2, 2], [1, 1]), ([3, 0], [9, 4])]
        {
            for (n, unit) in [(1, 1), (2, 1), (3, 2), (50, 1), (4, 100)] {
                let pieces = rows_of_box((&start, &count), &[unit, unit], n);
                let elements = |(start, count): &Slab| {
                    let at = start.clone();
                    let walk = BoxWalk::new(count, &[1, 1]);
                    walk.map(move |(x, _)| [x[0] + at[0], x[1] + at[1]]).collect::<Vec<_>>()
                };
                let found: Vec<_> = pieces.iter().flat_map(elements).collect();
                assert_eq!(found, elements(&(start.to_vec(), count.to_vec())));
                assert!(pieces.len() as u64 <= n);
                assert!(pieces.iter().all(|(_, count)| !count.contains(&0)));
            }
        }
    }
}
