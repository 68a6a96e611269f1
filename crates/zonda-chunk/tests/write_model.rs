//! Random puts into random arrays, beside plain models.

mod arrays;
mod written;

use arrays::Random;
use std::sync::atomic::Ordering;
use written::{File, Recipe, Turn};

use zonda_chunk::{ElementEncoding, Engine};
use zonda_convert::{ByteOrder, Converted, Encoder, RangeRule};
use zonda_model::{ExtType, Hyperslab, MemType};

struct Slab {
    start: Vec<usize>,
    count: Vec<usize>,
    stride: Vec<isize>,
    strided: bool,
}

impl Slab {
    /// Some elements below `most`.
    fn random(most: &[u64], chunk: &[u64], random: &mut Random) -> Slab {
        let strided = random.one_in(4);
        let (mut start, mut count, mut stride) = (Vec::new(), Vec::new(), Vec::new());
        let aligned = random.one_in(2);
        for (&n, &chunk) in most.iter().zip(chunk) {
            let step = if strided { 1 + random.below(5) } else { 1 };
            let (from, n) = match random.below(4) {
                _ if n == 0 => (0, 0),
                0 => (0, n.div_ceil(step)),
                1 => (random.below(n), 1),
                _ if aligned => {
                    let from = random.below(n.div_ceil(chunk)) * chunk;
                    (from, (chunk * (1 + random.below(2))).min(n - from).div_ceil(step))
                }
                _ => {
                    let from = random.below(n);
                    (from, 1 + random.below((n - from).div_ceil(step)))
                }
            };
            start.push(from as usize);
            count.push(n as usize);
            stride.push(step as isize);
        }
        Slab { start, count, stride, strided }
    }

    fn hyperslab(&self) -> Hyperslab<'_> {
        let stride = self.strided.then_some(&self.stride[..]);
        Hyperslab { start: &self.start, count: &self.count, stride }
    }
}

fn random_recipe(random: &mut Random) -> Recipe {
    let rank = random.below(5) as usize;
    let side = [1, 300, 30, 12, 7][rank];
    let most: Vec<u64> = (0..rank).map(|_| 1 + random.below(side)).collect();
    let chunk: Vec<u64> = most
        .iter()
        .map(|&n| match random.below(4) {
            0 => 1 + random.below(3),
            1 => n + random.below(4),
            _ => 1 + random.below(n),
        })
        .collect();
    let elem = [1, 2, 4, 8, 4, 8, 3, 12][random.below(8) as usize];
    let filters: &[u32] = [&[][..], &[9999], &[2, 1], &[9999, 2, 1], &[1], &[2, 32000], &[3]]
        [random.below(7) as usize];
    Recipe {
        chunk,
        elem,
        filters: filters.to_vec(),
        optional: random.one_in(2),
        fill: if random.one_in(2) { (0..elem).map(|i| 65 + i as u8).collect() } else { vec![] },
        fixed: most.iter().map(|_| random.one_in(2)).collect(),
        unfiltered_edges: random.one_in(6),
        most,
    }
}

fn encoder(elem: usize, random: &mut Random) -> Option<Encoder> {
    let order = if random.one_in(2) { ByteOrder::Big } else { ByteOrder::Little };
    let ext = match elem {
        1 => [ExtType::Byte, ExtType::UByte][random.below(2) as usize],
        2 => [ExtType::Short, ExtType::UShort][random.below(2) as usize],
        4 => [ExtType::Int, ExtType::Float, ExtType::UInt][random.below(3) as usize],
        8 => [ExtType::Double, ExtType::Int64][random.below(2) as usize],
        _ => return None,
    };
    let mems = [MemType::I8, MemType::I16, MemType::I32, MemType::F32, MemType::F64, MemType::U64];
    Encoder::new(ext, order, mems[random.below(6) as usize], RangeRule::Strict).ok()
}

