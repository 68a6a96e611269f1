//! How netCDF-4 files are opened and created, and which filters their chunks may have gone through.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zonda_classic::SkippedPart;
use zonda_format::{Dispatch, Format};
use zonda_model::NcError;
use zonda_nc4::{Nc4CreateOptions, Nc4File, Nc4OpenOptions};
use zonda_runtime::callout::Mark;
use zonda_storage::{FileWriter, OpenedStorage, WriterLock};

use crate::error::{Error, Result};
use crate::open::{self, CreateOptions, Opening};
use crate::open_file::OpenFile;

/// Opens a file.
pub(crate) fn open(
    opened: OpenedStorage,
    opening: &Opening<'_>,
) -> Result<(OpenFile, Vec<SkippedPart>)> {
    let Opening { path, options, damaged, .. } = *opening;
    let lock = if options.write { open::lock(&opened)? } else { None };
    let OpenedStorage { storage, sidecars, .. } = opened;
    let mark = Mark::next();
    let how = how(path, options.chunk_cache, options.alignment, mark);
    let spills_beside = how.path.clone().filter(|_| sidecars.is_some());
    let how = Nc4OpenOptions { sidecars, spills_beside, damaged, ..how };
    // Errors get the path of the file from the dataset.
    let name = Path::new("/");
    // Before anything is read, since changes that other writers of the process make later are not seen.
    let writer = lock.map(WriterLock::writer);
    let mut file = match options.write {
        true => Nc4File::open_for_writing(storage, name, how)?,
        false => Nc4File::open_for_reading(storage, name, how)?,
    };
    // Without a lock, another writer may have used space behind what the file says is in use.
    if options.write && writer.as_ref().is_some_and(FileWriter::is_alone) {
        file.continue_at_used_end()?;
    }
    Ok((OpenFile::new(Box::new(file), mark, writer), Vec::new()))
}

/// Creates a file, which errors call by its name.
pub(crate) fn create(
    opened: OpenedStorage,
    name: &Path,
    options: &CreateOptions,
) -> Result<OpenFile> {
    let OpenedStorage { storage, sidecars, lock, .. } = opened;
    // One in memory has no folder.
    let path = sidecars.is_some().then_some(name);
    let mark = Mark::next();
    let how = how(None, options.chunk_cache, options.alignment, mark);
    let spills_beside = path.and_then(|path| std::path::absolute(path).ok());
    let how = Nc4OpenOptions { spills_beside, ..how };
    let create = Nc4CreateOptions {
        classic: options.format == Format::NetCdf4Classic,
        attribute_order: !options.no_attribute_order,
        attach_scales: !options.no_scales_attached,
        properties: PROPERTIES.to_vec(),
    };
    let file = Nc4File::create(storage, Path::new("/"), how, create)?;
    Ok(OpenFile::new(Box::new(file), mark, lock.map(WriterLock::writer)))
}

/// Whether a search of a damaged file found no object.
pub(crate) fn found_nothing(file: &OpenFile) -> Result<bool> {
    let file = file.read()?;
    let faults = &of(&**file)?.model()?.faults;
    Ok(faults.iter().all(|fault| !fault.is_found()))
}

/// The file itself.
///
/// # Errors
/// `NC_ENOTNC4` where it is of another format.
pub(crate) fn of(file: &dyn Dispatch) -> Result<&Nc4File> {
    file.as_any().downcast_ref().ok_or_else(|| NcError::NotNc4.into())
}

/// How a file is opened or created.
fn how(
    path: Option<&Path>,
    chunk_cache: Option<(usize, usize, f32)>,
    alignment: Option<(u64, u64)>,
    mark: Mark,
) -> Nc4OpenOptions {
    // The working directory may be another one when another file is asked for. A URL has no folder, and may have secrets.
    let path = path.and_then(|path| match zonda_storage::url::is_url(path) {
        true => Some(PathBuf::from(&*zonda_storage::url::shown(path))),
        false => std::path::absolute(path).ok(),
    });
    let name = path.clone().unwrap_or_default();
    let mut how = Nc4OpenOptions {
        alignment,
        path,
        on_gaps: Some(Arc::new(move |gaps| crate::gaps::report(&name, gaps))),
        find_filter: Some(Arc::new(move |spec| zonda_plugin::find(spec.id, &spec.params, mark))),
        ..Nc4OpenOptions::default()
    };
    how.chunk_cache = chunk_cache.unwrap_or(how.chunk_cache);
    how
}

/// Value of `_NCProperties`: what wrote the file, and which release of the reference it is like.
const PROPERTIES: &[u8] =
    concat!("version=2,zonda=", env!("CARGO_PKG_VERSION"), ",netcdf=4.9.0").as_bytes();

/// Whether chunks that went through a filter of that number can be read.
///
/// See [`filter_name`](crate::filter_name).
#[must_use]
pub fn filter_is_available(id: u32) -> bool {
    check_filter(id).is_ok()
}

/// Fails where chunks that went through a filter of that number cannot be read.
///
/// See [`filter_name`](crate::filter_name).
///
/// # Errors
/// `NC_ENOFILTER`; `EPERM` where plugins that may have it are not to be trusted.
pub fn check_filter(id: u32) -> Result<()> {
    if zonda_chunk::filter::is_builtin(id) {
        return Ok(());
    }
    match zonda_plugin::find(id, &[], Mark::NONE) {
        Some(Ok(_)) => Ok(()),
        None => Err(NcError::NoFilter.into()),
        Some(Err(error)) => {
            Err(Error::answered(error.nc_error(), error.answer(), error.to_string()))
        }
    }
}

/// Name of a built-in filter; files may call it otherwise, or by number only.
#[must_use]
pub fn filter_name(id: u32) -> Option<&'static str> {
    zonda_chunk::filter::name_of(id)
}

/// Number of the built-in filter that is called so.
///
/// See [`filter_name`](crate::filter_name).
#[must_use]
pub fn filter_id(name: &str) -> Option<u32> {
    zonda_chunk::filter::id_of(name)
}
