//! Values of variables: transfers in two steps.
//!
//! [`Dataset::put_to`] and [`Dataset::get_from`] take the file and say the variable's rank; [`Put::check`] and [`Get::check`] say how
//! long the caller's memory has to be, and [`CheckedPut::write`] and [`CheckedGet::read`] move the values. Nothing changes
//! between. [`Dataset::put`] and [`Dataset::get`] do all of it in one call, for callers that know the length.

use zonda_convert::Converted;
use zonda_format::{Access, Destination, Transfer, Values, VarRef, VlenSink};
use zonda_model::{Hyperslab, MemType, memory};

use crate::dataset::Dataset;
use crate::error::Result;
use crate::write_behind;

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
        let mut put = Transfer::new(Access { var: var.into(), slab: *slab, mem });
        self.put_in_steps(&mut put, Values::plain(bytes))
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
        let mut put = Transfer::new(Access { var: var.into(), slab: *slab, mem: None });
        self.put_in_steps(&mut put, values)
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
        let mut get = Transfer::new(Access { var: var.into(), slab: *slab, mem });
        self.get_in_steps(&mut get, Destination::plain(out))
    }

    /// Reads a hyperslab of any type as what it is: in the layout of C, strings and sequences to where `room` has a place.
    ///
    /// # Errors
    /// As [`Dataset::get`]; `NC_ENOMEM` where there is no memory for them.
    pub fn get_values(
        &self,
        var: impl Into<VarRef>,
        slab: &Hyperslab<'_>,
        room: Destination<'_>,
    ) -> Result<Converted> {
        let mut get = Transfer::new(Access { var: var.into(), slab: *slab, mem: None });
        self.get_in_steps(&mut get, room)
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
        (list, place): (&mut Vec<u8>, Option<&mut dyn VlenSink>),
    ) -> Result<Converted> {
        let mut get = Transfer::new(Access { var: var.into(), slab: *slab, mem });
        let mut begun = self.get_from(get.of().var)?;
        let get = begun.check(&mut get)?;
        memory::resize(list, get.n_bytes(), 0)?;
        get.read(Destination { bytes: list, place: shorter(place) })
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
        self.queued_file.put_now(var, slab, mem, bytes).map_err(|error| error.at(self.path()))
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
        self.ready_to_get(var)?;
        self.queued_file.get_now(var, slab, mem, out).map_err(|error| error.at(self.path()))
    }

    fn put_in_steps(
        &self,
        access: &mut Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        self.put_to(access.of().var)?.check(access)?.write(values)
    }

    fn get_in_steps(
        &self,
        access: &mut Transfer<Access<'_>>,
        room: Destination<'_>,
    ) -> Result<Converted> {
        self.get_from(access.of().var)?.check(access)?.read(room)
    }

    /// Begins a put. Until it is done or dropped, the thread must not call the dataset in another way.
    ///
    /// # Errors
    /// What went wrong with puts that were accepted before; `ECHILD` in a forked child.
    #[inline(always)]
    pub fn put_to(&self, var: impl Into<VarRef>) -> Result<Put<'_>> {
        let begun = self.queued_file.put_to(var.into()).map_err(|error| error.at(self.path()))?;
        Ok(Put { dataset: self, begun })
    }

    /// Begins a get. Until it is done or dropped, the thread must not call the dataset in another way.
    ///
    /// # Errors
    /// `NC_EBADID` where another thread has closed the file.
    #[inline(always)]
    pub fn get_from(&self, var: impl Into<VarRef>) -> Result<Get<'_>> {
        let var = var.into();
        self.check_group(var.group)?;
        self.ready_to_get(var)?;
        let begun = self.queued_file.get_from(var).map_err(|error| error.at(self.path()))?;
        Ok(Get { dataset: self, begun })
    }
}

/// The same reference with a shorter lifetime.
pub(crate) fn shorter<'s, 'l: 's>(
    place: Option<&'s mut (dyn VlenSink + 'l)>,
) -> Option<&'s mut (dyn VlenSink + 's)> {
    match place {
        Some(place) => Some(place),
        None => None,
    }
}

/// A put that was begun: [`Dataset::put_to`].
pub struct Put<'a> {
    dataset: &'a Dataset,
    begun: write_behind::QueuedPut<'a>,
}

