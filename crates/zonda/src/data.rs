//! Values of attributes and variables.

use zonda_convert::Converted;
use zonda_format::VarRef;
use zonda_model::{Answer, Hyperslab, MemType, NcError};
use zonda_nc4::{Fetch, GroupId, Place, Source, Target};

use crate::behind::{Behind, Went};
use crate::dataset::{Dataset, Inner};
use crate::error::{Error, Result};
use crate::nc4::{Asked, NoPlace};

/// Attributes.
impl Dataset {
    /// Writes an attribute of a variable, or of the dataset for [`VarId::GLOBAL`].
    ///
    /// `values` is called with the length in bytes (`n_values` of type `mem`, by default the natural
    /// one) after all other checks.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_ENOTVAR`, `NC_EBADTYPE`, `NC_ECHAR`, `NC_EINVAL`, `NC_ENOTINDEFINE`,
    /// `NC_EBADNAME`, `NC_EMAXNAME`, in this order. Values that do not fit are counted.
    pub fn put_att<'a>(
        &self,
        owner: impl Into<VarRef>,
        name: &[u8],
        nc_type: i32,
        n_values: usize,
        mem: Option<MemType>,
        values: impl FnOnce(usize) -> Result<&'a [u8]>,
    ) -> Result<Converted> {
        let owner = owner.into();
        let (_hold, found) = self.to_change(owner)?;
        match found {
            Ok(classic) => {
                let owner = owner.var;
                self.here(classic.put_att::<Error>(owner, name, nc_type, n_values, mem, values))
            }
            Err(nc4) => self.change(nc4, |file| match mem {
                Some(mem) => {
                    let source = Source::Atomic(mem);
                    file.put_att::<Error>(owner, name, nc_type, n_values, source, values)
                }
                None => NoPlace::with(|place| {
                    let source = Source::Natural(place);
                    file.put_att::<Error>(owner, name, nc_type, n_values, source, values)
                }),
            }),
        }
    }

    /// Reads an attribute of a variable, or of the dataset for [`VarId::GLOBAL`], as type `mem` (by
    /// default its natural one) into the memory that `out` hands over for the length in bytes.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_ENOTATT`, `NC_ECHAR`, in this order. Values that do not fit are counted.
    pub fn get_att<'a>(
        &self,
        owner: impl Into<VarRef>,
        name: &[u8],
        mem: Option<MemType>,
        out: impl FnOnce(usize) -> Result<&'a mut [u8]>,
    ) -> Result<Converted> {
        let owner = owner.into();
        match self.classic_of(owner)? {
            Ok(classic) => self.here(classic.get_att::<Error>(owner.var, name, mem, out)),
            Err(nc4) => {
                self.here(self.look(nc4, |file| Asked(file).get_att(owner, name, mem, out)))
            }
        }
    }

    /// Writes an attribute of any type as what it is, as [`Dataset::put_placed`] does a variable.
    ///
    /// # Errors
    /// As [`Dataset::put_att`].
    pub fn put_att_placed<'a>(
        &self,
        owner: VarRef,
        name: &[u8],
        (nc_type, n_values): (i32, usize),
        fetch: &mut dyn Fetch,
        values: impl FnOnce(usize) -> Result<&'a [u8]>,
    ) -> Result<Converted> {
        match self.as_nc4() {
            None => self.put_att(owner, name, nc_type, n_values, None, values),
            Some(nc4) => self.change(nc4, |file| {
                let source = Source::Natural(fetch);
                file.put_att::<Error>(owner, name, nc_type, n_values, source, values)
            }),
        }
    }

    /// Reads an attribute of any type as what it is, as [`Dataset::get_placed`] does a variable.
    ///
    /// # Errors
    /// As [`Dataset::get_att`]; `NC_ENOMEM` where `place` has no memory.
    pub fn get_att_placed<'a>(
        &self,
        owner: VarRef,
        name: &[u8],
        place: &mut dyn Place,
        out: impl FnOnce(usize) -> Result<&'a mut [u8]>,
    ) -> Result<Converted> {
        match self.as_nc4() {
            None => self.get_att(owner, name, None, out),
            Some(nc4) => {
                let target = Target::Natural(place);
                self.here(self.look(nc4, |file| file.get_att::<Error>(owner, name, target, out)))
            }
        }
    }
}

