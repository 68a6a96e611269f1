//! The elements of a variable, wherever they are: in one run, chunks, other files or other datasets.

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use zonda_chunk::filter::{ChunkShape, Filter, FilterError, FilterSpec, Pipeline, is_builtin};
use zonda_chunk::{
    ArrayShape, ChunkAt, ChunkError, ChunkTable, ChunkedArray, ContiguousArray, DataSegment,
    Decode, SegmentBytes, TableError,
};
use zonda_convert::{Converted, Decoder};
use zonda_hdf5::ChunkIndex;
use zonda_hdf5::message::{ChunkedLayout, DataLayout, Dataspace, FilterDescription};
use zonda_hdf5::{File, FileAddr, HdfError, Object, Unfilter};
use zonda_model::{Hyperslab, MemType};
use zonda_storage::Advice;

use crate::details::{Details, as_stored, user_fill};
use crate::element_form::ElementForm;
use crate::fault::HdfResult;
use crate::file::FindFilter;
use crate::files::Files;
use crate::virtual_data::Virtual;

const RAW_DATA: &str = "raw data";

/// The elements of a variable.
#[derive(Debug)]
pub(crate) struct VarData {
    pub(crate) file: Arc<File>,
    pub(crate) form: ElementForm,
    /// The fill value in file form, where the file has one of its own.
    pub(crate) user_fill: Option<Box<[u8]>>,
    /// Why a filter of the variable is not available, if one is not.
    pub(crate) missing: Option<FilterError>,
    /// Elements along each dimension.
    extent: Box<[u64]>,
    source: ElementSource,
    /// The decoder for the type of memory that elements were read to first, for those who read one at a time.
    pub(crate) decoder: OnceLock<(MemType, Decoder)>,
}

#[derive(Debug)]
enum ElementSource {
    Chunked(ChunkedArray),
    Linear(ContiguousArray),
    Virtual(Virtual),
}

/// What finds filters that are not built in.
pub(crate) type FilterFinder = Option<Arc<FindFilter>>;

