//! Walks beside one that takes each element by itself.

use proptest::prelude::*;

use super::*;

/// An array, and a hyperslab inside it.
#[derive(Clone, Debug)]
struct Case {
    extent: Vec<u64>,
    start: Vec<usize>,
    count: Vec<usize>,
    stride: Vec<isize>,
}

impl Case {
    fn slab(&self) -> Hyperslab<'_> {
        Hyperslab { start: &self.start, count: &self.count, stride: Some(&self.stride) }
    }

    /// Indices in the variable of each element, and among those selected.
    fn naive(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        let mut all = vec![(Vec::new(), Vec::new())];
        for axis in 0..self.count.len() {
            let mut next = Vec::new();
            for (at, within) in &all {
                for i in 0..self.count[axis] {
                    let (mut at, mut within) = (Vec::clone(at), Vec::clone(within));
                    at.push(self.start[axis] + i * self.stride[axis] as usize);
                    within.push(i);
                    next.push((at, within));
                }
            }
            all = next;
        }
        all
    }

    fn places(&self, elem: u64) -> Vec<u64> {
        let place = |at: &[usize]| {
            at.iter().zip(&self.extent).fold(0, |sum, (&at, &len)| sum * len + at as u64) * elem
        };
        self.naive().iter().map(|(at, _)| place(at)).collect()
    }
}

fn case() -> impl Strategy<Value = Case> {
    // Start, count, stride, and what is left behind the last element.
    let axis = (0usize..4, 0usize..5, 1isize..4, 0u64..3);
    proptest::collection::vec(axis, 0..5).prop_map(|axes| {
        let mut case = Case { extent: vec![], start: vec![], count: vec![], stride: vec![] };
        for (start, count, stride, left) in axes {
            let last = start + count.saturating_sub(1) * stride as usize;
            case.extent.push(last as u64 + 1 + left);
            case.start.push(start);
            case.count.push(count);
            case.stride.push(stride);
        }
        case
    })
}

