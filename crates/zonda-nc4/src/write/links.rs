//! Links of groups: which there should be, and in which order.
//!
//! The order is that of creation, by which readers number variables. Links that a group had keep their order; new
//! ones follow in the order in which the reference makes their objects.

use hashbrown::HashSet;
use zonda_format::VarRef;
use zonda_hdf5::message::{Charset, LinkTarget};
use zonda_model::VarId;

use super::scales::{Apart, Scales};
use super::{ObjectKey, Writing};
use crate::model::{GroupId, Model, UserType};
use crate::walk::NON_COORD;

/// A link of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkEntry {
    pub(super) name: Box<[u8]>,
    pub(super) charset: Charset,
    /// The object in the model that it leads to; `None` if the model does not have it.
    pub(super) key: Option<ObjectKey>,
    /// The target that the file had; `None` for an object that was made since.
    pub(super) target: Option<LinkTarget>,
}

/// The name that a variable has in the last commit, in the group that it has now; `None` where the commit does not
/// have the variable.
pub(crate) fn committed_name(
    model: &Model,
    writing: &Writing,
    VarRef { group, var }: VarRef,
) -> Option<Box<[u8]>> {
    if writing.is_new || writing.commits.decided.is_some() {
        return None;
    }
    let mut committed = model.var(group, var)?.name.clone();
    let (mut key, mut within) = (ObjectKey::Var(group, var), Some(group));
    while let Some(id) = within {
        if writing.commits.changed.contains(&ObjectKey::Group(id)) {
            let is_it = |entry: &&LinkEntry| entry.key == Some(key);
            let entry = writing.stored.links.get(&id)?.iter().find(is_it)?;
            if entry.name != name(model, key) {
                let ObjectKey::Var(..) = key else { return None };
                committed = entry.name.strip_prefix(NON_COORD).unwrap_or(&entry.name).into();
            }
        }
        key = ObjectKey::Group(id);
        within = model.group(id).and_then(|group| group.parent);
    }
    Some(committed)
}

/// The links that a group should have, given those that it has.
pub(super) fn wanted(
    model: &Model,
    scales: &Scales,
    apart: &Apart,
    group: GroupId,
    before: &[LinkEntry],
) -> Vec<LinkEntry> {
    let members = members(model, scales, group);
    let live: HashSet<ObjectKey> = members.iter().copied().collect();
    let mut out: Vec<LinkEntry> = Vec::with_capacity(members.len());
    let mut kept: HashSet<ObjectKey> = HashSet::with_capacity(before.len());
    for entry in before {
        match entry.key {
            None => out.push(entry.clone()),
            Some(key) if live.contains(&key) => {
                kept.insert(key);
                out.push(LinkEntry { name: name(model, key), ..entry.clone() });
            }
            Some(_) => {}
        }
    }
    let is_new = |key: &ObjectKey| match key {
        ObjectKey::Type(id) => UserType::index(*id).is_some_and(|index| index >= apart.n_types),
        _ => true,
    };
    for key in members.into_iter().filter(is_new) {
        if kept.insert(key) {
            // The reference marks all names so, whatever their bytes are.
            let charset = Charset::Ascii;
            out.push(LinkEntry { name: name(model, key), charset, key: Some(key), target: None });
        }
    }
    out
}

/// The name of an object in its group.
pub(super) fn name(model: &Model, key: ObjectKey) -> Box<[u8]> {
    let found = match key {
        ObjectKey::Group(id) => model.group(id).map(|group| group.name.clone()),
        ObjectKey::Type(id) => model.user_type(id).map(|ty| ty.name.clone()),
        ObjectKey::Scale(id) => model.dim(id).map(|dim| dim.name.clone()),
        ObjectKey::Var(group, id) => var_name(model, group, id),
    };
    found.unwrap_or_default()
}

/// The name of a variable in the file: another one if a dimension has that name and is not the variable's first.
fn var_name(model: &Model, group: GroupId, id: VarId) -> Option<Box<[u8]>> {
    let var = model.var(group, id)?;
    let dim = model.find_dim(group, &var.name);
    let is_taken = dim.is_some_and(|dim| var.dims.first() != Some(&dim));
    if is_taken { Some([NON_COORD, &var.name].concat().into()) } else { Some(var.name.clone()) }
}

/// The objects of a group in the order in which the reference makes them: types, groups, then
/// dimensions up to one that is a variable, variables up to that one, and so on.
fn members(model: &Model, scales: &Scales, id: GroupId) -> Vec<ObjectKey> {
    let Some(group) = model.group(id) else { return Vec::new() };
    let mut out: Vec<ObjectKey> =
        Vec::with_capacity(group.dims.len().saturating_add(group.vars.len()));
    out.extend(group.types.iter().map(|&ty| ObjectKey::Type(ty)));
    out.extend(group.children.iter().map(|&child| ObjectKey::Group(child)));
    let mut dims = group.dims.iter();
    let n_vars = i32::try_from(group.vars.len()).unwrap_or(i32::MAX);
    let mut vars = 0;
    loop {
        let mut until = n_vars;
        for dim in dims.by_ref() {
            match scales.of_dim.get(dim) {
                Some(ObjectKey::Var(_, var)) => {
                    until = var.0.saturating_add(1);
                    break;
                }
                Some(scale) => out.push(*scale),
                None => {}
            }
        }
        while vars < until {
            out.push(ObjectKey::Var(id, VarId(vars)));
            vars = vars.saturating_add(1);
        }
        if vars >= n_vars && dims.len() == 0 {
            return out;
        }
    }
}
