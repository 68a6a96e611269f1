//! An open netCDF-4 file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use zonda_runtime::lock::{Mutex, Rank};

use zonda_chunk::FilterSpec;
use zonda_chunk::filter::Found;
use zonda_convert::{ByteOrder, Converted, Decoder, RangeRule};
use zonda_format::{AttAccess, Destination, Transfer, VarRef};
use zonda_hdf5::{File, HdfError};
use zonda_model::{ExtType, MemType, NcError, VarId, sought_name};
use zonda_storage::{Sidecars, Storage};

use crate::attribute::{AttFault, AttList, AttValue};
use crate::details::Details;
use crate::fault::{Fault, HdfResult, Outcome};
use crate::files::{Files, ObjectAt};
use crate::get::{bytes_of, check_conversion, mixed};
use crate::hidden;
use crate::model::{AttInfo, Gap, GroupId, Model, SkipReason, Skipped, StorageKind, Var, VarInfo};
use crate::place::{NoPlace, Target};
use crate::refresh::{Patience, Read, may_be_torn};
use crate::types::Types;
use crate::walk::Walk;
use crate::write::Writing;
use crate::{Nc4Error, Result};

/// Finds a filter that is not built in, say in a plugin.
pub type FindFilter = dyn Fn(&FilterSpec) -> Found + Send + Sync;

/// What becomes of a file that is damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damaged {
    /// It cannot be opened where that is not to be read which everything else hangs on.
    #[default]
    Refuse,
    /// What can be read of it is shown, and [`Nc4File::faults`] tells of the rest.
    PassOver,
    /// The same, and where groups are damaged, objects are looked for in the whole file.
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
    /// What is written and has at least so many bytes begins at a multiple of the other number.
    pub alignment: Option<(u64, u64)>,
    /// Where a journal can stand; `None` for a file in memory.
    pub sidecars: Option<Arc<dyn Sidecars>>,
    /// The file beside which chunks may wait for which there is no memory; `None` for a file in memory.
    pub spills_beside: Option<PathBuf>,
    /// Told what definitions lack, by the call that reads them first.
    pub on_gaps: Option<Arc<OnGaps>>,
    /// What becomes of a damaged file. One that is opened for writing is refused.
    pub damaged: Damaged,
}

/// Told what definitions lack.
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
    pub(crate) fn tell(&self, gaps: &[Gap]) {
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
    /// One walk at a time; readers of a finished model do not come here.
    pub(crate) walking: Mutex<()>,
    /// Where the file is open for writing.
    pub(crate) writing: Option<Box<Writing>>,
    /// What was read.
    pub(crate) read: Read,
    /// Text of `_NCProperties` for a view of a new file, where no commit has it yet.
    pub(crate) properties: Option<Vec<u8>>,
}

/// The number of an attribute about the file, which has none, for the second step of reading it.
const SPECIAL: u64 = u64::MAX;

impl Nc4File {
    /// In a child of a fork, when the file was closed there: gives up what was put, which is the parent's, and what was read.
    /// A thread that the child has not may have the file itself for ever.
    pub fn leave(&mut self) {
        self.writing = None;
        self.model = OnceLock::new();
    }

    /// Opens a file for reading: as [`Nc4File::open`], where no other user's journal says that the file
    /// may be torn.
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
        let mut read = Read::now(&*storage);
        let mut patience = Patience::with(&*storage, &read);
        let file = loop {
            if how.damaged != Damaged::Refuse {
                break File::open_damaged(Arc::clone(&storage)).map_err(fail)?;
            }
            let file = File::open(Arc::clone(&storage));
            match file.and_then(|file| file.object(file.root()).map(|_| file)) {
                Ok(file) => break file,
                Err(error) if may_be_torn(&error) && patience.is_left() => {
                    read = Read::now(&*storage);
                }
                Err(error) => return Err(fail(error)),
            }
        };
        let file = file.with_unfilter(crate::data::unfilter(how.find_filter.clone()));
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
    pub fn model(&self) -> Result<&Model> {
        if let Some(model) = self.model.get() {
            return Ok(model);
        }
        let _alone = self.walking.lock();
        if let Some(model) = self.model.get() {
            return Ok(model);
        }
        let mut patience = Patience::with(&**self.hdf5().storage(), &self.read);
        let model = loop {
            match Walk::run(&self.files, self.how.damaged) {
                Ok(model) if model.is_whole() || !patience.is_left() => break model,
                Err(failure) if !may_be_torn(&failure.error) || !patience.is_left() => {
                    return Err(hdf(failure.path, failure.error));
                }
                // Another program may be writing it just now.
                Ok(_) | Err(_) => {}
            }
        };
        let model = self.model.get_or_init(|| model);
        self.how.tell(&model.gaps);
        Ok(model)
    }

