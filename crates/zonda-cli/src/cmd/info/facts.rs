//! What `zonda info` says, as data.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use zonda::storage::Storage;
use zonda::storage::backend::Memory;
use zonda::{Answer, Dataset, Detected, Format, Meta, OpenOptions, VarId};

use super::{dap, hdf5};
use crate::failure::CommandFailure;
use crate::input;

/// What is known of a file. Unknown facts are absent from the JSON.
#[derive(Debug, Default, Serialize)]
pub(super) struct FileFacts {
    /// Path as given; `standard input` for `-`.
    pub(super) path: String,
    /// The format in words, as `ncdump -k` says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<&'static str>,
    /// Short name of the format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<&'static str>,
    /// Length of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file_bytes: Option<u64>,
    /// Layer stack in spec form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stack: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) superblock: Option<SuperblockFacts>,
    /// What the bytes of the file are used for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) space: Option<SpaceFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) layout: Option<LayoutFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) records: Option<RecordFacts>,
    /// Paths of the groups but the root, where there can be any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) groups: Option<Vec<String>>,
    pub(super) dimensions: Vec<DimensionFacts>,
    /// `null` where they cannot be listed.
    pub(super) global_attributes: Option<usize>,
    pub(super) variables: Vec<VariableFacts>,
    /// What the definitions lack: links to other files that are not there, refused, or not to be read; variables of types that
    /// netCDF cannot represent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) left_out: Vec<LeftOut>,
    /// What is wrong with the file; of several things the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// The kind of that first error: `damaged`, `unrepresentable`, `undecodable`, `unknown`,
    /// `refused`, `missing`, `memory`, `system`, `request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<&'static str>,
    /// All that is wrong, a line each.
    #[serde(skip)]
    pub(super) lines: Vec<String>,
}

/// Something that a file names in another one.
#[derive(Debug, Serialize)]
pub(super) struct LeftOut {
    /// Path of the link or of the variable.
    pub(super) path: String,
    pub(super) why: String,
}

/// What an HDF5 file begins with.
#[derive(Debug, Serialize)]
pub(super) struct SuperblockFacts {
    pub(super) version: u8,
    /// Bytes before it, which belong to other programs.
    pub(super) user_block_bytes: u64,
}

/// What the bytes of an HDF5 file are used for.
#[derive(Debug, Serialize)]
pub(super) struct SpaceFacts {
    /// Data as they are stored.
    pub(super) data_bytes: u64,
    /// Bytes that describe the data, and those before the superblock.
    pub(super) metadata_bytes: u64,
    /// Bytes that nothing refers to: they are free or lost.
    pub(super) unaccounted_bytes: u64,
    /// Used bytes by their purpose. Collections of the global heap count even if nothing uses them
    /// any more.
    pub(super) kinds: BTreeMap<&'static str, u64>,
    /// Extents that overlap another one. A sound file has none.
    pub(super) overlaps: usize,
    /// What could not be counted because it is damaged.
    pub(super) faults: usize,
}

/// Positions of the parts of a classic file, in bytes.
#[derive(Debug, Serialize)]
pub(super) struct LayoutFacts {
    pub(super) header_bytes: u64,
    /// How much the header can grow without data being moved.
    pub(super) room_bytes: u64,
    pub(super) data_begin: u64,
    /// Where data ends if all of it is there.
    pub(super) data_end: u64,
    /// How many of those bytes are missing at the end of the file.
    pub(super) missing_bytes: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct RecordFacts {
    pub(super) dimension: String,
    pub(super) count: u64,
    /// Bytes from one record to the next.
    pub(super) bytes: u64,
    pub(super) begin: u64,
    /// How many variables have records.
    pub(super) variables: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct DimensionFacts {
    pub(super) name: String,
    pub(super) len: u64,
    pub(super) unlimited: bool,
}

/// The part of a classic file that a variable is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FilePart {
    Fixed,
    Record,
}

#[derive(Debug, Serialize)]
pub(super) struct VariableFacts {
    /// Name; a path for a variable in a group.
    pub(super) name: String,
    pub(super) r#type: String,
    pub(super) dimensions: Vec<String>,
    pub(super) shape: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<FilePart>,
    /// Position of the first element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) begin: Option<u64>,
    /// Bytes of all its data without padding, before filters.
    pub(super) bytes: u64,
    /// Its share of the stored data of all variables, in percent.
    pub(super) percent: f64,
    #[serde(flatten)]
    pub(super) stored: Option<hdf5::StoredFacts>,
}

impl VariableFacts {
    /// `time=12, x=3`
    pub(super) fn shape_text(&self) -> String {
        let dims = self.dimensions.iter().zip(&self.shape);
        dims.map(|(name, len)| format!("{name}={len}")).collect::<Vec<_>>().join(", ")
    }
}

impl FileFacts {
    /// Notes an error. One that was noted before is not noted again.
    pub(super) fn wrong(&mut self, error: &zonda::Error) {
        self.wrong_as(error.to_string(), error.answer());
    }

