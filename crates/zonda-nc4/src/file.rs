//! An open netCDF-4 file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use zonda_runtime::lock::{Mutex, Rank};

use zonda_chunk::FilterSpec;
use zonda_chunk::filter::FilterLookup;
use zonda_format::VarRef;
use zonda_hdf5::{File, HdfError};
use zonda_model::{ExtType, NcError, VarId};
use zonda_storage::{Sidecars, Storage};

use crate::details::Details;
use crate::fault::HdfResult;
use crate::files::{Files, ObjectAt};
use crate::model::{Gap, GroupId, Model, SkipReason, SkippedObject, Var};
use crate::refresh::{ReadState, TornReadRetry, may_be_torn};
use crate::types::Types;
use crate::walk::Walk;
use crate::write::Writing;
use crate::{Nc4Error, Result};

/// Finds a filter that is not built in, say in a plugin.
pub type FindFilter = dyn Fn(&FilterSpec) -> FilterLookup + Send + Sync;

/// What becomes of a file that is damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damaged {
    /// It is refused if the structures cannot be read that lead to all others.
    #[default]
    Refuse,
    /// What can be read of it is shown; [`Nc4File::faults`] lists what was skipped.
    Skip,
    /// As `Skip`; where groups are damaged, objects are also looked for in all bytes of the file.
    Search,
}

/// How to open.
#[derive(Clone)]
pub struct Nc4OpenOptions {
    /// The file's path, absolute: names of other files (external data, virtual datasets, external
    /// links) count from its folder. `None` for a file in memory, which is in no folder.
    pub path: Option<PathBuf>,
    /// Asked for filters that are not built in.
    pub find_filter: Option<Arc<FindFilter>>,
    /// Chunk cache that variables report until it is set: bytes, slots, preemption.
    pub chunk_cache: (usize, usize, f32),
    /// Threshold and alignment, in bytes: what is written and has at least as many bytes as the first number
    /// begins at a multiple of the second.
    pub alignment: Option<(u64, u64)>,
    /// Makes the journal beside the file; `None` for a file in memory.
    pub sidecars: Option<Arc<dyn Sidecars>>,
    /// The path beside which chunks are spilled where memory is short; `None` for a file in memory.
    pub spills_beside: Option<PathBuf>,
    /// Called with the gaps of the definitions, by the call that reads these first.
    pub on_gaps: Option<Arc<OnGaps>>,
    /// What becomes of a damaged file. One that is opened for writing is refused.
    pub damaged: Damaged,
}

/// A function that is called with the gaps of the definitions.
pub type OnGaps = dyn Fn(&[Gap]) + Send + Sync;

impl Default for Nc4OpenOptions {
    fn default() -> Nc4OpenOptions {
        let chunk_cache = (16 << 20, 4133, 0.75);
        Nc4OpenOptions {
            path: None,
            find_filter: None,
            chunk_cache,
            alignment: None,
            sidecars: None,
            spills_beside: None,
            on_gaps: None,
            damaged: Damaged::Refuse,
        }
    }
}

impl Nc4OpenOptions {
    pub(crate) fn report_gaps(&self, gaps: &[Gap]) {
        if let Some(tell) = self.on_gaps.as_ref().filter(|_| !gaps.is_empty()) {
            tell(gaps);
        }
    }
}

impl std::fmt::Debug for Nc4OpenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nc4OpenOptions")
            .field("path", &self.path)
            .field("find_filter", &self.find_filter.is_some())
            .field("chunk_cache", &self.chunk_cache)
            .field("alignment", &self.alignment)
            .field("sidecars", &self.sidecars)
            .field("on_gaps", &self.on_gaps.is_some())
            .field("damaged", &self.damaged)
            .finish()
    }
}

/// A netCDF-4 file, or any HDF5 file seen as one. All methods may be called from any thread.
#[derive(Debug)]
pub struct Nc4File {
    pub(crate) files: Files,
    pub(crate) how: Nc4OpenOptions,
    pub(crate) model: OnceLock<Model>,
    /// Lets one thread walk at a time. Who finds the model finished does not take it.
    pub(crate) walking: Mutex<()>,
    /// What only a writer needs; `None` in a file that is open for reading.
    pub(crate) writing: Option<Box<Writing>>,
    /// The state of the file that was read, to tell whether that is stale.
    pub(crate) read: ReadState,
    /// In a view of a new file: the text of `_NCProperties`, which no commit has written yet.
    pub(crate) properties: Option<Vec<u8>>,
}

