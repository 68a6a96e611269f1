//! Single elements by the short ways, beside the ways of all puts and reads.

mod arrays;
mod written;

use std::sync::Arc;

use arrays::{Flip, Made, Random};
use written::{File, Recipe, Turn};
use zonda_chunk::{ArrayShape, ChunkedArray, Decode, ElementEncoding, Engine};
use zonda_convert::{ByteOrder, Converted, Decoder, Encoder, RangeRule};
use zonda_model::{ExtType, Hyperslab, MemType};
use zonda_storage::layer::Count;

fn encoder(ext: ExtType) -> Encoder {
    Encoder::new(ext, ByteOrder::Big, MemType::I32, RangeRule::Cast).expect("numbers")
}

fn recipe(random: &mut Random) -> Recipe {
    let rank = 1 + random.below(4) as usize;
    let most: Vec<u64> = (0..rank).map(|_| 1 + random.below([0, 90, 20, 9, 6][rank])).collect();
    let chunk = most.iter().map(|&n| 1 + random.below(n + 2)).collect();
    let filters: &[u32] = [&[][..], &[9999]][random.below(2) as usize];
    Recipe {
        chunk,
        elem: [2, 8][random.below(2) as usize],
        filters: filters.to_vec(),
        optional: false,
        fill: Vec::new(),
        fixed: most.iter().map(|_| !random.one_in(3)).collect(),
        unfiltered_edges: random.one_in(5),
        most,
    }
}

/// Puts one value; gives whether the short way took it.
fn put_one(file: &mut File, index: usize, at: &[usize], value: i32, is_short: bool) -> bool {
    let ext = if file.arrays[index].recipe.elem == 2 { ExtType::Short } else { ExtType::Double };
    let (encoder, src) = (encoder(ext), value.to_ne_bytes());
    let mut short = None;
    if is_short {
        let (id, extent) = (file.arrays[index].id, file.arrays[index].extent.clone());
        short = file.writer.put_one(id, &extent, at, &encoder, &src);
    }
    match short {
        Some(converted) => {
            assert_eq!(converted, encoder.encode(&src, &mut vec![0; ext.size()]));
            true
        }
        None => {
            let count = vec![1; at.len()];
            let slab = Hyperslab { start: at, count: &count, stride: None };
            let expected = |src: &[u8], dst: &mut [u8]| encoder.encode(src, dst);
            let put = file.put(index, &slab, ElementEncoding::Convert(encoder), &expected, &src);
            put.expect("puts");
            false
        }
    }
}

/// The same random puts with and without the short way, where chunks wait, become complete, are stored because others need their memory, and
/// come back: the same bytes at the same places.
#[test]
fn files_are_the_same_by_either_way() {
    let mut n_short = 0;
    for seed in 0..60 {
        let mut random = Random(seed);
        let recipes: Vec<Recipe> = (0..1 + random.below(3)).map(|_| recipe(&mut random)).collect();
        let limit = [0, 2000, 1 << 20][random.below(3) as usize];
        let images = [false, true].map(|is_short| {
            let mut random = Random(seed + 1000);
            let mut file = File::new(&Engine::new(1, 1 << 24), limit);
            for recipe in &recipes {
                file.add(recipe, Turn::default());
            }
            let mut at = vec![Vec::new(); recipes.len()];
            for step in 0..600 {
                let index = random.below(recipes.len() as u64) as usize;
                let most = &recipes[index].most;
                let in_order = random.one_in(2);
                let next: Vec<usize> = match &at[index] {
                    before if in_order && !before.is_empty() => {
                        let mut next: Vec<usize> = before.clone();
                        let mut d = next.len();
                        while let Some(axis) = d.checked_sub(1) {
                            d = axis;
                            next[d] = (next[d] + 1) % most[d] as usize;
                            if next[d] != 0 {
                                break;
                            }
                        }
                        next
                    }
                    _ => most.iter().map(|&n| random.below(n) as usize).collect(),
                };
                // Some do not fit a short.
                let value = random.next() as i32 % 40_000;
                n_short += usize::from(put_one(&mut file, index, &next, value, is_short));
                at[index] = next;
                if step % 97 == 96 {
                    file.flush().expect("flushes");
                }
            }
            file.flush().expect("flushes");
            file.image()
        });
        assert!(images[0] == images[1], "seed {seed}");
    }
    assert!(n_short > 60 * 600 / 4, "{n_short} of {}", 60 * 600);
}

/// Who has all that may refuse an element asks the ordinary way.
#[test]
fn what_is_not_simple_goes_the_ordinary_way() {
    let mut random = Random(1);
    let recipe = Recipe {
        most: vec![9, 9],
        fixed: vec![true; 2],
        chunk: vec![4, 4],
        elem: 8,
        ..recipe(&mut random)
    };
    let recipe = Recipe { unfiltered_edges: false, filters: Vec::new(), ..recipe };
    let mut file = File::new(&Engine::new(1, 1 << 24), 1 << 20);
    let index = file.add(&recipe, Turn::default());
    let (id, encoder) = (file.arrays[index].id, encoder(ExtType::Double));
    let extent = [9, 9];
    // No chunk waits.
    assert_eq!(file.writer.put_one(id, &extent, &[0, 0], &encoder, &[0; 4]), None);
    file.put_raw(index, &[0, 0], &[3, 4], &[7; 12 * 8]);
    let short = |file: &mut File, at: &[usize], len| {
        file.writer.put_one(id, &extent, at, &encoder, &[0; 8][..len])
    };
    assert_eq!(short(&mut file, &[3], 4), None, "another rank");
    assert_eq!(short(&mut file, &[3, 0], 8), None, "another type");
    assert_eq!(short(&mut file, &[9, 0], 4), None, "outside");
    assert_eq!(short(&mut file, &[4, 0], 4), None, "another chunk");
    for x in 0..3 {
        assert_eq!(short(&mut file, &[3, x], 4), Some(Converted::default()));
    }
    assert_eq!(short(&mut file, &[3, 3], 4), None, "the chunk is complete with it");
    assert_eq!(file.writer.pending_bytes(), 4 * 4 * 8 + 8);
}

