//! Damaged chunks and nonsense parameters end in a chunk or an error, and nothing else.

use proptest::prelude::*;
use zonda_chunk::filter::{ChunkShape, FilterBuffers, FilterSpec, Pipeline};

/// Chunks of the reference, as `random_chunks.py` prints them.
const KEPT: [&str; 5] = [
    include_str!("data/blosc2.tsv"),
    include_str!("data/nbit.tsv"),
    include_str!("data/scaleoffset.tsv"),
    include_str!("data/szip.tsv"),
    include_str!("data/zfp.tsv"),
];

#[derive(Clone, Debug)]
struct Chunk {
    id: u32,
    params: Vec<u32>,
    dims: Vec<u64>,
    elem_size: usize,
    stored: Vec<u8>,
    len: usize,
}

fn kept() -> Vec<Chunk> {
    let chunk = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let digits = |field: &str| {
            let digits: Vec<u8> =
                field.chars().map(|c| c.to_digit(16).expect("hexadecimal") as u8).collect();
            digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect::<Vec<u8>>()
        };
        Chunk {
            id: fields[1].parse().unwrap(),
            params: fields[2].split(',').map(|p| p.parse().unwrap()).collect(),
            dims: fields[3].split(',').map(|p| p.parse().unwrap()).collect(),
            elem_size: fields[4].parse().unwrap(),
            stored: digits(fields[5]),
            len: fields[6].len() / 2,
        }
    };
    KEPT.iter().flat_map(|lines| lines.lines().map(chunk)).collect()
}

fn run(chunk: &Chunk) {
    let spec = FilterSpec {
        id: chunk.id,
        optional: true,
        name: String::new(),
        params: chunk.params.clone(),
    };
    let shape = ChunkShape { dims: chunk.dims.clone(), elem_size: chunk.elem_size };
    let pipeline = Pipeline::new(&[spec], shape, &|_| None);
    let mut out = vec![0; chunk.len];
    let mut scratch = FilterBuffers::default();
    if pipeline.decode(&chunk.stored, 0, &mut scratch, &mut out).is_ok() {
        // What was accepted once can be written again, or is refused.
        let _ = pipeline.encode(&out, &mut scratch, &mut Vec::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn damaged_chunks(
        chunk in proptest::sample::select(kept()),
        hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut chunk = chunk;
        for (at, byte) in hits {
            let at = at.index(chunk.stored.len());
            chunk.stored[at] = byte;
        }
        if let Some(cut) = cut {
            chunk.stored.truncate(cut.index(chunk.stored.len()));
        }
        run(&chunk);
    }

    #[test]
    fn nonsense_parameters(
        chunk in proptest::sample::select(kept()),
        hits in proptest::collection::vec(
            (any::<prop::sample::Index>(), prop_oneof![0u32..70, any::<u32>()]),
            1..4,
        ),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut chunk = chunk;
        for (at, value) in hits {
            let at = at.index(chunk.params.len());
            chunk.params[at] = value;
        }
        if let Some(cut) = cut {
            chunk.params.truncate(cut.index(chunk.params.len()));
        }
        run(&chunk);
    }
}
