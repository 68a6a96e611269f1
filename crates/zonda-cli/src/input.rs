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

/// The path in a URL such as `file:///a/b#mode=npy`, which names a format. Everything else, such as the URL of
/// a file on a server, is opened as it stands.
pub(crate) fn place(path: &Path) -> Cow<'_, Path> {
    zonda::of_url(path).map_or(Cow::Borrowed(path), |(path, _)| Cow::Owned(path))
}

/// Why ranks do not divide work on files that are on servers.
const REMOTE_OF_RANK_0: &str = "a file on a server is read and written by rank 0 alone";

/// Why ranks do not divide work on some files, where they do not.
pub(crate) fn undivided<'a>(files: impl IntoIterator<Item = &'a Path>) -> Option<&'static str> {
    let is_remote = |name| zonda::is_url(name) || zonda::names_dap(name);
    files.into_iter().any(is_remote).then_some(REMOTE_OF_RANK_0)
}

/// The name of a path in messages and output: of a URL without what may be secret.
pub(crate) fn label(path: &Path) -> Cow<'_, Path> {
    if is_stdin(path) {
        Cow::Borrowed(Path::new("standard input"))
    } else {
        zonda::shown_name(path)
    }
}

/// Reads standard input into memory, because netCDF files are not read from front to back.
pub(crate) fn stdin() -> Result<Arc<Memory>> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| CommandFailure::at(&label(Path::new("-")), error))?;
    Ok(Arc::new(Memory::from_slice(&bytes)))
}

/// Warns of a classic file that is shorter than its data. The missing part reads as zeros, as in
/// the reference, and users should not take those for values.
pub(crate) fn warn_of_missing(file: &Dataset, path: &Path) -> Result<()> {
    let missing = file.missing_bytes()?;
    if missing > 0 {
        let path = label(path);
        let path = path.display();
        // What came over a network was cut on the way.
        let what = if file.is_remote() { "they cannot be read" } else { "they read as zeros" };
        eprintln!("zonda: {path}: {missing} bytes are missing at the end of the file; {what}");
    }
    Ok(())
}

/// Opens a dataset for reading.
pub(crate) fn open(path: &Path) -> Result<Dataset> {
    let options = OpenOptions::default();
    let file = if is_stdin(path) {
        Dataset::open_in(stdin()?, &label(path), &options)?
    } else {
        Dataset::open(&place(path), &options)?
    };
    Ok(file)
}
