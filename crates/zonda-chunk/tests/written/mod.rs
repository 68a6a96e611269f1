//! Files being written in memory, beside plain models of what they should hold.
#![allow(dead_code, unreachable_pub, reason = "each test uses some of it")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use zonda_chunk::filter::{ChunkShape, Filter, Pipeline};
use zonda_chunk::{
    Allocate, ArrayId, ArrayShape, ChunkAt, ChunkError, ChunkTable, ChunkWriter, ChunkedArray,
    Decode, ElementEncoding, Engine, FilterError, FilterSpec, NewArray, SpillFile, TableError,
    WriteTable,
};
use zonda_convert::Converted;
use zonda_model::Hyperslab;
use zonda_storage::backend::Memory;
use zonda_storage::{
    Advice, DeviceSpace, ReadRange, Storage, StorageError, StorageStamp, WriteRange,
};

use super::arrays::{for_each, linear};

/// A table of chunks that can be told to fail.
#[derive(Debug, Default)]
pub struct Table {
    pub chunks: Mutex<BTreeMap<Vec<u64>, ChunkAt>>,
    /// Insertions until one fails; none does while this is negative.
    pub fails_in: AtomicI64,
    /// Where the next look of a thread in the background waits, when it has found its chunks.
    pub stop: Mutex<Option<Stop>>,
}

/// A thread says that it is here, and goes on when it is told to.
#[derive(Debug)]
pub struct Stop {
    pub here: mpsc::Sender<()>,
    pub go_on: mpsc::Receiver<()>,
}

/// What a test has of a [`Stop`].
#[derive(Debug)]
pub struct Stopper {
    here: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
}

impl Stopper {
    /// Whether a thread stops there, in time.
    pub fn has_one(&self) -> bool {
        self.here.recv_timeout(Duration::from_secs(2)).is_ok()
    }

    pub fn let_go(&self) {
        let _ = self.go_on.send(());
    }
}

impl Table {
    /// Stops the next thread that looks, but for this one.
    pub fn stop_next(&self) -> Stopper {
        let (here, is_here) = mpsc::channel();
        let (go, go_on) = mpsc::channel();
        *self.stop.lock().unwrap() = Some(Stop { here, go_on });
        Stopper { here: is_here, go_on: go }
    }
}

#[derive(Debug)]
pub struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("told to fail")
    }
}

impl std::error::Error for Failed {}

/// Counts down; whether this is the one that fails.
fn fails(counter: &AtomicI64) -> bool {
    counter.fetch_sub(1, Ordering::SeqCst) == 1
}

impl ChunkTable for Table {
    fn locate(
        &self,
        first: &[u64],
        last: &[u64],
        found: &mut dyn FnMut(&[u64], ChunkAt),
    ) -> Result<(), TableError> {
        for (key, at) in &*self.chunks.lock().unwrap() {
            if key.iter().zip(first).zip(last).all(|((k, a), b)| (a..=b).contains(&k)) {
                found(key, *at);
            }
        }
        // Tests run in threads that have their names.
        let is_background =
            std::thread::current().name().is_none_or(|name| name.starts_with("zonda"));
        let stop = if is_background { self.stop.lock().unwrap().take() } else { None };
        if let Some(stop) = stop {
            let _ = stop.here.send(());
            let _ = stop.go_on.recv_timeout(Duration::from_secs(10));
        }
        Ok(())
    }
}

impl WriteTable for Table {
    fn insert(&self, key: &[u64], at: ChunkAt) -> Result<Option<ChunkAt>, TableError> {
        if fails(&self.fails_in) {
            return Err(Box::new(Failed));
        }
        Ok(self.chunks.lock().unwrap().insert(key.to_vec(), at))
    }
}

/// Space that knows what of it is in use, and uses again what is given back.
#[derive(Debug, Default)]
pub struct Space {
    pub used: BTreeMap<u64, u64>,
    pub end: u64,
    /// Allocations until one fails.
    pub fails_in: AtomicI64,
}

impl Allocate for Space {
    fn allocate(&mut self, len: u64) -> Result<u64, TableError> {
        if fails(&self.fails_in) {
            return Err(Box::new(Failed));
        }
        let mut at = 0;
        for (&begin, &used) in &self.used {
            if at + len <= begin {
                break;
            }
            at = begin + used;
        }
        assert!(self.used.insert(at, len).is_none());
        self.end = self.end.max(at + len);
        Ok(at)
    }

    fn free(&mut self, at: u64, len: u64) {
        assert_eq!(self.used.remove(&at), Some(len), "frees what is in use");
    }
}