/// Variables.
impl Dataset {
    /// Writes a hyperslab from memory of type `mem` (by default the variable's natural one).
    ///
    /// `data` is called with the length in bytes (row-major, shape `count`) after all other checks.
    /// With `stride` the checks are those of `nc_put_vars`, without those of `nc_put_vara`.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EINDEFINE`, `NC_EGLOBAL`, `NC_ENOTVAR`, `NC_ECHAR`, `NC_EINVALCOORDS`,
    /// `NC_EEDGE`, `NC_ESTRIDE`; what the storage reports. Values that do not fit are counted.
    pub fn put<'a>(
        &self,
        var: impl Into<VarRef>,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
        data: impl FnOnce(usize) -> Result<&'a [u8]>,
    ) -> Result<Converted> {
        self.put_with(var, |_| *slab, mem, data)
    }

    /// [`Dataset::put`] for a caller that does not know the rank before the call: `slab` is told it
    /// (0 where there is no such variable).
    ///
    /// # Errors
    /// As [`Dataset::put`].
    pub fn put_with<'a, 's>(
        &self,
        var: impl Into<VarRef>,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        mem: Option<MemType>,
        data: impl FnOnce(usize) -> Result<&'a [u8]>,
    ) -> Result<Converted> {
        let var = var.into();
        match self.behind() {
            None => self.here(self.inner.put(var, slab, mem, data)),
            Some(behind) => self.put_behind(behind, var, slab, mem, data),
        }
    }

    /// A put where puts are carried out behind the program's back.
    #[inline(never)]
    fn put_behind<'a, 's>(
        &self,
        behind: &Behind,
        var: VarRef,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        mem: Option<MemType>,
        data: impl FnOnce(usize) -> Result<&'a [u8]>,
    ) -> Result<Converted> {
        behind.check()?;
        let (mut slab, mut data) = (Once::new(slab), Once::new(data));
        let (mut say, mut hand_over) = (|rank| slab.value(rank), |len| data.bytes(len));
        if let Some(done) = behind.accept_at_once(var, mem, &mut say, &mut hand_over)? {
            return Ok(done);
        }
        let known = behind.known(var).filter(|known| known.is_atomic() || mem.is_some());
        let fit = known.as_ref().and_then(|known| known.fit(&slab.value(known.rank()), mem));
        let (Some(known), Some(fit)) = (known, fit) else {
            behind.finish(false)?;
            let put = self.inner.put(var, |rank| slab.value(rank), mem, |len| data.bytes(len));
            let put = self.here(put);
            // Lengths may be other ones now.
            behind.begin_change();
            let went = slab.made.zip(data.made);
            let went = went.map(|(slab, values)| Went { var, slab, mem, values });
            return behind.went_by(put, went);
        };
        let given = data.bytes(fit.given_bytes)?;
        if given.len() == fit.given_bytes
            && let Some(converted) = behind.accept(var, &known, &fit, given)?
        {
            return Ok(converted);
        }
        behind.finish(false)?;
        let converted = self.here(self.inner.put(var, |_| fit.slab, mem, |_| Ok(given)))?;
        behind.grew(var, &known, &fit);
        behind.went_by(Ok(converted), Some(Went { var, slab: fit.slab, mem, values: given }))
    }

    /// Reads a hyperslab into memory of type `mem` (by default the variable's natural one).
    ///
    /// `out` is called with the length in bytes (row-major, shape `count`) after all other checks.
    ///
    /// # Errors
    /// As [`Dataset::put`], but for `NC_EPERM`.
    pub fn get<'a>(
        &self,
        var: impl Into<VarRef>,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
        out: impl FnOnce(usize) -> Result<&'a mut [u8]>,
    ) -> Result<Converted> {
        self.get_with(var, |_| *slab, mem, out)
    }

    /// [`Dataset::get`] for a caller that does not know the rank before the call.
    ///
    /// # Errors
    /// As [`Dataset::get`].
    pub fn get_with<'a, 's>(
        &self,
        var: impl Into<VarRef>,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        mem: Option<MemType>,
        out: impl FnOnce(usize) -> Result<&'a mut [u8]>,
    ) -> Result<Converted> {
        let var = var.into();
        let mut slab = Once::new(slab);
        self.before_get(var, &mut slab)?;
        match self.classic_of(var)? {
            Ok(classic) => self.here(classic.get::<Error>(var.var, |n| slab.value(n), mem, out)),
            Err(nc4) => {
                let mut out = Once::new(out);
                let mut tries = 0;
                loop {
                    let file = self.here(nc4.read_data(var, mem))?;
                    let got = Asked(&file).get(var, |n| slab.value(n), mem, |n| out.memory(n));
                    drop(file);
                    match got {
                        Err(error) if nc4.read_again(&error, &mut tries) => {}
                        done => return self.here(done),
                    }
                }
            }
        }
    }

    /// Writes a hyperslab of any type as what it is: in the layout of C, strings and sequences where
    /// `fetch` finds them. Else as [`Dataset::put_with`].
    ///
    /// # Errors
    /// As [`Dataset::put_with`].
    pub fn put_placed<'a, 's>(
        &self,
        var: VarRef,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        fetch: &mut dyn Fetch,
        data: impl FnOnce(usize) -> Result<&'a [u8]>,
    ) -> Result<Converted> {
        if self.as_nc4().is_none() {
            return self.put_with(var, slab, None, data);
        }
        let Some(behind) = self.behind() else {
            return self.here(self.inner.put_placed(var, slab, fetch, data));
        };
        behind.check()?;
        let Some(known) = behind.known(var) else {
            behind.finish(false)?;
            let put = self.here(self.inner.put_placed(var, slab, fetch, data));
            behind.begin_change();
            return behind.went_by(put, None);
        };
        if known.is_atomic() {
            return self.put_behind(behind, var, slab, None, data);
        }
        let slab = slab(known.rank());
        let Some(fit) = known.fit(&slab, None) else {
            behind.finish(false)?;
            let put = self.here(self.inner.put_placed(var, |_| slab, fetch, data));
            behind.begin_change();
            return behind.went_by(put, None);
        };
        let given = data(fit.given_bytes)?;
        if given.len() == fit.given_bytes
            && self.here(behind.accept_placed(var, &known, &fit, fetch, given))?
        {
            return Ok(Converted::default());
        }
        behind.finish(false)?;
        let put = self.here(self.inner.put_placed(var, |_| slab, fetch, |_| Ok(given)))?;
        behind.grew(var, &known, &fit);
        behind.went_by(Ok(put), None)
    }

    /// Reads a hyperslab of any type as what it is: in the layout of C, strings and sequences where
    /// `place` puts them. Else as [`Dataset::get_with`].
    ///
    /// # Errors
    /// As [`Dataset::get_with`]; `NC_ENOMEM` where `place` has no memory.
    pub fn get_placed<'a, 's>(
        &self,
        var: VarRef,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        place: &mut dyn Place,
        out: impl FnOnce(usize) -> Result<&'a mut [u8]>,
    ) -> Result<Converted> {
        match self.as_nc4() {
            None => self.get_with(var, slab, None, out),
            Some(nc4) => {
                let (mut slab, mut out) = (Once::new(slab), Once::new(out));
                self.before_get(var, &mut slab)?;
                let mut tries = 0;
                loop {
                    let file = self.here(nc4.read_data(var, None))?;
                    let (group, id, target) = (var.group, var.var, Target::Natural(&mut *place));
                    let slab = |n| slab.value(n);
                    let got = file.get::<Error>(group, id, slab, target, |n| out.memory(n));
                    drop(file);
                    match got {
                        // What was placed already stays with the caller, so it is not placed twice.
                        Err(error) if !out.is_made() && nc4.read_again(&error, &mut tries) => {}
                        done => return self.here(done),
                    }
                }
            }
        }
    }
}

