//! The conformance suite that every backend, layer and stack passes.

use crate::Rng;
use std::sync::Arc;
use zonda_storage::{Advice, ReadRange, Spec, Stack, Storage, StorageError, WriteRange};

/// How far random operations reach, in bytes: many pages of a small cache, few of a large one.
const REACH: usize = 200_000;

/// Runs the whole suite; `make` gives a new, empty, writable storage each time.
///
/// # Panics
/// With the stack's spec and the seed, where the storage does not behave as [`Storage`] says.
pub fn conformance(make: impl Fn() -> Arc<dyn Storage>) {
    edges(&*make());
    describes_itself(&*make());
    ranges(&*make());
    lengths(&*make());
    far_offsets(&*make());
    for seed in 0..12 {
        random_operations(&*make(), seed);
    }
    disjoint_writes(&make(), 4, 60);
    disjoint_writes(&make(), 8, 5000);
    readers_beside_a_writer(&make());
}

fn name(storage: &dyn Storage) -> String {
    Stack(storage).to_string()
}

/// Empty operations, ends, gaps, and offsets no file can have.
fn edges(s: &dyn Storage) {
    let who = name(s);
    let mut buf = [7; 16];
    assert_eq!(s.len(), Ok(0), "{who}");
    assert_eq!(s.read_at(0, &mut buf), Ok(0), "{who}");
    assert_eq!(s.read_at(1 << 40, &mut buf), Ok(0), "{who}");
    assert_eq!(s.read_at(0, &mut []), Ok(0), "{who}");
    assert_eq!(s.write_at(100, &[]), Ok(()), "{who}");
    assert_eq!(s.len(), Ok(0), "{who}: an empty write does not extend");
    assert_eq!(s.write_ranges(&[]), Ok(()), "{who}");
    assert_eq!(s.read_ranges(&mut []), Ok(()), "{who}");

    assert_eq!(s.write_at(10, b"abc"), Ok(()), "{who}");
    assert_eq!(s.len(), Ok(13), "{who}");
    assert_eq!(s.read_at(8, &mut buf), Ok(5), "{who}");
    assert_eq!(&buf[..5], b"\0\0abc", "{who}");
    assert_eq!(s.read_at(13, &mut buf), Ok(0), "{who}");
    assert_eq!(s.read_at(12, &mut buf), Ok(1), "{who}");
    assert_eq!(buf[0], b'c', "{who}");

    for (at, data) in [(u64::MAX, &b"x"[..]), (i64::MAX as u64, b"xy"), (u64::MAX - 1, b"xyz")] {
        let refused = s.write_at(at, data);
        assert!(matches!(refused, Err(StorageError::TooFar { .. })), "{who}: {refused:?}");
        let refused = s.write_ranges(&[WriteRange { at, data }]);
        assert!(matches!(refused, Err(StorageError::TooFar { .. })), "{who}: {refused:?}");
        let refused = s.read_at(at, &mut [0; 3]);
        assert!(matches!(refused, Err(StorageError::TooFar { .. })), "{who}: {refused:?}");
    }
    let refused = s.set_len(u64::MAX);
    assert!(matches!(refused, Err(StorageError::TooFar { .. })), "{who}: {refused:?}");
    assert_eq!(s.len(), Ok(13), "{who}");
    for whole in [s.barrier(), s.sync(), s.invalidate()] {
        assert_eq!(whole, Ok(()), "{who}");
    }
    assert_eq!(s.read_at(8, &mut buf), Ok(5), "{who}");
    assert_eq!(&buf[..5], b"\0\0abc", "{who}");
}

/// `describe` gives a spec that names the same stack.
fn describes_itself(s: &dyn Storage) {
    let text = name(s);
    let spec = Spec::parse(&text).unwrap_or_else(|why| panic!("{text}: {why}"));
    assert_eq!(spec.to_string(), text);
}

