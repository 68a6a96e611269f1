//! Cutting hyperslabs into blocks of a bounded size.

use smallvec::SmallVec;

use crate::hyperslab::Hyperslab;

/// One number per dimension; up to rank 8 it takes no memory from the heap.
type AxisNumbers = SmallVec<[usize; 8]>;

/// Cuts a hyperslab into blocks that follow each other in row-major order.
///
/// Each block has whole fastest dimensions, as many indices as fit of the one before them, which is *cut*,
/// and one index of each slower one. A scalar is one block, a hyperslab of no elements is none.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    slab: Hyperslab<'a>,
    /// The dimension that is cut.
    cut: usize,
    /// Indices of it in a block, but for the last one along it.
    step: usize,
    /// Elements of the largest block.
    largest: usize,
    /// The first element of the next block: its indices among those selected.
    first: AxisNumbers,
    /// The first element of the next block: its indices in the variable.
    start: AxisNumbers,
    count: AxisNumbers,
    state: BlocksState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlocksState {
    Begins,
    Underway,
    Ended,
}

/// A block of a hyperslab.
#[derive(Clone, Copy, Debug)]
pub struct Block<'b> {
    /// Its first element, by its indices among those that the whole hyperslab selects: what a map of memory
    /// is multiplied with.
    pub first: &'b [usize],
    /// Its elements in the variable.
    pub slab: Hyperslab<'b>,
    /// How many these are.
    pub n_elems: usize,
}

impl<'a> Blocks<'a> {
    /// Blocks of at most `most` elements, but at least one. `None` where an index overflows: the hyperslab ends beyond
    /// every variable.
    #[must_use]
    pub fn of(slab: Hyperslab<'a>, most: usize) -> Option<Blocks<'a>> {
        if !slab.is_empty() {
            for axis in 0..slab.count.len() {
                usize::try_from(slab.axis(axis).last()?).ok()?;
            }
        }
        Some(Blocks::cut_up(slab, most))
    }

    /// Blocks of a whole variable with these lengths.
    #[must_use]
    pub fn of_shape(shape: &'a [usize], most: usize) -> Blocks<'a> {
        Blocks::cut_up(Hyperslab { start: &[], count: shape, stride: None }, most)
    }

    /// Blocks of a hyperslab whose indices do not overflow.
    fn cut_up(slab: Hyperslab<'a>, most: usize) -> Blocks<'a> {
        let (rank, most, is_empty) = (slab.count.len(), most.max(1), slab.is_empty());
        // Dimensions behind `cut` are whole, and `inner` elements.
        let (mut cut, mut inner) = (rank.saturating_sub(1), 1usize);
        while let Some(next) = slab.count.get(cut).and_then(|&n| inner.checked_mul(n)) {
            if cut == 0 || is_empty || next > most {
                break;
            }
            (cut, inner) = (cut - 1, next);
        }
        let len = slab.count.get(cut).copied().unwrap_or(1);
        let step = (most / inner).clamp(1, len.max(1));
        let mut count: AxisNumbers = slab.count.into();
        count.iter_mut().take(cut).for_each(|count| *count = 1);
        Blocks {
            slab,
            cut,
            step,
            largest: if is_empty { 0 } else { inner * step },
            first: SmallVec::from_elem(0, rank),
            start: SmallVec::from_elem(0, rank),
            count,
            state: if is_empty { BlocksState::Ended } else { BlocksState::Begins },
        }
    }

    /// Elements of the largest block: what memory is needed for.
    #[must_use]
    pub fn largest(&self) -> usize {
        self.largest
    }

    /// The dimension that is cut: of each slower one a block has one index.
    #[must_use]
    pub fn cut(&self) -> usize {
        self.cut
    }

    /// The next block. It borrows from `self`, so this is no iterator.
    #[allow(clippy::should_implement_trait)] // lends
    pub fn next(&mut self) -> Option<Block<'_>> {
        let is_next = match self.state {
            BlocksState::Begins => true,
            BlocksState::Underway => self.advance(),
            BlocksState::Ended => false,
        };
        self.state = if is_next { BlocksState::Underway } else { BlocksState::Ended };
        if !is_next {
            return None;
        }
        if let (Some(count), Some(&len)) =
            (self.count.get_mut(self.cut), self.slab.count.get(self.cut))
        {
            *count = self.step.min(len - self.first[self.cut]);
        }
        for (axis, (start, &first)) in self.start.iter_mut().zip(&self.first).enumerate() {
            let along = self.slab.axis(axis);
            // At most the index of the last element, which was counted.
            *start = along.start as usize + first * along.stride as usize;
        }
        let slab = Hyperslab { start: &self.start, count: &self.count, stride: self.slab.stride };
        let n_elems = self.count.iter().skip(self.cut).product();
        Some(Block { first: &self.first, slab, n_elems })
    }

    /// To the first element of the next block; `false` behind the last one.
    fn advance(&mut self) -> bool {
        for axis in (0..=self.cut).rev() {
            let (Some(first), Some(&len)) = (self.first.get_mut(axis), self.slab.count.get(axis))
            else {
                return false;
            };
            let step = if axis == self.cut { self.step } else { 1 };
            match first.checked_add(step) {
                Some(next) if next < len => {
                    *first = next;
                    return true;
                }
                _ => *first = 0,
            }
        }
        false
    }
}
