//! What puts cost beside what they are made of, for `optimization-notes.md`.
//!
//!     cargo run --release --example write_speed [FOLDER [single|filtered|unfiltered|records]]
//!
//! Each figure is the elapsed time as a multiple of a limit measured in turn with it, and in
//! brackets the same of the processor time of all threads, summed over the rounds. The limit of filtered arrays is the
//! codec on all cores, each chunk once, from packed memory to nowhere; that of unfiltered ones is
//! converting into a block and writing that, over and over.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use zonda_chunk::filter::{ChunkShape, FilterBuffers, Pipeline};
use zonda_chunk::{
    Allocate, ArrayId, ArrayShape, ChunkAt, ChunkTable, ChunkWriter, ElementEncoding, Engine,
    FilterSpec, NewArray, TableError, WriteTable,
};
use zonda_convert::{ByteOrder, Encoder, RangeRule};
use zonda_model::{ExtType, Hyperslab, MemType};
use zonda_storage::{Create, Storage, StorageOptions};

#[derive(Debug, Default)]
struct Table(Mutex<BTreeMap<Vec<u64>, ChunkAt>>);

impl ChunkTable for Table {
    fn locate(
        &self,
        first: &[u64],
        last: &[u64],
        found: &mut dyn FnMut(&[u64], ChunkAt),
    ) -> Result<(), TableError> {
        let chunks = self.0.lock().expect("no panics");
        for (key, at) in chunks.range(first.to_vec()..=last.to_vec()) {
            if key.iter().zip(first).zip(last).all(|((k, a), b)| (a..=b).contains(&k)) {
                found(key, *at);
            }
        }
        Ok(())
    }
}

impl WriteTable for Table {
    fn insert(&self, key: &[u64], at: ChunkAt) -> Result<Option<ChunkAt>, TableError> {
        Ok(self.0.lock().expect("no panics").insert(key.to_vec(), at))
    }
}

struct Space(u64);

impl Allocate for Space {
    fn allocate(&mut self, len: u64) -> Result<u64, TableError> {
        let at = self.0;
        self.0 += len.next_multiple_of(8);
        Ok(at)
    }

    fn free(&mut self, _: u64, _: u64) {}
}

struct File {
    writer: ChunkWriter,
    storage: Arc<dyn Storage>,
    id: ArrayId,
    space: Space,
    path: PathBuf,
    pipeline: Arc<Pipeline>,
}

fn storage(folder: &Path) -> (Arc<dyn Storage>, PathBuf) {
    let path = folder.join(format!("write-speed-{}.bin", std::process::id()));
    let options = StorageOptions { create: Create::Truncate, ..StorageOptions::default() };
    (zonda_storage::open(&path, &options).expect("a folder to write to"), path)
}

impl File {
    fn new(folder: &Path, chunk: &[u64], filters: &[(u32, u32)], fixed: &[Option<u64>]) -> File {
        let specs: Vec<_> = filters
            .iter()
            .map(|&(id, param)| {
                let (name, params) = (String::new(), vec![param]);
                FilterSpec { id, optional: false, name, params }
            })
            .collect();
        let shape = ChunkShape { dims: chunk.to_vec(), elem_size: 4 };
        let pipeline = Arc::new(Pipeline::new(&specs, shape, &|_| None));
        let (storage, path) = storage(folder);
        let mut writer = ChunkWriter::new(&Engine::process(), storage.clone(), 256 << 20);
        let id = writer.add(NewArray {
            table: Arc::new(Table::default()),
            filters: pipeline.clone(),
            shape: ArrayShape { chunk_dims: chunk.to_vec(), elem_size: 4 },
            fill: Box::default(),
            fixed: fixed.to_vec(),
            unfiltered_edges: None,
            always_fresh: false,
        });
        let id = id.expect("a shape");
        File { writer, storage, id, space: Space(512), path, pipeline }
    }

