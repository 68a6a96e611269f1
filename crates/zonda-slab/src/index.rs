//! Indices of the elements of a row-major array, one after the other.

mod sealed {
    pub trait Sealed {}
    impl Sealed for usize {}
    impl Sealed for u64 {}
}

/// What indices are counted in: `usize` for what is in memory, `u64` for what is in a file.
pub trait Index: Copy + Ord + sealed::Sealed {
    /// The first index.
    const ZERO: Self;
    /// The distance to the next index.
    const ONE: Self;

    /// The sum, if it does not overflow.
    #[must_use]
    fn plus(self, more: Self) -> Option<Self>;

    /// Quotient and remainder; a divisor of zero counts as one.
    #[must_use]
    fn divided(self, by: Self) -> (Self, Self);
}

macro_rules! index {
    ($($type:ty),*) => {$(
        impl Index for $type {
            const ZERO: $type = 0;
            const ONE: $type = 1;

            #[inline]
            fn plus(self, more: $type) -> Option<$type> {
                self.checked_add(more)
            }

            #[inline]
            fn divided(self, by: $type) -> ($type, $type) {
                match (self.checked_div(by), self.checked_rem(by)) {
                    (Some(quotient), Some(rest)) => (quotient, rest),
                    _ => (self, 0),
                }
            }
        }
    )*};
}

index!(usize, u64);

/// Changes the indices of an element to those of the next one, the last dimension fastest. `false` behind the last
/// element; the indices are then those of the first again.
///
/// `count` has the length of each dimension in `at`; no dimensions have one element.
#[inline]
pub fn advance<I: Index>(at: &mut [I], count: &[I]) -> bool {
    for (at, &count) in at.iter_mut().zip(count).rev() {
        match at.plus(I::ONE) {
            Some(next) if next < count => {
                *at = next;
                return true;
            }
            _ => *at = I::ZERO,
        }
    }
    false
}

/// Changes the indices of the first element of a box to those of the next box. Boxes have the lengths `step`, the
/// first begins at `first`, and they end at `end`.
#[inline]
pub fn advance_by<I: Index>(at: &mut [I], first: &[I], step: &[I], end: &[I]) -> bool {
    for (((at, &first), &step), &end) in at.iter_mut().zip(first).zip(step).zip(end).rev() {
        match at.plus(step) {
            Some(next) if next < end && step > I::ZERO => {
                *at = next;
                return true;
            }
            _ => *at = first,
        }
    }
    false
}

/// Adds to `at` the indices of element `n`. The index along the first dimension may be beyond `count`.
///
/// Lengths of zero count as one. An index that overflows is the largest number.
#[inline]
pub fn unrank(n: u64, count: &[u64], at: &mut [u64]) {
    let mut rest = n;
    for (axis, (at, &count)) in at.iter_mut().zip(count).enumerate().rev() {
        let (next, index) = if axis == 0 { (0, rest) } else { rest.divided(count) };
        *at = at.saturating_add(index);
        rest = next;
    }
}

/// Calls a function with the indices of all elements of a grid of lengths `new` that one of lengths `old` does not have: first of those
/// that lie behind the old one along the first dimension, and of these row by row, then of the others that do along the second, and so
/// on. Each once.
///
/// ```
/// let mut seen = Vec::new();
/// zonda_slab::grid_difference(&[1, 1], &[2, 2], |at| Ok::<(), ()>(seen.push((at[0], at[1])))).unwrap();
/// assert_eq!(seen, [(1, 0), (1, 1), (0, 1)]);
/// ```
///
/// # Errors
/// The first of the function, which ends it.
pub fn grid_difference<E>(
    old: &[u64],
    new: &[u64],
    mut each: impl FnMut(&[u64]) -> Result<(), E>,
) -> Result<(), E> {
    let rank = new.len();
    let step = smallvec::SmallVec::<[u64; 8]>::from_elem(1, rank);
    for behind in 0..rank {
        let (mut first, mut end) =
            (smallvec::SmallVec::<[u64; 8]>::new(), smallvec::SmallVec::<[u64; 8]>::new());
        for (axis, (&new, old)) in
            new.iter().zip(old.iter().chain(std::iter::repeat(&0))).enumerate()
        {
            let kept = new.min(*old);
            first.push(if axis == behind { kept } else { 0 });
            end.push(if axis < behind { kept } else { new });
        }
        if first.iter().zip(&end).any(|(first, end)| first >= end) {
            continue;
        }
        let mut at = first.clone();
        loop {
            each(&at)?;
            if !advance_by(&mut at, &first, &step, &end) {
                break;
            }
        }
    }
    Ok(())
}

/// The indices of all elements of an array, from the first to the last; none if a length is zero.
///
/// ```
/// let mut all = zonda_slab::Indices::of(&[2u64, 2]);
/// let mut seen = Vec::new();
/// while let Some(at) = all.next() {
///     seen.push((at[0], at[1]));
/// }
/// assert_eq!(seen, [(0, 0), (0, 1), (1, 0), (1, 1)]);
/// ```
#[derive(Clone, Debug)]
pub struct Indices<'a, I> {
    count: &'a [I],
    at: smallvec::SmallVec<[I; 8]>,
    /// Whether `at` has not been given yet; `None` when all were given.
    is_first: Option<bool>,
}

impl<'a, I: Index> Indices<'a, I> {
    /// Those of an array with these lengths.
    #[must_use]
    pub fn of(count: &'a [I]) -> Indices<'a, I> {
        let at = smallvec::SmallVec::from_elem(I::ZERO, count.len());
        Indices { count, at, is_first: (!count.contains(&I::ZERO)).then_some(true) }
    }

    /// The next ones: no iterator, since they are lent. Takes no memory.
    #[inline]
    #[allow(clippy::should_implement_trait)] // lends
    pub fn next(&mut self) -> Option<&[I]> {
        if !self.is_first? && !advance(&mut self.at, self.count) {
            self.is_first = None;
            return None;
        }
        self.is_first = Some(false);
        Some(&self.at)
    }
}
