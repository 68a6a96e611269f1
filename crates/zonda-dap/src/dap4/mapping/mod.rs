//! The definitions that a DMR becomes, in the order in which the reference makes them.
//!
//! A structure becomes a compound, a sequence a sequence of compounds; their types get names of the variable. Lengths without a name become dimensions
//! of the root group. Types come in the order enumerations, opaques, compounds and sequences; a variable comes behind those that are its maps.

mod attributes;
mod types;

use std::collections::{HashMap, HashSet};

use super::dmr::{DimRef, Dmr, Group, Type, Variable, names, reserved};
use super::layout::{Layout, Names};
use super::settings::Settings;
use crate::error::{DapError, Document};
use crate::model::{self, Model};

/// Longest name, in bytes.
const MOST_NAME: usize = 256;
/// Most dimensions of a variable.
const MOST_RANK: usize = 1024;
/// Most groups: they are numbered with 16 bits.
const MOST_GROUPS: usize = 0xffff;

/// A variable of the model, as requests and bodies know it.
#[derive(Debug)]
pub(super) struct Known {
    /// Its name with all groups.
    pub(super) fqn: String,
    /// An element.
    pub(super) layout: Layout,
    /// Length of each dimension, and its name with all groups where it has one.
    pub(super) dims: Vec<(Option<String>, u64)>,
}

/// A variable of the document.
struct Found<'a> {
    group: usize,
    fqn: String,
    var: &'a Variable,
}

fn unrepresentable(what: String) -> DapError {
    DapError::unrepresentable(Document::Dmr, what)
}

/// Makes definitions of a DMR.
///
/// # Errors
/// Names that are used twice or too long; references to what is not there; what netCDF has no form for.
pub(super) fn model(dmr: &Dmr, settings: Settings) -> Result<(Model, Vec<Known>), DapError> {
    let mut mapper = Mapper {
        names: Names::of(dmr, settings),
        settings,
        model: Model { is_netcdf4: true, ..Model::default() },
        found: Vec::new(),
        dims: HashMap::new(),
        unnamed: HashMap::new(),
        dim_names: HashSet::new(),
        taken: HashSet::new(),
        enums: HashMap::new(),
        opaques: HashMap::new(),
        type_names: HashMap::new(),
        group_names: HashMap::new(),
    };
    mapper.group(&dmr.root, None, "")?;
    mapper.dimensions(&dmr.root, &mut 0, "")?;
    mapper.enumerations(&dmr.root, &mut 0, "")?;
    mapper.opaques()?;
    let known = mapper.variables()?;
    mapper.group_attributes(&dmr.root, &mut 0)?;
    Ok((mapper.model, known))
}

struct Mapper<'a> {
    names: Names,
    settings: Settings,
    model: Model,
    found: Vec<Found<'a>>,
    /// Shared dimensions by name with all groups.
    dims: HashMap<String, usize>,
    /// Dimensions of lengths without a name.
    unnamed: HashMap<u64, usize>,
    dim_names: HashSet<(usize, String)>,
    /// Names of variables, groups and types.
    taken: HashSet<(usize, String)>,
    /// Numbers of enumerations by name with all groups, and what their members are.
    enums: HashMap<String, types::Enum>,
    /// Opaque types by size.
    opaques: HashMap<usize, i32>,
    /// Types by group and name.
    type_names: HashMap<(usize, String), i32>,
    group_names: HashMap<String, usize>,
}

/// The name in netCDF, which has no slashes in names.
fn netcdf_name(name: &str) -> Result<String, DapError> {
    let written = name.replace('/', "%2f");
    if written.len() > MOST_NAME {
        return Err(unrepresentable(format!("the name {name:?} is too long")));
    }
    Ok(written)
}

impl<'a> Mapper<'a> {
    /// Numbers groups and variables.
    fn group(
        &mut self,
        group: &'a Group,
        parent: Option<usize>,
        path: &str,
    ) -> Result<(), DapError> {
        let index = self.model.groups.len();
        if index >= MOST_GROUPS {
            return Err(unrepresentable(format!("more than {MOST_GROUPS} groups")));
        }
        let name = if parent.is_none() { "/".into() } else { netcdf_name(&group.name)? };
        self.model.groups.push(model::Group { name, parent, atts: Vec::new() });
        self.group_names.insert(path.to_owned(), index);
        for var in &group.vars {
            self.take(index, &var.name)?;
            self.found.push(Found { group: index, fqn: names::join(path, &var.name), var });
        }
        for inner in &group.groups {
            self.take(index, &inner.name)?;
        }
        for inner in &group.groups {
            self.group(inner, Some(index), &names::join(path, &inner.name))?;
        }
        Ok(())
    }

