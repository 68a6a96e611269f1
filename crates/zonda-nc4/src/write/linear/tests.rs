//! Hyperslabs into one run, beside a plain model.

use zonda_convert::{ByteOrder, Encoder, RangeRule};
use zonda_model::{ExtType, MemType};
use zonda_storage::backend::Memory;

use super::*;

/// Every element of a hyperslab by its number in the array, in memory order.
fn places(extent: &[u64], slab: &Hyperslab<'_>) -> Vec<usize> {
    let mut out = vec![0usize];
    for (axis, &len) in extent.iter().enumerate() {
        let along = slab.axis(axis);
        let each = |base: &usize| {
            let base = *base * len as usize;
            let place = move |i| base + (along.start + i * along.stride) as usize;
            (0..along.count).map(place).collect::<Vec<_>>()
        };
        out = out.iter().flat_map(each).collect();
    }
    out
}

#[test]
fn hyperslabs_land_where_they_should() {
    let extent = [5, 4, 6];
    let n_all = 120;
    let mut random = 7u64;
    let mut below = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % n
    };
    for round in 0..400 {
        let (mut start, mut count, mut stride) = ([0; 3], [0; 3], [1; 3]);
        for axis in 0..3 {
            let len = extent[axis];
            start[axis] = below(len) as usize;
            stride[axis] = if round % 2 == 0 { 1 } else { 1 + below(3) as isize };
            let most = (len - start[axis] as u64).div_ceil(stride[axis] as u64);
            count[axis] = if below(3) == 0 { most } else { 1 + below(most) } as usize;
        }
        let slab = Hyperslab { start: &start, count: &count, stride: Some(&stride) };
        let places = places(&extent, &slab);
        for (mem, order) in [
            (MemType::I32, ByteOrder::Little),
            (MemType::I32, ByteOrder::Big),
            (MemType::F64, ByteOrder::Big),
        ] {
            let encoder = Encoder::new(ExtType::Int, order, mem, RangeRule::Strict).unwrap();
            let src: Vec<u8> = (0..places.len() as i32)
                .flat_map(|i| match mem {
                    MemType::F64 => f64::from(1000 + i).to_ne_bytes().to_vec(),
                    _ => (1000 + i).to_ne_bytes().to_vec(),
                })
                .collect();
            let mut expected = vec![7i32; n_all];
            places.iter().zip(1000..).for_each(|(&place, value)| expected[place] = value);
            let bytes = |value: &i32| match order {
                ByteOrder::Little => value.to_le_bytes(),
                ByteOrder::Big => value.to_be_bytes(),
            };
            let expected: Vec<u8> = expected.iter().flat_map(bytes).collect();
            let before: Vec<u8> = (0..n_all).flat_map(|_| bytes(&7)).collect();
            let encode = ElementEncoding::Convert(encoder);

            let storage = Memory::from_slice(&[&[1; 16][..], &before].concat());
            let found = put(&storage, 16, &extent, &slab, 4, &encode, &src).unwrap();
            assert_eq!(found.out_of_range, 0);
            let stored = storage.to_vec().unwrap();
            assert_eq!(stored[16..], expected, "{slab:?} {order:?}");
            assert_eq!(stored[..16], [1; 16]);

            let mut here = before;
            let found = put_here(&mut here, &extent, &slab, 4, &encode, &src).unwrap();
            assert_eq!(found.out_of_range, 0);
            assert_eq!(here, expected, "{slab:?} {order:?}");
        }
    }
}

#[test]
fn a_row_is_as_long_as_it_can_be() {
    let run = |extent: &[u64], start: &[usize], count: &[usize]| {
        let run = Rows::of(extent, &Hyperslab { start, count, stride: None }, 8).unwrap();
        (run.n, run.step, run.outer)
    };
    assert_eq!(run(&[3, 4, 5], &[0; 3], &[3, 4, 5]), (60, 8, 0));
    assert_eq!(run(&[3, 4, 5], &[1, 0, 0], &[2, 4, 5]), (40, 8, 0));
    assert_eq!(run(&[3, 4, 5], &[0; 3], &[3, 4, 4]), (4, 8, 2));
    assert_eq!(run(&[3, 4, 5], &[0; 3], &[3, 4, 1]), (4, 40, 1));
    assert_eq!(run(&[3, 4, 5], &[0; 3], &[3, 1, 1]), (3, 160, 0));
    assert_eq!(run(&[], &[], &[]), (1, 8, 0));
}

#[test]
fn what_does_not_fit_leaves_what_was_there() {
    let encoder =
        Encoder::new(ExtType::UInt, ByteOrder::NATIVE, MemType::I8, RangeRule::Strict).unwrap();
    let storage = Memory::from_slice(&7u32.to_ne_bytes().repeat(3));
    let slab = Hyperslab { start: &[0], count: &[3], stride: None };
    let src = [1, 0xff, 2];
    let found = put(&storage, 0, &[3], &slab, 4, &ElementEncoding::Convert(encoder), &src).unwrap();
    assert_eq!(found.out_of_range, 1);
    let expected: Vec<u8> = [1u32, 7, 2].iter().flat_map(|value| value.to_ne_bytes()).collect();
    assert_eq!(storage.to_vec().unwrap(), expected);
}
