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
    /// The next one.
    const ONE: Self;

    /// The sum, if it can be counted.
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

/// From the indices of an element to those of the next one, the last dimension fastest. `false` behind the
/// last element, where they are those of the first again.
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

/// The same in steps: from the first element of a box to that of the next one. Boxes have the lengths `step`,
/// begin at `first` and every `step` behind it, and end where `end` is.
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

/// Adds to `at` the indices of element `n`, which the first dimension may have more of than `count` says.
///
/// Lengths of zero count as one. An index that cannot be counted is the largest number.
#[inline]
pub fn unrank(n: u64, count: &[u64], at: &mut [u64]) {
    let mut rest = n;
    for (axis, (at, &count)) in at.iter_mut().zip(count).enumerate().rev() {
        let (next, index) = if axis == 0 { (0, rest) } else { rest.divided(count) };
        *at = at.saturating_add(index);
        rest = next;
    }
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
    /// Whether `at` is still to be told; `None` when all were.
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
