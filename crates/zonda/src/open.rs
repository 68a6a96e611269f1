//! From a path or a storage to bytes that a format can work on.

use std::path::Path;
use std::sync::Arc;

use zonda_format::Format;
use zonda_model::{Answer, NcError};
use zonda_nc4::Damaged;
use zonda_parallel::Hints;
use zonda_storage::backend::Memory;
use zonda_storage::url::RemoteSettings;
use zonda_storage::{
    Create, Locking, OpenedStorage, Sidecar, Sidecars, Spec, Storage, StorageError, StorageOptions,
    SyncLevel, WriterLock, has_no_descriptor, has_no_room, takes_no_files,
};

use crate::error::{Error, Result};
use crate::place;
use crate::tuning::PERSIST_BLOCK_BYTES;
use crate::write_behind::WriteBehind;

/// Whether a dataset held in memory is written to its path in the end.
///
/// See [`Dataset`](crate::Dataset).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persist {
    /// Written at close (`NC_PERSIST`).
    Yes,
    /// Dropped at close.
    No,
}

/// How to create a dataset.
///
/// See [`Dataset`](crate::Dataset).
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// The format.
    pub format: Format,
    /// Fail if the file exists (`NC_NOCLOBBER`).
    pub exclusive: bool,
    /// No buffering, the record count always up to date (`NC_SHARE`).
    pub share: bool,
    /// Layer spec; `None` takes the one of the environment, else the default stack.
    pub io: Option<String>,
    /// Hold the dataset in memory (`NC_DISKLESS`).
    pub in_memory: Option<Persist>,
    /// Attributes of a netCDF-4 file do not keep their order (`NC_NOATTCREORD`).
    pub no_attribute_order: bool,
    /// Variables of a netCDF-4 file do not say which scales their dimensions are
    /// (`NC_NODIMSCALE_ATTACH`).
    pub no_scales_attached: bool,
    /// As [`OpenOptions::chunk_cache`].
    pub chunk_cache: Option<(usize, usize, f32)>,
    /// As [`OpenOptions::alignment`].
    pub alignment: Option<(u64, u64)>,
    /// Whether puts return when they are accepted; `None` takes what the environment says. A file that
    /// is shared, or held in memory, is written at once.
    pub write_behind: Option<WriteBehind>,
    /// Of several ranks: attributes whose values differ between them are an error (`NC_EMPI`). Otherwise the values of rank 0 count, with
    /// a warning.
    pub equal_attributes: bool,
    /// Of several ranks: what is asked of the file. The hints of rank 0 count.
    pub hints: Hints,
    /// Of several ranks: each may put alone to variables whose chunks go through filters ([`Dataset::set_collective`](crate::Dataset::set_collective)).
    /// What a rank puts alone is kept, and placed in the next call that all ranks make.
    pub independent_filters: bool,
}

/// How to open a dataset.
///
/// See [`Dataset`](crate::Dataset).
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Open for writing, too.
    pub write: bool,
    /// No buffering, the record count always up to date (`NC_SHARE`).
    pub share: bool,
    /// Layer spec; `None` takes the one of the environment, else the default stack.
    pub io: Option<String>,
    /// Load the dataset into memory (`NC_DISKLESS`).
    pub in_memory: Option<Persist>,
    /// Chunk cache of the variables of a netCDF-4 file, until another is set: bytes, slots,
    /// preemption. `None` for the defaults of netCDF-C 4.9.0.
    pub chunk_cache: Option<(usize, usize, f32)>,
    /// Threshold and alignment of a netCDF-4 file, in bytes: what is written and has at least as many bytes as the
    /// first begins at a multiple of the second.
    pub alignment: Option<(u64, u64)>,
    /// Whether puts return when they are accepted; `None` takes what the environment says. A file that
    /// is shared, or held in memory, is written at once.
    pub write_behind: Option<WriteBehind>,
    /// As for creating: [`CreateOptions::equal_attributes`].
    pub equal_attributes: bool,
    /// As for creating: [`CreateOptions::hints`]. Without effect in files that are only read.
    pub hints: Hints,
    /// As for creating: [`CreateOptions::independent_filters`].
    pub independent_filters: bool,
    /// Settings for a file behind a URL, for this opening alone. See `docs/guides/remote.md` for the keys.
    pub remote: RemoteSettings,
}

/// How bytes are opened.
pub(crate) struct Opening<'a> {
    /// The path, where they are a file's: names of other files in it count from its folder.
    pub(crate) path: Option<&'a Path>,
    pub(crate) options: &'a OpenOptions,
    pub(crate) damaged: Damaged,
}

fn spec_of(io: Option<&str>) -> Result<Option<Spec>> {
    Ok(match io {
        Some(text) => Some(text.parse::<Spec>()?),
        None => Spec::from_env(),
    })
}