/// A storage of which a write can fail.
#[derive(Debug, Default)]
pub struct Faulty {
    pub memory: Memory,
    /// Writes until one fails.
    pub fails_in: AtomicI64,
    pub writes: AtomicUsize,
    /// Bytes of a made-up device, 0 for one without end.
    pub device: AtomicU64,
    /// Bytes behind which the device takes none, 0 for one without end.
    pub full_at: AtomicU64,
    /// Writes until one panics.
    pub panics_in: AtomicI64,
    /// Milliseconds that a write of ranges takes.
    pub slow_ms: AtomicU64,
    /// Threads that write ranges now, and the most that there were.
    pub writers: AtomicUsize,
    pub most_writers: AtomicUsize,
}

impl SpillFile for Faulty {
    fn room(&self) -> Option<DeviceSpace> {
        let size = match self.device.load(Ordering::SeqCst) {
            0 => u64::MAX,
            size => size,
        };
        Some(DeviceSpace { free: size.saturating_sub(self.memory.len().ok()?), size })
    }
}

impl Faulty {
    fn check(&self) -> Result<(), StorageError> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        match fails(&self.fails_in) {
            true => Err(StorageError::Open { path: std::path::Path::new("x").into(), errno: 28 }),
            false => Ok(()),
        }
    }
}

impl Storage for Faulty {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.memory.read_at(at, buf)
    }
    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        self.memory.read_ranges(ranges)
    }
    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.check()?;
        self.memory.write_at(at, data)
    }
    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        let now = self.writers.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_writers.fetch_max(now, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(self.slow_ms.load(Ordering::SeqCst)));
        self.writers.fetch_sub(1, Ordering::SeqCst);
        assert!(!fails(&self.panics_in), "a write panics");
        let full_at = match self.full_at.load(Ordering::SeqCst) {
            0 => u64::MAX,
            end => end,
        };
        let is_full = ranges.iter().any(|range| range.at + range.data.len() as u64 > full_at);
        if is_full {
            return Err(StorageError::Open { path: std::path::Path::new("x").into(), errno: 28 });
        }
        if let Err(error) = self.check() {
            // Half of it is there.
            self.memory.write_ranges(&ranges[..ranges.len() / 2])?;
            return Err(error);
        }
        self.memory.write_ranges(ranges)
    }
    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        self.check()?;
        self.memory.fill_at(at, len, element)
    }
    fn advise(&self, advice: Advice) {
        self.memory.advise(advice);
    }
    fn rest(&self) {
        self.memory.rest();
    }
    fn len(&self) -> Result<u64, StorageError> {
        self.memory.len()
    }
    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.memory.set_len(len)
    }
    fn barrier(&self) -> Result<(), StorageError> {
        self.memory.barrier()
    }
    fn sync(&self) -> Result<(), StorageError> {
        self.memory.sync()
    }
    fn invalidate(&self) -> Result<(), StorageError> {
        self.memory.invalidate()
    }
    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        self.memory.stamp()
    }
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory.describe(f)
    }
}

/// Turns every bit over and counts the chunks in both directions; refuses some if told to.
#[derive(Debug, Default)]
pub struct Turn {
    pub done: AtomicUsize,
    pub undone: AtomicUsize,
    /// Chunks that begin with this byte are refused.
    pub refuses: Option<u8>,
    /// Milliseconds it takes to undo.
    pub slow_ms: u64,
}

impl Filter for Turn {
    fn name(&self) -> &'static str {
        "turn"
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        self.undone.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(self.slow_ms));
        assert!(stored.len() <= most, "not more than a chunk");
        out.extend(stored.iter().map(|byte| !byte));
        Ok(())
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        if self.refuses.is_some() && self.refuses == raw.first().copied() {
            return Err(FilterError::Plugin { id: 9999 });
        }
        self.done.fetch_add(1, Ordering::SeqCst);
        out.extend(raw.iter().map(|byte| !byte));
        Ok(true)
    }
}

/// How an array is made.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub chunk: Vec<u64>,
    pub elem: usize,
    /// HDF5's numbers; 9999 is [`Turn`].
    pub filters: Vec<u32>,
    pub optional: bool,
    pub fill: Vec<u8>,
    /// Elements that there can be in each dimension.
    pub most: Vec<u64>,
    /// Whether the dimension has them from the start.
    pub fixed: Vec<bool>,
    pub unfiltered_edges: bool,
}

/// An array being written, and what it should hold.
pub struct Written {
    pub id: ArrayId,
    pub recipe: Recipe,
    pub table: Arc<Table>,
    pub turn: Arc<Turn>,
    pub pipeline: Arc<Pipeline>,
    pub extent: Vec<u64>,
    /// All elements that there can be, row-major.
    pub model: Vec<u8>,
}