/// Many ranges in one call: touching, apart, in any order, across the end, empty.
fn ranges(s: &dyn Storage) {
    let who = name(s);
    let data = Rng::new(1).bytes(60_000);
    let cuts = [(0, 100), (100, 4096), (4096, 4097), (5000, 20_000), (30_000, 60_000)];
    let writes: Vec<WriteRange<'_>> =
        cuts.iter().map(|(a, b)| WriteRange { at: *a as u64, data: &data[*a..*b] }).collect();
    assert_eq!(s.write_ranges(&writes), Ok(()), "{who}");
    let mut model = vec![0; 60_000];
    cuts.iter().for_each(|(a, b)| model[*a..*b].copy_from_slice(&data[*a..*b]));

    let asked = [
        (50_000, 20_000),
        (0, 10),
        (10, 10),
        (20, 4090),
        (4200, 1),
        (4203, 900),
        (7, 0),
        (20_000, 10_000),
        (60_000, 5),
        (59_999, 5),
        (100, 59_000),
        (1 << 33, 8),
    ];
    let mut bufs: Vec<Vec<u8>> = asked.iter().map(|(_, n)| vec![0xAA; *n]).collect();
    let mut reads: Vec<ReadRange<'_>> =
        asked.iter().zip(&mut bufs).map(|((at, _), buf)| ReadRange::new(*at, buf)).collect();
    assert_eq!(s.read_ranges(&mut reads), Ok(()), "{who}");
    let got: Vec<usize> = reads.iter().map(|r| r.got).collect();
    for (((at, n), buf), got) in asked.iter().zip(&bufs).zip(got) {
        let at = (*at as usize).min(model.len());
        let there = &model[at..(at + n).min(model.len())];
        assert_eq!(got, there.len(), "{who}: {n} at {at}");
        assert!(buf[..got] == *there, "{who}: {n} at {at}");
    }

    // Later ranges of one call win, whatever their size.
    let (big, small) = (vec![1; 50_000], [2; 10]);
    let first = WriteRange { at: 0, data: &big };
    let second = WriteRange { at: 20_000, data: &small };
    assert_eq!(s.write_ranges(&[first, second]), Ok(()), "{who}");
    let mut buf = [0; 12];
    assert_eq!(s.read_at(19_999, &mut buf), Ok(12), "{who}");
    assert_eq!(buf, [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1], "{who}");
    assert_eq!(s.write_ranges(&[second, first]), Ok(()), "{who}");
    assert_eq!(s.read_at(19_999, &mut buf), Ok(12), "{who}");
    assert_eq!(buf, [1; 12], "{who}");
}

/// Cutting and extending: what was cut off comes back as zeros.
fn lengths(s: &dyn Storage) {
    let who = name(s);
    assert_eq!(s.write_at(0, &[9; 20_000]), Ok(()), "{who}");
    assert_eq!(s.set_len(5000), Ok(()), "{who}");
    assert_eq!(s.len(), Ok(5000), "{who}");
    let mut buf = [1; 100];
    assert_eq!(s.read_at(4950, &mut buf), Ok(50), "{who}");
    assert_eq!(buf[..50], [9; 50], "{who}");
    assert_eq!(s.set_len(30_000), Ok(()), "{who}");
    assert_eq!(s.len(), Ok(30_000), "{who}");
    assert_eq!(s.read_at(4950, &mut buf), Ok(100), "{who}");
    assert_eq!((&buf[..50], &buf[50..]), (&[9; 50][..], &[0; 50][..]), "{who}");
    assert_eq!(s.read_at(29_950, &mut buf), Ok(50), "{who}");
    assert_eq!(buf[..50], [0; 50], "{who}");
    assert_eq!(s.set_len(30_000), Ok(()), "{who}");
    assert_eq!(s.set_len(0), Ok(()), "{who}");
    assert_eq!((s.len(), s.read_at(0, &mut buf)), (Ok(0), Ok(0)), "{who}");
    assert_eq!(s.write_at(300, &[5]), Ok(()), "{who}");
    assert_eq!(s.read_at(250, &mut buf), Ok(51), "{who}");
    assert_eq!((&buf[..50], buf[50]), (&[0; 50][..], 5), "{who}");
}

/// Beyond 4 GiB, sparsely.
fn far_offsets(s: &dyn Storage) {
    let who = name(s);
    let far = [(1 << 32) - 3, 5 << 30, (5 << 30) + 100_000, 1 << 35];
    for (i, at) in far.into_iter().enumerate() {
        let data = Rng::new(at).bytes(7 + i * 30_000);
        assert_eq!(s.write_at(at, &data), Ok(()), "{who}: at {at}");
        assert_eq!(s.len(), Ok(at + data.len() as u64), "{who}: at {at}");
    }
    assert_eq!(s.barrier(), Ok(()), "{who}");
    assert_eq!(s.invalidate(), Ok(()), "{who}");
    for (i, at) in far.into_iter().enumerate() {
        let data = Rng::new(at).bytes(7 + i * 30_000);
        let mut buf = vec![1; data.len() + 4];
        let got = s.read_at(at - 4, &mut buf);
        assert_eq!(got, Ok(buf.len()), "{who}: at {at}");
        assert!(buf[..4] == [0; 4] && buf[4..] == data, "{who}: at {at}");
    }
    assert_eq!(s.set_len((1 << 32) - 1), Ok(()), "{who}");
    let mut buf = [0; 8];
    assert_eq!(s.read_at((1 << 32) - 3, &mut buf), Ok(2), "{who}");
    assert_eq!(s.set_len(0), Ok(()), "{who}");
}

