//! Settings of a variable that may change between its definition and its first data.

use zonda_chunk::FilterSpec;
use zonda_format::VarRef;
use zonda_hdf5::message::FilterDescription;
use zonda_model::release::{Release, answers_as};
use zonda_model::{ExtType, NcError, VarId};

use super::define::Definer;
use super::draft::VarDraft;
use super::filters::{DEFLATE, FLETCHER32, SHUFFLE, SZIP, params_added};
use super::owned_values;
use super::type_size::check_fill;
use super::{Quantize, QuantizeMode, StorageRequest};
use crate::Result;
use crate::element_form::NC_STRING;
use crate::fault::{Coded, Fault, Outcome, refuse_if};
use crate::file::Nc4File;
use crate::model::{Endianness, GroupId, UserClass};
use crate::value_target::NoVlens;
use crate::write::datatypes::Typed;
use zonda_format::Values;

/// The attribute that sets a fill value.
pub(crate) const FILL_VALUE: &[u8] = b"_FillValue";
/// The first release that gives filters to variables of strings and sequences.
const ANY_TYPE_FILTERED: Release = Release::new(4, 9, 3);
/// Compact data are at most so long ...
const MOST_COMPACT: u64 = 64 << 10;
/// ... and with their header in a message of 64 KiB.
const LAYOUT_HEADER: u64 = 16;
/// Filters that a pipeline can have.
const MOST_FILTERS: usize = 32;
/// Most parameters of a filter in a file. netCDF-C asks libhdf5 for as many as there are, and libhdf5 takes a larger
/// number for one that was never set (`H5Pget_filter2`), so that netCDF-C could not read the variable.
pub const MOST_FILTER_PARAMS: usize = 256;
/// Most bytes of the message that has all filters of a variable.
const MOST_PIPELINE_BYTES: usize = 65_000;
/// The last registered number of a filter.
const LAST_FILTER: u32 = 65535;
/// Pixels per block of szip.
const MOST_PIXELS: u32 = 32;

/// Bytes that a filter takes in the message with all filters of a variable.
fn pipeline_bytes(name: usize, params: usize) -> usize {
    // Four numbers of two bytes, the name to a multiple of 8, and room for an odd parameter's partner.
    params.saturating_mul(4).saturating_add(name).saturating_add(20)
}

impl Nc4File {
    /// Gives a variable that is in chunks the filters that [`Nc4File::pipeline`] gives of another variable, so that chunks
    /// can be copied as they are stored ([`Nc4File::put_stored_chunks`]). The filters need not be available; a call that
    /// has to apply them fails then.
    ///
    /// # Errors
    /// As [`TypeDefinitions::def_var_filter`](zonda_format::TypeDefinitions::def_var_filter), but for `NC_ENOFILTER`.
    pub fn def_var_pipeline(
        &mut self,
        group: GroupId,
        var: VarId,
        pipeline: Vec<FilterSpec>,
    ) -> Result<()> {
        let of = VarRef { group, var };
        self.define_of_var(of, |definer| {
            refuse_if(definer.rank_of_draft(of)? == 0, NcError::Inval)?;
            let nc_type = definer.var(of)?.nc_type;
            refuse_if(
                !definer.is_fixed_size(nc_type) || pipeline.len() > MOST_FILTERS,
                NcError::Filter,
            )?;
            let described = |spec: FilterSpec| {
                let id = u16::try_from(spec.id).map_err(|_| NcError::HdfErr)?;
                let (name, flags) = (spec.name.into_bytes().into(), u16::from(spec.optional));
                Ok(FilterDescription { id, name, flags, params: spec.params })
            };
            let filters: Coded<Vec<_>> = pipeline.into_iter().map(described).collect();
            let draft = definer.draft(of)?;
            draft.filters = filters?;
            draft.filters_are_stored = true;
            draft.storage = StorageRequest::Chunked;
            Ok(definer.refresh(of)?)
        })
    }
}

/// Why a filter is refused, where nobody says more.
const SCALAR: &str = "a scalar has no filters";

