//! Which dimensions variables have that do not name them by id, and how long dimensions are.

use hashbrown::HashMap;
use zonda_model::DimId;

use super::Walk;
use crate::files::ObjectAt;
use crate::model::{Dim, GroupId, Model};

/// A variable that does not name its dimensions by id.
pub(crate) struct UnmatchedVar {
    /// Its number in its group.
    pub(crate) var: usize,
    /// For each axis the scale attached to it; `None` where the first axis has none, or there is no list.
    pub(crate) scales: Option<Box<[Option<ObjectAt>]>>,
    /// Which axes can grow.
    pub(crate) is_unlimited: Box<[bool]>,
}

/// Finds the dimensions of all variables: groups after the groups in them, variables in order, so that invented
/// dimensions get the numbers that they get in the reference. As there, the lengths of unlimited dimensions
/// that variables name are computed before dimensions are invented.
pub(crate) fn match_all(walk: &mut Walk<'_>) {
    let mut by_scale: HashMap<ObjectAt, Vec<(GroupId, DimId)>> = HashMap::new();
    for &(at, group, id) in &walk.scales {
        by_scale.entry(at).or_default().push((group, id));
    }
    let mut nameless = Vec::new();
    for group in children_first(&walk.model) {
        let list = walk.unmatched.get_mut(usize::from(group.0)).map(std::mem::take);
        for unmatched in list.unwrap_or_default() {
            match &unmatched.scales {
                Some(scales) => attach(walk, group, unmatched.var, scales, &by_scale),
                None => nameless.push((group, unmatched)),
            }
        }
    }
    if !nameless.is_empty() {
        lengths(&mut walk.model);
    }
    for (group, unmatched) in nameless {
        invent(walk, group, &unmatched);
    }
    for group in &mut walk.model.groups {
        zonda_runtime::sort::sort(&mut group.dims);
    }
}

/// Groups in the order in which a recursion leaves them.
fn children_first(model: &Model) -> Vec<GroupId> {
    let mut order = Vec::with_capacity(model.groups.len());
    let mut stack = vec![GroupId::ROOT];
    // The reverse of "parent, then children from the last to the first".
    while let Some(id) = stack.pop() {
        order.push(id);
        if let Some(group) = model.group(id) {
            stack.extend(&group.children);
        }
    }
    order.reverse();
    order
}

fn attach(
    walk: &mut Walk<'_>,
    group: GroupId,
    var: usize,
    scales: &[Option<ObjectAt>],
    by_scale: &HashMap<ObjectAt, Vec<(GroupId, DimId)>>,
) {
    let mut found = Vec::with_capacity(scales.len());
    for scale in scales {
        let candidates = scale.and_then(|scale| by_scale.get(&scale)).map_or(&[][..], |ids| ids);
        // The nearest group that has it: this one, or one it is in.
        let nearest = walk.model.lineage_ids(group).find_map(|near| {
            candidates.iter().find(|(group, _)| *group == near).map(|(_, id)| *id)
        });
        found.push(nearest);
    }
    if let Some(var) = walk.model.group_mut(group).and_then(|group| group.vars.get_mut(var)) {
        for (place, id) in var.dims.iter_mut().zip(found) {
            *place = id.unwrap_or(DimId(-1));
        }
    }
}

/// Gives a variable without scales its dimensions. For each axis that is a dimension of its group with that length
/// which the variable does not have yet, or else a new one.
fn invent(walk: &mut Walk<'_>, group: GroupId, unmatched: &UnmatchedVar) {
    let Some(var) = walk.model.group(group).and_then(|group| group.vars.get(unmatched.var)) else {
        return;
    };
    let (extent, mut dims) = (var.extent.clone(), var.dims.clone());
    for axis in 0..dims.len() {
        let (Some(&place), Some(&len)) = (dims.get(axis), extent.get(axis)) else {
            break;
        };
        if place.0 >= 0 {
            continue;
        }
        let is_unlimited = unmatched.is_unlimited.get(axis).copied().unwrap_or(false);
        let fits = |id: &&DimId| {
            let dim = walk.model.dim(**id);
            dim.is_some_and(|dim| dim.len == len && dim.is_unlimited == is_unlimited)
                && !dims.contains(*id)
        };
        let known = walk.model.group(group).and_then(|group| group.dims.iter().find(fits));
        let id = match known {
            Some(id) => *id,
            None => {
                let id = walk.next_dim;
                walk.next_dim = id.saturating_add(1);
                let name = format!("phony_dim_{id}").into_bytes().into();
                let is_unlimited = is_unlimited || len == 0;
                walk.add_dim(id, Dim { name, group, len, is_unlimited, at: None });
                DimId(id)
            }
        };
        if let Some(place) = dims.get_mut(axis) {
            *place = id;
        }
    }
    if let Some(var) = walk.model.group_mut(group).and_then(|g| g.vars.get_mut(unmatched.var)) {
        var.dims = dims;
    }
}

/// Lengths of unlimited dimensions: the longest extent of the variables that have them, in their
/// group and those in it.
pub(crate) fn lengths(model: &mut Model) {
    let mut longest: HashMap<DimId, u64> = HashMap::new();
    for index in 0..model.groups.len() {
        let Ok(id) = u16::try_from(index).map(GroupId) else {
            break;
        };
        let Some(group) = model.group(id) else {
            break;
        };
        for var in &group.vars {
            for (&dim_id, &len) in var.dims.iter().zip(&var.extent) {
                let Some(dim) = model.dim(dim_id).filter(|dim| dim.is_unlimited) else {
                    continue;
                };
                if dim.group == id || model.lineage_ids(id).any(|near| near == dim.group) {
                    let place = longest.entry(dim_id).or_insert(0);
                    *place = len.max(*place);
                }
            }
        }
    }
    for (index, dim) in model.dims.iter_mut().enumerate() {
        if let Some(dim) = dim.as_mut().filter(|dim| dim.is_unlimited) {
            let id = i32::try_from(index).map_or(DimId(-1), DimId);
            dim.len = longest.get(&id).copied().unwrap_or(0);
        }
    }
}
