//! A classic file as a dataset.

use std::path::Path;

use zonda_classic::{ClassicFile, SkippedPart, Version};
use zonda_model::NcError;
use zonda_nc4::Damaged;
use zonda_runtime::callout::Mark;
use zonda_storage::OpenedStorage;

use crate::error::{Error, Result};
use crate::open::{CreateOptions, Opening};
use crate::open_file::OpenFile;

/// Opens a file; gives what was skipped in a damaged one, too.
pub(crate) fn open(
    opened: OpenedStorage,
    how: &Opening<'_>,
) -> Result<(OpenFile, Vec<SkippedPart>)> {
    let OpenedStorage { storage, sidecars, .. } = opened;
    let opened = match how.damaged {
        Damaged::Refuse => {
            let file = ClassicFile::open(storage, sidecars, how.options.write, how.options.share);
            file.map(|file| (file, Vec::new()))
        }
        _ => ClassicFile::open_damaged(storage),
    };
    let (file, passed) = opened.map_err(|error| Error::from(error).in_a_header())?;
    Ok((OpenFile::new(Box::new(file), Mark::NONE, None), passed))
}

/// Creates a file.
pub(crate) fn create(
    opened: OpenedStorage,
    _name: &Path,
    options: &CreateOptions,
) -> Result<OpenFile> {
    let OpenedStorage { storage, sidecars, .. } = opened;
    let version = Version::of(options.format).ok_or(NcError::Internal)?;
    let file = ClassicFile::create(storage, sidecars, version, options.share);
    Ok(OpenFile::new(Box::new(file), Mark::NONE, None))
}
