//! Values of variables: transfers in two steps.
//!
//! [`Dataset::put_to`] and [`Dataset::get_from`] take the file and say the variable's rank; a check then says how long the
//! caller's memory has to be, and the transfer moves the values. Nothing changes between. [`Dataset::put`] and [`Dataset::get`] are
//! all of it in one call, for who knows the length.

use std::fmt;

use zonda_convert::Converted;
use zonda_format::{Access, Checked, Place, Room, Values};
use zonda_model::{Answer, Hyperslab, MemType, NcError, memory};
use zonda_nc4::{GroupId, Nc4File};
use zonda_runtime::lock::{RwLockReadGuard, RwLockWriteGuard};

use crate::behind::{Behind, Queued, Went};
use crate::dataset::{Dataset, Inner};
use crate::error::{Error, Result};
use crate::nc4::Nc4;
use crate::refs::VarRef;

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
        let mut put = self.put_to(var)?;
        put.check(slab, mem)?;
        put.write(Values::plain(bytes))
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
        let mut put = self.put_to(var)?;
        put.check(slab, None)?;
        put.write(values)
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
        let mut get = self.get_from(var)?;
        get.check(slab, mem)?;
        get.read(Room::plain(out))
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
        let mut get = self.get_from(var)?;
        get.check(slab, None)?;
        get.read(room)
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
        let mut get = self.get_from(var)?;
        let len = get.check(slab, mem)?;
        memory::resize(list, len, 0)?;
        get.read(Room { bytes: list, place: shorter(place) })
    }

    /// Begins a put. Until it is done or dropped, the thread must not call the dataset in another way.
    ///
    /// # Errors
    /// What went wrong with puts that were accepted before; `ECHILD` in a forked child.
    #[inline]
    pub fn put_to(&self, var: impl Into<VarRef>) -> Result<Put<'_>> {
        let var = var.into();
        let by = match self.behind() {
            None => By::File(self.here(self.inner.put_to(var))?),
            Some(behind) => By::Queue(Box::new(behind.put_to(var)?)),
        };
        let (slab, mem) = (NOTHING, None);
        Ok(Put {
            dataset: self,
            by,
            access: Access { var, slab, mem },
            checked: Checked::default(),
        })
    }

    /// Begins a get. Until it is done or dropped, the thread must not call the dataset in another way.
    ///
    /// # Errors
    /// `NC_EBADID` where another thread has closed the file.
    #[inline]
    pub fn get_from(&self, var: impl Into<VarRef>) -> Result<Get<'_>> {
        let var = var.into();
        let from = match self.behind() {
            // What is to be waited for follows from what is read.
            Some(behind) if behind.is_busy() => From::Later(behind),
            _ => self.read_from(var)?,
        };
        let (slab, mem) = (NOTHING, None);
        Ok(Get {
            dataset: self,
            from,
            access: Access { var, slab, mem },
            checked: Checked::default(),
        })
    }

    #[inline]
    fn read_from(&self, var: VarRef) -> Result<From<'_>> {
        match &*self.inner {
            Inner::Classic(classic) if var.group == GroupId::ROOT => {
                Ok(From::Classic(classic.hold()))
            }
            Inner::Classic(_) => Err(Error::from(NcError::BadGrpId).at(self.path())),
            Inner::Nc4(nc4) => Ok(From::Nc4(nc4, Some(self.here(nc4.read())?))),
        }
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

/// Nothing is selected yet.
const NOTHING: Hyperslab<'_> = Hyperslab { start: &[], count: &[], stride: None };

/// A put that was begun: [`Dataset::put_to`].
pub struct Put<'a> {
    dataset: &'a Dataset,
    by: By<'a>,
    access: Access<'a>,
    checked: Checked,
}

