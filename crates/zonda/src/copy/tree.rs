//! What is to be copied: the definitions of the source, as far as they were chosen.

mod choose;
mod dims;
mod groups;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use zonda_format::{GroupId, Member, NC_STRING, VarInfo, VarRef};
use zonda_model::{Answer, DimId, ExtType, NcError, VarId};

use super::options::{CopyOptions, Pattern};
use super::rules::CopyRules;
use super::salvage::Loss;
use crate::damaged::FaultKind;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use choose::{choose, without_empty};
use dims::{name_axes, read_dims, read_types};
use groups::GroupReader;

/// The dimension of an axis where the file does not say which dimension it is.
const NO_DIM: DimId = DimId(-1);

/// The definitions of a dataset. A group comes after the one that it is in, a type after those that it consists of.
#[derive(Debug)]
pub(crate) struct DefinitionTree {
    /// The first one is the root of the target.
    pub groups: Vec<GroupDef>,
    /// In the order of their numbers.
    pub dims: Vec<DimDef>,
    pub types: Vec<TypeDef>,
    /// What could not be read, in a salvaged copy.
    pub lost: Vec<Loss>,
    /// Notes about parts of a damaged file that may not be as they were written, a line each.
    pub doubts: Vec<String>,
    /// Paths of variables that would be copied if netCDF could represent their types.
    pub absent: Vec<Vec<u8>>,
}

#[derive(Debug)]
pub(crate) struct GroupDef {
    pub source: GroupId,
    /// Index of the group around it.
    pub parent: Option<usize>,
    pub name: Vec<u8>,
    pub path: Vec<u8>,
    pub atts: Vec<AttDef>,
    pub vars: Vec<VarDef>,
}

#[derive(Debug)]
pub(crate) struct DimDef {
    pub source: DimId,
    /// Index of its group.
    pub group: usize,
    pub name: Vec<u8>,
    pub len: u64,
    pub is_unlimited: bool,
    /// The file does not have it. It was made for a variable whose dimensions the file does not name.
    pub is_made_up: bool,
}

#[derive(Debug)]
pub(crate) struct TypeDef {
    pub source: i32,
    /// Index of its group.
    pub group: usize,
    pub name: Vec<u8>,
    pub size: usize,
    pub class: ClassDef,
}

/// What a user-defined type is.
#[derive(Debug)]
pub(crate) enum ClassDef {
    Compound(Vec<FieldDef>),
    Enum(i32, Vec<Member>),
    Opaque,
    Vlen(i32),
}

#[derive(Debug)]
pub(crate) struct FieldDef {
    pub name: Vec<u8>,
    pub offset: usize,
    pub nc_type: i32,
    pub dims: Vec<i32>,
}

#[derive(Debug)]
pub(crate) struct VarDef {
    pub source: VarRef,
    pub name: Vec<u8>,
    pub path: Vec<u8>,
    pub nc_type: i32,
    /// Bytes of an element in memory.
    pub elem: usize,
    /// Elements point to strings or sequences.
    pub has_pointers: bool,
    pub axes: Vec<AxisDef>,
    pub atts: Vec<AttDef>,
    /// How an HDF5 file stores it.
    pub info: Option<Arc<VarInfo>>,
}

/// A dimension of a variable.
#[derive(Clone, Debug)]
pub(crate) struct AxisDef {
    pub source: DimId,
    pub name: Vec<u8>,
    pub len: u64,
    pub is_unlimited: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct AttDef {
    pub name: Vec<u8>,
    pub nc_type: i32,
    pub len: u64,
}

impl VarDef {
    pub(crate) fn lens(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.len).collect()
    }

    /// Bytes of all elements in memory.
    pub(crate) fn bytes(&self) -> u64 {
        let lens = self.axes.iter();
        lens.fold(self.elem as u64, |bytes, axis| bytes.saturating_mul(axis.len))
    }

