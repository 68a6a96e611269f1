//! Virtual datasets: elements that are in other datasets, of this file or of others beside it.
//!
//! The elements of a source that does not exist are fill values. If a source exists and is refused, or cannot be read,
//! requests for its elements fail. Each request goes through all mappings in order, so that the later of two
//! overlapping ones holds.

use std::sync::Arc;
use zonda_runtime::lock::{Mutex, Rank};

use hashbrown::HashMap;
use zonda_convert::Converted;
use zonda_hdf5::message::{DataLayout, Dataspace, LinkTarget};
use zonda_hdf5::selection::Selection;
use zonda_hdf5::virtual_dataset::{MappingRequest, Piece, VirtualMapping, VirtualSource};
use zonda_hdf5::{File, FileAddr, HdfError, Object};
use zonda_model::{ExtType, Hyperslab, NcError};
use zonda_slab::advance;

use crate::details::Details;
use crate::fault::{Fault, HdfResult, Outcome};
use crate::file_lookup::FileRole;
use crate::files::{Files, ObjectAt};
use crate::request::Request;
use crate::tuning::{VIRTUAL_BLOCKS, VIRTUAL_LEVELS};
use crate::types::Types;
use crate::value_target::ValueTarget;

const NAME: &str = "virtual dataset";
/// A virtual dataset: which elements are in which sources.
#[derive(Debug)]
pub(crate) struct Virtual {
    /// The number of the file that it is in.
    home: u16,
    mapping: VirtualMapping,
    /// Sources that were looked for, by file and path.
    sources: Mutex<HashMap<SourceName, FoundSource>>,
}

/// A source; `None` for one that does not exist.
type FoundSource = HdfResult<Option<Arc<Details>>>;

type SourceName = (Option<Box<[u8]>>, Box<[u8]>);

/// The extent of a dataset; that of a virtual one depends on its sources.
pub(crate) fn extent(
    files: &Files,
    at: ObjectAt,
    file: &File,
    object: &Object,
    space: &Dataspace,
) -> HdfResult<Vec<u64>> {
    match object.layout(file)? {
        DataLayout::Virtual { heap, index } => {
            Virtual::open(file, at.file, heap, index)?.extent(files, space)
        }
        _ => Ok(space.dims.clone()),
    }
}

impl Virtual {
    pub(crate) fn open(
        file: &File,
        home: u16,
        heap: Option<FileAddr>,
        index: u32,
    ) -> HdfResult<Virtual> {
        let mut mapping = VirtualMapping::default();
        if let Some(addr) = heap {
            let collection = file.global_heap_collection(addr)?;
            let missing = HdfError::Missing { structure: NAME, at: addr.0, what: "its mapping" };
            let bytes = collection.get(index).ok_or(missing)?;
            mapping = VirtualMapping::decode(file.reader(NAME, addr, bytes))?;
        }
        Ok(Virtual { home, mapping, sources: Mutex::ranked(Rank::Sources, HashMap::new()) })
    }

    /// Finds a source; an error if it exists and is refused, or cannot be read.
    fn source(&self, files: &Files, one: &VirtualSource) -> FoundSource {
        let name = (one.file.clone(), one.dataset.clone());
        let mut sources = self.sources.lock();
        if let Some(known) = sources.get(&name) {
            return known.clone();
        }
        let in_file = |number: u16| -> FoundSource {
            let root = ObjectAt { file: number, addr: files.get(number)?.root() };
            let target = LinkTarget::Soft(one.dataset.clone());
            let Some(at) = files.follow(root, &target)? else { return Ok(None) };
            // Its attributes are not needed, so no types are, either.
            Ok(Some(Arc::new(Details::read(files, at, &Types::default())?)))
        };
        let found = match &one.file {
            None => in_file(self.home),
            Some(file) => match files.other(FileRole::Virtual, self.home, file) {
                Ok(Some(number)) => {
                    in_file(number).map_err(|cause| FileRole::Virtual.fault(file, cause))
                }
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            },
        };
        // The next try may get what a server did not send now.
        if !found.as_ref().is_err_and(HdfError::is_remote) {
            sources.insert(name, found.clone());
        }
        found
    }

