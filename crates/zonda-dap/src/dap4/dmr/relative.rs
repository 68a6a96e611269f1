//! Names that do not begin at the root: of what the group has, or the nearest one around it.

use std::collections::HashSet;

use super::names;
use super::tree::{Atomic, Attribute, AttributeValue, DimRef, Dmr, Group, Type, Variable};

/// All names with their groups.
#[derive(Default)]
struct All {
    dims: HashSet<String>,
    enums: HashSet<String>,
    vars: HashSet<String>,
}

/// Gives all such names the groups that they mean. What is not found stays as it is.
pub(super) fn resolve(dmr: &mut Dmr) {
    let mut all = All::default();
    all.add(&dmr.root, "");
    all.group(&mut dmr.root, "");
}

impl All {
    fn add(&mut self, group: &Group, path: &str) {
        self.dims.extend(group.dims.iter().map(|dim| names::join(path, &dim.name)));
        self.enums.extend(group.enums.iter().map(|one| names::join(path, &one.name)));
        self.vars.extend(group.vars.iter().map(|var| names::join(path, &var.name)));
        for inner in &group.groups {
            self.add(inner, &names::join(path, &inner.name));
        }
    }

    fn group(&self, group: &mut Group, path: &str) {
        group.vars.iter_mut().for_each(|var| self.variable(var, path));
        group.attributes.iter_mut().for_each(|attribute| self.attribute(attribute, path));
        for inner in &mut group.groups {
            let path = names::join(path, &inner.name);
            self.group(inner, &path);
        }
    }

    fn variable(&self, var: &mut Variable, path: &str) {
        for dim in &mut var.dims {
            if let DimRef::Shared(name) = dim {
                absolute(name, path, &self.dims);
            }
        }
        var.maps.iter_mut().for_each(|map| absolute(map, path, &self.vars));
        var.attributes.iter_mut().for_each(|attribute| self.attribute(attribute, path));
        match &mut var.ty {
            Type::Enum(name) => absolute(name, path, &self.enums),
            Type::Structure(fields) | Type::Sequence(fields) => {
                fields.iter_mut().for_each(|field| self.variable(field, path));
            }
            Type::Atomic(_) | Type::Opaque => {}
        }
    }

    fn attribute(&self, attribute: &mut Attribute, path: &str) {
        match &mut attribute.value {
            AttributeValue::Values(kind, _) if Atomic::named(kind).is_none() => {
                absolute(kind, path, &self.enums);
            }
            AttributeValue::Container(inner) => {
                inner.iter_mut().for_each(|attribute| self.attribute(attribute, path));
            }
            AttributeValue::Values(..) | AttributeValue::OtherXml(_) => {}
        }
    }
}

/// Makes a name absolute: that of the group at `path`, or of one around it.
fn absolute(name: &mut String, path: &str, known: &HashSet<String>) {
    if name.starts_with('/') {
        return;
    }
    let parts = names::split(name);
    let mut path = names::split(path);
    loop {
        let all = path.iter().chain(&parts);
        let found = all.fold(String::new(), |group, part| names::join(&group, part));
        if known.contains(&found) {
            *name = found;
            return;
        }
        if path.pop().is_none() {
            return;
        }
    }
}
