//! The storage of variables that were put to. The first put to a variable makes it, and it is kept until the file
//! is closed.

use std::sync::Arc;
use zonda_runtime::lock::RwLock;

use hashbrown::HashMap;
use zonda_chunk::{
    Allocate, ArrayId, ChunkAt, ChunkError, ChunkTable, ChunkWriter, Decode, TableError, WriteTable,
};
use zonda_convert::{ByteOrder, Converted, Encoder, RangeRule};
use zonda_hdf5::message::{ChunkedLayout, DataLayout};
use zonda_hdf5::{
    ChunkLocation, ChunkTree, File, FileAddr, HeapWriter, NewBlocks, Space, TreeCommit,
};
use zonda_model::{ExtType, Hyperslab, MemType, NcError, VarId};
use zonda_slab::Span;
use zonda_storage::StorageError;

use super::commit::is_often;
use super::contiguous::Contiguous;
use super::fill_copies::FillCopiesByArray;
use super::unwritten_chunks;
use super::{ObjectKey, OwnedValues, Quantize, Writing};
use crate::element_form::ElementShape;
use crate::fault::{Coded, Fault, HdfResult, Outcome};
use crate::model::{GroupId, Model, Var};
use crate::var_data::VarData;

/// The storage of all variables that were put to.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    list: Vec<(ObjectKey, VarStore)>,
    /// By group and variable: the place in the list, counted from 1; 0 for none.
    numbers: Vec<Vec<u32>>,
    /// Places in the list in the order of the first puts, in which commits go through them. Of a file of several ranks storage is made
    /// before it is put to; who is not put to is not among them.
    order: Vec<usize>,
    /// By place in the list: it is in `order`.
    is_ordered: Vec<bool>,
    /// Writes the chunks of all chunked variables; made with the first of these.
    pub(super) chunks: Option<ChunkWriter>,
    /// Fill values that point to something: the value that was set, and its file form.
    pub(super) fills: HashMap<ObjectKey, (Option<OwnedValues>, Box<[u8]>)>,
    /// Fill values of chunked variables that point to something.
    pub(super) copies: FillCopiesByArray,
    /// Nodes of chunk trees that the next commit writes.
    trees: TreeBlocks,
    /// Bytes put since the last commit, as they are in the file.
    pub(crate) put_bytes: u64,
    /// Number of commits that succeeded; those that had nothing to write count, too.
    pub(crate) n_confirmed: u64,
}

/// Changes of chunk trees that a commit writes.
#[derive(Debug, Default)]
pub(super) struct TreeBlocks {
    /// Nodes at new places.
    pub(super) nodes: Vec<(FileAddr, Vec<u8>)>,
    /// Changes of nodes in place, of all trees.
    pub(super) in_place: TreeCommit,
}

/// The storage of one variable.
#[derive(Debug)]
pub(crate) struct VarStore {
    /// Form and fill value; and where the elements are, if they are not in chunks.
    pub(crate) data: VarData,
    pub(super) keep: ElementStorage,
    /// The length of each dimension that cannot grow.
    pub(super) fixed: Box<[Option<u64>]>,
    /// The value of an element that nobody wrote, in file form; `None` where it may be anything.
    pub(super) fill: Option<Box<[u8]>>,
    pub(super) quantize: Option<Quantize>,
    /// The encoder for the type of memory that was used last.
    pub(super) encoder: Option<(MemType, Encoder)>,
    /// The next commit has to write the header.
    pub(super) is_changed: bool,
}

/// How elements are stored.
#[derive(Debug)]
pub(super) enum ElementStorage {
    /// In one run.
    Contiguous(Contiguous),
    /// In the header.
    Compact { bytes: Arc<[u8]> },
    /// In chunks.
    Chunked { array: ArrayId, tree: Arc<SharedChunkTree>, layout: ChunkedLayout },
}

impl Stores {
    /// The number of a variable's storage, if it was made.
    #[inline]
    pub(crate) fn number(&self, group: GroupId, var: VarId) -> Option<usize> {
        let vars = self.numbers.get(usize::from(group.0))?;
        let number = *vars.get(usize::try_from(var.0).ok()?)?;
        usize::try_from(number.checked_sub(1)?).ok()
    }

    /// A variable's storage by its number.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&VarStore> {
        self.list.get(number).map(|(_, store)| store)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut VarStore> {
        self.list.get_mut(number).map(|(_, store)| store)
    }