/// A file being written.
pub struct File {
    pub writer: ChunkWriter,
    pub storage: Arc<Faulty>,
    /// Where chunks go for which the engine has no memory.
    pub spill: Arc<Faulty>,
    pub space: Space,
    pub arrays: Vec<Written>,
}

impl File {
    pub fn new(engine: &Arc<Engine>, limit: u64) -> File {
        File::at(engine, limit, std::path::Path::new(""))
    }

    /// One whose data seem to be at `path`, which is on some device.
    pub fn at(engine: &Arc<Engine>, limit: u64, path: &std::path::Path) -> File {
        let [storage, spill] = [(); 2].map(|()| Arc::new(Faulty::default()));
        let mut writer = ChunkWriter::new(engine, storage.clone(), limit);
        let file = spill.clone();
        writer.spill_to(Box::new(move || Ok(file.clone())), path);
        File { writer, storage, spill, space: Space::default(), arrays: Vec::new() }
    }

    pub fn add(&mut self, recipe: &Recipe, turn: Turn) -> usize {
        let turn = Arc::new(turn);
        let Recipe { chunk, elem, optional, fill, most, fixed, unfiltered_edges, .. } =
            recipe.clone();
        let specs: Vec<FilterSpec> = recipe
            .filters
            .iter()
            .map(|&id| {
                let params = if id == 1 { vec![1] } else { vec![elem as u32] };
                FilterSpec { id, optional, name: String::new(), params }
            })
            .collect();
        let shape = ChunkShape { dims: chunk.clone(), elem_size: elem };
        let pipeline = Arc::new(Pipeline::new(&specs, shape, &|spec| {
            (spec.id == 9999).then(|| Ok(Arc::clone(&turn) as Arc<dyn Filter>))
        }));
        let table = Arc::new(Table::default());
        let id = self.writer.add(NewArray {
            table: table.clone(),
            filters: pipeline.clone(),
            shape: ArrayShape { chunk_dims: chunk, elem_size: elem },
            fill: fill.clone().into(),
            fixed: most.iter().zip(&fixed).map(|(n, fixed)| fixed.then_some(*n)).collect(),
            unfiltered_edges: unfiltered_edges.then(|| most.clone()),
            always_fresh: false,
        });
        let n: u64 = most.iter().product();
        let model =
            if fill.is_empty() { vec![0; n as usize * elem] } else { fill.repeat(n as usize) };
        let extent = most
            .iter()
            .zip(&fixed)
            .map(|(n, fixed)| if *fixed || unfiltered_edges { *n } else { 0 })
            .collect();
        let recipe = recipe.clone();
        let id = id.expect("a shape that arrays can have");
        self.arrays.push(Written { id, recipe, table, turn, pipeline, extent, model });
        self.arrays.len() - 1
    }

    /// Puts elements as the encoder makes them of `src`, and notes them in the model. What does not
    /// fit the encoder's elements is as it was. Growing dimensions grow as far as the slab needs.
    pub fn put(
        &mut self,
        index: usize,
        slab: &Hyperslab<'_>,
        encode: ElementEncoding<'_>,
        expected: &dyn Fn(&[u8], &mut [u8]) -> Converted,
        src: &[u8],
    ) -> Result<(), ChunkError> {
        let Written { id, recipe, extent, model, .. } = &mut self.arrays[index];
        let stride = |d: usize| slab.stride.map_or(1, |stride| stride[d] as u64);
        if !slab.count.contains(&0) {
            for (d, extent) in extent.iter_mut().enumerate() {
                let end = slab.start[d] as u64 + (slab.count[d] as u64 - 1) * stride(d) + 1;
                *extent = end.max(*extent);
            }
        }
        let dims: Vec<u64> = slab.count.iter().map(|&n| n as u64).collect();
        let mut places = Vec::new();
        for_each(&dims, |i| {
            let at: Vec<u64> =
                (0..i.len()).map(|d| slab.start[d] as u64 + i[d] * stride(d)).collect();
            places.push(linear(&at, &recipe.most) * recipe.elem);
        });
        let elem = recipe.elem;
        let mut file = Vec::new();
        places.iter().for_each(|&at| file.extend_from_slice(&model[at..][..elem]));
        let wanted = expected(src, &mut file);
        // Also where the put fails: it is then put again.
        for (at, bytes) in places.iter().zip(file.chunks(elem)) {
            model[*at..][..elem].copy_from_slice(bytes);
        }
        let got = self.writer.put(*id, extent, slab, encode, src, &mut self.space)?;
        assert_eq!(got, wanted, "elements out of range");
        Ok(())
    }

