//! How fast one thread undoes and applies filters, for `optimization-notes.md`.
//!
//!     python tests/reference.py speed chunks.bin
//!     cargo run --release --example filter_speed -- chunks.bin
//!
//! All figures are MB/s of the array's bytes, the best of several runs.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

#[path = "../tests/container/mod.rs"]
mod container;

use std::time::{Duration, Instant};

use container::{Random, pipeline, read, spec};
use zonda_chunk::filter::{FilterBuffers, shuffle};

fn main() {
    kernels();
    match std::env::args_os().nth(1) {
        Some(file) => deflate(&std::fs::read(file).expect("a readable file")),
        None => println!("without a file made by tests/reference.py: no deflate"),
    }
    others();
}

/// MB/s of the best run of `work` on `bytes` bytes.
fn speed(bytes: usize, mut work: impl FnMut()) -> f64 {
    let mut best = Duration::MAX;
    let begin = Instant::now();
    let mut runs = 0;
    while runs < 5 || begin.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed());
        runs += 1;
    }
    bytes as f64 / best.as_secs_f64() / 1e6
}

fn kernels() {
    println!("| element | bytes | memcpy | unshuffle | in runs of 100 | shuffle |");
    println!("|---|---|---|---|---|---|");
    for len in [1 << 16, 1 << 20, 1 << 26] {
        for size in [2, 4, 8, 16, 3, 12] {
            let len = len / (100 * size) * (100 * size);
            let raw = Random(1).bytes(len);
            let (mut planes, mut out) = (vec![0; len], vec![0; len]);
            let copy = speed(len, || out.copy_from_slice(&raw));
            let there = speed(len, || shuffle::shuffle(&raw, size, &mut planes));
            let back = speed(len, || shuffle::unshuffle(&planes, size, &mut out));
            assert!(out == raw);
            let runs = speed(len, || {
                for (i, run) in out.chunks_exact_mut(100 * size).enumerate() {
                    shuffle::unshuffle_run(&planes, size, 100 * i, 100, run);
                }
            });
            println!("| {size} | {len} | {copy:.0} | {back:.0} | {runs:.0} | {there:.0} |");
        }
    }
}

fn deflate(file: &[u8]) {
    println!("\n| chunk | ratio | sirocco inflate | libdeflate inflate | inflate + unshuffle |");
    println!("|---|---|---|---|---|");
    let (arrays, chunks) = read(file);
    let mut scratch = FilterBuffers::default();
    for chunk in &chunks {
        let array = &arrays[chunk.array];
        let len = array.raw.len();
        let mut out = vec![0; len];
        let alone = pipeline(&chunk.specs[1..], array.elem_size, len);
        let ours = speed(len, || alone.decode(&chunk.stored, 0, &mut scratch, &mut out).unwrap());
        let mut other = libdeflater::Decompressor::new();
        let theirs = speed(len, || _ = other.zlib_decompress(&chunk.stored, &mut out).unwrap());
        let both = pipeline(&chunk.specs, array.elem_size, len);
        let whole = speed(len, || both.decode(&chunk.stored, 0, &mut scratch, &mut out).unwrap());
        assert!(out == array.raw);
        let ratio = len as f64 / chunk.stored.len() as f64;
        println!("| {} | {ratio:.2} | {ours:.0} | {theirs:.0} | {whole:.0} |", chunk.name);
    }

    println!("\n| chunk | sirocco: deflate, ratio | libdeflate | sirocco inflates sirocco's |");
    println!("|---|---|---|---|");
    for chunk in &chunks {
        let array = &arrays[chunk.array];
        let len = array.raw.len();
        let mut planes = vec![0; len];
        shuffle::shuffle(&array.raw, array.elem_size, &mut planes);
        let made = pipeline(&chunk.specs[1..], array.elem_size, len);
        let mut stored = Vec::new();
        let ours = speed(len, || _ = made.encode(&planes, &mut scratch, &mut stored).unwrap());
        let level = i32::try_from(chunk.specs[1].params[0]).unwrap();
        let level = libdeflater::CompressionLvl::new(level).unwrap();
        let mut other = libdeflater::Compressor::new(level);
        let mut room = vec![0; other.zlib_compress_bound(len)];
        let mut got = 0;
        let theirs = speed(len, || got = other.zlib_compress(&planes, &mut room).unwrap());
        let mut out = vec![0; len];
        let back = speed(len, || made.decode(&stored, 0, &mut scratch, &mut out).unwrap());
        let ratio = |stored: usize| len as f64 / stored as f64;
        let (mine, its) = (ratio(stored.len()), ratio(got));
        println!("| {} | {ours:.0}, {mine:.2} | {theirs:.0}, {its:.2} | {back:.0} |", chunk.name);
    }
}

fn others() {
    println!("\n| filter, 1 MiB of floats | encode | decode | ratio |");
    println!("|---|---|---|---|");
    let smooth = |i: u32| (f64::from(i) / 700.0).sin() * 20.0 + 280.0;
    let mut random = Random(5);
    let noise = |random: &mut Random| random.below(1000) as f64 / 3000.0;
    let raw: Vec<u8> = (0..1 << 18)
        .flat_map(|i| ((smooth(i) + noise(&mut random)) as f32).to_le_bytes())
        .collect();
    let len = raw.len();
    let mut scratch = FilterBuffers::default();
    let on = |id, params: &[u32]| spec(id, true, params.to_vec());
    let bytes = u32::try_from(len).unwrap();
    let mut all = vec![
        ("fletcher32".to_string(), vec![on(3, &[])]),
        ("shuffle, lzf".into(), vec![on(2, &[4]), on(32000, &[])]),
        ("shuffle, lz4".into(), vec![on(2, &[4]), on(32004, &[0])]),
        ("shuffle, zstd 3".into(), vec![on(2, &[4]), on(32015, &[3])]),
        ("shuffle, bzip2 9".into(), vec![on(2, &[4]), on(307, &[9])]),
        ("bitshuffle".into(), vec![on(32008, &[0, 4, 4, 0, 0])]),
        ("bitshuffle lz4".into(), vec![on(32008, &[0, 4, 4, 0, 2])]),
        ("bitshuffle zstd".into(), vec![on(32008, &[0, 4, 4, 0, 3, 3])]),
    ];
    for (codec, name) in ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"].iter().enumerate() {
        let params = [2, 2, 4, bytes, 5, 1, u32::try_from(codec).unwrap()];
        all.push((format!("blosc {name} 5"), vec![on(32001, &params)]));
    }
    for (name, specs) in all {
        let made = pipeline(&specs, 4, len);
        let (mut stored, mut mask) = (Vec::new(), 0);
        let there = speed(len, || mask = made.encode(&raw, &mut scratch, &mut stored).unwrap());
        let mut out = vec![0; len];
        let back = speed(len, || made.decode(&stored, mask, &mut scratch, &mut out).unwrap());
        assert!(out == raw);
        let ratio = len as f64 / stored.len() as f64;
        println!("| {name} | {there:.0} | {back:.0} | {ratio:.2} |");
    }
}