impl Dataset {
    /// Waits for the puts that touch what is read.
    #[inline]
    fn before_get<'s, F: FnOnce(usize) -> Hyperslab<'s>>(
        &self,
        var: VarRef,
        slab: &mut Once<F, Hyperslab<'s>>,
    ) -> Result<()> {
        match self.behind() {
            Some(behind) if behind.is_busy() => {
                let rank = self
                    .in_group(var.group, |meta| meta.var(var.var).map_or(0, |var| var.dims.len()));
                behind.before_get(var, &slab.value(rank.unwrap_or(0)))
            }
            _ => Ok(()),
        }
    }
}

impl Inner {
    /// As [`Dataset::put_with`], in the file itself.
    #[inline]
    pub(crate) fn put<'a, 's>(
        &self,
        var: VarRef,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        mem: Option<MemType>,
        data: impl FnOnce(usize) -> Result<&'a [u8]>,
    ) -> Result<Converted> {
        match self {
            Inner::Classic(classic) if var.group == GroupId::ROOT => {
                classic.put::<Error>(var.var, slab, mem, data)
            }
            Inner::Classic(_) => Err(NcError::BadGrpId.into()),
            Inner::Nc4(nc4) => nc4.change(|file| match mem {
                Some(mem) => file.put::<Error>(var.group, var.var, slab, Source::Atomic(mem), data),
                None => NoPlace::with(|place| {
                    file.put::<Error>(var.group, var.var, slab, Source::Natural(place), data)
                }),
            }),
        }
    }