    /// A variable's storage, if it was made.
    pub(crate) fn of(&self, key: ObjectKey) -> Option<&VarStore> {
        match key {
            ObjectKey::Var(group, var) => self.get(self.number(group, var)?),
            _ => None,
        }
    }

    /// The storage of a variable in chunks that was put to, with the writer of its chunks.
    #[inline]
    pub(crate) fn chunks_of(
        &self,
        group: GroupId,
        var: VarId,
    ) -> Option<(&VarStore, ArrayId, &ChunkWriter)> {
        let store = self.get(self.number(group, var)?)?;
        Some((store, store.array()?, self.chunks.as_ref()?))
    }

    pub(super) fn add(&mut self, group: GroupId, var: VarId, store: VarStore) -> Option<usize> {
        let (at, of) = (usize::from(group.0), usize::try_from(var.0).ok()?);
        let number = self.list.len();
        if self.numbers.len() <= at {
            self.numbers.resize_with(at.saturating_add(1), Vec::new);
        }
        let vars = self.numbers.get_mut(at)?;
        if vars.len() <= of {
            vars.resize(of.saturating_add(1), 0);
        }
        *vars.get_mut(of)? = u32::try_from(number.checked_add(1)?).ok()?;
        self.list.push((ObjectKey::Var(group, var), store));
        self.is_ordered.push(false);
        Some(number)
    }

    /// A variable is put to.
    pub(super) fn is_put_to(&mut self, number: usize) {
        if let Some(is_ordered) = self.is_ordered.get_mut(number)
            && !std::mem::replace(is_ordered, true)
        {
            self.order.push(number);
        }
    }

    /// Reads a hyperslab, with what was put and is not committed.
    pub(crate) fn read(
        &self,
        store: &VarStore,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        decode: Decode<'_>,
        out: &mut [u8],
    ) -> Result<Converted, ChunkError> {
        match (&store.keep, &self.chunks) {
            (ElementStorage::Chunked { array, .. }, Some(chunks)) => {
                chunks.read(*array, extent, slab, decode, out)
            }
            (ElementStorage::Compact { bytes }, _) => {
                store.data.read_here(bytes, slab, decode, out)
            }
            (ElementStorage::Contiguous(run), _) => {
                let span = Span::of(extent, slab, store.data.form.file_size);
                store.fill_run(run, span.map_or(u64::MAX, |span| span.end))?;
                store.data.read(slab, decode, out)
            }
            _ => store.data.read(slab, decode, out),
        }
    }

    /// Stores the deferred chunks. To be called before space is taken or given back for anything else, so that their
    /// places do not depend on how long they wait.
    pub(super) fn store_complete(
        &mut self,
        space: &mut Space,
        heap: &mut HeapWriter,
        file: &File,
    ) -> Outcome<()> {
        let Stores { chunks: Some(chunks), copies, .. } = self else { return Ok(()) };
        Ok(chunks.store_complete(&mut FileSpace { space, heap, copies, file })?)
    }

    /// Chunk trees that a commit has to write.
    pub(super) fn take_trees(&mut self) -> TreeBlocks {
        std::mem::take(&mut self.trees)
    }
}

impl Writing {
    /// Writes what was put into the global heap, so that it can be read.
    pub(crate) fn flush_heap(&self, file: &File) -> HdfResult<()> {
        if self.is_in_team {
            // All ranks have the same in their heaps, and one of them writes it.
            return Ok(());
        }
        let mut heap = self.heap.lock();
        if heap.pending() > 0 { heap.flush(file) } else { Ok(()) }
    }

    /// As [`Stores::store_complete`].
    pub(crate) fn store_complete(&mut self, file: &File) -> Outcome<()> {
        let Writing { stores, space, heap, .. } = self;
        let heap = heap.get_mut();
        stores.store_complete(space, heap, file)
    }

