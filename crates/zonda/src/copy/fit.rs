//! What the kinds of file cannot hold, found out before anything is written.

use std::collections::BTreeSet;

use zonda_model::{ExtType, NcError};

use super::tree::{AttDef, Tree, is_atomic, shown};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::meta::NC_STRING;

/// Things named in a message.
const MOST_NAMED: usize = 5;

/// Checks that a file of a kind can hold definitions.
///
/// # Errors
/// `NC_ESTRICTNC3` with the names of what it cannot hold; `NC_ENAMEINUSE` for dimensions and types
/// of groups that are not copied, which would get a name twice; `NC_EBADTYPE` for variables of types
/// that netCDF has no words for.
pub(super) fn check(tree: &Tree, format: Format) -> Result<()> {
    check_names(tree)?;
    check_types(tree)?;
    if format == Format::NetCdf4 {
        return Ok(());
    }
    let mut misfits = Vec::new();
    for group in tree.groups.iter().skip(1) {
        misfits.push(format!("group {}", shown(&group.path)));
    }
    let unlimited: Vec<String> =
        tree.dims.iter().filter(|dim| dim.is_unlimited).map(|dim| shown(&dim.name)).collect();
    if unlimited.len() > 1 {
        misfits.push(format!("several unlimited dimensions ({})", unlimited.join(", ")));
    }
    for group in &tree.groups {
        let path = shown(&group.path);
        misfits.extend(group.atts.iter().filter_map(|att| att_misfit(att, &path, format)));
        for var in &group.vars {
            let path = shown(&var.path);
            if let Some(why) = type_misfit(var.nc_type, format) {
                misfits.push(format!("variable {path} of {why}"));
            }
            let late = var.axes.iter().skip(1).find(|axis| axis.is_unlimited);
            if let Some(axis) = late {
                let name = shown(&axis.name);
                misfits.push(format!(
                    "variable {path}, whose unlimited dimension {name} is not first"
                ));
            }
            misfits.extend(var.atts.iter().filter_map(|att| att_misfit(att, &path, format)));
        }
    }
    if misfits.is_empty() {
        return Ok(());
    }
    let more = misfits.len().saturating_sub(MOST_NAMED);
    misfits.truncate(MOST_NAMED);
    let mut text = format!("a {} file cannot hold {}", format.kind(), misfits.join("; "));
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    Err(Error::told(NcError::StrictNc3, text))
}

/// The type that an attribute has in a file of a kind.
pub(super) fn att_type(att: &AttDef, format: Format) -> i32 {
    let is_single = att.nc_type == NC_STRING && att.len == 1;
    match format {
        Format::NetCdf4 => att.nc_type,
        _ if is_single => ExtType::Char.nc_type(),
        _ => att.nc_type,
    }
}

fn att_misfit(att: &AttDef, owner: &str, format: Format) -> Option<String> {
    let why = type_misfit(att_type(att, format), format)?;
    let several = if att.nc_type == NC_STRING { "several values of " } else { "" };
    Some(format!("attribute {owner}@{} of {several}{why}", shown(&att.name)))
}

/// What is wrong with a type; `None` if nothing.
fn type_misfit(nc_type: i32, format: Format) -> Option<String> {
    let most = if format == Format::Cdf5 { ExtType::UInt64 } else { ExtType::Double };
    match ExtType::from_nc_type(nc_type) {
        Some(_) if nc_type <= most.nc_type() => None,
        Some(ext) => Some(format!("type {}", ext.name())),
        None if nc_type == NC_STRING => Some("type string".to_owned()),
        None => Some("a user-defined type".to_owned()),
    }
}

fn check_names(tree: &Tree) -> Result<()> {
    let mut names = BTreeSet::new();
    for dim in &tree.dims {
        if !names.insert((dim.group, &dim.name)) {
            let text = format!("two dimensions would be called {}", shown(&dim.name));
            return Err(Error::told(NcError::NameInUse, text));
        }
    }
    let mut names = BTreeSet::new();
    for ty in &tree.types {
        if !names.insert((ty.group, &ty.name)) {
            let text = format!("two types would be called {}", shown(&ty.name));
            return Err(Error::told(NcError::NameInUse, text));
        }
    }
    Ok(())
}

fn check_types(tree: &Tree) -> Result<()> {
    let is_known = |nc_type| is_atomic(nc_type) || tree.types.iter().any(|ty| ty.source == nc_type);
    match tree.vars().find(|var| !is_known(var.nc_type)) {
        None => Ok(()),
        Some(var) => {
            let path = shown(&var.path);
            let text = format!("variable {path} is of a type that netCDF has no words for");
            Err(Error::told(NcError::BadType, text))
        }
    }
}
