//! Values of variables: transfers in two steps.
//!
//! [`Dataset::put_to`] and [`Dataset::get_from`] take the file and say the variable's rank; a check then says how long the
//! caller's memory has to be, and the transfer moves the values. Nothing changes between. [`Dataset::put`] and [`Dataset::get`] are
//! all of it in one call, for who knows the length.

use std::fmt;

use zonda_convert::Converted;
use zonda_format::{Access, Checked, DefineMode, GroupId, Place, Room, SharedPuts, Values, VarRef};
use zonda_model::{Answer, Hyperslab, MemType, NcError, memory};

use crate::behind::{Behind, Queued, Went};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::open_file::{Alone, OpenFile, Shared, writer};

/// Variables.
impl Dataset {
    /// Writes a hyperslab from memory of type `mem` (by default the variable's natural one): row-major, shape `count`.
    /// With `stride` the checks are those of `nc_put_vars`, without those of `nc_put_vara`.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EINDEFINE`, `NC_EGLOBAL`, `NC_ENOTVAR`, `NC_ECHAR`, `NC_EINVALCOORDS`, `NC_EEDGE`, `NC_ESTRIDE`;
    /// `NC_EINVAL` for memory of another length than the selection has; what the storage reports. Values that do not fit are counted.
    pub fn put(
        &self,
        var: impl Into<VarRef>,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
        bytes: &[u8],
    ) -> Result<Converted> {
        self.put_access(&Access { var: var.into(), slab: *slab, mem }, Values::plain(bytes))
    }

    /// Writes a hyperslab of any type as what it is: in the layout of C, strings and sequences where `values` says that they
    /// are.
    ///
    /// # Errors
    /// As [`Dataset::put`].
    pub fn put_values(
        &self,
        var: impl Into<VarRef>,
        slab: &Hyperslab<'_>,
        values: Values<'_>,
    ) -> Result<Converted> {
        self.put_access(&Access { var: var.into(), slab: *slab, mem: None }, values)
    }

    /// Reads a hyperslab into memory of type `mem` (by default the variable's natural one): row-major, shape `count`.
    ///
    /// # Errors
    /// As [`Dataset::put`], but for `NC_EPERM`.
    pub fn get(
        &self,
        var: impl Into<VarRef>,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
        out: &mut [u8],
    ) -> Result<Converted> {
        self.get_access(&Access { var: var.into(), slab: *slab, mem }, Room::plain(out))
    }

    /// Reads a hyperslab of any type as what it is: in the layout of C, strings and sequences to where `room` has a place.
    ///
    /// # Errors
    /// As [`Dataset::get`]; `NC_ENOMEM` where there is no memory for them.
    pub fn get_values(
        &self,
        var: impl Into<VarRef>,
        slab: &Hyperslab<'_>,
        room: Room<'_>,
    ) -> Result<Converted> {
        self.get_access(&Access { var: var.into(), slab: *slab, mem: None }, room)
    }

    /// Reads a hyperslab to a list, which is made as long as its values; strings and sequences go to `place`.
    ///
    /// # Errors
    /// As [`Dataset::get_values`]; `NC_ENOMEM`.
    pub fn get_list(
        &self,
        var: impl Into<VarRef>,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
        (list, place): (&mut Vec<u8>, Option<&mut dyn Place>),
    ) -> Result<Converted> {
        let access = Access { var: var.into(), slab: *slab, mem };
        let mut get = self.get_from(access.var)?;
        let checked = get.check(&access)?;
        memory::resize(list, checked.n_bytes, 0)?;
        get.read(&access, &checked, Room { bytes: list, place: shorter(place) })
    }

    fn put_access(&self, access: &Access<'_>, values: Values<'_>) -> Result<Converted> {
        let mut put = self.put_to(access.var)?;
        let checked = put.check(access)?;
        put.write(access, &checked, values)
    }

    fn get_access(&self, access: &Access<'_>, room: Room<'_>) -> Result<Converted> {
        let mut get = self.get_from(access.var)?;
        let checked = get.check(access)?;
        get.read(access, &checked, room)
    }

