//! Which variables are copied, and which groups stay.

use std::collections::BTreeSet;

use zonda_format::{GroupId, NC_STRING};
use zonda_model::{ExtType, NcError};

use super::{GroupDef, VarDef, shown};
use crate::copy::atts;
use crate::copy::options::{CopyOptions, Pattern};
use crate::dataset::Dataset;
use crate::error::{Error, Result};

/// Attributes with names of variables, such as coordinates, that a variable needs to be understood.
const NAMING: [&[u8]; 4] = [b"coordinates", b"bounds", b"climatology", b"grid_mapping"];
/// Paths of the variables that are to be copied; `None` for all.
pub(super) fn choose(
    source: &Dataset,
    groups: &[GroupDef],
    absent: &[Vec<u8>],
    options: &CopyOptions,
) -> Result<Option<BTreeSet<Vec<u8>>>> {
    if options.vars.is_empty() && options.exclude.is_empty() {
        return Ok(None);
    }
    let all = || groups.iter().flat_map(|group| &group.vars);
    for pattern in options.vars.iter().chain(&options.exclude) {
        let is_absent = || absent.iter().any(|path| pattern.matches(path));
        if !all().any(|var| pattern.matches(&var.path)) && !is_absent() {
            let text = format!("there is no variable {}", shown(pattern.text()));
            return Err(Error::with_text(NcError::NotVar, text).at(source.path()));
        }
    }
    let mut chosen = BTreeSet::new();
    let mut next: Vec<&VarDef> = match options.vars.is_empty() {
        true => all().collect(),
        false => all().filter(|var| Pattern::any(&options.vars, &var.path)).collect(),
    };
    let adds_named = !options.vars.is_empty();
    while let Some(var) = next.pop() {
        if Pattern::any(&options.exclude, &var.path) || !chosen.insert(var.path.clone()) {
            continue;
        }
        if adds_named {
            for name in named_by(source, var)? {
                next.extend(nearest(groups, var, &name));
            }
        }
    }
    Ok(Some(chosen))
}

/// Names that a variable refers to: its dimensions, and the words of the attributes in [`NAMING`].
fn named_by(source: &Dataset, var: &VarDef) -> Result<Vec<Vec<u8>>> {
    let mut names: Vec<Vec<u8>> = var.axes.iter().map(|axis| axis.name.clone()).collect();
    for att in var.atts.iter().filter(|att| NAMING.contains(&&*att.name)) {
        let text = match (ExtType::from_nc_type(att.nc_type), att.nc_type) {
            (Some(ExtType::Char), _) | (_, NC_STRING) => atts::text(source, var.source, att)?,
            _ => continue,
        };
        let words = text.split(u8::is_ascii_whitespace);
        let words = words.map(|word| word.strip_suffix(b":").unwrap_or(word));
        names.extend(words.filter(|word| !word.is_empty()).map(<[u8]>::to_vec));
    }
    Ok(names)
}

/// The variable of that name in the group of another one, or in the nearest group around it.
fn nearest<'g>(groups: &'g [GroupDef], of: &VarDef, name: &[u8]) -> Option<&'g VarDef> {
    let mut at = groups.iter().position(|group| group.source == of.source.group);
    while let Some(index) = at {
        let found = groups[index].vars.iter().find(|var| var.name == name);
        if found.is_some() {
            return found;
        }
        at = groups[index].parent;
    }
    None
}

/// The groups that have variables, those that stay without any, and those that these are in.
pub(super) fn without_empty(
    groups: Vec<GroupDef>,
    stays: impl Fn(GroupId) -> bool,
) -> Vec<GroupDef> {
    let mut kept = vec![false; groups.len()];
    for index in 0..groups.len() {
        let is_wanted = !groups[index].vars.is_empty() || stays(groups[index].source);
        let mut at = is_wanted.then_some(index);
        while let Some(index) = at.filter(|&index| !kept[index]) {
            kept[index] = true;
            at = groups[index].parent;
        }
    }
    kept[0] = true;
    let mut places = vec![0; groups.len()];
    let mut out: Vec<GroupDef> = Vec::new();
    for (index, mut group) in groups.into_iter().enumerate().filter(|(index, _)| kept[*index]) {
        group.parent = group.parent.map(|parent| places[parent]);
        places[index] = out.len();
        out.push(group);
    }
    out
}
