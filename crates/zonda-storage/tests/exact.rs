//! No layer writes a byte that it was not given: what lies beside may be another process's by then.
//!
//! A recorder at the bottom knows what each layer was given and compares what comes down. Beside it
//! another process, as it were, changes bytes that nobody here was given: they must be there in the end.

use std::fmt;
use std::sync::{Arc, Mutex};
use zonda_storage::backend::Memory;
use zonda_storage::{Advice, Spec, Storage, StorageError, StorageOptions, WriteRange, open};
use zonda_testkit::{Rng, TempFolder};

/// Every layer that changes what it passes on, alone and stacked, with pages small and large.
const SPECS: [&str; 21] = [
    "cache",
    "cache:1:1",
    "cache:1:4",
    "cache:3:5",
    "cache:4:4",
    "cache:64:2",
    "cache:64:128",
    "cachea:1:4:2",
    "cachea:64:8:4",
    "bufa:1:2",
    "bufa:16:2",
    "eie:4:4:1",
    "cache:29:141,eie.sds:64:4:1",
    "cache:1:3,cache:4:4",
    "cachea:1:8,bufa:4:2",
    "cache,throttle:10G:40us",
    "cache:4:4,direct",
    "direct",
    "mmap",
    "passthrough,count,event:/dev/null",
    "cache:4:4,fault:any:1000000000,throttle:1024G",
];

/// What may be written: a byte of another value than given, or one that was not, is an error.
struct Recorder {
    below: Memory,
    /// For each byte what it was given last, and whether it ever was.
    given: Mutex<Vec<Option<u8>>>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

impl Recorder {
    fn of(bytes: &[u8]) -> Recorder {
        Recorder { below: Memory::from_slice(bytes), given: Mutex::new(vec![None; bytes.len()]) }
    }

    /// The top of the stack is about to be given these bytes.
    fn give(&self, at: usize, data: &[u8]) {
        let mut given = self.given.lock().unwrap();
        let end = given.len().max(at + data.len());
        given.resize(end, None);
        for (place, byte) in given[at..].iter_mut().zip(data) {
            *place = Some(*byte);
        }
    }

    fn check(&self, at: u64, data: &[u8]) {
        let given = self.given.lock().unwrap();
        for (at, byte) in (at as usize..).zip(data) {
            // What is older than the last one given to the place may come down before that.
            assert!(given.get(at).is_some_and(Option::is_some), "byte {at} was not given ({byte})");
        }
    }
}

impl Storage for Recorder {
    zonda_storage::forward! { this => this.below; read_at, read_ranges, len, stamp }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.check(at, data);
        self.below.write_at(at, data)
    }
    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        ranges.iter().for_each(|range| self.check(range.at, range.data));
        self.below.write_ranges(ranges)
    }
    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        zonda_storage::fill_by_writes(self, at, len, element)
    }
    fn advise(&self, _: Advice) {}
    fn rest(&self) {}
    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        assert!(len >= self.below.len()?, "cut to {len}, which nobody asked for");
        self.below.set_len(len)
    }
    fn barrier(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn sync(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn invalidate(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("recorder")
    }
}

/// How the pieces of one run are chosen.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// The longest piece, and how far a piece's begin may be from a multiple of `grain`.
    most: u64,
    grain: u64,
    /// Bytes that the pieces are spread over.
    span: u64,
    steps: u64,
}

const SHAPES: [Shape; 6] = [
    // Elements, far apart and side by side.
    Shape { most: 8, grain: 8, span: 300_000, steps: 4000 },
    Shape { most: 8, grain: 16, span: 70_000, steps: 6000 },
    // Odd sizes around borders of blocks and pages.
    Shape { most: 100, grain: 4096, span: 600_000, steps: 1500 },
    Shape { most: 5000, grain: 1024, span: 400_000, steps: 600 },
    // Rows and what is longer than a page.
    Shape { most: 40_000, grain: 512, span: 1 << 20, steps: 200 },
    Shape { most: 300_000, grain: 4096, span: 2 << 20, steps: 60 },
];

/// Of each 64 bytes the upper half is another process's.
fn is_mine(at: u64, period: u64) -> bool {
    at % period < period / 2
}

/// Random calls on `s`; `give` is told of what is put. Only bytes that are ours are put.
fn run(
    s: &dyn Storage,
    shape: Shape,
    rng: &mut Rng,
    mut give: impl FnMut(usize, &[u8]),
    mut beside: impl FnMut(&mut Rng),
) -> Result<(), StorageError> {
    let period = (2 * shape.most).next_power_of_two();
    for step in 0..shape.steps {
        let grains = shape.span / shape.grain;
        let near = rng.below(grains) * shape.grain + rng.below(7);
        let at = (near + shape.grain).saturating_sub(3);
        // To the end of the half that is ours.
        let at = if is_mine(at, period) { at } else { at - at % period + period };
        let left = period / 2 - at % period;
        let len = (1 + rng.below(shape.most)).min(left);
        match rng.below(20) {
            0..=12 => {
                let data = rng.bytes(len as usize);
                give(at as usize, &data);
                s.write_at(at, &data)?;
            }
            13 | 14 => {
                let data = rng.bytes(len as usize);
                give(at as usize, &data);
                let half = data.len() / 2;
                let (a, b) = data.split_at(half);
                let ranges =
                    [WriteRange { at, data: a }, WriteRange { at: at + half as u64, data: b }];
                s.write_ranges(&ranges)?;
            }
            15 => {
                let size = 1 + rng.below(8) as usize;
                let element = rng.bytes(size);
                let data: Vec<u8> = element.iter().copied().cycle().take(len as usize).collect();
                give(at as usize, &data);
                s.fill_at(at, len, &element)?;
            }
            16 | 17 => {
                let mut buf = vec![0; 1 + rng.below(20_000) as usize];
                s.read_at(rng.below(shape.span), &mut buf)?;
            }
            18 => beside(rng),
            _ if step % 7 == 0 => s.barrier()?,
            _ if step % 11 == 0 => s.rest(),
            // Longer, as a format makes its file.
            _ if step % 13 == 0 => s.set_len(s.len()? + rng.below(5000))?,
            _ => s.invalidate()?,
        }
    }
    s.sync()
}