    /// Reads, and reads again what another program may be writing just now.
    fn patiently<T, E>(
        &self,
        read: impl Fn() -> std::result::Result<T, E>,
        may_be_torn: impl Fn(&E) -> bool,
    ) -> std::result::Result<T, E> {
        let mut patience = Patience::with(&**self.hdf5().storage(), &self.read);
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

    /// What is wrong with the file, or not in the model, and was passed over: of the file itself, its
    /// groups and its variables, in this order. Only where it was opened as a damaged one is that all
    /// there is.
    ///
    /// # Errors
    /// As [`Nc4File::model`].
    pub fn faults(&self) -> Result<Vec<Skipped>> {
        let whole = self.hdf5().faults().iter();
        let whole = whole.map(|error| Skipped {
            path: String::from("/"),
            why: SkipReason::Damaged(error.clone()),
        });
        Ok(whole.chain(self.model()?.faults.iter().cloned()).collect())
    }

    /// What was passed over of the attributes of a variable or group: those that netCDF has no words for, and, of a file that was
    /// opened as a damaged one, those that are damaged.
    ///
    /// # Errors
    /// As [`Nc4File::n_atts`].
    pub fn att_faults(&self, owner: VarRef) -> Result<Vec<Nc4Error>> {
        let faults = self.att_list(owner)?.faults();
        Ok(faults.iter().map(|fault| self.att_fault(owner, fault.clone())).collect())
    }

    /// Number of attributes that count (not the hidden ones), in order.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_EBADGRPID`; `NC_EATTMETA`, `NC_EHDFERR`.
    pub fn n_atts(&self, owner: VarRef) -> Result<usize> {
        Ok(self.att_list(owner)?.len())
    }

    /// The attribute with that number.
    ///
    /// # Errors
    /// As [`Nc4File::n_atts`]; `NC_ENOTATT`.
    pub fn att(&self, owner: VarRef, index: usize) -> Result<AttInfo> {
        self.att_list(owner)?.info(index).map_err(|fault| self.att_fault(owner, fault))
    }

    /// The attribute with that name (normalised here) and its number. Reserved ones that the
    /// reference finds by name only (`_NCProperties`, `_IsNetcdf4`, `_SuperblockVersion`) have number -1.
    ///
    /// # Errors
    /// As [`Nc4File::att`].
    pub fn find_att(&self, owner: VarRef, name: &[u8]) -> Result<(i32, AttInfo)> {
        let list = self.att_list(owner)?;
        let name = self.normalized(owner, name)?;
        if let Some((_, info)) = self.special(owner, &name)? {
            return Ok((-1, info));
        }
        let fail = |fault| self.att_fault(owner, fault);
        let number = list.find(&name).map_err(fail)?;
        let info = list.info(number).map_err(fail)?;
        Ok((i32::try_from(number).unwrap_or(i32::MAX), info))
    }

    /// First step of reading an attribute: bytes that its values take in memory.
    ///
    /// # Errors
    /// As [`Nc4File::att`]; `NC_ECHAR`, and `NC_EBADTYPE` for numbers asked of strings and user-defined types.
    pub fn check_get_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<()> {
        let att = get.of();
        let (number, info) = self.find_att(att.owner, att.name)?;
        let refused = |code| Nc4Error::Refused { object: self.path(att.owner), code };
        let found = [u64::try_from(number).unwrap_or(SPECIAL), 0];
        if info.len == 0 {
            get.note(0, 0, att.mem, found);
            return Ok(());
        }
        let elem = match att.mem {
            Some(mem) => {
                check_conversion(info.nc_type, mem).map_err(|code| match code {
                    NcError::Char => mixed("attribute", att.name),
                    code => refused(code),
                })?;
                let is_float = matches!(mem, MemType::F32 | MemType::F64);
                // Numbers about the file are made when they are asked for.
                if number < 0 && is_float && info.nc_type == ExtType::Int.nc_type() {
                    return Err(refused(NcError::Range));
                }
                mem.size()
            }
            None => self.size_of(self.model()?, info.nc_type),
        };
        let n_values = usize::try_from(info.len).map_err(|_| refused(NcError::NoMem))?;
        let n_bytes = bytes_of(n_values, elem).ok_or_else(|| refused(NcError::NoMem))?;
        get.note(n_bytes, n_values, att.mem, found);
        Ok(())
    }

    /// Second step of reading an attribute, while the file did not change.
    ///
    /// # Errors
    /// `NC_EINVAL` for memory of another length than the check said; as [`Nc4File::att`]; `NC_EBADTYPE` for strings and
    /// sequences where there is no place for them. Values that do not fit are counted.
    pub fn get_att(
        &self,
        get: &Transfer<AttAccess<'_>>,
        room: Destination<'_>,
    ) -> Result<Converted> {
        let att = get.of();
        let mut none = NoPlace::default();
        let target = match (att.mem, room.place) {
            (Some(mem), _) => Target::Atomic(mem),
            (None, Some(place)) => Target::Natural(place),
            (None, None) => Target::Natural(&mut none),
        };
        let got = self.att_values(get, target, room.bytes);
        if none.is_asked { Err(none.refused(self.path(att.owner))) } else { got }
    }

    fn att_values(
        &self,
        get: &Transfer<AttAccess<'_>>,
        target: Target<'_>,
        out: &mut [u8],
    ) -> Result<Converted> {
        let AttAccess { owner, name, .. } = *get.of();
        let list = self.att_list(owner)?;
        let fail = |fault| self.value_fault(owner, fault);
        if out.len() != get.n_bytes {
            return Err(fail(Fault::wrong_length()));
        }
        if get.n_elems == 0 {
            return Ok(Converted::default());
        }
        let unread = |fault| self.att_fault(owner, fault);
        let none = || unread(AttFault::None(name.into()));
        if get.found[0] == SPECIAL {
            let special = self.special(owner, &self.normalized(owner, name)?)?;
            let (value, info) = special.ok_or_else(none)?;
            return special_values(&value, &info, &target, out).map_err(fail);
        }
        let model = self.model()?;
        let number = usize::try_from(get.found[0]).map_err(|_| none())?;
        let info = list.info(number).map_err(unread)?;
        match list.value(number, &model.forms).map_err(unread)? {
            AttValue::Stored(stored) => {
                let (attribute, meaning) = &*stored;
                crate::get::attribute(self, list.file(), attribute, meaning, target, out)
            }
            AttValue::Owned(held) => crate::write::get_owned(model, &info, held, target, out),
        }
        .map_err(fail)
    }

    /// How a variable is stored, its filters and fill value.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_EHDFERR`.
    pub fn var_info(&self, group: GroupId, var: VarId) -> Result<Arc<VarInfo>> {
        let (model, var) = self.var(group, var)?;
        let info = self.details(var).and_then(|details| details.info().cloned());
        info.map_err(|error| hdf(model.var_path(group, var), error))
    }

    /// Chunk cache of a variable: bytes, slots, preemption.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn chunk_cache(&self, group: GroupId, var: VarId) -> Result<(usize, usize, f32)> {
        let (model, var) = self.var(group, var)?;
        let fail = |error| hdf(model.var_path(group, var), error);
        let details = self.details(var).map_err(fail)?;
        if let Some(set) = *details.cache.lock() {
            return Ok(set);
        }
        let (bytes, slots, preemption) = self.how.chunk_cache;
        let StorageKind::Chunked(dims) = &details.info().map_err(fail)?.storage else {
            // Of a variable that it finds in a file, the reference reports what HDF5 has by default.
            let is_found = var.draft.is_none();
            return Ok(if is_found { (1 << 20, 521, 0.75) } else { self.how.chunk_cache });
        };
        // A chunk that does not fit makes room for ten, as in the reference.
        let elem = self.size_of(model, var.nc_type);
        let chunk = dims.iter().fold(elem, |bytes, &dim| bytes.saturating_mul(dim));
        let grown = if chunk > bytes { chunk.saturating_mul(10).min(64 << 20) } else { bytes };
        Ok((grown, slots, preemption))
    }

