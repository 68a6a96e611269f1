use super::*;
use crate::{Reader, Result, Sizes};

fn decode(bytes: &[u8]) -> Result<Selection> {
    Selection::decode(&mut Reader::new("selection", bytes, 0, Sizes::EIGHT))
}

fn runs(selection: &Selection, dims: &[u64]) -> Vec<(Vec<u64>, u64)> {
    let mut out = Vec::new();
    let visited = selection.for_each_run(dims, &mut |at, n| {
        out.push((at.to_vec(), n));
        true
    });
    visited.unwrap();
    out
}

fn u32s(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn every_type_and_version() {
    assert_eq!(decode(&u32s(&[0, 1, 0, 0])).unwrap(), Selection::None);
    assert_eq!(decode(&u32s(&[3, 1, 0, 0])).unwrap(), Selection::All);
    let points = Selection::Points { rank: 2, coords: [4, 5, 1, 2].into() };
    assert_eq!(decode(&u32s(&[1, 1, 0, 24, 2, 2, 4, 5, 1, 2])).unwrap(), points);
    let mut bytes = u32s(&[1, 2]);
    bytes.push(2);
    bytes.extend(u32s(&[2]));
    for number in [2u16, 4, 5, 1, 2] {
        bytes.extend(number.to_le_bytes());
    }
    assert_eq!(decode(&bytes).unwrap(), points);
    let corners = [0, 0, 1, 1, 3, 0, 4, 1];
    let blocks =
        Selection::Blocks(HyperslabBlocks { rank: 2, corners: corners.map(u64::from).into() });
    let mut bytes = u32s(&[2, 1, 0, 36, 2, 2]);
    bytes.extend(u32s(&corners));
    assert_eq!(decode(&bytes).unwrap(), blocks);
    let mut bytes = u32s(&[2, 3]);
    bytes.extend([0, 4]);
    bytes.extend(u32s(&[2, 2]));
    bytes.extend(u32s(&corners));
    assert_eq!(decode(&bytes).unwrap(), blocks);
    let dim = HyperslabDim { start: 1, stride: 4, count: UNLIMITED, block: 2 };
    let slab = Selection::Hyperslab([dim].into_iter().collect());
    let mut bytes = u32s(&[2, 2]);
    bytes.push(1);
    bytes.extend(u32s(&[36, 1]));
    [1, 4, UNLIMITED, 2].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    assert_eq!(decode(&bytes).unwrap(), slab);
    let mut bytes = u32s(&[2, 3]);
    bytes.extend([1, 2]);
    bytes.extend(u32s(&[1]));
    [1u16, 4, u16::MAX, 2].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    assert_eq!(decode(&bytes).unwrap(), slab);
    assert_eq!(slab.n_elems(&[12]), 6);
    assert_eq!(slab.unlimited_dim(), Some(0));
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end]).is_err());
    }
    for bad in [&[4, 1, 0, 0][..], &[0, 2, 0, 0], &[1, 1, 0, 24, 33, 0], &[1, 1, 0, 24, 2, 9]] {
        assert!(decode(&u32s(bad)).is_err());
    }
    // A block that ends before it begins; blocks over each other.
    assert!(decode(&u32s(&[2, 1, 0, 0, 1, 1, 5, 4])).is_err());
    let mut bytes = u32s(&[2, 3]);
    bytes.extend([1, 4]);
    bytes.extend(u32s(&[1, 0, 2, 2, 3]));
    assert!(decode(&bytes).is_err());
}

#[test]
fn runs_of_a_hyperslab() {
    let slab = |dims: &[(u64, u64, u64, u64)]| {
        let dim = |&(start, stride, count, block)| HyperslabDim { start, stride, count, block };
        Selection::Hyperslab(dims.iter().map(dim).collect())
    };
    let two = slab(&[(1, 3, 2, 2), (0, 4, 2, 2)]);
    let want: Vec<_> =
        [1, 2, 4, 5].iter().flat_map(|&row| [(vec![row, 0], 2), (vec![row, 4], 2)]).collect();
    assert_eq!(runs(&two, &[9, 9]), want);
    assert_eq!(runs(&two, &[3, 5]).last(), Some(&(vec![2, 4], 1)));
    assert_eq!(runs(&slab(&[(2, 3, 1, 4)]), &[9]), [(vec![2], 4)]);
    assert_eq!(runs(&slab(&[(0, 2, 3, 2)]), &[9]), [(vec![0], 6)]);
    assert_eq!(runs(&slab(&[(0, 2, 0, 2)]), &[9]), []);
    assert!(two.for_each_run(&[9], &mut |_, _| true).is_err());
    assert_eq!(runs(&Selection::All, &[2, 3]), [(vec![0, 0], 3), (vec![1, 0], 3)]);
}

#[test]
fn blocks_are_in_row_major_order_whatever_theirs() {
    // Two side by side with one below, given the wrong way round.
    let corners = [[2, 0, 2, 3], [0, 3, 1, 4], [0, 0, 1, 1]];
    let blocks = HyperslabBlocks { rank: 2, corners: corners.concat().into() };
    let selection = Selection::Blocks(blocks.clone());
    let got = runs(&selection, &[3, 4]);
    let row = |row, at, n| (vec![row, at], n);
    assert_eq!(got, [row(0, 0, 2), row(0, 3, 1), row(1, 0, 2), row(1, 3, 1), row(2, 0, 4)]);
    assert_eq!(selection.n_elems(&[]), 12);
    let mut ordinal = 0;
    for (at, n) in runs(&selection, &[9, 9]) {
        for i in 0..n {
            let element = [at[0], at[1] + i];
            assert_eq!(blocks.before(&element), ordinal);
            assert_eq!(blocks.at(ordinal), Some((element.as_slice().into(), n - i)));
            ordinal += 1;
        }
    }
    assert_eq!(blocks.at(ordinal), None);
}
