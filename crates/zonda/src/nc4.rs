//! A netCDF-4 file as a dataset.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use zonda_chunk::ChunkAt;
use zonda_classic::Passed;
use zonda_format::{Dispatch, Format, Place, Room, StoreVars, VarInfo, VarRef};
use zonda_model::NcError;
use zonda_nc4::{CreateHow, Nc4File, ObjectUsage, OpenHow, Stored, Usage};
use zonda_runtime::callout::Mark;
use zonda_storage::{Opened, Writer, WriterLock};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::format::Opening;
use crate::open::{self, CreateOptions};
use crate::open_file::OpenFile;

/// Opens a file.
pub(crate) fn open(opened: Opened, opening: &Opening<'_>) -> Result<(OpenFile, Vec<Passed>)> {
    let Opening { path, options, damaged, .. } = *opening;
    let lock = if options.write { open::lock(&opened)? } else { None };
    let Opened { storage, beside, .. } = opened;
    let mark = Mark::next();
    let how = how(path, options.chunk_cache, options.alignment, mark);
    let spills_beside = how.path.clone().filter(|_| beside.is_some());
    let how = OpenHow { beside, spills_beside, damaged, ..how };
    // Errors get the path of the file from the dataset.
    let name = Path::new("/");
    // Before anything is read: what others of the process change later is not known.
    let writer = lock.map(WriterLock::writer);
    let mut file = match options.write {
        true => Nc4File::open_for_writing(storage, name, how)?,
        false => Nc4File::open_for_reading(storage, name, how)?,
    };
    // Without a lock somebody else may be at work behind what the file shows.
    if options.write && writer.as_ref().is_some_and(Writer::is_alone) {
        file.go_on_where_used()?;
    }
    Ok((OpenFile::new(Box::new(file), mark, writer), Vec::new()))
}

/// Creates a file, which errors call by its name.
pub(crate) fn create(opened: Opened, name: &Path, options: &CreateOptions) -> Result<OpenFile> {
    let Opened { storage, beside, lock, .. } = opened;
    // One in memory has no folder.
    let path = beside.is_some().then_some(name);
    let mark = Mark::next();
    let how = how(None, options.chunk_cache, options.alignment, mark);
    let spills_beside = path.and_then(|path| std::path::absolute(path).ok());
    let how = OpenHow { spills_beside, ..how };
    let create = CreateHow {
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
) -> OpenHow {
    // The working directory may be another one when another file is asked for.
    let path = path.and_then(|path| std::path::absolute(path).ok());
    let name = path.clone().unwrap_or_default();
    let mut how = OpenHow {
        alignment,
        path,
        on_gaps: Some(Arc::new(move |gaps| crate::gaps::tell(&name, gaps))),
        find_filter: Some(Arc::new(move |spec| zonda_plugin::find(spec.id, &spec.params, mark))),
        ..OpenHow::default()
    };
    how.chunk_cache = chunk_cache.unwrap_or(how.chunk_cache);
    how
}

/// Value of `_NCProperties`: what wrote the file, and which release of the reference it is like.
const PROPERTIES: &[u8] =
    concat!("version=2,zonda=", env!("CARGO_PKG_VERSION"), ",netcdf=4.9.0").as_bytes();

/// Whether chunks that went through a filter of that number can be read.
#[must_use]
pub fn filter_is_available(id: u32) -> bool {
    check_filter(id).is_ok()
}

/// Fails where chunks that went through a filter of that number cannot be read.
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

/// What a filter is called that is built in; files give it another name, or none.
#[must_use]
pub fn filter_name(id: u32) -> Option<&'static str> {
    zonda_chunk::filter::name_of(id)
}

/// Number of the built-in filter that is called so.
#[must_use]
pub fn filter_id(name: &str) -> Option<u32> {
    zonda_chunk::filter::id_of(name)
}

/// How variables are stored, where the format can say; else `NC_ENOTNC4`.
impl Dataset {
    pub(crate) fn ask_stored<T>(&self, f: impl FnOnce(&dyn StoreVars) -> Result<T>) -> Result<T> {
        self.here(self.check_storage())?;
        self.ask(|file| f(stored_in(file)?))
    }

    fn check_storage(&self) -> Result<()> {
        if self.capabilities().storage { Ok(()) } else { Err(NcError::NotNc4.into()) }
    }

    /// How a variable is stored, its filters and fill value.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_EHDFERR`.
    pub fn var_info(&self, var: VarRef) -> Result<Arc<VarInfo>> {
        self.ask_stored(|stored| stored.var_info(var))
    }

