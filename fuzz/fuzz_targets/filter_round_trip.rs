//! Any bytes through two built-in filters and back; then what they stored, damaged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zonda_chunk::FilterSpec;
use zonda_chunk::filter::{ChunkShape, Pipeline, FilterBuffers};

/// Filters that lose nothing, with parameters.
const FILTERS: [(u32, &[u32]); 14] = [
    (1, &[1]),
    (1, &[6]),
    (2, &[4]),
    (3, &[]),
    (307, &[1]),
    (32000, &[4, 0x105, 0]),
    (32001, &[2, 2, 4, 0, 5, 1, 0]),
    (32001, &[2, 2, 4, 0, 9, 2, 1]),
    (32001, &[2, 2, 4, 0, 1, 0, 5]),
    (32004, &[0]),
    (32008, &[0, 4, 4, 0, 2]),
    (32008, &[0, 4, 4, 0, 0]),
    (32008, &[0, 4, 4, 0, 3, 3]),
    (32015, &[3]),
];

fuzz_target!(|bytes: &[u8]| {
    let [which, second, raw @ ..] = bytes else { return };
    let raw = &raw[..raw.len() / 4 * 4];
    if raw.is_empty() {
        return;
    }
    let spec = |which: u8| {
        let (id, params) = FILTERS[usize::from(which) % FILTERS.len()];
        FilterSpec { id, optional: true, name: String::new(), params: params.to_vec() }
    };
    let shape = ChunkShape { dims: vec![raw.len() as u64 / 4], elem_size: 4 };
    let pipeline = Pipeline::new(&[spec(*which), spec(*second)], shape, &|_| None);
    let (mut stored, mut back) = (Vec::new(), vec![0; raw.len()]);
    let mut scratch = FilterBuffers::default();
    let mask = pipeline.encode(raw, &mut scratch, &mut stored).expect("anything can be filtered");
    pipeline.decode(&stored, mask, &mut scratch, &mut back).expect("and comes back");
    assert_eq!(back, raw);
    let at = usize::from(u16::from_le_bytes([raw[0], raw[1]])) % stored.len();
    stored[at] ^= raw[2] | 1;
    let _ = pipeline.decode(&stored, mask, &mut scratch, &mut back);
    stored.truncate(at);
    let _ = pipeline.decode(&stored, mask, &mut scratch, &mut back);
});