    /// Writes all data, and marks the variables whose headers have to name new places.
    ///
    /// # Errors
    /// What storage, filters and space report. What could not be stored stays in memory.
    pub(super) fn gather(&mut self, file: &Arc<File>, model: &Model) -> Outcome<()> {
        let Writing { stores, space, commits, heap, .. } = self;
        let often = is_often(commits.n_commits);
        let Stores { list, order, is_ordered, chunks, copies, trees, .. } = stores;
        if let Some(chunks) = chunks {
            let heap = heap.get_mut();
            let mut room = FileSpace { space: &mut *space, heap, copies, file };
            chunks.flush(&mut room)?;
            for (key, store) in &*list {
                unwritten_chunks::store(*key, store, model, chunks, &mut room)?;
            }
        }
        let others = is_ordered.iter().enumerate().filter(|(_, is_ordered)| !**is_ordered);
        for number in order.iter().copied().chain(others.map(|(number, _)| number)) {
            let Some((key, store)) = list.get_mut(number) else { continue };
            if let ElementStorage::Contiguous(run) = &store.keep {
                store.fill_run(run, u64::MAX)?;
            }
            if let ElementStorage::Contiguous(run) = &mut store.keep {
                run.is_referred = true;
            }
            if let ElementStorage::Chunked { tree, layout, .. } = &mut store.keep {
                let mut tree = tree.0.write();
                if tree.is_dirty() {
                    let mut fresh = NewBlocks::new(&mut *space);
                    let commit = tree.commit(&mut fresh, often)?;
                    trees.nodes.extend(fresh.into_blocks());
                    let all = &mut trees.in_place;
                    all.appended.extend(commit.appended);
                    all.switches.extend(commit.switches);
                    all.patches.extend(commit.patches);
                    layout.addr = commit.root;
                    store.is_changed = true;
                }
            }
            if std::mem::take(&mut store.is_changed) {
                commits.changed.insert(*key);
            }
        }
        Ok(())
    }
}

/// The length of each dimension that cannot grow.
pub(super) fn fixed(model: &Model, var: &Var) -> Box<[Option<u64>]> {
    let axis = |(&extent, &id)| {
        let can_grow = model.dim(id).is_some_and(|dim| dim.is_unlimited);
        if can_grow { None } else { Some(extent) }
    };
    var.extent.iter().zip(&var.dims).map(axis).collect()
}

/// Bytes of all elements.
pub(super) fn bytes_of(extent: &[u64], elem: usize) -> Outcome<u64> {
    let bytes = extent.iter().try_fold(elem as u64, |bytes, &len| bytes.checked_mul(len));
    bytes.ok_or(Fault::Refused(NcError::VarSize))
}

impl VarStore {
    /// The layout message of the header.
    pub(super) fn layout(&self) -> DataLayout {
        match &self.keep {
            ElementStorage::Contiguous(run) => {
                DataLayout::Contiguous { addr: run.addr, len: Some(run.len) }
            }
            ElementStorage::Compact { bytes } => DataLayout::Compact { data: (**bytes).into() },
            ElementStorage::Chunked { layout, .. } => DataLayout::Chunked(layout.clone()),
        }
    }

    /// The array of chunks; `None` if elements are not in chunks.
    pub(super) fn array(&self) -> Option<ArrayId> {
        match &self.keep {
            ElementStorage::Chunked { array, .. } => Some(*array),
            _ => None,
        }
    }

    /// Sets the run that the elements lie in, which is new in the file; its first `filled` bytes have values.
    pub(super) fn keep_run(&mut self, addr: FileAddr, len: u64, filled: u64, file: &File) {
        self.keep = ElementStorage::Contiguous(Contiguous::fresh(addr, len, filled));
        self.is_changed = true;
        file.grown_to(addr.0.saturating_add(len));
        self.publish(file);
    }

    /// Makes readers see where the elements are that lie in one run.
    pub(super) fn publish(&mut self, file: &File) {
        if let ElementStorage::Contiguous(Contiguous { addr: Some(addr), len, .. }) = &self.keep {
            self.data.set_run(file.position(*addr), *len);
        }
    }

    /// Writes fill values where nobody put elements of a run, up to byte `end`.
    fn fill_run(&self, run: &Contiguous, end: u64) -> Result<(), StorageError> {
        let (Some(addr), Some(fill)) = (run.addr, self.fill()) else { return Ok(()) };
        let file = &self.data.file;
        run.fill_to(&**file.storage(), file.position(addr), fill, end)
    }

    /// The value of an element that nobody wrote, in file form; `None` where it may be anything.
    pub(super) fn fill(&self) -> Option<&[u8]> {
        self.fill.as_deref()
    }

    /// The encoder of numbers or text of a type of memory.
    ///
    /// # Errors
    /// `NC_ECHAR`, `NC_EBADTYPE`.
    #[inline]
    pub(super) fn encoder(&mut self, mem: MemType) -> Coded<Encoder> {
        match self.encoder {
            Some((known, encoder)) if known == mem => Ok(encoder),
            _ => self.new_encoder(mem),
        }
    }