    /// Named as its only dimension.
    pub(crate) fn is_coordinate(&self) -> bool {
        matches!(&self.axes[..], [axis] if axis.name == self.name)
    }

    pub(crate) fn is_record(&self) -> bool {
        self.axes.first().is_some_and(|axis| axis.is_unlimited)
    }
}

/// Whether a type is atomic (or string), and not defined by a file.
pub(crate) fn is_atomic(nc_type: i32) -> bool {
    ExtType::from_nc_type(nc_type).is_some() || nc_type == NC_STRING
}

/// A path for messages.
pub(crate) fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// The path of an object in a group.
pub(crate) fn joined(path: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if path.ends_with(b"/") { b"" } else { b"/" };
    [path, slash, name].concat()
}

impl DefinitionTree {
    /// The definitions that a copy is asked to have.
    ///
    /// # Errors
    /// `NC_ENOGRP` and `NC_ENOTVAR` for what was chosen and is not there; what reading the
    /// definitions meets.
    pub(crate) fn read(
        source: &Dataset,
        options: &CopyOptions,
        rules: Option<&dyn CopyRules>,
    ) -> Result<DefinitionTree> {
        let root = match &options.group {
            Some(path) if rules.is_none() => find_group(source, path)?,
            _ => GroupId::ROOT,
        };
        let mut reader = GroupReader::new(source, rules, options.salvage);
        let mut doubts = Vec::new();
        let mut absent = Vec::new();
        if options.salvage {
            doubts = reader.faults()?;
        } else {
            absent = absent_vars(source, options, rules)?;
        }
        reader.group(root, None)?;
        let (mut groups, lost) = reader.into_parts();
        let chosen =
            if rules.is_none() { choose(source, &groups, &absent, options)? } else { None };
        let all = options.vars.is_empty() || rules.is_some();
        if let Some(chosen) = chosen {
            let had_vars: BTreeSet<GroupId> =
                groups.iter().filter(|group| !group.vars.is_empty()).map(|g| g.source).collect();
            for group in &mut groups {
                group.vars.retain(|var| chosen.contains(&var.path));
            }
            // One that was empty before stays, unless variables were asked for.
            groups = without_empty(groups, |group| all && !had_vars.contains(&group));
        }
        let index: BTreeMap<GroupId, usize> =
            groups.iter().enumerate().map(|(index, group)| (group.source, index)).collect();
        let mut dims = read_dims(source, &groups, &index, all)?;
        name_axes(&mut groups, &mut dims);
        let types = read_types(source, &groups, &index, all)?;
        let is_asked_for = |path: &Vec<u8>| {
            rules.is_some()
                || (!Pattern::any(&options.exclude, path)
                    && (options.vars.is_empty() || Pattern::any(&options.vars, path)))
        };
        absent.retain(is_asked_for);
        for group in &groups {
            let owner = VarRef { group: group.source, var: VarId::GLOBAL };
            absent_atts(source, owner, &mut doubts)?;
            for var in &group.vars {
                absent_atts(source, var.source, &mut doubts)?;
            }
        }
        Ok(DefinitionTree { groups, dims, types, lost, doubts, absent })
    }

    /// Leaves out attributes of types that netCDF cannot represent; gives a note about each.
    pub(crate) fn leave_out_atts(&mut self) -> Vec<String> {
        let types: BTreeSet<i32> = self.types.iter().map(|ty| ty.source).collect();
        let mut notes = Vec::new();
        let mut keep = |owner: &[u8], atts: &mut Vec<AttDef>| {
            atts.retain(|att| {
                let is_known = is_atomic(att.nc_type) || types.contains(&att.nc_type);
                if !is_known {
                    let (owner, name) = (shown(owner), shown(&att.name));
                    let why = "is of a type that cannot be represented in netCDF";
                    notes.push(format!("attribute {owner}@{name} {why}, and left out"));
                }
                is_known
            });
        };
        for group in &mut self.groups {
            keep(&group.path, &mut group.atts);
            group.vars.iter_mut().for_each(|var| keep(&var.path, &mut var.atts));
        }
        notes
    }

