//! Blocks: boxes of elements that together make an irregular hyperslab.

use super::{DimValues, side};

/// Blocks of an irregular hyperslab. They do not overlap in sound files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperslabBlocks {
    pub(super) rank: usize,
    /// For each block its first element, then its last one.
    pub(super) corners: Box<[u64]>,
}

impl HyperslabBlocks {
    /// Blocks of `rank` dimensions from their corners, first and last element of each in turn;
    /// `None` where one ends before it begins, or numbers are missing.
    #[must_use]
    pub fn new(rank: usize, corners: Vec<u64>) -> Option<HyperslabBlocks> {
        let each = rank.checked_mul(2).filter(|&each| each > 0)?;
        let blocks = HyperslabBlocks { rank, corners: corners.into() };
        let is_whole = blocks.corners.len().is_multiple_of(each);
        let is_sound =
            |(first, last): (&[u64], &[u64])| first.iter().zip(last).all(|(a, b)| a <= b);
        (is_whole && blocks.iter().all(is_sound)).then_some(blocks)
    }

    /// Number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// First and last element of each block.
    pub fn iter(&self) -> impl Iterator<Item = (&[u64], &[u64])> {
        self.corners
            .chunks_exact(self.rank.saturating_mul(2))
            .map(|corners| corners.split_at(self.rank))
    }

    /// Elements before `at` in row-major order.
    pub(crate) fn before(&self, at: &[u64]) -> u64 {
        let mut n = 0u64;
        for (first, last) in self.iter() {
            // In each dimension: the elements with a lower coordinate there and the same ones in
            // all dimensions before.
            let mut sizes: DimValues = first.iter().zip(last).map(|(a, b)| side(*a, *b)).collect();
            sizes.push(1);
            let mut rest: u64 = sizes.iter().fold(1, |n, &size| n.saturating_mul(size));
            for ((&at, &size), (&a, &b)) in at.iter().zip(&sizes).zip(first.iter().zip(last)) {
                rest = rest.checked_div(size).unwrap_or(0);
                n = n.saturating_add(at.saturating_sub(a).min(size).saturating_mul(rest));
                if at < a || at > b {
                    break;
                }
            }
        }
        n
    }

    /// The coordinates of the element that `ordinal` others come before, and how many elements
    /// follow it in its row of its block, itself included.
    pub(crate) fn at(&self, ordinal: u64) -> Option<(DimValues, u64)> {
        let mut at = DimValues::from_elem(0, self.rank);
        for dim in 0..self.rank {
            // The largest coordinate that no more than `ordinal` elements come before.
            let corners = || self.iter().flat_map(move |(a, b)| [a.get(dim), b.get(dim)]);
            let mut low = corners().flatten().min().copied()?;
            let mut high = corners().flatten().max().copied()?;
            while low < high {
                let middle = high.saturating_sub(high.saturating_sub(low) / 2);
                if let Some(place) = at.get_mut(dim) {
                    *place = middle;
                }
                if self.before(&at) <= ordinal {
                    low = middle;
                } else {
                    high = middle.saturating_sub(1);
                }
            }
            if let Some(place) = at.get_mut(dim) {
                *place = low;
            }
        }
        let inside = |(first, last): &(&[u64], &[u64])| {
            at.iter().zip(first.iter().zip(last.iter())).all(|(at, (a, b))| a <= at && at <= b)
        };
        let (_, last) = self.iter().find(inside)?;
        let run = side(*at.last()?, *last.last()?);
        (self.before(&at) == ordinal).then_some((at, run))
    }
}