fn open_storage(
    path: &Path,
    write: bool,
    create: Create,
    share: bool,
    spec: Option<Spec>,
) -> Result<OpenedStorage> {
    let (sync, lock) = (SyncLevel::from_env(), Locking::Off);
    let remote = RemoteSettings::default();
    open_as(path, &StorageOptions { write, create, sync, spec, share, lock, remote })
}

fn open_as(path: &Path, options: &StorageOptions) -> Result<OpenedStorage> {
    if place::is_url(path) {
        place::register();
    }
    Ok(zonda_storage::open_with_sidecars(path, options)?)
}

/// Keeps other writers away from an HDF5 file that is to be written. The reference has this code for
/// a file that it cannot open.
pub(crate) fn lock(opened: &OpenedStorage) -> Result<Option<WriterLock>> {
    opened.lock(Locking::from_env()).map_err(|error| match error {
        StorageError::Locked { by, .. } => Error::answered(NcError::HdfErr, Answer::System, by),
        error => error.into(),
    })
}

/// A file as each rank of a team has it: without layers that keep data back.
pub(crate) fn for_parallel(path: &Path, options: &OpenOptions) -> Result<OpenedStorage> {
    let (write, spec) = (options.write, spec_of(options.io.as_deref())?);
    open_as(path, &StorageOptions { write, spec, share: true, ..existing(options) })
}

/// Opens a file's bytes for reading, without its neighbours.
pub(crate) fn for_reading(path: &Path) -> Result<Arc<dyn Storage>> {
    Ok(for_a_look(path)?.storage)
}

/// The same with the sidecars of the file.
pub(crate) fn for_a_look(path: &Path) -> Result<OpenedStorage> {
    open_storage(path, false, Create::MustExist, true, None)
}

/// Opens a file with its sidecars to repair it; nothing is buffered.
pub(crate) fn for_recovery(path: &Path) -> Result<OpenedStorage> {
    open_storage(path, true, Create::MustExist, true, None)
}

/// The storage of a new dataset, and whether it has made or emptied a file at `path` that an aborted
/// creation must remove.
pub(crate) fn create_storage(
    path: &Path,
    options: &CreateOptions,
) -> Result<(OpenedStorage, bool)> {
    let create = if options.exclusive { Create::Exclusive } else { Create::Truncate };
    // EEXIST has a code of its own in netCDF.
    let exists = |error: Error| match error.code() {
        NcError::System(EEXIST) => {
            Error::because(NcError::Exist, "the file exists and may not be overwritten")
        }
        _ => error,
    };
    let Some(persist) = options.in_memory else {
        let spec = spec_of(options.io.as_deref())?;
        // The classic formats have no locks.
        let is_hdf5 = options.format.is_hdf5();
        let storage = StorageOptions {
            write: true,
            create,
            sync: SyncLevel::from_env(),
            spec,
            share: options.share,
            lock: if is_hdf5 { Locking::from_env() } else { Locking::Off },
            ..StorageOptions::default()
        };
        return Ok((open_as(path, &storage).map_err(exists)?, true));
    };
    // Whether the file can be written shows now, not after hours of computing. One that exists keeps
    // its content until the dataset is closed.
    let made = match persist {
        Persist::No => false,
        Persist::Yes if options.exclusive => {
            open_storage(path, true, Create::Exclusive, true, None).map_err(exists)?;
            true
        }
        Persist::Yes => match open_storage(path, true, Create::MustExist, true, None) {
            Ok(_) => false,
            Err(error) if error.code() == NcError::System(ENOENT) => {
                open_storage(path, true, Create::Truncate, true, None)?;
                true
            }
            Err(error) => return Err(error),
        },
    };
    Ok((in_memory(options.io.as_deref(), Memory::new())?, made))
}

pub(crate) fn open_existing(path: &Path, options: &OpenOptions) -> Result<OpenedStorage> {
    if options.in_memory.is_none() {
        let spec = spec_of(options.io.as_deref())?;
        let (write, share) = (options.write, options.share);
        return open_as(path, &StorageOptions { write, spec, share, ..existing(options) });
    }
    let persists = options.write && options.in_memory == Some(Persist::Yes);
    let file =
        open_as(path, &StorageOptions { write: persists, share: true, ..existing(options) })?;
    in_memory(options.io.as_deref(), loaded(&*file.storage)?)
}

/// What options to open a dataset say of an existing file's bytes.
fn existing(options: &OpenOptions) -> StorageOptions {
    StorageOptions {
        sync: SyncLevel::from_env(),
        remote: options.remote.clone(),
        ..StorageOptions::default()
    }
}

