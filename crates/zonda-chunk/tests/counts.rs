//! How often chunks are decoded: what the cache keeps, and what it does when memory is short.

mod arrays;

use std::sync::Arc;

use arrays::{Flip, Made, Recipe};
use zonda_chunk::{ChunkedArray, Decode, Engine};
use zonda_model::Hyperslab;

const LARGE: u64 = 1 << 30;

fn read(made: &Made, array: &ChunkedArray, start: &[usize], count: &[usize]) {
    let elem_size = made.recipe.elem;
    let mut out = vec![0; count.iter().product::<usize>() * elem_size];
    let slab = Hyperslab { start, count, stride: None };
    let _ =
        array.read(&made.recipe.extent, &slab, Decode::Raw { elem_size }, &mut out).expect("reads");
    assert!(out == made.expected(start, count, &vec![1; start.len()]), "at {start:?}");
}

/// 4 x 3 x 2 chunks of 8 x 5 x 6.
fn cube() -> Made {
    Made::new(Recipe::new(&[30, 15, 12], &[8, 5, 6], 4, &[9999]), Flip::default())
}

/// Reads in `order` with each number of threads, and gives how many chunks were decoded.
fn decoded(made: &Made, budget: u64, order: &[(Vec<usize>, Vec<usize>)]) -> Vec<usize> {
    [1, 2, 4]
        .into_iter()
        .map(|threads| {
            let before = made.undone();
            let engine = Engine::new(threads, budget);
            let array = made.array(&engine);
            for (start, count) in order {
                read(made, &array, start, count);
            }
            // Ends what runs in the background.
            drop(array);
            assert_eq!(engine.bytes_in_use(), 0);
            made.undone() - before
        })
        .collect()
}

fn layers(extent: [usize; 3], axis: usize) -> Vec<(Vec<usize>, Vec<usize>)> {
    (0..extent[axis])
        .map(|i| {
            let (mut start, mut count) = (vec![0; 3], extent.to_vec());
            (start[axis], count[axis]) = (i, 1);
            (start, count)
        })
        .collect()
}

#[test]
fn layer_by_layer_decodes_each_chunk_once() {
    let made = cube();
    for axis in 0..3 {
        let mut order = layers([30, 15, 12], axis);
        assert_eq!(decoded(&made, LARGE, &order), [24; 3], "axis {axis}");
        order.reverse();
        assert_eq!(decoded(&made, LARGE, &order), [24; 3], "axis {axis} backwards");
    }
}

/// Only one row of chunks and the next have room, and that is enough.
#[test]
fn layer_by_layer_needs_one_row_of_chunks() {
    let made = cube();
    let row = 3 * 2 * 8 * 5 * 6 * 4;
    assert_eq!(decoded(&made, row, &layers([30, 15, 12], 0)), [24; 3]);
    assert_eq!(decoded(&made, 8 * row / 6, &layers([30, 15, 12], 1)), [24; 3]);
}

#[test]
fn series_decode_each_chunk_once() {
    let made = cube();
    let mut order = Vec::new();
    for y in 0..15 {
        for x in 0..12 {
            order.push((vec![0, y, x], vec![30, 1, 1]));
        }
    }
    assert_eq!(decoded(&made, LARGE, &order), [24; 3]);
    // Two columns of chunks: the one that series go through, crossed again for each y.
    assert_eq!(decoded(&made, 8 * 8 * 5 * 6 * 4, &order), [24; 3]);
}

#[test]
fn single_elements_in_order_decode_each_chunk_once() {
    let made = cube();
    let mut order = Vec::new();
    for z in 0..30 {
        for y in 0..15 {
            for x in 0..12 {
                order.push((vec![z, y, x], vec![1, 1, 1]));
            }
        }
    }
    assert_eq!(decoded(&made, LARGE, &order), [24; 3]);
}

#[test]
fn blocks_side_by_side_decode_each_chunk_once() {
    let made = Made::new(Recipe::new(&[60, 80], &[9, 7], 2, &[9999]), Flip::default());
    let mut order = Vec::new();
    for y in (0..60).step_by(4) {
        for x in (0..80).step_by(5) {
            order.push((vec![y, x], vec![4, 5]));
        }
    }
    assert_eq!(decoded(&made, LARGE, &order), [7 * 12; 3]);
}

/// A window of three by three chunks moves by one element: what it shares with the last one stays.
#[test]
fn sliding_windows_decode_the_first_chunks_twice_at_most() {
    let made = Made::new(Recipe::new(&[27, 80], &[9, 7], 2, &[9999]), Flip::default());
    let order: Vec<_> = (0..=80 - 21).map(|x| (vec![0, x], vec![27, 21])).collect();
    for n in decoded(&made, LARGE, &order) {
        assert!((36..=36 + 9).contains(&n), "{n}");
    }
}

