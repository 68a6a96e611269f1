//! Finds what a format cannot hold before anything is written.

use std::collections::BTreeSet;

use zonda_format::{Format, NC_STRING};
use zonda_model::{Answer, ExtType, NcError};

use super::tree::{AttDef, DefinitionTree, VarDef, is_atomic, shown};
use crate::error::{Error, Result};

/// Most objects that a message names.
const MOST_NAMED: usize = 5;

/// Checks that a file of a format can hold the definitions. `is_strict` for copies in which nothing changes its type:
/// there a single string does not become characters, and types that no variable has are checked, too.
///
/// # Errors
/// `NC_ESTRICTNC3` with the names of what it cannot hold; where it is strict, the code that the first
/// of these definitions would have. `NC_ENAMEINUSE` for dimensions and types of groups that are not
/// copied, which would get a name twice; `NC_EBADTYPE` for variables of types that cannot be represented
/// in netCDF.
pub(super) fn check(tree: &DefinitionTree, format: Format, is_strict: bool) -> Result<()> {
    check_names(tree)?;
    check_types(tree)?;
    if format == Format::NetCdf4 {
        return Ok(());
    }
    let mut misfits = Misfits { format, is_strict, found: Vec::new() };
    // In the order in which they would be defined.
    for group in tree.groups.iter().skip(1) {
        misfits.add(NcError::NoGrp, format!("group {}", shown(&group.path)));
    }
    for ty in tree.types.iter().filter(|_| is_strict) {
        misfits.add(NcError::NotNc4, format!("type {}", shown(&ty.name)));
    }
    for (index, group) in tree.groups.iter().enumerate() {
        let dims = tree.dims.iter().filter(|dim| dim.group == index);
        // A dimension of length 0 can only be defined as unlimited.
        let unlimited: Vec<String> = dims
            .filter(|dim| dim.is_unlimited || dim.len == 0)
            .map(|dim| shown(&dim.name))
            .collect();
        if unlimited.len() > 1 {
            let text = format!("several unlimited dimensions ({})", unlimited.join(", "));
            misfits.found.push((NcError::Unlimit, text));
        }
        let path = shown(&group.path);
        group.atts.iter().for_each(|att| misfits.att(att, &path));
        for var in &group.vars {
            misfits.var(var);
        }
    }
    misfits.refuse()
}

/// What a format cannot hold, with the code that defining it would have.
struct Misfits {
    format: Format,
    is_strict: bool,
    found: Vec<(NcError, String)>,
}

impl Misfits {
    /// Something that the classic model lacks; `in_classic` is the code of its definition in a classic file.
    fn add(&mut self, in_classic: NcError, what: String) {
        let code = if self.format.is_hdf5() { NcError::StrictNc3 } else { in_classic };
        self.found.push((code, what));
    }

    fn att(&mut self, att: &AttDef, owner: &str) {
        let nc_type = if self.is_strict { att.nc_type } else { att_type(att, self.format) };
        if let Some(why) = type_misfit(nc_type, self.format) {
            let several =
                if att.nc_type == NC_STRING && att.len != 1 { "several values of " } else { "" };
            let name = shown(&att.name);
            self.add(NcError::BadType, format!("attribute {owner}@{name} of {several}{why}"));
        }
    }

    fn var(&mut self, var: &VarDef) {
        let path = shown(&var.path);
        if let Some(why) = type_misfit(var.nc_type, self.format) {
            self.add(NcError::BadType, format!("variable {path} of {why}"));
        }
        let late = var.axes.iter().skip(1).find(|axis| axis.is_unlimited);
        if let Some(axis) = late.filter(|_| !self.format.is_hdf5()) {
            let name = shown(&axis.name);
            let text = format!("variable {path}, whose unlimited dimension {name} is not first");
            self.found.push((NcError::UnlimPos, text));
        }
        var.atts.iter().for_each(|att| self.att(att, &path));
    }

    /// The error, if anything was found.
    fn refuse(mut self) -> Result<()> {
        let Some(first) = self.found.first().map(|(code, _)| *code) else { return Ok(()) };
        let code = if self.is_strict { first } else { NcError::StrictNc3 };
        let more = self.found.len().saturating_sub(MOST_NAMED);
        self.found.truncate(MOST_NAMED);
        let named: Vec<String> = self.found.into_iter().map(|(_, what)| what).collect();
        let mut text = format!("a {} file cannot hold {}", self.format.kind(), named.join("; "));
        if more > 0 {
            text.push_str(&format!("; and {more} more"));
        }
        Err(Error::with_text(code, text))
    }
}

/// The type that an attribute gets in a file of a format.
pub(super) fn att_type(att: &AttDef, format: Format) -> i32 {
    let is_single = att.nc_type == NC_STRING && att.len == 1;
    match format {
        Format::NetCdf4 => att.nc_type,
        _ if is_single => ExtType::Char.nc_type(),
        _ => att.nc_type,
    }
}

/// What is wrong with a type; `None` if nothing.
fn type_misfit(nc_type: i32, format: Format) -> Option<String> {
    let most = format.last_type();
    match ExtType::from_nc_type(nc_type) {
        Some(_) if nc_type <= most.nc_type() => None,
        Some(ext) => Some(format!("type {}", ext.name())),
        None if nc_type == NC_STRING => Some("type string".to_owned()),
        None => Some("a user-defined type".to_owned()),
    }
}

fn check_names(tree: &DefinitionTree) -> Result<()> {
    let mut names = BTreeSet::new();
    for dim in &tree.dims {
        if !names.insert((dim.group, &dim.name)) {
            let text = format!("two dimensions would be called {:?}", shown(&dim.name));
            return Err(Error::with_text(NcError::NameInUse, text));
        }
    }
    let mut names = BTreeSet::new();
    for ty in &tree.types {
        if !names.insert((ty.group, &ty.name)) {
            let text = format!("two types would be called {:?}", shown(&ty.name));
            return Err(Error::with_text(NcError::NameInUse, text));
        }
    }
    Ok(())
}

fn check_types(tree: &DefinitionTree) -> Result<()> {
    let is_known = |nc_type| is_atomic(nc_type) || tree.types.iter().any(|ty| ty.source == nc_type);
    let unknown = tree.vars().find(|var| !is_known(var.nc_type)).map(|var| &var.path);
    match tree.absent.first().or(unknown) {
        None => Ok(()),
        Some(path) => {
            let path = shown(path);
            let text = format!(
                "variable {path} is of a type that cannot be represented in netCDF; leave it out of the copy (-x)"
            );
            Err(Error::answered(NcError::BadType, Answer::Unrepresentable, text))
        }
    }
}