    /// Sets the least that the chunk cache of a variable may hold; the values are reported as set.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_EINVAL` for a preemption outside 0 to 1.
    pub fn set_chunk_cache(
        &self,
        group: GroupId,
        var: VarId,
        bytes: usize,
        slots: usize,
        preemption: f32,
    ) -> Result<()> {
        let (model, var) = self.var(group, var)?;
        let path = || model.var_path(group, var);
        if !(0.0..=1.0).contains(&preemption) {
            return Err(Nc4Error::Refused { object: path(), code: NcError::Inval });
        }
        let details = self.details(var).map_err(|error| hdf(path(), error))?;
        let mut cache = details.cache.lock();
        *cache = Some((bytes, slots, preemption));
        Ok(())
    }

    /// Bytes of an element of a type in memory.
    pub(crate) fn size_of(&self, model: &Model, nc_type: i32) -> usize {
        match ExtType::from_nc_type(nc_type) {
            Some(ext) => ext.size(),
            None => model.user_type(nc_type).map_or(8, |ty| ty.size),
        }
    }

    pub(crate) fn var(&self, group: GroupId, var: VarId) -> Result<(&Model, &Var)> {
        let model = self.model()?;
        let refused = |code| Nc4Error::Refused { object: model.group_path(group), code };
        model.group(group).ok_or_else(|| refused(NcError::BadGrpId))?;
        let Some(found) = model.var(group, var) else {
            let (object, why) = (model.group_path(group), format!("no variable {}", var.0));
            return Err(Nc4Error::Explained { object, why, code: NcError::NotVar });
        };
        Ok((model, found))
    }

