//! The check of an HDF5 file.

use std::ops::ControlFlow;

use zonda_format::VarRef;
use zonda_model::VarId;
use zonda_nc4::{Extent, GroupId, Nc4Error, Usage};

use super::data::{Reader, VarPlace, attributes};
use super::{Checked, Grade, Notes};
use crate::copy::Progress;
use crate::dataset::Dataset;
use crate::error::Result;

pub(super) fn check(
    file: &Dataset,
    checked: &mut Checked,
    notes: &mut Notes,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let usage = file.usage()?;
    checked.unaccounted_bytes = usage.unaccounted_bytes();
    structure(file, &usage, notes);
    for gap in file.gaps()? {
        // A link to a file that is not there is as sound as any other.
        let is_absent = gap.error.is_absence();
        let grade = if is_absent { Grade::Remark } else { Grade::Unchecked };
        notes.add(grade, Some(&gap.path), None, gap.error.to_string());
    }
    let told = super::faults(file, notes)?;
    let mut places = Vec::new();
    let mut groups = vec![GroupId::ROOT];
    while let Some(group) = groups.pop() {
        let path = match file.in_group(group, |meta| meta.group_path()) {
            Ok(path) => String::from_utf8_lossy(&path).into_owned(),
            Err(error) => {
                notes.error(None, &error);
                continue;
            }
        };
        attributes(file, VarRef::group(group), &path, notes);
        let (n_vars, children) =
            file.in_group(group, |meta| (meta.n_vars(), meta.groups().to_vec()))?;
        groups.extend(children.into_iter().rev());
        for number in (0..n_vars).map_while(|number| i32::try_from(number).ok()) {
            let var = VarRef { group, var: VarId(number) };
            match VarPlace::of(file, var) {
                Ok(place) => {
                    attributes(file, var, &place.path, notes);
                    if let Some((dim, has, len)) = &place.odd {
                        let what =
                            format!("it has {has} elements along {dim}, a dimension of {len}");
                        notes.add(Grade::NoWords, Some(&place.path), None, what);
                    }
                    places.push(place);
                }
                Err(error) => {
                    let is_told = |path: &String| told.contains(path);
                    let name = file.in_group(group, |meta| {
                        meta.var(var.var)
                            .map(|view| String::from_utf8_lossy(view.name).into_owned())
                    })?;
                    let slash = if path.ends_with('/') { "" } else { "/" };
                    let path = format!("{path}{slash}{}", name.unwrap_or_default());
                    if !is_told(&path) {
                        notes.error(Some(&path), &error);
                    }
                }
            }
        }
    }
    checked.n_vars = places.len();
    let total = places.iter().fold(0u64, |sum, place| sum.saturating_add(place.bytes()));
    let mut reader = Reader { file, notes, progress, total, done: 0, data: Vec::new() };
    for place in &places {
        checked.n_chunks = checked.n_chunks.saturating_add(reader.var(place)?);
    }
    checked.data_bytes = reader.done;
    Ok(())
}

/// What the walk over all structures found.
fn structure(file: &Dataset, usage: &Usage, notes: &mut Notes) {
    let paths = file.object_paths();
    for fault in &usage.faults {
        let object = fault.owner.and_then(|owner| paths.get(&owner.0));
        let error = Nc4Error::Hdf { object: "/".to_owned(), error: fault.error.clone() };
        notes.error(object.map(String::as_str), &error.into());
    }
    let owner = |extent: &Extent| extent.owner.and_then(|owner| paths.get(&owner.0)).cloned();
    let named = |extent: &Extent| match owner(extent) {
        Some(path) => format!("{} of {path}", extent.kind.name()),
        None => extent.kind.name().to_owned(),
    };
    for (first, second) in &usage.overlaps {
        let what = format!(
            "{} at byte {} lie on {}, which has bytes {} to {}",
            named(second),
            second.at,
            named(first),
            first.at,
            first.end()
        );
        notes.add(Grade::Damage, owner(second).as_deref(), Some(second.at), what);
    }
    for extent in usage.extents.iter().filter(|extent| extent.end() > usage.file_bytes) {
        let (kind, at, end) = (extent.kind.name(), extent.at, extent.end());
        let what = format!(
            "{kind} at byte {at} go to byte {end}, and the file ends at {}",
            usage.file_bytes
        );
        notes.add(Grade::Damage, owner(extent).as_deref(), Some(at), what);
    }
}
