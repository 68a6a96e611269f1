//! Definitions that were read again keep their numbers.
//!
//! An object whose path was known before keeps its number; so does one whose header was known under another
//! name. All others follow in the order of the walk. A walk alone would change numbers where a group gets a new
//! group and other groups follow, and where the file keeps no order but that of names.

use hashbrown::{HashMap, HashSet};
use zonda_model::DimId;

use crate::files::ObjectAt;
use crate::model::{Dim, Group, GroupId, Model, TypeEntry, UserClass, UserType, Var};
use crate::types::{Types, number};

/// Whether the walk gave all objects that were there before the same numbers.
pub(super) fn goes_on(old: &Model, new: &Model) -> bool {
    let groups = old.groups.len() <= new.groups.len()
        && old.groups.iter().zip(&new.groups).all(|(old, new)| {
            old.name == new.name
                && old.parent == new.parent
                && old.vars.len() <= new.vars.len()
                && old.vars.iter().zip(&new.vars).all(|(old, new)| {
                    old.name == new.name && old.nc_type == new.nc_type && old.dims == new.dims
                })
        });
    let dims = old.dims.len() <= new.dims.len()
        && old.dims.iter().zip(&new.dims).all(|(old, new)| match (old, new) {
            (Some(old), Some(new)) => old.name == new.name && old.group == new.group,
            (None, _) => true,
            (Some(_), None) => false,
        });
    let same_type = |(old, new): (&TypeEntry, &TypeEntry)| {
        old.name == new.name && old.group == new.group && old.size == new.size
    };
    groups
        && dims
        && old.types.len() <= new.types.len()
        && old.types.iter().zip(&new.types).all(same_type)
}

/// The new definitions with the numbers that the old ones had.
pub(super) fn as_before(old: &Model, new: Model) -> Model {
    if goes_on(old, &new) {
        return new;
    }
    let groups = groups(old, &new);
    let dims = dims(old, &new, &groups);
    let types = types(old, &new, &groups);
    Renumbering { groups, dims, types }.apply(old, new)
}

/// The numbers that groups, dimensions and types of the new model get, by the numbers of the walk.
struct Renumbering {
    groups: Vec<u16>,
    dims: Vec<i32>,
    types: Vec<i32>,
}

/// What objects are recognised by, in the order of their numbers: a key, and the place of the header.
type KeyedObjects<K> = Vec<Option<(K, ObjectAt)>>;
/// The group, and the name in it.
type GroupAndName<'m> = (u16, &'m [u8]);

/// For each object of `new` its number in `old`, found by its key, or else by the address of its header. Objects
/// that are not in `old` get the numbers behind.
fn places<K: Eq + std::hash::Hash>(
    old: &[Option<(K, ObjectAt)>],
    new: &[Option<(K, ObjectAt)>],
) -> Vec<usize> {
    let mut taken = HashSet::new();
    let mut found = vec![None; new.len()];
    // If several have one key, the first counts.
    let by_key: HashMap<&K, usize> = old
        .iter()
        .enumerate()
        .rev()
        .filter_map(|(place, it)| Some((&it.as_ref()?.0, place)))
        .collect();
    for (place, it) in found.iter_mut().zip(new) {
        let known = it.as_ref().and_then(|(key, _)| by_key.get(key).copied());
        *place = known.filter(|known| taken.insert(*known));
    }
    let mut by_address: HashMap<ObjectAt, usize> = (0..)
        .zip(old)
        .filter(|(place, _)| !taken.contains(place))
        .filter_map(|(place, it)| Some((it.as_ref()?.1, place)))
        .collect();
    by_address.remove(&ObjectAt::NOWHERE);
    for (place, it) in found.iter_mut().zip(new).filter(|(place, _)| place.is_none()) {
        *place = it.as_ref().and_then(|(_, at)| by_address.remove(at));
    }
    let mut next = old.len();
    let mut fresh = || {
        let place = next;
        next = next.saturating_add(1);
        place
    };
    found.into_iter().map(|place| place.unwrap_or_else(&mut fresh)).collect()
}

fn groups(old: &Model, new: &Model) -> Vec<u16> {
    fn keys(model: &Model) -> KeyedObjects<String> {
        let groups = (0..=u16::MAX).map(GroupId).zip(&model.groups);
        groups.map(|(id, group)| Some((model.group_path(id), group.at))).collect()
    }
    let places = places(&keys(old), &keys(new));
    places.into_iter().map(|place| u16::try_from(place).unwrap_or(u16::MAX)).collect()
}

fn dims(old: &Model, new: &Model, groups: &[u16]) -> Vec<i32> {
    fn keys(model: &Model, group: impl Fn(GroupId) -> u16) -> KeyedObjects<GroupAndName<'_>> {
        let key = |dim: &Dim| group(dim.group);
        let at = |dim: &Dim| dim.at.unwrap_or(ObjectAt::NOWHERE);
        let all = model.dims.iter().map(|dim| dim.as_ref());
        all.map(|dim| dim.map(|dim| ((key(dim), &*dim.name), at(dim)))).collect()
    }
    let new_keys = keys(new, |group| moved(groups, group));
    let places = places(&keys(old, |group| group.0), &new_keys);
    places.into_iter().map(|place| i32::try_from(place).unwrap_or(i32::MAX)).collect()
}

fn types(old: &Model, new: &Model, groups: &[u16]) -> Vec<i32> {
    fn keys(model: &Model, group: impl Fn(GroupId) -> u16) -> KeyedObjects<GroupAndName<'_>> {
        model
            .types
            .iter()
            .map(|ty| Some(((group(ty.group), &*ty.name), ObjectAt::NOWHERE)))
            .collect()
    }
    let new_keys = keys(new, |group| moved(groups, group));
    places(&keys(old, |group| group.0), &new_keys).into_iter().map(number).collect()
}

