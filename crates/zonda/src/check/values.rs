//! The check of a dataset that is not one file: all of its values and attributes are read.

use std::ops::ControlFlow;
use std::path::Path;

use zonda_format::{GroupId, VarRef};
use zonda_model::VarId;

use super::data::{Reader, VarPlace};
use super::{Checked, Notes};
use crate::copy::Progress;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::open::OpenOptions;

pub(super) fn check(
    path: &Path,
    notes: &mut Notes,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Checked> {
    let mut checked = Checked { file_bytes: bytes_in(path), ..Checked::default() };
    let file = match Dataset::open(path, &OpenOptions::default()) {
        Ok(file) => file,
        Err(error) => {
            notes.error(None, &error);
            return Ok(checked);
        }
    };
    checked.format = Some(file.format());
    checked.n_vars = file.meta(|meta| meta.n_vars());
    let mut places = Vec::new();
    for number in (0..checked.n_vars).map_while(|number| i32::try_from(number).ok()) {
        let var = VarRef { group: GroupId::ROOT, var: VarId(number) };
        match VarPlace::of(&file, var) {
            Ok(place) => places.push(place),
            Err(error) => _ = notes.error(None, &error),
        }
    }
    let total = places.iter().fold(0u64, |sum, place| sum.saturating_add(place.bytes()));
    let mut reader = Reader { file: &file, notes, progress, total, done: 0, data: Vec::new() };
    for place in &places {
        reader.var(place)?;
    }
    checked.data_bytes = reader.done;
    file.close()?;
    Ok(checked)
}

/// Bytes of the files in a folder.
fn bytes_in(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let lens = entries.filter_map(|entry| entry.metadata().ok()).filter(std::fs::Metadata::is_file);
    lens.fold(0, |sum, found| sum.saturating_add(found.len()))
}