/// Also what was there before, and what others write meanwhile, must not be written.
#[test]
fn no_layer_writes_a_byte_that_it_was_not_given() {
    for spec in SPECS {
        for (n, shape) in SHAPES.into_iter().enumerate() {
            for existing in [0, 150_001, 3 << 20] {
                let rng = &mut Rng::new(n as u64 * 10 + u64::from(existing != 0));
                let recorder = Arc::new(Recorder::of(&rng.bytes(existing)));
                let s = Spec::parse(spec).unwrap().build_on(recorder.clone()).unwrap();
                let period = (2 * shape.most).next_power_of_two();
                let mut theirs: Vec<(u64, Vec<u8>)> = Vec::new();
                let beside = |rng: &mut Rng| {
                    let at = rng.below(shape.span) / period * period + period / 2;
                    let data = rng.bytes((period / 2) as usize);
                    recorder.below.write_at(at, &data).unwrap();
                    theirs.push((at, data));
                };
                let give = |at: usize, data: &[u8]| recorder.give(at, data);
                run(&*s, shape, rng, give, beside).unwrap();
                drop(s);
                let bytes = recorder.below.to_vec().unwrap();
                let note = format!("{spec}, {shape:?} on {existing} bytes");
                for (at, byte) in recorder.given.lock().unwrap().iter().enumerate() {
                    assert!(byte.is_none_or(|byte| bytes[at] == byte), "{note}: byte {at}");
                }
                theirs.reverse();
                let mut seen = std::collections::BTreeSet::new();
                for (at, data) in theirs {
                    let there = &bytes[at as usize..at as usize + data.len()];
                    assert!(!seen.insert(at) || there == data, "{note}: beside at {at}");
                }
            }
        }
    }
}

/// Several handles of one file, each with a stack of its own, put pieces that lie between each other's.
#[test]
fn handles_that_put_disjoint_pieces_lose_none() {
    const HANDLES: u64 = 3;
    let folder = TempFolder::new("exact");
    for (n, spec) in SPECS.iter().enumerate() {
        for (piece, count) in [(8, 6000), (1000, 300), (4096, 100), (5001, 90), (70_000, 12)] {
            for existing in [0, 200_000] {
                let path = folder.file(&format!("{n}.{piece}.{existing}"));
                let before = Rng::new(3).bytes(existing);
                std::fs::write(&path, &before).unwrap();
                let options = StorageOptions {
                    write: true,
                    spec: Some(Spec::parse(spec).unwrap()),
                    ..StorageOptions::default()
                };
                let handles: Vec<_> =
                    (0..HANDLES).map(|_| open(&path, &options).unwrap()).collect();
                let rng = &mut Rng::new(piece);
                let data = rng.bytes((piece * count) as usize);
                let mut order: Vec<u64> = (0..count).collect();
                for i in (1..order.len()).rev() {
                    order.swap(i, rng.below(i as u64 + 1) as usize);
                }
                for (i, number) in order.into_iter().enumerate() {
                    let s = &handles[(number % HANDLES) as usize];
                    let at = number * piece;
                    s.write_at(at, &data[at as usize..(at + piece) as usize]).unwrap();
                    if i % 5 == 0 {
                        let mut buf = [0; 100];
                        s.read_at(rng.below(piece * count), &mut buf).unwrap();
                    }
                }
                // The first to end is the one with the shortest idea of the file.
                handles.iter().for_each(|s| s.sync().unwrap());
                let bytes = std::fs::read(&path).unwrap();
                let end = (piece * count) as usize;
                let lost = (0..end).filter(|at| bytes[*at] != data[*at]).count();
                assert_eq!(lost, 0, "{spec}: pieces of {piece} on {existing} bytes");
                assert!(bytes[end..] == before[end.min(existing)..], "{spec}: behind the pieces");
            }
        }
    }
}

/// To be made longer is no leave to cut what another has added.
#[test]
fn a_longer_length_never_cuts() {
    let folder = TempFolder::new("longer");
    for (n, spec) in SPECS.iter().enumerate() {
        let path = folder.file(&n.to_string());
        std::fs::write(&path, [1; 1000]).unwrap();
        let options = StorageOptions {
            write: true,
            spec: Some(Spec::parse(spec).unwrap()),
            ..StorageOptions::default()
        };
        let [one, other] = [(); 2].map(|()| open(&path, &options).unwrap());
        one.read_at(0, &mut [0; 8]).unwrap();
        other.write_at(50_000, &[2; 9]).unwrap();
        other.sync().unwrap();
        if one.len().unwrap() < 20_000 {
            one.set_len(20_000).unwrap();
        }
        one.write_at(500, &[3]).unwrap();
        one.sync().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!((bytes.len(), &bytes[50_000..], bytes[500]), (50_009, &[2; 9][..], 3), "{spec}");
    }
}
