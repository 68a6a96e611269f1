//! Where the elements of variables go: for each variable that was put to, its storage, made at the
//! first put and kept until the file is closed.

use std::sync::Arc;
use zonda_runtime::lock::{Rank, RwLock};

use hashbrown::HashMap;
use zonda_chunk::filter::{ChunkShape, FilterError, Pipeline};
use zonda_chunk::{
    Allocate, ArrayId, ArrayShape, ChunkAt, ChunkError, ChunkTable, ChunkWriter, Decode, Engine,
    NewArray, SpillFile, TableError, WriteTable,
};
use zonda_convert::{ByteOrder, Converted, Encoder, RangeRule};
use zonda_hdf5::message::{
    ChunkIndexKind, ChunkedLayout, DataLayout, FilterDescription, SpaceKind,
};
use zonda_hdf5::{
    ChunkIndex, ChunkLocation, ChunkTree, File, FileAddr, Fresh, HeapWriter, Space, TreeCommit,
};
use zonda_model::{ExtType, Hyperslab, MemType, NcError, VarId};
use zonda_slab::Span;
use zonda_storage::{StorageError, temporary};

use super::absent;
use super::commit::is_often;
use super::contiguous::Contiguous;
use super::own::{CopiesOf, FillCopies};
use super::recipe::Recipe;
use super::{ObjectKey, OwnedValues, Quantize, Writing, element};
use crate::data::{Data, Find, unusable};
use crate::details::{Details, as_stored, user_fill};
use crate::fault::{Coded, Fault, HdfResult, Outcome, refuse_if};
use crate::form::{Form, Shape};
use crate::model::{GroupId, Model, Var};

/// The data of a file that is being written.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    list: Vec<(ObjectKey, VarStore)>,
    /// By group and variable: the place in the list, counted from 1.
    numbers: Vec<Vec<u32>>,
    /// The chunked ones of them; made with the first.
    pub(super) chunks: Option<ChunkWriter>,
    /// Fill values that point to something: what was set, and its file form.
    pub(super) fills: HashMap<ObjectKey, (Option<OwnedValues>, Box<[u8]>)>,
    /// Fill values of chunked ones that point to something.
    pub(super) copies: CopiesOf,
    /// What the next commit writes of them.
    trees: TreeBlocks,
    /// Bytes put since the last commit, as they are in the file.
    pub(crate) put_bytes: u64,
    /// Commits that succeeded, those among them that had nothing to write.
    pub(crate) n_confirmed: u64,
}

/// Chunk trees on their way to the file.
#[derive(Debug, Default)]
pub(super) struct TreeBlocks {
    /// Nodes at new places.
    pub(super) nodes: Vec<(FileAddr, Vec<u8>)>,
    /// What changes of nodes that stay, of all the trees.
    pub(super) in_place: TreeCommit,
}

/// Where the elements of one variable go.
#[derive(Debug)]
pub(crate) struct VarStore {
    /// Form, fill value, and where elements are that are not in chunks.
    pub(crate) data: Data,
    pub(super) keep: Keep,
    /// The length of each dimension that cannot grow.
    pub(super) fixed: Box<[Option<u64>]>,
    /// One element that was never written; `None` where it may be anything.
    fill: Option<Box<[u8]>>,
    pub(super) quantize: Option<Quantize>,
    /// For the type of memory that was used last.
    encoder: Option<(MemType, Encoder)>,
    /// The header has to be written with the next commit.
    pub(super) is_changed: bool,
}

/// How elements are stored.
#[derive(Debug)]
pub(super) enum Keep {
    /// In one run.
    Contiguous(Contiguous),
    /// In the header.
    Compact { bytes: Arc<[u8]> },
    /// In chunks.
    Chunked { array: ArrayId, tree: Arc<Tree>, layout: ChunkedLayout },
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

    fn add(&mut self, group: GroupId, var: VarId, store: VarStore) -> Option<usize> {
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
        Some(number)
    }