/// Who has the values when it is done.
enum By<'a> {
    File(InFile<'a>),
    /// The file, after puts that were accepted.
    AfterQueue(&'a Behind, InFile<'a>),
    Queue(Box<Queued<'a>>),
}

impl<'a> Put<'a> {
    /// Rank of the variable; 0 where there is none, which the check says.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> usize {
        let var = self.access.var;
        match &self.by {
            By::File(file) | By::AfterQueue(_, file) => file.rank(var),
            By::Queue(queued) => queued.rank().unwrap_or_else(|| self.dataset.rank(var)),
        }
    }

    /// All that may refuse it. Gives the bytes that the caller's memory has to have: as `count` says, of type `mem`, by default the
    /// variable's own. Lists may be longer than the rank.
    ///
    /// # Errors
    /// As [`Dataset::put`].
    #[inline]
    pub fn check(&mut self, slab: &Hyperslab<'a>, mem: Option<MemType>) -> Result<usize> {
        self.access = Access { slab: *slab, mem, ..self.access };
        if let By::File(file) = &mut self.by {
            self.checked = self.dataset.here(file.check(&self.access))?;
            return Ok(self.checked.n_bytes);
        }
        self.check_behind()
    }

    #[inline(never)]
    fn check_behind(&mut self) -> Result<usize> {
        let By::Queue(queued) = &mut self.by else { return Ok(self.checked.n_bytes) };
        if let Some(n_bytes) = queued.check(&self.access) {
            self.checked.n_bytes = n_bytes;
            return Ok(n_bytes);
        }
        let behind = queued.behind();
        queued.let_go();
        behind.finish(false)?;
        let dataset = self.dataset;
        let begin = || {
            let mut file = dataset.inner.put_to(self.access.var)?;
            let checked = file.check(&self.access)?;
            Ok::<_, Error>((file, checked))
        };
        match dataset.here(begin()) {
            Ok((file, checked)) => {
                self.checked = checked;
                self.by = By::AfterQueue(behind, file);
                Ok(checked.n_bytes)
            }
            Err(error) => {
                // Modes may be other ones now.
                behind.begin_change();
                Err(error)
            }
        }
    }

    /// Moves the values.
    ///
    /// # Errors
    /// As [`Dataset::put`].
    #[inline]
    pub fn write(self, values: Values<'_>) -> Result<Converted> {
        match self.by {
            By::File(mut file) => self.dataset.here(file.put(&self.access, &self.checked, values)),
            _ => self.write_behind(values),
        }
    }

    #[inline(never)]
    fn write_behind(self, mut values: Values<'_>) -> Result<Converted> {
        let Put { dataset, by, access, checked } = self;
        let Access { var, slab, mem } = access;
        let (given, is_plain) = (values.bytes, values.fetch.is_none());
        let went = |slab| is_plain.then_some(Went { var, slab, mem, values: given });
        match by {
            By::File(mut file) => dataset.here(file.put(&access, &checked, values)),
            By::AfterQueue(behind, mut file) => {
                let put = dataset.here(file.put(&access, &checked, values));
                drop(file);
                // Lengths may be other ones now.
                behind.begin_change();
                behind.went_by(put, went(slab))
            }
            By::Queue(mut queued) => {
                let behind = queued.behind();
                if given.len() == checked.n_bytes
                    && let Some(converted) = dataset.here(queued.accept(&access, &mut values))?
                {
                    return Ok(converted);
                }
                queued.let_go();
                behind.finish(false)?;
                let converted = dataset.here(dataset.inner.put(&access, values))?;
                behind.went_by(Ok(converted), went(queued.grew(&access)))
            }
        }
    }
}

/// A get that was begun: [`Dataset::get_from`].
pub struct Get<'a> {
    dataset: &'a Dataset,
    from: From<'a>,
    access: Access<'a>,
    checked: Checked,
}

