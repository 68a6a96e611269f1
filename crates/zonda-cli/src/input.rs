//! Files named on the command line; `-` is standard input.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use zonda::storage::backend::Memory;
use zonda::{Dataset, OpenOptions};

use crate::failure::{Failure, Result};

/// Whether a path stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What a path is called in messages and output.
pub(crate) fn label(path: &Path) -> &Path {
    if is_stdin(path) { Path::new("standard input") } else { path }
}

/// Opens a dataset for reading. One from standard input is held in memory, because netCDF is not
/// read from front to back.
pub(crate) fn open(path: &Path) -> Result<Dataset> {
    let options = OpenOptions::default();
    if !is_stdin(path) {
        return Ok(Dataset::open(path, &options)?);
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Failure::at(label(path), error))?;
    let memory = Arc::new(Memory::from_slice(&bytes));
    Ok(Dataset::open_in(memory, label(path), &options)?)
}