fn builtin(id: u16, params: Vec<u32>) -> FilterSpec {
    FilterSpec { id: u32::from(id), optional: id != FLETCHER32, name: String::new(), params }
}

/// The most digits or bits that a mode can keep of a type.
fn most_kept(mode: QuantizeMode, ext: ExtType) -> Option<u32> {
    match (mode, ext) {
        (QuantizeMode::BitRound, ExtType::Float) => Some(23),
        (QuantizeMode::BitRound, ExtType::Double) => Some(52),
        (_, ExtType::Float) => Some(7),
        (_, ExtType::Double) => Some(15),
        _ => None,
    }
}

fn check_chunk(sizes: &[u64], lens: &[Option<u64>], elem_size: u64) -> Outcome<()> {
    refuse_if(sizes.len() != lens.len(), NcError::Inval)?;
    let bytes = sizes.iter().try_fold(elem_size, |bytes, &size| bytes.checked_mul(size));
    let is_short = bytes.is_some_and(|bytes| bytes <= u64::from(u32::MAX));
    // Lengths of chunks have 32 bits also where there is no byte in one.
    let fits = sizes.iter().all(|&size| size <= u64::from(u32::MAX));
    let is_longer =
        |(&size, len): (&u64, &Option<u64>)| len.is_some_and(|len| len > 0 && size > len);
    let longer = sizes.iter().zip(lens).position(is_longer);
    if let (Some(axis), true) = (longer, is_short && fits) {
        let (size, len) = (sizes.get(axis), lens.get(axis).copied().flatten());
        let (size, len) = (size.copied().unwrap_or(0), len.unwrap_or(0));
        let why =
            format!("a chunk of {size} elements is longer than dimension {axis}, which has {len}");
        return Err(Fault::Explained(NcError::BadChunk, why));
    }
    if longer.is_some() || !is_short || !fits {
        return Err(Fault::because(
            NcError::BadChunk,
            "the chunk would have 4 GiB or more; less is possible",
        ));
    }
    Ok(())
}