/// Where values come from.
enum From<'a> {
    Classic(zonda_classic::Held<'a>),
    /// None while it is taken anew.
    Nc4(&'a Nc4, Option<RwLockReadGuard<'a, Nc4File>>),
    /// The file, when puts were carried out that touch what is read.
    Later(&'a Behind),
}

impl<'a> Get<'a> {
    /// Rank of the variable; 0 where there is none, which the check says.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> usize {
        let var = self.access.var;
        match &self.from {
            From::Classic(classic) => classic.rank(var.var),
            From::Nc4(_, file) => file.as_ref().map_or(0, |file| file.rank(var)),
            From::Later(_) => self.dataset.rank(var),
        }
    }

    /// All that may refuse it. Gives the bytes that the caller's memory has to have, as [`Put::check`].
    ///
    /// # Errors
    /// As [`Dataset::get`].
    #[inline]
    pub fn check(&mut self, slab: &Hyperslab<'a>, mem: Option<MemType>) -> Result<usize> {
        self.access = Access { slab: *slab, mem, ..self.access };
        if let From::Later(behind) = self.from {
            behind.before_get(self.access.var, slab)?;
            self.from = self.dataset.read_from(self.access.var)?;
        }
        let checked = match &self.from {
            From::Classic(classic) => classic.check_get(&self.access).map_err(Error::from),
            _ => self.check_nc4(),
        };
        self.checked = self.dataset.here(checked)?;
        Ok(self.checked.n_bytes)
    }

    #[inline(never)]
    fn check_nc4(&mut self) -> Result<Checked> {
        let From::Nc4(nc4, held) = &mut self.from else { return Ok(self.checked) };
        let mut tries = 0;
        loop {
            let file = match held.take() {
                Some(file) => file,
                None => nc4.read()?,
            };
            if !file.is_get_ready(&self.access)? {
                drop(file);
                nc4.write()?.end_definitions()?;
                // Another thread may close the file just now.
                continue;
            }
            match file.check_get(&self.access).map_err(Error::from) {
                Ok(checked) => {
                    *held = Some(file);
                    return Ok(checked);
                }
                Err(error) => {
                    drop(file);
                    if !nc4.read_again(&error, &mut tries) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Moves the values.
    ///
    /// # Errors
    /// As [`Dataset::get`].
    #[inline]
    pub fn read(mut self, room: Room<'_>) -> Result<Converted> {
        let got = match &self.from {
            From::Classic(classic) => {
                classic.get(&self.access, &self.checked, room.bytes).map_err(Error::from)
            }
            _ => self.read_nc4(room),
        };
        self.dataset.here(got)
    }

    #[inline(never)]
    fn read_nc4(&mut self, room: Room<'_>) -> Result<Converted> {
        let mut tries = 0;
        loop {
            let (nc4, file) = match &mut self.from {
                From::Nc4(nc4, held) => (*nc4, held.take()),
                _ => return Err(NOT_CHECKED.into()),
            };
            let file = file.ok_or(NOT_CHECKED)?;
            if room.place.is_some() {
                // What was placed stays with the caller, so that it cannot be tried again.
                return Ok(file.get(&self.access, &self.checked, room)?);
            }
            let again = Room::plain(&mut *room.bytes);
            let got = file.get(&self.access, &self.checked, again).map_err(Error::from);
            drop(file);
            match got {
                Err(error) if nc4.read_again(&error, &mut tries) => {
                    let before = self.checked.n_bytes;
                    self.checked = self.check_nc4()?;
                    if self.checked.n_bytes != before {
                        let why = "another program changed the type of the variable";
                        return Err(Error::answered(NcError::HdfErr, Answer::Request, why));
                    }
                }
                done => return done,
            }
        }
    }
}

/// A get without its first step.
const NOT_CHECKED: NcError = NcError::Inval;

/// A put into the file itself, which was taken for it.
pub(crate) enum InFile<'a> {
    Classic(zonda_classic::Held<'a>),
    Nc4(RwLockWriteGuard<'a, Nc4File>),
}

impl InFile<'_> {
    #[inline]
    fn rank(&self, var: VarRef) -> usize {
        match self {
            InFile::Classic(classic) => classic.rank(var.var),
            InFile::Nc4(file) => file.rank(var),
        }
    }

    #[inline]
    fn check(&mut self, put: &Access<'_>) -> Result<Checked> {
        match self {
            InFile::Classic(classic) => Ok(classic.check_put(put)?),
            InFile::Nc4(file) => Ok(file.check_put(put)?),
        }
    }

    #[inline]
    fn put(
        &mut self,
        put: &Access<'_>,
        checked: &Checked,
        values: Values<'_>,
    ) -> Result<Converted> {
        match self {
            InFile::Classic(classic) => Ok(classic.put(put, checked, values.bytes)?),
            InFile::Nc4(file) => Ok(file.put(put, checked, values)?),
        }
    }
}

impl Inner {
    /// Takes the file for a put.
    #[inline]
    pub(crate) fn put_to(&self, var: VarRef) -> Result<InFile<'_>> {
        match self {
            Inner::Classic(classic) if var.group == GroupId::ROOT => {
                Ok(InFile::Classic(classic.hold()))
            }
            Inner::Classic(_) => Err(NcError::BadGrpId.into()),
            Inner::Nc4(nc4) => Ok(InFile::Nc4(nc4.write_anew()?)),
        }
    }

    /// Puts into the file itself.
    pub(crate) fn put(&self, put: &Access<'_>, values: Values<'_>) -> Result<Converted> {
        let mut file = self.put_to(put.var)?;
        let checked = file.check(put)?;
        file.put(put, &checked, values)
    }

    /// Stores what waits in memory only for more to come; what fails stays there.
    pub(crate) fn store_complete(&self) -> Result<()> {
        match self {
            Inner::Classic(_) => Ok(()),
            Inner::Nc4(nc4) => nc4.change(|file| Ok(file.store_complete()?)),
        }
    }
}

impl fmt::Debug for Put<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Put").field("access", &self.access).finish_non_exhaustive()
    }
}

impl fmt::Debug for Get<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("access", &self.access).finish_non_exhaustive()
    }
}
