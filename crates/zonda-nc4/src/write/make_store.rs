//! Making the storage of a variable, at its first put.

use std::sync::Arc;
use zonda_runtime::lock::{Rank, RwLock};

use zonda_chunk::filter::{ChunkShape, Pipeline};
use zonda_chunk::{ArrayShape, ChunkWriter, Engine, FilterSpec, NewArray, SpillFile, WriteTable};
use zonda_hdf5::message::{
    ChunkIndexKind, ChunkedLayout, DataLayout, FilterDescription, SpaceKind,
};
use zonda_hdf5::{ChunkIndex, ChunkTree, File};
use zonda_model::{NcError, VarId};
use zonda_storage::temporary;

use super::contiguous::Contiguous;
use super::fill_copies::FillCopies;
use super::new_storage::NewStorage;
use super::store::{ElementStorage, SharedChunkTree, VarStore, bytes_of, fixed};
use super::{ObjectKey, Quantize, Writing, element};
use crate::details::{Details, as_stored, user_fill};
use crate::element_form::ElementForm;
use crate::fault::{Fault, HdfResult, Outcome, refuse_if};
use crate::model::{GroupId, Model, Var};
use crate::var_data::{FilterFinder, VarData, unusable};

/// The storage of a variable before it is added to those of the file.
struct StoreParts {
    form: ElementForm,
    /// The value of an element that nobody wrote, in file form; `None` where it may be anything.
    fill: Option<Box<[u8]>>,
    filters: Vec<FilterDescription>,
    elements: Elements,
    quantize: Option<Quantize>,
}

/// Where the elements are; chunks are not added to the writer of chunks yet.
enum Elements {
    Contiguous(Contiguous),
    Compact(Arc<[u8]>),
    Chunked(ChunkedLayout, Box<ChunkTree>),
}

impl Writing {
    /// The number of a variable's storage, which is made if there is none.
    ///
    /// # Errors
    /// `NC_ENOTBUILT` for what cannot be changed yet; `NC_EBADTYPE`; those of reading what the file
    /// has.
    pub(crate) fn store_of(
        &mut self,
        file: &Arc<File>,
        find: &FilterFinder,
        model: &Model,
        (group, id): (GroupId, VarId),
        details: Option<&Details>,
    ) -> Outcome<usize> {
        if let Some(number) = self.stores.number(group, id) {
            return Ok(number);
        }
        // What follows may take space: a fill value may go to the heap.
        self.store_complete(file)?;
        let var = model.var(group, id).ok_or(NcError::NotVar)?;
        let parts = match (details, var.draft.as_deref()) {
            (None, Some(draft)) => {
                let key = ObjectKey::Var(group, id);
                let recipe = NewStorage::of(model, var, draft, Some((&mut *self, key)))?;
                StoreParts::of_new(file, recipe)?
            }
            (Some(details), _) => StoreParts::of_existing(file, model, var, details)?,
            (None, None) => return Err(NcError::Internal.into()),
        };
        let StoreParts { form, fill, filters, elements, quantize } = parts;
        let specs: Vec<_> = filters.iter().map(as_stored).collect();
        let fixed = fixed(model, var);
        let keep = match elements {
            Elements::Contiguous(run) => ElementStorage::Contiguous(run),
            Elements::Compact(bytes) => ElementStorage::Compact { bytes },
            Elements::Chunked(layout, tree) => {
                self.chunked(file, find, &form, layout, &specs, *tree, fill.as_deref(), &fixed)?
            }
        };
        let mut data = VarData::made(file, form, fill.clone(), &var.extent);
        // Without the filter chunks can only be copied as they are stored.
        data.missing = specs.iter().find_map(|spec| unusable(find, spec));
        let mut store =
            VarStore { data, keep, fixed, fill, quantize, encoder: None, is_changed: false };
        store.publish(file);
        let array = store.array();
        let number = self.stores.add(group, id, store).ok_or(NcError::Internal)?;
        if !self.is_in_team || !self.stores.is_filtered(array) {
            self.stores.is_put_to(number);
        }
        Ok(number)
    }