    /// Reads a hyperslab of what was put and stored.
    pub(crate) fn read(
        &self,
        store: &VarStore,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        decode: Decode<'_>,
        out: &mut [u8],
    ) -> Result<Converted, ChunkError> {
        match (&store.keep, &self.chunks) {
            (Keep::Chunked { array, .. }, Some(chunks)) => {
                chunks.read(*array, extent, slab, decode, out)
            }
            (Keep::Compact { bytes }, _) => store.data.read_here(bytes, slab, decode, out),
            (Keep::Contiguous(run), _) => {
                let span = Span::of(extent, slab, store.data.form.file_size);
                store.fill_run(run, span.map_or(u64::MAX, |span| span.end))?;
                store.data.read(slab, decode, out)
            }
            _ => store.data.read(slab, decode, out),
        }
    }

    /// Stores the chunks that are complete and wait for others; before space is taken or given back
    /// for anything else, so that their places do not depend on how long they wait.
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
        let mut heap = self.heap.lock();
        if heap.pending() > 0 { heap.flush(file) } else { Ok(()) }
    }

    /// As [`Stores::store_complete`].
    pub(crate) fn store_complete(&mut self, file: &File) -> Outcome<()> {
        let Writing { stores, space, heap, .. } = self;
        let heap = heap.get_mut();
        stores.store_complete(space, heap, file)
    }

    /// Brings all data into the file, and finds out whose headers have to say where they are.
    ///
    /// # Errors
    /// What storage, filters and space report. What could not be stored stays in memory.
    pub(super) fn gather(&mut self, file: &Arc<File>, model: &Model) -> Outcome<()> {
        let Writing { stores, space, changed, heap, n_commits, .. } = self;
        let often = is_often(*n_commits);
        let Stores { list, chunks, copies, trees, .. } = stores;
        if let Some(chunks) = chunks {
            let heap = heap.get_mut();
            let mut room = FileSpace { space: &mut *space, heap, copies, file };
            chunks.flush(&mut room)?;
            for (key, store) in &*list {
                absent::fill(*key, store, model, chunks, &mut room)?;
            }
        }
        for (key, store) in list {
            if let Keep::Contiguous(run) = &store.keep {
                store.fill_run(run, u64::MAX)?;
            }
            if let Keep::Contiguous(run) = &mut store.keep {
                run.is_referred = true;
            }
            if let Keep::Chunked { tree, layout, .. } = &mut store.keep {
                let mut tree = tree.0.write();
                if tree.is_dirty() {
                    let mut fresh = Fresh::new(&mut *space);
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
                changed.insert(*key);
            }
        }
        Ok(())
    }

    /// The number of a variable's storage, which is made if there is none.
    ///
    /// # Errors
    /// `NC_ENOTBUILT` for what cannot be changed yet; `NC_EBADTYPE`; those of reading what the file
    /// has.
    pub(crate) fn store_of(
        &mut self,
        file: &Arc<File>,
        find: &Find,
        model: &Model,
        (group, id): (GroupId, VarId),
        details: Option<&Details>,
    ) -> Outcome<usize> {
        if let Some(number) = self.stores.number(group, id) {
            return Ok(number);
        }
        // A fill value may go to the heap.
        self.store_complete(file)?;
        let var = model.var(group, id).ok_or(NcError::NotVar)?;
        let store = match (details, var.draft.as_deref()) {
            (None, Some(draft)) => {
                let key = ObjectKey::Var(group, id);
                let recipe = Recipe::of(model, var, draft, Some((&mut *self, key)))?;
                self.new_store(file, find, model, var, recipe)?
            }
            (Some(details), _) => self.existing_store(file, find, model, var, details)?,
            (None, None) => return Err(NcError::Internal.into()),
        };
        let number = self.stores.add(group, id, store);
        number.ok_or(Fault::Refused(NcError::Internal))
    }

    /// The storage of a variable that has no data yet.
    fn new_store(
        &mut self,
        file: &Arc<File>,
        find: &Find,
        model: &Model,
        var: &Var,
        recipe: Recipe,
    ) -> Outcome<VarStore> {
        let Recipe { form, layout, filters, fill, quantize } = recipe;
        let keep = match layout {
            DataLayout::Contiguous { len, .. } => {
                Keep::Contiguous(Contiguous::nowhere(len.unwrap_or(0)))
            }
            DataLayout::Compact { data } => Keep::Compact { bytes: data.into() },
            DataLayout::Chunked(layout) => {
                let tree = ChunkTree::new(file, &layout.chunk_dims, layout.elem_size);
                let tree = tree?;
                let fixed = fixed(model, var);
                self.chunked(file, find, &form, layout, &filters, tree, fill.as_deref(), fixed)?
            }
            DataLayout::Virtual { .. } => return Err(NcError::NotBuilt.into()),
        };
        let mut data = Data::made(file, form, fill.clone(), &var.extent);
        data.missing = missing(find, &filters);
        let fixed = fixed(model, var);
        let mut store =
            VarStore { data, keep, fixed, fill, quantize, encoder: None, is_changed: false };
        store.publish(file);
        Ok(store)
    }

    /// The storage of a variable that is in the file.
    fn existing_store(
        &mut self,
        file: &Arc<File>,
        find: &Find,
        model: &Model,
        var: &Var,
        details: &Details,
    ) -> Outcome<VarStore> {
        if details.at.file != 0 {
            return Err(Fault::Unwritable("it is in another file"));
        }
        let hdf = Fault::Hdf;
        let object = details.object().map_err(hdf)?;
        if object.dataspace(file).map_err(hdf)?.kind == SpaceKind::Null {
            return Err(Fault::Unwritable("it has no elements"));
        }
        let datatype = object.datatype(file).map_err(hdf)?;
        let mut form = Form::of(&datatype).ok_or(NcError::BadType)?;
        if !element::can_encode(&form) {
            return Err(Fault::Unwritable(element::NOT_WRITTEN));
        }
        form.show(model.forms.shown_fields(var.nc_type));
        let fill = user_fill(file, &object).map_err(hdf)?;
        let fill = fill.filter(|fill| fill.len() == form.file_size);
        if object.external_files(file).map_err(hdf)?.is_some() {
            return Err(Fault::Unwritable("its elements are in other files"));
        }
        let layout = object.layout(file).map_err(hdf)?;
        let mut lacks = None;
        let keep = match layout {
            DataLayout::Contiguous { addr, len } => {
                let need = bytes_of(&var.extent, form.file_size)?;
                if let Some(addr) = addr {
                    file.locate("raw data", addr, need).map_err(hdf)?;
                }
                Keep::Contiguous(Contiguous::committed(addr, len.unwrap_or(need).max(need)))
            }
            DataLayout::Compact { data } => {
                let need = bytes_of(&var.extent, form.file_size)?;
                refuse_if((data.len() as u64) < need, NcError::HdfErr)?;
                Keep::Compact { bytes: data.into() }
            }
            DataLayout::Chunked(layout) => {
                refuse_if(
                    usize::try_from(layout.elem_size) != Ok(form.file_size),
                    NcError::HdfErr,
                )?;
                let filters = object.filters(file).map_err(hdf)?;
                lacks = missing(find, &filters);
                let mut tree =
                    load_tree(file, &object, &layout, !filters.is_empty()).map_err(hdf)?;
                drop_behind(&mut tree, &layout, &var.extent).map_err(hdf)?;
                let fixed = fixed(model, var);
                let layout = ChunkedLayout {
                    index: ChunkIndexKind::BtreeV1,
                    partial_edge_unfiltered: false,
                    wide_filtered_sizes: false,
                    ..layout
                };
                self.chunked(file, find, &form, layout, &filters, tree, fill.as_deref(), fixed)?
            }
            DataLayout::Virtual { .. } => {
                return Err(Fault::Unwritable("its elements are in other datasets"));
            }
        };
        let mut data = Data::made(file, form, fill.clone(), &var.extent);
        data.missing = lacks;
        let fixed = fixed(model, var);
        let mut store =
            VarStore { data, keep, fixed, fill, quantize: None, encoder: None, is_changed: false };
        store.publish(file);
        Ok(store)
    }

    fn chunked(
        &mut self,
        file: &Arc<File>,
        find: &Find,
        form: &Form,
        layout: ChunkedLayout,
        filters: &[FilterDescription],
        tree: ChunkTree,
        fill: Option<&[u8]>,
        fixed: Box<[Option<u64>]>,
    ) -> Outcome<Keep> {
        let elem_size = usize::try_from(layout.elem_size).unwrap_or(0);
        let specs: Vec<_> = filters.iter().map(as_stored).collect();
        let shape = ChunkShape { dims: layout.chunk_dims.clone(), elem_size };
        let pipeline =
            Pipeline::new(&specs, shape, &|spec| find.as_ref().and_then(|find| find(spec)));
        let tree = Arc::new(Tree(RwLock::ranked(Rank::ChunkIndex, tree)));
        let table: Arc<dyn WriteTable> = tree.clone();
        let chunks = self.stores.chunks.get_or_insert_with(|| {
            let (storage, limit) = (Arc::clone(file.storage()), ChunkWriter::limit_from_env());
            let mut chunks = ChunkWriter::new(&Engine::process(), storage, limit);
            if let Some(path) = self.spills_beside.clone() {
                let beside = path.clone();
                let make = move || Ok(temporary::nameless_beside(&path)? as Arc<dyn SpillFile>);
                chunks.spill_to(Box::new(make), &beside);
            }
            chunks
        });
        let array = chunks.add(NewArray {
            table,
            filters: Arc::new(pipeline),
            shape: ArrayShape { chunk_dims: layout.chunk_dims.clone(), elem_size },
            fill: fill.map(Box::from).unwrap_or_default(),
            fixed: fixed.into(),
            unfiltered_edges: None,
            // What they point to is in the file only after the next commit.
            always_fresh: form.has_pointers(),
        })?;
        if let Some(copies) = FillCopies::of(form, fill) {
            self.stores.copies.insert(array, Arc::new(copies));
        }
        Ok(Keep::Chunked { array, tree, layout })
    }
}