#[test]
fn whole_chunks_are_not_kept() {
    let made = cube();
    let engine = Engine::new(2, LARGE);
    let array = made.array(&engine);
    read(&made, &array, &[0, 0, 0], &[30, 15, 12]);
    assert_eq!((made.undone(), array.cached_bytes()), (24, 0));
    read(&made, &array, &[8, 5, 6], &[8, 5, 6]);
    assert_eq!((made.undone(), array.cached_bytes()), (25, 4 * 8 * 5 * 6));
}

/// A request for the whole array takes chunks from the cache where they are there.
#[test]
fn what_is_there_is_used() {
    let made = cube();
    let array = made.array(&Engine::new(1, LARGE));
    read(&made, &array, &[0, 0, 0], &[1, 1, 1]);
    read(&made, &array, &[0, 0, 0], &[30, 15, 12]);
    assert_eq!(made.undone(), 24);
}

/// A cycle over 24 chunks with room for 12: nearly half of the chunks are found each time.
#[test]
fn a_cycle_longer_than_the_budget_keeps_a_part() {
    let made = cube();
    let chunk = 8 * 5 * 6 * 4;
    let order: Vec<_> = (0..20)
        .flat_map(|_| {
            (0..24usize).map(|i| (vec![i / 6 * 8, i / 2 % 3 * 5, i % 2 * 6], vec![2, 2, 3]))
        })
        .collect();
    for n in decoded(&made, 12 * chunk, &order) {
        // At best 24 in the first round and 12 in each of 19 more.
        assert!((24 + 19 * 12..24 + 19 * 14).contains(&n), "{n}");
    }
}

/// One request that has all chunks in part, over and over, with room for 12.
#[test]
fn a_request_larger_than_the_budget_keeps_a_part() {
    let made = cube();
    let order: Vec<_> = (0..10).map(|_| (vec![1, 1, 1], vec![28, 13, 10])).collect();
    for n in decoded(&made, 12 * 8 * 5 * 6 * 4, &order) {
        assert!((24 + 9 * 12..=24 + 9 * 14).contains(&n), "{n}");
    }
}

/// What such a request keeps is not pushed out by itself: its first chunks stay.
#[test]
fn a_request_larger_than_the_budget_keeps_its_first_chunks() {
    let made = cube();
    let array = made.array(&Engine::new(1, 12 * 8 * 5 * 6 * 4));
    read(&made, &array, &[1, 1, 1], &[28, 13, 10]);
    read(&made, &array, &[1, 1, 1], &[14, 13, 10]);
    assert_eq!(made.undone(), 24);
}

/// Walks by layers, again and again, with room for one row of chunks: each walk decodes each chunk
/// once, although all have been there before.
#[test]
fn walks_one_after_the_other_decode_each_chunk_once() {
    let made = cube();
    let row = 3 * 2 * 8 * 5 * 6 * 4;
    let order: Vec<_> = (0..4).flat_map(|_| layers([30, 15, 12], 0)).collect();
    assert_eq!(decoded(&made, row, &order), [4 * 24; 3]);
}

/// The cycle moves on: the chunks of the old one do not stay for ever.
#[test]
fn a_part_kept_gives_way_to_what_is_new() {
    let made = Made::new(Recipe::new(&[480], &[10], 4, &[9999]), Flip::default());
    let array = made.array(&Engine::new(1, 8 * 40));
    let mut per_round = Vec::new();
    for first in [0, 16, 32] {
        for _ in 0..6 {
            let before = made.undone();
            for chunk in first..first + 6 {
                read(&made, &array, &[chunk * 10], &[3]);
            }
            per_round.push(made.undone() - before);
        }
    }
    assert_eq!(per_round, [[6, 0, 0, 0, 0, 0]; 3].concat());
}

/// Without any budget an array still keeps a chunk, and more if it was asked for by name.
#[test]
fn no_budget_is_not_no_cache() {
    let made = Made::new(Recipe::new(&[100], &[10], 4, &[9999]), Flip::default());
    let order: Vec<_> = (0..100).map(|x| (vec![x], vec![1])).collect();
    assert_eq!(decoded(&made, 0, &order), [10; 3]);
    let twice: Vec<_> = order.iter().chain(&order).cloned().collect();
    assert_eq!(decoded(&made, 0, &twice), [20; 3]);

    let engine = Engine::new(1, 0);
    let array = made.array(&engine);
    array.set_cache_floor(400);
    let before = made.undone();
    for (start, count) in order.iter().chain(&order) {
        read(&made, &array, start, count);
    }
    assert_eq!((made.undone() - before, array.cached_bytes()), (10, 400));
    array.clear_cache();
    assert_eq!((array.cached_bytes(), engine.bytes_in_use()), (0, 0));
    read(&made, &array, &[5], &[1]);
    assert_eq!(made.undone() - before, 11);
}