    /// Adds an array of chunks to the writer of chunks.
    fn chunked(
        &mut self,
        file: &Arc<File>,
        find: &FilterFinder,
        form: &ElementForm,
        layout: ChunkedLayout,
        specs: &[FilterSpec],
        tree: ChunkTree,
        fill: Option<&[u8]>,
        fixed: &[Option<u64>],
    ) -> Outcome<ElementStorage> {
        let elem_size = usize::try_from(layout.elem_size).unwrap_or(0);
        let shape = ChunkShape { dims: layout.chunk_dims.clone(), elem_size };
        let pipeline =
            Pipeline::new(specs, shape, &|spec| find.as_ref().and_then(|find| find(spec)));
        let tree = Arc::new(SharedChunkTree(RwLock::ranked(Rank::ChunkIndex, tree)));
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
            fixed: fixed.to_vec(),
            unfiltered_edges: None,
            // What elements point to is in the file only after the next commit.
            always_fresh: form.has_pointers(),
        })?;
        if let Some(copies) = FillCopies::of(form, fill) {
            self.stores.copies.insert(array, Arc::new(copies));
        }
        Ok(ElementStorage::Chunked { array, tree, layout })
    }
}

impl StoreParts {
    /// The storage of a variable that has no data yet.
    fn of_new(file: &Arc<File>, recipe: NewStorage) -> Outcome<StoreParts> {
        let NewStorage { form, layout, filters, fill, quantize } = recipe;
        let elements = match layout {
            DataLayout::Contiguous { len, .. } => {
                Elements::Contiguous(Contiguous::nowhere(len.unwrap_or(0)))
            }
            DataLayout::Compact { data } => Elements::Compact(data.into()),
            DataLayout::Chunked(layout) => {
                let tree = ChunkTree::new(file, &layout.chunk_dims, layout.elem_size)?;
                Elements::Chunked(layout, Box::new(tree))
            }
            DataLayout::Virtual { .. } => return Err(NcError::NotBuilt.into()),
        };
        Ok(StoreParts { form, fill, filters, elements, quantize })
    }

    /// The storage of a variable that is in the file.
    fn of_existing(
        file: &Arc<File>,
        model: &Model,
        var: &Var,
        details: &Details,
    ) -> Outcome<StoreParts> {
        if details.at.file != 0 {
            return Err(Fault::Unwritable("it is in another file"));
        }
        let object = details.object()?;
        if object.dataspace(file)?.kind == SpaceKind::Null {
            return Err(Fault::Unwritable("it has no elements"));
        }
        let mut form = ElementForm::of(&object.datatype(file)?).ok_or(NcError::BadType)?;
        if !element::can_encode(&form) {
            return Err(Fault::Unwritable(element::NOT_WRITTEN));
        }
        form.show(model.forms.shown_fields(var.nc_type));
        let fill = user_fill(file, &object)?.filter(|fill| fill.len() == form.file_size);
        if object.external_files(file)?.is_some() {
            return Err(Fault::Unwritable("its elements are in other files"));
        }
        let mut filters = Vec::new();
        let need = || bytes_of(&var.extent, form.file_size);
        let elements = match object.layout(file)? {
            DataLayout::Contiguous { addr, len } => {
                let need = need()?;
                if let Some(addr) = addr {
                    file.locate("raw data", addr, need)?;
                }
                Elements::Contiguous(Contiguous::committed(addr, len.unwrap_or(need).max(need)))
            }
            DataLayout::Compact { data } => {
                refuse_if((data.len() as u64) < need()?, NcError::HdfErr)?;
                Elements::Compact(data.into())
            }
            DataLayout::Chunked(layout) => {
                let is_other = usize::try_from(layout.elem_size) != Ok(form.file_size);
                refuse_if(is_other, NcError::HdfErr)?;
                filters = object.filters(file)?;
                let mut tree = load_tree(file, &object, &layout, !filters.is_empty())?;
                drop_behind(&mut tree, &layout, &var.extent)?;
                let layout = ChunkedLayout {
                    index: ChunkIndexKind::BtreeV1,
                    partial_edge_unfiltered: false,
                    wide_filtered_sizes: false,
                    ..layout
                };
                Elements::Chunked(layout, Box::new(tree))
            }
            DataLayout::Virtual { .. } => {
                return Err(Fault::Unwritable("its elements are in other datasets"));
            }
        };
        Ok(StoreParts { form, fill, filters, elements, quantize: None })
    }
}

/// Loads the index of the chunks that a variable has in the file.
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

/// Drops chunks behind the extent of the slowest dimension, which a writer that died may have left. If they stayed,
/// the variable would have their elements instead of its fill value as soon as it grew.
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