    fn put(
        &mut self,
        extent: &[u64],
        start: &[usize],
        count: &[usize],
        how: ElementEncoding<'_>,
        src: &[u8],
    ) {
        let slab = Hyperslab { start, count, stride: None };
        let put = self.writer.put(self.id, extent, &slab, how, src, &mut self.space);
        let _ = put.expect("puts");
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

const SIDE: usize = 256;
const EXTENT: [u64; 3] = [SIDE as u64; 3];

/// Smooth floats with some noise.
fn field() -> Vec<f32> {
    let mut seed = 1u32;
    (0..SIDE * SIDE * SIDE)
        .map(|i| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (seed >> 22) as f32 / 1024.0;
            let (z, y, x) = (i / SIDE / SIDE, i / SIDE % SIDE, i % SIDE);
            let value = (x as f32 * 0.02 + y as f32 * 0.01 + z as f32 * 0.03).sin() * 20.0 + 280.0;
            ((value + noise * 0.3) * 64.0).round()
        })
        .collect()
}

fn main() {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let only = std::env::args().nth(2);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wanted("single") {
        single(&folder);
    }
    let field = field();
    let floats: Vec<u8> = field.iter().flat_map(|x| x.to_ne_bytes()).collect();
    if wanted("filtered") {
        filtered(&folder, &floats);
    }
    if wanted("records") {
        records(&folder, &floats);
    }
    if wanted("unfiltered") {
        unfiltered(&folder, &floats, &field);
    }
}

fn encoder(mem: MemType, order: ByteOrder) -> Encoder {
    Encoder::new(ExtType::Float, order, mem, RangeRule::Strict).expect("numbers")
}

fn single(folder: &Path) {
    let encode = ElementEncoding::Convert(encoder(MemType::F64, ByteOrder::Little));
    let per_put = |chunk: &[u64], at: &dyn Fn(usize) -> [usize; 3]| {
        let runs = (0..7).map(|_| {
            let mut file = File::new(folder, chunk, &[(2, 4), (1, 4)], &[None; 3]);
            // The chunks wait already.
            let zeros = vec![0; 40 * 120 * 8];
            file.put(&[50, 120, 200], &[0, 0, 0], &[40, 120, 1], encode, &zeros);
            file.put(&[50, 120, 200], &[0, 0, 100], &[40, 120, 1], encode, &zeros);
            let begin = thread_time();
            let n = 400_000;
            for i in 0..n {
                file.put(&[50, 120, 200], &at(i), &[1; 3], encode, &1.5f64.to_ne_bytes());
            }
            (thread_time() - begin) / n as u32
        });
        median(runs.collect()).as_nanos()
    };
    let same = per_put(&[50, 200, 300], &|i| [i % 10, i / 10 % 60, i % 50]);
    let other = per_put(&[50, 200, 100], &|i| [i % 10, i / 10 % 60, i % 2 * 100 + i / 2 % 50]);
    println!("one element, same chunk          {same:6} ns");
    println!("one element, two chunks in turn  {other:6} ns");
}

/// Each chunk once through the codec, on all cores.
fn codec(pipeline: &Pipeline, chunks: &[u8], bytes: usize) -> (Duration, Duration) {
    let begin = (Instant::now(), process_time());
    let next = AtomicUsize::new(0);
    let chunks: Vec<&[u8]> = chunks.chunks_exact(bytes).collect();
    std::thread::scope(|scope| {
        for _ in 0..Engine::process().threads() {
            scope.spawn(|| {
                let (mut scratch, mut out) = (FilterBuffers::default(), Vec::new());
                while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let _ = pipeline.encode(chunk, &mut scratch, &mut out).expect("encodes");
                    black_box(&out);
                }
            });
        }
    });
    (begin.0.elapsed(), process_time() - begin.1)
}

/// Calls `row` for the field's rows in the order of chunks.
fn rows<'a>(floats: &'a [u8], chunk: &[u64], mut row: impl FnMut(&'a [u8])) {
    let [nz, ny, nx] = [chunk[0], chunk[1], chunk[2]].map(|n| n as usize);
    for z in (0..SIDE).step_by(nz) {
        for y in (0..SIDE).step_by(ny) {
            for x in (0..SIDE).step_by(nx) {
                for i in 0..nz * ny {
                    let at = ((z + i / ny) * SIDE + y + i % ny) * SIDE + x;
                    row(&floats[at * 4..][..nx * 4]);
                }
            }
        }
    }
}

/// The field's chunks one behind the other.
fn packed(floats: &[u8], chunk: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(floats.len());
    rows(floats, chunk, |row| out.extend_from_slice(row));
    out
}

/// What else a put is made of, on one thread: gathering its chunks, and writing `bytes`.
fn parts(folder: &Path, floats: &[u8], chunk: &[u64], bytes: usize) -> String {
    let mut block = vec![1; chunk.iter().product::<u64>() as usize * 4];
    let gathers = (0..5).map(|_| {
        let (begin, mut at) = (thread_time(), 0);
        rows(floats, chunk, |row| {
            block[at..][..row.len()].copy_from_slice(row);
            at = (at + row.len()) % block.len();
        });
        black_box(&block);
        thread_time() - begin
    });
    let gather = median(gathers.collect());
    let writes = (0..5).map(|_| {
        let (storage, path) = storage(folder);
        let begin = thread_time();
        for (i, data) in floats[..bytes].chunks(1 << 20).enumerate() {
            storage.write_at(512 + ((i as u64) << 20), data).expect("writes");
        }
        let taken = thread_time() - begin;
        let _ = std::fs::remove_file(path);
        taken
    });
    format!("gathering {gather:?}, writing {:?}", median(writes.collect()))
}

