//! CDL, the text form of a netCDF dataset.
//!
//! Spec: the netCDF User's Guide, "CDL Syntax", and byte by byte the output of `ncdump` 4.9.0, which
//! programs and people compare. One file for each part: [`names`] and their escapes, [`values`] and
//! their text, [`types`] for those that netCDF-4 files define, [`cformat`] for the `C_format` attribute,
//! [`lines`] for indenting and wrapping, [`header`], [`special`] attributes, [`data`].

pub(crate) mod cformat;
pub(crate) mod data;
pub(crate) mod header;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod special;
pub(crate) mod types;
pub(crate) mod values;

use std::io::Write;

use zonda::{Dataset, GroupId, Meta, VarId};

use crate::failure::{Failure, Result};
use lines::Lines;
use values::Precision;

/// Which variables' data is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
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

/// What is written, and how.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Name of the dataset in CDL.
    pub(crate) name: Vec<u8>,
    /// Which data.
    pub(crate) selection: Selection,
    /// Data of these variables only; empty for all. With a path, those of one group.
    pub(crate) variables: Vec<Vec<u8>>,
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
}

/// What is still to be written of a tree of groups.
enum Step {
    Open(GroupId),
    Close(Vec<u8>),
}

/// Writes a dataset as CDL. The header of each group is handed over before its data is read.
pub(crate) fn write(out: &mut dyn Write, file: &Dataset, options: &Options) -> Result<()> {
    check_variables(file, &options.variables)?;
    let mut lines = Lines::new(out, options.line_len);
    let mut head = b"netcdf ".to_vec();
    names::push_escaped(&mut head, &options.name)?;
    head.extend_from_slice(b" {\n");
    lines.raw(&head)?;
    // A list and not recursion: groups may be nested as deep as the file says.
    let mut steps = vec![Step::Open(GroupId::ROOT)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Open(group) => open_group(&mut lines, file, group, options, &mut steps)?,
            Step::Close(name) => {
                lines.indented(b"} // group ")?;
                lines.raw(&name)?;
                lines.raw(b"\n")?;
                lines.shallower();
            }
        }
    }
    Ok(lines.raw(b"}\n")?)
}

/// Writes a group, and lists those in it.
fn open_group(
    lines: &mut Lines<'_>,
    file: &Dataset,
    group: GroupId,
    options: &Options,
    steps: &mut Vec<Step>,
) -> Result<()> {
    let (name, children) = file.in_group(group, |meta| -> Result<_> {
        let mut name = Vec::new();
        if group != GroupId::ROOT {
            names::push_escaped(&mut name, meta.group_name())?;
            lines.raw(b"\n")?;
            lines.indented(b"group: ")?;
            lines.raw(&name)?;
            lines.raw(b" {\n")?;
            lines.deeper();
        }
        header::write(lines, file, meta, options)?;
        Ok((name, meta.groups().to_vec()))
    })??;
    lines.flush()?;
    if options.selection != Selection::Header {
        data::write(lines, file, group, options)?;
    }
    if group != GroupId::ROOT {
        steps.push(Step::Close(name));
    }
    steps.extend(children.into_iter().rev().map(Step::Open));
    Ok(())
}

/// The variable of the group that is looked at that `name` is for. A name without a path is for a
/// variable of any group, a path that does not begin with `/` for the end of a group's path.
fn named(meta: &Meta<'_>, name: &[u8]) -> Option<VarId> {
    let Some(slash) = name.iter().rposition(|&byte| byte == b'/') else {
        return meta.find_var(name).ok();
    };
    let (group, name) = (&name[..slash], &name[slash + 1..]);
    let path = meta.group_path();
    let is_here = match group {
        b"" => path == b"/",
        [b'/', ..] => path == group,
        _ => path.ends_with(group),
    };
    if is_here { meta.find_var(name).ok() } else { None }
}

/// That each name is for some variable.
fn check_variables(file: &Dataset, variables: &[Vec<u8>]) -> Result<()> {
    let mut missing: Vec<&Vec<u8>> = variables.iter().collect();
    let mut groups = vec![GroupId::ROOT];
    while let Some(group) = groups.pop().filter(|_| !missing.is_empty()) {
        file.in_group(group, |meta| {
            missing.retain(|name| named(meta, name).is_none());
            groups.extend_from_slice(meta.groups());
        })?;
    }
    match missing.first() {
        None => Ok(()),
        Some(name) => {
            let name = String::from_utf8_lossy(name);
            Err(Failure::at(file.path(), format!("{name}: no such variable")))
        }
    }
}
