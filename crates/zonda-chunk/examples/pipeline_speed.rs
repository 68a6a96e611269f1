//! What requests cost beside what they are made of, for `optimization-notes.md`.
//!
//!     cargo run --release --example pipeline_speed [FOLDER [single|unfiltered|arrays [PATTERN]]]
//!
//! Single calls in nanoseconds of processor time. Arrays as multiples of the processor time that
//! one thread takes to read and decode each chunk once: elapsed, and in brackets processor time of
//! all threads.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zonda_chunk::filter::{ChunkShape, FilterBuffers, Pipeline};
use zonda_chunk::{
    ArrayShape, ChunkAt, ChunkTable, ChunkedArray, ContiguousArray, DataSegment, Decode, Engine,
    FilterSpec, SegmentBytes, TableError,
};
use zonda_convert::{ByteOrder, Decoder, RangeRule};
use zonda_model::{ExtType, Hyperslab, MemType};
use zonda_storage::{Storage, StorageOptions};

/// All chunks of a grid, row-major.
#[derive(Debug)]
struct Table {
    grid: Vec<u64>,
    places: Vec<ChunkAt>,
}

impl ChunkTable for Table {
    fn locate(
        &self,
        first: &[u64],
        last: &[u64],
        found: &mut dyn FnMut(&[u64], ChunkAt),
    ) -> Result<(), TableError> {
        let mut at = first.to_vec();
        loop {
            let index = at.iter().zip(&self.grid).fold(0, |sum, (i, n)| sum * n + i);
            found(&at, self.places[index as usize]);
            let Some(d) = (0..at.len()).rev().find(|&d| at[d] < last[d]) else { return Ok(()) };
            at[d] += 1;
            at[d + 1..].copy_from_slice(&first[d + 1..]);
        }
    }
}

struct File {
    storage: Arc<dyn Storage>,
    table: Arc<Table>,
    filters: Arc<Pipeline>,
    extent: Vec<u64>,
    chunk: Vec<u64>,
    path: PathBuf,
}

impl File {
    /// Chunks of smooth floats.
    fn new(folder: &std::path::Path, extent: &[u64], chunk: &[u64], filters: &[u32]) -> File {
        let specs: Vec<_> = filters
            .iter()
            .map(|&id| {
                let params = vec![4];
                FilterSpec { id, optional: false, name: String::new(), params }
            })
            .collect();
        let shape = ChunkShape { dims: chunk.to_vec(), elem_size: 4 };
        let n = shape.elems().expect("fits");
        let pipeline = Pipeline::new(&specs, shape, &|_| None);
        let grid: Vec<u64> = extent.iter().zip(chunk).map(|(e, c)| e.div_ceil(*c)).collect();
        let (mut bytes, mut places, mut seed) = (vec![0u8; 512], Vec::new(), 1u32);
        let mut scratch = FilterBuffers::default();
        for key in 0..grid.iter().product::<u64>() {
            let mut raw = Vec::with_capacity(n * 4);
            for i in 0..n {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let noise = (seed >> 22) as f32 / 1024.0;
                let value = ((i as f32) * 0.01 + key as f32).sin() * 20.0 + 280.0;
                raw.extend_from_slice(&((value + noise * 0.3) * 64.0).round().to_le_bytes());
            }
            let mut stored = Vec::new();
            let mask = pipeline.encode(&raw, &mut scratch, &mut stored).expect("encodes");
            places.push(ChunkAt { at: bytes.len() as u64, len: stored.len() as u64, mask });
            bytes.extend_from_slice(&stored);
        }
        let path = folder.join(format!("pipeline-speed-{}.bin", std::process::id()));
        std::fs::write(&path, &bytes).expect("a folder to write to");
        let storage = zonda_storage::open(&path, &StorageOptions::default()).expect("opens");

        File {
            storage,
            table: Arc::new(Table { grid, places }),
            filters: Arc::new(pipeline),
            extent: extent.to_vec(),
            chunk: chunk.to_vec(),
            path,
        }
    }

    fn array(&self, engine: &Arc<Engine>) -> ChunkedArray {
        ChunkedArray::new_in(
            engine,
            self.storage.clone(),
            self.table.clone(),
            self.filters.clone(),
            ArrayShape { chunk_dims: self.chunk.clone(), elem_size: 4 },
            Box::default(),
            false,
        )
    }

    /// Reading and decoding each chunk once, on one thread.
    fn decode_once(&self) -> Duration {
        let mut stored = vec![0; 64 << 20];
        let mut out = vec![0; self.chunk.iter().product::<u64>() as usize * 4];
        let mut scratch = FilterBuffers::default();
        let begin = thread_time();
        for place in &self.table.places {
            let stored = &mut stored[..place.len as usize];
            self.storage.read_at(place.at, stored).expect("reads");
            self.filters.decode(stored, place.mask, &mut scratch, &mut out).expect("decodes");
            black_box(&out);
        }
        thread_time() - begin
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Time that this thread has had a processor, which others' work on the machine does not change.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0))
}

/// The same for all threads of the process, in steps of 10 ms.
fn process_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<i64> = text.split(' ').filter_map(|field| field.parse().ok()).collect();
    // utime and stime; name and state are no numbers.
    Duration::from_millis(10 * (fields[11] + fields[12]).unsigned_abs())
}

