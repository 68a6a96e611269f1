//! What `zonda info` says of netCDF-4 and other HDF5 files.

use std::io::Write;

use serde::Serialize;
use zonda::{
    Dataset, ExtType, ExtentKind, FaultKind, FileUsage, FilterSpec, GroupId, Meta, NC_STRING,
    StorageKind, VarId, VarRef,
};

use super::facts::{
    DimensionFacts, FileFacts, LeftOut, SpaceFacts, SuperblockFacts, VariableFacts, rounded,
    set_percents, text, version,
};
use super::grouped;
use crate::cmd::table::TextTable;
use crate::failure::Result;

/// How a variable is stored.
#[derive(Debug, Default, Serialize)]
pub(super) struct StoredFacts {
    /// `contiguous`, `compact`, `chunked`, `external`, `virtual`.
    storage: &'static str,
    /// Elements along each dimension of a chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk_shape: Option<Vec<usize>>,
    filters: Vec<FilterFacts>,
    /// Chunks in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<u64>,
    /// Chunks if all were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks_of: Option<u64>,
    /// Bytes in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_bytes: Option<u64>,
    /// Bytes of its header, attributes and index of chunks.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata_bytes: Option<u64>,
    /// Bytes of chunks without filters that are outside of its shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    unused_bytes: Option<u64>,
    /// Chunks that do not lie after the chunk before them in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    jumps: Option<u64>,
    /// Bytes of the data divided by stored bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    /// Why some of these facts are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The kind of that error.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'static str>,
}

impl StoredFacts {
    fn fails(&mut self, error: &zonda::Error, facts: &mut FileFacts) {
        self.answer.get_or_insert(error.answer().name());
        self.error.get_or_insert_with(|| error.to_string());
        facts.wrong(error);
    }
}

#[derive(Debug, Serialize)]
struct FilterFacts {
    id: u32,
    name: String,
    params: Vec<u32>,
    /// Whether the filter is available, so that chunks can be read.
    available: bool,
}

impl FilterFacts {
    fn of(spec: &FilterSpec) -> FilterFacts {
        let FilterSpec { id, name, params, .. } = spec;
        let name = zonda::filter_name(*id).map_or_else(|| name.clone(), str::to_owned);
        FilterFacts {
            id: *id,
            name,
            params: params.clone(),
            available: zonda::filter_is_available(*id),
        }
    }

    /// `deflate(4)`, `filter 305(1,2) not available`
    fn shown(&self) -> String {
        let mut text = zonda::filter_name(self.id)
            .map_or_else(|| format!("filter {}", self.id), str::to_owned);
        if !self.params.is_empty() {
            let params: Vec<String> = self.params.iter().map(u32::to_string).collect();
            text.push_str(&format!("({})", params.join(",")));
        }
        if !self.available {
            text.push_str(" not available");
        }
        text
    }
}

pub(super) fn describe(file: &Dataset, blank: FileFacts) -> zonda::Result<FileFacts> {
    let (superblock, user_block_bytes) = file.superblock().unwrap_or_default();
    let mut facts = FileFacts {
        version: Some(version(zonda::Format::NetCdf4)),
        stack: Some(file.stack()),
        superblock: Some(SuperblockFacts { version: superblock, user_block_bytes }),
        groups: Some(Vec::new()),
        ..blank
    };
    let usage = match file.usage() {
        Ok(usage) => {
            facts.space = Some(SpaceFacts::of(&usage));
            Some(usage)
        }
        Err(error) => {
            facts.wrong(&error);
            None
        }
    };
    let mut groups = vec![GroupId::ROOT];
    // Groups in the order in which a dump shows them.
    while let Some(group) = groups.pop() {
        let first = facts.variables.len();
        file.in_group(group, |meta| {
            groups.extend(meta.groups().iter().rev());
            add_group(file, meta, &mut facts)
        })??;
        // The storage of a variable is asked for after the definitions are released, because it is
        // none of them.
        for (number, id) in (first..facts.variables.len()).zip(0..) {
            let var = VarRef { group, var: VarId(id) };
            let (stored, bytes) = stored(file, usage.as_ref(), var, &mut facts);
            let variable = &mut facts.variables[number];
            (variable.stored, variable.bytes) = (Some(stored), bytes);
        }
    }
    set_percents(&mut facts.variables, |variable| {
        variable.stored.as_ref().and_then(|stored| stored.stored_bytes).unwrap_or(0)
    });
    for gap in file.gaps()? {
        facts.left_out.push(LeftOut { path: gap.path, why: gap.error.to_string() });
    }
    for fault in file.faults()? {
        if let FaultKind::Unrepresentable(what) = fault.what {
            let why = format!("netCDF cannot represent {what}");
            facts.left_out.push(LeftOut { path: fault.path, why });
        }
    }
    facts.format = Some(file.format().kind());
    file.close()?;
    Ok(facts)
}