impl Nc4File {
    /// Opens a file for reading, as [`Nc4File::open`]. Refuses one beside which another user's journal says
    /// that a commit is not complete.
    ///
    /// # Errors
    /// As [`Nc4File::open`]; that of a journal that is refused.
    pub fn open_for_reading(
        storage: Arc<dyn Storage>,
        name: &Path,
        how: Nc4OpenOptions,
    ) -> Result<Nc4File> {
        if let Some(sidecars) = &how.sidecars {
            zonda_hdf5::journal::for_reading(&*storage, &**sidecars)
                .map_err(|error| hdf(name.display().to_string(), error))?;
        }
        Nc4File::open(storage, name, how)
    }

    /// Opens a file: reads the superblock and the root group's header, no more. `name` is for messages.
    ///
    /// # Errors
    /// `NC_ENOTNC` for what is not HDF5, `NC_EHDFERR` for a damaged superblock or root group.
    pub fn open(storage: Arc<dyn Storage>, name: &Path, how: Nc4OpenOptions) -> Result<Nc4File> {
        let fail = |error| Nc4Error::Hdf { object: name.display().to_string(), error };
        let mut read = ReadState::now(&*storage);
        let mut patience = TornReadRetry::with(&*storage, &read);
        let file = loop {
            if how.damaged != Damaged::Refuse {
                break File::open_damaged(Arc::clone(&storage)).map_err(fail)?;
            }
            let file = File::open(Arc::clone(&storage));
            match file.and_then(|file| file.object(file.root()).map(|_| file)) {
                Ok(file) => break file,
                Err(error) if may_be_torn(&error) && patience.is_left() => {
                    read = ReadState::now(&*storage);
                }
                Err(error) => return Err(fail(error)),
            }
        };
        let file = file.with_unfilter(crate::var_data::unfilter(how.find_filter.clone()));
        let file = Arc::new(file);
        let files = Files::new(file, how.path.clone());
        let (model, walking) = (OnceLock::new(), Mutex::ranked(Rank::Walk, ()));
        let properties = None;
        Ok(Nc4File { files, how, model, walking, writing: None, read, properties })
    }

    /// The definitions. The first call walks the file's objects.
    ///
    /// # Errors
    /// `NC_EHDFERR` where a group is damaged. Other damaged objects are listed, with type 0 where
    /// that is not known.
    #[inline]
    pub fn model(&self) -> Result<&Model> {
        match self.model.get() {
            Some(model) => Ok(model),
            None => self.read_model(),
        }
    }

    #[cold]
    fn read_model(&self) -> Result<&Model> {
        let _alone = self.walking.lock();
        if let Some(model) = self.model.get() {
            return Ok(model);
        }
        let rehearsed = crate::rehearsal::fetch_objects(self.hdf5(), &self.how.find_filter);
        rehearsed.map_err(|error| hdf(String::from("/"), error))?;
        let mut patience = TornReadRetry::with(&**self.hdf5().storage(), &self.read);
        let model = loop {
            match Walk::run(&self.files, self.how.damaged) {
                Ok(model) if model.is_whole() || !patience.is_left() => break model,
                Err(failure) if !may_be_torn(&failure.error) || !patience.is_left() => {
                    return Err(hdf(failure.path, failure.error));
                }
                // Another program may be writing the file at this moment.
                Ok(_) | Err(_) => {}
            }
        };
        let model = self.model.get_or_init(|| model);
        self.how.report_gaps(&model.gaps);
        Ok(model)
    }

    /// Reads; and reads again where the error may come from another program that writes at this moment.
    fn patiently<T, E>(
        &self,
        read: impl Fn() -> std::result::Result<T, E>,
        may_be_torn: impl Fn(&E) -> bool,
    ) -> std::result::Result<T, E> {
        let mut patience = TornReadRetry::with(&**self.hdf5().storage(), &self.read);
        loop {
            match read() {
                Err(error)
                    if self.writing.is_none() && may_be_torn(&error) && patience.is_left() => {}
                done => return done,
            }
        }
    }

