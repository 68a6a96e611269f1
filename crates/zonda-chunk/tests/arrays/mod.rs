//! Arrays in memory, laid out and filtered as a file would have them, beside plain models of them.
#![allow(dead_code, unreachable_pub, reason = "each test uses some of it")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zonda_chunk::filter::{ChunkShape, Filter, Pipeline};
use zonda_chunk::{
    ArrayShape, ChunkAt, ChunkTable, ChunkedArray, Engine, FilterError, FilterSpec, TableError,
};
use zonda_storage::backend::Memory;

/// Small random numbers: a multiplication and a shift.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Turns every bit over, counts what it undoes, and fails on chunks whose first byte says so.
#[derive(Debug, Default)]
pub struct Flip {
    pub undone: AtomicUsize,
    /// Work for the length of a chunk, so that threads meet.
    pub slow: std::time::Duration,
    /// Stored bytes that begin with this are damaged; the next byte says how many milliseconds it
    /// takes to find out.
    pub damaged: Option<[u8; 4]>,
}

impl Filter for Flip {
    fn name(&self) -> &'static str {
        "flip"
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        self.undone.fetch_add(1, Ordering::SeqCst);
        if self.damaged.is_some_and(|mark| stored.starts_with(&mark)) {
            std::thread::sleep(std::time::Duration::from_millis(stored[4].into()));
            return Err(FilterError::Damaged { filter: "flip", at: 0, what: "the mark is there" });
        }
        if stored.len() > most {
            let (got, expected) = (stored.len(), most);
            return Err(FilterError::WrongLength { filter: "flip", got, expected });
        }
        if !self.slow.is_zero() {
            std::thread::sleep(self.slow);
        }
        out.extend(stored.iter().map(|byte| !byte));
        Ok(())
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        out.extend(raw.iter().map(|byte| !byte));
        Ok(true)
    }
}

/// Chunks by coordinates.
#[derive(Debug, Default)]
pub struct Table {
    pub chunks: HashMap<Vec<u64>, ChunkAt>,
    pub asked: AtomicUsize,
}

impl ChunkTable for Table {
    fn locate(
        &self,
        first: &[u64],
        last: &[u64],
        found: &mut dyn FnMut(&[u64], ChunkAt),
    ) -> Result<(), TableError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        for (key, at) in &self.chunks {
            if key.iter().zip(first).zip(last).all(|((k, a), b)| (a..=b).contains(&k)) {
                found(key, *at);
            }
        }
        Ok(())
    }
}

/// How an array is made.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub extent: Vec<u64>,
    pub chunk: Vec<u64>,
    pub elem: usize,
    /// HDF5's numbers; 9999 is [`Flip`].
    pub filters: Vec<u32>,
    /// One chunk in so many is never written; 0 for none.
    pub missing: u64,
    /// One chunk in so many skips its filters.
    pub skipping: u64,
    pub partial_edge_unfiltered: bool,
    pub fill: Vec<u8>,
    pub seed: u64,
}

impl Recipe {
    pub fn new(extent: &[u64], chunk: &[u64], elem: usize, filters: &[u32]) -> Recipe {
        Recipe {
            extent: extent.to_vec(),
            chunk: chunk.to_vec(),
            elem,
            filters: filters.to_vec(),
            missing: 0,
            skipping: 0,
            partial_edge_unfiltered: false,
            fill: Vec::new(),
            seed: 1,
        }
    }
}

/// An array, its parts, and what it should hold.
pub struct Made {
    pub storage: Arc<Memory>,
    pub table: Arc<Table>,
    pub flip: Arc<Flip>,
    pub pipeline: Arc<Pipeline>,
    pub recipe: Recipe,
    /// All elements inside the extent, row-major.
    pub model: Vec<u8>,
}

/// Calls `each` with all coordinates below `dims`, last fastest.
pub fn for_each(dims: &[u64], mut each: impl FnMut(&[u64])) {
    if dims.contains(&0) {
        return;
    }
    let mut at = vec![0; dims.len()];
    loop {
        each(&at);
        let Some(d) = (0..dims.len()).rev().find(|&d| at[d] + 1 < dims[d]) else { return };
        at[d] += 1;
        at[d + 1..].fill(0);
    }
}

pub fn linear(at: &[u64], dims: &[u64]) -> usize {
    at.iter().zip(dims).fold(0, |sum, (i, n)| sum * *n as usize + *i as usize)
}

