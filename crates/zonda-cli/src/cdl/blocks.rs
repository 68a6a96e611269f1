//! A variable in pieces that are read at a time.

/// Bytes read at a time: what bounds memory whatever the size of a variable.
pub(super) const BLOCK_BYTES: usize = 4 << 20;

/// Cuts a variable into hyperslabs that follow each other in memory order.
pub(super) struct Blocks<'a> {
    shape: &'a [usize],
    /// The axis along which is cut; all before it go by single steps.
    axis: usize,
    /// Steps along `axis` in one block.
    most: usize,
    start: Vec<usize>,
    count: Vec<usize>,
    begun: bool,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(shape: &'a [usize], elem_bytes: usize) -> Blocks<'a> {
        let limit = (BLOCK_BYTES / elem_bytes).max(1);
        let mut axis = shape.len();
        // Elements of one step along `axis`.
        let mut step = 1usize;
        while axis > 0 && step.saturating_mul(shape[axis - 1]) <= limit {
            step *= shape[axis - 1];
            axis -= 1;
        }
        // All fits: one block, cut along the first axis into its full length.
        let (axis, most) = match axis.checked_sub(1) {
            Some(axis) => (axis, (limit / step).max(1)),
            None => (0, shape.first().copied().unwrap_or(1)),
        };
        let mut count = vec![1; shape.len()];
        for (count, &len) in count.iter_mut().zip(shape).skip(axis) {
            *count = len;
        }
        Blocks { shape, axis, most, start: vec![0; shape.len()], count, begun: false }
    }

    /// Start, count and number of elements of the next block.
    pub(super) fn next(&mut self) -> Option<(&[usize], &[usize], usize)> {
        if self.begun && !self.advance() {
            return None;
        }
        self.begun = true;
        if let Some(count) = self.count.get_mut(self.axis) {
            *count = self.most.min(self.shape[self.axis] - self.start[self.axis]);
        }
        Some((&self.start, &self.count, self.count.iter().product()))
    }

    fn advance(&mut self) -> bool {
        if self.shape.is_empty() {
            return false;
        }
        let mut axis = self.axis;
        self.start[axis] += self.most;
        while self.start[axis] >= self.shape[axis] {
            if axis == 0 {
                return false;
            }
            self.start[axis] = 0;
            axis -= 1;
            self.start[axis] += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks cover every element once, in order, and none is too large.
    fn check_blocks(shape: &[usize], elem_bytes: usize) -> usize {
        let mut blocks = Blocks::new(shape, elem_bytes);
        let (mut next, mut n) = (0, 0);
        while let Some((start, count, n_elems)) = blocks.next() {
            let at = start.iter().zip(shape).fold(0, |at, (&index, &len)| at * len + index);
            assert_eq!(at, next, "{shape:?}: block {n} at {start:?} x {count:?}");
            assert!(n_elems * elem_bytes <= BLOCK_BYTES);
            next += n_elems;
            n += 1;
        }
        assert_eq!(next, shape.iter().product::<usize>());
        n
    }

    #[test]
    fn blocks_cover_everything_in_order() {
        assert_eq!(check_blocks(&[], 8), 1);
        assert_eq!(check_blocks(&[1], 1), 1);
        assert_eq!(check_blocks(&[3, 4, 5], 8), 1);
        assert_eq!(check_blocks(&[BLOCK_BYTES], 1), 1);
        assert_eq!(check_blocks(&[BLOCK_BYTES + 1], 1), 2);
        assert_eq!(check_blocks(&[3, BLOCK_BYTES / 4 + 1], 4), 6);
        assert_eq!(check_blocks(&[7, 3, BLOCK_BYTES / 2], 1), 14);
        assert_eq!(check_blocks(&[2, 5, BLOCK_BYTES / 8, 1], 4), 6);
        check_blocks(&[13, 1001, 977], 8);
    }
}