impl Definer<'_> {
    /// Sets shuffle and deflate. Level 0 is no compression.
    ///
    /// # Errors
    /// In the reference's order: `NC_EPERM`, `NC_ENOTVAR`, `NC_ELATEDEF`; `NC_EINVAL` for a scalar,
    /// `NC_EFILTER` for a type of variable length, `NC_EINVAL` for a level beyond 9 or together with
    /// szip. Shuffle is set also where deflate is then refused.
    pub(super) fn def_var_deflate(
        &mut self,
        of: VarRef,
        shuffle: bool,
        level: Option<i32>,
    ) -> Outcome<()> {
        let is_scalar = self.rank_of_draft(of)? == 0;
        if shuffle {
            if is_scalar {
                return Err(Fault::because(NcError::Inval, SCALAR));
            }
            self.add_filter(of, builtin(SHUFFLE, Vec::new()), true)?;
        }
        if let Some(level) = level.filter(|&level| level != 0) {
            // A negative level is a large one.
            let params = vec![u32::from_ne_bytes(level.to_ne_bytes())];
            self.add_filter(of, builtin(DEFLATE, params), true)?;
        }
        Ok(())
    }

    /// Sets checksums of chunks. Once set they stay; not to set them is no definition.
    ///
    /// # Errors
    /// As [`Definer::def_var_deflate`].
    pub(super) fn def_var_fletcher32(&mut self, of: VarRef, on: bool) -> Outcome<()> {
        let is_scalar = self.rank_of_draft(of)? == 0;
        if on && is_scalar {
            return Err(Fault::because(NcError::Inval, SCALAR));
        }
        if on {
            self.add_filter(of, builtin(FLETCHER32, Vec::new()), true)?;
        }
        Ok(())
    }

    /// Sets how a variable is stored; `sizes` is the shape of chunks, where 0 stands for the default.
    ///
    /// # Errors
    /// In the reference's order: `NC_EPERM`, `NC_ENOTVAR`, `NC_ELATEDEF`; `NC_EINVAL` for no chunks
    /// with filters or unlimited dimensions, and for chunks of a scalar; `NC_EBADCHUNK` for chunks
    /// of 4 GiB and longer than their dimensions; `NC_EVARSIZE` for compact data that are too long.
    pub(super) fn def_var_chunking(
        &mut self,
        of: VarRef,
        storage: StorageRequest,
        sizes: Option<&[usize]>,
    ) -> Outcome<()> {
        let rank = self.rank_of_draft(of)?;
        let lens = self.lens(of)?;
        let draft = self.draft(of)?;
        let elem_size = u64::from(draft.datatype.size);
        if storage != StorageRequest::Chunked && (!draft.filters.is_empty() || lens.contains(&None))
        {
            let why = "with filters or unlimited dimensions, only chunks are possible";
            return Err(Fault::because(NcError::Inval, why));
        }
        let mut checked = Ok(());
        match storage {
            StorageRequest::Chunked if rank == 0 => {
                return Err(Fault::because(NcError::Inval, "a scalar has no chunks"));
            }
            StorageRequest::Chunked => {
                draft.storage = storage;
                if let Some(sizes) = sizes {
                    let sizes: Box<[u64]> = sizes.iter().map(|&size| size as u64).collect();
                    // Where they cannot be, the variable is chunked all the same.
                    checked = check_chunk(&sizes, &lens, elem_size);
                    if checked.is_ok() {
                        draft.chunks = Some(sizes);
                    }
                }
            }
            StorageRequest::Compact => {
                let n = lens.iter().flatten().try_fold(1u64, |n, &len| n.checked_mul(len));
                let bytes = n.and_then(|n| n.checked_mul(elem_size)).unwrap_or(u64::MAX);
                refuse_if(bytes > MOST_COMPACT.saturating_sub(LAYOUT_HEADER), NcError::VarSize)?;
                draft.storage = storage;
            }
            StorageRequest::Contiguous => {
                let n = lens.iter().flatten().try_fold(elem_size, |n, &len| n.checked_mul(len));
                refuse_if(n.is_none(), NcError::VarSize)?;
                draft.storage = storage;
            }
            StorageRequest::Unknown => {}
        }
        self.refresh(of)?;
        checked
    }

    /// Sets the byte order in the file.
    ///
    /// # Errors
    /// In the reference's order: `NC_EPERM`, `NC_ENOTVAR`, `NC_ELATEDEF`, `NC_EINVAL` for what is no
    /// number.
    pub(super) fn def_var_endian(&mut self, of: VarRef, endianness: Endianness) -> Outcome<()> {
        self.draft(of)?;
        let nc_type = self.var(of)?.nc_type;
        let ext = ExtType::from_nc_type(nc_type).filter(|&ext| ext != ExtType::Char);
        let ext = ext.ok_or(NcError::Inval)?;
        let draft = self.draft(of)?;
        draft.endianness = endianness;
        draft.datatype = super::datatypes::atomic(ext, endianness);
        Ok(self.refresh(of)?)
    }

    /// Sets whether elements that are never written have a fill value, and which: one element in
    /// memory form, and where that is what it points to. It becomes the attribute `_FillValue`, which
    /// goes where there is no fill value.
    ///
    /// # Errors
    /// In the reference's order: `NC_EGLOBAL`, `NC_EPERM`, `NC_ENOTVAR`, `NC_ELATEDEF`; `NC_EINVAL` for
    /// strings without a fill value; `NC_EINVAL` for a value of another length than an element, and
    /// `NC_EHDFERR` for one of 64 KiB and more, for which HDF5 has no room.
    pub(super) fn def_var_fill(
        &mut self,
        of: VarRef,
        no_fill: bool,
        value: Option<Values<'_>>,
    ) -> Outcome<()> {
        refuse_if(of.var == VarId::GLOBAL, NcError::Global)?;
        self.draft(of)?;
        let nc_type = self.var(of)?.nc_type;
        refuse_if(no_fill && nc_type == NC_STRING, NcError::Inval)?;
        let draft = self.draft(of)?;
        draft.no_fill = no_fill;
        let had_value = draft.fill_value.is_some();
        match value.filter(|_| !no_fill) {
            Some(value) => {
                let typed = Typed::of(self.model, nc_type, Endianness::Native)?;
                check_fill(typed.form.file_size)?;
                let bytes = value.bytes.get(..typed.form.size).ok_or(NcError::Inval)?;
                let mut none = NoVlens::default();
                let held = match value.fetch {
                    Some(fetch) => owned_values::take(&typed.form, fetch, bytes)?,
                    None => owned_values::take(&typed.form, &mut none, bytes)?,
                };
                refuse_if(none.is_asked, NcError::BadType)?;
                // The reference deletes the attribute and makes it anew, so it comes last.
                let atts = self.edit_atts(of)?;
                if let Some(number) = atts.find(FILL_VALUE) {
                    atts.delete(number);
                }
                atts.put(FILL_VALUE, nc_type, 1, held.clone())?;
                self.draft(of)?.fill_value = Some(held);
            }
            None if no_fill && had_value => {
                let atts = self.edit_atts(of)?;
                if let Some(number) = atts.find(FILL_VALUE) {
                    atts.delete(number);
                }
                self.draft(of)?.fill_value = None;
            }
            None => {}
        }
        Ok(self.refresh(of)?)
    }

    /// Sets how the precision of values is reduced, by the numbers that C has for the modes; 0 is not at all.
    ///
    /// # Errors
    /// In the reference's order: `NC_EGLOBAL`, `NC_EPERM`, `NC_ENOTVAR`, `NC_ELATEDEF`; `NC_EINVAL`
    /// for a mode that does not exist, for what is neither `float` nor `double`, and for digits
    /// that it has not.
    pub(super) fn def_var_quantize(&mut self, of: VarRef, mode: i32, kept: i32) -> Outcome<()> {
        refuse_if(of.var == VarId::GLOBAL, NcError::Global)?;
        self.draft(of)?;
        let ext = ExtType::from_nc_type(self.var(of)?.nc_type);
        let found = QuantizeMode::ALL.into_iter().find(|known| known.number() == mode);
        let quantize = match (found, ext) {
            (None, _) if mode == 0 => None,
            (Some(mode), Some(ext)) => {
                let most = most_kept(mode, ext).ok_or(NcError::Inval)?;
                let kept = u32::try_from(kept).ok().filter(|kept| (1..=most).contains(kept));
                Some(Quantize { mode, kept: kept.ok_or(NcError::Inval)? })
            }
            _ => return Err(NcError::Inval.into()),
        };
        self.draft(of)?.quantize = quantize;
        Ok(())
    }

    /// Dimensions of a variable whose settings may be changed.
    fn rank_of_draft(&mut self, of: VarRef) -> Coded<usize> {
        self.draft(of)?;
        Ok(self.var(of)?.dims.len())
    }

    /// Lengths of a variable's dimensions, `None` for unlimited ones.
    fn lens(&self, of: VarRef) -> Coded<Vec<Option<u64>>> {
        let dims = self.var(of)?.dims.iter();
        let len = |&id| self.model.dim(id).filter(|dim| !dim.is_unlimited).map(|dim| dim.len);
        Ok(dims.map(len).collect())
    }

    /// Whether elements of a type have one length.
    fn is_fixed_size(&self, nc_type: i32) -> bool {
        match self.model.user_type(nc_type).map(|ty| &ty.class) {
            None => nc_type != NC_STRING,
            Some(UserClass::Enum { .. } | UserClass::Opaque) => true,
            Some(UserClass::Compound(fields)) => {
                fields.iter().all(|field| self.is_fixed_size(field.nc_type))
            }
            Some(UserClass::Vlen { .. } | UserClass::String | UserClass::Unknown) => false,
        }
    }

    pub(super) fn add_filter(
        &mut self,
        of: VarRef,
        spec: FilterSpec,
        is_there: bool,
    ) -> Outcome<()> {
        let known = self.var(of)?;
        // Filters apply to the references to the heap, not to the values there. Releases since 4.9.3 accept that.
        if !self.is_fixed_size(known.nc_type) && answers_as() < ANY_TYPE_FILTERED {
            return Err(Fault::because(NcError::Filter, "strings and sequences have no filters"));
        }
        refuse_if(!self.is_defining(), NcError::InDefine)?;
        if known.dims.is_empty() {
            return Err(Fault::because(NcError::Inval, SCALAR));
        }
        let dim_len = |&id| self.model.dim(id).map(|dim| dim.len).filter(|&len| len > 0);
        let elems = known.dims.iter().filter_map(dim_len);
        let elems = elems.fold(1u64, |n, len| n.saturating_mul(len));
        let draft = self.draft(of)?;
        if spec.id > LAST_FILTER {
            let why = format!("filter {} is beyond {LAST_FILTER}, the last number", spec.id);
            return Err(Fault::Explained(NcError::HdfErr, why));
        }
        if !is_there {
            let why = format!(
                "filter {} is not built in, and HDF5_PLUGIN_PATH leads to no plugin for it",
                spec.id
            );
            return Err(Fault::Explained(NcError::NoFilter, why));
        }
        let id = u16::try_from(spec.id).map_err(|_| NcError::HdfErr)?;
        check_params(draft, id, &spec.params, elems)?;
        let others = draft.filters.iter().filter(|filter| filter.id != id);
        let others = others.map(|filter| pipeline_bytes(filter.name.len(), filter.params.len()));
        let bytes = others.fold(0, usize::saturating_add);
        let bytes = bytes.saturating_add(pipeline_bytes(spec.name.len(), spec.params.len()));
        let n_params = spec.params.len().saturating_add(params_added(id));
        refuse_if(n_params > MOST_FILTER_PARAMS || bytes > MOST_PIPELINE_BYTES, NcError::Filter)?;
        let flags = match id {
            DEFLATE | SHUFFLE | SZIP => 1,
            FLETCHER32 => 0,
            _ => u16::from(spec.optional),
        };
        let filter = FilterDescription {
            id,
            name: spec.name.into_bytes().into(),
            flags,
            params: spec.params,
        };
        insert(&mut draft.filters, filter)?;
        draft.filters_are_stored = false;
        draft.storage = StorageRequest::Chunked;
        Ok(self.refresh(of)?)
    }
}

