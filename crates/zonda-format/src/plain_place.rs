//! Where the elements of a variable lie that are side by side in the file, as they are.

use zonda_convert::{ByteOrder, RangeRule};
use zonda_model::ExtType;

/// One dimension of a [`PlainPlace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainAxis {
    /// Elements along it that exist: of a record dimension those of now.
    pub len: u64,
    /// Bytes from one to the next.
    pub step: u64,
}

/// Where the elements of a variable are as long as nobody changes definitions or closes the file; records may be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainPlace {
    /// Where the first element begins, in bytes of the storage.
    pub at: u64,
    /// The type of the elements.
    pub ty: ExtType,
    /// The order of their bytes.
    pub order: ByteOrder,
    /// Which values do not fit.
    pub rule: RangeRule,
    /// The dimensions, slowest first.
    pub axes: Box<[PlainAxis]>,
    /// Whether puts are allowed now.
    pub is_writable: bool,
}

impl PlainPlace {
    /// Where one element is, in bytes of the storage; `None` if there is none of these indices.
    #[inline(always)]
    #[must_use]
    pub fn element(&self, index: &[usize]) -> Option<u64> {
        let mut at = self.at;
        for (axis, &index) in self.axes.iter().zip(index.get(..self.axes.len())?) {
            let index = index as u64;
            if index >= axis.len {
                return None;
            }
            // An element that exists is where an offset reaches.
            at = at.wrapping_add(index.wrapping_mul(axis.step));
        }
        Some(at)
    }

    /// Where a block of elements is, and how many bytes it has; `None` unless all of them exist and lie side by side in at
    /// most `most` bytes, one at least.
    #[inline(always)]
    #[must_use]
    pub fn run(&self, start: &[usize], count: &[usize], most: u64) -> Option<(u64, usize)> {
        let rank = self.axes.len();
        let size = self.ty.size() as u64;
        let (mut at, mut bytes) = (self.at, size);
        let slab = start.get(..rank)?.iter().zip(count.get(..rank)?);
        for (axis, (&start, &count)) in self.axes.iter().zip(slab).rev() {
            let (start, count) = (start as u64, count as u64);
            if count == 0 || start >= axis.len || count > axis.len - start {
                return None;
            }
            if count > 1 {
                if bytes != axis.step || count > most {
                    return None;
                }
                bytes = axis.step.checked_mul(count)?;
                if bytes > most {
                    return None;
                }
            }
            at = at.wrapping_add(start.wrapping_mul(axis.step));
        }
        Some((at, usize::try_from(bytes).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> PlainPlace {
        let axis = |len, step| PlainAxis { len, step };
        PlainPlace {
            at: 100,
            ty: ExtType::Double,
            order: ByteOrder::Big,
            rule: RangeRule::Strict,
            // Records of another variable lie between.
            axes: Box::new([axis(5, 200), axis(3, 32), axis(4, 8)]),
            is_writable: true,
        }
    }

    #[test]
    fn an_element_is_where_its_indices_lead() {
        assert_eq!(place().element(&[0, 0, 0]), Some(100));
        assert_eq!(place().element(&[4, 2, 3]), Some(100 + 800 + 64 + 24));
        for outside in [[5, 0, 0], [0, 3, 0], [0, 0, 4], [usize::MAX, 0, 0]] {
            assert_eq!(place().element(&outside), None, "{outside:?}");
        }
        assert_eq!(place().element(&[0, 0]), None);
        let scalar = PlainPlace { axes: Box::new([]), ..place() };
        assert_eq!((scalar.element(&[]), scalar.run(&[], &[], 8)), (Some(100), Some((100, 8))));
    }

    #[test]
    fn a_run_is_side_by_side_or_nothing() {
        let run = |start, count| place().run(start, count, 64);
        assert_eq!(run(&[1, 1, 1], &[1, 1, 3]), Some((100 + 200 + 32 + 8, 24)));
        assert_eq!(run(&[1, 1, 0], &[1, 2, 4]), Some((100 + 200 + 32, 64)));
        // More than `most`, a gap in a row, a gap between records, nothing, and what does not exist.
        assert_eq!(run(&[1, 0, 0], &[1, 3, 4]), None);
        assert_eq!(run(&[0, 0, 0], &[1, 2, 3]), None);
        assert_eq!(run(&[0, 0, 0], &[2, 1, 1]), None);
        assert_eq!(run(&[0, 0, 0], &[1, 0, 1]), None);
        assert_eq!(run(&[0, 0, 2], &[1, 1, 3]), None);
        assert_eq!(run(&[0, 0, 0], &[1, 1, usize::MAX]), None);
    }
}