/// All bytes of a storage. Their number may be what a server says, so the memory for it is not taken at once.
fn loaded(file: &dyn Storage) -> Result<Memory> {
    let len = usize::try_from(file.len()?).map_err(|_| NcError::NoMem)?;
    let mut bytes: Vec<u8> = Vec::new();
    let step = if file.remote().is_some() { LOADED_BYTES } else { len };
    loop {
        let at = bytes.len();
        let more = step.min(len - at);
        bytes.try_reserve_exact(more).map_err(|_| NcError::NoMem)?;
        bytes.resize(at + more, 0);
        let got = file.read_at(at as u64, &mut bytes[at..])?;
        bytes.truncate(at + got);
        if got < more || bytes.len() == len {
            return Ok(Memory::from_slice(&bytes));
        }
    }
}

fn in_memory(io: Option<&str>, memory: Memory) -> Result<OpenedStorage> {
    let memory: Arc<dyn Storage> = Arc::new(memory);
    let storage = match io {
        Some(text) => text.parse::<Spec>()?.build_on(memory)?,
        // The layers that the environment names are for files only.
        None => memory,
    };
    Ok(OpenedStorage::of(storage))
}

/// Removes the file that was created for a dataset in memory which is given up.
pub(crate) fn remove_made(path: &Path) -> Result<()> {
    let opened = open_storage(path, true, Create::MustExist, true, None)?;
    Ok(opened.file().map_or(Ok(()), |file| file.remove())?)
}

/// Writes the bytes of a storage to a path, for a persistent dataset in memory. An existing file is replaced by a
/// complete one, so that a process that is killed leaves the old file or the new one. Where folder or device have no
/// room for a second file, or the file has other names (hard links), it is written in place, as by the reference.
///
/// See [`Dataset`](crate::Dataset).
///
/// # Errors
/// What the operating system reports. Where there is no room, the file is as it was.
pub fn persist(from: &dyn Storage, path: &Path) -> Result<()> {
    if let Ok(opened) = open_storage(path, true, Create::MustExist, true, None)
        && let Some(sidecars) = opened.sidecars.as_ref().filter(|sidecars| sidecars.replaceable())
    {
        match replace_by(from, &**sidecars) {
            Ok(()) => return Ok(()),
            Err(error) if is_written_in_place(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let opened = match open_storage(path, true, Create::MustExist, true, None) {
        Err(error) if error.code() == NcError::System(ENOENT) => {
            open_storage(path, true, Create::Truncate, true, None)?
        }
        opened => opened?,
    };
    overwrite(from, &*opened.storage)?;
    opened.storage.sync()?;
    Ok(opened.file().map_or(Ok(()), |file| file.check_close())?)
}

fn replace_by(
    from: &dyn Storage,
    sidecars: &dyn Sidecars,
) -> std::result::Result<(), StorageError> {
    let copy = sidecars.create(Sidecar::Copy)?;
    let done = copy_range(from, &*copy, 0, u64::MAX)
        .and_then(|()| copy.sync())
        .and_then(|()| sidecars.replace());
    if done.is_err() {
        // The incomplete copy is of no use.
        let _ = sidecars.remove(Sidecar::Copy);
    }
    done.and_then(|()| sidecars.settle())
}

/// Whether a file cannot be replaced, and can be written.
fn is_written_in_place(error: &StorageError) -> bool {
    let errno = error.raw_os_error();
    error.is_refused() || takes_no_files(errno) || has_no_descriptor(errno) || has_no_room(errno)
}

/// Writes the part beyond the present length of the file first, so that a full device is met before bytes of the file
/// are replaced.
fn overwrite(from: &dyn Storage, to: &dyn Storage) -> std::result::Result<(), StorageError> {
    let (new, old) = (from.len()?, to.len()?);
    if let Err(error) = copy_range(from, to, old, new) {
        // The error of the copy is the one to report.
        let _ = to.set_len(old);
        return Err(error);
    }
    copy_range(from, to, 0, old.min(new))?;
    to.set_len(new)
}

fn copy_range(
    from: &dyn Storage,
    to: &dyn Storage,
    mut at: u64,
    end: u64,
) -> std::result::Result<(), StorageError> {
    let mut block = vec![0u8; PERSIST_BLOCK_BYTES];
    while at < end {
        let wanted = usize::try_from(end - at)
            .map_or(PERSIST_BLOCK_BYTES, |left| left.min(PERSIST_BLOCK_BYTES));
        let got = from.read_at(at, &mut block[..wanted])?;
        if got == 0 {
            return Ok(());
        }
        to.write_at(at, &block[..got])?;
        at += got as u64;
    }
    Ok(())
}

/// Bytes of one request where a remote file is loaded into memory.
const LOADED_BYTES: usize = 64 << 20;
/// `ENOENT` of Linux on every architecture.
pub(crate) const ENOENT: i32 = 2;
/// `EEXIST` of Linux on every architecture.
const EEXIST: i32 = 17;
