//! A selection of elements of a variable.

/// A hyperslab in elements: `start`, `count` and optionally `stride` per dimension.
///
/// All slices have the variable's rank; row-major, last dimension fastest. Without `stride` the
/// selection is contiguous in each dimension (`nc_put_vara`), with it every `stride[i]`-th element
/// is taken, `count[i]` of them (`nc_put_vars`). The mapping of memory (`imap`) is the caller's
/// side of a transfer and not part of the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hyperslab<'a> {
    /// Index of the first element in each dimension.
    pub start: &'a [usize],
    /// Number of elements in each dimension.
    pub count: &'a [usize],
    /// Distance between elements in each dimension, at least 1; `None` for all ones.
    pub stride: Option<&'a [isize]>,
}

impl Hyperslab<'_> {
    /// Number of elements selected, `None` beyond the address space. A scalar selects one.
    #[must_use]
    pub fn n_elems(&self) -> Option<usize> {
        // A zero anywhere makes the product zero, however large the other counts are.
        if self.count.contains(&0) {
            return Some(0);
        }
        self.count.iter().try_fold(1usize, |product, &n| product.checked_mul(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_counts() {
        let count = |count: &[usize]| Hyperslab { start: count, count, stride: None }.n_elems();
        assert_eq!(count(&[]), Some(1));
        assert_eq!(count(&[2, 3]), Some(6));
        assert_eq!(count(&[usize::MAX, 2]), None);
        assert_eq!(count(&[usize::MAX, 2, 0]), Some(0));
    }
}
