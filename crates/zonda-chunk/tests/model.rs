//! Random requests of random arrays, beside a plain model.

mod arrays;

use arrays::{Flip, Made, Random, Recipe};
use zonda_chunk::{ContiguousArray, DataSegment, Decode, Engine, SegmentBytes};
use zonda_convert::{ByteOrder, Converted, Decoder, RangeRule};
use zonda_model::{ExtType, Hyperslab, MemType};

/// A way to decode elements of some size, and what it does to packed elements.
fn decoder(elem: usize, random: &mut Random) -> Option<Decoder> {
    let order = if random.one_in(2) { ByteOrder::Big } else { ByteOrder::Little };
    let ext = match elem {
        1 => [ExtType::Byte, ExtType::UByte][random.below(2) as usize],
        2 => [ExtType::Short, ExtType::UShort][random.below(2) as usize],
        4 => [ExtType::Int, ExtType::Float][random.below(2) as usize],
        8 => [ExtType::Double, ExtType::Int64][random.below(2) as usize],
        _ => return None,
    };
    let mems = [MemType::I8, MemType::I16, MemType::I32, MemType::F32, MemType::F64, MemType::U64];
    let mem = mems[random.below(6) as usize];
    Decoder::new(ext, order, mem, RangeRule::Strict).ok()
}

/// Every byte twice, second one turned over; counts elements that begin with a zero.
fn twice(src: &[u8], dst: &mut [u8], elem: usize) -> Converted {
    let mut out_of_range = 0;
    for (src, dst) in src.chunks_exact(elem).zip(dst.chunks_exact_mut(2 * elem)) {
        out_of_range += u64::from(src[0] == 0);
        for (i, byte) in src.iter().enumerate() {
            (dst[2 * i], dst[2 * i + 1]) = (*byte, !byte);
        }
    }
    Converted { out_of_range }
}

struct Slab {
    start: Vec<usize>,
    count: Vec<usize>,
    stride: Vec<isize>,
}

fn random_slab(extent: &[u64], random: &mut Random) -> Slab {
    let (mut start, mut count, mut stride) = (Vec::new(), Vec::new(), Vec::new());
    let strided = random.one_in(3);
    for &n in extent {
        // Now and then all of a dimension, now and then beyond its extent.
        let most = n + random.below(4) * u64::from(random.one_in(4));
        let step = if strided { 1 + random.below(7) } else { 1 };
        let from = if random.one_in(3) { 0 } else { random.below(most) };
        let fitting = if from < most { (most - from).div_ceil(step) } else { 0 };
        let n = if random.one_in(3) { fitting } else { random.below(fitting + 1) };
        start.push(from as usize);
        count.push(n as usize);
        stride.push(step as isize);
    }
    Slab { start, count, stride }
}

/// Reads and compares; what a decoder leaves alone must be as it was.
fn compare(
    read: &dyn Fn(&Hyperslab<'_>, Decode<'_>, &mut [u8]) -> Converted,
    expected: &[u8],
    slab: &Slab,
    elem: usize,
    random: &mut Random,
) {
    let plain = slab.stride.iter().all(|&s| s == 1) && random.one_in(2);
    let hyperslab = Hyperslab {
        start: &slab.start,
        count: &slab.count,
        stride: (!plain || slab.stride.iter().any(|&s| s != 1)).then_some(&slab.stride[..]),
    };
    let n = expected.len() / elem;
    let chosen = if random.one_in(2) { decoder(elem, random) } else { None };
    if let Some(decoder) = chosen {
        let mut wanted = vec![0x5A; n * decoder.mem_size()];
        let mut got = wanted.clone();
        let wanted_range = decoder.decode(expected, &mut wanted);
        let got_range = read(&hyperslab, Decode::Convert(decoder), &mut got);
        assert_eq!(got, wanted);
        assert_eq!(got_range, wanted_range);
    } else if random.one_in(2) {
        let run = |src: &[u8], dst: &mut [u8]| twice(src, dst, elem);
        let mut wanted = vec![0x5A; n * elem * 2];
        let mut got = wanted.clone();
        let wanted_range = run(expected, &mut wanted);
        let custom = Decode::Custom { file_size: elem, mem_size: 2 * elem, run: &run };
        assert_eq!(read(&hyperslab, custom, &mut got), wanted_range);
        assert_eq!(got, wanted);
    } else {
        let mut got = vec![0x5A; n * elem];
        let range = read(&hyperslab, Decode::Raw { elem_size: elem }, &mut got);
        assert_eq!(range, Converted::default());
        assert_eq!(got, expected);
    }
}

