use proptest::prelude::*;

use super::*;
use crate::built_file::written;
use crate::fractal_heap::FractalHeap;
use crate::{File, Reader};

const FOUR: Sizes = Sizes { offset: 4, length: 4 };
/// Ids of 7 bytes then say where huge objects are.
const TWO: Sizes = Sizes { offset: 2, length: 4 };

/// A heap of objects of these lengths in a file.
fn heap(lens: &[usize], params: &HeapParams, sizes: Sizes) -> (File, BuiltHeap, Vec<Vec<u8>>) {
    let object = |(i, &len): (usize, &usize)| (0..len).map(|j| (i * 31 + j) as u8).collect();
    let objects: Vec<Vec<u8>> = lens.iter().enumerate().map(object).collect();
    let slices: Vec<&[u8]> = objects.iter().map(Vec::as_slice).collect();
    let (file, built) = written(sizes, |fresh| build(&slices, params, sizes, fresh).unwrap());
    (file, built, objects)
}

/// What is told of the managed objects: free bytes, bytes of the table, those allocated, the next
/// block's offset, objects; then rows of the root.
fn statistics(file: &File, heap: FileAddr) -> ([u64; 5], u16) {
    let bytes = file.read("header", heap, 146).unwrap();
    let mut reader = Reader::new("header", &bytes, 0, Sizes::EIGHT);
    reader.skip(30).unwrap();
    let free = reader.u64().unwrap();
    assert_eq!(reader.addr().unwrap(), None);
    let [span, allocated, next, count] = [(); 4].map(|()| reader.u64().unwrap());
    reader.skip(62).unwrap();
    ([free, span, allocated, next, count], reader.u16().unwrap())
}

/// The HDF5 library 2.0 put as many soft links "link_0", "link_1" and so on to "/x" into a group.
#[test]
fn statistics_are_those_of_the_hdf5_library() {
    for (count, want, rows) in [
        (9, [293, 512, 512, 0, 9], 0),
        (15, [156, 512, 512, 0, 15], 0),
        (30, [1284, 2048, 1024, 1024, 30], 1),
        (1000, [237_582, 262_144, 24_576, 24_576, 1000], 8),
        (50_000, [65_655_250, 67_108_864, 1_310_720, 1_310_720, 50_000], 16),
    ] {
        let lens: Vec<usize> = (0..count).map(|i| format!("link_{i}").len() + 16).collect();
        let (file, heap, _) = heap(&lens, &HeapParams::LINKS, Sizes::EIGHT);
        assert_eq!(statistics(&file, heap.addr()), (want, rows), "{count}");
    }
    // Attributes "a0" to "a69" of 12 bytes.
    let (file, heap, _) = heap(&[54; 70], &HeapParams::ATTRIBUTES, Sizes::EIGHT);
    let (_, rows) = statistics(&file, heap.addr());
    assert_eq!(rows, 1);
}

/// All objects are found, and the extents are all of the file from byte 64 on.
fn check(lens: &[usize], params: &HeapParams, sizes: Sizes) {
    let (file, built, objects) = heap(lens, params, sizes);
    let heap = FractalHeap::open(&file, built.addr()).unwrap();
    for (i, object) in objects.iter().enumerate() {
        let id = built.id(i);
        assert_eq!(id.len(), heap.id_len());
        assert_eq!(&heap.get(&file, id).unwrap(), object, "object {i} of {lens:?}");
    }
    assert!(built.id(objects.len()).is_empty());
    let mut extents = heap.extents(&file).unwrap();
    extents.sort_unstable();
    let mut end = 64u64;
    for (addr, len) in extents {
        assert_eq!(addr.0, end.next_multiple_of(8));
        end = addr.0 + len;
    }
    assert_eq!(end, file.len());
}

#[test]
fn no_objects_and_the_kinds_of_them() {
    for params in [HeapParams::LINKS, HeapParams::ATTRIBUTES] {
        for sizes in [Sizes::EIGHT, FOUR, TWO] {
            for lens in [&[][..], &[1], &[6, 7, 8], &[4096], &[4097], &[490, 1, 4900, 5000, 3]] {
                check(lens, &params, sizes);
            }
        }
    }
}

#[test]
fn a_block_is_filled_to_its_last_byte() {
    for (lens, allocated) in
        [(&[491][..], 512), (&[400, 91], 512), (&[492], 1024), (&[400, 92], 1024)]
    {
        let (file, built, _) = heap(lens, &HeapParams::LINKS, Sizes::EIGHT);
        assert_eq!(statistics(&file, built.addr()).0[2], allocated, "{lens:?}");
    }
}

#[test]
fn an_object_passes_over_blocks_that_are_too_short() {
    // A block of 4096 bytes has not enough room, and there are 16 shorter ones before those.
    let (file, built, _) = heap(&[4090], &HeapParams::LINKS, Sizes::EIGHT);
    let ([_, span, allocated, next, _], rows) = statistics(&file, built.addr());
    assert_eq!((span, allocated, next, rows), (262_144, 8192, 40_960, 8));
    check(&[4090, 10, 4090, 4000, 4000, 4096], &HeapParams::LINKS, Sizes::EIGHT);
    check(&[4090, 10, 4090, 4000, 4000, 4096], &HeapParams::ATTRIBUTES, Sizes::EIGHT);
}

#[test]
fn nested_blocks_of_all_sizes() {
    // 5000 objects of 4000 bytes are in blocks behind the first 21 rows and 19 million bytes.
    check(&[4000; 5000], &HeapParams::LINKS, Sizes::EIGHT);
    // More than one level of nesting: 512 KiB, 131,072 bytes a nested block, then twice that.
    let small = HeapParams { max_direct: 1024, ..HeapParams::LINKS };
    check(&[200; 20_000], &small, Sizes::EIGHT);
    check(&[900; 1000], &small, Sizes::EIGHT);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let small = HeapParams { max_bits: 14, ..HeapParams::LINKS };
    check(&[100; 130], &small, Sizes::EIGHT);
    let objects = [[0u8; 100].as_slice(); 200];
    let mut space = crate::Space::new(0);
    let made = build(&objects, &small, Sizes::EIGHT, &mut NewBlocks::new(&mut space));
    assert!(matches!(made, Err(HdfError::TooLarge { .. })));
    let made = build(&[&[]], &small, Sizes::EIGHT, &mut NewBlocks::new(&mut space));
    assert!(matches!(made, Err(HdfError::BadValue { .. })));
    // Lengths of 2 bytes cannot say how long blocks may be.
    let sizes = Sizes { offset: 2, length: 2 };
    let made = build(&[], &HeapParams::LINKS, sizes, &mut NewBlocks::new(&mut space));
    assert!(matches!(made, Err(HdfError::TooLarge { .. })));
    // A narrow file's addresses end before the objects do.
    let made = build(
        &[&[0; 70_000], &[0; 5000]],
        &HeapParams::LINKS,
        TWO,
        &mut NewBlocks::new(&mut space),
    );
    assert!(matches!(made, Err(HdfError::TooLarge { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_objects(lens in prop::collection::vec(
        prop_oneof![20 => 1usize..300, 5 => 300usize..4200, 1 => 4000usize..9000], 0..400,
    )) {
        check(&lens, &HeapParams::LINKS, Sizes::EIGHT);
        check(&lens, &HeapParams::ATTRIBUTES, FOUR);
    }
}
