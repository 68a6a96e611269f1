//! What writing compressed chunks costs with nothing around it: each chunk encoded by this crate's
//! filters and written, on all cores. A limit of `bench/writes.py`; `bench/engines/encode.c` is the
//! same with libdeflate and libzstd.
//!
//!     encode_limit --raw FILE --file FILE --chunk-bytes N --elem N
//!                  [--shuffle 1] [--deflate LEVEL] [--zstd LEVEL] [--threads N]
//!
//! `--raw` holds the chunks' values, chunk after chunk, and is in memory before the clock starts;
//! `--file` is written. Afterwards what was written is decoded and compared. Prints one JSON line.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use zonda_chunk::FilterSpec;
use zonda_chunk::filter::{ChunkShape, FilterBuffers, Pipeline};

/// Where a chunk is in the file: its number, address, stored bytes and filter mask.
type Place = (usize, u64, usize, u32);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options: HashMap<&str, &str> =
        words.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
    let number = |name: &str, otherwise: usize| {
        options.get(name).map_or(otherwise, |n| n.parse().expect("a number"))
    };
    let raw = std::fs::read(options["--raw"]).expect("a readable --raw");
    let (chunk_bytes, elem) = (number("--chunk-bytes", 0), number("--elem", 4));
    assert!(raw.len().is_multiple_of(chunk_bytes) && chunk_bytes > 0, "--raw is not whole chunks");
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = number("--threads", cores);

    let filter = |id, param: usize| FilterSpec {
        id,
        optional: false,
        name: String::new(),
        params: vec![u32::try_from(param).expect("a parameter")],
    };
    let filters: Vec<FilterSpec> = [("--shuffle", 2), ("--deflate", 1), ("--zstd", 32015)]
        .into_iter()
        .map(|(name, id)| (id, number(name, 0)))
        .filter(|&(_, given)| given > 0)
        .map(|(id, given)| filter(id, if id == 2 { elem } else { given }))
        .collect();
    let shape = ChunkShape { dims: vec![(chunk_bytes / elem) as u64], elem_size: elem };
    let pipeline = Pipeline::new(&filters, shape, &|_| None);

    let begin = Instant::now();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(options["--file"])
        .expect("a --file that can be written");
    let (next, end) = (AtomicUsize::new(0), AtomicU64::new(0));
    let work = || {
        let (mut places, mut scratch) = (Vec::<Place>::new(), FilterBuffers::default());
        let mut stored = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = raw.chunks_exact(chunk_bytes).nth(number) else { return places };
            let mask = pipeline.encode(chunk, &mut scratch, &mut stored).expect("encodes");
            let at = end.fetch_add(stored.len() as u64, Ordering::Relaxed);
            file.write_all_at(&stored, at).expect("writes");
            places.push((number, at, stored.len(), mask));
        }
    };
    let places: Vec<Place> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("a thread's end")).collect()
    });
    let seconds = begin.elapsed().as_secs_f64();

    let (mut out, mut scratch) = (vec![0; chunk_bytes], FilterBuffers::default());
    for &(number, at, len, mask) in &places {
        let mut stored = vec![0; len];
        file.read_exact_at(&mut stored, at).expect("reads");
        pipeline.decode(&stored, mask, &mut scratch, &mut out).expect("decodes");
        assert!(out == raw[number * chunk_bytes..][..chunk_bytes], "other values written");
    }
    assert_eq!(places.len(), raw.len() / chunk_bytes, "chunks written");
    println!(
        "{{\"workload\": \"codec\", \"params\": {{\"chunks\": {}, \"stored\": {}}}, \"seconds\": \
         {seconds:.9}, \"bytes\": {}, \"calls\": 1, \"digest\": null}}",
        places.len(),
        end.into_inner(),
        raw.len()
    );
}
