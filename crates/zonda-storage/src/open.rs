//! Opening a file with its stack of layers.

use crate::backend::{File, Memory};
use crate::lock::{Intent, Locking, WriterLock};
use crate::neighbour::trusts_environment;
use crate::sidecars::{InFolder, Sidecars};
use crate::spec::{Bottom, Spec};
use crate::storage::Storage;
use crate::url::RemoteSettings;
use crate::{RemoteFailure, StorageError, SyncLevel, url};
use std::path::Path;
use std::sync::Arc;

/// Page size of a cache that is named without it, in blocks of 4096 bytes: 256 KiB, past the knee
/// where a system call costs little beside its copy, and inside a core's second-level cache.
pub const DEFAULT_PAGE_BLOCKS: u64 = 64;

/// Pages of a cache whose page size is asked for but not their number.
pub const DEFAULT_PAGES: u64 = 128;

/// What to do about the file's existence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Create {
    /// The file must exist.
    #[default]
    MustExist,
    /// The file is made if it does not exist, and emptied if it does.
    Truncate,
    /// The file is made, and must not exist (`EEXIST` otherwise).
    Exclusive,
}

/// How [`open`] opens.
#[derive(Debug, Clone, Default)]
pub struct StorageOptions {
    /// For reading and writing; created files always are.
    pub write: bool,
    /// Whether the file must exist.
    pub create: Create,
    /// How far barriers and syncs go.
    pub sync: SyncLevel,
    /// The stack; `None` is the default stack.
    pub spec: Option<Spec>,
    /// Shared with other processes (`NC_SHARE`): nothing is buffered, whatever `spec` says.
    pub share: bool,
    /// A file that is created is locked first, so that one that others have open is not emptied.
    /// For files whose format has such locks; those that exist are locked by [`OpenedStorage::lock`] when
    /// it is known what they are.
    pub lock: Locking,
    /// Settings for what a URL leads to.
    pub remote: RemoteSettings,
}

impl StorageOptions {
    /// Options with stack and sync level as the environment says (`ZONDA_IO`, `ZONDA_SYNC`).
    #[must_use]
    pub fn from_env() -> StorageOptions {
        StorageOptions {
            spec: Spec::from_env(),
            sync: SyncLevel::from_env(),
            lock: Locking::Off,
            ..StorageOptions::default()
        }
    }
}

/// Opens the file at `path` under the stack that `options` name; the environment is not asked
/// (see [`StorageOptions::from_env`]).
///
/// With a spec that ends in `memory`, the contents of an existing file are loaded and nothing is
/// ever written back.
///
/// # Errors
/// [`StorageError::Open`] if the file cannot be opened or created, and what the layers meet.
///
/// ```no_run
/// use zonda_storage::{Create, StorageOptions, open};
/// let options = StorageOptions { create: Create::Truncate, ..StorageOptions::from_env() };
/// let storage = open("out.nc".as_ref(), &options)?;
/// storage.write_at(0, b"CDF\x01")?;
/// storage.sync()?;
/// # Ok::<(), zonda_storage::StorageError>(())
/// ```
pub fn open(path: &Path, options: &StorageOptions) -> Result<Arc<dyn Storage>, StorageError> {
    Ok(open_with_sidecars(path, options)?.storage)
}

/// What [`open_with_sidecars`] gives.
#[derive(Debug)]
pub struct OpenedStorage {
    /// The stack on the file.
    pub storage: Arc<dyn Storage>,
    /// What stands beside the file; none for a memory.
    pub sidecars: Option<Arc<dyn Sidecars>>,
    /// The lock of a file that was created.
    pub lock: Option<WriterLock>,
    /// The file at the bottom; none for a memory.
    file: Option<Arc<File>>,
}

impl OpenedStorage {
    /// A storage that has no file.
    #[must_use]
    pub fn of(storage: Arc<dyn Storage>) -> OpenedStorage {
        OpenedStorage { storage, sidecars: None, lock: None, file: None }
    }

