//! Values of variables: transfers in two steps.
//!
//! [`Dataset::put_to`] and [`Dataset::get_from`] take the file and say the variable's rank; a check then says how long the
//! caller's memory has to be, and the transfer moves the values. Nothing changes between. [`Dataset::put`] and [`Dataset::get`] are
//! all of it in one call, for who knows the length.

use std::fmt;

use zonda_convert::Converted;
use zonda_format::{Access, Checked, Place, Room, Values, VarRef};
use zonda_model::{Hyperslab, MemType, memory};

use crate::behind;
use crate::dataset::Dataset;
use crate::error::Result;

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

    /// [`Dataset::put`] for a selection that needs the variable's rank, 0 where there is no such variable: saves hot calls an
    /// inquiry.
    ///
    /// # Errors
    /// As [`Dataset::put`].
    #[inline(always)]
    pub fn put_now<'s>(
        &self,
        var: VarRef,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        mem: Option<MemType>,
        bytes: &[u8],
    ) -> Result<Converted> {
        match self.door.put_now(var, slab, mem, bytes) {
            Ok(converted) => Ok(converted),
            Err(error) => Err(error.at(self.path())),
        }
    }

    /// The same for [`Dataset::get`].
    ///
    /// # Errors
    /// As [`Dataset::get`].
    #[inline(always)]
    pub fn get_now<'s>(
        &self,
        var: VarRef,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        mem: Option<MemType>,
        out: &mut [u8],
    ) -> Result<Converted> {
        self.check_group(var.group)?;
        match self.door.get_now(var, slab, mem, out) {
            Ok(converted) => Ok(converted),
            Err(error) => Err(error.at(self.path())),
        }
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
        match self.door.put_to(var.into()) {
            Ok(put) => Ok(Put { dataset: self, put }),
            Err(error) => Err(error.at(self.path())),
        }
    }

    /// Begins a get. Until it is done or dropped, the thread must not call the dataset in another way.
    ///
    /// # Errors
    /// `NC_EBADID` where another thread has closed the file.
    #[inline(always)]
    pub fn get_from(&self, var: impl Into<VarRef>) -> Result<Get<'_>> {
        let var = var.into();
        self.check_group(var.group)?;
        match self.door.get_from(var) {
            Ok(get) => Ok(Get { dataset: self, get }),
            Err(error) => Err(error.at(self.path())),
        }
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
    put: behind::Put<'a>,
}

impl<'a> Put<'a> {
    /// Rank of the variable; 0 where there is none, which the check says.
    #[inline(always)]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.put.rank()
    }

    /// First step: all that may refuse it, of the variable that it was begun for. Says how many bytes the caller's memory has to have.
    ///
    /// # Errors
    /// As [`Dataset::put`].
    #[inline(always)]
    pub fn check(&mut self, put: &Access<'a>) -> Result<Checked> {
        match self.put.check(put) {
            Ok(checked) => Ok(checked),
            Err(error) => Err(error.at(self.dataset.path())),
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
        match self.put.write(put, checked, values) {
            Ok(converted) => Ok(converted),
            Err(error) => Err(error.at(self.dataset.path())),
        }
    }
}

/// A get that was begun: [`Dataset::get_from`]. What is read, and what its check gave, the caller keeps and hands over.
pub struct Get<'a> {
    dataset: &'a Dataset,
    get: behind::Get<'a>,
}

impl Get<'_> {
    /// Rank of the variable; 0 where there is none, which the check says.
    #[inline(always)]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.get.rank()
    }

    /// First step: all that may refuse it, of the variable that it was begun for. Says how many bytes the caller's memory has to have.
    ///
    /// # Errors
    /// As [`Dataset::get`].
    #[inline(always)]
    pub fn check(&mut self, get: &Access<'_>) -> Result<Checked> {
        match self.get.check(get) {
            Ok(checked) => Ok(checked),
            Err(error) => Err(error.at(self.dataset.path())),
        }
    }

    /// Second step: moves the values.
    ///
    /// # Errors
    /// As [`Dataset::get`].
    #[inline(always)]
    pub fn read(self, get: &Access<'_>, checked: &Checked, room: Room<'_>) -> Result<Converted> {
        match self.get.read(get, checked, room) {
            Ok(converted) => Ok(converted),
            Err(error) => Err(error.at(self.dataset.path())),
        }
    }
}

impl fmt::Debug for Put<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Put").field("var", &self.put.var).finish_non_exhaustive()
    }
}

impl fmt::Debug for Get<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("var", &self.get.var).finish_non_exhaustive()
    }
}
