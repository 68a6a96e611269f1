//! Writes the netCDF file that a text describes.

use std::path::Path;

use zonda::copy::Temporary;
use zonda::{
    CreateOptions, Dataset, DimId, Endianness, FillMode, FilterSpec, Format, GroupId, Hyperslab,
    Persist, QuantizeMode, Reserve, StorageRequest, Values, VarRef, VlenSource,
    filter_is_available,
};
use zonda_cdl::{
    CdlAttribute, CdlFault, CdlText, CdlType, CdlVariable, DataSink, DataSlab, Elements, Endian,
    NetCdfKind, Primitive, Quantizer, Schema, StorageLayout, TypeClass, TypeRef, VlenPieces,
    attribute, stream,
};

/// What file to write.
pub(super) struct OutputFile<'a> {
    pub(super) target: &'a Path,
    /// The path of the text, which must not be overwritten.
    pub(super) text: &'a Path,
    pub(super) kind: NetCdfKind,
    pub(super) no_fill: bool,
    pub(super) header_only: bool,
    pub(super) in_memory: bool,
}

/// `NC_STRING`
const STRING: i32 = zonda::NC_STRING;

/// Writes the file. It gets its name when it is complete.
pub(super) fn write_file(
    source: &CdlText,
    schema: &mut Schema,
    options: &OutputFile<'_>,
    warn: &dyn Fn(&CdlFault),
) -> Result<(), CdlFault> {
    let temporary = Temporary::beside(options.target, options.text, true);
    let temporary = temporary.map_err(|error| CdlFault::nowhere(error.to_string()))?;
    let path = temporary.working_path();
    let create_options = CreateOptions {
        // The temporary name has an empty file already, which this replaces.
        format: format(options.kind),
        in_memory: options.in_memory.then_some(Persist::Yes),
        ..CreateOptions::default()
    };
    let dataset = Dataset::create(path, &create_options).map_err(|error| {
        CdlFault::nowhere(with_target_name(&error.to_string(), path, options.target))
    })?;
    let writer = FileWriter {
        dataset,
        options,
        warn,
        types: Vec::new(),
        groups: Vec::new(),
        vars: Vec::new(),
        dims: Vec::new(),
    };
    if let Err(fault) = writer.make(source, schema) {
        let message = with_target_name(&fault.message, path, options.target);
        return Err(CdlFault { message, ..fault });
    }
    temporary.finish().map_err(|error| CdlFault::nowhere(error.to_string()))
}

/// Replaces the temporary name of the file in a message, which users do not know.
fn with_target_name(message: &str, path: &Path, target: &Path) -> String {
    let target = zonda::shown_name(target).display().to_string();
    message.replace(&path.display().to_string(), &target)
}

fn format(kind: NetCdfKind) -> Format {
    match kind {
        NetCdfKind::Classic => Format::Cdf1,
        NetCdfKind::Offset64 => Format::Cdf2,
        NetCdfKind::Data64 => Format::Cdf5,
        NetCdfKind::NetCdf4 => Format::NetCdf4,
        NetCdfKind::NetCdf4Classic => Format::NetCdf4Classic,
    }
}

struct FileWriter<'a> {
    dataset: Dataset,
    options: &'a OutputFile<'a>,
    warn: &'a dyn Fn(&CdlFault),
    /// Ids in the file, by the numbers in the schema.
    groups: Vec<GroupId>,
    types: Vec<i32>,
    dims: Vec<DimId>,
    vars: Vec<VarRef>,
}

/// Gives strings and sequences to the file.
struct PieceSource<'a>(&'a VlenPieces);

impl VlenSource for PieceSource<'_> {
    fn text(&mut self, number: u64) -> Option<&[u8]> {
        self.0.get(number)
    }

    fn items(&mut self, number: u64, len: usize) -> &[u8] {
        self.0.get(number).and_then(|bytes| bytes.get(..len)).unwrap_or_default()
    }
}

/// Makes a fault of an error of the file, for an object of the text.
fn at(place: u64, what: &str, name: &[u8]) -> impl Fn(zonda::Error) -> CdlFault {
    let about = format!("{what} {}", String::from_utf8_lossy(name));
    move |error| CdlFault::at(place, format!("{about}: {error}"))
}