/// Runs both in turn and prints the medians' ratio.
fn compare(
    name: &str,
    rounds: usize,
    mut limit: impl FnMut() -> (Duration, Duration),
    mut put: impl FnMut() -> (Duration, Duration),
) {
    let (mut limits, mut puts) = (vec![], vec![]);
    // The processor's steps are too long for one round.
    let (mut limit_processor, mut put_processor) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..rounds {
        let (wall, processor) = limit();
        limits.push(wall);
        limit_processor += processor;
        let (wall, processor) = put();
        puts.push(wall);
        put_processor += processor;
    }
    let wall = median(limits);
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    println!(
        "{name}: {:.2} ({:.2}) x {wall:?}",
        ratio(median(puts), wall),
        ratio(put_processor, limit_processor)
    );
}

const FILTERS: [(&str, &[(u32, u32)]); 3] = [
    ("deflate 1", &[(2, 4), (1, 1)]),
    ("deflate 4", &[(2, 4), (1, 4)]),
    ("zstd 3", &[(2, 4), (32_015, 3)]),
];

fn filtered(folder: &Path, floats: &[u8]) {
    for (name, filters) in FILTERS {
        for chunk in [[64, 64, 64], [4, 256, 256], [16, 32, 32], [1, 64, 256]] {
            let bytes = chunk.iter().product::<u64>() as usize * 4;
            let chunks = packed(floats, &chunk);
            let pipeline = File::new(folder, &chunk, filters, &EXTENT.map(Some)).pipeline.clone();
            let mut stored = 0;
            let put = || {
                let mut file = File::new(folder, &chunk, filters, &EXTENT.map(Some));
                let begin = (Instant::now(), process_time());
                file.put(
                    &EXTENT,
                    &[0; 3],
                    &[SIDE; 3],
                    ElementEncoding::Raw { elem_size: 4 },
                    floats,
                );
                stored = file.space.0 as usize;
                (begin.0.elapsed(), process_time() - begin.1)
            };
            let name = format!("{name}, whole array, chunks {chunk:?} ({} KiB)", bytes >> 10);
            compare(&name, 5, || codec(&pipeline, &chunks, bytes), put);
            println!("    {}", parts(folder, floats, &chunk, stored));
        }
    }
}

/// Layers one by one.
fn records(folder: &Path, floats: &[u8]) {
    for chunk in [[64, 64, 64], [16, 32, 32], [1, 256, 256]] {
        let (name, filters) = FILTERS[1];
        let bytes = chunk.iter().product::<u64>() as usize * 4;
        let chunks = packed(floats, &chunk);
        let fixed = [None, Some(EXTENT[1]), Some(EXTENT[2])];
        let pipeline = File::new(folder, &chunk, filters, &fixed).pipeline.clone();
        let put = || {
            let mut file = File::new(folder, &chunk, filters, &fixed);
            let begin = (Instant::now(), process_time());
            for (z, layer) in floats.chunks_exact(SIDE * SIDE * 4).enumerate() {
                let extent = [z as u64 + 1, EXTENT[1], EXTENT[2]];
                let count = [1, SIDE, SIDE];
                file.put(&extent, &[z, 0, 0], &count, ElementEncoding::Raw { elem_size: 4 }, layer);
            }
            file.writer.flush(&mut file.space).expect("flushes");
            (begin.0.elapsed(), process_time() - begin.1)
        };
        let name = format!("{name}, layers, chunks {chunk:?} ({} KiB)", bytes >> 10);
        compare(&name, 5, || codec(&pipeline, &chunks, bytes), put);
    }
}

fn unfiltered(folder: &Path, floats: &[u8], field: &[f32]) {
    let doubles: Vec<u8> = field.iter().flat_map(|&x| f64::from(x).to_ne_bytes()).collect();
    let copy = encoder(MemType::F32, ByteOrder::NATIVE);
    let convert = encoder(MemType::F64, ByteOrder::Big);
    for chunk in [[4, 256, 256], [64, 64, 64], [16, 32, 32]] {
        for (name, encode, src) in [("copy", copy, floats), ("convert", convert, &doubles[..])] {
            let limit = || {
                let (storage, path) = storage(folder);
                let mut block = vec![0; 1 << 20];
                let begin = (Instant::now(), process_time());
                for (i, part) in src.chunks(encode.mem_size() << 18).enumerate() {
                    let data = match encode.is_copy() {
                        true => part,
                        false => {
                            let _ = encode.encode(part, &mut block);
                            &block
                        }
                    };
                    storage.write_at(512 + ((i as u64) << 20), data).expect("writes");
                }
                let taken = (begin.0.elapsed(), process_time() - begin.1);
                let _ = std::fs::remove_file(path);
                taken
            };
            let put = || {
                let mut file = File::new(folder, &chunk, &[], &EXTENT.map(Some));
                let begin = (Instant::now(), process_time());
                file.put(&EXTENT, &[0; 3], &[SIDE; 3], ElementEncoding::Convert(encode), src);
                let taken = (begin.0.elapsed(), process_time() - begin.1);
                black_box(&file.storage);
                taken
            };
            compare(&format!("unfiltered, {name}, chunks {chunk:?}"), 9, limit, put);
        }
        println!("    {}", parts(folder, floats, &chunk, floats.len()));
    }
}