/// Memory goes to the array in use, from the one longest unused.
#[test]
fn arrays_share_the_budget() {
    let recipe = || Recipe::new(&[100], &[10], 4, &[9999]);
    let (one, other) = (Made::new(recipe(), Flip::default()), Made::new(recipe(), Flip::default()));
    let engine = Engine::new(1, 8 * 40);
    let (first, second) = (one.array(&engine), other.array(&engine));
    for chunk in 0..8 {
        read(&one, &first, &[chunk * 10], &[2]);
    }
    assert_eq!(first.cached_bytes(), 8 * 40);
    for chunk in 0..6 {
        read(&other, &second, &[chunk * 10], &[2]);
    }
    assert_eq!((first.cached_bytes(), second.cached_bytes()), (2 * 40, 6 * 40));
    for chunk in [7, 6] {
        read(&one, &first, &[chunk * 10], &[2]);
    }
    assert_eq!((one.undone(), other.undone()), (8, 6));
    first.set_cache_floor(80);
    for chunk in 0..10 {
        read(&other, &second, &[chunk * 10], &[2]);
    }
    assert_eq!(first.cached_bytes(), 80);
    drop(second);
    assert_eq!(engine.bytes_in_use(), 80);
}

/// A walk in whole chunks decodes ahead, and nothing twice.
#[test]
fn a_walk_over_whole_chunks_decodes_each_once() {
    let made = Made::new(Recipe::new(&[400], &[10], 4, &[9999]), Flip::default());
    let order: Vec<_> = (0..40).map(|i| (vec![i * 10], vec![10])).collect();
    assert_eq!(decoded(&made, LARGE, &order), [40; 3]);
}

/// What lies ahead is decoded while the program does something else.
#[test]
fn a_walk_is_decoded_ahead() {
    let made = Made::new(Recipe::new(&[400], &[10], 4, &[9999]), Flip::default());
    let array = made.array(&Engine::new(4, LARGE));
    for i in 0..3 {
        read(&made, &array, &[i * 10], &[5]);
    }
    let patience = std::time::Instant::now();
    while made.undone() < 7 && patience.elapsed().as_secs() < 20 {
        std::thread::yield_now();
    }
    assert_eq!(made.undone(), 7, "three asked for, and one for each thread");
}

/// Chunks without filters are read in part; one that is asked for again and again is kept.
#[test]
fn unfiltered_chunks_are_kept_for_small_requests() {
    let made = Made::new(Recipe::new(&[100, 100], &[50, 50], 4, &[]), Flip::default());
    let array = made.array(&Engine::new(1, LARGE));
    for i in 0..20 {
        read(&made, &array, &[i, 0], &[1, 100]);
    }
    assert_eq!(array.cached_bytes(), 0);
    for i in 0..10 {
        read(&made, &array, &[i, i], &[1, 1]);
    }
    assert_eq!(array.cached_bytes(), 50 * 50 * 4);
}

/// Threads that want the same chunk at the same time share one decoding of it.
#[test]
fn a_chunk_wanted_by_many_is_decoded_once() {
    let slow = std::time::Duration::from_millis(3);
    let recipe = Recipe::new(&[200], &[10], 4, &[9999]);
    let made = Arc::new(Made::new(recipe, Flip { slow, ..Flip::default() }));
    let array = Arc::new(made.array(&Engine::new(2, LARGE)));
    let gate = Arc::new(std::sync::Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|t| {
            let (made, array, gate) = (made.clone(), array.clone(), gate.clone());
            std::thread::spawn(move || {
                gate.wait();
                for chunk in 0..20 {
                    read(&made, &array, &[chunk * 10 + t], &[2]);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(made.undone(), 20);
}

/// A walk through all of an array takes the memory of the chunks behind it, unless the program has
/// come back to such chunks before.
#[test]
fn a_walk_by_layers_takes_the_memory_behind_it() {
    let made = Made::new(Recipe::new(&[24, 512, 512], &[4, 256, 256], 4, &[9999]), Flip::default());
    let array = made.array(&Engine::new(2, LARGE));
    let walk = || {
        for layer in 0..24 {
            read(&made, &array, &[layer, 0, 0], &[1, 512, 512]);
        }
        made.undone()
    };
    assert_eq!(walk(), 24);
    let row = 4 * (1 << 20);
    assert!(array.cached_bytes() <= 4 * row, "{} bytes", array.cached_bytes());
    let second = walk();
    assert!((25..=48).contains(&second), "{second}");
    assert_eq!(array.cached_bytes(), 6 * row);
    assert_eq!(walk(), second);
}

/// With memory for a few chunks only, those that come take the memory of those that go.
#[test]
fn reused_memory_holds_what_was_decoded_last() {
    let made = Made::new(Recipe::new(&[12, 512, 512], &[2, 512, 512], 4, &[9999]), Flip::default());
    let engine = Engine::new(2, 3 * (2 << 20));
    let array = made.array(&engine);
    for layer in (0..12).chain((0..12).rev()).chain((0..12).step_by(5)) {
        read(&made, &array, &[layer, 0, 0], &[1, 512, 512]);
        assert!(engine.bytes_in_use() <= 3 * (2 << 20));
    }
}