fn random_recipe(random: &mut Random, rank: usize) -> Recipe {
    let side = [40, 400, 40, 16, 8][rank];
    let extent: Vec<u64> = (0..rank).map(|_| random.below(side)).collect();
    let chunk: Vec<u64> = extent
        .iter()
        .map(|&n| match random.below(4) {
            0 => 1 + random.below(3),
            1 => n.max(1) + random.below(5),
            _ => 1 + random.below(n.max(1)),
        })
        .collect();
    let elem = [1, 2, 4, 8, 3, 12][random.below(6) as usize];
    let filters: &[u32] =
        [&[][..], &[9999], &[2, 1], &[9999, 2, 1], &[1], &[2, 9999]][random.below(6) as usize];
    Recipe {
        missing: random.below(3) * 2,
        skipping: random.below(3) * 2,
        partial_edge_unfiltered: random.one_in(3),
        fill: if random.one_in(2) { (0..elem).map(|i| 65 + i as u8).collect() } else { vec![] },
        seed: random.next(),
        ..Recipe::new(&extent, &chunk, elem, filters)
    }
}

#[test]
fn random_requests_of_chunked_arrays() {
    let arrays: u64 = if cfg!(debug_assertions) { 120 } else { 1500 };
    let engines: Vec<_> = [(1, 0), (1, 1 << 30), (2, 3000), (4, 1 << 30), (4, 300)]
        .into_iter()
        .map(|(threads, budget)| Engine::new(threads, budget))
        .collect();
    let mut random = Random(7);
    for round in 0..arrays {
        let recipe = random_recipe(&mut random, (round % 5) as usize);
        let made = Made::new(recipe, Flip::default());
        let (extent, elem) = (made.recipe.extent.clone(), made.recipe.elem);
        for engine in &engines {
            let array = made.array(engine);
            if random.one_in(4) {
                array.set_cache_floor(random.below(10_000));
            }
            for _ in 0..12 {
                let slab = random_slab(&extent, &mut random);
                let expected = made.expected(&slab.start, &slab.count, &slab.stride);
                let read = |slab: &Hyperslab<'_>, decode: Decode<'_>, out: &mut [u8]| {
                    array.read(&extent, slab, decode, out).expect("reads")
                };
                compare(&read, &expected, &slab, elem, &mut random);
                if random.one_in(20) {
                    array.clear_cache();
                }
            }
        }
    }
    for engine in engines {
        assert_eq!(engine.bytes_in_use(), 0, "all was given back");
    }
}

/// Walks, single elements and repeated requests: what the fast paths and the prefetch are for.
#[test]
fn walks_give_what_single_requests_give() {
    let mut random = Random(11);
    for round in 0..60 {
        let engine = Engine::new([1, 2, 4][round % 3], [1 << 30, 5000][round % 2]);
        let recipe = random_recipe(&mut random, 1 + round % 3);
        let made = Made::new(recipe, Flip::default());
        let extent = made.recipe.extent.clone();
        if extent.contains(&0) {
            continue;
        }
        let array = made.array(&engine);
        let elem = made.recipe.elem;
        for axis in 0..extent.len() {
            for backward in [false, true] {
                let mut slab = random_slab(&extent, &mut random);
                slab.stride.fill(1);
                slab.start[axis] = 0;
                slab.count[axis] = 1;
                for i in 0..extent[axis] as usize {
                    slab.start[axis] = if backward { extent[axis] as usize - 1 - i } else { i };
                    let expected = made.expected(&slab.start, &slab.count, &slab.stride);
                    let read = |slab: &Hyperslab<'_>, decode: Decode<'_>, out: &mut [u8]| {
                        array.read(&extent, slab, decode, out).expect("reads")
                    };
                    compare(&read, &expected, &slab, elem, &mut random);
                }
            }
        }
        for _ in 0..200 {
            let at: Vec<usize> = extent.iter().map(|&n| random.below(n) as usize).collect();
            let slab =
                Slab { start: at, count: vec![1; extent.len()], stride: vec![1; extent.len()] };
            let expected = made.expected(&slab.start, &slab.count, &slab.stride);
            let read = |slab: &Hyperslab<'_>, decode: Decode<'_>, out: &mut [u8]| {
                array.read(&extent, slab, decode, out).expect("reads")
            };
            compare(&read, &expected, &slab, elem, &mut random);
        }
    }
}

