//! Splits runs of values in row-major order into boxes.

use zonda_slab::unrank;

/// Splits `n` values of an array, beginning with value `from`, into boxes. `put` gets the first
/// index, the shape and the number of values of each box. The first length does not matter.
///
/// # Errors
/// The first error of `put`.
pub(super) fn slabs<E>(
    shape: &[u64],
    mut from: u64,
    mut n: u64,
    mut put: impl FnMut(&[u64], &[u64], u64) -> Result<(), E>,
) -> Result<(), E> {
    if shape.is_empty() {
        return if n > 0 { put(&[], &[], 1) } else { Ok(()) };
    }
    // Number of values in one step along each dimension.
    let mut steps = vec![1u64; shape.len()];
    for dim in (1..shape.len()).rev() {
        steps[dim - 1] = steps[dim].saturating_mul(shape[dim]);
    }
    let (mut start, mut count) = (vec![0; shape.len()], vec![1; shape.len()]);
    while n > 0 {
        start.fill(0);
        unrank(from, shape, &mut start);
        // The slowest dimension along which whole steps remain.
        let dim = (0..shape.len())
            .find(|dim| n >= steps[*dim] && start[dim + 1..].iter().all(|index| *index == 0));
        let dim = dim.unwrap_or(shape.len() - 1);
        let left = if dim == 0 { u64::MAX } else { shape[dim] - start[dim] };
        count[..dim].fill(1);
        count[dim] = (n / steps[dim].max(1)).min(left);
        count[dim + 1..].copy_from_slice(&shape[dim + 1..]);
        let values = count[dim].saturating_mul(steps[dim]);
        if values == 0 {
            return Ok(());
        }
        put(&start, &count, values)?;
        from += values;
        n -= values.min(n);
    }
    Ok(())
}

/// The index of item `n` in an array of these lengths, the first of which does not matter.
pub(super) fn index(lengths: &[u64], n: u64) -> Vec<u64> {
    let mut index = vec![0; lengths.len()];
    unrank(n, lengths, &mut index);
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    type BoxList = Vec<(Vec<u64>, Vec<u64>)>;

    fn boxes(shape: &[u64], from: u64, n: u64) -> BoxList {
        let mut out = Vec::new();
        let mut sum = 0;
        let done: Result<(), ()> = slabs(shape, from, n, |start, count, values| {
            assert_eq!(count.iter().product::<u64>(), values);
            sum += values;
            out.push((start.to_vec(), count.to_vec()));
            Ok(())
        });
        assert!(done.is_ok() && sum == n);
        out
    }

    #[test]
    fn few_boxes() {
        assert_eq!(boxes(&[0, 3, 4], 0, 24), [(vec![0, 0, 0], vec![2, 3, 4])]);
        assert_eq!(boxes(&[9], 2, 5), [(vec![2], vec![5])]);
        assert_eq!(boxes(&[], 0, 1), [(vec![], vec![])]);
        let parts: BoxList = vec![
            (vec![0, 1, 2], vec![1, 1, 2]),
            (vec![0, 2, 0], vec![1, 1, 4]),
            (vec![1, 0, 0], vec![1, 3, 4]),
            (vec![2, 0, 0], vec![1, 1, 3]),
        ];
        assert_eq!(boxes(&[0, 3, 4], 6, 2 + 4 + 12 + 3), parts);
    }

    #[test]
    fn every_value_once() {
        let shape = [5, 2, 3, 2];
        for from in 0..60 {
            for n in 0..=(60 - from) {
                let mut seen = vec![0; 60];
                for (start, count) in boxes(&shape, from, n) {
                    for value in 0..count.iter().product::<u64>() {
                        let within = index(&count, value);
                        let at = within.iter().zip(&start).zip(&shape);
                        let at = at.fold(0, |at, ((w, s), len)| at * len + w + s);
                        seen[at as usize] += 1;
                    }
                }
                let expected = |at: u64| u64::from(at >= from && at < from + n);
                assert!(seen.iter().enumerate().all(|(at, n)| *n == expected(at as u64)));
            }
        }
    }
}
