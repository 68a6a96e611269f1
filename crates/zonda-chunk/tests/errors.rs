//! What is reported, and that hostile shapes and places are only reported.

mod arrays;

use std::sync::Arc;

use arrays::{Flip, Made, Recipe, Table};
use zonda_chunk::filter::{ChunkShape, FilterBuffers, Pipeline};
use zonda_chunk::{
    ArrayShape, ChunkAt, ChunkError, ChunkedArray, ContiguousArray, DataSegment, Decode, Engine,
    FilterError, FilterSpec, SegmentBytes,
};
use zonda_model::{Hyperslab, NcError};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

const RAW4: Decode<'static> = Decode::Raw { elem_size: 4 };

/// An array of two chunks of 10 elements, the second one at `at`.
fn array(at: ChunkAt, filters: &[u32]) -> ChunkedArray {
    let specs: Vec<FilterSpec> = filters
        .iter()
        .map(|&id| FilterSpec { id, optional: false, name: "test".into(), params: vec![4] })
        .collect();
    let shape = ChunkShape { dims: vec![10], elem_size: 4 };
    let pipeline = Pipeline::new(&specs, shape, &|_| None);
    let mut table = Table::default();
    table.chunks.insert(vec![0], ChunkAt { at: 0, len: 40, mask: u32::MAX });
    table.chunks.insert(vec![1], at);
    ChunkedArray::new_in(
        &Engine::new(2, 1 << 20),
        Arc::new(Memory::from_slice(&[7; 100])),
        Arc::new(table),
        Arc::new(pipeline),
        ArrayShape { chunk_dims: vec![10], elem_size: 4 },
        Box::default(),
        false,
    )
}

fn read(array: &ChunkedArray, start: usize, count: usize) -> Result<Vec<u8>, ChunkError> {
    let mut out = vec![0; count * 4];
    let slab = Hyperslab { start: &[start], count: &[count], stride: None };
    array.read(&[20], &slab, RAW4, &mut out).map(|_| out)
}

#[test]
fn chunks_outside_the_file() {
    for filters in [&[][..], &[1], &[2]] {
        for at in [61, 1000, u64::MAX - 60, u64::MAX] {
            let array = array(ChunkAt { at, len: 40, mask: 0 }, filters);
            for (start, count) in [(0, 20), (10, 10), (12, 3), (12, 1)] {
                let error = read(&array, start, count).expect_err("outside");
                let ChunkError::OutOfFile { chunk, at: place, len } = &error else {
                    panic!("{error}")
                };
                assert_eq!((&chunk[..], *place, *len), (&[1][..], at, 40));
                assert_eq!(error.nc_error(), NcError::HdfErr);
            }
            assert_eq!(read(&array, 3, 4).expect("the first chunk is there"), [7; 16]);
        }
    }
    // A length that would be a lot of memory.
    let array = array(ChunkAt { at: 10, len: u64::MAX / 2, mask: 0 }, &[1]);
    assert!(matches!(read(&array, 10, 1), Err(ChunkError::OutOfFile { .. })));
}

#[test]
fn unfiltered_chunks_of_another_length() {
    for len in [0, 39, 41, u64::MAX] {
        let array = array(ChunkAt { at: 40, len, mask: 0 }, &[]);
        let error = read(&array, 15, 2).expect_err("wrong length");
        assert!(matches!(error, ChunkError::Length { expected: 40, .. }), "{error}");
        assert!(error.to_string().starts_with("chunk [1] at byte 40: "), "{error}");
    }
}

#[test]
fn a_filter_that_is_not_there_is_named() {
    let array = array(ChunkAt { at: 40, len: 40, mask: 0 }, &[12345]);
    let error = read(&array, 0, 20).expect_err("no such filter");
    assert_eq!(error.nc_error(), NcError::NoFilter);
    assert!(error.to_string().contains("chunk [1] at byte 40: filter 12345"), "{error}");
    assert_eq!(read(&array, 0, 10).expect("skipped its filter"), [7; 40]);
}

