//! The check of an HDF5 file.

use zonda_nc4::{FileUsage, Nc4Error, UsedExtent};

use super::{Checked, Grade, Notes, Watched};
use crate::dataset::Dataset;
use crate::error::Result;

pub(super) fn check(
    file: &Dataset,
    checked: &mut Checked,
    notes: &mut Notes,
    watched: Watched<'_, '_>,
) -> Result<()> {
    let usage = file.usage()?;
    checked.unaccounted_bytes = usage.unaccounted_bytes();
    structure(file, &usage, notes);
    for gap in file.gaps()? {
        // A link to a file that does not exist is sound.
        let is_absent = gap.error.is_absence();
        let grade = if is_absent { Grade::Remark } else { Grade::Unchecked };
        notes.add(grade, Some(&gap.path), None, gap.error.to_string());
    }
    let reported = super::faults(file, notes)?;
    super::data::read_all(file, &reported, checked, notes, watched)
}

/// Notes what the walk over all structures found.
fn structure(file: &Dataset, usage: &FileUsage, notes: &mut Notes) {
    let paths = file.object_paths();
    for fault in &usage.faults {
        let object = fault.owner.and_then(|owner| paths.get(&owner.0));
        let error = Nc4Error::Hdf { object: "/".to_owned(), error: fault.error.clone() };
        notes.error(object.map(String::as_str), &error.into());
    }
    let owner = |extent: &UsedExtent| extent.owner.and_then(|owner| paths.get(&owner.0)).cloned();
    let named = |extent: &UsedExtent| match owner(extent) {
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