    /// Begins a put. Until it is done or dropped, the thread must not call the dataset in another way.
    ///
    /// # Errors
    /// What went wrong with puts that were accepted before; `ECHILD` in a forked child.
    #[inline(always)]
    pub fn put_to(&self, var: impl Into<VarRef>) -> Result<Put<'_>> {
        let var = var.into();
        let by = match self.behind() {
            None => By::File(self.here(self.inner.put_to(var.group))?),
            Some(behind) => By::Queue(behind.put_to(var)?),
        };
        Ok(Put { dataset: self, var, by })
    }

    /// Begins a get. Until it is done or dropped, the thread must not call the dataset in another way.
    ///
    /// # Errors
    /// `NC_EBADID` where another thread has closed the file.
    #[inline(always)]
    pub fn get_from(&self, var: impl Into<VarRef>) -> Result<Get<'_>> {
        let var = var.into();
        let from = match self.behind() {
            // What is to be waited for follows from what is read.
            Some(behind) if behind.is_busy() => From::Later(behind),
            _ => self.read_from(var)?,
        };
        Ok(Get { dataset: self, var, from })
    }

    #[inline(always)]
    fn read_from(&self, var: VarRef) -> Result<From<'_>> {
        self.check_group(var.group)?;
        Ok(From::File(Some(self.here(self.inner.read())?)))
    }

    /// Rank of a variable, 0 where there is none.
    fn rank(&self, var: VarRef) -> usize {
        let rank =
            self.in_group(var.group, |meta| meta.var(var.var).map_or(0, |var| var.dims.len()));
        rank.unwrap_or(0)
    }
}

/// The same for as long as it is wanted.
pub(crate) fn shorter<'s, 'l: 's>(
    place: Option<&'s mut (dyn Place + 'l)>,
) -> Option<&'s mut (dyn Place + 's)> {
    match place {
        Some(place) => Some(place),
        None => None,
    }
}

/// A put that was begun: [`Dataset::put_to`]. What is put, and what its check gave, the caller keeps and hands over.
pub struct Put<'a> {
    dataset: &'a Dataset,
    var: VarRef,
    by: By<'a>,
}

/// Who has the values when it is done.
enum By<'a> {
    File(InFile<'a>),
    /// The file, after puts that were accepted.
    AfterQueue(&'a Behind, InFile<'a>),
    Queue(Queued<'a>),
}

impl<'a> Put<'a> {
    /// Rank of the variable; 0 where there is none, which the check says.
    #[inline(always)]
    #[must_use]
    pub fn rank(&self) -> usize {
        match &self.by {
            By::File(file) | By::AfterQueue(_, file) => file.rank(self.var),
            By::Queue(queued) => queued.rank().unwrap_or_else(|| self.dataset.rank(self.var)),
        }
    }

    /// First step: all that may refuse it, of the variable that it was begun for. Says how many bytes the caller's memory has to have.
    ///
    /// # Errors
    /// As [`Dataset::put`].
    #[inline(always)]
    pub fn check(&mut self, put: &Access<'a>) -> Result<Checked> {
        match &mut self.by {
            By::File(file) => match file.check(put) {
                Ok(checked) => Ok(checked),
                Err(error) => Err(error.at(self.dataset.path())),
            },
            _ => self.check_behind(put),
        }
    }

    #[inline(never)]
    fn check_behind(&mut self, put: &Access<'a>) -> Result<Checked> {
        let dataset = self.dataset;
        let queued = match &mut self.by {
            By::File(file) | By::AfterQueue(_, file) => return dataset.here(file.check(put)),
            By::Queue(queued) => queued,
        };
        if let Some(checked) = queued.check(put) {
            return Ok(checked);
        }
        let behind = queued.behind();
        queued.let_go();
        behind.finish(false)?;
        let begin = || {
            let mut file = dataset.inner.put_to(self.var.group)?;
            let checked = file.check(put)?;
            Ok::<_, Error>((file, checked))
        };
        match dataset.here(begin()) {
            Ok((file, checked)) => {
                self.by = By::AfterQueue(behind, file);
                Ok(checked)
            }
            Err(error) => {
                // Modes may be other ones now.
                behind.begin_change();
                Err(error)
            }
        }
    }

    /// Second step: moves the values.
    ///
    /// # Errors
    /// As [`Dataset::put`].
    #[inline(always)]
    pub fn write(
        self,
        put: &Access<'a>,
        checked: &Checked,
        values: Values<'_>,
    ) -> Result<Converted> {
        if put.var != self.var {
            return Err(other_variable());
        }
        match self.by {
            By::File(mut file) => match file.put(put, checked, values) {
                Ok(converted) => Ok(converted),
                Err(error) => Err(error.at(self.dataset.path())),
            },
            by => write_behind(self.dataset, by, (put, checked), values),
        }
    }
}

#[inline(never)]
fn write_behind<'a>(
    dataset: &Dataset,
    by: By<'a>,
    (put, checked): (&Access<'a>, &Checked),
    mut values: Values<'_>,
) -> Result<Converted> {
    let Access { var, slab, mem } = *put;
    let (given, is_plain) = (values.bytes, values.fetch.is_none());
    let went = |slab| is_plain.then_some(Went { var, slab, mem, values: given });
    match by {
        By::File(mut file) => dataset.here(file.put(put, checked, values)),
        By::AfterQueue(behind, mut file) => {
            let done = dataset.here(file.put(put, checked, values));
            drop(file);
            // Lengths may be other ones now.
            behind.begin_change();
            behind.went_by(done, went(slab))
        }
        By::Queue(mut queued) => {
            let behind = queued.behind();
            if given.len() == checked.n_bytes
                && let Some(converted) = dataset.here(queued.accept(put, checked, &mut values))?
            {
                return Ok(converted);
            }
            queued.let_go();
            behind.finish(false)?;
            let converted = dataset.here(dataset.inner.put(put, values))?;
            behind.went_by(Ok(converted), went(queued.grew(put, checked)))
        }
    }
}

/// A get that was begun: [`Dataset::get_from`]. What is read, and what its check gave, the caller keeps and hands over.
pub struct Get<'a> {
    dataset: &'a Dataset,
    var: VarRef,
    from: From<'a>,
}