    fn wrong_as(&mut self, what: String, answer: Answer) {
        let line = answer.said_of(&what);
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
        self.answer.get_or_insert(answer.name());
        self.error.get_or_insert(what);
    }

    /// Finds out all that it can; what went wrong is in `error`.
    pub(super) fn of(path: &Path) -> FileFacts {
        let shown = input::label(path).display().to_string();
        let blank = || FileFacts { path: shown.clone(), ..FileFacts::default() };
        let mut facts = blank();
        let source = match FactSource::of(path) {
            Ok(source) => source,
            Err(failure) => {
                facts.wrong_as(failure.into_text(), Answer::System);
                return facts;
            }
        };
        let error = match source.open() {
            Ok(file) => match describe(&file, blank()) {
                Ok(facts) => return facts,
                Err(error) => error,
            },
            Err(error) => error,
        };
        (facts.format, facts.file_bytes) = (source.kind(), source.len());
        facts.wrong(&error);
        facts
    }
}

/// Where the bytes of the file come from.
enum FactSource<'a> {
    File(&'a Path),
    Stdin(Arc<Memory>),
}

impl FactSource<'_> {
    fn of(path: &Path) -> Result<FactSource<'_>, CommandFailure> {
        if input::is_stdin(path) {
            input::stdin().map(FactSource::Stdin)
        } else {
            Ok(FactSource::File(path))
        }
    }

    fn open(&self) -> zonda::Result<Dataset> {
        let options = OpenOptions::default();
        let file = match self {
            FactSource::File(path) => Dataset::open(&input::place(path), &options),
            FactSource::Stdin(bytes) => {
                Dataset::open_in(Arc::clone(bytes) as _, &input::label(Path::new("-")), &options)
            }
        }?;
        Ok(file)
    }

    /// The format by the first bytes of the file, which may not be readable as a dataset.
    fn kind(&self) -> Option<&'static str> {
        let detected = match self {
            FactSource::File(path) => zonda::detect(&input::place(path)),
            FactSource::Stdin(bytes) => zonda::detect_in(&**bytes),
        };
        match detected.ok()? {
            Detected::Classic(format) | Detected::Other(format) => Some(format.kind()),
            Detected::Hdf5 => Some("HDF5, perhaps netCDF-4"),
            Detected::Hdf4 => Some("HDF4"),
            Detected::Unknown => None,
        }
    }

    fn len(&self) -> Option<u64> {
        match self {
            // A server is not asked once more.
            FactSource::File(path) if zonda::is_url(path) => None,
            FactSource::File(path) => std::fs::metadata(path).ok().map(|metadata| metadata.len()),
            FactSource::Stdin(bytes) => bytes.len().ok(),
        }
    }
}

fn describe(file: &Dataset, blank: FileFacts) -> zonda::Result<FileFacts> {
    if let Some(version) = dap::version(file) {
        return dap::describe(file, version, blank);
    }
    let file_bytes = file.storage().map(|storage| storage.len()).transpose()?;
    if file.is_hdf5() {
        return hdf5::describe(file, FileFacts { file_bytes, ..blank });
    }
    let facts = file.meta(|meta| {
        let variables = variables(meta)?;
        let of = |bytes| layout(meta, &variables, bytes);
        let layout = file_bytes.filter(|_| meta.layout().is_some()).map(of).transpose()?;
        let missing = layout.as_ref().map_or(0, |layout| layout.missing_bytes);
        let mut dimensions = Vec::with_capacity(meta.n_dims());
        for id in meta.dim_ids() {
            let dim = meta.dim(id)?;
            dimensions.push(DimensionFacts {
                name: text(dim.name),
                len: dim.len,
                unlimited: dim.is_unlimited,
            });
        }
        let mut facts = FileFacts {
            format: Some(meta.format().kind()),
            version: Some(version(meta.format())),
            file_bytes,
            stack: Some(file.stack()),
            layout,
            records: records(meta)?,
            dimensions,
            global_attributes: Some(meta.n_atts(VarId::GLOBAL)?),
            variables,
            ..blank
        };
        if missing > 0 {
            let what = format!("{missing} bytes are missing at the end of the file");
            facts.wrong_as(format!("{}: {what}", facts.path), Answer::Damaged);
        }
        zonda::Result::Ok(facts)
    })?;
    file.close()?;
    Ok(facts)
}