/// Every other byte; counts elements that begin with a zero.
fn half(src: &[u8], dst: &mut [u8], elem: usize) -> Converted {
    let mut out_of_range = 0;
    for (src, dst) in src.chunks_exact(2 * elem).zip(dst.chunks_exact_mut(elem)) {
        out_of_range += u64::from(src[0] == 0);
        dst.iter_mut().enumerate().for_each(|(i, byte)| *byte = src[2 * i] ^ 0x3C);
    }
    Converted { out_of_range }
}

/// Bytes that compress here and there.
fn bytes(n: usize, random: &mut Random) -> Vec<u8> {
    let plain = random.one_in(3);
    (0..n).map(|_| if plain { random.below(3) as u8 } else { random.next() as u8 }).collect()
}

fn put(file: &mut File, index: usize, slab: &Slab, random: &mut Random) {
    let elem = file.arrays[index].recipe.elem;
    let n: usize = slab.count.iter().product();
    let hyperslab = slab.hyperslab();
    let chosen = if random.one_in(2) { encoder(elem, random) } else { None };
    if let Some(encoder) = chosen {
        let src = bytes(n * encoder.mem_size(), random);
        let expected = |src: &[u8], dst: &mut [u8]| encoder.encode(src, dst);
        file.put(index, &hyperslab, ElementEncoding::Convert(encoder), &expected, &src)
            .expect("puts");
    } else if random.one_in(2) {
        let src = bytes(n * elem * 2, random);
        let run = |src: &[u8], dst: &mut [u8]| half(src, dst, elem);
        let custom = ElementEncoding::Custom { mem_size: 2 * elem, file_size: elem, run: &run };
        file.put(index, &hyperslab, custom, &run, &src).expect("puts");
    } else {
        let src = bytes(n * elem, random);
        let copy = |src: &[u8], dst: &mut [u8]| {
            dst.copy_from_slice(src);
            Converted::default()
        };
        file.put(index, &hyperslab, ElementEncoding::Raw { elem_size: elem }, &copy, &src)
            .expect("puts");
    }
}

/// A file after random calls; with or without reads between them, and storing what is complete.
fn written(seed: u64, threads: usize, reads: bool, memory: u64) -> File {
    let engine = Engine::new(threads, memory);
    let mut random = Random(seed);
    let mut others = Random(seed + 1);
    let limit = [0, 100, 3000, 1 << 20, 8 << 20][random.below(5) as usize];
    let mut file = File::new(&engine, limit);
    for _ in 0..1 + random.below(3) {
        file.add(&random_recipe(&mut random), Turn::default());
    }
    for _ in 0..40 {
        let index = random.below(file.arrays.len() as u64) as usize;
        let recipe = file.arrays[index].recipe.clone();
        match random.below(12) {
            0 => file.flush().expect("flushes"),
            // Cell by cell, as loops do.
            1 | 2 if !recipe.most.contains(&0) => {
                let mut at: Vec<usize> =
                    recipe.most.iter().map(|&n| random.below(n) as usize).collect();
                for _ in 0..30 {
                    let (count, stride) = (vec![1; at.len()], vec![1; at.len()]);
                    let slab = Slab { start: at.clone(), count, stride, strided: false };
                    put(&mut file, index, &slab, &mut random);
                    if let (Some(last), Some(&n)) = (at.last_mut(), recipe.most.last()) {
                        *last = (*last + 1) % n as usize;
                    }
                }
            }
            _ => {
                let slab = Slab::random(&recipe.most, &recipe.chunk, &mut random);
                put(&mut file, index, &slab, &mut random);
            }
        }
        if reads {
            for _ in 0..others.below(3) {
                let index = others.below(file.arrays.len() as u64) as usize;
                let array = &file.arrays[index];
                let slab = Slab::random(&array.extent, &array.recipe.chunk, &mut others);
                file.check(index, &slab.hyperslab());
            }
            if others.one_in(4) {
                file.writer.store_complete(&mut file.space).expect("stores");
            }
        }
    }
    (0..file.arrays.len()).for_each(|index| file.check_all(index));
    file.flush().expect("flushes");
    assert!(!file.writer.is_dirty());
    file.check_stored();
    (0..file.arrays.len()).for_each(|index| file.check_all(index));
    file
}