/// The first damaged chunk is named, whichever thread meets which first, and again each time.
#[test]
fn the_first_damaged_chunk_is_named() {
    // Large enough for several threads, and neighbours for different ones.
    let recipe = Recipe::new(&[50, 2000], &[10, 200], 4, &[9999]);
    let mut made = Made::new(recipe, Flip { damaged: Some([1, 2, 3, 4]), ..Flip::default() });
    for (threads, slow) in [(1, [0, 0]), (2, [0, 9]), (2, [9, 0]), (4, [0, 9]), (4, [9, 0])] {
        // Either of two neighbours may be found first.
        for (chunk, slow) in [([2, 3], slow[0]), ([2, 4], slow[1]), ([4, 0], 0)] {
            let at = made.table.chunks[&chunk[..]].at;
            made.storage.write_at(at, &[1, 2, 3, 4, slow]).expect("writes");
        }
        let array = made.array(&Engine::new(threads, 1 << 30));
        for _ in 0..15 {
            let mut out = vec![0; 50 * 2000 * 4];
            let slab = Hyperslab { start: &[0, 0], count: &[50, 2000], stride: None };
            let error = array.read(&[50, 2000], &slab, RAW4, &mut out).expect_err("damaged");
            let ChunkError::Filter { chunk, error: FilterError::Damaged { .. }, .. } = error else {
                panic!("{error}")
            };
            assert_eq!(chunk, [2, 3]);
        }
        let array = made.array(&Engine::new(threads, 1 << 30));
        // Partial requests of a damaged chunk fail each time, those beside it never.
        for _ in 0..3 {
            let mut out = [0; 4];
            let slab = Hyperslab { start: &[45, 5], count: &[1, 1], stride: None };
            assert!(array.read(&[50, 2000], &slab, RAW4, &mut out).is_err());
            let slab = Hyperslab { start: &[45, 205], count: &[1, 1], stride: None };
            assert!(array.read(&[50, 2000], &slab, RAW4, &mut out).is_ok());
        }
        assert_eq!(array.cached_bytes(), 8000);
    }
    // A walk into the damage: what is decoded ahead fails silently, the request itself does not.
    made.recipe.extent = vec![50, 2000];
    let array = made.array(&Engine::new(4, 1 << 30));
    for row in 0..20 {
        let mut out = vec![0; 8000];
        let slab = Hyperslab { start: &[row, 0], count: &[1, 2000], stride: None };
        assert!(array.read(&[50, 2000], &slab, RAW4, &mut out).is_ok());
    }
    let mut out = vec![0; 8000];
    let slab = Hyperslab { start: &[20, 0], count: &[1, 2000], stride: None };
    assert!(array.read(&[50, 2000], &slab, RAW4, &mut out).is_err());
}

#[test]
fn shapes_and_requests_that_make_no_sense() {
    let array = |chunk_dims: Vec<u64>, elem_size: usize, fill: &[u8]| {
        let shape = ChunkShape { dims: chunk_dims.clone(), elem_size };
        ChunkedArray::new_in(
            &Engine::new(1, 1 << 20),
            Arc::new(Memory::new()),
            Arc::new(Table::default()),
            Arc::new(Pipeline::new(&[], shape, &|_| None)),
            ArrayShape { chunk_dims, elem_size },
            fill.into(),
            false,
        )
    };
    let read = |array: &ChunkedArray, start: &[usize], count: &[usize], stride, len: usize| {
        let mut out = vec![1; len];
        let slab = Hyperslab { start, count, stride };
        array.read(&[9, 9], &slab, RAW4, &mut out).map(|_| out)
    };
    for (dims, elem) in
        [(vec![0, 3], 4), (vec![3, 0], 4), (vec![1 << 33, 1 << 33], 4), (vec![1 << 62, 1], 4)]
    {
        let error = read(&array(dims, elem, &[]), &[0, 0], &[1, 1], None, 4);
        assert!(matches!(error, Err(ChunkError::Shape { .. })), "{error:?}");
    }
    let zero = read(&array(vec![2, 2], 0, &[]), &[0, 0], &[1, 1], None, 4);
    assert!(matches!(zero, Err(ChunkError::Shape { .. })));
    let fill = read(&array(vec![2, 2], 4, &[1, 2]), &[0, 0], &[1, 1], None, 4);
    assert!(matches!(fill, Err(ChunkError::Shape { .. })));

    let good = array(vec![2, 2], 4, &[5; 4]);
    assert_eq!(read(&good, &[0, 0], &[3, 3], None, 36).expect("fill"), [5; 36]);
    assert_eq!(read(&good, &[0, 0], &[3, 0], None, 0).expect("nothing"), []);
    assert_eq!(read(&good, &[usize::MAX, 3], &[2, 2], None, 16).expect("fill"), [5; 16]);
    let far = Some(&[isize::MAX, isize::MAX][..]);
    assert_eq!(read(&good, &[8, 8], &[3, 3], far, 36).expect("fill"), [5; 36]);
    for (start, count, stride, len) in [
        (&[0][..], &[1][..], None, 4),
        (&[0, 0], &[1], None, 4),
        (&[0, 0], &[1, 1], Some(&[1][..]), 4),
        (&[0, 0], &[2, 2], Some(&[1, 0]), 16),
        (&[0, 0], &[2, 2], Some(&[-1, 1]), 16),
        (&[0, 0], &[2, 2], None, 15),
        (&[0, 0], &[2, 2], None, 20),
        (&[0, 0], &[0, 2], None, 4),
        (&[0, 0], &[usize::MAX, usize::MAX], None, 4),
    ] {
        let error = read(&good, start, count, stride, len).expect_err("makes no sense");
        assert!(matches!(error, ChunkError::Request { .. }), "{error}");
        assert_eq!(error.nc_error(), NcError::Inval);
    }
    // Elements of another size than the decoder takes.
    let mut out = [0; 8];
    let slab = Hyperslab { start: &[0, 0], count: &[1, 1], stride: None };
    let error = good.read(&[9, 9], &slab, Decode::Raw { elem_size: 8 }, &mut out);
    assert!(matches!(error, Err(ChunkError::Request { .. })));
}

