//! What a thread compressed before does not show in what it compresses next: files are the same for any number of threads.

use zonda_chunk::FilterSpec;
use zonda_chunk::filter::{ChunkShape, FilterBuffers, Pipeline};

fn raw(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(i) / 977 % 251 / 3) as u8).collect()
}

/// Bytes that a filter makes of a chunk.
fn encoded(id: u32, params: &[u32], raw: &[u8]) -> Vec<u8> {
    let spec = FilterSpec { id, optional: false, name: String::new(), params: params.to_vec() };
    let shape = ChunkShape { dims: vec![raw.len() as u64], elem_size: 1 };
    let pipeline = Pipeline::new(&[spec], shape, &|_| None);
    let mut out = Vec::new();
    pipeline.encode(raw, &mut FilterBuffers::default(), &mut out).expect("encodes");
    out
}

#[test]
fn bytes_depend_on_the_chunk_alone() {
    // Deflate, LZ4, Zstandard, LZF, bzip2.
    let filters: [(u32, &[u32]); 5] =
        [(1, &[1]), (32004, &[0]), (32015, &[3]), (32000, &[4, 0, 0]), (307, &[9])];
    for (id, params) in filters {
        let alone = |len: usize| {
            std::thread::spawn(move || encoded(id, params, &raw(len))).join().expect("no panic")
        };
        let (short, long) = (alone(40_000), alone(200_000));
        for (len, expected) in [(200_000, &long), (40_000, &short), (200_000, &long)] {
            assert!(encoded(id, params, &raw(len)) == *expected, "filter {id}, {len} bytes");
        }
    }
}
