//! Virtual datasets: which elements of which other datasets stand for the elements of this one.
//! Spec: HDF5 File Format, "Appendix B: Virtual Dataset Mapping" (the object in the global heap that
//! a layout message of class 3 names). Versions 0 and 1.
//! Source selection and target selection have equally many elements, and pair up in their orders.
//! Watch: a selection without end has as many elements as the source has at the time.
//! Watch: `%b` in a name stands for the number of a block of the target selection; each block then
//! has a source of its own, and the source selection is that of one block.

mod dim_pieces;
mod names;
mod ordinals;
mod pieces;
mod request;

use self::names::{is_numbered, with_number, without_doubled};
use crate::checksum::verified;
use crate::selection::Selection;
use crate::{Reader, Result};

pub use self::request::{MappingRequest, Piece, Slab};

const NAME: &str = "virtual dataset mapping";

/// Version 1: the file's name is that of an earlier entry, whose number follows.
const SAME_FILE_NAME: u8 = 1;
/// Version 1: the same for the dataset's name.
const SAME_DATASET_NAME: u8 = 2;
/// Version 1: the source is in the virtual dataset's file.
const THIS_FILE: u8 = 4;

/// One mapping: elements of a source dataset that stand for elements of the virtual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualSource {
    /// Name of the file, relative to the folder of the virtual dataset's; `None` for that file
    /// itself.
    pub file: Option<Box<[u8]>>,
    /// Path of the dataset in it.
    pub dataset: Box<[u8]>,
    /// The elements of the source dataset.
    pub source: Selection,
    /// The elements of the virtual dataset.
    pub target: Selection,
}

/// All mappings of a virtual dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VirtualMapping {
    /// In the order of the file; where targets overlap, the later one holds.
    pub sources: Vec<VirtualSource>,
}

impl VirtualMapping {
    /// Decodes the object in the global heap.
    ///
    /// # Errors
    /// A wrong checksum; names that refer to later entries; selections of impossible form.
    pub fn decode(whole: Reader<'_>) -> Result<VirtualMapping> {
        let mut reader = verified(whole.named(NAME))?;
        let version = reader.version(0..=1)?;
        let n = reader.length()?;
        // Two selections of 16 bytes, and at least a flag or two NULs.
        let n = reader.count(n, 33)?;
        let mut sources: Vec<VirtualSource> = Vec::with_capacity(n);
        for _ in 0..n {
            let flags = if version == 0 { 0 } else { reader.u8()? };
            if flags & !(SAME_FILE_NAME | SAME_DATASET_NAME | THIS_FILE) != 0 {
                return Err(reader.bad("the flags of an entry", u64::from(flags)));
            }
            let file = if flags & THIS_FILE != 0 {
                None
            } else if flags & SAME_FILE_NAME != 0 {
                earlier(&mut reader, &sources)?.file.clone()
            } else {
                let name = reader.until_nul()?;
                (name != b".").then(|| name.into())
            };
            let dataset = if flags & SAME_DATASET_NAME != 0 {
                earlier(&mut reader, &sources)?.dataset.clone()
            } else {
                reader.until_nul()?.into()
            };
            let source = Selection::decode(&mut reader)?;
            let target = Selection::decode(&mut reader)?;
            sources.push(VirtualSource { file, dataset, source, target });
        }
        // Entries refer to names as they are stored, so `%%` is replaced only now.
        for one in sources.iter_mut().filter(|one| !one.is_numbered()) {
            one.file = one.file.as_deref().map(without_doubled);
            one.dataset = without_doubled(&one.dataset);
        }
        Ok(VirtualMapping { sources })
    }