impl FileWriter<'_> {
    fn make(mut self, source: &CdlText, schema: &mut Schema) -> Result<(), CdlFault> {
        let whole = |error: zonda::Error| CdlFault::nowhere(error.to_string());
        let made = self.define(schema);
        let done = made.and_then(|()| match self.options.header_only {
            true => Ok(()),
            false => stream(source, schema, &mut self),
        });
        match done {
            Ok(()) => self.dataset.close().map_err(whole),
            Err(fault) => {
                // The fault says more than an error of `abort` would.
                let _ = self.dataset.abort();
                Err(fault)
            }
        }
    }

    fn define(&mut self, schema: &Schema) -> Result<(), CdlFault> {
        let whole = |error: zonda::Error| CdlFault::nowhere(error.to_string());
        if self.options.no_fill {
            self.dataset.set_fill(FillMode::NoFill).map_err(whole)?;
        }
        for group in &schema.groups {
            let id = match group.parent.and_then(|parent| self.groups.get(parent)) {
                None => GroupId::ROOT,
                Some(parent) => {
                    let defined = self.dataset.def_group(*parent, &group.name);
                    defined.map_err(at(group.at, "group", &group.name))?
                }
            };
            self.groups.push(id);
        }
        self.types = vec![0; schema.types.len()];
        for index in schema.type_order() {
            let ty = &schema.types[index];
            self.types[index] = self.define_type(ty).map_err(at(ty.at, "type", &ty.name))?;
        }
        for dim in &schema.dims {
            let group = self.groups[dim.group];
            let len =
                if dim.unlimited { 0 } else { usize::try_from(dim.len).unwrap_or(usize::MAX) };
            let defined = self.dataset.def_dim_in(group, &dim.name, len);
            self.dims.push(defined.map_err(at(dim.at, "dimension", &dim.name))?);
        }
        for var in &schema.vars {
            let (group, ty) = (self.groups[var.group], self.nc_type(var.ty));
            let dims: Vec<i32> = var.dims.iter().map(|dim| self.dims[*dim].0).collect();
            let defined = self.dataset.def_var_in(group, &var.name, ty, &dims);
            let id = defined.map_err(at(var.at, "variable", &var.name))?;
            self.vars.push(VarRef { group, var: id });
        }
        for (index, var) in schema.vars.iter().enumerate() {
            self.define_storage(self.vars[index], var)?;
        }
        let (of_groups, of_vars): (Vec<&CdlAttribute>, Vec<&CdlAttribute>) =
            schema.atts.iter().partition(|att| att.var.is_none());
        for att in of_groups.into_iter().chain(of_vars) {
            self.define_attribute(schema, att)?;
        }
        // The header leaves no room, so that the file has the same bytes as the reference's.
        let reserve = Reserve::Explicit { h_minfree: 0, v_align: 1, v_minfree: 0, r_align: 1 };
        self.dataset.enddef(reserve).map_err(whole)
    }

    fn nc_type(&self, ty: TypeRef) -> i32 {
        match ty {
            TypeRef::Primitive(Primitive::Atomic(ext)) => ext.nc_type(),
            TypeRef::Primitive(Primitive::String) => STRING,
            TypeRef::User(user) => self.types[user],
        }
    }

    fn define_type(&self, ty: &CdlType) -> zonda::Result<i32> {
        let (file, group) = (&self.dataset, self.groups[ty.group]);
        match &ty.class {
            TypeClass::Opaque => file.def_opaque(group, ty.size, &ty.name),
            TypeClass::Vlen { base } => file.def_vlen(group, &ty.name, self.nc_type(*base)),
            TypeClass::Enum { base, members } => {
                let id = file.def_enum(group, base.nc_type(), &ty.name)?;
                for member in members {
                    let value = &member.value[..base.size()];
                    file.insert_member((group, id), &member.name, value)?;
                }
                Ok(id)
            }
            TypeClass::Compound(fields) => {
                let id = file.def_compound(group, ty.size, &ty.name)?;
                for field in fields {
                    let base = self.nc_type(field.ty);
                    let dims: Vec<i32> = field
                        .dims
                        .iter()
                        .map(|len| i32::try_from(*len).unwrap_or(i32::MAX))
                        .collect();
                    file.insert_field((group, id), &field.name, field.offset, base, &dims)?;
                }
                Ok(id)
            }
        }
    }

    /// Sets the storage of a variable, in the order of the reference.
    fn define_storage(&self, id: VarRef, var: &CdlVariable) -> Result<(), CdlFault> {
        let special = &var.special;
        let Some(place) = special.at else { return Ok(()) };
        let file = &self.dataset;
        let fault = at(place, "storage of variable", &var.name);
        if let Some(storage) = special.storage {
            let request = match storage {
                StorageLayout::Contiguous => StorageRequest::Contiguous,
                StorageLayout::Compact => StorageRequest::Compact,
                StorageLayout::Chunked => StorageRequest::Chunked,
            };
            let sizes =
                special.chunk_sizes.as_deref().filter(|_| storage == StorageLayout::Chunked);
            if let Some(sizes) = sizes.filter(|sizes| sizes.len() != var.dims.len()) {
                let (n, rank) = (sizes.len(), var.dims.len());
                let why = format!("_ChunkSizes has {n} lengths for {rank} dimensions");
                return Err(CdlFault::at(place, why));
            }
            file.def_var_chunking(id, request, sizes).map_err(&fault)?;
        }
        if let Some(on) = special.fletcher32 {
            file.def_var_fletcher32(id, on).map_err(&fault)?;
        }
        if special.deflate.is_some() || special.shuffle.is_some() {
            let level = special.deflate.filter(|level| *level >= 0);
            let shuffle = special.shuffle.unwrap_or(false);
            file.def_var_deflate(id, shuffle, level).map_err(&fault)?;
        }
        if let Some(endianness) = special.endianness {
            let endianness = match endianness {
                Endian::Little => Endianness::Little,
                Endian::Big => Endianness::Big,
            };
            file.def_var_endian(id, endianness).map_err(&fault)?;
        }
        if let Some(no_fill) = special.no_fill {
            file.def_var_fill(id, no_fill, None).map_err(&fault)?;
        }
        for (number, params) in &special.filters {
            if !filter_is_available(*number) {
                return Err(CdlFault::at(
                    place,
                    format!("Filter id={number}; filter not available"),
                ));
            }
            let (name, params) = (String::new(), params.clone());
            let filter = FilterSpec { id: *number, optional: true, name, params };
            file.def_var_filter(id, filter).map_err(&fault)?;
        }
        if let Some((way, kept)) = special.quantize {
            let mode = match way {
                Quantizer::BitGroom => QuantizeMode::BitGroom,
                Quantizer::GranularBitRound => QuantizeMode::GranularBitRound,
                Quantizer::BitRound => QuantizeMode::BitRound,
            };
            file.def_var_quantize(id, mode.number(), kept).map_err(&fault)?;
        }
        Ok(())
    }

    fn define_attribute(&self, schema: &Schema, att: &CdlAttribute) -> Result<(), CdlFault> {
        let owner = match att.var {
            Some(var) => self.vars[var],
            None => VarRef::group(self.groups[att.group]),
        };
        let (values, n_values) = attribute(schema, att)?;
        let ty = self.nc_type(att.ty);
        let mut fetched = PieceSource(&values.pieces);
        let values = Values { bytes: &values.bytes, fetch: Some(&mut fetched) };
        let put = self.dataset.put_att_values(owner, &att.name, (ty, n_values), values);
        // No value is out of range, because none is converted to another type.
        put.map(drop).map_err(at(att.at, "attribute", &att.name))
    }
}

/// Indices as `usize`.
fn indices(from: &[u64]) -> Vec<usize> {
    from.iter().map(|index| usize::try_from(*index).unwrap_or(usize::MAX)).collect()
}

impl DataSink for FileWriter<'_> {
    fn put(
        &mut self,
        _: &Schema,
        var: usize,
        slab: DataSlab<'_>,
        values: &mut Elements,
    ) -> Result<(), String> {
        let (start, count) = (indices(slab.start), indices(slab.count));
        let slab = Hyperslab { start: &start, count: &count, stride: None };
        let Elements { bytes, pieces } = values;
        let mut fetched = PieceSource(pieces);
        let values = Values { bytes, fetch: Some(&mut fetched) };
        let put = self.dataset.put_values(self.vars[var], &slab, values);
        put.map(drop).map_err(|error| error.to_string())
    }

    fn fills(&self, schema: &Schema, var: usize) -> bool {
        let var = &schema.vars[var];
        !self.options.no_fill && var.special.no_fill != Some(true) && var.ty.atomic().is_some()
    }

    fn warn(&mut self, fault: &CdlFault) {
        (self.warn)(fault);
    }
}