pub(super) fn add_group(
    file: &Dataset,
    meta: &Meta<'_>,
    facts: &mut FileFacts,
) -> zonda::Result<()> {
    let group = meta.group_id();
    let path = text(&meta.group_path());
    let within = |name: &[u8]| match group {
        GroupId::ROOT => text(name),
        _ => format!("{path}/{}", text(name)),
    };
    match meta.n_atts(VarId::GLOBAL) {
        Ok(n) if group == GroupId::ROOT => facts.global_attributes = Some(n),
        Ok(_) => {}
        Err(error) => facts.wrong(&error.at(file.path())),
    }
    if group != GroupId::ROOT
        && let Some(groups) = &mut facts.groups
    {
        groups.push(path.clone());
    }
    for id in meta.dim_ids() {
        let dim = meta.dim(id)?;
        let (name, len, unlimited) = (within(dim.name), dim.len, dim.is_unlimited);
        facts.dimensions.push(DimensionFacts { name, len, unlimited });
    }
    for id in (0..meta.n_vars()).map_while(|id| i32::try_from(id).ok()).map(VarId) {
        let var = meta.var(id)?;
        if let Err(error) = meta.n_atts(id) {
            facts.wrong(&error.at(file.path()));
        }
        let extent = meta.extent(id).unwrap_or_default();
        let (mut dimensions, mut shape) = (Vec::new(), Vec::new());
        for (axis, &dim) in var.dims.iter().enumerate() {
            let dim = meta.dim(dim).ok();
            // The file attaches a dimension to the variable that no group around it has.
            dimensions.push(dim.as_ref().map_or_else(|| "?".to_owned(), |dim| text(dim.name)));
            shape.push(dim.map_or(extent.get(axis).copied().unwrap_or(0), |dim| dim.len));
        }
        facts.variables.push(VariableFacts {
            name: within(var.name),
            r#type: type_name(meta, var.nc_type),
            dimensions,
            shape,
            part: None,
            begin: None,
            bytes: 0,
            percent: 0.0,
            stored: None,
        });
    }
    Ok(())
}

fn type_name(meta: &Meta<'_>, nc_type: i32) -> String {
    match (ExtType::from_nc_type(nc_type), meta.user_type(nc_type)) {
        (Some(ty), _) => ty.name().to_owned(),
        (None, Ok(ty)) => text(&ty.name),
        (None, Err(_)) if nc_type == NC_STRING => "string".to_owned(),
        (None, Err(_)) => "unknown".to_owned(),
    }
}

