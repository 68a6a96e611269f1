//! Many threads at one array, with little memory. `ZONDA_STRESS` gives the number of rounds.

mod arrays;

use std::sync::Arc;

use arrays::{Flip, Made, Random, Recipe};
use zonda_chunk::{Decode, Engine};
use zonda_model::Hyperslab;

fn stress(budget: u64, threads: usize, filters: &[u32]) {
    let recipe = Recipe {
        missing: 7,
        fill: vec![9, 8],
        ..Recipe::new(&[40, 60, 50], &[10, 13, 50], 2, filters)
    };
    let made = Arc::new(Made::new(recipe, Flip::default()));
    let engine = Engine::new(threads, budget);
    let array = Arc::new(made.array(&engine));
    let rounds = std::env::var("ZONDA_STRESS").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    let workers: Vec<_> = (0..8)
        .map(|t| {
            let (made, array) = (made.clone(), array.clone());
            std::thread::spawn(move || {
                let mut random = Random(100 + t);
                for round in 0..rounds {
                    let (mut start, mut count) = ([0; 3], [1; 3]);
                    for d in 0..3 {
                        let n = made.recipe.extent[d];
                        start[d] = random.below(n) as usize;
                        if (round + d as u64) % 3 != t % 3 {
                            let left = n - start[d] as u64;
                            count[d] = 1 + random.below(left.min(30)) as usize;
                        }
                    }
                    // Now and then a walk, the whole array, a clean slate.
                    if random.one_in(4) {
                        (start[1], start[2], count) = (0, 0, [1, 60, 50]);
                        start[0] = (round % 40) as usize;
                    }
                    if random.one_in(40) {
                        (start, count) = ([0; 3], [40, 60, 50]);
                    }
                    if random.one_in(60) {
                        array.clear_cache();
                    }
                    let mut out = vec![0x77; count.iter().product::<usize>() * 2];
                    let slab = Hyperslab { start: &start, count: &count, stride: None };
                    let read = array.read(
                        &made.recipe.extent,
                        &slab,
                        Decode::Raw { elem_size: 2 },
                        &mut out,
                    );
                    let _ = read.expect("reads");
                    assert!(out == made.expected(&start, &count, &[1; 3]), "{start:?} {count:?}");
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("no panic");
    }
    let cached = array.cached_bytes();
    assert!(cached <= budget.max(10 * 13 * 50 * 2), "{cached}");
    drop(Arc::into_inner(array));
    assert_eq!(engine.bytes_in_use(), 0);
}

#[test]
fn plenty_of_memory() {
    stress(1 << 30, 4, &[9999, 2, 1]);
}

#[test]
fn little_memory() {
    stress(60_000, 3, &[9999]);
}

#[test]
fn no_memory() {
    stress(0, 2, &[2, 9999]);
}

#[test]
fn no_filters() {
    stress(60_000, 2, &[]);
}

/// Arrays come and go while their chunks are decoded in the background.
#[test]
fn closing_ends_what_runs_in_the_background() {
    let slow = std::time::Duration::from_millis(1);
    let recipe = Recipe::new(&[1000], &[10], 4, &[9999]);
    let made = Made::new(recipe, Flip { slow, ..Flip::default() });
    let engine = Engine::new(4, 1 << 30);
    for round in 0..30 {
        let array = made.array(&engine);
        for i in 0..3 + round % 5 {
            let slab = Hyperslab { start: &[i * 10 + 1], count: &[2], stride: None };
            let mut out = [0; 8];
            let read = array.read(&[1000], &slab, Decode::Raw { elem_size: 4 }, &mut out);
            let _ = read.expect("reads");
        }
        drop(array);
        assert_eq!(engine.bytes_in_use(), 0);
        let at_end = made.undone();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(made.undone(), at_end, "nothing runs after the end");
    }
}
