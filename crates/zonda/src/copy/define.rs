//! The definitions of the target.

use std::collections::BTreeMap;

use zonda_chunk::FilterSpec;
use zonda_classic::{FillMode, Reserve};
use zonda_format::{
    Endianness, FIRST_USER_TYPE, Format, GroupId, NC_STRING, StorageKind, StorageRequest, Values,
    VarInfo, VarRef,
};
use zonda_model::{Answer, DimId, NcError, memory};
use zonda_nc4::UnwrittenElements;

use super::rules::{CopyRules, RuledAxis, RuledFilters, RuledStorage, RuledVar};
use super::salvage::{Loss, is_ours};
use super::storage::StoragePlan;
use super::tree::{AttDef, ClassDef, DefinitionTree, DimDef, TypeDef, VarDef, joined, shown};
use super::vlen_buffer::VlenBuffer;
use super::{Copied, CopyOptions, atts, fit};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::nc4::filter_is_available;
use crate::tuning::UNWRITTEN_MAX_BYTES;

/// The attribute that sets a fill value.
const FILL_VALUE: &[u8] = b"_FillValue";
/// Numbers of filters that have more parameters in a file than those they are defined with.
const SCALE_OFFSET: u32 = 6;
const BITSHUFFLE: u32 = 32008;

/// A variable of the target.
#[derive(Debug)]
pub(super) struct TargetVar<'t> {
    pub var: &'t VarDef,
    pub target: VarRef,
    /// The copy gives up precision that the source has (quantization).
    pub is_quantized: bool,
    /// Its data are to be copied, too.
    pub has_data: bool,
}

/// What decides about the contents of a copy: the options or, where given, rules.
#[derive(Clone, Copy)]
pub(super) struct DecidedBy<'a> {
    pub options: &'a CopyOptions,
    pub rules: Option<&'a dyn CopyRules>,
}

/// Defines everything in the target, and leaves define mode.
///
/// # Errors
/// What defining meets, with the name of the object.
pub(super) fn all<'t>(
    source: &Dataset,
    target: &Dataset,
    tree: &'t DefinitionTree,
    by: DecidedBy<'_>,
    copied: &mut Copied,
) -> Result<Vec<TargetVar<'t>>> {
    let format = target.format();
    let mut definer = TargetDefiner {
        source,
        target,
        format,
        by,
        notes: &mut copied.notes,
        lost: &mut copied.lost,
        dim_paths: dim_paths(tree),
        groups: vec![GroupId::ROOT],
        types: BTreeMap::new(),
        dims: BTreeMap::new(),
    };
    if !format.is_hdf5() || by.rules.is_some() {
        // Every element is going to be written.
        let _before = target.set_fill(FillMode::NoFill)?;
    }
    if format.is_hdf5() && source.is_hdf5() {
        target.change_hdf5(zonda_nc4::Nc4File::accept_any_name)?;
    }
    definer.def_groups(tree)?;
    if format == Format::NetCdf4 {
        for ty in &tree.types {
            definer.def_type(ty).map_err(|error| fault("type", &ty.name, error))?;
        }
    }
    for dim in &tree.dims {
        definer.def_dim(dim).map_err(|error| dim_fault(dim, error))?;
    }
    let vars = definer.def_contents(tree)?;
    target.enddef(Reserve::Default)?;
    Ok(vars)
}

/// An error about a dimension. An HDF5 error means that a netCDF-4 file cannot have a dimension of its length.
fn dim_fault(dim: &DimDef, error: Error) -> Error {
    if error.code() != NcError::HdfErr || error.answer() != Answer::Request {
        return fault("dimension", &dim.name, error);
    }
    let (name, len) = (shown(&dim.name), dim.len);
    let text = format!("dimension {name}: no netCDF-4 file can have one of {len}");
    Error::answered(NcError::HdfErr, Answer::Unrepresentable, text)
}