/// One random change or read against the same on a plain vector.
fn step(s: &dyn Storage, model: &mut Vec<u8>, rng: &mut Rng, who: &str) {
    let at = rng.below(REACH as u64) as usize;
    match rng.below(24) {
        0..8 => {
            let n = rng.length(REACH);
            let data = rng.bytes(n);
            assert_eq!(s.write_at(at as u64, &data), Ok(()), "{who}: {n} at {at}");
            put(model, at, &data);
        }
        8..10 => write_ranges(s, model, rng, who),
        10..15 => {
            let n = rng.length(REACH);
            let mut buf = vec![0xEE; n];
            let there =
                &model[at.min(model.len())..(at + n).min(model.len()).max(at.min(model.len()))];
            assert_eq!(s.read_at(at as u64, &mut buf), Ok(there.len()), "{who}: {n} at {at}");
            assert!(buf[..there.len()] == *there, "{who}: {n} at {at}");
        }
        15..17 => read_ranges(s, model, rng, who),
        17 => {
            let len = rng.below(REACH as u64 + 20_000);
            assert_eq!(s.set_len(len), Ok(()), "{who}: {len}");
            model.resize(len as usize, 0);
        }
        18 => {
            let whole = if rng.below(2) == 0 { s.barrier() } else { s.sync() };
            assert_eq!(whole, Ok(()), "{who}");
        }
        19 => assert_eq!(s.invalidate(), Ok(()), "{who}"),
        20..23 => {
            let n = rng.length(REACH);
            let size = 1 + rng.below(8) as usize;
            let element = rng.bytes(size);
            assert_eq!(s.fill_at(at as u64, n as u64, &element), Ok(()), "{who}: {n} at {at}");
            let data: Vec<u8> = element.iter().copied().cycle().take(n).collect();
            put(model, at, &data);
        }
        _ => s.advise(Advice {
            record_bytes: at as u64,
            n_record_parts: rng.below(40),
            file_bytes: rng.below(20) << 20,
        }),
    }
    if rng.below(8) == 0 {
        s.rest();
    }
    assert_eq!(s.len(), Ok(model.len() as u64), "{who}");
}

/// Writes random ranges in one call.
fn write_ranges(s: &dyn Storage, model: &mut Vec<u8>, rng: &mut Rng, who: &str) {
    let pieces: Vec<(usize, Vec<u8>)> = (0..rng.below(8))
        .map(|_| (rng.below(REACH as u64) as usize, rng.length(30_000)))
        .map(|(at, n)| (at, Rng::new(at as u64).bytes(n)))
        .collect();
    let ranges: Vec<WriteRange<'_>> =
        pieces.iter().map(|(at, data)| WriteRange { at: *at as u64, data }).collect();
    assert_eq!(s.write_ranges(&ranges), Ok(()), "{who}");
    pieces.iter().for_each(|(at, data)| put(model, *at, data));
}

/// Reads random ranges, in ascending order, in one call.
fn read_ranges(s: &dyn Storage, model: &[u8], rng: &mut Rng, who: &str) {
    let mut at = rng.below(REACH as u64 / 2) as usize;
    let mut buffers = Vec::new();
    for _ in 0..rng.below(9) {
        let n = rng.length(9000);
        buffers.push((at, vec![0xEE; n]));
        at += n + rng.below(3) as usize * rng.length(9000);
    }
    let mut ranges: Vec<ReadRange<'_>> =
        buffers.iter_mut().map(|(at, buf)| ReadRange::new(*at as u64, buf)).collect();
    assert_eq!(s.read_ranges(&mut ranges), Ok(()), "{who}");
    for range in ranges {
        let (from, to) = (range.at as usize, range.at as usize + range.buf.len());
        let expected = &model[from.min(model.len())..to.min(model.len())];
        assert_eq!(range.got, expected.len(), "{who}: {from}..{to}");
        assert!(range.buf[..range.got] == *expected, "{who}: {from}..{to}");
    }
}

fn put(model: &mut Vec<u8>, at: usize, data: &[u8]) {
    if !data.is_empty() {
        model.resize(model.len().max(at + data.len()), 0);
        model[at..at + data.len()].copy_from_slice(data);
    }
}