/// How a variable is stored, and the bytes of its data before filters.
fn stored(
    file: &Dataset,
    usage: Option<&FileUsage>,
    var: VarRef,
    facts: &mut FileFacts,
) -> (StoredFacts, u64) {
    let mut stored = StoredFacts { storage: "unknown", ..StoredFacts::default() };
    let mut bytes = 0;
    match file.var_info(var) {
        Ok(info) => {
            stored.storage = match &info.storage {
                StorageKind::Contiguous => "contiguous",
                StorageKind::Compact => "compact",
                StorageKind::Chunked(_) => "chunked",
                StorageKind::External => "external",
                StorageKind::Virtual => "virtual",
            };
            if let StorageKind::Chunked(shape) = &info.storage {
                stored.chunk_shape = Some(shape.clone());
            }
            stored.filters = info.filters.iter().map(FilterFacts::of).collect();
        }
        Err(error) => stored.fails(&error, facts),
    }
    match file.stored(var) {
        Ok(found) => {
            bytes = found.data_bytes;
            stored.stored_bytes = Some(found.bytes);
            (stored.chunks, stored.chunks_of) = found.chunks.unzip();
            if found.bytes > 0 {
                stored.ratio = Some(rounded(bytes as f64 / found.bytes as f64));
            }
        }
        Err(error) => stored.fails(&error, facts),
    }
    if let Some(found) = usage.and_then(|usage| file.var_usage(usage, var)) {
        stored.metadata_bytes = Some(found.metadata_bytes);
        if stored.storage == "chunked" {
            stored.unused_bytes = Some(found.unused_bytes);
            stored.jumps = Some(found.n_jumps);
        }
    }
    (stored, bytes)
}

impl SpaceFacts {
    fn of(usage: &FileUsage) -> SpaceFacts {
        let kinds = ExtentKind::ALL.map(|kind| (kind.name(), usage.bytes(|it| it == kind)));
        SpaceFacts {
            kinds: kinds.into_iter().filter(|&(_, bytes)| bytes > 0).collect(),
            data_bytes: usage.bytes(|kind| kind.is_raw_data()),
            metadata_bytes: usage.bytes(|kind| !kind.is_raw_data()),
            unaccounted_bytes: usage.unaccounted_bytes(),
            overlaps: usage.overlaps.len(),
            faults: usage.faults.len(),
        }
    }

    /// `data 1_000, metadata 200, unaccounted for 30 (2.4%)`
    fn shown(&self, file_bytes: u64) -> String {
        let mut text = format!(
            "data {}, metadata {}, unaccounted for {}",
            grouped(self.data_bytes),
            grouped(self.metadata_bytes),
            grouped(self.unaccounted_bytes)
        );
        if self.unaccounted_bytes > 0 && file_bytes > 0 {
            let share = self.unaccounted_bytes as f64 / file_bytes as f64 * 1e2;
            text.push_str(&format!(" ({share:.1}%)"));
        }
        if self.overlaps > 0 {
            text.push_str(&format!(", {} overlap", self.overlaps));
        }
        if self.faults > 0 {
            text.push_str(&format!(", {} damaged", self.faults));
        }
        text
    }
}

impl StoredFacts {
    /// `chunked 1x640x640`
    fn layout(&self) -> String {
        match &self.chunk_shape {
            Some(shape) => {
                let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
                format!("{} {}", self.storage, shape.join("x"))
            }
            None => self.storage.to_owned(),
        }
    }