/// An error about something that has a name.
pub(super) fn fault(kind: &str, name: &[u8], error: Error) -> Error {
    let cause = error.cause();
    // Errors of netCDF-4 files begin with a path, too.
    let why = match cause.split_once(": ") {
        Some((path, why)) if path.starts_with('/') => why,
        _ => &cause,
    };
    let named = format!("{kind} {}", shown(name));
    // A text that begins with the name needs no second one.
    let text = match why.strip_prefix(&named) {
        Some(after_name) if after_name.starts_with(' ') => why.to_owned(),
        _ => format!("{named}: {why}"),
    };
    // The source has this name, but no netCDF file can be given it.
    let is_name = matches!(error.code(), NcError::BadName | NcError::MaxName);
    if is_name && error.answer() == Answer::Request {
        return Error::answered(error.code(), Answer::Unrepresentable, text);
    }
    error.with_other_text(text)
}

/// An error about something that the caller asked for: the file is sound.
fn of_request(error: Error) -> Error {
    let text = error.cause();
    Error::answered(error.code(), Answer::Request, text)
}

fn dim_paths(tree: &DefinitionTree) -> BTreeMap<i32, Vec<u8>> {
    let path = |dim: &DimDef| joined(&tree.groups[dim.group].path, &dim.name);
    tree.dims.iter().map(|dim| (dim.source.0, path(dim))).collect()
}

/// Defines in the target what the source has.
struct TargetDefiner<'a> {
    source: &'a Dataset,
    target: &'a Dataset,
    format: Format,
    by: DecidedBy<'a>,
    notes: &'a mut Vec<String>,
    lost: &'a mut Vec<Loss>,
    /// Paths of dimensions, by their numbers in the source.
    dim_paths: BTreeMap<i32, Vec<u8>>,
    groups: Vec<GroupId>,
    /// Numbers in the target, by those in the source.
    types: BTreeMap<i32, i32>,
    dims: BTreeMap<i32, DimId>,
}