fn made(filters: &[u32]) -> Made {
    let mut recipe = arrays::Recipe::new(&[40, 30, 20], &[8, 7, 6], 4, filters);
    recipe.missing = 5;
    recipe.fill = vec![1, 2, 3, 4];
    Made::new(recipe, Flip::default())
}

fn decoder() -> Decoder {
    Decoder::new(ExtType::Int, ByteOrder::NATIVE, MemType::I32, RangeRule::Cast).expect("numbers")
}

fn by_both_ways(made: &Made, array: &ChunkedArray, at: &[usize]) -> bool {
    let (mut out, expected) = ([0xEE; 4], made.expected(at, &[1; 3], &[1; 3]));
    let short = array.read_one(&made.recipe.extent, at, &decoder(), &mut out);
    if short.is_some() {
        assert_eq!((short, &out[..]), (Some(Converted::default()), &expected[..]), "at {at:?}");
    }
    let slab = Hyperslab { start: at, count: &[1; 3], stride: None };
    if short.is_none() {
        let decode = Decode::Convert(decoder());
        let _ = array.read(&made.recipe.extent, &slab, decode, &mut out).expect("reads");
        assert_eq!(&out[..], &expected[..], "at {at:?}");
    }
    short.is_some()
}

#[test]
fn elements_are_those_of_the_array() {
    for (filters, budget) in [(&[][..], 1 << 20), (&[9999], 1 << 20), (&[9999], 3000)] {
        let made = made(filters);
        let array = made.array(&Engine::new(2, budget));
        let mut random = Random(7);
        let n_short = (0..3000).filter(|_| {
            let at = [40, 30, 20].map(|n| random.below(n) as usize);
            by_both_ways(&made, &array, &at)
        });
        let n_short = n_short.count();
        let least = if budget == 3000 { 0 } else { 1800 };
        assert!(n_short > least, "{n_short} with {filters:?}");
        for at in [[40, 0, 0], [0, 30, 0], [0, 0, 20], [usize::MAX, 0, 0]] {
            assert_eq!(array.read_one(&[40, 30, 20], &at, &decoder(), &mut [0; 4]), None);
        }
        assert_eq!(array.read_one(&[40, 30, 20], &[0, 0], &decoder(), &mut [0; 4]), None);
        assert_eq!(array.read_one(&[40, 30, 20], &[0, 0, 0], &decoder(), &mut [0; 8]), None);
    }
}

/// An element of a chunk that is stored as it is costs one read of its own bytes, and the length of the storage is asked for once.
#[test]
fn an_element_anywhere_is_one_read_of_its_bytes() {
    let made = Made::new(arrays::Recipe::new(&[40, 30, 20], &[8, 7, 6], 4, &[]), Flip::default());
    let storage = Count::new(made.storage.clone());
    let counts = storage.handle();
    let array = ChunkedArray::new_in(
        &Engine::new(2, 1 << 20),
        Arc::new(storage),
        made.table.clone(),
        made.pipeline.clone(),
        ArrayShape { chunk_dims: vec![8, 7, 6], elem_size: 4 },
        Box::default(),
        false,
    );
    let mut n = 0;
    // The last chunk first: how long the storage is at least is known then.
    for step in (0..1000).rev() {
        let at = [step * 7 % 40, step * 11 % 30, step * 13 % 20];
        let at = if step == 999 { [39, 29, 19] } else { at };
        n += u64::from(by_both_ways(&made, &array, &at));
    }
    let counts = counts.counts();
    assert_eq!((n, counts.read.calls, counts.read.bytes), (1000, 1000, 4000));
    assert_eq!(counts.len.calls, 1);
    assert_eq!(array.cached_bytes(), 0);
}

/// Elements in a row have their chunk cached, so that reads stop.
#[test]
fn elements_in_order_have_their_chunk_cached() {
    let made = Made::new(arrays::Recipe::new(&[8, 7, 6], &[8, 7, 6], 4, &[]), Flip::default());
    let array = made.array(&Engine::new(2, 1 << 20));
    let short: Vec<bool> = (0..6).map(|x| by_both_ways(&made, &array, &[0, 0, x])).collect();
    assert_eq!(short, [true, false, false, false, false, true]);
    assert_eq!(array.cached_bytes(), 8 * 7 * 6 * 4);
    assert!((0..7).all(|y| by_both_ways(&made, &array, &[7, y, 1])));
}

/// A chunk that the storage does not have all of is refused, whichever of its elements is wanted.
#[test]
fn chunks_beyond_the_end_are_refused() {
    let made = Made::new(arrays::Recipe::new(&[16], &[8], 4, &[]), Flip::default());
    let len = made.storage.to_vec().expect("memory").len() as u64;
    use zonda_storage::Storage as _;
    made.storage.set_len(len - 4).expect("memory");
    let array = made.array(&Engine::new(2, 1 << 20));
    let mut out = [0; 4];
    assert!(array.read_one(&[16], &[7], &decoder(), &mut out).is_some());
    for at in [8, 15] {
        assert_eq!(array.read_one(&[16], &[at], &decoder(), &mut out), None);
    }
}