/// Chunks larger than memory, but missing or unfiltered, cost what is read of them.
#[test]
fn huge_extents_cost_what_is_read() {
    let shape = ChunkShape { dims: vec![1 << 40, 1 << 15], elem_size: 4 };
    let mut table = Table::default();
    table.chunks.insert(vec![3, 2], ChunkAt { at: 16, len: 1 << 57, mask: 0 });
    table.chunks.insert(vec![4, 2], ChunkAt { at: 17, len: 1 << 57, mask: 0 });
    let storage = Memory::from_slice(&[9; 4000]);
    storage.set_len(16 + (1 << 57)).expect("sparse");
    let array = ChunkedArray::new_in(
        &Engine::new(2, 1 << 20),
        Arc::new(storage),
        Arc::new(table),
        Arc::new(Pipeline::new(&[], shape, &|_| None)),
        ArrayShape { chunk_dims: vec![1 << 40, 1 << 15], elem_size: 4 },
        Box::default(),
        false,
    );
    let mut out = [1; 80];
    let extent = [u64::MAX, u64::MAX];
    let slab = Hyperslab { start: &[3 << 40, (2 << 15) - 10], count: &[1, 20], stride: None };
    let read = array.read(&extent, &slab, RAW4, &mut out);
    assert!(read.is_ok());
    assert_eq!(out[..40], [0; 40]);
    assert_eq!(out[40..], [9; 40]);
    let slab = Hyperslab { start: &[(3 << 40) + 99, 2 << 15], count: &[1, 20], stride: None };
    assert!(array.read(&extent, &slab, RAW4, &mut out).is_ok());
    assert_eq!(out, [0; 80]);
    let slab = Hyperslab { start: &[(4 << 40) + 99, 2 << 15], count: &[1, 20], stride: None };
    let read = array.read(&extent, &slab, RAW4, &mut out);
    assert!(matches!(read, Err(ChunkError::OutOfFile { .. })));
    let stride = Some(&[1 << 50, 1][..]);
    let slab = Hyperslab { start: &[5, 0], count: &[10, 2], stride };
    assert!(array.read(&extent, &slab, RAW4, &mut out).is_ok());
    assert_eq!(out, [0; 80]);
}

#[test]
fn linear_arrays_that_end_early() {
    let segment = |at: u64, zeros_behind: bool| {
        let storage = Arc::new(Memory::from_slice(&[7; 100]));
        DataSegment { len: 400, bytes: SegmentBytes::Stored { storage, at, zeros_behind } }
    };
    let read = |segment: DataSegment, count: usize| {
        let mut out = vec![1; count * 4];
        let slab = Hyperslab { start: &[0], count: &[count], stride: None };
        let array = ContiguousArray::new(vec![segment], 4, Box::default());
        array.read(&[100], &slab, RAW4, &mut out).map(|_| out)
    };
    assert_eq!(read(segment(60, false), 10).expect("there"), [7; 40]);
    for (at, count) in [(60, 11), (60, 100), (200, 1), (u64::MAX, 1), (u64::MAX - 2, 90)] {
        let error = read(segment(at, false), count).expect_err("not there");
        assert!(matches!(error, ChunkError::Truncated { .. } | ChunkError::Storage(_)), "{error}");
    }
    assert_eq!(read(segment(60, true), 12).expect("zeros"), [[7; 40].as_slice(), &[0; 8]].concat());
    assert_eq!(read(segment(500, true), 1).expect("zeros"), [0; 4]);
}