impl VarData {
    /// Finds out where the elements of a dataset are, and reads none of them.
    pub(crate) fn open(
        files: &Files,
        find: &FilterFinder,
        details: &Details,
    ) -> HdfResult<VarData> {
        let (file, object) = (&details.file, &details.object()?);
        let mut space = object.dataspace(file)?;
        let datatype = object.datatype(file)?;
        let form = ElementForm::of(&datatype)
            .ok_or_else(|| bad(object, "type", u64::from(datatype.size)))?;
        let elem = form.file_size;
        if elem == 0 {
            return Err(bad(object, "bytes of an element", 0));
        }
        let user_fill = user_fill(file, object)?.filter(|fill| fill.len() == elem);
        let fill = user_fill.clone().unwrap_or_default();
        let elements = space.dims.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim));
        let bytes = elements.and_then(|n| n.checked_mul(elem as u64));
        let mut missing = None;
        let source = match object.layout(file)? {
            DataLayout::Compact { data } => {
                let need = bytes.ok_or_else(|| bad(object, "bytes", u64::MAX))?;
                let data: Arc<[u8]> = data.into();
                if (data.len() as u64) < need {
                    return Err(bad(object, "bytes", data.len() as u64));
                }
                let segment = DataSegment { len: need, bytes: SegmentBytes::InMemory(data) };
                ElementSource::Linear(ContiguousArray::new(vec![segment], elem, fill))
            }
            DataLayout::Contiguous { addr, len } => {
                let need = bytes.ok_or_else(|| bad(object, "bytes", u64::MAX))?;
                let segments = contiguous_segments(files, details, object, (addr, len), need)?;
                ElementSource::Linear(ContiguousArray::new(segments, elem, fill))
            }
            DataLayout::Chunked(layout) => {
                let specs: Vec<_> = object.filters(file)?.iter().map(as_stored).collect();
                missing = specs.iter().find_map(|spec| unusable(find, spec));
                if usize::try_from(layout.elem_size) != Ok(elem) {
                    let found = u64::from(layout.elem_size);
                    return Err(bad(object, "bytes of an element in a chunk", found));
                }
                ElementSource::Chunked(chunked_array(file, find, &space, layout, &specs, fill)?)
            }
            DataLayout::Virtual { heap, index } => {
                let found = Virtual::open(file, details.at.file, heap, index)?;
                space.dims = found.extent(files, &space)?;
                ElementSource::Virtual(found)
            }
        };
        let extent = space.dims.into();
        Ok(VarData {
            file: Arc::clone(file),
            form,
            user_fill,
            missing,
            extent,
            source,
            decoder: OnceLock::new(),
        })
    }

    /// The data of a variable that is being written, without elements so far. If elements are in chunks, the writer of
    /// chunks reads them.
    pub(crate) fn made(
        file: &Arc<File>,
        form: ElementForm,
        user_fill: Option<Box<[u8]>>,
        extent: &[u64],
    ) -> VarData {
        let fill = user_fill.clone().unwrap_or_default();
        let source = ElementSource::Linear(ContiguousArray::new(Vec::new(), form.file_size, fill));
        let file = Arc::clone(file);
        let (extent, decoder) = (extent.into(), OnceLock::new());
        VarData { file, form, user_fill, missing: None, extent, source, decoder }
    }

    /// Sets the run with the elements: `len` bytes from position `at` of the storage. Those behind the end of the storage
    /// were not written yet, and are zeros.
    pub(crate) fn set_run(&mut self, at: u64, len: u64) {
        let storage = Arc::clone(self.file.storage());
        let bytes = SegmentBytes::Stored { storage, at, zeros_behind: true };
        let fill = self.user_fill.clone().unwrap_or_default();
        let array =
            ContiguousArray::new(vec![DataSegment { len, bytes }], self.form.file_size, fill);
        self.source = ElementSource::Linear(array);
    }

    /// Reads a hyperslab of elements that are in memory.
    pub(crate) fn read_here(
        &self,
        bytes: &Arc<[u8]>,
        slab: &Hyperslab<'_>,
        decode: Decode<'_>,
        out: &mut [u8],
    ) -> Result<Converted, ChunkError> {
        let segment = DataSegment {
            len: bytes.len() as u64,
            bytes: SegmentBytes::InMemory(Arc::clone(bytes)),
        };
        let array = ContiguousArray::new(vec![segment], self.form.file_size, Box::default());
        array.read(&self.extent, slab, decode, out)
    }

    /// Reads a hyperslab; what is beyond the extent and what was never written are fill values.
    pub(crate) fn read(
        &self,
        slab: &Hyperslab<'_>,
        decode: Decode<'_>,
        out: &mut [u8],
    ) -> Result<Converted, ChunkError> {
        match &self.source {
            ElementSource::Chunked(array) => array.read(&self.extent, slab, decode, out),
            ElementSource::Linear(array) => array.read(&self.extent, slab, decode, out),
            // `Request::read_virtual` reads it: its sources have forms of their own.
            ElementSource::Virtual(_) => Ok(Converted::default()),
        }
    }

    /// Its chunks, if it has any.
    pub(crate) fn chunks(&self) -> Option<&ChunkedArray> {
        match &self.source {
            ElementSource::Chunked(array) => Some(array),
            ElementSource::Linear(_) | ElementSource::Virtual(_) => None,
        }
    }

    /// The virtual dataset, if its elements are in other datasets.
    pub(crate) fn as_virtual(&self) -> Option<&Virtual> {
        match &self.source {
            ElementSource::Virtual(found) => Some(found),
            ElementSource::Chunked(_) | ElementSource::Linear(_) => None,
        }
    }

    /// Elements along each dimension.
    pub(crate) fn extent(&self) -> &[u64] {
        &self.extent
    }

    /// Sets how many bytes the cache of chunks may hold at least.
    pub(crate) fn set_cache_floor(&self, bytes: usize) {
        if let ElementSource::Chunked(array) = &self.source {
            array.set_cache_floor(bytes as u64);
        }
    }
}

/// The error about elements that are not as the rest of the header says.
fn bad(object: &Object, what: &'static str, value: u64) -> HdfError {
    HdfError::BadValue { structure: RAW_DATA, at: object.addr().0, what, value }
}

/// The pieces of a contiguous dataset of `need` bytes, which the layout message places at `addr` with a
/// length: one in the file, or those in other files; none where nothing was written.
fn contiguous_segments(
    files: &Files,
    details: &Details,
    object: &Object,
    (addr, len): (Option<FileAddr>, Option<u64>),
    need: u64,
) -> HdfResult<Vec<DataSegment>> {
    let file = &details.file;
    let addr = match (object.external_files(file)?, addr) {
        (Some(list), _) => return Ok(external(files, details.at.file, &list.slots, need)),
        (None, Some(addr)) if need > 0 => addr,
        (None, _) => return Ok(Vec::new()),
    };
    if let Some(len) = len.filter(|&len| len < need) {
        return Err(bad(object, "bytes", len));
    }
    // Of a damaged file what is before its end is read all the same.
    let least = if file.is_tolerant() { 1 } else { need };
    let at = file.locate(RAW_DATA, addr, least)?;
    let storage = Arc::clone(file.storage());
    // Small reads are served from pages from now on; metadata, which lie apart from each other, would
    // only be read with what is around them.
    storage.advise(Advice { file_bytes: file.len(), ..Advice::default() });
    let bytes = SegmentBytes::Stored { storage, at, zeros_behind: false };
    Ok(vec![DataSegment { len: need, bytes }])
}

