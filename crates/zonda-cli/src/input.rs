//! Files named on the command line; `-` is standard input.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use zonda::storage::backend::Memory;
use zonda::{Dataset, OpenOptions};

use crate::failure::{CommandFailure, Result};

/// Whether a path stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The path in a URL such as `file:///a/b#mode=npy`, which names a format. Everything else is a
/// path as it stands.
pub(crate) fn place(path: &Path) -> Cow<'_, Path> {
    zonda::of_url(path).map_or(Cow::Borrowed(path), |(path, _)| Cow::Owned(path))
}

/// The name of a path in messages and output.
pub(crate) fn label(path: &Path) -> &Path {
    if is_stdin(path) { Path::new("standard input") } else { path }
}

/// Reads standard input into memory, because netCDF files are not read from front to back.
pub(crate) fn stdin() -> Result<Arc<Memory>> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| CommandFailure::at(label(Path::new("-")), error))?;
    Ok(Arc::new(Memory::from_slice(&bytes)))
}

/// Warns of a classic file that is shorter than its data. The missing part reads as zeros, as in
/// the reference, and users should not take those for values.
pub(crate) fn warn_of_missing(file: &Dataset, path: &Path) -> Result<()> {
    let missing = file.missing_bytes()?;
    if missing > 0 {
        let path = label(path).display();
        eprintln!(
            "zonda: {path}: {missing} bytes are missing at the end of the file; they read as zeros"
        );
    }
    Ok(())
}

/// Opens a dataset for reading.
pub(crate) fn open(path: &Path) -> Result<Dataset> {
    let options = OpenOptions::default();
    let file = if is_stdin(path) {
        Dataset::open_in(stdin()?, label(path), &options)?
    } else {
        Dataset::open(&place(path), &options)?
    };
    Ok(file)
}