impl Made {
    pub fn new(recipe: Recipe, flip: Flip) -> Made {
        let Recipe { extent, chunk, elem, .. } = &recipe;
        let (elem, mut random) = (*elem, Random(recipe.seed));
        let flip = Arc::new(flip);
        let specs: Vec<FilterSpec> = recipe
            .filters
            .iter()
            .map(|&id| {
                let params = if id == 1 { vec![1] } else { vec![elem as u32] };
                FilterSpec { id, optional: false, name: String::new(), params }
            })
            .collect();
        let shape = ChunkShape { dims: chunk.clone(), elem_size: elem };
        let pipeline = Pipeline::new(&specs, shape, &|spec| {
            (spec.id == 9999).then(|| Ok(Arc::clone(&flip) as Arc<dyn Filter>))
        });
        let n: u64 = extent.iter().product();
        let mut model: Vec<u8> = (0..n as usize * elem).map(|_| random.next() as u8).collect();
        let grid: Vec<u64> = extent.iter().zip(chunk).map(|(e, c)| e.div_ceil(*c)).collect();
        let mut table = Table::default();
        let mut bytes = vec![0xEE; 7];
        let mut scratch = zonda_chunk::filter::FilterBuffers::default();
        for_each(&grid, |key| {
            let missing = recipe.missing > 0 && random.one_in(recipe.missing);
            let edge = (0..key.len()).any(|d| (key[d] + 1) * chunk[d] > extent[d]);
            // Behind the extent is garbage.
            let chunk_elems: u64 = chunk.iter().product();
            let mut raw = vec![0xAB; chunk_elems as usize * elem];
            for_each(chunk, |within| {
                let at: Vec<u64> = (0..key.len()).map(|d| key[d] * chunk[d] + within[d]).collect();
                if at.iter().zip(extent).all(|(i, n)| i < n) {
                    let cell = &mut model[linear(&at, extent) * elem..][..elem];
                    if missing {
                        match recipe.fill.is_empty() {
                            true => cell.fill(0),
                            false => cell.copy_from_slice(&recipe.fill),
                        }
                    }
                    raw[linear(within, chunk) * elem..][..elem].copy_from_slice(cell);
                }
            });
            if missing {
                return;
            }
            let mut stored = Vec::new();
            let mask = if recipe.partial_edge_unfiltered && edge {
                stored = raw;
                0
            } else if recipe.skipping > 0 && random.one_in(recipe.skipping) {
                stored = raw;
                u32::MAX
            } else {
                pipeline.encode(&raw, &mut scratch, &mut stored).expect("encodes")
            };
            let at = ChunkAt { at: bytes.len() as u64, len: stored.len() as u64, mask };
            table.chunks.insert(key.to_vec(), at);
            bytes.extend_from_slice(&stored);
        });
        Made {
            storage: Arc::new(Memory::from_slice(&bytes)),
            table: Arc::new(table),
            flip,
            pipeline: Arc::new(pipeline),
            recipe,
            model,
        }
    }

    pub fn array(&self, engine: &Arc<Engine>) -> ChunkedArray {
        let recipe = &self.recipe;
        ChunkedArray::new_in(
            engine,
            self.storage.clone(),
            self.table.clone(),
            self.pipeline.clone(),
            ArrayShape { chunk_dims: recipe.chunk.clone(), elem_size: recipe.elem },
            recipe.fill.clone().into(),
            recipe.partial_edge_unfiltered,
        )
    }

    /// Chunks decoded so far.
    pub fn undone(&self) -> usize {
        self.flip.undone.load(Ordering::SeqCst)
    }

    /// The elements that a hyperslab should give, in file form.
    pub fn expected(&self, start: &[usize], count: &[usize], stride: &[isize]) -> Vec<u8> {
        let Recipe { extent, elem, fill, .. } = &self.recipe;
        let dims: Vec<u64> = count.iter().map(|&n| n as u64).collect();
        let mut out = Vec::new();
        for_each(&dims, |i| {
            let at: Vec<u64> =
                (0..i.len()).map(|d| start[d] as u64 + i[d] * stride[d] as u64).collect();
            if at.iter().zip(extent).all(|(i, n)| i < n) {
                out.extend_from_slice(&self.model[linear(&at, extent) * elem..][..*elem]);
            } else if fill.is_empty() {
                out.resize(out.len() + elem, 0);
            } else {
                out.extend_from_slice(fill);
            }
        });
        out
    }
}