    /// Fill value of a variable of any type, in the form it has in memory, into `out`, which has
    /// the size of an element.
    ///
    /// # Errors
    /// As [`Dataset::var_info`]; `NC_ENOMEM` where `place` has no memory.
    pub fn fill_value(&self, var: VarRef, place: &mut dyn Place, out: &mut [u8]) -> Result<()> {
        let room = Room { bytes: out, place: Some(place) };
        self.ask_stored(|stored| stored.fill_value(var, room))
    }

    /// Chunk cache of a variable: bytes, slots, preemption.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_ENOTVAR`.
    pub fn chunk_cache(&self, var: VarRef) -> Result<(usize, usize, f32)> {
        self.ask_stored(|stored| stored.chunk_cache(var))
    }

    /// Sets the least that the chunk cache of a variable may hold.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_ENOTVAR`, `NC_EINVAL` for a preemption outside 0 to 1.
    pub fn set_chunk_cache(&self, var: VarRef, cache: (usize, usize, f32)) -> Result<()> {
        self.here(self.check_storage())?;
        self.here(self.door.tell_both(|file| stored_in(file)?.set_chunk_cache(var, cache)))
    }
}

fn stored_in(file: &dyn Dispatch) -> Result<&dyn StoreVars> {
    file.storage_of_vars().ok_or_else(|| NcError::NotNc4.into())
}

/// What only HDF5 files have; else `NC_ENOTNC4`.
impl Dataset {
    /// Whether it is an HDF5 file, and so netCDF-4 or read as such.
    #[must_use]
    pub fn is_hdf5(&self) -> bool {
        self.door.file().is::<Nc4File>()
    }

    /// Has `f` look at the file itself, and not at what it is with puts that wait.
    pub(crate) fn hdf5<T>(&self, f: impl FnOnce(&Nc4File) -> Result<T>) -> Result<T> {
        let file = self.here(self.door.file().read())?;
        self.here(of(&**file).and_then(f))
    }

    pub(crate) fn change_hdf5<T>(
        &self,
        f: impl FnOnce(&mut Nc4File) -> zonda_nc4::Result<T>,
    ) -> Result<T> {
        let mut held = self.changing()?;
        let file = held.file.as_any_mut().downcast_mut().ok_or(NcError::NotNc4);
        self.here(file.map_err(Error::from).and_then(|file| Ok(f(file)?)))
    }

    /// How much of the file a variable takes up, and in how many chunks.
    ///
    /// # Errors
    /// As [`Dataset::var_info`].
    pub fn stored(&self, var: VarRef) -> Result<Stored> {
        self.hdf5(|file| Ok(file.stored(var.group, var.var)?))
    }

    /// Tells of the chunks of a variable: coordinates counted in chunks, and where they are stored. What
    /// was put and not yet committed is committed first.
    ///
    /// # Errors
    /// As [`Dataset::var_info`]; `NC_ENOTBUILT` for a variable without chunks.
    pub fn for_each_chunk(
        &self,
        var: VarRef,
        mut found: impl FnMut(&[u64], ChunkAt),
    ) -> Result<()> {
        if self.is_writable() && !self.is_forked() {
            self.sync()?;
        }
        self.hdf5(|file| Ok(file.for_each_chunk(var.group, var.var, &mut found)?))
    }

    /// Walks all that can be reached in an HDF5 file, as it was committed: what is used and by what,
    /// what is not, what is damaged.
    ///
    /// # Errors
    /// `NC_ENOTNC4`.
    pub fn usage(&self) -> Result<Usage> {
        self.hdf5(|file| Ok(file.usage()))
    }

    /// What a variable takes, by what [`Dataset::usage`] found. `None` for one that is not there or in
    /// another file.
    #[must_use]
    pub fn var_usage(&self, usage: &Usage, var: VarRef) -> Option<ObjectUsage> {
        self.hdf5(|file| Ok(file.var_usage(usage, var.group, var.var))).ok()?
    }

    /// Paths of groups and variables of an HDF5 file by the addresses of their headers, for what
    /// [`Dataset::usage`] finds.
    #[must_use]
    pub fn object_paths(&self) -> BTreeMap<u64, String> {
        of(&**self.door.file().even_closed())
            .map_or_else(|_| BTreeMap::new(), Nc4File::object_paths)
    }

    /// Version of the superblock of an HDF5 file, and the bytes of a user block before it.
    #[must_use]
    pub fn superblock(&self) -> Option<(u8, u64)> {
        Some(of(&**self.door.file().even_closed()).ok()?.superblock())
    }
}
