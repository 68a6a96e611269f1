//! Places of elements, or of rows, in a file or in memory, which have one dimension only.

use smallvec::SmallVec;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for isize {}
}

/// The type of places: `u64` for bytes of a file, `isize` for elements of memory, counted from where a pointer points
/// to.
pub trait Offset: Copy + Ord + sealed::Sealed {
    /// No distance.
    const ZERO: Self;

    /// `n` times the distance, if that does not overflow.
    #[must_use]
    fn times(self, n: usize) -> Option<Self>;

    /// The sum, if it does not overflow.
    #[must_use]
    fn plus(self, more: Self) -> Option<Self>;

    /// The sum. In a file it is at most the largest number; in memory it wraps. No place of [`Places`] overflows.
    #[must_use]
    fn onward(self, step: Self) -> Self;

    /// The place `n` steps before this one, which those steps led to without overflow.
    #[must_use]
    fn back(self, step: Self, n: usize) -> Self;
}

impl Offset for u64 {
    const ZERO: u64 = 0;

    #[inline]
    fn times(self, n: usize) -> Option<u64> {
        self.checked_mul(n as u64)
    }

    #[inline]
    fn plus(self, more: u64) -> Option<u64> {
        self.checked_add(more)
    }

    #[inline]
    fn onward(self, step: u64) -> u64 {
        self.saturating_add(step)
    }

    #[inline]
    fn back(self, step: u64, n: usize) -> u64 {
        self.saturating_sub(step.saturating_mul(n as u64))
    }
}

impl Offset for isize {
    const ZERO: isize = 0;

    #[inline]
    fn times(self, n: usize) -> Option<isize> {
        // A distance of zero may be taken any number of times.
        if self == 0 { Some(0) } else { self.checked_mul(isize::try_from(n).ok()?) }
    }

    #[inline]
    fn plus(self, more: isize) -> Option<isize> {
        self.checked_add(more)
    }

    #[inline]
    fn onward(self, step: isize) -> isize {
        self.wrapping_add(step)
    }

    #[inline]
    fn back(self, step: isize, n: usize) -> isize {
        // Two's complement: right wherever the result is, however large the product.
        self.wrapping_sub(step.wrapping_mul(n.cast_signed()))
    }
}

/// Calls `each` with every place that loops from `first` on lead to. `loops` has the number of steps and the distance of
/// each loop, from the outermost in. A loop of no steps counts as one of one step.
///
/// [`Places::new`] checks that no place overflows; this function does not: places of a file that overflow are the
/// largest number.
///
/// # Errors
/// The first that `each` gives.
#[inline]
pub fn for_each_place<O: Offset, E>(
    first: O,
    loops: &[(usize, O)],
    mut each: impl FnMut(O) -> Result<(), E>,
) -> Result<(), E> {
    let mut at = first;
    if let [(count, step)] = *loops {
        for _ in 0..count {
            each(at)?;
            at = at.onward(step);
        }
        return Ok(());
    }
    let mut index: SmallVec<[usize; 8]> = SmallVec::from_elem(0, loops.len());
    // A slice, so that the loop does not ask each time where the numbers are.
    let index = &mut index[..];
    loop {
        each(at)?;
        // An odometer: the innermost loop turns fastest.
        let mut turned = false;
        for (i, &(count, step)) in index.iter_mut().zip(loops).rev() {
            *i = i.saturating_add(1);
            if *i < count {
                at = at.onward(step);
                turned = true;
                break;
            }
            at = at.back(step, count.saturating_sub(1));
            *i = 0;
        }
        if !turned {
            return Ok(());
        }
    }
}

/// All places that loops lead to. None of them overflows.
#[derive(Clone, Debug)]
pub struct Places<O> {
    first: O,
    /// From the outermost in.
    loops: SmallVec<[(usize, O); 8]>,
    is_empty: bool,
    ends: (O, O),
}

impl<O: Offset> Places<O> {
    /// The places of loops from `first` on, from the outermost in: number of steps and distance of each. If a loop has no
    /// steps, there are no places. `None` where a place overflows.
    #[must_use]
    pub fn new(first: O, loops: impl IntoIterator<Item = (usize, O)>) -> Option<Places<O>> {
        // A loop of one step is none.
        let loops: SmallVec<[(usize, O); 8]> =
            loops.into_iter().filter(|&(count, _)| count != 1).collect();
        let is_empty = loops.iter().any(|&(count, _)| count == 0);
        let mut ends = (first, first);
        for &(count, step) in loops.iter().filter(|_| !is_empty) {
            // The furthest place of a loop is always one of the places.
            let far = step.times(count.saturating_sub(1))?;
            let end = if far < O::ZERO { &mut ends.0 } else { &mut ends.1 };
            *end = end.plus(far)?;
        }
        Some(Places { first, loops, is_empty, ends })
    }

    /// The lowest place and the highest; where there are none, the first place of the loops, twice.
    #[must_use]
    pub fn ends(&self) -> (O, O) {
        self.ends
    }