/// A filter that is not to be had: then chunks can only be copied as they are.
fn missing(find: &Find, filters: &[FilterDescription]) -> Option<FilterError> {
    filters.iter().map(as_stored).find_map(|spec| unusable(find, &spec))
}

/// The index of chunks that a variable has.
fn load_tree(
    file: &Arc<File>,
    object: &zonda_hdf5::Object,
    layout: &ChunkedLayout,
    filtered: bool,
) -> HdfResult<ChunkTree> {
    if layout.index == ChunkIndexKind::BtreeV1 {
        return ChunkTree::load(file, layout, filtered);
    }
    let space = object.dataspace(file)?;
    let (dims, max) = (&space.dims, &space.max_dims);
    let index = ChunkIndex::new(Arc::clone(file), layout, dims, max, filtered)?;
    ChunkTree::from_other(file, &layout.chunk_dims, layout.elem_size, &index)
}

/// Drops chunks behind the extent of the slowest dimension, which a writer that died has left. The
/// variable would have their elements, not its fill value, as soon as it became longer.
fn drop_behind(tree: &mut ChunkTree, layout: &ChunkedLayout, extent: &[u64]) -> HdfResult<()> {
    let (Some(&len), Some(&chunk)) = (extent.first(), layout.chunk_dims.first()) else {
        return Ok(());
    };
    let mut first = vec![0; layout.chunk_dims.len()];
    let last = vec![u64::MAX; first.len()];
    if let Some(slowest) = first.first_mut() {
        *slowest = len.div_ceil(chunk.max(1));
    }
    let mut behind = Vec::new();
    tree.for_each_in(&first, &last, &mut |key, _| behind.push(key.to_vec()))?;
    behind.iter().try_for_each(|key| tree.remove(key).map(drop))
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
    /// What the header says of where the elements are.
    pub(super) fn layout(&self) -> DataLayout {
        match &self.keep {
            Keep::Contiguous(run) => DataLayout::Contiguous { addr: run.addr, len: Some(run.len) },
            Keep::Compact { bytes } => DataLayout::Compact { data: (**bytes).into() },
            Keep::Chunked { layout, .. } => DataLayout::Chunked(layout.clone()),
        }
    }

    /// Whether elements are in chunks.
    pub(super) fn array(&self) -> Option<ArrayId> {
        match &self.keep {
            Keep::Chunked { array, .. } => Some(*array),
            _ => None,
        }
    }

    /// The elements lie in a run that is new in the file, and `filled` bytes have their values.
    pub(super) fn keep_run(&mut self, addr: FileAddr, len: u64, filled: u64, file: &File) {
        self.keep = Keep::Contiguous(Contiguous::fresh(addr, len, filled));
        self.is_changed = true;
        file.grown_to(addr.0.saturating_add(len));
        self.publish(file);
    }

    /// Makes readers see where the elements are that lie in one run.
    pub(super) fn publish(&mut self, file: &File) {
        if let Keep::Contiguous(Contiguous { addr: Some(addr), len, .. }) = &self.keep {
            self.data.set_run(file.position(*addr), *len);
        }
    }

    /// Writes fill values to what was not put to of a run, before byte `end`.
    fn fill_run(&self, run: &Contiguous, end: u64) -> Result<(), StorageError> {
        let (Some(addr), Some(fill)) = (run.addr, self.fill()) else { return Ok(()) };
        let file = &self.data.file;
        run.fill_to(&**file.storage(), file.position(addr), fill, end)
    }

    /// One element that was never written; `None` where it may be anything.
    pub(super) fn fill(&self) -> Option<&[u8]> {
        self.fill.as_deref()
    }

    /// What turns numbers or text of a type of memory into elements.
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
            Shape::Number(ext, order) => Some((*ext, *order)),
            Shape::FixedText(..) if self.data.form.file_size == 1 => {
                Some((ExtType::Char, ByteOrder::NATIVE))
            }
            _ => None,
        }
    }
}