    /// The extent, which unlimited mappings make longer or shorter than the file says.
    ///
    /// # Errors
    /// That of a source that exists and cannot be read.
    pub(crate) fn extent(&self, files: &Files, space: &Dataspace) -> HdfResult<Vec<u64>> {
        let mut dims = space.dims.clone();
        let unlimited: Vec<usize> =
            self.mapping.sources.iter().filter_map(VirtualSource::unlimited_dim).collect();
        for (axis, len) in dims.iter_mut().enumerate().filter(|(axis, _)| unlimited.contains(axis))
        {
            let mut end = 0;
            for one in &self.mapping.sources {
                let here = if one.unlimited_dim() == Some(axis) {
                    self.end_of(files, one)?
                } else {
                    fixed_end(&one.target, axis)
                };
                end = end.max(here.unwrap_or(0));
            }
            *len = end;
        }
        Ok(dims)
    }

    /// How far an unlimited mapping reaches; `None` where there is no source.
    fn end_of(&self, files: &Files, one: &VirtualSource) -> HdfResult<Option<u64>> {
        if !one.is_numbered() {
            let Some(details) = self.source(files, one)? else { return Ok(None) };
            return Ok(one.extent(&details.object()?.dataspace(&details.file)?.dims, 0));
        }
        let mut n = 0u64;
        while self.source(files, &one.block(n))?.is_some() {
            n = n.saturating_add(1);
            if n >= VIRTUAL_BLOCKS {
                // An error, because ignoring the others would make the variable shorter.
                let (structure, what) = (NAME, "numbered sources");
                return Err(HdfError::Limit { structure, at: 0, what, limit: VIRTUAL_BLOCKS });
            }
        }
        Ok(n.checked_sub(1).and_then(|last| one.extent(&[], last)))
    }
}

/// Where a limited target ends along one dimension.
fn fixed_end(target: &Selection, axis: usize) -> Option<u64> {
    match target {
        Selection::Hyperslab(dims) => {
            let dim = dims.get(axis).filter(|dim| !dim.is_unlimited())?;
            Some(dim.at(dim.len().checked_sub(1)?).saturating_add(1))
        }
        _ => None,
    }
}