impl<'a> Put<'a> {
    /// Rank of the variable; 0 where there is no such variable, which the check reports.
    #[inline(always)]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.begun.rank()
    }

    /// First step: makes all checks that may refuse it.
    ///
    /// # Errors
    /// As [`Dataset::put`]; `NC_EINVAL` for another variable than it was begun for.
    #[inline(always)]
    pub fn check<'c>(
        &'c mut self,
        put: &'c mut Transfer<Access<'_>>,
    ) -> Result<CheckedPut<'c, 'a>> {
        match self.begun.check(put) {
            Ok(()) => Ok(CheckedPut { begun: self, put }),
            Err(error) => Err(error.at(self.dataset.path())),
        }
    }

    /// Both steps in one call, for callers that know how long memory has to be.
    ///
    /// # Errors
    /// As [`Put::check`]; `NC_EINVAL` for memory of another length.
    #[inline(always)]
    pub fn write_now(
        &mut self,
        put: &mut Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        self.begun.write_now(put, values).map_err(|error| error.at(self.dataset.path()))
    }
}

/// A put whose arguments were checked. Only the storage can refuse it now.
///
/// See [`Dataset`](crate::Dataset).
pub struct CheckedPut<'c, 'a> {
    begun: &'c mut Put<'a>,
    put: &'c Transfer<Access<'c>>,
}

impl CheckedPut<'_, '_> {
    /// Bytes that the caller's memory has to have.
    #[inline(always)]
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.put.n_bytes
    }

    /// Second step: moves the values.
    ///
    /// # Errors
    /// `NC_EINVAL` for memory of another length; what the storage and filters report. Values that do not fit are counted.
    #[inline(always)]
    pub fn write(self, values: Values<'_>) -> Result<Converted> {
        let Put { dataset, begun } = self.begun;
        begun.write(self.put, values).map_err(|error| error.at(dataset.path()))
    }
}

/// A get that was begun: [`Dataset::get_from`].
pub struct Get<'a> {
    dataset: &'a Dataset,
    begun: write_behind::QueuedGet<'a>,
}

impl<'a> Get<'a> {
    /// Rank of the variable; 0 where there is no such variable, which the check reports.
    #[inline(always)]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.begun.rank()
    }

    /// First step: makes all checks that may refuse it.
    ///
    /// # Errors
    /// As [`Dataset::get`]; `NC_EINVAL` for another variable than it was begun for.
    #[inline(always)]
    pub fn check<'c>(
        &'c mut self,
        get: &'c mut Transfer<Access<'_>>,
    ) -> Result<CheckedGet<'c, 'a>> {
        match self.begun.check(get) {
            Ok(()) => Ok(CheckedGet { begun: self, get }),
            Err(error) => Err(error.at(self.dataset.path())),
        }
    }

    /// Both steps in one call, for callers that know how long memory has to be.
    ///
    /// # Errors
    /// As [`Get::check`]; `NC_EINVAL` for memory of another length.
    #[inline(always)]
    pub fn read_now(
        &mut self,
        get: &mut Transfer<Access<'_>>,
        out: &mut [u8],
    ) -> Result<Converted> {
        self.begun.read_now(get, out).map_err(|error| error.at(self.dataset.path()))
    }
}

/// A get whose arguments were checked. Only the storage can refuse it now.
///
/// See [`Dataset`](crate::Dataset).
pub struct CheckedGet<'c, 'a> {
    begun: &'c mut Get<'a>,
    get: &'c Transfer<Access<'c>>,
}

impl CheckedGet<'_, '_> {
    /// Bytes that the caller's memory has to have.
    #[inline(always)]
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.get.n_bytes
    }

    /// Second step: moves the values.
    ///
    /// # Errors
    /// As [`CheckedPut::write`]; `NC_ENOMEM` where there is no memory for strings and sequences.
    #[inline(always)]
    pub fn read(self, room: Destination<'_>) -> Result<Converted> {
        let Get { dataset, begun } = self.begun;
        begun.read(self.get, room).map_err(|error| error.at(dataset.path()))
    }
}

/// Debug output names what the transfer is about, and not the guards of the file that it holds.
macro_rules! shows {
    ($($ty:ident<$($life:lifetime),+>: |$of:ident| $what:expr;)+) => {$(
        impl std::fmt::Debug for $ty<$($life),+> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $of = self;
                f.debug_tuple(stringify!($ty)).field($what).finish()
            }
        }
    )+};
}
pub(crate) use shows;

shows! {
    Put<'_>: |put| &put.begun.var;
    CheckedPut<'_, '_>: |put| put.put;
    Get<'_>: |get| &get.begun.var;
    CheckedGet<'_, '_>: |get| get.get;
}
