//! Chunks in the container that `tests/reference.py` describes.

#![allow(dead_code, reason = "each test file uses a part")]

use zonda_chunk::FilterSpec;
use zonda_chunk::filter::{ChunkShape, Pipeline};

pub(crate) struct Array {
    pub(crate) elem_size: usize,
    pub(crate) raw: Vec<u8>,
}

pub(crate) struct Chunk {
    pub(crate) name: String,
    pub(crate) array: usize,
    pub(crate) mask: u32,
    pub(crate) specs: Vec<FilterSpec>,
    pub(crate) stored: Vec<u8>,
}

pub(crate) fn read(bytes: &[u8]) -> (Vec<Array>, Vec<Chunk>) {
    let mut rest = bytes;
    let mut take = |len: usize| {
        let (head, tail) = rest.split_at(len);
        rest = tail;
        head.to_vec()
    };
    let number =
        |take: &mut dyn FnMut(usize) -> Vec<u8>| u32::from_le_bytes(take(4).try_into().unwrap());
    let mut arrays = Vec::new();
    for _ in 0..number(&mut take) {
        let elem_size = number(&mut take) as usize;
        let len = number(&mut take) as usize;
        arrays.push(Array { elem_size, raw: take(len) });
    }
    let mut chunks = Vec::new();
    for _ in 0..number(&mut take) {
        let len = number(&mut take) as usize;
        let name = String::from_utf8(take(len)).unwrap();
        let array = number(&mut take) as usize;
        let mask = number(&mut take);
        let mut specs = Vec::new();
        for _ in 0..number(&mut take) {
            let (id, flags) = (number(&mut take), number(&mut take));
            let params = (0..number(&mut take)).map(|_| number(&mut take)).collect();
            specs.push(spec(id, flags & 1 == 1, params));
        }
        let len = number(&mut take) as usize;
        chunks.push(Chunk { name, array, mask, specs, stored: take(len) });
    }
    assert!(rest.is_empty());
    (arrays, chunks)
}

pub(crate) fn write(arrays: &[Array], chunks: &[Chunk]) -> Vec<u8> {
    let mut out = Vec::new();
    let number = |out: &mut Vec<u8>, n: usize| {
        out.extend_from_slice(&u32::try_from(n).unwrap().to_le_bytes());
    };
    number(&mut out, arrays.len());
    for array in arrays {
        number(&mut out, array.elem_size);
        number(&mut out, array.raw.len());
        out.extend_from_slice(&array.raw);
    }
    number(&mut out, chunks.len());
    for chunk in chunks {
        number(&mut out, chunk.name.len());
        out.extend_from_slice(chunk.name.as_bytes());
        number(&mut out, chunk.array);
        number(&mut out, chunk.mask as usize);
        number(&mut out, chunk.specs.len());
        for spec in &chunk.specs {
            number(&mut out, spec.id as usize);
            number(&mut out, usize::from(spec.optional));
            number(&mut out, spec.params.len());
            for &param in &spec.params {
                number(&mut out, param as usize);
            }
        }
        number(&mut out, chunk.stored.len());
        out.extend_from_slice(&chunk.stored);
    }
    out
}

pub(crate) fn spec(id: u32, optional: bool, params: Vec<u32>) -> FilterSpec {
    FilterSpec { id, optional, name: String::new(), params }
}

pub(crate) fn shape(elem_size: usize, bytes: usize) -> ChunkShape {
    assert_eq!(bytes % elem_size, 0);
    ChunkShape { dims: vec![(bytes / elem_size) as u64], elem_size }
}

/// A pipeline of built-in filters.
pub(crate) fn pipeline(specs: &[FilterSpec], elem_size: usize, bytes: usize) -> Pipeline {
    Pipeline::new(specs, shape(elem_size, bytes), &|_| None)
}

/// The chunks that the reference made.
pub(crate) fn kept() -> (Vec<Array>, Vec<Chunk>) {
    read(include_bytes!("../data/chunks.bin"))
}

/// Numbers without a pattern, the same in each run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end.max(1)
    }

    /// Bytes that a filter finds something in: runs, steps and noise by turns.
    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 64);
        while bytes.len() < len {
            let run = 1 + self.below(64);
            let (first, step, noise) = (self.next() as u8, self.below(4) as u8, self.below(3) == 0);
            for i in 0..run {
                let smooth = first.wrapping_add(step.wrapping_mul(i as u8));
                bytes.push(if noise { self.next() as u8 } else { smooth });
            }
        }
        bytes.truncate(len);
        bytes
    }
}