impl Request<'_> {
    /// Reads a hyperslab of a virtual dataset.
    pub(crate) fn read_virtual(
        &self,
        found: &Virtual,
        slab: &Hyperslab<'_>,
        mut target: ValueTarget<'_>,
        out: &mut [u8],
    ) -> Outcome<Converted> {
        if self.level >= VIRTUAL_LEVELS {
            let (structure, what) = (NAME, "sources that are virtual");
            let limit = u64::from(VIRTUAL_LEVELS);
            return Err(Fault::Hdf(HdfError::Limit { structure, at: 0, what, limit }));
        }
        let axes = 0..slab.count.len();
        let picked: Vec<_> = axes.map(|axis| slab.axis(axis)).collect();
        let start: Vec<_> = picked.iter().map(|axis| axis.start).collect();
        let count: Vec<_> = picked.iter().map(|axis| axis.count).collect();
        let stride: Vec<_> = picked.iter().map(|axis| axis.stride).collect();
        let wanted = MappingRequest { start: &start, count: &count, stride: &stride };
        let mut result = VirtualRead { out, covered: Vec::new(), converted: Converted::default() };
        let n_elems = slab.n_elems().ok_or(NcError::NoMem)?;
        zonda_model::memory::lengthen(&mut result.covered, n_elems, false)?;
        for one in &found.mapping.sources {
            if one.is_numbered() {
                let (first, end) = one.blocks(&wanted);
                for number in first..end.min(VIRTUAL_BLOCKS) {
                    let one = one.block(number);
                    self.read_source(found, &one, &wanted, &mut target, &mut result)?;
                }
            } else {
                self.read_source(found, one, &wanted, &mut target, &mut result)?;
            }
        }
        let VirtualRead { out, covered, mut converted } = result;
        for (element, covered) in out.chunks_exact_mut(self.elem.max(1)).zip(covered) {
            if !covered {
                converted = converted.and(self.read_unwritten(&mut target, element)?);
            }
        }
        Ok(converted)
    }

    /// Reads the elements of a request that one mapping has.
    fn read_source(
        &self,
        found: &Virtual,
        one: &VirtualSource,
        wanted: &MappingRequest<'_>,
        target: &mut ValueTarget<'_>,
        result: &mut VirtualRead<'_>,
    ) -> Outcome<()> {
        let details = match found.source(&self.nc4.files, one) {
            Ok(Some(details)) => details,
            Ok(None) => return Ok(()),
            Err(_) if !one.touches(self.data.extent(), wanted) => return Ok(()),
            Err(error) => return Err(Fault::Hdf(error)),
        };
        let data = self.nc4.data_of(&details, None)?;
        if let Some(spec) = &data.missing {
            return Err(Fault::missing(spec));
        }
        let mut failed = None;
        let mut each = |piece: &Piece| {
            let level = self.level.saturating_add(1);
            let source = Request { data, written: None, level, ..*self };
            self.read_piece(&source, piece, wanted.count, target, result).map_err(|fault| {
                failed = Some(fault);
                HdfError::Missing { structure: NAME, at: 0, what: "a piece" }
            })
        };
        let told = one.pieces(self.data.extent(), data.extent(), wanted, &mut each);
        match (failed, told) {
            (Some(fault), _) => Err(fault),
            (None, told) => Ok(told?),
        }
    }

    fn read_piece(
        &self,
        source: &Request<'_>,
        piece: &Piece,
        count: &[u64],
        target: &mut ValueTarget<'_>,
        result: &mut VirtualRead<'_>,
    ) -> Outcome<()> {
        let size = |&n: &u64| usize::try_from(n).unwrap_or(usize::MAX);
        let from: Vec<usize> = piece.source.start.iter().map(size).collect();
        let part: Vec<usize> = piece.source.count.iter().map(size).collect();
        let step = piece.source.step.iter();
        let step: Vec<isize> = step.map(|&n| isize::try_from(n).unwrap_or(isize::MAX)).collect();
        let slab = Hyperslab { start: &from, count: &part, stride: Some(&step) };
        let n = slab.n_elems().ok_or(NcError::NoMem)?;
        // Sources that overlap, and are virtual themselves, could make a small file cost any time.
        self.spend(n)?;
        let len = n.checked_mul(self.elem).ok_or(NcError::NoMem)?;
        let mut packed = Vec::new();
        packed.try_reserve_exact(len).map_err(|_| Fault::Refused(NcError::NoMem))?;
        packed.resize(len, 0u8);
        let target = self.target_for(source, target)?;
        let converted = source.read(&slab, target, &mut packed)?;
        result.converted = result.converted.and(converted);
        let mut index = vec![0u64; piece.target.count.len()];
        for element in packed.chunks_exact(self.elem.max(1)) {
            let axes = piece.target.start.iter().zip(&piece.target.step).zip(&index).zip(count);
            let at = axes.fold(0u64, |at, (((start, step), i), count)| {
                let here = start.saturating_add(step.saturating_mul(*i));
                at.saturating_mul(*count).saturating_add(here)
            });
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let place = at.checked_mul(self.elem).and_then(|from| result.out.get_mut(from..));
            if let Some(place) = place.and_then(|place| place.get_mut(..self.elem)) {
                place.copy_from_slice(element);
            }
            if let Some(covered) = result.covered.get_mut(at) {
                *covered = true;
            }
            advance(&mut index, &piece.target.count);
        }
        Ok(())
    }

    /// The target for a source: of one with another type, numbers are converted, as HDF5 does.
    fn target_for<'t>(
        &self,
        source: &Request<'_>,
        target: &'t mut ValueTarget<'_>,
    ) -> Outcome<ValueTarget<'t>> {
        let (here, there) = (&self.data.form, &source.data.form);
        match target {
            ValueTarget::Atomic(mem) => Ok(ValueTarget::Atomic(*mem)),
            ValueTarget::Natural(place) if here.identity() == there.identity() => {
                Ok(ValueTarget::Natural(&mut **place))
            }
            ValueTarget::Natural(_) => match here.atomic().and_then(ExtType::from_nc_type) {
                Some(ext) => Ok(ValueTarget::Atomic(ext.natural_mem())),
                None => Err(NcError::BadType.into()),
            },
        }
    }
}

/// What a read of a virtual dataset has so far.
struct VirtualRead<'a> {
    out: &'a mut [u8],
    /// Which elements some source had.
    covered: Vec<bool>,
    converted: Converted,
}