    /// Puts elements that are the same bytes in memory.
    pub fn put_raw(&mut self, index: usize, start: &[usize], count: &[usize], src: &[u8]) {
        let slab = Hyperslab { start, count, stride: None };
        let elem_size = self.arrays[index].recipe.elem;
        let copy = |src: &[u8], dst: &mut [u8]| {
            dst.copy_from_slice(src);
            Converted::default()
        };
        self.put(index, &slab, ElementEncoding::Raw { elem_size }, &copy, src).expect("puts");
    }

    pub fn flush(&mut self) -> Result<(), ChunkError> {
        self.writer.flush(&mut self.space)
    }

    /// The elements of a hyperslab by the model.
    pub fn expected(&self, index: usize, slab: &Hyperslab<'_>) -> Vec<u8> {
        let Written { recipe, model, .. } = &self.arrays[index];
        let dims: Vec<u64> = slab.count.iter().map(|&n| n as u64).collect();
        let mut out = Vec::new();
        for_each(&dims, |i| {
            let step = |d: usize| slab.stride.map_or(1, |stride| stride[d] as u64);
            let at: Vec<u64> =
                (0..i.len()).map(|d| slab.start[d] as u64 + i[d] * step(d)).collect();
            out.extend_from_slice(&model[linear(&at, &recipe.most) * recipe.elem..][..recipe.elem]);
        });
        out
    }

    /// Reads through the writer and compares.
    pub fn check(&self, index: usize, slab: &Hyperslab<'_>) {
        let Written { id, recipe, extent, .. } = &self.arrays[index];
        let expected = self.expected(index, slab);
        let mut out = vec![0x5A; expected.len()];
        let decode = Decode::Raw { elem_size: recipe.elem };
        let read = self.writer.read(*id, extent, slab, decode, &mut out).expect("reads");
        assert_eq!(read, Converted::default());
        let at = (0..out.len()).find(|&i| out[i] != expected[i]).map(|i| i / recipe.elem);
        assert!(at.is_none(), "element {at:?} of {slab:?} of {recipe:?}");
    }

    /// All elements of an array, by the writer.
    pub fn check_all(&self, index: usize) {
        let extent = &self.arrays[index].extent;
        let count: Vec<usize> = extent.iter().map(|&n| n as usize).collect();
        let start = vec![0; count.len()];
        self.check(index, &Hyperslab { start: &start, count: &count, stride: None });
    }

    /// All elements of an array as who opens the file now would find them.
    pub fn reopened(&self, index: usize) -> Result<Vec<u8>, ChunkError> {
        let Written { recipe, extent, table, pipeline, .. } = &self.arrays[index];
        let array = ChunkedArray::new_in(
            &Engine::new(1, 1 << 20),
            self.storage.clone(),
            table.clone(),
            pipeline.clone(),
            ArrayShape { chunk_dims: recipe.chunk.clone(), elem_size: recipe.elem },
            recipe.fill.clone().into(),
            recipe.unfiltered_edges,
        );
        let count: Vec<usize> = extent.iter().map(|&n| n as usize).collect();
        let slab = Hyperslab { start: &vec![0; count.len()], count: &count, stride: None };
        let mut out = vec![0x5A; count.iter().product::<usize>() * recipe.elem];
        let _ = array.read(extent, &slab, Decode::Raw { elem_size: recipe.elem }, &mut out)?;
        Ok(out)
    }

    /// After a flush: the storage has all that was put, and nothing else is in use.
    pub fn check_stored(&self) {
        let mut used = BTreeMap::new();
        for (index, array) in self.arrays.iter().enumerate() {
            let count: Vec<usize> = array.extent.iter().map(|&n| n as usize).collect();
            let slab = Hyperslab { start: &vec![0; count.len()], count: &count, stride: None };
            let stored = self.reopened(index).expect("all that is stored can be read");
            assert!(stored == self.expected(index, &slab), "{:?}", array.recipe);
            for at in array.table.chunks.lock().unwrap().values() {
                assert!(used.insert(at.at, at.len).is_none(), "two chunks at one place");
            }
        }
        assert_eq!(used, self.space.used, "space in use is that of chunks");
    }

    /// The bytes of the storage that are in use, and where chunks are.
    pub fn image(&self) -> (Vec<u8>, Vec<BTreeMap<Vec<u64>, ChunkAt>>) {
        let bytes = self.storage.memory.to_vec().expect("memory");
        let mut used = vec![0; bytes.len()];
        for (&at, &len) in &self.space.used {
            let place = at as usize..(at + len) as usize;
            used[place.clone()].copy_from_slice(&bytes[place]);
        }
        let tables = self.arrays.iter().map(|array| array.table.chunks.lock().unwrap().clone());
        (used, tables.collect())
    }
}