/// The chunk index of a variable, shared with those who read and write its chunks.
#[derive(Debug)]
pub(super) struct Tree(pub(super) RwLock<ChunkTree>);

impl ChunkTable for Tree {
    fn locate(
        &self,
        first: &[u64],
        last: &[u64],
        found: &mut dyn FnMut(&[u64], ChunkAt),
    ) -> Result<(), TableError> {
        let tree = self.0.read();
        let at = |at: ChunkLocation| ChunkAt { at: at.at, len: at.len, mask: at.mask };
        if first == last {
            if let Some(place) = tree.get(first)? {
                found(first, at(place));
            }
            return Ok(());
        }
        Ok(tree.for_each_in(first, last, &mut |key, place| found(key, at(place)))?)
    }
}

impl Tree {
    /// Tells of all chunks, in ascending order.
    pub(super) fn for_each(
        &self,
        rank: usize,
        found: &mut dyn FnMut(&[u64], ChunkLocation),
    ) -> HdfResult<()> {
        let tree = self.0.read();
        tree.for_each_in(&vec![0; rank], &vec![u64::MAX; rank], found)
    }
}

impl WriteTable for Tree {
    fn insert(&self, key: &[u64], at: ChunkAt) -> Result<Option<ChunkAt>, TableError> {
        let mut tree = self.0.write();
        let place = ChunkLocation { at: at.at, len: at.len, mask: at.mask };
        let before = tree.insert(key, place)?;
        Ok(before.map(|at| ChunkAt { at: at.at, len: at.len, mask: at.mask }))
    }
}

/// The space of a file, as positions in its storage.
pub(super) struct FileSpace<'a> {
    pub(super) space: &'a mut Space,
    pub(super) heap: &'a mut HeapWriter,
    pub(super) copies: &'a CopiesOf,
    pub(super) file: &'a File,
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

    fn own(&mut self, array: ArrayId, chunk: &mut [u8]) -> Result<(), TableError> {
        let Some(copies) = self.copies.get(&array) else { return Ok(()) };
        Ok(copies.own(chunk, self.heap, self.space, self.file)?)
    }
}