/// Most memory that this process had so far, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    kib * 1024
}

#[test]
fn chunk_longer_than_its_bytes_can_give_takes_no_memory() {
    let deflate = FilterSpec { id: 1, optional: false, name: String::new(), params: vec![1] };
    let shuffle = FilterSpec { id: 2, optional: false, name: String::new(), params: vec![4] };
    for specs in [vec![deflate.clone()], vec![shuffle, deflate]] {
        let small = ChunkShape { dims: vec![10], elem_size: 4 };
        let (mut stored, mut scratch) = (Vec::new(), FilterBuffers::default());
        let pipeline = Pipeline::new(&specs, small, &|_| None);
        pipeline.encode(&[7; 40], &mut scratch, &mut stored).expect("encoded");

        let n = 1 << 28;
        let pipeline = Pipeline::new(&specs, ChunkShape { dims: vec![n], elem_size: 4 }, &|_| None);
        let mut table = Table::default();
        table.chunks.insert(vec![0], ChunkAt { at: 0, len: stored.len() as u64, mask: 0 });
        let array = ChunkedArray::new_in(
            &Engine::new(2, 4 << 30),
            Arc::new(Memory::from_slice(&stored)),
            Arc::new(table),
            Arc::new(pipeline),
            ArrayShape { chunk_dims: vec![n], elem_size: 4 },
            Box::default(),
            false,
        );
        let before = peak();
        for (start, count, stride) in [(0, 1, 1), (5, 100, 1), (0, 1000, 7)] {
            let (start, count, stride) = ([start], [count], [stride]);
            let slab = Hyperslab { start: &start, count: &count, stride: Some(&stride) };
            let mut out = vec![0; count[0] * 4];
            let error = array.read(&[n], &slab, RAW4, &mut out).expect_err("too short");
            assert!(matches!(error, ChunkError::Filter { .. }), "{error}");
        }
        // Other tests run beside this one; a chunk has 1 GiB.
        assert!(peak() - before < 512 << 20);
    }
}

#[test]
fn element_longer_than_the_file_takes_no_memory() {
    let len = 1 << 46;
    let storage = Arc::new(Memory::from_slice(&[7; 100]));
    let bytes = SegmentBytes::Stored { storage, at: 60, zeros_behind: false };
    let array =
        ContiguousArray::new(vec![DataSegment { len: len as u64, bytes }], len, Box::default());
    let decode =
        Decode::Custom { file_size: len, mem_size: 8, run: &|_, _| unreachable!("not there") };
    let slab = Hyperslab { start: &[0], count: &[1], stride: None };
    let error = array.read(&[1], &slab, decode, &mut [0; 8]).expect_err("not there");
    assert!(matches!(error, ChunkError::Truncated { at: 60, .. }), "{error}");
}

#[test]
fn element_that_nobody_wrote_takes_no_memory() {
    let len = 1 << 46;
    let decode =
        Decode::Custom { file_size: len, mem_size: 8, run: &|_, _| unreachable!("not there") };
    let slab = Hyperslab { start: &[0], count: &[1], stride: None };
    let storage = Arc::new(Memory::from_slice(&[7; 100]));
    let short = SegmentBytes::Stored { storage, at: 60, zeros_behind: true };
    for segments in [
        vec![],
        vec![DataSegment { len: len as u64, bytes: SegmentBytes::Unwritten }],
        vec![DataSegment { len: len as u64, bytes: short }],
    ] {
        let array = ContiguousArray::new(segments, len, Box::default());
        let error = array.read(&[1], &slab, decode, &mut [0; 8]).expect_err("not there");
        assert!(matches!(error, ChunkError::NoMemory { .. }), "{error}");
    }
    // What real types ask for is given.
    let len = 1 << 20;
    let decode = Decode::Custom {
        file_size: len,
        mem_size: 8,
        run: &|src, dst| {
            assert!(src.len() == len && src.iter().all(|&byte| byte == 0));
            dst.fill(9);
            zonda_convert::Converted::default()
        },
    };
    let mut out = [0; 8];
    let _all_fit = ContiguousArray::new(vec![], len, Box::default())
        .read(&[1], &slab, decode, &mut out)
        .unwrap();
    assert_eq!(out, [9; 8]);
}