/// Where values come from.
enum From<'a> {
    /// None while it is taken anew.
    File(Option<Shared<'a>>),
    /// The file, when puts were carried out that touch what is read.
    Later(&'a Behind),
}

impl<'a> Get<'a> {
    /// Rank of the variable; 0 where there is none, which the check says.
    #[inline(always)]
    #[must_use]
    pub fn rank(&self) -> usize {
        match &self.from {
            From::File(file) => file.as_ref().map_or(0, |file| file.rank(self.var)),
            From::Later(_) => self.dataset.rank(self.var),
        }
    }

    /// First step: all that may refuse it, of the variable that it was begun for. Says how many bytes the caller's memory has to have.
    ///
    /// # Errors
    /// As [`Dataset::get`].
    #[inline(always)]
    pub fn check(&mut self, get: &Access<'_>) -> Result<Checked> {
        if let From::File(Some(file)) = &self.from
            && self.dataset.capabilities().define_mode == DefineMode::Needed
        {
            return match file.check_get(get) {
                Ok(checked) => Ok(checked),
                Err(error) => Err(error.at(self.dataset.path())),
            };
        }
        self.check_more(get)
    }

    #[inline(never)]
    fn check_more(&mut self, get: &Access<'_>) -> Result<Checked> {
        if let From::Later(behind) = self.from {
            behind.before_get(self.var, &get.slab)?;
            self.from = self.dataset.read_from(self.var)?;
        }
        let checked = match &mut self.from {
            From::File(held) => check_again(&self.dataset.inner, held, get),
            From::Later(_) => Err(NOT_CHECKED.into()),
        };
        self.dataset.here(checked)
    }

    /// Second step: moves the values.
    ///
    /// # Errors
    /// As [`Dataset::get`].
    #[inline]
    pub fn read(self, get: &Access<'_>, checked: &Checked, room: Room<'_>) -> Result<Converted> {
        if get.var != self.var {
            return Err(other_variable());
        }
        let got = match self.from {
            From::File(held) => read_held(&self.dataset.inner, held, (get, checked), room),
            From::Later(_) => Err(NOT_CHECKED.into()),
        };
        match got {
            Ok(converted) => Ok(converted),
            Err(error) => Err(error.at(self.dataset.path())),
        }
    }
}

/// Takes the file where it is not held, and lets it go where another program may have been writing what was read.
fn check_again<'a>(
    file: &'a OpenFile,
    held: &mut Option<Shared<'a>>,
    get: &Access<'_>,
) -> Result<Checked> {
    let mut tries = 0;
    loop {
        let shared = match held {
            Some(shared) => shared,
            None => held.insert(file.read()?),
        };
        if !shared.is_get_ready(get)? {
            *held = None;
            writer(&mut file.write()?)?.end_definitions()?;
            // Another thread may close the file just now.
            continue;
        }
        match shared.check_get(get) {
            Ok(checked) => return Ok(checked),
            Err(error) => {
                *held = None;
                if !file.read_again(&error, &mut tries) {
                    return Err(error);
                }
            }
        }
    }
}

