//! CDL, the text form of a netCDF dataset.
//!
//! Spec: the netCDF User's Guide, "CDL Syntax", and byte by byte the output of `ncdump` 4.9.0, which
//! programs and people compare. One file for each part: [`names`] and their escapes, one [`value`], [`values`] and
//! their text with the [`digits`] of floating-point numbers, [`types`] for those that netCDF-4 files
//! define, [`cformat`] for the `C_format` attribute, [`times`] for numbers that are dates, [`lines`] for
//! indenting and wrapping, [`header`], [`special`] attributes, what is
//! [`select`]ed by name, [`data`] and its
//! [`rows`], the text of which is made by all cores ([`ordered`]).

pub(crate) mod cformat;
mod data;
mod digits;
pub(crate) mod header;
mod lines;
pub(crate) mod names;
mod ordered;
mod owner;
mod rows;
pub(crate) mod select;
pub(crate) mod special;
pub(crate) mod times;
pub(crate) mod types;
pub(crate) mod value;
pub(crate) mod values;

use std::io::Write;

use zonda::{Dataset, GroupId};

use crate::failure::{CommandFailure, Result};
use crate::similar::similar_variable;
use lines::CdlLines;
use select::{find_groups, missing_variable};
use times::{TimeBounds, TimeStyle};
use values::Precision;

/// Which variables' data is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DataSelection {
    /// None: the header only.
    Header,
    /// Coordinate variables.
    Coordinates,
    /// All, or those in the list where there is one.
    Data,
}

/// The order of indices in comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexOrder {
    /// From 0, last dimension fastest.
    C,
    /// From 1, first dimension fastest.
    Fortran,
}

/// What to write, and how.
#[derive(Clone, Debug)]
pub(crate) struct CdlOptions {
    /// Name of the dataset in CDL.
    pub(crate) name: Vec<u8>,
    /// Which data.
    pub(crate) selection: DataSelection,
    /// Data of these variables only; empty for all. With a path, those of one group.
    pub(crate) variables: Vec<Vec<u8>>,
    /// Data of these groups only; empty for all. Without a `/` in front, of all that have the name.
    pub(crate) groups: Vec<Vec<u8>>,
    /// A comment before each row.
    pub(crate) brief: bool,
    /// A comment after each value.
    pub(crate) full: bool,
    /// Order of indices in both kinds of comment.
    pub(crate) order: IndexOrder,
    /// Longest line in the data section, in bytes.
    pub(crate) line_len: usize,
    /// Digits of floating-point values.
    pub(crate) precision: Precision,
    /// Also the virtual attributes (`_Format`, `_ChunkSizes`, ...).
    pub(crate) special: bool,
    /// Of these, one `_Filter` for all filters instead of `_Shuffle`, `_DeflateLevel`, `_Fletcher32`.
    pub(crate) filters: bool,
    /// Numbers whose units are those of time as dates.
    pub(crate) times: Option<TimeStyle>,
    /// Byte by byte as `ncdump` 4.9.0 also where that loses something: `_IsNetcdf4` of files without
    /// dimensions and of the classic model, vertical tabs in strings.
    pub(crate) exact: bool,
}

impl Default for CdlOptions {
    /// The options of `ncdump` without arguments.
    fn default() -> CdlOptions {
        CdlOptions {
            name: Vec::new(),
            selection: DataSelection::Data,
            variables: Vec::new(),
            groups: Vec::new(),
            brief: false,
            full: false,
            order: IndexOrder::C,
            line_len: 80,
            precision: Precision::default(),
            special: false,
            filters: false,
            times: None,
            exact: false,
        }
    }
}

/// A step of writing a tree of groups.
enum GroupStep {
    Open(GroupId),
    Close(Vec<u8>),
}

/// Writes a dataset as CDL. The header of each group is handed over before its data is read.
///
/// # Errors
/// Names that no variable or group has; errors of reading. What was made before an error is
/// written.
pub(crate) fn write(out: &mut dyn Write, file: &Dataset, options: &CdlOptions) -> Result<()> {
    let none = |what: &str, name: &[u8], hint: &str| {
        let name = String::from_utf8_lossy(name);
        Err(CommandFailure::at(file.path(), format!("{name}: no such {what}{hint}")))
    };
    if let Some(name) = missing_variable(file, &options.variables)? {
        let text = String::from_utf8_lossy(name);
        let hint = file.in_group(GroupId::ROOT, |meta| similar_variable(meta, &text))?;
        return none("variable", name, &hint);
    }
    let groups = match find_groups(file, &options.groups)? {
        Ok(groups) => groups,
        Err(name) => return none("group", name, ""),
    };
    let mut lines = CdlLines::new(out, options.line_len);
    let done = write_all(&mut lines, file, options, &groups);
    let handed_over = lines.hand_over();
    done.and(handed_over.map_err(CommandFailure::from))
}

/// Writes all groups; data of `groups` only, if there are any.
fn write_all(
    lines: &mut CdlLines<'_>,
    file: &Dataset,
    options: &CdlOptions,
    groups: &[GroupId],
) -> Result<()> {
    let mut head = b"netcdf ".to_vec();
    names::push_escaped(&mut head, &options.name)?;
    head.extend_from_slice(b" {\n");
    lines.raw(&head)?;
    let mut bounds = TimeBounds::default();
    // A list instead of recursion, because a file may nest groups as deep as it likes.
    let mut steps = vec![GroupStep::Open(GroupId::ROOT)];
    while let Some(step) = steps.pop() {
        match step {
            GroupStep::Open(group) => {
                let parts = open_group(lines, file, group, options, &mut bounds)?;
                let is_wanted = groups.is_empty() || groups.contains(&group);
                if options.selection != DataSelection::Header && is_wanted {
                    data::write(lines, file, group, options, &bounds)?;
                }
                if group != GroupId::ROOT {
                    steps.push(GroupStep::Close(parts.name));
                }
                steps.extend(parts.groups.into_iter().rev().map(GroupStep::Open));
            }
            GroupStep::Close(name) => {
                lines.indented(b"} // group ")?;
                lines.raw(&name)?;
                lines.raw(b"\n")?;
                lines.shallower();
            }
        }
    }
    Ok(lines.raw(b"}\n")?)
}

/// A group of which the part after its data is still to be written.
struct OpenGroup {
    /// Its name as it is written in CDL.
    name: Vec<u8>,
    /// The groups in it.
    groups: Vec<GroupId>,
}

/// Writes a group up to its data.
fn open_group(
    lines: &mut CdlLines<'_>,
    file: &Dataset,
    group: GroupId,
    options: &CdlOptions,
    bounds: &mut TimeBounds,
) -> Result<OpenGroup> {
    let parts = file.in_group(group, |meta| -> Result<_> {
        let mut name = Vec::new();
        if group != GroupId::ROOT {
            lines.raw(b"\n")?;
            lines.indented(b"group: ")?;
            names::push_escaped(&mut name, meta.group_name())?;
            lines.raw(&name)?;
            lines.raw(b" {\n")?;
            lines.deeper();
        }
        header::write(lines, file, meta, options, bounds)?;
        Ok(OpenGroup { name, groups: meta.groups().to_vec() })
    })??;
    lines.flush()?;
    Ok(parts)
}