/// A chunked dataset: where its chunks are, and the filters that they went through.
fn chunked_array(
    file: &Arc<File>,
    find: &FilterFinder,
    space: &Dataspace,
    layout: ChunkedLayout,
    specs: &[FilterSpec],
    fill: Box<[u8]>,
) -> HdfResult<ChunkedArray> {
    let (dims, max) = (&space.dims, &space.max_dims);
    let index = ChunkIndex::new(Arc::clone(file), &layout, dims, max, !specs.is_empty())?;
    let ChunkedLayout { chunk_dims, partial_edge_unfiltered, elem_size, .. } = layout;
    let elem_size = elem_size as usize;
    let shape = ChunkShape { dims: chunk_dims.clone(), elem_size };
    let pipeline = Pipeline::new(specs, shape, &|spec| find.as_ref().and_then(|find| find(spec)));
    Ok(ChunkedArray::new(
        Arc::clone(file.storage()),
        Arc::new(StoredChunkTable(index)),
        Arc::new(pipeline),
        ArrayShape { chunk_dims, elem_size },
        fill,
        partial_edge_unfiltered,
    ))
}

/// Why a filter is not available; `None` for one that is.
pub(crate) fn unusable(find: &FilterFinder, spec: &FilterSpec) -> Option<FilterError> {
    if is_builtin(spec.id) {
        return None;
    }
    let found = find.as_ref().and_then(|find| find(spec));
    found.unwrap_or_else(|| Err(FilterError::missing(spec))).err()
}

/// The pieces of a dataset in other files. If such a file cannot be read, reads of its bytes fail, and no others.
fn external(
    files: &Files,
    from: u16,
    slots: &[zonda_hdf5::ExternalSlot],
    need: u64,
) -> Vec<DataSegment> {
    let mut known = HashMap::new();
    let mut left = need;
    let mut segments = Vec::new();
    for slot in slots {
        if left == 0 {
            break;
        }
        let len = slot.len.min(left);
        left = left.saturating_sub(len);
        let open = || files.bytes(from, &slot.name);
        let bytes = match known.entry(&*slot.name).or_insert_with(open).clone() {
            Ok(storage) => SegmentBytes::Stored { storage, at: slot.offset, zeros_behind: true },
            Err(error) => SegmentBytes::Failed(Arc::new(error)),
        };
        segments.push(DataSegment { len, bytes });
    }
    segments
}

/// The index of chunks of the file, as the readers of chunks use it.
#[derive(Debug)]
struct StoredChunkTable(ChunkIndex);

impl ChunkTable for StoredChunkTable {
    fn locate(
        &self,
        first: &[u64],
        last: &[u64],
        found: &mut dyn FnMut(&[u64], ChunkAt),
    ) -> Result<(), TableError> {
        let mut tell = |coords: &[u64], place: zonda_hdf5::ChunkLocation| {
            found(coords, ChunkAt { at: place.at, len: place.len, mask: place.mask });
        };
        Ok(self.0.locate(first, last, &mut tell)?)
    }

    fn find(&self, key: &[u64]) -> Result<Option<ChunkAt>, TableError> {
        let place = self.0.find(key)?;
        Ok(place.map(|place| ChunkAt { at: place.at, len: place.len, mask: place.mask }))
    }
}

/// Undoes filters of metadata, such as those of a fractal heap.
struct MetadataFilters {
    find: FilterFinder,
}

impl std::fmt::Debug for MetadataFilters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MetadataFilters")
    }
}

impl Unfilter for MetadataFilters {
    fn unfilter(
        &self,
        filters: &[FilterDescription],
        mask: u32,
        stored: Vec<u8>,
        most: usize,
    ) -> Option<Vec<u8>> {
        // The length without filters is not known, so they are undone one by one.
        let mut bytes = stored;
        for (i, filter) in filters.iter().enumerate().rev() {
            let skipped = u32::try_from(i).is_ok_and(|i| mask.checked_shr(i).unwrap_or(0) & 1 == 1);
            if skipped {
                continue;
            }
            let spec = as_stored(filter);
            let shape = ChunkShape { dims: vec![most as u64], elem_size: 1 };
            let filter = make(&self.find, &spec, &shape).ok()?;
            let mut out = Vec::new();
            filter.decode(&bytes, most, &mut out).ok()?;
            bytes = out;
        }
        (bytes.len() <= most).then_some(bytes)
    }
}

fn make(
    find: &FilterFinder,
    spec: &FilterSpec,
    shape: &ChunkShape,
) -> Result<Arc<dyn Filter>, FilterError> {
    match zonda_chunk::filter::builtin(spec.id) {
        Some(make) => make(spec, shape).map(Arc::from),
        None => find
            .as_ref()
            .and_then(|find| find(spec))
            .unwrap_or_else(|| Err(FilterError::missing(spec))),
    }
}

/// What undoes the filters of metadata.
pub(crate) fn unfilter(find: FilterFinder) -> Arc<dyn Unfilter> {
    Arc::new(MetadataFilters { find })
}