pub(super) fn version(format: Format) -> &'static str {
    match format {
        Format::Cdf1 => "CDF-1",
        Format::Cdf2 => "CDF-2",
        Format::Cdf5 => "CDF-5",
        Format::NetCdf4 | Format::NetCdf4Classic => "HDF5",
        Format::Other(other) => other.name,
    }
}

/// A name as text. Names should be UTF-8; bytes that are not are replaced.
pub(super) fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn variables(meta: &Meta<'_>) -> zonda::Result<Vec<VariableFacts>> {
    let mut variables = Vec::with_capacity(meta.n_vars());
    for id in 0..meta.n_vars() {
        let var = meta.var(VarId(i32::try_from(id).unwrap_or(i32::MAX)))?;
        let mut names = Vec::with_capacity(var.dims.len());
        let mut shape = Vec::with_capacity(var.dims.len());
        for &dim in var.dims {
            let dim = meta.dim(dim)?;
            names.push(text(dim.name));
            shape.push(dim.len);
        }
        let (ty, classic) = var.ty().zip(var.classic).ok_or(zonda::NcError::BadType)?;
        let n_parts = if classic.is_record { meta.n_records() } else { 1 };
        variables.push(VariableFacts {
            name: text(var.name),
            r#type: ty.name().to_owned(),
            dimensions: names,
            shape,
            part: Some(if classic.is_record { FilePart::Record } else { FilePart::Fixed }),
            begin: meta.layout().map(|_| classic.begin),
            bytes: classic.slab_bytes.saturating_mul(n_parts),
            percent: 0.0,
            stored: None,
        });
    }
    set_percents(&mut variables, |variable| variable.bytes);
    Ok(variables)
}

/// Sets the share of each variable in all bytes.
pub(super) fn set_percents(variables: &mut [VariableFacts], bytes: impl Fn(&VariableFacts) -> u64) {
    let all = variables.iter().fold(0u64, |sum, variable| sum.saturating_add(bytes(variable)));
    for variable in variables.iter_mut().filter(|_| all > 0) {
        variable.percent = rounded(bytes(variable) as f64 / all as f64 * 1e2);
    }
}

/// Rounds a number, so that the JSON is short and stable.
pub(super) fn rounded(number: f64) -> f64 {
    (number * 1e2).round() / 1e2
}

fn layout(
    meta: &Meta<'_>,
    variables: &[VariableFacts],
    file_bytes: u64,
) -> zonda::Result<LayoutFacts> {
    let layout = meta.layout().ok_or(zonda::NcError::NotNc3)?;
    let mut data_end = layout.header_len;
    for (id, variable) in variables.iter().enumerate() {
        let var = meta.var(VarId(i32::try_from(id).unwrap_or(i32::MAX)))?;
        let var = var.classic.ok_or(zonda::NcError::NotNc3)?;
        let skipped = match variable.part {
            Some(FilePart::Record) if meta.n_records() == 0 => continue,
            Some(FilePart::Record) => layout.record_len.saturating_mul(meta.n_records() - 1),
            _ => 0,
        };
        let end = var.begin.saturating_add(skipped).saturating_add(var.slab_bytes);
        data_end = data_end.max(end);
    }
    let data_begin = layout.begin_var.max(layout.header_len);
    Ok(LayoutFacts {
        header_bytes: layout.header_len,
        room_bytes: data_begin - layout.header_len,
        data_begin,
        data_end: data_end.max(data_begin),
        missing_bytes: data_end.saturating_sub(file_bytes),
    })
}

fn records(meta: &Meta<'_>) -> zonda::Result<Option<RecordFacts>> {
    let Some(id) = meta.unlimited() else { return Ok(None) };
    // In other formats each variable has its own number of records.
    let Some(layout) = meta.layout() else { return Ok(None) };
    Ok(Some(RecordFacts {
        dimension: text(meta.dim(id)?.name),
        count: meta.n_records(),
        bytes: layout.record_len,
        begin: layout.begin_rec,
        variables: layout.n_record_vars,
    }))
}