fn median(mut runs: Vec<Duration>) -> Duration {
    runs.sort();
    runs[runs.len() / 2]
}

fn slabs(extent: &[u64], count: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for (n, step) in extent.iter().zip(count) {
        let starts = (0..*n as usize).step_by(*step);
        all = all
            .iter()
            .flat_map(|start| starts.clone().map(|i| [&start[..], &[i]].concat()))
            .collect();
    }
    all
}

fn main() {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let only = std::env::args().nth(2);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wanted("single") {
        single(&folder);
    }
    if wanted("unfiltered") {
        unfiltered(&folder);
    }
    if wanted("arrays") {
        arrays(&folder);
    }
}

fn per_call(n: usize, mut call: impl FnMut(usize)) -> f64 {
    let runs = (0..7).map(|_| {
        let begin = thread_time();
        (0..n).for_each(&mut call);
        thread_time() - begin
    });
    median(runs.collect()).as_secs_f64() * 1e9 / n as f64
}

fn single(folder: &std::path::Path) {
    let decode = Decoder::new(ExtType::Float, ByteOrder::Little, MemType::F64, RangeRule::Strict)
        .map(Decode::Convert)
        .expect("numbers");
    let file = File::new(folder, &[40, 120, 100], &[10, 60, 50], &[2, 1]);
    let array = file.array(&Engine::new(2, 1 << 30));
    let mut out = [0; 8];
    let get = |start: [usize; 3], count: [usize; 3], out: &mut [u8]| {
        let slab = Hyperslab { start: &start, count: &count, stride: None };
        let _ = black_box(array.read(&file.extent, &slab, decode, out)).expect("reads");
    };
    let same = per_call(200_000, |i| get([i % 10, i / 10 % 60, i % 50], [1; 3], &mut out));
    let other =
        per_call(200_000, |i| get([i * 7 % 40, i * 11 % 120, i * 13 % 100], [1; 3], &mut out));
    let mut row = [0; 8 * 120];
    let plan = per_call(50_000, |i| get([i % 40, 0, i % 100], [1, 120, 1], &mut row));
    println!("one element, cached, same chunk    {same:6.0} ns");
    println!("one element, cached, other chunks  {other:6.0} ns");
    println!("120 elements through 2 chunks      {plan:6.0} ns");
    let bytes =
        SegmentBytes::Stored { storage: file.storage.clone(), at: 512, zeros_behind: false };
    let linear = ContiguousArray::new(vec![DataSegment { len: 4000, bytes }], 4, Box::default());
    let one = per_call(200_000, |i| {
        let slab = Hyperslab { start: &[i % 1000], count: &[1], stride: None };
        let _ = black_box(linear.read(&[1000], &slab, decode, &mut out)).expect("reads");
    });
    println!("one element, contiguous            {one:6.0} ns");
}

fn unfiltered(folder: &std::path::Path) {
    let file = File::new(folder, &[2560, 5120], &[640, 640], &[]);
    let (mut out, mut plain) = (vec![1; 2560 * 5120 * 4], vec![1; 2560 * 5120 * 4]);
    let array = file.array(&Engine::new(2, 1 << 30));
    let slab = Hyperslab { start: &[0, 0], count: &[2560, 5120], stride: None };
    let (mut reads, mut preads) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        let begin = Instant::now();
        file.storage.read_at(512, &mut plain).expect("reads");
        preads.push(begin.elapsed());
        let begin = Instant::now();
        let read = array.read(&file.extent, &slab, Decode::Raw { elem_size: 4 }, &mut out);
        let _ = read.expect("reads");
        reads.push(begin.elapsed());
    }
    let (read, pread) = (median(reads), median(preads));
    let ratio = read.as_secs_f64() / pread.as_secs_f64();
    println!("unfiltered 640x640 chunks: {read:?}, {ratio:.2} x one pread ({pread:?})");
}

fn arrays(folder: &std::path::Path) {
    let extent = [256, 256, 256];
    for chunk in [[64, 64, 64], [16, 128, 128], [1, 256, 256], [128, 128, 128]] {
        let file = File::new(folder, &extent, &chunk, &[2, 1]);
        let once = median((0..3).map(|_| file.decode_once()).collect());
        print!("chunks {chunk:?}: once {once:?};");
        for (name, count) in [
            ("whole", [256, 256, 256]),
            ("layers", [1, 256, 256]),
            ("rows", [256, 1, 256]),
            ("columns", [256, 256, 1]),
            ("series", [256, 1, 1]),
        ] {
            if std::env::args().nth(3).is_some_and(|only| only != name) {
                continue;
            }
            let mut out = vec![1; count.iter().product::<usize>() * 4];
            let runs = (0..3).map(|_| {
                let array = file.array(&Engine::process());
                let begin = (Instant::now(), process_time());
                for start in slabs(&extent, &count) {
                    let slab = Hyperslab { start: &start, count: &count, stride: None };
                    let decode = Decode::Raw { elem_size: 4 };
                    let _ = array.read(&extent, &slab, decode, &mut out).expect("reads");
                }
                (begin.0.elapsed(), process_time() - begin.1)
            });
            let (wall, processor): (Vec<_>, Vec<_>) = runs.unzip();
            let ratio = |runs| median(runs).as_secs_f64() / once.as_secs_f64();
            print!(" {name} {:.2} ({:.2})", ratio(wall), ratio(processor));
        }
        println!();
    }
}
