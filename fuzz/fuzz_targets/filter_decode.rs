//! Any bytes as a chunk under any built-in filter: the first bytes pick the filter, the shape of the
//! chunk and the parameters. What a filter gives back never has another length than the chunk.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zonda_chunk::FilterSpec;
use zonda_chunk::filter::{ChunkShape, Pipeline, FilterBuffers};

const IDS: [u32; 20] = [
    1, 2, 3, 4, 5, 6, 307, 32000, 32001, 32004, 32008, 32013, 32015, 32026, 32022, 32023, 32009,
    32002, 32003, 32017,
];

fuzz_target!(|bytes: &[u8]| {
    let [which, elem, dims @ .., _] = bytes else { return };
    let Some((&[rows, columns, n_params], rest)) = dims.split_first_chunk() else { return };
    let n_params = usize::from(n_params % 21);
    if rest.len() < 2 * n_params {
        return;
    }
    let (params, stored) = rest.split_at(2 * n_params);
    // Most parameters are small numbers; all ones and powers of two are those that hurt.
    let params = params
        .chunks(2)
        .map(|pair| match pair[1] {
            255 => u32::MAX,
            shift @ 128.. => 1 << (shift % 32),
            _ => u32::from(pair[0]),
        })
        .collect();
    let shape = ChunkShape {
        dims: vec![u64::from(rows) + 1, u64::from(columns) + 1],
        elem_size: [1, 2, 3, 4, 8, 12, 16, 100][usize::from(elem % 8)],
    };
    let id = IDS[usize::from(*which) % IDS.len()];
    let spec = FilterSpec { id, optional: false, name: String::new(), params };
    let mut out = vec![0; (usize::from(rows) + 1) * (usize::from(columns) + 1) * shape.elem_size];
    let pipeline = Pipeline::new(&[spec], shape, &|_| None);
    let _ = pipeline.decode(stored, 0, &mut FilterBuffers::default(), &mut out);
});