    #[cold]
    fn new_encoder(&mut self, mem: MemType) -> Coded<Encoder> {
        let (ext, order) = self.number().ok_or(NcError::BadType)?;
        let encoder = Encoder::new(ext, order, mem, RangeRule::Cast).map_err(|_| NcError::Char)?;
        self.encoder = Some((mem, encoder));
        Ok(encoder)
    }

    /// Type and byte order of elements that are numbers or characters.
    pub(super) fn number(&self) -> Option<(ExtType, ByteOrder)> {
        match &self.data.form.shape {
            ElementShape::Number(ext, order) => Some((*ext, *order)),
            ElementShape::FixedText(..) if self.data.form.file_size == 1 => {
                Some((ExtType::Char, ByteOrder::NATIVE))
            }
            _ => None,
        }
    }
}

/// The chunk index of a variable, shared with those who read and write its chunks.
#[derive(Debug)]
pub(super) struct SharedChunkTree(pub(super) RwLock<ChunkTree>);

impl ChunkTable for SharedChunkTree {
    fn locate(
        &self,
        first: &[u64],
        last: &[u64],
        found: &mut dyn FnMut(&[u64], ChunkAt),
    ) -> Result<(), TableError> {
        if first == last {
            if let Some(place) = self.find(first)? {
                found(first, place);
            }
            return Ok(());
        }
        let at = |at: ChunkLocation| ChunkAt { at: at.at, len: at.len, mask: at.mask };
        let tree = self.0.read();
        Ok(tree.for_each_in(first, last, &mut |key, place| found(key, at(place)))?)
    }

    fn find(&self, key: &[u64]) -> Result<Option<ChunkAt>, TableError> {
        let place = self.0.read().get(key)?;
        Ok(place.map(|at| ChunkAt { at: at.at, len: at.len, mask: at.mask }))
    }
}

impl SharedChunkTree {
    /// Calls `found` for all chunks, in ascending order.
    pub(super) fn for_each(
        &self,
        rank: usize,
        found: &mut dyn FnMut(&[u64], ChunkLocation),
    ) -> HdfResult<()> {
        let tree = self.0.read();
        tree.for_each_in(&vec![0; rank], &vec![u64::MAX; rank], found)
    }
}

impl WriteTable for SharedChunkTree {
    fn insert(&self, key: &[u64], at: ChunkAt) -> Result<Option<ChunkAt>, TableError> {
        let mut tree = self.0.write();
        let place = ChunkLocation { at: at.at, len: at.len, mask: at.mask };
        let before = tree.insert(key, place)?;
        Ok(before.map(|at| ChunkAt { at: at.at, len: at.len, mask: at.mask }))
    }
}

/// Allocates space of a file for chunks, in positions of its storage.
pub(super) struct FileSpace<'a> {
    pub(super) space: &'a mut Space,
    pub(super) heap: &'a mut HeapWriter,
    pub(super) copies: &'a FillCopiesByArray,
    pub(super) file: &'a File,
}

impl FileSpace<'_> {
    /// Gives back runs of which nothing in the file has told, for use at once: who tries again takes the same, and not more of a disk that
    /// is full.
    pub(super) fn untake(&mut self, runs: impl DoubleEndedIterator<Item = (u64, u64)>) {
        let begin = self.file.position(FileAddr(0));
        // The last one first: it may be the end of the file.
        for (at, len) in runs.rev() {
            if let Some(addr) = at.checked_sub(begin) {
                self.space.untake(FileAddr(addr), len);
            }
        }
    }
}

impl Allocate for FileSpace<'_> {
    fn allocate(&mut self, len: u64) -> Result<u64, TableError> {
        let addr = self.space.alloc(len)?;
        self.file.grown_to(addr.0.saturating_add(len));
        Ok(self.file.position(addr))
    }

    fn padded(&self, at: u64, len: u64) -> u64 {
        let (first, behind) = (self.file.position(FileAddr(0)), at.saturating_add(len));
        let addr = |position: u64| position.saturating_sub(first);
        self.space.padded(addr(at), addr(behind)).saturating_add(first)
    }

    fn free(&mut self, at: u64, len: u64) {
        let addr = at.checked_sub(self.file.position(FileAddr(0)));
        if let Some(addr) = addr {
            self.space.free(FileAddr(addr), len);
        }
    }

    fn before_store(&mut self, array: ArrayId, chunk: &mut [u8]) -> Result<(), TableError> {
        let Some(copies) = self.copies.get(&array) else { return Ok(()) };
        Ok(copies.copy_fills(chunk, self.heap, self.space, self.file)?)
    }
}
