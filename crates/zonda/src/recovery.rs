//! Repairing what a dead writer left.

use std::path::Path;

use zonda_model::NcError;

use crate::error::{Error, Result};
use crate::open;

pub use zonda_classic::Recovery;

/// Completes the change that a writer had begun in the file at `path` when it died, and removes what
/// it left beside it. A file that needs nothing is not written to.
///
/// # Errors
/// What the operating system reports, for one that the file cannot be written; it can then be tried
/// again.
///
/// ```no_run
/// let done = zonda::recover("history.nc".as_ref())?;
/// println!("{done:?}");
/// # Ok::<(), zonda::Error>(())
/// ```
pub fn recover(path: &Path) -> Result<Recovery> {
    let work = || {
        let opened = open::for_recovery(path)?;
        let beside = opened.beside.ok_or(NcError::Inval)?;
        Ok::<_, Error>(zonda_classic::recover(&*opened.storage, &beside)?)
    };
    work().map_err(|error| error.at(path))
}
