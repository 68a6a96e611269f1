//! The check of a dataset of whose bytes nothing is known here: all of its values and attributes are read.

use std::ops::ControlFlow;
use std::path::Path;

use zonda_format::{GroupId, VarRef};
use zonda_model::VarId;

use super::data::{Reader, VarPlace, attributes};
use super::{Checked, Notes};
use crate::copy::Progress;
use crate::dataset::Dataset;
use crate::error::Result;

pub(super) fn check(
    file: &Dataset,
    checked: &mut Checked,
    notes: &mut Notes,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let mut places = Vec::new();
    let mut groups = vec![GroupId::ROOT];
    while let Some(group) = groups.pop() {
        let found = file.in_group(group, |meta| {
            let path = String::from_utf8_lossy(&meta.group_path()).into_owned();
            (path, meta.n_vars(), meta.groups().to_vec())
        });
        let (path, n_vars, children) = match found {
            Ok(found) => found,
            Err(error) => {
                notes.error(None, &error);
                continue;
            }
        };
        attributes(file, VarRef::group(group), &path, notes);
        groups.extend(children.into_iter().rev());
        checked.n_vars = checked.n_vars.saturating_add(n_vars);
        for number in (0..n_vars).map_while(|number| i32::try_from(number).ok()) {
            let var = VarRef { group, var: VarId(number) };
            match VarPlace::of(file, var) {
                Ok(place) => {
                    attributes(file, var, &place.path, notes);
                    places.push(place);
                }
                Err(error) => _ = notes.error(None, &error),
            }
        }
    }
    let total = places.iter().fold(0u64, |sum, place| sum.saturating_add(place.bytes()));
    let mut reader = Reader { file, notes, progress, total, done: 0, data: Vec::new() };
    for place in &places {
        reader.var(place)?;
    }
    checked.data_bytes = reader.done;
    Ok(())
}

/// Bytes of the files in a folder.
pub(super) fn bytes_in(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let lens = entries.filter_map(|entry| entry.metadata().ok()).filter(std::fs::Metadata::is_file);
    lens.fold(0, |sum, found| sum.saturating_add(found.len()))
}