proptest! {
    #[test]
    fn indices_are_those_of_every_element(case in case()) {
        let mut seen = Vec::new();
        let mut all = Indices::of(&case.count);
        while let Some(at) = all.next() {
            seen.push(at.to_vec());
        }
        prop_assert!(all.next().is_none());
        let expected: Vec<_> = case.naive().into_iter().map(|(_, within)| within).collect();
        prop_assert_eq!(&seen, &expected);
        let count: Vec<u64> = case.count.iter().map(|&n| n as u64).collect();
        for (n, within) in expected.iter().enumerate() {
            let mut at = vec![0; count.len()];
            unrank(n as u64, &count, &mut at);
            prop_assert!(at.iter().zip(within).all(|(&a, &b)| a == b as u64));
        }
    }

    #[test]
    fn blocks_have_every_element_in_order(case in case(), most in 0usize..50) {
        let slab = case.slab();
        let mut blocks = Blocks::of(slab, most).unwrap();
        let mut seen = Vec::new();
        let mut largest = 0;
        while let Some(block) = blocks.next() {
            prop_assert_eq!(block.slab.n_elems(), Some(block.n_elems));
            prop_assert!(block.n_elems <= most.max(1));
            largest = largest.max(block.n_elems);
            let own = Case {
                start: block.slab.start.to_vec(),
                count: block.slab.count.to_vec(),
                stride: case.stride.clone(),
                ..case.clone()
            };
            let first = block.first.to_vec();
            seen.extend(own.naive().into_iter().map(|(at, within)| {
                (at, within.iter().zip(&first).map(|(a, b)| a + b).collect::<Vec<_>>())
            }));
        }
        prop_assert!(blocks.next().is_none());
        prop_assert_eq!(blocks.largest(), largest);
        prop_assert_eq!(seen, case.naive());
    }

    #[test]
    fn rows_have_every_element_in_order(case in case(), elem in 1usize..9) {
        let slab = case.slab();
        let rows = Rows::of(&case.extent, &slab, elem).unwrap();
        let mut seen = Vec::new();
        let walked = rows.for_each(&case.extent, &slab, elem, |at| {
            seen.extend((0..rows.n).map(|i| at + i * rows.step));
            Ok::<(), ()>(())
        });
        prop_assert_eq!(walked, Some(Ok(())));
        let expected = case.places(elem as u64);
        prop_assert_eq!(&seen, &expected);
        let span = Span::of(&case.extent, &slab, elem);
        let ends = expected.first().zip(expected.last());
        prop_assert_eq!(
            span.map(|span| (span.start, span.end)),
            ends.map(|(first, last)| (*first, last + elem as u64))
        );
        if let Some(span) = span {
            let bytes = (expected.len() * elem) as u64;
            prop_assert_eq!(span.has_gaps, span.end - span.start != bytes);
        }
    }

    #[test]
    fn places_are_those_that_a_map_leads_to(
        axes in proptest::collection::vec((0usize..4, -50isize..50), 0..5),
        first in -100isize..100,
    ) {
        let (count, imap): (Vec<usize>, Vec<isize>) = axes.iter().copied().unzip();
        let mut expected = Vec::new();
        let mut all = Indices::of(&count);
        while let Some(at) = all.next() {
            expected.push(first + place_of(at, &imap).unwrap());
        }
        let mut seen = Vec::new();
        Places::new(first, axes)
            .unwrap()
            .for_each(|at| {
                seen.push(at);
                Ok::<(), ()>(())
            })
            .unwrap();
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn boxes_cover_what_they_are_laid_over(
        axes in proptest::collection::vec((0u64..5, 1u64..5, 1u64..9), 1..4),
    ) {
        let first: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let step: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
        let end: Vec<u64> = axes.iter().map(|axis| axis.0 + axis.2).collect();
        let (mut at, mut n) = (first.clone(), 0u64);
        let mut before: Option<Vec<u64>> = None;
        loop {
            n += (0..at.len()).map(|d| step[d].min(end[d] - at[d])).product::<u64>();
            prop_assert!(before.is_none_or(|before| before < at));
            before = Some(at.clone());
            if !advance_by(&mut at, &first, &step, &end) {
                break;
            }
        }
        prop_assert_eq!(&at, &first);
        prop_assert_eq!(n, axes.iter().map(|axis| axis.2).product::<u64>());
    }

    #[test]
    fn tests_of_an_axis_are_what_they_say(
        (start, count, stride, len) in (0u64..9, 0u64..5, 1u64..4, 0u64..12),
    ) {
        let axis = Axis { start, count, stride };
        let indices: Vec<u64> = (0..count).map(|i| start + i * stride).collect();
        prop_assert_eq!(axis.last(), indices.last().copied());
        prop_assert_eq!(axis.end(), indices.last().map_or(start, |last| last + 1));
        prop_assert_eq!(axis.last_within(len).is_ok(), indices.iter().all(|&at| at < len));
        let begins = start <= len && !(start == len && count > 0);
        prop_assert_eq!(axis.start_and_first_within(len).is_ok(), begins);
        prop_assert_eq!(axis.count_within(len).is_ok(), start + count <= len);
    }
}

#[test]
fn numbers_that_cannot_be_counted_are_outside() {
    let most = Axis { start: u64::MAX, count: 2, stride: 1 };
    assert_eq!(most.last(), None);
    assert_eq!(most.end(), u64::MAX);
    assert_eq!(most.last_within(u64::MAX), Err(OutOfBounds::AtEnd));
    assert_eq!(most.count_within(u64::MAX - 1), Err(OutOfBounds::AtEnd));
    // No end is none.
    assert_eq!(most.count_within(u64::MAX), Ok(()));
    let far = Axis { start: 0, count: u64::MAX, stride: u64::MAX };
    assert_eq!(far.last(), None);
    let slab = |start, count, stride| Hyperslab { start, count, stride };
    assert!(Blocks::of(slab(&[usize::MAX], &[2], None), 1).is_none());
    assert!(Blocks::of(slab(&[0], &[4], Some(&[isize::MAX])), 1).is_none());
    assert!(Blocks::of(slab(&[usize::MAX, 0], &[2, 0], None), 1).is_some());
    assert!(Blocks::of(slab(&[usize::MAX], &[1], None), 1).is_some());
    assert_eq!(Rows::of(&[u64::MAX, 2], &slab(&[0, 0], &[1, 1], None), 8), None);
    let rows = Rows::of(&[2, u64::MAX], &slab(&[1, 0], &[1, 2], None), 4);
    assert!(rows.is_none());
    assert_eq!(Span::of(&[u64::MAX], &slab(&[1 << 62], &[2], None), 8), None);
}

#[test]
fn huge_blocks_are_counted() {
    let half = usize::MAX / 2;
    let shape = [2, half, 4];
    let mut blocks = Blocks::of_shape(&shape, usize::MAX);
    let mut firsts = Vec::new();
    while let Some(block) = blocks.next() {
        firsts.push((block.first.to_vec(), block.slab.count.to_vec()));
        if firsts.len() > 9 {
            break;
        }
    }
    // A quarter of the address space at a time: two rows have the same cuts.
    let quarter = usize::MAX / 4;
    assert_eq!(firsts[0], (vec![0, 0, 0], vec![1, quarter, 4]));
    assert_eq!(firsts[1], (vec![0, quarter, 0], vec![1, quarter, 4]));
    assert_eq!(firsts[2].0, [0, 2 * quarter, 0]);
    assert_eq!(firsts[3].0, [1, 0, 0]);
    assert_eq!(firsts.len(), 6);
}

#[test]
fn scalars_are_one_element() {
    let scalar = Hyperslab { start: &[], count: &[], stride: None };
    assert_eq!(scalar.n_elems(), Some(1));
    let mut blocks = Blocks::of(scalar, 7).unwrap();
    assert_eq!(blocks.next().map(|block| block.n_elems), Some(1));
    assert!(blocks.next().is_none());
    let mut all = Indices::<usize>::of(&[]);
    assert_eq!(all.next(), Some(&[][..]));
    assert_eq!(all.next(), None);
    assert_eq!(Rows::of(&[], &scalar, 8), Some(Rows { n: 1, step: 8, outer: 0 }));
    assert!(!advance::<usize>(&mut [], &[]));
    assert!(scalar.each_axis(Order::Up, |_, _| Err(OutOfBounds::AtEnd)).is_ok());
}

#[test]
fn as_many_dimensions_as_there_can_be() {
    let (rank, mut count) = (1024, vec![1usize; 1024]);
    (count[0], count[500], count[1023]) = (3, 2, 5);
    let start = vec![0; rank];
    let slab = Hyperslab { start: &start, count: &count, stride: None };
    let mut all = Indices::of(&count);
    let mut n = 0;
    while all.next().is_some() {
        n += 1;
    }
    assert_eq!(n, 30);
    let mut blocks = Blocks::of(slab, 7).unwrap();
    let (mut n, mut n_blocks) = (0, 0);
    while let Some(block) = blocks.next() {
        n += block.n_elems;
        n_blocks += 1;
    }
    assert_eq!((n, n_blocks), (30, 6));
    let extent: Vec<u64> = count.iter().map(|&n| n as u64).collect();
    assert_eq!(Rows::of(&extent, &slab, 1).map(|rows| rows.n), Some(30));
    let misfit =
        slab.each_axis(
            Order::Down,
            |axis, _| if axis < 700 { Err(OutOfBounds::AtEnd) } else { Ok(()) },
        );
    assert_eq!(misfit, Err(AxisOutOfBounds { axis: 699, why: OutOfBounds::AtEnd }));
}

#[test]
fn element_counts() {
    let count = |count: &[usize]| Hyperslab { start: count, count, stride: None }.n_elems();
    assert_eq!(count(&[2, 3]), Some(6));
    assert_eq!(count(&[usize::MAX, 2]), None);
    assert_eq!(count(&[usize::MAX, 2, 0]), Some(0));
}

#[test]
fn lists_may_be_longer_than_the_rank_but_not_shorter() {
    let slab = Hyperslab { start: &[1, 2, 3], count: &[4, 5], stride: Some(&[6, 7]) };
    let cut = Hyperslab { start: &[1, 2], count: &[4, 5], stride: Some(&[6, 7]) };
    assert_eq!(slab.ranked(2), Some(cut));
    assert_eq!(slab.ranked(3), None);
    let short = Hyperslab { stride: Some(&[6]), ..slab };
    assert_eq!(short.ranked(2), None);
    assert_eq!(short.axis(1), Axis { start: 2, count: 5, stride: 1 });
    assert_eq!(short.axis(9), Axis { start: 0, count: 0, stride: 1 });
}

#[test]
fn strides_that_the_reference_takes() {
    for stride in [isize::MIN, -1, 0, STRIDE_LIMIT, isize::MAX] {
        assert!(!is_stride(stride), "{stride}");
    }
    assert!(is_stride(1) && is_stride(STRIDE_LIMIT - 1));
    let slab = Hyperslab { start: &[0, 0], count: &[1, 1], stride: Some(&[1, STRIDE_LIMIT]) };
    assert!(!slab.strides_are(is_stride) && !slab.is_unit());
    assert!(Hyperslab { stride: None, ..slab }.strides_are(is_stride));
}