#[test]
fn random_requests_of_linear_arrays() {
    let mut random = Random(5);
    for round in 0..400 {
        let rank = round % 5;
        let mut recipe = random_recipe(&mut random, rank);
        // One chunk is the array in its order, and is used for its model only.
        recipe.chunk = recipe.extent.iter().map(|&n| n.max(1)).collect();
        recipe.missing = 0;
        let mut made = Made::new(recipe, Flip::default());
        let (extent, elem, fill) =
            (made.recipe.extent.clone(), made.recipe.elem, made.recipe.fill.clone());
        let mut segments = Vec::new();
        let mut at = 0;
        while at < made.model.len() && !random.one_in(4) {
            let n = (1 + random.below(made.model.len() as u64) as usize).min(made.model.len() - at);
            // A segment may be longer than the array needs.
            let more = if at + n == made.model.len() { random.below(10) } else { 0 };
            let here = &mut made.model[at..at + n];
            let bytes = match random.below(3) {
                0 => SegmentBytes::InMemory([&*here, &[1; 10]].concat().into()),
                1 => {
                    // The storage may end early, and then reads as zeros.
                    let cut = if random.one_in(2) { random.below(n as u64) as usize } else { n };
                    here[cut..].fill(0);
                    let before = [0xCC; 5];
                    let stored = [&before[..], &here[..cut]].concat();
                    let storage = zonda_storage::backend::Memory::from_slice(&stored);
                    SegmentBytes::Stored {
                        storage: std::sync::Arc::new(storage),
                        at: 5,
                        zeros_behind: true,
                    }
                }
                _ => {
                    fill_bytes(here, at, &fill);
                    SegmentBytes::Unwritten
                }
            };
            segments.push(DataSegment { len: n as u64 + more, bytes });
            at += n;
        }
        let rest = at.min(made.model.len());
        fill_bytes(&mut made.model[rest..], rest, &fill);
        let array = ContiguousArray::new(segments, elem, fill.into());
        for _ in 0..20 {
            let slab = random_slab(&extent, &mut random);
            let expected = made.expected(&slab.start, &slab.count, &slab.stride);
            let read = |slab: &Hyperslab<'_>, decode: Decode<'_>, out: &mut [u8]| {
                array.read(&extent, slab, decode, out).expect("reads")
            };
            compare(&read, &expected, &slab, elem, &mut random);
        }
    }
}

fn fill_bytes(out: &mut [u8], at: usize, fill: &[u8]) {
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = if fill.is_empty() { 0 } else { fill[(at + i) % fill.len()] };
    }
}

/// Chunks and strides large enough for blocks to be cut, rows to be split and threads to be used.
#[test]
fn large_chunks() {
    let mut random = Random(3);
    for filters in [&[][..], &[2, 1], &[9999]] {
        for elem in [1, 4, 8] {
            let recipe = Recipe {
                fill: vec![3; elem],
                missing: 5,
                ..Recipe::new(&[300, 1000], &[100, 400], elem, filters)
            };
            let made = Made::new(recipe, Flip::default());
            for threads in [1, 3] {
                let array = made.array(&Engine::new(threads, 1 << 20));
                for (start, count, stride) in [
                    ([0, 0], [300, 1000], [1, 1]),
                    ([0, 0], [310, 1010], [1, 1]),
                    ([3, 5], [250, 900], [1, 1]),
                    ([0, 1], [300, 3], [1, 400]),
                    ([7, 0], [3, 1000], [99, 1]),
                    ([0, 0], [150, 500], [2, 2]),
                    ([0, 999], [300, 1], [1, 1]),
                ] {
                    let slab = Slab {
                        start: start.to_vec(),
                        count: count.to_vec(),
                        stride: stride.to_vec(),
                    };
                    let expected = made.expected(&slab.start, &slab.count, &slab.stride);
                    let read = |slab: &Hyperslab<'_>, decode: Decode<'_>, out: &mut [u8]| {
                        array.read(&[300, 1000], slab, decode, out).expect("reads")
                    };
                    for _ in 0..3 {
                        compare(&read, &expected, &slab, elem, &mut random);
                    }
                }
            }
        }
    }
}