#[inline]
fn read_held<'a>(
    file: &'a OpenFile,
    held: Option<Shared<'a>>,
    (get, checked): (&Access<'_>, &Checked),
    room: Room<'_>,
) -> Result<Converted> {
    let Some(shared) = held else { return Err(NOT_CHECKED.into()) };
    if room.place.is_some() {
        // What was placed stays with the caller, so that it cannot be tried again.
        return shared.get(get, checked, room);
    }
    let got = shared.get(get, checked, Room::plain(&mut *room.bytes));
    drop(shared);
    match got {
        Err(error) => get_again(file, error, (get, checked), room.bytes),
        got => got,
    }
}

#[cold]
fn get_again(
    file: &OpenFile,
    mut error: Error,
    (get, checked): (&Access<'_>, &Checked),
    bytes: &mut [u8],
) -> Result<Converted> {
    let (mut held, mut tries) = (None, 0);
    while file.read_again(&error, &mut tries) {
        let again = check_again(file, &mut held, get)?;
        if again.n_bytes != checked.n_bytes {
            let why = "another program changed the type of the variable";
            return Err(Error::answered(NcError::HdfErr, Answer::Request, why));
        }
        let Some(shared) = held.take() else { return Err(NOT_CHECKED.into()) };
        match shared.get(get, &again, Room::plain(&mut *bytes)) {
            Ok(converted) => return Ok(converted),
            Err(other) => error = other,
        }
    }
    Err(error)
}

/// What is handed over with the second step is not what was checked.
#[cold]
fn other_variable() -> Error {
    Error::explained(NcError::Inval, "the transfer was begun for another variable")
}

/// A get without its first step.
const NOT_CHECKED: NcError = NcError::Inval;

/// A put into the file itself, which was taken for it.
pub(crate) enum InFile<'a> {
    /// With others who put.
    Shared(Shared<'a>),
    Alone(Alone<'a>),
}

impl InFile<'_> {
    #[inline(always)]
    fn rank(&self, var: VarRef) -> usize {
        match self {
            InFile::Shared(file) => file.rank(var),
            InFile::Alone(file) => file.rank(var),
        }
    }

    #[inline(always)]
    fn check(&mut self, put: &Access<'_>) -> Result<Checked> {
        match self {
            InFile::Shared(file) => shared_puts(file)?.check_put(put),
            InFile::Alone(file) => writer(file)?.check_put(put),
        }
    }

    #[inline(always)]
    fn put(
        &mut self,
        put: &Access<'_>,
        checked: &Checked,
        values: Values<'_>,
    ) -> Result<Converted> {
        match self {
            InFile::Shared(file) => shared_puts(file)?.put(put, checked, values),
            InFile::Alone(file) => writer(file)?.put(put, checked, values),
        }
    }
}

#[inline]
fn shared_puts<'f>(file: &'f Shared<'_>) -> Result<&'f dyn SharedPuts> {
    file.shared_puts().ok_or_else(|| NcError::Internal.into())
}

impl OpenFile {
    /// Takes the file for a put.
    #[inline(always)]
    pub(crate) fn put_to(&self, group: GroupId) -> Result<InFile<'_>> {
        if !self.capabilities.shared_puts {
            return Ok(InFile::Alone(self.write_anew()?));
        }
        if group != GroupId::ROOT && !self.capabilities.groups {
            return Err(NcError::BadGrpId.into());
        }
        self.check_not_forked()?;
        Ok(InFile::Shared(self.read()?))
    }

    /// Puts into the file itself.
    pub(crate) fn put(&self, put: &Access<'_>, values: Values<'_>) -> Result<Converted> {
        let mut file = self.put_to(put.var.group)?;
        let checked = file.check(put)?;
        file.put(put, &checked, values)
    }

    /// Stores what waits in memory only for more to come; what fails stays there.
    pub(crate) fn store_complete(&self) -> Result<()> {
        if self.capabilities.shared_puts {
            return Ok(());
        }
        self.change(|file| file.store_complete())
    }
}

impl fmt::Debug for Put<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Put").field("var", &self.var).finish_non_exhaustive()
    }
}

impl fmt::Debug for Get<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("var", &self.var).finish_non_exhaustive()
    }
}
