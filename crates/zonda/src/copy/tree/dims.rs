//! Dimensions and types that a copy has.

use std::collections::{BTreeMap, BTreeSet};

use zonda_format::{FIRST_USER_TYPE, Field, GroupId, Meta, UserClass};
use zonda_model::DimId;

use super::{ClassDef, DimDef, FieldDef, GroupDef, NO_DIM, TypeDef, is_atomic};
use crate::dataset::Dataset;
use crate::error::{Error, Result};

/// The dimensions of the copy: all of the groups that are copied where `all` is set, or only those that variables use. Those
/// that variables use from groups that are not copied go to the root.
pub(super) fn read_dims(
    source: &Dataset,
    groups: &[GroupDef],
    index: &BTreeMap<GroupId, usize>,
    all: bool,
) -> Result<Vec<DimDef>> {
    let axes = groups.iter().flat_map(|group| &group.vars).flat_map(|var| &var.axes);
    let used: BTreeSet<i32> = axes.map(|axis| axis.source.0).collect();
    let mut dims = Vec::new();
    for (group, home) in all_groups(source, index)? {
        source.in_group(group, |meta| {
            for id in meta.dim_ids() {
                let wanted = (all && home.is_some()) || used.contains(&id.0);
                let dim = meta.dim(id)?;
                if wanted {
                    dims.push(DimDef {
                        source: id,
                        group: home.unwrap_or(0),
                        name: dim.name.to_vec(),
                        len: dim.len,
                        is_unlimited: dim.is_unlimited,
                        is_made_up: false,
                    });
                }
            }
            Ok::<_, Error>(())
        })??;
    }
    zonda_runtime::sort::sort_by_key(&mut dims, |dim| dim.source.0);
    Ok(dims)
}

/// Makes dimensions for axes where the file does not say which dimension they are.
pub(super) fn name_axes(groups: &mut [GroupDef], dims: &mut Vec<DimDef>) {
    let mut taken: BTreeSet<Vec<u8>> = dims.iter().map(|dim| dim.name.clone()).collect();
    let (mut id, mut number) = (i32::MAX, 0u32);
    for (group, def) in groups.iter_mut().enumerate() {
        let axes = def.vars.iter_mut().flat_map(|var| &mut var.axes);
        for axis in axes.filter(|axis| axis.source == NO_DIM) {
            let name = loop {
                let name = format!("phony_dim_{number}").into_bytes();
                number += 1;
                if taken.insert(name.clone()) {
                    break name;
                }
            };
            (axis.source, axis.name) = (DimId(id), name.clone());
            dims.push(DimDef {
                source: DimId(id),
                group,
                name,
                len: axis.len,
                is_unlimited: false,
                is_made_up: true,
            });
            id -= 1;
        }
    }
}

/// All groups of the source, each with its index among those that are copied.
fn all_groups(
    source: &Dataset,
    index: &BTreeMap<GroupId, usize>,
) -> Result<Vec<(GroupId, Option<usize>)>> {
    let mut found = Vec::new();
    let mut next = vec![GroupId::ROOT];
    while let Some(group) = next.pop() {
        found.push((group, index.get(&group).copied()));
        next.extend(source.in_group(group, |meta| meta.groups().to_vec())?);
    }
    Ok(found)
}

/// The types of the copy: all of the groups that are copied where `all` is set, or only those in use.
pub(super) fn read_types(
    source: &Dataset,
    groups: &[GroupDef],
    index: &BTreeMap<GroupId, usize>,
    all: bool,
) -> Result<Vec<TypeDef>> {
    let mut used = Vec::new();
    for group in groups {
        used.extend(group.atts.iter().map(|att| att.nc_type));
        for var in &group.vars {
            used.push(var.nc_type);
            used.extend(var.atts.iter().map(|att| att.nc_type));
        }
    }
    source.in_group(GroupId::ROOT, |meta| {
        let mut types = Vec::new();
        let mut seen = BTreeSet::new();
        if all {
            for (ty, id) in meta.types().zip(FIRST_USER_TYPE..) {
                if index.contains_key(&ty.group) {
                    used.push(id);
                }
            }
        }
        zonda_runtime::sort::sort(&mut used);
        for &id in &used {
            add_type(meta, id, index, &mut seen, &mut types);
        }
        types
    })
}

/// Adds a type behind those that it consists of. A type that netCDF cannot represent is left out: the variables that have it
/// are reported.
fn add_type(
    meta: &Meta<'_>,
    id: i32,
    index: &BTreeMap<GroupId, usize>,
    seen: &mut BTreeSet<i32>,
    types: &mut Vec<TypeDef>,
) {
    let Ok(ty) = meta.user_type(id) else { return };
    if !seen.insert(id) {
        return;
    }
    let class = match &ty.class {
        UserClass::Compound(_) if !meta.is_whole_type(id) => return,
        UserClass::Compound(fields) => {
            fields.iter().for_each(|field| add_type(meta, field.nc_type, index, seen, types));
            // Text is shown as its first character, but all of it is there.
            let lens = meta.text_lens(id).into_iter().chain(std::iter::repeat(1));
            let field = |(field, len): (&Field, usize)| FieldDef {
                name: field.name.to_vec(),
                offset: field.offset,
                nc_type: field.nc_type,
                dims: match i32::try_from(len) {
                    Ok(len) if len > 1 => [&field.dims[..], &[len]].concat(),
                    _ => field.dims.clone(),
                },
            };
            ClassDef::Compound(fields.iter().zip(lens).map(field).collect())
        }
        UserClass::Enum { base, members } => ClassDef::Enum(*base, members.clone()),
        UserClass::Opaque => ClassDef::Opaque,
        UserClass::Vlen { base } if *base != 0 => {
            add_type(meta, *base, index, seen, types);
            ClassDef::Vlen(*base)
        }
        UserClass::Vlen { .. } | UserClass::String | UserClass::Unknown => return,
    };
    let parts: Vec<i32> = match &class {
        ClassDef::Compound(fields) => fields.iter().map(|field| field.nc_type).collect(),
        ClassDef::Vlen(base) => vec![*base],
        ClassDef::Enum(..) | ClassDef::Opaque => Vec::new(),
    };
    let is_known = |part: &i32| is_atomic(*part) || types.iter().any(|ty| ty.source == *part);
    if !parts.iter().all(is_known) {
        return;
    }
    let group = index.get(&ty.group).copied().unwrap_or(0);
    types.push(TypeDef { source: id, group, name: ty.name.to_vec(), size: ty.size, class });
}