    /// The HDF5 file below.
    #[must_use]
    pub fn hdf5(&self) -> &Arc<File> {
        self.files.main()
    }

    /// What was skipped because it is damaged, or because netCDF cannot show it: of the file itself, its
    /// groups and its variables, in this order. The list is complete only if the file was opened as a
    /// damaged one.
    ///
    /// # Errors
    /// As [`Nc4File::model`].
    pub fn faults(&self) -> Result<Vec<SkippedObject>> {
        let whole = self.hdf5().faults().iter();
        let whole = whole.map(|error| SkippedObject {
            path: String::from("/"),
            why: SkipReason::Damaged(error.clone()),
        });
        Ok(whole.chain(self.model()?.faults.iter().cloned()).collect())
    }

    /// Bytes of an element of a type in memory.
    pub(crate) fn size_of(&self, model: &Model, nc_type: i32) -> usize {
        match ExtType::from_nc_type(nc_type) {
            Some(ext) => ext.size(),
            None => model.user_type(nc_type).map_or(8, |ty| ty.size),
        }
    }

    #[inline]
    pub(crate) fn var(&self, group: GroupId, var: VarId) -> Result<(&Model, &Var)> {
        let model = self.model()?;
        match model.var(group, var) {
            Some(found) => Ok((model, found)),
            None => Err(no_var(model, group, var)),
        }
    }

    /// How many fields netCDF shows of a compound that also has members of types which netCDF does not have;
    /// `None` for a compound that is shown whole.
    pub(crate) fn shown_fields(&self, nc_type: i32) -> Option<usize> {
        self.model.get()?.forms.shown_fields(nc_type)
    }

    pub(crate) fn details<'v>(&self, var: &'v Var) -> HdfResult<&'v Details> {
        self.kept(&var.details, var.at)
    }

    /// The details of a variable, shared, so that they can be held while the file is changed.
    pub(crate) fn details_arc<'v>(&self, var: &'v Var) -> HdfResult<&'v Arc<Details>> {
        self.details(var)?;
        let missing = HdfError::Missing { structure: "object", at: var.at.addr.0, what: "it" };
        var.details.get().ok_or(missing)
    }

    #[inline]
    pub(crate) fn kept<'v>(
        &self,
        place: &'v OnceLock<Arc<Details>>,
        at: ObjectAt,
    ) -> HdfResult<&'v Details> {
        match place.get() {
            Some(details) => Ok(details),
            None => self.read_details(place, at),
        }
    }

    #[cold]
    fn read_details<'v>(
        &self,
        place: &'v OnceLock<Arc<Details>>,
        at: ObjectAt,
    ) -> HdfResult<&'v Details> {
        let types = self.model.get().map(|model| &model.forms);
        let none = Types::default();
        let read = || Details::read(&self.files, at, types.unwrap_or(&none));
        let details = Arc::new(self.patiently(read, may_be_torn)?);
        let _first = place.set(details);
        let missing = HdfError::Missing { structure: "object", at: at.addr.0, what: "it" };
        place.get().map(|details| &**details).ok_or(missing)
    }

    /// The path of what an attribute belongs to.
    pub(crate) fn path(&self, owner: VarRef) -> String {
        match self.model.get() {
            None => String::from("/"),
            Some(model) => match model.var(owner.group, owner.var) {
                Some(var) => model.var_path(owner.group, var),
                None => model.group_path(owner.group),
            },
        }
    }
}

/// The error about a variable that is not there, or a group.
#[cold]
fn no_var(model: &Model, group: GroupId, var: VarId) -> Nc4Error {
    let object = model.group_path(group);
    if model.group(group).is_none() {
        return Nc4Error::Refused { object, code: NcError::BadGrpId };
    }
    let why = format!("no variable {}", var.0);
    Nc4Error::Explained { object, why, code: NcError::NotVar }
}

/// An HDF5 error with the object it is about.
pub(crate) fn hdf(object: String, error: HdfError) -> Nc4Error {
    Nc4Error::Hdf { object, error }
}