fn random_operations(s: &dyn Storage, seed: u64) {
    let who = format!("{} seed {seed}", name(s));
    let mut rng = Rng::new(seed);
    let mut model = Vec::new();
    for i in 0..250 {
        step(s, &mut model, &mut rng, &format!("{who} step {i}"));
    }
    assert!(contents(s) == model, "{who}: contents at the end");
    assert_eq!(s.sync(), Ok(()), "{who}");
    assert_eq!(s.invalidate(), Ok(()), "{who}");
    assert!(contents(s) == model, "{who}: contents after sync");
}

/// All bytes, by one read.
///
/// # Panics
/// If it cannot be read.
#[must_use]
pub fn contents(s: &dyn Storage) -> Vec<u8> {
    let len = s.len().unwrap_or_else(|why| panic!("{}: {why}", name(s)));
    let mut bytes = vec![0x55; len as usize];
    assert_eq!(s.read_at(0, &mut bytes), Ok(bytes.len()), "{}", name(s));
    bytes
}

/// `n_threads` threads write stripes of `stripe` bytes, every one its own, in an order of its own,
/// alone and several at once, some barriers between; all must land.
fn disjoint_writes(s: &Arc<dyn Storage>, n_threads: usize, stripe: usize) {
    let n_stripes = (300_000 / stripe).min(2400) / n_threads * n_threads;
    let byte = |i: usize| (i % 251) as u8 + 1;
    std::thread::scope(|scope| {
        for thread in 0..n_threads {
            scope.spawn(move || {
                let mut rng = Rng::new(thread as u64);
                let mut mine: Vec<usize> = (thread..n_stripes).step_by(n_threads).collect();
                for i in (1..mine.len()).rev() {
                    mine.swap(i, rng.below(i as u64 + 1) as usize);
                }
                for (n, two) in mine.chunks(2).enumerate() {
                    let data: Vec<Vec<u8>> = two.iter().map(|i| vec![byte(*i); stripe]).collect();
                    let ranges: Vec<WriteRange<'_>> = two
                        .iter()
                        .zip(&data)
                        .map(|(i, data)| WriteRange { at: (i * stripe) as u64, data })
                        .collect();
                    if n % 3 == 0 {
                        s.write_ranges(&ranges).unwrap();
                    } else {
                        ranges.iter().for_each(|r| s.write_at(r.at, r.data).unwrap());
                    }
                    let mut buf = vec![0; stripe];
                    let got = s.read_at((two[0] * stripe) as u64, &mut buf);
                    assert_eq!(got, Ok(stripe), "{}", name(&**s));
                    assert!(buf == data[0], "{}: stripe {} just written", name(&**s), two[0]);
                    match rng.below(40) {
                        0 => s.barrier().unwrap(),
                        1 => s.invalidate().unwrap(),
                        _ => {}
                    }
                }
            });
        }
    });
    let who = name(&**s);
    for pass in ["before", "after"] {
        let bytes = contents(&**s);
        assert_eq!(bytes.len(), n_stripes * stripe, "{who} {pass} sync");
        for (i, got) in bytes.chunks(stripe).enumerate() {
            assert!(got.iter().all(|b| *b == byte(i)), "{who}: stripe {i} {pass} sync");
        }
        s.sync().unwrap();
        s.invalidate().unwrap();
    }
}

/// Readers always see, at each place, a value that was written there, and never an older one than
/// before; the writer writes large and small in turn.
fn readers_beside_a_writer(s: &Arc<dyn Storage>) {
    const WORDS: usize = 24_000;
    let who = name(&**s);
    let whole = |n: u32| n.to_le_bytes().repeat(WORDS);
    s.write_at(0, &whole(0)).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let load = || done.load(std::sync::atomic::Ordering::Acquire);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let who = &who;
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                let place = rng.below(WORDS as u64) * 4;
                let mut last = 0;
                while !load() {
                    let mut word = [0; 4];
                    assert_eq!(s.read_at(place, &mut word), Ok(4), "{who}");
                    let value = u32::from_le_bytes(word);
                    assert!(value >= last, "{who}: {last} became {value}");
                    last = value;
                }
            });
        }
        for n in 1..60_u32 {
            if n % 2 == 0 {
                s.write_at(0, &whole(n)).unwrap();
            } else {
                for i in (0..WORDS).step_by(16) {
                    s.write_at(i as u64 * 4, &n.to_le_bytes().repeat(16)).unwrap();
                }
            }
        }
        done.store(true, std::sync::atomic::Ordering::Release);
    });
    assert!(contents(&**s) == whole(59), "{who}");
}