    /// A storage that has neighbours, and no file or lock of its own.
    #[must_use]
    pub fn with_sidecars(storage: Arc<dyn Storage>, sidecars: Arc<dyn Sidecars>) -> OpenedStorage {
        OpenedStorage { sidecars: Some(sidecars), ..OpenedStorage::of(storage) }
    }

    /// The file at the bottom; `None` for a memory.
    #[must_use]
    pub fn file(&self) -> Option<&Arc<File>> {
        self.file.as_ref()
    }

    /// Locks the file for a writer, and forgets what was read of it until now, since others may
    /// have written before. `None` for a memory, and where files are not locked.
    ///
    /// # Errors
    /// [`StorageError::Locked`] where somebody else writes it; [`StorageError::NoLocks`].
    pub fn lock(&self, locking: Locking) -> Result<Option<WriterLock>, StorageError> {
        let Some(file) = &self.file else { return Ok(None) };
        let lock = WriterLock::take(file, Intent::Change, locking)?;
        self.storage.invalidate()?;
        Ok(lock)
    }
}

/// As [`open`], for a caller whose commits use the file's neighbours. What a dead writer left beside
/// a file that is created or emptied here is removed.
///
/// # Errors
/// As [`open`].
pub fn open_with_sidecars(
    path: &Path,
    options: &StorageOptions,
) -> Result<OpenedStorage, StorageError> {
    zonda_trace::init(trusts_environment);
    let default;
    let unbuffered;
    let spec = match (&options.spec, options.share) {
        (Some(spec), false) => spec,
        (Some(spec), true) => {
            unbuffered = spec.clone().without_buffering();
            &unbuffered
        }
        (None, share) => {
            default = if share { Spec::file() } else { Spec::default_stack() };
            &default
        }
    };
    if url::is_url(path) {
        return open_url(path, options);
    }
    if spec.bottom() == Bottom::Memory {
        let memory = Arc::new(load(path, options.create)?);
        return Ok(OpenedStorage::of(spec.build_on(memory)?));
    }
    let locks = options.create != Create::MustExist && options.lock != Locking::Off;
    let empties = options.create == Create::Truncate && locks;
    let file = if empties {
        File::open_or_make(path, options.sync)?
    } else {
        File::open(path, options.write, options.create, options.sync)?
    };
    let lock = match (locks, empties) {
        (false, _) => None,
        (true, false) => WriterLock::take(&file, Intent::Change, options.lock)?,
        (true, true) => {
            let lock = WriterLock::take(&file, Intent::Empty, options.lock)?;
            file.empty()?;
            lock
        }
    };
    let file = Arc::new(file);
    let sidecars = InFolder::of(Arc::clone(&file));
    if options.create != Create::MustExist {
        sidecars.clear();
    }
    let storage = spec.build_on_file(&file)?;
    Ok(OpenedStorage { storage, sidecars: Some(Arc::new(sidecars)), lock, file: Some(file) })
}

/// The stack on what a URL leads to. Of layers there are only those that somebody names: what is remote has a cache of its own.
fn open_url(path: &Path, options: &StorageOptions) -> Result<OpenedStorage, StorageError> {
    if options.write || options.create != Create::MustExist {
        return Err(StorageError::Remote {
            url: url::shown(path),
            range: None,
            kind: RemoteFailure::ReadOnly,
            status: None,
            what: "a remote file can only be read: write it to a disk and copy it there with `zonda copy`".into(),
        });
    }
    let storage = url::open(path, &options.remote)?;
    let spec = options.spec.clone().unwrap_or_else(Spec::file);
    Ok(OpenedStorage::of(spec.build_on_url(storage, &url::shown(path))?))
}

/// A memory with the contents of the file, empty for a file that would be created.
fn load(path: &Path, create: Create) -> Result<Memory, StorageError> {
    let memory = Memory::new();
    if create != Create::MustExist {
        return Ok(memory);
    }
    let file = File::open_read(path)?;
    let mut buf = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        match file.read_at(at, &mut buf)? {
            0 => return Ok(memory),
            n => memory.write_at(at, &buf[..n])?,
        }
        at += buf.len() as u64;
    }
}