    /// Stores what waits in memory only for more to come; what fails stays there.
    pub(crate) fn store_complete(&self) -> Result<()> {
        match self {
            Inner::Classic(_) => Ok(()),
            Inner::Nc4(nc4) => nc4.change(|file| Ok(file.store_complete()?)),
        }
    }

    /// As [`Dataset::put_placed`], in the file itself.
    pub(crate) fn put_placed<'a, 's>(
        &self,
        var: VarRef,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        fetch: &mut dyn Fetch,
        data: impl FnOnce(usize) -> Result<&'a [u8]>,
    ) -> Result<Converted> {
        match self {
            Inner::Classic(_) => self.put(var, slab, None, data),
            Inner::Nc4(nc4) => {
                nc4.change(|file| file.put(var.group, var.var, slab, Source::Natural(fetch), data))
            }
        }
    }
}

/// What a caller gives once, for a call that may be tried again.
struct Once<F, T> {
    make: Option<F>,
    made: Option<T>,
}

impl<F, T> Once<F, T> {
    fn new(make: F) -> Once<F, T> {
        Once { make: Some(make), made: None }
    }

    /// Whether it was given.
    fn is_made(&self) -> bool {
        self.make.is_none()
    }
}

impl<'s, F: FnOnce(usize) -> Hyperslab<'s>> Once<F, Hyperslab<'s>> {
    #[inline]
    fn value(&mut self, rank: usize) -> Hyperslab<'s> {
        if let Some(make) = self.make.take() {
            self.made = Some(make(rank));
        }
        self.made.unwrap_or(Hyperslab { start: &[], count: &[], stride: None })
    }
}

impl<'a, F: FnOnce(usize) -> Result<&'a [u8]>> Once<F, &'a [u8]> {
    /// The caller's memory for `len` bytes.
    #[inline]
    fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        if let Some(make) = self.make.take() {
            self.made = Some(make(len)?);
        }
        let why = "the caller's memory is to be had once";
        self.made.ok_or_else(|| Error::explained(NcError::Internal, why))
    }
}

impl<'a, F: FnOnce(usize) -> Result<&'a mut [u8]>> Once<F, &'a mut [u8]> {
    /// Memory for `len` bytes, which are as many as before.
    #[inline]
    fn memory(&mut self, len: usize) -> Result<&mut [u8]> {
        if let Some(make) = self.make.take() {
            self.made = Some(make(len)?);
        }
        match &mut self.made {
            Some(made) if made.len() == len => Ok(made),
            Some(_) | None => {
                let why = "another program changed the type of the variable";
                Err(Error::answered(NcError::HdfErr, Answer::Request, why))
            }
        }
    }
}