impl TargetDefiner<'_> {
    /// Defines the groups below the root.
    fn def_groups(&mut self, tree: &DefinitionTree) -> Result<()> {
        for group in tree.groups.iter().skip(1) {
            let parent = self.groups[group.parent.unwrap_or(0)];
            let defined = self.target.def_group(parent, &group.name);
            self.groups.push(defined.map_err(|error| fault("group", &group.path, error))?);
        }
        Ok(())
    }

    /// Defines the variables of all groups, and puts all attributes.
    fn def_contents<'t>(&mut self, tree: &'t DefinitionTree) -> Result<Vec<TargetVar<'t>>> {
        let mut vars = Vec::new();
        for (index, group) in tree.groups.iter().enumerate() {
            let id = self.groups[index];
            for att in &group.atts {
                let owners = (VarRef::group(group.source), VarRef::group(id));
                self.put_att(owners, &group.path, att)?;
            }
            for var in &group.vars {
                vars.push(self.def_var(id, var)?);
            }
        }
        Ok(vars)
    }

    fn type_of(&self, nc_type: i32) -> i32 {
        self.types.get(&nc_type).copied().unwrap_or(nc_type)
    }

    fn def_type(&mut self, ty: &TypeDef) -> Result<()> {
        let (target, group) = (self.target, self.groups[ty.group]);
        let id = match &ty.class {
            ClassDef::Compound(fields) => {
                let id = target.def_compound(group, ty.size, &ty.name)?;
                for field in fields {
                    let (at, of) = (field.offset, self.type_of(field.nc_type));
                    target.insert_field((group, id), &field.name, at, of, &field.dims)?;
                }
                id
            }
            ClassDef::Enum(base, members) => {
                let id = target.def_enum(group, *base, &ty.name)?;
                for (name, value) in members {
                    target.insert_member((group, id), name, value)?;
                }
                id
            }
            ClassDef::Opaque => target.def_opaque(group, ty.size, &ty.name)?,
            ClassDef::Vlen(base) => target.def_vlen(group, &ty.name, self.type_of(*base))?,
        };
        self.types.insert(ty.source, id);
        Ok(())
    }

    fn def_dim(&mut self, dim: &DimDef) -> Result<()> {
        let len = if dim.is_unlimited { 0 } else { dim.len };
        if len == 0 && !dim.is_unlimited {
            self.notes
                .push(format!("dimension {} of length 0 becomes unlimited", shown(&dim.name)));
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let id = self.target.def_dim_in(self.groups[dim.group], &dim.name, len)?;
        // In a damaged file two dimensions may have one number; the outer one counts.
        self.dims.entry(dim.source.0).or_insert(id);
        Ok(())
    }

    fn put_att(&mut self, (from, to): (VarRef, VarRef), owner: &[u8], att: &AttDef) -> Result<()> {
        let is_kept = self.by.rules.is_some();
        let nc_type = match if is_kept { att.nc_type } else { fit::att_type(att, self.format) } {
            user if user >= FIRST_USER_TYPE => self.type_of(user),
            atomic => atomic,
        };
        let name = || [owner, b"@", &att.name].concat();
        match atts::copy(self.source, from, att, self.target, to, nc_type) {
            Err(error) if self.by.options.salvage && !is_ours(&error) => {
                self.lost.push(Loss::whole(&name(), &error));
                Ok(())
            }
            done => done.map_err(|error| fault("attribute", &name(), error)),
        }
    }

    fn def_var<'t>(&mut self, group: GroupId, var: &'t VarDef) -> Result<TargetVar<'t>> {
        let at = |error| fault("variable", &var.path, error);
        let dims =
            var.axes.iter().map(|axis| self.dims.get(&axis.source.0).map_or(-1, |dim| dim.0));
        let dims: Vec<i32> = dims.collect();
        let nc_type = self.type_of(var.nc_type);
        let id = self.target.def_var_in(group, &var.name, nc_type, &dims).map_err(at)?;
        let target = VarRef { group, var: id };
        let has_data = self.by.rules.is_none_or(|rules| rules.has_data(&var.path));
        let mut made = TargetVar { var, target, is_quantized: false, has_data };
        match self.by.rules {
            _ if !self.format.is_hdf5() => {}
            Some(rules) => self.store_by(rules, &made).map_err(at)?,
            None => {
                let stored = StoragePlan::of(var, self.by.options)?;
                made.is_quantized = stored.quantize.is_some();
                self.store(&made, stored).map_err(at)?;
            }
        }
        for att in &var.atts {
            let quantized = att.name.starts_with(b"_Quantize") && made.is_quantized;
            if quantized {
                // The writer makes this attribute by itself, for the precision that it really kept.
                continue;
            }
            let is_odd_fill =
                *att.name == *FILL_VALUE && (att.nc_type, att.len) != (var.nc_type, 1);
            if is_odd_fill && self.format.is_hdf5() {
                let path = shown(&var.path);
                self.notes.push(format!(
                    "attribute {path}@_FillValue is not of the variable's type and left out"
                ));
                continue;
            }
            self.put_att((var.source, target), &var.path, att)?;
        }
        Ok(made)
    }

    fn store(&mut self, made: &TargetVar<'_>, stored: StoragePlan) -> Result<()> {
        let (var, target, id) = (made.var, self.target, made.target);
        let info = var.info.as_deref();
        self.order_bytes(made)?;
        match target.def_var_chunking(id, stored.request, stored.chunks.as_deref()) {
            // Too long for an object header.
            Err(_) if stored.request == StorageRequest::Compact => {
                target.def_var_chunking(id, StorageRequest::Contiguous, None)?;
            }
            done => done?,
        }
        if let Some(quantize) = stored.quantize {
            let kept = i32::try_from(quantize.kept).unwrap_or(i32::MAX);
            target.def_var_quantize(id, quantize.mode.number(), kept)?;
        }
        match (&stored.filters, info) {
            (Some(filters), _) => {
                filters.iter().try_for_each(|filter| self.def_filter(id, filter.clone()))?;
            }
            (None, Some(info)) => self.keep_filters(made, stored.chunks.as_ref(), info)?,
            (None, None) => {}
        }
        match info.map(|info| self.fill(made, info)) {
            // Where the fill value cannot be read, the default one stays.
            Some(Err(error)) if self.by.options.salvage && !is_ours(&error) => {
                self.lost.push(Loss::whole(&var.path, &error));
                Ok(())
            }
            done => done.unwrap_or(Ok(())),
        }
    }

    /// Adds a filter that was asked for.
    fn def_filter(&self, id: VarRef, filter: FilterSpec) -> Result<()> {
        let number = filter.id.to_string();
        let defined = self.target.def_var_filter(id, filter);
        defined.map_err(|error| of_request(fault("filter", number.as_bytes(), error)))
    }

    fn order_bytes(&self, made: &TargetVar<'_>) -> Result<()> {
        let order = made.var.info.as_deref().map_or(Endianness::Native, |info| info.endianness);
        if order != Endianness::Native && is_number(made.var.nc_type) {
            self.target.def_var_endian(made.target, order)?;
        }
        Ok(())
    }

    /// Defines the storage of a variable by rules, in the order in which a program calls the library.
    fn store_by(&mut self, rules: &dyn CopyRules, made: &TargetVar<'_>) -> Result<()> {
        let (var, target, id) = (made.var, self.target, made.target);
        let info = var.info.as_deref();
        self.order_bytes(made)?;
        if var.axes.is_empty() {
            return Ok(());
        }
        let is_chunked = target.def_var_chunking(id, StorageRequest::Chunked, None).is_ok();
        let default_chunks = match &target.var_info(id)?.storage {
            StorageKind::Chunked(dims) if is_chunked => dims.clone(),
            _ => Vec::new(),
        };
        let axes: Vec<RuledAxis<'_>> = (var.axes.iter())
            .map(|axis| RuledAxis {
                path: self.dim_paths.get(&axis.source.0).unwrap_or(&axis.name),
                len: axis.len,
                // A dimension of length 0 can only be defined as unlimited.
                is_unlimited: axis.is_unlimited || axis.len == 0,
            })
            .collect();
        let stored = rules.storage(&RuledVar {
            path: &var.path,
            elem_bytes: var.elem as u64,
            axes: &axes,
            source: info,
            default_chunks: &default_chunks,
        })?;
        let stored = keep_opaque(stored, info);
        target.def_var_chunking(id, stored.request, stored.chunks.as_deref())?;
        if let Some(info) = info
            && self.is_sparse(var.source, UNWRITTEN_MAX_BYTES)?
        {
            // Most elements were never written: writing them would make the copy much larger than the source.
            target.def_var_fill_values(id, false, None)?;
            self.fill(made, info)?;
        }
        match (stored.filters, info) {
            (filters, _) if var.has_pointers => {
                let had = info.is_some_and(|info| !info.filters.is_empty());
                let is_lost = match filters {
                    RuledFilters::Kept => had,
                    RuledFilters::These(filters) => !filters.is_empty(),
                };
                if is_lost {
                    let path = shown(&var.path);
                    let why = "has strings or sequences, which filters do not reach";
                    self.notes.push(format!("variable {path} {why}, and gets none"));
                }
            }
            (RuledFilters::These(filters), _) => {
                filters.into_iter().try_for_each(|filter| self.def_filter(id, filter))?;
            }
            (RuledFilters::Kept, Some(info)) if !info.filters.is_empty() => {
                self.keep_filters(made, stored.chunks.as_ref(), info)?;
            }
            (RuledFilters::Kept, _) => {}
        }
        Ok(())
    }

    /// Sets what elements that were never written read as, where no attribute says so.
    fn fill(&mut self, made: &TargetVar<'_>, info: &VarInfo) -> Result<()> {
        let (var, target, id) = (made.var, self.target, made.target);
        let from = var.source;
        let of_source = self.source.hdf5(|file| Ok(file.never_written(from.group, from.var)?))?;
        let (mut value, mut pieces) = (memory::filled(var.elem, 0)?, VlenBuffer::default());
        match of_source {
            UnwrittenElements::Value if var.atts.iter().any(|att| *att.name == *FILL_VALUE) => {
                return Ok(());
            }
            UnwrittenElements::Value => self.source.fill_value(from, &mut pieces, &mut value)?,
            // Without a fill value the source reads as zeros, and so has the copy to.
            UnwrittenElements::Zeros if self.is_waste(from)? && !var.has_pointers => {}
            UnwrittenElements::Zeros | UnwrittenElements::Undefined => {
                let can_be = info.no_fill && var.nc_type != NC_STRING;
                return if can_be { target.def_var_fill_values(id, true, None) } else { Ok(()) };
            }
        }
        let value = Values { bytes: &value, fetch: Some(&mut pieces) };
        target.def_var_fill_values(id, false, Some(value))?;
        // Deleting the attribute keeps the fill value.
        target.del_att(id, FILL_VALUE)
    }

    /// Whether so many elements were never written that writing them would waste space.
    fn is_waste(&self, var: VarRef) -> Result<bool> {
        let info = self.source.var_info(var)?;
        let can_fill = info.filters.iter().all(|filter| filter_is_available(filter.id));
        self.is_sparse(var, if can_fill { UNWRITTEN_MAX_BYTES } else { 0.0 })
    }

    /// Whether more bytes than `most` were never written.
    fn is_sparse(&self, var: VarRef, most: f64) -> Result<bool> {
        let info = self.source.var_info(var)?;
        if matches!(info.storage, StorageKind::External | StorageKind::Virtual) {
            return Ok(false);
        }
        let stored = self.source.stored(var)?;
        let missing = match stored.chunks {
            Some((there, all)) => {
                let part = all.saturating_sub(there) as f64 / all.max(1) as f64;
                part * stored.data_bytes as f64
            }
            None => stored.data_bytes.saturating_sub(stored.bytes) as f64,
        };
        Ok(missing > most)
    }

    /// Keeps the filters of the source: with their stored parameters where chunks are the same in the target, and
    /// else with the parameters of a definition, since the others follow from the shape of chunks.
    fn keep_filters(
        &mut self,
        made: &TargetVar<'_>,
        chunks: Option<&Vec<usize>>,
        info: &VarInfo,
    ) -> Result<()> {
        let (from, to) = (made.var.source, made.target);
        let same_chunks = match &info.storage {
            StorageKind::Chunked(dims) => chunks == Some(dims),
            _ => false,
        };
        if same_chunks && super::raw::same_type(self.source, made, self.target)? {
            let pipeline = self.source.hdf5(|file| Ok(file.pipeline(from.group, from.var)?))?;
            if !pipeline.is_empty() {
                let def = |file: &mut zonda_nc4::Nc4File| {
                    file.def_var_pipeline(to.group, to.var, pipeline)
                };
                self.target.change_hdf5(def)?;
            }
            return Ok(());
        }
        for filter in info.filters.iter().map(asked_for) {
            let number = filter.id.to_string();
            let defined = self.target.def_var_filter(to, filter);
            defined.map_err(|error| fault("filter", number.as_bytes(), error))?;
        }
        Ok(())
    }
}

