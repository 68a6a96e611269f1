//! Repairing files whose writer died.

use std::path::Path;

use zonda_classic::ClassicError;
use zonda_model::NcError;
use zonda_nc4::Recovered;
use zonda_storage::{OpenedStorage, Sidecar, Storage};

use crate::error::{Error, Result};
use crate::format::{Detected, detect_in};
use crate::open;

/// What [`recover`] found, and what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// There is no journal: the file is as its last commit left it.
    Nothing,
    /// The writer died before it had touched the file; the journal was removed.
    Untouched,
    /// The header of a classic file was completed.
    Header,
    /// The move of data in a classic file was completed, and its header.
    Move,
    /// The changes of objects in an HDF5 file were completed.
    Objects,
    /// The journal does not belong to this file, which somebody replaced or changed since. Both were left as they
    /// are.
    NotItsJournal,
    /// The writer is alive. Nothing was done.
    InUse,
}

/// Completes the change that a writer had begun in the file at `path` when it died, and removes what
/// it left beside it. A file that needs nothing is not written to.
///
/// # Errors
/// What the operating system reports, for one that the file cannot be written; it can then be tried
/// again. `NC_EHDFERR` where another program has an HDF5 file open for writing. `NC_ENOTNC` and
/// `NC_ENOTBUILT` for a file of a format that is not read, which has no journal that completes it.
///
/// ```no_run
/// let done = zonda::recover("history.nc".as_ref())?;
/// println!("{done:?}");
/// # Ok::<(), zonda::Error>(())
/// ```
pub fn recover(path: &Path) -> Result<Recovery> {
    recover_with(path, |opened, is_hdf5| {
        let (storage, sidecars) =
            (&*opened.storage, opened.sidecars.as_ref().ok_or(NcError::Inval)?);
        // Errors get the path of the file below.
        Ok(match is_hdf5 {
            true => zonda_nc4::recover(storage, &**sidecars, Path::new("/"))?.into(),
            false => zonda_classic::recover(storage, sidecars)?.into(),
        })
    })
}

fn recover_with(
    path: &Path,
    complete: impl FnOnce(&OpenedStorage, bool) -> Result<Recovery>,
) -> Result<Recovery> {
    let work = || {
        let opened = open::for_recovery(path)?;
        let is_hdf5 = matches!(detect_in(&*opened.storage)?, Detected::Hdf5);
        let _lock = if is_hdf5 { open::lock(&opened)? } else { None };
        of_a_file(complete(&opened, is_hdf5)?, &*opened.storage)
    };
    work().map_err(|error| error.at(path))
}

/// Gives what was done. Where that is nothing, it fails for a file of a format that cannot be read.
fn of_a_file(done: Recovery, storage: &dyn Storage) -> Result<Recovery> {
    if done == Recovery::Nothing {
        detect_in(storage)?.readable()?;
    }
    Ok(done)
}

/// As [`recover`], with a journal that may belong to the user of the number `user`, whom the caller trusts
/// to change the file. Before anything is changed `show` gets what will be, one line each; its error
/// leaves all as it is.
///
/// # Errors
/// As [`recover`], and what `show` gives.
pub fn recover_of(
    path: &Path,
    user: u32,
    show: &mut dyn FnMut(&[String]) -> Result<()>,
) -> Result<Recovery> {
    recover_with(path, |opened, is_hdf5| {
        let (storage, sidecars) =
            (&*opened.storage, opened.sidecars.as_ref().ok_or(NcError::Inval)?);
        Ok(match is_hdf5 {
            true => zonda_nc4::recover_of(storage, &**sidecars, user, Path::new("/"), show)?.into(),
            false => zonda_classic::recover_of(storage, sidecars, user, show)?.into(),
        })
    })
}

/// Makes the header of a classic file say how many complete records the file has, by its length, and
/// gives the number that stood there and the new one: where a writer died that had not written the
/// number yet, or a copy broke off. A file whose header is right, and one without variables that have
/// records (`None`), is not written to.
///
/// # Errors
/// `NC_ENOTNC3` for what is no classic file, `NC_EINVAL` for one with a journal, which [`recover`]
/// has to complete before; what the operating system reports.
pub fn set_records(path: &Path) -> Result<Option<(u64, u64)>> {
    with_records(path, zonda_classic::set_records)
}

/// What [`set_records`] would give; nothing is written.
///
/// # Errors
/// As [`set_records`].
pub fn count_records(path: &Path) -> Result<Option<(u64, u64)>> {
    with_records(path, zonda_classic::count_records)
}

/// What counts records: the number in the header and that of the file, or `None`.
type Count = fn(&dyn Storage) -> std::result::Result<Option<(u64, u64)>, ClassicError>;

fn with_records(path: &Path, of: Count) -> Result<Option<(u64, u64)>> {
    let work = || {
        let opened = open::for_recovery(path)?;
        if !matches!(detect_in(&*opened.storage)?, Detected::Classic(_)) {
            return Err(Error::because(
                NcError::NotNc3,
                "only classic files have a number of records in their header",
            ));
        }
        let sidecars = opened.sidecars.ok_or(NcError::Inval)?;
        if sidecars.find(Sidecar::Journal)?.is_some() {
            return Err(Error::because(
                NcError::Inval,
                "a change has to be completed first, by zonda recover without --records",
            ));
        }
        Ok(of(&*opened.storage)?)
    };
    work().map_err(|error: Error| error.at(path))
}

impl From<Recovered> for Recovery {
    fn from(done: Recovered) -> Recovery {
        match done {
            Recovered::Nothing => Recovery::Nothing,
            Recovered::Untouched => Recovery::Untouched,
            Recovered::Completed => Recovery::Objects,
            Recovered::NotItsJournal => Recovery::NotItsJournal,
            Recovered::InUse => Recovery::InUse,
        }
    }
}

impl From<zonda_classic::JournalRecovery> for Recovery {
    fn from(done: zonda_classic::JournalRecovery) -> Recovery {
        match done {
            zonda_classic::JournalRecovery::Nothing => Recovery::Nothing,
            zonda_classic::JournalRecovery::Untouched => Recovery::Untouched,
            zonda_classic::JournalRecovery::Header => Recovery::Header,
            zonda_classic::JournalRecovery::Move => Recovery::Move,
            zonda_classic::JournalRecovery::NotItsJournal => Recovery::NotItsJournal,
            zonda_classic::JournalRecovery::InUse => Recovery::InUse,
        }
    }
}
