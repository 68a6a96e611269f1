//! Long runs in parts that MPI can count.

use std::ops::Range;

/// The parts of `total` things, of at most `most` each, in order; none of nothing.
pub(crate) fn rounds(total: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let most = most.max(1);
    (0..total.div_ceil(most)).map(move |part| {
        let begin = part * most;
        begin..total.min(begin.saturating_add(most))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_cover_everything() {
        for total in (0..40).chain([4096, 4097]) {
            for most in (0..45).chain([usize::MAX]) {
                let mut end = 0;
                for part in rounds(total, most) {
                    assert_eq!(part.start, end);
                    assert!(!part.is_empty() && part.len() <= most.max(1), "{total} {most}");
                    end = part.end;
                }
                assert_eq!(end, total);
            }
        }
    }

    #[test]
    fn lengths_beyond_32_bits() {
        let parts: Vec<_> = rounds(5 << 30, 1 << 30).collect();
        assert_eq!(parts.len(), 5);
        assert_eq!(parts[4], (4 << 30)..(5 << 30));
        assert!(rounds(usize::MAX, usize::MAX).eq(std::iter::once(0..usize::MAX)));
    }
}
