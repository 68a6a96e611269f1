#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::panic,
        clippy::cast_possible_truncation
    )
)]

mod array;
mod folder;
mod json;

use std::io;
use std::path::Path;
use std::sync::Arc;

use zonda_format::{Dispatch, Error, Format, Other, Result};
use zonda_model::{Answer, NcError};
use zonda_plain::PlainFile;
use zonda_storage::{Create, Spec, Storage, StorageOptions, SyncLevel};

pub use crate::folder::remove;

use crate::folder::Folder;

/// What the format is called, and whose data model it has.
pub const FORMAT: Format = Format::Other(&Other { name: "npy", model: Format::Cdf5 });

/// Whether there is a dataset of this format at `path`: a folder with definitions in it.
#[must_use]
pub fn is_one(path: &Path) -> bool {
    path.join(json::FILE).is_file()
}

/// Opens the dataset at `path`.
///
/// # Errors
/// What the operating system reports; `NC_ENOTNC` for definitions that are damaged. Damage of an array is reported
/// when its values are read.
pub fn open(path: &Path, write: bool) -> Result<Box<dyn Dispatch>> {
    PlainFile::open(Folder::open(path, write)?, write)
}

/// Creates a dataset at `path`, in define mode, in place of one that is there.
///
/// # Errors
/// `NC_EEXIST` for one that is there and is to stay, and for whatever else is there but an empty folder; what the operating
/// system reports.
pub fn create(path: &Path, exclusive: bool) -> Result<Box<dyn Dispatch>> {
    Ok(PlainFile::create(Folder::create(path, exclusive)?, FORMAT))
}

/// An error of the operating system about a path.
fn system_error(path: &Path, error: &io::Error) -> Error {
    Error::from(error.raw_os_error().map_or(NcError::Io, NcError::System)).at(path)
}

/// An error about a damaged file. It names the file only; the caller adds the folder.
fn damaged(path: &Path, code: NcError, what: impl std::fmt::Display) -> Error {
    let file = path.file_name().unwrap_or_default().display();
    Error::answered(code, Answer::Damaged, format!("{file}: {what}"))
}

/// Opens a file of the folder. Links, pipes and other things than regular files are refused.
fn storage(
    path: &Path,
    write: bool,
    create: Create,
    spec: Option<Spec>,
) -> Result<Arc<dyn Storage>> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(damaged(path, NcError::NotNc, "it is no regular file"));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(system_error(path, &error));
        }
        _ => {}
    }
    let sync = SyncLevel::from_env();
    let options = StorageOptions { write, create, sync, spec, ..StorageOptions::default() };
    Ok(zonda_storage::open(path, &options)?)
}