    fn take(&mut self, group: usize, name: &str) -> Result<(), DapError> {
        if self.taken.insert((group, netcdf_name(name)?)) {
            return Ok(());
        }
        Err(unrepresentable(format!("{name} is there twice in a group")))
    }

    /// Makes dimensions in the order in which they are met: those of a group, those without names of its variables, those of groups in it.
    fn dimensions(&mut self, group: &Group, index: &mut usize, path: &str) -> Result<(), DapError> {
        let here = *index;
        *index = index.saturating_add(1);
        for dim in &group.dims {
            let name = netcdf_name(&dim.name)?;
            if !self.dim_names.insert((here, name.clone())) {
                return Err(unrepresentable(format!("dimension {name} is there twice in a group")));
            }
            // A dimension without a length is one that can grow, in netCDF.
            let is_unlimited =
                dim.size == 0 || reserved(&dim.reserved, super::IS_UNLIMITED).is_some();
            self.dims.insert(names::join(path, &dim.name), self.model.dims.len());
            self.model.dims.push(model::Dim { group: here, name, len: dim.size, is_unlimited });
        }
        for var in &group.vars {
            self.unnamed(var);
        }
        for inner in &group.groups {
            self.dimensions(inner, index, &names::join(path, &inner.name))?;
        }
        Ok(())
    }

    fn unnamed(&mut self, var: &Variable) {
        if let Type::Structure(fields) | Type::Sequence(fields) = &var.ty {
            fields.iter().for_each(|field| self.unnamed(field));
        }
        for dim in &var.dims {
            let DimRef::Size(len) = *dim else { continue };
            if self.unnamed.contains_key(&len) {
                continue;
            }
            let mut name = format!("_Anonymous{len}");
            while !self.dim_names.insert((0, name.clone())) {
                name.push('_');
            }
            self.unnamed.insert(len, self.model.dims.len());
            self.model.dims.push(model::Dim { group: 0, name, len, is_unlimited: len == 0 });
        }
    }

    /// Makes variables and their types, each behind its maps.
    fn variables(&mut self) -> Result<Vec<Known>, DapError> {
        let found = std::mem::take(&mut self.found);
        let places: HashMap<&str, usize> =
            found.iter().enumerate().map(|(i, found)| (found.fqn.as_str(), i)).collect();
        let maps: Vec<Vec<usize>> = found
            .iter()
            .map(|found| {
                let maps = found.var.maps.iter();
                maps.filter_map(|map| places.get(names::canonical(map).as_str()).copied()).collect()
            })
            .collect();
        let (mut known, mut types) = (Vec::new(), HashMap::new());
        let mut is_met = vec![false; found.len()];
        for first in 0..found.len() {
            // Maps may lead from one to the next for long: no recursion.
            let mut stack = vec![(first, 0_usize)];
            while let Some((var, map)) = stack.pop() {
                let (Some(one), Some(met)) = (found.get(var), is_met.get_mut(var)) else {
                    continue;
                };
                if map == 0 {
                    if std::mem::replace(met, true) {
                        continue;
                    }
                    let layout = self.names.layout(one.var)?;
                    let name = netcdf_name(&one.var.name)?;
                    let nc_type = self.type_of(one.var, &layout, one.group, &name)?;
                    types.insert(var, (layout, nc_type));
                }
                if let Some(next) = maps.get(var).and_then(|maps| maps.get(map)) {
                    stack.push((var, map.saturating_add(1)));
                    stack.push((*next, 0));
                    continue;
                }
                if let Some((layout, nc_type)) = types.remove(&var) {
                    known.push(self.variable(one, layout, nc_type)?);
                }
            }
        }
        Ok(known)
    }

    fn variable(
        &mut self,
        found: &Found<'_>,
        layout: Layout,
        nc_type: i32,
    ) -> Result<Known, DapError> {
        let var = found.var;
        if var.dims.len() > MOST_RANK {
            return Err(unrepresentable(format!(
                "{} has more than {MOST_RANK} dimensions",
                found.fqn
            )));
        }
        let shape = self.names.shape(var)?;
        let (mut dims, mut known) = (Vec::new(), Vec::new());
        for (dim, len) in var.dims.iter().zip(shape) {
            let (index, name) = match dim {
                DimRef::Size(len) => (self.unnamed.get(len), None),
                DimRef::Shared(name) => {
                    let name = names::canonical(name);
                    (self.dims.get(&name), Some(name))
                }
            };
            dims.extend(index);
            known.push((name, len));
        }
        let atts = self.variable_attributes(found, nc_type)?;
        let (group, name) = (found.group, netcdf_name(&var.name)?);
        self.model.vars.push(model::Var { group, name, nc_type, dims, atts });
        Ok(Known { fqn: found.fqn.clone(), layout, dims: known })
    }
}

#[cfg(test)]
mod tests;