    /// Calls `each` with every place, the last loop fastest.
    ///
    /// # Errors
    /// The first that `each` gives.
    #[inline]
    pub fn for_each<E>(&self, each: impl FnMut(O) -> Result<(), E>) -> Result<(), E> {
        if self.is_empty { Ok(()) } else { for_each_place(self.first, &self.loops, each) }
    }
}

/// The place of the element with the indices `at`. `steps` has the distance of neighbours along each dimension. `None`
/// where it overflows.
#[inline]
#[must_use]
pub fn place_of<O: Offset>(at: &[usize], steps: &[O]) -> Option<O> {
    at.iter().zip(steps).try_fold(O::ZERO, |sum, (&at, &step)| sum.plus(step.times(at)?))
}

/// The map (`imap`) of plain row-major memory: the distances of neighbours along each dimension, in elements. A distance
/// that overflows is the largest number.
#[must_use]
pub fn row_major(count: &[usize]) -> Vec<isize> {
    let mut map = vec![1_isize; count.len()];
    let mut step = 1_isize;
    for (map, &count) in map.iter_mut().zip(count).rev() {
        *map = step;
        step = step.saturating_mul(isize::try_from(count).unwrap_or(isize::MAX));
    }
    map
}

/// Whether a map is that of plain row-major memory, so that it changes nothing. Its distances along dimensions of one
/// element do not matter.
#[must_use]
pub fn is_row_major(count: &[usize], imap: &[isize]) -> bool {
    let mut step = 1_isize;
    for (&n, &map) in count.iter().zip(imap).rev() {
        if n != 1 && map != step {
            return false;
        }
        step = step.saturating_mul(isize::try_from(n).unwrap_or(isize::MAX));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<O: Offset>(first: O, loops: &[(usize, O)]) -> Option<Vec<O>> {
        let mut seen = Vec::new();
        Places::new(first, loops.iter().copied())?
            .for_each(|at| {
                seen.push(at);
                Ok::<(), ()>(())
            })
            .ok()?;
        Some(seen)
    }

    #[test]
    fn places_of_loops() {
        assert_eq!(all(7u64, &[]), Some(vec![7]));
        assert_eq!(all(7u64, &[(3, 10)]), Some(vec![7, 17, 27]));
        assert_eq!(all(0u64, &[(2, 100), (1, 55), (2, 3)]), Some(vec![0, 3, 100, 103]));
        assert_eq!(all(0isize, &[(2, -1), (2, 5)]), Some(vec![0, 5, -1, 4]));
        assert_eq!(all(0u64, &[(2, 100), (0, 3)]), Some(vec![]));
    }

    #[test]
    fn places_that_cannot_be_counted() {
        assert_eq!(all(u64::MAX, &[(2, 1)]), None);
        assert_eq!(all(2u64, &[(3, u64::MAX / 2)]), None);
        assert_eq!(all(1u64, &[(3, u64::MAX), (0, 1)]), Some(vec![]));
        assert_eq!(all(0u64, &[(1, u64::MAX)]), Some(vec![0]));
        let half = isize::MAX / 2;
        // The furthest places are there, though the sum of all distances is small.
        assert_eq!(all(half, &[(2, half), (2, half), (2, -isize::MAX)]), None);
        assert_eq!(all(0isize, &[(2, isize::MIN)]), Some(vec![0, isize::MIN]));
        assert_eq!(all(-1isize, &[(2, isize::MIN)]), None);
        assert_eq!(all(0isize, &[(usize::MAX, 1)]), None);
    }

    #[test]
    fn ends_of_places() {
        let ends = |loops: &[(usize, isize)]| Places::new(5, loops.iter().copied()).unwrap().ends();
        assert_eq!(ends(&[(3, 10), (2, -4), (1, 99)]), (1, 25));
        assert_eq!(ends(&[(3, 10), (0, -4)]), (5, 5));
    }

    #[test]
    fn an_error_ends_it() {
        let mut n = 0;
        let done = for_each_place(0u64, &[(4, 1), (4, 1)], |at| {
            n += 1;
            if at == 2 { Err("two") } else { Ok(()) }
        });
        assert_eq!((done, n), (Err("two"), 3));
    }

    #[test]
    fn row_major_maps() {
        assert_eq!(row_major(&[]), [0isize; 0]);
        assert_eq!(row_major(&[5, 3, 4]), [12, 4, 1]);
        assert_eq!(row_major(&[2, usize::MAX, 3]), [isize::MAX, 3, 1]);
        assert!(is_row_major(&[2, 3], &[3, 1]));
        assert!(is_row_major(&[1, 3], &[99, 1]));
        assert!(!is_row_major(&[2, 3], &[1, 2]));
        assert!(!is_row_major(&[2, 3], &[-3, 1]));
        assert_eq!(place_of(&[1, 2], &[3isize, 1]), Some(5));
        assert_eq!(place_of(&[2], &[isize::MAX]), None);
    }
}