fn moved(groups: &[u16], group: GroupId) -> u16 {
    groups.get(usize::from(group.0)).copied().unwrap_or(u16::MAX)
}

impl Renumbering {
    fn group(&self, id: GroupId) -> GroupId {
        GroupId(moved(&self.groups, id))
    }

    fn dim(&self, id: DimId) -> DimId {
        let place = usize::try_from(id.0).ok().and_then(|place| self.dims.get(place));
        place.map_or(DimId(-1), |place| DimId(*place))
    }

    fn ty(&self, nc_type: i32) -> i32 {
        let place = UserType::index(nc_type).and_then(|place| self.types.get(place));
        place.copied().unwrap_or(nc_type)
    }

    fn apply(&self, old: &Model, new: Model) -> Model {
        let Model { groups, dims, types, is_classic, gaps, forms, faults } = new;
        let mut list: Vec<Option<Group>> = Vec::new();
        for (id, group) in (0..=u16::MAX).map(GroupId).zip(groups) {
            let id = self.group(id);
            let before = old.group(id);
            put(&mut list, usize::from(id.0), self.one_group(before, group));
        }
        let gone = |place: usize| {
            let group = old.groups.get(place);
            let name = group.map(|group| group.name.clone()).unwrap_or_default();
            let mut gone = Group::new(name, group.and_then(|g| g.parent), ObjectAt::NOWHERE);
            gone.vars =
                group.map(|group| group.vars.iter().map(none_left)).into_iter().flatten().collect();
            gone
        };
        let n_groups = list.len().max(old.groups.len());
        list.resize_with(n_groups, || None);
        let groups = (0..).zip(list).map(|(place, it)| it.unwrap_or_else(|| gone(place)));
        let mut dim_list: Vec<Option<Dim>> = Vec::new();
        for (id, dim) in (0..).map(DimId).zip(dims) {
            let Some(mut dim) = dim else { continue };
            dim.group = self.group(dim.group);
            put(&mut dim_list, usize::try_from(self.dim(id).0).unwrap_or(0), dim);
        }
        let mut type_list: Vec<Option<TypeEntry>> = Vec::new();
        for (place, mut ty) in types.into_iter().enumerate() {
            ty.shown.group = self.group(ty.group);
            self.renumber_members(&mut ty.shown);
            put(&mut type_list, UserType::index(self.ty(number(place))).unwrap_or(0), ty);
        }
        let n_types = type_list.len().max(old.types.len());
        type_list.resize_with(n_types, || None);
        let gone = |place: usize| {
            let ty = old.types.get(place);
            let name = ty.map(|ty| ty.name.clone()).unwrap_or_default();
            TypeEntry::gone(name, ty.map_or(0, |ty| ty.size))
        };
        let types = (0..).zip(type_list).map(|(place, ty)| ty.unwrap_or_else(|| gone(place)));
        Model {
            groups: groups.collect(),
            dims: dim_list,
            types: types.collect(),
            is_classic,
            gaps,
            forms: self.forms(forms),
            faults,
        }
    }

    fn forms(&self, forms: Types) -> Types {
        forms.renumbered(|nc_type| self.ty(nc_type))
    }

    fn renumber_members(&self, ty: &mut UserType) {
        match &mut ty.class {
            UserClass::Compound(fields) => {
                fields.iter_mut().for_each(|field| field.nc_type = self.ty(field.nc_type));
            }
            UserClass::Vlen { base } => *base = self.ty(*base),
            _ => {}
        }
    }

    /// A group with its variables in the order that they had.
    fn one_group(&self, before: Option<&Group>, group: Group) -> Group {
        let mut anew = Group::new(group.name, group.parent.map(|id| self.group(id)), group.at);
        anew.children = group.children.into_iter().map(|id| self.group(id)).collect();
        anew.dims = group.dims.into_iter().map(|id| self.dim(id)).collect();
        zonda_runtime::sort::sort(&mut anew.dims);
        anew.types = group.types.into_iter().map(|ty| self.ty(ty)).collect();
        fn keys(vars: &[Var]) -> Vec<Option<(&[u8], ObjectAt)>> {
            vars.iter().map(|var| Some((&*var.name, var.at))).collect()
        }
        let old = before.map(|group| &*group.vars).unwrap_or_default();
        let places = places(&keys(old), &keys(&group.vars));
        let mut vars: Vec<Option<Var>> = Vec::new();
        for (place, mut var) in places.into_iter().zip(group.vars) {
            var.nc_type = self.ty(var.nc_type);
            var.dims.iter_mut().for_each(|dim| *dim = self.dim(*dim));
            put(&mut vars, place, var);
        }
        let n_vars = vars.len().max(old.len());
        vars.resize_with(n_vars, || None);
        let gone = |place: usize| old.get(place).map(none_left);
        let vars = (0..).zip(vars).filter_map(|(place, var)| var.or_else(|| gone(place)));
        anew.vars = vars.collect();
        anew.unlisted = group.unlisted;
        anew
    }
}

/// What stands for a variable that is not in the file any more.
fn none_left(var: &Var) -> Var {
    Var::damaged(&var.name, ObjectAt::NOWHERE)
}

fn put<T>(list: &mut Vec<Option<T>>, place: usize, it: T) {
    if list.len() <= place {
        list.resize_with(place.saturating_add(1), || None);
    }
    if let Some(slot) = list.get_mut(place) {
        *slot = Some(it);
    }
}