/// Checks the parameters of filters that the reference knows, and whether these filters go together.
fn check_params(draft: &VarDraft, id: u16, params: &[u32], elems: u64) -> Outcome<()> {
    let has = |id| draft.filters.iter().any(|filter| filter.id == id);
    // The message has 16 bits for their number.
    refuse_if(u16::try_from(params.len()).is_err(), NcError::Filter)?;
    match (id, params) {
        (DEFLATE, &[level]) if level > 9 => {
            let level = i32::from_ne_bytes(level.to_ne_bytes());
            let why = format!("deflate has levels 0 to 9, not {level}");
            Err(Fault::Explained(NcError::Inval, why))
        }
        (DEFLATE, &[_]) if has(SZIP) => {
            Err(Fault::because(NcError::Inval, "deflate and szip are not possible at once"))
        }
        (SZIP, &[_, pixels]) => {
            let is_bad = pixels == 0 || pixels % 2 == 1 || pixels > MOST_PIXELS;
            let is_bad = is_bad || has(DEFLATE) || u64::from(pixels) > elems;
            if is_bad { Err(NcError::Inval.into()) } else { Ok(()) }
        }
        (DEFLATE, &[_]) => Ok(()),
        (DEFLATE | SZIP, _) => Err(NcError::Filter.into()),
        _ => Ok(()),
    }
}

/// The checksum comes first, shuffle before the others; a filter that is there keeps its place.
fn insert(filters: &mut Vec<FilterDescription>, filter: FilterDescription) -> Coded<()> {
    if let Some(known) = filters.iter_mut().find(|known| known.id == filter.id) {
        *known = filter;
        return Ok(());
    }
    refuse_if(filters.len() >= MOST_FILTERS, NcError::Filter)?;
    let has_checksum = filters.first().is_some_and(|first| first.id == FLETCHER32);
    let at = match filter.id {
        FLETCHER32 => 0,
        SHUFFLE => usize::from(has_checksum),
        _ => filters.len(),
    };
    filters.insert(at, filter);
    Ok(())
}

#[cfg(test)]
mod tests;