    /// `1_200 bytes of chunks outside of its shape, 3 of 12 chunks not behind the one before`
    fn waste(&self) -> Option<String> {
        let mut parts = Vec::new();
        if let Some(bytes) = self.unused_bytes.filter(|&bytes| bytes > 0) {
            parts.push(format!("{} bytes of chunks outside of its shape", grouped(bytes)));
        }
        if let (Some(jumps), Some(chunks)) = (self.jumps.filter(|&n| n > 0), self.chunks) {
            let (jumps, chunks) = (grouped(jumps), grouped(chunks));
            parts.push(format!("{jumps} of {chunks} chunks not behind the one before"));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// `12`, `3 of 12`
    fn n_chunks(&self) -> String {
        match (self.chunks, self.chunks_of) {
            (Some(n), Some(of)) if n < of => format!("{} of {}", grouped(n), grouped(of)),
            (Some(n), _) => grouped(n),
            (None, _) => String::new(),
        }
    }
}

pub(super) fn write_text(out: &mut dyn Write, facts: &FileFacts) -> Result<()> {
    let mut line = |label: &str, text: String| writeln!(out, "  {label:<10} {text}");
    if let Some(superblock) = &facts.superblock {
        let user_block = match superblock.user_block_bytes {
            0 => String::new(),
            bytes => format!(", behind a user block of {} bytes", grouped(bytes)),
        };
        line("superblock", format!("version {}{user_block}", superblock.version))?;
    }
    if let Some(space) = &facts.space {
        line("space", space.shown(facts.file_bytes.unwrap_or(0)))?;
    }
    line("layers", facts.stack.clone().unwrap_or_default())?;
    if let Some(groups) = facts.groups.as_ref().filter(|groups| !groups.is_empty()) {
        line("groups", groups.join(", "))?;
    }
    let dims: Vec<String> = facts.dimensions.iter().map(dimension).collect();
    if !dims.is_empty() {
        line("dimensions", dims.join(", "))?;
    }
    line("attributes", super::global(facts))?;
    line("variables", facts.variables.len().to_string())?;
    let heads = ["name", "type", "shape", "storage", "filters", "chunks", "stored", "ratio", "%"];
    let mut table = TextTable::new(heads, 5);
    for variable in &facts.variables {
        let Some(stored) = &variable.stored else { continue };
        let filters: Vec<String> = stored.filters.iter().map(FilterFacts::shown).collect();
        table.rows.push([
            variable.name.clone(),
            variable.r#type.clone(),
            format!("({})", variable.shape_text()),
            stored.layout(),
            filters.join(" "),
            stored.n_chunks(),
            stored.stored_bytes.map_or_else(|| "?".to_owned(), grouped),
            stored.ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
            format!("{:.1}", variable.percent),
        ]);
    }
    table.write(out)?;
    for variable in &facts.variables {
        if let Some(waste) = variable.stored.as_ref().and_then(StoredFacts::waste) {
            writeln!(out, "    {}: {waste}", variable.name)?;
        }
    }
    // A hundredth of the file is what somebody may ask about.
    let is_much = |space: &SpaceFacts| {
        space.unaccounted_bytes.saturating_mul(100) >= facts.file_bytes.unwrap_or(0).max(1)
    };
    if facts.space.as_ref().is_some_and(is_much) {
        writeln!(
            out,
            "    unaccounted for: bytes of no object: gaps between objects, or left behind by changes"
        )?;
    }
    let jumps = |variable: &VariableFacts| variable.stored.as_ref().and_then(|stored| stored.jumps);
    if facts.variables.iter().any(|variable| jumps(variable).is_some_and(|n| n > 0)) {
        writeln!(
            out,
            "    not behind the one before: who reads all chunks in order jumps to it in the file"
        )?;
    }
    for LeftOut { path, why } in &facts.left_out {
        writeln!(out, "  left out   {path}: {why}")?;
    }
    Ok(())
}

fn dimension(dim: &DimensionFacts) -> String {
    let mark = if dim.unlimited { " unlimited" } else { "" };
    format!("{}={}{mark}", dim.name, dim.len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_by_name() {
        let shown = |id, name: &str, params: &[u32]| {
            let (name, params) = (name.to_owned(), params.to_vec());
            FilterFacts::of(&FilterSpec { id, optional: false, name, params }).shown()
        };
        assert_eq!(shown(1, "", &[4]), "deflate(4)");
        assert_eq!(shown(2, "shuffle", &[]), "shuffle");
        assert_eq!(shown(60_000, "mine", &[1, 2]), "filter 60000(1,2) not available");
    }

    #[test]
    fn chunks_that_are_there() {
        let stored =
            |n, of| StoredFacts { chunks: Some(n), chunks_of: Some(of), ..StoredFacts::default() };
        assert_eq!(stored(1200, 1200).n_chunks(), "1_200");
        assert_eq!(stored(0, 3).n_chunks(), "0 of 3");
        assert_eq!(StoredFacts::default().n_chunks(), "");
    }
}
