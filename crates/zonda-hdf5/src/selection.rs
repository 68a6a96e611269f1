//! Dataspace selections: which elements of a dataset a region reference or a mapping of a virtual
//! dataset is about.
//! Spec: HDF5 File Format, "Appendix A: Dataspace Selection" (versions 1 to 3). The elements of a
//! selection have an order: points come as they are listed, all others in row-major order, whatever
//! the order of blocks in the file.

use smallvec::SmallVec;

mod blocks;
mod decode;
mod runs;

pub use blocks::HyperslabBlocks;

/// One number per dimension.
pub type DimValues = SmallVec<[u64; 4]>;

/// One dimension of a regular hyperslab: `count` blocks of `block` elements each, the first at
/// `start`, one after `stride` elements from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HyperslabDim {
    /// First element.
    pub start: u64,
    /// Elements from the beginning of one block to that of the next.
    pub stride: u64,
    /// Number of blocks, [`UNLIMITED`] for as many as there are.
    pub count: u64,
    /// Elements of a block, [`UNLIMITED`] for all to the end.
    pub block: u64,
}

/// The count or block of a hyperslab without end.
pub const UNLIMITED: u64 = u64::MAX;

/// Selected elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// No elements.
    None,
    /// All elements of the dataset.
    All,
    /// Single elements, in this order.
    Points {
        /// Number of dimensions.
        rank: usize,
        /// Coordinates, point after point.
        coords: Box<[u64]>,
    },
    /// A regular hyperslab.
    Hyperslab(SmallVec<[HyperslabDim; 3]>),
    /// An irregular one.
    Blocks(HyperslabBlocks),
}

impl HyperslabDim {
    /// `n` elements side by side, from `start` on.
    #[must_use]
    pub fn run(start: u64, n: u64) -> HyperslabDim {
        HyperslabDim { start, stride: 1, count: 1, block: n }
    }

    /// Whether it has no end, so that the extent of a dataset ends it.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.count == UNLIMITED || self.block == UNLIMITED
    }

    /// Elements, [`UNLIMITED`] where there is no end.
    #[must_use]
    pub fn len(&self) -> u64 {
        if self.is_unlimited() { UNLIMITED } else { self.count.saturating_mul(self.block) }
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The step from each of its elements to the next, if all steps are equal.
    pub(crate) fn step(&self) -> Option<u64> {
        if self.block == 1 {
            Some(self.stride)
        } else if self.count == 1 || self.stride == self.block {
            Some(1)
        } else {
            None
        }
    }

    /// The coordinate of element `i`.
    #[must_use]
    pub fn at(&self, i: u64) -> u64 {
        let block = self.block.max(1);
        let blocks = i.checked_div(block).unwrap_or(0).saturating_mul(self.stride);
        self.start.saturating_add(blocks).saturating_add(i.checked_rem(block).unwrap_or(0))
    }

    /// How many of its elements come before the coordinate `at`.
    #[must_use]
    pub fn before(&self, at: u64) -> u64 {
        let Some(past) = at.checked_sub(self.start) else { return 0 };
        // The stride of a single block has no meaning.
        let stride = if self.count <= 1 { self.block } else { self.stride }.max(1);
        let blocks = past.checked_div(stride).unwrap_or(0);
        if blocks >= self.count {
            return self.len();
        }
        let inside = past.checked_rem(stride).unwrap_or(0).min(self.block);
        blocks.saturating_mul(self.block).saturating_add(inside)
    }

    /// How many elements follow element `i` side by side, itself included.
    pub(crate) fn contiguous(&self, i: u64) -> u64 {
        if self.step() == Some(1) {
            return self.len().saturating_sub(i);
        }
        let block = self.block.max(1);
        block.saturating_sub(i.checked_rem(block).unwrap_or(0))
    }
}

/// Elements from `a` to `b`, both included.
pub(crate) fn side(a: u64, b: u64) -> u64 {
    b.saturating_sub(a).saturating_add(1)
}

impl Selection {
    /// Number of dimensions; `None` where the selection does not say.
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        match self {
            Selection::None | Selection::All => None,
            Selection::Points { rank, .. } => Some(*rank),
            Selection::Hyperslab(dims) => Some(dims.len()),
            Selection::Blocks(blocks) => Some(blocks.rank),
        }
    }

    /// The dimension without end, if there is one.
    #[must_use]
    pub fn unlimited_dim(&self) -> Option<usize> {
        match self {
            Selection::Hyperslab(dims) => dims.iter().position(HyperslabDim::is_unlimited),
            _ => None,
        }
    }

    /// The coordinate after the last selected one in a dimension; `None` where there is none, or no
    /// end.
    #[must_use]
    pub fn end(&self, dim: usize) -> Option<u64> {
        let last = match self {
            Selection::None | Selection::All => None,
            Selection::Points { rank, coords } => {
                coords.chunks_exact(*rank).filter_map(|at| at.get(dim)).max().copied()
            }
            Selection::Hyperslab(dims) => {
                let dim = dims.get(dim).filter(|dim| !dim.is_unlimited())?;
                dim.len().checked_sub(1).map(|last| dim.at(last))
            }
            Selection::Blocks(blocks) => {
                blocks.iter().filter_map(|(_, last)| last.get(dim)).max().copied()
            }
        };
        last.map(|last| last.saturating_add(1))
    }

    /// Selected elements of a dataset with the extent `dims`.
    #[must_use]
    pub fn n_elems(&self, dims: &[u64]) -> u64 {
        match self {
            Selection::None => 0,
            Selection::All => product(dims.iter().copied()),
            Selection::Points { rank, coords } => {
                coords.len().checked_div(*rank).unwrap_or(0) as u64
            }
            Selection::Hyperslab(slab) => product(slab.iter().zip(dims).map(|(slab, &dim)| {
                if slab.is_unlimited() { slab.before(dim) } else { slab.len() }
            })),
            Selection::Blocks(blocks) => blocks
                .iter()
                .map(|(first, last)| product(first.iter().zip(last).map(|(a, b)| side(*a, *b))))
                .fold(0, u64::saturating_add),
        }
    }
}

fn product(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests;