    /// The extent of the virtual dataset, whose dataspace says `dims`: in unlimited dimensions it
    /// follows from what the sources have. `extent_of` gives the extent of a source dataset, `None`
    /// where there is no such source.
    ///
    /// A numbered mapping is asked for block after block, until one is missing.
    pub fn extent(
        &self,
        dims: &[u64],
        extent_of: &mut dyn FnMut(&VirtualSource) -> Option<Vec<u64>>,
    ) -> Vec<u64> {
        let mut out = dims.to_vec();
        for (dim, len) in out.iter_mut().enumerate() {
            let mut grown: Option<u64> = None;
            let mut fixed = 0;
            for source in &self.sources {
                if source.unlimited_dim() != Some(dim) {
                    fixed = source.target.end(dim).unwrap_or(0).max(fixed);
                    continue;
                }
                let end = if source.is_numbered() {
                    let mut number = 0u64;
                    while extent_of(&source.block(number)).is_some() {
                        number = number.saturating_add(1);
                    }
                    number.checked_sub(1).and_then(|last| source.extent(&[], last))
                } else {
                    extent_of(source).and_then(|dims| source.extent(&dims, 0))
                };
                grown = grown.max(Some(end.unwrap_or(0)));
            }
            if let Some(grown) = grown {
                *len = grown.max(fixed);
            }
        }
        out
    }
}

fn earlier<'a>(reader: &mut Reader<'_>, sources: &'a [VirtualSource]) -> Result<&'a VirtualSource> {
    let number = reader.length()?;
    let source = usize::try_from(number).ok().and_then(|number| sources.get(number));
    source.ok_or_else(|| reader.bad("the number of an earlier entry", number))
}

impl VirtualSource {
    /// The dimension of the virtual dataset in which this mapping has no end.
    #[must_use]
    pub fn unlimited_dim(&self) -> Option<usize> {
        self.target.unlimited_dim()
    }

    /// Whether each block of the target has a source of its own, with its number in a name.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        self.unlimited_dim().is_some()
            && (self.file.as_deref().is_some_and(is_numbered) || is_numbered(&self.dataset))
    }

    /// The mapping of one block of a numbered one, its names filled in.
    #[must_use]
    pub fn block(&self, number: u64) -> VirtualSource {
        let mut target = self.target.clone();
        if let (Selection::Hyperslab(dims), Some(dim)) = (&mut target, self.unlimited_dim())
            && let Some(dim) = dims.get_mut(dim)
        {
            dim.start = dim.start.saturating_add(number.saturating_mul(dim.stride));
            dim.count = 1;
        }
        VirtualSource {
            file: self.file.as_deref().map(|name| with_number(name, number)),
            dataset: with_number(&self.dataset, number),
            source: self.source.clone(),
            target,
        }
    }

    /// The blocks of a numbered mapping that a request needs: from the first up to the second, not
    /// included.
    #[must_use]
    pub fn blocks(&self, request: &MappingRequest<'_>) -> (u64, u64) {
        let (Selection::Hyperslab(dims), Some(dim)) = (&self.target, self.unlimited_dim()) else {
            return (0, 0);
        };
        let (request, Some(dim)) = (request.dim(dim), dims.get(dim)) else { return (0, 0) };
        let (stride, end) = (dim.stride.max(1), request.end());
        if end <= dim.start || request.count == 0 {
            return (0, 0);
        }
        let number = |at: u64| at.saturating_sub(dim.start).checked_div(stride).unwrap_or(0);
        (number(request.start), number(end.saturating_sub(1)).saturating_add(1))
    }

    /// The extent that a mapping without end gives the virtual dataset in its unlimited dimension.
    /// The source has the extent `source_dims`; of a numbered mapping, block `number` is the last
    /// that exists. `None` for a mapping with an end.
    #[must_use]
    pub fn extent(&self, source_dims: &[u64], number: u64) -> Option<u64> {
        let dim = self.unlimited_dim()?;
        let Selection::Hyperslab(target) = &self.target else { return None };
        let target = target.get(dim)?;
        if self.is_numbered() {
            let begin = target.start.saturating_add(number.saturating_mul(target.stride));
            return Some(begin.saturating_add(target.block));
        }
        let slices = self.slices(source_dims)?;
        match slices.checked_sub(1) {
            None => Some(0),
            Some(last) => Some(target.at(last).saturating_add(1)),
        }
    }

    /// Elements of the unlimited dimension that the source has.
    fn slices(&self, source_dims: &[u64]) -> Option<u64> {
        let dim = self.source.unlimited_dim()?;
        let Selection::Hyperslab(source) = &self.source else { return None };
        Some(source.get(dim)?.before(*source_dims.get(dim)?))
    }
}