    /// Leaves out variables of such types; gives a note about each.
    pub(crate) fn leave_out_vars(&mut self) -> Vec<String> {
        let types: BTreeSet<i32> = self.types.iter().map(|ty| ty.source).collect();
        let why = "is of a type that cannot be represented in netCDF";
        let absent = self.absent.drain(..);
        let mut notes: Vec<String> =
            absent.map(|path| format!("variable {} {why}, and left out", shown(&path))).collect();
        for group in &mut self.groups {
            group.vars.retain(|var| {
                let is_known = is_atomic(var.nc_type) || types.contains(&var.nc_type);
                if !is_known {
                    let path = shown(&var.path);
                    notes.push(format!("variable {path} {why}, and left out"));
                }
                is_known
            });
        }
        // Dimensions that were made up for them go, too.
        let axes = self.groups.iter().flat_map(|group| &group.vars).flat_map(|var| &var.axes);
        let used: BTreeSet<i32> = axes.map(|axis| axis.source.0).collect();
        self.dims.retain(|dim| !dim.is_made_up || used.contains(&dim.source.0));
        notes
    }

    pub(crate) fn vars(&self) -> impl Iterator<Item = &VarDef> {
        self.groups.iter().flat_map(|group| &group.vars)
    }

    /// Makes unlimited dimensions fixed with their present lengths. Those of length 0 stay unlimited, since no fixed
    /// dimension can have that length.
    pub(crate) fn fix_unlimited(&mut self) {
        for dim in &mut self.dims {
            dim.is_unlimited = dim.len == 0;
        }
        let vars = self.groups.iter_mut().flat_map(|group| &mut group.vars);
        for axis in vars.flat_map(|var| &mut var.axes) {
            axis.is_unlimited = axis.len == 0;
        }
    }
}

/// Paths of variables that the definitions of the source lack, since netCDF cannot represent their types: those in the group
/// that is copied, and that the rules want.
fn absent_vars(
    source: &Dataset,
    options: &CopyOptions,
    rules: Option<&dyn CopyRules>,
) -> Result<Vec<Vec<u8>>> {
    let mut absent = Vec::new();
    for fault in source.faults()? {
        let path = fault.path.into_bytes();
        let is_wanted = match rules {
            Some(rules) => rules.has_var(&path),
            None => is_within(&path, options.group.as_deref().unwrap_or_default()),
        };
        if matches!(fault.what, FaultKind::Unrepresentable(_)) && is_wanted {
            absent.push(path);
        }
    }
    Ok(absent)
}

/// Whether a path is below a group's.
fn is_within(path: &[u8], group: &[u8]) -> bool {
    let trimmed =
        |path: &[u8]| path.strip_prefix(b"/").map_or_else(|| path.to_vec(), <[u8]>::to_vec);
    let (path, mut group) = (trimmed(path), trimmed(group));
    if !group.is_empty() && !group.ends_with(b"/") {
        group.push(b'/');
    }
    path.starts_with(&group)
}

/// Notes attributes that the definitions of the source lack, since netCDF cannot represent them.
fn absent_atts(source: &Dataset, owner: VarRef, notes: &mut Vec<String>) -> Result<()> {
    for error in source.att_faults(owner)? {
        if error.answer() == Answer::Unrepresentable {
            notes.push(format!("{}; it is left out", error));
        }
    }
    Ok(())
}

fn find_group(source: &Dataset, path: &[u8]) -> Result<GroupId> {
    let mut group = GroupId::ROOT;
    for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
        let found = source.in_group(group, |meta| meta.find_group(name))?;
        group = found.map_err(|_| {
            let text = format!("there is no group {}", shown(path));
            Error::with_text(NcError::NoGrp, text).at(source.path())
        })?;
    }
    Ok(group)
}