/// Keeps the shape of chunks that cannot be decoded because a filter is missing: they are copied as they are stored.
fn keep_opaque(stored: RuledStorage, info: Option<&VarInfo>) -> RuledStorage {
    let Some(info) = info.filter(|_| stored.filters == RuledFilters::Kept) else { return stored };
    match &info.storage {
        StorageKind::Chunked(dims)
            if info.filters.iter().any(|filter| !filter_is_available(filter.id)) =>
        {
            let (request, chunks) = (StorageRequest::Chunked, Some(dims.clone()));
            RuledStorage { request, chunks, ..stored }
        }
        _ => stored,
    }
}

fn is_number(nc_type: i32) -> bool {
    use zonda_model::ExtType;
    ExtType::from_nc_type(nc_type).is_some_and(|ext| ext != ExtType::Char)
}

/// The definition of a filter, made of the filter as a file stores it.
fn asked_for(filter: &FilterSpec) -> FilterSpec {
    let mut filter = filter.clone();
    match filter.id {
        // The parameters that follow are about the type and the chunk.
        SCALE_OFFSET => filter.params.truncate(2),
        // The parameters before are the version and the size of an element.
        BITSHUFFLE if filter.params.len() >= 3 => {
            filter.params.drain(..3);
        }
        _ => {}
    }
    filter
}