#[test]
fn what_is_read_is_what_was_put() {
    for seed in 0..400 {
        written(seed, 1 + seed as usize % 3, true, AMPLE);
    }
}

/// Memory for all, and for nearly none.
const AMPLE: u64 = 64 << 20;
const LITTLE: u64 = 700;

/// Chunks that find no memory go away and come back, and the engine knows what is held. A file that takes
/// none of them changes nothing but where they are.
#[test]
fn what_finds_no_memory_is_not_lost() {
    let (mut n_spilled, mut n_stayed) = (0, 0);
    for seed in 3000..3200 {
        let ample = written(seed, 2, false, AMPLE).image();
        let file = written(seed, 2, true, LITTLE);
        assert!(file.image() == ample, "seed {seed}: the memory changes the file");
        let writes = file.spill.writes.load(Ordering::SeqCst);
        n_spilled += writes;
        n_stayed += usize::from(writes == 0);
    }
    assert!(n_spilled > 1000 && n_stayed > 10, "{n_spilled} {n_stayed}");
}

/// Neither threads nor reads change a byte, nor when complete chunks are stored.
#[test]
fn the_same_calls_give_the_same_bytes() {
    for seed in 1000..1080 {
        let one = written(seed, 1, false, AMPLE).image();
        for (threads, reads) in [(1, true), (2, false), (4, true)] {
            let other = written(seed, threads, reads, AMPLE).image();
            assert!(other == one, "seed {seed}, {threads} threads");
        }
    }
}

/// Large enough for the pool, with chunks that become ready in another order than they are placed.
#[test]
fn large_puts_are_placed_in_order() {
    for filters in [&[][..], &[2, 1], &[9999, 3]] {
        let images: Vec<_> = [1, 2, 4]
            .into_iter()
            .map(|threads| {
                let mut file = File::new(&Engine::new(threads, 64 << 20), 8 << 20);
                let recipe = Recipe {
                    chunk: vec![50, 70],
                    elem: 4,
                    filters: filters.to_vec(),
                    optional: false,
                    fill: vec![1, 2, 3, 4],
                    most: vec![1010, 1400],
                    fixed: vec![false, true],
                    unfiltered_edges: false,
                };
                let index = file.add(&recipe, Turn::default());
                let mut random = Random(7);
                let all: Vec<u8> = (0..1010 * 1400 * 4)
                    .map(|i| if i / 40_000 % 3 == 0 { random.next() as u8 } else { 0 })
                    .collect();
                let encoder =
                    Encoder::new(ExtType::Float, ByteOrder::Big, MemType::F32, RangeRule::Strict)
                        .expect("numbers");
                let run = |src: &[u8], dst: &mut [u8]| encoder.encode(src, dst);
                let slab = Hyperslab { start: &[0, 0], count: &[1010, 1400], stride: None };
                let convert = ElementEncoding::Convert(encoder);
                file.put(index, &slab, convert, &run, &all).expect("puts");
                assert_eq!(file.writer.pending_bytes() / (50 * 70 * 4), 20, "the last row waits");
                let mut last = None;
                for (key, at) in &*file.arrays[index].table.chunks.lock().unwrap() {
                    assert!(last < Some(at.at), "{key:?}");
                    last = Some(at.at);
                }
                file.check_all(index);
                // Halves of all chunks: they are loaded, wait, and go when they are too many.
                let halves =
                    Hyperslab { start: &[3, 0], count: &[500, 1400], stride: Some(&[2, 1]) };
                file.put(index, &halves, convert, &run, &all[..500 * 1400 * 4]).expect("puts");
                assert!(file.writer.pending_bytes() <= 8 << 20);
                file.check_all(index);
                file.flush().expect("flushes");
                file.check_stored();
                file.image()
            })
            .collect();
        assert!(images[0] == images[1] && images[0] == images[2], "{filters:?}");
    }
}