    /// The fields of a compound that has members of types that netCDF has not.
    pub(crate) fn shown_fields(&self, nc_type: i32) -> Option<usize> {
        self.model.get()?.forms.shown_fields(nc_type)
    }

    pub(crate) fn details<'v>(&self, var: &'v Var) -> HdfResult<&'v Details> {
        self.kept(&var.details, var.at)
    }

    /// The same, to be held while the file is changed.
    pub(crate) fn details_arc<'v>(&self, var: &'v Var) -> HdfResult<&'v Arc<Details>> {
        self.details(var)?;
        let missing = HdfError::Missing { structure: "object", at: var.at.addr.0, what: "it" };
        var.details.get().ok_or(missing)
    }

    fn kept<'v>(&self, place: &'v OnceLock<Arc<Details>>, at: ObjectAt) -> HdfResult<&'v Details> {
        if place.get().is_none() {
            let types = self.model.get().map(|model| &model.forms);
            let none = Types::default();
            let read = || Details::read(&self.files, at, types.unwrap_or(&none));
            let details = Arc::new(self.patiently(read, may_be_torn)?);
            let _first = place.set(details);
        }
        let missing = HdfError::Missing { structure: "object", at: at.addr.0, what: "it" };
        place.get().map(|details| &**details).ok_or(missing)
    }

    fn att_list(&self, owner: VarRef) -> Result<&AttList> {
        let model = self.model()?;
        let details = if owner.var == VarId::GLOBAL {
            let group = model.group(owner.group).ok_or_else(|| Nc4Error::Refused {
                object: model.group_path(owner.group),
                code: NcError::BadGrpId,
            })?;
            self.kept(&group.details, group.at)
        } else {
            self.details(self.var(owner.group, owner.var)?.1)
        };
        let details = details.map_err(|error| hdf(self.path(owner), error))?;
        details.atts.as_ref().map_err(|fault| self.att_fault(owner, fault.clone()))
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

    fn att_fault(&self, owner: VarRef, fault: AttFault) -> Nc4Error {
        fault.at(|| self.path(owner))
    }

    fn value_fault(&self, owner: VarRef, fault: Fault) -> Nc4Error {
        fault.at(|| self.path(owner))
    }

    fn normalized<'n>(&self, owner: VarRef, name: &'n [u8]) -> Result<std::borrow::Cow<'n, [u8]>> {
        let sought = sought_name(name, NcError::BadName);
        sought.map_err(|code| Nc4Error::Refused { object: self.path(owner), code })
    }

    /// An attribute of a group that is found by name only: its value and what it is.
    fn special(&self, owner: VarRef, name: &[u8]) -> Result<Option<(Vec<u8>, AttInfo)>> {
        if owner.var != VarId::GLOBAL {
            return Ok(None);
        }
        let number = |value: i32| (value.to_ne_bytes().to_vec(), ExtType::Int.nc_type(), 1);
        let (value, nc_type, len) = match name {
            hidden::PROPERTIES => {
                let text = self.properties()?.ok_or_else(|| Nc4Error::Refused {
                    object: self.path(owner),
                    code: NcError::NotAtt,
                })?;
                let len = text.len() as u64;
                (text, ExtType::Char.nc_type(), len)
            }
            hidden::IS_NETCDF4 => number(i32::from(self.is_netcdf4()?)),
            hidden::SUPERBLOCK => number(i32::from(self.hdf5().superblock().version)),
            _ => return Ok(None),
        };
        Ok(Some((value, AttInfo { name: name.into(), nc_type, len })))
    }

    /// Text of `_NCProperties` of a new file, which no commit has yet.
    pub(crate) fn properties_to_come(&self) -> Option<&Vec<u8>> {
        let writing = self.writing.as_ref().filter(|writing| writing.is_new)?;
        Some(&writing.how.properties)
    }

    /// Text of `_NCProperties`.
    fn properties(&self) -> Result<Option<Vec<u8>>> {
        if let Some(text) = self.properties_to_come().or(self.properties.as_ref()) {
            return Ok(Some(text.clone()));
        }
        let file = self.hdf5();
        let read = || -> HdfResult<_> {
            let attribute = file.object(file.root())?.attribute(file, hidden::PROPERTIES)?;
            attribute.map(|attribute| hidden::text(file, &attribute)).transpose()
        };
        read().map_err(|error| hdf(String::from("/"), error))
    }

    /// Whether netCDF wrote the file: it says so, or at least two of its marks are on datasets.
    fn is_netcdf4(&self) -> Result<bool> {
        let model = self.model()?;
        if model.is_classic || self.properties()?.is_some() {
            return Ok(true);
        }
        let mut marks = 0usize;
        let vars = model.groups.iter().flat_map(|group| &group.vars).map(|var| var.at);
        let scales = model.dims.iter().flatten().filter_map(|dim| dim.at);
        let mut seen = hashbrown::HashSet::new();
        for at in vars.chain(scales) {
            if !seen.insert(at) {
                continue;
            }
            let names = self.files.get(at.file).and_then(|file| {
                let attributes = file.object(at.addr)?.attributes(&file)?;
                let names = 0..attributes.len();
                Ok(names.filter(|&i| hidden::is_reserved(attributes.name(i))).count())
            });
            marks = marks.saturating_add(names.unwrap_or(0));
            if marks >= 2 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// An HDF5 error with the object it is about.
pub(crate) fn hdf(object: String, error: HdfError) -> Nc4Error {
    Nc4Error::Hdf { object, error }
}

/// The value of an attribute that is found by name only, as the caller wants it.
fn special_values(
    value: &[u8],
    info: &AttInfo,
    target: &Target<'_>,
    out: &mut [u8],
) -> Outcome<Converted> {
    let refused = Fault::Refused;
    let ext = ExtType::from_nc_type(info.nc_type).ok_or(refused(NcError::BadType))?;
    let mem = match target {
        Target::Natural(_) => ext.natural_mem(),
        Target::Atomic(mem) => *mem,
    };
    let decoder = Decoder::new(ext, ByteOrder::NATIVE, mem, RangeRule::Cast);
    let decoder = decoder.map_err(|_| refused(NcError::Char))?;
    let n = value.len().checked_div(ext.size()).unwrap_or(0);
    if n.checked_mul(mem.size()) != Some(out.len()) {
        return Err(Fault::wrong_length());
    }
    Ok(decoder.decode(value, out))
}
